"""riffle_strangers_bench: a pair of each kind, strangers at the rate that was asked for, and no wrong sum.

usage: strangers_bench_test.py RIFFLE_STRANGERS_BENCH PLUGIN     exit code 77: no namespaces here
"""
import json
import pathlib
import subprocess
import sys
import tempfile

BENCH, PLUGIN = sys.argv[1:3]
KINDS = ["Silent", "HalfOpen", "Garbage", "Replay", "Gone"]
RATE = 1000

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "rows.json")
    done = subprocess.run([BENCH, "--plugin", PLUGIN, "--rate", str(RATE), "--nodes", "2", "--rounds", "2", "--iters", "2", "--mib", "8",
                           "--json", str(file)], capture_output=True, text=True, timeout=200)
    if "make network namespaces" in done.stderr:
        print(done.stderr)
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rows = json.loads(file.read_text())
wrong = [row for row in rows if row["wrong"] != 0 or len(row["alone_us"]) != 2 or len(row["flooded_us"]) != 2]
wrong += [row for row in rows if not 0.5 * RATE < row["knocks_per_s"] < 1.5 * RATE]
if [row["kind"] for row in rows] != 2 * KINDS or wrong:
    sys.exit(f"not what was asked for: {wrong or rows}")
