# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seconds that a shutdown needs and the battery provides, term by term.

Durability needs barriers back on and one flush. A clean stop needs every engine to stop without a kill.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from ..facts.classes import BudgetFacts
from ..host.observation import UNKNOWN
from .conditions import MET, UNMET, Condition
from .device import Ups
from .fixes import Fixes, add_monitor, each_once, fix

DURABILITY, CLEAN_STOP = "durability", "clean_stop"
#: Seconds for what cannot be foreseen: the last writes and flushes, and units that are no engine's.
MARGIN = 60.0
#: Seconds from the monitor's word to whoever waits for it.
NOTIFY = 1.0
INFINITY = "infinity"
#: What to do about a UPS without a runtime: no limit could be held against it.
_REPORT_RUNTIME = fix("report_runtime")

#: JSON has no infinity: a number of seconds, or one of the words `infinity` and `unknown`.
Seconds = Union[float, str]


class Term(NamedTuple):
    """One part of a sum. `seconds` is None if unknown, math.inf without an end; `fixes`: those of such a term."""

    name: str
    seconds: float | None
    source: str
    fixes: Fixes = ()


class Available(NamedTuple):
    """What the battery gives: seconds, None if unknown, and their source; `fixes`: those of too few or unknown
    seconds, if it is not the battery that decides."""

    seconds: float | None
    source: str
    fixes: Fixes = ()


class Budget(NamedTuple):
    """One sum, compared with the battery."""

    name: str
    terms: tuple[Term, ...]
    available: Available

    @property
    def needed(self) -> float | None:
        """The sum of the terms, None where one of them is unknown and none is endless."""
        seconds = [term.seconds for term in self.terms]
        if math.inf in seconds:
            return math.inf
        known = [part for part in seconds if part is not None]
        return sum(known) if len(known) == len(seconds) else None

    @property
    def state(self) -> str:
        """met, unmet or unknown."""
        least = sum(term.seconds for term in self.terms if term.seconds is not None)
        return judge(self.needed, least, self.available.seconds)

    def as_dict(self) -> BudgetFacts:
        """Return it as the facts have it."""
        return {
            "needed": written(self.needed),
            "available": written(self.available.seconds),
            "state": self.state,
            "terms": [
                {"name": term.name, "seconds": written(term.seconds), "source": term.source}
                for term in self.terms
            ],
        }

    def condition(self) -> Condition:
        """Return it as a condition, with the arithmetic as text."""
        parts = " + ".join(f"{_shown(term.seconds)} {term.name}" for term in self.terms)
        sum_ = f"{parts} = {_shown(self.needed)}"
        return _condition(self.name, self.state, sum_, self.needed, self.available, self.terms)

    def held_against(self, needed: float | None) -> Condition:
        """Return the condition for seconds that were reckoned before."""
        state = judge(needed, needed or 0.0, self.available.seconds)
        return _condition(self.name, state, f"{_shown(needed)} reckoned", needed, self.available, ())


def judge(needed: float | None, least: float, available: float | None) -> str:
    """Return met, unmet or unknown. `least` is what is needed at the least where the whole is unknown."""
    if least == math.inf or (available is not None and least > available):
        return UNMET
    return UNKNOWN if needed is None or available is None else MET


def of_stops(stop_timeouts: Iterable[Mapping[str, Any]]) -> list[Term]:
    """Return a term for each engine that a shutdown stops, one for each unit.

    `stop_timeouts`: [{engine, unit, seconds}], seconds a number as text, `infinity` or anything else for
    unknown. Raises ValueError for what is no such list.
    """
    found: dict[str, Term] = {}
    for row in stop_timeouts:
        if not isinstance(row, Mapping) or not isinstance(row.get("engine"), str):
            raise ValueError(f"stop_timeouts: observed {row!r}, expected engine, unit and seconds")
        unit, engine = row.get("unit"), row["engine"]
        key = str(unit) if unit else f"{engine} {len(found)}"
        source = f"systemd's stop timeout of {unit}" if unit else f"{engine} has no separate unit"
        seconds = _seconds(row.get("seconds"))
        if unit and seconds == math.inf:
            fixes = fix("limit_stop", unit=str(unit))
        elif unit:
            fixes = fix("use_own_unit", engine=engine, unit=str(unit))
        else:
            fixes = fix("use_own_unit.none", engine=engine)
        term = Term(f"stop of {unit or engine}", seconds, source, fixes)
        found.setdefault(key, term)
    return list(found.values())


def battery_now(upses: Sequence[Ups], path: str = "") -> Available:
    """Return what the batteries give now: the shortest of those that tell, none where one does not.

    `path`: the monitor's configuration.
    """
    return _shortest(upses, "runtime", "runtime now", path)


def battery_low(upses: Sequence[Ups], path: str = "") -> Available:
    """Return what the batteries still give when they are called low: the shortest; `path` as for battery_now."""
    return _shortest(upses, "runtime_low", "runtime when low", path)


def written(seconds: float | None) -> Seconds:
    """Return seconds as JSON takes them."""
    if seconds is None:
        return UNKNOWN
    return INFINITY if seconds == math.inf else seconds


def read(seconds: Any) -> float | None:
    """Return what `written` wrote, None for anything that is no number of seconds."""
    if seconds == INFINITY:
        return math.inf
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return float(seconds) if is_number and 0 <= seconds < math.inf else None


def _shortest(upses: Sequence[Ups], field: str, what: str, path: str) -> Available:
    counted = [ups for ups in upses if ups.power_value]
    if not counted:
        return Available(None, "no UPS feeds this host", add_monitor(path))
    silent = [ups for ups in counted if getattr(ups, field) is None]
    if silent:
        ups = silent[0]
        fixes = ups.fixes if ups.reason else () if ups.runtime is not None else _REPORT_RUNTIME
        why = ups.reason or (ups.low_reason if field == "runtime_low" else ups.runtime_reason)
        return Available(None, f"{ups.system}: {why or f'it tells no {what}'}", fixes)
    ups = min(counted, key=lambda ups: float(getattr(ups, field)))
    return Available(getattr(ups, field), f"{what} of {ups.system}")


def _seconds(value: Any) -> float | None:
    if value == INFINITY:
        return math.inf
    try:
        return read(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


def _condition(
    name: str, state: str, sum_: str, needed: float | None, available: Available, terms: Sequence[Term]
) -> Condition:
    evidence = f"needed: {sum_}; available: {_shown(available.seconds)} ({available.source})"
    if state == MET:
        return Condition(f"runtime_{name}", "host", MET, evidence, ())
    endless = [term for term in terms if term.seconds == math.inf]
    unknown = [term for term in terms if term.seconds is None]
    if endless or unknown:
        fixes = each_once(term.fixes for term in endless or unknown)
    elif available.fixes:
        fixes = available.fixes
    elif name == CLEAN_STOP:
        fixes = _start_earlier(needed, available)
    elif available.seconds is None:
        fixes = _REPORT_RUNTIME
    else:
        fixes = fix("charge_battery")
    return Condition(f"runtime_{name}", "host", state, evidence, fixes)


def _start_earlier(needed: float | None, available: Available) -> Fixes:
    """Return the fix with which a shutdown starts while the battery lasts for it."""
    name = "report_low_battery" if available.seconds is None else "start_earlier"
    if needed is None or needed == math.inf:
        return fix(f"{name}.unknown_need")
    return fix(name, seconds=f"{math.ceil(needed)}", minutes=f"{math.ceil(needed / 60)}")


def _shown(seconds: float | None) -> str:
    word = written(seconds)
    return word if isinstance(word, str) else f"{word:g} s"
