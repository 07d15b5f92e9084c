# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk's cache as device and kernel tell it, and what they do not tell."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils import udev
from ansible_collections.durable.dbhost.plugins.module_utils.disks import (
    Disks,
    parse_hdparm,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import Unobservable

from .captured import captured
from .small_host import FakeDisk, SmallHost

SDA = "/sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda"
VDB = "/sys/devices/pci0000:00/virtio1/block/vdb"
HDPARM = ("hdparm", "-W", "/dev/sda")
SLOW = Unobservable("hdparm -W /dev/sda: no answer within 10 s")


def facts(host: SmallHost, name: str) -> dict[str, Any]:
    return Disks(host).collect(name)


def value(found: dict[str, Any], field: str) -> Any:
    group, _dot, key = field.rpartition(".")
    return found[group][key] if group else found[key]


@pytest.mark.parametrize(
    ("name", "expected"), [("hdparm_sata_on.txt", "enabled"), ("hdparm_sata_off.txt", "disabled")]
)
def test_captured_hdparm(name: str, expected: str) -> None:
    assert parse_hdparm(captured(name)) == expected


@pytest.mark.parametrize(
    "text",
    [
        captured("hdparm_virtio.txt"),
        # Of a SCSI disk: hdparm could not ask, and said this with exit code 0.
        captured("hdparm_scsi.txt"),
        "",
        " write-caching = ",
        " write-caching =  2 (on)",
        " write-caching =  1 (off)",
        " write-caching =  0 (on)",
        "SG_IO: bad/missing sense data, sb[]:  70 00 05 00\n write-caching = not supported\n",
        "HDIO_DRIVE_CMD(identify) failed: Inappropriate ioctl for device",
    ],
)
def test_hdparm_that_names_no_state_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="hdparm"):
        parse_hdparm(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sda", {"transport": "sata", "kind": "physical", "id": "serial:QEMU_HARDDISK_SATA0001"}),
        ("vdb", {"transport": "virtio", "kind": "virtual", "id": "serial:VIRT0001"}),
    ],
)
def test_what_a_disk_is(name: str, expected: dict[str, str]) -> None:
    found = facts(SmallHost(), name)
    assert {field: found[field] for field in expected} == expected
    assert found["write_cache"]["device"] == "enabled"
    assert found["write_cache"]["persisted"] == "unset"


@pytest.mark.parametrize(
    ("change", "name", "field", "before", "after"),
    [
        ({"cache": "disabled"}, "sda", "write_cache.device", "enabled", "disabled"),
        ({"cache": "disabled"}, "vdb", "write_cache.device", "enabled", "disabled"),
        ({"belief": "write through"}, "sda", "write_cache.kernel", "write back", "write through"),
        ({"fua": "1"}, "sda", "fua", "unsupported", "supported"),
        ({"fua": "1"}, "sda", "fua_efficient", "no", "yes"),
        ({"cache": "disabled"}, "sda", "fua_efficient", "no", "no"),
        ({"cache": "disabled", "belief": "write through"}, "sda", "fua_efficient", "no", "yes"),
        ({"rotational": "1"}, "sda", "rotational", "no", "yes"),
        ({"scheduler": "none [mq-deadline]"}, "sda", "scheduler.running", "none", "mq-deadline"),
        ({"scheduler": "[none] bfq"}, "sda", "scheduler.available", ["none", "mq-deadline"], ["none", "bfq"]),
        ({"serial": "OTHER"}, "vdb", "id", "serial:VIRT0001", "serial:OTHER"),
    ],
)
def test_each_fact_follows_the_machine(
    change: dict[str, str], name: str, field: str, before: Any, after: Any
) -> None:
    host = SmallHost()
    assert value(facts(host, name), field) == before
    vars(host.disk(name)).update(change)
    assert value(facts(host, name), field) == after


def test_the_persisted_state_is_the_one_of_the_rule() -> None:
    host = SmallHost()
    rule = udev.CacheRule(host.disk("sda").id, "sata", "disabled")
    host.files[udev.RULES_PATH] = udev.render_rules([rule])
    assert [facts(host, name)["write_cache"]["persisted"] for name in ("sda", "sdb")] == ["disabled", "unset"]


def test_a_rule_for_another_kind_of_disk_does_not_act_on_this_one() -> None:
    host = SmallHost()
    rule = udev.CacheRule(host.disk("sda").id, "virtio", "disabled")
    host.files[udev.RULES_PATH] = udev.render_rules([rule])
    assert facts(host, "sda")["write_cache"]["persisted"] == "unset"


