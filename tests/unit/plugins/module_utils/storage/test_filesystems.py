# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each file system says of its barriers, and everything that it writes to."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.kernel_version import version
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount, parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4
from ansible_collections.durable.dbhost.plugins.module_utils.storage.blockstack import Blocks
from ansible_collections.durable.dbhost.plugins.module_utils.storage.ext4 import Superblock
from ansible_collections.durable.dbhost.plugins.module_utils.storage.filesystems import FileSystems
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mounts import Mounts

from ..fakes.sentences import sentence, sentence_of
from ..fakes.small_host import BigHost, FakeDisk, FakeMount, SmallHost


def mounted(host: SmallHost, target: str) -> tuple[FileSystems, Mount]:
    """Return what asks the file systems, and the mount of a target."""
    (mount,) = [m for m in parse_mountinfo(host.read("/proc/self/mountinfo")) if m.target == target]
    return FileSystems(host, Blocks(host)), mount


def running(host: SmallHost, target: str) -> dict[str, str]:
    filesystems, mount = mounted(host, target)
    return {name: seen.value for name, seen in filesystems.running(mount).items()}


def other(fstype: str, *super_options: str, device: str = "0:60") -> Mount:
    return Mount(device, "/", "/srv", ("rw",), fstype, "x", ("rw", *super_options))


def facts(host: SmallHost, target: str) -> dict[str, Any]:
    reader = Mounts(host)
    (found,) = [s for s in reader.superblocks() if target in [mount.target for mount in s.mounts]]
    return reader.collect(found)


@pytest.mark.parametrize("release", ["4.19.0", "5.10.0-32-amd64", "6.12.107", "", "garbage"])
@pytest.mark.fact(1)
def test_xfs_flushes_always(release: str) -> None:
    """XFS has had no barrier option since 4.19, and no data= ever; older ones show a nobarrier."""
    host = SmallHost()
    host.files["/proc/sys/kernel/osrelease"] = f"{release}\n"
    assert running(host, "/srv/mssql") == {"barrier": "on", "data_mode": "none"}


@pytest.mark.fact(1)
def test_an_old_xfs_without_barriers_says_so() -> None:
    host = SmallHost()
    host.files["/proc/sys/kernel/osrelease"] = "4.12.14-122-default\n"
    host.mounts["/srv/mssql"].super_options = ("nobarrier",)
    assert running(host, "/srv/mssql")["barrier"] == "off"


@pytest.mark.parametrize("by", ["option", "superblock"])
@pytest.mark.fact(3)
def test_ext4_is_asked_where_the_whole_truth_is(by: str) -> None:
    """/proc/mounts hides what the superblock's defaults set; /proc/fs/ext4 tells it."""
    host = SmallHost()
    mount = host.mounts["/srv/pgdata"]
    mount.barrier, mount.data = "off", "writeback"
    if by == "superblock":
        plain = host.read("/proc/self/mountinfo").replace(",nobarrier", "")
        host.files["/proc/self/mountinfo"] = plain
    assert "data=" not in host.read("/proc/self/mountinfo")
    assert running(host, "/srv/pgdata") == {"barrier": "off", "data_mode": "writeback"}


@pytest.mark.parametrize("fstype", ["ext2", "ext3", "ext4"])
@pytest.mark.fact(8)
def test_ext2_and_ext3_are_the_ext4_drivers(fstype: str) -> None:
    """Barriers are on there by default, and it is asked in the same place."""
    host = SmallHost()
    mount = FakeMount("/srv/old", fstype, "8:2", "/dev/sda2", "sda", journal=fstype != "ext2")
    host.add_mount(mount)
    mode = "none" if fstype == "ext2" else "ordered"
    assert running(host, "/srv/old") == {"barrier": "on", "data_mode": mode}
    mount.barrier = "off"
    assert running(host, "/srv/old")["barrier"] == "off"


@pytest.mark.parametrize("barrier", ["on", "off"])
@pytest.mark.fact(9)
def test_btrfs_shows_nobarrier_and_nothing_else(barrier: str) -> None:
    """btrfs without barriers corrupts in a crash."""
    host = BigHost()
    host.mounts["/srv/btrfs"].barrier = barrier
    assert running(host, "/srv/btrfs") == {"barrier": barrier, "data_mode": "none"}


@pytest.mark.fact(86)
def test_jfs_flushes_nothing() -> None:
    host = SmallHost()
    found = FileSystems(host, Blocks(host)).running(other("jfs"))
    assert {name: seen.value for name, seen in found.items()} == {"barrier": "off", "data_mode": "none"}
    assert sentence_of(found["barrier"]) == "JFS never flushes a disk, and no option makes it"


@pytest.mark.parametrize("fstype", ["cifs", "overlay", "fuseblk", "raw", "of-tomorrow"])
@pytest.mark.fact(9)
@pytest.mark.fact(52)
def test_a_file_system_without_a_rule_is_unknown_with_its_reason(fstype: str) -> None:
    """As raw devices, which rest on the database."""
    host = SmallHost()
    found = FileSystems(host, Blocks(host)).running(other(fstype))
    assert {seen.value for seen in found.values()} == {"unknown"}
    assert all(map(sentence_of, found.values()))


