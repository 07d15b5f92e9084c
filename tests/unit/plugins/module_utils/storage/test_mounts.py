# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mounted now and at the next boot, and what hides either."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mounts import Mounts

from ..fakes.runs import NOW
from ..fakes.sentences import sentence
from ..fakes.small_host import FakeMount, SmallHost, loop

EXT4 = "/proc/fs/ext4/sda1/options"
SUPERBLOCK = (*ext4.SHOW, "/dev/block/8:1")


def facts(host: SmallHost, target: str) -> dict[str, Any]:
    reader = Mounts(host)
    (found,) = [s for s in reader.superblocks() if target in [mount.target for mount in s.mounts]]
    return reader.collect(found)


def fstab_line(host: SmallHost, target: str, options: str) -> None:
    uuid, fstype = {"/srv/mssql": ("ms", "xfs"), "/": ("root", "ext4")}.get(target, ("pg", "ext4"))
    host.files["/etc/fstab"] = f"UUID={uuid} {target} {fstype} {options} 0 2\n"


def test_an_ordinary_ext4() -> None:
    found = facts(SmallHost(), "/srv/pgdata")
    texts = dict.fromkeys(("detail", "state", "label", "cache_mode", "id", "held_on"), "")
    nothing = {**texts, "cause": None}
    expected = {
        "target": "/srv/pgdata",
        "targets": ["/srv/pgdata"],
        "source": "/dev/sda1",
        "device": "8:1",
        "fstype": "ext4",
        "barrier": "on",
        "data_mode": "ordered",
        "atime": "relatime",
        "options_running": ["rw", "relatime", "rw"],
        "options_fstab": ["defaults"],
        "persisted": {"barrier": "on", "data_mode": "ordered", "atime": "relatime"},
        "stack": [
            {"name": "sda1", "type": "partition", "below": ["sda"], **nothing},
            {"name": "sda", "type": "disk", "below": [], **nothing},
        ],
        "disks": ["sda"],
        "disks_seen": ["sda"],
        "devices_missing": [],
        "external_log": None,
        "carrier": "sda",
        "hidden_in": None,
        "views": [],
        "write_hole": [],
        "sync": "no",
    }
    assert {name: found[name] for name in expected} == expected
    assert found["evidence"]["barrier"]["source"] == EXT4
    assert found["evidence"]["persisted.barrier"]["source"] == "/etc/fstab line 3, superblock defaults"


def test_an_ordinary_xfs() -> None:
    found = facts(SmallHost(), "/srv/mssql")
    assert (found["barrier"], found["data_mode"]) == ("on", "none")
    assert found["persisted"] == {"barrier": "on", "data_mode": "none", "atime": "relatime"}
    assert found["disks"] == ["sdb"]


@pytest.mark.parametrize(
    ("change", "field", "before", "after"),
    [
        ({"barrier": "off"}, "barrier", "on", "off"),
        ({"data": "writeback"}, "data_mode", "ordered", "writeback"),
        ({"journal": False}, "data_mode", "ordered", "none"),
        ({"atime": "strictatime"}, "atime", "relatime", "strictatime"),
        (
            {"flags": ("ro", "nodev")},
            "options_running",
            ["rw", "relatime", "rw"],
            ["ro", "nodev", "relatime", "rw"],
        ),
    ],
)
def test_each_running_fact_follows_the_kernel(
    change: dict[str, Any], field: str, before: Any, after: Any
) -> None:
    host = SmallHost()
    assert facts(host, "/srv/pgdata")[field] == before
    vars(host.mounts["/srv/pgdata"]).update(change)
    assert facts(host, "/srv/pgdata")[field] == after


@pytest.mark.parametrize(
    ("superblock", "options", "expected"),
    [
        ((), "nobarrier", {"barrier": "off"}),
        ((), "data=writeback,noatime", {"data_mode": "writeback", "atime": "noatime"}),
        (("nobarrier",), "defaults", {"barrier": "off"}),
        (("nobarrier", "data=journal"), "barrier=1", {"barrier": "on", "data_mode": "journal"}),
    ],
)
def test_the_next_mount_is_superblock_then_fstab(
    superblock: tuple[str, ...], options: str, expected: dict[str, str]
) -> None:
    host = SmallHost()
    host.mounts["/srv/pgdata"].sb_options = superblock
    fstab_line(host, "/srv/pgdata", options)
    persisted = facts(host, "/srv/pgdata")["persisted"]
    assert {name: persisted[name] for name in expected} == expected


