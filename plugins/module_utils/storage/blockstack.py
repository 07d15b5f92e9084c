# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From block device numbers down to the disks that hold their bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, NamedTuple, cast

# pylint: disable-next=unused-import
from ..facts.classes import CauseFacts, LayerFacts, WriteHoleFacts
from ..host import kernel_version
from ..host.observation import UNKNOWN, Because
from ..host.seam import Host, Unobservable
from . import disk_kinds, multipath
from .drbd import Drbd
from .mapper_targets import NO_RULE, PARITY, parse_tables, understand, why_not_level

#: What made a device-mapper device, by the first word of its uuid.
_MAKERS = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath"}
_CLOSED = ("journal", "ppl")
_LOOP = re.compile(r"^/dev/(loop\d+)\s+(\d+:\d+)[ \t]*$", re.M | re.A)
#: The word in brackets of a list of words in sysfs.
_CHOSEN = re.compile(r"\[(\w+)\]")
_BCACHE_MODES = ("writethrough", "writeback", "writearound", "none")
#: State of a bcache device -> how many devices lie below it at least. Of one that is inconsistent the cache is gone.
_BCACHE_STATES = {"no cache": 1, "clean": 2, "dirty": 2}


class Layer(NamedTuple):
    """One layer of a stack.

    `type` is partition, lvm, dm, crypt, multipath, md, drbd, bcache, loop, disk or unknown; `detail` says what sort
    (linear, raid1; of a loop device the file system that holds its file), `state` what it is doing, `below`
    the kernel names of the devices below it.
    `label` is the name that an administrator gave it, where it has one;
    `cache_mode` is the kernel cache mode of the layer ('' for partitions and disks): a
    device-mapper device takes it from below when its table is loaded, and keeps it. A layer with
    "write through" drops flushes, whatever the cache mode of its disks is since.
    `cause`: why it is unknown whether it passes flushes, None if it is known; `id` is the name that stays of a
    device-mapper device (`dm:...` its uuid, `dm-name:...` of one without) whose table was read; `held_on` the device number of
    the file system that holds a loop device's file.
    """

    name: str
    type: str
    detail: str = ""
    state: str = ""
    below: tuple[str, ...] = ()
    label: str = ""
    cache_mode: str = ""
    cause: Because | None = None
    id: str = ""
    held_on: str = ""


class Stack(NamedTuple):
    """All layers below a file system, top first, and the kernel names of the disks at the bottom.

    `missing`: why not all devices below it are known; `write_hole` names the layers that can
    lose older data in a crash.
    """

    layers: tuple[Layer, ...]
    disks: tuple[str, ...]
    missing: tuple[Because, ...] = ()
    write_hole: tuple[WriteHoleFacts, ...] = ()

    @property
    def causes(self) -> tuple[Because, ...]:
        """All that is unknown: devices that are missing, and layers that are not understood."""
        return (*self.missing, *(layer.cause for layer in self.layers if layer.cause))

    def as_list(self) -> list[LayerFacts]:
        """Return the layers as JSON takes them."""
        return [
            {
                "name": layer.name,
                "type": layer.type,
                "detail": layer.detail,
                "state": layer.state,
                "below": list(layer.below),
                "label": layer.label,
                "cache_mode": layer.cache_mode,
                "cause": cast("CauseFacts", layer.cause.as_dict()) if layer.cause else None,
                "id": layer.id,
                "held_on": layer.held_on,
            }
            for layer in self.layers
        ]


class Holder(NamedTuple):
    """A file system that holds a file: its type, the numbers of all devices that it writes to, and why not all of
    them are known."""

    fstype: str
    numbers: tuple[str, ...]
    missing: tuple[Because, ...] = ()


class _Finding(NamedTuple):
    layer: Layer
    write_hole: WriteHoleFacts | None = None


