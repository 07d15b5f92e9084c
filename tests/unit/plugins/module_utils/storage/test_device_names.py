# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names by which the next boot may mount another file system: each is reported with a fix, and stable names are not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.boot_texts import with_texts
from ..fakes.runs import NOW, look
from ..fakes.small_host import BigHost, FakeDisk, FakeMount, SmallHost, dm, md

PG = "/srv/pgdata"
DATABASE = ("udevadm", "info", "--export-db")
SDA1 = {"ID_FS_UUID": "pg", "ID_FS_TYPE": "ext4", "ID_FS_USAGE": "filesystem", "MAJOR": "8", "MINOR": "1"}


def know(host: SmallHost, name: str, **properties: str) -> None:
    """Have udev know more of a device, or something else."""
    before = host.commands[DATABASE]
    node = f"E: DEVNAME=/dev/{name}\n"

    def say() -> str:
        text = before() if callable(before) else before
        assert isinstance(text, str) and node in text
        records = [f"{record.rstrip()}\n" for record in text.split("\n\n")]
        return "\n".join(map(changed, records))

    def changed(record: str) -> str:
        if node not in record:
            return record
        lines = [line for line in record.split("\n")[:-1] if line[3:].partition("=")[0] not in properties]
        return "".join(
            f"{line}\n" for line in [*lines, *(f"E: {key}={value}" for key, value in properties.items())]
        )

    host.commands[DATABASE] = say


def machine(spec: str = "UUID=pg", host: SmallHost | None = None) -> SmallHost:
    """Return a host whose line for /srv/pgdata names the device in another way."""
    host = host or SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=pg\t", f"{spec}\t")
    know(host, "sda1", **SDA1)
    return host


def named(host: SmallHost, mounts: tuple[str, ...] = (PG,)) -> list[dict[str, Any]]:
    """Return the rows about names."""
    found = look(host, "strict", mounts=list(mounts))
    return [row for row in found["settings"] if row["setting"] in ("name", "copies")]


@pytest.mark.parametrize("spec", ["/dev/sda1", "/dev/block/8:1", "/dev/disk/by-diskseq/4-part1"])
def test_a_name_of_this_boot_is_unknown_at_the_next_and_the_fix_is_one_replacement(spec: str) -> None:
    host = machine(spec)
    if spec != "/dev/sda1":
        host.links[spec] = "/dev/sda1"
    (row,) = named(host)
    assert (row["verdict"], row["persisted"]) == ("unknown", "unknown")
    assert (
        f"/etc/fstab line 3 mounts {PG} by {spec}, a name that is valid for the current boot only"
        in row["why"]
    )
    assert row["remedy"] == f"write UUID=pg in place of {spec} in /etc/fstab line 3"
    assert look(host, "strict", mounts=[PG])["fails"]


@pytest.mark.parametrize("spec", ["/dev/vdq1", "/dev/nvme1n1p1", "/dev/dm-3", "/dev/md7"])
def test_names_by_number_of_each_driver_are_of_this_boot(spec: str) -> None:
    host = machine(spec)
    for number in range(2):
        disk = FakeDisk(f"nvme{number}n1", "nvme", f"N{number}", wwn=f"eui.002538{number}")
        host.add_disk(disk, f"259:{number}")
    host.links[spec] = "/dev/sda1"
    (row,) = named(host)
    assert (row["verdict"], row["persisted"]) == ("unknown", "unknown")
    assert f"mounts {PG} by {spec}" in row["why"]


def test_the_fix_makes_the_finding_go_away() -> None:
    host = machine("/dev/sda1")
    (row,) = named(host)
    assert row["remedy"].startswith("write UUID=pg in place of /dev/sda1 ")
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("/dev/sda1", "UUID=pg")
    assert named(host) == []


@pytest.mark.parametrize(
    "spec",
    [
        "UUID=pg",
        "/dev/disk/by-uuid/pg",
        "/dev/disk/by-id/wwn-0x5-part1",
        "/dev/disk/by-path/pci-0000:00:1f.2-ata-1-part1",
        "/dev/pgdata",
    ],
)
def test_stable_names_are_not_reported(spec: str) -> None:
    host = machine(spec)
    host.links[spec] = host.links.get(spec, "/dev/sda1")
    assert named(host) == []


def test_a_mount_that_is_not_managed_is_not_reported() -> None:
    assert named(machine("/dev/sda1"), ("/srv/mssql",)) == []


