# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk's cache as device and kernel tell it, and what they do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import udev
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    READ_TIMEOUT,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    disk_kinds,
    scheduler_rules,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

from ..fakes.runs import look
from ..fakes.sentences import sentence
from ..fakes.small_host import BigHost, FakeDisk, SmallHost

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
    ("name", "expected"),
    [
        (
            "sda",
            {
                "transport": "sata",
                "kind": "physical",
                "id": "serial:QEMU_HARDDISK_SATA0001",
                "control": "sata",
                "model": "WDC WD4003FZEX",
            },
        ),
        ("vdb", {"transport": "virtio", "kind": "virtual", "id": "serial:VIRT0001", "control": "virtio"}),
        ("sdc", {"transport": "sas", "kind": "physical", "id": "wwn:0x5000c500a1b2c3d4", "control": "scsi"}),
        ("nvme0n1", {"transport": "nvme", "kind": "physical", "id": "nvme:eui.0025385", "control": "nvme"}),
    ],
)
def test_what_a_disk_is(name: str, expected: dict[str, str]) -> None:
    found = facts(BigHost(), name)
    assert {field: found[field] for field in expected} == expected
    assert found["write_cache"]["device"] == "enabled"
    assert found["write_cache"]["persisted"] == "unset"


@pytest.mark.parametrize(
    ("change", "name", "field", "before", "after"),
    [
        ({"cache": "disabled"}, "sda", "write_cache.device", "enabled", "disabled"),
        ({"cache": "disabled"}, "vdb", "write_cache.device", "enabled", "disabled"),
        ({"cache": "disabled"}, "sdc", "write_cache.device", "enabled", "disabled"),
        ({"cache": "disabled"}, "nvme0n1", "write_cache.device", "enabled", "disabled"),
        ({"cache": "none"}, "nvme0n1", "write_cache.device", "enabled", "none"),
        ({"cache": "none"}, "nvme0n1", "write_cache.volatile", "unknown", "non_volatile"),
        ({"cache": "none"}, "nvme0n1", "write_cache.persisted", "unset", "none"),
        ({"readahead": "4096"}, "sda", "readahead.running", "128", "4096"),
        ({"cache_mode": "write through"}, "sda", "write_cache.kernel", "write back", "write through"),
        ({"fua": "1"}, "sda", "fua", "unsupported", "supported"),
        ({"fua": "1"}, "sda", "fua_efficient", "no", "yes"),
        ({"cache": "disabled"}, "sda", "fua_efficient", "no", "no"),
        ({"cache": "disabled", "cache_mode": "write through"}, "sda", "fua_efficient", "no", "yes"),
        ({"rotational": "1"}, "sda", "rotational", "no", "yes"),
        ({"logical": "4096"}, "sda", "sector.logical", "512", "4096"),
        ({"physical": "512"}, "sda", "sector.physical", "4096", "512"),
        ({"scheduler": "none [mq-deadline]"}, "sda", "scheduler.running", "none", "mq-deadline"),
        ({"scheduler": "[none] bfq"}, "sda", "scheduler.available", ["none", "mq-deadline"], ["none", "bfq"]),
        ({"serial": "OTHER"}, "vdb", "id", "serial:VIRT0001", "serial:OTHER"),
    ],
)
def test_each_fact_follows_the_machine(
    change: dict[str, str], name: str, field: str, before: Any, after: Any
) -> None:
    host = BigHost()
    assert value(facts(host, name), field) == before
    vars(host.disk(name)).update(change)
    assert value(facts(host, name), field) == after


def rule_for(host: SmallHost, control: str) -> None:
    """Leave a rule for sda that stands."""
    cache_rules.write(host, cache_rules.render({host.disk("sda").id: (control, "disabled")}))


def test_the_persisted_state_is_the_one_of_the_rule() -> None:
    host = SmallHost()
    rule_for(host, "sata")
    assert [facts(host, name)["write_cache"]["persisted"] for name in ("sda", "sdb")] == ["disabled", "unset"]


def test_a_rule_for_another_kind_of_disk_does_not_act_on_this_one() -> None:
    host = SmallHost()
    rule_for(host, "virtio")
    assert facts(host, "sda")["write_cache"]["persisted"] == "unset"


