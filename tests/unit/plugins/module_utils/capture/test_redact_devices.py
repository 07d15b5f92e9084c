# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev and tools say of devices, in a capture."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture import redact_devices as redact
from ansible_collections.durable.dbhost.plugins.module_utils.capture.identities import Identities
from ansible_collections.durable.dbhost.plugins.module_utils.host import udev
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules, ext4, scheduler_rules
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import has_volatile_cache
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mapper_targets import parse_tables

from ..fakes.captured import captured

WWN = "0x5000c500a1b2c3d4"
EUI = "eui.0025385a1b2c3d4e"
LVM = "LVM-" + "a1B2" * 8 + "c3D4" * 8


def knowing(*records: dict[str, str]) -> Identities:
    names = Identities("/dev/disk/by-id /sys/block sda vda")
    for properties in records:
        names.learn_device(properties)
    return names


def test_the_captured_database_keeps_the_block_devices_and_loses_their_names() -> None:
    text = captured("udev_database.txt")
    names = knowing(*redact.records(text))
    found = redact.database(text, names)
    before, after = udev.parse_database(text), udev.parse_database(found)
    assert list(before) == list(after)
    gone = {"SATA0001", "SCSI0001", "VIRT0001", "LABROOT", "7ed69443-2c72", "52:54:00"}
    assert [word for word in gone if word in found] == []
    for name, properties in after.items():
        assert {key: len(value) for key, value in properties.items() if key != "DEVLINKS"} == {
            key: len(before[name][key]) for key in properties if key != "DEVLINKS"
        }
        assert (properties["DEVTYPE"], properties.get("ID_MODEL")) == (
            before[name]["DEVTYPE"],
            before[name].get("ID_MODEL"),
        )
    sata = after["sdc"]
    assert sata["ID_SERIAL"] == f"QEMU_HARDDISK_{sata['ID_SERIAL_SHORT']}"
    assert f"/dev/disk/by-id/ata-{sata['ID_SERIAL']}" in sata["DEVLINKS"]


@pytest.mark.parametrize(
    "line",
    [
        "ID_NET_NAME_MAC=hunter2",
        "ID_SECRET=hunter2",
        "ID_FS_LABEL_ENC=hunter2",
        "DMI_SERIAL=hunter2",
        "TAGS=hunter2",
    ],
)
def test_properties_without_a_rule_go(line: str) -> None:
    text = f"P: /hunter2\nN: hunter2\nE: SUBSYSTEM=block\nE: DEVNAME=/dev/sda\nE: {line}\n"
    assert redact.database(text, knowing()) == "E: SUBSYSTEM=block\nE: DEVNAME=/dev/sda\n"


@pytest.mark.parametrize("key", ["ID_PART_TABLE_UUID", "ID_FS_UUID_SUB", "ID_FS_UUID", "ID_PATH"])
def test_a_disk_without_a_name_goes_by_the_same_substitute_in_its_rules(key: str) -> None:
    value = "pci-0000:00:05.0" if key == "ID_PATH" else "7ed69443-2c72-a847-9f56-c518d43066cd"
    disk = {
        "SUBSYSTEM": "block",
        "DEVNAME": "/dev/vdb",
        "DEVPATH": "/devices/pci0000:00/0000:00:05.0/virtio3/block/vdb",
        key: value,
    }
    names = knowing(disk)
    database = redact.database("".join(f"E: {k}={v}\n" for k, v in disk.items()), names)
    kept = udev.identify(udev.parse_database(database)["vdb"])
    rules = {str(udev.identify(disk)): ("virtio", "disabled")}
    found = redact.rules(cache_rules.render(rules), names)
    assert found == cache_rules.render({str(kept): ("virtio", "disabled")})
    assert (value in database + found) == (key == "ID_PATH")


def test_other_subsystems_go() -> None:
    text = "E: SUBSYSTEM=net\nE: DEVNAME=/dev/hunter2\n\nE: SUBSYSTEM=block\nE: ID_SERIAL=hunter2\n"
    assert redact.database(text, knowing()) == ""


