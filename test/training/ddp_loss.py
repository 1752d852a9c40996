"""Trainings of 8 DDP workers through the plugin of which some are lost in mid-step, one after the other (killed,
or stopped and woken at the end), while the others go on (RIFFLE_ON_LOSS=continue), beside one without a loss:

  ddp_loss.py --plugin SO --library SO --modes exact,ds_sync,moshpit,shadow_sync,sparse-0.05
  ddp_loss.py --plugin SO --library SO --modes exact,ds_sync --faults none,kill --lost 3,6,1 --at 60 --every 40

Per training it prints: how many survivors reach the target and after which step the last of them has it, the
least accuracy at the end, whether the survivors have the same weights, what the losses cost, and what the lost
workers said. Exits with 1 if a survivor fails or misses the target, if survivors of an exact or sparse training
differ, or if the mode had not begun before the first loss."""

import argparse
import itertools
import statistics
import sys

import numpy as np

import ddp_compare
import ddp_run
import ddp_worker

MODE_BEGINS = {"ds_sync": "ds_sync from call", "moshpit": "moshpit from call",
               "shadow_sync": "shadow_sync from call", "sparse": "sparse from call"}


class Losses:
    """One training that loses workers, if `fault` says so: what the others left, as of
    ddp_run.run_with_losses()."""

    def __init__(self, options, mode, fault):
        arguments = ["--task", "digits-mlp", "--steps", options.steps, "--rate", options.rate,
                     "--seed", options.seed, "--algorithm", "collnet", "--fault", fault,
                     "--fault-step", options.at, "--fault-every", options.every,
                     "--score-every", options.score_every,
                     "--bucket-bytes", 8 << 10 if mode == "exact" else 1 << 20]
        environment = dict(ddp_compare.environment_of(mode, options), RIFFLE_ON_LOSS="continue",
                           NCCL_DEBUG="INFO")
        if fault == "stop":  # who is killed is noticed at once
            environment["RIFFLE_PEER_TIMEOUT"] = str(options.timeout_s)
        environment.setdefault("RIFFLE_WARMUP_STEPS", "4")
        environment.setdefault("RIFFLE_SPARSE_RAMP", "12")
        self.mode = mode.partition("-")[0]
        self.steps = [options.at + i * options.every for i in range(len(options.lost))]
        self.left = [ddp_run.WORKERS - i - 1 for i in range(len(options.lost))]
        self.outcome, self.logs, self.codes, self.last_words = ddp_run.run_with_losses(
            options.library, options.plugin, arguments, environment, options.lost,
            limit_s=options.limit_s)

    def reached(self, target):
        """Per survivor the first step, counted from 1, that it ended with the target's accuracy."""
        return [next((entry["step"] + 1 for entry in course
                      if entry.get("score", 0) >= target), None) for course in self.outcome.courses]

    def is_same(self):
        weights = self.outcome.weights.view(np.uint32)
        return bool((weights == weights[0]).all())

    def costs_s(self):
        """Of the steps of the losses, more than others take: the survivor that each cost most."""
        return [max(course[step]["step_s"] - statistics.median(e["step_s"] for e in course)
                    for course in self.outcome.courses) for step in self.steps]

    def noticed(self):
        """Survivors that spoke of all losses."""
        return sum(all(words(left) in log for left in self.left) for log in self.logs)

    def mode_began(self):
        """Before the first loss: node 0 says so, or the lowest survivor."""
        if self.mode == "exact":
            return True
        before, _, _ = self.logs[0].partition(words(self.left[0]))
        return MODE_BEGINS[self.mode] in before

    def errors(self):
        """The lost workers' own, if they were woken."""
        warnings = [[line for line in log.splitlines() if "excluded" in line] for log in self.last_words]
        return [lines[0].partition("Riffle: ")[2] for lines in warnings if lines]


def words(left):
    return f"{left} of {ddp_run.WORKERS} nodes go on"


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--modes", default="exact", help="as of ddp_compare.py")
    parser.add_argument("--faults", default="none,kill,stop")
    parser.add_argument("--lost", type=ddp_worker.ranks_of, default=[3], metavar="RANK,RANK", help="the workers")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--at", type=int, default=80, help="step of the first loss")
    parser.add_argument("--every", type=int, default=40, help="steps from one loss to the next")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, default=0.93)
    parser.add_argument("--score-every", type=int, default=5, help="steps")
    parser.add_argument("--timeout-s", type=int, default=5, help="RIFFLE_PEER_TIMEOUT where one is stopped")
    parser.add_argument("--limit-s", type=float, default=150, help="for one training")
    parser.add_argument("--set", action="append", default=[], metavar="RIFFLE_X=VALUE")
    parser.set_defaults(optimizer="sgd")
    return parser


def main():
    options, wrong = make_parser().parse_args(), 0
    for mode, fault in itertools.product(options.modes.split(","), options.faults.split(",")):
        has_losses = fault != "none"
        try:
            training = Losses(options, mode, fault if has_losses else "")
        except RuntimeError as error:
            print(f"{mode}, {fault}: {error}", flush=True)
            wrong += 1
            continue
        reached, others = training.reached(options.target), len(training.logs)
        has_all = all(step is not None for step in reached)
        said = training.errors()
        costs = ", ".join(f"{1e3 * cost:.0f}" for cost in training.costs_s())
        print(f"{mode}, {fault}: {options.target} reached by {others - reached.count(None)} of {others} others, by the "
              f"last after step {max(reached) if has_all else '-'}; at the end at least "
              f"{min(training.outcome.scores):.4f}; same weights: {training.is_same()}; "
              f"mode began before: {training.mode_began()}; noticed by {training.noticed()}; steps "
              f"{training.steps} took {costs} ms more; lost workers' exit codes {training.codes} {'; '.join(said)}",
              flush=True)
        if (not has_all or not training.mode_began() or training.noticed() != (others if has_losses else 0) or
                (training.mode in ("exact", "sparse") and not training.is_same()) or
                (fault == "stop" and (set(training.codes) != {1} or len(said) != len(options.lost)))):
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
