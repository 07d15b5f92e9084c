# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each setting of a host compared with its profile: the rows of the report.

Pure: facts in, rows out. A row that is not `ok` has the phase of its change:
`tighten` makes nothing less safe and always runs, `loosen` needs the requirements, and
`raise` makes the kernel flush again before other steps rely on a flush.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...facts.storage import BootFaultFacts, DiskFacts, MountFacts, StorageFacts, WriteCacheFacts
from ...host import our_paths
from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import command
from ...profiles import (
    KEEP,
    VALUES,
    Profile,
    rank,
)
from ...rows import FIX_READ_ERROR, MOVE, RUN, Setting, value_of
from ...storage import (
    caches,
    disk_kinds,
    ext4,
    findings,
    flush,
    flush_passthrough,
    kernel_cache_mode,
    known_options,
    mount_settings,
    multipath,
    nfs,
    zfs,
)
from ...storage.raid_controllers import volume
from ..expect.guarantees import Disk
from . import boot_rows, requirements
from .unchanged import left

#: The effect of a mount without barriers over disks whose caches are off, or survive a power cut.
_NOT_YET = "commits can be lost once a volatile cache is on, for example after a reset"
#: Persisted value of a setting that nothing sets at the next boot.
UNSET = "unset"


class Boot(NamedTuple):
    """The kernel's release, and the facts of boot faults."""

    release: str
    faults: tuple[BootFaultFacts, ...] = ()

    @classmethod
    def of(cls, storage: StorageFacts) -> Boot:
        """Return that of the facts of a host."""
        return cls(storage["kernel"], tuple(storage["boot_faults"]))

    def of_mount(self, mount: MountFacts, fault: str) -> list[BootFaultFacts]:
        """Return the faults of one kind that are about a mount."""
        return [
            each
            for each in self.faults
            if boot_rows.fault_of(each) == fault and each["target"] in mount["targets"]
        ]


def of_mount(mount: MountFacts, profile: Profile, boot: Boot, is_volatile: bool = True) -> list[Setting]:
    """Return the rows of one managed file system.

    `is_volatile`: whether a power cut empties a cache below it, or may.
    """
    rows = [_barrier(mount, profile, boot, is_volatile)]
    if nfs.is_nfs(mount["fstype"]):
        # The NFS server sets access times.
        return [*rows, _recovery(mount, boot)]
    if mount["fstype"] not in mount_settings.NO_DATA_MODE:
        rows.append(_data_mode(mount, profile, boot))
    if profile.atime != "keep" and mount["fstype"] != "raw":
        rows.append(_atime(mount, profile, boot))
    if not profile.keeps("sync") and mount["fstype"] != "raw":
        rows.append(_sync(mount, profile, boot))
    return rows


def of_disk(disk: DiskFacts, profile: Profile, attested: str | None = None) -> list[Setting]:
    """Return the rows of one disk below a managed file system.

    `attested`: the attestation that its cache is safe.
    """
    pending_flush = [_flush(disk, profile)] if disk["flush"] == "owed" else []
    if disk["raid"] and disk["raid"]["volume"]:
        wrong = volume.fault(disk["raid"])
        if not (wrong and attested):
            return [*pending_flush, _of_volume(disk, wrong)]
    if attested and (disk["switchable"] != "yes" or disk["write_cache"]["device"] == UNKNOWN):
        return [*pending_flush, _attested(disk, profile, attested)]
    cache = _write_cache(disk, profile)
    return [*pending_flush, cache, _kernel_cache_mode(disk, profile, cache.phase)]


def of_boot(
    faults: list[BootFaultFacts], mounts: list[MountFacts], every: list[MountFacts], release: str
) -> list[Setting]:
    """Return a row for each line or unit that prevents the boot or a managed mount.

    `faults` are the facts of what is wrong with the lines of fstab (storage/boot_faults.py); `mounts` are the managed
    ones, of all that there are; `release` is the kernel's.
    """
    managed = {target: mount for mount in mounts for target in mount["targets"]}
    found = [
        boot_rows.row(fault)
        for fault in faults
        if fault["boot"] != "optional" or fault["target"] in managed
        # A run removes the settings that XFS refuses.
        if fault["target"] not in managed or not _is_fixed(managed[fault["target"]], fault["options"])
    ]
    # A managed one has a row for its data=.
    others = (mount for mount in every if mount["target"] not in managed)
    return [*found, *(row for mount in others for row in _refused_at_boot(mount, release))]


def _refused_at_boot(mount: MountFacts, release: str) -> Iterator[Setting]:
    """Yield that the kernel refuses the options of a mount that the boot needs."""
    kernel, options = _conflict(mount, mount["persisted"]["data_mode"], release)
    if options and "required" in mount["boots"].values():
        yield boot_rows.row(
            {
                "source": _place(mount),
                "target": mount["target"],
                "fstype": mount["fstype"],
                "cause": "refused_combination",
                "state": "refused",
                "boot": "read_only" if "/" in mount["targets"] else "required",
                "parameters": {"does": kernel},
                "options": options,
            }
        )


