# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The six questions of FairCom's checklist, answered by a host's facts and attestations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...attestations import Attestation
from ...facts.ups import PowerFacts
from ...host.observation import UNKNOWN
from ..assess.case import Case
from ..report_types import Checklist, Stack

#: Question -> its heading in the report.
HEADINGS = {
    "file_systems": "1. file systems",
    "cache_layers": "2. cache layers",
    "ups": "3. UPS",
    "write_cache": "4. write cache",
    "barriers": "5. barriers",
    "commit_delay": "6. commit delay",
}
#: Kind of disk -> its cache that this host cannot read.
_BELOW = {
    "virtual": "hypervisor's cache unknown",
    "san": "array's cache unknown",
    "network": "server's cache unknown",
    "raid_volume": "controller's cache included",
}
#: Names of one value: an answer fits a line.
_NAMED = 3


def of(case: Case, stack: Stack) -> Checklist | None:
    """Return the answers of a host; `stack`: its managed mounts as reported. None without managed mounts."""
    if not stack["mounts"]:
        return None
    return {
        "file_systems": _grouped((_file_system(mount), mount["target"]) for mount in stack["mounts"]),
        "cache_layers": _layers(stack),
        "ups": _ups(case.power, case.declared.attestations),
        "write_cache": _grouped((_cache(disk["write_cache"]), disk["name"]) for disk in stack["disks"]),
        "barriers": _grouped((mount["barrier"], mount["target"]) for mount in stack["mounts"]),
        "commit_delay": _commit_delay(case),
    }


def lines_of(found: Checklist | None) -> list[str]:
    """Return the answers as lines, each after its heading; [] for a host without answers."""
    return [f"{heading}: {found[name]}" for name, heading in HEADINGS.items()] if found else []  # type: ignore[literal-required]


def _grouped(found: Iterable[tuple[str, str]]) -> str:
    """Return each value with a few of the names that have it: each value is on the first screen."""
    names: dict[str, dict[str, None]] = {}
    for value, name in found:
        names.setdefault(value, {})[name] = None
    return "; ".join(f"{value} ({_few(list(each))})" for value, each in names.items()) or UNKNOWN


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' +{more} more' if more > 0 else ''}"


def _file_system(mount: dict[str, Any]) -> str:
    mode = mount["data_mode"]
    return mount["fstype"] if mode == "none" else f"{mount['fstype']}, data={mode}"


def _layers(stack: Stack) -> str:
    """Return the layers between the file systems and the disks, and the kinds of the disks."""
    layers = (layer["type"] for mount in stack["mounts"] for layer in mount["layers"])
    types = dict.fromkeys(each for each in layers if each != "partition")
    disks = _grouped(
        (f"{disk['kind']}, {_BELOW[disk['kind']]}" if disk["kind"] in _BELOW else disk["kind"], disk["name"])
        for disk in stack["disks"]
    )
    return f"{', '.join(types) or 'none'}; disks: {disks}"


def _ups(power: PowerFacts | None, attestations: Sequence[Attestation]) -> str:
    """Return whether a UPS is configured, and whether its shutdown and a power cut were tested."""
    if power is None:
        return f"{UNKNOWN}: its facts were not collected"
    if power["monitor"] == "none":
        configured = "none configured"
    elif power["upses"]:
        configured = "configured: " + ", ".join(
            f"{each['system']} {' '.join(each['status']) or 'without a status'}" for each in power["upses"]
        )
    else:
        configured = UNKNOWN if power["monitor"] == UNKNOWN else f"{power['monitor']} without a UPS"
    tests = (("shutdown", "ups_rehearsed"), ("power cut", "plug_pulled"))
    return "; ".join([configured, *(f"{what} {_tested(claim, attestations)}" for what, claim in tests)])


def _tested(claim: str, attestations: Sequence[Attestation]) -> str:
    found = [f"tested, by {each.by} until {each.expires}" for each in attestations if each.claim == claim]
    return ", ".join(dict.fromkeys(found)) or "not tested"


def _cache(cache: dict[str, str]) -> str:
    """Return the state of a disk's cache and the kernel's mode; both count."""
    survives = ", survives a power cut" if cache["volatile"] == "non_volatile" else ""
    return f"{cache['device']}{survives}, kernel: {cache['kernel']}"


def _commit_delay(case: Case) -> str:
    """Return the delay of each server whose facts have one; of others it is not read."""
    found, others = [], []
    for instance in case.engines["engines"]:
        delay = instance["settings"].get("COMMIT_DELAY")
        if delay:
            values = f"{delay['running']} ms now, {delay['persisted']} ms at the next start"
            found.append(f"{instance['name']} {values}")
        else:
            others.append(instance["engine"])
    if others:
        found.append(f"not read from {', '.join(dict.fromkeys(others))}")
    return "; ".join(found) or "no server was found"
