# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev knows, and the rule file: read back exactly as written, and never taken in part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.udev import (
    PROPERTIES,
    identify,
    parse_database,
    parse_rules,
    render_rules,
    risk_of,
    written_rules,
)

from ..fakes import fake_udev
from ..fakes.captured import captured

HEADER = "# Ours.\n# Hands off.\n"
RULES = {"serial:QEMU_HARDDISK_SATA0001": "off"}
RENDERED = """\
# Ours.
# Hands off.

# serial:QEMU_HARDDISK_SATA0001 off
ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{ID_SERIAL}=="QEMU_HARDDISK_SATA0001", \
KERNEL=="sd*", ATTR{switch}="off"
ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{ID_SERIAL}=="QEMU_HARDDISK_SATA0001", \
ATTR{pin}="1"
""".replace("\\\n", "")


def assign(words: str) -> list[list[str]]:
    """Return what rules do that keep a switch: two lines, of which both must stand."""
    if words not in ("on", "off"):
        raise ValueError(words)
    return [['KERNEL=="sd*"', f'ATTR{{switch}}="{words}"'], ['ATTR{pin}="1"']]


names = st.text("ABCabc019#+.:=@_-", min_size=1, max_size=20)
rules = st.dictionaries(
    st.builds("{}:{}".format, st.sampled_from(sorted(PROPERTIES)), names),
    st.sampled_from(["on", "off"]),
)


def test_captured_database() -> None:
    found = parse_database(captured("udev_database.txt"))
    assert sorted(found) == ["sda", "sdb", "sdb1", "sdc", "sdc1", "vda", "vdb"]
    assert {name: identify(found[name]) for name in ("sda", "sdc", "vdb")} == {
        "sda": "serial:0QEMU_QEMU_HARDDISK_SCSI0001",
        "sdc": "serial:QEMU_HARDDISK_SATA0001",
        "vdb": "serial:VIRT0001",
    }
    assert [found[name].get("ID_BUS") for name in ("sda", "sdc", "vdb")] == ["scsi", "ata", None]


@pytest.mark.parametrize(
    "text", ["", "garbage", "E: SUBSYSTEM=block\n", "P: /x\nE: DEVNAME=/dev/sda\n", "E: \n\nE: ="]
)
def test_a_database_without_disks_names_none(text: str) -> None:
    assert parse_database(text) == {}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"ID_WWN_WITH_EXTENSION": "0x5000", "ID_SERIAL": "S"}, "wwn:0x5000"),
        # A plain WWN is shared by the volumes of one array.
        ({"ID_WWN": "0x5000", "ID_SERIAL": "S"}, "serial:S"),
        (
            {"ID_WWN": "nvme.1b36-00", "ID_SERIAL": "QEMU NVMe 1", "DEVNAME": "/dev/nvme0n1"},
            "nvme:nvme.1b36-00",
        ),
        ({"ID_SERIAL": ""}, None),
        ({"ID_SERIAL": 'a" , RUN+="x'}, None),
        ({"ID_SERIAL": "a*"}, None),
        ({"ID_SERIAL": "a\n"}, None),
        ({"ID_SERIAL": "caf\udce9"}, None),
        ({}, None),
        ({"DM_UUID": "LVM-abcDEF"}, "dm:LVM-abcDEF"),
        ({"DM_UUID": "CRYPT-LUKS2-a b"}, None),
        ({"MD_UUID": "1:2:3:4"}, "md:1:2:3:4"),
    ],
)
def test_only_a_name_that_is_safe_in_a_rule_identifies(
    properties: dict[str, str], expected: str | None
) -> None:
    assert identify(properties) == expected


