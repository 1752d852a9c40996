"""bench/results/<area>.json: every raw row of the last measurement of each run, and what follows from
them for each figure."""
import json
import re
import statistics

from table import ROOT, Before

SCHEMA = "riffle-measure-1"
FOLDER = ROOT / "bench" / "results"

HOLDS, BELOW, FAILED = "holds", "below limit", "failed"
MEASURED = "measured"  # a figure without a limit
NOT_HERE, NOT_REPEATED = "not measured here", "not repeated"


def load_runs(name, folder=FOLDER):
    file = folder / f"{name}.json"
    if not file.exists():
        return {}
    content = json.loads(file.read_text())
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{file} has schema {content.get('schema')}; {SCHEMA} is read")
    return content["runs"]


def row_of(run, figure, kept):
    """`kept`: what is known of the run, or None."""
    row = {"claim": figure.claim, "run": run.name, "command": run.command, "unit": figure.unit,
           "limit": figure.limit.text(figure) if figure.limit else ""}
    repeats = kept["repeats"] if kept else []
    values = [r["figures"][figure.claim] for r in repeats if figure.claim in r["figures"]]
    if values:
        median = statistics.median(values)
        shown = figure.shown(median)
        if len(values) > 1:
            shown += f" ({figure.shown(min(values))} to {figure.shown(max(values))})"
        good = figure.limit is None or all(figure.limit.holds(v) for v in values)
        status = MEASURED if figure.limit is None else HOLDS if good else BELOW
        if figure.unit == "passes":
            status = HOLDS if all(values) else FAILED
        return row | {"values": values, "median": median, "min": min(values), "max": max(values),
                      "result": shown, "date": kept["date"], "commit": kept["commit"],
                      "status": status}
    if repeats:
        return row | {"result": "", "date": kept["date"], "commit": kept["commit"], "status": FAILED}
    if figure.before:
        return row | {"result": figure.before.text, "date": figure.before.date,
                      "source": Before.SOURCE, "status": NOT_REPEATED}
    return row | {"result": "", "date": "", "status": NOT_HERE}


def content_of(area, runs):
    """Of runs that the area no longer has, or has with another command, nothing is kept."""
    kept = {run.name: runs[run.name] for run in area.runs
            if runs.get(run.name, {}).get("command") == run.command}
    return {"schema": SCHEMA, "area": area.name, "title": area.title, "about": area.about,
            "rows": [row_of(run, f, kept.get(run.name)) for run in area.runs for f in run.figures],
            "runs": kept}


def as_text(content):
    """Paths are those of any clone: relative to its root."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    whole = r"(?<![\w./-])" + re.escape(str(ROOT))  # not the end of another path
    return re.sub(whole + r"(?![\w./-])", ".", re.sub(whole + "/", "", text))


def save(area, runs, folder=FOLDER):
    folder.mkdir(exist_ok=True)
    file = folder / f"{area.name}.json"
    new = file.with_suffix(".new")
    new.write_text(as_text(content_of(area, runs)))
    new.replace(file)
