# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From block device numbers down to the disks that hold their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Lock
from typing import Any, NamedTuple

from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable

#: Device-mapper targets that pass flush and FUA down and hold nothing back (FACTS of the kernel's
#: documentation). Any other holds data in a way that no rule here covers.
_PLAIN_TARGETS = ("linear", "striped", "raid", "crypt", "multipath")
#: What made a device-mapper device, by the first word of its uuid.
_MAKERS = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath"}
_TABLE = re.compile(r"^(?P<name>.*): \d+ \d+ (?P<target>\S+)(?: (?P<arguments>.*))?$")
#: Levels that write data and parity apart: a crash between the two can cost older data.
_PARITY = re.compile(r"raid[456]")
_CLOSED = ("journal", "ppl")


class Layer(NamedTuple):
    """One layer of a stack.

    `type` is partition, lvm, dm, crypt, multipath, md, disk or unknown; `detail` says what sort
    (linear, raid1, ...), `state` what it is doing, `below` the kernel names of what it lies on.
    `label` is the name that an administrator gave it, where it has one;
    `belief` is what the kernel believes of the caches below ('' for partitions and disks): a
    device-mapper device takes it from below when its table is loaded, and keeps it. One that
    believes "write through" passes no flush on, whatever its disks believe since.
    """

    name: str
    type: str
    detail: str = ""
    state: str = ""
    below: tuple[str, ...] = ()
    label: str = ""
    belief: str = ""


class Stack(NamedTuple):
    """All layers below a file system, top first, and the kernel names of the disks at the bottom.

    `reasons` name the layers whose promises are not understood; `write_hole` those that can lose
    older data in a crash.
    """

    layers: tuple[Layer, ...]
    disks: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    write_hole: tuple[str, ...] = ()

    def as_list(self) -> list[dict[str, Any]]:
        """Return the layers as JSON takes them."""
        return [{**layer._asdict(), "below": list(layer.below)} for layer in self.layers]


class _Finding(NamedTuple):
    layer: Layer
    reason: str | None = None
    write_hole: str | None = None


