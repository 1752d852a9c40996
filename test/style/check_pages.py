#!/usr/bin/env python3
"""Pages (*.md): no line over 160 characters, and links within the repository lead somewhere.

With --paths also: files and folders that are named in `code` exist."""
import glob
import os
import pathlib
import re
import sys

from sources import ROOT

LONGEST_LINE = 160
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:bench|docs|lab|plugin|scripts|sparse|test|tools|topology)/[\w./*{},-]+)`")


def pages():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
        yield from (pathlib.Path(folder, name) for name in names if name.endswith(".md"))


def anchors(text):
    """As GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "").lower()).strip().replace(" ", "-")
            for h in HEADING.findall(CODE.sub("", text))}


def expanded(path):
    """a/b.{h,cc} is two."""
    several = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
    if not several:
        return [path]
    return [several[1] + part + several[3] for part in several[2].split(",")]


def exists(path):
    """As it is, as a pattern, or as the name of files without what they end with."""
    return any(glob.glob(str(ROOT / path) + tail) for tail in ("", ".*"))


failures = []
for page in sorted(pages()):
    name, text = page.relative_to(ROOT), page.read_text()
    failures += [f"{name}:{number}: {len(line)} characters, at most {LONGEST_LINE}"
                 for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST_LINE]
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            failures.append(f"{name}: ({link}) does not exist")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            failures.append(f"{name}: ({link}) has no such heading")
    if "--paths" in sys.argv:
        failures += [f"{name}: `{path}` does not exist" for named in NAMED.findall(text)
                     for path in expanded(named) if not exists(path)]
print("\n".join(failures))
sys.exit(1 if failures else 0)
