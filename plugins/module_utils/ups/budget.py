# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much time a shutdown takes, and how much the battery gives: the sums, term by term.

Durability needs barriers back on and one flush. Clean recovery needs every engine to stop by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from ..host.observation import UNKNOWN
from .conditions import MET, UNMET, Condition
from .device import Ups

DURABILITY, CLEAN_STOP = "durability", "clean_stop"
#: Seconds for what cannot be foreseen: the last writes and flushes, and units that are no engine's.
MARGIN = 60.0
#: Seconds from the monitor's word to whoever waits for it.
NOTIFY = 1.0
INFINITY = "infinity"

#: JSON has no infinity: a number of seconds, or one of the words `infinity` and `unknown`.
Seconds = Union[float, str]
_WHY = {
    DURABILITY: "what was committed last may not be on disk when the battery is empty",
    CLEAN_STOP: "the engines may be killed, or the power go, before they have stopped: they recover at the next start",
}


class Term(NamedTuple):
    """One part of a sum. `seconds` is None where unknown, math.inf where there is no end."""

    name: str
    seconds: float | None
    source: str


class Available(NamedTuple):
    """What the battery gives: seconds, None where unknown, and where that is from."""

    seconds: float | None
    source: str


class Budget(NamedTuple):
    """One sum, held against the battery."""

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

    def as_dict(self) -> dict[str, Any]:
        """Return it as the facts have it."""
        return {
            "needed": written(self.needed),
            "available": written(self.available.seconds),
            "state": self.state,
            "terms": [{**term._asdict(), "seconds": written(term.seconds)} for term in self.terms],
        }

    def condition(self) -> Condition:
        """Return it as a condition, with the arithmetic in words."""
        parts = " + ".join(f"{_shown(term.seconds)} {term.name}" for term in self.terms)
        return _condition(
            self.name, self.state, f"{parts} = {_shown(self.needed)}", self.available, self.terms
        )

    def held_against(self, needed: float | None) -> Condition:
        """Return the condition for seconds that were reckoned before."""
        state = judge(needed, needed or 0.0, self.available.seconds)
        return _condition(self.name, state, f"{_shown(needed)} reckoned", self.available, ())


def judge(needed: float | None, least: float, available: float | None) -> str:
    """Return met, unmet or unknown. `least` is what is needed at the least where the whole is unknown."""
    if least == math.inf or (available is not None and least > available):
        return UNMET
    return UNKNOWN if needed is None or available is None else MET


def of_stops(stop_timeouts: Iterable[Mapping[str, Any]]) -> list[Term]:
    """Return a term for each engine that is to be stopped, one for each unit.

    `stop_timeouts`: [{engine, unit, seconds}], seconds a number as text, `infinity` or anything else for
    unknown. Raises ValueError for what is no such list.
    """
    found: dict[str, Term] = {}
    for row in stop_timeouts:
        if not isinstance(row, Mapping) or not isinstance(row.get("engine"), str):
            raise ValueError(f"stop_timeouts: seen {row!r}, wanted engine, unit and seconds")
        unit, engine = row.get("unit"), row["engine"]
        key = str(unit) if unit else f"{engine} {len(found)}"
        source = f"systemd's stop timeout of {unit}" if unit else f"{engine} has no unit of its own"
        term = Term(f"stop of {unit or engine}", _seconds(row.get("seconds")), source)
        found.setdefault(key, term)
    return list(found.values())


def battery_now(upses: Sequence[Ups]) -> Available:
    """Return what the batteries give now: the shortest of those that tell, none where one does not."""
    return _shortest(upses, "runtime", "runtime now")


def battery_low(upses: Sequence[Ups]) -> Available:
    """Return what the batteries still give when they are called low: the shortest."""
    return _shortest(upses, "runtime_low", "runtime when low")


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


def _shortest(upses: Sequence[Ups], field: str, what: str) -> Available:
    counted = [ups for ups in upses if ups.power_value]
    if not counted:
        return Available(None, "no UPS feeds this host")
    silent = [ups for ups in counted if getattr(ups, field) is None]
    if silent:
        ups = silent[0]
        why = ups.reason or (ups.low_reason if field == "runtime_low" else ups.runtime_reason)
        return Available(None, f"{ups.system}: {why or f'it tells no {what}'}")
    ups = min(counted, key=lambda ups: float(getattr(ups, field)))
    return Available(getattr(ups, field), f"{what} of {ups.system}")


def _seconds(said: Any) -> float | None:
    if said == INFINITY:
        return math.inf
    try:
        return read(float(said))
    except (TypeError, ValueError, OverflowError):
        return None


def _condition(name: str, state: str, sum_: str, available: Available, terms: Sequence[Term]) -> Condition:
    evidence = f"needed: {sum_}; available: {_shown(available.seconds)} ({available.source})"
    if state == MET:
        return Condition(f"runtime_{name}", "host", MET, evidence, "", "")
    endless = [term for term in terms if term.seconds == math.inf]
    unknown = [term for term in terms if term.seconds is None]
    if endless:
        remedy = f"give {_names(endless)} an end: TimeoutStopSec= of the unit"
    elif unknown:
        remedy = f"find out about {_names(unknown)}: {unknown[0].source}"
    elif available.seconds is None:
        remedy = "have the battery's runtime known"
        if name == CLEAN_STOP:
            remedy += ": in ups.conf ignorelb and override.battery.runtime.low, or in apcupsd.conf MINUTES"
    elif name == CLEAN_STOP:
        remedy = (
            "begin the shutdown earlier (battery.runtime.low with ignorelb, or MINUTES), shorten stop timeouts, or"
            " put in a larger battery"
        )
    else:
        remedy = "let the battery charge, or put in a larger one"
    return Condition(f"runtime_{name}", "host", state, evidence, _WHY[name], remedy)


def _names(terms: Sequence[Term]) -> str:
    return ", ".join(term.name for term in terms)


def _shown(seconds: float | None) -> str:
    word = written(seconds)
    return word if isinstance(word, str) else f"{word:g} s"
