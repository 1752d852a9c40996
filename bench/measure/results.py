"""bench/results/<area>.json: every raw row of the last measurement of each run, and what follows from
them for each figure."""
import json
import math
import re
import statistics

from table import ROOT, Before, Output

SCHEMA = "riffle-measure-1"
FOLDER = ROOT / "bench" / "results"

HOLDS, BELOW, FAILED = "holds", "below limit", "failed"
MEASURED = "measured"  # a figure without a limit
NOT_MEASURED, NOT_HERE, NOT_REPEATED = "not measured", "not measured here", "not repeated"

# Of the processors, what others may use before a repetition without a word on the page.
MOST_BUSY = 0.25
USUAL_CORES = 2  # of the machines on which most is measured
MOST_LOAD = 0.75  # the load average per processor, where nothing better was kept


def load_runs(name, folder=FOLDER):
    file = folder / f"{name}.json"
    if not file.exists():
        return {}
    content = json.loads(file.read_text())
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{file} has schema {content.get('schema')}; {SCHEMA} is read")
    return content["runs"]


def rows_of(kept):
    return [row for entry in kept["repeats"] for row in entry.get("rows", [])]


def origin(kept):
    """(The oldest date, all commits) of what was measured: rows that say when they were may be of an earlier
    run."""
    rows = [row for row in rows_of(kept) if "date" in row and "commit" in row] or [kept]
    return min(row["date"] for row in rows), ", ".join(sorted({row["commit"] for row in rows}))


def load_doubt(kept):
    """What others did on the machine before a repetition, if it was much."""
    repeats = kept["repeats"]
    if busy := [entry["busy_before"] for entry in repeats + rows_of(kept) if "busy_before" in entry]:
        return [f"{100 * max(busy):.0f} % busy"] if max(busy) > MOST_BUSY else []
    load = max((entry["load_before"] for entry in repeats if "load_before" in entry), default=0)
    return [f"load {load:.0f}"] if load > MOST_LOAD * kept["machine"].get("cores", 1) else []


def cores(machine):
    usable, whole = machine["cores"], machine.get("machine_cores", machine["cores"])
    return f"{usable} of {whole}" if usable < whole else str(usable)


def machine_doubt(kept):
    """Where other processors than the usual two may have made the figure."""
    machine = kept["machine"]
    return [f"on {cores(machine)}"] if machine.get("cores", USUAL_CORES) != USUAL_CORES else []


def is_open(figure, values, repeats):
    """Whether the limit lies within what a single repetition leaves open."""
    found = spread_of(figure, values, repeats) if figure.limit and len(values) == 1 else None
    return bool(found) and len({figure.limit.holds(end) for end in found}) > 1


def is_older(entry):
    """Its rows took longer than the command that has them: it found them in a file."""
    return sum(row.get("seconds", 0) for row in entry.get("rows", [])) > 1.05 * entry.get("seconds", math.inf)


def doubts(run, figure, kept):
    """What a figure may owe to something else than the code of that commit; empty: nothing is known."""
    found = ["uncommitted"] if "+changes" in origin(kept)[1] else []
    if any(map(is_older, kept["repeats"])):
        found.append("older")
    if figure.unit == "passes" or not run.is_timed:
        return found
    if any(row.get("plan_changes") for row in rows_of(kept) if row.get("schema") == "riffle-bench-1"):
        found.append("plan changed")
    return found + load_doubt(kept) + machine_doubt(kept)


def spread_of(figure, values, repeats):
    """Of the repetitions, or within a single one, where that can be told."""
    if len(values) > 1:
        return min(values), max(values)
    if figure.spread:
        entry = repeats[0]
        return figure.spread(Output(entry["exit"], entry.get("seconds", 0), entry.get("text", ""), entry.get("rows", [])))
    return None


def result_of(figure, values, repeats):
    """The median, the range where there is one, and what is missing of it."""
    shown = figure.shown(statistics.median(values))
    if found := spread_of(figure, values, repeats):
        shown += " ({} to {})".format(*map(figure.shown, found))
    lacking = len(repeats) - len(values)
    return shown + (f"; {lacking} of {len(repeats)} failed" if lacking else "")


def status_of(figure, values, repeats):
    """A repetition without the figure is one that failed, whatever the others show."""
    if len(values) < len(repeats):
        return FAILED
    if figure.unit == "passes":
        return HOLDS if all(values) else FAILED
    if figure.limit is None:
        return MEASURED
    return HOLDS if all(figure.limit.holds(value) for value in values) else BELOW


def is_before(entry):
    """The repetition went well, of an area that did not ask for all of today's figures."""
    return entry["exit"] == 0 and bool(entry["figures"])


def row_of(run, figure, kept):
    """`kept`: what is known of the run, or None."""
    row = {"claim": figure.claim, "run": run.name, "command": run.command, "unit": figure.unit,
           "limit": figure.limit.text(figure) if figure.limit else ""}
    repeats = kept["repeats"] if kept else []
    values = [r["figures"][figure.claim] for r in repeats if figure.claim in r["figures"]]
    if values or not all(is_before(r) for r in repeats):
        if values:
            row |= {"values": values, "median": statistics.median(values), "min": min(values), "max": max(values)}
        date, commit = origin(kept)
        row |= {"result": result_of(figure, values, repeats) if values else "",
                "date": date, "commit": commit, "status": status_of(figure, values, repeats)}
        if is_open(figure, values, repeats):
            row["is_open"] = True
        doubtful = doubts(run, figure, kept)
        return row | ({"doubts": doubtful} if doubtful else {})
    if figure.before:
        return row | {"result": figure.before.text, "date": figure.before.date,
                      "source": Before.SOURCE, "status": NOT_REPEATED}
    return row | {"result": "", "date": "", "status": NOT_HERE if kept and not repeats else NOT_MEASURED}


def content_of(area, runs):
    """Of runs that the area no longer has, or has with another command, nothing is kept."""
    kept = {run.name: runs[run.name] for run in area.runs
            if runs.get(run.name, {}).get("command") == run.command}
    return {"schema": SCHEMA, "area": area.name, "title": area.title, "about": area.about,
            "rows": [row_of(run, f, kept.get(run.name)) for run in area.runs for f in run.figures],
            "runs": kept}


def in_short(text):
    """What holds nothing but values on one line, where it fits or has numbers alone."""
    def line(found):
        one = re.sub(r"\s*\n\s*", " ", found[0])
        one = one[0] + one[1:-1].strip() + one[-1]
        return one if len(one) <= 160 or found[0][0] == "[" else found[0]
    text = re.sub(r"\[\n[^\[\]{}\"]*\]", line, text)
    return re.sub(r"\{\n[^\[\]{}]*\}", line, text)


def as_text(content):
    """Paths are those of any clone: relative to its root."""
    text = in_short(json.dumps(content, indent=1, ensure_ascii=False)) + "\n"
    whole = r"(?<![\w./-])" + re.escape(str(ROOT))  # not the end of another path
    return re.sub(whole + r"(?![\w./-])", ".", re.sub(whole + "/", "", text))


def save(area, runs, folder=FOLDER):
    folder.mkdir(exist_ok=True)
    file = folder / f"{area.name}.json"
    new = file.with_suffix(".new")
    new.write_text(as_text(content_of(area, runs)))
    new.replace(file)
