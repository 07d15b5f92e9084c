# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be true besides the settings before a promise may be called kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import attestations
from ..attestations import Attestation
from ..host.observation import UNKNOWN
from ..profiles import Profile, loosened_by
from ..storage import flush_passthrough, mount_settings

#: Never without barriers: a host that cannot boot cannot be mended.
_NEVER_LOOSENED = ("/", "/boot", "/usr", "/var", "/etc", "/home")
#: Transports whose standard asks for FUA. The kernel leaves SATA's off unless told (libata.fua).
_FUA_IN_STANDARD = ("scsi", "sas", "nvme")


class Requirement(NamedTuple):
    """One condition.

    `state` is met, attested, planned (unmet, and a step of this run makes it true before anything loosens),
    guarded (the power is away, and the guard has put the barriers back), unverified (this host cannot tell) or
    unmet. `expires` is the last day of the word that it stands on,
    '' where it stands on none.
    """

    name: str
    target: str
    state: str
    evidence: str
    why: str
    remedy: str
    expires: str = ""


def hold(needed: Iterable[Requirement]) -> bool:
    """Tell whether all of them are true, or will be before anything loosens."""
    return all(need.state in ("met", "attested", "planned", "guarded") for need in needed)


def of_host(
    profile: Profile,
    pinned: Profile,
    mounts: list[dict[str, Any]],
    disks: list[dict[str, Any]],
    words: list[Attestation],
    accept_data_loss: bool,
) -> list[Requirement]:
    """Return all requirements of a profile on these managed mounts and their disks."""
    # What rests on a UPS is policy/ups.py's to say: of disks only where they are this machine's own.
    of_disks = profile.rests_on in _OF_DISK and profile.rests_on != "ups"
    found = [of_disk(profile.rests_on, disk, words) for disk in disks if of_disks]
    found += [_override(disk, words) for disk in disks if loosened_by(profile, pinned)]
    if profile.promises_durability:
        found += [_lasting(disk) for disk in disks if disk["kind"] in _NOT_LASTING]
        found += [_write_hole(mount, hole) for mount in mounts for hole in mount["write_hole"]]
        found += _flush_awaited(profile, mounts, disks, words)
    if not profile.promises_durability:
        found.append(_accepted(accept_data_loss))
    if profile.barrier == "off" or profile.data_mode == "writeback":
        found += [only_database(mount) for mount in mounts]
    return found


def of_expired(expired: dict[str, Attestation]) -> list[Requirement]:
    """Return an unmet requirement for each attestation that has expired, of {where it is written: it}."""
    return [
        Requirement(
            "attestation_in_force",
            word.target,
            "unmet",
            f"{where}: {word.sentence}",
            f"{where}: {word.claim} by {word.by} expired on {word.expires}: it counts as none",
            "look whether it still holds, then renew it, or take it out",
        )
        for where, word in expired.items()
    ]


def of_neighbours(
    profile: Profile,
    every: list[dict[str, Any]],
    managed: list[dict[str, Any]],
    disks: list[dict[str, Any]],
) -> list[Requirement]:
    """Return what a cache that is to be turned on asks of other file systems on the same disk.

    Without barriers they were safe over a cache that is off, and would not be over one that is on.
    """
    ours = {mount["device"] for mount in managed}
    off = {
        _cache_of(disk["name"])
        for disk in disks
        if disk["write_cache"]["device"] != "enabled" and profile.write_cache == "enabled"
    }
    found = []
    for mount in every:
        below = [] if mount["device"] in ours else mount["disks_seen"]
        shared = [name for name in below if _cache_of(name) in off]
        # Of what only a container sees the next boot is never known.
        words = {mount["barrier"], mount["persisted"]["barrier"] if mount["hidden_in"] is None else ""}
        has_barriers = "barrier" in mount_settings.SETTINGS_OF.get(mount["fstype"], ())
        if shared and ("off" in words or (has_barriers and UNKNOWN in words)):
            seen = "has no" if "off" in words else "is not known to have"
            found.append(
                Requirement(
                    "neighbours_flush",
                    mount["target"],
                    "unmet",
                    f"on {', '.join(shared)}, whose cache is off",
                    f"{mount['target']} {seen} barriers, and would lie over a cache",
                    "turn its barriers on, or list it in durable_mounts",
                )
            )
    return found