def test_the_only_disk_that_can_have_the_name_has_it_at_each_boot() -> None:
    """A virtual machine with one disk and root=/dev/vda1 is usual."""
    host = SmallHost()
    host.files["/proc/cmdline"] = "root=/dev/vda1 ro\n"
    (row,) = named(host, ("/",))
    assert "the kernel's command line mounts / by /dev/vda1" in row["why"]
    del host.mounts["/srv/maria"]
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=ma", "# UUID=ma")
    host.unplug("vdb")
    assert named(host, ("/",)) == []


def rooted(initrd: str) -> SmallHost:
    host = SmallHost()
    host.files["/proc/cmdline"] = "root=/dev/vda1 ro\n"
    host.files["/boot/grub/grub.cfg"] = f"\tlinux /vmlinuz-6.1.0-26-amd64 root=/dev/vda1 ro\n{initrd}"
    host.files.update({"/vmlinuz-6.1.0-26-amd64": "", "/initrd.img-6.1.0-26-amd64": ""})
    know(
        host,
        "vda1",
        ID_FS_UUID="root",
        ID_FS_TYPE="ext4",
        ID_PART_ENTRY_UUID="part-01",
        MAJOR="254",
        MINOR="1",
    )
    host.links["/dev/disk/by-partuuid/part-01"] = "/dev/vda1"
    return host


def test_the_fix_for_the_root_depends_on_who_finds_it() -> None:
    """Without an initramfs the kernel knows no UUID of a file system: root=UUID= would not boot."""
    (row,) = named(rooted("\tinitrd /initrd.img-6.1.0-26-amd64\n"), ("/",))
    assert "name the root root=UUID=root (update-grub" in row["remedy"]
    (row,) = named(rooted(""), ("/",))
    assert "name the root root=PARTUUID=part-01 (update-grub" in row["remedy"]


def test_a_unit_of_its_own_is_checked_like_a_line() -> None:
    host = machine()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=pg", "# UUID=pg")
    path = "/etc/systemd/system/srv-pgdata.mount"
    host.files[path] = f"[Mount]\nWhat=/dev/sda1\nWhere={PG}\nType=ext4\n"
    host.links["/etc/systemd/system/multi-user.target.wants/srv-pgdata.mount"] = path
    (row,) = named(host)
    assert row["remedy"] == f"write UUID=pg in place of /dev/sda1 in {path}"


ARRAYS = {"MD_UUID": "aa11:bb22:cc33:dd44", "MD_NAME": "old:data"}


def on_array(spec: str) -> BigHost:
    """Return a host with /srv/pgdata on an array."""
    host = BigHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=pg\t", f"{spec}\t")
    host.add_layer(md("md5", "raid1", ("sda1",), "9:5"))
    host.mounts[PG].source, host.mounts[PG].device = "/dev/md5", "9:5"
    host.files["/proc/fs/ext4/md5/options"] = host.mounts[PG].ext_options
    host.links["/dev/md/data"] = "/dev/md5"
    host.files["/proc/sys/kernel/hostname"] = "new\n"
    know(host, "md5", ID_FS_UUID="pg", MAJOR="9", MINOR="5", **ARRAYS)
    return host


@pytest.mark.fact(82)
@pytest.mark.parametrize("spec", ["/dev/md5", "/dev/md/data"])
@pytest.mark.parametrize("config", ["/etc/mdadm.conf", "/etc/mdadm/mdadm.conf"])
def test_an_array_keeps_its_name_only_by_a_line_of_mdadm_conf(spec: str, config: str) -> None:
    host = on_array(spec)
    (row,) = named(host)
    assert "ARRAY line" in row["why"]
    host.files[config] = f"ARRAY {spec} metadata=1.2\n  UUID=aa11:bb22:cc33:ffff\n"
    assert named(host)
    host.files[config] = f"# comment\nARRAY {spec} metadata=1.2\n  UUID=AA11:bb22:cc33:dd44\n"
    assert named(host) == []


def test_an_array_of_this_host_keeps_its_name_but_not_its_number() -> None:
    host = on_array("/dev/md/data")
    host.files["/proc/sys/kernel/hostname"] = "old\n"
    assert named(host) == []
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("/dev/md/data\t", "/dev/md5\t")
    assert named(host)


