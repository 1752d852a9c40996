"""Follows a relaxed training through the plugin step by step, knowing nothing of its groups: from the
weights of every step it finds what each worker's optimizer was given and who was averaged with whom,
and trains along by the formulas of relaxed.py with those groups and gradients of its own.

Prints what it found; differences to the plugin's weights are checked in ddp_follow_test.py."""

import numpy as np
import torch

import relaxed
import simulate
import tasks

BLOCK = 2048  # elements of a bucket that share their groups; calls begin at multiples


class Followed:
    """start: steps before the mode began, all exact. groups: per step from there the partitions that
    were found, as sets of frozensets, one per distinct kind of block. apart: per step the largest
    difference of any weight. deviations: per step (plugin's, ours)."""

    def __init__(self):
        self.start, self.groups, self.apart, self.deviations = None, [], [], []
        self.relaxed_elements = 0


def bucket_order(model):
    """Indices that bring the parameters into the order of DDP's buckets, last first."""
    sizes = [p.numel() for p in model.parameters()]
    starts = np.cumsum([0, *sizes])
    return np.concatenate([np.arange(starts[i], starts[i] + sizes[i])
                           for i in reversed(range(len(sizes)))])


def partition(y, tolerance):
    """Groups of workers whose values (workers x elements) agree; None if that is no equivalence."""
    close = ((y[:, None] - y[None]).abs().amax(-1) < tolerance).int()
    if not torch.equal(close > 0, close @ close > 0):  # not transitive
        return None
    return frozenset(frozenset(row.nonzero().flatten().tolist()) for row in close)


def matrix_of(groups, workers):
    matrix = torch.zeros(workers, workers, dtype=torch.float64)
    for group in groups:
        for i in group:
            matrix[i, sorted(group)] = 1 / len(group)
    return matrix


def follow(outcome, task, seed, fold, steps, tolerance=2e-3):
    """`outcome` of ddp_run.run() with --trace-every 1 under SGD with momentum. Groups differ by some
    hundredths; a unit that rounding switches on here and not there makes members differ by some
    ten-thousandths."""
    found, workers = Followed(), len(outcome.weights)
    data, stack = task.load(seed, fold), simulate.Stack(task, [(seed, fold)])
    order = bucket_order(task.model(seed))
    blocks = [order[i:i + BLOCK] for i in range(0, len(order), BLOCK)]
    x = stack.x.detach().double()[0]
    plugin_x, plugin_v = x.clone(), torch.zeros_like(x)
    velocity, y = torch.zeros_like(x), torch.zeros_like(x)
    was_relaxed = np.zeros(len(blocks), bool)
    for step, rows in enumerate(data.batches(seed, steps, workers, task.batch), start=1):
        with torch.no_grad():
            stack.x.copy_(x[None])
        _, g = stack.gradients(data.inputs[rows][None], data.targets[rows][None])
        z = y + g[0].double()
        now = torch.from_numpy(outcome.trace[step]).double()
        v = (plugin_x - now) / task.rate
        given = v - tasks.MOMENTUM * plugin_v  # what the optimizers were given
        plugin_x, plugin_v = now, v
        if found.start is None and float(relaxed.deviation(now[None])[0]) > 0:
            found.start = step - 1
        mean, seen = z.mean(0, keepdim=True).expand_as(z).clone(), set()
        if found.start is not None:
            for index, block in enumerate(blocks):
                groups = partition((y + given)[:, block], tolerance)
                if groups is None or len(groups) > workers // 2:
                    apart = (y + given)[:, block]
                    apart = (apart[:, None] - apart[None]).abs().amax(-1)
                    raise AssertionError(f"step {step}, block {index}: no groups to be seen in the "
                                         f"differences\n{apart}")
                if len(groups) > 1:
                    seen.add(groups)
                    was_relaxed[index] = True
                    mean[:, block] = matrix_of(groups, workers) @ z[:, block]
            found.groups.append(seen)
        velocity = tasks.MOMENTUM * velocity + mean - y
        y = mean
        x = x - task.rate * velocity
        found.apart.append(float((x - now).abs().max()))
        found.deviations.append((float(relaxed.deviation(now[None])[0]),
                                 float(relaxed.deviation(x[None])[0])))
    found.relaxed_elements = sum(len(b) for b, r in zip(blocks, was_relaxed) if r)
    return found
