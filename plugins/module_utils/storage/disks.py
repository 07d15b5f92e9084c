# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity, write cache and kernel cache mode of a disk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..facts.classes import DiskFacts, WriteCacheFacts
from ..host import udev
from ..host.observation import UNKNOWN, Because, Evidence, Observation, caused, observe, unknown, unread
from ..host.seam import Host, NoProgram, Result, Unobservable
from . import cache_rules, disk_kinds, scheduler_rules
from .blockstack import Blocks
from .caches import CONTROLS, ENABLED, NONE, Control, Scsi
from .disk_kinds import Kind, Traits
from .flush import is_owed
from .raid_controllers import controllers, volume

_YES_NO = {"1": "yes", "0": "no"}
_CACHE_MODES = {"write back": "write back", "write through": "write through"}
#: The kernel cache modes of a disk, worst first.
_WEAKEST = ("write through", UNKNOWN, "write back")
_FUA = {"1": "supported", "0": "unsupported"}
#: Seconds that udev may take for its database: it asks no device, and hundreds of disks are thousands
#: of entries.
_UDEV_TIMEOUT = 60.0
_BLOCK_DEVICES = "/sys/class/block"
_WHOLE = "--export-db"
#: Disks that are asked at a time, so that one which hangs costs its limit once and not once each.
_AT_A_TIME = 8
#: Transport -> how its cache is asked and switched.
_CONTROLS = {"sata": "sata", "sat": "scsi", "scsi": "scsi", "sas": "scsi", "nvme": "nvme", "virtio": "virtio"}
#: Kinds whose cache belongs to a machine that this host does not manage, or is none.
_NOT_OURS = ("san", "network", "raid_volume", "memory")
#: udev's properties that have what a RAID controller calls its volume: a WWN, or the serial number of older ones.
_VOLUME_IDS = ("ID_WWN_WITH_EXTENSION", "ID_SERIAL_SHORT", "ID_SCSI_SERIAL")


