# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the next boot as rows of the report. Pure.

A host reports a cause by its keyword, with values (facts/boot_causes.py). The catalogue has the sentences.
"""

from __future__ import annotations

import shlex
from typing import Any

from ...facts.boot_causes import FAULT_OF
from ...facts.storage import BootFaultFacts
from ...host.observation import UNKNOWN
from ...host.printable import command, name, quote
from ...rows import Setting
from ...storage.boot_findings import (
    CONTAINERS,
    KINDS,
    NEW_UUID,
    PACKAGES,
    PHRASES,
)

#: Values that are the output of a program or the text of a file.
_VERBATIM = ("error", "text")
#: The fixed text by which a host names a source that is no file.
_KERNEL = "the kernel's command line"
_PLACES = (_KERNEL, f"{_KERNEL} of this boot (/proc/cmdline)")
#: Fault -> the action that it prevents at boot.
_MOUNTS = {
    "read_only": "mount {} for writing",
    **dict.fromkeys(("name", "copies"), "mount this file system at {}"),
}


def fault_of(fault: BootFaultFacts) -> str:
    """Return the setting of the report that a fault belongs to."""
    return FAULT_OF.get(fault["cause"], "options")


def texts(fault: BootFaultFacts) -> tuple[str, str]:
    """Return the problem and the fix."""
    kind, values = KINDS[fault["cause"]], fault["parameters"]
    found = {key: _text(key, fault[key]) for key in ("source", "target", "fstype")}
    found["options"] = _joined("options", fault["options"])
    found.update({key: _text(key, value) for key, value in values.items()})
    for key in set(PHRASES) & set(values):
        found[key] = PHRASES[key][str(values[key])].format(**found)
    found.update(_derived(values))
    return kind.says.format(**found), kind.fix.format(**found)


def _text(key: str, value: str | list[str]) -> str:
    if isinstance(value, list):
        return _joined(key, value)
    return quote(value) if key in _VERBATIM else value if value in _PLACES else name(value)


def _joined(key: str, values: list[str]) -> str:
    separators = {"names": " and ", "others": " and ", "programs": " or "}
    return separators.get(key, ", ").join(map(name, values))


def _derived(values: dict[str, Any]) -> dict[str, str]:
    """Return values of a sentence that are made of several facts, or of the names in a command."""
    found = {}
    if "near" in values:
        near = _joined("near", values["near"])
        found["meant"] = f" (did you mean {near}?)" if near else ""
    if "unit" in values:
        found["unmask"] = command("systemctl", "unmask", values["unit"])
    if "release" in values:
        found["release"] = shlex.quote(values["release"]) if values["release"] else "RELEASE"
    if values.get("layer") in PACKAGES:
        found["package"], found["module"] = PACKAGES[values["layer"]]
    if "others" in values and "holds" in values:
        found["apart"] = _apart(values["others"], values["holds"])
    if "tag" in values and "names" not in values:
        unknown = "... of the file system that is mounted at / now (blkid)"
        found["root"] = f"{values['tag']}={name(values['value']) if values['value'] else unknown}"
    return found


def _apart(others: list[str], holds: str) -> str:
    """Return the command that gives the other devices another UUID; `holds`: their contents."""
    names = " and ".join(map(name, others))
    if holds not in NEW_UUID:
        return f"detach {names}"
    commands = ", ".join(f"{NEW_UUID[holds]} {shlex.quote(f'/dev/{each}')}" for each in others)
    verb = "close" if holds in CONTAINERS else "unmount"
    return f"{verb} {names} and give {'it' if len(others) == 1 else 'each'} another UUID ({commands})"


def row(fault: BootFaultFacts) -> Setting:
    """Return the row of one fault: drift at the next boot, or unknown."""
    state, target, setting = fault["state"], fault["target"], fault_of(fault)
    mounts = _MOUNTS.get(setting, "mount {}").format(target)
    effects = {
        "required": "stops",
        "read_only": "leaves / read-only",
        "undecided": "stops or leaves / read-only",
        "without": "leaves a mount out",
        "empty": f"mounts an empty directory at {target}",
        "hides": f"hides what is at {target} now",
    }
    effect = effects.get(fault["boot"], f"does not {mounts}")
    can = "will" if setting in ("name", "copies") else "can"
    what = (
        f"the next boot {effect}"
        if state != UNKNOWN
        else f"it is unknown whether the next boot {can} {mounts}"
    )
    why, fix = texts(fault)
    evidence = {"value": state, "source": fault["source"], "reason": why}
    return Setting(
        layer="mount_options",
        target=target,
        setting=setting,
        klass="safety",
        wanted_running="known",
        wanted_persisted="known",
        running="known",
        persisted=state,
        verdict=UNKNOWN if state == UNKNOWN else "drift_persisted",
        phase=None,
        evidence={"running": {**evidence, "value": "known"}, "persisted": evidence},
        why=f"{what}: {why}",
        remedy=fix,
        finding=KINDS[fault["cause"]].id,
    )