@pytest.mark.parametrize(
    ("path", "answer", "field"),
    [
        (f"{SDA}/queue/write_cache", "write sideways", "write_cache.kernel"),
        (f"{SDA}/queue/fua", "2", "fua"),
        (f"{SDA}/queue/fua", "2", "fua_efficient"),
        (f"{SDA}/queue/rotational", "", "rotational"),
        (f"{SDA}/queue/logical_block_size", "0", "sector.logical"),
        (f"{SDA}/queue/physical_block_size", "4096 x", "sector.physical"),
        (f"{SDA}/queue/scheduler", "mq-deadline", "scheduler.running"),
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
    assert sentence(found, field)


@pytest.mark.parametrize(
    ("missing", "field"),
    [
        ("queue/write_cache", "write_cache.kernel"),
        ("queue/fua", "fua"),
        ("queue/rotational", "rotational"),
        ("queue/read_ahead_kb", "readahead.running"),
        ("cache_type", "write_cache.device"),
    ],
)
def test_a_missing_attribute_is_unknown_with_its_reason(missing: str, field: str) -> None:
    host = SmallHost()
    del host.files[f"{VDB}/{missing}"]
    found = facts(host, "vdb")
    assert value(found, field) == "unknown"
    assert "No such file" in sentence(found, field)


def test_a_missing_hdparm_is_unknown_with_its_reason() -> None:
    host = SmallHost()
    del host.commands[HDPARM]
    found = facts(host, "sda")
    assert found["write_cache"]["device"] == found["write_cache"]["volatile"] == "unknown"
    assert sentence(found, "write_cache.device") == '"hdparm: No such file or directory"'


def test_half_a_database_of_udev_names_no_disk() -> None:
    """What it lacks could be another disk with the same serial number."""
    host = SmallHost()
    answer = ("udevadm", "info", "--export-db")
    whole = host.run(list(answer)).stdout
    host.commands[answer] = Result(1, whole, "killed")
    found = facts(host, "sda")
    assert found["id"] is None
    assert sentence(found, "id") == '"udevadm info --export-db: exit 1: killed"'


def _first_only(whole: str) -> Result:
    return Result(0, whole.partition("\n\n")[0], "")


@pytest.mark.parametrize(
    "said",
    [_first_only, lambda whole: Result(1, whole, 'Unknown device "/sys/class/block/sdz": No such device')],
    ids=["systemd 239", "a device that has gone"],
)
def test_where_udev_does_not_tell_of_all_block_devices_its_whole_database_is_read(
    said: Callable[[str], Result],
) -> None:
    host = SmallHost()
    of_all = ("udevadm", "info", *(f"/sys/class/block/{name}" for name in host.names("/sys/class/block")))
    whole = host.run(list(of_all)).stdout
    host.commands[of_all] = said(whole)
    host.disk("sdb").serial = host.disk("sda").serial
    reader = Disks(host)
    assert host.asked[-1] == ("udevadm", "info", "--export-db")
    assert [reader.collect(name)["id"] for name in ("sda", "sdb", "vdb")] == [None, None, "serial:VIRT0001"]


def test_a_slash_in_a_device_node_is_an_exclamation_mark_in_its_kernel_name() -> None:
    text = "E: SUBSYSTEM=block\nE: DEVNAME=/dev/cciss/c0d0\n"
    assert list(udev.parse_database(text)) == ["cciss!c0d0"]


@pytest.mark.parametrize("answer", [Unobservable("udevadm: no answer within 10 s"), "", "garbage\udcff"])
def test_without_udev_nothing_has_a_name_that_stays(answer: Any) -> None:
    host = SmallHost()
    host.commands[("udevadm", "info", "--export-db")] = answer
    found = facts(host, "sda")
    assert (found["id"], found["transport"]) == (None, "sata")
    assert sentence(found, "id")


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


def test_udev_which_asks_no_device_may_take_longer_than_a_device() -> None:
    limits: dict[str, float] = {}

    class Timed(SmallHost):
        def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
            limits[argv[0]] = timeout
            return super().run(argv, timeout)

    facts(Timed(), "sda")
    assert limits["hdparm"] == READ_TIMEOUT < limits["udevadm"]


@pytest.mark.parametrize("name", ["zram0", "ram0", "nbd0"])
def test_a_block_device_that_is_no_disk_is_not_asked_for_its_cache(name: str) -> None:
    host = SmallHost()
    host.add_disk(FakeDisk(name, "other", "X"))
    found = facts(host, name)
    assert (found["write_cache"]["device"], found["switchable"]) == ("unknown", "no")
    assert found["kind"] in ("memory", "network")


def test_a_disk_is_asked_only_what_its_transport_answers() -> None:
    host = BigHost()
    reader = Disks(host)
    for name in host.disks:
        reader.collect(name)
    asked = {
        command: [argv[-1] for argv in host.asked if argv[0] == command] for command in ("hdparm", "sdparm")
    }
    assert asked == {
        "hdparm": ["/dev/sda", "/dev/sdb"],
        "sdparm": ["/dev/sdc", "/dev/sdd", "/dev/sde", "/dev/sdf"],
    }
    assert {argv[2] for argv in host.asked if argv[0] == "nvme"} == {"/dev/nvme0n1"}
    devices = (f"/sys/class/block/{name}" for name in host.names("/sys/class/block"))
    assert [argv for argv in host.asked if argv[0] == "udevadm"] == [("udevadm", "info", *devices)]


def test_an_nvme_disk_with_several_paths_is_told_by_the_devices_behind_it() -> None:
    host = BigHost()
    behind = "/sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0/nvme0c0n1"
    host.links["/sys/block/nvme0n1"] = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
    assert facts(host, "nvme0n1")["kind"] == "unknown"
    host.links["/sys/block/nvme0c0n1"] = behind
    assert facts(host, "nvme0n1")["kind"] == "physical"


@pytest.mark.parametrize(
    ("arrange", "hidden"),
    [
        (
            {"sda": "/sys/devices/pci0000:00/usb1/1-1/host6/target6:0:0/6:0:0:0/block/sda"},
            disk_kinds.BRIDGE_HIDES,
        ),
        (
            {"sda": "/sys/devices/pci0000:00/0000:03:00.0/host7/target7:2:0/7:2:0:0/block/sda"},
            disk_kinds.RAID_HIDES,
        ),
    ],
)
@pytest.mark.fact(23)
def test_usb_bridges_and_raid_volumes_hide_their_disks(arrange: dict[str, str], hidden: str) -> None:
    """Whatever answers there, the state of the disks' caches is unknown."""
    host = SmallHost()
    host.files["/sys/class/scsi_host/host7/proc_name"] = "megaraid_sas\n"
    for name, path in arrange.items():
        host.links[f"/sys/block/{name}"] = path
    found = facts(host, "sda")
    assert (found["write_cache"]["device"], found["switchable"]) == ("unknown", "no")
    assert found["evidence"]["write_cache.device"]["cause"] == hidden
    assert [argv for argv in host.asked if argv[0] in ("hdparm", "sdparm")] == []


@pytest.mark.parametrize(
    "kind", [disk_kinds.SAN, disk_kinds.NETWORK, disk_kinds.RAID_VOLUME, disk_kinds.MEMORY]
)
def test_a_disk_that_another_machine_owns_is_not_switched_from_here(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = SmallHost()
    monkeypatch.setattr(
        disk_kinds, "classify", lambda traits: disk_kinds.Kind("sata", kind, None, None, "there")
    )
    assert facts(host, "sda")["switchable"] == "no"


@pytest.mark.parametrize("device", ["enabled", "disabled"])
@pytest.mark.parametrize("cache_mode", ["write back", "write through"])
@pytest.mark.parametrize("fua", ["0", "1"])
@pytest.mark.fact(15)
def test_log_writes_are_efficient_by_fua_or_where_nothing_is_cached_and_the_cache_mode_is_right(
    device: str, cache_mode: str, fua: str
) -> None:
    """fua=0 is not bad by itself; a cache mode weaker than the device makes any of it worthless."""
    host = SmallHost()
    vars(host.disk("sda")).update(cache=device, cache_mode=cache_mode, fua=fua)
    efficient = (cache_mode == "write back" and fua == "1") or (
        cache_mode == "write through" and device == "disabled"
    )
    found = facts(host, "sda")
    assert found["fua_efficient"] == ("yes" if efficient else "no")


@pytest.mark.fact(16)
def test_a_sata_disk_with_its_cache_on_takes_no_fua() -> None:
    """libata.fua is off by default, virtio-blk never has it: with a cache on, a log write costs a flush."""
    host = SmallHost()
    assert [facts(host, name)["fua_efficient"] for name in ("sda", "vdb")] == ["no", "no"]


@pytest.mark.fact(48)
def test_a_disk_without_a_name_of_its_own_cannot_be_persisted_and_says_so() -> None:
    host = SmallHost()
    host.disk("sda").serial = ""
    host.disk("vdb").serial = host.disk("sdb").serial
    reasons = [sentence(facts(host, name), "id") for name in ("sda", "sdb")]
    assert reasons == [
        "it has no WWN or serial number (one of zeros or the like names no disk), and nothing on it or in its path"
        " that could serve as a name",
        "vdb also has the name serial:QEMU_HARDDISK_SATA0002",
    ]
    assert facts(host, "sda")["write_cache"]["persisted"] == "unset"


@pytest.mark.parametrize("setting", ["scheduler", "readahead"])
def test_what_a_rule_keeps_of_the_queue(setting: str) -> None:
    host = SmallHost()
    known = host.disk("sda").id
    rule = {"scheduler": "none", "readahead": "4096"}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render({known: {setting: rule[setting]}})
    found = facts(host, "sda")
    assert found[setting]["persisted"] == rule[setting]
    host.files[scheduler_rules.RULES_PATH] = Unobservable("I/O error")
    assert facts(host, "sda")[setting]["persisted"] == "unknown"


def test_a_missing_udevadm_is_the_reason_that_is_shown() -> None:
    host = SmallHost()
    del host.commands[("udevadm", "info", "--export-db")]
    assert "udevadm" in sentence(Disks(host).collect("sda"), "id")
    rows = look(host, "strict", mounts=["/srv/pgdata"])["settings"]
    assert "udevadm" in next(row for row in rows if row["setting"] == "write_cache")["remedy"]


def test_an_unreadable_rule_file_is_unknown() -> None:
    host = SmallHost()
    host.files[cache_rules.RULES_PATH] = Unobservable("I/O error")
    assert Disks(host).collect("sda")["write_cache"]["persisted"] == "unknown"


@pytest.mark.fact(23)
def test_a_disk_behind_a_usb_bridge_is_not_a_sata_disk() -> None:
    host = SmallHost()
    host.links["/sys/block/sda"] = "/sys/devices/pci0000:00/usb1/1-1/host6/target6:0:0/6:0:0:0/block/sda"
    facts = Disks(host).collect("sda")
    assert (facts["transport"], facts["kind"], facts["write_cache"]["device"]) == (
        "usb",
        "unknown",
        "unknown",
    )
