# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a block device number down to the disks that hold its bytes."""

from __future__ import annotations

from typing import NamedTuple

from .host import Host, Unobservable


class Layer(NamedTuple):
    """One layer of a stack: its kernel name, and its type (partition, disk, or unknown)."""

    name: str
    type: str


class Stack(NamedTuple):
    """The layers below a mount, top first, and the kernel names of the disks at the bottom.

    A layer whose promises are not understood ends the walk with type `unknown`, and `reason`
    says which: no disk below it is vouched for.
    """

    layers: tuple[Layer, ...]
    disks: tuple[str, ...]
    reason: str | None = None

    def as_list(self) -> list[dict[str, str]]:
        """Return the layers as JSON takes them."""
        return [{"name": layer.name, "type": layer.type} for layer in self.layers]


def walk(host: Host, device: str) -> Stack:
    """Return the stack below `device` (`major:minor`). Never raises: unknown has its reason."""
    path = host.resolve(f"/sys/dev/block/{device}")
    name = path.rpartition("/")[2]
    if not path.startswith("/sys/devices/"):
        layer = Layer(device, "unknown")
        return Stack((layer,), (), f"device {device} has no block device behind it")
    if host.exists(f"{path}/partition"):
        disk = path.split("/")[-2]
        below = _disk(host, disk)
        return below._replace(layers=(Layer(name, "partition"), *below.layers))
    return _disk(host, name)


def _disk(host: Host, name: str) -> Stack:
    if host.exists(f"/sys/block/{name}/device"):
        return Stack((Layer(name, "disk"),), (name,))
    kind = _driver(host, name)
    reason = f"{name} is a {kind} device: this release does not know what it promises"
    return Stack((Layer(name, "unknown"),), (), reason)


def _driver(host: Host, name: str) -> str:
    """Return what sort of virtual block device a name is, for the reader of the report."""
    try:
        uuid = host.read(f"/sys/block/{name}/dm/uuid").strip().partition("-")[0]
        return f"device-mapper {uuid}" if uuid else "device-mapper"
    except Unobservable:
        return name.rstrip("0123456789") or name
