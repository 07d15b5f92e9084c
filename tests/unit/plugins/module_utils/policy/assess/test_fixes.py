# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a finding is reported by its cause: each cause has a fix of its own, with its commands and names."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import caused
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import (
    requirements,
    risks,
    settings,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.guarantees import Disk
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FIX_READ_ERROR, MOVE
from ansible_collections.durable.dbhost.plugins.module_utils.storage import flush_passthrough
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import NOW, shipped
from ...fakes.small_host import BigHost, SmallHost

SATA = "serial:QEMU_HARDDISK_SATA0001"
NOT_KEPT = "move the data to a persistent disk"
NO_FILE = caused(
    "unknown", "hdparm -W /dev/sda", "no_program", error="hdparm: No such file or directory"
).as_dict()


def profile(name: str) -> Any:
    return choose(name, shipped(), {}, {})[0]


def disk(name: str = "sda", device: str = "unknown", kernel: str = "write back", **changes: Any) -> Any:
    """Return the facts of a disk whose cache no run switches, with others of its facts replaced."""
    found = next(each for each in collect(BigHost(), NOW)["disks"] if each["name"] == name)
    cache = {**found["write_cache"], "device": device, "kernel": kernel}
    evidence = {**found["evidence"], **changes.pop("evidence", {})}
    return {**found, "switchable": "no", **changes, "write_cache": cache, "evidence": evidence}


def layer(kind: str, detail: str = "", known: str = "", below: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": "dm-9",
        "label": "pg",
        "type": kind,
        "detail": detail,
        "id": known,
        "below": list(below),
        "cause": {"cause": "no_rule_for_layer", "parameters": {}},
    }


@pytest.mark.parametrize(
    ("given", "seen", "kind", "cure"),
    [
        (
            [layer("unknown", "device-mapper vdo", "dm:x", ("sda",))],
            ["sda"],
            "unknown.stack.no_rule",
            "move the data, or, if you know that each flush passes through it, attest layer_passes_flushes for dm:x",
        ),
        ([layer("unknown", "md")], ["sda"], "unknown.stack.not_supported", MOVE),
        (
            [layer("unknown", "DRBD")],
            ["sda"],
            "unknown.stack.drbd",
            "run drbdadm connect for its resource, and wait until drbdadm status shows UpToDate for this node",
        ),
        (
            [layer("unknown", "device-mapper")],
            ["sda"],
            "unknown.stack.table",
            'make "dmsetup table" work as root, then run again',
        ),
        (
            [layer("unknown", "loop")],
            ["sda"],
            "unknown.stack.loop",
            'make "losetup --list" work as root and keep the file system that holds its file mounted, then run again',
        ),
        (
            [layer("multipath", "multipath", "dm:mpath-x")],
            [],
            "unknown.stack.paths",
            "restore its paths (multipath -ll), then run again",
        ),
        # One that can be corrected comes before one that somebody can vouch for.
        (
            [layer("unknown", "device-mapper vdo", "dm:x", ("sda",)), layer("unknown", "DRBD")],
            ["sda"],
            "unknown.stack.drbd",
            "run drbdadm connect for its resource, and wait until drbdadm status shows UpToDate for this node",
        ),
        ([], ["sda"], "unknown.stack", FIX_READ_ERROR),
    ],
)
def test_a_stack_that_is_not_understood(given: list[Any], seen: list[str], kind: str, cure: str) -> None:
    mount = {
        "target": "/srv/x",
        "fstype": "ext4",
        "disks": "unknown",
        "disks_seen": seen,
        "stack": given,
        "devices_missing": [] if given else [{"cause": "no_block_device", "parameters": {"number": "8:9"}}],
        "evidence": {"disks": {"reason": "why"}},
    }
    _disks, (reason,) = risks.leaves({"disks": [{"name": "sda"}]}, [mount])
    assert (reason.id, reason.fix) == (kind, cure)
    nowhere = {**mount, "fstype": "tmpfs", "disks_seen": []}
    _disks, (reason,) = risks.leaves({"disks": []}, [nowhere])
    assert (reason.id, reason.fix) == ("unknown.stack.not_supported", MOVE)


@pytest.mark.parametrize(
    ("given", "rests_on", "kind", "cure"),
    [
        (
            disk(kind="physical", evidence={"write_cache.device": NO_FILE}),
            "flush",
            "requirement.device_obeys.tool_missing",
            f"install hdparm on this host, or attest host_honours_flush or power_loss_protection for {SATA}",
        ),
        (
            disk(kind="physical"),
            "flush",
            "requirement.device_obeys",
            f"check the disk's data sheet, then attest host_honours_flush or power_loss_protection for {SATA}",
        ),
        (disk(kind="memory"), "device", "requirement.device_obeys.memory", NOT_KEPT),
        (disk(kind="ephemeral"), "flush", "requirement.device_obeys.memory", NOT_KEPT),
        (
            disk(kind="virtual"),
            "flush",
            "requirement.device_obeys",
            "check the hypervisor's cache mode, then attest host_honours_flush for host",
        ),
        (
            # Its cache cannot be switched off from here, so that it passes flushes on does not do.
            disk(kind="virtual"),
            "device",
            "requirement.device_obeys",
            f"check the hypervisor's cache mode, then attest power_loss_protection for {SATA}",
        ),
        (
            disk(kind="san"),
            "non_volatile_cache",
            "requirement.device_obeys",
            f"check the cache settings of the array, then attest power_loss_protection for {SATA}",
        ),
        (
            disk(kind="raid_volume", id=None, place="ssacli"),
            "non_volatile_cache",
            "requirement.device_obeys",
            "give it a unique serial number at its hypervisor or controller, then attest power_loss_protection for its id,"
            " once it has one",
        ),
    ],
)
def test_a_disk_of_which_nothing_shows_what_it_keeps(given: Any, rests_on: str, kind: str, cure: str) -> None:
    need = requirements.of_disk(rests_on, given, [])
    assert (need.id, need.remedy) == (kind, cure)
    (asked,) = requirements.with_attestations([need], {"disks": [given], "platform": "qemu"}, "2026-11-28")
    if "for host" in cure:
        assert asked.remedy == (
            "on QEMU, KVM, libvirt check the cache mode of each disk in QEMU or libvirt (any but unsafe), and the storage"
            " below, then attest host_honours_flush for host"
        )
    else:
        assert asked.remedy == cure
    # What is offered to copy is what the fix asks for.
    claims = [row.partition("claim: ")[2] for row in asked.attest if "claim: " in row]
    assert bool(claims) == ("for serial:" in cure or "for host" in cure)
    assert all(claim in asked.remedy for claim in claims)


@pytest.mark.parametrize(
    ("given", "held_to", "setting", "cure"),
    [
        (disk(kind="memory"), "strict", "write_cache", NOT_KEPT),
        (
            disk(device="enabled", place="array", kind="san"),
            "strict",
            "write_cache",
            f"set the write cache to disabled on the array, or attest power_loss_protection for {SATA}",
        ),
        (
            # Nobody here sees that it was set.
            disk(place="azure"),
            "strict",
            "write_cache",
            "set the write cache to disabled by the host caching of the disk in Azure (None or ReadOnly), then attest"
            f" power_loss_protection for {SATA}",
        ),
        (
            disk(),
            "flush",
            "write_cache",
            f"attest power_loss_protection or host_honours_flush for {SATA}",
        ),
        (
            # It is sent no flush that it could honour.
            disk(device="enabled", kernel="write through", place="array", kind="san"),
            "flush",
            "kernel_cache_mode",
            f"set the write cache to disabled on the array, or attest power_loss_protection for {SATA}",
        ),
        (
            disk(multipath="yes", device="enabled", place="array", kind="san"),
            "strict",
            "write_cache",
            f"set the write cache to disabled on the array, or attest power_loss_protection for {SATA}, which all paths share",
        ),
        (
            disk(switchable="yes"),
            "protected",
            "write_cache",
            f"correct the error that the reason names, or attest power_loss_protection for {SATA}",
        ),
        (
            disk(flush="owed", device="enabled"),
            "strict",
            "flush",
            'reboot, or write "write back" to /sys/block/sda/queue/write_cache, run sync /dev/sda, then remove'
            " /run/durable-dbhost/flush-owed/sda",
        ),
    ],
)
def test_a_cache_that_no_run_switches(given: Any, held_to: str, setting: str, cure: str) -> None:
    (row,) = (each for each in settings.of_disk(given, profile(held_to)) if each.setting == setting)
    assert (row.phase, row.remedy) == (None, cure)


ATTEST = f"attest power_loss_protection for {SATA}"


@pytest.mark.parametrize(
    ("over", "mode", "early", "cure"),
    [
        (
            (),
            "write through",
            True,
            f"add /etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules and hdparm and lsblk to the initramfs, or {ATTEST}",
        ),
        (
            ("sda3", "dm-1", "sda2", "dm-0"),
            "write through",
            False,
            "with the databases down, load the tables of dm-0 and then dm-1 and then pg again (LUKS: cryptsetup refresh, others:"
            f" dmsetup reload and dmsetup resume), or {ATTEST}",
        ),
        ((), "unknown", False, f"make /sys/block/dm-9/queue/write_cache readable, or {ATTEST}"),
        ((), "write through", False, f"set the cache of sda to disabled on the array, or {ATTEST}"),
    ],
)
def test_a_layer_that_passes_no_flush_on(over: tuple[str, ...], mode: str, early: bool, cure: str) -> None:
    found = flush_passthrough.FlushLayer("dm-9", "pg", mode, ("sda",), over)
    given = disk(device="enabled", kernel="unknown", place="array", control="sata")
    stack = [
        {**layer("dm", "linear", below=("sda",)), "cache_mode": mode, "state": ""},
        {**layer("disk"), "name": "sda", "cache_mode": "", "state": ""},
    ]
    first = [found] if early else []
    if not over:
        (row,) = settings.of_layers([{"stack": stack}], [Disk(given, profile("flush"))], first)
        assert row.remedy == cure
    assert settings._layer_remedy(found, "drift_running", [given], early) == cure
    assert settings._layer_remedy(found, "pending", [given], early) == "reboot"
    if (mode, over, early) == ("write through", (), False):
        in_memory = {**given, "place": "nowhere"}
        assert settings._layer_remedy(found, "drift_running", [given, in_memory], early) == NOT_KEPT


@pytest.mark.parametrize(
    ("target", "kind", "cure"),
    [
        ("/", "risk.flush_blocked.initramfs", "to the initramfs, then reboot"),
        ("/srv/x", "risk.flush_blocked", "reboot"),
    ],
)
def test_a_layer_that_the_initramfs_makes_stays_blocked_after_a_reboot(
    target: str, kind: str, cure: str
) -> None:
    stack = [
        {**layer("dm", "linear", below=("sda",)), "cache_mode": "write through", "state": ""},
        {**layer("disk"), "name": "sda", "cache_mode": "", "state": ""},
    ]
    mount = {"target": target, "targets": [target], "barrier": "on", "disks": ["sda"], "stack": stack}
    (found,) = risks.of([mount], [disk(device="enabled")], [], frozenset())
    assert (found.reason.id, found.reason.fix.endswith(cure)) == (kind, True)


@pytest.mark.parametrize(
    ("change", "kind", "cure"),
    [
        (
            {},
            "requirement.only_database_paths",
            "list /srv/pgdata in durable_mounts if it holds databases only",
        ),
        (
            {"targets": ["/srv/pgdata", "/usr"]},
            "requirement.only_database_paths.system",
            "move the data to a separate file system and list that in durable_mounts",
        ),
        (
            {"fstype": "btrfs"},
            "requirement.only_database_paths.btrfs",
            "move the data of /srv/pgdata to ext4, or set durable_profile: flush",
        ),
    ],
)
def test_a_mount_that_keeps_its_barriers(change: dict[str, Any], kind: str, cure: str) -> None:
    (mount,) = mounts_of(["/srv/pgdata"], None, collect(SmallHost(), NOW), [])
    need = requirements.only_database({**mount, "listed": False, **change})
    assert (need.id, need.name, need.remedy) == (kind, "only_database_paths", cure)
    assert requirements.why_not_only_databases({**mount, "listed": False, **change}) == need.why


@pytest.mark.parametrize(
    ("state", "detail", "kind", "cure"),
    [
        (
            "transient",
            "snapshot",
            "requirement.layer_lasts",
            "move the data of /srv/x to a volume that is not such a snapshot",
        ),
        (
            "no journal",
            "integrity",
            "requirement.tags_whole",
            "remove --integrity-no-journal from what opens pg, or mode=direct from its line in /etc/integritytab, then close and"
            " open it with its databases down",
        ),
    ],
)
def test_a_layer_that_breaks_a_promise(state: str, detail: str, kind: str, cure: str) -> None:
    (need,) = requirements._of_layer(
        {"target": "/srv/x"}, {**layer("dm", detail), "state": state, "cause": None}, []
    )
    assert (need.id, need.remedy) == (kind, cure)


@pytest.mark.parametrize(
    ("maker", "cure"),
    [
        (
            "md",
            "stop all use of /dev/md127, run mdadm on it with --grow --bitmap=none, --readonly, --manage --add-journal"
            " UNUSED-DEVICE and --readwrite, or move the data to RAID 1 or 10",
        ),
        (
            "dm",
            "move the data to a mirror (LVM: --type raid1 or raid10), or to an md array with a journal (mdadm --add-journal)",
        ),
        (
            "file_system",
            "convert it to a mirror: btrfs balance start -dconvert=raid1 -mconvert=raid1 '/srv/a b'",
        ),
    ],
)
def test_a_write_hole(maker: str, cure: str) -> None:
    need = requirements._write_hole(
        {"target": "/srv/a b"}, {"name": "md127", "maker": maker, "level": "raid5"}
    )
    assert (need.id, need.remedy) == (
        f"requirement.no_write_hole.{maker.replace('file_system', 'btrfs')}",
        cure,
    )


def mount(target: str, **changes: Any) -> dict[str, Any]:
    """Return the facts of a mount; those of its next boot and of the evidence for it in dictionaries of their own."""
    found = next(each for each in collect(BigHost(), NOW)["mounts"] if target in each["targets"])
    persisted, evidence = changes.pop("persisted", {}), changes.pop("evidence", {})
    return {
        **found,
        **changes,
        "persisted": {**found["persisted"], **persisted},
        "evidence": {**found["evidence"], **evidence},
    }


def cure_of(given: dict[str, Any], setting: str, held_to: str = "strict") -> str:
    rows = settings.of_mount(given, profile(held_to), settings.Boot("6.1.0-26-amd64"))
    return next(each.remedy for each in rows if each.setting == setting)


def at_boot(setting: str, value: str, source: str) -> dict[str, Any]:
    return {
        "persisted": {setting: value},
        "evidence": {f"persisted.{setting}": {"value": value, "source": source, "reason": "why"}},
    }


ENTRY = "rootflags of /boot/loader/entries/a.conf line 4"


@pytest.mark.parametrize(
    ("setting", "changes", "cure"),
    [
        (
            "barrier",
            {"options_boot": ["rw", "nobarrier"], **at_boot("barrier", "off", ENTRY)},
            f"remove nobarrier from {ENTRY}",
        ),
        (
            "atime",
            {"options_boot": ["relatime"], **at_boot("atime", "relatime", ENTRY)},
            f"set noatime in place of relatime in {ENTRY}",
        ),
        ("atime", {"options_boot": [], **at_boot("atime", "relatime", ENTRY)}, f"set noatime in {ENTRY}"),
        (
            "barrier",
            at_boot("barrier", "unset", "/etc/fstab"),
            "add a line for / with the UUID of /dev/sda1 (blkid) to /etc/fstab, or set the options in the cluster manager that"
            " mounts it",
        ),
    ],
)
def test_an_option_of_the_root(setting: str, changes: dict[str, Any], cure: str) -> None:
    given = mount("/", **{"atime": "noatime", **changes, "targets": ["/"], "source": "/dev/sda1"})
    assert cure_of(given, setting) == cure


@pytest.mark.parametrize(
    ("target", "fstype", "cure"),
    [
        (
            "/srv/pgdata",
            "ext4",
            "run tune2fs -j /dev/sda1, then unmount and mount /srv/pgdata with its databases down",
        ),
        (
            "/srv/pgdata",
            "ext2",
            "run tune2fs -j /dev/sda1, set its type to ext4 in /etc/fstab line 3, then unmount and mount /srv/pgdata with its"
            " databases down",
        ),
        ("/", "ext4", "run tune2fs -j /dev/sda1, then reboot"),
    ],
)
def test_a_file_system_without_a_journal(target: str, fstype: str, cure: str) -> None:
    given = mount(
        "/srv/pgdata",
        data_mode="none",
        fstype=fstype,
        source="/dev/sda1",
        **at_boot("data_mode", "none", "x"),
    )
    given = {**given, "target": target, "targets": [target]}
    assert cure_of(given, "data_mode") == cure


@pytest.mark.parametrize(
    ("options", "persisted", "cure"),
    [
        (["noload"], "none", "remove noload from /etc/fstab line 3, then "),
        (["defaults"], "ordered", ""),
    ],
)
def test_a_journal_that_a_mount_leaves_out(options: list[str], persisted: str, cure: str) -> None:
    given = mount(
        "/srv/pgdata", data_mode="none", options_boot=options, **at_boot("data_mode", persisted, "x")
    )
    again = "unmount and mount /srv/pgdata with its databases down"
    assert cure_of(given, "data_mode") == f"{cure}{again}"


PARAMETERS = "/sys/module/zfs/parameters"


def zfs(target: str, running: tuple[str, str], persisted: tuple[str, str]) -> dict[str, Any]:
    """Return the facts of a dataset; each value of its barrier with where it was read."""
    (now, place), (later, source) = running, persisted
    given = mount(
        "/srv/pgdata", fstype="zfs", source="tank/pg data", barrier=now, **at_boot("barrier", later, source)
    )
    seen = {"value": now, "source": place, "reason": None}
    return {
        **given,
        "target": target,
        "targets": [target],
        "evidence": {**given["evidence"], "barrier": seen},
    }


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        (
            zfs(
                "/srv/z",
                ("off", "zfs get sync tank/pg data"),
                ("off", "zfs get sync,canmount,mountpoint tank/pg data"),
            ),
            "run zfs set sync=standard 'tank/pg data'",
        ),
        (
            zfs(
                "/srv/z",
                ("off", f"{PARAMETERS}/zfs_nocacheflush"),
                ("off", "/etc/modprobe.d/zfs.conf line 1"),
            ),
            "remove zfs_nocacheflush, zil_nocacheflush and zil_replay_disable from /etc/modprobe.d/zfs.conf line 1, run"
            f" update-initramfs -u or dracut -f, and write 0 to zfs_nocacheflush and zil_nocacheflush in {PARAMETERS}",
        ),
        (
            zfs("/srv/z", ("on", "x"), ("off", "/boot/grub/grub.cfg line 7")),
            "remove zfs_nocacheflush, zil_nocacheflush and zil_replay_disable from /boot/grub/grub.cfg line 7",
        ),
        (
            zfs("/srv/z z", ("on", "x"), ("unset", "x")),
            "with its databases down, run zfs set canmount=on 'mountpoint=/srv/z z' 'tank/pg data'",
        ),
        # A boot environment is not mounted by its properties.
        (zfs("/", ("on", "x"), ("unset", "x")), "set root=ZFS=tank/pg data in the boot loader's entries"),
    ],
)
def test_a_dataset_that_is_not_flushed_or_not_mounted(given: dict[str, Any], cure: str) -> None:
    assert cure_of(given, "barrier", "flush") == cure