@pytest.mark.parametrize(
    "properties",
    [
        {"ID_WWN_WITH_EXTENSION": "0x0000000000000000"},
        {"ID_WWN_WITH_EXTENSION": "0x00000000000000000000000000000000"},
        {"ID_WWN_WITH_EXTENSION": "0xffffffffffffffff"},
        {"ID_WWN_WITH_EXTENSION": "0x5000000000000000"},
        {"ID_WWN_WITH_EXTENSION": "0x5000000000000001"},
        # Of unrelated SSDs, in public reports.
        {"ID_WWN_WITH_EXTENSION": "0x502b2a201d1c1b1a"},
        {"ID_WWN": "eui.0000000000000000", "DEVNAME": "/dev/nvme0n1"},
        {"ID_WWN": "eui.0000000000000001", "DEVNAME": "/dev/nvme0n1"},
        {"ID_WWN": "uuid.00000000-0000-0000-0000-000000000000", "DEVNAME": "/dev/nvme0n1"},
        # The kernel's own, of a serial number of blanks, and of zeros.
        {"ID_WWN": "nvme.1b36-20202020-51454d55-00000001", "DEVNAME": "/dev/nvme0n1"},
        {"ID_WWN": "nvme.1b36-30303030-51454d55-00000001", "DEVNAME": "/dev/nvme0n1"},
        {"ID_SERIAL": "0"},
        {"ID_SERIAL": "00000000"},
        {"ID_SERIAL": "None"},
        {"ID_SERIAL": "To_be_filled_by_O.E.M."},
        {"ID_SERIAL": "Default_string"},
        {"ID_SERIAL": "123456789"},
        {"ID_SERIAL": "0123456789ABCDEF"},
        {"ID_SERIAL": "XXXXXXXXXXXX"},
        {"ID_SERIAL": "30000000000000000", "ID_SERIAL_SHORT": "0000000000000000"},
        {"ID_SERIAL": "Generic_SSD_0000000000", "ID_SERIAL_SHORT": "0000000000"},
        # Of all disks of a model: without a number of its own a disk's ID_SERIAL is its model.
        {"ID_SERIAL": "Generic_SSD", "ID_MODEL": "Generic_SSD"},
        {"ID_SERIAL": "Generic_SSD_None", "ID_MODEL": "Generic_SSD"},
        {"MD_UUID": "00000000:00000000:00000000:00000000"},
        {"DM_UUID": "mpath-30000000000000000"},
    ],
)
def test_what_many_devices_have_alike_names_none(properties: dict[str, str]) -> None:
    assert identify(properties) is None
    # Nor does a substitute take its place: the rule by a substitute passes a device that has such a property.
    assert identify({**NAMELESS, **properties, "ID_PATH": "pci-0000:00:05.0"}) is None


def test_after_a_number_that_names_none_the_next_one_counts() -> None:
    properties = {
        "ID_WWN_WITH_EXTENSION": "0x0000000000000000",
        "ID_SERIAL": "SSD_S3Z1NB0K",
        "ID_MODEL": "SSD",
    }
    assert identify(properties) == "serial:SSD_S3Z1NB0K"


@pytest.mark.parametrize(
    ("kind", "value"),
    [("ptuuid", "00000000"), ("ptuuid", "00000000-0000-0000-0000-000000000000"), ("fsuuid", "0000-0000")],
)
def test_a_substitute_of_zeros_is_none(kind: str, value: str) -> None:
    assert identify({**NAMELESS, SUBSTITUTES[kind][0]: value, "ID_PATH": "pci-0000:00:05.0"}) is None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"ID_WWN_WITH_EXTENSION": "0x5000c50034182bdc"}, "wwn:0x5000c50034182bdc"),
        ({"ID_WWN_WITH_EXTENSION": "0x600508b10000000000000000000000d1"}, None),
        (
            {"ID_SERIAL": "35000c500b7779ed4", "ID_SERIAL_SHORT": "5000c500b7779ed4"},
            "serial:35000c500b7779ed4",
        ),
        (
            {"ID_SERIAL": "QEMU_HARDDISK_SATA0001", "ID_MODEL": "QEMU_HARDDISK"},
            "serial:QEMU_HARDDISK_SATA0001",
        ),
        ({"ID_SERIAL": "disk-12"}, "serial:disk-12"),
    ],
)
def test_a_number_with_a_few_zeros_is_a_name(properties: dict[str, str], expected: str | None) -> None:
    expected = expected or f"wwn:{properties['ID_WWN_WITH_EXTENSION']}"
    assert identify(properties) == expected