@pytest.mark.fact(66)
@pytest.mark.parametrize(
    ("spec", "link"),
    [
        ('UUID="pg"', "by-uuid/pg"),
        ("LABEL='pg'", "by-label/pg"),
        ('LABEL="pg\\040/data"', "by-label/pg\\x20\\x2fdata"),
        ("PARTLABEL=päckchen", "by-partlabel/päckchen"),
    ],
)
def test_a_line_is_known_by_a_tag_in_quotes_and_by_a_label_as_udev_spells_it(spec: str, link: str) -> None:
    """libmount and systemd accept quoted tags."""
    host = SmallHost()
    host.files["/etc/fstab"] = f"{spec} /srv/pgdata ext4 nobarrier 0 2 # the cluster's data\n"
    host.links[f"/dev/disk/{link}"] = "/dev/sda1"
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "off"


def test_rootflags_count_for_the_root_alone() -> None:
    host = SmallHost()
    host.files["/proc/cmdline"] = "root=/dev/vda1 rootflags=commit=9 rootflags=data=journal,barrier=0 ro\n"
    assert facts(host, "/")["persisted"] == {"barrier": "off", "data_mode": "journal", "atime": "relatime"}
    assert facts(host, "/srv/pgdata")["persisted"]["data_mode"] == "ordered"


def test_two_lines_for_one_target_are_unknown() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "UUID=pg /srv/pgdata ext4 noatime 0 2\n" * 2
    found = facts(host, "/srv/pgdata")
    assert found["persisted"]["barrier"] == "unknown"
    assert "lines 1 and 2 both mount /srv/pgdata" in sentence(found, "persisted.barrier")


def test_a_unit_about_another_device_says_nothing_of_this_one() -> None:
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount"] = "[Mount]\nWhat=/dev/vdb\nType=ext4\n"
    found = facts(host, "/srv/pgdata")
    assert found["persisted"]["barrier"] == "unknown"
    assert "mounts /dev/vdb at /srv/pgdata" in sentence(found, "persisted.barrier")


@pytest.mark.parametrize("started", [True, False])
def test_a_unit_that_nothing_starts_mounts_nothing_at_the_next_boot(started: bool) -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = ""
    host.files["/etc/systemd/system/srv-pgdata.mount"] = "[Mount]\nWhat=/dev/sda1\nOptions=noatime\n"
    if started:
        host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "x"
    found = facts(host, "/srv/pgdata")["persisted"]
    assert (found["barrier"], found["atime"]) == (("on", "noatime") if started else ("unset", "unset"))


@pytest.mark.parametrize(("flag", "option", "barrier"), [("1", "0", "off"), ("0", "1", "on")])
def test_the_line_of_the_root_goes_over_rootflags(flag: str, option: str, barrier: str) -> None:
    """The initramfs mounts it with the one, and systemd remounts it with the other."""
    host = SmallHost()
    host.files["/proc/cmdline"] = f"root=/dev/vda1 rootflags=barrier={flag} ro\n"
    fstab_line(host, "/", f"barrier={option}")
    assert facts(host, "/")["persisted"]["barrier"] == barrier


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("UUID=root / ext4 noatime 0 1\n", "/etc/fstab line 1, rootflags of this boot"),
        ("", "rootflags of this boot"),
    ],
)
def test_rootflags_are_called_those_of_this_boot(line: str, source: str) -> None:
    host = SmallHost()
    host.files.update({"/proc/cmdline": "rootflags=commit=9 ro\n", "/etc/fstab": line})
    assert facts(host, "/")["evidence"]["persisted.atime"]["source"] == source


def test_the_entry_of_the_boot_loader_that_is_next_decides_for_the_root_alone() -> None:
    host = SmallHost()
    host.files["/boot/grub/grub.cfg"] = "\tlinux /vmlinuz root=/dev/vda1 ro rootflags=barrier=0\n"
    found = facts(host, "/")
    assert found["persisted"]["barrier"] == "off"
    source = "/etc/fstab line 2, rootflags of /boot/grub/grub.cfg line 1, superblock defaults"
    assert found["evidence"]["persisted.barrier"]["source"] == source
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "on"


def test_entries_that_differ_and_may_be_next_leave_the_root_unknown_alone() -> None:
    host = SmallHost()
    two_entries(host)
    found = facts(host, "/")
    assert found["persisted"]["barrier"] == "unknown"
    assert "rootflags=barrier=0" in sentence(found, "persisted.barrier")
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "on"


