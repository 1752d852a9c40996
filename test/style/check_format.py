#!/usr/bin/env python3
"""Every source file is laid out as .clang-format says."""
import subprocess
import sys

from sources import ROOMS, ROOT, sources

files = sources(".cc", ".h", ".c", ".cu", ".cuh", ".inc", rooms=(*ROOMS, "nccl-tests-patches"))
assert files, "no sources found"
sys.exit(subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, files)],
                        cwd=ROOT, check=False).returncode)
