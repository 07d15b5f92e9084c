# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of disks and mounts after the next boot, with the component that sets each of them last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from ..facts.classes import DiskFacts, MountFacts, MountPersisted
from ..host.observation import UNKNOWN, Because, Evidence, Observation, because_of, caused
from ..host.seam import Host, Unobservable
from . import (
    acts,
    effects,
    foreign_rules,
    generators,
    hdparm_conf,
    power_tools,
    remounts,
    scripts,
    smartd,
    sysfs_conf,
    tmpfiles,
    tuned,
    udisks,
    units,
)
from .acts import ATIME, BARRIER, SYNC, WRITE_BACK, Act, Device
from .early import after_udev, agreed
from .effects import UNSET, State, Value
from .starts import Starts
from .udev_rules import Rule

#: What sets a value if no other component does.
US, KERNEL = "durable.dbhost", "kernel"
#: Component -> what reads its files. Each acts after udev's rules, in an order that is unknown.
_Reader = Callable[[Starts, list[Device], Mapping[str, Mapping[str, str]]], "list[Act]"]
SOURCES: dict[str, _Reader] = {
    tuned.BY: lambda starts, _devices, properties: tuned.collect(starts.host, properties),
    tmpfiles.BY: lambda starts, *_: tmpfiles.collect(starts.host),
    sysfs_conf.BY: lambda starts, *_: sysfs_conf.collect(starts.host, starts),
    units.BY: lambda starts, *_: units.collect(starts.host, starts),
    scripts.BY: lambda starts, *_: scripts.collect(starts.host, starts),
    smartd.BY: lambda starts, *_: smartd.collect(starts.host, starts),
    udisks.BY: lambda starts, devices, _properties: udisks.collect(starts.host, devices),
    power_tools.BY: lambda starts, *_: power_tools.collect(starts.host, starts),
    generators.BY: lambda starts, *_: generators.collect(starts.host),
}
#: The beginning of the names that a driver gives to disks.
_DRIVER = re.compile(r"sd|vd|xvd|nvme|mmcblk")
#: Setting of a mount -> what of it a remount sets.
_OF_MOUNTS = (BARRIER, ATIME, SYNC)


class Collected(NamedTuple):
    """What other components do at the next boot; `others`: rules, and what they do with any mount and disk.

    `errors`: {component: why its files could not be read, as a cause}.
    """

    rules: foreign_rules.Rules
    others: list[tuple[Rule, list[Act]]]
    groups: list[list[Act]]
    hdparm: list[Act]
    errors: dict[str, Because]


