"""The project's own source files: what the style checks look at."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("bench", "lab", "plugin", "sparse", "test", "tools", "topology")


def sources(*suffixes, rooms=ROOMS):
    """Files with one of the suffixes, relative to the root, in a fixed order."""
    found = []
    for room in rooms:
        for folder, _, names in os.walk(ROOT / room):
            found += [pathlib.Path(folder, name).relative_to(ROOT)
                      for name in names if name.endswith(suffixes)]
    return sorted(found)
