#!/usr/bin/env python3
"""Object files compiled for newer processors define nothing but their one entry for other files.

A shared inline function in them could be the copy the linker keeps for everybody, and crash the
process on an older processor.

usage: check_kernels_apart.py LIBRARY FILES ENTRY

FILES is what their names begin with, before _avx2 and _avx512; ENTRY the entry's name with * in the
place of the instruction set.
"""
import re
import subprocess
import sys

library, files, entry = sys.argv[1:]
listing = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True,
                         text=True, check=True).stdout
seen = set()
failures = 0
kernel = None
for line in listing.splitlines():
    if line.endswith(".o:"):
        match = re.match(rf"{files}_(avx\w+)\.cc\.o:", line)
        kernel = match.group(1) if match else None
        continue
    fields = line.split(maxsplit=2)
    if kernel is None or len(fields) < 3 or fields[1].islower():
        continue
    if fields[1] == "T" and fields[2].startswith(entry.replace("*", kernel) + "("):
        seen.add(kernel)
    else:
        failures += 1
        print(f"{files}_{kernel}.cc shares {fields[2]} ({fields[1]})")
assert seen == {"avx2", "avx512"}, f"found the entries of {seen}"
sys.exit(1 if failures else 0)
