# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mounts are managed: those that the inventory names, else those that hold databases. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...catalog import NAMES
from ...engines.placement import (
    Placement,
    at_and_below,
    holder,
    place,
)
from ...facts.engines import InstanceFacts
from ...facts.storage import MountFacts, StorageFacts
from ...host.mountinfo import why_absent
from ...host.paths import normal
from ...host.printable import name as quoted
from ...host.printable import quote
from ...profiles import BadInput, Refusal, absolute, as_list, gathered, near
from ...rows import Reason
from ...storage import findings, mount_settings
from . import guarantees


class ManagedMount(MountFacts):
    """A mount that counts; `listed`: whether the inventory names it."""

    listed: bool


def mounts_of(
    mounts: Any,
    databases: Any,
    storage: StorageFacts,
    judged: Iterable[InstanceFacts],
    named: Iterable[str] = (),
    lost: list[Reason] | None = None,
) -> list[MountFacts]:
    """Return the facts of the managed mounts, each with `listed`: whether the inventory names it. Mounts below a named one
    are managed too, except below mounts that hold the system.

    `mounts` and `databases` as in the inventory; without both, the open files and the configuration of the assessed
    engines decide. `named`: the paths of `durable_mount_profiles`, which are managed too. `lost` gets each path that is on
    no mount: a disk may have failed. Raises BadInput, without `lost` also for such a path.
    """
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    chosen: dict[str, ManagedMount] = {}
    wanted = paths_in("durable_mounts", [] if mounts is None else mounts)
    for where, target in (
        *(("durable_mounts", target) for target in wanted),
        *((guarantees.VARIABLE, target) for target in named),
    ):
        if target not in by_target:
            types = {
                **storage["other_mounts"],
                **{path: mount["fstype"] for path, mount in by_target.items()},
            }
            why = why_absent(target, storage["covered"], types)
            why = f"{why}, expected one of {', '.join(map(quoted, sorted(by_target)))}"
            remedy = (
                "move the data, or correct the path" if target in types else "mount it, or correct the path"
            )
            _lose(lost, _unmounted(where, target, why, f"{remedy}{near(target, by_target)}"))
            continue
        mount = by_target[target]
        chosen[mount["target"]] = {**mount, "listed": True}
        # A database's log may be mounted in its directory, also if no server is found there.
        inner = () if mount_settings.holds_system(mount) else _below(target, storage)
        for each in inner:
            chosen.setdefault(each["target"], {**each, "listed": False})
    for path in database_paths(databases):
        found = _mount_under(path, storage, by_target)
        if isinstance(found, Reason):
            _lose(lost, found)
            continue
        mount, listed = found, _real(path, storage) in found["targets"]
        before = chosen.setdefault(mount["target"], {**mount, "listed": listed})
        before["listed"] = before["listed"] or listed
        for mount in _below(path, storage):
            chosen.setdefault(mount["target"], {**mount, "listed": False})
    if mounts is None and databases is None:
        for instance in judged:
            for mount in place(instance, storage).mounts:
                chosen.setdefault(mount["target"], {**mount, "listed": False})
    return [*chosen.values(), *_holders(chosen, storage)]


def is_on(where: Placement, entry: dict[str, Any], storage: StorageFacts) -> bool:
    """Return whether an instance has anything on the file systems of an entry of `durable_databases`, or may have."""
    paths = [path for path in map(normal, entry["paths"]) if not _why_unresolved(path, storage)]
    devices = {mount["device"] for path in paths for mount in _below(path, storage)}
    return bool(where.unknown) or any(mount["device"] in devices for mount in where.mounts)


def _below(path: str, storage: StorageFacts) -> Iterator[MountFacts]:
    """Yield the file systems that hold a database's path, that are mounted in it, and to which links in it lead."""
    for inner in (_real(path, storage), *storage["links"].get(path, ())):
        yield from (mount for _path, mount in at_and_below(inner, storage) if not isinstance(mount, str))


def _holders(chosen: Mapping[str, MountFacts], storage: StorageFacts) -> list[MountFacts]:
    """Return the file systems that hold the files of loop devices below the chosen ones: their barriers count too."""
    numbers = {layer["held_on"] for mount in chosen.values() for layer in mount["stack"]}
    return [
        ManagedMount(**mount, listed=False)
        for mount in storage["mounts"]
        if mount["device"] in numbers and mount["target"] not in chosen
    ]


