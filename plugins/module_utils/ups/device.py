# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One UPS, in the same terms for NUT and apcupsd."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..facts.classes import UpsFacts
from ..host.observation import UNKNOWN
from . import upsd
from .fixes import Fixes, fix

YES, NO = "yes", "no"
#: A UPS with one of these does not stand behind this host, or not for long.
BAD = ("OB", "LB", "FSD", "RB", "BYPASS", "OFF", "OVER", "ALARM", "WAIT", "CAL", "NOBATT")
#: These change nothing beside OL. A word in neither list is unknown to be good.
GOOD = ("OL", "CHRG", "DISCHRG", "HB", "TRIM", "BOOST", "HE", "ECO")  # words: allow
#: The high-efficiency mode of a double-conversion UPS (NUT's issues 1201 and 2495): the mains feed the load directly, and the
#: inverter takes over if they fail. The UPS is on line: NUT's powerware-mib.c reports this mode as plain OL.
ECONOMY = ("HE", "ECO")  # words: allow
#: Drivers that make a UPS up, and those that pass on what another driver says.
TESTS, RELAYS = ("dummy-ups",), ("clone", "clone-outlet", "failover")
#: What a driver is called; anything else may be meant for whoever reads the report's terminal.
_DRIVER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,58}[\x21-\x7e])?", re.ASCII)
_WORD = re.compile(r"[A-Z0-9_:-]{1,20}", re.ASCII)
_NUMBER = re.compile(r"\d{1,10}(?:\.\d{1,9})?", re.ASCII)
#: Full counters of 15, 16, 31 and 32 bits, of seconds or of minutes: a device reports them if it has no value, or a longer one.
#: NUT's collected dumps have 65535 and 3932100 (65535 minutes).
_FULL = frozenset(
    (2**bits - 1) * unit - less for bits in (15, 16, 31, 32) for unit in (1, 60) for less in (0, unit)
)
#: Seconds above which no number is taken for the runtime of a battery: three days.
_LONGEST = 3 * 86400
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

    `system` is ups@host as the monitor has it. `status` are NUT's keywords, empty if it reports none;
    `charge` in percent, `runtime` and `runtime_low` in seconds, None where unknown. `runtime_low` is
    what the battery still gives when the monitor learns that it is low. `stale` and `test` are yes, no or
    unknown; `poll` is how often its driver asks it, in seconds. `version` is that of NUT, or '' where
    apcupsd watches it. `logins` counts the hosts that draw power
    from it by their own word, or None. `reason` says why there is no status, `low_reason` why
    `runtime_low` is unknown, or how it is known, `runtime_reason` why `runtime` is unknown.
    `user` is as whom NUT's monitor asks, '' for apcupsd. `fixes`: those of a UPS that does not answer.
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
    low_reason: str = "nothing was reported"
    user: str = ""
    runtime_reason: str | None = None
    fixes: Fixes = ()

    def as_dict(self) -> UpsFacts:
        """Return it as the facts have it."""
        return {
            "name": self.name,
            "system": self.system,
            "driver": self.driver,
            "power_value": self.power_value,
            "type": self.type,
            "status": list(self.status),
            "charge": self.charge,
            "runtime": self.runtime,
            "runtime_low": self.runtime_low,
            "stale": self.stale,
            "test": self.test,
            "logins": self.logins,
            "reason": self.reason,
            "user": self.user,
        }


def of_nut(name: str, system: str, user: str, power_value: int, kind: str, answer: upsd.Answer) -> Ups:
    """Return what upsd's answer says of a UPS."""
    known = Ups(
        name, system, UNKNOWN, power_value, kind, logins=answer.logins, reason=answer.reason, user=user
    )
    variables = answer.variables
    silent = fix("check_upsd", system=system)
    if variables is None:
        return known._replace(
            fixes=silent,
            stale=YES if answer.word == "DATA-STALE" else UNKNOWN,
        )
    driver = _driver(variables.get("driver.name", ""))
    status, reason = _flags(variables.get("ups.status", ""))
    runtime_low, why = _low_of_nut(variables)
    return known._replace(
        driver=driver,
        status=status,
        charge=_charge(variables.get("battery.charge")),
        runtime=runtime(number(variables.get("battery.runtime"))),
        runtime_low=runtime_low,
        stale=NO,
        test=_is_test(driver),
        version=variables.get("driver.version", ""),
        poll=number(variables.get("driver.parameter.pollinterval")) or _DEFAULT_POLL,
        reason=reason,
        low_reason=why,
        fixes=() if variables.get("ups.status", "").split() else silent,
        runtime_reason=_no_runtime(variables.get("battery.runtime"), "battery.runtime"),
    )


