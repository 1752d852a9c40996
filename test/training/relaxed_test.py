"""The formulas of relaxed.py against direct simulation of what they stand for."""

import unittest

import torch

import relaxed

WORKERS = 8


def pull_of(x, step):
    """Gradients of a noisy quadratic, different for every worker, in float64."""
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(step), dtype=x.dtype)
    bend = torch.linspace(0.05, 1, x.shape[-1], dtype=x.dtype)
    return bend * (x - 0.3 * torch.arange(x.shape[1], dtype=x.dtype)[:, None]) + noise


def train(rule, steps, rate=0.05, momentum=0.0):
    x = torch.ones(1, WORKERS, 16, dtype=torch.float64)
    velocity = torch.zeros_like(x)
    for step in range(steps):
        velocity = momentum * velocity + rule.step(pull_of(x, step))
        x = x - rate * velocity
    return x


def average_parameters(pattern, steps, rate=0.05, momentum=0.0):
    """DS-Sync as published: own optimizer step, then the mean of the parameters in the group."""
    x = torch.ones(1, WORKERS, 16, dtype=torch.float64)
    velocity = torch.zeros_like(x)
    for step in range(steps):
        velocity = momentum * velocity + pull_of(x, step)
        x = pattern.average(x - rate * velocity, step)
    return x


def draw_towards_a_centre(gap, pull, rate, block_momentum, steps, eta=0.05):
    """ShadowEASGD and ShadowBMUF as published, on parameters, by plain SGD: rounds back to back."""
    x = torch.ones(1, WORKERS, 16, dtype=torch.float64)
    centre, velocity, snapshot = x[:, :1].clone(), 0, None
    for step in range(steps):
        x = x - eta * pull_of(x, step)
        if step % gap == gap - 1:
            if snapshot is not None:
                velocity = block_momentum * velocity + rate * (snapshot.mean(1, True) - centre)
                centre = centre + velocity
                x = (1 - pull) * x + pull * centre
            snapshot = x.clone()
    return x


def shadow_rounds(gap, takes, steps, pattern=relaxed.grid(WORKERS), eta=0.05):
    """CoCoD-SGD on parameters by plain SGD: the mean of the snapshots, `takes` steps later, and what
    the worker did itself since."""
    x = torch.ones(1, WORKERS, 16, dtype=torch.float64)
    snapshot, ends, rounds = None, None, 0
    for step in range(steps):
        x = x - eta * pull_of(x, step)
        if step == ends:
            x, rounds = pattern.average(snapshot, rounds) + (x - snapshot), rounds + 1
        if step % gap == gap - 1:
            snapshot, ends = x.clone(), step + takes
    return x


def spread(rule, steps=3000, elements=2000):
    """Deviation of the running sums of what workers are given under unit noise, over many steps."""
    torch.manual_seed(1)
    y, total, counted = torch.zeros(1, WORKERS, elements), 0.0, 0
    for step in range(steps):
        y = y + rule.step(torch.randn(1, WORKERS, elements))
        if step >= 100:
            total, counted = total + float(relaxed.deviation(y)), counted + 1
    return total / counted