def test_a_plain_property_that_is_not_plain_becomes_a_stand_in() -> None:
    text = "E: SUBSYSTEM=block\nE: DEVNAME=/dev/sda\nE: ID_BUS=hunter2'\"\n"
    assert "hunter2" not in redact.database(text, knowing())


def test_duplicates_stay_duplicates() -> None:
    one = {"SUBSYSTEM": "block", "DEVNAME": "/dev/sda", "ID_WWN": WWN, "ID_SERIAL": "3" + WWN[2:]}
    other = {**one, "DEVNAME": "/dev/sdb"}
    third = {**one, "DEVNAME": "/dev/sdc", "ID_WWN": "0x5000c500a1b2c3d5"}
    records = [one, other, third]
    text = "\n".join("".join(f"E: {k}={v}\n" for k, v in record.items()) for record in records)
    found = udev.parse_database(redact.database(text, knowing(*records)))
    assert found["sda"]["ID_WWN"] == found["sdb"]["ID_WWN"] != found["sdc"]["ID_WWN"]
    assert found["sda"]["ID_SERIAL"] == found["sdc"]["ID_SERIAL"] != one["ID_SERIAL"]
    assert re.fullmatch("0x[0-9a-f]{16}", found["sda"]["ID_WWN"])


@pytest.mark.parametrize(
    ("uuid", "kept"),
    [
        (LVM, r"LVM-[A-Za-z0-9]{64}"),
        (f"{LVM}-cow", r"LVM-[A-Za-z0-9]{64}-cow"),
        ("CRYPT-LUKS2-" + "0123456789abcdef" * 2 + "-luks-data", r"CRYPT-LUKS2-[0-9a-f]{32}-luks-data"),
        ("CRYPT-PLAIN-swap", r"CRYPT-PLAIN-swap"),
        ("mpath-35000c500a1b2c3d4", r"mpath-\d[0-9a-f]{16}"),
        ("part1-mpath-35000c500a1b2c3d4", r"part1-mpath-\d[0-9a-f]{16}"),
        ("DMRAID-isw_abc_Volume0", r"DMRAID-[a-z]{3}_[a-z]{3}_[A-Z][a-z]{5}\d"),
        ("0123456789abcdef", r"[0-9a-f]{16}"),
    ],
)
def test_device_mapper_uuids(uuid: str, kept: str) -> None:
    names = knowing({"DM_UUID": uuid})
    found = names.mapped(uuid)
    assert re.fullmatch(kept, found)
    assert found != uuid or uuid == "CRYPT-PLAIN-swap"
    assert names.link("by-id", f"dm-uuid-{uuid}") == f"dm-uuid-{found}"


def test_volumes_of_a_group_still_share_its_part() -> None:
    names = knowing()
    one, other = (names.mapped("LVM-" + "a1B2" * 8 + volume * 8) for volume in ("c3D4", "e5F6"))
    assert one[:36] == other[:36]
    assert one != other


@pytest.mark.parametrize("serial", ["1", "sda", "SN1234", "5000c500a1b2c3d4", "A B", "vol0123456789abcdef"])
def test_a_by_id_link_follows_the_serial(serial: str) -> None:
    names = knowing({"ID_SERIAL": f"MODEL_{serial}", "ID_MODEL": "MODEL", "ID_SERIAL_SHORT": serial})
    stand_in = names.identity(f"MODEL_{serial}")
    assert stand_in == f"MODEL_{names.identity(serial)}" != f"MODEL_{serial}"
    path = f"/dev/disk/by-id/ata-MODEL_{serial}-part2"
    assert names.text(path) == f"/dev/disk/by-id/ata-{stand_in}-part2" or " " in serial


@pytest.mark.parametrize(
    "link",
    [
        "/dev/disk/by-id/google-local-ssd-0",
        "/dev/disk/by-id/google-persistent-disk-0-part1",
        "/dev/disk/azure/resource-part1",
        "/dev/disk/azure/scsi1/lun0",
        "/dev/disk/azure/data/by-lun/3",
        "/dev/disk/cloud/azure_root",
        "/dev/disk/azure/local/by-index/1",
    ],
)
def test_links_by_place_tell_what_a_disk_is(link: str) -> None:
    assert redact.property_value("DEVLINKS", f"{link} /dev/disk/by-path/x /dev/hunter2", knowing()) == link


