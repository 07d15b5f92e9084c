# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a properly configured UPS. Each is met, unmet or unknown, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..facts.classes import ConditionFacts
from ..host.observation import UNKNOWN
from .device import BAD, ECONOMY, GOOD, RELAYS, TESTS, YES, Ups
from .fixes import Fixes, add_monitor, each_once, fix

MET, UNMET = "met", "unmet"
#: All there are, in the order of the facts.
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


class Condition(NamedTuple):
    """One condition. `target` is what it is about: host, or a file or unit. `state` is met, unmet or
    unknown; `evidence` is the observed value; `fixes` is empty if it is met. findings.py says what an unmet one means."""

    name: str
    target: str
    state: str
    evidence: str
    fixes: Fixes

    def as_dict(self) -> ConditionFacts:
        """Return it as the facts have it."""
        return {
            "name": self.name,
            "target": self.target,
            "state": self.state,
            "evidence": self.evidence,
            "fixes": [each.as_dict() for each in self.fixes],
        }


def met(name: str, target: str, evidence: str) -> Condition:
    """Return a condition that holds."""
    return Condition(name, target, MET, evidence, ())


def unmet(name: str, target: str, evidence: str, fixes: Fixes) -> Condition:
    """Return a condition that does not hold."""
    return Condition(name, target, UNMET, evidence, fixes)


def unknown(name: str, target: str, evidence: str, fixes: Fixes) -> Condition:
    """Return a condition that is unknown: it never counts as met."""
    return Condition(name, target, UNKNOWN, evidence, fixes)


def power_values(upses: Sequence[Ups], supplies: int | None, source: str, path: str) -> Condition:
    """Return whether the UPSes that the monitor counts are as many as this host needs; `path`: its configuration."""
    name, total = "power_values", sum(ups.power_value for ups in upses)
    if supplies is None:
        return unknown(name, "host", f"{source}: not a number", fix("set_supplies", path=path))
    observed = f"power values add up to {total}, {source} is {supplies}"
    if supplies < 1:
        return unmet(name, "host", observed, fix("raise_supplies", path=path))
    if total < supplies:
        return unmet(name, "host", observed, add_monitor(path))
    return met(name, "host", observed)


def status_online(upses: Sequence[Ups], supplies: int | None, path: str) -> Condition:
    """Return whether enough of the UPSes that feed this host are on line, with nothing against it.

    Where `supplies` is no number that they can reach, that is all of them: power_values says so.
    """
    name, total = "status_online", sum(ups.power_value for ups in upses)
    enough = supplies if supplies is not None and 1 <= supplies <= total else total
    fine, unsure = 0, 0
    states, fixes = [], []
    for ups in (ups for ups in upses if ups.power_value):
        state, why = _of_status(ups)
        fine += ups.power_value if state == MET else 0
        unsure += ups.power_value if state == UNKNOWN else 0
        states.append(f"{ups.system}: {why}")
        fixes.append(_fixes(ups, state))
    evidence = "; ".join(states) or "no UPS feeds this host"
    if fine >= enough >= 1:
        return met(name, "host", evidence)
    needed = each_once(fixes) or add_monitor(path)
    if fine + unsure >= enough:
        return unknown(name, "host", evidence, needed)
    return unmet(name, "host", evidence, needed)


def _fixes(ups: Ups, state: str) -> Fixes:
    """Return the fixes of the status of a UPS."""
    if state == UNKNOWN:
        strange = " ".join(word for word in ups.status if word not in GOOD)
        to_send = fix("send_status", status=strange) if strange else fix("send_status.empty")
        return ups.fixes or to_send
    if state == MET:
        return ()
    words = [word for word in ups.status if word in BAD]
    # Its battery charges once its power is back.
    decisive = [word for word in words if word != "LB"] or words or ["OB"]
    return each_once(fix(f"status.{word}", system=ups.system) for word in decisive)


def driver_real(upses: Sequence[Ups], path: str, test_ups: bool = False) -> Condition:
    """Return whether real devices answer. With `test_ups` one that is made up counts as well.

    `path`: the monitor's configuration.
    """
    name = "driver_real"
    counted = [ups for ups in upses if ups.power_value]
    evidence = "; ".join(f"{ups.system}: {ups.driver}" for ups in counted) or "no UPS feeds this host"
    unsure = [ups for ups in counted if ups.test == UNKNOWN]
    if any(ups.test == YES for ups in counted) and not test_ups:
        made_up = next(ups for ups in counted if ups.test == YES)
        of_nut = made_up.driver in TESTS
        return unmet(name, "host", evidence, fix("use_real_driver" if of_nut else "use_real_driver.apcupsd"))
    if not counted:
        return unknown(name, "host", evidence, add_monitor(path))
    if unsure:
        return unknown(name, "host", evidence, each_once(map(_fix_of_driver, unsure)))
    return met(name, "host", evidence)


def _fix_of_driver(ups: Ups) -> Fixes:
    if ups.driver in RELAYS:
        return fix("monitor_real_driver", system=ups.system)
    return ups.fixes or fix("report_driver", system=ups.system)


def _of_status(ups: Ups) -> tuple[str, str]:
    """Return met, unmet or unknown for one UPS, and its status."""
    if ups.reason or not ups.status:
        return UNKNOWN, ups.reason or "it tells no status"
    status = " ".join(ups.status)
    against = [word for word in ups.status if word in BAD]
    if against or "OL" not in ups.status:
        return UNMET, f"{status} ({' '.join(against) or 'no OL'})"
    strange = [word for word in ups.status if word not in GOOD]
    if strange:
        return UNKNOWN, f"{status} ({' '.join(strange)}: not known here)"
    if set(ECONOMY) & set(ups.status):
        return (
            MET,
            f"{status} (high-efficiency mode: the mains feed the host directly until they fail)",
        )
    return MET, status