def _is_fixed(mount: MountFacts, options: list[str]) -> bool:
    refused = mount_settings.REFUSED_BY.get(mount["fstype"], ())
    is_refused = mount["persisted"]["barrier"] == "refused"
    return is_refused and bool(options) and not mount_settings.others(options, refused)


def is_by_kernel(setting: str, source: str) -> bool:
    """Return whether only the kernel's command line sets a mount's setting at boot: it is not ours to
    edit. The journal's mode is stored in the superblock."""
    return setting != "data_mode" and source.startswith("rootflags of ")


def can_persist(setting: str, persisted: str, source: str) -> bool:
    """Return whether the layer has a place to write a mount's setting to."""
    return persisted not in (UNKNOWN, UNSET) and not is_by_kernel(setting, source)


def of_layers(
    mounts: list[MountFacts],
    disks: list[Disk],
    early: list[flush_passthrough.FlushLayer],
) -> list[Setting]:
    """Return a row for each layer between managed file systems and disks that should pass flushes
    on, and does not, or will not after the next boot: those over a disk that caches, or may after a reset.

    `disks`: those whose caches do not survive a power cut; `early`: the layers that the initramfs makes.
    """
    needing = {disk.facts["name"]: disk.facts for disk in disks if _may_cache(*disk)}
    first = {layer.name: layer for layer in early}
    rows = {}
    for layer in (layer for mount in mounts for layer in flush_passthrough.with_cache_mode(mount)):
        below = [needing[name] for name in layer.disks if name in needing]
        at_boot = _cache_mode_at_boot(layer, below, first) if below else "write back"
        if below and {layer.cache_mode, at_boot} != {"write back"}:
            rows[layer.label] = _layer_cache_mode(layer, at_boot, below, layer.name in first)
    return list(rows.values())


def of_multipath(mounts: list[MountFacts]) -> list[Setting]:
    """Return a row for each multipath device below managed file systems: whether writes wait when no path is left."""
    found = dict.fromkeys(each for mount in mounts for each in multipath.queueing(mount))
    return [_no_path_retry(each) for each in found]


def _no_path_retry(found: multipath.Queueing) -> Setting:
    # The administrator chooses how long writes wait: a cluster may have to continue.
    persisted = multipath.QUEUES if found.persisted == multipath.LIMITED else found.persisted
    verdict = judge("no_path_retry", found.running, persisted, multipath.QUEUES, live=True)
    unread = f"the handling of writes to {found.label} without a path could not be read"
    why = {
        multipath.FAILS: f"when the last path to {found.label} fails, writes and flushes end in errors: a server that goes on"
        " may take for stored what is not",
    }
    observed = (
        ("running", found.running, "dmsetup table"),
        ("persisted", found.persisted, " ".join(multipath.ASK)),
    )
    evidence = {
        when: {"value": value, "source": source, "reason": unread if value == UNKNOWN else None}
        for when, value, source in observed
    }
    return Setting.of(
        layer="write_cache",
        target=found.label,
        setting="no_path_retry",
        wanted=multipath.QUEUES,
        observed=(found.running, found.persisted),
        verdict=verdict,
        phase=None,
        evidence=evidence,
        why=reason(verdict, "no_path_retry", (found.running, persisted), why, evidence),
        remedy=_retry_remedy(found, verdict),
    )


def _retry_remedy(found: multipath.Queueing, verdict: str) -> str:
    if verdict == "ok":
        return ""
    if found.persisted == UNKNOWN and found.running != multipath.FAILS:
        return "run systemctl start multipathd, then run again"
    return (
        "set no_path_retry queue in the section overrides of /etc/multipath.conf, remove other values of it from the section"
        " multipaths, then run multipathd reconfigure"
    )


def _may_cache(disk: DiskFacts, profile: Profile) -> bool:
    device = str(disk["write_cache"]["device"])
    comes_back = kernel_cache_mode.is_pinned(disk) and disk["write_cache"].get("power_on") != "disabled"
    may_come_on = comes_back or profile.wanted("write_cache") != "disabled"
    return device != "none" and (device != "disabled" or may_come_on)


def _cache_mode_at_boot(
    layer: flush_passthrough.FlushLayer,
    below: list[DiskFacts],
    early: dict[str, flush_passthrough.FlushLayer],
) -> str:
    """Return the cache mode of a layer after the next boot, as far as the disks below tell.

    A layer of the initramfs gets it from the power-on state of the disks. Others are made after our rules have
    pinned the disks: they drop flushes only if no rule can pin a disk, or if a layer below drops them.
    """
    if layer.fixed:
        return layer.cache_mode
    if layer.name in early:
        if layer.cache_mode != "write back":
            return layer.cache_mode  # as this boot
        # Only SCSI disks are queried: they can store a disabled cache.
        states = {disk["write_cache"].get("power_on", "enabled") for disk in below}
        return "write back" if "enabled" in states else UNKNOWN if UNKNOWN in states else "write through"
    if any(early[name].cache_mode != "write back" for name in layer.over if name in early):
        return layer.cache_mode
    return "write back" if any(map(_is_flushed_at_boot, below)) else layer.cache_mode


def _is_flushed_at_boot(disk: DiskFacts) -> bool:
    """Return whether the kernel will flush a disk after the next boot: by a rule of ours, or as it does now."""
    cache = disk["write_cache"]
    return (_switchable(disk) and cache["device"] != UNKNOWN) or str(cache["kernel"]) == "write back"


