# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows whose value at the next boot another component sets: what is reported, and that no step of ours fixes it. Pure."""

from __future__ import annotations

from ..host.observation import UNKNOWN
from ..rows import Setting


def apply(row: Setting) -> Setting:
    """Return a row as it is if another component sets its value last.

    `fix` in the evidence: our own rule cannot take precedence, and an administrator changes the file of that component.
    """
    evidence = row.evidence.get("persisted") or {}
    fix = evidence.get("fix")
    if (
        not fix
        or row.persisted == row.wanted_persisted
        or row.verdict not in ("drift_persisted", UNKNOWN, "drift_running")
    ):
        return row
    if row.verdict == "drift_running" and row.klass == "safety":
        # What is in force is ours to change now; the next boot undoes it.
        return row._replace(why=f"{row.why}; at the next boot: {evidence['reason']}")
    return row._replace(phase=None, why=str(evidence["reason"]), remedy=str(fix))
