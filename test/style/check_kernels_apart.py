#!/usr/bin/env python3
"""Object files compiled for newer processors define nothing but their entries for other files.

A shared inline function in them could be the copy the linker keeps for all of them, and crash the
process on an older processor.

usage: check_kernels_apart.py LIBRARY FILE=ENTRY[,ENTRY]...

FILE.cc is such a file, each ENTRY the name of a function. No other file of the library may be
called *_avx*.
"""
import re
import subprocess
import sys

library = sys.argv[1]
entries = {(file, entry) for file, names in (argument.split("=") for argument in sys.argv[2:]) for entry in names.split(",")}
listing = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True,
                         text=True, check=True).stdout
seen = set()
failures = 0
kernel = None
for line in listing.splitlines():
    if line.endswith(".o:"):
        match = re.match(r"(\w+_avx\w+)\.cc\.o:", line)
        kernel = match[1] if match else None
        continue
    fields = line.split(maxsplit=2)
    if kernel is None or len(fields) < 3 or fields[1].islower():
        continue
    entry = (kernel, fields[2].partition("(")[0])
    if fields[1] == "T" and entry in entries:
        seen.add(entry)
    else:
        failures += 1
        print(f"{kernel}.cc shares {fields[2]} ({fields[1]})")
assert seen == entries, f"not found: {sorted(entries - seen)}"
sys.exit(1 if failures else 0)
