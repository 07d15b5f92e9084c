# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power of one host: what its UPS's monitor reports, condition by condition.

Used by the facts, and every few seconds by the guard: one command, a few files, one conversation with each
upsd or apcupsd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..engines import since_start
from ..facts.classes import PowerFacts
from ..host.observation import UNKNOWN, Observation
from ..host.processes import Process
from ..host.seam import Host, Unobservable
from ..host.secret_words import without_secret
from . import apcupsd, budget, conditions, nut, services
from .budget import CLEAN_STOP, DURABILITY, MARGIN, Available, Budget, Term
from .conditions import Condition
from .device import Ups
from .fixes import fix
from .guard import state
from .services import APCUPSD, NUT, Service
from .snapshot import Snapshot

#: Conditions of these depend on the seconds that are needed, which a lease has of its own.
_BUDGETS = (DURABILITY, CLEAN_STOP)
_COMMANDS = ("notify_command", "shutdown_command")


class Power(NamedTuple):
    """What is known of this host's power. `monitor` is nut, apcupsd, none or unknown, `reason` says why;
    `pid` is the main process of its `unit`, or 0. `budgets` by name; `conditions` in the
    order of conditions.NAMES, one each; `path`: its configuration."""

    monitor: str
    reason: str
    unit: str
    pid: int
    mode: str
    upses: tuple[Ups, ...]
    timing: dict[str, float | None]
    budgets: dict[str, Budget]
    conditions: tuple[Condition, ...]
    settings: dict[str, Observation]
    evidence: dict[str, Observation]
    path: str = ""


def collect(
    host: Host, now: str, stop_timeouts: Iterable[Mapping[str, Any]] = (), margin: float = MARGIN
) -> PowerFacts:
    """Return `durable_power`; `now` is the host's UTC time in ISO 8601, the rest as for `observe`.

    Raises Unobservable where the kernel's own files are not there, and ValueError for malformed
    `stop_timeouts`.
    """
    power = observe(host, stop_timeouts, margin)
    power = power._replace(conditions=tuple(_as_it_runs(host, power, each) for each in power.conditions))
    return {
        "boot_id": host.read("/proc/sys/kernel/random/boot_id").strip(),
        "time": now,
        "kernel": host.read("/proc/sys/kernel/osrelease").strip(),
        "monitor": power.monitor,
        "unit": power.unit,
        "mode": power.mode,
        "upses": [ups.as_dict() for ups in power.upses],
        "timing": {name: budget.written(seconds) for name, seconds in power.timing.items()},
        "budget": {
            "durability": power.budgets[DURABILITY].as_dict(),
            "clean_stop": power.budgets[CLEAN_STOP].as_dict(),
        },
        "conditions": [condition.as_dict() for condition in power.conditions],
        "guard": state.read(host),
        "settings": {name: _shown(name, observed).as_dict() for name, observed in power.settings.items()},
        "evidence": {name: observed.as_dict() for name, observed in power.evidence.items()},
    }


def _shown(name: str, observed: Observation) -> Observation:
    """Return a setting of the monitor as facts have it: a command can hold a password, for example of the UPS."""
    return observed._replace(value=without_secret(observed.value)) if name in _COMMANDS else observed


def observe(host: Host, stop_timeouts: Iterable[Mapping[str, Any]] = (), margin: float = MARGIN) -> Power:
    """Return what is known of this host's power. What cannot be read is unknown, with the reason.

    `stop_timeouts`: [{engine, unit, seconds}] of what a shutdown stops, as budget.of_stops has it. `margin`:
    seconds for what cannot be foreseen. Raises ValueError for malformed ones.
    """
    stops = budget.of_stops(stop_timeouts)
    service = services.find(host)
    if service.monitor == NUT:
        snapshot = nut.see(host)
    elif service.monitor == APCUPSD:
        snapshot = apcupsd.see(host)
    else:
        return _of_nobody(service)
    budgets = _budgets(snapshot, stops, margin)
    found = (
        service.active,
        service.enabled,
        *snapshot.conditions,
        conditions.driver_real(snapshot.upses, snapshot.path),
        conditions.status_online(snapshot.upses, snapshot.supplies, snapshot.path),
        *(budgets[name].condition() for name in _BUDGETS),
    )
    return Power(
        monitor=service.monitor,
        reason=service.reason,
        unit=service.unit,
        pid=service.pid,
        mode=snapshot.mode,
        upses=snapshot.upses,
        timing=snapshot.timing,
        budgets=budgets,
        conditions=_in_order(found),
        settings=snapshot.settings,
        evidence={
            "monitor": Observation(service.monitor, f"systemctl show {service.unit}"),
            **_of_upses(snapshot),
        },
        path=snapshot.path,
    )


