# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers that drop flushes with any cache mode of their disks, or pass them on too late. Pure.

A device-mapper device takes the cache mode of the devices below when its table is loaded. Made over
disks that cached nothing then, it drops each flush, also after a cache has come on.

An md array with a partial parity log ends a flush at once, and has its disks flushed afterwards
(kernel, drivers/md/raid5-ppl.c: ppl_handle_flush_request; measured by the stacked scenario).
"""

from __future__ import annotations

from typing import NamedTuple

from ..facts.classes import LayerFacts, MountFacts


class FlushLayer(NamedTuple):
    """A layer that may not see each flush done: its kernel name, the name that stays (for people), its cache
    mode ("write through", unknown, ...), the disks below it by kernel name, `over`, the layers below it, and whether
    its cache mode is `fixed`: the kernel gives it one, with any devices below."""

    name: str
    label: str
    cache_mode: str
    disks: tuple[str, ...]
    over: tuple[str, ...] = ()
    fixed: bool = False


#: Mount points whose stacks an initramfs makes, before any rule of ours acts.
_BY_INITRAMFS = ("/", "/usr")
#: Layers that take each flush themselves, and so are write back over any disk.
_TAKING = {"bcache", "loop", "thin", "thin-pool", "cache", "writecache", "integrity"}


def layers(mount: MountFacts) -> list[FlushLayer]:
    """Return the layers below a file system that drop flushes, or of which that is unknown."""
    return [layer for layer in with_cache_mode(mount) if layer.cache_mode != "write back"]


def with_cache_mode(mount: MountFacts) -> list[FlushLayer]:
    """Return all layers below a file system that have a cache mode of their own."""
    return [_flush_layer(layer, mount) for layer in mount["stack"] if layer["cache_mode"]]


def early(mounts: list[MountFacts]) -> list[FlushLayer]:
    """Return the layers with a cache mode of their own that an initramfs makes, of all mounts."""
    ours = (mount for mount in mounts if set(mount["targets"]) & set(_BY_INITRAMFS))
    return [layer for mount in ours for layer in with_cache_mode(mount)]


def early_ack(mount: MountFacts) -> list[FlushLayer]:
    """Return the layers below a file system that acknowledge a flush before their disks have done it."""
    return [
        _flush_layer(layer, mount)
        for layer in mount["stack"]
        if layer["type"] == "md" and "ppl" in layer["state"].split(", ")
    ]


def _flush_layer(layer: LayerFacts, mount: MountFacts) -> FlushLayer:
    below = {layer["name"]: layer["below"] for layer in mount["stack"]}
    disks = {layer["name"] for layer in mount["stack"] if layer["type"] == "disk"}
    found = _closure(layer["name"], below)
    leaves = tuple(name for name in found if name in disks)
    over = tuple(name for name in found if name not in disks and name != layer["name"])
    fixed = bool(_TAKING & {layer["type"], *layer["detail"].split("+")})
    return FlushLayer(
        layer["name"], layer["label"] or layer["name"], layer["cache_mode"], leaves, over, fixed
    )


def _closure(name: str, below: dict[str, list[str]]) -> list[str]:
    waiting: list[str] = [name]
    observed: dict[str, None] = {}
    while waiting:
        found = waiting.pop(0)
        if found not in observed:
            observed[found] = None
            waiting += below.get(found, [])
    return list(observed)
