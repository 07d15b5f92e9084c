# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel should believe of a disk's cache. Pure; policy and layer agree on it here."""

from __future__ import annotations

from typing import Any

from .caches import CONTROLS


def is_pinned(disk: dict[str, Any]) -> bool:
    """Tell whether a disk's belief stays at write back whatever its cache is set to.

    Only a disk whose cache and belief are one switch is not pinned.
    """
    control = CONTROLS.get(disk["control"])
    return control is None or control.pinned


def needs_rule(disk: dict[str, Any]) -> bool:
    """Tell whether a belief that is right at the next boot takes a rule; else the kernel's own is."""
    control = CONTROLS.get(disk["control"])
    return control is not None and control.pinned_by_rule


def for_state(disk: dict[str, Any], state: str) -> str:
    """Return the weakest belief that is right when the cache is enabled, disabled, or none."""
    return "write back" if is_pinned(disk) or state == "enabled" else "write through"
