# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile of each mount, disk and engine: that of the host, or one of `durable_mount_profiles`. Pure.

A disk has the strictest profile of its mounts, an engine the strictest of the mounts with its files.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...engines.placement import Placement
from ...engines.rules import titled
from ...facts.engines import InstanceFacts
from ...facts.storage import DiskFacts, MountFacts
from ...host.paths import normal
from ...profiles import (
    BadInput,
    Profile,
    Refusal,
    absolute,
    changes,
    choose,
    gathered,
    near,
    overridden,
    strictest,
)
from ...rows import Reason
from ...storage import findings
from ...storage.disk_kinds import cache_of

VARIABLE = "durable_mount_profiles"
_KEYS = ("profile", "overrides")


class Entry(NamedTuple):
    """The entry of one mount in `durable_mount_profiles`: a profile with its overrides and without, None for the host's;
    and the overrides."""

    named: tuple[Profile, Profile] | None
    overrides: Any

    def of(self, where: str, profile: Profile, pinned: Profile) -> tuple[Profile, Profile]:
        """Return the mount's profile, and that without its overrides; `profile` and `pinned` are the host's."""
        if self.named:
            return self.named
        return overridden(where, profile, self.overrides), pinned


class Mount(NamedTuple):
    """The facts of a managed mount, the profile that applies to it, and that profile without overrides."""

    facts: MountFacts
    profile: Profile
    pinned: Profile

    @property
    def named(self) -> str:
        """Return its mount point with its profile."""
        return f"{self.facts['target']} ({self.profile.name})"

    @property
    def may_lose(self) -> str:
        """Return that commits there may be lost, '' if the profile guarantees durability."""
        if self.profile.promises_durability:
            return ""
        return f"profile {self.profile.name}: its files can be lost at a power cut, as declared"


class Disk(NamedTuple):
    """The facts of a disk below managed mounts, and the strictest profile of what shares its cache."""

    facts: DiskFacts
    profile: Profile


class Server(NamedTuple):
    """The facts of an instance of an engine, where it stores its files, and the strictest profile of these places."""

    facts: InstanceFacts
    where: Placement
    profile: Profile

    @property
    def label(self) -> str:
        """Return its engine and its name."""
        return f"{self.facts['engine']} {self.facts['name']}"

    @property
    def title(self) -> str:
        """Return it for messages."""
        return titled(self.facts)


class Scope(NamedTuple):
    """A profile with its overrides, as pinned, and the facts of what it applies to: mounts, and all disks below them."""

    profile: Profile
    pinned: Profile
    mounts: list[MountFacts]
    disks: list[DiskFacts]


def read(value: Any, shipped: Any, own: Any) -> dict[str, Entry]:
    """Return {path: its entry} of `durable_mount_profiles`. Raises BadInput."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadInput(f"{VARIABLE}: observed {value!r}; expected a mapping of mount points to profiles")
    read_in = gathered(functools.partial(_read, path, entry, shipped, own) for path, entry in value.items())
    paths = [normal(path) for path in value]
    twice = [path for path, number in Counter(paths).items() if number > 1]
    if twice:
        raise BadInput(
            *(Refusal(f"{VARIABLE}: {path}: observed twice", "delete one of them") for path in twice)
        )
    return dict(zip(paths, read_in))


def _read(path: Any, entry: Any, shipped: Any, own: Any) -> Entry:
    where = f"{VARIABLE}: {path}"
    if not isinstance(path, str) or not path.startswith("/"):
        raise BadInput(
            Refusal(f"{VARIABLE}: observed {path!r}; expected an absolute path", "", absolute(path))
        )
    given = {"profile": entry} if isinstance(entry, str) else entry
    unknown = sorted(map(str, set(given) - set(_KEYS))) if isinstance(given, Mapping) else []
    if not isinstance(given, Mapping) or not given or unknown:
        question = near(unknown[0], _KEYS) if unknown else ""
        raise BadInput(
            Refusal(
                f"{where}: observed {given!r}; expected the name of a profile, or a mapping with profile, overrides or both",
                "",
                question,
            )
        )
    overrides = given.get("overrides")
    named = choose(given["profile"], shipped, own, overrides, where, where) if "profile" in given else None
    changes(where, overrides)
    return Entry(named, overrides)


def without_overrides(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries that name a profile: the others override the pinned one."""
    return {path: entry for path, entry in entries.items() if entry.named}


