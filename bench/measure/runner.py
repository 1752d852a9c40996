"""scripts/measure: runs the performance suite, area by area, and keeps every row.

  scripts/measure                      all areas, without their long runs
  scripts/measure exact losses         two of them
  scripts/measure build:fresh-clone    one run, long or not
  scripts/measure gpu:training --from F  what its command wrote on another machine
  scripts/measure --list               areas, runs, minutes
  scripts/measure --render             docs/performance.md from bench/results/*.json

Every run is saved when it ends, so a measurement that was stopped goes on with --resume. Measure on a
machine that does nothing else: what others use of it before every repetition is kept beside its rows, and
the page says so where it is much."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import page
import results
import table

KEPT_TEXT = 6000  # characters of a run's output, from its end


def environment():
    """The caller's, without settings that would change what is measured."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("RIFFLE_", "NCCL_"))}


def shell(command, limit_s):
    """(exit status, text, seconds); what it has started ends with it."""
    start = time.monotonic()
    process = subprocess.Popen(["bash", "-c", command], cwd=table.ROOT, env=environment(), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, errors="replace", start_new_session=True)
    try:
        text, _ = process.communicate(timeout=limit_s)
    except BaseException as trouble:
        os.killpg(process.pid, signal.SIGTERM)
        text, _ = process.communicate()
        if not isinstance(trouble, subprocess.TimeoutExpired):
            raise
        text += f"\nstopped after {limit_s} s\n"
        return 124, text, time.monotonic() - start
    return process.returncode, text, time.monotonic() - start


def repetition(run, command):
    """One entry of "repeats"."""
    with tempfile.TemporaryDirectory(prefix="riffle-measure-") as folder:
        places = {"{json}": f"{folder}/rows1.json", "{json2}": f"{folder}/rows2.json", "{tmp}": folder}
        for place, path in places.items():
            command = command.replace(place, path)
        if run.prepare:
            status, text, _ = shell(run.prepare.replace("{tmp}", folder), run.limit_s)
            if status != 0:
                return {"exit": status, "seconds": 0, "figures": {}, "text": text[-KEPT_TEXT:]}
        load, busy = os.getloadavg()[0], machine.busy()
        status, text, seconds = shell(command, run.limit_s)
        rows = table.read_rows(pathlib.Path(folder))
    figures = figures_of(run, table.Output(status, seconds, text, rows))
    entry = {"exit": status, "seconds": round(seconds, 3), "load_before": round(load, 2),
             "busy_before": round(busy, 2), "figures": figures}
    return entry | ({"rows": rows} if rows else {}) | {"text": text[-KEPT_TEXT:]}


def is_right(out):
    """Whether it ended well and printed no row with a wrong result."""
    return out.exit == 0 and not any(row.get("wrong") or row.get("off_wire") for row in out.rows)


def figures_of(run, out):
    figures = {}
    for figure in run.figures:
        if figure.unit != "passes" and not is_right(out):
            continue
        try:
            figures[figure.claim] = figure.value(out)
        except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError) as trouble:
            print(f"  no figure for \"{figure.claim}\": {trouble}")
    return figures


def taken_in(run, file):
    """What is kept of a run from the file that its command wrote, here or elsewhere: one document, which says
    when, where and at which commit it was measured."""
    document = json.loads(file.read_text())
    if lacking := [key for key in ("schema", "commit", "date", "machine") if key not in document]:
        raise LookupError(f"{file} has no {', '.join(lacking)}: it was not written by \"{run.command}\"")
    figures = figures_of(run, table.Output(0, 0, "", [document]))
    if not figures:
        raise LookupError(f"{file} has no figure of run {run.name}")
    return {"command": run.command, **{key: document[key] for key in ("commit", "date", "machine")},
            "repeats": [{"exit": 0, "figures": figures, "rows": [document]}]}


def missing(run):
    return [program for program in run.needs if not shutil.which(program)]


def header(run):
    return {"command": run.command, "commit": machine.commit(),
            "date": datetime.date.today().isoformat(), "machine": machine.describe(), "repeats": []}


def measure(area, run, options):
    """What is kept of the run; where it cannot be measured here, that."""
    command = run.quick or run.command if options.quick else run.command
    print(f"{area.name}:{run.name}: {command}", flush=True)
    if lacking := missing(run):
        print(f"  not measured here: {', '.join(lacking)} missing")
        return header(run) | {"missing": lacking}
    kept = header(run)
    for _ in range(1 if options.quick else options.repeat or run.repeat):
        entry = repetition(run, command)
        kept["repeats"].append(entry)
        for figure in run.figures:
            if figure.claim in entry["figures"]:
                print(f"  {figure.claim}: {figure.shown(entry['figures'][figure.claim])}")
        if entry["exit"] != 0:
            print(f"  exit status {entry['exit']}\n{entry['text'][-1000:]}")
        sys.stdout.flush()
    return kept


