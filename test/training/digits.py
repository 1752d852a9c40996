"""The training itself, without any communication: scikit-learn's handwritten digits (1,797 real
8x8 images, shipped inside the Debian package), and a small network trained by SGD with momentum.

Everything is float32 and every random number comes from fixed seeds, so that all workers start
alike and draw the same batches."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

CLASSES = 10
BATCH = 128  # images per step, over all workers
WIDTHS = (64, 256, 256, CLASSES)  # of the layers: 85,002 parameters


def load():
    """Images as rows of 64 values in 0..1; a third is held out for testing, as usual."""
    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    return train_test_split(images, digits.target, test_size=1 / 3, random_state=0,
                            stratify=digits.target)


def batches(images, steps):
    """The rows of every step's batch: shuffled epochs, the same on all workers."""
    random = np.random.default_rng(1)
    order = np.empty(0, dtype=np.int64)
    for _ in range(steps):
        while len(order) < BATCH:
            order = np.concatenate([order, random.permutation(images)])
        yield order[:BATCH]
        order = order[BATCH:]


class Network:
    """Fully connected, ReLU between layers, cross-entropy at the end."""

    def __init__(self):
        random = np.random.default_rng(2)
        self.parameters = []  # weights and biases in turn
        for fan_in, fan_out in zip(WIDTHS, WIDTHS[1:]):
            weights = random.standard_normal((fan_in, fan_out)) * np.sqrt(2 / fan_in)
            self.parameters += [weights.astype(np.float32), np.zeros(fan_out, np.float32)]

    def forward(self, images):
        """The input of every layer, and the logits."""
        values = [images]
        for i in range(0, len(self.parameters), 2):
            out = values[-1] @ self.parameters[i] + self.parameters[i + 1]
            last = i + 2 == len(self.parameters)
            values.append(out if last else np.maximum(out, 0))
        return values

    def gradients(self, images, labels):
        """Mean loss of the batch, and its gradient for every parameter."""
        values = self.forward(images)
        logits = values[-1] - values[-1].max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        rows = np.arange(len(labels))
        loss = -logs[rows, labels].mean()
        delta = np.exp(logs)
        delta[rows, labels] -= 1
        delta /= np.float32(len(labels))
        result = []
        for i in reversed(range(0, len(self.parameters), 2)):
            below = values[i // 2]
            result = [below.T @ delta, delta.sum(axis=0)] + result
            if i > 0:
                delta = (delta @ self.parameters[i].T) * (below > 0)
        return loss, result

    def accuracy(self, images, labels):
        return float((self.forward(images)[-1].argmax(axis=1) == labels).mean())


class Momentum:
    """SGD with momentum as PyTorch defines it."""

    def __init__(self, parameters, rate=np.float32(0.05), momentum=np.float32(0.9)):
        self.parameters, self.rate, self.momentum = parameters, rate, momentum
        self.velocity = [np.zeros_like(p) for p in parameters]

    def step(self, gradients):
        for parameter, velocity, gradient in zip(self.parameters, self.velocity, gradients):
            velocity *= self.momentum
            velocity += gradient
            parameter -= self.rate * velocity


def train_alone(steps):
    """One process with the whole batch: what the workers together must arrive at."""
    images, _, labels, _ = load()
    network = Network()
    optimizer = Momentum(network.parameters)
    for rows in batches(len(images), steps):
        _, gradients = network.gradients(images[rows], labels[rows])
        optimizer.step(gradients)
    return network
