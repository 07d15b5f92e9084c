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

#: One part of a line: key, name of an attribute, operator, value.
Term = tuple[str, str, str, str]
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
    for terms in _select(rules, tuple(event.items())):
        _play_one(terms, event, run, write, waiting)
    for command in waiting:
        run(command)


@functools.lru_cache(maxsize=1000)
def _select(rules: str, event: tuple[tuple[str, str], ...]) -> list[list[Term]]:
    """Return the lines that begin with nothing that the event is not, without that beginning.

    The same for each such event: no line changes what the kernel and udev's database say.
    """
    said, found = dict(event), []
    for line in rules.split("\n"):
        if line and not line.startswith("#"):
            waiting = list(_terms(line))
            while waiting and _is_of_event(waiting[0]) and _holds(waiting[0], said):
                del waiting[0]
            if not waiting or not _is_of_event(waiting[0]):
                found.append(waiting)
    return found


def _is_of_event(term: Term) -> bool:
    """Say whether a term is a condition on what an event is from its beginning."""
    key, name, operator, _value = term
    return operator in ("==", "!=") and key not in ("PROGRAM", "RESULT") and not name.startswith(".")


def _holds(term: Term, said: dict[str, str]) -> bool:
    key, name, operator, value = term
    seen = said.get(name if key == "ENV" else key, "")
    fits = any(fnmatchcase(seen, pattern) for pattern in value.split("|"))
    return fits == (operator == "==")


@functools.cache
def _terms(line: str) -> list[Term]:
    found: list[Term] = _TERM.findall(line)
    parts = [f'{key}{f"{{{name}}}" if name else ""}{op}"{value}"' for key, name, op, value in found]
    assert ", ".join(parts) == line, f"udev would not understand {line!r}"
    return found


def _play_one(terms: list[Term], event: dict[str, str], run: Run, write: Write, waiting: list[str]) -> None:
    event["RESULT"] = ""
    for key, name, operator, written in terms:
        value = written.replace("$devnode", f"/dev/{event['KERNEL']}")
        if key == "PROGRAM":
            said = run(value)
            if said is None:
                return
            event["RESULT"] = said.strip()
        elif operator in ("==", "!="):
            if not _holds((key, name, operator, value), event):
                return
        elif key == "ATTR":
            write(name, value)
        elif (key, operator) == ("ENV", "="):
            # A name that begins with a dot is forgotten after the event.
            assert name.startswith("."), terms
            event[name] = value
        else:
            assert (key, operator) == ("RUN", "+="), terms
            waiting.append(value)
