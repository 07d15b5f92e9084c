# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the next boot with the texts that the policy writes for them."""

from __future__ import annotations

from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.facts import boot_causes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import boot_rows


def with_texts(faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of faults, each with its setting, reason and fix; the values are those of its cause."""
    for fault in faults:
        assert boot_causes.fits(fault["cause"], fault["parameters"]), fault
    return [
        {**fault, "fault": boot_rows.fault_of(fault), **dict(zip(("why", "remedy"), boot_rows.texts(fault)))}
        for fault in faults
    ]
