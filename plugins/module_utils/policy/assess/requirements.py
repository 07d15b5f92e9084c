# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of a guarantee that no setting fulfils."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from ...attestations import HOST, Attestation, written
from ...attestations import find as find_attestation
from ...facts.storage import DiskFacts, LayerFacts, MountFacts, RaidFacts, StorageFacts, WriteHoleFacts
from ...host.observation import UNKNOWN
from ...host.printable import is_plain
from ...host.printable import name as quoted
from ...profiles import Profile, loosened_by
from ...rows import Kind, Setting
from ...storage import (
    causes,
    disk_kinds,
    drbd,
    findings,
    flush_passthrough,
    mapper_targets,
    mount_settings,
    nfs,
    platforms,
)
from ...storage.disk_kinds import SAN
from ...storage.raid_controllers import volume
from .. import kinds
from ..expect.guarantees import Mount, Server
from ..report_types import RequirementEntry

#: Transports whose standard asks for FUA. The kernel disables it for SATA by default (libata.fua).
_FUA_IN_STANDARD = ("scsi", "sas", "nvme")
#: The claim about a layer that no rule understands, and the requirement that rests on it.
_PASSES = "layer_passes_flushes"
#: Kind of a disk of an unknown platform -> where to check whether its cache survives a power cut.
_CHECKED = {
    disk_kinds.PHYSICAL: "check the disk's data sheet",
    disk_kinds.RAID_VOLUME: "check the cache settings of the RAID controller",
    disk_kinds.SAN: "check the cache settings of the array",
    disk_kinds.NETWORK: "check the cache settings of what serves the disk",
    disk_kinds.VIRTUAL: "check the hypervisor's cache mode",
}
#: The kinds for which an attestation of the host's flushes covers all disks.
_OF_THE_HOST = (disk_kinds.VIRTUAL, disk_kinds.NETWORK)
#: Way to query a disk's cache -> its program.
_TOOLS = {"sata": "hdparm", "scsi": "sdparm", "nvme": "nvme-cli"}


class Requirement(NamedTuple):
    """One condition.

    `state` is met, attested, planned (unmet, and a step of this run fulfils it before any loosening),
    guarded (the UPS is on battery, and the guard has enabled the barriers), unverified (this host cannot verify it) or
    unmet. `expires` is the last day of its attestation, '' without one. `attest`: the lines of an attestation that
    would meet it, to fill in and copy. `id`: that of its finding, '' if it is met.
    """

    name: str
    target: str
    state: str
    evidence: str
    why: str
    remedy: str
    expires: str = ""
    attest: tuple[str, ...] = ()
    id: str = ""

    @classmethod
    def failed(
        cls,
        kind: Kind,
        target: str,
        evidence: str,
        fix: str | None = None,
        name: str = "",
        state: str = "",
        **values: str,
    ) -> Requirement:
        """Return an unmet one, from an entry of the catalogue; `name`: if it differs from that of the id."""
        found = kind.found(target, fix=fix, **values)
        state = state or ("unverified" if kind.verdict == "unverified" else "unmet")
        named = name or kind.id.split(".")[1]
        return cls(named, target, state, evidence, found.reason, found.fix, id=kind.id)

    def as_dict(self) -> RequirementEntry:
        """Return it for the report's JSON."""
        return cast(RequirementEntry, {**self._asdict(), "id": self.id or f"requirement.{self.name}"})


def hold(needed: Iterable[Requirement]) -> bool:
    """Return whether all of them are met, or will be before any loosening."""
    return all(need.state in ("met", "attested", "planned", "guarded") for need in needed)


def of_host(
    profile: Profile,
    pinned: Profile,
    mounts: list[MountFacts],
    disks: list[DiskFacts],
    attestations: list[Attestation],
    accept_data_loss: bool,
) -> list[Requirement]:
    """Return all requirements of a profile on these managed mounts and their disks."""
    # The requirements of a UPS are in policy/assess/ups.py: only disks of a physical host are among them.
    of_disks = profile.rests_on in _OF_DISK and profile.rests_on != "ups"
    found = [of_disk(profile.rests_on, disk, attestations) for disk in disks if of_disks]
    found += [_override(disk, attestations) for disk in disks if loosened_by(profile, pinned)]
    if profile.promises_durability:
        found += [_lasting(disk) for disk in disks if disk["kind"] in _NOT_LASTING]
        found += [_write_hole(mount, hole) for mount in mounts for hole in mount["write_hole"]]
        found += [
            need
            for mount in mounts
            for layer in mount["stack"]
            for need in _of_layer(mount, layer, attestations)
        ]
        found += _flush_awaited(profile, mounts, disks, attestations)
    if not profile.promises_durability:
        found.append(_accepted(accept_data_loss))
    if profile.barrier == "off" or profile.data_mode == "writeback":
        found += [only_database(mount) for mount in mounts]
    return found


