# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands and lines of scripts that set PostgreSQL's settings: ALTER SYSTEM, ROLE, DATABASE, and lines of files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import fixes
from ..others import Change, Text, is_elsewhere
from . import cluster

_NAMES = "|".join(cluster.VALUES)
#: `fsync = off`, `fsync off`, `SET fsync TO off`: a value has to follow, for dd has a word `fsync`, too.
_ASSIGNMENT = re.compile(
    rf"(?i)(?<![\w$.=-])(?P<name>{_NAMES})['\"]?(?:\s*=(?!=)\s*|\s+to\s+|\s+(?=['\"\\]*(?:on|off|true|false|yes|no|local"
    r"|remote_write|remote_apply|fdatasync|fsync|open_\w+|fsync_writethrough)\b))['\"\\]*(?P<value>\w+)?"
)
#: postgres(1): -F is fsync=off. pg_ctl(1) hands it on.
_UNFLUSHED = re.compile(r"\b(?:postgres|postmaster|pg_ctl)\b.*[\s'\"][-]\w*F(?:[\s'\"]|$)")
_RESET = re.compile(rf"(?i)\breset\s+(?P<name>{_NAMES}|all)\b")
_ALTER = re.compile(r"(?i)\balter\s+(?:system|role|user|database)\b")
#: A command that is sent to a server of another host.
_ELSEWHERE = re.compile(r"(?:\s-h\s*|\s--host[= ]\s*|\bhost=)['\"]?(?!localhost\b|127\.|::1|/)[\w.:-]")


def of_text(text: Text) -> Iterator[Change]:
    """Yield what a text sets. A reload, or the start after the next one, makes it count: no value of it is certain."""
    if is_elsewhere(text.text, _ELSEWHERE):
        return
    for found in _ASSIGNMENT.finditer(text.text):
        name = found["name"].lower()
        yield Change(name, _word(name, found["value"]), text.source, text.by)
    if _UNFLUSHED.search(text.text):
        yield Change(
            "fsync",
            "off",
            text.source,
            text.by,
            do=fixes.fix("remove_from", setting="-F", source=text.source),
        )
    for found in _RESET.finditer(text.text) if _ALTER.search(text.text) else ():
        for name in cluster.VALUES if found["name"].lower() == "all" else (found["name"].lower(),):
            yield Change(name, None, text.source, text.by)


def _word(name: str, value: str | None) -> str | None:
    try:
        return cluster.word(name, value) if value else None
    except ValueError:
        return None
