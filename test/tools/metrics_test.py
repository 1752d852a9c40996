"""`riffle metrics`: what it exposes, over HTTP and as a file, and that dashboard and alerts ask for that.

usage: metrics_test.py RIFFLE MONITORING_FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import made_record

RIFFLE, MONITORING = sys.argv[1], pathlib.Path(sys.argv[2])
SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    """Name, labels, value of every sample."""
    parsed = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        assert match, line
        parsed.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return parsed


def value(text, name, **labels):
    found = [v for n, have, v in samples(text) if n == name and labels.items() <= have.items()]
    assert len(found) == 1, f"{len(found)} samples of {name} with {labels}"
    return found[0]


class Metrics(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.record = made_record.MadeRecord(pathlib.Path(self.folder, "record"))

    def printed(self, *arguments, folder=None):
        done = subprocess.run([RIFFLE, "metrics", folder or self.record.folder, *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, said, *arguments, code=2):
        done = subprocess.run([RIFFLE, "metrics", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(said, done.stderr)

    def start(self, *arguments):
        process = subprocess.Popen([RIFFLE, "metrics", self.record.folder, *arguments], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_what_nodes_did(self):
        text = self.printed(folder=self.record.run(12).folder)
        node1 = {"slurm_job_id": "4711", "node": "node1", "comm_id": made_record.COMM, "comm_rank": "1", "n_nodes": "3"}
        self.assertEqual(value(text, "riffle_node_traffic_bytes_total", direction="out", **node1),
                         12 * 2 * made_record.LINK_BYTES)
        self.assertEqual(value(text, "riffle_node_rate_bytes_per_second", direction="in", **node1), 100e6 / 8)
        self.assertAlmostEqual(value(text, "riffle_node_collective_seconds_total", **node1), 12 * 0.9)
        # Both of its links wait; of node0's one does.
        self.assertAlmostEqual(value(text, "riffle_node_backlog_seconds_total", direction="out", **node1), 12 * 0.85)
        self.assertAlmostEqual(value(text, "riffle_node_backlog_seconds_total", direction="in", node="node0"),
                               12 * (0.85 + 0.1) / 2)
        self.assertEqual(value(text, "riffle_node_waited_for_total", **node1), 12 * 2 * 8)
        self.assertEqual(value(text, "riffle_node_retransmitted_segments_total", **node1), 12 * 2)
        size = str(made_record.CALL_BYTES)
        self.assertEqual(value(text, "riffle_node_calls_total", message_size_bytes=size, **node1), 12)
        self.assertEqual(value(text, "riffle_node_lost", **node1), 0)
        self.assertEqual(value(text, "riffle_communicator_lost_nodes"), 0)
        self.assertGreater(value(text, "riffle_communicator_bound_ratio"), 1)
        # 0.9 s per 8 MiB; 2 s per 32 MiB are predicted, as payload.
        self.assertAlmostEqual(value(text, "riffle_communicator_model_ratio"), 0.9 / (2 / 4 * 1514 / 1448), 3)
        self.assertEqual(value(text, "riffle_plan_info", plan="direct", cause="connect"), 1)

    def test_families_stand_together_and_are_described(self):
        text = self.printed(folder=self.record.run(3).folder)
        described, seen = {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE"):
                described[line.split()[2]] = line.split()[3]
        for name, _, _ in samples(text):
            if not seen or seen[-1] != name:
                seen.append(name)
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(set(seen), set(described))
        self.assertEqual(text.count("# HELP"), len(described))
        for name, kind in described.items():
            self.assertEqual(name.endswith("_total"), kind == "counter", name)

    def test_promtool_has_no_complaint(self):
        if shutil.which("promtool") is None:
            self.skipTest("there is no promtool (Debian package prometheus)")
        done = subprocess.run(["promtool", "check", "metrics"], input=self.printed(folder=self.record.run(3).folder),
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        for arguments in (["check", "rules", "riffle-alerts.yml"], ["test", "rules", "riffle-alerts_test.yml"]):
            done = subprocess.run(["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_dashboard_and_alerts_ask_for_what_there_is(self):
        self.record.run(3)
        self.record.write(0, {"type": "failed", "t": time.time(), "comm": "bb", "rank": 0,
                              "why": "all-reduces stay with NCCL: RIFFLE_COLLNET=off"})
        self.record.write(0, {"type": "failed", "t": time.time(), "comm": "cc", "rank": 0, "why": "no route"})
        there = {name for name, _, _ in samples(self.printed())}
        dashboard = json.loads((MONITORING / "riffle-dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(expressions), 15)
        wanted = set(re.findall(r"riffle_[a-z_]+", " ".join(expressions)))
        wanted |= set(re.findall(r"riffle_[a-z_]+", (MONITORING / "riffle-alerts.yml").read_text()))
        self.assertEqual(wanted - there, set())

    def test_losses_failures_and_changes(self):
        self.record.run(3)
        self.record.line(0, "loss", lost=[{"rank": 2, "why": 'reset by "peer"'}], left=2, recovery_ms=5)
        self.record.plan(0, cause="node 2 is lost", trigger="rates", from_chunk=9)
        self.record.line(1, "failed", why="over")
        for rank in range(3):
            self.record.write(rank, {"type": "failed", "t": time.time(), "comm": "bb", "rank": rank,
                                     "why": 'all-reduces stay with NCCL: a "reason" \\'})
        text = self.printed()
        self.assertEqual(value(text, "riffle_communicator_lost_nodes"), 1)
        self.assertEqual(value(text, "riffle_node_lost", node="node2"), 1)
        self.assertEqual(value(text, "riffle_node_lost", node="node1"), 0)
        self.assertEqual(value(text, "riffle_communicator_broken"), 1)
        self.assertEqual(value(text, "riffle_communicator_fallback", comm_id="bb", slurm_job_id="4711"), 1)
        self.assertIn(r'reason="a \"reason\" \\"', text)
        self.assertEqual(value(text, "riffle_plan_changes_total", trigger="rates"), 1)
        self.assertEqual(value(text, "riffle_plan_changes_total", trigger="trial"), 0)

    def test_a_node_without_record_is_seen_by_the_others(self):
        self.record.run(5)
        self.record.file(2).unlink()
        text = self.printed()
        self.assertEqual(value(text, "riffle_node_traffic_bytes_total", node="node2", direction="in"),
                         5 * 2 * made_record.LINK_BYTES)
        told = {labels["node"] for name, labels, _ in samples(text) if name == "riffle_node_collective_seconds_total"}
        self.assertEqual(told, {"node0", "node1"})

    def test_old_jobs_and_empty_folders(self):
        self.assertEqual(value(self.printed(folder=tempfile.mkdtemp(dir=self.folder)), "riffle_record_files"), 0)
        old = made_record.MadeRecord(pathlib.Path(self.folder, "old"), begin_t=time.time() - 7200).run(5)
        for rank in range(3):
            os.utime(old.file(rank), (time.time() - 7000,) * 2)
        self.assertEqual(value(self.printed(folder=old.folder), "riffle_record_files"), 0)
        text = self.printed("--forget", "8000", folder=old.folder)
        self.assertEqual(value(text, "riffle_record_files"), 3)
        # It no longer runs: what it did stays, how it does goes.
        self.assertEqual(value(text, "riffle_node_calls_total", node="node0"), 5)
        self.assertNotIn("bound_ratio", text)

    def test_outside_of_slurm(self):
        other = made_record.MadeRecord(pathlib.Path(self.folder, "other"), slurm_job_id="").run(2)
        self.assertEqual(value(self.printed(folder=other.folder), "riffle_node_lost", slurm_job_id="unknown", node="node0"), 0)

    def test_http(self):
        self.record.run(2)
        process = self.start("--listen", "127.0.0.1:0")
        url = process.stdout.readline().strip()
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/metrics$")
        address = ("127.0.0.1", int(url.split(":")[2].split("/")[0]))
        with socket.create_connection(address):  # asks for nothing, and holds nothing up
            with urllib.request.urlopen(url, timeout=30) as answer:
                self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
                text = answer.read().decode()
            self.assertEqual(value(text, "riffle_node_calls_total", node="node0"), 2)
        # What has been written since is there.
        self.record.step()
        with urllib.request.urlopen(url, timeout=30) as answer:
            self.assertEqual(value(answer.read().decode(), "riffle_node_calls_total", node="node0"), 3)
        for request, code in ((urllib.request.Request(url.replace("/metrics", "/")), 404),
                              (urllib.request.Request(url, method="DELETE"), 405)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=30)
            self.assertEqual(refused.exception.code, code)
            refused.exception.close()
        self.refused("cannot listen on", self.record.folder, "--listen", f"127.0.0.1:{address[1]}", code=1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)

    def test_the_file_is_whole_at_any_time_and_goes_with_its_writer(self):
        self.record.run(2)
        file = pathlib.Path(self.folder, "riffle.prom")
        process = self.start("--textfile", str(file), "--every", "1")
        deadline = time.monotonic() + 30
        texts = set()
        while len(texts) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
            if not file.exists():
                continue
            text = file.read_text()
            self.assertEqual(text.count("riffle_node_lost{"), 3)
            self.assertTrue(text.endswith("\n"))
            if not texts:
                self.record.step()
            texts.add(text)
        self.assertEqual(len(texts), 2)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)
        self.assertEqual([entry.name for entry in pathlib.Path(self.folder).iterdir() if entry.is_file()], [])
        self.printed("--textfile", str(file), "--once")
        self.assertEqual(value(file.read_text(), "riffle_node_calls_total", node="node0"), 3)

    def test_usage(self):
        self.refused("there is no such file or folder", "/no/such/folder")
        self.refused("record is required")
        for bad in ("9817", "localhost:9817", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:9x", "::1:9817"):
            self.refused("such as 127.0.0.1:9817", self.folder, "--listen", bad)
        self.refused("--textfile", self.folder, "--once")
        self.refused("--listen", self.folder, "--listen", "127.0.0.1:0", "--textfile", "x")
        self.refused("60", self.folder, "--forget", "1")
        self.refused("cannot write", self.folder, "--textfile", self.folder + "/none/x.prom", "--once", code=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
