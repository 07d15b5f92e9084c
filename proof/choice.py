# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether what the collection chooses for SQL Server is the cheapest of the ways that were shown to be safe on a device.

Which way is cheaper is counted in the evidence of the cells: flushes for each commit first, for a flush waits for all that the
cache holds, and then writes. Which way is chosen is asked of the collection's own policy, with the facts of the device as the
guest's kernel told them. A virtual disk only claims FUA, so the policy wants it attested; a cell that was shown is what
such an attestation would rest upon, and is taken for it.

0/0 is never compared. Where the cache is off it loses nothing on this rig, and costs least: the files here are written in
full and synced before. Blocks that were only allocated lose their commits with it whatever the cache is, so every safe
profile refuses it, and rightly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.engines import facts
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Instance
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import rules as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.rules import Subject
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import UNKNOWN, Observation
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import Profile
from ansible_collections.durable.dbhost.plugins.module_utils.storage import fua
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import _fua_efficient
from proof.cells import DEFAULTS, SAFE

WAYS = {"direct_dsync": "FUA (3979, 1/0)", "direct_fdatasync": "forced flush (3982, 1/1)"}
#: Trace flag 3979, writethrough and alternatewritethrough of each way.
_WORDS = {("on", "1", "0"): "direct_dsync", ("off", "1", "1"): "direct_fdatasync", ("on", "0", "0"): "direct"}
REFUSED = "direct"
#: What a journal that commits by itself may add to a commit.
TOLERANCE = 0.25
_DEVICE = {"write back": "enabled", "write through": "disabled"}
_FUA = {"1": "supported", "0": "unsupported"}
MOUNT, NUMBER = "/srv/proof", "8:0"
#: Of a profile the choice wants to know only that it promises durability.
_PROFILE = Profile("proof", "", "enabled", "on", "ordered", "keep", "flush")


@dataclass(frozen=True)
class Choice:
    """One device in one setting: what each safe way costs as (flushes, writes), what is chosen, and what is wrong with it.

    `chosen` is a workload; `unattested` is what is chosen while nobody vouches for the disk's FUA. `refused` is the cost
    of 0/0 where this rig shows it to be safe too.
    """

    setting: str
    costs: dict[str, tuple[float, float]]
    chosen: str
    unattested: str
    against: tuple[str, ...]
    refused: tuple[float, float] | None
    problem: str


def choices(cells: Iterable[dict[str, Any]]) -> list[Choice]:
    """Return the choice for each setting of which both ways were shown; harden-db has none where it has no rule."""
    found = dict[str, dict[str, dict[str, Any]]]()
    for cell in cells:
        setting = cell["setting"]
        is_made = setting["profile"] != DEFAULTS and not setting["plant"] and not setting["engine"]
        if is_made and cell["expects"] == SAFE and not cell["problems"]:
            name = "/".join((setting["profile"], setting["device"], setting["file_system"]))
            if (kind := cell.get("versions", {}).get("kind", "qemu")) != "qemu":
                name += f" ({kind})"
            found.setdefault(name, {})[cell["workload"]] = cell
    return [_choice(name, own) for name, own in sorted(found.items()) if set(WAYS) <= set(own)]


def problems(found: Sequence[Choice]) -> list[str]:
    """Return what is wrong with the choices."""
    return [f"{choice.setting}: {choice.problem}" for choice in found if choice.problem]


def is_cheapest(chosen: str, costs: dict[str, tuple[float, float]]) -> bool:
    """Tell whether no way has fewer flushes, and of those with as few none has fewer writes."""
    if chosen not in costs:
        return False
    flushes = min(cost[0] for cost in costs.values()) + TOLERANCE
    writes = min(cost[1] for cost in costs.values() if cost[0] <= flushes) + TOLERANCE
    return costs[chosen][0] <= flushes and costs[chosen][1] <= writes


def _choice(name: str, own: dict[str, dict[str, Any]]) -> Choice:
    cell = own["direct_dsync"]
    costs = {way: _cost(own[way]) for way in WAYS}
    chosen, against = choose(cell["seen"], cell["setting"]["file_system"], is_attested=True)
    unattested, _ = choose(cell["seen"], cell["setting"]["file_system"], is_attested=False)
    problem = ""
    if not is_cheapest(chosen, costs):
        words = ", ".join(f"{WAYS[way]} {cost[0]:.2f} and {cost[1]:.2f}" for way, cost in costs.items())
        problem = (
            f"{WAYS.get(chosen, '0/0')} is chosen; flushes and writes for each commit by safe ways: {words}"
        )
    refused = _cost(own[REFUSED]) if REFUSED in own else None
    return Choice(name, costs, chosen, unattested, tuple(against), refused, problem)


def choose(seen: dict[str, str], file_system: str, is_attested: bool) -> tuple[str, list[str]]:
    """Return the workload of the way that the policy chooses on a device, and what it has against FUA.

    `seen` is what the guest told of mount and disk: the words of write_cache, fua and cache_type below /sys, mount options
    and kernel.
    """
    storage = _storage(seen, file_system)
    found = Instance("mssql", MOUNT, directories=(MOUNT,))
    instance = {**facts.blank(found, None), "version": "16.0.4185.3", "state": "running", "evidence": {}}
    wanted = mssql.rules(Subject(instance, _PROFILE, storage, lambda disk: is_attested), {})
    against = mssql.against_fua(instance, storage, lambda disk: is_attested)
    words = (
        wanted["traceflag3979"].value,
        wanted["writethrough"].value,
        wanted["alternatewritethrough"].value,
    )
    return _WORDS[words], against


def _storage(seen: dict[str, str], file_system: str) -> dict[str, Any]:
    """Return what the policy wants to know of a mount on one whole disk, in the words of storage_facts."""
    source = "/sys"
    device = Observation(_DEVICE.get(seen["cache_type"], UNKNOWN), source)
    takes = Observation(_FUA.get(seen["fua"], UNKNOWN), source)
    efficient = _fua_efficient(device, Observation(seen["write_cache"], source), takes)
    disk = {
        "name": "disk",
        "id": None,
        "fua": takes.value,
        "fua_efficient": efficient.value,
        "write_cache": {"device": device.value, "kernel": seen["write_cache"]},
    }
    mount: dict[str, Any] = {
        "target": MOUNT,
        "targets": [MOUNT],
        "device": NUMBER,
        "fstype": file_system,
        "barrier": "off" if re.search(r"(^|,)(nobarrier|barrier=0)(,|$)", seen["mount"]) else "on",
        "data_mode": "journal" if "data=journal" in seen["mount"].split(",") else "ordered",
        "disks": ["disk"],
        "stack": [],
    }
    path = fua.path(mount, [disk], seen["kernel"])
    mount |= {"fua_path": path.value, "evidence": {"fua_path": path.as_dict()}}
    nowhere: dict[str, Any] = {name: {} for name in ("resolved", "unresolved", "other_mounts", "links")}
    return {"platform": "unknown", "disks": [disk], "mounts": [mount], **nowhere}


def _cost(cell: dict[str, Any]) -> tuple[float, float]:
    """Return flushes and writes that one client's commit made the kernel send, without the noise."""
    row = next(row for row in cell["accounting"] if row["clients"] == 1)
    return round(row["kernel"]["flushes"], 3), round(row["kernel"]["writes"] - row["noise"], 3)
