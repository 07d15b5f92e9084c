# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel should believe of a disk's cache. Pure; policy and layer agree on it here."""

from __future__ import annotations

from typing import Any


def is_pinned(disk: dict[str, Any]) -> bool:
    """Tell whether a disk's belief stays at write back whatever its cache is set to.

    Many SATA drives forget a disabled cache at a reset. A stronger belief costs flushes that do
    nothing; a weaker one loses commits. A virtio disk's belief cannot be set apart from its cache.
    """
    return bool(disk["transport"] == "sata")


def for_state(disk: dict[str, Any], state: str) -> str:
    """Return the weakest belief that is right when the cache is enabled, disabled, or none."""
    return "write back" if is_pinned(disk) or state == "enabled" else "write through"
