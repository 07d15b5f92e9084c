# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write_cache layer: a disk's volatile cache, the kernel's belief of it, and the udev rule."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import belief, cache_rules
from .blockstack import Blocks
from .caches import CONTROLS, DISABLED, ENABLED, NONE
from .disks import Disks
from .flush import flush_disk, owe
from .host import ChangeFailed, Host, Unobservable
from .layer import Change, each, verify
from .observation import UNKNOWN

#: A state that leaves the cache as it is and only makes the kernel flush it.
KEEP = "keep"


class Target(NamedTuple):
    """A disk by its stable id, and the state wanted: enabled, disabled, or keep."""

    disk: str
    state: str


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it."""
    return Target(**row)


class Work(NamedTuple):
    """What there is to do, and the facts of each disk that it concerns."""

    changes: tuple[Change, ...]
    disks: dict[str, dict[str, Any]]
    rules: str


class Release(NamedTuple):
    """What release changes: the rules go, the caches stay as they are until the boot."""

    changes: tuple[Change, ...]


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work that brings the disks to their states; reads only.

    Raises ChangeFailed, before anything changes, when a disk is not there, cannot be asked, or is
    of a kind that this layer does not switch.
    """
    reader = Disks(host)
    kept = _rules(host)
    found: dict[str, dict[str, Any]] = {}
    changes: list[Change] = []
    for target, facts in zip(targets, _find_all(reader, targets)):
        found[target.disk] = facts
        changes += [change for change in _changes(target, facts) if not _is_unheard(host, change, facts)]
        if target.state != KEEP and facts["write_cache"]["device"] != NONE:
            kept[target.disk] = (facts["control"], target.state)
    return Work(tuple(changes), found, cache_rules.render(kept))


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    states = {target.disk: target.state for target in targets}
    live = {change.target: None for change in work.changes if change.when == "running"}
    try:
        each(live, lambda disk: _switch(host, work.disks[disk], states[disk]))
    finally:
        # Also when one disk refused: the others keep their state at the next boot.
        if any(change.when == "persisted" for change in work.changes):
            cache_rules.write(host, work.rules)
    verify(plan(host, targets).changes)


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed."""
    rules = _rules(host)
    # The files are ours also where somebody edited them.
    ours = [path for path in (cache_rules.RULES_PATH, cache_rules.UNIT_PATH) if host.exists(path)]
    gone = [Change(path, "rules", "persisted", "present", "absent") for path in ours]
    unset = [
        Change(disk, "write_cache", "persisted", state, "unset") for disk, (_way, state) in rules.items()
    ]
    return Release((*gone, *unset))


def apply_release(host: Host, work: Release) -> None:
    """Take the rules away. Raises ChangeFailed."""
    cache_rules.remove(host)


def _find_all(reader: Disks, targets: list[Target]) -> list[dict[str, Any]]:
    names = []
    for target in targets:
        name = reader.find(target.disk)
        if name is None:
            raise ChangeFailed(
                f"{target.disk}: no disk of that id is there; wanted a disk that udev knows by it;"
                " look whether it was pulled, or run again to collect the facts anew"
            )
        names.append(name)
    found = reader.collect_all(names)
    for target, facts in zip(targets, found):
        _check(target, facts)
    return found


def _check(target: Target, facts: dict[str, Any]) -> None:
    where = f"{target.disk} ({facts['name']})"
    if facts["switchable"] != "yes":
        raise ChangeFailed(
            f"{where}: seen a {facts['transport']} disk of kind {facts['kind']}, whose cache cannot be switched"
            f" from here; switch it {facts['place'] or 'where it belongs'}"
        )
    if facts["write_cache"]["device"] == UNKNOWN:
        reason = facts["evidence"]["write_cache.device"]["reason"]
        raise ChangeFailed(f"{where}: its write cache cannot be read: {reason}")


def _is_unheard(host: Host, change: Change, facts: dict[str, Any]) -> bool:
    """Tell whether a cache would come on below a layer that passes no flush on.

    Such a layer was made when nothing below cached. It waits for the next boot, when our rule turns
    the cache on before the layer is made.
    """
    comes_on = (change.setting, change.when, change.after) == ("write_cache", "running", ENABLED)
    return comes_on and bool(Blocks(host).deaf_above(facts["name"]))


def _changes(target: Target, facts: dict[str, Any]) -> list[Change]:
    cache = facts["write_cache"]
    device = cache["device"]
    if device == NONE:
        return []
    wanted = device if target.state == KEEP else target.state
    believed = belief.for_state(facts, wanted)
    changes = []
    if facts["flush"] == "owed":
        changes.append(Change(target.disk, "flush", "running", "owed", "done"))
    if cache["kernel"] != believed and believed == "write back":
        changes.append(Change(target.disk, "kernel_belief", "running", cache["kernel"], believed))
    if device != wanted:
        changes.append(Change(target.disk, "write_cache", "running", device, wanted))
    if target.state != KEEP and cache["persisted"] != wanted:
        changes.append(Change(target.disk, "write_cache", "persisted", cache["persisted"], wanted))
    return changes


def _switch(host: Host, facts: dict[str, Any], state: str) -> None:
    """Raise the belief first, flush what was never flushed, and only then touch the cache."""
    name, device = facts["name"], facts["write_cache"]["device"]
    control = CONTROLS[facts["control"]]
    wanted = device if state == KEEP else state
    refused = None
    try:
        _make_flushed(host, facts, wanted)
    except ChangeFailed as error:
        if (device, wanted) != (ENABLED, DISABLED):
            raise
        # Switching a cache off makes nothing worse, so what failed does not keep it on.
        refused = error
    # Raising the belief of a disk that is not pinned has switched its cache on, also one that was off.
    if wanted != device if control.pinned else wanted == DISABLED:
        control.switch(host, name, wanted)
    if refused:
        raise refused


def _make_flushed(host: Host, facts: dict[str, Any], wanted: str) -> None:
    """Make the kernel flush a disk, and see one flush."""
    name, device = facts["name"], facts["write_cache"]["device"]
    control = CONTROLS[facts["control"]]
    believed = facts["write_cache"]["kernel"] == "write back"
    if not believed and device == ENABLED:
        owe(host, name)
    # A pin is set anew even where the belief is right. What is not pinned has one switch for both:
    # raising the belief enables the cache.
    if control.pinned or not believed or (device, wanted) == (DISABLED, ENABLED):
        control.believe(host, name)
    _expect_belief(host, name, "write back")
    flush_disk(host, name)


def _expect_belief(host: Host, name: str, wanted: str) -> None:
    try:
        seen = host.read(f"/sys/block/{name}/queue/write_cache").strip()
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if seen != wanted:
        raise ChangeFailed(
            f"{name}: the kernel believes {seen!r}, wanted {wanted!r}: somebody wrote to its"
            " queue/write_cache, and this kernel lets only that file or a reboot undo it; reboot"
        )


def _rules(host: Host) -> dict[str, tuple[str, str]]:
    try:
        return cache_rules.read_rules(host)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
