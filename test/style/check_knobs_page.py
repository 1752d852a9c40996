#!/usr/bin/env python3
"""docs/knobs.md is what the table of settings says.

usage: check_knobs_page.py PROGRAM
"""
import difflib
import subprocess
import sys

from sources import ROOT

wanted = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
page = (ROOT / "docs" / "knobs.md").read_text()
if page != wanted:
    sys.stdout.writelines(difflib.unified_diff(page.splitlines(True), wanted.splitlines(True),
                                               "docs/knobs.md", "knobs.def"))
    print(f"docs/knobs.md is stale; write it anew: {sys.argv[1]} > docs/knobs.md")
    sys.exit(1)
