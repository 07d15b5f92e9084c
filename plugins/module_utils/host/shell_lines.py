# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of shell scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number, from 1, and text of each line of a script, without comments. Lines that a backslash joins are one."""
    joined, first = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        first = first if joined else number
        joined += raw
        if joined.endswith("\\"):
            joined = f"{joined[:-1]} "
            continue
        line = re.sub(r"(?:^|\s)#.*$", "", joined).strip()
        joined = ""
        if line:
            yield first, line
