"""simulate.py trains as PyTorch's own modules do, and report.py's statistics are the textbook's."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import torch

import relaxed
import report
import simulate
import tasks
import time_to_accuracy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "measure"))
import table  # noqa: E402


def printed(show, *arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        show(*arguments)
    return table.Output(0, 0, text.getvalue(), [])


def figures(area, run, out):
    """Of the performance suite's run."""
    wanted = next(one for one in table.load(area).runs if one.name == run)
    return [figure.value(out) for figure in wanted.figures]


def training(mode, seed, *scores):
    """A record of time_to_accuracy.py, scored once a second."""
    curve = [{"step": i, "seconds": float(i), "score": score, "worst": score} for i, score in enumerate(scores, 1)]
    return {"profile": "p", "mode": mode, "seed": seed, "settings": {"workers": 8}, "gradient_bytes": 1 << 20,
            "compute_s": 0.1, "step_s": 1.0, "curve": curve}


def options(*arguments):
    return simulate.parse([*arguments, "--output", "unused"])


class Simulate(unittest.TestCase):
    def test_exact_as_one_module(self):
        for name, steps, workers in (("digits-mlp", 30, 8), ("digits-cnn", 30, 8), ("text", 5, 8), ("digits-mlp", 30, 3)):
            task, trace = tasks.TASKS[name], {}
            settings = options("--task", name, "--steps", str(steps), "--workers", str(workers))
            settings.trace_every = steps
            _, ended = simulate.train(task, [(3, 0)], relaxed.Exact(), settings, trace)
            alone = tasks.train_alone(task, 3, 0, steps, settings.workers)
            want = torch.cat([p.detach().flatten() for p in alone.parameters()])
            self.assertLess((trace[steps][0] - want).abs().max(), 1e-5)
            data = task.load(3, 0)
            self.assertAlmostEqual(ended[0]["scores"][0], tasks.score_of(task, alone, data), places=2)

    def test_batch_norm_is_scored_by_what_the_weights_make_of_the_data(self):
        task = tasks.TASKS["digits-resnet"]
        data, model = task.load(3, 0), tasks.train_alone(task, 3, 0, 60, simulate.WORKERS)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        score = tasks.score_of(task, model, data)
        self.assertGreater(score, 0.8)  # 0.1 by chance
        self.assertTrue(model.training)
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in model.state_dict().items()))
        for norm in tasks.batch_norms(model):  # a worker's own statistics do not count
            norm.running_mean += 10
        self.assertEqual(tasks.score_of(task, model, data), score)
        with self.assertRaises(SystemExit):
            simulate.Stack(task, [(3, 0)])

    def test_the_large_transformer_is_large(self):
        task = tasks.TASKS["text-large"]
        self.assertGreater(sum(p.numel() for p in task.model(0).parameters()), 10_000_000)
        self.assertLessEqual(len(task.load(0, 0).held_out), 64)

    def test_workers_part_where_they_should(self):
        for mode, apart in (("exact", False), ("local", True), ("ds_sync", True),
                            ("shadow_sync", True)):
            settings = options("--steps", "27", "--warmup", "5", "--full-every", "0")
            settings.trace_every, trace = 1, {}
            simulate.train(tasks.TASKS["digits-mlp"], [(0, 0)], simulate.rule(mode, settings),
                           settings, trace)
            # Local and stateless rules know no warm-up.
            warm = relaxed.deviation(trace[5])[0] if mode != "local" else 0
            self.assertEqual(float(warm), 0, mode)
            self.assertEqual(float(relaxed.deviation(trace[27])[0]) > 1e-12, apart, mode)

    def test_fewer_workers_take_more_steps_for_the_same_data(self):
        self.assertEqual(options("--task", "digits-mlp").steps, 450)
        self.assertEqual(options("--task", "digits-mlp", "--workers", "2").steps, 1800)
        for mode in ("ds_sync", "shadow_sync-gap1-grid2x2x2"):
            with self.assertRaisesRegex(SystemExit, "of 8 workers"):
                simulate.rule(mode, options("--workers", "4"))
        simulate.rule("shadow_sync-gap1", options("--workers", "4"))

    def test_seeds_are_added_to_a_file_of_the_same_settings(self):
        record = {"source": "simulation", "mode": "x", "curve": [{"step": 1, "loss": 1.0}],
                  "runs": [{"seed": 0, "fold": 0}]}
        more = dict(record, curve=[{"step": 1, "loss": 4.0}],
                    runs=[{"seed": 1, "fold": 0}, {"seed": 2, "fold": 0}])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "record.json")
            file.write_text(simulate.text_of(record))
            both = simulate.added(more, file)
            self.assertEqual([run["seed"] for run in both["runs"]], [0, 1, 2])
            self.assertEqual(both["curve"], [{"step": 1, "loss": 3.0}])
            self.assertEqual(json.loads(simulate.text_of(both)), both)
            with self.assertRaises(SystemExit):
                simulate.added(record, file)
            with self.assertRaises(SystemExit):
                simulate.added(dict(more, mode="y"), file)
            with self.assertRaisesRegex(SystemExit, "--score-every"):
                simulate.added(dict(more, curve=[{"step": 2, "loss": 4.0}]), file)