class Last:
    """Reads the files of all components once, and answers for each disk and mount."""

    def __init__(
        self, host: Host, properties: Mapping[str, Mapping[str, str]], disks: list[DiskFacts]
    ) -> None:
        self.host, self.properties = host, properties
        devices = [device_of(host, disk, properties.get(disk["name"], {})) for disk in disks]
        self.devices = {device.name: device._replace(peers=_peers(device, devices)) for device in devices}
        self.found = self._collect()

    def disk(self, facts: DiskFacts) -> DiskFacts:
        """Return the facts of a disk with what the next boot makes of its settings."""
        cache, evidence = facts["write_cache"].copy(), dict(facts["evidence"])
        state = self._state(facts["name"], facts["id"], facts["control"], _own(facts))
        can = facts["id"] is not None and facts["switchable"] == "yes"
        if cache["device"] != "none":
            if facts["control"] != "none":
                self._put(evidence, "write_cache.persisted", state.cache, can)
                cache["persisted"] = evidence["write_cache.persisted"]["value"]
            if state.mode.act and state.mode.value != WRITE_BACK:
                self._put(evidence, "write_cache.kernel_persisted", state.mode, can)
                cache["kernel_persisted"] = state.mode.value
        self._put(evidence, "scheduler.persisted", state.scheduler, facts["id"] is not None)
        self._put(evidence, "readahead.persisted", state.readahead, facts["id"] is not None)
        return {
            **facts,
            "write_cache": cache,
            "scheduler": {**facts["scheduler"], "persisted": evidence["scheduler.persisted"]["value"]},
            "readahead": {**facts["readahead"], "persisted": evidence["readahead.persisted"]["value"]},
            "evidence": evidence,
        }

    def readahead(self, name: str, known: str | None, own: Observation) -> Evidence:
        """Return what the next boot makes of the readahead of a layer or disk below a mount, as evidence."""
        if name not in self.devices:
            self.devices[name] = device_of(
                self.host, {"name": name, "control": None}, self.properties.get(name, {})
            )
        state = self._state(name, known, None, {acts.READAHEAD: own.value})
        evidence: dict[str, Evidence] = {"readahead.persisted": own.as_dict()}
        self._put(evidence, "readahead.persisted", state.readahead, known is not None)
        return evidence["readahead.persisted"].copy()

    def mount(self, facts: MountFacts, disks: Mapping[str, DiskFacts]) -> MountFacts:
        """Return the facts of a mount with what other components make of its options."""
        persisted = cast("dict[str, str]", facts["persisted"].copy())
        evidence = dict(facts["evidence"])
        by_rules = [act for _rule, acts in self.found.others for act in acts]
        found = remounts.changes(
            [*self.found.groups, by_rules], facts, self._of_source(facts["source"]), disks
        )
        for setting, (value, act) in found.items():
            observed = _observed(Value(value, act, True), act, False)
            persisted[setting], evidence[f"persisted.{setting}"] = observed.value, observed.as_dict()
        unread = [why for by, why in self.found.errors.items() if by != hdparm_conf.BY]
        is_remounted = bool(facts["targets"]) and facts["fstype"].startswith(remounts.REMOUNTED)
        for setting in _OF_MOUNTS if unread and is_remounted else ():
            if persisted.get(setting, remounts.persisted(facts, setting)) in remounts.CERTAIN:
                source = evidence[f"persisted.{ATIME if setting == SYNC else setting}"]["source"]
                lost = _lost(source, unread)
                persisted[setting], evidence[f"persisted.{setting}"] = lost.value, lost.as_dict()
        for field in [f"persisted.{setting}" for setting in persisted]:
            if not evidence[field].get("by"):
                evidence[field] = {**evidence[field], "by": _by_of(evidence[field]["source"])}
        return {**facts, "persisted": cast(MountPersisted, persisted), "evidence": evidence}

    def _collect(self) -> Collected:
        errors: dict[str, Because] = {}
        groups: list[list[Act]] = []
        devices, starts = list(self.devices.values()), Starts(self.host)

        def attempt(component: str, read: Callable[[], Any], default: Any) -> Any:
            try:
                return read()
            except Unobservable as error:
                errors[component] = because_of(error)
                return default

        for component, read in SOURCES.items():
            by_file: dict[str, list[Act]] = {}
            for act in attempt(component, lambda read=read: read(starts, devices, self.properties), []):  # type: ignore[misc]
                by_file.setdefault(act.source.partition(" line ")[0], []).append(act)
            groups += by_file.values()
        rules = attempt(
            foreign_rules.BY, lambda: foreign_rules.read(self.host), foreign_rules.Rules((), False)
        )
        others = attempt(foreign_rules.BY, lambda: foreign_rules.of_others(self.host, rules), [])
        hdparm = attempt(hdparm_conf.BY, lambda: hdparm_conf.collect(self.host), [])
        return Collected(rules, others, groups, hdparm, errors)

    def _state(self, name: str, known: str | None, control: str | None, own: Mapping[str, str]) -> State:
        """Return what the next boot makes of a disk; `own`: what our rules set."""
        device, properties = self.devices[name], self.properties.get(name, {})
        state = State()
        ends: list[State] = []
        reached: set[str] = set()
        for action in ("add", "change"):
            peers = [peer for peer, _number in device.peers]
            found = foreign_rules.of_disk(self.host, self.found.rules, name, properties, action, known, peers)
            if action == "add" and self.found.rules.applies_hdparm_conf:
                found.runs_before.extend(self.found.hdparm)
            reached.update(found.reached)
            state = after_udev(state, found, device, own, control)
            ends.append(state)
        state = agreed(*ends)
        around = foreign_rules.around(
            self.host, self.found.rules, name, properties, device.address, device.number
        )
        around += [act for rule, acts in self.found.others if rule.source not in reached for act in acts]
        groups = [*self.found.groups, *([around] if around else [])]
        return effects.last(state, groups, device)

    def _put(self, evidence: dict[str, Evidence], field: str, value: Value, can: bool) -> None:
        """Write into the evidence what sets a value last."""
        before = evidence.get(field)
        if before and before["value"] == UNKNOWN:
            return
        if value.act:
            evidence[field] = _observed(value, value.act, can).as_dict()
        elif before:
            if self.found.errors:
                evidence[field] = _lost(before["source"], self.found.errors.values()).as_dict()
                return
            evidence[field] = {**before, "by": KERNEL if before["value"] == UNSET else US}

    def _of_source(self, source: str) -> Device | None:
        """Return the device of a mount, with the links that lead to it."""
        if not source.startswith("/dev/"):
            return None
        name = self.host.resolve(source)[len("/dev/") :]
        links = self.properties.get(name, {}).get("DEVLINKS", "").split()
        return Device(name, links=frozenset((source, *links)))


