# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which of a host's mounts an engine keeps its files. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Where Firebird's processes find each other by files of locks and events, which are empty at each start.
_LOCKS = "/tmp/firebird"


class Placement(NamedTuple):
    """The mounts (as `durable_storage` tells of them), and what could not be placed, in plain words.

    `examples`: {device of a mount: a directory on it}.
    """

    mounts: tuple[dict[str, Any], ...]
    unknown: tuple[str, ...]
    examples: dict[str, str]


def place(instance: dict[str, Any], storage: dict[str, Any]) -> Placement:
    """Return where an instance's open files and configured directories lie."""
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    found: dict[str, dict[str, Any]] = {}
    unknown = []
    examples: dict[str, str] = {}
    for row in instance["files"]:
        if _is_lock(instance, row["directory"]):
            continue
        mount = by_device.get(row["device"])
        if mount is None:
            unknown.append(f"{row['directory']} lies on device {row['device']}, of which nothing is known")
        else:
            found[mount["device"]] = mount
            examples.setdefault(mount["device"], row["directory"])
    for path in instance["directories"]:
        if path in storage["unresolved"]:
            unknown.append(f"{path} cannot be looked at: {storage['unresolved'][path]}")
            continue
        real = storage["resolved"].get(path, path)
        target = holder(real, (*by_target, *storage["elsewhere"])) if real else None
        if target in by_target:
            mount = by_target[target]
            found[mount["device"]] = mount
            examples.setdefault(mount["device"], path)
        elif real is None and _is_missed(instance):
            unknown.append(f"{path} is not there: what it lies on may not be mounted")
        elif real:
            where = storage["elsewhere"].get(target or "", "no file system that is known")
            unknown.append(f"{path} lies on {where}")
    return Placement(tuple(found.values()), tuple(unknown), examples)


def _is_missed(instance: dict[str, Any]) -> bool:
    """Tell whether a directory that is not there may hold data all the same.

    The open files of a running server tell better. Firebird's configuration names examples that many
    hosts do not have.
    """
    return instance["state"] == "stopped" and instance["engine"] != "firebird"


def _is_lock(instance: dict[str, Any], directory: str) -> bool:
    """Tell whether nothing but Firebird's locks is in a directory: no database of its."""
    if instance["engine"] != "firebird" or directory != _LOCKS:
        return False
    return not any(database["path"].startswith(f"{_LOCKS}/") for database in instance["databases"])


def holder(path: str, targets: tuple[str, ...]) -> str | None:
    """Return the mount point that holds a path: the longest that is a parent of it."""
    parents = [target for target in targets if path == target or path.startswith(target.rstrip("/") + "/")]
    return max(parents, key=len, default=None)