def _layer_cache_mode(
    layer: flush_passthrough.FlushLayer, at_boot: str, below: list[DiskFacts], early: bool
) -> Setting:
    source = f"/sys/block/{layer.name}/queue/write_cache"
    names = ", ".join(disk["name"] for disk in below)
    verdict = judge("layer_cache_mode", layer.cache_mode, at_boot, "write back", live=at_boot != "write back")
    unread = f"whether {layer.label} passes flushes on to {names} could not be read"
    why = {
        "ok": "as wanted",
        "drift_persisted": f"at the next boot the initramfs makes {layer.label} over {names}, whose cache powers on"
        " as off, and it will drop flushes",
        UNKNOWN: unread
        if layer.cache_mode == UNKNOWN
        else f"{layer.label} is made before any rule of ours, and how the cache of {names} powers on could not be"
        f" read: {below[0]['evidence'].get('write_cache.power_on', NOTHING).get('reason')}",
    }.get(verdict, f"{layer.label} drops flushes to {names}: it was made when nothing below cached")
    return Setting.of(
        layer="write_cache",
        target=layer.label,
        setting="layer_cache_mode",
        wanted="write back",
        observed=(layer.cache_mode, at_boot),
        verdict=verdict,
        phase=None,
        evidence={
            "running": {
                "value": layer.cache_mode,
                "source": source,
                "reason": unread if layer.cache_mode == UNKNOWN else None,
            },
            "below": [disk["id"] or disk["name"] for disk in below],
        },
        why=why,
        remedy=_layer_remedy(layer, verdict, below, early),
    )


def _layer_remedy(
    layer: flush_passthrough.FlushLayer, verdict: str, below: list[DiskFacts], early: bool
) -> str:
    if verdict == "pending":
        return "reboot"
    ids = [str(disk["id"] or f"{disk['name']} by its id, once it has one") for disk in below]
    attest = f"attest power_loss_protection for {' and '.join(ids)}"
    if early:
        controls = [caches.CONTROLS[disk["control"]] for disk in below if disk["control"] in caches.CONTROLS]
        programs = sorted({name for control in controls for name in control.programs("enabled")})
        return f"add {' and '.join([our_paths.CACHE_RULES, *programs])} to the initramfs, or {attest}"
    if layer.cache_mode == UNKNOWN:
        return f"make /sys/block/{layer.name}/queue/write_cache readable, or {attest}"
    mapped = [name for name in reversed(layer.over) if name.startswith("dm-")]
    if mapped:
        tables = " and then ".join((*mapped, layer.label))
        return f"with the databases down, {_reloaded(tables)}, or {attest}"
    if any(disk["place"] == "nowhere" for disk in below):
        return findings.NOT_KEPT.fix
    names = ", ".join(disk["name"] for disk in below)
    places = dict.fromkeys(disk_kinds.PLACES[disk["place"]] for disk in below)
    return f"set the cache of {names} to disabled {' and '.join(places)}, or {attest}"


def _barrier(mount: MountFacts, profile: Profile, boot: Boot, is_volatile: bool) -> Setting:
    can_be_off = "barrier" in mount_settings.SETTINGS_OF.get(mount["fstype"], ()) or mount["barrier"] == "off"
    wanted = profile.wanted("barrier") if can_be_off else "on"
    loss = "acknowledged commits can be lost" if is_volatile else _NOT_YET
    why = {
        "off": f"{mount['target']} does not flush the disk: {loss}",
        "on": f"{mount['target']} flushes the disk at each commit",
        "refused": f"the next boot cannot mount {mount['target']}: its options are unknown to XFS",
    }
    return left(_mount_row(mount, "barrier", wanted, why, boot), profile)


def _data_mode(mount: MountFacts, profile: Profile, boot: Boot) -> Setting:
    why = {
        "writeback": f"after a crash, files on {mount['target']} may show old blocks' content",
        "none": f"{mount['target']} has no journal: nothing is known to bring it back after a crash",
        "refused": f"{mount['target']} stays read-only",
    }
    row = _mount_row(mount, "data_mode", profile.wanted("data_mode"), why, boot, live=False)
    is_refused = row.persisted == "refused"
    row = row if is_refused else left(row, profile)
    named = mount_settings.fold(mount["options_boot"] or ()).get("data_mode")
    if "/" in mount["targets"] and row.phase and named and not is_refused:
        # Changed there, it would fail the remount at boot and leave the root read-only.
        remedy = f"remove data={named} from rootflags= and from the line of / in /etc/fstab, run harden_db, then reboot"
        return row._replace(phase=None, remedy=remedy)
    mode = profile.data_mode if row.phase and not is_refused else row.persisted
    kernel, conflict = _conflict(mount, mode, boot.release)
    if conflict:
        return _conflicting(row, mount, kernel, conflict)
    if "none" in (row.running, row.persisted):
        # data= cannot be set without a journal, and no rule here calls that safe.
        return row._replace(verdict=UNKNOWN, phase=None, why=why["none"], remedy=_add_journal(mount))
    return row


