# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data that one task passes to another, packed as text because Ansible templates it.

Ansible copies a result for the variable it is registered in, for each callback and for each task that reads it, and
checks each value in it. Of an assessment that costs more than to make it; of one text it costs nothing.
"""

from __future__ import annotations

import json
from typing import Any

#: An assessment, or the report of a host as plugins/plugin_utils/report.schema.json has it.
Report = dict[str, Any]


def packed(found: Report) -> str:
    """Return an assessment or a report as JSON, in ASCII.

    It begins with a space: ansible-core before 2.19 makes a mapping of a template's result that begins with a brace.
    """
    return f" {json.dumps(found, separators=(',', ':'))}"


def unpacked(text: str) -> Report:
    """Return what was packed. Raises ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"observed {type(found).__name__}; expected what this collection has packed")
    return found
