# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of fixes of MariaDB's and MySQL's settings (facts/engine_fixes.py). Data."""

from __future__ import annotations

from .. import fixes

FIXES = {
    **fixes.FIXES,
    "remove_argument": "remove --{setting} from the unit or script that starts the server, then restart it",
    "reset_persisted": "run RESET PERSIST {setting}",
    "write_in_full": "write {setting} in full and in small letters in the server's option files, then run again",
    "make_readable": "make {path} a file that root can read, or remove {setting} from {source}, then run again",
    "allow_reading": "let root's login read {source}, then run again",
    "drop_events": (
        "drop or alter the events that set {setting} (SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM"
        " information_schema.EVENTS), then run again"
    ),
}
