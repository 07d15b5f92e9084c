# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header page of a Firebird database. Pure.

On-disk structure (ODS) 12 is that of Firebird 3, 13 that of Firebird 4 and 5. Firebird Internals,
"Database Header Page"; the places of both were compared with what gstat -h says of real databases.
Numbers are in the byte order of the machine that the database is on.
"""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple

#: Bytes to read: the fixed part, and what follows of names of other files. Every database is longer.
LENGTH = 1024
#: ODS major -> where the variable part begins.
_VARIABLE = {12: 132, 13: 128}
_FIXED = 132
_PAGE_SIZES = (1024, 2048, 4096, 8192, 16384, 32768)
_HEADER_PAGE, _FIREBIRD = 1, 0x8000
_NEXT_FILE, _END = 2, 0
_SHADOW, _FORCED_WRITES, _READ_ONLY = 0x1, 0x2, 0x20
_BACKUP, _SHUTDOWN, _SHUT_FULL = 0xC00, 0x1080, 0x1000
_OWNERS = {10: "Firebird 1", 11: "Firebird 2", 14: "Firebird 6"}


class Unfamiliar(ValueError):
    """A Firebird database whose structure is unknown here. The message says which."""


class Header(NamedTuple):
    """What the header page of a database says.

    `ods`: as 13.1. `forced_writes`: on or off, and what counts unless `mode` is backup. `mode`:
    read_write, read_only, shutdown (no user can attach) or backup (changes go to a file next to it, the
    header's too). `created`: when, as hexadecimal digits; a database restored over another differs.
    `next_file`: the path of its second file, or None.
    """

    ods: str
    forced_writes: str
    mode: str
    created: str
    next_file: str | None


def is_database(page: bytes) -> bool:
    """Return whether a file begins as Firebird's files do, of whatever version."""
    if len(page) < _FIXED or page[0] != _HEADER_PAGE:
        return False
    size, version = _number(page, 16), _number(page, 18)
    return size in _PAGE_SIZES and bool(version & _FIREBIRD) and 8 <= version & ~_FIREBIRD < 64


def parse(page: bytes) -> Header | None:
    """Return what a header page says, None for a file that is no complete database.

    Those are a database's second and later files, which keep no flags, and shadows, which follow
    their database. Raises Unfamiliar for another structure.
    """
    if not is_database(page):
        return None
    major = _number(page, 18) & ~_FIREBIRD
    ods = f"{major}.{_number(page, 64)}"
    if major not in _VARIABLE:
        owner = f", that of {_OWNERS[major]}" if major in _OWNERS else ""
        raise Unfamiliar(
            f"its structure is ODS {major}{owner}; expected 12 or 13, those of Firebird 3, 4 and 5"
        )
    sequence, flags = _number(page, 40), _number(page, 42)
    if sequence or flags & _SHADOW:
        return None
    forced = "on" if flags & _FORCED_WRITES else "off"
    return Header(ods, forced, _mode(flags), page[44:52].hex(), _next_file(page, _VARIABLE[major]))


def next_file(page: bytes) -> str | None:
    """Return the path of the file that follows one of a database's files, None after the last."""
    major = _number(page, 18) & ~_FIREBIRD if is_database(page) else 0
    return _next_file(page, _VARIABLE[major]) if major in _VARIABLE else None


def _mode(flags: int) -> str:
    if flags & _BACKUP:
        return "backup"
    if flags & _SHUTDOWN == _SHUT_FULL:
        return "shutdown"
    return "read_only" if flags & _READ_ONLY else "read_write"


def _next_file(page: bytes, start: int) -> str | None:
    """Return the path in the variable part: (type, length, data) again and again."""
    position = start
    while position + 2 <= len(page) and page[position] != _END:
        kind, length = page[position], page[position + 1]
        if kind == _NEXT_FILE:
            name = page[position + 2 : position + 2 + length]
            return name.decode("utf-8", "surrogateescape")
        position += 2 + length
    return None


def _number(page: bytes, offset: int) -> int:
    order = "<" if sys.byteorder == "little" else ">"
    (number,) = struct.unpack_from(f"{order}H", page, offset)
    return int(number)
