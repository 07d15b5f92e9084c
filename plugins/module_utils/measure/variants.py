# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that a benchmark tries on request and restores. None of them makes a host less safe.

The I/O scheduler of the disks, the atime option of the mounts, the mount option `sync` and a write cache that is
switched off, which only tighten. Barriers and journal modes are never touched, and no cache is switched on that was off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from ..enforce.change import verify
from ..facts.classes import DiskFacts
from ..host.mountinfo import Mount, parse_mountinfo, visible
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage import cache_rules, write_cache
from ..storage.caches import DISABLED, ENABLED, NONE
from .limits import Refused
from .targets import Place

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
MOUNT_OPTIONS = ("noatime", "relatime", "strictatime", "sync")
WRITE_CACHES = (ENABLED, DISABLED)
AS_IT_IS = "as it is"
CACHE_OFF = "write cache off"


class Variant(NamedTuple):
    """One setting to measure under: `setting` is scheduler, atime, sync, write_cache, or empty for what is as it is."""

    name: str
    setting: str = ""
    value: str = ""

    @property
    def is_about_speed(self) -> bool:
        """Return whether it changes speed alone, and not what a profile guarantees."""
        return self.setting not in ("", "write_cache")


def plan(
    host: Host,
    places: Sequence[Place],
    schedulers: Sequence[str] = (),
    options: Sequence[str] = (),
    caches: Sequence[str] = (),
) -> list[Variant]:
    """Return what to measure under, what is as it is first; a value that is in force already is that.

    Raises Refused for a scheduler that the kernel has not loaded, an option that a file system has no rule for, and a
    cache that may not be switched, or could not be restored.
    """
    leaves = leaves_of(places)
    return [
        Variant(AS_IT_IS),
        *_caches(host, leaves, caches),
        *(found for name in schedulers for found in _scheduler(leaves, name)),
        *(found for option in options for found in _option(places, option)),
    ]


def _caches(host: Host, leaves: Sequence[DiskFacts], states: Sequence[str]) -> Iterator[Variant]:
    if ENABLED in states:
        _expect_on(leaves)
    if DISABLED in states and _to_switch(leaves):
        _expect_back(host, leaves)
        yield Variant(CACHE_OFF, "write_cache", DISABLED)


def _scheduler(leaves: Sequence[DiskFacts], name: str) -> Iterator[Variant]:
    for leaf in leaves:
        observed = leaf["scheduler"]
        if observed["running"] not in observed["available"] or name not in observed["available"]:
            loaded = ", ".join(observed["available"]) or "none that could be set"
            raise Refused(
                f"scheduler {name}: observed {loaded} on {leaf['name']}, expected one that is loaded there"
            )
    if any(leaf["scheduler"]["running"] != name for leaf in leaves):
        yield Variant(f"scheduler {name}", "scheduler", name)


def _option(places: Sequence[Place], option: str) -> Iterator[Variant]:
    for place in places:
        if place["fstype"] not in ("ext4", "xfs"):
            raise Refused(
                f"mount option {option}: {place['target']}: observed {place['fstype']}, expected ext4 or xfs"
            )
    if option == "sync" and any(place["sync"] != "yes" for place in places):
        yield Variant("mount option sync", "sync", "sync")
    elif option != "sync" and any(place["atime"] != option for place in places):
        yield Variant(f"mount option {option}", "atime", option)


def leaves_of(places: Sequence[Place]) -> list[DiskFacts]:
    """Return the disks below some mounts, each once."""
    return list({leaf["name"]: leaf for place in places for leaf in place["leaves"]}.values())


@contextmanager
def in_force(host: Host, places: Sequence[Place], variant: Variant) -> Iterator[None]:
    """Set a variant for a while, on all mounts or the disks below them.

    Raises ChangeFailed, also when the original could not be restored.
    """
    with ExitStack() as tried:
        if variant.setting == "write_cache":
            tried.enter_context(_uncached(host, _to_switch(leaves_of(places))))
        elif variant.setting == "scheduler":
            tried.enter_context(_scheduled(host, leaves_of(places), variant.value))
        elif variant.setting:
            for place in places:
                tried.enter_context(_mounted(host, place, variant))
        yield


def _to_switch(leaves: Sequence[DiskFacts]) -> list[DiskFacts]:
    """Return the disks that have a cache, and not one that is off already."""
    return [leaf for leaf in leaves if leaf["write_cache"]["device"] not in (DISABLED, NONE)]


def _expect_on(leaves: Sequence[DiskFacts]) -> None:
    """Raise Refused unless each cache is on: to switch one on would be less safe than what was found."""
    for leaf in leaves:
        observed = leaf["write_cache"]["device"]
        if observed not in (ENABLED, NONE):
            raise Refused(
                f"write_caches: {leaf['name']}: observed {observed}, expected {ENABLED}: a benchmark makes no disk less safe than"
                " it was; measure with the cache on before a profile switches it off"
            )