@pytest.mark.parametrize(
    "link",
    [
        "/dev/disk/by-id/google-hunter2",
        "/dev/disk/azure/local/by-serial/hunter2",
        "/dev/disk/azure/local/by-name/hunter2",
        "/dev/disk/hunter2/x",
        "/dev/disk/azure/hunter2",
    ],
)
def test_other_links_keep_no_name(link: str) -> None:
    assert "hunter2" not in (redact.property_value("DEVLINKS", link, knowing()) or "")


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("pci-0000:00:1f.2-ata-1.0", r"pci-0000:00:1f\.2-ata-1\.0"),
        ("ip-10.1.2.3:3260-iscsi-iqn.2001-05.com.example:hunter2-lun-1-part2", r"ip-.*-lun-1-part2"),
        ("pci-0000:00:1f.2-fc-0x500507630300c562-lun-0", r"pci-0000:00:1f\.2-fc-0x[0-9a-f]{16}-lun-0"),
    ],
)
def test_paths(path: str, kept: str) -> None:
    found = knowing().path(path)
    assert re.fullmatch(kept, found)
    assert not {"hunter2", "10.1.2.3", "500507630300c562"} & set(re.split("[-:x]", found))


def test_our_rules_act_on_the_same_disk_under_its_stand_in() -> None:
    records = [
        {"ID_WWN_WITH_EXTENSION": WWN},
        {"ID_SERIAL": "1"},
        {"ID_SERIAL": "2"},
        {"DM_UUID": LVM},
        {"ID_WWN": EUI, "DEVNAME": "/dev/nvme0n1"},
    ]
    names = knowing(*records)
    cases: list[tuple[str, str, Callable[[str], object]]] = [
        (
            cache_rules.render(
                {
                    f"wwn:{WWN}": ("sata", "disabled"),
                    "serial:1": ("virtio", "enabled"),
                    f"nvme:{EUI}": ("nvme", "enabled"),
                    "serial:2": ("scsi", "enabled"),
                }
            ),
            cache_rules.RULES_PATH,
            lambda text: sorted(udev.parse_rules(text, cache_rules.HEADER, cache_rules._assigner()).items()),
        ),
        (
            scheduler_rules.render({f"dm:{LVM}": {"readahead": "4096"}, "serial:1": {"scheduler": "none"}}),
            scheduler_rules.RULES_PATH,
            lambda text: sorted(
                udev.parse_rules(text, scheduler_rules.HEADER, scheduler_rules._assign).items()
            ),
        ),
    ]
    expected = [
        [
            (f"serial:{names.of('1')}", "virtio enabled"),
            (f"serial:{names.of('2')}", "scsi enabled"),
            (f"nvme:{names.identity(EUI)}", "nvme enabled"),
            (f"wwn:{names.identity(WWN)}", "sata disabled"),
        ],
        [(f"dm:{names.mapped(LVM)}", "readahead=4096"), (f"serial:{names.of('1')}", "scheduler=none")],
    ]
    for (text, _path, parse), wanted in zip(cases, expected):
        found = redact.rules(text, names)
        assert parse(found) == sorted(wanted)
        assert WWN not in found
        assert EUI not in found


def test_a_line_of_somebody_elses_is_still_one_in_the_replay() -> None:
    text = cache_rules.render({"serial:1": ("virtio", "enabled")})
    names = knowing({"ID_SERIAL": "1"})
    for more, kept in (("# a note\n", 1), ('KERNEL=="vd*", RUN+="/bin/hunter2"\n', 0)):
        for found in (text + more, redact.rules(text + more, names)):
            assert len(udev.parse_rules(found, cache_rules.HEADER, cache_rules._assigner())) == kept


