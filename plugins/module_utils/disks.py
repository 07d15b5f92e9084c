# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk says of its write cache, and what the kernel believes of it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from . import udev
from .flush import is_owed
from .host import Host, Unobservable
from .observation import UNKNOWN, Observation, observe, unknown

_HDPARM = re.compile(r"^\s*write-caching\s*=\s*(?:(1)\s*\(on\)|0\s*\(off\))\s*$", re.M)
#: A disk on a port of libata, rather than behind a RAID or USB bridge that speaks for it.
_ATA_PORT = re.compile(r"/ata\d+/")
_YES_NO = {"1": "yes", "0": "no"}
#: Kernel names of block devices that are no disk of their own; the drivers that make them may
#: hold data back in ways that no rule here covers.
_MEMORY = ("ram", "zram")
_NETWORK = ("nbd", "rbd", "drbd")


class Disks:
    """Reads the disks of one host; asks udev and the hypervisor question once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.virtualization = observe("systemd-detect-virt", self._detect_virtualization)
        self._udev_error: str | None = None
        self._properties = self._read_udev()
        self._rules_error: str | None = None
        self._rules = self._read_rules()
        self._ids = self._name_disks()
        self._names = {known: name for name, known in self._ids.items()}

    def collect(self, name: str) -> dict[str, Any]:
        """Return the facts of one disk, by kernel name. Nothing here raises: what cannot be
        read is `unknown`, with its reason under `evidence`."""
        properties = self._properties.get(name, {})
        transport = self.transport(name)
        device = self._device_cache(name, transport)
        kernel = observe(f"/sys/block/{name}/queue/write_cache", lambda: self._belief(name))
        fua = observe(f"/sys/block/{name}/queue/fua", lambda: self._fua(name))
        running, available = self._scheduler(name)
        evidence = {
            "rotational": observe(
                f"/sys/block/{name}/queue/rotational",
                lambda: _word(self._queue(name, "rotational"), _YES_NO),
            ),
            "write_cache.device": device,
            "write_cache.kernel": kernel,
            "write_cache.persisted": self._persisted(name, transport, device),
            "write_cache.volatile": _volatility(device),
            "fua": fua,
            "fua_efficient": _fua_efficient(device, kernel, fua),
            "scheduler.running": running,
            "scheduler.persisted": unknown("udev rules", "this release has no rule for schedulers"),
        }
        facts: dict[str, Any] = {
            "name": name,
            "id": self._ids.get(name),
            "kind": self._kind(name, transport),
            "transport": transport,
            "model": properties.get("ID_MODEL") or self._optional(name, "device/model"),
            "serial": properties.get("ID_SERIAL_SHORT") or properties.get("ID_SERIAL"),
            "switchable": "yes" if self._is_switchable(name, transport) else "no",
            "flush": "owed" if is_owed(self.host, name) else "done",
            "write_cache": {},
            "scheduler": {"available": available},
            "evidence": {field: seen.as_dict() for field, seen in evidence.items()},
        }
        for field, seen in evidence.items():
            group, _dot, key = field.rpartition(".")
            (facts[group] if group else facts)[key] = seen.value
        return facts

    def find(self, disk_id: str) -> str | None:
        """Return the kernel name that a disk has now, or None when it is not there."""
        return self._names.get(disk_id)

    def transport(self, name: str) -> str:
        """Return sata, virtio, nvme, scsi, usb, or unknown."""
        properties = self._properties.get(name, {})
        if name.startswith("vd"):
            return "virtio"
        if name.startswith("nvme"):
            return "nvme"
        bus = properties.get("ID_BUS")
        path = self.host.resolve(f"/sys/block/{name}")
        if "/usb" in path:
            return "usb"  # also where udev calls the disk behind the bridge an ATA disk
        if bus == "ata" and _ATA_PORT.search(path):
            return "sata"
        return "scsi" if bus == "scsi" else UNKNOWN

    def _is_switchable(self, name: str, transport: str) -> bool:
        """Tell whether the write_cache layer can switch a disk's cache."""
        if transport != "virtio":
            return transport == "sata"
        try:
            # Without the feature the driver offers the attribute read-only.
            return bool(self.host.mode(f"/sys/block/{name}/cache_type") & 0o200)
        except Unobservable:
            return False

    def _detect_virtualization(self) -> str:
        # Exit 1 with the word "none" is its answer on bare metal.
        result = self.host.run(["systemd-detect-virt"])
        word = result.stdout.strip()
        if not word:
            raise Unobservable(f"systemd-detect-virt: exit {result.rc}: {result.stderr.strip()}")
        return word

    def _read_udev(self) -> dict[str, dict[str, str]]:
        argv = ["udevadm", "info", "--export-db"]
        try:
            result = self.host.run(argv)
            if result.rc != 0:
                # Half a database could hide that two disks share a serial number.
                raise Unobservable(f"{' '.join(argv)}: exit {result.rc}: {result.stderr.strip()}")
            return udev.parse_database(result.stdout)
        except Unobservable as error:
            self._udev_error = str(error)
            return {}

    def _read_rules(self) -> dict[str, udev.CacheRule]:
        if not self.host.exists(udev.RULES_PATH):
            return {}
        try:
            rules = udev.parse_rules(self.host.read(udev.RULES_PATH))
        except Unobservable as error:
            self._rules_error = str(error)
            return {}
        return {rule.id: rule for rule in rules}

    def _name_disks(self) -> dict[str, str]:
        """Return {kernel name: id} for disks whose id is theirs alone."""
        named = {
            name: udev.identify(properties)
            for name, properties in self._properties.items()
            if properties.get("DEVTYPE") == "disk"
        }
        holders = Counter(named.values())
        return {name: known for name, known in named.items() if known and holders[known] == 1}

    def _kind(self, name: str, transport: str) -> str:
        if name.startswith(_MEMORY):
            return "memory"
        if name.startswith(_NETWORK):
            return "network"
        if self.virtualization.value == UNKNOWN:
            return UNKNOWN
        if self.virtualization.value != "none" or transport == "virtio":
            return "virtual"
        return "physical" if transport in ("sata", "nvme") else UNKNOWN

    def _device_cache(self, name: str, transport: str) -> Observation:
        if transport == "sata":
            source = f"hdparm -W /dev/{name}"
            return observe(source, lambda: self._ask_hdparm(name))
        if transport == "virtio":
            # Reading it asks the device's configuration space, not the kernel's memory.
            source = f"/sys/block/{name}/cache_type"
            words = {"write back": "enabled", "write through": "disabled"}
            return observe(source, lambda: _word(self.host.read(source), words))
        return unknown("device", self._udev_error or f"no way to ask a {transport} disk in this release")

    def _ask_hdparm(self, name: str) -> str:
        result = self.host.run(["hdparm", "-W", f"/dev/{name}"])
        if result.rc != 0:
            raise Unobservable(f"hdparm -W /dev/{name}: exit {result.rc}: {result.stderr.strip()}")
        return parse_hdparm(result.stdout + result.stderr)

    def _persisted(self, name: str, transport: str, device: Observation) -> Observation:
        if device.value == "none":
            return Observation("none", device.source)
        if self._rules_error:
            return unknown(udev.RULES_PATH, self._rules_error)
        rule = self._rules.get(self._ids.get(name, ""))
        if rule and rule.transport == transport:
            return Observation(rule.state, udev.RULES_PATH)
        return Observation("unset", udev.RULES_PATH, "no rule: the device's own default applies")

    def _belief(self, name: str) -> str:
        return _word(
            self._queue(name, "write_cache"),
            {"write back": "write back", "write through": "write through"},
        )

    def _fua(self, name: str) -> str:
        return _word(self._queue(name, "fua"), {"1": "supported", "0": "unsupported"})

    def _scheduler(self, name: str) -> tuple[Observation, list[str]]:
        source = f"/sys/block/{name}/queue/scheduler"
        try:
            names = self._queue(name, "scheduler").split()
        except Unobservable as error:
            return unknown(source, str(error)), []
        chosen = [word[1:-1] for word in names if word.startswith("[")]
        available = [word.strip("[]") for word in names]
        if len(chosen) == 1:
            return Observation(chosen[0], source), available
        return unknown(source, f"not a scheduler list: {' '.join(names)!r}"), available

    def _queue(self, name: str, attribute: str) -> str:
        return self.host.read(f"/sys/block/{name}/queue/{attribute}")

    def _optional(self, name: str, attribute: str) -> str | None:
        try:
            return self.host.read(f"/sys/block/{name}/{attribute}").strip()
        except Unobservable:
            return None