def of_expired(expired: dict[str, Attestation]) -> list[Requirement]:
    """Return an unmet requirement for each attestation that has expired, of {its place in the inventory: it}."""
    return [
        Requirement.failed(
            kinds.ATTESTATION_EXPIRED,
            attestation.target,
            f"{where}: {attestation.sentence}",
            where=where,
            claim=attestation.claim,
            author=attestation.by,
            date=attestation.expires,
        )
        for where, attestation in expired.items()
    ]


def of_neighbours(
    profile: Profile,
    every: list[MountFacts],
    managed: list[MountFacts],
    disks: list[DiskFacts],
) -> list[Requirement]:
    """Return the requirements of enabling a cache for other file systems on the same disk.

    Without barriers, they are safe over a disabled cache, but not over an enabled one.
    """
    ours = {mount["device"] for mount in managed}
    off = {
        disk_kinds.cache_of(disk["name"])
        for disk in disks
        if disk["write_cache"]["device"] != "enabled" and profile.write_cache == "enabled"
    }
    found = []
    for mount in every:
        below = [] if mount["device"] in ours else mount["disks_seen"]
        shared = [name for name in below if disk_kinds.cache_of(name) in off]
        # The next boot of a mount that only a container has is always unknown.
        values = {mount["barrier"], mount["persisted"]["barrier"] if mount["hidden_in"] is None else ""}
        has_barriers = "barrier" in mount_settings.SETTINGS_OF.get(mount["fstype"], ())
        if shared and ("off" in values or (has_barriers and UNKNOWN in values)):
            is_off = findings.NEIGHBOURS.get(mount["fstype"], findings.NEIGHBOUR)
            kind = is_off if "off" in values else findings.NEIGHBOUR_UNKNOWN
            observed = f"on {', '.join(shared)}, whose cache is off"
            found.append(Requirement.failed(kind, mount["target"], observed, mount=mount["target"]))
    return found


def of_barriers(rows: Iterable[Setting]) -> list[Requirement]:
    """Return an unmet requirement for each mount whose barriers are off, or will be, and that no run turns on.

    `rows`: those of mounts with a guarantee. A cache below them is not enabled.
    """
    return [
        Requirement.failed(
            findings.BARRIERS_STAY_OFF,
            row.target,
            f"barriers are {row.running}, at boot {row.persisted}",
            cure=row.remedy,
        )
        for row in rows
        if (row.layer, row.setting, row.phase) == ("mount_options", "barrier", None)
        and row.verdict.startswith("drift")
        and "off" in (row.running, row.persisted)
    ]


def of_engines(servers: Iterable[Server], mounts: Iterable[Mount]) -> Iterator[tuple[Mount, Requirement]]:
    """Yield the mounts on which an engine keeps files that may go, while others of its have to last, each with the need that
    is not met."""
    held = {mount.facts["device"]: mount for mount in mounts}
    for server in servers:
        if not server.profile.promises_durability:
            continue
        here = [held[mount["device"]] for mount in server.where.mounts if mount["device"] in held]
        lasting = [mount.named for mount in here if not mount.may_lose]
        for mount in here:
            if mount.may_lose:
                yield mount, _torn(server, mount, lasting)


def _torn(server: Server, mount: Mount, lasting: list[str]) -> Requirement:
    target, others = mount.facts["target"], ", ".join(lasting) or "places that are unknown"
    return Requirement.failed(
        findings.ONE_PROMISE,
        target,
        f"{server.title} has files on {target} ({server.where.examples[mount.facts['device']]}), and on {others}",
        engine=server.title,
        mount=mount.named,
    )


def with_attested_layers(mounts: list[MountFacts], attestations: list[Attestation]) -> list[MountFacts]:
    """Return the mounts; if each unknown layer below one is attested, the observed disks are its disks."""
    return [
        {**mount, "disks": mount["disks_seen"]} if _all_pass(mount, attestations) else mount
        for mount in mounts
    ]


