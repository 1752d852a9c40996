#!/usr/bin/env python3
"""bench/eyes: which racks make a difference, and what is said of networks that were measured."""
import argparse
import datetime
import json
import pathlib
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

from sources import ROOT

sys.path.insert(0, str(ROOT / "bench" / "eyes"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import networks  # noqa: E402
import summary  # noqa: E402


def fabric(rack_of, **uplinks):
    text = "".join(f'[[rack]]\nname = "{name}"\n' + (f"uplink_mbps = {mbps}\n" if mbps else "")
                   for name, mbps in uplinks.items())
    return tomllib.loads(text + "".join(f'[[node]]\nrate_mbps = 100\nrack = "{name}"\n' for name in rack_of))


def racks(rack_of, **uplinks):
    return {"".join(map(str, sorted(rack))) for rack in networks.racks_that_show(fabric(rack_of, **uplinks))}


def entry(**more):
    return {"network": "n", "nodes": 4, "failed": "", "racks_right": False, "over_file": 1.0, "over_best": 1.0,
            "x_live": 1.0, "probing_s": 1.0, "plan_changes": 0, "cpu_load": 0.2, "confidence": [], "anew": False} | more


def row(*times):
    return {"trials": [{"time_us": us} for us in times], "time_us": sorted(times)[len(times) // 2], "ratio": {"median": 0.5},
            "x_bound": 1.0, "cpu_load": 0.3}


OPTIONS = argparse.Namespace(size="8M", iters=5, warmup=20, plans=["ring"], riffle="/bin/false", steady=0.15)
FOUND = """# network probed in 1.50 s: 4 nodes of 100 Mbit/s (confidence 60 %); 2 racks: a, b behind an uplink of 50 Mbit/s (confidence 97 %); c, d behind ...
 (confidence 81 %)
""".replace("\n ", " ") + "".join(f'[[rack]]\nname = "{name}"\nuplink_mbps = 50\n' for name in "xy") + "".join(
    f'[[node]]\nrate_mbps = 100\nrack = "{name}"\n' for name in "xxyy")


class Eyes(unittest.TestCase):
    def test_racks_that_show(self):
        self.assertEqual(racks("aabbcc", a=100, b=100, c=50), {"01", "23", "45"})
        self.assertEqual(racks("aabbcc", a=100, b=200, c=50), {"01", "45"})  # b has room for all
        self.assertEqual(racks("aabbb", a=100, b=300), {"01", "234"})
        self.assertEqual(racks("aabbb", a=100, b=0), {"01", "234"})
        self.assertEqual(racks("aab", a=0, b=50), set())
        self.assertEqual(racks("aaa", a=50), set())

    def test_directions_are_apart(self):
        one_way = tomllib.loads('[[rack]]\nname = "a"\nup_mbps = 200\ndown_mbps = 90\n' + "".join(
            f'[[node]]\nout_mbps = 100\nin_mbps = 50\nrack = "{name}"\n' for name in "aabb"))
        self.assertEqual(len(networks.racks_that_show(one_way)), 2)

    def test_seeds(self):
        self.assertEqual(networks.of_seeds("1-3,7"), ["random:1", "random:2", "random:3", "random:7"])

    def test_an_entry_keeps_when_it_was_measured_and_of_what(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            plugin, file = folder / "plugin.so", folder / "rows.json"
            plugin.write_text("a shared object")
            options = argparse.Namespace(**vars(OPTIONS) | {"plugin": plugin})
            with mock.patch.object(check.machine, "commit", return_value="c+changes"), \
                    mock.patch.object(check.machine, "busy", return_value=0.7):
                fresh = check.look_at(options, "n", folder, {"node": [{}]})
            self.assertEqual((fresh["date"], fresh["commit"], fresh["busy_before"]),
                             (datetime.date.today().isoformat(), "c+changes", 0.7))
            older = fresh | {"failed": "", "date": "2026-01-02"}
            file.write_text(json.dumps([older, {k: v for k, v in older.items() if k != "busy_before"}
                                        | {"network": "undated"}]))
            self.assertEqual(check.known_in(file, options), {"n": older})

    def look(self, folder, *runs):
        """What is said of a network whose jobs take these times; the first of them changes its plan."""
        plugin = folder / "plugin.so"
        plugin.write_text("a shared object")
        runs = list(runs)

        def bench(_, __, of_run, iters):
            self.assertEqual(iters, 10 if of_run.name == "anew" else 5)
            of_run.mkdir()
            (of_run / "found.toml").write_text(FOUND)
            change = "" if of_run.name == "anew" else "(plan 1, from chunk 4 on)"
            (of_run / "17.log").write_text(f"1 2 3 plugin/collective/adapt trying {change}\n")
            return runs.pop(0)

        with mock.patch.object(check, "bench_once", bench), mock.patch.object(check.machine, "commit", return_value="c"), \
                mock.patch.object(check.machine, "busy", return_value=0):
            return check.look_at(argparse.Namespace(**vars(OPTIONS) | {"plugin": plugin}), "n", folder, tomllib.loads(FOUND))

    def test_times_that_differ_are_measured_anew_and_no_plan_change_is_lost(self):
        steady = {name: row(100, 100, 110) for name in ("live", "file", "ring")}
        with tempfile.TemporaryDirectory() as name:
            entry_of = self.look(pathlib.Path(name), steady)
        self.assertEqual((entry_of["over_file"], entry_of["anew"], entry_of["plan_changes"]), (2.0, False, 1))
        unsteady = steady | {"file": row(100, 100, 120)}
        with tempfile.TemporaryDirectory() as name:
            entry_of = self.look(pathlib.Path(name), unsteady,
                                 {"live": row(100, 200), "file": row(150, 50), "ring": row(300, 300)})
        self.assertEqual((entry_of["over_file"], entry_of["over_best"]), (1.5, 0.5))
        self.assertEqual((entry_of["anew"], entry_of["plan_changes"]), (True, 1))

    def test_confidence_beside_the_truth(self):
        with tempfile.TemporaryDirectory() as name:
            entry_of = self.look(pathlib.Path(name), {name: row(100) for name in ("live", "file", "ring")})
        self.assertEqual(entry_of["confidence"], [[97, True], [81, True]])
        lines = summary.lines([entry(confidence=[[97, True], [80, False], [79, False]])], 0)
        self.assertIn("racks reported with a confidence of 80 % and more: 1 of 2 right, 50.0 %", lines)

    def test_what_failed_holds_no_limit(self):
        lines = summary.lines([entry(racks_right=True), entry(over_file=1.03), entry(over_file=1.2, over_best=1.1),
                               {"network": "f", "nodes": 4, "failed": "ended"}], 1)
        self.assertEqual(lines[:8], [
            "4 network(s), 1 failed, 1 with a policer left out", "measured anew, as times differed: 0",
            "racks reported with a confidence of 80 % and more: none", "racks right: 25.0 %",
            "racks right or live/file at most 1.03: 50.0 %", "live/file at most 1.10: 50.0 %",
            "worst live/file: 1.200 (n)", "worst live/best of the forced plans: 1.100 (n)"])

    def test_where_processors_set_the_pace_is_told_apart(self):
        busy = entry(network="busy", over_file=1.4, over_best=1.3, cpu_load=0.9)
        self.assertEqual(summary.lines([busy, entry(over_file=1.05)], 0)[-1],
                         "processors of the machine at most 80 % busy: 1 network(s), "
                         "within 1.10 100.0 %, worst 1.050 (n), over best 1.000 (n)")
        self.assertIn("0 network(s), within 1.10 not measured,", summary.lines([busy], 0)[-1])


if __name__ == "__main__":
    unittest.main()