def parse_hdparm(text: str) -> str:
    """Return enabled or disabled, of what `hdparm -W DEVICE` prints. Raises ValueError.

    "not supported" is no answer: hdparm says so, with exit code 0, of a disk that it could not
    ask (seen: QEMU's SCSI disk).
    """
    found = _HDPARM.search(text)
    if not found:
        raise ValueError(f"hdparm named no write-caching state: {' '.join(text.split())!r}")
    return "enabled" if found.group(1) else "disabled"


def _word(text: str, words: dict[str, str]) -> str:
    try:
        return words[text.strip()]
    except KeyError:
        wanted = ", ".join(words)
        raise ValueError(f"seen {text.strip()!r}, wanted one of {wanted}") from None


def _volatility(device: Observation) -> Observation:
    if device.value == "none":
        return Observation("non_volatile", device.source)
    return unknown(device.source, "the device does not tell whether its cache survives a power cut")


def _fua_efficient(device: Observation, kernel: Observation, fua: Observation) -> Observation:
    """A log write costs no separate flush: no volatile cache, or FUA; and the belief is true."""
    source = ", ".join((device.source, kernel.source, fua.source))
    for seen in (device, kernel, fua):
        if seen.value == UNKNOWN:
            return unknown(source, seen.reason or UNKNOWN)
    cached = device.value == "enabled"
    if cached != (kernel.value == "write back"):
        return Observation("no", source, "the kernel's belief is not what the device says")
    return Observation("yes" if not cached or fua.value == "supported" else "no", source)