def can_attest(layer: LayerFacts) -> bool:
    """Return whether an attestation can be about a layer: it has no rule, a stable name, and known devices below it."""
    return bool(layer["type"] == UNKNOWN and layer["id"] and layer["below"])


def _all_pass(mount: MountFacts, attestations: list[Attestation]) -> bool:
    strange = [layer for layer in mount["stack"] if layer["cause"]]
    known = not mount["devices_missing"] and mount["disks_seen"] and strange
    return bool(known) and all(
        can_attest(layer) and find_attestation(attestations, (_PASSES,), layer["id"]) for layer in strange
    )


def attestation_for(profile: Profile, disk: DiskFacts, attestations: list[Attestation]) -> Attestation | None:
    """Return the attestation that replaces control of a cache that this host cannot read or switch.

    A cache that survives a power cut equals no cache. If the guarantee rests on flushes, a cache is
    safe as long as flushes are honoured.
    """
    return _attestation_for(attestations, make_up(profile, disk), disk)


def make_up(profile: Profile, disk: DiskFacts) -> tuple[str, ...]:
    """Return the claims of which one replaces control of a cache that this host cannot read or switch."""
    claims = ["power_loss_protection"]
    if profile.rests_on in ("flush", "ups") and disk["write_cache"]["kernel"] == "write back":
        claims.append("host_honours_flush")
    if profile.rests_on == "ups" and disk["write_cache"]["kernel"] == "write back":
        claims.append("virtual_host_power")
    return tuple(claims)


def fua_honoured(disk: DiskFacts, attestations: list[Attestation]) -> bool:
    """Return whether a disk that offers FUA honours it: a virtual disk only offers it, and disks of other
    standards accept the bit and ignore it."""
    claims = ("host_honours_fua", "power_loss_protection")
    by_standard = disk["kind"] == "physical" and disk["transport"] in _FUA_IN_STANDARD
    return (
        by_standard
        or bool(_controller_keeps(disk))
        or _attestation_for(attestations, claims, disk) is not None
    )


def outlives_power(disk: DiskFacts, attestations: list[Attestation]) -> bool:
    """Return whether acknowledged writes of a disk survive a power cut: it does not cache, or is protected."""
    return disk["write_cache"]["device"] in ("none", "disabled") or is_protected(disk, attestations)


def is_protected(disk: DiskFacts, attestations: list[Attestation]) -> bool:
    """Return whether a disk's cache survives a power cut: it is attested, or its RAID controller reports it."""
    attestation = _attestation_for(attestations, ("power_loss_protection",), disk)
    return attestation is not None or bool(_controller_keeps(disk))


def of_disk(rests_on: str, disk: DiskFacts, attestations: list[Attestation]) -> Requirement:
    """Return the requirement of a guarantee for a disk; `rests_on` as in a profile."""
    name, claims, offered = _OF_DISK[rests_on]
    attestation = _attestation_for(attestations, claims, disk)
    observed = offered(disk) or _controller_keeps(disk)
    if observed:
        return Requirement(name, disk["name"], "met", observed, "", "")
    if attestation:
        return Requirement(name, disk["name"], "attested", attestation.sentence, "", "", attestation.expires)
    # A virtual disk may honour flushes, which only its host knows. A non-volatile cache and a UPS
    # must be verified.
    state = "unmet" if rests_on in ("non_volatile_cache", "ups") else "unverified"
    wrong, raid = fault_of_volume(disk), disk["raid"]
    if wrong and raid:
        return Requirement.failed(
            findings.VOLUME_EXPOSED
            if volume.is_exposed(raid) or disk["id"] is None
            else findings.VOLUME_LOSES,
            disk["name"],
            f"a RAID volume, {_state_of_volume(raid)}{_overruled(attestations, claims)}",
            name=name,
            state=state,
            cause=wrong.why,
            cure=wrong.remedy,
            id=str(disk["id"]),
        )
    kind = findings.FLUSH_NOT_SHOWN
    if disk["kind"] in _NOT_LASTING:
        kind = findings.NOT_KEPT
    elif disk["kind"] == disk_kinds.PHYSICAL and missing_tool(disk):
        kind = findings.TOOL_MISSING
    return Requirement.failed(
        kind,
        disk["name"],
        f"a {disk['kind']} disk, write cache {disk['write_cache']['device']}",
        name=name,
        state=state,
        where=_where(name, disk),
        claims=_claims_for(name, disk, claims),
        tool=missing_tool(disk),
    )


