"""The report of made-up measurements: the result first, one unit, facts instead of log lines.

usage: page_test.py RIFFLE
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "test/training"))

import drawing  # noqa: E402
import page  # noqa: E402
from network import Network  # noqa: E402
from units import counted, mib  # noqa: E402

RIFFLE = pathlib.Path(sys.argv.pop(1)).resolve()
PROFILE = HERE.parent / "profiles/racks8.toml"


def library(peer, total):
    return {"peer": peer, "name": peer, "times_s": [total / 4, 3 * total / 4], "total_s": total,
            "wrong": 0, "cpu_load": 0.5}


def moment(index):
    flow = 3 <= index < 9
    return {"end_us": 1e6 * index, "time_us": 2.8e6 if flow else 1.3e6,
            "bound_us": 2.7e6 if flow else 1.2e6, "neighbour": flow, "wrong": 0,
            "changes": ["a log line of sixty words for 33554432 bytes"] if index in (5, 11) else []}


BUCKETS = {"bytes": [8196000, 31502336], "bounds_s": [1.0, 3.0],
           "libraries": [library("riffle", 4.2), library("nccl-ring", 28.56),
                         library("nccl-ring-ordered", 7.14)]}
TRAINING = {"course": [{"step": s, "loss": 2 / (s + 1), "accuracy": 0.9} for s in range(5)],
            "bytes": 340008, "collnet_calls": 1400, "accuracy": 0.978, "identical": True,
            "distance": 2e-7, "riffle": {"step_s": 0.03, "reduce_s": 0.02},
            "ring": {"step_s": 0.1, "reduce_s": 0.09}}
SERIES = [{"peer": peer, "series": [moment(i) for i in range(15)]}
          for peer in ("riffle", "riffle-fixed")]
CONTENTION = {"series": SERIES, "changes": [
    {"cause": "node 3 now sends 100 Mbit/s, was 400", "plan": "direct", "after": 6},
    {"cause": "node 3 now sends 400 Mbit/s, was 100", "plan": "direct", "after": 12}]}


def site(emulated=True):
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "plan.svg"
        subprocess.run([RIFFLE, "plan", "--profile", PROFILE, "--svg", picture], check=True,
                       stdout=subprocess.DEVNULL)
        return types.SimpleNamespace(riffle=RIFFLE, network=Network(PROFILE), nodes=8,
                                     emulated=emulated, obstacle="no namespaces",
                                     profile="racks8", plan_svg=picture.read_text())


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.html = page.html(site(), TRAINING, BUCKETS, CONTENTION)

    def test_the_result_comes_first(self):
        body = self.html.split("<body>")[1].lstrip()
        headline = re.match(r"<h1>(.*?)</h1>", body)[1]
        for truth in ("1.05 × the physical bound", "6.8 × as fast as NCCL’s ring as ranks lie",
                      "1.7 × with ranks in perfect order"):
            self.assertIn(truth, headline)
        self.assertLess(body.index("tiles"), body.index("<svg"))

    def test_facts_instead_of_log_lines(self):
        self.assertNotIn("log line", self.html)
        self.assertIn("<td>6</td><td>node 3 now sends 100 Mbit/s, was 400</td>", self.html)

    def test_one_unit_for_sizes(self):
        text = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", self.html, flags=re.DOTALL)
        self.assertNotRegex(text, r"\d\s*(MB|kB|KiB|bytes)\b(?!\))")
        self.assertIn("37.9 MiB per worker", text)
        self.assertEqual([mib(8196000), mib(31502336), mib(340008)],
                         ["7.82 MiB", "30 MiB", "0.324 MiB"])
        self.assertEqual([counted(1, "step"), counted(0, "step")], ["1 step", "0 steps"])

    def test_all_drawings_are_the_command_s(self):
        self.assertEqual(self.html.count("<svg"), 4)
        self.assertEqual(self.html.count("prefers-color-scheme:dark"), 5)

    def test_without_an_emulated_network(self):
        loopback = page.html(site(False), TRAINING, dict(BUCKETS, bounds_s=None), None)
        self.assertIn("no namespaces", loopback)
        self.assertEqual(loopback.count("<svg"), 2)

    def test_a_refused_chart_is_a_failure_with_its_reason(self):
        with self.assertRaisesRegex(drawing.Failed, "title"):
            drawing.ask(RIFFLE, "bars", {})


if __name__ == "__main__":
    unittest.main()
