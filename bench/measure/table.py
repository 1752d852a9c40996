"""What an area of the performance suite consists of: runs (one command each) and the figures that are
taken from what a run prints. The areas themselves are in areas/, one file each."""
import dataclasses
import importlib.util
import json
import math
import pathlib
import re
import statistics
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
AREAS = pathlib.Path(__file__).resolve().parent / "areas"

# The start of a command that several areas use.
TIME_TO_ACCURACY = (
    "/usr/bin/python3 test/training/time_to_accuracy.py --plugin build/plugin/libnccl-net-riffle.so "
    "--library build/test/training/libriffle_trainer.so --riffle build/tools/riffle --batch 2 --rate 0.01 "
    "--output {tmp} ")


@dataclasses.dataclass
class Output:
    """One repetition of a run."""
    exit: int
    seconds: float
    text: str
    rows: list


@dataclasses.dataclass(frozen=True)
class Limit:
    kind: str  # "at most", "at least"
    value: float

    def holds(self, value):
        return value <= self.value if self.kind == "at most" else value >= self.value

    def text(self, figure):
        return ("≤ " if self.kind == "at most" else "≥ ") + figure.shown(self.value)


def at_most(value):
    return Limit("at most", value)


def at_least(value):
    return Limit("at least", value)


@dataclasses.dataclass(frozen=True)
class Before:
    """A figure taken over from docs/acceptance.md as it was before this suite (commit 8d31140)."""
    text: str
    date: str = "2026-11-22"
    SOURCE: typing.ClassVar[str] = "docs/acceptance.md at 8d31140"


@dataclasses.dataclass(frozen=True)
class Figure:
    claim: str
    value: typing.Callable[[Output], float]  # IndexError, KeyError, ValueError: the output has none
    limit: typing.Optional[Limit] = None
    unit: str = ""
    digits: int = 2
    before: typing.Optional[Before] = None
    spread: typing.Optional[typing.Callable[[Output], tuple]] = None  # of one repetition: from, to; None: not known

    def shown(self, value):
        if self.unit == "passes":
            return "passes" if value else "fails"
        return f"{value:,.{self.digits}f}" + (f" {self.unit}" if self.unit else "")


@dataclasses.dataclass(frozen=True)
class Run:
    name: str
    command: str  # {json}, {json2}: files that it writes rows to; {tmp}: a folder, removed afterwards
    figures: list[Figure]
    quick: str = ""             # a shorter command of the same kind, to see that it works
    prepare: str = ""           # runs before every repetition, untimed
    needs: tuple[str, ...] = ()  # programs without which it is "not measured here"
    repeat: int = 1
    is_long: bool = False  # only when asked for as AREA:RUN, or as AREA where all are
    is_timed: bool = True  # else what others do on the machine changes no figure
    limit_s: int = 3600


@dataclasses.dataclass(frozen=True)
class Area:
    title: str
    minutes: int  # on 2 cores, without the long runs
    runs: list[Run]
    targets: tuple[str, ...] = ("riffle", "riffle_plugin")
    about: str = ""
    name: str = ""


def load(name, folder=AREAS):
    file = folder / f"{name}.py"
    if not file.exists():
        raise LookupError(f"no area {name}; there are {', '.join(names(folder))}")
    spec = importlib.util.spec_from_file_location(f"area_{name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dataclasses.replace(module.AREA, name=name)


# As they stand on the page; others behind them.
ORDER = ("exact correct unchanged losses relaxed sparse narrow contention probing eyes planner simulator cpu messages footprint wire strangers nccl "
         "gpu portability build").split()


def place(name):
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def names(folder=AREAS):
    return sorted((file.stem for file in folder.glob("*.py")), key=place)


# ---- how figures are taken from a run's output ----

def passes():
    return lambda out: float(out.exit == 0)


def seconds():
    return lambda out: out.seconds


def printed(pattern, of=statistics.median):
    """What the pattern's group matches in the text; of: max, min, ..."""
    compiled = re.compile(pattern)
    return lambda out: of([float(m.replace(",", "")) for m in compiled.findall(out.text)])


NUMBER = re.compile(r"(?:≥ )?([-+]?[0-9][0-9,.]*)(?: \([^)]*\))?")  # one, with another in brackets or without
RANGE = re.compile(r"([-+]?[0-9][0-9,.]*) to ([-+]?[0-9][0-9,.]*)")


def cells(line):
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def found_cells(out, column, row):
    """Of all Markdown tables: what stands in the column of that name, in rows whose first cell is `row`."""
    found, head = [], None
    for line in out.text.splitlines():
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
        elif column in head and cells(line)[0] == row:
            found.append(cells(line)[head.index(column)])
    return found


def cell(column, row):
    """The number in a Markdown table's column of that name, in the row whose first cell is `row`."""
    def value(out):
        found = found_cells(out, column, row)
        if len(found) != 1 or not (number := NUMBER.fullmatch(found[0])):
            raise ValueError(f"{row}, \"{column}\": one number is wanted, the tables have {found}")
        return float(number[1].replace(",", ""))
    return value


def cell_range(column, row):
    """Both ends of what stands there as "1.2 to 1.4"; None where nothing does."""
    def value(out):
        ends = [RANGE.fullmatch(text) for text in found_cells(out, column, row)]
        return (float(ends[0][1]), float(ends[0][2])) if len(ends) == 1 and ends[0] else None
    return value


def selected(rows, where):
    return [r for r in rows if all(r.get(k) == v for k, v in where.items())]


def rows(field, of=statistics.median, scale=1.0, **where):
    """`field` of the JSON rows that have the values `where`."""
    return lambda out: of([r[field] * scale for r in selected(out.rows, where)])


def interval_of_median(values):
    """Both ends of where the median of all that could have been measured lies, with 95 % probability and whatever their
    distribution (order statistics); None: too few values."""
    n, tail = len(values), 0.0
    for k in range(n // 2 + 1):
        tail += math.comb(n, k) / 2 ** (n - 1)  # that it lies outside of the values k + 1 and n - k
        if tail > 0.05:
            return (sorted(values)[k - 1], sorted(values)[n - k]) if k > 0 else None
    return None


def ratio(above, below):
    """Of two figures."""
    return lambda out: above(out) / below(out)


def times_as_fast(peer, field="time_us", of=min, **where):
    """How many times as long as Riffle a peer takes, size by size."""
    def value(out):
        ours = {r["bytes"]: r[field] for r in selected(out.rows, {"peer": "riffle"} | where)}
        theirs = selected(out.rows, {"peer": peer} | where)
        return of([r[field] / ours[r["bytes"]] for r in theirs])
    return value


def rows_in(data):
    """The rows of a JSON file as Riffle's programs and Google Benchmark write them."""
    if isinstance(data, dict):
        data = data.get("benchmarks", [data])
    return data


def read_rows(folder):
    """Of all rows*.json, in the order of their names; "file" tells them apart."""
    files = [file for file in sorted(folder.glob("rows*.json")) if file.stat().st_size]
    return [row | {"file": number} for number, file in enumerate(files, 1)
            for row in rows_in(json.loads(file.read_text()))]
