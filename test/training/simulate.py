"""Trains the workers, 8 unless told, in one process by the formulas of relaxed.py, without the plugin: many paired runs
(same start, same data order) at little cost. Writes <output>/<task>-<optimizer>-<mode>.json, marked
as simulation, or adds its seeds to such a file of the same settings; `report.py` compares them.

  simulate.py --task digits-mlp --seeds 0-9 --modes exact,ds_sync --output DIR
  simulate.py --task digits-mlp --seeds 0-9 --modes exact,sparse-0.01 --library SO --output DIR
  simulate.py --task text --seeds 0-4 --modes exact,shadow_sync-gap1 --workers 32 --output DIR

Sparse sums (sparse-DENSITY, sparse-DENSITY-RESIDUAL) are the library's own (sparse_rule.py), so the
records of such a run are marked as sparse simulation and their names end in -by-library; weights are the
same everywhere and kept once."""

import argparse
import functools
import json
import os
import pathlib
import re
import time

os.environ["OMP_NUM_THREADS"] = "1"

import functorch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import relaxed  # noqa: E402
import sparse_rule  # noqa: E402
import tasks  # noqa: E402

WORKERS = 8


def rule(mode, options):
    """A fresh rule: it keeps the state of one training."""
    has_groups = "grid" in mode or mode.partition("-")[0] in ("stateless", "ds_sync", "moshpit")
    if has_groups and options.workers != WORKERS:
        raise SystemExit(f'simulate.py: --modes "{mode}": its groups are of {WORKERS} workers, --workers is '
                         f'{options.workers}')
    relaxing = dict(warmup=options.warmup, full_every=options.full_every)
    if mode == "exact":
        return relaxed.Exact()
    if options.library:
        return sparse(mode, options)
    if mode == "local":
        return relaxed.Local()
    if mode == "stateless":
        return relaxed.Stateless(relaxed.grid(4, 2))
    if mode == "ds_sync":  # two racks of four: within the racks, then across them
        return relaxed.GroupState(mode, relaxed.grid(4, 2), **relaxing)
    if mode == "ds_sync-rotating":
        return relaxed.GroupState(mode, relaxed.rotating_cross_group(2, 4), **relaxing)
    if mode == "ds_sync-momentum":
        return relaxed.GroupStateMomentum(mode, relaxed.grid(4, 2), tasks.MOMENTUM, **relaxing)
    if mode == "moshpit":
        return relaxed.GroupState(mode, relaxed.grid(2, 2, 2), **relaxing)
    if mode == "shadow_sync":
        return relaxed.ShadowAverage(mode, options.gap, 1.0, **relaxing)
    own = re.fullmatch(r"shadow_sync-gap(\d+)(?:-takes(\d+))?(?:-grid(\d+(?:x\d+)*))?", mode)
    if own:
        gap, takes = int(own[1]), int(own[2] or own[1])
        pattern = relaxed.grid(*map(int, own[3].split("x"))) if own[3] else None
        return relaxed.ShadowAverage(mode, gap, 1.0, takes=takes, pattern=pattern, **relaxing)
    if mode == "shadow_sync-interpolation":
        return relaxed.ShadowAverage(mode, options.gap, 0.5, interpolate=True, **relaxing)
    if mode == "shadow_sync-easgd":
        return relaxed.ShadowCentre(mode, options.gap, 0.5, 0.9, **relaxing)
    if mode == "shadow_sync-bmuf":
        return relaxed.ShadowCentre(mode, options.gap, 0.5, 1.0, 1 - 1 / options.workers, **relaxing)
    if mode == "shadow_sync-fir":
        return relaxed.ShadowFir(mode, options.gap, **relaxing)
    raise SystemExit(f'simulate.py: --modes "{mode}" is unknown; see rule() in this file')


def sparse(mode, options):
    name, _, how = mode.partition("-")
    density, _, residual = how.partition("-")
    if name != "sparse" or not density:
        raise SystemExit(f'simulate.py: --modes "{mode}": with --library exact, sparse-DENSITY and '
                         "sparse-DENSITY-RESIDUAL are accepted")
    return sparse_rule.Sparse(mode, sparse_rule.load(options.library), float(density),
                              residual or "global", options.warmup, options.ramp, options.chunk,
                              options.teams)