def how_named(disk: DiskFacts) -> str:
    """Return how a disk without an id comes to have one."""
    if disk["evidence"]["id"].get("cause") == "udev_unread":
        return f'make "udevadm info /sys/class/block/{disk["name"]}" work as root (package udev)'
    return disk_kinds.named_by(disk["place"])


def missing_tool(disk: DiskFacts) -> str:
    """Return the missing package of the program that queries a disk's cache, '' if it is installed."""
    tool = _TOOLS.get(disk["control"], "")
    return tool if disk["evidence"]["write_cache.device"].get("cause") == "no_program" else ""


def _where(name: str, disk: DiskFacts) -> str:
    """Return where to check whether a disk honours flushes; one without an id first needs one."""
    if _about(disk, _claim(name, disk)) is None:
        return how_named(disk)
    if nfs.is_export(disk):
        return "check that the server exports with sync and what its disks cache"
    return _CHECKED.get(disk["kind"], "check the disk's data sheet and its controller or hypervisor")


def _claims_for(name: str, disk: DiskFacts, claims: tuple[str, ...]) -> str:
    """Return the claims that meet a requirement of a disk, with what they must be about.

    One attestation for the host covers all disks of a hypervisor or a cloud, so that they share one reason.
    """
    target = _about(disk, _claim(name, disk))
    if target == HOST:
        return f"{_claim(name, disk)} for {target}"
    if _claim(name, disk) == "power_loss_protection" and disk["kind"] in _OF_THE_HOST:
        claims = ("power_loss_protection",)
    return f"{' or '.join(claims)} for {target or 'its id, once it has one'}"


def fault_of_volume(disk: DiskFacts) -> volume.Fault | None:
    """Return why the caches of a RAID volume do not survive a power cut, None if they do, if its controller was not
    queried, and for other disks."""
    raid = disk["raid"]
    return volume.fault(raid) if raid and raid["volume"] else None


def _controller_keeps(disk: DiskFacts) -> str | None:
    """Return the state of a RAID controller whose caches survive a power cut, or None."""
    raid = disk["raid"]
    if not raid or not raid["volume"] or volume.fault(raid):
        return None
    return f"its RAID controller says so: {_state_of_volume(raid)}"


def _state_of_volume(raid: RaidFacts) -> str:
    return (
        f"{raid['volume']}: write policy {raid['write_policy']}, battery or capacitor {raid['backup']}, caches of its"
        f" disks {raid['drive_caches']}"
    )


#: Requirement -> the claim that is requested first.
_FIRST_CLAIM = {
    "device_obeys": platforms.FLUSH,
    "flush_honoured": platforms.FLUSH,
    "cache_non_volatile": "power_loss_protection",
    "virtual_host_power": platforms.POWER,
}


def with_attestations(needed: Iterable[Requirement], storage: StorageFacts, today: str) -> list[Requirement]:
    """Return requirements; those that need an attestation, with the place to check on this platform, and its YAML.

    `storage` is `durable_storage`, `today` an ISO 8601 date.
    """
    by_name = {disk["name"]: disk for disk in storage["disks"]}
    return [
        _with_attestation(need, by_name.get(need.target), storage["platform"], today)
        if need.state in ("unmet", "unverified") and need.name in _FIRST_CLAIM
        else need
        for need in needed
    ]


def _with_attestation(need: Requirement, disk: DiskFacts | None, platform: str, today: str) -> Requirement:
    if need.id == findings.NOT_KEPT.id:
        return need
    claim = _claim(need.name, disk)
    target = _about(disk, claim)
    statement = platforms.statement(platform, claim) if target == HOST else None
    if statement:
        where = f"on {platforms.title(platform)} check {statement.look}"
        remedy = f"{where}, then {need.remedy}"
        if disk and need.id == findings.FLUSH_NOT_SHOWN.id:
            claims = _claims_for(need.name, disk, (claim,))
            remedy = findings.FLUSH_NOT_SHOWN.fix.format(where=where, claims=claims)
        need = need._replace(remedy=remedy)
    grounds = f"{statement.reason} ({statement.source})" if statement else ""
    if target is None or not is_plain(target) or (disk and fault_of_volume(disk)):
        return need  # No attestation is requested for a volume that its controller reports as unsafe.
    begin = datetime.date.fromisoformat(today)
    return need._replace(attest=tuple(written(claim, "", "", begin, target, grounds)))


def _claim(name: str, disk: DiskFacts | None) -> str:
    """Return the claim that is requested for a requirement."""
    if disk and name == "device_obeys" and not _may_be_off(disk):
        return "power_loss_protection"
    return _FIRST_CLAIM[name]


