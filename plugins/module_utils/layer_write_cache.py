# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write_cache layer: a disk's volatile cache, the kernel's belief of it, and the udev rule."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import belief, udev
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
    rules_before: str
    rules_after: str


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work that brings the disks to their states; reads only.

    Raises ChangeFailed, before anything changes, when a disk is not there, cannot be asked, or is
    of a kind that this layer does not switch.
    """
    reader = Disks(host)
    before = _read_rules(host)
    kept = {rule.id: rule for rule in udev.parse_rules(before)}
    found: dict[str, dict[str, Any]] = {}
    changes: list[Change] = []
    for target in targets:
        facts = found[target.disk] = _find(reader, target)
        changes += _changes(target, facts)
        if target.state != KEEP and facts["write_cache"]["device"] != "none":
            kept[target.disk] = udev.CacheRule(target.disk, facts["transport"], target.state)
    return Work(tuple(changes), found, before, udev.render_rules(list(kept.values())))


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    states = {target.disk: target.state for target in targets}
    live = {change.target: None for change in work.changes if change.when == "running"}
    try:
        each(live, lambda disk: _switch(host, work.disks[disk], states[disk]))
    finally:
        # Also when one disk refused: the others keep their state at the next boot.
        if work.rules_after != work.rules_before and _persists(work):
            host.write_file(udev.RULES_PATH, work.rules_after.encode("ascii"))
    verify(plan(host, targets).changes)


def release(host: Host) -> tuple[Change, ...]:
    """Return what release changes: the rules go, the caches stay as they are until the boot."""
    if not host.exists(udev.RULES_PATH):
        return ()
    rules = udev.parse_rules(_read_rules(host))
    # The file is ours also where somebody edited its rules.
    gone = Change(udev.RULES_PATH, "rules", "persisted", "present", "absent")
    return (gone, *(Change(r.id, "write_cache", "persisted", r.state, "unset") for r in rules))


def apply_release(host: Host) -> None:
    """Remove the rule file."""
    host.remove_file(udev.RULES_PATH)


def _find(reader: Disks, target: Target) -> dict[str, Any]:
    name = reader.find(target.disk)
    if name is None:
        raise ChangeFailed(
            f"{target.disk}: no disk of that id is there; wanted a disk that udev knows by it;"
            " look whether it was pulled, or run again to collect the facts anew"
        )
    facts = reader.collect(name)
    if facts["switchable"] != "yes":
        raise ChangeFailed(
            f"{target.disk} ({name}): seen a {facts['transport']} disk whose cache cannot be switched from"
            " here; wanted SATA, or virtio with a writable cache_type"
        )
    if facts["write_cache"]["device"] == UNKNOWN:
        reason = facts["evidence"]["write_cache.device"]["reason"]
        raise ChangeFailed(f"{target.disk} ({name}): its write cache cannot be read: {reason}")
    return facts


def _changes(target: Target, facts: dict[str, Any]) -> list[Change]:
    cache = facts["write_cache"]
    device = cache["device"]
    if device == "none":
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
    wanted = device if state == KEEP else state
    refused = None
    try:
        _make_flushed(host, facts, wanted)
    except ChangeFailed as error:
        if (device, wanted) != ("enabled", "disabled"):
            raise
        # Switching a cache off makes nothing worse, so what failed does not keep it on.
        refused = error
    if belief.is_pinned(facts) and wanted != device:
        host.change(["hdparm", "-q", f"-W{1 if wanted == 'enabled' else 0}", f"/dev/{name}"])
    elif not belief.is_pinned(facts) and wanted == "disabled":
        host.write_attribute(f"/sys/block/{name}/cache_type", "write through")
    if refused:
        raise refused


def _make_flushed(host: Host, facts: dict[str, Any], wanted: str) -> None:
    """Make the kernel flush a disk, and see one flush."""
    name, device = facts["name"], facts["write_cache"]["device"]
    believed = facts["write_cache"]["kernel"] == "write back"
    if not believed and device == "enabled":
        owe(host, name)
    if belief.is_pinned(facts):
        # "temporary" changes the kernel's belief and sends the device nothing. It also keeps the
        # belief from following a later rescan, so a cache that comes back on is flushed.
        host.write_attribute(_scsi_cache_type(host, name), "temporary write back")
    elif not believed or (device, wanted) == ("disabled", "enabled"):
        # The switch of a virtio disk sets device and belief together.
        host.write_attribute(f"/sys/block/{name}/cache_type", "write back")
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


def _scsi_cache_type(host: Host, name: str) -> str:
    directory = f"/sys/block/{name}/device/scsi_disk"
    try:
        address = host.names(directory)[0]
    except (Unobservable, IndexError) as error:
        raise ChangeFailed(f"{name}: no scsi_disk of its own below {directory}") from error
    return f"{directory}/{address}/cache_type"


def _persists(work: Work) -> bool:
    return any(change.when == "persisted" for change in work.changes)


def _read_rules(host: Host) -> str:
    if not host.exists(udev.RULES_PATH):
        return ""
    try:
        return host.read(udev.RULES_PATH)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
