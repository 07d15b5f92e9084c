# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of shell scripts, and the scripts that a command runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PATH = re.compile(r"(?<![\w$}/.:])/[\w.@%+:,/-]*[\w]")
_INTERPRETERS = r"sh|bash|dash|ksh|zsh|perl|python[\d.]*"
_ENDINGS = (".sh", ".bash", ".inc", ".sql", ".psql")
_ELF = "\x7fELF"


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number, from 1, and text of each line of a script, without comments. Lines that a backslash joins are one."""
    joined, first = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        first = first if joined else number
        # A backslash at the end of a comment joins nothing.
        if raw.endswith("\\") and _without_comment(raw) == raw:
            joined += f"{raw[:-1]} "
            continue
        line = _without_comment(joined + raw).strip()
        joined = ""
        if line:
            yield first, line


def _without_comment(line: str) -> str:
    quote = ""
    for place, char in enumerate(line):
        if quote or char in "'\"":
            quote = "" if char == quote else quote or char
        elif char == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place]
    # A quote without its end is an apostrophe, or of several lines.
    return re.sub(r"(?:^|\s)#.*$", "", line) if quote else line


def paths(command: str) -> list[str]:
    """Return the paths that a command names, each once."""
    return list(dict.fromkeys(_PATH.findall(command)))


def is_script(begin: str, path: str, command: str) -> bool:
    """Return whether a command executes what is in a file, by how the file begins, its name, or how it is named."""
    if begin.startswith(_ELF) or "\0" in begin:
        return False
    by = rf"(?:^|[\s;&|('\"@:+!=/-])(?:\.|source|-f|--file|(?:{_INTERPRETERS})(?:\s+-\S+)*)[\s=]*|<\s*"
    runs = rf"(?:{by})['\"]?{re.escape(path)}"
    return begin.startswith("#!") or path.endswith(_ENDINGS) or bool(re.search(runs, command))
