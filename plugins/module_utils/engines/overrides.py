# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixes of settings of a role, a database, a session or an option, by the keyword of a host. Pure."""

from __future__ import annotations

import re

from ..facts.classes import OverrideFacts
from ..host.printable import name as quoted

#: Keyword of the facts -> what removes the setting.
_FIXES = {
    "role": "run {reset}",
    "role_of_primary": "on its primary run {reset}",
    "session": "have them connect again: a session keeps what its role or database had when it began",
    "option": "remove {setting} from {source}, then restart the server",
}
#: A name that is one word to a shell and to SQL alike, once it stands in double quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,62}")


def fix(override: OverrideFacts) -> str:
    """Return what to do about an override of an instance's facts."""
    return _FIXES[override["cause"]].format(
        reset=reset(override["setting"], override["role"], override["database"]),
        setting=quoted(override["setting"]),
        source=quoted(override["source"]),
    )


def reset(name: str, role: str | None, database: str | None) -> str:
    """Return what removes a setting. The server names roles and databases: no statement repeats more than a word."""
    if not all(_PLAIN.fullmatch(each) for each in (role, database) if each is not None):
        return f"ALTER ROLE or ALTER DATABASE ... RESET {name}, with the name quoted"
    if role is None and database is not None:
        return f'ALTER DATABASE "{database}" RESET {name}'
    who = "ALL" if role is None else f'"{role}"'
    where = f' IN DATABASE "{database}"' if database is not None else ""
    return f"ALTER ROLE {who}{where} RESET {name}"
