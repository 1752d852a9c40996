"""Two builds of the plugin train the same model by the same plan: every gradient and every parameter
must have the same bits on every worker after every step.

  same_bits.py --library SO A.so B.so

Eight workers on loopback, PyTorch's DistributedDataParallel over the plugin's tables (ddp_worker.py),
RIFFLE_DETERMINISTIC=1 and RIFFLE_PLAN. One line for each plan. Exit code 0: the same bits; 1: a
difference, at the first of which it ends, with step and tensor named; 2: wrong usage, or a training
failed. A plan written ring/direct is ring for A.so and direct for B.so: the order of sums then differs,
which must be seen."""

import argparse
import pathlib
import sys

import ddp_run
import tasks


def record(library, plugin, plan, steps, task="digits-wide", more=(), settings=None, limit_s=80):
    """The outcome of one training, with digests in its courses."""
    environment = {"RIFFLE_PLAN": plan, "RIFFLE_DETERMINISTIC": "1", **(settings or {})}
    outcome = ddp_run.run(library, plugin, ["--task", task, "--steps", steps, "--algorithm",
                                            "collnet", "--digests", *more],
                          environment, limit_s=limit_s)
    if outcome.collnet_calls < steps * len(outcome.bucket_bytes) / 2:
        raise RuntimeError(f"{plugin}: {outcome.collnet_calls} calls of iallreduce in {steps} steps of "
                           f"{len(outcome.bucket_bytes)} buckets: the plugin has not made the sums")
    return outcome


def first_difference(first, second):
    """What differs in the first step in which anything does; empty: all bits are the same."""
    for step, entries in enumerate(zip(*first.courses)):
        others = [course[step]["digests"] for course in second.courses]
        digests = [entry["digests"] for entry in entries]
        differ = [name for name in digests[0]
                  if any(ours[name] != theirs[name] for ours, theirs in zip(digests, others))]
        if differ:
            name = differ[0]
            workers = [str(rank) for rank, (ours, theirs) in enumerate(zip(digests, others))
                       if ours[name] != theirs[name]]
            return (f"step {step + 1}: {name} differs on worker {', '.join(workers)}; "
                    f"{len(differ)} of {len(digests[0])} tensors differ in this step")
    return ""


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugins", nargs=2, metavar="SO", type=pathlib.Path)
    parser.add_argument("--library", required=True, help="libriffle_trainer.so")
    parser.add_argument("--plans", default="ring,direct,grid", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=25, help="default: %(default)s")
    parser.add_argument("--task", choices=tasks.TASKS, default="digits-wide",
                        help="default: %(default)s, 8 MiB of gradients")
    parser.add_argument("--set", action="append", default=[], metavar="RIFFLE_X=VALUE")
    options = parser.parse_args(arguments)
    for plugin in options.plugins:
        if not plugin.is_file():
            parser.error(f"there is no file {plugin}")
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: 1 or more")
    if not all("=" in setting for setting in options.set):
        parser.error("--set takes RIFFLE_X=VALUE")
    return options


def main(arguments=None):
    options = parse(arguments)
    settings = dict(setting.split("=", 1) for setting in options.set)
    for plan in options.plans.split(","):
        plans = (plan.split("/") * 2)[:2]
        outcomes = []
        for plugin, its_plan in zip(options.plugins, plans):
            try:
                outcomes.append(record(options.library, plugin.resolve(), its_plan, options.steps,
                                       options.task, settings=settings))
            except RuntimeError as error:
                print(f"{plan}: {plugin}: {error}", file=sys.stderr)
                return 2
        first, second = outcomes
        difference = first_difference(first, second)
        print(f"{plan}: {difference}" if difference else
              f"{plan}: the same bits after each of {options.steps} steps, {ddp_run.WORKERS} workers, "
              f"sums of {', '.join(map(str, first.bucket_bytes))} bytes", flush=True)
        if difference:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
