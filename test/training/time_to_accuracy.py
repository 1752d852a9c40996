"""Wall-clock time in which a training through the plugin reaches an accuracy, per mode, on an emulated
network. Trains once per seed and mode and writes <output>/<profile>-<mode>-<seed>.json; then prints what
all records in <output> say, and draws <output>/<profile>.svg. Modes can so be run one by one:

  time_to_accuracy.py --plugin SO --library SO --riffle RIFFLE --profile racks8 --modes exact --output DIR
  time_to_accuracy.py --plugin SO --library SO --riffle RIFFLE --profile racks8 --modes ds_sync --output DIR
  time_to_accuracy.py --output DIR                                            # the table again

The clock runs from the first step of the first worker, with the communicator connected, to the end of a
step of the last worker: computing and exchange, exact steps before a mode begins included. Start-up is
outside, and so is scoring, which is done after the last step. The accuracy is the mean of the workers' own
models on what they have not seen; the target counts as reached when two scores in a row reach it, at the
first of the two."""

import argparse
import collections
import itertools
import json
import math
import pathlib
import statistics
import tempfile

import ddp_compare
import ddp_run
import report
import simulate


RING = "ring"  # NCCL's own all-reduce over the plugin's NET


def compute_s(outcome):
    """What a step takes but for waiting for sums: of the worker for which it takes longest, the median
    over the steps. The workers share this machine's processors and disturb each other: no less than
    this."""
    steps = zip(*outcome.courses)
    return statistics.median(max(e["step_s"] - e["wait_s"] for e in entries) for entries in steps)


def not_throughout(mode, text):
    """What the nodes' logs say of a mode that never began, or ended; empty where it went on to the end, or
    nothing has to begin."""
    name = mode.partition("-")[0]
    if name in ("exact", RING) or not ddp_compare.uses_plugin(mode):
        return ""
    name = {"wire": "narrow"}.get(name, name)
    ended = [line for line in text.splitlines() if "exact from call" in line or f"{name} end" in line]
    if f"{name} from call" in text:
        return f"ended: {ended[-1]}" if ended else ""
    said = [line for line in text.splitlines() if name in line and "beg" in line]
    return f"never began, its sums were exact: {said[-1] if said else 'no node said why'}"


def plan_changes(text):
    """What node 0 said of them."""
    return [line for line in text.splitlines() if "predicted" in line and "instead of" in line]


def train(mode, seed, options):
    arguments = ["--task", options.task, "--seed", seed, "--steps", options.steps, "--bucket-bytes",
                 options.bucket_bytes, "--algorithm", "ring" if mode == RING else "collnet",
                 "--score-every", options.score_every]
    for name in ("batch", "rate"):
        if getattr(options, name) is not None:
            arguments += [f"--{name}", getattr(options, name)]
    arguments += ddp_compare.way_of(mode)
    environment = {} if mode == RING else ddp_compare.environment_of(mode, options)
    with tempfile.TemporaryDirectory() as folder:
        outcome = ddp_run.run(options.library, options.plugin, arguments,
                              {**environment, "RIFFLE_LOG_FILE": f"{folder}/%h-%p.log"}, options.workers,
                              options.limit_s, (options.riffle, options.profile, *options.cluster))
        text = "\n".join(file.read_text() for file in sorted(pathlib.Path(folder).iterdir()))
    scored = [i for i, entry in enumerate(outcome.courses[0]) if "score" in entry]
    curve = [{"step": i + 1, "seconds": round(outcome.seconds(i), 4),
              "score": statistics.fmean(course[i]["score"] for course in outcome.courses),
              "worst": min(course[i]["score"] for course in outcome.courses)} for i in scored]
    ends = [outcome.seconds(i) for i in range(options.steps)]
    settings = {"task": options.task, "steps": options.steps, "batch": options.batch,
                "rate": options.rate, "workers": options.workers, "cluster": options.cluster,
                "bucket_bytes": outcome.bucket_bytes, "environment": environment}
    return {"profile": options.profile, "mode": mode, "seed": seed, "settings": settings,
            "collnet_calls": outcome.collnet_calls, "not_throughout": not_throughout(mode, text),
            "plan_changes": plan_changes(text),
            "gradient_bytes": sum(outcome.bucket_bytes), "compute_s": compute_s(outcome),
            "times_smaller": outcome.times_smaller,
            "step_s": statistics.median(b - a for a, b in zip(ends, ends[1:])), "curve": curve}