class Blocks:
    """The block devices of one host; asks device-mapper once, and only where there is any."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._tables: dict[str, list[tuple[str, str]]] | None = None
        self._tables_error = ""
        self._lock = Lock()
        self._found: dict[str, _Finding] = {}

    def walk(self, devices: Iterable[str]) -> Stack:
        """Return the stack below devices (`major:minor`). Never raises: unknown has its reason."""
        reasons: list[str] = []
        tops = []
        for device in devices:
            name = self.name_of(device)
            if name is None:
                reasons.append(f"device {device} has no block device behind it")
            else:
                tops.append(name)
        findings = self._below(tops)
        if not findings and not reasons:
            reasons.append("no device is named that it writes to")
        return Stack(
            tuple(finding.layer for finding in findings),
            tuple(finding.layer.name for finding in findings if finding.layer.type == "disk"),
            (*reasons, *(finding.reason for finding in findings if finding.reason)),
            tuple(finding.write_hole for finding in findings if finding.write_hole),
        )

    def name_of(self, device: str) -> str | None:
        """Return the kernel name of a device number, or None where no block device has it."""
        path = self.host.resolve(f"/sys/dev/block/{device}")
        return path.rpartition("/")[2] if path.startswith("/sys/devices/") else None

    def number_of(self, path: str) -> str | None:
        """Return the number of the block device behind a path of /dev, or None."""
        name = self.host.resolve(path).rpartition("/")[2]
        try:
            return self.host.read(f"/sys/class/block/{name}/dev").strip()
        except Unobservable:
            return None

    def blocking_above(self, name: str) -> list[str]:
        """Return the layers above a disk that believe that nothing below them caches."""
        waiting, seen = [name], set()
        while waiting:
            above = waiting.pop()
            path = self.host.resolve(f"/sys/class/block/{above}")
            parts = [part for part in self._names(path) if part.startswith(above) and part != above]
            for holder in (*parts, *self._names(f"{path}/holders")):
                if holder not in seen:
                    seen.add(holder)
                    waiting.append(holder)
        layers = [self._look(other).layer for other in sorted(seen)]
        return [layer.name for layer in layers if layer.belief not in ("", "write back")]

    def whole(self, name: str) -> str:
        """Return the name of the device that a partition is part of; of another, its own."""
        path = self.host.resolve(f"/sys/class/block/{name}")
        return path.split("/")[-2] if self.host.exists(f"{path}/partition") else name

    def _below(self, tops: list[str]) -> list[_Finding]:
        """Return what was found of the devices and of all below, each once, top first."""
        seen: dict[str, _Finding] = {}
        waiting = list(tops)
        while waiting:
            name = waiting.pop(0)
            if name not in seen:
                seen[name] = self._look(name)
                waiting += seen[name].layer.below
        return list(seen.values())

    def _look(self, name: str) -> _Finding:
        if name not in self._found:
            found = self._find(name)
            if found.layer.type not in ("partition", "disk"):
                belief = self._text(f"/sys/class/block/{name}/queue/write_cache") or UNKNOWN
                label = self._text(f"/sys/class/block/{name}/dm/name")
                found = found._replace(layer=found.layer._replace(belief=belief, label=label))
                if not found.layer.below and not found.reason:
                    # All paths gone, or failed: where its bytes lie cannot be told.
                    reason = (
                        f"{name} ({found.layer.detail}) names no device below it: its disks are not known"
                    )
                    found = found._replace(reason=reason)
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
        below = self._slaves(path)
        if self.host.exists(f"{path}/device") and not below:
            return _Finding(Layer(name, "disk"))
        kind = name.rstrip("0123456789") or name
        if self.host.exists(f"{path}/bcache"):
            kind = "bcache"
        return _not_understood(name, kind, below)

    def _mapped(self, name: str, path: str) -> _Finding:
        below = self._slaves(path)
        uuid = self._text(f"{path}/dm/uuid")
        segments = self._segments(self._text(f"{path}/dm/name"))
        if segments is None:
            return _not_understood(
                name, "device-mapper", below, f"its table is not known: {self._tables_error}"
            )
        targets = list(dict.fromkeys(target for target, _arguments in segments))
        strange = [target for target in targets if target not in _PLAIN_TARGETS]
        if strange or not targets:
            return _not_understood(name, f"device-mapper {', '.join(strange) or 'empty'}", below)
        kind = _MAKERS.get(re.split("[-0-9]", uuid)[0], "dm")
        detail = "+".join(targets)
        hole = None
        for target, arguments in segments:
            if target == "raid":
                level = arguments.split(" ")[0]
                detail = level
                if _PARITY.match(level) and " journal_dev " not in f" {arguments} ":
                    hole = _hole(name, level)
        return _Finding(Layer(name, kind, detail, "", below), None, hole)

    def _array(self, name: str, path: str) -> _Finding:
        below = self._slaves(path)
        level = self._text(f"{path}/md/level")
        if not level:
            return _not_understood(name, "md array without a level", below)
        policy = self._text(f"{path}/md/consistency_policy")
        action = self._text(f"{path}/md/sync_action")
        degraded = self._text(f"{path}/md/degraded")
        words = [policy, "" if action in ("", "idle") else action]
        words.append(f"degraded by {degraded}" if degraded not in ("", "0") else "")
        if policy == "journal" and not self._text(f"{path}/md/journal_mode"):
            policy = "journal failed"  # the policy's own file goes on to say journal
        hole = _hole(name, level) if _PARITY.match(level) and policy not in _CLOSED else None
        state = ", ".join(word for word in words if word and word != UNKNOWN)
        return _Finding(Layer(name, "md", level, state, below), None, hole)

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
        self._tables_error = "dmsetup does not list it"
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


def parse_tables(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return {device: [(target, arguments), ...]} of `dmsetup table`."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for line in text.split("\n"):
        found = _TABLE.match(line)
        if found:
            tables.setdefault(found["name"], []).append((found["target"], found["arguments"] or ""))
    return tables


def _not_understood(name: str, kind: str, below: tuple[str, ...], why: str = "") -> _Finding:
    reason = f"{name} is a {kind} device: {why or 'no rule here says what it promises'}"
    return _Finding(Layer(name, UNKNOWN, kind, "", below), reason)


def _hole(name: str, level: str) -> str:
    return f"{name} is {level} without a journal or a partial parity log"
