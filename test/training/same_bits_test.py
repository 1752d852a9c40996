"""The comparison of two builds (same_bits.py) must see what differs, and nothing else."""

import argparse
import contextlib
import io
import re
import sys
import unittest

import same_bits

STEPS = 4
OPTIONS = None


def compare(plans, other=None):
    """Exit code and output of the program."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = same_bits.main([OPTIONS.plugin, other or OPTIONS.plugin, "--library",
                               OPTIONS.library, "--plans", plans, "--steps", str(STEPS), "--task",
                               "digits-mlp"])
    return code, output.getvalue()


def record(*more):
    return same_bits.record(OPTIONS.library, OPTIONS.plugin, "ring", STEPS, "digits-mlp", more)


class SameBits(unittest.TestCase):
    def test_a_plugin_beside_itself(self):
        code, output = compare("ring,grid")
        self.assertEqual(code, 0, output)
        self.assertEqual(re.findall("^(.*): the same bits after each of 4 steps", output, re.M),
                         ["ring", "grid"])

    def test_another_order_of_sums_is_seen(self):
        code, output = compare("ring/direct,ring")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"^ring/direct: step 1: gradient \d\.weight differs on worker 0, ")
        self.assertEqual(output.count("\n"), 1)  # it ends there

    def test_one_bit_of_one_worker_is_seen(self):
        whole = record()
        self.assertEqual(same_bits.first_difference(whole, record()), "")
        difference = same_bits.first_difference(whole, record("--fault", "bit"))
        self.assertRegex(difference, r"^step 3: gradient 5\.bias differs on worker 7; 2 of 12 tensors")

    def test_what_is_no_file_is_named(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as ended:
            compare("ring", "/nowhere/b.so")
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("/nowhere/b.so", errors.getvalue())

    def test_what_is_no_plugin_is_not_a_difference(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code, output = compare("ring", __file__)
        self.assertEqual((code, output), (2, ""))
        self.assertRegex(errors.getvalue(), r"same_bits_test.py: exit codes of the workers: \[1(, 1){7}\]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
