"""The JSON of every command names its schema, and has one unit per quantity, which the names of fields say.

usage: json_test.py RIFFLE
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import made_record

RIFFLE = sys.argv[1]
UNITS = {"time": r"(?:^|_)(ns|us|ms|s|seconds|minutes)$", "rate": r"(?:^|_)(kbps|mbps|gbps)$",
         "size": r"(?:^|_)(bytes|kib|mib|gib)$"}


def keys(value):
    if isinstance(value, list):
        for item in value:
            yield from keys(item)
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)


def check(schema, *command):
    """What is wrong with its JSON."""
    done = subprocess.run([RIFFLE, *command], capture_output=True, text=True, timeout=60, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError as e:
        yield f"{schema}: exit code {done.returncode}, no JSON: {e}\n{done.stdout}{done.stderr}"
        return
    if not isinstance(found, dict) or found.get("schema") != schema:
        yield f"{schema}: not its schema: {str(found)[:100]}"
        return
    for quantity, unit in UNITS.items():
        units = {match[1] for key in keys(found) if (match := re.search(unit, key))}
        if len(units) > 1:
            yield f"{schema}: {quantity} in {' and '.join(sorted(units))}"
        seen.update((quantity, unit) for unit in units)


seen = set()
with tempfile.TemporaryDirectory() as folder:
    made_record.MadeRecord(folder).run(5)
    not_connected = pathlib.Path(folder, "not_connected")
    made_record.MadeRecord(not_connected)
    fabric = pathlib.Path(folder, "net.toml")
    fabric.write_text('[default]\nrate_mbps = 400\n[[node]]\nname = "a"\n[[node]]\nname = "b"\n')
    failures = [failure for commands in (
        check("riffle-plan-1", "plan", "--profile", "racks8", "--json"),
        check("riffle-plan-policy-1", "plan", "--profile", "racks8", "--policy", "ds_sync", "--json"),
        check("riffle-order-1", "order", "--profile", "racks8", "--format", "json"),
        check("riffle-explain-1", "explain", folder, "--json"),
        check("riffle-explain-1", "explain", str(not_connected), "--json"),
        check("riffle-topo-1", "topo", "--fabric", str(fabric), "--json"),
        check("riffle-config-1", "config", "--json"),
        check("riffle-env-1", "env", "--format", "json"),
        check("riffle-doctor-1", "doctor", "--json"),
    ) for failure in commands]
# What is looked for is there.
if not {("time", "us"), ("rate", "mbps"), ("size", "bytes")} <= seen:
    failures.append(f"units found: {sorted(seen)}")
print("\n".join(failures))
sys.exit(1 if failures else 0)
