# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The spare disk that is overwritten: each use of it is a refusal, and what a killed run leaves is removed."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import trusted_path
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import COMPARISON
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Host,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure import scratch, spare
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import MIB, Refused

from ..fakes.small_host import FakeDisk, SmallHost

DEVICE = f"{spare.BY_ID}/scsi-SPARE"
LABEL = "db0123456789"


class SpareHost(SmallHost):
    """A host with a spare disk, sdc.

    `signatures`: what wipefs reports; `wiped`: how often it removed them; `broken`: its error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.signatures, self.wiped, self.broken = "", 0, ""
        self.add_disk(FakeDisk("sdc", "scsi", "SPARE"), "8:32")
        self.base = self.disk("sdc").sysfs
        self.links[DEVICE] = "/dev/sdc"
        self.links[f"{spare.BY_ID}/scsi-PART"] = "/dev/sda1"
        self.links["/dev/disk/by-path/pci-0:1"] = "/dev/sdc"
        self.files.update({f"{self.base}/ro": "0\n", f"{self.base}/size": f"{600 * MIB // 512}\n"})
        self.files.update({"/dev/sdc": "", "/dev/nvme0n1": ""})
        self.files["/proc/swaps"] = "Filename Type Size Used Priority\n"

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[0] == "wipefs" and self.broken:
            return Result(1, "", self.broken)
        if argv[0] == "wipefs":
            if "--all" in argv:
                self.signatures, self.wiped = "", self.wiped + 1
            return Result(0, self.signatures, "")
        return super().run(argv, timeout)


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake disk cannot be opened, and its names are root's."""

    @contextmanager
    def nothing(_host: Any, _spare: Any, _flags: int = 0) -> Iterator[int]:
        with tempfile.TemporaryFile() as file:
            yield file.fileno()

    monkeypatch.setattr(spare, "opened", nothing)
    monkeypatch.setattr(spare, "_processes", lambda _number: [])
    monkeypatch.setattr(spare, "wait_until_unused", lambda _descriptor: None)
    monkeypatch.setattr(trusted_path, "weakness", lambda _host, _path: "")


def test_a_disk_without_content_or_use_is_found_by_its_permanent_name() -> None:
    found = spare.find(SpareHost(), DEVICE, DEVICE)
    assert found == spare.Spare(DEVICE, "sdc", "8:32", 600 * MIB, "none", ("none", "mq-deadline"))


@pytest.mark.parametrize(
    ("device", "overwrite", "why"),
    [
        ("", "", "device: observed ''; expected the permanent name"),
        (None, None, "device: observed None"),
        ("/dev/sdc", "/dev/sdc", "observed '/dev/sdc'; expected the permanent name"),
        (f"{spare.BY_ID}/../../sdc", f"{spare.BY_ID}/../../sdc", "expected the permanent name"),
        (f"{spare.BY_ID}/..", f"{spare.BY_ID}/..", "expected the permanent name"),
        (f"{DEVICE}\n", f"{DEVICE}\n", "expected the permanent name"),
        (f"{DEVICE} x", f"{DEVICE} x", "expected the permanent name"),
        (DEVICE, "", "overwrite: observed '', expected '/dev/disk/by-id/scsi-SPARE': the same name again"),
        (DEVICE, True, "overwrite: observed True"),
        (DEVICE, f"{spare.BY_ID}/scsi-OTHER", "overwrite: observed"),
        (f"{spare.BY_ID}/none", f"{spare.BY_ID}/none", "there is no such disk"),
        (f"{spare.BY_ID}/scsi-PART", f"{spare.BY_ID}/scsi-PART", "which is /dev/sda1; expected a whole disk"),
    ],
)
def test_a_disk_that_is_not_named_twice_by_a_permanent_name_is_refused(
    device: Any, overwrite: Any, why: str
) -> None:
    with pytest.raises(Refused) as error:
        spare.find(SpareHost(), device, overwrite)
    assert why in str(error.value)


def _mounted(host: SpareHost) -> None:
    line = "99 1 8:32 / /srv/x rw - ext4 /dev/sdc rw\n"
    mountinfo = host.files["/proc/self/mountinfo"]
    host.files["/proc/self/mountinfo"] = lambda: mountinfo() + line