def test_what_others_wrote_into_our_rules_goes() -> None:
    text = cache_rules.render({"serial:1": ("virtio", "enabled")})
    hostile = (
        text.replace('ATTR{cache_type}="write back"', 'RUN+="/bin/curl -u hunter2"') + "# hunter2\nhunter2\n"
    )
    found = redact.rules(hostile, knowing())
    assert "hunter2" not in found
    assert udev.parse_rules(found, cache_rules.HEADER, cache_rules._assigner()) == {}


@pytest.mark.parametrize("name", ["plain", "default_options", "no_journal", "external_journal", "forged"])
def test_a_superblock_says_the_same(name: str) -> None:
    text = captured(f"superblock_{name}.txt")
    found = redact.superblock(text, knowing())
    # Its UUID names the machine's disk; no fact that is captured rests on it.
    assert ext4.parse_superblock(found) == ext4.parse_superblock(text)._replace(uuid="")
    others = set(ext4.as_bytes(found)[0x68:0xE0]) | set(ext4.as_bytes(found)[:0x38])
    assert others == {0}


def test_what_is_no_superblock_is_not_kept() -> None:
    assert redact.superblock("hunter2", knowing()) == ""


TABLES = """\
vg-lv: 0 2048 linear 8:2 2048
vg-lv: 2048 2048 linear 8:17 0
vg-r5: 0 4096 raid raid5_ls 3 128 region_size 2048 3 254:0 254:1 254:2 254:3 254:4 254:5
luks: 0 4096 crypt aes-xts-plain64 00112233445566778899aabbccddeeff 0 8:3 32768
ring: 0 4096 crypt aes-xts-plain64 :64:logon:cryptsetup:hunter2-d0 0 8:3 32768
odd: 0 4096 hunterd hunter2
pool: 0 4096 thin-pool 253:1 253:2 128 0 1 skip_block_zeroing
cached: 0 4096 cache 253:1 253:2 253:3 128 2 metadata2 writeback smq 0
snap: 0 4096 snapshot 253:1 253:2 P 8
tags: 0 4096 integrity 253:1 0 4 J 2 internal_hash:hmac(sha256):hunter2 journal_mac:hunter2
mp: 0 4096 multipath 0 0 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1
hunter2
"""


def test_tables_without_keys() -> None:
    found = redact.table(TABLES, knowing())
    assert "hunter2" not in found
    assert "aabbcc" not in found
    before, after = parse_tables(TABLES), parse_tables(found)
    assert {name: [row[0] for row in rows] for name, rows in before.items()} == {
        name: [row[0] for row in rows] for name, rows in after.items()
    }
    assert after["vg-r5"] == before["vg-r5"]
    assert after["vg-lv"] == before["vg-lv"]
    assert [after[name] for name in ("pool", "cached", "snap")] == [
        before[name] for name in ("pool", "cached", "snap")
    ]
    assert after["tags"] == [("integrity", "253:1 0 4 J")]


@pytest.mark.parametrize("vwc", [0, 1, 7])
def test_an_nvme_controller_without_its_numbers(vwc: int) -> None:
    text = f'{{"sn": "hunter2", "mn": "hunter2", "vwc": {vwc}, "subnqn": "nqn.hunter2", "oncs": "hunter2"}}'
    found = redact.nvme_identity(text, knowing())
    assert "hunter2" not in found
    assert has_volatile_cache(found) == has_volatile_cache(text)


@pytest.mark.parametrize("text", ["", "hunter2", "[]", '"hunter2"', "7"])
def test_no_json_is_nothing(text: str) -> None:
    assert redact.nvme_identity(text, knowing()) == ""


def test_a_tuned_profile_keeps_what_it_sets_for_disks() -> None:
    text = "# hunter2\n[main]\nsummary=hunter2\ninclude=throughput-performance\n[disk]\nreadahead=>4096\n[sysctl]\nk=hunter2\n"
    # Reasons name a line by its number.
    wanted = "\n[main]\n\ninclude=throughput-performance\n[disk]\nreadahead=>4096\n[sysctl]\n\n"
    assert redact.settings(text, knowing()) == wanted
