# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How acknowledged commits could vanish now, by the disks and mounts of a host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..attestations import Attestation
from ..engines.placement import place
from ..host.observation import UNKNOWN
from ..rows import MEND, MOVE, Reason, Setting, Unknown, at_risk
from ..storage import drbd, flush_passthrough, mount_settings
from ..storage.raid_controllers import volume
from . import guard, requirements
from .case import Case

_BARRIERS = "take the option that puts them off away, and mount it anew"


class Risk(NamedTuple):
    """A way in which acknowledged commits can vanish now: the name of its kind, why, the `target` and `setting`
    of the row that corrects it, and what to do if no row states it."""

    kind: str
    why: str
    target: str
    setting: str
    remedy: str

    def told(self, rows: Iterable[Setting]) -> Reason:
        """Return it with what to do."""
        said = (row.remedy for row in rows if (row.target, row.setting) == (self.target, self.setting))
        return at_risk(self.kind, self.why, next(filter(None, said), self.remedy), self.target)


def leaves(
    storage: dict[str, Any], mounts: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[Unknown]]:
    """Return the disks below the mounts, and the reasons for stacks that are not understood."""
    by_name = {disk["name"]: disk for disk in storage["disks"]}
    names: dict[str, None] = {}
    reasons = []
    for mount in mounts:
        if mount["disks"] == UNKNOWN:
            reasons.append(
                Unknown(f"{mount['target']}: {mount['evidence']['disks']['reason']}", _how_to_vouch(mount))
            )
        elif not mount["disks"] or not mount["disks_seen"]:
            reasons.append(Unknown(f"{mount['target']}: nothing is known of the disks below it"))
        # Also where a layer between is not understood: what is safer stays safer.
        for name in mount["disks_seen"]:
            if name in by_name:
                names[name] = None
            else:
                reasons.append(Unknown(f"{mount['target']}: nothing is known of its disk {name}"))
    return [by_name[name] for name in names], reasons


def _how_to_vouch(mount: dict[str, Any]) -> str:
    """Return what to do where the layers below a mount are not understood."""
    if mount["fstype"] not in mount_settings.HAVE_BARRIERS and not mount["disks_seen"]:
        return MOVE  # A file system in memory, or of another machine: nothing was unreadable.
    ids = dict.fromkeys(layer["id"] for layer in mount["stack"] if requirements.can_vouch(layer))
    if not ids:
        return MEND
    about = " and ".join(ids)
    return f"move the data; or, if you know that each flush passes through it, attest layer_passes_flushes of {about}"


def of(
    mounts: list[dict[str, Any]], disks: list[dict[str, Any]], words: list[Attestation], held: frozenset[str]
) -> list[Risk]:
    """Return the ways in which acknowledged commits can vanish right now.

    `held`: mount points whose barriers the guard has off, and puts back in time.
    """
    found = [
        Risk(
            "barrier_off",
            f"commits on {mount['target']} can vanish: it is mounted without barriers, and nothing is known of its"
            " disks",
            mount["target"],
            "barrier",
            _BARRIERS,
        )
        for mount in mounts
        if mount["barrier"] == "off" and mount["disks"] == UNKNOWN
    ]
    bare: dict[str, list[str]] = {}
    for mount in mounts:
        if mount["barrier"] == "off" and mount["disks"] != UNKNOWN and mount["target"] not in held:
            for name in mount["disks"]:
                bare.setdefault(name, []).append(mount["target"])
    flush_blocked_by = _labels(
        layer for mount in mounts for layer in flush_passthrough.layers(mount) if layer.cache_mode != UNKNOWN
    )
    unflushed = dict.fromkeys(found for mount in mounts for found in drbd.unflushed(mount))
    early_ack = _labels(layer for mount in mounts for layer in flush_passthrough.early_ack(mount))
    for disk in disks:
        cache = disk["write_cache"]
        lost = f"commits since the last flush on {disk['name']} can vanish"
        target = disk["id"] or disk["name"]
        # Written while its cache was on: to switch that off makes nothing stable.
        is_pending = disk["flush"] == "owed" and cache["device"] != "none"
        if is_pending and not requirements.is_protected(disk, words):
            found.append(
                Risk(
                    "flush_pending",
                    f"{lost}: a run ended before it flushed that disk",
                    target,
                    "flush",
                    "run harden-db",
                )
            )
        if requirements.outlives_power(disk, words):
            continue
        wrong = requirements.fault_of_volume(disk)
        if wrong and volume.is_exposed(disk["raid"]):
            why = f"commits on {disk['name']} can vanish: {wrong.why}"
            found.append(Risk("raid_cache", why, target, "write_cache", f"{wrong.remedy} {disk['place']}"))
        if cache["kernel"] == "write through" and cache["device"] == "enabled":
            why = f"{lost}: its kernel cache mode is write through, so the kernel never flushes it"
            found.append(Risk("write_through", why, target, "kernel_cache_mode", "run harden-db"))
        found += [
            Risk(
                "barrier_off", f"{lost}: {mounted} is mounted without barriers", mounted, "barrier", _BARRIERS
            )
            for mounted in bare.get(disk["name"], ())
        ]
        found += [
            Risk(
                "flush_blocked",
                f"{lost}: {layer} passes no flush on",
                layer,
                "layer_cache_mode",
                "reboot, so that it is made anew",
            )
            for layer in flush_blocked_by.get(disk["name"], ())
        ]
        found += [
            Risk(
                "drbd",
                f"{lost}: {layer.label} (DRBD) is set to {said}",
                layer.label,
                "flush",
                requirements.DRBD_REMEDY,
            )
            for layer, said in unflushed
            if disk["name"] in layer.disks
        ]
        found += [
            Risk(
                "partial_parity_log",
                f"commits can be acknowledged before {disk['name']} has flushed them: {layer} has a partial parity log",
                layer,
                "consistency_policy",
                "mdadm --grow --consistency-policy=resync, or turn the disks' caches off",
            )
            for layer in early_ack.get(disk["name"], ())
        ]
    return found


def of_memory(case: Case, is_promised: Callable[[dict[str, Any]], bool]) -> Iterator[Reason]:
    """Yield how running instances lose all of their commits, because their data is in memory."""
    for instance, where in case.placed:
        if where.in_memory and instance["state"] != "stopped" and is_promised(instance):
            label = f"{instance['engine']} {instance['name']}"
            why = f"all commits of {label} vanish at a power cut or a reboot: {', '.join(where.in_memory)}, which is in memory"
            yield at_risk("data_in_memory", why, "move the data to a file system on a disk", label)


def lies_on_loss(case: Case, instance: dict[str, Any], held: frozenset[str]) -> bool:
    """Tell whether what an instance wrote may have been lost by the disks and mounts below it, not by others."""
    where = place(instance, case.storage)
    if where.unknown or not where.mounts or guard.risks(case.power):
        return True
    mounts = list(where.mounts)
    return bool(of(mounts, leaves(case.storage, mounts)[0], case.words, held))


def _labels(layers: Iterable[flush_passthrough.FlushLayer]) -> dict[str, list[str]]:
    """Return {disk: the layers above it}, each once."""
    found: dict[str, dict[str, None]] = {}
    for layer in layers:
        for name in layer.disks:
            found.setdefault(name, {})[layer.label] = None
    return {name: list(labels) for name, labels in found.items()}
