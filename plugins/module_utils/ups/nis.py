# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The response of apcupsd's network information server: apcaccess(8), and the NIS chapter of apcupsd's manual.

A record is two bytes of length, the greater first, and a text `NAME : value`; one of length 0 ends the
answer.
"""

from __future__ import annotations

import re

from ..host.seam import Host, Unobservable

PORT = 3551
_QUESTION = b"\x00\x06status"
_FIELD = re.compile(r"([A-Z0-9 ]{1,10}?) *:(.*)", re.S | re.ASCII)


def ask(host: Host, address: str, port: int) -> dict[str, str]:
    """Return {field: value} of apcupsd's status. Raises Unobservable."""
    (answer,) = host.ask(address, port, [_QUESTION], is_whole)
    try:
        return fields(answer)
    except ValueError as error:
        raise Unobservable(f"apcupsd of {address}: {error}") from error


def is_whole(answer: bytearray) -> bool:
    """Return whether an answer is complete."""
    place = 0
    while len(answer) >= place + 2:
        length = answer[place] * 256 + answer[place + 1]
        if length == 0:
            return True
        place += 2 + length
    return False


def fields(answer: bytes) -> dict[str, str]:
    """Return {field: value} of a complete answer. Raises ValueError with the observed and the expected value."""
    found: dict[str, str] = {}
    place = 0
    while answer[place : place + 2] != b"\0\0":
        length = int.from_bytes(answer[place : place + 2], "big")
        text = answer[place + 2 : place + 2 + length].decode("utf-8", "surrogateescape")
        field = _FIELD.fullmatch(text)
        if not field:
            raise ValueError(f"observed {text[:60]!r}, expected NAME : value")
        if field[1] in found:
            raise ValueError(f"observed {field[1]} twice, expected each field once")
        found[field[1]] = field[2].strip()
        place += 2 + length
    return found
