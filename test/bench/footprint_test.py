"""riffle_footprint on four processes: what a full mesh of links is, and that nothing is left of communicators
that were destroyed."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOOTPRINT, PLUGIN = sys.argv[1:3]
NODES, COMMUNICATORS, ROUNDS = 4, 6, 5


def footprint(*arguments):
    return subprocess.run([FOOTPRINT, "--plugin", PLUGIN, *arguments], capture_output=True, text=True, timeout=120)


class Footprint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.json")
            done = footprint("--nodes", str(NODES), "--comms", str(COMMUNICATORS), "--rounds", str(ROUNDS),
                             "--idle-s", "0", "--json", str(file))
            assert done.returncode == 0, done.stderr
            cls.rows = json.loads(file.read_text())

    def stage(self, name):
        return [row for row in self.rows if row["stage"] == name]

    def test_every_stage_of_every_round_is_a_row(self):
        self.assertEqual([(row["round"], row["stage"]) for row in self.rows],
                         [(n, stage) for n in range(1, ROUNDS + 1) for stage in ("connected", "used", "destroyed")])

    def test_communicators_share_one_link_to_every_other_node(self):
        for row in self.stage("used"):
            self.assertEqual(row["connections"], NODES - 1)
            self.assertGreaterEqual(row["threads"], 1)
            self.assertGreater(row["private_kib"], 0)

    def test_nothing_is_left(self):
        destroyed = self.stage("destroyed")
        for row in destroyed:
            self.assertEqual((row["connections"], row["threads"]), (0, 0))
        early, late = destroyed[1], destroyed[-1]
        self.assertEqual(late["descriptors"], early["descriptors"])
        self.assertLessEqual(late["heap_kib"], early["heap_kib"] + 16)

    def test_what_is_not_taken(self):
        for arguments, said in ((("--nodes", "1"), "not in range"),
                                (("--nodes", "6", "--racks", "4"), "do not fill so many racks")):
            done = footprint(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
