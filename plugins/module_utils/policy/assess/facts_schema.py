# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of the facts that the policy reads, and contradictions between them. Pure.

The policy has no rule for a fact that is missing, is not one of its values, or contradicts another fact. Such facts are refused.
Facts that the policy does not read, and new facts, are ignored.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ... import catalog
from ...engines.judges import JUDGES
from ...facts import boot_causes, engine_causes, engine_fixes
from ...facts import engines as of_engines
from ...facts import storage as of_storage
from ...facts import ups as of_ups
from ...facts.engines import EnginesFacts, InstanceFacts, SettingFacts
from ...facts.schema import (
    EVIDENCE,
    YES_NO_UNKNOWN,
    Fields,
    Leaf,
    check_of,
    check_of_optional,
    evidence,
    one_of,
    shown,
)
from ...facts.storage import DiskFacts, MountFacts, StorageFacts
from ...facts.ups import BudgetFacts, PowerFacts
from ...host import bounds
from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import name as quoted
from ...storage import causes, mount_settings, nfs
from ...storage.disk_kinds import RAID_VOLUME
from ...storage.raid_controllers import volume
from ...ups import conditions
from . import budgets

_STORAGE = check_of(of_storage.StorageFacts)
_RAID = check_of(of_storage.RaidFacts)
#: Fields that every NFS mount has as well.
_NFS = check_of_optional(of_storage.MountFacts, ("recovery",))
_SYNC = check_of_optional(of_storage.MountFacts, ("sync",))
_ENGINES = check_of(of_engines.EnginesFacts)
_SETTING = check_of(of_engines.SettingFacts)
#: Fields that every instance of one engine has as well.
_INSTANCE_OF = {
    engine.name: check_of_optional(of_engines.InstanceFacts, of_engines.fields_of(engine))
    for engine in catalog.ENGINES
}
#: An engine's observations, of which every value is text.
_EVIDENCE = evidence(engine_causes.fits)
_OBSERVED = Leaf(
    lambda value: _EVIDENCE.fits(value) and isinstance(value["value"], str),
    f"{EVIDENCE.wanted}, the value text",
)
#: Observations that the policy reads -> their accepted values.
_VALUES = {"files": one_of("complete", "partial", UNKNOWN), "write_through": YES_NO_UNKNOWN}
_POWER = check_of(of_ups.PowerFacts)
_LEASE = check_of(of_ups.LeaseFacts)


def faults(storage: Any, engines: Any, power: Any = None) -> list[str]:
    """Return the faults of the facts, each in one line; [] if the policy can read them.

    `storage` is `durable_storage`, `engines` is `durable_engines`, `power` is `durable_power`, None if not collected.
    """
    misfits = _STORAGE.misfits("durable_storage", storage), _ENGINES.misfits("durable_engines", engines)
    found = _first(*misfits, _POWER.misfits("durable_power", power) if power is not None else ())
    return found or _first(_too_many(storage, engines)) or _first(_of_what_fits(storage, engines, power))


def _first(*faults: Iterable[str]) -> list[str]:
    """Return a limited number of faults: a host can report millions of wrong values."""
    return list(itertools.islice(itertools.chain(*faults), bounds.FAULTS))


def _too_many(storage: StorageFacts, engines: EnginesFacts) -> Iterator[str]:
    """Yield lists that are longer than any host's: each entry is compared with all others."""
    for where, rows, most in (
        ("durable_storage.disks", storage["disks"], bounds.DEVICES),
        ("durable_storage.mounts", storage["mounts"], bounds.DEVICES),
        # Stopped ones come on top.
        ("durable_engines.engines", engines["engines"], 2 * bounds.INSTANCES),
    ):
        if len(rows) > most:
            yield f"{where}: observed {len(rows)}; expected at most {most}"


def _of_what_fits(storage: StorageFacts, engines: EnginesFacts, power: PowerFacts | None) -> Iterator[str]:
    """Yield the faults of facts whose fields fit the schema."""
    yield from _contradictions(storage)
    for number, stray in enumerate(engines["unattributed"]):
        yield from _of_causes(f"durable_engines.unattributed[{number}]", stray)
    for number, instance in enumerate(engines["engines"]):
        yield from _of_instance(f"durable_engines.engines[{number}]", instance)
    if power is not None:
        yield from _of_power(power)