def _member(host: SpareHost) -> None:
    line = "99 1 0:77 / /srv/x rw - btrfs /dev/sdc rw\n"
    mountinfo = host.files["/proc/self/mountinfo"]
    host.files["/proc/self/mountinfo"] = lambda: mountinfo() + line


def _swap(host: SpareHost) -> None:
    host.files["/proc/swaps"] += f"{DEVICE} partition 1 0 -2\n"


def _listed(host: SpareHost) -> None:
    host.links["/dev/disk/by-uuid/aa-bb"] = "/dev/sdc"
    host.files["/etc/fstab"] += "UUID=aa-bb /srv/later ext4 noauto\n"


def _crypt(host: SpareHost) -> None:
    host.files["/etc/crypttab"] = "# name device\nvault /dev/sdc none luks\n"


def _held(host: SpareHost) -> None:
    host.files[f"{host.base}/holders/dm-3/dev"] = "254:3\n"


def _made(host: SpareHost) -> None:
    host.files[f"{host.base}/slaves/sdx/dev"] = "8:99\n"


def _cut(host: SpareHost) -> None:
    host.files[f"{host.base}/sdc1/partition"] = "1\n"


def _file(path: str, text: str) -> Callable[[SpareHost], None]:
    return lambda host: host.files.update({path: text})


def _nvme(host: SpareHost) -> None:
    path = "/sys/kernel/config/nvmet/subsystems/db/namespaces/1/device_path"
    host.files.update({path.replace("/1/", "/0/"): "(null)\n", path: f"{DEVICE}\n"})


def _second_path(host: SpareHost) -> None:
    host.add_disk(FakeDisk("sdd", "scsi", "SPARE"), "8:48")


def _same_wwid(host: SpareHost) -> None:
    host.files.update({f"{host.disk(name).sysfs}/device/wwid": "naa.5\n" for name in ("sda", "sdc")})


def _same_serial(host: SpareHost) -> None:
    host.files.update({f"{host.disk(name).sysfs}/serial": "S1\n" for name in ("vdb", "sdc")})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            _file("/sys/block/loop3/loop/backing_file", "/dev/sdc\n"),
            "the file of a loop device: /sys/block/loop3/",
        ),
        (_file("/sys/block/loop3/loop/backing_file", "/dev/sdc (deleted)\n"), "the file of a loop device"),
        (
            _nvme,
            "exported by NVMe over Fabrics: /sys/kernel/config/nvmet/subsystems/db/namespaces/1/device_path",
        ),
        (
            _file("/sys/kernel/config/target/core/fileio_0/db/udev_path", f"{DEVICE}\n"),
            "exported by the kernel's SCSI target",
        ),
        (_second_path, "its WWID or serial number on sdd too"),
        (_same_wwid, "its WWID or serial number on sda too"),
        (_same_serial, "its WWID or serial number on vdb too"),
        (_mounted, "mounted at /srv/x"),
        (_member, "mounted at /srv/x"),
        (_swap, "swap space"),
        (_listed, "listed in /etc/fstab"),
        (_crypt, "listed in /etc/crypttab"),
        (
            _file("/etc/crypttab", f"vault UUID=1-2 {DEVICE} luks,keyfile-size=64\n"),
            "listed in /etc/crypttab",
        ),
        (_file("/etc/crypttab", f"vault UUID=1-2 {DEVICE}:/key luks\n"), "listed in /etc/crypttab"),
        (
            _file("/etc/fstab", f"UUID=1-2 /srv/x xfs noauto,rtdev={DEVICE},noatime 0 0\n"),
            "listed in /etc/fstab",
        ),
        (
            _file("/etc/drbd.d/r0.res", f"resource r0 {{ meta-disk {DEVICE} [0]; }}\n"),
            "listed in /etc/drbd.d/r0.res",
        ),
        (
            _file("/etc/libvirt/qemu/db1.xml", "<source dev='/dev/disk/by-path/pci-0:1'/>\n"),
            "listed in /etc/libvirt/qemu/db1.xml",
        ),
        (
            _file("/etc/target/saveconfig.json", f'{{"dev": "{DEVICE}"}}\n'),
            "listed in /etc/target/saveconfig.json",
        ),
        (lambda host: host.uids.update({"/dev/sdc": 1500}), "a device of user 1500"),
        (_held, "used by dm-3"),
        (_made, "made of sdx"),
        (_cut, "partitions sdc1"),
        (lambda host: host.files.update({f"{host.base}/ro": "1\n"}), "a read-only disk"),
        (lambda host: host.files.update({f"{host.base}/size": "999\n"}), "at least 512 are needed"),
        (lambda host: setattr(host, "signatures", "LVM2_member\ngpt\n"), "a signature of LVM2_member, gpt"),
        (lambda host: setattr(host, "signatures", f"ext4 {LABEL}\n"), "a signature of ext4"),
    ],
)
def test_a_disk_that_has_a_use_or_content_is_refused_and_nothing_is_written(change: Any, why: str) -> None:
    host = SpareHost()
    change(host)
    with pytest.raises(Refused, match="Nothing was written") as error:
        spare.find(host, DEVICE, DEVICE)
    assert f"observed {why}" in str(error.value) or why in str(error.value)
    assert (host.mutations, host.wiped) == ([], 0)