class Rules(unittest.TestCase):
    def test_state_is_averaging_of_parameters(self):
        for pattern in (relaxed.grid(4, 2), relaxed.grid(2, 2, 2),
                        relaxed.rotating_cross_group(2, 4)):
            got = train(relaxed.GroupState("", pattern), 500)
            self.assertLess((got - average_parameters(pattern, 500)).abs().max(), 1e-11)
        plain = train(relaxed.Exact(), 500)
        self.assertGreater((got - plain).abs().max(), 1e-3)

    def test_momentum_hint_is_local_momentum_and_averaging_of_parameters(self):
        pattern = relaxed.grid(4, 2)
        got = train(relaxed.GroupStateMomentum("", pattern, 0.9), 500, momentum=0.9)
        want = average_parameters(pattern, 500, momentum=0.9)
        self.assertLess((got - want).abs().max(), 1e-11)
        without = train(relaxed.GroupState("", pattern), 500, momentum=0.9)
        self.assertGreater((without - want).abs().max(), 1e-3)

    def test_momentum_hint_after_exact_steps(self):
        """A jump in what the optimizer sees at the switch would show in the mean."""
        got = train(relaxed.GroupStateMomentum("", relaxed.grid(4, 2), 0.9, warmup=50), 300,
                    momentum=0.9)
        exact = train(relaxed.Exact(), 300, momentum=0.9)
        self.assertLess((got.mean(1) - exact.mean(1)).abs().max(), 1e-11)

    def test_shadow_rounds_are_averaging_of_parameters_later(self):
        for gap, takes in ((1, 1), (4, 4), (4, 1), (5, 3)):
            got = train(relaxed.ShadowAverage("", gap, 1.0, takes=takes), 200)
            self.assertLess((got - shadow_rounds(gap, takes, 200)).abs().max(), 1e-11)
        pairs = relaxed.grid(2, 2, 2)
        for gap, takes in ((1, 1), (3, 2)):
            got = train(relaxed.ShadowAverage("", gap, 1.0, takes=takes, pattern=pairs), 200)
            want = shadow_rounds(gap, takes, 200, pairs)
            self.assertLess((got - want).abs().max(), 1e-11)
        other = train(relaxed.ShadowAverage("", 4, 1.0, takes=2), 200)
        self.assertGreater((other - shadow_rounds(4, 1, 200)).abs().max(), 1e-3)
        for takes in (0, 5):
            with self.assertRaises(ValueError):
                relaxed.ShadowAverage("", 4, 1.0, takes=takes)

    def test_centres_are_those_of_the_parameters(self):
        for rate, momentum in ((0.9, 0), (1, 7 / 8)):
            got = train(relaxed.ShadowCentre("", 4, 0.5, rate, momentum), 200)
            want = draw_towards_a_centre(4, 0.5, rate, momentum, 200)
            self.assertLess((got - want).abs().max(), 1e-11)
        self.assertGreater((got - draw_towards_a_centre(4, 0.5, 0.9, 0, 200)).abs().max(), 1e-3)

    def test_mean_of_all_workers_is_kept(self):
        rules = [relaxed.GroupState("", relaxed.grid(4, 2), warmup=3, full_every=7),
                 relaxed.GroupStateMomentum("", relaxed.grid(2, 4), 0.9, warmup=3, full_every=7),
                 relaxed.ShadowAverage("", 4, 1.0, warmup=3, full_every=30),
                 relaxed.ShadowFir("", 4, warmup=3, full_every=30)]
        exact = train(relaxed.Exact(), 200, momentum=0.9)
        for rule in rules:
            got = train(rule, 200, momentum=0.9)
            self.assertLess((got.mean(1) - exact.mean(1)).abs().max(), 1e-11)
        interpolated = train(relaxed.ShadowAverage("", 4, 0.5, interpolate=True), 200, momentum=0.9)
        self.assertGreater((interpolated.mean(1) - exact.mean(1)).abs().max(), 1e-3)

    def test_deviation_as_predicted(self):
        pairs = 1 - 1 / WORKERS
        for rule, predicted in (
                # mean over the phases of 1/(members met) - 1/workers
                (relaxed.GroupState("", relaxed.grid(4, 2)), (1 / 4 + 1 / 2) / 2 - 1 / WORKERS),
                (relaxed.GroupState("", relaxed.grid(2, 2, 2)), 1 / 2 + 1 / 4 - 2 / WORKERS),
                # gap 4: 4 steps old just after a correction, 7 just before it
                (relaxed.ShadowFir("", 4), pairs * (4 + 5 + 6 + 7) / 4),
                (relaxed.ShadowAverage("", 4, 1.0), pairs * (4 + 5 + 6 + 7) / 4)):
            measured = spread(rule, steps=1500)
            self.assertLess(abs(measured / predicted - 1), 0.05, f"{measured} {predicted}")

    def test_full_steps_leave_all_alike(self):
        for rule in (relaxed.GroupState("", relaxed.grid(4, 2), full_every=10),
                     relaxed.ShadowAverage("", 4, 1.0, full_every=10),
                     relaxed.ShadowAverage("", 4, 1.0, takes=2, full_every=10),
                     relaxed.ShadowCentre("", 4, 0.5, 1.0, 7 / 8, full_every=10),
                     relaxed.ShadowFir("", 4, full_every=10)):
            x = train(rule, 10)
            self.assertLess(relaxed.deviation(x).max(), 1e-25)
            self.assertGreater(relaxed.deviation(train(rule, 5)).max(), 1e-6)

    def test_lanes_average_by_themselves(self):
        one, other = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
        pattern = relaxed.Pattern(4, [[one, other]], lane_elements=2)
        z = torch.arange(4.0)[None, :, None].expand(1, 4, 5)
        got = pattern.average(z, 0)[0]
        self.assertEqual(got[:, 0].tolist(), [0.5, 0.5, 2.5, 2.5])
        self.assertEqual(got[:, 2].tolist(), [1, 2, 1, 2])
        self.assertEqual(got[:, 4].tolist(), [0.5, 0.5, 2.5, 2.5])

    def test_a_pattern_that_never_mixes_is_seen(self):
        self.assertAlmostEqual(relaxed.rotating_cross_group(2, 2).contraction(), 1)
        self.assertLess(relaxed.rotating_cross_group(2, 4).contraction(), 0.7)
        self.assertLess(relaxed.grid(4, 2).contraction(), 1e-20)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(verbosity=2)
