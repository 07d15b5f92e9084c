# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the kernel. Pure."""

from __future__ import annotations

import re


def version(release: str) -> tuple[int, int]:
    """Return a kernel release's first two numbers; (0, 0) for text that has none."""
    numbers = re.match(r"(\d{1,9})\.(\d{1,9})(?!\d)", release, re.ASCII)
    return (int(numbers.group(1)), int(numbers.group(2))) if numbers else (0, 0)
