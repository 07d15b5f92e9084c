# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows whose value at the next boot another component sets: they are reported, and no step fixes them. Pure."""

from __future__ import annotations

import re
from typing import Any

from ...host.observation import UNKNOWN
from ...next_boot.tuned import BY as TUNED
from ...rows import Setting
from .scheduling import IN_TUNED


def apply(row: Setting) -> Setting:
    """Return a row with the effect of another component that sets its value last.

    `fix` in the evidence: our rule cannot take precedence, so an administrator changes the file of that component.
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
        # A run changes the running value; the next boot reverts it.
        return row._replace(why=f"{row.why}; at the next boot: {evidence['reason']}")
    return row._replace(phase=None, why=str(evidence["reason"]), remedy=_remedy(row, evidence))


#: Files of packages that a file of the same name in /etc replaces.
_PACKAGED = re.compile(r"(?:/usr)?/lib/((?:udev/rules|tmpfiles)\.d|systemd/system)/[^/ ]+")
#: The directory of a profile that came with a package.
_TUNED = re.compile(r"/usr/lib/tuned/(?:profiles/)?[^/ ]+")


def _remedy(row: Setting, evidence: dict[str, Any]) -> str:
    """Return the change that makes another component set the wanted value, or none."""
    if evidence["value"] == UNKNOWN:
        return str(evidence["fix"])
    wanted, source = row.wanted_persisted, str(evidence["source"])
    if evidence.get("by") == TUNED:
        profile = _TUNED.match(source)
        place = f"a copy of {profile[0]} in /etc/tuned" if profile else source
        option = IN_TUNED.get(row.setting)
        change = f"set {option} to {wanted} in {place}" if option else f"remove the assignment from {place}"
        return f"select another profile (tuned-adm profile NAME), or {change}"
    packaged = _PACKAGED.match(source)
    place = f"a copy of {packaged[0]} in /etc/{packaged[1]}" if packaged else source
    return f"remove the assignment from {place}, or set it to {wanted} there"
