# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which of a host's mounts an engine keeps its files. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple


class Placement(NamedTuple):
    """The mounts (as `durable_storage` tells of them), and what could not be placed, in plain words."""

    mounts: tuple[dict[str, Any], ...]
    unknown: tuple[str, ...]


def place(instance: dict[str, Any], storage: dict[str, Any]) -> Placement:
    """Return where an instance's open files and configured directories lie."""
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    found: dict[str, dict[str, Any]] = {}
    unknown = []
    for row in instance["files"]:
        mount = by_device.get(row["device"])
        if mount is None:
            unknown.append(f"{row['directory']} lies on device {row['device']}, of which nothing is known")
        else:
            found[mount["device"]] = mount
    for path in instance["directories"]:
        if path in storage["unresolved"]:
            unknown.append(f"{path} cannot be looked at: {storage['unresolved'][path]}")
            continue
        real = storage["resolved"].get(path, path)
        target = holder(real, (*by_target, *storage["elsewhere"])) if real else None
        if target in by_target:
            found[by_target[target]["device"]] = by_target[target]
        elif real:
            where = storage["elsewhere"].get(target or "", "no file system that is known")
            unknown.append(f"{path} lies on {where}")
    return Placement(tuple(found.values()), tuple(unknown))


def holder(path: str, targets: tuple[str, ...]) -> str | None:
    """Return the mount point that holds a path: the longest that is a parent of it."""
    parents = [target for target in targets if path == target or path.startswith(target.rstrip("/") + "/")]
    return max(parents, key=len, default=None)