def _may_be_off(disk: DiskFacts) -> bool:
    """Return whether the cache of a disk is off, or can be disabled."""
    return disk["switchable"] == "yes" or disk["write_cache"]["device"] in ("none", "disabled")


def _about(disk: DiskFacts | None, claim: str) -> str | None:
    """Return the target of an attestation: the host, or a disk by its id (None without one).

    Disks of one hypervisor or cloud honour flushes alike.
    """
    if disk is None:
        return HOST
    if disk["kind"] in _OF_THE_HOST and claim in (platforms.FLUSH, platforms.FUA):
        return disk["id"] if _is_attested_alone(disk) else HOST
    return None if disk["id"] is None else str(disk["id"])


def _attestation_for(
    attestations: list[Attestation], claims: tuple[str, ...], disk: DiskFacts
) -> Attestation | None:
    """Return the attestation of a disk, or of all disks of its host.

    An attestation for the host does not cover a disk of unknown kind, which may be ephemeral, an array or an NFS server.
    The report of a RAID controller overrides an attestation for the host, and overrides all if it is losing writes now.
    """
    if volume.is_exposed(disk["raid"]):
        return None
    if _is_attested_alone(disk) or _is_reported_volatile(disk):
        attestations = [each for each in attestations if each.target == disk["id"]]
    return find_attestation(attestations, claims, disk["id"])


def _is_reported_volatile(disk: DiskFacts) -> bool:
    """Return whether the controller of a RAID volume reports that a power cut loses acknowledged writes."""
    found = fault_of_volume(disk)
    return found is not None and found.volatile == volume.VOLATILE


def _overruled(attestations: list[Attestation], claims: tuple[str, ...]) -> str:
    """Return the attestation for the host that the controller's report overrides, as text; '' without one."""
    attestation = find_attestation([each for each in attestations if each.target == HOST], claims, None)
    return (
        f"; this overrides {attestation.claim} for host, attested by {attestation.by} until {attestation.expires}"
        if attestation
        else ""
    )


def _is_attested_alone(disk: DiskFacts) -> bool:
    return disk["kind"] in (UNKNOWN, SAN) or nfs.is_export(disk)


def _device_obeys(disk: DiskFacts) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["device"] != UNKNOWN:
        return f"the device answers: write cache {disk['write_cache']['device']}"
    return None


def _flush_offered(disk: DiskFacts) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["device"] != UNKNOWN:
        return "a physical disk that takes flushes"
    return None


def _non_volatile(disk: DiskFacts) -> str | None:
    if disk["kind"] == "physical" and disk["write_cache"]["volatile"] == "non_volatile":
        return "the device reports no volatile cache"
    return None


_OF_DISK = {
    "device": ("device_obeys", ("host_honours_flush", "power_loss_protection"), _device_obeys),
    "flush": ("flush_honoured", ("host_honours_flush", "power_loss_protection"), _flush_offered),
    "ups": ("flush_honoured", ("host_honours_flush", "power_loss_protection"), _flush_offered),
    "non_volatile_cache": ("cache_non_volatile", ("power_loss_protection",), _non_volatile),
}


def _override(disk: DiskFacts, attestations: list[Attestation]) -> Requirement:
    claims = ("power_loss_protection", "host_honours_flush")
    attestation = _attestation_for(attestations, claims, disk)
    if attestation:
        attested = f"{attestation.claim}, attested by {attestation.by} until {attestation.expires}"
        return Requirement(
            "override_attested", disk["name"], "attested", attested, "", "", attestation.expires
        )
    about = disk["id"] or "its id, once it has one"
    requested = f"{' or '.join(claims)} for {about}"
    return Requirement.failed(findings.OVERRIDE, disk["name"], "no attestation", claims=requested)


_NOT_LASTING = {"ephemeral": "is lost when the machine is stopped or moved", "memory": "is lost at each boot"}


def _lasting(disk: DiskFacts) -> Requirement:
    return Requirement.failed(
        findings.DISK_LASTS,
        disk["name"],
        f"a disk of kind {disk['kind']}",
        disk=disk["name"],
        when=_NOT_LASTING[disk["kind"]],
    )


