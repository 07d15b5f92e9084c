# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds that a battery must last, held against those that it has: the sum in words. Pure."""

from __future__ import annotations

import math
from typing import Any

#: The two budgets: barriers on and everything flushed; and every engine stopped as well.
NAMES = ("durability", "clean_stop")
_MARGIN = "margin"


def with_margin(budget: dict[str, Any], margin: int) -> dict[str, Any]:
    """Return a budget of the facts with the margin that the host's owner asks for.

    `budget` is {needed, available, state, terms: [{name, seconds, source}]}, `terms` without or with a
    margin. What is not known stays so: the state is then that of the facts.
    """
    known = [term for term in budget["terms"] if term["name"] != _MARGIN]
    terms = [*known, {"name": _MARGIN, "seconds": margin, "source": "durable_ups"}]
    needed, available, state = budget["needed"], budget["available"], budget["state"]
    if is_number(needed) and all(is_number(term["seconds"]) for term in terms):
        needed = sum(term["seconds"] for term in terms)
        if is_number(available) and state in ("met", "unmet"):
            state = "met" if available >= needed else "unmet"
    return {**budget, "terms": terms, "needed": needed, "state": state}


def is_number(value: Any) -> bool:
    """Tell whether a value counts seconds."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def in_words(budget: dict[str, Any]) -> str:
    """Return a budget's sum, term by term, and what it is held against."""
    terms = " + ".join(f"{_seconds(term['seconds'])} ({term['name']})" for term in budget["terms"])
    return f"{terms} = {_seconds(budget['needed'])} s needed, of {_seconds(budget['available'])} s of runtime"


def _seconds(value: Any) -> str:
    return f"{value:g}" if is_number(value) else str(value or "unknown")
