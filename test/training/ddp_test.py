"""PyTorch's DistributedDataParallel on 8 workers through the plugin's own tables, in exact mode:
the weights of one process with the whole batch, the same bits on all workers. Then spoils a sum on
purpose: the comparison must notice."""

import argparse
import sys
import unittest

import numpy as np

import ddp_run
import tasks

LIMIT = 1e-4  # of any weight against the training of one process
OPTIONS = None


def train(task, steps, *more, environment=None):
    return ddp_run.run(OPTIONS.library, OPTIONS.plugin, ["--task", task, "--steps", steps,
                                                        "--algorithm", "collnet", *more], environment or {})


def alone(task, steps, optimizer="sgd"):
    model = tasks.train_alone(tasks.TASKS[task], 0, 0, steps, ddp_run.WORKERS, optimizer)
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


class Ddp(unittest.TestCase):
    def same_as_one_process(self, task, steps, optimizer="sgd"):
        outcome = train(task, steps, "--optimizer", optimizer)
        apart = float(np.abs(outcome.weights[0] - alone(task, steps, optimizer)).max())
        print(f"{task}, {optimizer}: {outcome.collnet_calls} iallreduce calls, buckets of "
              f"{outcome.bucket_bytes} bytes; largest difference to one process {apart:.2g}; "
              f"score {outcome.scores[0]:.4f}")
        self.assertGreater(len(outcome.bucket_bytes), 1)  # DDP's bucketing is at work
        # The first step runs in one bucket: DDP lays them out after it has seen their order.
        self.assertGreaterEqual(outcome.collnet_calls,
                                1 + (steps - 1) * len(outcome.bucket_bytes))
        self.assertTrue((outcome.weights.view(np.uint32) ==
                         outcome.weights[0].view(np.uint32)).all())
        self.assertLess(apart, LIMIT)
        return outcome

    def test_mlp_as_one_process(self):
        outcome = self.same_as_one_process("digits-mlp", 200)
        self.assertGreater(outcome.scores[0], 0.9)

    def test_cnn_with_adam_as_one_process(self):
        self.same_as_one_process("digits-cnn-small", 40, "adam")

    def test_transformer_as_one_process(self):
        self.same_as_one_process("text", 20)

    def test_mlp_as_pytorchs_own_backend(self):
        outcome, own = train("digits-mlp", 60), train("digits-mlp", 60, "--through", "gloo")
        self.assertGreater(outcome.collnet_calls, 60)
        self.assertEqual(own.bucket_bytes, [])  # no sum of it went the other way
        self.assertLess(np.abs(outcome.weights - own.weights).max(), LIMIT)

    def test_mlp_with_sums_in_a_narrower_type(self):
        """Alike on all workers, other than exact, and as good."""
        exact = train("digits-mlp", 120, "--bucket-bytes", 1 << 20)
        for wire, least in (("bf16", 1e-5), ("fp8block", 1e-4)):
            outcome = train("digits-mlp", 120, "--bucket-bytes", 1 << 20, environment={"RIFFLE_WIRE": wire})
            self.assertTrue((outcome.weights.view(np.uint32) == outcome.weights[0].view(np.uint32)).all())
            apart = float(np.abs(outcome.weights[0] - exact.weights[0]).max())
            print(f"{wire}: {apart:.2g} from exact; score {outcome.scores[0]:.4f}, exact {exact.scores[0]:.4f}")
            self.assertGreater(apart, least)
            self.assertGreater(outcome.scores[0], exact.scores[0] - 0.05)

    def test_mlp_with_powersgd_over_pytorchs_own_backend(self):
        """Alike on all workers, with fewer bytes, and as good."""
        steps = 120
        own, outcome = (train("digits-mlp", steps, "--through", "gloo", *more)
                        for more in ((), ("--powersgd", "4")))
        print(f"PowerSGD: {outcome.times_smaller:.1f} times smaller; score {outcome.scores[0]:.4f}, "
              f"without {own.scores[0]:.4f}")
        self.assertIsNone(own.times_smaller)
        self.assertGreater(outcome.times_smaller, 4)
        self.assertTrue((outcome.weights.view(np.uint32) == outcome.weights[0].view(np.uint32)).all())
        self.assertGreater(np.abs(outcome.weights - own.weights).max(), LIMIT)
        self.assertGreater(outcome.scores[0], own.scores[0] - 0.05)

    def test_one_lost_contribution_is_seen(self):
        """A single one of 20 sums lacks one worker."""
        outcome = train("digits-mlp", 20, "--fault", "lost")
        self.assertGreater(np.abs(outcome.weights[0] - alone("digits-mlp", 20)).max(), LIMIT)

    def test_one_wrong_bit_is_seen(self):
        """One worker has one other bit in one gradient."""
        outcome = train("digits-mlp", 20, "--fault", "bit")
        self.assertFalse((outcome.weights[-1] == outcome.weights[0]).all())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
