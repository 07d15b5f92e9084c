# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of a server: one JSON file."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.vhost.overlay import Overlay
from lab.vhost.scsi import TARGETS
from lab.vhost.store import File, Store

BUSES = ("virtio", "scsi")
SERIAL_LENGTH = 20


@dataclass(frozen=True)
class DiskConfig:
    """One disk: `socket` and `unnamed` are for virtio disks; `target`, `fua` and `wwn` for SCSI."""

    serial: str
    bus: str
    store: dict[str, Any]
    socket: Path | None = None
    target: int | None = None
    fua: bool = False
    wwn: int | None = None
    cache: bool = True
    unnamed: bool = False


@dataclass(frozen=True)
class Config:
    """All of it."""

    control: Path
    scsi: Path | None = None
    disks: list[DiskConfig] = field(default_factory=list)


def load(path: Path) -> Config:
    """Read a file; LabError: what was seen in it, and what is wanted."""
    try:
        words = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LabError(f"cannot read the configuration {path}: {error}") from error
    try:
        return _config(words)
    except LabError as error:
        raise LabError(f"{path}: {error}") from error


def disk_config(words: Any) -> DiskConfig:
    """Read one disk."""
    _known(words, "a disk", _DISK, ("serial", "bus", "store"))
    serial, bus = words["serial"], words["bus"]
    if not serial.isascii() or not serial.isprintable() or not 0 < len(serial) <= SERIAL_LENGTH:
        raise LabError(
            f"a disk has the serial {serial!r}: expected are 1 to {SERIAL_LENGTH} ASCII characters"
        )
    if bus not in BUSES:
        raise LabError(f"disk {serial} has the bus {bus!r}: expected is one of {', '.join(BUSES)}")
    strange = ({"target", "fua", "wwn"} if bus == "virtio" else {"socket", "unnamed"}) & words.keys()
    if strange:
        raise LabError(
            f"disk {serial} of the bus {bus} has {', '.join(sorted(strange))}: that is for the other bus"
        )
    if bus == "virtio" and "socket" not in words:
        raise LabError(f"disk {serial} of the bus virtio lacks its socket")
    target = words.get("target")
    if target is not None and not 0 <= target < TARGETS:
        raise LabError(f"disk {serial} has the target {target}: expected is 0 to {TARGETS - 1}")
    return DiskConfig(
        serial,
        bus,
        words["store"],
        Path(words["socket"]) if "socket" in words else None,
        target,
        words.get("fua", False),
        _wwn(words.get("wwn"), serial),
        words.get("cache", True),
        words.get("unnamed", False),
    )


def make_store(words: Any) -> Store:
    """Open or make what a disk's `store` names. OSError and LabError: why not."""
    kind = words.get("type") if isinstance(words, dict) else None
    if kind not in _STORES:
        raise LabError(f"a store has the type {kind!r}: expected is one of {', '.join(_STORES)}")
    return _STORES[kind](words)


def _config(words: Any) -> Config:
    _known(words, "the configuration", {"control": str, "scsi": str, "disks": list}, ("control",))
    disks = [disk_config(each) for each in words.get("disks", [])]
    serials = [disk.serial for disk in disks]
    twice = sorted({serial for serial in serials if serials.count(serial) > 1})
    if twice:
        raise LabError(f"two disks have the serial {twice[0]}")
    if "scsi" not in words and any(disk.bus == "scsi" for disk in disks):
        raise LabError("there are SCSI disks, and no socket `scsi` for their controller")
    scsi = Path(words["scsi"]) if "scsi" in words else None
    return Config(Path(words["control"]), scsi, disks)


def _known(words: Any, what: str, kinds: Mapping[str, type], needed: tuple[str, ...]) -> None:
    """Refuse what is no object, has unknown keys, lacks some, or has values of another type."""
    if not isinstance(words, dict):
        raise LabError(f"{what} is {words!r}: expected is a JSON object")
    unknown = sorted(words.keys() - kinds.keys())
    if unknown:
        raise LabError(f"{what} has the unknown key {unknown[0]!r}; known are {', '.join(kinds)}")
    lacking = [key for key in needed if key not in words]
    if lacking:
        raise LabError(f"{what} lacks {lacking[0]!r}")
    for key, value in words.items():
        if type(value) is not kinds[key]:
            raise LabError(f"{key!r} of {what} is {value!r}: expected is a {kinds[key].__name__}")


def _wwn(text: str | None, serial: str) -> int | None:
    if text is None:
        return None
    try:
        wwn = int(text, 16)
    except ValueError as error:
        raise LabError(f"disk {serial} has the wwn {text!r}: expected is a hexadecimal number") from error
    if not 0 < wwn < 1 << 64:
        raise LabError(f"disk {serial} has the wwn {text}: expected are 64 bits")
    return wwn


def _file(words: dict[str, Any]) -> Store:
    _known(words, "a file store", {"type": str, "path": str}, ("path",))
    return File(Path(words["path"]))


def _overlay(words: dict[str, Any]) -> Store:
    kinds = {"type": str, "base": str, "top": str, "map": str}
    _known(words, "an overlay store", kinds, ("base", "top", "map"))
    return Overlay(Path(words["base"]), Path(words["top"]), Path(words["map"]))


def _python(words: dict[str, Any]) -> Store:
    """Call a factory that the one who starts the server chose: "module:function"."""
    _known(words, "a Python store", {"type": str, "factory": str, "arguments": dict}, ("factory",))
    module, _, function = words["factory"].partition(":")
    try:
        factory = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise LabError(f"there is no factory {words['factory']!r}: {error}") from error
    try:
        store: Store = factory(**words.get("arguments", {}))
    except TypeError as error:
        raise LabError(f"the factory {words['factory']!r} does not take its arguments: {error}") from error
    return store


_DISK: dict[str, type] = {
    "serial": str,
    "bus": str,
    "store": dict,
    "socket": str,
    "target": int,
    "fua": bool,
    "wwn": str,
    "cache": bool,
    "unnamed": bool,
}
_STORES: dict[str, Callable[[dict[str, Any]], Store]] = {
    "file": _file,
    "overlay": _overlay,
    "python": _python,
}
