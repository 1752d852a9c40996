#!/usr/bin/env python3
"""docs/performance.md is what bench/results/*.json say, these are what the areas of the performance suite
make of their runs, and the README's headline has the same figures."""
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

readme = (ROOT / "README.md").read_text()
for run in ("racks8-16M", "racks8-ordered-16M"):
    row = next(row for row in results.content_of(table.load("exact"), results.load_runs("exact"))["rows"]
               if row["run"] == run and "NCCL's ring" in row["claim"])
    times = f"{float(row['result'].split()[0]):.1f}"
    if f"{times} times" not in readme:
        failures.append(f"README.md: its headline lacks \"{times} times\", the result of exact:{run}")

print("\n".join(failures))
sys.exit(1 if failures else 0)