class Disks:
    """Reads the disks of one host; asks udev and the hypervisor question once."""

    def __init__(self, host: Host, blocks: Blocks | None = None) -> None:
        self.host = host
        self._blocks = blocks or Blocks(host)
        self.virtualization = observe("systemd-detect-virt", self._detect_virtualization)
        self._nvme_paths = disk_kinds.nvme_paths(self._list_devices())
        self.udev_error: str | None = None
        self.properties = self._read_udev()
        self._shared = self._share_paths()
        self._ids = self._name_devices()
        self._names = {known: name for name, known in self._ids.items()}
        self._controllers = controllers.Controllers(host)
        self._cache_rules = _rules(lambda: cache_rules.read(host))
        self._useless_rules = _rules(lambda: cache_rules.useless(host))[0]
        self._scheduler_rules = _rules(lambda: scheduler_rules.read(host))

    def collect_all(self, names: Iterable[str]) -> list[DiskFacts]:
        """Return the facts of several disks, in the order of their names."""
        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            return list(pool.map(self.collect, names))

    def collect(self, name: str) -> DiskFacts:
        """Return the facts of one disk, by kernel name. Nothing here raises: what cannot be
        read is `unknown`, with its reason under `evidence`."""
        properties = self.properties.get(name, {})
        kind = self.kind(name)
        control = _control_of(kind)
        device = self._device_cache(name, kind, control)
        kernel = self._kernel_mode(name)
        fua = self._queue_word(name, "fua", _FUA)
        scheduler, available = self.scheduler(name)
        found = self._volume(name) if kind.kind == disk_kinds.RAID_VOLUME else None
        raid = controllers.facts(found) if found else None
        evidence = {
            "kind": Observation(kind.kind, "sysfs, udev", because=kind.cause),
            "rotational": self._queue_word(name, "rotational", _YES_NO),
            "write_cache.device": device,
            "write_cache.kernel": kernel,
            "write_cache.persisted": self._cache_persisted(name, control, device),
            "write_cache.volatile": _volatility(device, found),
            "fua": fua,
            "sector.logical": self._sector(name, "logical"),
            "sector.physical": self._sector(name, "physical"),
            "fua_efficient": _fua_efficient(device, kernel, fua),
            "scheduler.running": scheduler,
            "scheduler.persisted": self.scheduling_persisted(name, "scheduler"),
            "readahead.running": self.readahead(name),
            "readahead.persisted": self.scheduling_persisted(name, "readahead"),
        }
        known = self.id_of(name) or self._shared.get(name)
        return {
            "name": name,
            "id": known,
            "kind": kind.kind,
            "transport": kind.transport,
            "control": control or NONE,
            "model": properties.get("ID_MODEL") or self._attribute(name, "device/model") or None,
            "serial": properties.get("ID_SERIAL_SHORT") or properties.get("ID_SERIAL"),
            "switchable": "yes" if self._is_switchable(name, kind, control) else "no",
            "multipath": "yes" if name in self._shared else "no",
            "place": kind.place,
            "flush_blocked_by": self._blocks.blocking_above(name),
            "flush": "owed" if is_owed(self.host, name) else "done",
            "rotational": evidence["rotational"].value,
            "fua": fua.value,
            "fua_efficient": evidence["fua_efficient"].value,
            "write_cache": {
                "device": device.value,
                "kernel": kernel.value,
                "persisted": evidence["write_cache.persisted"].value,
                "volatile": evidence["write_cache.volatile"].value,
            },
            "sector": {
                "logical": evidence["sector.logical"].value,
                "physical": evidence["sector.physical"].value,
            },
            "scheduler": {
                "running": scheduler.value,
                "available": available,
                "persisted": evidence["scheduler.persisted"].value,
            },
            "readahead": {
                "running": evidence["readahead.running"].value,
                "persisted": evidence["readahead.persisted"].value,
            },
            "raid": raid,
            "evidence": {
                "id": self._about_id(name, known),
                **{field: seen.as_dict() for field, seen in evidence.items()},
                **({"raid": found.seen.as_dict()} if found else {}),
            },
        }

    def with_power_on(self, facts: DiskFacts) -> DiskFacts:
        """Return the facts of a disk with the state in which its cache comes out of a reset, where it can tell.

        It matters below what an initramfs makes, before any rule: the kernel trusts then what the disk says.
        """
        control = CONTROLS.get(facts["control"])
        if not isinstance(control, Scsi):
            return facts
        name = facts["name"]
        argv = f"sdparm --get WCE /dev/{name}"
        seen = observe(argv, lambda: control.power_on(self.host, name))
        cache: WriteCacheFacts = {**facts["write_cache"], "power_on": seen.value}
        evidence = {**facts["evidence"], "write_cache.power_on": seen.as_dict()}
        return {**facts, "write_cache": cache, "evidence": evidence}

    def find(self, device_id: str) -> str | None:
        """Return the kernel name that a block device has now, or None when it is not there."""
        return self._names.get(device_id)

    def id_of(self, name: str) -> str | None:
        """Return the name of a block device that stays, or None without a unique one."""
        return self._ids.get(name)

    def kind(self, name: str) -> Kind:
        """Return what kind of disk a kernel name is."""
        names = self._nvme_paths.get(name) or [name]
        paths = [self.host.resolve(f"/sys/block/{path}") for path in names]
        return disk_kinds.classify(
            Traits(
                name=name,
                path=" ".join(paths),
                driver=self._driver(paths[0]),
                vendor=self._attribute(name, "device/vendor"),
                model=self._attribute(name, "device/model"),
                properties=self.properties.get(name, {}),
                virtualization=self.virtualization.value,
            )
        )

    def scheduler(self, name: str) -> tuple[Observation, list[str]]:
        """Return the I/O scheduler in force, and those that are loaded."""
        source = f"/sys/block/{name}/queue/scheduler"
        try:
            text = self.host.read(source)
        except Unobservable as error:
            if self.host.exists(f"/sys/block/{name}/queue") and not self.host.exists(source):
                return Observation("none", source), []
            return unread(source, error), []
        chosen, available = schedulers(text)
        if not chosen and available == ["none"]:
            return Observation("none", source), []
        if len(chosen) == 1:
            return Observation(chosen[0], source), available
        return caused(UNKNOWN, source, "no_scheduler", text=" ".join(text.split())), available

    def readahead(self, name: str) -> Observation:
        """Return the readahead of a block device, in KiB."""
        source = f"/sys/block/{name}/queue/read_ahead_kb"
        return observe(source, lambda: str(int(self.host.read(source))))

    def scheduling_persisted(self, name: str, setting: str) -> Observation:
        """Return what our udev rule sets for `scheduler` or `readahead`; `unset` without one."""
        rules, error = self._scheduler_rules
        if error:
            return unknown(scheduler_rules.RULES_PATH, error)
        persisted = rules.get(self._ids.get(name, ""), {})
        if setting in persisted:
            return Observation(persisted[setting], scheduler_rules.RULES_PATH)
        return Observation("unset", scheduler_rules.RULES_PATH)

    def _is_switchable(self, name: str, kind: Kind, control: str | None) -> bool:
        """Return whether the write_cache layer may switch a disk's cache."""
        if control is None or kind.hidden or kind.kind in _NOT_OURS or name in self._shared:
            return False
        return CONTROLS[control].is_switchable(self.host, name)

    def _list_devices(self) -> list[str]:
        try:
            return self.host.names("/sys/block")
        except Unobservable:
            return []

    def _detect_virtualization(self) -> str:
        # Exit 1 with the word "none" is its answer on bare metal.
        result = self.host.run(["systemd-detect-virt"])
        word = result.stdout.strip()
        if not word:
            raise Unobservable(f"systemd-detect-virt: exit {result.rc}: {result.stderr.strip()}")
        return word

    def _read_udev(self) -> dict[str, dict[str, str]]:
        """Return what udev knows of each block device, by kernel name.

        Its whole database has every terminal too, which takes seconds with hundreds of them, so only block devices are
        requested. udevadm of systemd 239 and older takes one device a call: then, and if one has gone meanwhile, the
        whole database is read. Half a database could hide that two disks share a serial number.
        """
        try:
            devices = self.host.names(_BLOCK_DEVICES)
            result = self._ask_udev([f"{_BLOCK_DEVICES}/{name}" for name in devices] or [_WHOLE])
            found = udev.parse_database(result.stdout) if result.rc == 0 else {}
            if devices and not found.keys() >= set(devices):
                result = self._ask_udev([_WHOLE])
                found = udev.parse_database(result.stdout)
            if result.rc != 0:
                raise Unobservable(f"udevadm info {_WHOLE}: exit {result.rc}: {result.stderr.strip()}")
            return found
        except Unobservable as error:
            self.udev_error = str(error)
            return {}

    def _ask_udev(self, words: list[str]) -> Result:
        return self.host.run(["udevadm", "info", *words], _UDEV_TIMEOUT)

    def _name_devices(self) -> dict[str, str]:
        """Return {kernel name: id} for devices whose id is theirs alone."""
        named = self._claimed()
        holders = Counter(named.values())
        return {name: known for name, known in named.items() if known and holders[known] == 1}

    def _share_paths(self) -> dict[str, str]:
        """Return {kernel name: id} of multipath's paths to one disk: one name for all of them.

        An administrator can attest the disk behind it; no rule and no setting uses it.
        """
        named = self._claimed()
        holders = Counter(named.values())
        single = {
            known
            for name, known in named.items()
            if self.properties[name].get("DM_MULTIPATH_DEVICE_PATH") != "1"
        }
        return {
            name: known
            for name, known in named.items()
            if known and holders[known] > 1 and known not in single and not udev.risk_of(known)
        }

    def _claimed(self) -> dict[str, str | None]:
        return {
            name: udev.identify(properties)
            for name, properties in self.properties.items()
            if properties.get("DEVTYPE") == "disk"
        }

    def _about_id(self, name: str, known: str | None) -> Evidence:
        """Return the id of a disk as evidence, with the cause if it has none."""
        because = self._why_nameless(name) if known is None else None
        return {**Observation(known or "", "udev", because=because).as_dict(), "value": known}

    def _why_nameless(self, name: str) -> Because:
        if self.udev_error:
            return Because("udev_unread", {"error": self.udev_error})
        claimed = self._claimed()
        named = claimed.get(name)
        if not named:
            return Because("no_id")
        others = [other for other, its in sorted(claimed.items()) if its == named and other != name]
        return Because("same_id", {"id": named, "disks": others})

    def _driver(self, path: str) -> str:
        """Return the name of the driver of a SCSI disk's host, '' for a disk of another sort."""
        hosts = [part for part in path.split("/") if part.startswith("host") and part[4:].isdigit()]
        if not hosts:
            return ""
        try:
            return self.host.read(f"/sys/class/scsi_host/{hosts[0]}/proc_name").strip()
        except Unobservable:
            return ""

    def _volume(self, name: str) -> controllers.Found:
        """Return the volume that a disk is, as the tool of its controller has it."""
        if self.virtualization.value != "none":
            return controllers.Found(None, caused(UNKNOWN, "systemd-detect-virt", "in_virtual_machine"))
        properties = self.properties.get(name, {})
        known = self.id_of(name) or self._shared.get(name)
        ids = {volume.normal_id(properties.get(key, "")) for key in _VOLUME_IDS if known}
        return self._controllers.find(self._driver(self.host.resolve(f"/sys/block/{name}")), ids - {""})

    def _device_cache(self, name: str, kind: Kind, control: str | None) -> Observation:
        if kind.hidden:
            return caused(UNKNOWN, "device", kind.hidden)
        if control is None:
            if self.udev_error:
                return caused(UNKNOWN, "device", "udev_unread", error=self.udev_error)
            return caused(UNKNOWN, "device", "no_control", transport=kind.transport, kind=kind.kind)
        way: Control = CONTROLS[control]
        try:
            return Observation(way.ask(self.host, name), way.source(name))
        except NoProgram as error:
            return caused(UNKNOWN, way.source(name), "no_program", error=str(error))
        except (Unobservable, ValueError) as error:
            return unread(way.source(name), error)

    def _cache_persisted(self, name: str, control: str | None, device: Observation) -> Observation:
        if device.value == NONE:
            return Observation(NONE, device.source)
        rules, error = self._cache_rules
        if error:
            return unknown(cache_rules.RULES_PATH, error)
        persisted = rules.get(self._ids.get(name, ""))
        if persisted and persisted[0] == control:
            return Observation(persisted[1], cache_rules.RULES_PATH)
        useless = self._useless_rules.get(self._ids.get(name, ""))
        if useless:
            return caused("unset", cache_rules.RULES_PATH, "rule_without_program", programs=useless)
        return caused("unset", cache_rules.RULES_PATH, "no_cache_rule", unit=cache_rules.UNIT)

    def _kernel_mode(self, name: str) -> Observation:
        """Return the kernel cache mode of a disk; of one with several paths, the weakest of them."""
        names = (name, *self._nvme_paths.get(name, ()))
        seen = [self._queue_word(queue, "write_cache", _CACHE_MODES) for queue in names]
        return min(seen, key=lambda mode: _WEAKEST.index(mode.value))

    def _queue_word(self, name: str, attribute: str, words: dict[str, str]) -> Observation:
        source = f"/sys/block/{name}/queue/{attribute}"
        return observe(source, lambda: _word(self.host.read(source), words))

    def _sector(self, name: str, kind: str) -> Observation:
        source = f"/sys/block/{name}/queue/{kind}_block_size"
        return observe(source, lambda: _bytes(self.host.read(source)))

    def _attribute(self, name: str, attribute: str) -> str:
        try:
            return self.host.read(f"/sys/block/{name}/{attribute}").strip()
        except Unobservable:
            return ""


