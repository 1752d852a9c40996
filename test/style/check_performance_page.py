#!/usr/bin/env python3
"""docs/performance.md is what bench/results/*.json say, these are what the areas of the performance suite
make of their runs, and the README's table has the same figures."""
import difflib
import sys

from sources import ROOT

sys.path.insert(0, str(ROOT / "bench" / "measure"))
sys.dont_write_bytecode = True

import page  # noqa: E402
import results  # noqa: E402
import table  # noqa: E402

AGAIN = "scripts/measure --render"
failures = []


def differs(name, found, wanted):
    if found == wanted:
        return
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True),
                                               name, "as it should be", n=1))
    failures.append(f"{name} is stale: {AGAIN}")


for name in table.names():
    file = results.FOLDER / f"{name}.json"
    if not file.exists():
        failures.append(f"{file.name} is missing: {AGAIN}")
        continue
    content = results.content_of(table.load(name), results.load_runs(name))
    differs(f"bench/results/{name}.json", file.read_text(), results.as_text(content))
    failures += [f"{name}: \"{row['claim']}\" has no command"
                 for row in content["rows"] if not row["command"].strip()]
unknown = {file.stem for file in results.FOLDER.glob("*.json")} - set(table.names())
failures += [f"bench/results/{name}.json belongs to no area" for name in sorted(unknown)]
differs("docs/performance.md", page.PAGE.read_text(), page.render())

# The README's table: a line per profile, a column per rival; without racks a ring that is told them is the ring.
COLUMNS = ("NCCL's ring", "NCCL's trees", "NCCL's ring, told the racks", "BlueConnect, told the racks", "Gloo")
claims = {row["claim"]: row for row in results.content_of(table.load("exact"), results.load_runs("exact"))["rows"]}
lines = {cells[0].partition(":")[0].strip("`"): cells[1:] for line in (ROOT / "README.md").read_text().splitlines()
         if line.startswith("| `") and len(cells := table.cells(line)) == 1 + len(COLUMNS)}
for profile in ("racks8", "straggler8", "uniform8"):
    for rival, shown in zip(COLUMNS, lines.get(profile, [""] * len(COLUMNS))):
        claim = f"`{profile}`, 16 MiB, times as fast as {rival}"
        if claim not in claims:
            claim = claim.removesuffix(", told the racks")
        found, shown = claims[claim]["result"].split(), shown.strip("*")
        digits = len(shown.partition(".")[2])
        if not found or not digits or shown != f"{float(found[0]):.{digits}f}":
            failures.append(f'README.md: "{profile}" beside {rival} is "{shown}", the row says '
                            f'{claims[claim]["result"] or "nothing"}')

print("\n".join(failures))
sys.exit(1 if failures else 0)