def is_done(run, kept, options):
    return (kept is not None and kept["command"] == run.command
            and kept["commit"] == machine.commit()
            and len(kept["repeats"]) >= (options.repeat or run.repeat)
            and all(entry["exit"] == 0 for entry in kept["repeats"]))


def is_news(measured, kept, run):
    """That it cannot be measured here takes the place of no measurement."""
    is_kept = kept is not None and kept["command"] == run.command and kept["repeats"]
    return bool(measured["repeats"]) or not is_kept


def build(area):
    if not area.targets:
        return
    if not (table.ROOT / "build" / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=table.ROOT, check=True)
    subprocess.run(["cmake", "--build", "build", "--target", *area.targets], cwd=table.ROOT, check=True)


def runs_of(area, chosen, is_named):
    """Of those that are chosen by name; else all but the long ones, unless the area has no others and is named."""
    if chosen:
        return [run for run in area.runs if run.name in chosen]
    return [run for run in area.runs if not run.is_long] or (area.runs if is_named else [])


def measure_area(area, chosen, options):
    """chosen: names of runs, perhaps none. Returns whether all ran well."""
    if chosen and (unknown := set(chosen) - {run.name for run in area.runs}):
        raise LookupError(f"area {area.name} has no run {', '.join(sorted(unknown))}; it has "
                          + ", ".join(run.name for run in area.runs))
    runs = runs_of(area, chosen, is_named=bool(options.areas))
    if options.dry_run:
        for run in runs:
            print(f"{area.name}:{run.name}: {run.quick or run.command if options.quick else run.command}")
        return True
    if not all(map(missing, runs)):
        build(area)
    good = True
    for run in runs:
        kept = results.load_runs(area.name)
        if options.resume and is_done(run, kept.get(run.name), options):
            print(f"{area.name}:{run.name}: measured at this commit already")
            continue
        measured = measure(area, run, options)
        good &= all(entry["exit"] == 0 for entry in measured["repeats"])
        if not options.quick and is_news(measured, kept.get(run.name), run):
            results.save(area, kept | {run.name: measured})
    return good


def show_list():
    for name in table.names():
        area = table.load(name)
        print(f"{name:12} {area.minutes:4} min  {area.title}")
        for run in area.runs:
            notes = (["long: only when asked for"] if run.is_long else []) + [
                f"needs {program}" for program in missing(run)]
            print(f"    {run.name:24} {len(run.figures)} figure(s)  {'; '.join(notes)}".rstrip())


def render():
    """Areas that were never measured have the figures that were taken over."""
    for name in table.names():
        area = table.load(name)
        results.save(area, results.load_runs(name))
    page.PAGE.write_text(page.render())


def take_in(asked, file):
    """Into bench/results, as if AREA:RUN had been measured here."""
    name, _, wanted = asked.partition(":")
    area = table.load(name)
    run = next((run for run in area.runs if run.name == wanted), None)
    if run is None:
        raise LookupError(f"--from takes one AREA:RUN; area {name} has {', '.join(r.name for r in area.runs)}")
    results.save(area, results.load_runs(name) | {run.name: taken_in(run, file)})


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/measure", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA[:RUN]")
    parser.add_argument("--quick", action="store_true",
                        help="shorter commands, to see that all of it works; nothing is written")
    parser.add_argument("--repeat", type=int, metavar="N", help="instead of the run's own number")
    parser.add_argument("--resume", action="store_true",
                        help="leaves out what was measured at this commit")
    parser.add_argument("--from", type=pathlib.Path, metavar="FILE", dest="file",
                        help="nothing is run: what the one AREA:RUN wrote as {json} on another machine")
    parser.add_argument("--list", action="store_true", help="areas and runs, with minutes")
    parser.add_argument("--dry-run", action="store_true", help="prints the commands")
    parser.add_argument("--render", action="store_true", help="writes docs/performance.md")
    options = parser.parse_args(arguments)
    if options.repeat is not None and options.repeat < 1:
        parser.error(f"--repeat {options.repeat}: accepted is 1 or more")
    if options.file and len(options.areas) != 1:
        parser.error("--from takes one AREA:RUN")
    return options


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that shell() ends what it has started
    if options.list:
        show_list()
        return 0
    if options.file:
        try:
            take_in(options.areas[0], options.file)
        except (LookupError, OSError, ValueError) as trouble:
            print(f"scripts/measure: {trouble}", file=sys.stderr)
            return 2
        render()
        return 0
    good = True
    if options.areas or not options.render:
        wanted = {}
        for asked in options.areas or table.names():
            name, _, run = asked.partition(":")
            wanted.setdefault(name, set())
            wanted[name].update({run} if run else set())
        try:
            for name, chosen in wanted.items():
                good &= measure_area(table.load(name), chosen, options)
        except LookupError as trouble:
            print(f"scripts/measure: {trouble}", file=sys.stderr)
            return 2
    if not options.dry_run and not options.quick:
        render()
    return 0 if good else 1
