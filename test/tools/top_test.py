"""`riffle top`: one page as text, and a page on a terminal that follows the record.

usage: top_test.py RIFFLE
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import made_record
from terminal import Terminal

RIFFLE = sys.argv[1]
BEGIN, END = "\x1b[?1049h", "\x1b[?1049l"


class Top(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.record = made_record.MadeRecord(pathlib.Path(self.folder, "record"))

    def once(self, *arguments):
        done = subprocess.run([RIFFLE, "top", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def page(self, *arguments):
        code, out, error = self.once(self.record.folder, "--once", *arguments)
        self.assertEqual((code, error), (0, ""))
        self.assertNotIn("\x1b", out)
        return out

    def test_one_page(self):
        self.record.run(5)
        self.record.plan(0, cause="node 1 (node1) now sends 100 Mbit/s, was 400", name="grid", trigger="rates",
                         reason="grid is the fastest known", from_chunk=7)
        for _ in range(10):
            self.record.step()
        page = self.page()
        lines = page.splitlines()
        self.assertIn("sending of node node1 limits: 100 Mbit/s", lines[0])
        self.assertIn("job 4711, 3 nodes, communicator 00000000000000aa; 10 all-reduce calls, 80 MiB, 90 % of 10 s", lines[1])
        self.assertRegex(lines[1], r"; 1\.\d\d x the bound, 1\.72 x what the plan was predicted to take")
        self.assertRegex(page, r"plan grid since \d+ s, because node 1 \(node1\) now sends 100 Mbit/s, was 400\n"
                               r"  grid is the fastest known\n")
        node1 = next(line for line in lines if line.startswith("node1"))
        # Two links of 5 MB in 0.9 s.
        self.assertRegex(node1, r"node1 +89 Mbit/s +100 Mbit/s +93 % +89 Mbit/s +100 Mbit/s +93 % +80 %")
        node0 = next(line for line in lines if line.startswith("node0"))
        self.assertRegex(node0, r"89 Mbit/s +400 Mbit/s +23 %")

    def test_losses_silence_and_fallback(self):
        self.record.run(3)
        self.record.begin_t -= 60
        self.record.line(0, "loss", lost=[{"rank": 2, "why": "reset\x1b[2J by peer"}], left=2, recovery_ms=5)
        self.record.begin_t += 60
        self.record.seconds = 17
        self.record.step(ranks=(0,))
        self.record.write(1, {"type": "failed", "t": time.time(), "comm": "bb", "rank": 1,
                              "why": "all-reduces stay with NCCL: RIFFLE_COLLNET=off"})
        page = self.page()
        self.assertRegex(page, r"lost: node2 \(reset\?\[2J by peer\) \d+ s ago; 2 of 3 nodes went on")
        self.assertRegex(page, r"\nnode2 .*lost: reset\?\[2J by peer\n")
        self.assertRegex(page, r"\nnode1 .*silent for 1\d s\n")
        self.assertIn("communicator bb: all-reduces stay with NCCL: RIFFLE_COLLNET=off (1 node)\n", page)

    def test_damage(self):
        self.record.run(5)
        with self.record.file(0).open("a", encoding="utf-8") as out:
            out.write('no record\n{"type":"sample","comm":"00')
        self.assertIn("4 all-reduce calls", self.page())

    def test_nothing_yet(self):
        empty = tempfile.mkdtemp(dir=self.folder)
        code, out, _ = self.once(empty, "--once")
        self.assertEqual(code, 0)
        self.assertIn("no record of Riffle yet", out)
        self.assertEqual(self.page(), "no communicator has connected yet\n")

    def test_usage(self):
        code, _, error = self.once(self.folder + "/none", "--once")
        self.assertEqual(code, 2)
        self.assertIn(self.folder + "/none: there is no such file or folder", error)
        for arguments in (("--every", "0"), ("--window", "0.5")):
            code, _, error = self.once(self.folder, *arguments)
            self.assertEqual(code, 2)
            self.assertIn(arguments[0], error)
            self.assertIn("3600", error)

    def test_a_terminal_follows_the_record(self):
        self.record.run(2)
        terminal = Terminal(RIFFLE, "top", str(self.record.folder), "--every", "0.1", env={"NO_COLOR": "1"})
        self.assertIn(BEGIN, terminal.read_until("1 all-reduce call, 8 MiB"))
        self.record.step()
        terminal.read_until("2 all-reduce calls, 16 MiB")
        # A record may be rotated, come anew, and go.
        self.record.file(1).rename(str(self.record.file(1)) + ".1")
        self.record.step()
        terminal.read_until("3 all-reduce calls, 24 MiB")
        shutil.rmtree(self.record.folder)
        terminal.read_until("there is no such file or folder")
        made_record.MadeRecord(self.record.folder, slurm_job_id="4712")
        terminal.write("q")
        terminal.read_until(END)
        self.assertEqual(terminal.end(), 0)

    def test_a_page_fits_the_terminal(self):
        self.record.run(2)
        terminal = Terminal(RIFFLE, "top", str(self.record.folder), "--every", "0.1", rows=4)
        page = terminal.read_until("\x1b[J")
        page = terminal.read_until("\x1b[J")
        self.assertEqual(page.count("\n"), 3)
        terminal.resize(40)
        terminal.read_until("node2")
        os.kill(terminal.pid, signal.SIGINT)
        terminal.read_until(END)
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