def vouches(profile: Profile, disk: dict[str, Any], words: list[Attestation]) -> Attestation | None:
    """Return the attestation that makes up for a cache that cannot be seen or switched from here.

    One that survives a power cut is as good as none. Where the promise rests on flushes, whether
    there is a cache does not matter as long as they are honoured.
    """
    claims = ["power_loss_protection"]
    if profile.rests_on in ("flush", "ups") and disk["write_cache"]["kernel"] == "write back":
        claims.append("host_honours_flush")
    if profile.rests_on == "ups" and disk["write_cache"]["kernel"] == "write back":
        claims.append("virtual_host_power")
    return _word(words, tuple(claims), disk)


def fua_honoured(disk: dict[str, Any], words: list[Attestation]) -> bool:
    """Tell whether a disk that offers FUA may be taken at its word: a virtual one only claims to, and
    disks of other standards take the bit and ignore it."""
    claims = ("host_honours_fua", "power_loss_protection")
    by_standard = disk["kind"] == "physical" and disk["transport"] in _FUA_IN_STANDARD
    return by_standard or _word(words, claims, disk) is not None


def outlives_power(disk: dict[str, Any], words: list[Attestation]) -> bool:
    """Tell whether what a disk has taken is there after a power cut: it does not cache, or is protected."""
    return disk["write_cache"]["device"] in ("none", "disabled") or is_protected(disk, words)


def is_protected(disk: dict[str, Any], words: list[Attestation]) -> bool:
    """Tell whether somebody attests that a disk's cache survives a power cut."""
    return attestations.find(words, ("power_loss_protection",), disk["id"]) is not None


def _cache_of(name: str) -> str:
    """Return what holds the cache of a disk: of an NVMe namespace, its controller."""
    return re.sub(r"^(nvme\d+)n\d+$", r"\1", name)


def of_disk(rests_on: str, disk: dict[str, Any], words: list[Attestation]) -> Requirement:
    """Return what a promise that rests on a disk asks of it; `rests_on` as in a profile."""
    name, claims, offered = _OF_DISK[rests_on]
    word = _word(words, claims, disk)
    seen = offered(disk)
    if seen:
        return Requirement(name, disk["name"], "met", seen, "", "")
    if word:
        return Requirement(name, disk["name"], "attested", word.sentence, "", "", word.expires)
    # A virtual disk may well keep its promise: only its host knows. Elsewhere it is not there. Nor does
    # anybody take barriers away for what nobody knows.
    hard = rests_on in ("non_volatile_cache", "ups")
    return Requirement(
        name,
        disk["name"],
        "unmet" if hard else "unverified",
        f"a {disk['kind']} disk, write cache {disk['write_cache']['device']}",
        "nothing on this host shows that it keeps what it was told to keep",
        f"look at the {'disk' if hard else 'hypervisor or controller'}, then attest {' or '.join(claims)}"
        + (f" for {disk['id'] or 'this disk, once it has an id'} itself" if disk["kind"] == UNKNOWN else ""),
    )


def _word(words: list[Attestation], claims: tuple[str, ...], disk: dict[str, Any]) -> Attestation | None:
    """Return what somebody attests of a disk, or of all disks of its host.

    A disk of unknown kind may be one that does not last: who attests the host may not have meant it.
    """
    if disk["kind"] == UNKNOWN:
        words = [word for word in words if word.target == disk["id"]]
    return attestations.find(words, claims, disk["id"])


def _device_obeys(disk: dict[str, Any]) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["device"] != UNKNOWN:
        return f"the device answers: write cache {disk['write_cache']['device']}"
    return None


def _flush_offered(disk: dict[str, Any]) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["device"] != UNKNOWN:
        return "a physical disk that takes flushes"
    return None


def _non_volatile(disk: dict[str, Any]) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["volatile"] == "non_volatile":
        return "the device reports no volatile cache"
    return None


_OF_DISK = {
    "device": ("device_obeys", ("host_honours_flush", "power_loss_protection"), _device_obeys),
    "flush": ("flush_honoured", ("host_honours_flush", "power_loss_protection"), _flush_offered),
    "ups": ("flush_honoured", ("host_honours_flush", "power_loss_protection"), _flush_offered),
    "non_volatile_cache": ("cache_non_volatile", ("power_loss_protection",), _non_volatile),
}


