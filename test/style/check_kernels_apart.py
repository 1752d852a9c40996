#!/usr/bin/env python3
"""Object files compiled for newer processors define nothing but their one entry for other files.

A shared inline function in them could be the copy the linker keeps for all of them, and crash the
process on an older processor.

usage: check_kernels_apart.py LIBRARY FILE=ENTRY...

FILE.cc is such a file, ENTRY the name of its one function. No other file of the library may be
called *_avx*.
"""
import re
import subprocess
import sys

library = sys.argv[1]
entries = dict(argument.split("=") for argument in sys.argv[2:])
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
    if fields[1] == "T" and fields[2].startswith(entries.get(kernel, "?") + "("):
        seen.add(kernel)
    else:
        failures += 1
        print(f"{kernel}.cc shares {fields[2]} ({fields[1]})")
assert seen == entries.keys(), f"found the entries of {seen}, not of {entries.keys() - seen}"
sys.exit(1 if failures else 0)