def two_entries(host: SmallHost) -> None:
    """Have systemd-boot start the entry that was chosen last, which is unknown."""
    host.files["/efi/loader/loader.conf"] = "default @saved\n"
    for name, options in (("a", ""), ("b", "rootflags=barrier=0")):
        host.files[f"/efi/loader/entries/{name}.conf"] = f"linux /v\noptions root=/dev/vda1 ro {options}\n"


@pytest.mark.parametrize("options", ["nobarrier", "barrier=1", "data=ordered", "rw,nobarrier,noatime"])
@pytest.mark.fact(1)
def test_words_that_xfs_refuses_are_called_refused(options: str) -> None:
    host = SmallHost()
    fstab_line(host, "/srv/mssql", options)
    found = facts(host, "/srv/mssql")
    assert found["persisted"]["barrier"] == "refused"
    assert "next boot would fail" in sentence(found, "persisted.barrier")


def test_without_a_line_nothing_is_said_of_the_next_boot() -> None:
    host = SmallHost()
    del host.files["/etc/fstab"]
    found = facts(host, "/srv/pgdata")
    assert set(found["persisted"].values()) == {"unset"}
    assert found["options_fstab"] is None


@pytest.mark.parametrize(
    ("arrange", "field"),
    [
        (lambda host: host.files.pop(EXT4), "barrier"),
        (lambda host: host.files.pop(EXT4), "data_mode"),
        (lambda host: host.files.update({EXT4: "rw\ngarbage\n"}), "barrier"),
        (lambda host: host.commands.pop(SUPERBLOCK), "persisted.barrier"),
        (lambda host: host.commands.pop(SUPERBLOCK), "persisted.data_mode"),
        (
            lambda host: host.commands.update({SUPERBLOCK: Unobservable("no answer within 10 s")}),
            "persisted.barrier",
        ),
        (lambda host: host.commands.update({SUPERBLOCK: "garbage"}), "persisted.barrier"),
        (lambda host: host.files.update({"/etc/fstab": "one two\n"}), "persisted.barrier"),
        (lambda host: host.files.update({"/etc/fstab": Unobservable("I/O error")}), "persisted.atime"),
        (
            lambda host: host.files.update(
                {"/etc/systemd/system/srv-pgdata.mount": "[Mount]\nOptions=nobarrier,%H\n"}
            ),
            "persisted.barrier",
        ),
        (
            lambda host: host.files.update(
                {"/etc/systemd/system/srv-pgdata.mount.d/x.conf": Unobservable("I/O error")}
            ),
            "persisted.data_mode",
        ),
        (lambda host: host.links.update({"/sys/dev/block/8:1": "/sys/devices/virtual/block/dm-0"}), "disks"),
        (lambda host: host.commands.update({SUPERBLOCK: _external}), "disks"),
    ],
)
def test_what_cannot_be_observed_is_unknown_with_its_reason(arrange: Any, field: str) -> None:
    host = SmallHost()
    arrange(host)
    found = facts(host, "/srv/pgdata")
    group, _dot, name = field.rpartition(".")
    assert (found[group] if group else found)[name] == "unknown"
    assert sentence(found, field)


def _external() -> str:
    mount = SmallHost().mounts["/srv/pgdata"]
    mount.journal_on = "sdz1"
    return mount.superblock()


@pytest.mark.parametrize(("option", "sync"), [("sync", "yes"), ("async", "no"), ("lazytime", "no")])
@pytest.mark.fact(52)
def test_a_file_system_that_is_mounted_sync_says_so(option: str, sync: str) -> None:
    """The sync option is observed, wherever the kernel shows it."""
    host = SmallHost()
    host.mounts["/srv/pgdata"].super_options = (option,)
    assert facts(host, "/srv/pgdata")["sync"] == sync


@pytest.mark.parametrize("option", ["logdev=/dev/sdc1", "rtdev=/dev/sdc1"])
def test_a_second_device_of_xfs_is_not_passed_over(option: str) -> None:
    host = SmallHost()
    plain = host.read("/proc/self/mountinfo")
    host.files["/proc/self/mountinfo"] = plain.replace("/dev/sdb1 rw", f"/dev/sdb1 rw,{option}")
    found = facts(host, "/srv/mssql")
    assert (found["external_log"], found["disks"]) == ("/dev/sdc1", "unknown")