class Statistics(unittest.TestCase):
    def test_upper_limit(self):
        # Student's t, 4 degrees of freedom, one-sided 95 %: 2.1318.
        values = np.array([1.0, 2, 3, 4, 5])
        self.assertAlmostEqual(report.upper_limit(values), 3 + 2.1318 * np.sqrt(2.5 / 5), places=4)
        self.assertTrue(np.isnan(report.upper_limit(np.array([1.0]))))

    def test_losses_are_paired_by_seed_and_weighed_by_fold(self):
        def record(score, runs):
            return {"score": score, "runs": [
                {"seed": s, "fold": f, "tested": n, "scores": scores, "score_of_mean": 0}
                for s, f, n, scores in runs]}
        exact = record("accuracy", [(0, 0, 1, [0.5]), (0, 1, 3, [0.9]), (1, 0, 1, [0.7])])
        mode = record("accuracy", [(0, 0, 1, [0.3, 0.5]), (0, 1, 3, [0.9, 0.9])])
        np.testing.assert_allclose(report.losses(mode, exact), [100 * 0.1 / 4])
        exact = record("validation loss", [(0, 0, 1, [2.0])])
        mode = record("validation loss", [(0, 0, 1, [2.1, 2.3])])
        np.testing.assert_allclose(report.losses(mode, exact), [10])
        self.assertEqual(report.by_seed(mode)[0][1], 2.3)

    def test_steps_to_near_exact(self):
        def record(score, values):
            return {"score": score, "curve": [{"step": 10 * i, "score": v}
                                              for i, v in enumerate(values)]}
        exact = record("accuracy", [0.1, 0.9])
        self.assertEqual(report.steps_to_near(record("accuracy", [0, 0.894, 0.896, 1]), exact), 20)
        self.assertEqual(report.steps_to_near(record("accuracy", [0, 0.89]), exact), "not reached")
        exact = record("validation loss", [3, 2])
        self.assertEqual(report.steps_to_near(record("validation loss", [3, 2.02, 2.005]), exact), 20)

    def test_a_target_counts_when_it_is_kept(self):
        record = {"curve": [{"step": i, "score": v} for i, v in enumerate([0.2, 0.9, 0.8, 0.9, 0.95])]}
        self.assertEqual(time_to_accuracy.reached(record, 0.9)["step"], 3)
        self.assertIsNone(time_to_accuracy.reached(record, 0.95))

    def test_no_seed_is_left_out_of_a_ratio_without_a_word(self):
        low, high = [0.1] * 8, [0.9] * 9
        exact = {seed: training("exact", seed, *scores)
                 for seed, scores in enumerate(([*low[:5], *high], low * 2, low, [*low[:1], *high]))}
        sparse = {seed: training("sparse-0.01", seed, *scores)
                  for seed, scores in enumerate(([*low[:2], *high], [*low[:3], *high], low, low))}
        self.assertEqual(time_to_accuracy.ratios(sparse, exact, 0.9), ([2.0, 4.0, 0.0], True, 1))
        out = printed(time_to_accuracy.table, [*exact.values(), *sparse.values()], 0.9)
        self.assertIn("| ≥ 2.00 (0.00) |  | 1 |", out.text)
        self.assertEqual(figures("sparse", "accuracy-slow8", out), [2.0])

    def test_interval_of_paired_ratios(self):
        for found in ([], [2.0], [2.0, 0.0], [2.0] * 11):
            self.assertIsNone(time_to_accuracy.interval(found))
        low, high = time_to_accuracy.interval([1.0, 2.0, 4.0])
        self.assertAlmostEqual(low * high, 4)  # the mean of the logarithms is that of 2
        self.assertAlmostEqual(high, 2 * 2 ** (4.303 / 3 ** 0.5), places=9)  # their deviation is log 2

    def test_a_mode_that_does_not_run_throughout_is_told(self):
        began, why = "info x: ds_sync from call 456 on: the same calls", "info x: ds_sync never began: the calls do not repeat"
        never = "never began, its sums were exact: "
        told = time_to_accuracy.not_throughout
        self.assertEqual(told("ds_sync", began), "")
        self.assertEqual(told("exact", ""), "")
        self.assertEqual(told("wire-bf16", "narrow from call 7 on"), "")
        self.assertEqual(told("moshpit", began), f"{never}no node said why")
        self.assertEqual(told("ds_sync", f"a\n{why}\nb"), never + why)
        for end in ("warn x: exact from call 999 on: the calls changed", "warn x: ds_sync ended: the calls changed",
                    "warn x: ds_sync ends here: call 7 has 3 elements"):
            self.assertEqual(told("ds_sync", f"{began}\n{end}\nb"), f"ended: {end}")
        change = "info x: node 3 now sends 100 Mbit/s; predicted 1.1 s instead of 1.5 s for 32 MiB (plan 1, from chunk 7 on)"
        self.assertEqual(time_to_accuracy.plan_changes(f"{began}\n{change}"), [change])
        record = dict(training("ds_sync", 3, 0.1, 0.9), not_throughout=never + why, plan_changes=[change])
        text = printed(time_to_accuracy.table, [record], 0.9).text
        self.assertIn("ds_sync of seed 3 never began", text)
        self.assertIn("ds_sync of seed 3: 1 changes of plan", text)

    def test_seconds_are_not_taken_for_a_ratio(self):
        out = printed(time_to_accuracy.table, [training("ds_sync", 0, 0.1, 0.9, 0.9)], 0.9)
        with self.assertRaises(ValueError):
            figures("relaxed", "accuracy-racks8", out)

    def test_the_suite_takes_points_lost_and_their_limit_from_their_columns(self):
        def record(mode, source, task, *scores):
            runs = [{"seed": seed, "scores": [score], "tested": 1, "score_of_mean": score}
                    for seed, score in enumerate(scores)]
            return {"mode": mode, "source": source, "task": task, "optimizer": "sgd", "workers": 8, "runs": runs,
                    "score": "accuracy", "settings": {"steps": 450}, "curve": [{"step": 450, "score": 1, "deviation": 0.7}]}
        for area, run, source, mode in (("sparse", "loss-sgd", "sparse simulation", "sparse-0.01"),
                                        ("relaxed", "loss-digits-shadow_sync", "simulation", "shadow_sync-gap1")):
            out = printed(report.table, [record("exact", source, "digits", 0.5, 0.6, 0.7),
                                         record(mode, source, "digits", 0.49, 0.58, 0.67)])
            # Points lost: 1, 2, 3; 2 + t(0.95, 2) / sqrt(3).
            self.assertEqual(figures(area, run, out), [2.0, 3.69])


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(verbosity=2)
