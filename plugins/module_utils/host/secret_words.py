# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a line of configuration, or a command in it, can hold a password or a key. Pure."""

from __future__ import annotations

import re

NOT_SHOWN = "not shown: it can contain a secret"
#: Characters that are searched for a secret. A longer line is not shown.
_LINE = 4096
#: Names of options that hold a password or a key, a user with a password in a URL or behind `-u` (for curl, lftp and
#: smbclient; not the format of `date -u`) or before `-p` (for upscmd, ipmitool and mysql), a community or a key of SNMP, the
#: address of a webhook, and NUT's line of a user with its password.
_SECRET = re.compile(
    r"pass(?!>)|pwd|secret|token|credential|conninfo|identified|key\b|auth\b|authorization|bearer|\bsig=|signature="
    r"|^\W*(monitor|certident)\b|://[^/\s:]*:[^@\s]+@"
    r"|((?<![\w-])-[a-z]{0,5}u|--(proxy-)?user)(\s+|=)?[^\s+]\S*[:,%]"
    r"|\s-u\s?\S.*\s-p(\s+(?!\d+(?!\S)))?\S|\bsnmp\w+\s.*\s-[cax]|webhook|\bhooks\.|/bot\d+:",
    re.IGNORECASE,
)


def can_hold_secret(row: str) -> bool:
    """Return whether a line or a command can hold a secret."""
    return len(row) > _LINE or bool(_SECRET.search(row))


def without_secret(command: str) -> str:
    """Return a command as reports may show it: a note in its place if it can hold a secret."""
    return f"[command {NOT_SHOWN}]" if can_hold_secret(command) else command