def schedulers(text: str) -> tuple[list[str], list[str]]:
    """Return the schedulers in brackets, which are in force, and all of them, as queue/scheduler has them."""
    names = text.split()
    return [word[1:-1] for word in names if word.startswith("[")], [word.strip("[]") for word in names]


def _bytes(text: str) -> str:
    """Return a number of bytes, as the kernel prints it. Raises ValueError for anything else."""
    if not re.fullmatch(r"[1-9][0-9]{1,7}\n?", text, re.ASCII):
        raise ValueError(f"observed {text[:20]!r}, expected a number of bytes")
    return text.strip()


def _rules(read: Any) -> tuple[dict[str, Any], str | None]:
    """Return rules and None, or nothing and why they could not be read."""
    try:
        return read(), None
    except Unobservable as error:
        return {}, str(error)


def _control_of(kind: Kind) -> str | None:
    """Return the name of the control for a disk's cache; memory has none to speak of."""
    return _CONTROLS.get(kind.transport)


def _word(text: str, words: dict[str, str]) -> str:
    try:
        return words[text.strip()]
    except KeyError:
        wanted = ", ".join(words)
        raise ValueError(f"observed {text.strip()!r}, expected one of {wanted}") from None


def _volatility(device: Observation, found: controllers.Found | None) -> Observation:
    if device.value == NONE:
        return Observation(volume.NON_VOLATILE, device.source)
    if found and found.volume:
        wrong = volume.fault(controllers.facts(found))
        word = wrong.volatile if wrong else volume.NON_VOLATILE
        return Observation(word, found.seen.source)
    return caused(UNKNOWN, device.source, "no_claim")


def _fua_efficient(device: Observation, kernel: Observation, fua: Observation) -> Observation:
    """A log write costs no separate flush.

    Either the kernel sends FUA, which a disk whose cache is off takes as well, or its cache mode is
    rightly write through.
    """
    source = ", ".join((device.source, kernel.source, fua.source))
    for seen in (device, kernel, fua):
        if seen.value == UNKNOWN:
            return seen._replace(source=source)
    if kernel.value == "write back":
        return Observation("yes" if fua.value == "supported" else "no", source)
    if device.value == ENABLED:
        return caused("no", source, "mode_below_cache")
    return Observation("yes", source)