def _add_journal(mount: MountFacts) -> str:
    add, target = command("tune2fs", "-j", mount["source"]), mount["target"]
    passed_by = [option for option in mount["options_boot"] or () if option in ext4.WITHOUT_JOURNAL]
    if passed_by or mount["persisted"]["data_mode"] in mount_settings.DATA_MODES:
        # It has a journal.
        removed = f"remove {', '.join(passed_by)} from {_place(mount)}, then " if passed_by else ""
        again = "reboot" if "/" in mount["targets"] else f"unmount and mount {target} with its databases down"
        return f"{removed}{again}"
    kind = f", set its type to ext4 in {_place(mount)}" if mount["fstype"] == "ext2" else ""
    if "/" in mount["targets"]:
        return f"run {add}{kind}, then reboot"
    return f"run {add}{kind}, then unmount and mount {target} with its databases down"


def _conflict(mount: MountFacts, mode: str, release: str) -> tuple[str, list[str]]:
    """Return what the kernel refuses at the next boot, as text, and the options that request it."""
    options = mount["options_boot"] or []
    if mode == "refused":
        return "makes / writable only without", [option for option in options if option.startswith("data=")][
            -1:
        ]
    refused = ext4.refused_with(mode, options)
    if refused:
        return f"refuses data={mode} together with", refused
    if "/" not in mount["targets"] or mode == UNKNOWN:
        return "", []
    # The options of the line come last. Those of a line for another mount point of the root have no known predecessors.
    line = mount["options_fstab"] or []
    count = len(options) - len(line)
    first, line = (options[:count], line) if options[count:] == line else ([], options)
    return "makes / writable only without", ext4.refused_at_boot(mode, first, line, release)


def _conflicting(row: Setting, mount: MountFacts, kernel: str, options: list[str]) -> Setting:
    """Return a row for refused options: the next boot leaves / read-only, others unmounted. `kernel`: its action."""
    names = ", ".join(options)
    source = _place(mount)
    why = f"the kernel {kernel} {names}, which {source} names for {mount['target']}"
    remedy = f"remove {names} from {source}, then run again"
    if row.phase:
        return row._replace(phase=None, why=f"{row.why}; {why}", remedy=remedy)
    why = f"the next boot cannot mount {mount['target']} for writing: {why}"
    return row._replace(verdict="drift_persisted", why=why, remedy=remedy)


def _recovery(mount: MountFacts, boot: Boot) -> Setting:
    gives_up = f"{mount['target']} gives writes up when its server does not answer in time: data can be lost"
    return _mount_row(mount, "recovery", nfs.HARD, {"soft": gives_up, "softerr": gives_up}, boot)


def _atime(mount: MountFacts, profile: Profile, boot: Boot) -> Setting:
    why = {"relatime": f"reading a file on {mount['target']} can write to the disk"}
    return _mount_row(mount, "atime", profile.atime, why, boot, klass="performance")


def _sync(mount: MountFacts, profile: Profile, boot: Boot) -> Setting:
    why = {
        "async": f"{mount['target']} is mounted async: writes without a sync call do not wait for the disk",
        "sync": f"{mount['target']} is mounted sync: each write waits for the disk",
    }
    return _mount_row(mount, "sync", profile.sync, why, boot)


def _mount_row(
    mount: MountFacts,
    setting: str,
    wanted: str,
    why: dict[str, str],
    boot: Boot,
    live: bool = True,
    klass: str = "safety",
) -> Setting:
    running = mount_settings.running(mount, setting)
    persisted = mount_settings.persisted(mount, setting)
    # A mount that waits for access has no running value.
    verdict = judge(setting, wanted if mount_settings.waits(mount) else running, persisted, wanted, live)
    known = (
        mount["fstype"] in mount_settings.SETTINGS_OF
        and mount["hidden_in"] is None
        and not mount_settings.waits(mount)
    )
    evidence = _evidence_of(mount, setting)
    can_change = known and (
        verdict == "drift_running" or can_persist(setting, persisted, evidence["persisted"]["source"])
    )
    phase = None
    if verdict.startswith("drift") and can_change:
        phase = _direction(setting, (running, persisted), wanted)
    mask, target = _mask(mount), mount["target"]
    unset = f"{mask} masks the unit of {target}" if mask else f"nothing in /etc/fstab mounts {target}"
    why = {UNSET: unset, **why}
    row = Setting.of(
        layer="mount_options",
        target=mount["target"],
        setting=setting,
        wanted=wanted,
        observed=(running, persisted),
        verdict=verdict,
        phase=phase,
        evidence=evidence,
        why=reason(verdict, setting, (running, persisted), why, evidence),
        remedy=_mount_remedy(mount, setting, wanted, verdict, phase, persisted, _new_line(mount, boot)),
        klass=klass,
    )
    stuck = _refused_still(mount, setting, wanted, boot) if phase and verdict == "drift_persisted" else []
    if stuck:
        remedy = f"correct or remove {', '.join(stuck)} in {_place(mount)}"
        return row._replace(phase=None, remedy=remedy)
    return row


