# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One UPS, in the same words whether NUT or apcupsd watches it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..host.observation import UNKNOWN
from . import upsd

YES, NO = "yes", "no"
#: A UPS with one of these does not stand behind this host, or not for long.
BAD = ("OB", "LB", "FSD", "RB", "BYPASS", "OFF", "OVER", "ALARM", "WAIT", "CAL", "NOBATT")
#: These change nothing beside OL. A word in neither list is not known to be good.
GOOD = ("OL", "CHRG", "DISCHRG", "HB", "TRIM", "BOOST")
#: Drivers that make a UPS up, and those that pass on what another driver says.
_TESTS, _RELAYS = ("dummy-ups",), ("clone", "clone-outlet", "failover")
#: What a driver is called; anything else may be meant for whoever reads the report's terminal.
_DRIVER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,58}[\x21-\x7e])?", re.ASCII)
_WORD = re.compile(r"[A-Z0-9_:-]{1,20}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
#: What apcupsd says, in NUT's words. COMMLOST is no word of the UPS's.
_OF_APCUPSD = {
    "ONLINE": "OL",
    "ONBATT": "OB",
    "LOWBATT": "LB",
    "REPLACEBATT": "RB",
    "OVERLOAD": "OVER",
    "SHUTTING": "FSD",
    "SELFTEST": "CAL",
}
#: Words of apcupsd's that say nothing of the UPS.
_SILENT = ("DOWN", "SLAVE", "COMMLOST")
_DEFAULT_POLL = 2.0


class Ups(NamedTuple):
    """What is known of one UPS.

    `system` is ups@host as the monitor has it. `status` are NUT's words, empty where it told none;
    `charge` in percent, `runtime` and `runtime_low` in seconds, None where unknown. `runtime_low` is
    what the battery still gives when the monitor is told that it is low. `stale` and `test` are yes, no or
    unknown; `poll` is how often its driver asks it, in seconds. `version` is that of NUT, or '' where
    apcupsd watches it. `logins` counts the hosts that draw power
    from it by their own word, or None. `reason` says why there is no status, `low_reason` why
    `runtime_low` is unknown, or how it is known. `user` is as whom NUT's monitor asks, '' for apcupsd.
    """

    name: str
    system: str
    driver: str
    power_value: int
    type: str
    status: tuple[str, ...] = ()
    charge: float | None = None
    runtime: float | None = None
    runtime_low: float | None = None
    stale: str = UNKNOWN
    test: str = UNKNOWN
    poll: float = _DEFAULT_POLL
    version: str = ""
    logins: int | None = None
    reason: str | None = None
    low_reason: str = "nothing was told"
    user: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as the facts have it."""
        found = self._asdict()
        del found["poll"]
        del found["low_reason"]
        del found["version"]
        return {**found, "status": list(self.status)}


def of_nut(name: str, system: str, user: str, power_value: int, kind: str, answer: upsd.Answer) -> Ups:
    """Return what upsd's answer says of a UPS."""
    known = Ups(
        name, system, UNKNOWN, power_value, kind, logins=answer.logins, reason=answer.reason, user=user
    )
    told = answer.variables
    if told is None:
        return known._replace(stale=YES if answer.word == "DATA-STALE" else UNKNOWN)
    driver = _driver(told.get("driver.name", ""))
    status, reason = _words(told.get("ups.status", ""))
    runtime_low, why = _low_of_nut(told)
    return known._replace(
        driver=driver,
        status=status,
        charge=number(told.get("battery.charge")),
        runtime=number(told.get("battery.runtime")),
        runtime_low=runtime_low,
        stale=NO,
        test=_is_test(driver),
        version=told.get("driver.version", ""),
        poll=number(told.get("driver.parameter.pollinterval")) or _DEFAULT_POLL,
        reason=reason,
        low_reason=why,
    )


def of_apcupsd(name: str, system: str, kind: str, told: Mapping[str, str], driver: str, low: Low) -> Ups:
    """Return what apcupsd's status says of its UPS; `driver` is the DRIVER of who is at its cable."""
    said = told.get("STATUS", "")
    words = said.split()
    unheard = "COMMLOST" in words
    driver = _driver(driver)
    status, reason = _words(" ".join(_OF_APCUPSD.get(word, word) for word in words if word not in _SILENT))
    return Ups(
        name=name,
        system=system,
        driver=driver,
        power_value=1,
        type=kind,
        status=() if unheard else status,
        charge=number(told.get("BCHARGE", "").partition(" ")[0]),
        runtime=minutes(told.get("TIMELEFT")),
        runtime_low=low.seconds,
        stale=YES if unheard else NO,
        test=UNKNOWN if driver == UNKNOWN else YES if driver.upper().startswith("TEST") else NO,
        reason=f"apcupsd says {said[:60]!r}" if unheard else reason,
        low_reason=low.reason,
    )


class Low(NamedTuple):
    """Seconds that the battery still gives when a shutdown begins, None where unknown, and why."""

    seconds: float | None
    reason: str


def number(text: str | None) -> float | None:
    """Return a plain decimal number that is not negative, None for anything else."""
    return float(text) if text and _NUMBER.fullmatch(text) else None


def minutes(text: str | None) -> float | None:
    """Return apcupsd's `12.5 Minutes` in seconds, None for anything else."""
    value, _blank, unit = (text or "").partition(" ")
    found = number(value)
    return found * 60 if found is not None and unit == "Minutes" else None


def _words(text: str) -> tuple[tuple[str, ...], str | None]:
    """Return the words of a status, and why they are none."""
    words = tuple(text.split())
    if not words:
        return (), "its status is empty"
    if not all(_WORD.fullmatch(word) for word in words):
        return (), f"its status is {text[:60]!r}, wanted words as OL or OB"
    return words, None


def _driver(said: str) -> str:
    """Return a driver's name, unknown for what is none: a daemon may say anything."""
    return said if _DRIVER.fullmatch(said) else UNKNOWN


def _is_test(driver: str) -> str:
    if driver in _TESTS:
        return YES
    return UNKNOWN if driver in (UNKNOWN, *_RELAYS) else NO


def _low_of_nut(told: Mapping[str, str]) -> tuple[float | None, str]:
    """Return how long the battery lasts from LB on, and why that is known or not.

    With ignorelb the driver itself raises LB, at battery.runtime.low or, earlier, at battery.charge.low.
    Without it a UPS raises LB when it likes, whatever battery.runtime.low says.
    """
    low = number(told.get("battery.runtime.low"))
    if told.get("driver.flag.ignorelb") != "enabled":
        seen = f"battery.runtime.low is {low:g} s, but " if low is not None else ""
        return None, f"{seen}the UPS decides by itself when its battery is low: ignorelb is not set"
    if low is None:
        return None, "ignorelb is set, and battery.runtime.low is not"
    if number(told.get("battery.runtime")) is None:
        return None, "ignorelb is set, and the UPS tells no battery.runtime to hold against it"
    return low, "the driver raises LB at battery.runtime.low (ignorelb)"
