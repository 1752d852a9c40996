"""Trainings of 8 DDP workers through the plugin of which one is lost in mid-step (killed, or stopped
and woken at the end) while the others go on (RIFFLE_ON_LOSS=continue), beside one without a loss:

  ddp_loss.py --plugin SO --library SO --modes exact,ds_sync,moshpit,shadow_sync,sparse-0.05

Per training it prints: how many survivors reach the target and after which step the last of them has
it, the least accuracy at the end, whether the survivors have the same weights, what the loss cost, and
what the lost worker said. Exits with 1 if a survivor fails or misses the target, if survivors of an
exact or sparse training differ, or if the mode had not begun before the loss."""

import argparse
import itertools
import statistics
import sys

import numpy as np

import ddp_compare
import ddp_run

MODE_BEGINS = {"ds_sync": "ds_sync from call", "moshpit": "moshpit from call",
               "shadow_sync": "shadow_sync from call", "sparse": "sparse from call"}


class Loss:
    """One training that loses a worker, if `fault` says so: what the others left, as of
    ddp_run.run_with_loss()."""

    def __init__(self, options, mode, fault):
        arguments = ["--task", "digits-mlp", "--steps", options.steps, "--rate", options.rate,
                     "--seed", options.seed, "--algorithm", "collnet", "--fault", fault,
                     "--fault-step", options.at, "--score-every", options.score_every,
                     "--bucket-bytes", 8 << 10 if mode == "exact" else 1 << 20]
        environment = dict(ddp_compare.environment_of(mode, options), RIFFLE_ON_LOSS="continue",
                           NCCL_DEBUG="INFO")
        if fault == "stop":  # who is killed is noticed at once
            environment["RIFFLE_PEER_TIMEOUT"] = str(options.timeout_s)
        environment.setdefault("RIFFLE_WARMUP_STEPS", "4")
        environment.setdefault("RIFFLE_SPARSE_RAMP", "12")
        self.mode, self.at = mode.partition("-")[0], options.at
        self.outcome, self.logs, self.code, self.last_words = ddp_run.run_with_loss(
            options.library, options.plugin, arguments, environment, options.lost,
            limit_s=options.limit_s)

    def reached(self, target):
        """Per survivor the first step, counted from 1, that it ended with the target's accuracy."""
        return [next((entry["step"] + 1 for entry in course
                      if entry.get("score", 0) >= target), None) for course in self.outcome.courses]

    def is_same(self):
        weights = self.outcome.weights.view(np.uint32)
        return bool((weights == weights[0]).all())

    def cost_s(self):
        """Of the step of the loss, more than others take: the survivor that it cost most."""
        return max(course[self.at]["step_s"] - statistics.median(e["step_s"] for e in course)
                   for course in self.outcome.courses)

    def noticed(self):
        """Survivors that said so."""
        return sum("7 of 8 nodes go on" in log for log in self.logs)

    def mode_began(self):
        """Before the loss: node 0 says so, or the lowest survivor."""
        if self.mode == "exact":
            return True
        before, _, _ = self.logs[0].partition("7 of 8 nodes go on")
        return MODE_BEGINS[self.mode] in before

    def error(self):
        """The lost worker's own, if it was woken."""
        warnings = [line for line in self.last_words.splitlines() if "excluded" in line]
        return warnings[0].partition("Riffle: ")[2] if warnings else ""


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--modes", default="exact", help="as of ddp_compare.py")
    parser.add_argument("--faults", default="none,kill,stop")
    parser.add_argument("--lost", type=int, default=3, help="the worker")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--at", type=int, default=80, help="step of the loss")
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
        lost = fault != "none"
        try:
            training = Loss(options, mode, fault if lost else "")
        except RuntimeError as error:
            print(f"{mode}, {fault}: {error}", flush=True)
            wrong += 1
            continue
        reached = training.reached(options.target)
        has_all = all(step is not None for step in reached)
        said = training.error()
        print(f"{mode}, {fault}: {options.target} reached by {7 - reached.count(None)} of 7 others, by the last "
              f"after step {max(reached) if has_all else '-'}; at the end at least "
              f"{min(training.outcome.scores):.4f}; same weights: {training.is_same()}; "
              f"mode began before: {training.mode_began()}; noticed by {training.noticed()}; step "
              f"{options.at} took {1e3 * training.cost_s():.0f} ms more; lost worker's exit code "
              f"{training.code} {said}", flush=True)
        if (not has_all or not training.mode_began() or training.noticed() != (7 if lost else 0) or
                (training.mode in ("exact", "sparse") and not training.is_same()) or
                (fault == "stop" and (training.code != 1 or not said))):
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