def _evidence_of(mount: MountFacts, setting: str) -> dict[str, Any]:
    """Return the evidence of the running and the persisted value of a setting."""
    name = mount_settings.read_with(mount, setting)
    running = mount["evidence"]["atime" if setting == "sync" else name]
    persisted = mount["evidence"][f"persisted.{name}"]
    if setting != "sync":
        return {"running": running, "persisted": persisted}
    return {
        "running": {**running, "value": mount_settings.running(mount, setting)},
        "persisted": {**persisted, "value": mount_settings.persisted(mount, setting)},
    }


def _refused_still(mount: MountFacts, setting: str, wanted: str, boot: Boot) -> list[str]:
    """Return the options that the kernel would refuse after a run has written a setting.

    For current options the faults decide, because the kernel was queried. For others, and for unknown ones, the table decides.
    """
    fstype = mount["fstype"]
    remaining = mount_settings.drop(
        tuple(mount["options_boot"] or ()), mount_settings.REFUSED_BY.get(fstype, ())
    )
    values = {setting: wanted} if setting in mount_settings.SETTINGS_OF[fstype] else {}
    options = mount_settings.replace(remaining, values, fstype)
    found = boot.of_mount(mount, "options")
    refused = {option for fault in found if fault["state"] != UNKNOWN for option in fault["options"]}
    unsure = {option for fault in found if fault["state"] == UNKNOWN for option in fault["options"]}
    by_table = {
        option
        for option in known_options.refused_by(fstype, options, boot.release)
        if option not in mount["options_running"] and (option not in remaining or option in unsure)
    }
    return [option for option in options if option in refused | by_table]


def _place(mount: MountFacts) -> str:
    """Return the line or file that mounts it at the next boot."""
    return str(mount["evidence"]["persisted.atime"]["source"])


def _mask(mount: MountFacts) -> str:
    """Return the file that masks the unit of a mount that nothing mounts at the next boot, '' without one."""
    return _place(mount) if mount["persisted"]["atime"] == UNSET and "/systemd/" in _place(mount) else ""


#: Mount points that ostree makes, and no line of fstab.
_OSTREE = ("/sysroot/", "/etc/", "/usr/")


def _mount_remedy(
    mount: MountFacts,
    setting: str,
    wanted: str,
    verdict: str,
    phase: str | None,
    persisted: str,
    new_line: str,
) -> str:
    if verdict == "ok":
        return ""
    if verdict == "pending":
        return f"reboot, or unmount and mount {mount['target']} when its database is down"
    if phase:
        return RUN
    if mount["hidden_in"] is not None:
        return f"mount it by the host's /etc/fstab and pass it to {mount['hidden_in']} as a volume"
    if mount_settings.waits(mount) and verdict == "drift_persisted" and persisted != UNSET:
        return f"mount it ({command('ls', mount['target'])}), then run harden_db"
    if setting == "barrier" and mount["fstype"] in ("jfs", "zfs"):
        if verdict == UNKNOWN:
            return FIX_READ_ERROR
        jfs = "move the data to ext4 or XFS: JFS sends no flushes with any mount option"
        return _zfs_remedy(mount) if mount["fstype"] == "zfs" else jfs
    if nfs.is_nfs(mount["fstype"]):
        return _nfs_remedy(mount, persisted)
    if mount["fstype"] not in mount_settings.SETTINGS_OF:
        return MOVE
    return _boot_remedy(mount, setting, wanted, verdict, persisted, new_line)


def _nfs_remedy(mount: MountFacts, persisted: str) -> str:
    again = f"then unmount and mount {mount['target']} with its databases down"
    source = str(mount["evidence"]["persisted.recovery"]["source"])
    if "/nfsmount.conf" in source:
        return FIX_READ_ERROR if persisted == UNKNOWN else f"remove {persisted} from {source}, {again}"
    if persisted in (UNSET, UNKNOWN):
        return f"add a line for {mount['target']} with the option hard to /etc/fstab, {again}"
    if persisted == nfs.HARD:
        return f"unmount {mount['target']} and mount it by {_place(mount)} with its databases down"
    return f"set hard in place of {persisted} in {_place(mount)}, {again}"


def _zfs_remedy(mount: MountFacts) -> str:
    """Return the fix that makes ZFS flush, for each cause: the property, the module's parameters, the next boot's mount."""
    observed = [mount["evidence"][field] for field in ("barrier", "persisted.barrier")]
    off = [str(each["source"]) for each in observed if each["value"] == "off"]
    found = []
    if any(source.startswith("zfs get ") for source in off):
        found.append(f"run {command('zfs', 'set', 'sync=standard', mount['source'])}")
    elsewhere = [source for source in off if not source.startswith(("zfs get ", zfs.PARAMETERS))]
    if elsewhere:
        images = (
            ", run update-initramfs -u or dracut -f" if elsewhere[0].startswith("/etc/modprobe.d/") else ""
        )
        found.append(
            f"remove zfs_nocacheflush, zil_nocacheflush and zil_replay_disable from {elsewhere[0]}{images}"
        )
    if any(source.startswith(zfs.PARAMETERS) for source in off):
        found.append(f"write 0 to zfs_nocacheflush and zil_nocacheflush in {zfs.PARAMETERS}")
    if observed[1]["value"] == UNSET and "/" in mount["targets"]:
        found.append(f"set root=ZFS={mount['source']} in the boot loader's entries")
    elif observed[1]["value"] == UNSET:
        mounts = command("zfs", "set", "canmount=on", f"mountpoint={mount['target']}", mount["source"])
        found.append(f"with its databases down, run {mounts}")
    return ", and ".join(found) or FIX_READ_ERROR


