#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds comments and prose beyond 100 columns in what git tracks, and prints where they are.

Left out are tables, headings, code that a comment shows, and a single word (a link, a command in
backticks) that cannot be broken; what is generated; and the RTL of rtl/, whose lines are part of
netlists that have been placed.
Exit: 0 none, 1 some.
"""

import re
import subprocess
import sys

COLUMNS = 100
COMMENT = {kind: re.compile(rf"\s*({marks})(.*)") for kind, marks in {
    "rs": r"//[/!]?", "sv": "//", "c": r"//|/\*+|\*(?=\s)", "h": r"//|/\*+|\*(?=\s)", "S": r"//|/\*+|\*(?=\s)", "toml": "#", "": "#", "py": "#",
}.items()}
UNBROKEN = re.compile(r"\W*(`[^`]*`|!?\[[^\]]*\]\([^)]*\)|\S)+")
LEFT_OUT = re.compile(r"docs/system-file\.md|.*/generated/.*|rtl/.*\.sv")
SHOWN = re.compile(r" {4}|\s*\||.*\S {2,}\S.* {2,}\S")


def prose(kind, line, is_code):
    """What a line says, if it is a comment or prose; else none."""
    if kind == "md":
        is_other = is_code or re.match(r"\s*[|<#]", line)
        return None if is_other else line
    match = COMMENT[kind].match(line)
    is_other = not match or line.endswith("\\") or SHOWN.match(match[2])
    return None if is_other else match[2]


def main():
    listed = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, text=True, check=True)
    too_long = 0
    for name in listed.stdout.split("\0"):
        kind = name.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
        if (kind != "md" and kind not in COMMENT) or LEFT_OUT.fullmatch(name):
            continue
        try:
            with open(name, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except (OSError, UnicodeDecodeError):
            continue
        is_code = False
        for number, line in enumerate(lines, 1):
            is_code ^= kind == "md" and line.lstrip().startswith("```")
            said = prose(kind, line, is_code) if len(line) > COLUMNS else None
            if said is not None and not UNBROKEN.fullmatch(said.strip()):
                print(f"{name}:{number}: {len(line)} columns", file=sys.stderr)
                too_long += 1
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
