# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""udev, as far as our rules use it (udev(7)): so that what a rule does is tested, not how it is spelled."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

_TERM = re.compile(r'([A-Z]+)(?:\{([^}]+)\})?(==|!=|\+=|=)"([^"]*)"(?:, |$)')

#: Runs a command line; returns its output, or None when it failed.
Run = Callable[[str], "str | None"]
#: Writes a value to the device's attributes that match a pattern.
Write = Callable[[str, str], None]


def play(rules: str, event: dict[str, str], run: Run, write: Write) -> None:
    """Do what a rule file does at an event of a device; commands that are to be RUN come last.

    `event` holds KERNEL, ACTION, SUBSYSTEM and the device's properties.
    """
    waiting: list[str] = []
    event = dict(event)
    for line in rules.split("\n"):
        if line and not line.startswith("#"):
            _play_one(line, event, run, write, waiting)
    for command in waiting:
        run(command)


@functools.cache
def _terms(line: str) -> list[tuple[str, str, str, str]]:
    """Return (key, attribute, operator, value) of each part of a line."""
    found = _TERM.findall(line)
    parts = [f'{key}{f"{{{name}}}" if name else ""}{op}"{value}"' for key, name, op, value in found]
    assert ", ".join(parts) == line, f"udev would not understand {line!r}"
    return found


def _play_one(line: str, event: dict[str, str], run: Run, write: Write, waiting: list[str]) -> None:
    result = ""
    for key, name, operator, written in _terms(line):
        value = written.replace("$devnode", f"/dev/{event['KERNEL']}")
        if key == "PROGRAM":
            said = run(value)
            if said is None:
                return
            result = said.strip()
        elif operator in ("==", "!="):
            seen = result if key == "RESULT" else event.get(name if key == "ENV" else key, "")
            matches = any(fnmatchcase(seen, pattern) for pattern in value.split("|"))
            if matches != (operator == "=="):
                return
        elif key == "ATTR":
            write(name, value)
        elif (key, operator) == ("ENV", "="):
            # A name that begins with a dot is forgotten after the event.
            assert name.startswith("."), line
            event[name] = value
        else:
            assert (key, operator) == ("RUN", "+="), line
            waiting.append(value)
