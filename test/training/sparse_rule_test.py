"""The sparse simulation gives what the library promises, and trains as exact sums do at density 1."""

import argparse
import sys
import unittest

import numpy as np
import torch

import relaxed
import simulate
import sparse_rule
import tasks

WORKERS = 8
OPTIONS = None


class SparseRule(unittest.TestCase):
    def rule(self, density, residual="global", warmup=0, ramp=0, chunk=300, teams=1):
        return sparse_rule.Sparse("sparse", sparse_rule.load(OPTIONS.library), density, residual,
                                  warmup, ramp, chunk, teams)

    def test_the_largest_come_and_nothing_is_lost(self):
        random = torch.Generator().manual_seed(1)
        for teams in (1, 2):
            for residual in ("global", "partial"):
                rule, given, seen = self.rule(0.05, residual, teams=teams), 0, 0
                for _ in range(20):
                    g = torch.randn(2, WORKERS, 1000, generator=random) ** 3
                    result = rule.step(g)
                    given, seen = given + g.double().sum(1), seen + WORKERS * result.double()[:, 0]
                    share = float((result != 0).float().mean())
                    self.assertLess(share, 0.07)
                    self.assertGreater(share, 0.02)
                kept = [np.concatenate([chunk.residuals() for chunk in chunks], 1).sum(0)
                        for chunks in rule._chunks]
                np.testing.assert_allclose(seen.numpy() + np.stack(kept), given.numpy(), atol=2e-3)

    def test_local_loses_what_was_dropped(self):
        random = torch.Generator().manual_seed(1)
        rule, apart = self.rule(0.05, "local", chunk=1000), 0
        for _ in range(20):
            g = torch.randn(1, WORKERS, 1000, generator=random)
            apart = apart + g.double().sum(1) - WORKERS * rule.step(g).double()[:, 0]
        kept = rule._chunks[0][0].residuals().sum(0)
        self.assertGreater(np.abs(apart.numpy()[0] - kept).max(), 0.1)

    def test_warm_up_and_ramp(self):
        self.assertEqual([sparse_rule.density_at(t, 0.01, 6) for t in range(8)],
                         [0.25, 0.25, 0.0625, 0.0625, 0.015625, 0.015625, 0.01, 0.01])
        self.assertEqual(sparse_rule.density_at(0, 0.5, 10), 0.5)
        g, rule = torch.randn(1, WORKERS, 640), self.rule(0.01, warmup=1, ramp=6, chunk=640)
        torch.testing.assert_close(rule.step(g), g.mean(1, keepdim=True))
        counts = [int((rule.step(g) != 0).sum()) for _ in range(7)]
        self.assertEqual(counts[0], 160)
        self.assertLess(counts[6], 20)

    def test_bad_settings_are_named(self):
        g = torch.zeros(1, WORKERS, 10)
        for settings, name in (({"residual": "gone"}, "gone"), ({"teams": 3}, "teams")):
            with self.assertRaisesRegex(ValueError, name):
                self.rule(0.1, **settings).step(g)
        with self.assertRaisesRegex(RuntimeError, "density"):
            self.rule(2).step(g)
        with self.assertRaisesRegex(RuntimeError, "finite"):
            self.rule(0.1).step(g / 0)

    def test_density_1_trains_as_exact_sums(self):
        settings = simulate.parse(["--steps", "20", "--library", OPTIONS.library, "--output", "unused"])
        settings.trace_every, traces = 20, []
        for rule in (relaxed.Exact(), self.rule(1, chunk=10000), self.rule(0.01, chunk=10000)):
            traces.append({})
            simulate.train(tasks.TASKS["digits-mlp"], [(0, 0)], rule, settings, traces[-1])
        exact, dense, sparse = (trace[20] for trace in traces)
        self.assertEqual(exact.shape[1], 1)
        self.assertLess((dense - exact).abs().max(), 1e-5)
        self.assertGreater((sparse - exact).abs().max(), 1e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    OPTIONS, rest = parser.parse_known_args()
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
