# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mounts on which an engine stores its files. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .. import catalog
from ..facts.engines import InstanceFacts
from ..facts.storage import MountFacts, StorageFacts
from ..host.observation import NOTHING

#: File systems that a boot makes empty.
_IN_MEMORY = ("tmpfs", "ramfs")


class Placement(NamedTuple):
    """The mounts (as in `durable_storage`), and what could not be placed, with the reason.

    `examples`: {device of a mount: a directory on it}. `temporary`: mounts that hold nothing of it but temporary files.
    `in_memory`: what of `unknown` is a directory of its data on a file system that is in memory.
    """

    mounts: tuple[MountFacts, ...]
    unknown: tuple[str, ...]
    examples: dict[str, str]
    temporary: tuple[MountFacts, ...] = ()
    in_memory: tuple[str, ...] = ()


def place(instance: InstanceFacts, storage: StorageFacts) -> Placement:
    """Return where an instance's open files and configured directories lie."""
    found: dict[str, MountFacts] = {}
    unknown = []
    examples: dict[str, str] = {}
    for path, where in (*_of_files(instance, storage), *_of_directories(instance, storage)):
        if isinstance(where, str):
            unknown.append(where)
        else:
            found[where["device"]] = where
            examples.setdefault(where["device"], path)
    scratch = _scratch(instance, storage)
    over = [mount for mount in storage["mounts"] if scratch and not scratch.isdisjoint(mount["targets"])]
    temporary = {mount["device"]: mount for mount in over if mount["device"] not in found}
    # What is mounted somewhere in a directory need not hold its data.
    real = (storage["resolved"].get(path, path) for path in instance["directories"])
    in_memory = {f"{path} is on {kind}" for path in real for kind in _IN_MEMORY}
    return Placement(
        tuple(found.values()),
        tuple(unknown),
        examples,
        tuple(temporary.values()),
        tuple(each for each in dict.fromkeys(unknown) if each in in_memory),
    )


def _of_files(instance: InstanceFacts, storage: StorageFacts) -> Iterator[tuple[str, MountFacts | str]]:
    """Yield each directory of open files with its mount, or why there is none."""
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    for row in instance["files"]:
        path, device = row["directory"], row["device"]
        if not _is_lock(instance, path):
            lost = f"{path} is on device {device}, which is unknown"
            yield path, by_device.get(device, lost)


def _of_directories(instance: InstanceFacts, storage: StorageFacts) -> Iterator[tuple[str, MountFacts | str]]:
    """Yield each configured directory with its mount, or why there is none."""
    scratch = _scratch(instance, storage)
    for path in instance["directories"]:
        real = storage["resolved"].get(path, path)
        if path.startswith("/proc/"):
            # Followed here, that link leads to this host's own file of the same name: another one.
            if not _all_open_files_are_known(instance):
                yield path, f"{path} is in a separate root directory, on no known file system"
        elif path in storage["unresolved"]:
            yield path, f"{path} cannot be read: {storage['unresolved'][path]}"
        elif real is None:
            if _is_missed(instance):
                yield path, f"{path} is not there: its file system may not be mounted"
        else:
            for directory in (real, *storage["links"].get(path, ())):
                for name, where in at_and_below(directory, storage):
                    # What is mounted somewhere in it need not hold its data.
                    if name == directory or name not in scratch:
                        yield name, where


def _scratch(instance: InstanceFacts, storage: StorageFacts) -> set[str]:
    """Return the mount points over the directories in which an instance has nothing but temporary files."""
    if not instance["temporary"]:
        return set()
    targets = (
        *(target for mount in storage["mounts"] for target in mount["targets"]),
        *storage["other_mounts"],
    )
    real = (storage["resolved"].get(path, path) for path in instance["temporary"])
    return {holder(path, targets) or "" for path in real if path}


def _all_open_files_are_known(instance: InstanceFacts) -> bool:
    """Return whether the open files of a running instance say where its data lies."""
    return bool(instance["files"]) and instance["evidence"].get("files", NOTHING).get("value") == "complete"


def _is_missed(instance: InstanceFacts) -> bool:
    """Return whether a directory that is not there may still hold data.

    The open files of a running server tell better, and of databases those that are there.
    """
    return instance["state"] == "stopped" and not catalog.engine(instance["engine"]).has_databases


def _is_lock(instance: InstanceFacts, directory: str) -> bool:
    """Return whether nothing but the locks of an engine's processes is in a directory: no database of its."""
    if directory != catalog.engine(instance["engine"]).locks:
        return False
    return not any(database["path"].startswith(f"{directory}/") for database in instance.get("databases", ()))


def at_and_below(path: str, storage: StorageFacts) -> Iterator[tuple[str, MountFacts | str]]:
    """Yield a real directory with the mount that holds it, and each that is mounted somewhere in it; in place of one
    that is no file system over disks, what it is.

    The root directory has everything below it, and so is no server's.
    """
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    everything = (*by_target, *storage["other_mounts"])
    # No path begins with two slashes.
    below = (target for target in everything if target.startswith(f"{path}/"))
    for target in (holder(path, everything) or "", *below):
        name = target if target.startswith(f"{path}/") else path
        kind = storage["other_mounts"].get(target, "no file system that is known")
        yield name, by_target.get(target, f"{name} is on {kind}")


def holder(path: str, targets: tuple[str, ...]) -> str | None:
    """Return the mount point that holds a path: the longest that is a parent of it."""
    parents = [target for target in targets if path == target or path.startswith(target.rstrip("/") + "/")]
    return max(parents, key=len, default=None)
