# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds that a battery must last, held against those that it has: the sum in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The two budgets: barriers on and everything flushed; and every engine stopped as well.
NAMES = ("durability", "clean_stop")


def in_words(budget: dict[str, Any]) -> str:
    """Return a budget's sum, term by term, and what it is held against.

    `budget` is {needed, available, state, terms: [{name, seconds, source}]}; seconds are numbers, or the
    words `infinity` and `unknown`.
    """
    terms = " + ".join(f"{_seconds(term['seconds'])} ({term['name']})" for term in budget["terms"])
    return f"{terms or 'nothing known'} = {_seconds(budget['needed'])} s needed, of {_seconds(budget['available'])} s"


def needed(budget: dict[str, Any], changed: Mapping[str, float]) -> Any:
    """Return the seconds that a budget needs once a run has changed some of its terms, {name: seconds}.

    A term of 0 s is one that does not count here, whatever it is set to.
    """
    terms = {term["name"]: term["seconds"] for term in budget["terms"]}
    less = [terms[name] for name in changed if terms.get(name)]
    if not less or not all(isinstance(value, (int, float)) for value in (budget["needed"], *less)):
        return budget["needed"]
    return budget["needed"] - sum(less) + sum(value for name, value in changed.items() if terms.get(name))


def _seconds(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
