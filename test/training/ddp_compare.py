"""Paired trainings through the plugin (ddp_worker.py): for every mode the same starts and the same
order of the data. Adds every training to <output>/<task>-<optimizer>-<mode>-plugin.json, in the form
of simulate.py's files but marked as the plugin's; `report.py` compares them.

  ddp_compare.py --plugin SO --library SO --task digits-mlp --seeds 0-2 --folds 0 --output DIR

Modes are RIFFLE_SYNC's; `ds_sync-momentum` adds RIFFLE_MOMENTUM; `sparse-0.01` is RIFFLE_SPARSE=0.01, `wire-bf16`
RIFFLE_WIRE=bf16; `gloo` is PyTorch's own backend in place of the plugin, `powersgd-4` PyTorch's PowerSGD of rank 4
over it. With --cluster the workers are nodes of an emulated network, and --target gives the time to a score:
computing and exchange, not scoring. time_to_accuracy.py compares such times."""

import argparse
import itertools
import json
import pathlib
import statistics

import numpy as np
import torch

import ddp_run
import relaxed
import simulate
import tasks


GLOO, POWERSGD = "gloo", "powersgd"


def uses_plugin(mode):
    return mode.partition("-")[0] not in (GLOO, POWERSGD)


def way_of(mode):
    """The worker's options for it."""
    name, _, rank = mode.partition("-")
    return [] if uses_plugin(mode) else ["--through", GLOO, *(["--powersgd", rank] if name == POWERSGD else [])]


def environment_of(mode, options):
    found = dict(setting.split("=", 1) for setting in options.set)
    name, _, hint = mode.partition("-")
    if not uses_plugin(mode):
        return found
    if name in ("sparse", "wire"):
        found["RIFFLE_" + name.upper()] = hint
        return found
    found["RIFFLE_SYNC"] = name
    if name != "exact" and options.optimizer == "sgd":
        found["RIFFLE_OPTIMIZER"] = "sgd"
    if hint == "momentum":
        found["RIFFLE_MOMENTUM"] = str(tasks.MOMENTUM)
    return found


def score_of(task, data, weights):
    model, start = task.model(0), 0
    with torch.no_grad():
        for parameter in model.parameters():
            part = torch.from_numpy(weights[start:start + parameter.numel()])
            parameter.copy_(part.view(parameter.shape))
            start += parameter.numel()
    return tasks.score_of(task, model, data)


def better(task, score, target):
    return score <= target if task.score_name == "validation loss" else score >= target


def curve_of(outcome):
    """At every scored step: mean loss since the last, mean score, squared deviation, seconds."""
    points, since = [], 0
    for index, entry in enumerate(outcome.courses[0]):
        if "score" not in entry:
            continue
        point = {"step": index + 1, "seconds": outcome.seconds(index),
                 "loss": float(np.mean([outcome.loss(i) for i in range(since, index + 1)])),
                 "score": float(np.mean([c[index]["score"] for c in outcome.courses]))}
        if index + 1 in outcome.trace:
            x = torch.from_numpy(outcome.trace[index + 1])[None]
            point["deviation"] = float(relaxed.deviation(x)[0])
        points.append(point)
        since = index + 1
    return points


def train(task, mode, seed, fold, options):
    arguments = ["--task", task.name, "--optimizer", options.optimizer, "--seed", seed, "--fold",
                 fold, "--steps", options.steps, "--bucket-bytes", options.bucket_bytes,
                 "--algorithm", options.algorithm, "--score-every", options.score_every,
                 "--trace-every", options.score_every, *way_of(mode)]
    outcome = ddp_run.run(options.library, options.plugin, arguments, environment_of(mode, options),
                          options.workers, options.limit_s, options.cluster)
    data = task.load(seed, fold)
    curve = curve_of(outcome)
    run = {"seed": seed, "fold": fold, "tested": len(data.held_out),
           "scores": [round(score, 6) for score in outcome.scores],
           "score_of_mean": round(score_of(task, data, outcome.weights.mean(0)), 6),
           "bit_identical": bool((outcome.weights.view(np.uint32) ==
                                  outcome.weights[0].view(np.uint32)).all()),
           "median_step_s": statistics.median(e["step_s"] for e in outcome.courses[0])}
    if outcome.times_smaller:
        run["times_smaller"] = round(outcome.times_smaller, 2)
    if options.target is not None:
        reached = [p["seconds"] for p in curve if better(task, p["score"], options.target)]
        run["to_target_s"] = reached[0] if reached else None
    return curve, run


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--task", choices=tasks.TASKS, default="digits-mlp")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--modes", default="exact,ds_sync,moshpit,shadow_sync")
    parser.add_argument("--seeds", type=simulate.seeds, default=range(10), metavar="FIRST-LAST")
    parser.add_argument("--folds", type=simulate.seeds, metavar="FIRST-LAST",
                        help="default: all of the task")
    parser.add_argument("--workers", type=int, default=ddp_run.WORKERS)
    parser.add_argument("--steps", type=int, help="default: the task's")
    parser.add_argument("--bucket-bytes", type=int, default=1 << 20)
    parser.add_argument("--algorithm", default="collnet", help="what NCCL_ALGO would force")
    parser.add_argument("--score-every", type=int, default=50, help="steps")
    parser.add_argument("--target", type=float, help="score whose time is wanted")
    parser.add_argument("--set", action="append", default=[], metavar="RIFFLE_X=VALUE")
    parser.add_argument("--cluster", nargs=2, metavar=("RIFFLE", "PROFILE"))
    parser.add_argument("--limit-s", type=float, default=150, help="for one training")
    options = parser.parse_args()
    task = tasks.TASKS[options.task]
    options.steps = options.steps or task.steps
    options.folds = range(task.folds) if options.folds is None else options.folds
    return options


def main():
    torch.set_num_threads(1)
    options = parse()
    task = tasks.TASKS[options.task]
    options.output.mkdir(parents=True, exist_ok=True)
    for seed, fold, mode in itertools.product(options.seeds, options.folds,
                                              options.modes.split(",")):
        curve, run = train(task, mode, seed, fold, options)
        settings = {"steps": options.steps, "bucket_bytes": options.bucket_bytes,
                    "rate": tasks.rate_of(options.optimizer, task), "batch": task.batch,
                    "decays": task.decays,
                    "network": options.cluster[1] if options.cluster else "loopback",
                    "environment": environment_of(mode, options)}
        record = {"source": "plugin", "task": task.name, "mode": mode, "workers": options.workers,
                  "optimizer": options.optimizer, "score": task.score_name, "settings": settings,
                  "curve": simulate.merged([curve], [1]), "runs": [run]}
        file = options.output / f"{task.name}-{options.optimizer}-{mode}-plugin.json"
        file.write_text(simulate.text_of(simulate.added(record, file)))
        print(mode, json.dumps(run), flush=True)


if __name__ == "__main__":
    main()