@pytest.mark.parametrize("fstype", ["fuseblk", "reiserfs", "f2fs"])
def test_a_file_system_without_a_rule_is_unknown(fstype: str) -> None:
    host = SmallHost()
    host.add_mount(FakeMount("/srv/other", fstype, "8:2", "/dev/sda2", "sda"))
    host.files["/etc/fstab"] = f"/dev/sda2 /srv/other {fstype} defaults 0 0\n"
    found = facts(host, "/srv/other")
    assert (found["barrier"], found["data_mode"]) == ("unknown", "unknown")
    assert found["persisted"]["barrier"] == "unknown"
    assert fstype in sentence(found, "barrier").lower()


@pytest.mark.parametrize("fstype", ["overlay", "cifs"])
def test_a_file_system_without_a_disk_is_seen_and_its_disks_are_unknown(fstype: str) -> None:
    host = SmallHost()
    host.files["/proc/filesystems"] = f"nodev\t{fstype}\n"
    host.files["/proc/self/mountinfo"] = f"9 1 0:99 / /srv rw - {fstype} server:/x rw\n"
    assert facts(host, "/srv")["disks"] == "unknown"


@pytest.mark.fact(45)
def test_one_superblock_is_one_entry_with_all_its_targets() -> None:
    """It may be mounted many times, and its barriers change through any of them."""
    host = SmallHost()
    bind = "99 30 8:1 /sub /mnt/bind rw,noatime - ext4 /dev/sda1 rw\n"
    host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + bind
    found = facts(host, "/mnt/bind")
    assert (found["target"], found["targets"]) == ("/srv/pgdata", ["/srv/pgdata", "/mnt/bind"])


@pytest.mark.parametrize("order", [("opt", "var"), ("var", "opt")])
def test_the_order_in_which_subvolumes_are_mounted_chooses_none_of_them(order: tuple[str, str]) -> None:
    """A boot mounts those of one btrfs in any order."""
    host = SmallHost()
    lines = [line for line in host.read("/proc/self/mountinfo").splitlines() if " 8:1 " not in line]
    lines += [f"{90 + n} 30 8:1 /@/{name} /{name} rw - btrfs /dev/sda1 rw" for n, name in enumerate(order)]
    host.files["/proc/self/mountinfo"] = "\n".join([*lines, ""])
    found = facts(host, "/opt")
    assert (found["target"], found["targets"]) == ("/opt", ["/opt", "/var"])


def test_atime_is_compared_at_a_subvolume_that_the_next_boot_mounts() -> None:
    """Each mount has its own: what runs at one says nothing about the line of another."""
    host = SmallHost()
    lines = [line for line in host.read("/proc/self/mountinfo").splitlines() if " 8:1 " not in line]
    lines += [
        "91 30 8:1 /@/opt /opt rw,noatime - btrfs /dev/sda1 rw",
        "92 30 8:1 /@/var /var rw,relatime - btrfs /dev/sda1 rw",
    ]
    host.files["/proc/self/mountinfo"] = "\n".join([*lines, ""])
    host.links["/sys/fs/btrfs/b0b0/devices/sda1"] = host.links["/sys/class/block/sda1"]
    host.files["/etc/fstab"] = "/dev/sda1 /var btrfs subvol=/@/var 0 0\n"
    found = facts(host, "/var")
    assert (found["target"], found["targets"]) == ("/var", ["/var", "/opt"])
    assert (found["atime"], found["persisted"]["atime"]) == ("relatime", "relatime")


def test_pseudo_file_systems_are_left_out() -> None:
    groups = Mounts(SmallHost()).superblocks()
    assert [found.mounts[0].target for found in groups] == ["/", "/srv/pgdata", "/srv/mssql", "/srv/maria"]


def test_a_disk_that_is_mounted_over_is_not_the_one_that_is_judged() -> None:
    """/srv over /srv/pgdata: what is written to /srv/pgdata lands on the newer mount."""
    host = SmallHost()
    host.add_mount(FakeMount("/srv", "ext4", "8:2", "/dev/sda2", "sda", barrier="off"))
    groups = {found.mounts[0].target for found in Mounts(host).superblocks()}
    assert groups == {"/", "/srv"}


UNIT = "/etc/systemd/system/mnt-copy.mount"


def second_line(host: SmallHost, options: str, target: str = "/mnt/copy") -> None:
    host.files["/etc/fstab"] = f"{host.read('/etc/fstab')}/dev/sda1 {target} ext4 {options} 0 0\n"


