#!/usr/bin/env python3
"""What run_all_reduce.sh measured: a table, rows as JSON, and a drawing.

usage: all_reduce_table.py FOLDER RIFFLE

FOLDER has with-N.txt and without-N.txt, the output of all_reduce_perf; it gets table.txt, rows.json
and all_reduce.svg (drawn by the riffle command RIFFLE). Exit code 1 if any element was wrong.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys

PLACES = ("out", "in")  # out of place, in place
HEAD = ("size", "type", "place", "NCCL us", "Riffle us", "gain", "bound us", "NCCL x", "Riffle x", "spread us",
        "wrong", "plan")


def lines_of(path):
    """Both halves of every line of a table, by size, type and place."""
    found = {}
    for line in path.read_text(errors="replace").splitlines():
        words = line.split()
        if len(words) < 13 or not words[0].isdigit() or not words[1].isdigit():
            continue
        size, kind = int(words[0]), words[2]
        # Riffle's columns, where all_reduce_perf is patched: bound, twice x bound, twice spread, plan.
        more = words[13:]
        for n, place in enumerate(PLACES):
            time, _, bus, wrong = words[5 + 4 * n:9 + 4 * n]
            found[size, kind, place] = {
                "us": float(time), "busbw": float(bus), "wrong": 0 if wrong == "N/A" else float(wrong),
                "bound_us": float(more[0]) if len(more) > 5 and more[0] != "-" else None,
                "spread_us": float(more[3 + n]) if len(more) > 5 else None,
                "plan": " ".join(more[5:]) if len(more) > 5 else None}
    return found


def runs(folder, name):
    paths = sorted(folder.glob(f"{name}-*.txt"))
    if not paths:
        sys.exit(f"{folder} has no {name}-1.txt")
    return [lines_of(path) for path in paths]


def median(lines, key):
    values = [line[key] for line in lines if line[key] is not None]
    return statistics.median(values) if values else None


def rows_of(folder):
    with_riffle, without = runs(folder, "with"), runs(folder, "without")
    keys = list(with_riffle[0])
    if not keys:
        sys.exit(f"{folder}/with-1.txt has no line of a table")
    rows = []
    for key in keys:
        ours = [run[key] for run in with_riffle if key in run]
        theirs = [run[key] for run in without if key in run]
        if not theirs:
            sys.exit(f"{folder}: without Riffle there is no line for {key[0]} bytes, {key[1]}, {key[2]}")
        row = dict(zip(("bytes", "type", "place"), key))
        row["nccl_us"], row["riffle_us"] = median(theirs, "us"), median(ours, "us")
        row["nccl_busbw"], row["riffle_busbw"] = median(theirs, "busbw"), median(ours, "busbw")
        row["bound_us"], row["spread_us"] = median(ours, "bound_us"), median(ours, "spread_us")
        row["wrong"] = sum(line["wrong"] for line in ours + theirs)
        row["plan"] = ours[-1]["plan"]
        row["rounds_us"] = {"nccl": [line["us"] for line in theirs], "riffle": [line["us"] for line in ours]}
        rows.append(row)
    return rows


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def ratio(over, under):
    return over / under if over is not None and under else None


def table(rows):
    text = [HEAD]
    for row in rows:
        bound = row["bound_us"]
        text.append((str(row["bytes"]), row["type"], row["place"], number(row["nccl_us"], 1),
                     number(row["riffle_us"], 1), number(ratio(row["nccl_us"], row["riffle_us"]), 2),
                     number(bound, 1), number(ratio(row["nccl_us"], bound), 2),
                     number(ratio(row["riffle_us"], bound), 2), number(row["spread_us"], 1),
                     f"{row['wrong']:g}", row["plan"] or "-"))
    widths = [max(len(line[n]) for line in text) for n in range(len(HEAD))]
    return "".join("  ".join(word.ljust(width) if n == len(HEAD) - 1 else word.rjust(width)
                             for n, (word, width) in enumerate(zip(line, widths))).rstrip() + "\n"
                   for line in text)


def chart(rows):
    """Bus bandwidth over the size, out of place; the bound as the bandwidth that it allows."""
    rows = [row for row in rows if row["place"] == "out" and row["type"] == rows[0]["type"]]

    def points(key):
        return [[math.log2(row["bytes"]), row[key]] for row in rows if row[key] is not None and row["bytes"] > 0]

    for row in rows:
        slower = ratio(row["riffle_us"], row["bound_us"])
        row["bound_busbw"] = slower and row["riffle_busbw"] * slower
    series = [{"name": "NCCL alone", "paint": "brown", "points": points("nccl_busbw")},
              {"name": "with Riffle", "paint": "blue", "points": points("riffle_busbw")}]
    if points("bound_busbw"):
        series.append({"name": "bound of exact sums", "paint": "grey", "points": points("bound_busbw"), "dashed": True})
    return {"title": "all_reduce_perf, bus bandwidth", "x": {"before": "2^", "after": " bytes"},
            "left": {"after": " GB/s"}, "series": series}


def main():
    folder, riffle = pathlib.Path(sys.argv[1]), sys.argv[2]
    rows = rows_of(folder)
    text = table(rows)
    (folder / "table.txt").write_text(text)
    (folder / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    svg = subprocess.run([riffle, "draw", "lines"], input=json.dumps(chart(rows)), capture_output=True, text=True,
                         check=False)
    if svg.returncode != 0:
        sys.exit(f"riffle draw: {svg.stderr.strip()}")
    (folder / "all_reduce.svg").write_text(svg.stdout)
    print(text, end="")
    print(f"{folder}/table.txt, rows.json, all_reduce.svg")
    wrong = sum(row["wrong"] for row in rows)
    if wrong:
        sys.exit(f"{wrong:g} wrong elements: see the lines of {folder}/*.txt")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