def temporary(
    placed: Iterable[tuple[InstanceFacts, Placement]], managed: Iterable[MountFacts]
) -> dict[str, list[str]]:
    """Return {mount point: the engines whose temporary files it holds}, of mounts that hold nothing else of a database and
    that are not managed for another reason. `placed`: the assessed engines."""
    here = list(placed)
    others = {mount["device"] for mount in managed}
    others |= {mount["device"] for _instance, where in here for mount in where.mounts}
    found: dict[str, list[str]] = {}
    for instance, where in here:
        for mount in where.temporary:
            if mount["device"] not in others:
                found.setdefault(mount["target"], []).append(f"{instance['engine']} {instance['name']}")
    return found


def everything(storage: StorageFacts) -> list[MountFacts]:
    """Return the mounts of an audit without a list: all that are writable."""
    return [
        ManagedMount(**mount, listed=False)
        for mount in storage["mounts"]
        if ("rw" in mount["options_running"] or mount_settings.waits(mount)) and mount["fstype"] != "vfat"
    ]


def paths_in(where: str, value: Any) -> list[str]:
    """Return the absolute paths of a variable, in their plainest form. Raises BadInput."""
    if not isinstance(value, (list, tuple)):
        raise BadInput(
            Refusal(f"{where}: observed {value!r}; expected a list of absolute paths", as_list(where, value))
        )
    wrong = [
        Refusal(f"{where}[{index}]: observed {path!r}; expected an absolute path", "", absolute(path))
        for index, path in enumerate(value)
        if not isinstance(path, str) or not path.startswith("/")
    ]
    if wrong:
        raise BadInput(*wrong)
    # Else "/srv//data" and "/srv/x/../data" would be held to lie on another mount.
    return [normal(path) for path in value]


def database_paths(databases: Any) -> list[str]:
    """Return the paths of `durable_databases`. Raises BadInput."""
    if databases is None:
        return []
    if not isinstance(databases, (list, tuple)):
        raise BadInput(f"durable_databases: observed {databases!r}; expected a list")
    found = gathered(
        functools.partial(_paths_of, f"durable_databases[{index}]", entry)
        for index, entry in enumerate(databases)
    )
    return [path for paths in found for path in paths]


def _paths_of(where: str, entry: Any) -> list[str]:
    if not isinstance(entry, dict) or str(entry.get("engine")) not in NAMES:
        name = entry.get("engine") if isinstance(entry, dict) else ""
        raise BadInput(
            Refusal(
                f"{where}: observed {entry!r}; expected engine: one of {', '.join(NAMES)}, and paths: a list, for example"
                " {engine: postgresql, paths: [/srv/pgdata]}",
                "",
                near(name, NAMES),
            )
        )
    unknown = sorted(map(str, set(entry) - {"engine", "paths"}))
    if unknown:
        raise BadInput(
            *(
                Refusal(
                    f"{where}: observed {key!r}; expected only engine and paths",
                    "",
                    near(key, ("engine", "paths")),
                )
                for key in unknown
            )
        )
    if not entry.get("paths"):
        raise BadInput(
            Refusal(
                f"{where}: no paths",
                "list the directories of its data and logs, or delete durable_databases: then those that the running"
                " engines use are found",
            )
        )
    return paths_in(f"{where}.paths", entry["paths"])


def _lose(lost: list[Reason] | None, why: Reason) -> None:
    if lost is None:
        raise BadInput(Refusal(why.reason, why.fix))
    lost.append(why)


def _unmounted(variable: str, path: str, why: str, fix: str) -> Reason:
    return findings.PATH_NOT_MOUNTED.found(path, variable=variable, path=path, cause=why, cure=fix)


def _mount_under(path: str, storage: StorageFacts, by_target: dict[str, MountFacts]) -> MountFacts | Reason:
    """Return the mount that holds a path of a database, or why it is on none."""
    why = _why_unresolved(path, storage)
    if why:
        return why
    elsewhere = storage["other_mounts"]
    target = holder(_real(path, storage), (*by_target, *elsewhere)) or "nothing"
    if target in by_target:
        return by_target[target]
    kind = elsewhere.get(target, "no file system")
    cause = f"it is on {kind} at {target}, which holds nothing over a power cut"
    return _unmounted("durable_databases", path, cause, "move the data, or correct the path")


def _why_unresolved(path: str, storage: StorageFacts) -> Reason | None:
    if path in storage["unresolved"]:
        why = f"it cannot be read: {quote(storage['unresolved'][path])}"
        return _unmounted("durable_databases", path, why, "mount its disk, or correct the path")
    if storage["resolved"].get(path, path) is None:
        return _unmounted(
            "durable_databases", path, "it does not exist", "mount its file system, or correct the path"
        )
    return None


def _real(path: str, storage: StorageFacts) -> str:
    return str(storage["resolved"].get(path, path))
