"""riffle_strangers_bench: as many pairs as were asked for, strangers in each of them, and no wrong sum.

usage: strangers_bench_test.py RIFFLE_STRANGERS_BENCH PLUGIN     exit code 77: no namespaces here
"""
import json
import pathlib
import subprocess
import sys
import tempfile

BENCH, PLUGIN = sys.argv[1:3]
PAIRS, RATE = 4, 1000

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "rows.json")
    done = subprocess.run([BENCH, "--plugin", PLUGIN, "--rate", str(RATE), "--nodes", "2", "--rounds", str(PAIRS), "--iters", "2", "--mib", "8",
                           "--json", str(file)], capture_output=True, text=True, timeout=200)
    if "make network namespaces" in done.stderr:
        print(done.stderr)
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rows = json.loads(file.read_text())
wrong = [row for row in rows if row["wrong"] != 0 or len(row["alone_us"]) != 2 or len(row["flooded_us"]) != 2]
wrong += [row for row in rows if row["knocks_per_s"] < 0.2 * RATE]  # a busy machine may be late
if len(rows) != PAIRS or wrong:
    sys.exit(f"not what was asked for: {wrong or rows}")