def copied(spec: str = "UUID=pg", **properties: str) -> SmallHost:
    """Return a host on which sdc1 is a copy of the file system of /srv/pgdata."""
    host = machine(spec)
    host.add_disk(FakeDisk("sdc", "sata", "QEMU_HARDDISK_SATA0003"), "8:32")
    host.add_partition("sdc", "sdc1", "8:33")
    know(host, "sdc1", **{**SDA1, "MINOR": "33", **properties})
    return host


@pytest.mark.fact(82)
@pytest.mark.parametrize("link", ["sda1", "sdc1"])
@pytest.mark.parametrize("spec", ["UUID=pg", 'UUID="pg"', "/dev/disk/by-uuid/pg"])
def test_two_devices_with_one_uuid_are_unknown_whichever_the_link_leads_to(spec: str, link: str) -> None:
    """With the link to the copy, the fix was to add a line by UUID: the line that was there."""
    host = copied(spec)
    host.links["/dev/disk/by-uuid/pg"] = f"/dev/{link}"
    (row,) = named(host)
    assert "sda1 and sdc1 have UUID=pg, by which /etc/fstab line 3 mounts /srv/pgdata" in row["why"]
    assert row["remedy"] == "unmount sdc1 and give it another UUID (tune2fs -U random /dev/sdc1)"
    rows = look(host, "strict", mounts=[PG])["settings"]
    (barrier,) = [each for each in rows if (each["target"], each["setting"]) == (PG, "barrier")]
    assert (barrier["persisted"], barrier["verdict"]) == ("unknown", "unknown")
    assert not any("add a line" in each["remedy"] for each in rows)


def without_line(*lines: str, **properties: str) -> SmallHost:
    """Return a host on which nothing mounts /srv/pgdata at boot, and sdc1 is a copy of it."""
    host = copied(**properties)
    kept = [line for line in host.read("/etc/fstab").splitlines() if PG not in line]
    host.files["/etc/fstab"] = "".join(f"{line}\n" for line in (*kept, *lines))
    return host


def remedies(host: SmallHost) -> set[str]:
    """Return what the report has an administrator do for a mount that no line is about."""
    rows = look(host, "strict", mounts=[PG])["settings"]
    return {row["remedy"] for row in rows if row["target"] == PG and row["verdict"] == "drift_persisted"}


@pytest.mark.parametrize(
    "line", ["", "UUID=ms /srv/other xfs noauto 0 0", "/dev/sdz1 /srv/pgdata ext4 defaults"]
)
def test_a_line_to_add_names_no_uuid_that_a_copy_has(line: str) -> None:
    host = without_line(line)
    host.links["/dev/disk/by-uuid/pg"] = "/dev/sdc1"
    found = remedies(host)
    assert not any(remedy.startswith("add a line") for remedy in found)
    assert found >= {
        "unmount sdc1 and give it another UUID (tune2fs -U random /dev/sdc1), then add a line for /srv/pgdata to /etc/fstab,"
        " by UUID, or set the options in the cluster manager that mounts it"
    }
    (row,) = [each for each in named(host) if each["setting"] == "copies"]
    assert (row["persisted"], row["verdict"]) == ("refused", "drift_persisted")
    assert (
        "the next boot does not mount this file system at /srv/pgdata: no line of /etc/fstab mounts it"
        in row["why"]
    )


def test_a_line_to_add_names_what_one_device_alone_has() -> None:
    host = without_line()
    know(host, "sda1", DEVLINKS="/dev/disk/by-uuid/pg /dev/disk/by-id/wwn-0x5-part1")
    (remedy,) = remedies(host)
    assert remedy.startswith(
        "add a line for /srv/pgdata to /etc/fstab, by /dev/disk/by-id/wwn-0x5-part1, a name of sda1 alone,"
    )
    host.links["/dev/disk/by-id/wwn-0x5-part1"] = "/dev/sda1"
    host.files["/etc/fstab"] = f"{host.text('/etc/fstab')}/dev/disk/by-id/wwn-0x5-part1 {PG} ext4 defaults\n"
    assert remedies(host) == set()


def test_without_a_copy_a_line_is_by_uuid() -> None:
    host = without_line(ID_FS_UUID="another")
    assert named(host) == []
    assert all("with the UUID of /dev/sda1 (blkid) to /etc/fstab" in remedy for remedy in remedies(host))


def test_a_second_mount_of_one_that_has_a_line_needs_none() -> None:
    host = copied("/dev/sda1")
    host.mounts["/srv/again"] = FakeMount("/srv/again", "ext4", "8:1", "/dev/sda1", "sda")
    assert [row["target"] for row in named(host, (PG, "/srv/again"))] == [PG]


