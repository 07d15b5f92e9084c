# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which of a host's mounts an engine keeps its files. Pure."""

from __future__ import annotations

from collections.abc import Iterator
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
    found: dict[str, dict[str, Any]] = {}
    unknown = []
    examples: dict[str, str] = {}
    for path, where in (*_of_files(instance, storage), *_of_directories(instance, storage)):
        if isinstance(where, str):
            unknown.append(where)
        else:
            found[where["device"]] = where
            examples.setdefault(where["device"], path)
    return Placement(tuple(found.values()), tuple(unknown), examples)


def _of_files(
    instance: dict[str, Any], storage: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield each directory of open files with its mount, or why there is none."""
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    for row in instance["files"]:
        path, device = row["directory"], row["device"]
        if not _is_lock(instance, path):
            lost = f"{path} lies on device {device}, of which nothing is known"
            yield path, by_device.get(device, lost)


def _of_directories(
    instance: dict[str, Any], storage: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield each configured directory with its mount, or why there is none."""
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    for path in instance["directories"]:
        real = storage["resolved"].get(path, path)
        if path.startswith("/proc/"):
            # Followed here, that link leads to this host's own file of the same name: another one.
            if not _all_open_files_are_known(instance):
                yield path, f"{path} lies in a root directory of its own, on no file system that is known"
        elif path in storage["unresolved"]:
            yield path, f"{path} cannot be looked at: {storage['unresolved'][path]}"
        elif real is None:
            if _is_missed(instance):
                yield path, f"{path} is not there: what it lies on may not be mounted"
        else:
            target = holder(real, (*by_target, *storage["elsewhere"])) or ""
            kind = storage["elsewhere"].get(target, "no file system that is known")
            yield path, by_target.get(target, f"{path} lies on {kind}")


def _all_open_files_are_known(instance: dict[str, Any]) -> bool:
    """Tell whether the open files of a running instance say where its data lies."""
    return bool(instance["files"]) and instance["evidence"].get("files", {}).get("value") == "complete"


def _is_missed(instance: dict[str, Any]) -> bool:
    """Tell whether a directory that is not there may hold data all the same.

    The open files of a running server tell better. Firebird's configuration names examples that many
    hosts do not have.
    """
    return (instance["state"], instance["engine"] == "firebird") == ("stopped", False)


def _is_lock(instance: dict[str, Any], directory: str) -> bool:
    """Tell whether nothing but Firebird's locks is in a directory: no database of its."""
    if instance["engine"] != "firebird" or directory != _LOCKS:
        return False
    return not any(database["path"].startswith(f"{_LOCKS}/") for database in instance["databases"])


def holder(path: str, targets: tuple[str, ...]) -> str | None:
    """Return the mount point that holds a path: the longest that is a parent of it."""
    parents = [target for target in targets if path == target or path.startswith(target.rstrip("/") + "/")]
    return max(parents, key=len, default=None)
