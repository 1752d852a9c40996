"""docs/performance.md from bench/results/*.json."""
import itertools
import json
import textwrap

from results import FOLDER, cores
from table import ROOT, place

PAGE = ROOT / "docs" / "performance.md"
LONGEST_LINE = 160  # bytes
SHORTER = {"build/tools/riffle": "riffle", " --json {json}": "", " --no-tests=error": ""}
HEAD = """# Performance: what is claimed, how to check it, what was measured

Generated from `bench/results/*.json` by `scripts/measure --render`; raw rows, machine and exact commands are in these files.
`scripts/measure AREA` measures an area again, `scripts/measure AREA:RUN` (also written `AREA:RUN` here) one of its runs, `scripts/measure --list` says
how long each takes.

Status: `holds` and `below limit` against what was asked for, in the worst repetition; `measured`: nothing was asked for; `failed`: a repetition
ended without the figure or with a wrong result, whatever the others show; `not measured`: not run so far; `not measured here`: tried where something
that it needs was missing; `not repeated`: taken over with its date from the evidence page before this suite (commit 8d31140), not measured since: then
`riffle bench` told Riffle the network by a file, and Gloo and Open MPI ran under the machine's BBR, where now Riffle finds the network itself and all
run under cubic. Behind the status stands what makes a figure doubtful: `N % busy` or `load N`: others used the machine before (a load average
also counts what had just ended); `uncommitted`: no commit has the code; `older`: the command took them from a file of an earlier run;
`plan changed`: Riffle took another plan between measured calls; `on N`, `on N of M`: with so many processors in place of the usual 2; a question
mark: the limit lies within the interval. Results are medians, with the range where a run was repeated, or the 95 % interval of the median where
rivals took turns in rounds of new processes. "NCCL's" ring and trees are its algorithms under a stand-in for its host side, over Riffle's own
connections ([which](commands.md#riffle-bench-riffle-beside-its-rivals)); real NCCL stands in the areas `nccl` and `gpu`.
x bound: time over the least that any exact all-reduce can take on that network. `racks8` has ranks in turn over the racks, as a scheduler may
place them, `racks8-ordered` rack by rack, the best order for a ring. What does not hold is explained in
[known-limits.md](known-limits.md), which also has what no command here can measure: sums that only processors limit, beside real NCCL's own
sockets, whose harness is not distributed (two of eighteen cells miss 0.98 on an EPYC, four on a Xeon).
Trainings and their limits are in [training.md](training.md).
"""


def line(row, command):
    status = "; ".join([row["status"] + ("?" if row.get("is_open") else ""), *row.get("doubts", [])])
    cells = [row["claim"], f"`{command}`", row["limit"], row["result"], row["date"], status]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table_lines(content):
    """With the command itself where it fits into all lines of its run, else with the one that prints
    and runs it, in short where even that does not fit."""
    lines = []
    for name, group in itertools.groupby(content["rows"], lambda row: row["run"]):
        group = list(group)
        short = group[0]["command"]
        for long, brief in SHORTER.items():
            short = short.replace(long, brief)
        asked = f"{content['area']}:{name}"
        for command in (short, f"scripts/measure {asked}", asked):
            fit = [line(row, command) for row in group]
            if "{" not in command and max(len(text.encode()) for text in fit) <= LONGEST_LINE:
                break
        lines += fit
    return lines


def conditions(contents):
    """What measured runs have in common, in lines: machines and commits."""
    runs = [run for content in contents for run in content["runs"].values() if run["repeats"]]
    machines = {f"{m['cpu']}, {cores(m)} cores, {m['memory_gib']} GiB, Linux {m['kernel']}"
                for m in (run["machine"] for run in runs)}
    if not machines:
        return []
    rows = [row for content in contents for row in content["rows"]]
    commits = ", ".join(sorted({commit for row in rows for commit in row.get("commit", "").split(", ") if commit}))
    return textwrap.wrap(f"Measured on {'; '.join(sorted(machines))}; commit {commits}.", 150) + [""]


def render(folder=FOLDER):
    """One table, area by area: two printed pages."""
    contents = [json.loads(file.read_text())
                for file in sorted(folder.glob("*.json"), key=lambda file: place(file.stem))]
    lines = [*conditions(contents), "| claim | command | limit | result | date | status |", "|---|---|---|---|---|---|"]
    for content in contents:
        lines += [f"| **{content['title']}** (`{content['area']}`) | | | | | |", *table_lines(content)]
    lines += ["", "## How the areas measure", ""]
    for content in contents:
        if content["about"]:
            lines += textwrap.wrap(f"* **{content['title']}** (`{content['area']}`): {content['about']}", LONGEST_LINE - 10, subsequent_indent="  ",
                                   break_long_words=False, break_on_hyphens=False)
    return "\n".join([HEAD, *lines]) + "\n"