class Blocks:
    """The block devices of one host; queries device-mapper and losetup at most once.

    `holder_of` returns the mounted file system of a device number, None if none stores data.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.holder_of: Callable[[str], Holder | None] = lambda _number: None
        self._files: dict[str, str] | None = None
        self._files_error = ""
        self._tables: dict[str, list[tuple[str, str]]] | None = None
        self._tables_error = ""
        self._drbd: Drbd | None = None
        self._queueing: dict[str, str] | None = None
        self._lock = Lock()
        self._found: dict[str, _Finding] = {}

    def walk(self, devices: Iterable[str]) -> Stack:
        """Return the stack below devices (`major:minor`). Never raises: unknown has its reason."""
        missing: list[Because] = []
        tops = []
        for device in devices:
            name = self.name_of(device)
            if name is None:
                missing.append(Because("no_block_device", {"number": device}))
            else:
                tops.append(name)
        findings = self._below(tops)
        if not findings and not missing:
            missing.append(Because("no_device"))
        return Stack(
            tuple(finding.layer for finding in findings),
            tuple(finding.layer.name for finding in findings if finding.layer.type == "disk"),
            tuple(missing),
            tuple(finding.write_hole for finding in findings if finding.write_hole),
        )

    def name_of(self, device: str) -> str | None:
        """Return the kernel name of a device number, or None if no block device has it."""
        path = self.host.resolve(f"/sys/dev/block/{device}")
        return path.rpartition("/")[2] if path.startswith("/sys/devices/") else None

    def number_of(self, path: str) -> str | None:
        """Return the number of the block device behind a path of /dev, or None."""
        name = self.host.resolve(path).rpartition("/")[2]
        try:
            return self.host.read(f"/sys/class/block/{name}/dev").strip()
        except Unobservable:
            return None

    def file_of(self, name: str) -> str | None:
        """Return the path of the file that a loop device is made of, or None."""
        path = f"/sys/class/block/{name}/loop/backing_file"
        return self._text(path) or None if self.host.exists(path) else None

    def blocking_above(self, name: str) -> list[str]:
        """Return the layers above a disk that drop flushes, by their cache mode."""
        waiting, observed = [name], set()
        while waiting:
            above = waiting.pop()
            path = self.host.resolve(f"/sys/class/block/{above}")
            parts = [part for part in self._names(path) if part.startswith(above) and part != above]
            for holder in (*parts, *self._names(f"{path}/holders")):
                if holder not in observed:
                    observed.add(holder)
                    waiting.append(holder)
        layers = [self._look(other).layer for other in sorted(observed)]
        return [layer.name for layer in layers if layer.cache_mode not in ("", "write back")]

    def whole(self, name: str) -> str:
        """Return the name of the device that a partition is part of; of another, its own."""
        path = self.host.resolve(f"/sys/class/block/{name}")
        return path.split("/")[-2] if self.host.exists(f"{path}/partition") else name

    def _below(self, tops: list[str]) -> list[_Finding]:
        """Return what was found of the devices and of all below, each once, top first."""
        observed: dict[str, _Finding] = {}
        waiting = list(tops)
        while waiting:
            name = waiting.pop(0)
            if name not in observed:
                observed[name] = self._look(name)
                waiting += observed[name].layer.below
        return list(observed.values())

    def _look(self, name: str) -> _Finding:
        if name not in self._found:
            found = self._find(name)
            if found.layer.type not in ("partition", "disk"):
                cache_mode = self._text(f"/sys/class/block/{name}/queue/write_cache") or UNKNOWN
                label = self._text(f"/sys/class/block/{name}/dm/name")
                layer = found.layer._replace(cache_mode=cache_mode, label=label)
                if not layer.below and not layer.cause:
                    # All paths gone, or failed: its disks are unknown.
                    cause = Because("nothing_below", {"layer": name, "type": layer.detail})
                    layer = layer._replace(cause=cause)
                found = found._replace(layer=layer)
            self._found[name] = found
        return self._found[name]

    def _find(self, name: str) -> _Finding:
        path = self.host.resolve(f"/sys/class/block/{name}")
        if self.host.exists(f"{path}/partition"):
            return _Finding(Layer(name, "partition", below=(path.split("/")[-2],)))
        if self.host.exists(f"{path}/dm"):
            return self._mapped(name, path)
        if self.host.exists(f"{path}/md"):
            return self._array(name, path)
        if re.fullmatch(r"drbd\d+", name):
            return self._replicated(name, path)
        below = self._slaves(path)
        if self.host.exists(f"{path}/device") and not below:
            return _Finding(Layer(name, "disk"))
        if disk_kinds.is_memory(name):
            return _Finding(Layer(name, "disk"))
        # What lies below one has a directory `bcache` too.
        if re.fullmatch(r"bcache\d+", name):
            return self._bcache(name, path, below)
        if self.host.exists(f"{path}/loop/backing_file"):
            return self._loop(name, path)
        return _not_understood(name, name.rstrip("0123456789") or name, below)

    def _bcache(self, name: str, path: str, below: tuple[str, ...]) -> _Finding:
        """In each mode a flush writes the cache's journal, and goes to the backing device too (drivers/md/bcache)."""
        state = self._text(f"{path}/bcache/state")
        mode = _CHOSEN.findall(self._text(f"{path}/bcache/cache_mode"))
        if state not in _BCACHE_STATES or len(mode) != 1 or mode[0] not in _BCACHE_MODES:
            why = Because("bcache_state", {"state": state or "none", "mode": " ".join(mode) or "none"})
            return _not_understood(name, "bcache", below, why)
        if len(below) < _BCACHE_STATES[state]:
            return _not_understood(name, "bcache", below, Because("bcache_without_cache", {"state": state}))
        return _Finding(Layer(name, "bcache", mode[0], state, below))

    def _loop(self, name: str, path: str) -> _Finding:
        """A flush is an fsync of its file (drivers/block/loop.c): it goes as far as the file system that holds it."""
        number = self._backing(name)
        holder = self.holder_of(number) if number else None
        if number is None or holder is None:
            why = (
                Because("loop_file_on", {"number": number})
                if number
                else Because("loop_file_unread", {"error": self._files_error})
            )
            return _not_understood(name, "loop", (), why)
        names = [self.name_of(each) for each in holder.numbers]
        below = tuple(each for each in names if each)
        missing = [
            *holder.missing,
            *([Because("nameless_device")] if len(below) < len(names) or not below else []),
        ]
        if missing:
            why = Because(
                "loop_devices", {"fstype": holder.fstype, "why": [each.as_dict() for each in missing]}
            )
            return _not_understood(name, "loop", below, why)
        state = "direct" if self._text(f"{path}/loop/dio") == "1" else "buffered"
        return _Finding(Layer(name, "loop", holder.fstype, state, below, held_on=number))

    def _backing(self, name: str) -> str | None:
        """Return the device number of the file system on which a loop device's file lies, None if not known."""
        with self._lock:
            if self._files is None:
                self._files = self._read_files()
        return self._files.get(name)

    def _read_files(self) -> dict[str, str]:
        # The kernel's own answer: a path may be of another namespace, or lead elsewhere by now.
        argv = ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN"]
        try:
            result = self.host.run(argv)
            if result.rc != 0:
                raise Unobservable(f"{' '.join(argv)}: exit {result.rc}: {result.stderr.strip()}")
        except Unobservable as error:
            self._files_error = str(error)
            return {}
        self._files_error = f"{' '.join(argv)}: no row for it"
        return parse_loops(result.stdout)

    def _mapped(self, name: str, path: str) -> _Finding:
        uuid, mapped = self._text(f"{path}/dm/uuid"), self._text(f"{path}/dm/name")
        found = self._by_table(name, uuid, mapped, self._slaves(path))
        if self._segments(mapped) is None:
            return found  # Nobody may vouch for what it is unknown to be.
        return found._replace(layer=found.layer._replace(id=f"dm:{uuid}" if uuid else f"dm-name:{mapped}"))

    def _by_table(self, name: str, uuid: str, mapped: str, below: tuple[str, ...]) -> _Finding:
        segments = self._segments(mapped)
        if segments is None:
            why = Because("table_unread", {"error": self._tables_error})
            return _not_understood(name, "device-mapper", below, why)
        kernel = kernel_version.version(self._text("/proc/sys/kernel/osrelease"))
        found = [understand(target, arguments, kernel) for target, arguments in segments]
        strange = [segment for segment in found if segment.cause]
        if strange or not found:
            types = _each_once(segment.detail for segment in strange) or ["empty"]
            causes = [segment.cause for segment in strange if segment.cause]
            return _not_understood(name, f"device-mapper {', '.join(types)}", below, *causes)
        kind = _MAKERS.get(re.split("[-0-9]", uuid)[0], "dm")
        detail = "+".join(_each_once(segment.detail for segment in found))
        state = ", ".join(_each_once(segment.state for segment in found))
        if kind == "multipath":
            state = self._without_path(uuid, segments)
        holes = [_hole("dm", name, segment.detail) for segment in found if segment.write_hole]
        return _Finding(Layer(name, kind, detail, state, below), holes[0] if holes else None)

    def _without_path(self, uuid: str, segments: list[tuple[str, str]]) -> str:
        with self._lock:
            if self._queueing is None:
                self._queueing = multipath.read(self.host)
        return multipath.state(segments[0][1], self._queueing.get(uuid.partition("-")[2]))

    def _array(self, name: str, path: str) -> _Finding:
        below = self._slaves(path)
        level = self._text(f"{path}/md/level")
        if not level:
            return _not_understood(name, "md", below, Because("no_raid_level"))
        why = why_not_level(level)
        if why:
            return _not_understood(name, "md", below, why)
        policy = self._text(f"{path}/md/consistency_policy")
        action = self._text(f"{path}/md/sync_action")
        degraded = self._text(f"{path}/md/degraded")
        words = [policy, "" if action in ("", "idle") else action]
        words.append(f"degraded by {degraded}" if degraded not in ("", "0") else "")
        if policy == "journal" and not self._text(f"{path}/md/journal_mode"):
            policy = "journal failed"  # the policy's own file goes on to say journal
        hole = _hole("md", name, level) if PARITY.match(level) and policy not in _CLOSED else None
        state = ", ".join(word for word in words if word and word != UNKNOWN)
        return _Finding(Layer(name, "md", level, state, below), hole)

    def _replicated(self, name: str, path: str) -> _Finding:
        with self._lock:
            self._drbd = self._drbd or Drbd(self.host)
        minor = self._text(f"{path}/dev").rpartition(":")[2]
        volume = self._drbd.volume(int(minor) if minor.isdecimal() else -1)
        below = tuple(self.host.resolve(file).rpartition("/")[2] for file in volume.below)
        if volume.cause:
            return _not_understood(name, "DRBD", below, volume.cause)
        return _Finding(Layer(name, "drbd", "", ", ".join(volume.words), below))

    def _segments(self, mapped: str) -> list[tuple[str, str]] | None:
        """Return (target, arguments) of each segment of a device-mapper device, None if not known."""
        with self._lock:
            # File systems are read in threads, and all of them wait for the one answer.
            if self._tables is None:
                self._tables = self._read_tables()
        return self._tables.get(mapped)

    def _read_tables(self) -> dict[str, list[tuple[str, str]]]:
        argv = ["dmsetup", "table"]
        try:
            result = self.host.run(argv)
            if result.rc != 0:
                raise Unobservable(f"{' '.join(argv)}: exit {result.rc}: {result.stderr.strip()}")
        except Unobservable as error:
            self._tables_error = str(error)
            return {}
        self._tables_error = f"{' '.join(argv)}: no row for it"
        return parse_tables(result.stdout)

    def _slaves(self, path: str) -> tuple[str, ...]:
        return self._names(f"{path}/slaves")

    def _names(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(self.host.names(path))
        except Unobservable:
            return ()

    def _text(self, path: str) -> str:
        try:
            return self.host.read(path).strip()
        except Unobservable:
            return ""


def parse_loops(text: str) -> dict[str, str]:
    """Return {loop device: device number of the file system that holds its file} of `losetup --list`."""
    return dict(_LOOP.findall(text))


def _each_once(words: Iterable[str]) -> list[str]:
    """Return each text once, without empty ones."""
    return list(dict.fromkeys(filter(None, words)))


def _not_understood(name: str, kind: str, below: tuple[str, ...], *causes: Because) -> _Finding:
    why: list[dict[str, Any]] = []
    for cause in map(Because.as_dict, causes or (NO_RULE,)):
        if cause not in why:
            why.append(cause)
    cause_of_all = Because("not_understood", {"layer": name, "type": kind, "why": why})
    return _Finding(Layer(name, UNKNOWN, kind, "", below, cause=cause_of_all))


def _hole(maker: str, name: str, level: str) -> WriteHoleFacts:
    return {"maker": maker, "name": name, "level": level}