def _of_instance(where: str, instance: InstanceFacts) -> Iterator[str]:
    """Yield the faults of an instance whose fields fit the schema: values, and contradictions."""
    misfits = list(_INSTANCE_OF[instance["engine"]].misfits(where, instance))
    yield from misfits
    for number, database in enumerate(() if misfits else instance.get("databases", ())):
        yield from _of_causes(f"{where}.databases[{number}]", database)
    for name, observed in instance["settings"].items():
        yield from _of_setting(f"{where}.settings.{name}", instance["engine"], observed)
    evidence = instance["evidence"]
    wrong = [
        fault
        for name, observed in evidence.items()
        for fault in _OBSERVED.misfits(f"{where}.evidence.{name}", observed)
    ]
    for name, allowed in _VALUES.items():
        if not wrong and name in evidence:
            wrong += allowed.misfits(f"{where}.evidence.{name}.value", evidence[name]["value"])
    yield from wrong
    if not wrong:
        fields = {
            "version": instance["version"],
            "managed_by": instance["managed_by"],
            "preloads": " ".join(instance["preloads"]) or "none",
        }
        for name, value in fields.items():
            found = evidence.get(name, NOTHING).get("value", value)
            if found != value and (name, found) != ("preloads", UNKNOWN):
                yield f"{where}.{name}: observed {quoted(value)}, and its evidence is {quoted(found)}"


def _of_setting(where: str, engine: str, observed: SettingFacts) -> Iterator[str]:
    """Yield the faults of a setting: fields, fixes and refusals."""
    wrong = [*_SETTING.misfits(where, observed), *_of_causes(where, observed)]
    yield from wrong
    if wrong:
        return
    for name in ("held", "fix"):
        fix = observed.get(name)
        if fix is not None and not engine_fixes.fits(fix, JUDGES[engine].fix_texts):
            yield f"{where}.{name}: observed {shown(fix)}; expected a fix of {engine}'s settings, with its parameters"
    refused = observed.get("refused")
    if refused is not None and not engine_fixes.is_refusal(refused, JUDGES[engine].refusal_texts):
        yield f"{where}.refused: observed {shown(refused)}; expected a refusal of {engine}, with its parameters"


