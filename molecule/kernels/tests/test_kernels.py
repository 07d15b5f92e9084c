# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection assumes of kernels, asked of the kernels: each test fails on a kernel that
does otherwise, and then the code that rests on it is wrong there."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import truth

from lab.machine import Machine

#: The kernels of the releases; `newest` is the one that the lab's archive has.
RELEASES = {"kernel510": (5, 10), "kernel61": (6, 1), "kernel612": (6, 12)}

#: Counts the flushes that a disk gets for COUNT writes of 4 KiB, for each pattern: FILE DISK COUNT PATTERN...
WRITER = r"""
import mmap, os, sys
path, disk, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
def flushes():
    return int(open("/sys/block/%s/stat" % disk).read().split()[15])
block = mmap.mmap(-1, 4096)
block.write(b"x" * 4096)
size = 4096 * count
def prepare(pattern):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    if pattern == "fallocated":
        os.posix_fallocate(fd, 0, size)
    elif pattern != "append":
        os.write(fd, b"\0" * size)
    os.fsync(fd)
    os.close(fd)
    os.sync()
for pattern in sys.argv[4:]:
    prepare(pattern)
    flags = os.O_RDWR
    if pattern in ("direct_dsync", "fallocated", "direct_only"):
        flags |= os.O_DIRECT
    if pattern in ("direct_dsync", "fallocated", "dsync"):
        flags |= os.O_DSYNC
    fd = os.open(path, flags)
    before = flushes()
    for number in range(count):
        os.pwrite(fd, block, number * 4096)
        if pattern == "fdatasync":
            os.fdatasync(fd)
        elif pattern == "append":
            os.fsync(fd)
    print(flushes() - before)
    os.close(fd)
"""
COUNT = 100
#: Nothing flushes on its own while it is counted: ext4 writes its journal every 5 s otherwise.
QUIET = {"ext4": "commit=600", "xfs": "defaults"}


class Scratch:
    """One spare disk of the machine: made, mounted and written again by each test that wants a file system."""

    def __init__(self, machine: Machine, serial: str) -> None:
        self.machine = machine
        self.point = f"/mnt/{serial}"
        find = f"lsblk --nodeps --noheadings --raw --output SERIAL,NAME | sed -n 's/^{serial} //p'"
        self.name = self.sh(find).strip()
        assert self.name, f"no disk {serial}"
        self.device = f"/dev/{self.name}"

    def sh(self, script: str) -> str:
        """Run a script that has to succeed; return its output."""
        return self.machine.run(["sh", "-euc", script]).stdout

    def refuses(self, script: str) -> bool:
        """Tell whether a script fails."""
        done: subprocess.CompletedProcess[str] = self.machine.run(["sh", "-euc", script], check=False)
        return done.returncode != 0

    def make(self, fstype: str, options: str = "defaults", mkfs: str = "") -> None:
        """Make a file system and mount it."""
        force = "-f" if fstype in ("xfs", "btrfs") else "-F"
        lazy = "-E lazy_itable_init=0,lazy_journal_init=0" if fstype.startswith("ext") else ""
        self.sh(
            f"mkdir -p {self.point}; umount --all-targets {self.device} 2>/dev/null || true;"
            f"mkfs.{fstype} -q {force} {lazy} {mkfs} {self.device};"
            f"mount -t {fstype} -o {options} {self.device} {self.point}"
        )

    def flushes(self, *patterns: str) -> list[int]:
        """Return the flushes that the disk got for COUNT writes of each pattern."""
        argv = ["python3", "-", f"{self.point}/file", self.name, str(COUNT), *patterns]
        return [int(word) for word in self.machine.run(argv, input=WRITER).stdout.split()]

    def count(self) -> int:
        """Return the flushes that the disk got since the boot."""
        return int(self.sh(f"cat /sys/block/{self.name}/stat").split()[15])

    def cache_mode(self, word: str | None = None) -> str:
        """Return the kernel cache mode of the disk; force it first, if asked to."""
        path = f"/sys/block/{self.name}/queue/write_cache"
        if word:
            self.sh(f"echo {word} > {path}")
        return self.sh(f"cat {path}").strip()

    def cache_type(self, *words: str) -> None:
        """Write words into the attribute that switches a SCSI disk's cache, one after the other."""
        path = self.sh(f"ls -d /sys/block/{self.name}/device/scsi_disk/*/cache_type").strip()
        for word in words:
            self.sh(f"echo {word} > {path}")

    def has_own_ext2(self) -> bool:
        """Tell whether ext2 has a driver of its own: Debian's kernels have none, that of User Mode Linux has."""
        modules = "/lib/modules/$(uname -r)/modules"
        return not self.refuses(f"cat {modules}.builtin {modules}.dep | grep -q 'fs/ext2/ext2[.]ko'")

    def kernel_options(self) -> list[str]:
        """Return what ext4 itself says of the options in force."""
        return self.sh(f"cat /proc/fs/ext4/{self.name}/options").split()