#: A virtio disk without a serial number, and what udev knows of it, best first.
NAMELESS = {"DEVNAME": "/dev/vdb", "DEVPATH": "/devices/pci0000:00/0000:00:05.0/virtio3/block/vdb"}
SUBSTITUTES = {
    "ptuuid": ("ID_PART_TABLE_UUID", "7ed69443-2c72"),
    "member": ("ID_FS_UUID_SUB", "a-b"),
    "fsuuid": ("ID_FS_UUID", "mX1a-pv"),
    "path": ("ID_PATH", "pci-0000:00:05.0"),
}


@pytest.mark.parametrize("kind", SUBSTITUTES)
def test_the_substitute_for_a_name_is_the_best_that_is_there(kind: str) -> None:
    kinds = list(SUBSTITUTES)
    there = dict(SUBSTITUTES[each] for each in kinds[kinds.index(kind) :])
    assert identify({**NAMELESS, **there}) == f"{kind}:{SUBSTITUTES[kind][1]}"
    assert risk_of(f"{kind}:x")
    # What cannot be written into a rule is no substitute, and nothing worse takes its place.
    assert identify({**NAMELESS, **there, SUBSTITUTES[kind][0]: 'x"*'}) is None


@pytest.mark.parametrize("kind", SUBSTITUTES)
@pytest.mark.parametrize(
    "other",
    [
        {"ID_SERIAL": "not safe*"},
        {"ID_WWN": "0x5000"},
        {"DEVPATH": "/devices/virtual/block/dm-0"},
        {"DEVPATH": "/devices/virtual/block/loop0"},
        {"DEVPATH": ""},
    ],
)
def test_there_is_no_substitute_for_the_name_of_a_layer_or_of_a_disk_that_has_some_name(
    kind: str, other: dict[str, str]
) -> None:
    assert identify({**NAMELESS, SUBSTITUTES[kind][0]: "x"}) == f"{kind}:x"
    properties = {key: value for key, value in {**NAMELESS, **other}.items() if value}
    assert identify({**properties, SUBSTITUTES[kind][0]: "x"}) is None


@pytest.mark.parametrize("known", ["wwn:x", "nvme:x", "serial:x", "dm:x", "md:x"])
def test_a_name_of_its_own_is_no_risk(known: str) -> None:
    assert risk_of(known) is None


@given(
    st.sampled_from(sorted(SUBSTITUTES)),
    st.fixed_dictionaries(
        {"DEVPATH": st.sampled_from(["/devices/pci0000:00/vdb", "/devices/virtual/block/md0"])},
        optional={key: st.sampled_from(["x", "y"]) for key in PROPERTIES.values()},
    ),
)
def test_a_rule_by_a_substitute_acts_on_what_goes_by_that_name_and_on_nothing_else(
    kind: str, properties: dict[str, str]
) -> None:
    acted = []
    event = {"KERNEL": "sdb", "ACTION": "add", "SUBSYSTEM": "block", "DEVTYPE": "disk", **properties}
    text = render_rules({f"{kind}:x": "on"}, HEADER, assign)
    fake_udev.play(text, event, lambda command: None, lambda name, value: acted.append(name))
    assert bool(acted) == (identify(properties) == f"{kind}:x")


def test_rendered_bytes() -> None:
    assert render_rules(RULES, HEADER, assign) == RENDERED
    assert render_rules({}, HEADER, assign) == ""


