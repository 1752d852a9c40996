"""PyTorch's DistributedDataParallel on 8 workers of which one is killed in mid-step: the others reach the
accuracy that they reach with it, in exact mode with the same weights, and nobody sees an error."""

import sys
import unittest

import ddp_loss

OPTIONS = None


class Loss(unittest.TestCase):
    def test_seven_of_eight_train_on_to_the_target(self):
        training = ddp_loss.Loss(OPTIONS, "exact", "kill")
        reached = training.reached(OPTIONS.target)
        print(f"killed in step {OPTIONS.at}, which took {1e3 * training.cost_s():.0f} ms more than others; "
              f"{OPTIONS.target} reached after steps {reached}")
        self.assertEqual(training.code, -9)
        self.assertEqual(training.noticed(), 7)
        self.assertTrue(training.is_same())
        self.assertNotIn(None, reached)
        self.assertGreater(min(reached), OPTIONS.at + 1)  # with what was learnt afterwards


if __name__ == "__main__":
    OPTIONS, rest = ddp_loss.make_parser().parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
