#!/usr/bin/env python3
"""apply.sh on checkouts of the test's own making, and what the patches in the repository consist of.

usage: apply_test.py"""
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "nccl-tests-patches"
HEADERS = sorted(path.name for path in (ROOT / "src").glob("*.h"))


def checksum(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Checkout:
    """A checkout that a patch fits, and that patch; `version` None: a release that does not say its own."""

    def __init__(self, folder, version):
        self.root, self.patches = pathlib.Path(folder, "checkout"), pathlib.Path(folder, "patches")
        (self.root / "src").mkdir(parents=True)
        self.patches.mkdir()
        lines = [f"line {n}\n" for n in range(1, 41)]
        self.before = "".join(lines)
        self.after = "".join(lines[:3] + ["added\n"] + lines[3:20] + ["two\n", "more\n"] + lines[20:])
        self.file = self.root / "src/common.cu"
        self.file.write_text(self.before)
        named = f'#define NCCL_TESTS_VERSION "{version}"\n' if version else "\n"
        (self.root / "src/common.h").write_text(named)
        (self.patches / f"{version or '2.0.0'}.patch").write_text(
            f"# before {checksum(self.before)}\n# after  {checksum(self.after)}\n"
            "--- a/src/common.cu\n+++ b/src/common.cu\n"
            "@@ -3,0 +4 @@\n+added\n@@ -20,0 +22,2 @@\n+two\n+more\n")

    def apply(self, *options):
        done = subprocess.run([ROOT / "apply.sh", *options, self.root], capture_output=True, text=True,
                              check=False, env={**os.environ, "RIFFLE_PATCHES": str(self.patches)})
        return done.returncode, done.stdout + done.stderr

    def headers(self):
        return sorted(path.name for path in (self.root / "src").glob("riffle_*"))


class Apply(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def checkout(self, version="2.0.1"):
        return Checkout(tempfile.mkdtemp(dir=self.folder.name), version)

    def refuses(self, checkout, sentence, *options):
        before = checkout.file.read_text()
        code, said = checkout.apply(*options)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, sentence)
        self.assertEqual(checkout.file.read_text(), before)

    def test_there_and_back(self):
        for version in "2.0.1", None:
            checkout = self.checkout(version)
            self.assertEqual(checkout.apply()[0], 0)
            self.assertEqual(checkout.file.read_text(), checkout.after)
            self.assertEqual(checkout.headers(), HEADERS)
            self.refuses(checkout, "already patched")
            self.assertEqual(checkout.apply("--reverse")[0], 0)
            self.assertEqual(checkout.file.read_text(), checkout.before)
            self.assertEqual(checkout.headers(), [])
            self.refuses(checkout, "not patched", "--reverse")

    def test_a_dry_run_changes_nothing(self):
        checkout = self.checkout()
        code, said = checkout.apply("--dry-run")
        self.assertEqual((code, checkout.file.read_text(), checkout.headers()), (0, checkout.before, []))
        self.assertIn("would get", said)
        checkout.apply()
        code, said = checkout.apply("--reverse", "--dry-run")
        self.assertEqual((code, checkout.file.read_text(), checkout.headers()), (0, checkout.after, HEADERS))
        self.assertIn("would lose", said)

    def test_a_changed_file_is_refused(self):
        for options in (), ("--reverse",):
            checkout = self.checkout()
            if options:
                checkout.apply()
            checkout.file.write_text(checkout.file.read_text().replace("line 30", "line thirty"))
            self.refuses(checkout, r"is not that of a release \(2\.0\.1\)", *options)

    def test_another_release_is_refused_and_those_that_there_are_named(self):
        checkout = self.checkout()
        (checkout.root / "src/common.h").write_text('#define NCCL_TESTS_VERSION "3.0.0"\n')
        self.refuses(checkout, r"no patch for nccl-tests 3\.0\.0; there are patches for 2\.0\.1")

    def test_a_patch_that_makes_something_else_leaves_the_file(self):
        checkout = self.checkout()
        patch = checkout.patches / "2.0.1.patch"
        patch.write_text(patch.read_text().replace("+more", "+less"))
        self.refuses(checkout, "made another file than it should")

    def test_no_checkout(self):
        checkout = self.checkout()
        checkout.file.unlink()
        code, said = checkout.apply()
        self.assertEqual(code, 1)
        self.assertIn("is no checkout", said)


class Patches(unittest.TestCase):
    """They hold no line of nccl-tests: all only add, and all add the same but for a column's width."""

    def test_only_lines_of_ours(self):
        added = set()
        patches = sorted((ROOT / "patches").glob("*.patch"))
        self.assertGreaterEqual(len(patches), 23)
        for patch in patches:
            head, *hunks = re.split(r"^@@ ", patch.read_text(), flags=re.MULTILINE)
            self.assertRegex(head, rf"\A# nccl-tests {re.escape(patch.stem)}, .*\n# before [0-9a-f]{{64}}\n"
                                   r"# after  [0-9a-f]{64}\n--- a/src/common.cu\n\+\+\+ b/src/common.cu\n\Z")
            text = []
            for hunk in hunks:
                place, *lines = hunk.rstrip("\n").split("\n")
                self.assertRegex(place, r"^-\d+,0 \+\d+(,\d+)? @@$")
                self.assertTrue(lines and all(line.startswith("+") for line in lines), hunk)
                text += [re.sub(r"titles\(.*\)", "titles()", line) for line in lines]
            added.add("\n".join(text))
        self.assertEqual(len(added), 1)


if __name__ == "__main__":
    unittest.main(argv=["apply_test.py", "-v"])
