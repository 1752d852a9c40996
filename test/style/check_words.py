#!/usr/bin/env python3
"""The words of the glossary (CONTRIBUTING.md): plain technical English, components as subjects.

Lines of product code and pages that use a banned word are counted; a few quotations may stay.
"""
import re
import subprocess
import sys

from sources import ROOT

MOST_LINES = 10
PLACES = ("plugin", "topology", "sparse", "lab", "tools", "bench", "docs", "deploy", "nccl-tests-patches", "README.md",
          "SECURITY.md", "CHANGELOG.md")
SUFFIXES = (".h", ".cc", ".def", ".cuh", ".cu", ".md", ".py", ".txt", ".sh")
BANNED = ("whoever", "whomever", "nobody", "somebody", "everybody", "anybody", "someone", "everyone",
          "anyone", "hear_out", "vanish", "share_out", "SyncParty", "mended", "sees ghosts", "for people",
          "of one mind", "steps aside", "stepped aside", "leaves behind for good")
WORDS = re.compile(rf"(?<![a-z])({'|'.join(BANNED)})(?![a-z])", re.IGNORECASE)

found = []
for name in subprocess.check_output(["git", "ls-files", *PLACES], cwd=ROOT, text=True).split("\n"):
    if name.endswith(SUFFIXES):
        for number, line in enumerate((ROOT / name).read_text().split("\n"), 1):
            if word := WORDS.search(line):
                found.append(f"{name}:{number}: {word[0]!r}")
print("\n".join(found))
print(f"{len(found)} lines with words that the glossary replaces, at most {MOST_LINES}")
sys.exit(1 if len(found) > MOST_LINES else 0)