@pytest.mark.fact(45)
@pytest.mark.parametrize(
    ("first", "second", "differing"),
    [
        ("barrier=1", "defaults", []),
        ("nobarrier", "barrier=0", []),
        ("defaults", "noatime", []),
        ("defaults", "nobarrier", ["barrier"]),
        ("nobarrier", "defaults", ["barrier"]),
        ("defaults", "data=journal", ["data_mode"]),
        ("nobarrier,data=journal", "data=writeback", ["barrier", "data_mode"]),
    ],
)
def test_all_lines_for_a_device_must_agree(first: str, second: str, differing: list[str]) -> None:
    """Whichever mounts first decides, and the other's word is ignored."""
    host = SmallHost()
    fstab_line(host, "/srv/pgdata", first)
    second_line(host, second)
    found = facts(host, "/srv/pgdata")
    assert [name for name, value in found["persisted"].items() if value == "unknown"] == differing
    for name in differing:
        reason = sentence(found, f"persisted.{name}")
        assert "/etc/fstab line 1" in reason
        assert "/etc/fstab line 2" in reason
        # One of them may be a subvolume of snapshots: its other options are its own.
        assert "Fix: give each of them the same value of this option, and leave the other options" in reason
    if not differing:
        sources = "/etc/fstab line 1, /etc/fstab line 2, superblock defaults"
        assert found["evidence"]["persisted.barrier"]["source"] == sources


@pytest.mark.fact(45)
@pytest.mark.parametrize(("path", "count"), [(UNIT, 1), (f"{UNIT}.d/x.conf", 1), (UNIT, 2)])
def test_a_unit_that_mounts_the_device_elsewhere_must_agree_too(path: str, count: int) -> None:
    host = SmallHost()
    if path != UNIT:
        second_line(host, "defaults")
    else:
        bind = "99 30 8:1 /sub /mnt/copy rw,noatime - ext4 /dev/sda1 rw\n"
        host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + bind
        host.links["/etc/systemd/system/local-fs.target.wants/mnt-copy.mount"] = UNIT
    host.files[path] = f"[Mount]\nWhat={'/dev/sda1' if count == 1 else '/dev/sdb1'}\nOptions=nobarrier\n"
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "unknown"


@pytest.mark.fact(45)
@pytest.mark.parametrize(
    ("said", "link", "barrier"),
    [
        ("What=/dev/sda1\nOptions=nobarrier", "local-fs.target.wants/mnt-copy.mount", "unknown"),
        ("What=/dev/sda1\nOptions=nobarrier", "app.service.requires/mnt-copy.mount", "unknown"),
        ("What=/dev/sda1\nOptions=nobarrier", "local-fs.target.wants/mnt-copy.automount", "unknown"),
        ("What=/dev/sda1\nOptions=noatime", "local-fs.target.wants/mnt-copy.mount", "on"),
        ("What=/dev/sdb1\nType=xfs\nOptions=nobarrier", "local-fs.target.wants/mnt-copy.mount", "on"),
        (
            "What=/srv/pgdata/x\nType=none\nOptions=bind,nobarrier",
            "local-fs.target.wants/mnt-copy.mount",
            "on",
        ),
        ("What=/dev/sda1\nOptions=nobarrier", "", "on"),
    ],
    ids=["wanted", "required", "automount", "agrees", "other device", "bind", "nothing starts it"],
)
@pytest.mark.parametrize("base", ["/etc/systemd/system", "/usr/lib/systemd/system"])
def test_a_unit_that_is_not_mounted_now_mounts_the_device_at_the_next_boot(
    base: str, said: str, link: str, barrier: str
) -> None:
    """As a copy for backups, whose unit has no line in fstab."""
    host = SmallHost()
    fstab_line(host, "/srv/pgdata", "defaults")
    host.files[f"{base}/mnt-copy.mount"] = f"[Mount]\n{said}\n"
    if link:
        host.links[f"{base}/{link}"] = f"{base}/mnt-copy.mount"
    found = facts(host, "/srv/pgdata")
    assert found["persisted"]["barrier"] == barrier
    if barrier == "unknown":
        assert f"{base}/mnt-copy.mount at /mnt/copy" in sentence(found, "persisted.barrier")


def test_the_root_is_mounted_before_all_others_and_decides_alone() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "UUID=root / ext4 defaults 0 1\n/dev/vda1 /mnt/copy ext4 nobarrier 0 0\n"
    assert facts(host, "/")["persisted"]["barrier"] == "on"


