# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel, udev, systemd and disks say of storage, and whole hosts with one strange answer."""

from __future__ import annotations

import json

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import (
    BACKUPS,
    DRIVE_CACHES,
    WRITE_POLICIES,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import (
    kernel_version,
    mountinfo,
    os_release,
    udev,
    unix_sockets,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import (
    boot_entries,
    grub_menu,
    tuned,
    udev_rules,
    version_order,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    blockstack,
    cache_rules,
    caches,
    crypttab,
    disks,
    drbd,
    drbd_84,
    ext4,
    flush_trace,
    fstab,
    mapper_targets,
    mount_options,
    mount_settings,
    mount_units,
    multipath,
    scheduler_rules,
    zfs,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import (
    arcconf,
    ssacli,
    storcli,
    volume,
)
from ansible_collections.durable.dbhost.plugins.module_utils.undo import installed, journal
from fuzz.target import Says, fixtures, of_bytes, of_text

#: A socket with a name and a file, one without, and the end.
_SOCKETS = bytes.fromhex(
    "34000000140002000200000001000000"
    "01010a00050000000000000000000000"
    "07000000"
    "2f780000"
    "0c000100"
    "670200000900d00f"
    "20000000140002000200000001000000"
    "01010a00060000000000000000000000"
    "14000000030002000200000001000000"
    "00000000"
)


@of_bytes(OSError, seeds=[_SOCKETS, _SOCKETS[:52]])
def listening_sockets(answer: bytes) -> None:
    found, _is_whole = unix_sockets.parse(answer)
    assert all(row.device.count(":") == 1 for row in found)
    unix_sockets._listener(answer[16:])


@of_text(ValueError, seeds=fixtures("mountinfo_*.txt"))
def mountinfo_file(text: str) -> None:
    mounts = mountinfo.parse_mountinfo(text)
    assert set(map(id, mountinfo.visible(mounts))) <= set(map(id, mounts))
    assert len(mountinfo.by_id(text)) <= len(mounts)


@of_text(
    fstab.MalformedFstab,
    seeds=[*fixtures("fstab_*.txt"), 'LABEL="a b" /x\\040y ext4 nobarrier,a\\054b 0 2 # x\n'],
)
def fstab_file(text: str) -> None:
    entries = fstab.parse(text)
    mount_options._root_line(text)
    # Of many lines a few: each is edited by itself.
    for entry in entries[:3]:
        mount_settings.fold(entry.options)
        changed = fstab.set_options(text, entry, entry.options, None)
        assert len(fstab.parse(changed)) == len(entries)
        fstab.parse(fstab.set_options(text, entry, ("noatime",), "a note"))


@of_text(
    seeds=["db UUID=01234567-89ab-cdef-0123-456789abcdef none luks\n# no /dev/sda\n\nalone\n x /dev/sdb\n"]
)
def crypttab_file(text: str) -> None:
    lines = text.split("\n")
    for entry in crypttab.parse(text):
        assert lines[entry.row].split()[:2] == [entry.name, entry.spec]


@of_text(
    ValueError,
    seeds=[
        "[Unit]\n[Mount]\nWhat=/dev/sda1\nWhere=/x\nType=ext4\nOptions=nobarrier,%%x,\\\n# c\\\nnoatime\n",
        mount_units.render(("barrier=1", "a%b")),
        "[Mount]\nOptions=%i\nOptions=\n",
    ],
)
def mount_unit(text: str) -> None:
    mount_units.unit_name(text)
    mount_units.split_options(mount_units.parse(text).get("Options", ""))


@of_text(
    seeds=[
        'ACTION=="add|change", KERNEL=="sd[a-z]", ATTRS{model}=="QE*", \\\n ATTR{queue/write_cache}="write through"\n',
        'ENV{ID_SERIAL}!="?*", GOTO="end"\nSYMLINK+="disk/by-uuid/$env{ID_FS_UUID}", PROGRAM="/x %k"\nLABEL="end"\n',
    ]
)
def rules_of_udev(text: str) -> None:
    rules = udev_rules.parse(text, "/etc/udev/rules.d/x.rules")
    device = udev_rules.Device(Says(text), "/sys/devices/x/block/sda", {"DEVNAME": "/dev/sda"})
    assert {found.rule for found in udev_rules.assignments(rules, device)} <= set(rules)
    udev_rules.expand(text, device)


@of_text(
    Unobservable,
    seeds=[
        "set default=\"${saved_entry}\"\nsubmenu 'a' --id b {\nmenuentry 'c' {\n linux /v root=UUID=a $x\n initrd /i\n}\n}\n",
        "blscfg\n",
        "title a\nversion 6.1~rc2\nsort-key debian\noptions root=UUID=a $x\nlinux /v\ninitrd /i\n",
        "saved_entry=a>b\nnext_entry=\nkernelopts=root=UUID=a ro\n",
    ],
)
def entries_of_a_boot_loader(text: str) -> None:
    menu = grub_menu.parse_menu(text)
    assert len(grub_menu.sets_default(text)) == 2
    for name in grub_menu.default_names(text, {"saved_entry": [text[:20]]}):
        assert list(grub_menu.resolve(menu, name)) or not menu
    assert version_order.compare(text, text) == 0
    assert version_order.of_file(text[:255])
    found = boot_entries.find(Says(text))
    assert not set(found.entries) & set(found.others)
    assert all(file for file, _line in boot_entries.of_next_kernel(Says(text)))


@of_text(ValueError, seeds=[*fixtures("superblock_*.txt"), *fixtures("ext4_options_*.txt")])
def ext4_of_kernel_and_superblock(text: str) -> None:
    ext4.parse_running(text)
    ext4.persisted(ext4.parse_superblock(text), tuple(text[:40].split(",")))


@of_text(
    Unobservable,
    seeds=[
        '{"number": 3, "by": "ann on desk", "since": "x", "reach": ["mssql"], "process": "40 700"}',
        "",
        "[]",
    ],
)
def words_of_a_lock(text: str) -> None:
    assert one_run._holder(text)
    record = text.partition("\n")[0]
    run = one_run._read(f"{record}\n{one_run._checksum(record)}\n")
    assert run is None or run.named


@of_text(seeds=["  sync-9 [000] 1.0: block_rq_complete: 8,0 FF () 0 + 0 [0]\n"])
def trace_of_flushes(text: str) -> None:
    assert flush_trace.count(text) <= text.count("\n") + 1


@of_text(seeds=["/dev/loop0   254:0\n/dev/loop11 8:1  \n"])
def losetup_list(text: str) -> None:
    blockstack.parse_loops(text)


@of_text(seeds=["sync\tstandard\ncanmount\ton\nmountpoint\t/srv/pg data\n"])
def zfs_properties(text: str) -> None:
    zfs.parse_properties(text)


@of_text(Unobservable, seeds=fixtures("zpool_status.txt"))
def zpool_status(text: str) -> None:
    zfs.parse_status(text, "tank")


@of_text(seeds=["3600a0980:on\n3600b:12 chk\n3600c:-\nx:off\n"])
def multipathd_maps(text: str) -> None:
    for said in multipath.read(Says(text)).values():
        multipath.state("1 queue_if_no_path 0 2 1", said)
    multipath.state(text, None)


_DRBD = {
    "resource": "pg",
    "name": "pg",
    "write-ordering": "flush",
    "_this_host": {"volumes": [{"volume_nr": 0, "device_minor": 5, "backing-disk": "/dev/sdg"}]},
    "devices": [{"volume": 0, "minor": 5, "disk-state": "UpToDate"}],
    "connections": [
        {"net": {"protocol": "A"}, "peer_devices": [{"volume": 0, "peer-disk-state": "UpToDate"}]}
    ],
}


@of_text(seeds=[json.dumps([_DRBD])])
def drbdsetup_answers(text: str) -> None:
    drbd.Drbd(Says(text)).volume(5)


@of_text(
    ValueError,
    IndexError,
    seeds=[
        'resource pg { net { protocol A; } _remote_host { } _this_host { volume 0 { device minor 5; disk "/dev/sdg";'
        " meta-disk internal; disk { disk-flushes no; } } } }\n"
    ],
)
def drbdsetup_84_sections(text: str) -> None:
    drbd_84.shown(text)


@of_text(
    ValueError,
    KeyError,
    seeds=[
        "pg role:Primary suspended:no\n    write-ordering:drain\n  volume:0 minor:5 disk:UpToDate\n"
        "  peer connection:Connected role:Secondary\n    volume:0 replication:Established peer-disk:UpToDate\n"
    ],
)
def drbdsetup_84_states(text: str) -> None:
    drbd_84.states(text)


_JOURNAL = {
    "schema": 1,
    "seconds": 900,
    "guard": False,
    "rows": {"mount_options": [{"target": "/srv"}]},
    "entries": [["/etc/fstab", "old", None, 420]],
}


@of_text(
    Unobservable, seeds=[json.dumps(_JOURNAL), '{"time": "now", "put_back": ["/etc/fstab"], "failures": []}']
)
def journal_of_the_switch(text: str) -> None:
    installed._fired(text)
    journal.read(Says(text))


@of_text(seeds=fixtures("dmsetup_table_*.txt"))
def dmsetup_table(text: str) -> None:
    for segments in mapper_targets.parse_tables(text).values():
        for target, arguments in segments:
            mapper_targets.understand(target, arguments, (6, 1))


@of_text(
    ValueError,
    seeds=[
        *fixtures("hdparm_*.txt"),
        *fixtures("sdparm_*.txt"),
        *fixtures("nvme_*"),
        "0x01 - 0x00 0x01\n",
        "[none] bfq\n",
        "4096\n",
    ],
)
def cache_of_disk(text: str) -> None:
    for parse in (
        caches.parse_hdparm,
        caches.parse_sdparm,
        caches.parse_power_on,
        caches.parse_nvme,
        caches.has_volatile_cache,
        lambda said: disks._word(said, {"write back": "enabled", "none": "x"}),
        disks._bytes,
        disks.schedulers,
    ):
        try:
            parse(text)
        except ValueError:
            continue


@of_text(seeds=fixtures("udev_database.txt"))
def udev_database(text: str) -> None:
    for properties in udev.parse_database(text).values():
        udev.identify(properties)


@of_text(ValueError, seeds=fixtures("raid/storcli_*.json"))
def storcli_answer(text: str) -> None:
    expect_known_words(storcli.parse(text, text, text, text))


@of_text(seeds=fixtures("raid/ssacli_*.txt"))
def ssacli_answer(text: str) -> None:
    expect_known_words(ssacli.parse(text))


@of_text(seeds=fixtures("raid/arcconf_*.txt"))
def arcconf_answer(text: str) -> None:
    assert arcconf.controllers(text) >= 0
    expect_known_words(arcconf.parse(text))


def expect_known_words(volumes: list[volume.Volume]) -> None:
    """Expect nothing but the words of the facts, and that what they mean can be told."""
    for found in volumes:
        assert found.write_policy in WRITE_POLICIES
        assert found.backup in BACKUPS
        assert found.drive_caches in DRIVE_CACHES
        assert found.id == volume.normal_id(found.id)
        volume.fault({"volume": found.id, **found._asdict()})


@of_text(
    seeds=[
        cache_rules.render({"wwn:0x5000": ("sata", "disabled"), "dm:LVM-x": ("scsi", "enabled")}),
        scheduler_rules.render({"serial:QEMU_1": {"scheduler": "none", "readahead": "128"}}),
    ]
)
def rule_files(text: str) -> None:
    host = Says(text)
    for rules in (cache_rules, scheduler_rules):
        assert set(rules.read(host)) <= set(rules.read_rules(host))


@of_text(
    seeds=[
        'ID=debian\nVERSION_ID="12"\n',
        "ID='sles'\nVERSION_ID=12.5\nNAME=\"x\n",
        "6.1.0-13-amd64",
        "5.10.0",
    ]
)
def os_release_file(text: str) -> None:
    os_release.parse(text)
    kernel_version.version(text)


@of_text(
    Unobservable,
    seeds=[
        "[main]\nsummary=x\ninclude=throughput-performance\n[disk]\nelevator=none\nreadahead=>4096\n",
        "virtual-guest\n",
        "[d]\ntype=disk\nreadahead\n",
    ],
)
def tuned_profile(text: str) -> None:
    class Profiles(Says):
        """One that is active, and says this."""

        def read(self, path: str) -> str:
            return "one" if path.endswith("active_profile") else self._text

    tuned.read(Profiles(text))
    tuned.read(Says(text))