def _new_line(mount: MountFacts, boot: Boot) -> str:
    """Return the fix that makes a line of fstab mount this file system and no copy of it, '' without a copy."""
    found = boot.of_mount(mount, "copies") if mount["persisted"]["atime"] == UNSET else []
    return boot_rows.texts(found[0])[1] if found else ""


def _boot_remedy(
    mount: MountFacts, setting: str, wanted: str, verdict: str, persisted: str, new_line: str
) -> str:
    """Return the fix that gives a mount its options at the next boot."""
    if persisted == UNSET and _mask(mount):
        return f"run {command('systemctl', 'unmask', posixpath.basename(_mask(mount)))}"
    if persisted == UNSET and new_line:
        return new_line
    if persisted == UNSET and _is_of_ostree(mount):
        return (
            f"add no line for {mount['target']} to /etc/fstab: on an ostree host the initramfs mounts it. Move the data to"
            " another file system, with a line of /etc/fstab by UUID"
        )
    source = str(_evidence_of(mount, setting)["persisted"]["source"])
    if persisted != UNSET and verdict == "drift_persisted" and is_by_kernel(setting, source):
        return _rootflags_remedy(mount, setting, wanted, source)
    if persisted == UNSET or verdict == "drift_persisted":
        return (
            f"add a line for {mount['target']} with the UUID of {mount['source']} (blkid) to /etc/fstab, or set the options in"
            " the cluster manager that mounts it"
        )
    return FIX_READ_ERROR


def _rootflags_remedy(mount: MountFacts, setting: str, wanted: str, source: str) -> str:
    """Return the fix that makes the initramfs mount the root with a setting: fstab cannot revert it."""
    present = [
        option
        for option in mount["options_boot"] or ()
        if (mount_settings.meaning(option) or ("",))[0] == setting
    ]
    option = mount_settings.spell(setting, wanted, mount["fstype"])
    # The command line of the running kernel is in no file.
    place = source.replace("rootflags of this boot", "rootflags= of the boot loader's entry of this boot")
    if setting == "barrier" and present and wanted == "on":
        return f"remove {', '.join(present)} from {place}"
    return f"set {option}{f' in place of {chr(44).join(present)}' if present else ''} in {place}"


def _is_of_ostree(mount: MountFacts) -> bool:
    """Return whether a deployment of ostree makes a mount: its initramfs mounts directories of one file system at these."""
    return any(f"{target}/".startswith(_OSTREE) for target in mount["targets"])


def _flush(disk: DiskFacts, profile: Profile) -> Setting:
    """Return the row of a pending flush: a run was killed before it, and the cache is still full."""
    evidence = {"value": "owed", "source": f"{flush.OWED}/{disk['name']}", "reason": None}
    phase = "raise" if _switchable(disk) else None
    return Setting.of(
        layer="write_cache",
        target=disk["id"] or disk["name"],
        setting="flush",
        wanted="done",
        observed=("owed", "done"),
        verdict="drift_running",
        phase=phase,
        evidence={"disk": disk["name"], "running": evidence},
        why=f"a run ended before it flushed {disk['name']}: older commits may still be in its cache",
        remedy=_disk_remedy(disk, profile, "flush", "drift_running", phase),
    )


def _write_cache(disk: DiskFacts, profile: Profile) -> Setting:
    cache = disk["write_cache"]
    wanted = "none" if cache["device"] == "none" else profile.wanted("write_cache")
    running, persisted = cache["device"], cache["persisted"]
    # Below a layer that drops flushes, the cache is enabled at the next boot, which recreates the layer.
    live = not (disk["flush_blocked_by"] and (running, wanted) == ("disabled", "enabled"))
    verdict = judge("write_cache", running, persisted, wanted, live)
    if verdict == "drift_persisted" and _powers_on_as_it_is(disk, wanted):
        verdict = "ok"
    phase = None
    if verdict.startswith("drift") and _switchable(disk):
        # Unset is as weak as enabled: most disks power on so.
        observed = (running, "enabled" if persisted == UNSET else persisted)
        phase = _direction("write_cache", observed, wanted)
    name = disk["name"]
    why = {
        "enabled": f"{name} keeps writes in a cache that a power cut empties",
        "disabled": f"{name} answers a write when it is on the medium",
        UNSET: f"no rule sets the cache of {name}, so its own default applies",
    }
    row = _disk_row(disk, profile, "write_cache", wanted, (running, persisted), verdict, phase, why)
    row = left(row, profile)
    if verdict == "pending" and cache.get("power_on") in ("disabled", UNKNOWN):
        # It powers on as off, and the initramfs makes layers over that, at each boot.
        layers = ", ".join(disk["flush_blocked_by"])
        remedy = f"with the databases down, {_reloaded(layers)}, then run harden_db"
        return row._replace(verdict="drift_running", remedy=remedy)
    return row


