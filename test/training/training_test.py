"""Trains with 8 workers as separate processes through the plugin's own tables and compares with one
process that has the whole batch. Then spoils a sum on purpose: the comparison must notice."""

import argparse
import sys
import tempfile
import unittest

import digits
import results
import side_by_side

WORKERS = 8
LIMIT = 1e-4  # of any weight against the training of one process
OPTIONS = None


def train(folder, steps, fault=""):
    """The weights of every worker, and the course that worker 0 has written."""
    command = ["--library", OPTIONS.library, "--plugin", OPTIONS.plugin, "--output", folder,
               "--steps", str(steps), "--fault", fault]
    codes = side_by_side.run("worker", command, {}, WORKERS, limit_s=100)
    if any(code != 0 for code in codes):
        raise AssertionError(f"exit codes of the workers: {codes}")
    return results.weights(folder, WORKERS), results.course(folder)


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_same_model_as_one_process(self):
        steps = 200
        weights, course = train(self.folder, steps)
        reference = digits.train_alone(steps)
        apart = results.distance(weights[0], reference.parameters)
        accuracy = course["course"][-1]["accuracy"]
        print(f"{course['collnet_calls']} iallreduce calls, {len(course['bucket_bytes'])} buckets; "
              f"largest difference to one process {apart:.2g}; accuracy {accuracy:.4f}")
        self.assertGreaterEqual(course["collnet_calls"], steps * len(course["bucket_bytes"]))
        self.assertTrue(results.identical(weights))
        self.assertLess(apart, LIMIT)
        self.assertGreaterEqual(accuracy, 0.95)

    def test_one_lost_contribution_is_seen(self):
        """A single one of 20 sums lacks one worker."""
        weights, _ = train(self.folder, 20, "lost")
        self.assertTrue(results.identical(weights))
        reference = digits.train_alone(20)
        self.assertGreater(results.distance(weights[0], reference.parameters), LIMIT)

    def test_one_wrong_bit_is_seen(self):
        """One worker has one other bit in the result of one sum."""
        weights, _ = train(self.folder, 20, "bit")
        self.assertFalse(results.identical(weights))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