def device_of(host: Host, disk: Mapping[str, Any], properties: Mapping[str, str]) -> Device:
    """Return a disk as other components name it."""
    name = disk["name"]
    try:
        number = host.read(f"/sys/block/{name}/dev").strip()
    except Unobservable:
        number = ""
    place = host.resolve(f"/sys/block/{name}")
    directory = f"/sys/block/{name}/device/scsi_disk"
    addresses = host.names(directory) if host.exists(directory) else []
    return Device(
        name,
        number,
        frozenset(properties.get("DEVLINKS", "").split()),
        (place,),
        addresses[0] if addresses else "",
        host.resolve(f"{place}/device/scsi_disk/{addresses[0]}") if addresses else "",
        None if disk["control"] in (None, "none") else str(disk["control"]),
        properties.get("ID_MODEL", ""),
        properties.get("ID_SERIAL_SHORT") or properties.get("ID_SERIAL", ""),
    )


def _peers(device: Device, devices: list[Device]) -> tuple[tuple[str, str], ...]:
    """Return name and number of the other disks of a driver."""
    driver = _DRIVER.match(device.name)
    return tuple(
        (each.name, each.number)
        for each in devices
        if driver and each.name != device.name and each.name.startswith(driver[0])
    )


def _own(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        acts.CACHE: facts["write_cache"]["persisted"],
        acts.SCHEDULER: facts["scheduler"]["persisted"],
        acts.READAHEAD: facts["readahead"]["persisted"],
    }


def _observed(value: Value, act: Act, can: bool) -> Observation:
    """Return a value with what sets it; `can`: whether a rule of ours could take precedence over an earlier one."""
    cause = "sets_at_boot" if value.value != UNKNOWN else "may_set_at_boot"
    precedence = "theirs" if value.is_late or not can else None
    return caused(value.value, act.source, cause, act=act.text)._replace(by=act.by, precedence=precedence)


def _lost(source: str, causes: Iterable[Because]) -> Observation:
    """Return an unknown value that other components may set, because their files cannot be read."""
    return caused(UNKNOWN, source, "others_unread", why=[each.as_dict() for each in causes])


def _by_of(source: str) -> str:
    """Return which component the source of a mount's options is."""
    if "/systemd/" in source:
        return "systemd unit"
    return "fstab" if source.startswith("/etc/fstab") else KERNEL
