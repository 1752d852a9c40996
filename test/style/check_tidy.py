#!/usr/bin/env python3
"""clang-tidy with .clang-tidy over the code that runs inside jobs: plugin, topology, sparse.

Files are looked at together, some at a time (as in a unity build). A batch that passed is not looked
at again until a file of it, a header that one includes, the settings or the compiler flags change; the
record of what passed lies in the build folder.

usage: check_tidy.py BUILD
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from sources import ROOT, sources

ROOMS = ("plugin", "topology", "sparse")
BATCH = 30


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


def compile_commands(build):
    """The command of every file; files of a unity build have that of the one that includes them."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        parts = [file]
        if file.parent.name == "Unity":
            parts = [pathlib.Path(name) for name in re.findall('#include "(.+)"', file.read_text())]
        commands.update((part, entry["command"]) for part in parts)
    return commands


def batches(commands):
    """Files with the same compiler flags, some at a time: most of a look goes into headers."""
    alike = {}
    for file, command in commands.items():
        flags = re.sub(r" -o \S+ -c \S+$", "", command)
        alike.setdefault(flags, []).append(file)
    for flags, files in sorted(alike.items()):
        for first in range(0, len(files), BATCH):
            yield flags, files[first:first + BATCH]


def examine(folder, flags, files):
    """What is wrong with the files; nothing if all is well."""
    finding = tidy(folder, flags, files)
    if finding == "" or len(files) == 1:
        return finding
    # Which file? And names that two files define for themselves are no finding.
    return "".join(tidy(folder, flags, [file]) for file in files)


def tidy(folder, flags, files):
    together = folder / (digest(*(str(file).encode() for file in files)) + ".cc")
    together.write_text("".join(f'#include "{file}"\n' for file in files))
    arguments = [word for word in shlex.split(flags)[1:] if word != "-fno-semantic-interposition"]
    result = subprocess.run(["clang-tidy", "--quiet", "--checks=-bugprone-suspicious-include",
                             str(together), "--", *arguments], cwd=ROOT,
                            capture_output=True, text=True, check=False)
    together.unlink()
    return f"{result.stdout}{result.stderr}\n" if result.returncode != 0 else ""


def main():
    build = pathlib.Path(sys.argv[1])
    passed = build / "tidy-passed"
    passed.mkdir(exist_ok=True)
    commands = compile_commands(build)
    settings = (ROOT / ".clang-tidy").read_bytes()
    known = {}
    everything = list(sources(".cc", rooms=ROOMS))
    ours = {file: commands[ROOT / file] for file in everything if ROOT / file in commands}
    # What is for other processors is not compiled here.
    assert len(ours) > 0.9 * len(everything), f"compile commands of {len(ours)} files only"
    pending = []
    for flags, files in batches(ours):
        key = digest(settings, flags.encode(),
                     *((ROOT / name).read_bytes() for file in files
                       for name in sorted(with_headers(file, known))))
        if not (passed / key).exists():
            pending.append((key, flags, files))
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        results = pool.map(lambda batch: examine(passed, *batch[1:]), pending)
        for (key, *_), findings in zip(pending, results):
            if findings == "":
                (passed / key).touch()
            else:
                failures += 1
                print(findings)
    print(f"{len(pending)} batches of files examined, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
