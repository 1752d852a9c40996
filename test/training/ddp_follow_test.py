"""The relaxed modes through the plugin under PyTorch's DistributedDataParallel, followed step by step by
the formulas (ddp_follow.py): the same weights on every worker after every step, groups that mix all
workers, everybody alike in full steps as the state goes. Without being told that the optimizer is SGD
the plugin stays exact."""

import argparse
import sys
import unittest

import numpy as np
import torch

import ddp_follow
import ddp_run
import tasks

STEPS, FULL_EVERY = 120, 16
LIMIT = 1e-4  # of any weight against the formulas, after any step
OPTIONS = None


def train(mode, steps, environment):
    arguments = ["--task", "digits-mlp", "--steps", steps, "--algorithm", "collnet",
                 "--bucket-bytes", 1 << 20, "--trace-every", 1]
    return ddp_run.run(OPTIONS.library, OPTIONS.plugin, arguments,
                       dict(environment, RIFFLE_SYNC=mode, RIFFLE_FULL_EVERY=str(FULL_EVERY),
                            RIFFLE_FABRIC_TRUST="1"))  # another plan would begin the mode anew


def joined(partitions, workers):
    """Whether chains of common groups connect all workers."""
    reached = {0}
    for _ in range(workers):
        reached |= {i for groups in partitions for group in groups if group & reached
                    for i in group}
    return len(reached) == workers


class Follow(unittest.TestCase):
    def follow(self, mode):
        outcome = train(mode, STEPS, {"RIFFLE_OPTIMIZER": "sgd"})
        found = ddp_follow.follow(outcome, tasks.TASKS["digits-mlp"], 0, 0, STEPS)
        self.assertIsNotNone(found.start, f"{mode} has not begun within {STEPS} steps")
        print(f"{mode}: relaxed from step {found.start} on, {found.relaxed_elements} of "
              f"{outcome.weights.shape[1]} elements; weights at most {max(found.apart):.2g} from "
              f"the formulas; deviation at the end {found.deviations[-1][0]:.4g}, by the formulas "
              f"{found.deviations[-1][1]:.4g}")
        self.assertLess(max(found.apart), LIMIT)
        self.assertGreater(found.relaxed_elements, 0)
        for step, groups in enumerate(found.groups):
            is_full = step % FULL_EVERY == FULL_EVERY - 1
            self.assertEqual(len(groups) == 0, is_full,
                             f"step {step} of the mode; steps with groups: "
                             f"{[i for i, g in enumerate(found.groups) if g]}")
        period = found.groups[:FULL_EVERY]
        self.assertTrue(joined(set().union(*period), ddp_run.WORKERS))

    def test_ds_sync(self):
        self.follow("ds_sync")

    def test_moshpit(self):
        self.follow("moshpit")

    def test_exact_unless_the_optimizer_is_known(self):
        outcome = train("ds_sync", STEPS, {})
        self.assertTrue((outcome.weights.view(np.uint32) ==
                         outcome.weights[0].view(np.uint32)).all())


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