@pytest.mark.parametrize(
    "line", ["/srv/pgdata /mnt/copy none bind,nobarrier 0 0", "/dev/sdb1 /mnt/copy xfs nobarrier 0 0"]
)
def test_lines_of_other_devices_and_binds_mount_no_superblock(line: str) -> None:
    host = SmallHost()
    fstab_line(host, "/srv/pgdata", "defaults")
    host.files["/etc/fstab"] = f"{host.read('/etc/fstab')}{line}\n"
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "on"


def test_a_line_that_mounts_the_device_elsewhere_only_says_nothing_of_where_it_is_now() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = ""
    second_line(host, "defaults")
    assert set(facts(host, "/srv/pgdata")["persisted"].values()) == {"unset"}


@pytest.mark.parametrize("target", ["/", "/usr"])
def test_what_the_initramfs_mounts_is_mounted_as_fstab_says_whatever_units_there_are(target: str) -> None:
    host = SmallHost()
    if target == "/usr":
        host.add_mount(
            FakeMount("/usr", "ext4", "254:2", "/dev/vda2", "vda"), "/dev/vda2 /usr ext4 nobarrier 0 2\n"
        )
    else:
        host.files["/etc/fstab"] = "UUID=root / ext4 nobarrier 0 1\n"
    unit = {"/": "-.mount", "/usr": "usr.mount"}[target]
    host.files[f"/etc/systemd/system/{unit}"] = "[Mount]\nOptions=barrier=1\n"
    assert facts(host, target)["persisted"]["barrier"] == "off"


@pytest.mark.fact(55)
@pytest.mark.parametrize("number", ["2147483648", "08", "-1", "x", "1k", ""])
def test_a_barrier_that_not_every_kernel_reads_alike_is_unknown(number: str) -> None:
    host = SmallHost()
    fstab_line(host, "/srv/pgdata", f"rw,barrier={number}")
    found = facts(host, "/srv/pgdata")
    assert found["persisted"]["barrier"] == "unknown"
    assert "accepted: 0 or 1" in sentence(found, "persisted.barrier")


@pytest.mark.fact(55)
@pytest.mark.parametrize(
    "word",
    [
        "nobarrier\\054noatime",
        "noatime\\054barrier=0",
        "\\156obarrier",
        "noatime\\012Options=nobarrier",
        "noatime\\",
    ],
)
def test_options_that_are_written_as_escapes_count(word: str) -> None:
    """mount(8) expands a comma that is written as an escape; systemd makes a line of a unit of them."""
    host = SmallHost()
    fstab_line(host, "/srv/pgdata", f"rw,{word}")
    assert facts(host, "/srv/pgdata")["persisted"]["barrier"] == "unknown"


def test_garbage_in_the_options_file_is_no_missing_journal() -> None:
    host = SmallHost()
    host.files["/proc/fs/ext4/sda1/options"] = "garbage\n"
    facts = next(m for m in collect(host, NOW)["mounts"] if m["target"] == "/srv/pgdata")
    assert facts["data_mode"] == "unknown"


@pytest.mark.fact(84)
@pytest.mark.parametrize(("spec", "wanted"), [("/srv/mssql/db.img", "on"), ("/srv/mssql/other.img", "unset")])
def test_a_line_that_names_a_file_is_about_the_loop_device_made_of_it(spec: str, wanted: str) -> None:
    host = SmallHost()
    host.add_layer(loop("loop0", "7:0", "/srv/mssql/db.img"))
    host.loops["loop0"] = "8:17"
    host.add_mount(
        FakeMount("/srv/in", "ext4", "7:0", "/dev/loop0", "loop0"), f"{spec} /srv/in ext4 loop 0 2\n"
    )
    found = facts(host, "/srv/in")
    assert (found["disks"], found["persisted"]["barrier"]) == (["sdb"], wanted)
    assert found["options_fstab"] == (["loop"] if wanted == "on" else None)


@pytest.mark.fact(86)
def test_jfs_has_no_barriers_at_the_next_boot_either() -> None:
    host = SmallHost()
    host.add_mount(
        FakeMount("/srv/other", "jfs", "8:2", "/dev/sda2", "sda"), "/dev/sda2 /srv/other jfs defaults 0 0\n"
    )
    found = facts(host, "/srv/other")
    assert (found["barrier"], found["persisted"]["barrier"], found["data_mode"]) == ("off", "off", "none")
