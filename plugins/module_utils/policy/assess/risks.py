# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Current risks of losing acknowledged commits, from the disks and mounts of a host. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...attestations import Attestation
from ...engines.placement import Placement
from ...facts.storage import DiskFacts, LayerFacts, MountFacts, StorageFacts
from ...host.observation import UNKNOWN
from ...rows import Kind, Reason, Setting
from ...storage import (
    drbd,
    findings,
    flush_passthrough,
    mount_settings,
)
from ...storage.raid_controllers import volume
from ..expect.guarantees import Server
from . import guard, requirements
from .case import Case


class Risk(NamedTuple):
    """A way in which acknowledged commits can be lost now, and the `target` and `setting` of the row that corrects it."""

    reason: Reason
    target: str
    setting: str

    def with_fix(self, rows: Iterable[Setting]) -> Reason:
        """Return it with its fix: that of the row, if one has it."""
        fixes = (row.remedy for row in rows if (row.target, row.setting) == (self.target, self.setting))
        return self.reason._replace(fix=next(filter(None, fixes), self.reason.fix))


def leaves(storage: StorageFacts, mounts: list[MountFacts]) -> tuple[list[DiskFacts], list[Reason]]:
    """Return the disks below the mounts, and the reasons for stacks that are not understood."""
    by_name = {disk["name"]: disk for disk in storage["disks"]}
    names: dict[str, None] = {}
    reasons = []
    for mount in mounts:
        if mount["disks"] == UNKNOWN:
            kind, values = _not_understood(mount)
            cause = str(mount["evidence"]["disks"]["reason"])
            reasons.append(kind.found(mount["target"], mount=mount["target"], cause=cause, **values))
        elif not mount["disks"] or not mount["disks_seen"]:
            reasons.append(_no_disks(mount["target"], "the disks below it"))
        # A disk below an unknown layer is still made safer.
        for name in mount["disks_seen"]:
            if name in by_name:
                names[name] = None
            else:
                reasons.append(_no_disks(mount["target"], f"its disk {name}"))
    return [by_name[name] for name in names], reasons


def _no_disks(mount: str, what: str) -> Reason:
    return findings.NO_DISKS.found(mount, mount=mount, what=what)


def _risk(kind: Kind, target: str, row: str, **values: str) -> Risk:
    return Risk(kind.found(target, **values), target, row)


def _not_understood(mount: MountFacts) -> tuple[Kind, dict[str, str]]:
    """Return the finding for a mount whose layers are not understood, from the first cause that can be corrected."""
    if mount["fstype"] not in mount_settings.HAVE_BARRIERS and not mount["disks_seen"]:
        return (
            findings.STACK_UNRULED,
            {},
        )  # A file system in memory, or of another host: nothing was unreadable.
    strange = [layer for layer in mount["stack"] if layer["cause"]]
    for layer in strange:
        found = _correctable(layer)
        if found:
            return found, {}
    ids = dict.fromkeys(layer["id"] for layer in strange if requirements.can_attest(layer))
    if ids:
        return findings.STACK_VOUCHED, {"ids": " and ".join(ids)}
    return findings.STACK_UNRULED if strange and not mount["devices_missing"] else findings.STACK, {}


def _correctable(layer: LayerFacts) -> Kind | None:
    """Return the finding for a layer that a command makes known, None for one without a rule."""
    if layer["type"] == "multipath":
        return findings.STACK_PATHS  # It is understood, and all of its paths are gone.
    if layer["type"] != UNKNOWN:
        return None
    if layer["detail"].startswith("device-mapper"):
        return None if layer["id"] else findings.STACK_TABLE
    return {"DRBD": findings.STACK_DRBD, "loop": findings.STACK_LOOP}.get(layer["detail"])


def of(
    mounts: list[MountFacts], disks: list[DiskFacts], attestations: list[Attestation], held: frozenset[str]
) -> list[Risk]:
    """Return the ways in which acknowledged commits can be lost right now.

    `held`: mount points whose barriers the guard has off and enables in time.
    """
    found = [
        _barrier_off(mount, "disks that are unknown")
        for mount in mounts
        if mount["barrier"] == "off" and mount["disks"] == UNKNOWN
    ]
    unflushed: dict[str, list[Risk]] = {}
    for name, risk in itertools.chain(_bare(mounts, held), _blocked(mounts), _drbd(mounts), _parity(mounts)):
        unflushed.setdefault(name, []).append(risk)
    for disk in disks:
        found += _of_pending_flush(disk, attestations)
        if not requirements.outlives_power(disk, attestations):
            found += [*_of_cache(disk), *unflushed.get(disk["name"], ())]
    return found


