# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions in the order in which boot loaders and RPM put them: 553.8.1 before 553.16.1. Pure."""

from __future__ import annotations

import functools
import re

#: What filevercmp(3) of gnulib compares last: `.conf` and what is before it.
_SUFFIXES = re.compile(r"(?:\.[A-Za-z~][A-Za-z0-9~]*)*$")
_PART = re.compile(r"~|\^|[0-9]+|[a-zA-Z]+")
#: Ranks of what follows a common beginning: a tilde, the end, a caret, letters, digits.
_TILDE, _END, _CARET, _LETTERS, _DIGITS = range(5)


def compare(one: str, other: str) -> int:
    """Return a number below, at or above 0, as rpmvercmp does: digits by value, letters as text, digits above letters."""
    ours, theirs = _parts(one), _parts(other)
    for mine, its in zip(ours, theirs):
        if mine != its:
            return -1 if mine < its else 1
    return 0


#: For sorted(): the oldest first.
key = functools.cmp_to_key(compare)


def of_file(name: str) -> tuple[list[object], list[object]]:
    """Return the key of a file's name with which sorted() does as filevercmp(3), the oldest first.

    A tilde is before the end of a name, the end before digits, these before letters, and those before other characters.
    """
    return _runs(_SUFFIXES.sub("", name)), _runs(name)


def _runs(text: str) -> list[object]:
    """Return runs of other characters and the numbers between them, in turn."""
    found: list[object] = []
    for other, digits in re.findall(r"([^0-9]*)([0-9]*)", text):
        found += [[*map(_rank, other), 0 if digits else -1], int(digits or "0")]
    return found


def _rank(character: str) -> int:
    if character == "~":
        return -2
    return ord(character) + (0 if character.isalpha() else 256)


def _parts(text: str) -> list[tuple[int, int, str]]:
    found = [_ranked(part) for part in _PART.findall(text)]
    return [*found, (_END, 0, "")]


def _ranked(part: str) -> tuple[int, int, str]:
    if part.isdigit():
        return (_DIGITS, int(part), "")
    rank = {"~": _TILDE, "^": _CARET}.get(part, _LETTERS)
    return (rank, 0, part)
