# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that a benchmark tries on request and puts back: none of them makes a host less safe.

The I/O scheduler of the disks, the atime option of the mount, and the mount option `sync`, which only
tightens. Barriers, caches and journal modes are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..host.mountinfo import Mount, parse_mountinfo, visible
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage import mount_settings
from .limits import Refused

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
MOUNT_OPTIONS = ("noatime", "relatime", "strictatime", "sync")
AS_IT_IS = "as it is"
#: Superblock flags that a remount sets anew: what is not named again is taken away.
_KEPT_FLAGS = ("ro", "dirsync", "lazytime", "mand")


class Variant(NamedTuple):
    """One setting to measure under: `setting` is scheduler, atime, sync, or empty for what is as it is."""

    words: str
    setting: str = ""
    value: str = ""


def plan(place: dict[str, Any], schedulers: list[str], options: list[str]) -> list[Variant]:
    """Return what to measure under, what is as it is first; a value that is in force already is that.

    Raises Refused for one that the kernel has not loaded, or that a file system has no rule for.
    """
    found = [Variant(AS_IT_IS)]
    for name in schedulers:
        for leaf in place["leaves"]:
            seen = leaf["scheduler"]
            if seen["running"] not in seen["available"] or name not in seen["available"]:
                loaded = ", ".join(seen["available"]) or "none that could be set"
                raise Refused(
                    f"scheduler {name}: seen {loaded} on {leaf['name']}, wanted one that is loaded there"
                )
        if any(leaf["scheduler"]["running"] != name for leaf in place["leaves"]):
            found.append(Variant(f"scheduler {name}", "scheduler", name))
    for option in options:
        if place["fstype"] not in ("ext4", "xfs"):
            raise Refused(f"mount option {option}: seen {place['fstype']}, wanted ext4 or xfs")
        if option == "sync" and place["sync"] != "yes":
            found.append(Variant("mount option sync", "sync", "sync"))
        elif option != "sync" and place["atime"] != option:
            found.append(Variant(f"mount option {option}", "atime", option))
    return found


@contextmanager
def in_force(host: Host, place: dict[str, Any], variant: Variant) -> Iterator[None]:
    """Set a variant for a while. Raises ChangeFailed, also when what was there could not be put back."""
    if variant.setting == "scheduler":
        with _scheduled(host, place["leaves"], variant.value):
            yield
    elif variant.setting:
        with _mounted(host, place, variant):
            yield
    else:
        yield


@contextmanager
def _scheduled(host: Host, leaves: list[dict[str, Any]], value: str) -> Iterator[None]:
    before = {f"/sys/block/{leaf['name']}/queue/scheduler": leaf["scheduler"]["running"] for leaf in leaves}
    try:
        for path in before:
            _schedule(host, path, value)
        yield
    finally:
        failed = []
        for path, was in before.items():
            try:
                _schedule(host, path, was)
            except ChangeFailed as error:
                failed.append(f"{path}: could not be put back to {was}: {error}; write it there by hand")
        if failed:
            raise ChangeFailed("; ".join(failed))


def _schedule(host: Host, path: str, value: str) -> None:
    host.write_attribute(path, value)
    try:
        seen = host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if f"[{value}]" not in seen.split() and seen.split() != [value]:
        raise ChangeFailed(f"{path}: seen {seen.strip()!r}, wanted {value}: the machine did not follow")


@contextmanager
def _mounted(host: Host, place: dict[str, Any], variant: Variant) -> Iterator[None]:
    mount = _mount_of(host, place)
    try:
        _remount(host, mount, _words(mount, place, variant))
        seen = _mount_of(host, place)
        if variant.value != "strictatime" and variant.value not in (*seen.options, *seen.super_options):
            raise ChangeFailed(f"{place['target']}: wanted {variant.value}: the machine did not follow")
        yield
    finally:
        was = Variant("", variant.setting, "async" if variant.setting == "sync" else place["atime"])
        try:
            _remount(host, mount, _words(mount, place, was))
            after = _mount_of(host, place)
            if set(after.options) != set(mount.options) or set(after.super_options) != set(
                mount.super_options
            ):
                raise ChangeFailed("the options are not what they were")
        except ChangeFailed as error:
            raise ChangeFailed(
                f"{place['target']}: could not be put back to {','.join(mount.options)}: {error}; remount it by hand"
            ) from error


def _mount_of(host: Host, place: dict[str, Any]) -> Mount:
    try:
        mounts = visible(parse_mountinfo(host.read("/proc/self/mountinfo")))
    except (Unobservable, ValueError) as error:
        raise ChangeFailed(f"/proc/self/mountinfo: {error}") from error
    found = [mount for mount in mounts if (mount.target, mount.device) == (place["target"], place["device"])]
    if not found:
        raise ChangeFailed(f"{place['target']}: seen nothing mounted there any more")
    if found[0].read_only_by_itself:
        raise ChangeFailed(f"{place['target']}: mounted read-only; wanted one that can be written")
    return found[0]


def _words(mount: Mount, place: dict[str, Any], variant: Variant) -> list[str]:
    """Return every flag in force with the variant's own: what a remount does not name it takes away."""
    flags = mount_settings.drop(mount.options, ["atime"])
    if variant.setting == "atime":
        return ["remount", "bind", *flags, variant.value]
    kept = [flag for flag in _KEPT_FLAGS if flag in mount.super_options and flag not in flags]
    return ["remount", *flags, *kept, place["atime"], variant.value]


def _remount(host: Host, mount: Mount, words: list[str]) -> None:
    # Without --options-source=disable, mount(8) would add what fstab says.
    host.change(["mount", "-o", ",".join(words), "--options-source=disable", mount.source, mount.target])
