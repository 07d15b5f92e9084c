# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The UPS monitor's settings compared with the requests of the guard and of the inventory. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from ...facts.ups import PowerFacts, UpsFacts
from ...host.observation import NOTHING, UNKNOWN, Evidence
from ...host.our_paths import CHAINED, CHAINED_SCRIPTS, HOOK
from ...host.printable import name as quoted
from ...host.secret_words import without_secret
from ...rows import RUN, Setting, value_of
from ...ups import nut_mode
from ...ups.apcupsd_scripts import EVENTS
from ..expect.ups_inputs import Requested
from .requirements import Requirement
from .settings import UNSET, judge, reason

LAYER = "power"
#: Setting of the layer -> the condition that it fulfils.
_FIXES = {
    "notify_command": "notify_reaches_guard",
    "notify_flags": "notify_reaches_guard",
    "shutdown_command": "shutdown_command",
    "powerdown_flag": "powerdown_flag",
    "monitor": "power_values",
}
#: Setting -> its name among the times of the facts.
_TIMES = {"final_delay": "finaldelay", "host_sync": "hostsync"}
#: Monitor -> which of its settings the layer sets, None for all; and where the others are.
_SETS = {"nut": None, "apcupsd": ("notify_command", "notify_flags")}
_ELSEWHERE = (
    "remove {name} from durable_ups, because apcupsd has no such setting and shuts down by its own apccontrol"
)
#: Value for "each event runs the command": in the layer, and in the facts.
_EXEC, _ALL_RUN = "EXEC", "exec"


def rows(power: PowerFacts | None, requested: Requested, for_guard: bool) -> list[Setting]:
    """Return a row for each requested setting, and, `for_guard`, for those that the guard needs."""
    if power is None:
        return []
    found = [_requested(power, name, value) for name, value in requested.settings.items()]
    return found + (list(_notify(power)) if for_guard else [])


def released(power: PowerFacts | None) -> list[Setting]:
    """Return the row of a monitor that still notifies a guard, on a host without one."""
    if power is None or _observed(power, "notify_command")["value"] != HOOK:
        return []
    why = {HOOK: "the monitor still tells a guard that this host is not to have"}
    return [_row(power, "notify_command", "released", HOOK, why, None)]


def planned(needed: list[Requirement], settings: list[Setting]) -> list[Requirement]:
    """Return the requirements; those that a step of this run fulfils before any loosening are `planned`."""
    fixed = {_FIXES.get(row.setting) for row in settings if row.phase == "tighten"}
    return [
        need._replace(state="planned") if need.state == "unmet" and need.name in fixed else need
        for need in needed
    ]


def changed_times(settings: list[Setting]) -> dict[str, float]:
    """Return the times that a step of this run sets, {setting: seconds}."""
    return {
        row.setting: float(row.evidence["requested"])
        for row in settings
        if row.setting in _TIMES and row.phase == "tighten"
    }


def files(power: PowerFacts, setting: str) -> list[str]:
    """Return the monitor's files, and the stored originals, that a change of one setting may write."""
    source = str(_observed(power, "notify_command")["source"])
    if power["monitor"] == "apcupsd":
        return [f"{place}/{event}" for place in (source, CHAINED_SCRIPTS) for event in EVENTS]
    # The source names a line, or states that none exists.
    config = re.match(r"/[^\s:]+", source)
    found = [config[0], CHAINED] if config else []
    # On a host that monitors nothing yet, the mode of NUT changes too.
    return (
        [*found, f"{posixpath.dirname(found[0])}/{nut_mode.FILE}"]
        if found and setting == "monitor"
        else found
    )


def is_for_guard(need: Requirement) -> bool:
    """Return whether a condition is one that the layer always fulfils for the guard."""
    return need.name == _FIXES["notify_command"]


def _notify(power: PowerFacts) -> Iterator[Setting]:
    """Yield the settings that make the monitor notify the guard."""
    reaches = {each["name"]: each for each in power["conditions"]}.get("notify_reaches_guard", NOTHING)
    command = _as_text(_observed(power, "notify_command")["value"])
    flags = _as_text(_observed(power, "notify_flags")["value"])
    state = reaches.get("state", UNKNOWN)
    if (command, flags) == (HOOK, _ALL_RUN) and state != "met":
        # The configuration is correct, but the command in it does not run.
        command = UNKNOWN if state == UNKNOWN else "broken"
    why = {
        command: f"the monitor runs {quoted(command)}, which does not tell the guard",
        UNSET: "the monitor reports its events to no program",
        "broken": str(reaches.get("evidence")),
    }
    yield _row(power, "notify_command", HOOK, command, why, HOOK)
    current = _EXEC if flags == _ALL_RUN else flags
    yield _row(
        power,
        "notify_flags",
        _EXEC,
        current,
        {current: f"the monitor does not run it: {quoted(current)}"},
        _EXEC,
    )


def _requested(power: PowerFacts, name: str, value: Any) -> Setting:
    if name == "monitor":
        wanted = _line(value)
        current = next(
            (_line(ups) for ups in power["upses"] if ups["system"] == value["system"]),
            UNKNOWN if power["monitor"] == UNKNOWN else UNSET,
        )
    else:
        # The facts have no command that can hold a password, so two of these are alike.
        # The step has none either: the action gives it to the module apart.
        value = without_secret(str(value)) if name == "shutdown_command" else value
        wanted = str(value)
        current = _as_text(_observed(power, name)["value"])
    why = {UNSET: f"the monitor's configuration has no {name}"}
    return _row(power, name, wanted, current, why, value)


def _line(monitor: UpsFacts) -> str:
    """Return the fields of a MONITOR line without the password, which only the layer reads."""
    return " ".join(str(monitor[name]) for name in ("system", "power_value", "user", "type"))


def _row(
    power: PowerFacts, name: str, wanted: str, current: str, why: dict[str, str], requested: Any
) -> Setting:
    """Return a row; `requested`: the value in the form of the layer's module."""
    verdict = judge(name, current, current, wanted, live=True)
    observed = {**_observed(power, name), "value": current}
    if current == UNKNOWN and not observed["reason"]:
        observed["reason"] = f"{name} could not be read"
    evidence = {"running": observed, "persisted": observed, "requested": requested}
    remedy = ""
    sets = _SETS.get(power["monitor"], ())
    phase = "tighten" if verdict.startswith("drift") and (sets is None or name in sets) else None
    if verdict != "ok":
        remedy = RUN if phase else "correct the monitor's configuration that the reason names, then run again"
        remedy = _ELSEWHERE.format(name=name) if power["monitor"] == "apcupsd" and not phase else remedy
    shown = quoted(current) if current not in ("", wanted) else current
    meaning = {current: why.get(current, value_of(name, shown))}
    return Setting.of(
        layer=LAYER,
        target="host",
        setting=name,
        wanted=wanted,
        observed=(shown, shown),
        verdict=verdict,
        phase=phase,
        evidence=evidence,
        why=reason(verdict, name, (current, current), meaning, evidence),
        remedy=remedy,
    )


def _observed(power: PowerFacts, name: str) -> Evidence:
    nothing: Evidence = {"value": "", "source": "the power facts", "reason": None}
    found = power["settings"].get(name, nothing)
    time = power["timing"].get(_TIMES.get(name, ""))
    # A time that is not configured counts with its default.
    if time is not None:
        return {**found, "value": time}
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return str(value or UNSET)