@pytest.mark.parametrize(
    "path",
    [
        "/sys/block/loop3/loop/backing_file",
        "/sys/kernel/config/nvmet/subsystems/db/namespaces/1/device_path",
        "/sys/kernel/config/target/core/iblock_0/db/udev_path",
        "/sys/kernel/config/nvmet/subsystems",
    ],
)
def test_an_export_that_cannot_be_read_is_refused(path: str) -> None:
    host = SpareHost()
    # A directory without names is one that cannot be listed.
    host.files[path] = _denied
    with pytest.raises(Refused, match=r"not readable|subsystems: No such file"):
        spare.find(host, DEVICE, DEVICE)


def _denied() -> str:
    raise Unobservable("not readable")


def test_other_devices_in_configurations_and_comments_are_no_use_of_the_disk() -> None:
    host = SpareHost()
    host.files["/etc/crypttab"] = f"#vault {DEVICE} none luks\nvault UUID=1-2 /dev/urandom swap\n"
    host.files["/etc/drbd.d/r0.res"] = "disk /dev/sda1;\n"
    assert spare.find(host, DEVICE, DEVICE).name == "sdc"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENXIO])
def test_a_disk_without_a_designator_has_no_wwid(number: int) -> None:
    """The kernel fails the read of device/wwid then, as on the disks of the lab."""

    def no_wwid() -> str:
        raise Unobservable("no WWID") from OSError(number, "no WWID")

    host = SpareHost()
    host.files[f"{host.base}/device/wwid"] = no_wwid
    assert spare.find(host, DEVICE, DEVICE).name == "sdc"


def test_a_wwid_that_cannot_be_read_is_refused() -> None:
    def broken() -> str:
        raise Unobservable("broken") from OSError(errno.EIO, "broken")

    host = SpareHost()
    host.files[f"{host.base}/device/wwid"] = broken
    with pytest.raises(Refused, match="broken"):
        spare.find(host, DEVICE, DEVICE)


def test_other_exports_and_the_paths_of_native_multipath_are_no_use_of_the_disk() -> None:
    host = SpareHost()
    host.files["/sys/block/loop3/loop/backing_file"] = "/srv/image\n"
    host.files["/sys/kernel/config/target/core/alua/lu_gps/x"] = ""
    host.add_disk(FakeDisk("nvme0n1", "nvme", "N1"), "259:0")
    host.links[f"{spare.BY_ID}/nvme-N1"] = "/dev/nvme0n1"
    base = host.disk("nvme0n1").sysfs
    host.files.update(
        {f"{base}/ro": "0\n", f"{base}/size": f"{600 * MIB // 512}\n", f"{base}/wwid": "eui.1\n"}
    )
    host.files["/sys/block/nvme0c1n1/wwid"] = "eui.1\n"
    assert spare.find(host, f"{spare.BY_ID}/nvme-N1", f"{spare.BY_ID}/nvme-N1").name == "nvme0n1"


def test_without_udev_other_paths_are_unknown_and_refused() -> None:
    host = SpareHost()
    del host.commands[("udevadm", "info", "--export-db")]
    with pytest.raises(Refused, match="udevadm"):
        spare.find(host, DEVICE, DEVICE)