def _write_hole(mount: MountFacts, hole: WriteHoleFacts) -> Requirement:
    name = quoted(hole["name"])
    observed = (
        f"{name} ({hole['maker']}) is {quoted(hole['level'])} without a journal or a partial parity log"
    )
    return Requirement.failed(
        findings.WRITE_HOLE[hole["maker"]],
        mount["target"],
        observed,
        argument=shlex.quote(mount["target"]),
        name_of=name,
    )


#: State of a layer -> the requirement that it breaks.
_BROKEN_BY = {
    mapper_targets.TRANSIENT: findings.SNAPSHOT_IN_MEMORY,
    mapper_targets.TAGS_APART: findings.TAGS_APART,
    drbd.NO_COPY: findings.NO_COPY,
    drbd.NO_COPY_LATER: findings.NO_COPY_LATER,
}


def _of_layer(mount: MountFacts, layer: LayerFacts, attestations: list[Attestation]) -> list[Requirement]:
    """Return the requirements that the state of a layer breaks, with any disks below it; or its attestation."""
    attestation = find_attestation(attestations, (_PASSES,), layer["id"]) if can_attest(layer) else None
    if attestation:
        why = causes.text(layer["cause"]) if layer["cause"] else ""
        observed = f"{why}; {attestation.sentence}"
        return [Requirement(_PASSES, mount["target"], "attested", observed, "", "", attestation.expires)]
    broken = [_BROKEN_BY[each] for each in layer["state"].split(", ") if each in _BROKEN_BY]
    label = str(layer["label"] or layer["name"])
    observed = f"{label} is {layer['detail'] or layer['type']}, {layer['state']}"
    return [
        Requirement.failed(kind, mount["target"], observed, mount=mount["target"], layer=label)
        for kind in broken
    ]


def _flush_awaited(
    profile: Profile,
    mounts: list[MountFacts],
    disks: list[DiskFacts],
    attestations: list[Attestation],
) -> list[Requirement]:
    """Return an unmet requirement for each layer that acknowledges flushes too early or sends none, over disks that cache."""
    lossy = {
        disk["name"]
        for disk in disks
        # Such a profile enables a disabled cache.
        if profile.write_cache != "disabled"
        and disk["write_cache"]["device"] != "none"
        and not is_protected(disk, attestations)
    }
    found = []
    for mount in mounts:
        for layer in flush_passthrough.early_ack(mount):
            cached = [name for name in layer.disks if name in lossy]
            if cached:
                observed = f"{layer.label} has a partial parity log, over the caches of {', '.join(cached)}"
                found.append(
                    Requirement.failed(
                        findings.EARLY_ACKNOWLEDGED, mount["target"], observed, layer=layer.name
                    )
                )
        for layer, option in drbd.unflushed(mount):
            cached = [name for name in layer.disks if name in lossy]
            if cached:
                observed = f"{layer.label} is set to {option}, over the caches of {', '.join(cached)}"
                kind = findings.DRBD_UNFLUSHED if drbd.by_option(option) else findings.DRBD_ORDERING_UNFLUSHED
                found.append(Requirement.failed(kind, mount["target"], observed))
    return found


def _accepted(accepted: bool) -> Requirement:
    observed = f"durable_accept_data_loss is {str(accepted).lower()}"
    if accepted:
        return Requirement("data_loss_accepted", HOST, "met", observed, "", "")
    return Requirement.failed(kinds.LOSS_NOT_ACCEPTED, HOST, observed)


def only_database(mount: MountFacts) -> Requirement:
    """Return the requirement of a file system without barriers: it holds only listed databases."""
    observed = f"mounted at {', '.join(mount['targets'])}"
    kind, values = _not_only_databases(mount)
    if kind is None:
        return Requirement("only_database_paths", mount["target"], "met", observed, "", "")
    return Requirement.failed(kind, mount["target"], observed, **values)


def why_not_only_databases(mount: MountFacts) -> str:
    """Return why a file system needs barriers, '' if it holds only listed databases."""
    kind, values = _not_only_databases(mount)
    return kind.found(**values).reason if kind else ""


def _not_only_databases(mount: MountFacts) -> tuple[Kind | None, dict[str, str]]:
    """Return why a file system needs barriers, as an entry of the catalogue with its values; None if it does not."""
    wrong = [target for target in mount["targets"] if mount_settings.is_system(target)]
    if wrong:
        return findings.HOLDS_SYSTEM, {"mount": wrong[0]}
    if mount["fstype"] == "btrfs":
        return findings.ON_BTRFS, {"mount": mount["target"]}
    return None if mount.get("listed") else findings.NOT_LISTED, {"mount": mount["target"]}
