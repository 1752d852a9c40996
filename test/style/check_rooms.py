#!/usr/bin/env python3
"""Dependencies between rooms point downwards only.

For every room the rooms it may include; its own always. A folder belongs to the longest entry that
is a prefix of its path; datatypes and kernels are a room of their own, below the rest of their
folder. tools, bench and test stand above everything and may include what they need.
"""
import re
import sys

from sources import ROOT, sources

TOPOLOGY = {"topology/base", "topology/host", "topology/fabric", "topology/probe", "topology/plan"}
BELOW_TRANSPORT = TOPOLOGY | {"plugin", "plugin/config", "plugin/telemetry"}
NUMBERS = "plugin/collective: datatypes and kernels"
NUMBERS_FILES = re.compile(r"plugin/collective/(types|reduce\w*|float_\w+)\.(h|cc)")
ALLOWED = {
    "topology/base": set(),
    "topology/host": {"topology/base"},
    "topology/fabric": {"topology/base"},
    "topology/probe": {"topology/base", "topology/fabric"},
    "topology/plan": {"topology/base", "topology/fabric"},
    "sparse": {"topology/base", "topology/fabric", "topology/plan"},
    "plugin": set(),  # version.h
    "plugin/abi": set(),
    "plugin/config": {"topology/base", "plugin"},
    "plugin/telemetry": TOPOLOGY | {"plugin", "plugin/config"},
    "plugin/transport": BELOW_TRANSPORT,
    "plugin/policy": BELOW_TRANSPORT | {"plugin/abi", "plugin/transport", "sparse"},
    NUMBERS: {"topology/base", "plugin/config"},
    "plugin/collective/relaxed/rules": {"topology/base", NUMBERS},
    "plugin/collective": BELOW_TRANSPORT | {"plugin/transport", "plugin/policy",
                                            "plugin/collective/relaxed/rules", NUMBERS, "sparse"},
    "plugin/entry": BELOW_TRANSPORT | {"plugin/abi", "plugin/transport", "plugin/policy",
                                       "plugin/collective", NUMBERS},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    if NUMBERS_FILES.fullmatch(path):
        return NUMBERS
    parts = path.split("/")[:-1]
    while parts:
        if "/".join(parts) in ALLOWED:
            return "/".join(parts)
        parts.pop()
    return None


failures = 0
for file in sources(".cc", ".h", ".def", rooms=("plugin", "sparse", "topology")):
    room = room_of(str(file))
    if room is None:
        print(f"{file} lies in no known room")
        failures += 1
        continue
    for included in INCLUDE.findall((ROOT / file).read_text()):
        target = room_of(included)
        if target == room or target in ALLOWED[room]:
            continue
        failures += 1
        if not (ROOT / included).exists():
            print(f'{file}: "{included}" is not relative to the root')
        else:
            print(f"{file}: {room} may not include {included}")
sys.exit(1 if failures else 0)
