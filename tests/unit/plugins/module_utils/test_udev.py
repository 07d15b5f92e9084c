# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev knows, and the rule file: read back exactly as written, and never believed in part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.udev import (
    CacheRule,
    identify,
    parse_database,
    parse_rules,
    render_rules,
)

from .captured import captured

RULE = CacheRule("serial:QEMU_HARDDISK_SATA0001", "sata", "disabled")
RENDERED = """\
# Managed by durable.dbhost: the write cache of each disk at the next boot.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.

# disk serial:QEMU_HARDDISK_SATA0001 sata disabled
ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ENV{ID_SERIAL}=="QEMU_HARDDISK_SATA0001", \
ENV{ID_BUS}=="ata", ATTR{device/scsi_disk/*/cache_type}="temporary write back", \
RUN+="/sbin/hdparm -q -W0 $devnode"
""".replace("\\\n", "")

names = st.text("ABCabc019#+.:=@_-", min_size=1, max_size=20)
rules = st.lists(
    st.builds(
        CacheRule,
        st.builds("{}:{}".format, st.sampled_from(["wwn", "serial"]), names),
        st.sampled_from(["sata", "virtio"]),
        st.sampled_from(["enabled", "disabled"]),
    ),
    unique_by=lambda rule: rule.id,
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
        ({"ID_SERIAL": ""}, None),
        ({"ID_SERIAL": 'a" , RUN+="x'}, None),
        ({"ID_SERIAL": "a*"}, None),
        ({"ID_SERIAL": "a\n"}, None),
        ({"ID_SERIAL": "caf\udce9"}, None),
        ({}, None),
    ],
)
def test_only_a_name_that_is_safe_in_a_rule_identifies(
    properties: dict[str, str], expected: str | None
) -> None:
    assert identify(properties) == expected


def test_rendered_bytes() -> None:
    assert render_rules([RULE]) == RENDERED
    assert 'KERNEL=="vd*", ATTR{cache_type}="write through"' in render_rules(
        [CacheRule("serial:V", "virtio", "disabled")]
    )
    assert render_rules([]) == ""


@given(rules)
def test_what_was_rendered_is_what_is_parsed(given_rules: list[CacheRule]) -> None:
    assert parse_rules(render_rules(given_rules)) == sorted(given_rules)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("-W0", "-W1"),
        lambda text: text.replace("ACTION==", "#ACTION=="),
        lambda text: text.rpartition("ACTION")[0],
        lambda text: text.replace("# disk", "# Disk"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('"add|change"', '"add"'),
    ],
)
def test_a_rule_that_somebody_edited_does_not_count(damage: object) -> None:
    assert callable(damage)
    assert parse_rules(damage(RENDERED)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "# disk name:x sata enabled",
        "# disk x sata enabled",
        "# disk serial:x floppy enabled",
        "# disk serial:x sata off",
        "# disk serial:x",
        "\0\udcff",
    ],
)
def test_a_strange_comment_in_our_file_is_passed_over(comment: str) -> None:
    assert parse_rules(f"{comment}\n{RENDERED}") == [RULE]