def of_apcupsd(name: str, system: str, kind: str, answer: Mapping[str, str], driver: str, low: Low) -> Ups:
    """Return what apcupsd's status says of its UPS; `driver` is the DRIVER of who is at its cable."""
    status_text = answer.get("STATUS", "")
    words = status_text.split()
    unheard = "COMMLOST" in words
    driver = _driver(driver)
    status, reason = _flags(" ".join(_OF_APCUPSD.get(word, word) for word in words if word not in _SILENT))
    return Ups(
        name=name,
        system=system,
        driver=driver,
        power_value=1,
        type=kind,
        status=() if unheard else status,
        charge=_charge(answer.get("BCHARGE", "").partition(" ")[0]),
        runtime=minutes(answer.get("TIMELEFT")),
        runtime_low=low.seconds,
        stale=YES if unheard else NO,
        test=UNKNOWN if driver == UNKNOWN else YES if driver.upper().startswith("TEST") else NO,
        reason=f"apcupsd says {status_text[:60]!r}" if unheard else reason,
        fixes=fix("check_cable", system=system) if unheard or not words else (),
        low_reason=low.reason,
        runtime_reason=_no_runtime(answer.get("TIMELEFT"), "TIMELEFT"),
    )


class Low(NamedTuple):
    """Seconds that the battery still gives when a shutdown begins, None where unknown, and why."""

    seconds: float | None
    reason: str


def number(text: str | None) -> float | None:
    """Return a plain decimal number that is not negative, None for anything else."""
    return float(text) if text and _NUMBER.fullmatch(text) else None


def runtime(seconds: float | None) -> float | None:
    """Return a battery's runtime, None for a number that means no runtime."""
    return None if seconds is None or seconds > _LONGEST or seconds in _FULL else seconds


def _no_runtime(text: str | None, name: str) -> str:
    """Return why a variable gives no runtime."""
    return f"{name} is {text[:20]!r}, which is no runtime" if text else f"the UPS tells no {name}"


def minutes(text: str | None) -> float | None:
    """Return apcupsd's `12.5 Minutes` in seconds, None for anything else."""
    value, _blank, unit = (text or "").partition(" ")
    found = number(value)
    return runtime(found * 60) if found is not None and unit == "Minutes" else None


def _charge(text: str | None) -> float | None:
    """Return a charge in percent, None for anything else; some UPSes report a little more than 100."""
    found = number(text)
    return None if found is None or found > 110 else found


def _flags(text: str) -> tuple[tuple[str, ...], str | None]:
    """Return the keywords of a status, and why there are none."""
    words = tuple(text.split())
    if not words:
        return (), "its status is empty"
    if not all(_WORD.fullmatch(word) for word in words):
        return (), f"its status is {text[:60]!r}, expected keywords as OL or OB"
    return words, None


def _driver(name: str) -> str:
    """Return a driver's name, unknown for what is none: a daemon may say anything."""
    return name if _DRIVER.fullmatch(name) else UNKNOWN


def _is_test(driver: str) -> str:
    if driver in TESTS:
        return YES
    return UNKNOWN if driver in (UNKNOWN, *RELAYS) else NO


def _low_of_nut(variables: Mapping[str, str]) -> tuple[float | None, str]:
    """Return how long the battery lasts from LB on, and why that is known or not.

    With ignorelb the driver itself raises LB, at battery.runtime.low or, earlier, at battery.charge.low.
    Without it a UPS raises LB when it likes, whatever battery.runtime.low says.
    """
    low = runtime(number(variables.get("battery.runtime.low")))
    if variables.get("driver.flag.ignorelb") != "enabled":
        observed = f"battery.runtime.low is {low:g} s, but " if low is not None else ""
        return None, f"{observed}the UPS itself decides when its battery is low: ignorelb is not set"
    if low is None:
        value = variables.get("battery.runtime.low")
        return (
            None,
            f"ignorelb is set, and {_no_runtime(value, 'battery.runtime.low') if value else 'battery.runtime.low is not'}",
        )
    now = variables.get("battery.runtime")
    if runtime(number(now)) is None:
        return None, f"ignorelb is set, and {_no_runtime(now, 'battery.runtime')} to hold against it"
    return low, "the driver raises LB at battery.runtime.low (ignorelb)"