def _of_causes(where: str, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fault of a row's causes of unknown values, which only few have."""
    if isinstance(row, dict) and "causes" in row and not engine_causes.are_causes(row["causes"]):
        yield f"{where}.causes: observed {shown(row['causes'])}; expected causes of the collection's list"


def _of_power(power: PowerFacts) -> Iterator[str]:
    """Yield the faults of power facts whose fields fit the schema."""
    if power["guard"]["lease"] is not None:
        yield from _LEASE.misfits("durable_power.guard.lease", power["guard"]["lease"])
    states = {condition["name"]: condition["state"] for condition in power["conditions"]}
    for unknown in sorted({*states} - {*conditions.NAMES}):
        expected = ", ".join(conditions.NAMES)
        yield f"durable_power.conditions: observed {quoted(unknown)}; expected names of {expected}"
    for name in budgets.NAMES:
        of_condition = states.get(f"runtime_{name}")
        if of_condition == "met" and not _is_met(budgets.by_name(power)[name]):
            yield f"durable_power.budget.{name}: its condition is met, and its sum is not"
    if power["monitor"] in ("none", UNKNOWN) and states.get("monitor_active") == "met":
        yield f"durable_power.monitor: it is {power['monitor']}, and active"


def _is_met(budget: BudgetFacts) -> bool:
    """Return whether the numbers of a budget are met."""
    terms, needed, available = budget["terms"], budget["needed"], budget["available"]
    parts = [term["seconds"] for term in terms if not isinstance(term["seconds"], str)]
    if not terms or len(parts) < len(terms) or isinstance(needed, str) or isinstance(available, str):
        return False
    # The facts round the fractions.
    is_sum = abs(sum(parts) - needed) < 1
    return budget["state"] == "met" and is_sum and needed <= available


def _contradictions(storage: StorageFacts) -> Iterator[str]:
    names = Counter(disk["name"] for disk in storage["disks"])
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"disk {quoted(name)}: observed twice"
    for disk in storage["disks"]:
        yield from (
            f"disk {quoted(disk['name'])}: {fault}" for fault in (*_of_volume(disk), *_of_lowered(disk))
        )
    for number, fault in enumerate(storage["boot_faults"]):
        if not boot_causes.fits(fault["cause"], fault["parameters"]):
            yield (
                f"durable_storage.boot_faults[{number}].parameters: observed {shown(fault['parameters'])}; expected"
                f" {', '.join(boot_causes.VALUES[fault['cause']]) or 'none'}"
            )
    devices = {mount["device"] for mount in storage["mounts"]}
    for mount in storage["mounts"]:
        lost = set(mount["disks"]) - set(names) if mount["disks"] != UNKNOWN else set()
        target = quoted(mount["target"])
        yield from (f"{target}: its disk {quoted(name)} is not among the disks" for name in sorted(lost))
        yield from (f"{target}: {fault}" for fault in _contradicted(mount))
        for check in _checks_of_some(mount):
            yield from check.misfits(target, mount)
        for layer in mount["stack"]:
            if layer["held_on"] not in devices and (layer["held_on"] or layer["type"] == "loop"):
                yield f"{target}: the file system that holds the file of {quoted(layer['name'])} is not there"


def _checks_of_some(mount: MountFacts) -> Iterator[Fields]:
    """Yield the checks of the fields that only some mounts have."""
    if nfs.is_nfs(mount["fstype"]):
        yield _NFS
    if "sync" in mount["persisted"]:
        yield _SYNC


def _of_volume(disk: DiskFacts) -> Iterator[str]:
    """Yield the faults of the facts of a disk's RAID controller, and values that it does not support."""
    raid = disk["raid"]
    if (raid is not None) != (disk["kind"] == RAID_VOLUME):
        yield f"its kind is {quoted(disk['kind'])}, and its facts {'lack' if raid is None else 'have'} those of a RAID volume"
    if raid is not None:
        wrong = list(_RAID.misfits("raid", raid))
        yield from wrong
        if not wrong and disk["write_cache"]["volatile"] == volume.NON_VOLATILE and volume.fault(raid):
            yield "its cache is non_volatile, and its RAID controller does not say so"


def _of_lowered(disk: DiskFacts) -> Iterator[str]:
    """Yield the faults of a kernel cache mode that another component lowers."""
    mode = disk["write_cache"].get("kernel_persisted")
    if mode is None:
        return
    if mode not in ("write through", UNKNOWN):
        yield f"write_cache.kernel_persisted: {shown(mode)} is not write through or {UNKNOWN}"
    if not EVIDENCE.fits(disk["evidence"].get("write_cache.kernel_persisted")):
        yield f"evidence of write_cache.kernel_persisted: expected {EVIDENCE.wanted}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _contradicted(mount: MountFacts) -> Iterator[str]:
    """Yield contradictions between the facts of a mount."""
    hidden = mount["hidden_in"] is not None
    if mount["target"] not in mount["targets"] and not hidden:
        yield "its targets do not contain it"
    if hidden and mount["persisted"]["barrier"] != UNKNOWN:
        yield f"only {quoted(str(mount['hidden_in']))} has it, and its next boot is known"
    if mount["fstype"] not in (*mount_settings.HAVE_BARRIERS, *nfs.TYPES) and mount["barrier"] == "on":
        yield f"barriers are on, and no rule here says so of {quoted(mount['fstype'])}"
    if mount_settings.waits(mount) and mount["barrier"] == "off":
        yield "it is not mounted, and its barriers are off"
    if mount["disks"] != UNKNOWN:
        yield from _torn(mount)


def _torn(mount: MountFacts) -> Iterator[str]:
    """Yield contradictions between the stack below a mount and its disks."""
    leaves = {layer["name"] for layer in mount["stack"] if layer["type"] == "disk"}
    known = {layer["name"] for layer in mount["stack"]}
    if not (mount["disks"] and mount["disks_seen"]):
        return  # Without a leaf that mount is unknown, and the others are still made safer.
    if leaves != set(mount["disks"]) or leaves != set(mount["disks_seen"]):
        yield (
            f"its stack ends at {_listed(sorted(leaves)) or 'nothing'}, its disks are"
            f" {_listed(mount['disks']) or 'none'}, observed {_listed(mount['disks_seen']) or 'none'}"
        )
    yield from (f"its disks are known, and {causes.text(why)}" for why in mount["devices_missing"])
    for layer in mount["stack"]:
        name = quoted(layer["name"])
        if layer["type"] != "disk" and (not layer["below"] or set(layer["below"]) - known):
            yield f"a layer below {name} is not in its stack"
        if layer["type"] == UNKNOWN or layer["cause"]:
            yield f"{name} is not understood, and its disks are known"
        if (layer["type"] in ("disk", "partition")) != (layer["cache_mode"] == ""):
            mode = quoted(layer["cache_mode"]) if layer["cache_mode"] else "not read"
            yield f"the kernel cache mode of {name} is {mode}"
