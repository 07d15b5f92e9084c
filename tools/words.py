# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count phrases that pages, messages and task names avoid, and fail if there are more of them than tools/words.txt permits.

    words.py [FILE...]    show each line of these files (all without one), with the replacements

A line with `words: allow` is exempt, as is text in backticks or in a block of code. tools/words.txt has the phrases as regular
expressions of Python, the replacements, and the number of lines that may still contain one. The number may only fall.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator

from venvs import ROOT

PHRASES = ROOT / "tools/words.txt"
#: So many fewer than permitted are no reason to fail.
SLACK = 40
EXEMPT = "words: allow"
#: What git knows below these is checked.
CHECKED = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "lab/*.md", "tests/*.md", "proof/*.md"),
    *("roles/*.md", "roles/*.yml", "playbooks/*.yml", "plugins/*.py"),
)
#: Generated from measurements.
NOT_CHECKED = "docs/evidence/"


def phrases(text: str) -> tuple[int, list[tuple[re.Pattern[str], str]]]:
    """Return the number of phrases that are permitted, and the phrases with their replacements."""
    rows = [row for row in text.splitlines() if row and not row.startswith("#")]
    bound = int(rows[0].removeprefix("permitted: "))
    split = (row.partition(" -> ") for row in rows[1:])
    return bound, [(re.compile(pattern, re.I), use) for pattern, _, use in split]


def prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that people read, with their numbers."""
    if name.endswith(".md"):
        yield from _of_page(text)
    elif name.endswith(".yml"):
        for number, line in enumerate(text.splitlines(), 1):
            if found := re.match(r"\s*- name: (.*)", line):
                yield number, found[1]
    else:
        yield from _of_code(text)


def _of_page(text: str) -> Iterator[tuple[int, str]]:
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def _of_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of string literals."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                yield number, f"{line}  # {EXEMPT}" if EXEMPT in lines[number - 1] else line


def avoided(name: str, text: str, rules: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """Yield one row for each phrase of a file that must be avoided: place, phrase and replacement."""
    for number, line in prose(name, text):
        if EXEMPT not in line:
            bare = re.sub(r"`[^`]*`", "`x`", line)
            for pattern, use in rules:
                if found := pattern.search(bare):
                    yield f"{name}:{number}: {found[0]!r} -> {use}"


def main() -> int:
    """Return 1 if there are more than permitted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*")
    chosen = parser.parse_args().files
    bound, rules = phrases(PHRASES.read_text())
    git = ("git", "ls-files", *CHECKED)
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = chosen or [name for name in listed if not name.startswith(NOT_CHECKED)]
    rows = [row for name in names for row in avoided(name, (ROOT / name).read_text(), rules)]
    if chosen or len(rows) > bound:
        print("\n".join(rows))
    print(f"{len(rows)} phrases to avoid; {bound} permitted")
    if chosen or bound - SLACK <= len(rows) <= bound:
        return 0
    fix = "rewrite the new lines" if len(rows) > bound else f"set `permitted: {len(rows)}`"
    print(f"{PHRASES.relative_to(ROOT)}: {fix}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
