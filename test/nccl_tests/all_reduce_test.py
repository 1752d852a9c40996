#!/usr/bin/env python3
"""run_all_reduce.sh with a program in all_reduce_perf's place that prints what the real one would.

usage: all_reduce_test.py RIFFLE"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

RIFFLE = sys.argv.pop(1)
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "nccl-tests-patches/run_all_reduce.sh"

# With Riffle half the time and its columns; without, the plugin's variables must be gone, and others not.
PROGRAM = """#!/bin/bash
[ "$*" = "-b 1M -e 2M ${EXTRA:--c 1}" ] || { echo "arguments: $*"; exit 9; }
[ -z "${BREAKS:-}" ] || { echo "it broke"; exit 3; }
echo "#       size         count      type"
if [ "${NCCL_NET_PLUGIN:-}" = riffle ]; then
  [ -d "$RIFFLE_RECORD" ] && [ "$NCCL_COLLNET_ENABLE" = 1 ] || exit 8
  echo "     1048576        262144     float     sum      -1   1000.0    1.05    1.57   ${WRONG:-0}   1100.0    0.95    1.43    N/A" \\
    "     800.0     1.25     1.38     12.5      3.0  racks x rails, ${RIFFLE_SPARSE:-exact}"
  echo "     2097152        524288     float     sum      -1   2000.0    1.05    1.57      0   2200.0    0.95    1.43      0" \\
    "    1600.0     1.25     1.38     12.5      3.0  racks x rails"
else
  [ "${NCCL_TUNER_PLUGIN:-}" = other ] && [ -z "${NCCL_NET_PLUGIN:-}${NCCL_COLLNET_ENABLE:-}${RIFFLE_SPARSE:-}" ] || exit 8
  echo "     1048576        262144     float     sum      -1   2000.0    0.52    0.79      0   2200.0    0.48    0.72      0${COLUMNS_TOO:+  -  -  -  1.0  1.0  -}"
  echo "     2097152        524288     float     sum      -1   4000.0    0.52    0.79      0   4400.0    0.48    0.72      0"
fi
echo "# Out of bounds values : 0 OK"
[ -z "${WRONG:-}" ] || exit 1
"""


class AllReduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "all_reduce_perf"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.out = self.folder / "out"

    def run_script(self, *options, arguments=("-b", "1M", "-e", "2M", "-c", "1"), **environment):
        environment = {**os.environ, "NCCL_TUNER_PLUGIN": "other", **environment}
        return subprocess.run([SCRIPT, "--program", self.program, "--riffle", RIFFLE, "--out", self.out, *options,
                               "--", *arguments], env=environment, capture_output=True, text=True, check=False)

    def rows(self):
        return json.loads((self.out / "rows.json").read_text())

    def test_both_side_by_side(self):
        # The caller's shell may have Riffle's variables already.
        done = self.run_script("--rounds", "2", "--set", "RIFFLE_SPARSE=0.01", "--launch", "env PASSED=1",
                               NCCL_NET_PLUGIN="riffle", NCCL_COLLNET_ENABLE="1", COLUMNS_TOO="1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        first, first_in, second, _ = self.rows()
        self.assertEqual([first["bytes"], first["place"], first_in["place"], second["bytes"]],
                         [1 << 20, "out", "in", 2 << 20])
        self.assertEqual([first["nccl_us"], first["riffle_us"], first["bound_us"], first["spread_us"]],
                         [2000, 1000, 800, 12.5])
        self.assertEqual([first_in["nccl_us"], first_in["riffle_us"], first_in["spread_us"]], [2200, 1100, 3])
        self.assertEqual(first["plan"], "racks x rails, 0.01")
        self.assertEqual(first["rounds_us"], {"nccl": [2000, 2000], "riffle": [1000, 1000]})
        line = next(line for line in done.stdout.splitlines() if line.split()[:3] == ["1048576", "float", "out"])
        self.assertEqual(line.split()[3:], "2000.0 1000.0 2.00 800.0 2.50 1.25 12.5 0 racks x rails, 0.01".split())
        self.assertTrue(done.stdout.startswith((self.out / "table.txt").read_text()))
        svg = (self.out / "all_reduce.svg").read_text()
        self.assertEqual(xml.etree.ElementTree.fromstring(svg).tag.split("}")[-1], "svg")
        for name in "NCCL alone", "with Riffle", "bound of exact sums":
            self.assertIn(name, svg)

    def test_wrong_elements_are_a_failure_with_a_table(self):
        done = self.run_script("--rounds", "1", WRONG="7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("7 wrong elements", done.stderr)
        self.assertEqual([row["wrong"] for row in self.rows()], [7, 0, 0, 0])

    def test_a_run_that_breaks_shows_its_end(self):
        done = self.run_script(BREAKS="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit status 3", done.stderr)
        self.assertIn("it broke", done.stderr)

    def test_wrong_usage(self):
        for options, arguments, said in ((("--rounds", "0"), (), "not a number above 0"),
                                         (("--set", "x"), (), "not NAME=VALUE"),
                                         (("--colour", "red"), (), "--colour is not known"),
                                         ((), ("-I", "1"), "adds columns"),
                                         (("--program", "/no/such"), (), "no all_reduce_perf")):
            done = self.run_script(*options, arguments=arguments)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=["all_reduce_test.py", "-v"])
