# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a UPS properly configured, one condition each: met, unmet or unknown, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..facts.ups import ConditionFacts
from ..host.observation import UNKNOWN
from .device import BAD, ECONOMY, GOOD, RELAYS, TESTS, YES, Ups

MET, UNMET = "met", "unmet"
#: All there are, in the order in which they are told.
NAMES = (
    "monitor_active",
    "monitor_enabled",
    "mode_set",
    "power_values",
    "shutdown_command",
    "powerdown_flag",
    "notify_reaches_guard",
    "driver_real",
    "status_online",
    "runtime_durability",
    "runtime_clean_stop",
)
#: Word of a status -> what to do about it. All of BAD.
_CURES = {
    "OB": "restore the power of {system}",
    "LB": "let the battery of {system} charge",
    "FSD": "restore the power of {system}, then restart its upsd or apcupsd",
    "RB": "replace the battery of {system}",
    "BYPASS": "switch {system} from bypass to normal operation",
    "OFF": "switch {system} on",
    "OVER": "reduce the load of {system}",
    "ALARM": "correct what ups.alarm of {system} names",
    "WAIT": "run again after the driver of {system} has read a status",
    "CAL": "run again after the test of {system}",
    "NOBATT": "connect the battery of {system}",
}


class Condition(NamedTuple):
    """One condition. `target` is what it is about: host, or a file or unit. `state` is met, unmet or
    unknown; `evidence` is what was seen; `remedy` is empty where it is met. findings.py says what an unmet one means."""

    name: str
    target: str
    state: str
    evidence: str
    remedy: str

    def as_dict(self) -> ConditionFacts:
        """Return it as the facts have it."""
        return {
            "name": self.name,
            "target": self.target,
            "state": self.state,
            "evidence": self.evidence,
            "remedy": self.remedy,
        }


def met(name: str, target: str, evidence: str) -> Condition:
    """Return a condition that holds."""
    return Condition(name, target, MET, evidence, "")


def unmet(name: str, target: str, evidence: str, remedy: str) -> Condition:
    """Return a condition that does not hold."""
    return Condition(name, target, UNMET, evidence, remedy)


def unknown(name: str, target: str, evidence: str, remedy: str) -> Condition:
    """Return a condition that cannot be told: it never counts as met."""
    return Condition(name, target, UNKNOWN, evidence, remedy)


def add_monitor(path: str) -> str:
    """Return what to do where the monitor's configuration names no UPS, or too few."""
    return f"add a MONITOR line with a power value for each UPS that feeds this host to {path}, then restart upsmon"


def power_values(upses: Sequence[Ups], supplies: int | None, source: str, path: str) -> Condition:
    """Tell whether the UPSes that the monitor counts are as many as this host needs; `path`: its configuration."""
    name, total = "power_values", sum(ups.power_value for ups in upses)
    if supplies is None:
        return unknown(name, "host", f"{source}: not a number", f"set MINSUPPLIES to a number in {path}")
    observed = f"power values add up to {total}, {source} is {supplies}"
    if supplies < 1:
        return unmet(
            name,
            "host",
            observed,
            f"set MINSUPPLIES to 1 or more in {path}",
        )
    if total < supplies:
        return unmet(name, "host", observed, add_monitor(path))
    return met(name, "host", observed)


def status_online(upses: Sequence[Ups], supplies: int | None, path: str) -> Condition:
    """Tell whether enough of the UPSes that feed this host are on line, with nothing against it.

    Where `supplies` is no number that they can reach, that is all of them: power_values says so.
    """
    name, total = "status_online", sum(ups.power_value for ups in upses)
    enough = supplies if supplies is not None and 1 <= supplies <= total else total
    fine, unsure = 0, 0
    states, cures = [], []
    for ups in (ups for ups in upses if ups.power_value):
        state, why = _of_status(ups)
        fine += ups.power_value if state == MET else 0
        unsure += ups.power_value if state == UNKNOWN else 0
        states.append(f"{ups.system}: {why}")
        cures += _cures(ups, state)
    evidence = "; ".join(states) or "no UPS feeds this host"
    if fine >= enough >= 1:
        return met(name, "host", evidence)
    remedy = ", and ".join(dict.fromkeys(cures)) or add_monitor(path)
    if fine + unsure >= enough:
        return unknown(name, "host", evidence, remedy)
    return unmet(name, "host", evidence, remedy)


def _cures(ups: Ups, state: str) -> list[str]:
    """Return what to do about the status of a UPS."""
    if state == UNKNOWN:
        strange = " ".join(word for word in ups.status if word not in GOOD)
        return (
            [ups.cure]
            if ups.cure
            else [f"send a capture with the status {strange or 'of the UPS'} (docs/capture.md)"]
        )
    if state == MET:
        return []
    words = [word for word in ups.status if word in _CURES]
    # Its battery charges once its power is back.
    decisive = [word for word in words if word != "LB"] or words or ["OB"]
    return [_CURES[word].format(system=ups.system) for word in decisive]


def driver_real(upses: Sequence[Ups], path: str, test_ups: bool = False) -> Condition:
    """Tell whether real devices answer. With `test_ups` one that is made up counts as well.

    `path`: the monitor's configuration.
    """
    name = "driver_real"
    counted = [ups for ups in upses if ups.power_value]
    evidence = "; ".join(f"{ups.system}: {ups.driver}" for ups in counted) or "no UPS feeds this host"
    unsure = [ups for ups in counted if ups.test == UNKNOWN]
    if any(ups.test == YES for ups in counted) and not test_ups:
        made_up = next(ups for ups in counted if ups.test == YES)
        where = "driver= in ups.conf" if made_up.driver in TESTS else "UPSTYPE in /etc/apcupsd/apcupsd.conf"
        remedy = (
            f"set {where} to that of the real UPS, or on a host without data to keep attest test_ups for host"
        )
        return unmet(name, "host", evidence, remedy)
    if not counted:
        return unknown(name, "host", evidence, add_monitor(path))
    if unsure:
        return unknown(name, "host", evidence, ", and ".join(dict.fromkeys(map(_cure_of_driver, unsure))))
    return met(name, "host", evidence)


def _cure_of_driver(ups: Ups) -> str:
    if ups.driver in RELAYS:
        return f"name the UPS of the real driver in MONITOR in place of {ups.system}, then restart upsmon"
    return ups.cure or f"make {ups.system} report its driver (driver.name of upsd, DRIVER of apcupsd)"


def _of_status(ups: Ups) -> tuple[str, str]:
    """Return met, unmet or unknown for one UPS, and its words."""
    if ups.reason or not ups.status:
        return UNKNOWN, ups.reason or "it tells no status"
    words = " ".join(ups.status)
    against = [word for word in ups.status if word in BAD]
    if against or "OL" not in ups.status:
        return UNMET, f"{words} ({' '.join(against) or 'no OL'})"
    strange = [word for word in ups.status if word not in GOOD]
    if strange:
        return UNKNOWN, f"{words} ({' '.join(strange)}: not known here)"
    if set(ECONOMY) & set(ups.status):
        return (
            MET,
            f"{' '.join(ups.status)} (high-efficiency mode: the mains feed the host directly until they fail)",
        )
    return MET, words
