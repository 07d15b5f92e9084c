# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about a host, and unknown values that are no settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ... import attestations
from ...catalog import NAMES
from ...engines import findings as of_engines
from ...engines.judges import judge_of
from ...engines.rules import titled
from ...facts.storage import DiskFacts
from ...host import udev
from ...host.observation import UNKNOWN
from ...host.printable import command
from ...rows import Reason
from ...storage import (
    disk_kinds,
    drbd,
    findings,
    mount_settings,
    multipath,
)
from ...storage.disk_kinds import CONTAINERS
from .. import kinds
from ..expect import engine_scope, managed
from . import requirements
from .case import Case
from .facts_check import NO_ENGINES

#: The number of processes that one warning names.
_WRITERS = 5
#: Options of a file system that takes no writes: ext4 has the second one after an error, since kernel 6.15.
_STOPPED = ("ro", "emergency_ro")


def not_judged(case: Case) -> Iterator[Reason]:
    """Yield the mounts and servers that are only listed, and entries of durable_ignore without effect."""
    for target, why in case.temporary:
        yield findings.TEMPORARY.found(target, mount=target, what=why)
    ignoring = case.declared.ignoring if case.engines is not NO_ENGINES else engine_scope.Ignoring()
    for each in engine_scope.notes(case.standings, ignoring):
        yield kinds.LISTED.found(what=each)


def writers(case: Case) -> Iterator[Reason]:
    """Yield processes that are no known engine and write to a managed mount that should hold databases only."""
    for mount in case.mounts:
        here = [row for row in case.engines["writers"] if row["device"] == mount["device"]]
        if here and not mount_settings.holds_system(mount):
            names = ", ".join(dict.fromkeys(f"{row['name']} ({row['pid']})" for row in here[:_WRITERS]))
            more = f" and {len(here) - _WRITERS} more" if len(here) > _WRITERS else ""
            yield findings.WRITERS.found(
                mount["target"], mount=mount["target"], processes=f"{names}{more}", example=here[0]["example"]
            )


def substitute_names(disks: list[DiskFacts]) -> Iterator[Reason]:
    """Yield the disks below managed mounts whose id can name another disk later, and how."""
    for disk in disks:
        risk = udev.risk_of(disk["id"] or "")
        if disk["id"] and risk:
            cure = disk_kinds.named_by(disk["place"])
            yield findings.SUBSTITUTE_NAME.found(
                disk["id"], disk=disk["name"], id=disk["id"], risk=risk, cure=cure
            )


def contained(case: Case) -> Iterator[Reason]:
    """Yield that this is a container."""
    kind = case.storage["virtualization"]
    if kind in CONTAINERS:
        yield kinds.CONTAINER.found(kind=kind)


def behind(case: Case) -> Iterator[Reason]:
    """Yield that a peer lacks commits: a failover now would lose them."""
    for state in dict.fromkeys(state for mount in case.mounts for state in drbd.behind(mount)):
        yield findings.REPLICA_BEHIND.found(seen=state)


def read_only(case: Case) -> Iterator[Reason]:
    """Yield the managed mounts that are read-only until the next boot: the kernel does so after an error."""
    for mount in case.mounts:
        is_meant = "ro" in (mount["options_boot"] or ["ro"])
        if not is_meant and any(option in mount["options_running"] for option in _STOPPED):
            yield findings.READ_ONLY.found(mount["target"], mount=mount["target"])


def without_dir_index(case: Case) -> Iterator[Reason]:
    """Yield the managed mounts whose ext file system has no index of directories."""
    for mount in case.mounts:
        if mount.get("dir_index") == "no":
            yield findings.DIR_INDEX.found(
                mount["target"],
                mount=mount["target"],
                enable=command("tune2fs", "-O", "dir_index", mount["source"]),
                rebuild=command("e2fsck", "-fD", mount["source"]),
            )


def torn_pages(case: Case) -> Iterator[Reason]:
    """Yield the engines without a second copy of a page, over disks whose physical sector is smaller than a page.

    ZFS writes a record to another place, so a power cut leaves the old one.
    """
    for instance, where in case.placed:
        judge = judge_of(instance)
        below = {
            name for mount in where.mounts if mount["fstype"] != "zfs" for name in _names(mount["disks"])
        }
        sizes = [
            (int(disk["sector"]["physical"]), disk["name"])
            for disk in case.storage["disks"]
            if disk["name"] in below and disk["sector"]["physical"] != UNKNOWN
        ]
        size, name = min(sizes, default=(judge.largest_page, ""))
        if size < judge.largest_page:
            label = f"{instance['engine']} {instance['name']}"
            yield of_engines.TORN_PAGE.found(
                label, engine=label, size=str(size), disk=name, cure=judge.torn_page
            )


def _names(disks: list[str] | str) -> list[str]:
    return disks if isinstance(disks, list) else []


def limited(case: Case) -> Iterator[Reason]:
    """Yield that writes wait for a path for a limited time only."""
    every = dict.fromkeys(found for mount in case.mounts for found in multipath.queueing(mount))
    for found in every:
        if found.persisted == multipath.LIMITED:
            yield findings.PATHS_LIMITED.found(found.label, layer=found.label)


def not_collected(case: Case) -> Iterator[Reason]:
    """Yield that engines were not collected."""
    if case.engines is NO_ENGINES:
        yield of_engines.NOT_ASKED.found()


def not_found(case: Case) -> Iterator[Reason]:
    """Yield the engines and servers of the inventory that were not found."""
    if case.engines is NO_ENGINES:
        return
    here = {instance["engine"] for instance in case.engines["engines"]}
    for entry in case.declared.inputs.databases or ():
        name = str(entry["engine"])
        engine, paths = NAMES.get(name, name), ", ".join(entry["paths"])
        of_engine = [where for instance, where in case.placed if instance["engine"] == engine]
        if engine not in here:
            yield of_engines.NOT_FOUND.found(name, name=name)
        elif not any(managed.is_on(where, entry, case.storage) for where in of_engine):
            yield of_engines.NOT_THERE.found(name, name=name, paths=paths, engine=engine)


def unmatched(case: Case) -> Iterator[Reason]:
    """Yield the attestations whose target is no disk or layer of this host: they have no effect."""
    layers = (layer for mount in case.storage["mounts"] for layer in mount["stack"])
    names = {
        *(disk["id"] for disk in case.storage["disks"]),
        *(layer["id"] for layer in layers if requirements.can_attest(layer)),
    }
    ids = sorted(filter(None, names))
    for each in case.declared.attestations:
        if each.target not in (attestations.HOST, *ids):
            yield kinds.UNMATCHED_ATTESTATION.found(
                each.target,
                claim=each.claim,
                author=each.by,
                target=each.target,
                expected=", ".join((attestations.HOST, *ids)),
            )


def unplaced(case: Case) -> Iterator[Reason]:
    """Yield files of an engine on mounts that are not managed."""
    managed_devices = {mount["device"] for mount in case.mounts}
    for instance, where in case.placed:
        label, title = f"{instance['engine']} {instance['name']}", titled(instance)
        if not where.mounts and not where.unknown:
            yield of_engines.PLACE.found(label, engine=title, cure=judge_of(instance).how_to_find)
        for why in where.unknown:
            yield of_engines.PLACE_UNREAD.found(label, engine=title, cause=why)
        for mount in where.mounts:
            if mount["device"] not in managed_devices:
                example = where.examples[mount["device"]]
                yield of_engines.NOT_MANAGED.found(
                    label, engine=title, mount=mount["target"], example=example
                )