@pytest.mark.fact(47)
def test_a_volatile_overlay_drops_every_sync() -> None:
    host = SmallHost()
    found = FileSystems(host, Blocks(host)).running(other("overlay", "volatile"))
    assert (found["barrier"].value, found["data_mode"].value) == ("off", "unknown")


class TestDevices:
    def test_of_an_ordinary_one_are_its_own(self) -> None:
        filesystems, mount = mounted(SmallHost(), "/srv/pgdata")
        assert filesystems.devices(mount, filesystems.superblock(mount)[0]) == (["8:1"], [], [])

    @pytest.mark.fact(16)
    def test_a_journal_elsewhere_is_where_its_thread_writes(self) -> None:
        """The superblock knows the journal's device only as of the day it was made."""
        found = facts(BigHost(), "/srv/mysql")
        assert (found["disks"], found["external_log"]) == (["sde", "nvme0n1"], "/dev/nvme0n1p2")

    def test_the_name_of_a_thread_that_was_cut_short_is_completed(self) -> None:
        host = BigHost()
        host.add_disk(FakeDisk("nvme10n1", "nvme", "X"), "259:90")
        host.add_partition("nvme10n1", "nvme10n1p12", "259:92")
        host.mounts["/srv/mysql"].journal_on = "nvme10n1p12"
        host.files["/proc/fs/jbd2/nvme10n1p12/info"] = ""
        host.files["/proc/fs/jbd2/nvme10n1p1-8/info"] = ""
        assert facts(host, "/srv/mysql")["disks"] == ["sde", "nvme10n1"]
        # Now two of them can be meant.
        host.add_partition("nvme10n1", "nvme10n1p1", "259:91")
        host.files["/proc/fs/jbd2/nvme10n1p1/info"] = ""
        found = facts(host, "/srv/mysql")
        assert found["disks"] == "unknown"
        assert "may be any of nvme10n1p1, nvme10n1p12" in sentence(found, "disks")

    @pytest.mark.parametrize(
        "damage",
        [
            lambda host: host.files.pop("/sys/fs/ext4/sde1/journal_task"),
            lambda host: [host.files.pop(path) for path in list(host.files) if path.endswith("/comm")],
            lambda host: setattr(host.mounts["/srv/mysql"], "journal_on", "gone"),
            lambda host: host.commands.pop((*ext4.SHOW, "/dev/block/8:65")),
        ],
    )
    def test_a_journal_that_is_not_found_is_not_passed_over(self, damage: Any) -> None:
        host = BigHost()
        damage(host)
        found = facts(host, "/srv/mysql")
        assert (found["disks"], found["disks_seen"][0]) == ("unknown", "sde")
        assert "/srv/mysql" in sentence(found, "disks")

    @pytest.mark.parametrize("option", ["logdev", "rtdev"])
    @pytest.mark.fact(16)
    def test_log_and_realtime_devices_of_xfs_are_leaves_too(self, option: str) -> None:
        """External journals and log volumes must be inspected as well."""
        host = BigHost()
        host.mounts["/srv/mssql"].super_options = (f"{option}=/dev/nvme0n1p2",)
        found = facts(host, "/srv/mssql")
        assert (found["disks"], found["external_log"]) == (["sdb", "nvme0n1"], "/dev/nvme0n1p2")

    def test_all_members_of_a_btrfs(self) -> None:
        host = BigHost()
        host.links["/sys/fs/btrfs/b0b0/devices/sde1"] = host.links["/sys/class/block/sde1"]
        assert facts(host, "/srv/btrfs")["disks"] == ["sde", "sdf"] or facts(host, "/srv/btrfs")["disks"] == [
            "sdf",
            "sde",
        ]

    @pytest.mark.parametrize("damage", ["/sys/fs/btrfs/b0b0/devices/sdf", "/sys/class/block/sdf"])
    def test_a_btrfs_whose_members_are_not_known_is_unknown(self, damage: str) -> None:
        host = BigHost()
        del host.links[damage]
        assert facts(host, "/srv/btrfs")["disks"] == "unknown"

    @pytest.mark.parametrize(
        ("chunk", "level", "hole"),
        [
            ("data", "raid5", True),
            ("metadata", "raid6", True),
            ("system", "raid5", True),
            ("data", "raid1", False),
            ("data", "single", False),
            ("metadata", "dup", False),
        ],
    )
    @pytest.mark.fact(47)
    def test_parity_of_btrfs_has_the_write_hole(self, chunk: str, level: str, hole: bool) -> None:
        host = BigHost()
        host.files[f"/sys/fs/btrfs/b0b0/allocation/{chunk}/{level}/used_bytes"] = "4096\n"
        expected = [{"maker": "file_system", "name": chunk, "level": level}] if hole else []
        assert facts(host, "/srv/btrfs")["write_hole"] == expected


@pytest.mark.parametrize("journal", ["internal", "none"])
def test_a_journal_in_its_place_adds_no_device(journal: str) -> None:
    filesystems, mount = mounted(SmallHost(), "/srv/pgdata")
    assert filesystems.devices(mount, Superblock((), journal))[0] == ["8:1"]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-26-amd64", (6, 1)),
        ("4.18.0-553.el8", (4, 18)),
        ("5.10", (5, 10)),
        ("", (0, 0)),
        ("rolling", (0, 0)),
    ],
)
def test_kernel_releases(release: str, expected: tuple[int, int]) -> None:
    assert version(release) == expected