@pytest.mark.parametrize(
    ("known", "key"),
    [
        ("wwn:0x5000", 'ENV{ID_WWN_WITH_EXTENSION}=="0x5000"'),
        ("nvme:eui.00", 'ENV{ID_WWN}=="eui.00"'),
        ("serial:S", 'ENV{ID_SERIAL}=="S"'),
        ("dm:LVM-x", 'ENV{DM_UUID}=="LVM-x"'),
        ("md:a:b", 'ENV{MD_UUID}=="a:b"'),
        ("ptuuid:a-b", 'ENV{ID_PART_TABLE_UUID}=="a-b"'),
        ("member:a-b", 'ENV{ID_FS_UUID_SUB}=="a-b"'),
        ("fsuuid:a-b", 'ENV{ID_FS_UUID}=="a-b"'),
        ("path:pci-0000:00:05.0", 'ENV{ID_PATH}=="pci-0000:00:05.0"'),
    ],
)
def test_a_rule_matches_its_device_by_the_name_that_stays(known: str, key: str) -> None:
    lines = render_rules({known: "on"}, HEADER, assign).split("\n")[4:-1]
    assert len(lines) == 2
    assert all(key in line for line in lines)


@given(rules)
def test_what_was_rendered_is_what_is_parsed(given_rules: dict[str, str]) -> None:
    assert parse_rules(render_rules(given_rules, HEADER, assign), HEADER, assign) == given_rules


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('="off"', '="on"'),
        lambda text: text.replace("ACTION==", "#ACTION==", 1),
        lambda text: text.rpartition("ACTION")[0],
        lambda text: text.replace("# serial", "# Serial"),
        lambda text: text.replace(" off\n", " off \n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('"add|change"', '"add"', 1),
        # The file of somebody else, or of a newer release.
        lambda text: text.replace("# Ours.", "# Theirs."),
        lambda text: "\n" + text,
        lambda text: text.partition("\n\n")[2],
    ],
)
def test_a_rule_that_somebody_edited_does_not_count(damage: object) -> None:
    assert callable(damage)
    assert damage(RENDERED) != RENDERED
    assert parse_rules(damage(RENDERED), HEADER, assign) == {}


@pytest.mark.parametrize(
    "comment",
    [
        "# name:x on",
        "# x on",
        "# serial:x maybe",
        "# serial:x",
        "# serial:x on",
        "# \0\udcff",
    ],
)
def test_a_strange_comment_in_our_file_is_passed_over(comment: str) -> None:
    assert parse_rules(f"{RENDERED}\n{comment}\n", HEADER, assign) == RULES


def test_the_last_comment_on_a_disk_does_not_count_over_the_lines_that_stand() -> None:
    """udev runs both blocks, and the last assignment wins: what is said must be what happens."""
    twice = RENDERED + render_rules({next(iter(RULES)): "on"}, HEADER, assign).removeprefix(HEADER)
    assert written_rules(twice, HEADER, assign) == {next(iter(RULES)): "on"}
    assert parse_rules(twice, HEADER, assign) == {}


@pytest.mark.parametrize(
    "line", ['SUBSYSTEM=="block", ATTR{switch}="on"', "\0\udcff", " # not at the line's begin", 'LABEL="x"']
)
def test_beside_a_line_of_somebody_elses_nothing_is_kept_but_ours_are_known(line: str) -> None:
    """It may undo what ours do; written again, ours must not be lost with it."""
    for text in (f"{RENDERED}{line}\n", RENDERED.replace("\n\n", f"\n{line}\n\n")):
        assert parse_rules(text, HEADER, assign) == {}
        assert written_rules(text, HEADER, assign) == RULES


@pytest.mark.parametrize(
    "known",
    [
        'serial:x"\nRUN+="/tmp/evil',
        'serial:x", RUN+="/tmp/evil',
        "serial:*",
        "serial:",
        "serial",
        "name:x",
        'ID_SERIAL}=="x", RUN+="/tmp/evil:x',
    ],
)
def test_an_id_that_no_device_has_becomes_no_rule(known: str) -> None:
    with pytest.raises(ValueError, match="no device id that a udev rule can have"):
        render_rules({known: "on"}, HEADER, assign)
