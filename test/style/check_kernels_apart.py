#!/usr/bin/env python3
"""Object files compiled for newer processors define nothing but their one entry for other files.

A shared inline function in them could be the copy the linker keeps for everybody, and crash the
process on an older processor.

usage: check_kernels_apart.py LIBRARY
"""
import re
import subprocess
import sys

ENTRIES = {"reduce_avx2": "riffle::avx2_kernel(", "reduce_avx512": "riffle::avx512_kernel(",
           "convert_avx2": "riffle::rules::avx2_converters("}
listing = subprocess.run(["nm", "-C", "--defined-only", sys.argv[1]], capture_output=True,
                         text=True, check=True).stdout
seen = set()
failures = 0
kernel = None
for line in listing.splitlines():
    if line.endswith(".o:"):
        match = re.match(r"((?:reduce|convert)_avx\w+)\.cc\.o:", line)
        kernel = match[1] if match else None
        continue
    fields = line.split(maxsplit=2)
    if kernel is None or len(fields) < 3 or fields[1].islower():
        continue
    if fields[1] == "T" and fields[2].startswith(ENTRIES.get(kernel, "?")):
        seen.add(kernel)
    else:
        failures += 1
        print(f"{kernel}.cc shares {fields[2]} ({fields[1]})")
assert seen == ENTRIES.keys(), f"found the entries of {seen}"
sys.exit(1 if failures else 0)