def live(power: Power, needed: Mapping[str, Any], test_ups: bool = False) -> list[Condition]:
    """Return the conditions to which the guard holds: all, with the budgets at seconds that it was given.

    `needed`: {durability, clean_stop}, seconds; what is missing there is unknown. `test_ups`: whether a
    driver that makes its UPS up counts.
    """
    return [_live(power, condition, needed, test_ups) for condition in power.conditions]


def _live(power: Power, condition: Condition, needed: Mapping[str, Any], test_ups: bool) -> Condition:
    name = condition.name[len("runtime_") :]
    if name in power.budgets:
        return power.budgets[name].held_against(budget.read(needed.get(name)))
    if condition.name == "driver_real" and power.upses:
        return conditions.driver_real(power.upses, power.path, test_ups)
    return condition


def _as_it_runs(host: Host, power: Power, condition: Condition) -> Condition:
    """Return the condition on whom the monitor wakes as it holds for the process that runs.

    upsmon reads its file once. Role power, which makes this condition true, restarts one that is older than that.
    """
    if condition.name != "notify_reaches_guard" or condition.state != conditions.MET:
        return condition
    if power.monitor != NUT or not power.pid:
        return condition
    path = condition.target
    process = Process(power.pid, 0, "", "", None, None, None)
    try:
        changed = since_start.change(host, path, since_start.start_of(host, process))
        if not changed:
            return condition
    except Unobservable as error:
        return conditions.unknown(condition.name, path, str(error), fix("restart_unit", unit=power.unit))
    observed = f"{power.unit}: {changed}"
    return conditions.unmet(condition.name, path, observed, fix("harden"))


def _budgets(snapshot: Snapshot, stops: Iterable[Term], margin: float) -> dict[str, Budget]:
    spare = Term("margin", margin, "for the last flush, and what cannot be foreseen")
    now, low = (
        budget.battery_now(snapshot.upses, snapshot.path),
        budget.battery_low(snapshot.upses, snapshot.path),
    )
    return {
        DURABILITY: Budget(DURABILITY, (*snapshot.detection, spare), now),
        CLEAN_STOP: Budget(CLEAN_STOP, (*snapshot.shutdown, *stops, spare), _sooner(low, snapshot.cut)),
    }


def _sooner(low: Available, cut: Available | None) -> Available:
    """Return the shorter of two, an unknown one before all others."""
    both = [low] if cut is None else [low, cut]
    return min(both, key=lambda each: -1.0 if each.seconds is None else each.seconds)


def _of_upses(snapshot: Snapshot) -> dict[str, Observation]:
    found = dict(snapshot.evidence)
    for ups in snapshot.upses:
        words = " ".join(ups.status) or UNKNOWN
        found[f"{ups.system} status"] = Observation(words, ups.system, ups.reason)
        low = UNKNOWN if ups.runtime_low is None else f"{ups.runtime_low:g}"
        found[f"{ups.system} runtime_low"] = Observation(low, ups.system, ups.low_reason)
    return found


def _of_nobody(service: Service) -> Power:
    done = ("monitor_active", "monitor_enabled")
    others = [name for name in conditions.NAMES if name not in done]
    reason = service.reason
    nothing = Term("monitor", None, reason, service.fixes)
    return Power(
        monitor=service.monitor,
        reason=reason,
        unit="",
        pid=0,
        mode="",
        upses=(),
        timing={},
        budgets={name: Budget(name, (nothing,), Available(None, reason)) for name in _BUDGETS},
        conditions=_in_order(
            (
                service.active,
                service.enabled,
                *(services.of_nobody(name, service.monitor, reason, service.fixes) for name in others),
            )
        ),
        settings={},
        evidence={"monitor": Observation(service.monitor, "systemctl show", reason)},
    )


def _in_order(found: Iterable[Condition]) -> tuple[Condition, ...]:
    by_name = {condition.name: condition for condition in found}
    return tuple(by_name[name] for name in conditions.NAMES)
