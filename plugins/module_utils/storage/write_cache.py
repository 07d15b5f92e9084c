# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write_cache layer: a disk's volatile cache, its kernel cache mode, and the udev rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..enforce import file_diff
from ..enforce.arguments import Arguments
from ..enforce.change import Change, each, verify
from ..facts.classes import DiskFacts
from ..host.observation import UNKNOWN
from ..host.seam import ChangeFailed, Host, Unobservable
from . import cache_rules, causes, kernel_cache_mode
from .caches import CONTROLS, DISABLED, ENABLED, NONE
from .disk_kinds import PLACES
from .disks import Disks
from .flush import flush_disk, owe, takes_flushes, unflushed

#: A state that leaves the cache as it is and only makes the kernel flush it.
KEEP = "keep"

_TARGET = {
    "disk": {"type": "str", "required": True},
    "state": {"type": "str", "required": True, "choices": ["enabled", "disabled", "keep"]},
}
ARGUMENTS = Arguments(_TARGET)


class Target(NamedTuple):
    """A disk by its stable id, and the state wanted: enabled, disabled, or keep."""

    disk: str
    state: str


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it."""
    return Target(**row)


class Work(NamedTuple):
    """What there is to do, the facts of each disk that it concerns, and the state that each is to
    have now; what the rules keep may be another, from the next boot on."""

    changes: tuple[Change, ...]
    disks: dict[str, DiskFacts]
    states: dict[str, str]
    rules: str


class Release(NamedTuple):
    """What release changes: the rules go, the caches stay as they are until the boot."""

    changes: tuple[Change, ...]


def plan(host: Host, targets: list[Target], lasting: bool = True) -> Work:
    """Return the work that brings the disks to their states; reads only.

    `lasting`: whether each disk gets a rule. A state that is reverted soon goes only into the rules that are
    there already, for udev applies those at any time.

    Raises ChangeFailed, before anything changes, when a disk is not there, cannot be asked, or is
    of a kind that this layer does not switch.
    """
    reader = Disks(host)
    persisted = _rules(host)
    work = Work((), {}, {}, "")
    for target, facts in zip(targets, _find_all(reader, targets)):
        now = KEEP if _waits(target, facts) else target.state
        persists = target.state != KEEP and (lasting or target.disk in persisted)
        work = work._replace(
            changes=(*work.changes, *_changes(target, facts, now, persists)),
            disks={**work.disks, target.disk: facts},
            states={**work.states, target.disk: now},
        )
        if persists and facts["write_cache"]["device"] != NONE:
            absent = cache_rules.missing(host, facts["control"], target.state)
            if absent:
                raise ChangeFailed(f"{target.disk} ({facts['name']}): {cache_rules.without(absent)}")
            persisted[target.disk] = (facts["control"], target.state)
    return work._replace(rules=cache_rules.render(persisted, cache_rules.programs(host)))


def apply(host: Host, work: Work, targets: list[Target], lasting: bool = True) -> None:
    """Do the work and read it back; `lasting` as it was planned. Raises ChangeFailed."""
    live = {change.target: None for change in work.changes if change.when == "running"}
    try:
        each(live, lambda disk: _switch(host, work.disks[disk], work.states[disk]))
    finally:
        # Also when one disk refused: the others keep their state at the next boot.
        if any(change.when == "persisted" for change in work.changes):
            cache_rules.write(host, work.rules)
    verify(plan(host, targets, lasting).changes)


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Release):
        # Links of systemd to our unit have no text.
        found = [path for path in cache_rules.ours(host) if ".wants/" not in path]
        return file_diff.of_root(host, dict.fromkeys(found))
    is_written = any(change.when == "persisted" for change in work.changes)
    return file_diff.of_root(host, cache_rules.files(host, work.rules) if is_written else {})


def as_now(host: Host, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return targets that switch those caches of others off again that are off now. Raises as `plan` does."""
    targets = [target_of(row) for row in rows]
    found = zip(targets, _find_all(Disks(host), targets))
    return [
        {"disk": target.disk, "state": DISABLED}
        for target, facts in found
        if facts["write_cache"]["device"] == DISABLED
    ]


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed."""
    rules = _rules(host)
    # The files are ours also where somebody edited them.
    gone = [Change(path, "rules", "persisted", "present", "absent") for path in cache_rules.ours(host)]
    unset = [
        Change(disk, "write_cache", "persisted", state, "unset") for disk, (_way, state) in rules.items()
    ]
    return Release((*gone, *unset))


def apply_release(host: Host, work: Release) -> None:
    """Remove the rules. Raises ChangeFailed."""
    cache_rules.remove(host)


def _find_all(reader: Disks, targets: list[Target]) -> list[DiskFacts]:
    names = []
    for target in targets:
        name = reader.find(target.disk)
        if name is None:
            raise ChangeFailed(
                f"{target.disk}: no disk of that id is there; expected a disk that udev knows by it;"
                " check whether it was pulled, or run again to collect the facts again"
            )
        names.append(name)
    found = reader.collect_all(names)
    for target, facts in zip(targets, found):
        _check(target, facts)
    return found


def _check(target: Target, facts: DiskFacts) -> None:
    where = f"{target.disk} ({facts['name']})"
    if facts["switchable"] != "yes":
        raise ChangeFailed(
            f"{where}: observed a {facts['transport']} disk of kind {facts['kind']}, whose cache cannot be switched"
            f" from here; switch it {PLACES.get(facts['place'], 'where it belongs')}"
        )
    if facts["write_cache"]["device"] == UNKNOWN:
        reason = causes.why(facts["evidence"]["write_cache.device"])
        raise ChangeFailed(f"{where}: its write cache cannot be read: {reason}")


def _waits(target: Target, facts: DiskFacts) -> bool:
    """Return whether a cache is to come on at the next boot only.

    A layer above it that drops flushes was made when nothing below cached. At the boot our
    rule turns the cache on before such a layer is made, and never over one that is there.
    """
    comes_on = (facts["write_cache"]["device"], target.state) == (DISABLED, ENABLED)
    return comes_on and bool(facts["flush_blocked_by"])


def _changes(target: Target, facts: DiskFacts, now: str, persists: bool) -> list[Change]:
    cache = facts["write_cache"]
    device = cache["device"]
    if device == NONE:
        return []
    wanted = device if now == KEEP else now
    cache_mode = kernel_cache_mode.for_state(facts, wanted)
    changes = []
    if facts["flush"] == "owed":
        changes.append(Change(target.disk, "flush", "running", "owed", "done"))
    if cache["kernel"] != cache_mode and cache_mode == "write back":
        changes.append(Change(target.disk, "kernel_cache_mode", "running", cache["kernel"], cache_mode))
    if device != wanted:
        changes.append(Change(target.disk, "write_cache", "running", device, wanted))
    if persists and cache["persisted"] != target.state:
        changes.append(Change(target.disk, "write_cache", "persisted", cache["persisted"], target.state))
    return changes


def _switch(host: Host, facts: DiskFacts, state: str) -> None:
    """Raise the kernel cache mode first, flush what was never flushed, and only then touch the cache."""
    name, device = facts["name"], facts["write_cache"]["device"]
    control = CONTROLS[facts["control"]]
    wanted = device if state == KEEP else state
    if not control.pinned and device == DISABLED and facts["flush_blocked_by"]:
        above = ", ".join(facts["flush_blocked_by"])
        raise ChangeFailed(
            f"{name}: a flush is pending, and only a disk whose cache is on is sent one: observed {above} above it, which"
            " drops flushes, expected no such layer. Fix: reboot"
        )
    refused = None
    try:
        _make_flushed(host, facts, wanted)
    except ChangeFailed as error:
        if wanted != DISABLED:
            raise
        # Switching a cache off makes nothing worse, so what failed does not keep it on. Nor does it flush what was written
        # before: without this the next run finds nothing to do.
        if device == ENABLED:
            owe(host, name)
        refused = error
    # Raising the cache mode of a disk that is not pinned has switched its cache on, also one that was off.
    if wanted != device if control.pinned else wanted == DISABLED:
        control.switch(host, name, wanted)
    if refused:
        raise refused


def _make_flushed(host: Host, facts: DiskFacts, wanted: str) -> None:
    """Make the kernel flush a disk, and see one flush."""
    name, device = facts["name"], facts["write_cache"]["device"]
    control = CONTROLS[facts["control"]]
    is_write_back = facts["write_cache"]["kernel"] == "write back"
    comes_on = (device, wanted) == (DISABLED, ENABLED)
    if not is_write_back and device == ENABLED:
        owe(host, name)
    if comes_on and not control.pinned:
        _unforce_early(host, name)
    # A pin is set again even where the cache mode is right. What is not pinned has one switch for both:
    # raising the cache mode enables the cache.
    if control.pinned or not is_write_back or comes_on:
        control.raise_mode(host, name)
    _unforce(host, name)
    _expect_write_back(host, name)
    flush_disk(host, name)


def _unforce(host: Host, name: str) -> None:
    """Raise a cache mode that its driver does not: another process forced it, and kernel 6.12 keeps that.

    Only the file that it was written to undoes it. The device is sent nothing; a flush is to follow.
    """
    for queue in unflushed(host, name):
        host.write_attribute(f"/sys/block/{queue}/queue/write_cache", "write back")


def _unforce_early(host: Host, name: str) -> None:
    """Take a forced cache mode back before the one switch of both turns the cache on under it."""
    try:
        _unforce(host, name)
    except ChangeFailed:
        # Some kernels (6.6 to 6.10) refuse it while nothing is cached; they keep nothing forced either.
        pass


def _expect_write_back(host: Host, name: str) -> None:
    if not takes_flushes(host, name):
        raise ChangeFailed(
            f"{name}: observed the kernel cache mode write through, expected write back: neither its driver nor its"
            " queue/write_cache raises it; reboot"
        )


def _rules(host: Host) -> dict[str, tuple[str, str]]:
    try:
        return cache_rules.read_rules(host)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
