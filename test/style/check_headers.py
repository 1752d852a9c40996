#!/usr/bin/env python3
"""Every header that ships compiles on its own, so it may be included first anywhere.

A header whose source file includes it before anything else was shown to by the build.

usage: check_headers.py COMPILER [FLAG...]
"""
import concurrent.futures
import os
import platform
import re
import subprocess
import sys

from sources import ROOT, sources


def compile_alone(header):
    return subprocess.run(
        [*sys.argv[1:], "-std=c++20", "-I", ".", "-fsyntax-only", "-include", str(header),
         "-x", "c++", "/dev/null"],
        cwd=ROOT, capture_output=True, text=True, check=False)


def is_first_in_its_source(header):
    source = ROOT / header.with_suffix(".cc")
    if not source.exists():
        return False
    first = re.search(r'^\s*#\s*include\s+["<]([^">]+)', source.read_text(), re.MULTILINE)
    return first is not None and first[1] == str(header)


shipped = sources(".h", rooms=("bench", "plugin", "sparse", "tools", "topology"))
assert shipped, "no headers found"
elsewhere = {"neon.h"} if platform.machine() == "x86_64" else set()  # compiled by that processor's build
headers = [h for h in shipped if h.name not in elsewhere and not is_first_in_its_source(h)]
failures = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for header, result in zip(headers, pool.map(compile_alone, headers)):
        if result.returncode != 0:
            failures += 1
            print(f"{header} does not compile alone:\n{result.stderr}")
print(f"{len(shipped)} headers, {len(headers)} compiled here, {failures} not self-contained")
sys.exit(1 if failures else 0)
