# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel cache mode that a disk should have. Pure; policy and layer agree on it here."""

from __future__ import annotations

from ..facts.classes import DiskFacts
from .caches import CONTROLS


def is_pinned(disk: DiskFacts) -> bool:
    """Return whether a disk's kernel cache mode stays at write back whatever its cache is set to.

    Only a disk with one switch for its cache and its kernel cache mode is not pinned.
    """
    control = CONTROLS.get(disk["control"])
    return control is None or control.pinned


def needs_rule(disk: DiskFacts) -> bool:
    """Return whether a cache mode that is right at the next boot takes a rule; else the kernel's own is right."""
    control = CONTROLS.get(disk["control"])
    return control is not None and control.pinned_by_rule


def for_state(disk: DiskFacts, state: str) -> str:
    """Return the weakest cache mode that is right when the cache is enabled, disabled, or none."""
    return "write back" if is_pinned(disk) or state == "enabled" else "write through"
