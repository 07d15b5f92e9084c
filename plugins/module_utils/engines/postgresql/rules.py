# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that PostgreSQL needs so that acknowledged commits are on disk. Data."""

from __future__ import annotations

from ..rule import EARLY, relaxed, rule
from ..rules import Judge
from .fixes import FIXES, REFUSALS

_FULL = {
    "fsync": rule("on", "the server never asks that its files reach the disk", loses=True),
    "full_page_writes": rule("on", "a half-written page after a power cut cannot be repaired", loses=True),
    # A value that waits for more than this host's disk stays.
    "synchronous_commit": rule("on local remote_write remote_apply", EARLY, loses=True),
    "wal_sync_method": rule(
        "fdatasync fsync open_datasync open_sync", "no such way of writing the log is known here", loses=False
    ),
    "data_sync_retry": rule(
        "off",
        "after a failed fsync the server goes on, with pages that may never reach the disk",
        loses=False,
        live=False,
    ),
}
#: To lose the last commits never corrupts.
JUDGE = Judge(
    full={"postgresql": _FULL},
    relaxed={"postgresql": relaxed(_FULL, {"synchronous_commit": "off"})},
    fix_texts=FIXES,
    refusal_texts=REFUSALS,
)
