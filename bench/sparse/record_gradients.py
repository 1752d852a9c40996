#!/usr/bin/python3
"""Records what the workers of a sparse data-parallel job select from: real gradients plus residuals.

A network with as many parameters as asked for is trained on scikit-learn's handwritten digits, one
batch per worker and step, by SGD with momentum on the sparse sum that the workers agree on: each
sends the largest of its gradient plus its residual and keeps the rest. After some steps, in which
the residuals fill, what each worker would select from is written for bench/sparse/gradients.h.

    bench/sparse/record_gradients.py gradients.bin --workers 14 --elements 8388608
    build/tools/riffle bench --profile uniform8 --sizes 32M --sparse-peers spardl,topka --gradients gradients.bin

Needs python3-torch, python3-numpy, python3-sklearn. Everything comes from fixed seeds.
"""
import argparse
import math
import struct

import numpy as np
import torch
from sklearn.datasets import load_digits


def network(elements):
    """Five layers, 64 pixels to 10 classes, at least so many parameters."""
    width = math.ceil((math.sqrt(78 * 78 + 4 * 3 * elements) - 78) / 6)  # 3 w^2 + 78 w + 10
    layers = []
    for wide_in, wide_out in ((64, width), (width, width), (width, width), (width, width), (width, 10)):
        layers += [torch.nn.Linear(wide_in, wide_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--elements", type=int, default=8 << 20)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=16, help="images per worker and step")
    parser.add_argument("--warmup", type=int, default=20, help="steps before the first that is kept")
    parser.add_argument("--steps", type=int, default=2, help="steps that are kept")
    options = parser.parse_args()

    torch.manual_seed(1)
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    net = network(options.elements)
    for layer in net[::2]:
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    parameters = list(net.parameters())
    count = sum(p.numel() for p in parameters)
    assert count >= options.elements, count
    residuals = [torch.zeros(count) for _ in range(options.workers)]
    momentum, zero = torch.zeros(count), torch.zeros(())
    draw = np.random.default_rng(1)
    with open(options.file, "wb") as out:
        out.write(b"RIFGRAD1" + struct.pack("<IIQ", options.workers, options.steps, options.elements))
        for step in range(options.warmup + options.steps):
            total, loss = torch.zeros(count), 0.0
            for worker in range(options.workers):
                rows = draw.integers(len(images), size=options.batch)
                net.zero_grad()
                error = torch.nn.functional.cross_entropy(net(images[rows]), labels[rows])
                error.backward()
                loss += error.item() / options.workers
                residuals[worker] += torch.cat([p.grad.reshape(-1) for p in parameters])
                if step >= options.warmup:
                    out.write(residuals[worker][: options.elements].numpy().tobytes())
                # About the largest: the threshold is that of a sample.
                sample = residuals[worker][torch.from_numpy(draw.integers(count, size=1 << 18))]
                threshold = np.quantile(sample.abs().numpy(), 1 - options.density)
                sent = torch.where(residuals[worker].abs() > threshold, residuals[worker], zero)
                total += sent
                residuals[worker] -= sent
            momentum = 0.9 * momentum + total / options.workers
            at = 0
            with torch.no_grad():
                for p in parameters:
                    p -= 0.02 * momentum[at : at + p.numel()].reshape(p.shape)
                    at += p.numel()
            print(f"step {step}: loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