@pytest.fixture(scope="session")
def plain(machine: Machine) -> Iterator[Scratch]:
    """A SCSI disk that caches and takes no FUA."""
    yield from _scratch(machine, "SCSI0091")


@pytest.fixture(scope="session")
def fua(machine: Machine) -> Iterator[Scratch]:
    """A SCSI disk that caches and takes FUA."""
    yield from _scratch(machine, "SCSI0092")


def _scratch(machine: Machine, serial: str) -> Iterator[Scratch]:
    disk = Scratch(machine, serial)
    yield disk
    disk.sh(f"umount --all-targets {disk.device} 2>/dev/null || true; wipefs -qaf {disk.device}")


class TestConverged:
    def test_the_machine_runs_the_kernel_that_is_asked(
        self, machine: Machine, kernel: tuple[int, int]
    ) -> None:
        if machine.name in RELEASES:
            assert kernel == RELEASES[machine.name]
        elif machine.record().hardware.kind == "uml":
            assert kernel > max(RELEASES.values())
        else:
            pytest.skip("DBHOST_LAB_KIND asks for emulation, which has no newer kernel")

    def test_the_profile_is_in_effect(self, machine: Machine) -> None:
        found = truth.read(machine)
        for target in (
            ("/srv/bound", "/srv/xfslog") if machine.name == "newest" else ("/srv/ext4", "/srv/xfs")
        ):
            mount = found["mounts"][target]
            assert mount["barrier"] == "on"
            assert "noatime" in mount["options"]
            (disk,) = [one for one in found["disks"].values() if one["name"] == mount["source"]]
            assert disk["cache"] == "off"
            assert disk["cache_mode"] == (
                "write back" if mount["source"].startswith("sd") else "write through"
            )


class TestFlushes:
    @pytest.mark.fact(4)
    @pytest.mark.fact(17)
    @pytest.mark.parametrize("fstype", ["ext4", "xfs"])
    def test_each_synchronous_write_is_one_flush(self, plain: Scratch, fstype: str) -> None:
        plain.make(fstype, QUIET[fstype])
        fdatasync, direct_dsync, append = plain.flushes("fdatasync", "direct_dsync", "append")
        assert COUNT <= fdatasync <= COUNT + 4
        assert COUNT <= direct_dsync <= COUNT + 4
        assert 1.5 * COUNT <= append <= 2 * COUNT + 8

    @pytest.mark.fact(4)
    def test_without_barriers_no_flush_reaches_the_disk(self, plain: Scratch) -> None:
        plain.make("ext4", "barrier=0")
        assert plain.flushes("fdatasync", "dsync", "append") == [0, 0, 0]

    @pytest.mark.fact(4)
    def test_a_journal_for_data_costs_more_flushes(self, plain: Scratch) -> None:
        plain.make("ext4", "data=journal")
        assert plain.flushes("append")[0] >= 2 * COUNT

    @pytest.mark.fact(4)
    @pytest.mark.fact(18)
    @pytest.mark.parametrize("fstype", ["ext4", "xfs"])
    def test_a_cache_mode_that_was_forced_stops_all_flushes(self, plain: Scratch, fstype: str) -> None:
        plain.make(fstype)
        before = plain.cache_mode()
        try:
            assert plain.cache_mode("write through") == "write through"
            assert plain.flushes("fdatasync") == [0]
            device = plain.sh(f"sdparm -q -r --get WCE=1 -H {plain.device}").strip()
            assert device == "0x01"  # and the device still caches
        finally:
            assert plain.cache_mode(before) == before

    @pytest.mark.fact(14)
    @pytest.mark.fact(16)
    @pytest.mark.fact(17)
    @pytest.mark.parametrize("fstype", ["ext4", "xfs"])
    def test_with_fua_a_direct_write_over_old_blocks_needs_no_flush(self, fua: Scratch, fstype: str) -> None:
        assert fua.sh(f"cat /sys/block/{fua.name}/queue/fua").strip() == "1"
        fua.make(fstype, QUIET[fstype])
        direct_dsync, fallocated, fdatasync = fua.flushes("direct_dsync", "fallocated", "fdatasync")
        assert direct_dsync <= 4
        # Fresh extents change metadata with each write.
        assert fallocated >= COUNT / 2
        # Buffered writes are flushed, FUA or not.
        assert fdatasync >= COUNT

    @pytest.mark.fact(6)
    def test_data_journal_takes_the_fua_path_away(self, fua: Scratch) -> None:
        fua.make("ext4", "data=journal")
        assert fua.flushes("direct_dsync")[0] >= COUNT

    @pytest.mark.fact(16)
    def test_scsi_fua_counts_only_while_the_kernel_cache_mode_is_write_back(self, fua: Scratch) -> None:
        queue = f"/sys/block/{fua.name}/queue/fua"
        try:
            fua.cache_type("write through")
            assert fua.sh(f"cat {queue}").strip() == "0"
            # The pin that keeps flushes going brings FUA back with it.
            fua.cache_type("temporary write back")
            assert fua.sh(f"cat {queue}").strip() == "1"
        finally:
            fua.cache_type("write back")

    @pytest.mark.fact(43)
    def test_barriers_that_come_back_flush_nothing_by_themselves(self, plain: Scratch) -> None:
        plain.make("ext4", "barrier=0")
        assert plain.flushes("append") == [0]
        before = plain.count()
        remount = f"mount --options-source=disable -o remount,barrier=1 {plain.device} {plain.point}"
        plain.sh(f"{remount}; sleep 6")
        assert plain.count() == before
        plain.sh(f"sync --file-system {plain.point}")
        assert plain.count() > before


