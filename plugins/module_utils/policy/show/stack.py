# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers between the databases' files and the disks, for the report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...facts.storage import MountFacts, StorageFacts
from ..report_types import Stack

#: Fields whose form policy/assess/facts_schema.py checks, and fields with any text.
_MOUNT, _MOUNT_TEXTS = ("target", "fstype", "barrier", "data_mode", "disks"), ("source",)
_LAYER, _LAYER_TEXTS = ("name", "type", "label", "below"), ("detail",)
_DISK, _DISK_TEXTS = ("name", "id", "kind"), ("transport", "model")
_CACHE = ("device", "kernel", "volatile")


def of(mounts: list[MountFacts], storage: StorageFacts) -> Stack:
    """Return these mounts with the layers below each, top first, and the disks below all of them."""
    names = {name for mount in mounts for name in mount["disks_seen"]}
    disks = [disk for disk in storage["disks"] if disk["name"] in names]
    return {
        "mounts": [{**_chosen(mount, _MOUNT, _MOUNT_TEXTS), "layers": _layers(mount)} for mount in mounts],
        "disks": [
            {**_chosen(disk, _DISK, _DISK_TEXTS), "write_cache": _chosen(disk["write_cache"], _CACHE)}
            for disk in disks
        ],
    }


def _layers(mount: MountFacts) -> list[dict[str, Any]]:
    return [_chosen(layer, _LAYER, _LAYER_TEXTS) for layer in mount["stack"] if layer["type"] != "disk"]


def _chosen(found: Mapping[str, Any], fields: tuple[str, ...], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        **{name: found[name] for name in fields},
        **{name: str(found[name]) if found.get(name) else None for name in texts},
    }
