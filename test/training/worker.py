"""One worker of a data-parallel training. Its rank is RANK of WORLD_SIZE, as set by torchrun and
`riffle cluster`; it leaves its weights in <output>/weights<rank>.npz, rank 0 also the course of the
training in <output>/course.json."""

import argparse
import json
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # all workers share this machine's processors

import numpy as np  # noqa: E402

import digits  # noqa: E402
from trainer import Buckets, Trainer  # noqa: E402


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libriffle_trainer.so")
    parser.add_argument("--plugin", required=True, help="libnccl-net-riffle.so")
    parser.add_argument("--output", required=True, help="folder, the same for all workers")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--bucket-bytes", type=int, default=128 << 10)
    parser.add_argument("--algorithm", default="", help="what NCCL_ALGO would force")
    parser.add_argument("--fault", choices=("", "lost", "bit", "moved"), default="",
                        help="spoil the last worker's share of one sum, or one bit of its result; or "
                        "its buckets lie elsewhere from then on")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parsed(arguments)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    images, test_images, labels, test_labels = digits.load()
    network = digits.Network()
    optimizer = digits.Momentum(network.parameters)
    buckets = Buckets(network.parameters, options.bucket_bytes)
    trainer = Trainer(options.library, options.plugin, os.path.join(options.output, "rendezvous"),
                      rank, ranks, options.algorithm)
    course = []
    for step, batch in enumerate(digits.batches(len(images), options.steps)):
        start = time.monotonic()
        rows = batch[rank::ranks]
        loss, gradients = network.gradients(images[rows], labels[rows])
        spoiled = rank == ranks - 1 and step == options.steps // 2
        if spoiled and options.fault == "lost":
            gradients = [np.zeros_like(g) for g in gradients]
        if spoiled and options.fault == "moved":
            buckets.move()
        computed = time.monotonic()
        buckets.average(gradients, trainer, ranks)
        reduced = time.monotonic()
        if spoiled and options.fault == "bit":
            gradients[-1].view(np.uint32)[0] ^= 1 << 20
        optimizer.step(gradients)
        entry = {"step": step, "loss": float(loss), "reduce_s": reduced - computed,
                 "step_s": time.monotonic() - start}
        if rank == 0 and (step % 10 == 9 or step + 1 == options.steps):
            entry["accuracy"] = network.accuracy(test_images, test_labels)
            print(json.dumps(entry), flush=True)
        course.append(entry)
    np.savez(os.path.join(options.output, f"weights{rank}.npz"), *network.parameters)
    if rank == 0:
        with open(os.path.join(options.output, "course.json"), "w") as file:
            json.dump({"course": course, "collnet_calls": trainer.collnet_calls(),
                       "bucket_bytes": [f.nbytes for f in buckets.flat]}, file)
    trainer.close()


if __name__ == "__main__":
    main()
