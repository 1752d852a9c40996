"""`riffle trace` and `riffle sim --trace-json`: what they write holds to Chrome's trace-event format; bad input is refused.

usage: trace_test.py RIFFLE
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from chrome_format import check

RIFFLE = sys.argv.pop(1)


def riffle(*arguments):
    return subprocess.run([RIFFLE, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


class Writes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def line(self, name, /, **fields):
        with open(self.folder / f"{name}.trace", "a", encoding="utf-8") as out:
            out.write(json.dumps(fields) + "\n")

    def job(self, ahead_ns=(0, 5_000_000_000)):
        """Two nodes: an all-reduce of one chunk, half owned by each; clocks differ."""
        for rank, ahead in enumerate(ahead_ns):
            name, start = f"r{rank}.jsonl", 10_000_000_000 + ahead
            comm = {"comm": "00000000000000ab", "rank": rank}
            self.line(name, type="process", t=1.5, riffle="0", host=f"h{rank}", pid=rank)
            self.line(name, type="trace", t=1.5, **comm, size=2, every=1, room_spans=9, time_of_day_offset_ns=7,
                      hosts=["h0", "h1"])
            self.line(name, type="event", **comm, at_ns=start, kind="plan", name="direct", why="the only one")
            peer, own = 1 - rank, 500 * rank
            self.line(name, type="spans", **comm, at_ns=start, dropped=0, spans=[
                [2, 0, 0, 0, 0, 0, peer, 500 - own, 500, 1000, 2000],
                [4, 0, 0, 0, 0, 0, peer, own, 500, 51_000, 2000],
                [6, 0, 0, 0, 0, 0, peer, own, 500, 53_000, 500],
                [3, 0, 0, 0, 0, 0, peer, own, 500, 54_000, 2000],
                [5, 0, 0, 0, 0, 0, peer, 500 - own, 500, 104_000, 2000],
                [1, 0, 0, 0, 0, 0, -1, 0, 1000, 500, 105_600], [0, 0, 0, 0, 0, 0, -1, 0, 1000, 0, 107_000]])

    def refuses(self, said, *arguments):
        done = riffle("trace", *(arguments or (self.folder,)))
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(said, done.stderr)

    def test_a_job(self):
        self.job()
        done = riffle("trace", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = json.loads(done.stdout)
        rows = check(picture)
        self.assertEqual(sorted(name for pid, name in rows if pid == 1),
                         ["calls", "chunks", "from node 1 (h1)", "level 1", "sums", "to node 1 (h1)", "waits"])
        # Both did the same at the same time, as frames took 50 us each way.
        clocks = picture["otherData"]["clocks"]
        self.assertEqual(clocks, [{"ahead_us": 0, "uncertainty_us": 0}, {"ahead_us": 5e6, "uncertainty_us": 50}])
        for name in ("calls", "sums"):
            self.assertEqual(rows[1, name][0]["ts"], rows[2, name][0]["ts"])
        wait = rows[1, "waits"][0]
        self.assertEqual((wait["name"], wait["ts"], wait["dur"]), ("for node 1 (h1)", 0.5, 52.5))
        moments = [e for e in picture["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([(e["name"], e["args"]["why"]) for e in moments], [("plan: direct", "the only one")] * 2)
        self.assertIn("2 nodes, communicator 00000000000000ab; 1 all-reduce, 4 frames, clocks within 50 us", done.stderr)

    def test_to_a_file_with_arrows(self):
        self.job()
        out = self.folder / "out.json"
        done = riffle("trace", self.folder, "-o", out, "--arrows")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        events = json.loads(out.read_text())["traceEvents"]
        self.assertEqual(sorted(e["id"] for e in events if e["ph"] == "s"), [0, 1, 2, 3])
        self.assertEqual(sorted(e["id"] for e in events if e["ph"] == "f"), [0, 1, 2, 3])
        self.assertEqual(riffle("trace", self.folder, "-o", self.folder / "no" / "out").returncode, 1)

    def test_a_job_that_was_killed(self):
        self.job()
        with open(self.folder / "r1.jsonl.trace", "a", encoding="utf-8") as out:
            out.write('{"type":"spans","comm":"00000000000000ab","rank":1,"at')
        done = riffle("trace", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("r1.jsonl.trace: the last line is cut off", done.stderr)
        self.assertIn("r1.jsonl.trace: the last line is cut off", json.loads(done.stdout)["otherData"]["notes"][0])

    def test_bad_input(self):
        self.refuses("there is no such file or folder", self.folder / "none")
        self.refuses("no trace of Riffle; run the job with RIFFLE_TRACE=1")
        self.job()
        self.refuses("there is no communicator cd; there are: 00000000000000ab", self.folder, "--comm", "cd")
        self.line("r0.jsonl", type="spans", comm="00000000000000ab", rank=0, at_ns=0, dropped=0,
                  spans=[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1e300]])
        self.refuses("r0.jsonl.trace, line 5: its duration is 1e+300, accepted are 0 to")

    def test_mixed_jobs(self):
        self.job()
        self.line("other", type="process", t=1, riffle="0", host="h9", pid=9)
        self.line("other", type="trace", t=1, comm="00000000000000ff", rank=0, size=2, every=1, room_spans=9,
                  time_of_day_offset_ns=7, hosts=[])
        self.refuses("traces of several jobs are mixed")
        self.assertEqual(riffle("trace", self.folder, "--comm", "00000000000000ff").returncode, 0)

    def test_virtual_time(self):
        out = self.folder / "sim.json"
        done = riffle("sim", "--profile", "straggler8", "--bytes", "2M", "--trace-json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = json.loads(out.read_text())
        rows = check(picture)
        self.assertEqual({pid for pid, _ in rows}, set(range(1, 9)))
        simulated_us = float(next(line for line in done.stdout.splitlines() if line.startswith("simulated")).split()[1])
        last_us = max(e["ts"] + e["dur"] for events in rows.values() for e in events)
        self.assertAlmostEqual(last_us, simulated_us, delta=1)
        for wrong in (("--seed", "1"), ("--profile", "straggler8", "--probe")):
            done = riffle("sim", *wrong, "--trace-json", out)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--trace-json needs --fabric or --profile", done.stderr)


unittest.main()
