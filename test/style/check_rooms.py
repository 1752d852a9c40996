#!/usr/bin/env python3
"""Rooms: every folder of the product is known, and includes only folders below it.

Rooms are listed from the bottom to the top. A room may include itself and what its line names, and
nothing that stands below it in the list. No folder holds more files than a reader can keep in mind,
and no headers include each other in a circle. tools, bench and test stand above everything.
"""
import collections
import re
import sys

from sources import ROOT, sources

MOST_FILES = 35  # of a folder

PURE = "topology/base topology/host topology/fabric topology/probe topology/plan"
WIRE = "plugin/transport/base plugin/transport/device plugin/transport/reactor plugin/transport/crypto"
GROUND = f"{PURE} plugin plugin/config"
COLLECTIVE = f"{GROUND} topology/plan/schedules plugin/kernels plugin/telemetry plugin/transport {WIRE} plugin/identity sparse"

ROOMS = {room: set(below.split()) for room, below in {
    "topology/base": "",
    "topology/host": "topology/base",
    "topology/fabric": "topology/base",
    "topology/plan/patterns": "topology/base topology/fabric",
    "topology/plan": "topology/base topology/fabric topology/plan/patterns",
    "topology/plan/candidates": "topology/base topology/fabric topology/plan/patterns topology/plan",
    "topology/plan/schedules": "topology/base topology/fabric topology/plan",
    "topology/probe": "topology/base topology/fabric",
    "sparse": "topology/base topology/fabric topology/plan",
    "plugin": "",  # version.h
    "plugin/abi": "",
    "plugin/config": "topology/base plugin",
    "plugin/kernels": "topology/base plugin/config",
    "plugin/telemetry": GROUND,
    "plugin/transport/base": GROUND,
    "plugin/transport/device": f"{GROUND} plugin/transport/base",
    "plugin/transport/reactor": f"{GROUND} plugin/transport/base plugin/transport/device",
    "plugin/transport/crypto": f"{GROUND} plugin/transport/base",
    "plugin/transport/handshake": f"{GROUND} {WIRE}",
    "plugin/transport/tcp": f"{GROUND} {WIRE} plugin/transport/handshake",
    "plugin/transport/sim": f"{GROUND} plugin/transport/base",
    "plugin/transport/nccl_net": f"{GROUND} plugin/abi {WIRE} plugin/transport/tcp",
    "plugin/transport": f"{GROUND} {WIRE} plugin/transport/tcp plugin/transport/nccl_net",  # the factory
    "plugin/identity": f"{GROUND} plugin/abi",
    "plugin/net": f"{GROUND} plugin/transport {WIRE}",
    "plugin/collective/base": COLLECTIVE,
    "plugin/collective/engine": f"{COLLECTIVE} plugin/collective/base",
    "plugin/collective/threads": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine",
    "plugin/collective/connect": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine",
    "plugin/collective/adapt": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine"
                               " plugin/collective/threads",
    "plugin/collective/sparse": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine",
    "plugin/collective/elastic": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine"
                                 " plugin/collective/threads plugin/collective/adapt plugin/collective/sparse",
    "plugin/collective/relaxed/rules": "topology/base plugin/kernels",
    "plugin/collective/relaxed": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine"
                                 " plugin/collective/sparse plugin/collective/relaxed/rules",
    "plugin/collective": f"{COLLECTIVE} plugin/collective/base plugin/collective/engine"
                         " plugin/collective/connect plugin/collective/adapt plugin/collective/sparse"
                         " plugin/collective/elastic plugin/collective/relaxed",
    "plugin/tuner": f"{GROUND} plugin/abi plugin/identity plugin/collective/base",
    "plugin/entry": f"{GROUND} plugin/abi plugin/kernels plugin/telemetry plugin/transport {WIRE}"
                    " plugin/transport/nccl_net plugin/identity plugin/net plugin/collective/base plugin/collective plugin/tuner",
    "lab/memory": f"{GROUND} plugin/transport/base",
    "lab/nccl_host/tables": "topology/base plugin/abi",
    "lab/nccl_host/work": "topology/base plugin/kernels lab/nccl_host/tables",
    "lab/nccl_host": "topology/base plugin/abi plugin/kernels lab/nccl_host/tables lab/nccl_host/work",
    "lab/cluster": "topology/base topology/fabric",
    "lab/simulation": f"{COLLECTIVE} plugin/transport/sim plugin/collective/base plugin/collective/engine"
                      " plugin/collective/connect plugin/collective/adapt plugin/collective/elastic"
                      " plugin/collective",
}.items()}
ORDER = {room: place for place, room in enumerate(ROOMS)}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def folder_of(path):
    return path.rpartition("/")[0]


def check_edges(includes):
    for file, included in includes:
        room, target = folder_of(file), folder_of(included)
        if room not in ROOMS:
            yield f"{file} lies in no known room"
        elif not (ROOT / included).exists():
            yield f'{file}: "{included}" is not relative to the root'
        elif target != room and target not in ROOMS[room]:
            yield f"{file}: {room} may not include {included}"


def check_list():
    for room, below in ROOMS.items():
        for other in below:
            if ORDER.get(other, len(ORDER)) >= ORDER[room]:
                yield f"the list of rooms: {room} names {other}, which does not stand below it"


def check_sizes(files):
    for folder, count in collections.Counter(map(folder_of, files)).items():
        if count > MOST_FILES:
            yield f"{folder} holds {count} files, at most {MOST_FILES}"


def check_cycles(includes):
    """Headers that include each other in a circle, each circle once."""
    below = collections.defaultdict(list)
    for file, included in includes:
        if file.endswith(".h"):
            below[file].append(included)
    done, path = set(), []

    def visit(file):
        if file in path:
            yield "a circle of headers: " + " -> ".join(path[path.index(file):] + [file])
            return
        if file in done:
            return
        path.append(file)
        for included in below[file]:
            yield from visit(included)
        path.pop()
        done.add(file)

    for file in list(below):
        yield from visit(file)


files = [str(f) for f in sources(".cc", ".h", ".def", rooms=("plugin", "sparse", "topology", "lab"))]
includes = [(file, included) for file in files
            for included in INCLUDE.findall((ROOT / file).read_text())]
everywhere = [str(f) for f in sources(".cc", ".h", ".def")]
faults = [*check_list(), *check_edges(includes), *check_sizes(everywhere), *check_cycles(includes)]
print("\n".join(faults))
print(f"{len(files)} files in {len(set(map(folder_of, files)))} rooms, {len(includes)} edges, {len(faults)} faults")
sys.exit(1 if faults else 0)