def reached(record, target):
    """The point of the curve, or None."""
    for point, following in itertools.pairwise(record["curve"]):
        if point["score"] >= target and following["score"] >= target:
            return point
    return None


def ratios(runs, exact, target):
    """Of the seeds that both have: how many times as fast as exact each reached the target, whether some of
    these are only lower limits as exact never did, and how many seeds say nothing as neither did. A mode that
    never did is 0 times as fast."""
    found, is_limit, undecided = [], False, 0
    for seed in sorted(runs.keys() & exact.keys()):
        mine, theirs = reached(runs[seed], target), reached(exact[seed], target)
        if mine:
            found.append((theirs or exact[seed]["curve"][-1])["seconds"] / mine["seconds"])
            is_limit |= theirs is None
        elif theirs:
            found.append(0.0)
        else:
            undecided += 1
    return found, is_limit, undecided


# Student's t, 97.5 %, for 1 to 9 degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def interval(found):
    """Of the geometric mean of paired ratios: both ends that hold it with 95 %; None for fewer than
    two seeds, more than ten, or where a seed never came there."""
    if not 2 <= len(found) <= len(STUDENT) + 1 or min(found) <= 0:
        return None
    logarithms = [math.log(x) for x in found]
    half = STUDENT[len(found) - 2] * statistics.stdev(logarithms) / math.sqrt(len(found))
    mean = statistics.fmean(logarithms)
    return math.exp(mean - half), math.exp(mean + half)


