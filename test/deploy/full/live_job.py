"""What is seen of jobs on an emulated cluster: `riffle top` in a terminal of tmux while a link slows and recovers,
and the trace of a job in Chrome's format.

usage: live_job.py RIFFLE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import chrome_format  # noqa: E402

RIFFLE = os.path.abspath(sys.argv[1])
NODES, SLOW = 4, 2
PROFILE = f"about = '4 equal nodes; a foreign flow takes 3/4 of one'\nnodes = {NODES}\nrate_mbps = 200\n"
NEIGHBOUR = f"[neighbour]\nnode = {SLOW}\nguaranteed_mbps = 150\n"
ONE_SLOW = f"[[exception]]\nnodes = [{SLOW}]\nrate_mbps = 50\n"


class LiveJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.record = self.folder / "record"
        self.record.mkdir()

    def bench(self, profile, *arguments, **env):
        (self.folder / "net.toml").write_text(PROFILE + profile)
        log = (self.folder / "bench.log").open("w")
        self.addCleanup(log.close)
        job = subprocess.Popen([RIFFLE, "bench", "--profile", self.folder / "net.toml", "--sizes", "8M", *arguments,
                                "--record", self.record], stdout=log, stderr=log, env=os.environ | env)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        return job

    def log(self):
        return (self.folder / "bench.log").read_text()

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.folder / "tmux", *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def shown(self, pattern, seconds):
        """The page, once it has what is looked for."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, page := self.tmux("capture-pane", "-p")):
            self.assertLess(time.monotonic(), deadline, f"not shown in {seconds} s: {pattern}\n{page}\n{self.log()}")
            time.sleep(0.5)
        return page

    def test_top_follows_a_link_that_slows(self):
        job = self.bench(NEIGHBOUR, "--phases", "20,40,40")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50",
                  f"env -u NO_COLOR '{RIFFLE}' top '{self.record}' --every 0.5 --window 5; sleep 600")
        self.addCleanup(subprocess.run, ["tmux", "-S", self.folder / "tmux", "kill-server"], check=False)
        self.shown(rf"{NODES} nodes, communicator \w+; \d+ all-reduce calls", 60)
        slow = self.shown(rf"\A\S*(sending of|receiving of) node node{SLOW} limits: ", 120)
        self.assertIn("plan ", slow)
        # The plan follows, and the page says why.
        print(self.shown(rf"plan .* because node {SLOW} ", 120))
        self.assertIsNone(job.poll(), self.log())
        self.tmux("send-keys", "q")
        self.shown(r"\A\s*\Z", 10)  # the terminal is as before

    def test_the_trace_of_a_job(self):
        job = self.bench(ONE_SLOW, "--iters", "10", RIFFLE_TRACE="1")
        self.assertEqual(job.wait(120), 0, self.log())
        done = subprocess.run([RIFFLE, "trace", self.record], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(done.stderr)
        picture = json.loads(done.stdout)
        rows = chrome_format.check(picture)
        self.assertEqual({pid for pid, _ in rows}, set(range(1, NODES + 1)))
        for pid in range(1, NODES + 1):
            self.assertGreaterEqual(len(rows[pid, "calls"]), 10, pid)
            self.assertTrue(rows[pid, "chunks"], pid)
            # The slow node may own nothing, and then has nothing to add up.
            self.assertTrue(rows.get((pid, "sums")) or pid == SLOW + 1, pid)
        # All wait for the slow node, in their own words.
        waited = [wait["dur"] for pid in range(1, NODES + 1) for wait in rows.get((pid, "waits"), [])
                  if wait["name"] == f"for node {SLOW} (node{SLOW})"]
        others = [wait["dur"] for pid in range(1, NODES + 1) for wait in rows.get((pid, "waits"), [])
                  if wait["name"] != f"for node {SLOW} (node{SLOW})"]
        self.assertGreater(sum(waited), sum(others))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
