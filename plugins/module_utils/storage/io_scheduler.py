# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The io_scheduler layer: I/O scheduler and readahead of block devices, now and by a udev rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..enforce import file_diff
from ..enforce.arguments import Arguments
from ..enforce.change import Change, each, verify
from ..host.observation import UNKNOWN
from ..host.seam import ChangeFailed, Host, Unobservable
from . import causes, scheduler_rules
from .disks import Disks

_TARGET = {
    "device": {"type": "str", "required": True},
    "scheduler": {"type": "str", "choices": ["none", "mq-deadline", "kyber", "bfq"]},
    "readahead": {"type": "int"},
}
ARGUMENTS = Arguments(_TARGET)


class Target(NamedTuple):
    """A block device by its stable id, and the settings wanted of it."""

    device: str
    wanted: dict[str, str]


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it: settings that are None are not wanted."""
    wanted = {name: str(row[name]) for name in scheduler_rules.ATTRIBUTES if row.get(name) is not None}
    return Target(str(row["device"]), wanted)


class Work(NamedTuple):
    """What there is to do, the kernel names of the devices, and the rule file that results."""

    changes: tuple[Change, ...]
    names: dict[str, str]
    rules: str


class Release(NamedTuple):
    """What release changes: the rules go, the settings stay until the boot."""

    changes: tuple[Change, ...]


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work that brings the devices to their settings; reads only.

    Raises ChangeFailed, before anything changes, when a device is not there or cannot be read.
    """
    reader = Disks(host)
    persisted = _rules(host)
    names: dict[str, str] = {}
    changes: list[Change] = []
    for target in targets:
        name = reader.find(target.device)
        if name is None:
            raise ChangeFailed(
                f"{target.device}: no block device of that id is there; expected one that udev knows by it;"
                " check whether it was pulled, or run again to collect the facts again"
            )
        names[target.device] = name
        rule = persisted.setdefault(target.device, {})
        for setting, value in target.wanted.items():
            observed = reader.readahead(name) if setting == "readahead" else reader.scheduler(name)[0]
            if observed.value == UNKNOWN:
                cause = causes.why(observed.as_dict())
                raise ChangeFailed(f"{target.device} ({name}): its {setting} cannot be read: {cause}")
            if setting == "scheduler" and not reader.scheduler(name)[1]:
                raise ChangeFailed(
                    f"{target.device} ({name}): its scheduler cannot be set: observed no list of schedulers"
                )
            if observed.value != value:
                changes.append(Change(target.device, setting, "running", observed.value, value))
            persisted_now = reader.scheduling_persisted(name, setting).value
            if persisted_now != value:
                changes.append(Change(target.device, setting, "persisted", persisted_now, value))
            rule[setting] = value
    return Work(tuple(changes), names, scheduler_rules.render(persisted))


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    live: dict[str, dict[str, str]] = {}
    for change in work.changes:
        if change.when == "running":
            live.setdefault(change.target, {})[change.setting] = change.after
    try:
        each(live, lambda device: _set(host, work.names[device], live[device]))
    finally:
        if any(change.when == "persisted" for change in work.changes):
            scheduler_rules.write(host, work.rules)
    verify(plan(host, targets).changes)


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Release):
        return file_diff.of_root(host, dict.fromkeys(scheduler_rules.ours(host)))
    former = [path for path in scheduler_rules.ours(host) if path != scheduler_rules.RULES_PATH]
    is_written = any(change.when == "persisted" for change in work.changes)
    written = {scheduler_rules.RULES_PATH: work.rules, **dict.fromkeys(former)}
    return file_diff.of_root(host, written if is_written else {})


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed."""
    # The files are ours also if an administrator edited their rules.
    gone = [Change(path, "rules", "persisted", "present", "absent") for path in scheduler_rules.ours(host)]
    rules = _rules(host).items()
    unset = (
        Change(device, name, "persisted", value, "unset")
        for device, rule in rules
        for name, value in rule.items()
    )
    return Release((*gone, *unset))


def apply_release(host: Host, work: Release) -> None:
    """Remove the rule files. Raises ChangeFailed."""
    for path in scheduler_rules.ours(host):
        host.remove_file(path)


def _set(host: Host, name: str, wanted: dict[str, str]) -> None:
    for setting, value in wanted.items():
        host.write_attribute(f"/sys/block/{name}/{scheduler_rules.ATTRIBUTES[setting]}", value)


def _rules(host: Host) -> dict[str, dict[str, str]]:
    try:
        return scheduler_rules.read_rules(host)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
