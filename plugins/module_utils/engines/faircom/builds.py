# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The builds of FairCom DB from which its write-through options work as documented. Pure."""

from __future__ import annotations

import re

from ...host.observation import UNKNOWN

WRITE_THROUGH = ("LOG_WRITETHRU", "TDATA_WRITETHRU", "TINDEX_WRITETHRU")
FIRST = "V10.3.1.21834 (build 140307)"
_NUMBERS, _BUILD = (10, 3, 1, 21834), 140307


def writes_through(version: str) -> str:
    """Return yes, no or unknown: whether a build does what its write-through options say."""
    found = re.match(r"(\d{1,9}(?:\.\d{1,9})+)(?: build (\d{6}))?", version)
    if not found:
        return UNKNOWN
    numbers = tuple(map(int, found[1].split(".")))
    if len(numbers) >= len(_NUMBERS) or numbers[:3] != _NUMBERS[:3]:
        return "yes" if numbers >= _NUMBERS else "no"
    if not found[2]:
        return UNKNOWN
    return "yes" if int(found[2]) >= _BUILD else "no"
