# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a host beside its settings: warnings, and what nothing is known of. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import attestations
from ..catalog import NAMES
from ..engines.contract import judge_of
from ..rows import Unknown
from ..storage import disk_kinds, drbd, multipath
from ..storage.disk_kinds import CONTAINERS
from . import counted, managed, requirements
from .case import NO_ENGINES, Case

#: Names of processes in one warning.
_WRITERS = 5
#: Options of a file system that takes no writes: ext4 has the second one after an error, since kernel 6.15.
_STOPPED = ("ro", "emergency_ro")


def not_judged(case: Case) -> Iterator[str]:
    """Yield the mounts and servers that are only listed, how they would count, and what is wrong with who ignores them."""
    yield from (f"{target}: {why}" for target, why in case.temporary)
    yield from counted.notes(
        case.standings, case.ignoring if case.engines is not NO_ENGINES else counted.Ignoring()
    )


def writers(case: Case) -> Iterator[str]:
    """Yield who writes to a managed mount that should hold databases alone, and is no engine that is understood."""
    for mount in case.mounts:
        here = [row for row in case.engines["writers"] if row["device"] == mount["device"]]
        if here and not requirements.holds_system(mount):
            names = ", ".join(dict.fromkeys(f"{row['name']} ({row['pid']})" for row in here[:_WRITERS]))
            more = f" and {len(here) - _WRITERS} more" if len(here) > _WRITERS else ""
            yield (
                f"{mount['target']}: {names}{more} writes there ({here[0]['example']}), and is no database engine that is"
                " understood: nothing is known of how it commits"
            )


def substitute_names(disks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the disks below managed mounts whose id is not their own, and in which way it can come to mean another."""
    for disk in disks:
        risk = disk["evidence"]["id"]["reason"]
        if disk["id"] and risk:
            yield f"{disk['name']} goes by {disk['id']}: {risk}; {disk_kinds.named_by(disk['place'])}"


def contained(case: Case) -> Iterator[str]:
    """Yield that this is no host of its own."""
    word = case.storage["virtualization"]
    if word in CONTAINERS:
        yield (
            f"this is a container ({word}): its disks, mounts and next boot are its host's; run on that host, which finds"
            " the engines in it"
        )


def behind(case: Case) -> Iterator[str]:
    """Yield that a peer would not have all commits if it took over now."""
    for said in dict.fromkeys(said for mount in case.mounts for said in drbd.behind(mount)):
        yield f"{said}: one that is not, and takes over, has not all commits; see drbdadm status"


def read_only(case: Case) -> Iterator[str]:
    """Yield the managed mounts that take no writes now, and will after the next boot: the kernel does so after an error."""
    for mount in case.mounts:
        is_meant = "ro" in (mount["options_boot"] or ["ro"])
        if not is_meant and any(word in mount["options_running"] for word in _STOPPED):
            yield (
                f"{mount['target']} is read-only, and the next boot mounts it for writing: no commit is possible there; if the"
                " kernel log (dmesg) has an error of it, unmount it and check it with fsck, else remount it with rw"
            )


def limited(case: Case) -> Iterator[str]:
    """Yield that writes do not wait for ever for a path."""
    every = dict.fromkeys(found for mount in case.mounts for found in multipath.queueing(mount))
    for found in every:
        if found.persisted == multipath.LIMITED:
            yield (
                f"{found.label}: when no path has come back within its no_path_retry, writes end in errors, and the servers on"
                " it have to stop"
            )


def not_asked(case: Case) -> Iterator[str]:
    """Yield that nobody looked for engines."""
    if case.engines is NO_ENGINES:
        yield "nobody looked for database engines: how they commit is not part of this verdict"


def not_found(case: Case) -> Iterator[Unknown]:
    """Yield the engines and servers that the inventory names, and that were looked for and not found."""
    if case.engines is NO_ENGINES:
        return
    here = {instance["engine"] for instance in case.engines["engines"]}
    for entry in case.inputs.databases or ():
        name = str(entry["engine"])
        engine, paths = NAMES.get(name, name), ", ".join(entry["paths"])
        of_engine = [where for instance, where in case.placed if instance["engine"] == engine]
        if engine not in here:
            yield Unknown(
                f"durable_databases names {name}, and none was found: nothing is known of how it commits",
                "start or install it where it can be found, or take the entry out",
            )
        elif not any(managed.is_on(where, entry, case.storage) for where in of_engine):
            yield Unknown(
                f"durable_databases names {name} on {paths}, and no {engine} that was found has anything there: nothing is"
                " known of how it commits",
                "start it where it can be found, or correct the paths; list what holds no server in durable_mounts",
            )


def unmatched(case: Case) -> Iterator[str]:
    """Yield the attestations that are about no disk or layer of this host: nothing rests on them."""
    layers = (layer for mount in case.storage["mounts"] for layer in mount["stack"])
    names = {
        *(disk["id"] for disk in case.storage["disks"]),
        *(layer["id"] for layer in layers if requirements.can_vouch(layer)),
    }
    ids = sorted(filter(None, names))
    for word in case.words:
        if word.target not in (attestations.HOST, *ids):
            yield (
                f"an attestation of {word.claim} by {word.by} is about {word.target}, and no disk here has that id, nor a"
                f" layer that is not understood: it counts for nothing; wanted {', '.join((attestations.HOST, *ids))}"
            )


def unplaced(case: Case) -> Iterator[Unknown]:
    """Yield what an engine keeps where nothing is promised for it."""
    managed_devices = {mount["device"] for mount in case.mounts}
    for instance, where in case.placed:
        label = f"{instance['engine']} {instance['name']}"
        if not where.mounts and not where.unknown:
            yield Unknown(f"{label}: where it keeps its files is not known", judge_of(instance).how_to_find)
        yield from (Unknown(f"{label}: {reason}") for reason in where.unknown)
        for mount in where.mounts:
            if mount["device"] not in managed_devices:
                held = f"files on {mount['target']} ({where.examples[mount['device']]})"
                yield Unknown(f"{label} keeps {held}, which is not managed", "list it in durable_mounts")
