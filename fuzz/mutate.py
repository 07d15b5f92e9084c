# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that know nothing of a format, for the short run, and one that libFuzzer does not make: length."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: What has misled a parser somewhere: line ends that only Python knows, digits that int() refuses, nesting.
TOKENS = [
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\r",
        b"\\",
        b"\\\n",
        b'"',
        b"'",
        b"#",
        b"=",
        b":",
        b"%",
        b"[",
        b"{",
        b"}",
        b"]",
    ),
    *("\u2028".encode(), "\x85".encode(), b"\x0b", b"\x1c", b"\xff", b"\xed\xa0\x80", "\ufeff".encode()),
    *("²".encode(), "٣".encode(), b"-1", b"9" * 5000, b"1e999", b"NaN", b"Infinity", b"null", b"true", b"0x"),
    *(b"[" * 2000, b'{"a":' * 2000),
    *(b"..", b"/", b"\x1b[2J", "\u202e".encode(), b"$(x)", b"${x}", b"%s", b"{{ x }}"),
]


def mutate(data: bytes, chance: random.Random, others: Sequence[bytes], most: int) -> bytes:
    """Return the data with one to four changes, `most` bytes at most."""
    for _change in range(chance.randint(1, 4)):
        start, end = sorted(chance.randrange(len(data) + 1) for _side in "ab")
        kind = chance.randrange(6)
        if kind == 0:
            data = data[:start] + data[end:]
        elif kind == 1:
            data = data[:start] + chance.choice(TOKENS) + data[start:]
        elif kind == 2:
            data = data[:start] + chance.choice(TOKENS) + data[end:]
        elif kind == 3 and data:
            place = chance.randrange(len(data))
            data = data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
        elif kind == 4 and others:
            other = chance.choice(others)
            data = data[:start] + other[chance.randrange(len(other) + 1) :]
        elif kind == 5:
            data = data[:end] + data[start:end] + data[end:]
    return data[:most]


def stretch(data: bytes, chance: random.Random, most: int) -> bytes:
    """Return the data with a part of it repeated until it has `most` bytes: what takes the square of a
    length shows only then."""
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.choice((1, 2, 8, 80, len(data)))] or b"x"
    room = max(0, most - len(data))
    return data[:start] + part * (room // len(part)) + data[start:]