class TestRemounts:
    @pytest.mark.fact(1)
    def test_xfs_refuses_what_it_no_longer_knows(self, plain: Scratch) -> None:
        plain.make("xfs")
        plain.sh(f"umount {plain.point}")
        for option in ("nobarrier", "barrier=0", "data=ordered"):
            assert plain.refuses(f"mount -o {option} {plain.device} {plain.point}"), option
        plain.sh(f"mount {plain.device} {plain.point}")

    @pytest.mark.fact(3)
    def test_ext4_barriers_change_live_and_only_its_own_file_tells_the_truth(self, plain: Scratch) -> None:
        plain.make("ext4")
        shown = f"grep ' {plain.point} ' /proc/mounts"
        assert "barrier" not in plain.sh(shown)
        plain.sh(f"mount -o remount,barrier=0 {plain.device} {plain.point}")
        assert "nobarrier" in plain.sh(shown)
        plain.sh(
            f"umount {plain.point}; tune2fs -o nobarrier,journal_data_writeback {plain.device} > /dev/null;"
            f"mount {plain.device} {plain.point}"
        )
        assert "barrier" not in plain.sh(shown)
        assert "data=" not in plain.sh(shown)
        assert {"nobarrier", "data=writeback"} <= set(plain.kernel_options())

    @pytest.mark.fact(5)
    def test_the_journal_mode_does_not_change_live(self, plain: Scratch) -> None:
        plain.make("ext4")
        assert plain.refuses(f"mount -o remount,data=journal {plain.device} {plain.point}")
        assert "data=ordered" in plain.kernel_options()

    @pytest.mark.fact(5)
    def test_the_journal_mode_needs_a_journal_and_bears_no_delalloc(self, plain: Scratch) -> None:
        plain.make("ext4")
        again = f"umount {plain.point} 2>/dev/null || true; mount {plain.device} {plain.point}"
        assert plain.refuses(again.replace("mount /dev", "mount -o data=journal,delalloc /dev"))
        plain.make("ext4", mkfs="-O ^has_journal")
        assert plain.refuses(again.replace("mount /dev", "mount -o data=ordered /dev"))

    @pytest.mark.fact(7)
    def test_what_a_remount_refuses_and_what_it_takes(self, plain: Scratch) -> None:
        plain.make("ext4")
        remount = f"mount -o remount,%s {plain.device} {plain.point}"
        plain.sh(remount % "commit=7,noatime")
        assert plain.refuses(
            f"umount {plain.point}; mount -o journal_async_commit,data=ordered {plain.device} {plain.point}"
        )
        plain.make("ext4", "sync")
        shown = f"findmnt -no OPTIONS {plain.point}"
        # Some kernels drop it when it is not named again, some keep it until "async".
        plain.sh(remount % "rw,sync")
        assert "sync" in plain.sh(shown).strip().split(",")
        plain.sh(remount % "async")
        assert "sync" not in plain.sh(shown).strip().split(",")

    @pytest.mark.fact(8)
    @pytest.mark.parametrize("fstype", ["ext2", "ext3"])
    def test_the_ext4_driver_mounts_its_elders(self, plain: Scratch, fstype: str) -> None:
        plain.make(fstype)
        assert plain.has_own_ext2() is (plain.machine.record().hardware.kind == "uml")
        if fstype == "ext2" and plain.has_own_ext2():
            # A choice of who built the kernel: this driver has no barriers, and none to switch off.
            remount = f"mount --options-source=disable -o remount,%s {plain.device} {plain.point}"
            plain.sh(remount % "rw")
            assert plain.refuses(remount % "rw,barrier=0")
            assert plain.refuses(f"cat /proc/fs/ext4/{plain.name}/options")
        else:
            assert "barrier" in plain.kernel_options()

    @pytest.mark.fact(10)
    def test_a_plain_remount_does_not_bring_barriers_back(self, plain: Scratch) -> None:
        plain.make("ext4", "barrier=0")
        plain.sh(f"mount -o remount {plain.device} {plain.point}")
        assert "nobarrier" in plain.kernel_options()

    @pytest.mark.fact(44)
    def test_a_remount_that_reads_fstab_loses_flags_that_are_in_force(self, plain: Scratch) -> None:
        plain.make("ext4", "ro,nosuid,nodev,noexec")
        plain.sh(
            f"cp /etc/fstab /tmp/fstab; echo {plain.device} {plain.point} ext4 defaults 0 2 >> /etc/fstab"
        )
        try:
            plain.sh(f"mount -o remount,barrier=1 {plain.point}")
            options = plain.sh(f"findmnt -no OPTIONS {plain.point}").strip().split(",")
            assert "rw" in options
            assert "nosuid" not in options
        finally:
            plain.sh("cp /tmp/fstab /etc/fstab")

    @pytest.mark.fact(45)
    def test_one_superblock_has_one_barrier_and_each_mount_its_own_atime(self, plain: Scratch) -> None:
        plain.make("ext4")
        plain.sh(
            "mkdir -p /mnt/second; systemd-run --quiet --unit=scratch-view -p PrivateMounts=yes sleep 600;"
            f"mount {plain.device} /mnt/second"
        )
        try:
            # Whether another mount with another word fails or is told nothing of it: it has no say.
            plain.refuses(f"mkdir -p /mnt/third; mount -o barrier=0 {plain.device} /mnt/third")
            assert "nobarrier" not in plain.kernel_options()
            plain.sh(f"mount -o remount,barrier=0 {plain.device} /mnt/second")
            assert "nobarrier" in plain.kernel_options()
            plain.sh(f"mount -o remount,bind,noatime {plain.point}")
            pid = plain.sh("systemctl show -P MainPID scratch-view").strip()
            view = plain.sh(f"grep ' {plain.point} ' /proc/{pid}/mountinfo")
            assert "relatime" in view
        finally:
            plain.sh("systemctl stop scratch-view; umount /mnt/second; umount /mnt/third 2>/dev/null || true")


