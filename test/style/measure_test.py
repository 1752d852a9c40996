#!/usr/bin/env python3
"""scripts/measure on an area made up for it."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from sources import ROOT

sys.path.insert(0, str(ROOT / "bench" / "measure"))
sys.dont_write_bytecode = True

import page  # noqa: E402
import results  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402
from table import Area, Before, Figure, Run, at_least, at_most  # noqa: E402

ROWS = [{"peer": "riffle", "bytes": 8, "time_us": 2.0}, {"peer": "ring", "bytes": 8, "time_us": 5.0},
        {"peer": "riffle", "bytes": 16, "time_us": 4.0}, {"peer": "ring", "bytes": 16, "time_us": 6.0}]
WRITE = f"echo '{json.dumps(ROWS)}' > {{json}}; echo took 3.5 s"


def area(*runs):
    return Area(title="Made up", minutes=1, runs=list(runs), targets=(), name="made-up")


def measured(run, **options):
    """Row by row, what is kept of one measurement."""
    arguments = runner.parse([])
    for name, value in options.items():
        setattr(arguments, name, value)
    return results.content_of(area(run), {run.name: runner.measure(area(run), run, arguments)})["rows"]


class Measure(unittest.TestCase):
    def test_figures_of_rows_and_text(self):
        run = Run("r", WRITE, [
            Figure("worst ratio", table.times_as_fast("ring"), at_least(1.4)),
            Figure("too slow", table.printed(r"took ([0-9.]+) s"), at_most(3)),
            Figure("free", table.rows("time_us", max, peer="riffle"))])
        rows = measured(run)
        self.assertEqual([row["median"] for row in rows], [1.5, 3.5, 4.0])
        self.assertEqual([row["status"] for row in rows], ["holds", "below limit", "measured"])

    def test_a_single_repetition_has_the_spread_that_its_rows_tell(self):
        spread = table.Figure("times", table.rows("time_us", max), spread=lambda out: (out.rows[0]["time_us"], out.rows[1]["time_us"]))
        self.assertEqual(measured(Run("r", WRITE, [spread]))[0]["result"], "6.00 (2.00 to 5.00)")
        self.assertEqual(measured(Run("r", WRITE, [spread], repeat=2))[0]["result"], "6.00 (6.00 to 6.00)")
        self.assertEqual(measured(Run("r", "exit 1", [spread]))[0]["result"], "")
        shown = [Figure(column, table.cell("a", "x"), spread=table.cell_range(column, "x")) for column in ("b", "c")]
        text = "| n | a | b | c |\\n|---|---|---|---|\\n| x | 1.5 | 1.2 to 1.9 |  |"
        rows = measured(Run("r", f"printf '{text}'", shown))
        self.assertEqual([row["result"] for row in rows], ["1.50 (1.20 to 1.90)", "1.50"])

    def test_an_interval_of_a_median_is_that_of_order_statistics(self):
        self.assertEqual(table.interval_of_median(list(range(20, 0, -1))), (6, 15))  # 95.9 %
        self.assertEqual(table.interval_of_median([1, 2, 3, 4, 5, 6]), (1, 6))  # 96.9 %
        self.assertIsNone(table.interval_of_median([1, 2, 3, 4, 5]))

    def test_sparse_rivals_are_compared_call_by_call(self):
        area = table.load("sparse")
        run = next(run for run in area.runs if run.name == "schedules-uniform8")
        row = {"cpu_load": 0}
        out = table.Output(0, 1, "", [row | {"scheme": "spardl-reuse", "time_us": 10, "samples_us": [8, 10, 12] * 3},
                                      row | {"scheme": "spardl-reuse/2M", "time_us": 11, "samples_us": [1] * 9},
                                      row | {"scheme": "oktopk/8M", "time_us": 10, "samples_us": [10] * 9},
                                      *(row | {"scheme": name, "time_us": 30, "samples_us": [30] * 9} for name in (
                                          "oktopk/2M", "gtopk", "gtopk/2M", "topkdsa", "topkdsa/2M", "topka", "topka/2M"))])
        self.assertEqual(run.figures[0].value(out), 1.0)
        self.assertEqual(run.figures[0].spread(out), (0.8, 1.2))

    def test_what_areas_build_is_there(self):
        lists = [*ROOT.glob("**/CMakeLists.txt"), *ROOT.glob("test/*.cmake")]
        made = set(re.findall(r"(?:add_executable|add_library|gtest_program|strict_library)\(\s*([\w$.{}-]+)",
                              "\n".join(file.read_text() for file in lists if not file.parent.name.startswith("build"))))
        patterns = [re.compile(re.sub(r"\\\$\\\{\w+\\\}", ".+", re.escape(name)) + "$") for name in made
                    if not re.fullmatch(r"\$\{\w+\}", name)]
        for name in table.names():
            for target in set(table.load(name).targets) - {"all"}:
                self.assertTrue(any(p.match(target) for p in patterns), f"area {name} builds {target}, which no CMakeLists.txt makes")

    def test_long_runs_are_for_those_who_ask(self):
        short, long = Run("s", "true", []), Run("l", "true", [], is_long=True)
        self.assertEqual(runner.runs_of(area(short, long), set(), is_named=True), [short])
        self.assertEqual(runner.runs_of(area(short, long), {"l"}, is_named=True), [long])
        self.assertEqual(runner.runs_of(area(long), set(), is_named=True), [long])
        self.assertEqual(runner.runs_of(area(long), set(), is_named=False), [])

    def test_figures_of_cells_are_those_of_their_column(self):
        text = ("| mode | seeds | s | times |\n|---|---|---|---|\n| a | 1 | 16.4 (17.0) | |\n| b | 1 | 2 (3) | ≥ 1,007.3 (7.0) |\n\n"
                "| mode | points |\n|---|---|\n| a | -0.50 |\n| b | twice |\n| b-c | +9 |\n")
        out = table.Output(0, 0, text, [])
        self.assertEqual(table.cell("points", "a")(out), -0.5)
        self.assertEqual(table.cell("s", "a")(out), 16.4)
        self.assertEqual(table.cell("times", "b")(out), 1007.3)
        for column, row in (("times", "a"), ("points", "b"), ("mode", "a"), ("points", "c"), ("s", "z")):
            with self.assertRaises(ValueError):
                table.cell(column, row)(out)

    def test_times_of_relaxed_modes_have_a_full_step(self):
        rows = [{"peer": peer, "bytes": 32 << 20, "time_us": 1, "mean_us": mean}
                for peer, mean in (("riffle", 2), ("riffle-exact", 5))]
        moments = [{"neighbour": True, "time_us": 1 if i < 83 else 65, "bound_us": 1} for i in range(84)]
        series = [{"peer": "riffle", "series": moments},
                  {"peer": "riffle-exact", "series": [m | {"time_us": 6} for m in moments]}]
        seen = 0
        for run in table.load("relaxed").runs:
            if "--sync" not in run.command:
                continue
            is_series = "contention8" in run.command
            iters = int(re.search(r"--phases 10,(\d+)" if is_series else r"--iters (\d+)", run.command)[1])
            self.assertGreaterEqual(iters, 84 if is_series else 64, run.name)
            value = run.figures[0].value(table.Output(0, 0, "", series if is_series else rows))
            self.assertEqual(value, 3 if is_series else 2.5, run.name)
            seen += 1
        self.assertEqual(seen, 6)

    def test_pages_have_the_limits_of_the_test_that_follows_a_training(self):
        code = (ROOT / "test" / "training" / "ddp_follow_test.py").read_text()
        steps, limit = re.search(r"^STEPS, .* = (\d+), ", code, re.M)[1], re.search(r"^LIMIT = (\S+)", code, re.M)[1]
        self.assertIn(f"the test has {steps} steps and the limit {limit}:", (ROOT / "docs" / "training.md").read_text())
        follow = next(run for run in table.load("relaxed").runs if run.name == "follow")
        self.assertTrue(follow.figures[0].claim.endswith(f" to {limit}"), follow.figures[0].claim)

    def test_one_bad_repetition_is_below_the_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Run("r", f"echo x >> {folder}/n; wc -l < {folder}/n",
                      [Figure("count", table.printed(r"(\d+)"), at_most(2), digits=0)])
            row = measured(run, repeat=3)[0]
        self.assertEqual(row["values"], [1, 2, 3])
        self.assertEqual(row["result"], "2 (1 to 3)")
        self.assertEqual(row["status"], "below limit")

    def test_a_command_that_fails_has_no_figure(self):
        run = Run("r", "echo 1; exit 3", [Figure("count", table.printed(r"(\d+)"), at_most(2)),
                                          Figure("good", table.passes(), unit="passes")])
        self.assertEqual([row["status"] for row in measured(run)], ["failed", "failed"])

    def test_one_failed_repetition_is_a_failed_run(self):
        for broken in ("exit 3", "echo '[{\"wrong\": 1}]' > {json}", "echo '[{\"off_wire\": true}]' > {json}"):
            with self.subTest(broken), tempfile.TemporaryDirectory() as folder:
                command = f"echo x >> {folder}/n; echo 1; [ $(wc -l < {folder}/n) != 2 ] || {broken}"
                run = Run("r", command, [Figure("count", table.printed(r"^(\d+)"), at_most(2), digits=0)])
                row = measured(run, repeat=3)[0]
                self.assertEqual((row["values"], row["status"]), ([1, 1], "failed"))
                self.assertEqual(row["result"], "1 (1 to 1); 1 of 3 failed")

    def test_a_figure_that_an_older_run_was_not_asked_for_is_not_measured(self):
        old = Run("r", "true", [Figure("first", table.printed("(1)")), Figure("second", table.printed("(2)"))])
        kept = {"date": "2026-01-02", "commit": "c", "machine": {}, "repeats": [{"exit": 0, "figures": {"first": 1}}]}
        self.assertEqual([results.row_of(old, figure, kept)["status"] for figure in old.figures], ["measured", "not measured"])
        kept["repeats"][0]["exit"] = 1
        self.assertEqual(results.row_of(old, old.figures[1], kept)["status"], "failed")

    def test_what_was_not_run_is_not_measured_and_not_for_want_of_something(self):
        run = Run("r", "echo 1", [Figure("count", table.printed(r"(\d+)"))], needs=("no-such-program",))
        self.assertEqual(results.content_of(area(run), {})["rows"][0]["status"], "not measured")

    def test_what_needs_a_missing_program_is_not_measured_here(self):
        figure = Figure("count", table.printed(r"(\d+)"))
        run = Run("r", "echo 1", [figure], needs=("no-such-program",))
        kept = runner.measure(area(run), run, runner.parse([]))
        self.assertEqual(kept["missing"], ["no-such-program"])
        self.assertEqual(results.content_of(area(run), {"r": kept})["rows"][0]["status"], "not measured here")
        measured_elsewhere = dict(kept, repeats=[{"exit": 0, "figures": {"count": 1}}])
        self.assertFalse(runner.is_news(kept, measured_elsewhere, run))
        self.assertTrue(runner.is_news(kept, None, run))

    def kept(self, run, commit="c", **entry):
        whole = {"exit": 0, "seconds": 9, "figures": {figure.claim: 1.0 for figure in run.figures}} | entry
        machine = whole.pop("machine", {"cores": 2})
        return {"r": {"command": run.command, "commit": commit, "date": "d", "machine": machine, "repeats": [whole]}}

    def test_an_interval_around_the_limit_leaves_the_status_open(self):
        for low, high, shown in ((0.9, 1.9, "| holds |"), (0.9, 2.1, "| holds? |")):
            run = Run("r", "c", [Figure("f", table.seconds(), at_most(2), spread=lambda out, ends=(low, high): ends)])
            row = results.content_of(area(run), self.kept(run, rows=[{}]))["rows"][0]
            self.assertIn(shown, page.line(row, "c"))

    def test_a_row_says_what_makes_it_doubtful(self):
        run = Run("r", "c", [Figure("f", table.seconds(), at_most(2))])
        for words, more in (([], {}), ([], {"load_before": 1.5}), (["load 2"], {"load_before": 1.6}),
                            (["60 % busy"], {"load_before": 1.6, "busy_before": 0.6}),
                            ([], {"load_before": 44, "busy_before": 0.1}),
                            (["uncommitted"], {"commit": "c+changes"}),
                            (["on 4 of 16"], {"machine": {"cores": 4, "machine_cores": 16}}),
                            (["older"], {"rows": [{"seconds": 6}, {"seconds": 4}]}),
                            (["plan changed"], {"rows": [{"schema": "riffle-bench-1", "plan_changes": 1}]})):
            row = results.content_of(area(run), self.kept(run, **more))["rows"][0]
            self.assertEqual((row["status"], row.get("doubts", [])), ("holds", words), more)
        self.assertIn("| holds; plan changed |", page.line(row, "c"))

    def test_rows_of_an_earlier_run_keep_their_date_commit_and_load(self):
        run = Run("r", "c", [Figure("f", table.seconds(), at_most(2))])
        rows = [{"seconds": 6, "date": "2026-01-02", "commit": "a", "busy_before": 0.7},
                {"seconds": 4, "date": "2026-01-03", "commit": "b+changes", "busy_before": 0.0}]
        row = results.content_of(area(run), self.kept(run, rows=rows, busy_before=0.1))["rows"][0]
        self.assertEqual((row["date"], row["commit"]), ("2026-01-02", "a, b+changes"))
        self.assertEqual(row["doubts"], ["uncommitted", "older", "70 % busy"])

    def test_no_load_makes_what_is_not_timed_doubtful(self):
        for run in (Run("r", "c", [Figure("f", table.seconds())], is_timed=False),
                    Run("r", "c", [Figure("f", table.passes(), unit="passes")])):
            self.assertNotIn("doubts", results.content_of(area(run), self.kept(run, load_before=44))["rows"][0])

    def test_what_others_do_is_seen(self):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
        try:
            self.assertGreater(runner.machine.busy(0.5), 0.5)
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def test_a_figure_taken_over_says_where_from(self):
        run = Run("r", "echo 1", [Figure("count", table.printed(r"(\d+)"), before=Before("7", "2026-01-02"))])
        row = results.content_of(area(run), {})["rows"][0]
        self.assertEqual((row["result"], row["date"], row["status"], row["source"]),
                         ("7", "2026-01-02", "not repeated", Before.SOURCE))

    def test_nothing_is_kept_of_another_command(self):
        old, new = (Run("r", command, [Figure("count", table.printed(r"(\d+)"))])
                    for command in ("echo 1", "echo 2"))
        kept = {"r": runner.measure(area(old), old, runner.parse([]))}
        self.assertEqual(results.content_of(area(old), kept)["rows"][0]["status"], "measured")
        self.assertEqual(results.content_of(area(new), kept)["rows"][0]["status"], "not measured")

    def test_resume_leaves_out_what_is_measured(self):
        run = Run("r", "echo 1", [Figure("count", table.printed(r"(\d+)"))])
        options = runner.parse(["--resume"])
        kept = runner.measure(area(run), run, options)
        self.assertTrue(runner.is_done(run, kept, options))
        options.repeat = 2
        self.assertFalse(runner.is_done(run, kept, options))
        self.assertFalse(runner.is_done(run, dict(kept, commit="another"), runner.parse(["--resume"])))

    def test_what_was_measured_elsewhere_is_taken_in(self):
        run = Run("r", WRITE, [Figure("gain", table.rows("gain"))])
        document = {"schema": "s", "commit": "c", "date": "2026-01-02", "machine": {"cpu": "another"}, "gain": 3}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.json")
            file.write_text(json.dumps(document))
            kept = runner.taken_in(run, file)
            for lost in ("commit", "gain"):
                file.write_text(json.dumps({key: value for key, value in document.items() if key != lost}))
                with self.assertRaisesRegex(LookupError, "has no (commit|figure)"):
                    runner.taken_in(run, file)
        self.assertEqual((kept["commit"], kept["date"], kept["machine"]), ("c", "2026-01-02", {"cpu": "another"}))
        row = results.content_of(area(run), {"r": kept})["rows"][0]
        self.assertEqual((row["median"], row["commit"], row["status"]), (3, "c", "measured"))

    def test_what_is_prepared_does_not_count_as_time(self):
        run = Run("r", "cat {tmp}/made", [Figure("made", table.printed(r"(\d+)")), Figure("s", table.seconds())],
                  prepare="sleep 3; echo 7 > {tmp}/made")
        made, seconds = measured(run)
        self.assertEqual(made["median"], 7)
        self.assertLess(seconds["median"], 3)

    def test_settings_of_the_caller_do_not_count(self):
        os.environ["RIFFLE_STREAMS"] = "9"
        try:
            self.assertNotIn("RIFFLE_STREAMS", runner.environment())
        finally:
            del os.environ["RIFFLE_STREAMS"]

    def test_a_run_that_takes_too_long_is_ended(self):
        status, text, seconds = runner.shell("echo before; sleep 60", 1)
        self.assertEqual(status, 124)
        self.assertIn("before", text)
        self.assertLess(seconds, 30)

    def test_what_a_measurement_has_started_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            code = (f"import sys; sys.path.insert(0, {str(ROOT / 'bench' / 'measure')!r}); import runner, signal; "
                    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); "
                    f"runner.shell('echo $$ > {folder}/pid; exec sleep 60', 60)")
            process = subprocess.Popen([sys.executable, "-c", code])
            file = pathlib.Path(folder, "pid")
            while not file.exists() or not file.read_text().strip():
                time.sleep(0.01)
            time.sleep(0.5)  # shell() waits by now
            process.terminate()
            self.assertEqual(process.wait(30), 143)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(file.read_text()), 0)

    def test_the_page_has_a_line_for_each_figure_and_none_is_too_long(self):
        run = Run("r", "true " + "x" * 200, [Figure("a claim", table.passes(), unit="passes")])
        with tempfile.TemporaryDirectory() as folder:
            results.save(area(run), {}, pathlib.Path(folder))
            text = page.render(pathlib.Path(folder))
        self.assertIn("| a claim | `scripts/measure made-up:r` |", text)
        self.assertLessEqual(max(map(len, text.splitlines())), page.LONGEST_LINE)
        wide = {"area": "made-up", "rows": [dict(results.row_of(run, run.figures[0], None), claim="c" * 115)]}
        self.assertIn("| `made-up:r` |", page.table_lines(wide)[0])

    def test_results_are_short_and_say_the_same(self):
        content = {"samples": [1.5, 2, None], "none": [], "rows": [{"peer": "a [1,\n2]", "text": "{\n \"x\": 1\n}"}, {"n": [[1], [2, 3]]}]}
        text = results.in_short(json.dumps(content, indent=1))
        self.assertEqual(json.loads(text), content)
        self.assertIn('"samples": [1.5, 2, null]', text)

    def test_no_machine_is_named(self):
        described = json.dumps(runner.machine.describe())
        self.assertNotIn(os.uname().nodename, described)

    def test_memory_is_told_by_node_and_communicator(self):
        claim = "KiB per further node and communicator, "
        figures = [f for run in table.load("footprint").runs for f in run.figures if f.claim.startswith(claim)]
        for figure, communicators in zip(figures, (1, 64), strict=True):
            rows = [{"nodes": nodes, "communicators": communicators, "stage": "connected",
                     "private_kib": 1000 + 8 * communicators * (nodes - 1)} for nodes in (8, 16, 32)]
            self.assertAlmostEqual(figure.value(table.Output(0, 1, "", rows)), 8)

    def test_every_area_can_be_read(self):
        for name in table.names():
            loaded = table.load(name)
            self.assertTrue(all(run.command and run.figures for run in loaded.runs), name)
            self.assertEqual(len({run.name for run in loaded.runs}), len(loaded.runs), name)
            claims = [figure.claim for run in loaded.runs for figure in run.figures]
            self.assertEqual(len(set(claims)), len(claims), name)


if __name__ == "__main__":
    unittest.main()