def of_mounts(
    mounts: Iterable[MountFacts], entries: Mapping[str, Entry], profile: Profile, pinned: Profile
) -> list[Mount]:
    """Return the managed mounts, each with its profile. Raises BadInput.

    `profile` and `pinned` are the host's.
    """
    found = []
    for mount in mounts:
        named = [path for path in entries if path in mount["targets"]]
        if len(named) > 1:
            raise BadInput(
                Refusal(
                    f"{VARIABLE}: {' and '.join(named)} are one file system; expected one entry for it",
                    "delete the other entries",
                )
            )
        chosen, base = profile, pinned
        for path in named:
            chosen, base = entries[path].of(f"{VARIABLE}: {path}", profile, pinned)
        found.append(Mount(mount, chosen, base))
    return found


def of_disks(disks: Iterable[DiskFacts], mounts: list[Mount]) -> list[Disk]:
    """Return the disks below managed mounts, each with its profile. Raises BadInput."""
    above: dict[str, list[Mount]] = {}
    for mount in mounts:
        for cache in dict.fromkeys(map(cache_of, mount.facts["disks_seen"])):
            above.setdefault(cache, []).append(mount)
    found = []
    for disk in disks:
        here = above[cache_of(disk["name"])]
        profile = strictest((mount.profile for mount in here), "write_cache")
        if profile.wanted("write_cache") == "disabled":
            _expect_no_guard(disk, here, profile)
        found.append(Disk(disk, profile))
    return found


def shared(disks: Iterable[Disk], mounts: list[Mount]) -> Iterator[Reason]:
    """Yield the profile of each disk below mounts with several profiles."""
    for disk in disks:
        name = disk.facts["name"]
        here = [mount for mount in mounts if cache_of(name) in map(cache_of, mount.facts["disks_seen"])]
        others = [mount.named for mount in here if mount.profile != disk.profile]
        if others:
            whose = [mount.facts["target"] for mount in here if mount.profile == disk.profile]
            yield findings.SHARED_DISK.found(
                name, disk=name, profile=disk.profile.name, mounts=", ".join(whose), others=", ".join(others)
            )


def scopes(mounts: list[Mount], disks: Iterable[Disk], profile: Profile, pinned: Profile) -> list[Scope]:
    """Return each profile of a host with its mounts and disks; the host's alone if no mount is managed."""
    groups: dict[tuple[Profile, Profile], list[MountFacts]] = {}
    for mount in mounts:
        groups.setdefault((mount.profile, mount.pinned), []).append(mount.facts)
    every = [disk.facts for disk in disks]
    if not groups:
        return [Scope(profile, pinned, [], [])]
    return [Scope(*which, group, below(group, every)) for which, group in groups.items()]


def below(mounts: Iterable[MountFacts], disks: Iterable[DiskFacts]) -> list[DiskFacts]:
    """Return the disks below any of these mounts."""
    names = {name for mount in mounts for name in mount["disks_seen"]}
    return [disk for disk in disks if disk["name"] in names]


def of_engines(
    placed: Iterable[tuple[InstanceFacts, Placement]], mounts: Iterable[Mount], profile: Profile
) -> list[Server]:
    """Return the instances, each with its profile; `profile`: the host's, for mounts that are not managed.

    An instance with an unknown place has the strictest of the host.
    """
    held = {mount.facts["device"]: mount.profile for mount in mounts}
    servers = []
    for instance, where in placed:
        found = [held.get(mount["device"], profile) for mount in where.mounts]
        if where.unknown or not found:
            found += [profile, *held.values()]
        servers.append(Server(instance, where, strictest(found, "engines")))
    return servers


def _expect_no_guard(disk: DiskFacts, mounts: list[Mount], profile: Profile) -> None:
    """Raise BadInput if a guard would disable barriers over a cache that must be off: a device reset enables it."""
    for mount in mounts:
        if mount.profile.rests_on == "ups":
            raise BadInput(
                Refusal(
                    f"{VARIABLE}: {mount.named} is on {disk['name']}, whose cache {profile.name} disables: a guard never"
                    " disables barriers there",
                    "give all mounts of that disk the same profile, or profile flush",
                )
            )
