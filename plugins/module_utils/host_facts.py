# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of one host in one execution: engines, storage and power. Each can fail alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .enforce import one_run
from .engines import collect as engines
from .facts.classes import PowerFacts, StopTimeout
from .host import bounds
from .host.paths import of_databases
from .host.printable import line, printable
from .host.seam import Host, Unobservable, expect_root
from .storage import collect as storage
from .ups import collect as ups
from .ups.guard import installed

#: When the power is read: always; never; or only if a guard may have barriers off.
POWER = ("always", "guarded", "never")
#: Arguments of the modules that return all facts.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "databases": {"type": "raw"},
    "power": {"type": "str", "choices": list(POWER), "default": POWER[0]},
    "margin": {"type": "int", "default": 60},
}


class HostFacts(NamedTuple):
    """`facts`: {durable_engines, durable_storage, durable_power: its facts}; `failures`: why one is not there;
    `looked_at`: which run was the last to change the host, as one_run.last_run says it."""

    facts: dict[str, dict[str, Any]]
    failures: dict[str, str]
    looked_at: int


def collect(
    host: Host, now: str, databases: Any = None, power: str = "always", margin: int = 60
) -> HostFacts:
    """Return the facts of a host; `now` is its UTC time in ISO 8601. Never raises for what the host answers.

    `databases`: as in `durable_databases`; `power`: one of POWER; `margin`: seconds, as ups.collect takes them.
    What is too large for a controller is left out, the largest first.
    """
    found = HostFacts({}, {}, one_run.last_run(host))
    _add(found, "durable_engines", lambda: engines.collect(host, now, databases))
    of_engines = found.facts.get("durable_engines", {})
    paths = dict.fromkeys((*of_databases(databases), *of_engines.get("paths", ())))
    _add(found, "durable_storage", lambda: storage.collect(host, now, paths))
    guarded = found.facts.get("durable_storage", {}).get("leased") != "no"
    if power == "always" or (power == "guarded" and guarded):
        stops = of_engines.get("stop_timeouts", [])
        _add(found, "durable_power", lambda: power_facts(host, now, stops, margin))
    while why := bounds.too_large(found.facts) if found.facts else None:
        largest = max(found.facts, key=lambda name: bounds.size(found.facts[name]))
        del found.facts[largest]
        found.failures[largest] = f"This machine cannot be observed: {why}"
    return found


def collect_for(host: Host, now: str, given: Mapping[str, Any]) -> HostFacts:
    """Return the facts of a host by the values of ARGUMENTS. Raises Unobservable if nothing can be collected."""
    why = refusal(host, given["margin"])
    if why:
        raise Unobservable(why)
    return collect(host, now, given["databases"], given["power"], given["margin"])


def power_facts(host: Host, now: str, stop_timeouts: list[StopTimeout], margin: int) -> PowerFacts:
    """Return `durable_power`, with whether the guard is there as this version writes it. Raises as ups.collect does."""
    facts = ups.collect(host, now, stop_timeouts, margin)
    facts["guard"]["installed"] = installed.read(host)
    return facts


def _add(found: HostFacts, name: str, collect: Callable[[], Mapping[str, Any]]) -> None:
    """Add one kind of facts, or why it could not be collected."""
    try:
        found.facts[name] = printable(collect())
    except (Unobservable, ValueError) as error:
        found.failures[name] = line(f"This machine cannot be observed: {error}")
    except Exception as error:  # After an unexpected error the other kinds are still reported.
        found.failures[name] = line(f"its collection failed: {type(error).__name__}: {error}")


def refusal(host: Host, margin: int) -> str | None:
    """Return why nothing can be collected at all, None where it can."""
    if margin < 0:
        return f"margin: observed {margin}, expected seconds, 0 or more"
    try:
        expect_root(host)
    except Unobservable as error:
        return f"This machine cannot be observed: {error}"
    return None