def table(records, target):
    """One row per mode of one profile; ratios are of the seeds that both have, none of them left out without
    a word."""
    modes = collections.defaultdict(dict)
    for record in records:
        modes[record["mode"]][record["seed"]] = record
    exact = modes.get("exact", {})
    first, gradient_bytes = records[0], max(record["gradient_bytes"] for record in records)  # gloo's tell none
    print(f"\n{first['profile']}: {first['settings']['workers']} workers, gradients of "
          f"{gradient_bytes / (1 << 20):.2f} MiB, accuracy {target}\n")
    print("| mode | seeds | ms per step | of it computing at most, ms | part of exact's step | steps to "
          "target | seconds to target, median (worst) | times as fast, median (worst) | 95 % of the geometric mean | seeds that "
          "neither exact nor it brought there | accuracy, worst worker, at the end |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for mode, runs in sorted(modes.items(), key=lambda item: (item[0] != "exact", item[0])):
        points = {seed: reached(run, target) for seed, run in runs.items()}
        step, compute = (1e3 * statistics.median(run[key] for run in runs.values())
                         for key in ("step_s", "compute_s"))
        whole = 1e3 * statistics.median(run["step_s"] for run in exact.values()) if exact else None
        ends = [run["curve"][-1] for run in runs.values()]
        row = [mode, len(runs), f"{step:.0f}", f"{compute:.0f}",
               f"{100 * compute / whole:.0f} %" if whole else ""]
        if all(points.values()):
            seconds = [point["seconds"] for point in points.values()]
            row += [f"{statistics.median(p['step'] for p in points.values()):.0f}",
                    f"{statistics.median(seconds):.1f} ({max(seconds):.1f})"]
        else:
            row += ["", f"not reached by {sum(p is None for p in points.values())}"]
        found, is_limit, undecided = ratios(runs, exact, target)
        words = f"{statistics.median(found):.2f} ({min(found):.2f})" if found else ""
        ends95 = None if is_limit else interval(found)
        row += ["", "", ""] if mode == "exact" else [
            ("≥ " if is_limit else "") + words, "{:.2f} to {:.2f}".format(*ends95) if ends95 else "", undecided]
        row.append(f"{statistics.fmean(p['score'] for p in ends):.4f}, "
                   f"{min(p['worst'] for p in ends):.4f}")
        print("| " + " | ".join(map(str, row)) + " |")
    for record in records:
        if record.get("not_throughout"):
            print(f"\n{record['mode']} of seed {record['seed']} {record['not_throughout']}")
        if changes := len(record.get("plan_changes", ())):
            print(f"\n{record['mode']} of seed {record['seed']}: {changes} changes of plan")


def picture(records, target, file):
    """Accuracy over seconds, one line per training."""
    modes = sorted({r["mode"] for r in records}, key=lambda mode: (mode != "exact", mode))
    others = iter(report.OTHERS)
    colours = {mode: report.COLOURS.get(mode) or next(others, "#999999") for mode in modes}
    series = [(r["mode"], colours[r["mode"]], [(p["seconds"], p["score"]) for p in r["curve"]])
              for r in records]
    near = [(mode, colour, [(s, v) for s, v in points if v >= target - 0.05])
            for mode, colour, points in series]
    title = f"{records[0]['profile']}: accuracy over seconds, one line per training"
    body = [report.label(20, 22, title), report.panel(60, 64, "accuracy", series),
            report.panel(470, 64, f"from {target - 0.05:.2f} on; the target is {target}", near)]
    for i, mode in enumerate(modes):
        body.append(f'<rect x="{60 + 170 * i}" y="282" width="18" height="4" fill="{colours[mode]}"/>')
        body.append(report.label(84 + 170 * i, 288, mode))
    file.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 300" font-family='
                    f'"sans-serif" font-size="11"><title>{title}</title><rect width="830" '
                    'height="300" fill="white"/>' + "".join(body) + "</svg>\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder of records")
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--json", type=pathlib.Path, help="file for all records")
    parser.add_argument("--plugin", help="without it nothing is trained")
    parser.add_argument("--library")
    parser.add_argument("--riffle", help="the program, for `riffle cluster`")
    parser.add_argument("--profile", default="racks8")
    parser.add_argument("--workers", type=int, default=ddp_run.WORKERS, help="nodes of the profile")
    parser.add_argument("--modes", default="exact", help=f"as of ddp_compare.py, or {RING}")
    parser.add_argument("--seeds", type=simulate.seeds, default=range(1), metavar="FIRST-LAST")
    parser.add_argument("--task", default="digits-wide")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, help="of one worker; default: the task's")
    parser.add_argument("--rate", type=float, help="learning rate; default: the task's")
    parser.add_argument("--score-every", type=int, default=5, help="steps")
    parser.add_argument("--bucket-bytes", type=int, default=1 << 20)
    parser.add_argument("--set", action="append", default=[], metavar="RIFFLE_X=VALUE")
    parser.add_argument("--neighbour", action="store_true", help="with the profile's foreign flow")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control of all sockets between nodes")
    parser.add_argument("--limit-s", type=float, default=560, help="for one training")
    options = parser.parse_args()
    options.optimizer = "sgd"
    options.cluster = ["--congestion", options.congestion, *(["--neighbour"] if options.neighbour else [])]
    if options.plugin and not (options.library and options.riffle):
        parser.error("--plugin: --library and --riffle must be given too")
    return options


def main():
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    for seed, mode in itertools.product(options.seeds if options.plugin else (),
                                        options.modes.split(",")):
        record = train(mode, seed, options)
        file = options.output / f"{options.profile}-{mode}-{seed}.json"
        file.write_text(json.dumps(record, indent=1) + "\n")
    profiles = collections.defaultdict(list)
    for file in sorted(options.output.glob("*.json")):
        record = json.loads(file.read_text())
        profiles[record["profile"]].append(record)
    for profile, records in sorted(profiles.items()):
        table(records, options.target)
        picture(records, options.target, options.output / f"{profile}.svg")
    if options.json:
        options.json.write_text(json.dumps([record for records in profiles.values() for record in records]))


if __name__ == "__main__":
    main()