@pytest.mark.parametrize(
    ("path", "answer", "field"),
    [
        (f"{SDA}/queue/write_cache", "write sideways", "write_cache.kernel"),
        (f"{SDA}/queue/fua", "2", "fua"),
        (f"{SDA}/queue/fua", "2", "fua_efficient"),
        (f"{SDA}/queue/rotational", "", "rotational"),
        (f"{SDA}/queue/scheduler", "none", "scheduler.running"),
        (f"{SDA}/queue/scheduler", "[a] [b]", "scheduler.running"),
        (f"{SDA}/queue/scheduler", "", "scheduler.running"),
        (f"{VDB}/cache_type", "none", "write_cache.device"),
        (HDPARM, SLOW, "write_cache.device"),
        (HDPARM, "\n/dev/sda:\n", "write_cache.device"),
        (HDPARM, "garbage \udcff\0", "write_cache.device"),
        (HDPARM, SLOW, "write_cache.volatile"),
        (HDPARM, SLOW, "fua_efficient"),
    ],
)
def test_garbage_is_unknown_with_its_reason(path: Any, answer: Any, field: str) -> None:
    host = SmallHost()
    (host.files if isinstance(path, str) else host.commands)[path] = answer
    found = facts(host, "vdb" if VDB in path else "sda")
    assert value(found, field) == "unknown"
    assert found["evidence"][field]["reason"]


@pytest.mark.parametrize(
    ("missing", "field"),
    [
        ("queue/write_cache", "write_cache.kernel"),
        ("queue/fua", "fua"),
        ("queue/rotational", "rotational"),
        ("queue/scheduler", "scheduler.running"),
        ("cache_type", "write_cache.device"),
    ],
)
def test_a_missing_attribute_is_unknown_with_its_reason(missing: str, field: str) -> None:
    host = SmallHost()
    del host.files[f"{VDB}/{missing}"]
    found = facts(host, "vdb")
    assert value(found, field) == "unknown"
    assert "No such file" in found["evidence"][field]["reason"]


def test_a_missing_hdparm_is_unknown_with_its_reason() -> None:
    host = SmallHost()
    del host.commands[HDPARM]
    found = facts(host, "sda")
    assert found["write_cache"]["device"] == found["write_cache"]["volatile"] == "unknown"
    assert found["evidence"]["write_cache.device"]["reason"] == "hdparm: No such file or directory"


@pytest.mark.parametrize("answer", [Unobservable("udevadm: no answer within 10 s"), "", "garbage\udcff"])
def test_without_udev_nothing_is_named_and_no_cache_is_vouched_for(answer: Any) -> None:
    host = SmallHost()
    host.commands[("udevadm", "info", "--export-db")] = answer
    found = facts(host, "sda")
    assert (found["id"], found["transport"], found["kind"]) == (None, "unknown", "unknown")
    assert found["write_cache"]["device"] == "unknown"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("none\n", "physical"), ("kvm\n", "virtual"), ("", "unknown"), (Unobservable("missing"), "unknown")],
)
def test_a_disk_is_physical_only_where_there_is_no_hypervisor(answer: Any, kind: str) -> None:
    host = SmallHost()
    host.commands[("systemd-detect-virt",)] = answer
    assert facts(host, "sda")["kind"] == kind


def test_disks_with_one_serial_have_no_id() -> None:
    host = SmallHost()
    host.disk("sdb").serial = host.disk("sda").serial
    reader = Disks(host)
    assert [reader.collect(name)["id"] for name in ("sda", "sdb", "vdb")] == [None, None, "serial:VIRT0001"]
    assert reader.find("serial:QEMU_HARDDISK_SATA0001") is None


@pytest.mark.parametrize(
    ("name", "kind"), [("zram0", "memory"), ("ram0", "memory"), ("nbd0", "network"), ("drbd0", "network")]
)
def test_a_block_device_that_is_no_disk_is_called_what_it_is(name: str, kind: str) -> None:
    host = SmallHost()
    host.add_disk(FakeDisk(name, "other", "X"))
    found = facts(host, name)
    assert (found["kind"], found["write_cache"]["device"]) == (kind, "unknown")


def test_a_disk_is_asked_only_what_its_transport_answers() -> None:
    host = SmallHost()
    reader = Disks(host)
    for name in host.disks:
        reader.collect(name)
    assert [argv[-1] for argv in host.asked if argv[0] == "hdparm"] == ["/dev/sda", "/dev/sdb"]
    assert [argv for argv in host.asked if argv[0] == "udevadm"] == [("udevadm", "info", "--export-db")]
