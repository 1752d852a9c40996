"""Compares what simulate.py and ddp_compare.py have written: a table in Markdown on the standard
output, and with --curves DIR one picture per task. Simulation and plugin are never mixed: every line
and picture says which it is.

  report.py --curves docs docs/training-data/*.json"""

import argparse
import collections
import json
import math
import pathlib
import sys

import numpy as np
from scipy import stats

COLOURS = {"exact": "#444444", "ds_sync": "#2a78d6", "moshpit": "#c9892b", "shadow_sync": "#3a9a5b"}
OTHERS = ("#8a4fb8", "#b8434f", "#4fa3a8", "#8a8f98", "#b0a030")
IN_A_ROW = 6  # names under a picture
SOURCES = {"simulation": "simulation in one process", "plugin": "through the plugin",
           "sparse simulation": "sums of the sparse library, simulated in one process"}
NEAR = 0.5  # points of accuracy, per cent of a loss


def by_seed(record):
    """Per seed: the score of the workers' own models, the worst of them, and that of their mean;
    folds weigh by what was tested on them."""
    parts = collections.defaultdict(list)
    for run in record["runs"]:
        parts[run["seed"]].append(run)
    worst = max if record["score"] == "validation loss" else min
    found = {}
    for seed, runs in parts.items():
        tested = [run["tested"] for run in runs]
        workers = np.average([run["scores"] for run in runs], axis=0, weights=tested)
        found[seed] = (float(workers.mean()), float(worst(workers)),
                       float(np.average([run["score_of_mean"] for run in runs], weights=tested)))
    return found


def losses(record, exact):
    """Per seed what the mode loses against exact, positive is worse: points of accuracy, or per cent
    of the validation loss."""
    mine, theirs = by_seed(record), by_seed(exact)
    seeds = sorted(set(mine) & set(theirs))
    if record["score"] == "validation loss":
        return np.array([100 * (mine[s][0] / theirs[s][0] - 1) for s in seeds])
    return np.array([100 * (theirs[s][0] - mine[s][0]) for s in seeds])


def upper_limit(values):
    """One-sided 95 % upper confidence limit of the mean (Student's t); nan for fewer than 2 values."""
    if len(values) < 2:
        return math.nan
    return float(values.mean() + stats.t.ppf(0.95, len(values) - 1) *
                 values.std(ddof=1) / math.sqrt(len(values)))


def steps_to_near(record, exact):
    """Until the mean over all runs is first as good as exact training is in the end, but for NEAR."""
    end = exact["curve"][-1]["score"]
    if record["score"] == "validation loss":
        near = [p["step"] for p in record["curve"] if p["score"] <= end * (1 + NEAR / 100)]
    else:
        near = [p["step"] for p in record["curve"] if p["score"] >= end - NEAR / 100]
    return near[0] if near else "not reached"


def sparse_table(group, exact, text, unit):
    """All workers have the same weights, but not every mode the same number of steps."""
    print(f"\n{exact['task']}, {exact['optimizer']}, {SOURCES[exact['source']]}: {exact['workers']} "
          "workers\n")
    print(f"| mode | steps | {exact['score']} | worse than exact, {unit} | 95 % upper limit | steps to "
          f"within {NEAR} {unit} of exact's end | paired seeds |")
    print("|---|---|---|---|---|---|---|")
    for record in group:
        own, lost = np.mean([s[0] for s in by_seed(record).values()]), losses(record, exact)
        score = f"{own:.4f}" if text else f"{100 * own:.2f} %"
        limit = f"{upper_limit(lost):+.2f}" if len(lost) > 1 else ""
        compared = "| |" if record is exact else f"{lost.mean():+.2f} | {limit} |"
        print(f"| {record['mode']} | {record['settings']['steps']:,} | {score} | {compared} "
              f"{steps_to_near(record, exact)} | {len(lost)} |")


