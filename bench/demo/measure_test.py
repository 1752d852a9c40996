"""Rows of a run that died are not those of the run before."""

import pathlib
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test" / "training"))
sys.dont_write_bytecode = True

import measure  # noqa: E402


class Bench(unittest.TestCase):
    def bench(self, folder, code):
        """With a program in place of `riffle`, and rows of an earlier run."""
        riffle = pathlib.Path(folder, "riffle")
        riffle.write_text(f"#!/bin/sh\n{code}\n")
        riffle.chmod(0o700)
        pathlib.Path(folder, "buckets.json").write_text('["old"]')
        site = types.SimpleNamespace(riffle=riffle, profile="p", output=pathlib.Path(folder), emulated=True,
                                     environment=lambda: {"PATH": "/usr/bin:/bin"})
        return measure.bench(site, "gloo", [8], lambda peer: None)

    def test_no_rows_are_no_old_rows(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(measure.Failed):
            self.bench(folder, "exit 1")

    def test_rows_are_those_that_were_written(self):
        with tempfile.TemporaryDirectory() as folder:
            code = 'for last; do :; done; echo "[\\"new\\"]" > "$last"'
            self.assertEqual(self.bench(folder, code), ["new"])


if __name__ == "__main__":
    unittest.main()