def test_a_disk_that_a_process_has_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_processes", lambda number: ["700"] if number == "8:32" else [])
    with pytest.raises(Refused, match="opened by process 700"):
        spare.find(SpareHost(), DEVICE, DEVICE)


def test_names_that_others_can_change_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_path, "weakness", lambda _host, path: f"{path} belongs to user 7")
    with pytest.raises(Refused, match="by-id belongs to user 7; expected names that root alone can change"):
        spare.find(SpareHost(), DEVICE, DEVICE)


def test_without_wipefs_the_content_is_unknown_and_refused() -> None:
    host = SpareHost()
    host.broken = "not found"
    with pytest.raises(Refused, match="wipefs: exit 1: not found"):
        spare.find(host, DEVICE, DEVICE)


class TestHeld:
    """What happens to a disk while it is owned, and after each end."""

    def found(self, host: SpareHost) -> spare.Spare:
        return spare.find(host, DEVICE, DEVICE)

    @pytest.mark.parametrize("end", [None, KeyError])
    def test_the_disk_is_wiped_and_the_record_removed_at_each_end(self, end: Any) -> None:
        host = SpareHost()
        host.disk("sdc").scheduler = "none [mq-deadline]"
        found = self.found(host)
        try:
            with spare.held(host, found, LABEL):
                record = json.loads(host.text(COMPARISON))
                assert (record["device"], record["label"], record["scheduler"]) == (
                    DEVICE,
                    LABEL,
                    "mq-deadline",
                )
                host.signatures = f"ext4 {LABEL}\n"
                if end:
                    raise end
        except KeyError:
            assert end
        assert (host.signatures, COMPARISON in host.files) == ("", False)

    def test_a_disk_that_changed_after_the_check_is_refused_before_the_record(self) -> None:
        for change in (_held, lambda host: setattr(host, "signatures", "swap\n")):
            host = SpareHost()
            found = self.found(host)
            change(host)
            with pytest.raises(Refused, match="Nothing was written"), spare.held(host, found, LABEL):
                pytest.fail("it was held")
            assert (host.wiped, COMPARISON in host.files) == (0, False)

    def test_the_next_run_removes_what_a_killed_one_left(self) -> None:
        host = SpareHost()
        found = self.found(host)
        spare.record(host, found, LABEL)
        host.signatures = f"xfs {LABEL}\n"
        host.write_attribute(found.queue, "mq-deadline")
        assert self.found(host)._replace(scheduler="none") == found, "its own remains are no content"
        spare.clean(host)
        assert (host.signatures, host.disk("sdc").scheduler) == ("", "[none] mq-deadline")
        assert COMPARISON not in host.files
        spare.clean(host)
        assert host.wiped == 1

    def test_what_another_program_has_written_since_is_not_removed(self) -> None:
        host = SpareHost()
        spare.record(host, self.found(host), LABEL)
        host.signatures = "LVM2_member\n"
        spare.clean(host)
        assert (host.wiped, host.signatures) == (0, "LVM2_member\n")
        with pytest.raises(Refused, match="LVM2_member"):
            self.found(host)

    @pytest.mark.parametrize("signatures", [f"dos\next4 {LABEL}\n", f"ext4 {LABEL}\nlinux_raid_member\n"])
    def test_one_signature_with_the_label_does_not_make_the_others_ours(self, signatures: str) -> None:
        host = SpareHost()
        found = self.found(host)
        spare.record(host, found._replace(scheduler="mq-deadline"), LABEL)
        host.signatures = signatures
        with pytest.raises(Refused, match=r"(dos, ext4|ext4, linux_raid_member)"):
            self.found(host)
        assert "observed a signature of " in spare.clean(host)
        assert (host.wiped, host.disk("sdc").scheduler) == (0, "[none] mq-deadline")
        assert COMPARISON not in host.files

    def test_more_signatures_of_the_labelled_file_system_are_ours(self) -> None:
        host = SpareHost()
        spare.record(host, self.found(host), LABEL)
        host.signatures = f"btrfs {LABEL}\nbtrfs\n"
        assert (spare.clean(host), host.wiped) == ("", 1)

    @pytest.mark.parametrize("use", [_cut, _held, "process", "kernel"])
    def test_a_disk_that_is_used_by_now_is_not_changed_and_blocks_no_other(
        self, use: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = SpareHost()
        spare.record(host, self.found(host)._replace(scheduler="mq-deadline"), LABEL)
        host.signatures = f"ext4 {LABEL}\n"
        if use == "process":
            monkeypatch.setattr(spare, "_processes", lambda _number: ["700"])
        elif use == "kernel":
            busy = Refused(f"{DEVICE}: observed it in use by the kernel")
            monkeypatch.setattr(spare, "opened", lambda *_: (_ for _ in ()).throw(busy))
        else:
            use(host)
        warning = spare.clean(host)
        assert warning.startswith(f"{DEVICE}: what an interrupted run left there was not removed")
        assert warning.endswith("The scheduler before that run was mq-deadline")
        assert (host.wiped, host.disk("sdc").scheduler) == (0, "[none] mq-deadline")
        assert COMPARISON not in host.files

    def test_what_cannot_be_removed_names_the_record_to_remove(self) -> None:
        host = SpareHost()
        spare.record(host, self.found(host), LABEL)
        host.broken = "I/O error"
        with pytest.raises(
            ChangeFailed,
            match=f"I/O error. Fix: run again, or remove {COMPARISON} to leave that disk as it is",
        ):
            spare.clean(host)
        assert COMPARISON in host.files

    def test_what_was_left_is_recognised_by_another_name_of_the_disk(self) -> None:
        host = SpareHost()
        spare.record(host, self.found(host), LABEL)
        host.signatures = f"xfs {LABEL}\n"
        other = host.links[f"{spare.BY_ID}/wwn-0x5"] = host.links[DEVICE]
        assert spare.find(host, f"{spare.BY_ID}/wwn-0x5", f"{spare.BY_ID}/wwn-0x5").name == other[5:]
        host.links[DEVICE] = "/dev/sdb"
        with pytest.raises(Refused, match="a signature of xfs"):
            spare.find(host, f"{spare.BY_ID}/wwn-0x5", f"{spare.BY_ID}/wwn-0x5")

    def test_the_record_remains_until_the_scheduler_is_restored(self) -> None:
        host = SpareHost()
        found = self.found(host)
        with spare.held(host, found, LABEL):
            host.write_attribute(found.queue, "mq-deadline")
        assert COMPARISON in host.files
        assert spare.clean(host) == ""
        assert (host.disk("sdc").scheduler, COMPARISON in host.files) == ("[none] mq-deadline", False)

    def test_a_signal_does_not_interrupt_the_clean_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        host = SpareHost()
        monkeypatch.setattr(
            spare, "wait_until_unused", lambda _descriptor: os.kill(os.getpid(), signal.SIGTERM)
        )
        with scratch.signals_end(), spare.held(host, self.found(host), LABEL):
            host.signatures = f"ext4 {LABEL}\n"
        assert (host.signatures, COMPARISON in host.files) == ("", False)

    def test_after_a_boot_the_scheduler_is_no_remainder_and_a_disk_can_be_gone(self) -> None:
        host = SpareHost()
        found = self.found(host)
        spare.record(host, found._replace(scheduler="mq-deadline"), LABEL)
        host.files["/proc/sys/kernel/random/boot_id"] = "another\n"
        spare.clean(host)
        assert host.disk("sdc").scheduler == "[none] mq-deadline"
        spare.record(host, found, LABEL)
        del host.links[DEVICE]
        spare.clean(host)
        assert COMPARISON not in host.files

    def test_a_command_that_fails_is_an_error_with_its_output(self) -> None:
        host = SpareHost()
        host.run = lambda argv, timeout=10.0: Result(1, "", "disk is\nbroken")  # type: ignore[method-assign]
        with pytest.raises(ChangeFailed, match="mkfs: exit 1: disk is broken"):
            spare.run(host, ["mkfs"])


def test_processes_with_a_device_open_are_found_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with open(os.devnull, "rb") as file:
        number = os.fstat(file.fileno()).st_rdev
        # /dev/null is no block device; for this test it is one.
        monkeypatch.setattr(stat, "S_ISBLK", stat.S_ISCHR)
        found = spare._processes(f"{os.major(number)}:{os.minor(number)}")
    assert str(os.getpid()) in found
    assert Host().exists("/proc/self/fd")
