"""What the workers of a training leave behind, and how models are compared."""

import json
import os

import numpy as np


def weights(folder, workers):
    """Per worker the list of its parameters."""
    found = []
    for rank in range(workers):
        with np.load(os.path.join(folder, f"weights{rank}.npz")) as file:
            found.append([file[name] for name in file.files])
    return found


def course(folder):
    with open(os.path.join(folder, "course.json")) as file:
        return json.load(file)


def identical(all_weights):
    """Every worker has the bits of worker 0."""
    return all(a.tobytes() == b.tobytes() for w in all_weights for a, b in zip(w, all_weights[0]))


def distance(some, others):
    """The largest difference of any weight."""
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others))
