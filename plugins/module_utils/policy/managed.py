# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mounts are managed: those that the inventory names, else those that hold databases. Pure."""

from __future__ import annotations

from typing import Any

from ..catalog import NAMES
from ..engines.placement import at_and_below, holder, place
from ..host.mountinfo import why_absent
from ..host.paths import normal
from ..profiles import BadInput


def mounts_of(
    mounts: Any, databases: Any, storage: dict[str, Any], engines: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the facts of the managed mounts, each with `listed`: whether it is named itself.

    `mounts` and `databases` as the inventory says; where it names neither, what the engines have
    open, and are configured to, decides. Raises BadInput for a path that is not there.
    """
    by_target = {target: mount for mount in storage["mounts"] for target in mount["targets"]}
    chosen: dict[str, dict[str, Any]] = {}
    for target in paths_in("durable_mounts", [] if mounts is None else mounts):
        if target not in by_target:
            types = {
                **storage["other_mounts"],
                **{path: mount["fstype"] for path, mount in by_target.items()},
            }
            why = why_absent(target, storage["covered"], types)
            raise BadInput(
                f"durable_mounts: seen {target}: {why}; wanted one of {', '.join(sorted(by_target))}; mount it, or"
                " correct the path"
            )
        mount = by_target[target]
        chosen[mount["target"]] = {**mount, "listed": True}
    for path in _database_paths([] if databases is None else databases):
        real = _real(path, storage)
        mount = by_target[_holder(real, by_target, storage["other_mounts"])]
        listed = real in mount["targets"]
        before = chosen.setdefault(mount["target"], {**mount, "listed": listed})
        before["listed"] = before["listed"] or listed
        for inner in (real, *storage["links"].get(path, ())):
            for _path, mount in at_and_below(inner, storage):
                if not isinstance(mount, str):
                    chosen.setdefault(mount["target"], {**mount, "listed": False})
    if mounts is None and databases is None:
        for instance in expected(engines, databases):
            for mount in place(instance, storage).mounts:
                chosen.setdefault(mount["target"], {**mount, "listed": False})
    return list(chosen.values())


def expected(engines: dict[str, Any] | None, databases: Any) -> list[dict[str, Any]]:
    """Return the engines that count: not those that are stopped, that the next boot leaves so, and that systemd and
    nobody else would start. One that `durable_databases` names counts always."""
    named = {NAMES.get(name, name) for name in engines_in(databases)}
    return [
        each for each in (engines or {}).get("engines", ()) if each["engine"] in named or not _is_idle(each)
    ]


def _is_idle(instance: dict[str, Any]) -> bool:
    seen = (instance["state"], instance["starts_at_boot"], instance["managed_by"])
    return seen == ("stopped", "no", "systemd")


def everything(storage: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the mounts that an audit looks at when nothing is listed: all that can be written."""
    return [
        {**mount, "listed": False}
        for mount in storage["mounts"]
        if "rw" in mount["options_running"] and mount["fstype"] != "vfat"
    ]


def paths_in(where: str, value: Any) -> list[str]:
    """Return the absolute paths of a variable, in their plainest form. Raises BadInput."""
    wrong = not isinstance(value, (list, tuple)) or any(
        not isinstance(path, str) or not path.startswith("/") for path in value
    )
    if wrong:
        raise BadInput(f"{where}: seen {value!r}; wanted a list of absolute paths")
    # Else "/srv//data" and "/srv/x/../data" would be held to lie on another mount.
    return [normal(path) for path in value]


def engines_in(databases: Any) -> list[str]:
    """Return the engines that `durable_databases` names; what is malformed is refused elsewhere."""
    entries = databases if isinstance(databases, (list, tuple)) else ()
    return [str(entry["engine"]) for entry in entries if isinstance(entry, dict) and "engine" in entry]


def _database_paths(databases: Any) -> list[str]:
    if not isinstance(databases, (list, tuple)):
        raise BadInput(f"durable_databases: seen {databases!r}; wanted a list")
    found = []
    for index, entry in enumerate(databases):
        where = f"durable_databases[{index}]"
        if not isinstance(entry, dict) or str(entry.get("engine")) not in NAMES:
            raise BadInput(f"{where}: seen {entry!r}; wanted engine: one of {', '.join(NAMES)}")
        if not entry.get("paths"):
            raise BadInput(
                f"{where}: no paths; list the directories of its data and logs, or take durable_databases"
                " out: then those that the running engines use are found"
            )
        found += paths_in(f"{where}.paths", entry["paths"])
    return found


def _real(path: str, storage: dict[str, Any]) -> str:
    if path in storage["unresolved"]:
        raise BadInput(
            f"durable_databases: seen {path}, which cannot be looked at:"
            f" {storage['unresolved'][path]}; see to its disk, or correct the path"
        )
    real = storage["resolved"].get(path, path)
    if real is None:
        raise BadInput(f"durable_databases: seen {path}, which is not there; correct the path")
    return str(real)


def _holder(path: str, by_target: dict[str, Any], elsewhere: dict[str, str]) -> str:
    found = holder(path, (*by_target, *elsewhere)) or "nothing"
    if found not in by_target:
        kind = elsewhere.get(found, "no file system")
        raise BadInput(
            f"durable_databases: {path} lies on {kind} at {found}, which holds nothing over a power cut;"
            " move the data, or correct the path"
        )
    return found