def _of_pending_flush(disk: DiskFacts, attestations: list[Attestation]) -> Iterator[Risk]:
    # Disabling the cache does not store what it already holds.
    is_pending = disk["flush"] == "owed" and disk["write_cache"]["device"] != "none"
    if is_pending and not requirements.is_protected(disk, attestations):
        yield _risk(findings.FLUSH_PENDING, disk["id"] or disk["name"], "flush", disk=disk["name"])


def _of_cache(disk: DiskFacts) -> Iterator[Risk]:
    """Yield the risks of a disk whose cache is lost at a power cut."""
    cache, name, target = disk["write_cache"], disk["name"], disk["id"] or disk["name"]
    wrong = requirements.fault_of_volume(disk)
    if wrong and volume.is_exposed(disk["raid"]):
        yield _risk(findings.RAID_CACHE, target, "write_cache", disk=name, cause=wrong.why, cure=wrong.remedy)
    if cache["kernel"] == "write through" and cache["device"] == "enabled":
        yield _risk(findings.WRITE_THROUGH, target, "kernel_cache_mode", disk=name)


def _bare(mounts: list[MountFacts], held: frozenset[str]) -> Iterator[tuple[str, Risk]]:
    """Yield each disk to which a file system sends no flushes."""
    for mount in mounts:
        target = mount["target"]
        if mount["barrier"] == "off" and mount["disks"] != UNKNOWN and target not in held:
            for name in mount["disks"]:
                yield name, _barrier_off(mount, name)


def _barrier_off(mount: MountFacts, disk: str) -> Risk:
    kind, target = findings.NO_BARRIERS.get(mount.get("fstype", ""), findings.BARRIER_OFF), mount["target"]
    return _risk(kind, target, "barrier", disk=disk, mount=target)


def _blocked(mounts: list[MountFacts]) -> Iterator[tuple[str, Risk]]:
    """Yield each disk above which a layer drops flushes."""
    early = {layer.label for layer in flush_passthrough.early(mounts)}
    every = (layer for mount in mounts for layer in flush_passthrough.layers(mount))
    for name, label in _labels(layer for layer in every if layer.cache_mode != UNKNOWN):
        kind = findings.FLUSH_BLOCKED_EARLY if label in early else findings.FLUSH_BLOCKED
        yield name, _risk(kind, label, "layer_cache_mode", disk=name, layer=label)


def _drbd(mounts: list[MountFacts]) -> Iterator[tuple[str, Risk]]:
    """Yield each disk to which DRBD sends no flushes."""
    for layer, option in dict.fromkeys(found for mount in mounts for found in drbd.unflushed(mount)):
        kind = findings.DRBD if drbd.by_option(option) else findings.DRBD_ORDERING
        for name in layer.disks:
            yield name, _risk(kind, layer.label, "flush", disk=name, layer=layer.label, setting=option)


def _parity(mounts: list[MountFacts]) -> Iterator[tuple[str, Risk]]:
    """Yield each disk of an array that answers writes before they are on it."""
    for name, label in _labels(layer for mount in mounts for layer in flush_passthrough.early_ack(mount)):
        yield name, _risk(findings.PARTIAL_PARITY_LOG, label, "consistency_policy", disk=name, layer=label)


def of_memory(servers: Iterable[Server]) -> Iterator[Reason]:
    """Yield how running instances lose all of their commits, because their data is in memory."""
    for server in servers:
        where, is_promised = server.where, server.profile.promises_durability
        if where.in_memory and server.facts["state"] != "stopped" and is_promised:
            yield findings.DATA_IN_MEMORY.found(
                server.label, engine=server.title, place=", ".join(where.in_memory)
            )


def lies_on_loss(case: Case, where: Placement, held: frozenset[str]) -> bool:
    """Return whether the disks and mounts below an instance can have lost its commits."""
    if where.unknown or not where.mounts or guard.risks(case.power):
        return True
    mounts = list(where.mounts)
    return bool(of(mounts, leaves(case.storage, mounts)[0], case.declared.attestations, held))


def _labels(layers: Iterable[flush_passthrough.FlushLayer]) -> Iterable[tuple[str, str]]:
    """Return each disk with the label of each layer above it, once."""
    return dict.fromkeys((name, layer.label) for layer in layers for name in layer.disks)
