# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts `durable_power`: names, types, checks and documentation of each field. Data.

`tools/facts_docs.py` writes RETURN of the module from it; policy/assess/facts_schema.py checks a host's response with it.
"""

# Annotations are evaluated: no `from __future__ import annotations`, no `X | Y` (Python 3.9).

from typing import Annotated, Optional, TypedDict, Union

from ..host.observation import UNKNOWN, Evidence
from . import power_fixes
from .schema import (
    ANY,
    MAPPING,
    NAME,
    NAMES,
    NUMBER,
    OBSERVATIONS,
    ON_OFF_UNKNOWN,
    PATH,
    PATHS,
    SECONDS,
    TEXT,
    TEXTS,
    Leaf,
    Sample,
    When,
    each,
    one_of,
    or_none,
)

#: JSON has no infinity: a number of seconds, or one of the words `infinity` and `unknown`.
Seconds = Union[float, str]
STATE = one_of("met", "unmet", UNKNOWN)


class UpsFacts(TypedDict):
    """The UPSes that the monitor watches."""

    name: Annotated[str, "Its name at its upsd or apcupsd."]
    system: Annotated[str, TEXT, "As the monitor names it, V(ups@host)."]
    driver: Annotated[str, TEXT, "The driver that asks the device, or V(unknown)."]
    user: Annotated[str, ANY, "As whom NUT's monitor asks for it. Empty for apcupsd."]
    power_value: Annotated[
        int, ANY, "How many of this host's power supplies it feeds, by the monitor's configuration."
    ]
    type: Annotated[str, ANY, "Whether this host is the V(primary) at its cable, or a V(secondary)."]
    status: Annotated[
        list[str],
        TEXTS,
        "Its status in the notation of NUT. Empty if it reports none.",
        Sample(["OL", "CHRG"]),
    ]
    charge: Annotated[Optional[float], ANY, "Of its battery, in percent, or null."]
    runtime: Annotated[
        Optional[float], ANY, "Seconds that the battery lasts by the UPS's own reckoning, or null."
    ]
    runtime_low: Annotated[
        Optional[float],
        ANY,
        "Seconds that it still lasts when the monitor learns that it is low, or null if that is unknown.",
    ]
    stale: Annotated[
        str, "Whether the daemon has lost the UPS and has old values of it. V(yes), V(no) or V(unknown)."
    ]
    test: Annotated[str, "Whether its driver makes it up. V(yes), V(no) or V(unknown)."]
    logins: Annotated[Optional[int], "How many hosts draw power from it by their own word, or null."]
    reason: Annotated[Optional[str], "Why it has no status, or null."]


class TermFacts(TypedDict):
    """The parts of the sum."""

    name: Annotated[str, TEXT, "What it is for."]
    seconds: Annotated[Seconds, SECONDS, "A number, V(infinity) or V(unknown)."]
    source: Annotated[str, TEXT, "Its source."]


class BudgetFacts(TypedDict):
    """From a low battery to the end of the machine."""

    needed: Annotated[Seconds, SECONDS, "The sum of the terms; a number, V(infinity) or V(unknown)."]
    available: Annotated[Seconds, SECONDS, "What the battery gives; a number or V(unknown)."]
    state: Annotated[str, STATE]
    terms: list[TermFacts]


class BudgetsFacts(TypedDict):
    """What is needed and what there is, in seconds.

    C(durability) is one flush of what was committed, C(clean_stop) the end of all engines by themselves.
    """

    durability: Annotated[BudgetFacts, "From a power failure to the end of the flush."]
    clean_stop: BudgetFacts


class FixFacts(TypedDict):
    """What to do, one after the other. Empty if it is met."""

    fix: Annotated[str, "A keyword of the collection's closed list. The report has the sentence."]
    parameters: Annotated[dict[str, str], "The values of the sentence, by name."]


class ConditionFacts(TypedDict):
    """All conditions of a properly configured UPS, always the same ones in the same order."""

    name: Annotated[
        str,
        NAME,
        "V(monitor_active), V(monitor_enabled), V(mode_set), V(power_values), V(shutdown_command), "
        "V(powerdown_flag), V(notify_reaches_guard), V(driver_real), V(status_online), "
        "V(runtime_durability) or V(runtime_clean_stop).",
    ]
    target: Annotated[str, TEXT, "The file or unit that it is about, or V(host)."]
    state: Annotated[str, STATE]
    evidence: Annotated[str, TEXT, "The observed value."]
    fixes: Annotated[
        list[FixFacts],
        each(Leaf(power_fixes.fits, "a fix of facts/power_fixes.py"), "fixes of facts/power_fixes.py"),
        "What to do, one after the other. Empty if it is met.",
    ]


class LeaseFacts(TypedDict):
    """What it may do, with the mount points, the first and last day, and the seconds needed; or null."""

    schema: Annotated[int, "The version of the form of this mapping."]
    mounts: Annotated[list[str], PATHS, "Mount points of which it may turn the barriers off."]
    issued: Annotated[str, "The first day on which it holds, in UTC and ISO 8601."]
    expires: Annotated[str, "The last day on which it holds."]
    quiet: Annotated[int, "Seconds for which all conditions must be met before it turns barriers off."]
    needed: Annotated[dict[str, float], "For each budget the seconds of runtime that the battery must have."]
    test_ups: Annotated[bool, "Whether a UPS that a test driver makes up counts."]
    units: Annotated[list[str], NAMES, "The services of engines, which stop after it has turned barriers on."]


class GuardedMount(TypedDict):
    """Its mount points."""

    target: Annotated[str, PATH, "The mount point."]
    barrier: Annotated[str, ON_OFF_UNKNOWN, "The kernel's value."]


class _GuardOfModule(TypedDict, total=False):
    installed: Annotated[
        str,
        When("always"),
        "Whether its program, unit and hook are there as this version of the collection writes them, and "
        "the unit is enabled. V(current), V(differs), V(absent) or V(unknown).",
    ]


class GuardFacts(_GuardOfModule):
    """The state of the guard that turns barriers off, by its own report as far as it can be trusted."""

    state: Annotated[str, one_of("absent", "waiting", "loose", "tight", "failed", "stopped", UNKNOWN)]
    reason: Annotated[Optional[str], or_none(TEXT), "Why it is in this state."]
    since: Annotated[Optional[str], or_none(TEXT), "Since when, in UTC and ISO 8601, or null."]
    quiet: Annotated[Optional[int], or_none(NUMBER), "Seconds that it still waits, or null."]
    lease: Annotated[Optional[LeaseFacts], ANY]
    mounts: list[GuardedMount]


class PowerFacts(TypedDict):
    """The UPS and its monitor. Texts, never booleans, if a value can be unknown."""

    boot_id: Annotated[str, "The kernel's id of this boot."]
    time: Annotated[
        str,
        TEXT,
        "When the facts were taken, by the host's clock, in UTC and ISO 8601.",
        Sample("2026-01-31T12:00:00Z"),
    ]
    kernel: Annotated[str, "The kernel's release."]
    monitor: Annotated[
        str,
        one_of("nut", "apcupsd", "none", UNKNOWN),
        "Who watches the UPS. V(nut), V(apcupsd), V(none), or V(unknown), also where both run.",
    ]
    unit: Annotated[str, "The monitor's systemd service, or empty."]
    mode: Annotated[str, TEXT, "MODE of C(nut.conf), or empty."]
    upses: list[UpsFacts]
    timing: Annotated[
        dict[str, Seconds],
        MAPPING,
        "The monitor's times by name, in seconds, or V(unknown).",
        Sample({"pollfreq": 5, "pollfreqalert": 5, "finaldelay": 5, "hostsync": 15, "deadtime": 15}),
    ]
    budget: BudgetsFacts
    conditions: list[ConditionFacts]
    guard: GuardFacts
    settings: Annotated[
        dict[str, Evidence],
        OBSERVATIONS,
        "The monitor's settings by name, each with C(value), C(source) and C(reason). The reason says why"
        " a value is V(unknown). No password is among them.",
        "C(notify_flags) is V(exec) where each event that matters runs the notify command, else it names "
        "those that do not.",
    ]
    evidence: Annotated[
        dict[str, Evidence], OBSERVATIONS, "For what was concluded, its C(value), C(source) and C(reason)."
    ]
