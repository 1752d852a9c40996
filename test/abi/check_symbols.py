#!/usr/bin/env python3
"""Checks what the loader sees of the shared object: exactly the plugin tables are exported, only
libraries that every host has are needed, and no symbol is newer than GLIBC_2.34. And that nothing
in it names the folders of whoever built it.

Usage: check_symbols.py libnccl-net-riffle.so [LIBRARY...]   (libraries it may need besides)"""

import pathlib
import re
import subprocess
import sys

TABLES = (
    {f"ncclNetPlugin_v{v}" for v in range(5, 13)}
    | {f"ncclCollNetPlugin_v{v}" for v in range(5, 13)}
    | {f"ncclTunerPlugin_v{v}" for v in range(1, 7)}
    | {f"ncclProfiler_v{v}" for v in range(1, 7)}
    | {f"ncclEnvPlugin_v{v}" for v in range(1, 3)}
)
NEEDED = ["libc", "libm", "libgcc_s", "ld-linux-[a-z0-9-]+"]
NEWEST_GLIBC = (2, 34)


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    library = sys.argv[1]
    failures = []

    exported = {}
    for line in lines_of("nm", "-D", "--defined-only", library):
        _, kind, name = line.split(maxsplit=2)
        exported[name.split("@")[0]] = kind
    if set(exported) != TABLES:
        failures.append(f"missing tables: {sorted(TABLES - set(exported))}, "
                        f"other exports: {sorted(set(exported) - TABLES)}")
    failures += [f"{name} is not data ({kind})" for name, kind in exported.items()
                 if kind not in "DRBV"]

    dynamic = lines_of("readelf", "--wide", "--dynamic", library)
    needed = [line.split("[")[1].rstrip("]") for line in dynamic if "(NEEDED)" in line]
    if not needed:
        failures.append("no NEEDED entry found: is this a shared object?")
    allowed = re.compile(rf"({'|'.join(NEEDED + sys.argv[2:])})\.so\.\d+")
    failures += [f"needs {name}" for name in needed if not allowed.fullmatch(name)]
    if not any("NODELETE" in line for line in dynamic):
        failures.append("not linked with -z nodelete")

    versions = set()
    for line in lines_of("objdump", "-T", library):
        versions |= {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)\)", line)}
    if not versions:
        failures.append("no GLIBC symbol version found")
    failures += [f"needs GLIBC_{'.'.join(map(str, v))}" for v in versions if v > NEWEST_GLIBC]

    root = pathlib.Path(__file__).resolve().parents[2]
    if f"{root}/".encode() in pathlib.Path(library).read_bytes():
        failures.append(f"names the builder's folder {root}")

    for failure in failures:
        print(f"{library}: {failure}", file=sys.stderr)
    if not failures:
        newest = ".".join(map(str, max(versions)))
        print(f"{len(exported)} tables, needs {' '.join(needed)}, newest symbol GLIBC_{newest}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
