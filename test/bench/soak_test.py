"""riffle_soak: no finding under the plugin; under each fault of faulty_plugin.cc one that names the node and says what.

usage: soak_test.py right|faults RIFFLE_SOAK PLUGIN     exit code 77: no namespaces here
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

KIND, SOAK, PLUGIN = sys.argv[1:4]
# Seeds of short jobs on four nodes whose network is not probed.
UNDISTURBED, CUT_OFF_AND_KILLED, STOPPED_FOR_LONG = 15, 28, 249
NO_NODES = r"sum \d+, element {} of \d+: .* is a sum of no nodes that may be meant"
FAULTS = {
    "sum": r"node 1: communicator \d, " + NO_NODES.format(r"\d+"),
    "error": r"node 1: communicator \d, sum \d+: the plugin's COLLNET test returned remote error",
    "hang": r"node 1: communicator \d, sum \d+: an all-reduce is not done after 4 s",
    "crash": r"node 1: ended by signal 11",
    "descriptor": r"node 1: its communicators are closed and left descriptor \d+ \(/dev/null\)",
    "left-out": r"node [023]: communicator \d, " + NO_NODES.format("0"),
    "deaf": r"node 1: communicator \d: its last sum has node 0 in it, which was lost",
}
IN_WHICH_NODES_WAIT = ("hang", "left-out")


def soak(seed, fault=""):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "rows.json")
        done = subprocess.run([SOAK, "--plugin", PLUGIN, "--seed", str(seed), "--jobs", "1", "--json", str(file),
                               "--sum-limit", "4" if fault in IN_WHICH_NODES_WAIT else "60"],
                              capture_output=True, text=True, timeout=100, env=os.environ | {"FAULTY_PLUGIN": fault})
        if "make network namespaces" in done.stderr:
            print(done.stderr, flush=True)
            os._exit(77)
        return done, json.loads(file.read_text())


class Right(unittest.TestCase):
    def test_there_is_nothing_to_find(self):
        for seed in (UNDISTURBED, CUT_OFF_AND_KILLED):
            done, rows = soak(seed)
            self.assertEqual(rows[0]["findings"], [], done.stdout + done.stderr)
            self.assertEqual(rows[0]["logs"], {})
            self.assertGreater(rows[0]["sums"], 50)
            self.assertIn(", 0 findings", done.stdout)
            self.assertEqual(done.returncode, 0)


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(len(FAULTS) + 1) as pool:
            cls.jobs = {fault: pool.submit(soak, cls.seed(fault), fault) for fault in (*FAULTS, "none")}

    @staticmethod
    def seed(fault):
        return STOPPED_FOR_LONG if fault == "deaf" else UNDISTURBED

    def test_each_is_found(self):
        for fault, said in FAULTS.items():
            with self.subTest(fault):
                done, rows = self.jobs[fault].result()
                self.assertEqual(done.returncode, 1)
                self.assertRegex("\n".join(rows[0]["findings"]), said)
                self.assertIn(f"job of seed {self.seed(fault)}: ", done.stdout)
                self.assertRegex(done.stdout, "\n  " + said)
                self.assertEqual(len(rows[0]["logs"]), 4)
                self.assertRegex(done.stdout, r"1 jobs, \d+ sums, [1-9]\d* findings")

    def test_it_is_the_fault_that_is_found(self):
        done, rows = self.jobs["none"].result()
        self.assertEqual((done.returncode, rows[0]["findings"]), (0, []), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=KIND.capitalize())
