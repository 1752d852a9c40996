#!/usr/bin/env python3
"""docs/knobs.md is what the table of settings says.

usage: check_knobs_page.py RIFFLE [--write]     RIFFLE: the command
"""
import difflib
import json
import subprocess
import sys
import textwrap

from sources import ROOT

PAGE = ROOT / "docs" / "knobs.md"
WIDTH = 120
HEAD = """# Settings

Every setting is an environment variable or a line `NAME=value` of a file: `$RIFFLE_CONF_FILE`, or without it `~/.riffle.conf`
and then `/etc/riffle.conf`. The environment wins; `#` starts a comment. Sizes in bytes take `K`, `M` and `G` (powers of 1024).
A value out of range is reported and the default holds. Settings marked "all nodes" must be equal on all nodes; a difference is
an error that names the node and the setting. `riffle config` prints what holds here.

This page is generated from `plugin/config/knobs.def`.

"""


def entry(knob):
    default = f"`{knob['default']}`" if knob["default"] else "empty"
    accepted = "text" if knob["range"] == "any text" else f"`{knob['range']}`"
    nodes = "; all nodes" if knob["equal_on_all_nodes"] else ""
    text = f"* **`{knob['name']}`** = {default} ({accepted}{nodes}). {knob['help']}"
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def main(riffle, *options):
    knobs = json.loads(subprocess.run([riffle, "config", "--json"], capture_output=True, text=True,
                                      check=True).stdout)["settings"]
    wanted = HEAD + "\n".join(map(entry, knobs)) + "\n"
    if "--write" in options:
        PAGE.write_text(wanted)
        return 0
    page = PAGE.read_text()
    if page == wanted:
        return 0
    sys.stdout.writelines(difflib.unified_diff(page.splitlines(True), wanted.splitlines(True),
                                               "docs/knobs.md", "knobs.def"))
    print(f"docs/knobs.md is stale; write it anew: {sys.argv[0]} {riffle} --write")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