def _override(disk: dict[str, Any], words: list[Attestation]) -> Requirement:
    claims = ("power_loss_protection", "host_honours_flush")
    word = _word(words, claims, disk)
    return Requirement(
        "override_attested",
        disk["name"],
        "attested" if word else "unmet",
        f"{word.claim}, attested by {word.by} until {word.expires}" if word else "no attestation",
        "" if word else "durable_overrides makes this host weaker than its profile promises",
        "" if word else f"take the override out, or attest {' or '.join(claims)}",
        word.expires if word else "",
    )


_NOT_LASTING = {"ephemeral": "goes when the machine is stopped or moved", "memory": "goes at each boot"}


def _lasting(disk: dict[str, Any]) -> Requirement:
    return Requirement(
        "disk_lasts",
        disk["name"],
        "unmet",
        f"a disk of kind {disk['kind']}",
        f"what lies on {disk['name']} {_NOT_LASTING[disk['kind']]}",
        "move the data to a disk that stays",
    )


def _write_hole(mount: dict[str, Any], hole: str) -> Requirement:
    return Requirement(
        "no_write_hole",
        mount["target"],
        "unmet",
        hole,
        "a crash between the writes of data and of parity can cost older data when a disk fails later",
        "add a journal (mdadm --add-journal), over disks without a cache a partial parity log (RAID 5:"
        " mdadm --grow --consistency-policy=ppl), or mirror instead",
    )


def _flush_awaited(
    profile: Profile,
    mounts: list[dict[str, Any]],
    disks: list[dict[str, Any]],
    words: list[Attestation],
) -> list[Requirement]:
    """Return a need for each array that acknowledges a flush too early, over disks that are to cache."""
    lossy = {
        disk["name"]
        for disk in disks
        if profile.write_cache != "disabled" and not outlives_power(disk, words)
    }
    found = []
    for mount in mounts:
        for layer in flush_passthrough.early_ack(mount):
            cached = [name for name in layer.disks if name in lossy]
            if cached:
                found.append(_hasty(mount, layer.label, cached))
    return found


def _hasty(mount: dict[str, Any], label: str, cached: list[str]) -> Requirement:
    return Requirement(
        "flush_awaited",
        mount["target"],
        "unmet",
        f"{label} has a partial parity log, over the caches of {', '.join(cached)}",
        "the kernel acknowledges a flush of such an array before its disks have done it",
        "turn those caches off (profile strict), use a journal instead (mdadm --grow"
        " --consistency-policy=resync, then mdadm --add-journal), or mirror",
    )


def _accepted(accepted: bool) -> Requirement:
    return Requirement(
        "data_loss_accepted",
        attestations.HOST,
        "met" if accepted else "unmet",
        f"durable_accept_data_loss is {str(accepted).lower()}",
        "" if accepted else "this profile loses acknowledged commits at a power cut",
        "" if accepted else "set durable_accept_data_loss: true, or pin a profile that keeps them",
    )


def only_database(mount: dict[str, Any]) -> Requirement:
    """Return what a file system without barriers has to be: one that holds listed databases and no more."""
    wrong = [target for target in mount["targets"] if _is_system(target)]
    state, why = "met", ""
    if wrong:
        state, why = "unmet", f"{wrong[0]} holds more than databases: without barriers it may not boot"
    elif mount["fstype"] == "btrfs":
        state, why = "unmet", "btrfs without barriers is corrupt after a crash"
    elif not mount["listed"]:
        state, why = "unmet", f"{mount['target']} is not listed, and may hold more than databases"
    remedy = "move the data to a file system of its own and list that in durable_mounts"
    return Requirement(
        "only_database_paths",
        mount["target"],
        state,
        f"mounted at {', '.join(mount['targets'])}",
        why,
        remedy if why else "",
    )


def holds_system(mount: dict[str, Any]) -> bool:
    """Tell whether a mount holds more than databases by its name alone: others always write there."""
    return any(map(_is_system, mount["targets"]))


def _is_system(target: str) -> bool:
    return target in _NEVER_LOOSENED or target.startswith(("/boot/", "/usr/", "/etc/"))
