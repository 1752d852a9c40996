"""riffle_message_bench: a row for every number of peers, of messages that wait, and size, plain and sealed."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv[1]


def rows_of(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "rows.json")
        done = subprocess.run([BENCH, "--rounds", "1", "--peers", "1,3", "--ahead", "8,1", "--sizes", "64,20000", "--json",
                               str(file), *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(file.read_text())


class MessageBench(unittest.TestCase):
    def check(self, rows):
        self.assertEqual([(row["peers"], row["ahead"], row["bytes"]) for row in rows],
                         [(p, a, b) for p in (1, 3) for a in (8, 1) for b in (64, 20000)])
        for row in rows:
            self.assertGreater(row["message_ns"], 0)
            self.assertAlmostEqual(row["message_ns"], row["send_ns"] + row["receive_ns"], places=3)

    def test_both_loops(self):
        rows = rows_of()
        self.check(rows)
        for row in rows:
            self.assertAlmostEqual(row["ratio"], row["message_ns"] / row["bare_message_ns"], places=6)

    def test_the_mesh_alone_and_sealed(self):
        rows = rows_of("--only", "mesh", "--encrypt")
        self.check(rows)
        for row in rows:
            self.assertEqual((row["bare_message_ns"], row["is_encrypted"]), (0, True))

    def test_nothing_is_measured_of_an_unknown_loop(self):
        done = subprocess.run([BENCH, "--only", "mash"], capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
