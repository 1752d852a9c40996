"""Starts the workers of a DDP training side by side on this machine and reads what they leave."""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

import side_by_side

WORKERS = 8


class Outcome:
    """weights: workers x parameters at the end; trace: the same per traced step; courses: one list
    of steps per worker; scores: of every worker's own model at the end; began: on the clock of the
    courses, the first worker's first step; times_smaller: elements of gradients per element that PowerSGD
    sent, None without it. Of the workers of `ranks`, in this order."""

    def __init__(self, folder, ranks):
        files = [np.load(os.path.join(folder, f"weights{rank}.npz")) for rank in ranks]
        self.weights = np.stack([file["final"] for file in files])
        self.trace = {int(name.removeprefix("step")): np.stack([file[name] for file in files])
                      for name in files[0].files if name.startswith("step")}
        records = [json.loads(pathlib.Path(folder, f"course{rank}.json").read_text())
                   for rank in ranks]
        self.courses = [record["course"] for record in records]
        self.began = min(record["began"] for record in records)
        self.collnet_calls = records[0]["collnet_calls"]
        self.bucket_bytes = records[0]["bucket_bytes"]
        self.times_smaller = records[0]["times_smaller"]
        self.scores = [course[-1]["score"] for course in self.courses]

    def loss(self, step):
        return float(np.mean([course[step]["loss"] for course in self.courses]))

    def seconds(self, step):
        """Until the last worker had ended it."""
        return max(course[step]["end"] for course in self.courses) - self.began


def _on_cluster(command, environment, cluster, limit_s):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RIFFLE_", "NCCL_"))}
    riffle, profile, *more = cluster
    done = subprocess.run([riffle, "cluster", "--profile", profile, *more, "--", "/usr/bin/python3",
                           str(side_by_side.HERE / "ddp_worker.py"), *command], timeout=limit_s,
                          env=dict(kept, GLOO_SOCKET_IFNAME="eth0", **environment))
    return [done.returncode]


def run(library, plugin, arguments, environment, workers=WORKERS, limit_s=150, cluster=None):
    """Settings of the plugin (RIFFLE_*) come from `environment` alone, not from the caller's.
    cluster: the `riffle` program, a profile, more options of `riffle cluster`; none: side by side on
    loopback."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["--library", str(library), "--plugin", str(plugin), "--output", folder,
                   *map(str, arguments)]
        codes = (_on_cluster(command, environment, cluster, limit_s) if cluster else
                 side_by_side.run("ddp_worker", command, environment, workers, limit_s))
        if any(code != 0 for code in codes):
            raise RuntimeError(f"exit codes of the workers: {codes} (None: not ended in time)")
        return Outcome(folder, range(workers))


def run_with_losses(library, plugin, arguments, environment, lost, workers=WORKERS, limit_s=150):
    """As run() on loopback, but the workers `lost` do not come through: the outcome of the others, their
    logs, exit codes and logs of the lost ones. Others that fail are an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["--library", str(library), "--plugin", str(plugin), "--output", folder,
                   *map(str, arguments), "--fault-ranks", ",".join(map(str, lost))]
        logs = os.path.join(folder, "log")
        codes = side_by_side.run("ddp_worker", command, environment, workers, limit_s, logs)
        texts = [pathlib.Path(f"{logs}{rank}").read_text() for rank in range(workers)]
        others = [rank for rank in range(workers) if rank not in lost]
        failed = [rank for rank in others if codes[rank] != 0]
        if failed:
            said = "\n\n".join(f"worker {rank}:\n{texts[rank]}" for rank in failed)
            raise RuntimeError(f"exit codes of the workers: {codes} (None: not ended in time)\n{said}")
        return (Outcome(folder, others), [texts[r] for r in others], [codes[r] for r in lost],
                [texts[r] for r in lost])