class Stack:
    """Runs x workers models of one kind as rows of one matrix of parameters; where all workers have
    the same weights, runs x 1."""

    def __init__(self, task, runs, workers=WORKERS, models=None):
        self._workers = workers
        starts = [task.model(seed) for seed, _ in runs]
        if tasks.batch_norms(starts[0]):
            raise SystemExit(f"simulate.py: --task {task.name} has batch norm, whose statistics the workers of one "
                             "process would share; ddp_compare.py trains it")
        self._call, parameters, self._buffers = functorch.make_functional_with_buffers(starts[0])
        self._shapes = [p.shape for p in parameters]
        self._sizes = [p.numel() for p in parameters]
        start = torch.stack([torch.cat([p.detach().flatten() for p in m.parameters()])
                             for m in starts])
        self.x = start[:, None].repeat(1, models or workers, 1).requires_grad_()  # runs x models x elements
        self._task = task

    def logits(self, row, inputs):
        parts = zip(row.split(self._sizes), self._shapes)
        return self._call([part.view(shape) for part, shape in parts], self._buffers, inputs)

    def gradients(self, inputs, targets):
        """Losses (runs x workers) and gradients; inputs: runs x workers x batch x ..."""
        def loss(row, inputs, targets):
            return self._task.loss(self.logits(row, inputs), targets)
        x = self.x.detach().expand(-1, self._workers, -1).requires_grad_()
        losses = functorch.vmap(functorch.vmap(loss))(x, inputs, targets)
        return losses.detach(), torch.autograd.grad(losses.sum(), x)[0]

    @torch.no_grad()
    def scores(self, rows, data, every=1):
        """Of every row of parameters, on what `data` holds out, or on every n-th piece of it."""
        out = functorch.vmap(self.logits, in_dims=(0, None))(rows, data.held_out[::every])
        return self._task.score(out, data.held_out_targets[::every]).numpy()


def train(task, runs, rule, options, trace=None):
    """One training per (seed, fold) of `runs`. `trace` receives the weights of all workers after
    every --trace-every steps."""
    data = [load(task.name, seed, fold) for seed, fold in runs]
    models = 1 if options.library else options.workers
    stack = Stack(task, runs, options.workers, models)
    optimizer = tasks.Optimizer(options.optimizer, task, [stack.x], options.steps, options.rate)
    orders = [d.batches(seed, options.steps, options.workers, task.batch)
              for d, (seed, _) in zip(data, runs)]
    curve, losses_since = [], []
    for step, rows in enumerate(zip(*orders), start=1):
        losses, g = stack.gradients(torch.stack([d.inputs[r] for d, r in zip(data, rows)]),
                                    torch.stack([d.targets[r] for d, r in zip(data, rows)]))
        stack.x.grad = rule.step(g)[:, :models]
        optimizer.step()
        losses_since.append(float(losses.mean()))
        if trace is not None and step % options.trace_every == 0:
            trace[step] = stack.x.detach().clone()
        if step % options.score_every == 0 or step == options.steps:
            x = stack.x.detach()
            curve.append({"step": step, "loss": float(np.mean(losses_since)),
                          "deviation": float(relaxed.deviation(x).mean()),
                          "score": float(np.mean([stack.scores(x[i], d, every=4)
                                                  for i, d in enumerate(data)]))})
            losses_since = []
    x = stack.x.detach()
    ended = [{"seed": seed, "fold": fold, "tested": len(d.held_out),
              "scores": [round(float(s), 6) for s in stack.scores(x[i], d)],
              "score_of_mean": round(float(stack.scores(x[i].mean(0, keepdim=True), d)[0]), 6)}
             for i, (d, (seed, fold)) in enumerate(zip(data, runs))]
    return curve, ended


@functools.lru_cache(maxsize=None)
def load(name, seed, fold):
    task = tasks.TASKS[name]
    return task.load(seed, fold) if task.folds > 1 else _load_once(name)


@functools.lru_cache(maxsize=None)
def _load_once(name):
    return tasks.TASKS[name].load(0, 0)


