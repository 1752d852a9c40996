"""PyTorch's DistributedDataParallel on 8 workers of which some are killed in mid-step: the others reach the
accuracy that they reach with them, in exact mode with the same weights, and nobody sees an error."""

import sys
import unittest

import ddp_loss
import ddp_run

OPTIONS = None


class Losses(unittest.TestCase):
    def test_the_others_train_on_to_the_target(self):
        training = ddp_loss.Losses(OPTIONS, "exact", "kill")
        reached = training.reached(OPTIONS.target)
        costs = ", ".join(f"{1e3 * cost:.0f}" for cost in training.costs_s())
        print(f"killed in steps {training.steps}, which took {costs} ms more than others; "
              f"{OPTIONS.target} reached after steps {reached}")
        self.assertEqual(set(training.codes), {-9})
        self.assertEqual(training.noticed(), ddp_run.WORKERS - len(OPTIONS.lost))
        self.assertTrue(training.is_same())
        self.assertNotIn(None, reached)
        self.assertGreater(min(reached), training.steps[-1] + 1)  # with what was learnt afterwards


if __name__ == "__main__":
    OPTIONS, rest = ddp_loss.make_parser().parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
