# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds that a battery must last, compared with the seconds available: the sum as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...facts.ups import BudgetFacts, PowerFacts, Seconds

#: The two budgets: barriers on and everything flushed; and every engine stopped as well.
NAMES = ("durability", "clean_stop")


def in_words(budget: BudgetFacts) -> str:
    """Return a budget's sum as text, term by term, with the available seconds.

    `budget` is {needed, available, state, terms: [{name, seconds, source}]}; seconds are numbers, or
    `infinity` or `unknown`.
    """
    terms = " + ".join(f"{_seconds(term['seconds'])} ({term['name']})" for term in budget["terms"])
    return f"{terms or 'nothing known'} = {_seconds(budget['needed'])} s needed, of {_seconds(budget['available'])} s"


def by_name(power: PowerFacts) -> dict[str, BudgetFacts]:
    """Return the budgets of NAMES."""
    return {"durability": power["budget"]["durability"], "clean_stop": power["budget"]["clean_stop"]}


def needed(budget: BudgetFacts, changed: Mapping[str, float]) -> Seconds:
    """Return the seconds that a budget needs once a run has changed some of its terms, {name: seconds}.

    A term of 0 s does not count on this host with any setting.
    """
    terms = {term["name"]: term["seconds"] for term in budget["terms"]}
    less = [terms[name] for name in changed if terms.get(name)]
    before = budget["needed"]
    known = [value for value in less if not isinstance(value, str)]
    if not less or len(known) < len(less) or isinstance(before, str):
        return before
    return before - sum(known) + sum(value for name, value in changed.items() if terms.get(name))


def _seconds(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