def test_a_temporary_name_is_replaced_by_a_uuid_that_the_copy_loses_first() -> None:
    """The fix was to give the mounted device another file system."""
    (row,) = named(copied("/dev/sda1"))
    assert row["remedy"] == (
        "unmount sdc1 and give it another UUID (tune2fs -U random /dev/sdc1), then name sda1 by UUID=pg in /etc/fstab line 3"
    )


def test_each_copy_needs_another_uuid() -> None:
    host = without_line()
    host.add_partition("sdc", "sdc2", "8:34")
    know(host, "sdc2", **{**SDA1, "MINOR": "34"})
    (remedy,) = remedies(host)
    assert remedy.startswith(
        "unmount sdc1 and sdc2 and give each another UUID (tune2fs -U random /dev/sdc1, tune2fs -U random /dev/sdc2), then"
    )


def test_a_link_of_the_mounted_device_alone_is_the_fix() -> None:
    host = copied()
    know(
        host,
        "sda1",
        DEVLINKS="/dev/disk/by-uuid/pg /dev/disk/by-id/wwn-0x5-part1 /dev/disk/by-id/ata-x-part1",
    )
    know(host, "sdc1", DEVLINKS="/dev/disk/by-uuid/pg /dev/disk/by-id/ata-x-part1")
    (row,) = named(host)
    assert row["remedy"] == (
        "write /dev/disk/by-id/wwn-0x5-part1, a name of sda1 alone, in place of UUID=pg in /etc/fstab line 3"
    )


@pytest.mark.parametrize(
    ("tag", "key"),
    [("LABEL", "ID_FS_LABEL"), ("PARTUUID", "ID_PART_ENTRY_UUID"), ("PARTLABEL", "ID_PART_ENTRY_NAME")],
)
def test_another_tag_gives_way_to_a_uuid_that_only_one_has(tag: str, key: str) -> None:
    host = copied(f"{tag}=data", ID_FS_UUID="another", **{key: "data"})
    know(host, "sda1", **{key: "data"})
    (row,) = named(host)
    assert f"sda1 and sdc1 have {tag}=data" in row["why"]
    assert row["remedy"].startswith("write UUID=pg, a name of sda1 alone, in place of ")


@pytest.mark.parametrize(
    "properties",
    [
        {"ID_FS_TYPE": "linux_raid_member", "ID_FS_USAGE": "raid"},
        {"ID_FS_TYPE": "drbd"},
        {"ID_FS_TYPE": "bcache"},
        {"DM_MULTIPATH_DEVICE_PATH": "1"},
        {"ID_FS_UUID": "another"},
    ],
)
def test_what_no_boot_mounts_is_no_copy(properties: dict[str, str]) -> None:
    assert named(copied(**properties)) == []


def test_a_device_and_what_it_is_made_of_are_one() -> None:
    """DRBD, a dm device over a whole disk and the legs of a firmware RAID show the file system of what is below."""
    host = copied()
    host.add_layer(dm("dm-7", "linear", ("sdc1",), "253:7", "linear 8:33 0"))
    know(host, "dm-7", **{**SDA1, "MAJOR": "253", "MINOR": "7"})
    (row,) = named(host)
    assert "sda1 and dm-7 have" in row["why"] or "dm-7 and sda1 have" in row["why"]
    below = machine()
    below.add_layer(dm("dm-7", "linear", ("sda1",), "253:7", "linear 8:1 0"))
    know(below, "dm-7", **{**SDA1, "MAJOR": "253", "MINOR": "7"})
    assert named(below) == []


@pytest.mark.parametrize(("members", "count"), [(("one", "two"), 0), (("one", "one"), 1)])
def test_members_of_one_btrfs_share_a_uuid_and_copies_of_one_member_do_not(
    members: tuple[str, str], count: int
) -> None:
    host = copied(ID_FS_TYPE="btrfs", ID_FS_UUID_SUB=members[1])
    know(host, "sda1", ID_FS_TYPE="btrfs", ID_FS_UUID_SUB=members[0])
    assert len(named(host)) == count


def test_without_udev_no_name_is_reported() -> None:
    host = machine("/dev/sda1")
    host.commands[DATABASE] = ""
    assert [
        f for f in with_texts(collect(host, NOW)["boot_faults"]) if f["fault"] in ("name", "copies")
    ] == []