def seeds(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=tasks.TASKS, default="digits-mlp")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--rate", type=float, help="learning rate; default: the task's")
    parser.add_argument("--modes", default="exact,ds_sync,moshpit,shadow_sync")
    parser.add_argument("--seeds", type=seeds, default=range(10), metavar="FIRST-LAST")
    parser.add_argument("--folds", type=seeds, metavar="FIRST-LAST", help="default: all of the task")
    parser.add_argument("--at-once", type=int, default=10, help="runs that share a pass")
    parser.add_argument("--workers", type=int, default=WORKERS, help="who share the steps' data")
    parser.add_argument("--steps", type=int, help=f"default: the task's, which are for {WORKERS} workers: as much data")
    parser.add_argument("--warmup", type=int, default=20, help="exact steps at the start")
    parser.add_argument("--full-every", type=int, default=64, help="steps; 0: never")
    parser.add_argument("--gap", type=int, default=4, help="steps per round of shadow_sync")
    parser.add_argument("--library", help="libriffle_trainer.so, for sparse sums")
    parser.add_argument("--ramp", type=int, default=48, help="steps in which the density comes down")
    parser.add_argument("--chunk", type=int, default=128 << 10, help="elements of a sparse sum")
    parser.add_argument("--teams", type=int, default=1, help="of a sparse sum")
    parser.add_argument("--score-every", type=int, default=50, help="steps")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    task = tasks.TASKS[options.task]
    if options.workers < 1:
        parser.error(f"--workers {options.workers}: 1 and more are accepted")
    options.steps = options.steps or task.steps * WORKERS // options.workers
    options.folds = range(task.folds) if options.folds is None else options.folds
    return options


def merged(curves, weights):
    """The weighted mean of curves over the same steps."""
    def mean(points, key):
        return float(f"{np.average([point[key] for point in points], weights=weights):.6g}")
    return [{"step": points[0]["step"], **{key: mean(points, key) for key in points[0]
                                           if key != "step"}} for points in zip(*curves)]


def added(record, file):
    """The record, and what a file of the same settings has of other seeds."""
    if not file.exists():
        return record
    old = json.loads(file.read_text())
    if any(old[key] != record[key] for key in record if key not in ("curve", "runs")):
        raise SystemExit(f"simulate.py: {file} is of other settings; remove it or choose another "
                         "--output")
    if {(r["seed"], r["fold"]) for r in old["runs"]} & {(r["seed"], r["fold"])
                                                       for r in record["runs"]}:
        raise SystemExit(f"simulate.py: {file} has some of these --seeds already")
    if [point["step"] for point in old["curve"]] != [point["step"] for point in record["curve"]]:
        raise SystemExit(f"simulate.py: {file} was scored at other steps; choose its --score-every")
    curve = merged([old["curve"], record["curve"]], [len(old["runs"]), len(record["runs"])])
    return dict(record, curve=curve, runs=old["runs"] + record["runs"])


def text_of(record):
    """JSON with one line per run and point: short, and differences are readable."""
    lists = {key: ",\n".join("  " + json.dumps(entry) for entry in record[key])
             for key in ("curve", "runs")}
    head = json.dumps({k: v for k, v in record.items() if k not in lists}, indent=1)[:-2]
    return head + "".join(f',\n "{key}": [\n{body}\n ]' for key, body in lists.items()) + "\n}\n"


def main():
    torch.set_num_threads(1)
    options = parse()
    task = tasks.TASKS[options.task]
    runs = [(seed, fold) for seed in options.seeds for fold in options.folds]
    passes = [runs[i:i + options.at_once] for i in range(0, len(runs), options.at_once)]
    options.output.mkdir(parents=True, exist_ok=True)
    for mode in options.modes.split(","):
        start = time.monotonic()
        done = [train(task, part, rule(mode, options), options) for part in passes]
        keys = (("steps", "warmup", "ramp", "chunk", "teams") if options.library else
                ("steps", "warmup", "full_every", "gap"))
        settings = {key: getattr(options, key) for key in keys}
        settings |= {"rate": tasks.rate_of(options.optimizer, task, options.rate),
                     "batch": task.batch, "decays": task.decays}
        source = "sparse simulation" if options.library else "simulation"
        record = {"source": source, "task": task.name, "mode": mode, "workers": options.workers,
                  "optimizer": options.optimizer, "score": task.score_name, "settings": settings,
                  "curve": merged([curve for curve, _ in done], list(map(len, passes))),
                  "runs": [run for _, ended in done for run in ended]}
        kind = "-by-library" if options.library else ""
        if options.workers != WORKERS:
            kind += f"-{options.workers}-workers"
        file = options.output / f"{task.name}-{options.optimizer}-{mode}{kind}.json"
        record = added(record, file)
        file.write_text(text_of(record))
        last = record["curve"][-1]
        score = np.mean([run["scores"] for run in record["runs"]])
        print(f"{file.name}: {task.score_name} {score:.4f}, deviation "
              f"{last['deviation']:.3g}, {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