def _powers_on_as_it_is(disk: DiskFacts, wanted: str) -> bool:
    """Return whether an enabled cache needs no rule: the disk can have none, and the kernel queries the disk at
    each boot, so the kernel cache mode is never weaker than the cache."""
    running = disk["write_cache"]["device"]
    not_persisted = disk["write_cache"]["persisted"] == UNSET and not _switchable(disk)
    return not_persisted and running == wanted == "enabled" and not kernel_cache_mode.needs_rule(disk)


def _reloaded(names: str) -> str:
    """Return the command that makes device-mapper devices read the cache mode below them again.

    LVM does not reload an unchanged table, and `dmsetup table` hides the key of LUKS.
    """
    return f"load the tables of {names} again (LUKS: cryptsetup refresh, others: dmsetup reload and dmsetup resume)"


def _attested(disk: DiskFacts, profile: Profile, attested: str) -> Setting:
    """Return the row of a cache that this host cannot switch, from its attestation."""
    cache = disk["write_cache"]
    observed = (cache["device"], cache["persisted"])
    row = _disk_row(disk, profile, "write_cache", "attested", observed, "ok", None, {})
    return row._replace(evidence={**row.evidence, "attested": attested}, why=attested)


def _of_volume(disk: DiskFacts, wrong: volume.Fault | None) -> Setting:
    """Return the row of the caches of a RAID volume, as its controller reports them: no run switches them."""
    evidence = disk["evidence"]["write_cache.volatile"]
    running = wrong.volatile if wrong else volume.NON_VOLATILE
    verdict = judge("write_cache", running, running, volume.NON_VOLATILE, live=True)
    return Setting.of(
        layer="write_cache",
        target=disk["id"] or disk["name"],
        setting="write_cache",
        wanted=volume.NON_VOLATILE,
        observed=(running, running),
        verdict=verdict,
        phase=None,
        evidence={"disk": disk["name"], "running": evidence, "persisted": evidence},
        why=wrong.why if wrong else "as wanted",
        remedy=wrong.remedy if wrong else "",
    )


def _kernel_cache_mode(disk: DiskFacts, profile: Profile, cache_phase: str | None) -> Setting:
    """Return the row of the kernel cache mode: the kernel flushes only a disk whose mode is write back."""
    cache = disk["write_cache"]
    running = cache["kernel"]
    lie = running == "write through" and cache["device"] == "enabled"
    # The contents of a cache must be flushed before it is disabled.
    wanted = "write back" if lie else wanted_cache_mode(disk, profile)
    # The same rule that sets the cache pins the kernel cache mode.
    persisted = running if cache["persisted"] == "none" else _pinned(disk)
    # A mode that another component lowers, or may lower, despite our rule.
    lowered = _lowered(cache)
    persisted = lowered or persisted
    verdict = judge("kernel_cache_mode", running, persisted, wanted, live=True)
    if verdict == "drift_running" and running == "write back":
        verdict = "ok"  # stronger than needed: flushes that do nothing
    # A cache that is left enabled is the same after a reset.
    needs_rule = kernel_cache_mode.needs_rule(disk) and not (
        profile.keeps("write_cache") and cache["device"] == "enabled"
    )
    if verdict == "drift_persisted" and cache["persisted"] == UNSET and not needs_rule and not lowered:
        verdict = "ok"  # the kernel queries the device at each boot
    # One rule persists both: without a change of the cache there is none.
    phase = cache_phase if verdict == "drift_persisted" else None
    if verdict == "drift_running" and _switchable(disk) and cache["device"] != UNKNOWN:
        # Without a pin, the kernel cache mode follows the cache.
        phase = "raise" if lie else "tighten" if kernel_cache_mode.is_pinned(disk) else None
    name = disk["name"]
    why = {
        "write through": f"the kernel cache mode of {name} is write through: the kernel sends it no flush",
        UNSET: f"no udev rule restores the kernel cache mode of {name} after a device reset: the kernel sends flushes"
        " only in this mode, and a reset can enable the cache again",
    }
    row = _disk_row(disk, profile, "kernel_cache_mode", wanted, (running, persisted), verdict, phase, why)
    if lowered is None:
        return row
    return row._replace(
        evidence={**row.evidence, "persisted": disk["evidence"]["write_cache.kernel_persisted"]}
    )


def _lowered(cache: WriteCacheFacts) -> str | None:
    """Return the kernel cache mode, or UNKNOWN, to which another component lowers it at the next boot, or None."""
    found = cache.get("kernel_persisted") if cache["device"] != "none" else None
    return found if found in ("write through", UNKNOWN) else None


#: Setting of a disk -> the field of the facts where its running value was observed.
_OBSERVED_AS = {"write_cache": "write_cache.device", "kernel_cache_mode": "write_cache.kernel"}


