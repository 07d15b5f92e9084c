# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of systemd's journal, as `journalctl --output=json` prints them. Pure.

systemd.journal-fields(7): fields that begin with an underscore are set by the journal and cannot be
forged by any process that logs. A field that is no text comes as a list of bytes, a very long one as null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..host import json_text

#: The requested fields; an entry has more.
FIELDS = ("MESSAGE", "MESSAGE_ID", "UNIT", "UNIT_RESULT", "_PID", "_SYSTEMD_UNIT", "_TRANSPORT")

#: systemd's catalogue of messages, sd-messages.h.
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
FAILURE_RESULT = "d9b373ed55a64feb8242e02dbe79a49c"


class Entry(NamedTuple):
    """One entry. `at`: seconds since the boot it is of; `unit`: the service that it is about, when systemd
    itself speaks, else the one that speaks; `by_systemd`: whether it is systemd's own word."""

    at: float
    id: str
    unit: str
    by_systemd: bool
    text: str
    result: str


def parse(text: str) -> list[Entry]:
    """Return the entries in their order. Raises ValueError for what is no journal."""
    entries = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json_text.loads(line)
        except ValueError:
            raise ValueError(f"journal line {number}: not JSON") from None
        if not isinstance(found, dict):
            raise ValueError(f"journal line {number}: not an entry")
        entries.append(_entry(found, number))
    return entries


def of(entries: Iterable[Entry], unit: str, *ids: str) -> list[Entry]:
    """Return what systemd says of a unit, of these messages, or of all."""
    return [each for each in entries if each.by_systemd and each.unit == unit and (not ids or each.id in ids)]


def entries_of(entries: Iterable[Entry], unit: str) -> list[Entry]:
    """Return what the processes of a unit say."""
    return [each for each in entries if not each.by_systemd and each.unit == unit]


def _entry(found: dict[str, Any], number: int) -> Entry:
    stamp = _text(found.get("__MONOTONIC_TIMESTAMP"))
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 20):
        raise ValueError(f"journal line {number}: no time since the boot")
    by_systemd = _text(found.get("_PID")) == "1"
    unit = _text(found.get("UNIT")) if by_systemd else _text(found.get("_SYSTEMD_UNIT"))
    return Entry(
        int(stamp) / 1e6,
        _text(found.get("MESSAGE_ID")),
        unit,
        by_systemd,
        _text(found.get("MESSAGE")),
        _text(found.get("UNIT_RESULT")),
    )


def _text(value: Any) -> str:
    """Return a field as text; of a field that stands several times the first."""
    if isinstance(value, list):
        if value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            return bytes(value).decode("utf-8", "replace")
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""
