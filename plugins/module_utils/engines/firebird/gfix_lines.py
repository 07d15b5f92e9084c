# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands at a server's start or at boot by which gfix sets forced writes of databases. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...host.observation import UNKNOWN
from ..others import Text

Database = dict[str, "str | None"]

_WRITE = re.compile(r"(?i)\bgfix\b.*?\s-w[a-z]*\s+['\"]?(?P<word>\S+?)['\"]?(?:\s|$)")
_WORDS = {"sync": "on", "async": "off"}


def after(databases: tuple[Database, ...], texts: Iterable[Text]) -> tuple[Database, ...]:
    """Return databases as they are after the commands: `unknown` if a command may set what the header does not have."""
    found = list(databases)
    for text in texts:
        write = _WRITE.search(text.text)
        if not write:
            continue
        word = _WORDS.get(write["word"].lower())
        for index, database in enumerate(found):
            if database["forced_writes"] in (UNKNOWN, word) or not _is_about(text.text, database, found):
                continue
            why = f"{text.source} ({text.by}) sets forced writes: remove gfix from {text.source}, then run again"
            reason = "; ".join(filter(None, (database["reason"], why)))
            found[index] = {**database, "forced_writes": UNKNOWN, "reason": reason}
    return tuple(found)


def _is_about(command: str, database: Database, every: list[Database]) -> bool:
    """Return whether a command is about a database: it has its path, or no path of any, as with an alias."""
    named = [each["path"] for each in every if each["path"] and each["path"] in command]
    return not named or database["path"] in named