def _disk_row(
    disk: DiskFacts,
    profile: Profile,
    setting: str,
    wanted: str,
    observed: tuple[str, str],
    verdict: str,
    phase: str | None,
    why: dict[str, str],
) -> Setting:
    evidence = {
        "disk": disk["name"],
        "running": disk["evidence"][_OBSERVED_AS[setting]],
        "persisted": disk["evidence"]["write_cache.persisted"],
    }
    return Setting.of(
        layer="write_cache",
        target=disk["id"] or disk["name"],
        setting=setting,
        wanted=wanted,
        observed=observed,
        verdict=verdict,
        phase=phase,
        evidence=evidence,
        why=f"{reason(verdict, setting, observed, why, evidence)}{_nameless(disk, verdict)}",
        remedy=_disk_remedy(disk, profile, setting, verdict, phase),
    )


def wanted_cache_mode(disk: DiskFacts, profile: Profile) -> str:
    """Return the expected kernel cache mode of a disk."""
    device = disk["write_cache"]["device"]
    if device == "none":
        return str(disk["write_cache"]["kernel"])
    return kernel_cache_mode.for_state(disk, device if profile.keeps("write_cache") else profile.write_cache)


def _pinned(disk: DiskFacts) -> str:
    persisted = disk["write_cache"]["persisted"]
    if persisted in (UNSET, UNKNOWN):
        return str(persisted)
    return kernel_cache_mode.for_state(disk, str(persisted))


def _switchable(disk: DiskFacts) -> bool:
    return disk["switchable"] == "yes" and disk["id"] is not None


def _nameless(disk: DiskFacts, verdict: str) -> str:
    """Return why no setting of a disk can be persisted, '' for one with an id."""
    if disk["id"] is not None or verdict == "ok":
        return ""
    return f"; {disk['name']} has no id, so no setting can be persisted for it: {disk['evidence']['id']['reason']}"


def _disk_remedy(disk: DiskFacts, profile: Profile, setting: str, verdict: str, phase: str | None) -> str:
    if verdict == "ok":
        return ""
    if phase:
        return RUN
    if disk["kind"] in (disk_kinds.MEMORY, disk_kinds.EPHEMERAL):
        return findings.NOT_KEPT.fix
    if disk["id"] is None:
        return requirements.how_named(disk)
    if verdict == "pending":
        return "reboot"
    if disk["flush"] == "owed":
        name = disk["name"]
        return (
            f'reboot, or write "write back" to /sys/block/{name}/queue/write_cache, run sync /dev/{name}, then remove'
            f" {flush.OWED}/{name}"
        )
    if disk["multipath"] == "yes":
        return f"{_elsewhere(disk, profile, setting)}, which all paths share"
    if disk["switchable"] == "yes" and disk["write_cache"]["device"] == UNKNOWN:
        tool = requirements.missing_tool(disk)
        cure = f"install {tool}" if tool else "correct the error that the reason names"
        return f"{cure}, or attest power_loss_protection for {disk['id']}"
    if disk["switchable"] == "yes":
        # A run switches it. Other settings follow the cache, or could not be read.
        return FIX_READ_ERROR if verdict == UNKNOWN else RUN
    return _elsewhere(disk, profile, setting)


def _elsewhere(disk: DiskFacts, profile: Profile, setting: str) -> str:
    """Return the fix for a cache that no run switches: an attestation, or a setting elsewhere."""
    attest = f"attest {' or '.join(requirements.make_up(profile, disk))} for {disk['id']}"
    device, wanted = disk["write_cache"]["device"], profile.wanted("write_cache")
    if setting != "write_cache":
        # A disabled cache needs no flush.
        wanted = "disabled" if device == "enabled" else KEEP
    place = disk_kinds.PLACES[disk["place"]]
    if wanted in (KEEP, device) or (device, wanted) == (UNKNOWN, "enabled"):
        return attest
    return f"set the write cache to {wanted} {place}, {'then' if device == UNKNOWN else 'or'} {attest}"


def judge(setting: str, running: str, persisted: str, wanted: str, live: bool) -> str:
    """Return the verdict on a setting; `live`: whether a running system can change it."""
    persists = mount_settings.satisfies(setting, persisted, wanted)
    if running != UNKNOWN and not mount_settings.satisfies(setting, running, wanted):
        if live:
            return "drift_running"
        if persisted != UNKNOWN:
            return "pending" if persists else "drift_persisted"
    if UNKNOWN in (running, persisted):
        return UNKNOWN
    return "ok" if persists else "drift_persisted"


def _direction(setting: str, observed: Iterable[str], wanted: str) -> str:
    if setting == "atime":
        return "tighten"
    # Accepted values are skipped: a running data=journal does not make "ordered at boot" weaker.
    differing = [value for value in observed if not mount_settings.satisfies(setting, value, wanted)]
    known = [rank(setting, value) for value in differing if value in VALUES[setting]]
    return "loosen" if any(now > rank(setting, wanted) for now in known) else "tighten"


def reason(
    verdict: str, setting: str, row: tuple[str, str], meanings: dict[str, str], evidence: dict[str, Any]
) -> str:
    """Return the meaning of a drifting value, or why a value is unknown."""
    running, persisted = row
    if verdict == "ok":
        return "as wanted"
    if verdict == UNKNOWN:
        when = "running" if running == UNKNOWN else "persisted"
        return evidence[when]["reason"] or f"{setting} could not be read"
    if verdict == "drift_persisted":
        return meanings.get(persisted, value_of(setting, persisted))
    return meanings.get(running, value_of(setting, running))
