# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that read their configuration only at their start: found, changed, restarted if allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from ..enforce.change import Change, each, verify
from ..facts.classes import InstanceFacts
from ..host.observation import UNKNOWN, Because
from ..host.processes import Processes
from ..host.seam import ChangeFailed, Host, Unobservable
from . import causes, instance, since_start, start_files
from .collect import Engines
from .instance import Override

#: Looks, a second apart, that a server gets after a restart to be up and say what it runs with; and how
#: many of them the same process has to outlive: some end seconds after systemd took them for started.
_LOOKS, _STEADY = 120, 5
#: Seconds beyond a unit's own limit that a stop and start may take, and what infinity stands for.
_MARGIN, _ENDLESS = 900.0, 86400.0


class Target(NamedTuple):
    """An instance by its name, the settings wanted of it, and the overrides that a run removes."""

    instance: str
    wanted: dict[str, str]
    overrides: tuple[Override, ...] = ()


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what a module, or a plan, says of it: settings that are None are not wanted."""
    wanted = {str(name): str(word) for name, word in row["settings"].items() if word is not None}
    own = (Override(*map(each.get, Override._fields)) for each in row.get("overrides") or ())
    return Target(str(row["instance"]), wanted, tuple(own))


def instances(host: Host, engine: Any) -> dict[str, InstanceFacts]:
    """Return {name: facts} of an engine's instances; `engine` is its module. Raises Unobservable."""
    engines = Engines(host, (engine.NAME,))
    found = {facts["name"]: facts for facts in engines.instances()}
    for why in engines.failed.values():
        # None that were found does not mean that there are none.
        raise Unobservable(f"{engine.NAME}: {causes.text(why.as_dict())}")
    return found


def choose(found: dict[str, InstanceFacts], engine: str, name: str) -> InstanceFacts:
    """Return the facts of an instance whose files are ours to change. Raises ChangeFailed."""
    expect_there(found, engine, name)
    expect_ours(found[name])
    return found[name]


def expect_there(found: dict[str, InstanceFacts], engine: str, name: str) -> None:
    """Raise ChangeFailed if there is no instance of that name."""
    if name not in found:
        there = ", ".join(sorted(found)) or "none"
        raise ChangeFailed(
            f"{engine} {name}: no such instance; expected one of those that are here: {there};"
            " run again to collect the facts again"
        )


def expect_ours(facts: InstanceFacts) -> None:
    """Raise ChangeFailed where the files of an instance are not ours to change."""
    if facts["managed_by"] in ("container", UNKNOWN) or facts["root"] or facts["namespace"] == UNKNOWN:
        raise ChangeFailed(
            f"{facts['engine']} {facts['name']}: managed by {facts['managed_by']}, namespace {facts['namespace']}; expected a"
            " server of this host whose manager is known; set it by its manager"
        )


def changes(facts: InstanceFacts, wanted: dict[str, str], restart: bool) -> list[Change]:
    """Return what sets settings to the requested values: in the file, and by a restart if that is allowed.

    Raises ChangeFailed for a setting that cannot be read.
    """
    found = []
    may_restart = restart and facts["managed_by"] == "systemd" and facts["state"] == "running"
    for name, word in wanted.items():
        row = facts["settings"].get(name) or instance.setting(
            UNKNOWN, UNKNOWN, "none", Because("no_setting", {"setting": name})
        )
        if row["persisted"] == UNKNOWN:
            raise ChangeFailed(
                f"{facts['engine']} {facts['name']}: {name}: observed nothing that counts ({causes.text(row)}), expected"
                f" {word}; correct that, then run again"
            )
        if row["persisted"] != word:
            found.append(Change(facts["name"], name, "persisted", row["persisted"], word))
        if may_restart and row["running"] != word:
            found.append(Change(facts["name"], name, "running", row["running"], word))
    return found


def keep_running(host: Host, engine: str, facts: InstanceFacts) -> None:
    """Note what a server runs with before its file is changed. Raises ChangeFailed."""
    if not facts["pids"]:
        return
    words = {name: row["running"] for name, row in facts["settings"].items()}
    try:
        main = Processes(host).all.get(facts["pids"][0])
        if main:
            start_files.note(host, engine, since_start.start_of(host, main), words)
    except Unobservable as error:
        raise ChangeFailed(f"{engine} {facts['name']}: {error}") from error


def restart_limit(facts: InstanceFacts) -> float:
    """Return the seconds that a restart may take: what the unit gives to a stop, and a margin to start."""
    timeout = facts["stop_timeout"]
    return (_ENDLESS if timeout in ("infinity", UNKNOWN) else float(timeout)) + _MARGIN


def restart(host: Host, facts: Iterable[InstanceFacts]) -> None:
    """Stop servers cleanly and start them again, by their units. Raises ChangeFailed."""
    limits = {str(instance["unit"]): restart_limit(instance) for instance in facts}
    each(limits, lambda unit: host.change(["systemctl", "restart", "--", unit], timeout=limits[unit]))


def settle(host: Host, engine: Any, names: Collection[str], left: Callable[[], Iterable[Change]]) -> None:
    """Wait until servers that were restarted are up, stay so, and run as wanted. Raises ChangeFailed."""
    mains: list[int] = []
    steady = 0
    for _attempt in range(_LOOKS):
        before = mains
        try:
            mains = [] if list(left()) else _mains(host, engine, names)
        except (ChangeFailed, Unobservable):
            mains = []  # It is not there yet.
        steady = steady + 1 if mains and mains == before else 0
        if steady == _STEADY:
            return
        host.run(["sleep", "1"])
    _mains(host, engine, names)
    verify(left())
    raise ChangeFailed(
        f"{', '.join(names)}: observed to start and end again and again after a restart, expected it up; its log says why"
    )


def _mains(host: Host, engine: Any, names: Iterable[str]) -> list[int]:
    """Return the main processes of servers. Raises ChangeFailed where one does not run, Unobservable."""
    found = instances(host, engine)
    mains = []
    for name in names:
        pids = found[name]["pids"] if name in found else []
        if not pids:
            raise ChangeFailed(f"{engine.NAME} {name}: not running after a restart; its log says why")
        mains.append(pids[0])
    return mains
