"""Trains with 4 workers through the plugin with RIFFLE_SPARSE: the same weights everywhere, and nearly
the accuracy of dense training. A worker whose gradients suddenly lie elsewhere must be noticed: those
sums are dense, for all, and training goes on."""

import argparse
import os
import pathlib
import sys
import tempfile
import unittest

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads that wait for each other starve on a busy machine

import digits  # noqa: E402
import results  # noqa: E402
import side_by_side  # noqa: E402

WORKERS = 4
STEPS = 400  # 20 / density
DENSITY = "0.05"
OPTIONS = None


def train(folder, fault=""):
    """Weights of all workers, course of worker 0, and what worker 0 and the last one logged."""
    settings = {"RIFFLE_SPARSE": DENSITY, "RIFFLE_SPARSE_RAMP": "24", "RIFFLE_WARMUP_STEPS": "3",
                "NCCL_DEBUG": "INFO"}
    command = ["--library", OPTIONS.library, "--plugin", OPTIONS.plugin, "--output", folder,
               "--steps", str(STEPS), "--fault", fault]
    logs = os.path.join(folder, "log")
    codes = side_by_side.run("worker", command, settings, WORKERS, limit_s=160, logs=logs)
    texts = [pathlib.Path(f"{logs}{rank}").read_text() for rank in range(WORKERS)]
    if any(code != 0 for code in codes):
        raise AssertionError(f"exit codes of the workers: {codes}\n{texts[0]}")
    return results.weights(folder, WORKERS), results.course(folder), texts


class SparseTraining(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        images, test_images, labels, test_labels = digits.load()
        self.dense = digits.train_alone(STEPS).accuracy(test_images, test_labels)

    def test_nearly_the_accuracy_of_dense_training(self):
        weights, course, logs = train(self.folder)
        accuracy = course["course"][-1]["accuracy"]
        said = [line for line in logs[0].splitlines() if "sparse" in line]
        print("\n".join(said))
        print(f"density {DENSITY}: accuracy {accuracy:.4f}, dense {self.dense:.4f}")
        self.assertTrue(any("sparse from call" in line for line in said))
        self.assertTrue(results.identical(weights))
        self.assertGreaterEqual(accuracy, self.dense - 0.02)

    def test_gradients_that_lie_elsewhere_are_summed_densely(self):
        weights, course, logs = train(self.folder, "moved")
        accuracy = course["course"][-1]["accuracy"]
        print(f"density {DENSITY}: accuracy {accuracy:.4f}, dense {self.dense:.4f}")
        self.assertIn("all nodes sum it densely", logs[-1])
        self.assertIn("exact from call", logs[0])
        self.assertTrue(results.identical(weights))
        self.assertGreaterEqual(accuracy, self.dense - 0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