class TestMountApi:
    """The collection's own functions, on each kernel: a mount is changed through its descriptor, and nothing else."""

    SCRIPT = Path(truth.__file__).with_name("mount_api_script.py")

    @pytest.fixture(scope="class")
    def sources(self, machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> str:
        """Put the package `host` on the machine; return its path there."""
        path = tmp_path_factory.mktemp("sources") / "host.zip"
        package = Path(__file__).resolve().parents[3] / "plugins/module_utils/host"
        with zipfile.ZipFile(path, "w") as archive:
            for source in package.rglob("*.py"):
                archive.write(source, f"host/{source.relative_to(package)}")
        machine.put(path, "/run/host.zip")
        return "/run/host.zip"

    @pytest.mark.fact(100)
    @pytest.mark.fact(101)
    @pytest.mark.fact(102)
    @pytest.mark.parametrize("way", ["descriptors", "mount"])
    @pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs"])
    def test_options_and_atime_change_alone(
        self, plain: Scratch, sources: str, fstype: str, way: str, kernel: tuple[int, int]
    ) -> None:
        plain.make(fstype)
        plain.sh(f"umount --all-targets {plain.device}")
        argv = ["python3", "-", sources, plain.device, fstype, way]
        said = plain.machine.run(argv, input=self.SCRIPT.read_text(encoding="utf-8")).stdout
        assert json.loads(said) == []

    @pytest.mark.fact(103)
    def test_the_kernel_is_queried_for_the_options_that_it_knows(
        self, plain: Scratch, sources: str, kernel: tuple[int, int]
    ) -> None:
        options = ["noacl", "barrier=1", "bogus", "data=orderd", "nofail"]
        script = (
            f"import sys, json; sys.path.insert(0, {sources!r}); from host.seam import Host\n"
            f"print(json.dumps(Host().refused_mount_options('ext4', {options})))"
        )
        found = json.loads(plain.machine.run(["python3", "-"], input=script).stdout)
        if kernel < (5, 17):
            assert found is None  # It accepts any option until it mounts.
        else:
            assert found == {
                "noacl": "ext4: Unknown parameter 'noacl'",
                "bogus": "ext4: Unknown parameter 'bogus'",
                "data=orderd": "ext4: Bad value for 'data'",
            }


class TestDisks:
    @pytest.mark.fact(19)
    def test_a_tool_behind_the_kernels_back_leaves_a_false_cache_mode(self, plain: Scratch) -> None:
        plain.cache_type("write through")
        try:
            generic = plain.sh(f"ls /sys/block/{plain.name}/device/scsi_generic").strip()
            plain.sh(f"sdparm -q --set WCE=1 /dev/{generic}")
            assert plain.sh(f"sdparm -q -r --get WCE=1 -H {plain.device}").strip() == "0x01"
            assert plain.cache_mode() == "write through"
            plain.sh(f"echo 1 > /sys/block/{plain.name}/device/rescan")
            assert plain.cache_mode() == "write back"
        finally:
            plain.cache_type("write back")

    @pytest.mark.fact(18)
    @pytest.mark.fact(58)
    def test_a_forced_cache_mode_can_be_raised_by_the_driver_up_to_some_kernel(
        self, plain: Scratch, kernel: tuple[int, int]
    ) -> None:
        assert plain.cache_mode("write through") == "write through"
        try:
            plain.cache_type("temporary write back")
            # Measured: 5.10 and 6.1 do, 6.12 and 7.2 let the file that was misused overrule the driver.
            assert plain.cache_mode() == ("write back" if kernel < (6, 12) else "write through")
            plain.cache_type("write back")
            plain.sh(f"echo 1 > /sys/block/{plain.name}/device/rescan")
            assert plain.cache_mode() == ("write back" if kernel < (6, 12) else "write through")
        finally:
            assert plain.cache_mode("write back") == "write back"

    @pytest.mark.fact(21)
    def test_a_pin_outlives_a_rescan(self, plain: Scratch) -> None:
        try:
            plain.cache_type("write through", "temporary write back")
            plain.sh(f"echo 1 > /sys/block/{plain.name}/device/rescan")
            assert plain.cache_mode() == "write back"
            assert plain.sh(f"sdparm -q -r --get WCE=1 -H {plain.device}").strip() == "0x00"
        finally:
            plain.cache_type("write back")

    @pytest.mark.fact(21)
    def test_a_page_that_cannot_be_saved_is_refused(self, plain: Scratch) -> None:
        assert plain.refuses(f"sdparm -q --set WCE=0 --save {plain.device}")
        assert plain.sh(f"sdparm -q -r --get WCE=1 -H {plain.device}").strip() == "0x01"

    @pytest.mark.fact(25)
    def test_which_schedulers_a_kernel_of_today_knows(self, plain: Scratch) -> None:
        path = f"/sys/block/{plain.name}/queue/scheduler"
        before = plain.sh(f"sed 's/.*\\[\\(.*\\)\\].*/\\1/' {path}").strip()
        try:
            plain.sh(f"echo mq-deadline > {path}")
            assert "[mq-deadline]" in plain.sh(f"cat {path}")
            for old in ("noop", "cfq"):
                assert plain.refuses(f"echo {old} > {path}")
        finally:
            plain.sh(f"echo {before} > {path}")
