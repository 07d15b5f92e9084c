# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real machines said, in tests/fixtures/; README.md there says which."""

from __future__ import annotations

from pathlib import Path

COLLECTION = Path(__file__).resolve().parents[5]


def captured(name: str) -> str:
    """Return a captured text, byte for byte."""
    return (COLLECTION / "tests/fixtures" / name).read_bytes().decode("utf-8", "surrogateescape")
