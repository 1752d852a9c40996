#!/usr/bin/env python3
"""Every header that ships compiles on its own, so it may be included first anywhere.

usage: check_headers.py COMPILER [FLAG...]
"""
import concurrent.futures
import os
import subprocess
import sys

from sources import ROOT, sources


def compile_alone(header):
    return subprocess.run(
        [*sys.argv[1:], "-std=c++20", "-I", ".", "-fsyntax-only", "-include", str(header),
         "-x", "c++", "/dev/null"],
        cwd=ROOT, capture_output=True, text=True, check=False)


headers = sources(".h", rooms=("bench", "plugin", "sparse", "tools", "topology"))
assert headers, "no headers found"
failures = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for header, result in zip(headers, pool.map(compile_alone, headers)):
        if result.returncode != 0:
            failures += 1
            print(f"{header} does not compile alone:\n{result.stderr}")
print(f"{len(headers)} headers, {failures} not self-contained")
sys.exit(1 if failures else 0)
