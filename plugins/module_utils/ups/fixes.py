# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixes of a condition as the host reports them: keywords of facts/power_fixes.py with values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..facts.classes import FixFacts


class Fix(NamedTuple):
    """One fix: its keyword, and its values by name."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> FixFacts:
        """Return it as the facts have it."""
        return {"fix": self.name, "parameters": dict(self.parameters)}


#: Fixes to apply one after the other.
Fixes = tuple[Fix, ...]


def fix(name: str, **parameters: str) -> Fixes:
    """Return one fix."""
    return (Fix(name, tuple(parameters.items())),)


def each_once(found: Iterable[Fixes]) -> Fixes:
    """Return all fixes in their order, each once."""
    return tuple(dict.fromkeys(one for fixes in found for one in fixes))


def write_number(directive: str, path: str) -> Fixes:
    """Return the fix of a time that is not a number."""
    return fix("write_number", directive=directive, path=path)


def add_monitor(path: str) -> Fixes:
    """Return the fix if the monitor's configuration names no UPS, or too few."""
    return fix("add_monitor", path=path)