def table(group):
    exact = next((r for r in group if r["mode"] == "exact"), None)
    if exact is None:
        raise SystemExit(f"report.py: no record of mode exact for {group[0]['task']}, "
                         f"{group[0]['optimizer']}, {group[0]['source']}")
    text = exact["score"] == "validation loss"
    unit = "%" if text else "points"
    if exact["source"] == "sparse simulation":
        return sparse_table(group, exact, text, unit)
    print(f"\n{exact['task']}, {exact['optimizer']}, {SOURCES[exact['source']]}: {exact['workers']} "
          f"workers, {exact['settings']['steps']} steps\n")
    print(f"| mode | {exact['score']} | worst worker | mean of the weights | worse than exact, {unit}"
          " | 95 % upper limit | deviation at the end | paired seeds |")
    print("|---|---|---|---|---|---|---|---|")
    for record in group:
        own, worst, joint = np.mean(list(by_seed(record).values()), axis=0)
        score = (lambda v: f"{v:.4f}") if text else (lambda v: f"{100 * v:.2f} %")
        lost, deviation = losses(record, exact), record["curve"][-1]["deviation"]
        compared = ("", "") if record is exact else (f"{lost.mean():+.2f}",
                                                     f"{upper_limit(lost):+.2f}")
        print(f"| {record['mode']} | {score(own)} | {score(worst)} | {score(joint)} | "
              f"{compared[0]} | {compared[1]} | {0 if record is exact else deviation:.2g} | "
              f"{len(by_seed(record)) if record is exact else len(lost)} |")


def label(x, y, words, anchor="start", fill="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{words}</text>'


def panel(left, top, title, series, logarithmic=False, log_steps=False):
    """One diagram of 400 x 220: (name, colour, [(step or second, value)]) in `series`."""
    width, height = 330, 180
    values = [v for _, _, points in series for _, v in points if not logarithmic or v > 0]
    if not values:
        return ""
    scale = math.log10 if logarithmic else float
    low, high = min(map(scale, values)), max(map(scale, values))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    steps = [s for _, _, points in series for s, _ in points]
    first, last = min(steps) if log_steps else 0, max(steps)

    def across(step):
        part = math.log(step / first, last / first) if log_steps else step / last
        return left + width * part

    out = [label(left, top - 8, title)]
    for part in (0, 0.5, 1):
        y = top + height * (1 - part)
        value = low + (high - low) * part
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(label(left - 6, y + 4, f"{10 ** value if logarithmic else value:.3g}", "end"))
    for step in (first, math.sqrt(first * last) if log_steps else last / 2, last):
        out.append(label(across(step), top + height + 16, f"{step:.0f}", "middle"))
    for _, colour, points in series:
        line = " ".join(f"{across(s):.1f},"
                        f"{top + height * (1 - (scale(v) - low) / (high - low)):.1f}"
                        for s, v in points if not logarithmic or v > 0)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return "".join(out)


def curves(group, folder):
    first = group[0]
    others = iter(OTHERS)
    colour = {r["mode"]: COLOURS.get(r["mode"]) or next(others, "#999999") for r in group}
    title = f"{first['task']}, {first['optimizer']}: {SOURCES[first['source']]}"

    def series(key, skip=()):
        return [(r["mode"], colour[r["mode"]], [(p["step"], p[key]) for p in r["curve"] if key in p])
                for r in group if r["mode"] not in skip]

    sparse = first["source"] == "sparse simulation"
    steps = "steps to the right" + (", logarithmic" if sparse else "")
    body = [label(20, 22, f"{title}, mean over all runs; {steps}"),
            panel(60, 64, f"{first['score']}, mean of the workers", series("score"),
                  log_steps=sparse),
            panel(470, 64, "loss of the batches" + (" (logarithmic)" if sparse else ""),
                  series("loss"), logarithmic=sparse, log_steps=sparse)]
    if not sparse:
        body.append(panel(880, 64, "deviation of the weights, squared (logarithmic)",
                          series("deviation", ("exact",)), logarithmic=True))
    for i, record in enumerate(group):
        x, y = 60 + 190 * (i % IN_A_ROW), 282 + 16 * (i // IN_A_ROW)
        body.append(f'<rect x="{x}" y="{y}" width="18" height="4" fill="{colour[record["mode"]]}"/>')
        body.append(label(x + 24, y + 6, record["mode"]))
    height = 300 + 16 * ((len(group) - 1) // IN_A_ROW)
    workers = f"-{first['workers']}-workers" if first["workers"] != 8 else ""
    name = f"training-{first['task']}-{first['optimizer']}-{first['source'].replace(' ', '-')}{workers}.svg"
    (folder / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1230 {height}" '
        f'font-family="sans-serif" font-size="11"><title>{title}</title>'
        f'<rect width="1230" height="{height}" fill="white"/>'
        + "".join(body) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=pathlib.Path)
    parser.add_argument("--curves", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    groups = collections.defaultdict(list)
    for file in options.records:
        record = json.loads(file.read_text())
        groups[record["source"], record["task"], record["optimizer"], record["workers"]].append(record)
    for _, group in sorted(groups.items()):
        group.sort(key=lambda r: (r["mode"] != "exact", r["mode"]))
        table(group)
        if options.curves:
            curves(group, options.curves)


if __name__ == "__main__":
    sys.exit(main())
