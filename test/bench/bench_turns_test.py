"""`riffle bench` with several --plugin, end to end on two nodes: what its JSON holds, and what it does
not take. Where namespaces are not allowed it runs on loopback."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

RIFFLE, PLUGIN = sys.argv[1:3]


def bench(*arguments, profile="fast2"):
    return subprocess.run([RIFFLE, "bench", "--profile", profile, "--loopback", *arguments],
                          capture_output=True, text=True, timeout=240)


class InTurns(unittest.TestCase):
    def test_a_plugin_beside_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.json")
            done = bench("--plugin", f"one={PLUGIN}", "--plugin", f"other={PLUGIN}", "--rounds", "6",
                         "--sizes", "8,1M", "--iters", "3", "--json", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(file.read_text())
        self.assertEqual([(row["peer"], row["bytes"]) for row in rows],
                         [("one", 8), ("other", 8), ("one", 1 << 20), ("other", 1 << 20)])
        for row in rows:
            self.assertEqual(row["wrong"], 0)
            self.assertEqual([trial["round"] for trial in row["trials"]],
                             [round for round in range(6) for _ in range(3)])
            self.assertAlmostEqual(row["time_us"],
                                   statistics.median(trial["time_us"] for trial in row["trials"]))
        for first, second in (rows[:2], rows[2:]):
            self.assertIsNone(first["ratio"])
            pairs = [b["time_us"] / a["time_us"] for a, b in zip(first["trials"], second["trials"])]
            rounds = [statistics.median(pairs[at:at + 3]) for at in range(0, len(pairs), 3)]
            ratio = second["ratio"]
            self.assertEqual(ratio["to"], "one")
            self.assertAlmostEqual(ratio["median"], statistics.median(rounds))
            self.assertAlmostEqual(ratio["low_95"], min(rounds))
            self.assertIn(f"time of other / time of one, {second['bytes']} bytes: median of 6 rounds "
                          f"{ratio['median']:.4f}", done.stdout)

    def test_settings_of_one_of_them(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, log = pathlib.Path(folder, "rows.json"), pathlib.Path(folder, "0.log")
            done = bench("--plugin", f"one={PLUGIN}", "--plugin", f"other={PLUGIN}", "--rounds", "1",
                         "--sizes", "1M", "--iters", "2", "--json", str(rows), "--settings",
                         f"other:warmup=3,RIFFLE_PLAN=tree,RIFFLE_LOG_FILE={folder}/%r.log")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([len(row["trials"]) for row in json.loads(rows.read_text())], [2, 2])
            self.assertIn("tree", log.read_text())

    def test_what_is_not_taken(self):
        plugins = ["--plugin", f"a={PLUGIN}", "--plugin", f"b={PLUGIN}"]
        for arguments, said in (
                (["--plugin", PLUGIN, "--plugin", PLUGIN], "NAME=FILE"),
                (["--plugin", f"a={PLUGIN}", "--plugin", "b=/nowhere/b.so"], "/nowhere/b.so"),
                (["--plugin", f"a={PLUGIN}", "--plugin", f"b={__file__}"], "no plugin of NCCL"),
                ([*plugins, "--settings", "c:RIFFLE_PLAN=ring"], "c:RIFFLE_PLAN=ring"),
                ([*plugins, "--settings", "a:warmup=1001"], "0 to 1000"),
                ([*plugins, "--settings", "a:RIFFLE_PLAN"], "KEY=VALUE"),
                (["--settings", "riffle:warmup=1"], "several --plugin"),
                ([*plugins, "--peers", "gloo"], "--peers"),
                ([*plugins, "--sync", "ds_sync"], "--sync"),
                ([*plugins, "--sparse", "0.01", "--sizes", "1M"], "--sparse"),
                ([*plugins, "--record", "there"], "--record")):
            done = bench(*arguments)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn(said, done.stderr)
        done = bench(*plugins, profile="loss8")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("has a fault or a neighbour", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