def _expect_back(host: Host, leaves: Sequence[DiskFacts]) -> None:
    """Raise Refused for a cache that could not be restored as it was found, now and at the next boot."""
    try:
        rules = cache_rules.read_rules(host)
    except Unobservable as error:
        raise Refused(f"write_caches: {error}") from error
    for leaf in _to_switch(leaves):
        above, comes = leaf["flush_blocked_by"], leaf["write_cache"].get("power_on", ENABLED)
        why = f"{', '.join(above)} above it drops flushes" if above else None
        if comes != ENABLED:
            why = f"after a reset it is {comes}, and a switch may be saved"
        if leaf["id"] is None:
            why = "it has no name that stays"
        elif rules.get(leaf["id"], ("", ENABLED))[1] != ENABLED:
            why = "its rule switches it off at the next boot: run harden_db first"
        if why:
            raise Refused(
                f"write_caches: {leaf['name']}: observed {why}; expected a cache that can be restored as it was:"
                " measure other disks, or without it"
            )
    try:
        write_cache.plan(host, _targets(_to_switch(leaves), DISABLED), lasting=False)
    except ChangeFailed as error:
        raise Refused(f"write_caches: {error}") from error


def _targets(leaves: Sequence[DiskFacts], state: str) -> list[write_cache.Target]:
    return [write_cache.Target(leaf["id"], state) for leaf in leaves if leaf["id"]]


@contextmanager
def _uncached(host: Host, leaves: Sequence[DiskFacts]) -> Iterator[None]:
    """Switch caches off and on again, each in the order that is safe."""
    off, on = _targets(leaves, DISABLED), _targets(leaves, ENABLED)
    try:
        _switch(host, off)
        yield
        # What was measured is of no use where something has switched one on meanwhile.
        verify(write_cache.plan(host, off, lasting=False).changes)
    finally:
        try:
            _switch(host, on)
        except ChangeFailed as error:
            raise ChangeFailed(
                f"write cache: could not be restored to {ENABLED}: {error}; off is the safer of the two: run harden_db,"
                " or switch it on by hand"
            ) from error


def _switch(host: Host, targets: list[write_cache.Target]) -> None:
    work = write_cache.plan(host, targets, lasting=False)
    write_cache.apply(host, work, targets, lasting=False)
    waiting = [target.disk for target in targets if work.states[target.disk] != target.state]
    if waiting:
        raise ChangeFailed(f"{', '.join(waiting)}: a layer that drops flushes has come above it")


@contextmanager
def _scheduled(host: Host, leaves: Sequence[DiskFacts], value: str) -> Iterator[None]:
    before = {f"/sys/block/{leaf['name']}/queue/scheduler": leaf["scheduler"]["running"] for leaf in leaves}
    try:
        for path in before:
            schedule(host, path, value)
        yield
    finally:
        failed = []
        for path, was in before.items():
            try:
                schedule(host, path, was)
            except ChangeFailed as error:
                failed.append(f"{path}: could not be restored to {was}: {error}; write it there by hand")
        if failed:
            raise ChangeFailed("; ".join(failed))


def schedule(host: Host, path: str, value: str) -> None:
    """Set the scheduler of a disk by the path of its file, and read it back. Raises ChangeFailed."""
    host.write_attribute(path, value)
    try:
        observed = host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if f"[{value}]" not in observed.split() and observed.split() != [value]:
        raise ChangeFailed(
            f"{path}: observed {observed.strip()!r}, expected {value}: the machine did not follow"
        )


@contextmanager
def _mounted(host: Host, place: Place, variant: Variant) -> Iterator[None]:
    mount = _mount_of(host, place)
    try:
        _set(host, mount, variant)
        observed = _mount_of(host, place)
        if variant.value != "strictatime" and variant.value not in (
            *observed.options,
            *observed.super_options,
        ):
            raise ChangeFailed(f"{place['target']}: expected {variant.value}: the machine did not follow")
        yield
    finally:
        # One of several mounts can have had `sync` before.
        synchronous = "sync" if "sync" in mount.super_options else "async"
        was = Variant("", variant.setting, synchronous if variant.setting == "sync" else place["atime"])
        try:
            _set(host, mount, was)
            after = _mount_of(host, place)
            if set(after.options) != set(mount.options) or set(after.super_options) != set(
                mount.super_options
            ):
                raise ChangeFailed("the options are not what they were")
        except ChangeFailed as error:
            raise ChangeFailed(
                f"{place['target']}: could not be restored to {','.join(mount.options)}: {error}; remount it by hand"
            ) from error


def _mount_of(host: Host, place: Place) -> Mount:
    try:
        mounts = visible(parse_mountinfo(host.read("/proc/self/mountinfo")))
    except (Unobservable, ValueError) as error:
        raise ChangeFailed(f"/proc/self/mountinfo: {error}") from error
    assessed = place["mount"]
    names = (assessed.number, assessed.device, assessed.target)
    found = [mount for mount in mounts if (mount.number, mount.device, mount.target) == names]
    if not found:
        raise ChangeFailed(
            f"{place['target']}: the mount that was assessed is not there any more. Fix: run again"
        )
    if found[0].read_only_by_itself:
        raise ChangeFailed(f"{place['target']}: mounted read-only; expected one that can be written")
    return found[0]


def _set(host: Host, mount: Mount, variant: Variant) -> None:
    if variant.setting == "atime":
        host.set_mount_atime(mount, variant.value)
    else:
        host.set_mount_options(mount, [variant.value])
