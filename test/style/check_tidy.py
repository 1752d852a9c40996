#!/usr/bin/env python3
"""clang-tidy with .clang-tidy over the code that runs inside jobs: plugin, topology, sparse.

A file that passed is not looked at again until it, a header that it includes, the settings or its
compiler flags change; the record of what passed lies in the build folder.

usage: check_tidy.py BUILD
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from sources import ROOT, sources

ROOMS = ("plugin", "topology", "sparse")


def digest(*texts):
    hasher = hashlib.sha256()
    for text in texts:
        hasher.update(hashlib.sha256(text).digest())
    return hasher.hexdigest()


def with_headers(file, known):
    """The file and every header of the project that it includes, however indirectly."""
    if file not in known:
        known[file] = set()  # also ends circles
        text = (ROOT / file).read_text()
        closure = {file}
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            if (ROOT / name).exists():
                closure |= with_headers(pathlib.Path(name), known)
        known[file] = closure
    return known[file]


def tidy(build, file):
    result = subprocess.run(["clang-tidy", "--quiet", "-p", build, str(file)], cwd=ROOT,
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def main():
    build = pathlib.Path(sys.argv[1])
    passed = build / "tidy-passed"
    passed.mkdir(exist_ok=True)
    commands = {pathlib.Path(entry["file"]): entry["command"]
                for entry in json.loads((build / "compile_commands.json").read_text())}
    settings = (ROOT / ".clang-tidy").read_bytes()
    pending, known = {}, {}
    for file in sources(".cc", rooms=ROOMS):
        command = commands.get(ROOT / file)
        if command is None:
            continue  # not part of this build
        key = digest(settings, command.encode(),
                     *((ROOT / name).read_bytes() for name in sorted(with_headers(file, known))))
        if not (passed / key).exists():
            pending[file] = key
    assert commands, "no compile commands"
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda file: tidy(str(build), file), pending)
        for (file, key), (code, output) in zip(pending.items(), results):
            if code == 0:
                (passed / key).touch()
            else:
                failures += 1
                print(f"{file}:\n{output}")
    print(f"{len(pending)} files examined, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
