# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fact follows the machine: the value underneath changes, and the fact with it.

The list of facts is walked from what is collected: a new one without a row here is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    ext4,
    flush,
    scheduler_rules,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from .fakes.runs import NOW
from .fakes.small_host import UNITS, BigHost, loop

Arrange = Callable[[BigHost], Any]
#: Facts that nothing underneath can change, and why.
UNCHANGING = {
    ("disks", "name"): "by it the entry is found",
    ("mounts", "target"): "by it the entry is found",
    ("", "time"): "given by the caller",
}
SDA, SDC, NVME = "serial:QEMU_HARDDISK_SATA0001", "wwn:0x5000c500a1b2c3d4", "nvme:eui.0025385"
PG, FAIRCOM, MYSQL, BTRFS = "/srv/pgdata", "/srv/faircom", "/srv/mysql", "/srv/btrfs"
FLAT = ("boots", "other_mounts", "links", "resolved", "sets", "unresolved")


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every leaf; the elements of a list of mappings are one."""
    if isinstance(value, dict) and path.rpartition(".")[2] not in FLAT:
        for key, item in value.items():
            if key != "evidence":
                yield from leaves(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for item in value:
            yield from leaves(item, f"{path}[]")
    else:
        yield path


def value(found: Any, path: str) -> Any:
    """Return what stands at a path; of a list's elements, all values in turn."""
    head, _dot, rest = path.partition(".")
    if head.endswith("[]"):
        return [value(item, rest) for item in found[head[:-2]]]
    return value(found[head], rest) if rest else found[head]


def entry(host: BigHost, part: str, name: str) -> Any:
    """Return the facts of a disk or mount; of the part "", all others."""
    found = collect(host, NOW, ["/srv/pgdata/base"])
    if not part:
        return {key: item for key, item in found.items() if key not in ("disks", "mounts")}
    if part == "disks":
        return next(item for item in found[part] if item["name"] == name)
    return next(item for item in found[part] if name in (item["target"], *item["targets"]))


def disk(name: str, **changes: Any) -> Arrange:
    return lambda host: vars(host.disk(name)).update(changes)


def mount(target: str, **changes: Any) -> Arrange:
    return lambda host: vars(host.mounts[target]).update(changes)


def layer(name: str, **changes: Any) -> Arrange:
    return lambda host: vars(host.layers[name]).update(changes)


OSTREE = "root=/dev/vda3 ostree=/ostree/boot.1/os/0a1b/0\n"


def content(path: str, text: str) -> Arrange:
    return lambda host: host.files.update({path: text})


def sysfs(name: str, attribute: str, text: str) -> Arrange:
    return lambda host: host.files.update({host.resolve(f"/sys/block/{name}/{attribute}"): text})


def line(old: str, new: str) -> Arrange:
    return lambda host: host.files.update({"/etc/fstab": host.read("/etc/fstab").replace(old, new)})


def mounted(text: str) -> Arrange:
    def arrange(host: BigHost) -> None:
        host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + text

    return arrange


def cache_rule(known: str, control: str, state: str) -> Arrange:
    return lambda host: cache_rules.write(host, cache_rules.render({known: (control, state)}))


def queue_rule(known: str, **settings: str) -> Arrange:
    return content(scheduler_rules.RULES_PATH, scheduler_rules.render({known: settings}))


def in_a_container(host: BigHost) -> None:
    """Let only a container see the file system."""
    table = host.read("/proc/self/mountinfo").split("\n")
    host.files["/proc/self/mountinfo"] = "\n".join(row for row in table if PG not in row)
    host.add_process(77, "9", "postgres", host.mounts[PG].line(31))


def moved(name: str, path: str, driver: str = "") -> Arrange:
    def arrange(host: BigHost) -> None:
        host.links[f"/sys/block/{name}"] = path
        host.files["/sys/class/scsi_host/host9/proc_name"] = f"{driver}\n"

    return arrange


VOLUME = "/sys/devices/pci0000:00/0000:03:00.0/host9/target9:2:0/9:2:0:0/block/sda"
NOT_ASKED = {"volume": None, **dict.fromkeys(("write_policy", "backup", "drive_caches"), "unknown")}
USB = "/sys/devices/pci0000:00/usb1/1-1/host9/target9:0:0/9:0:0:0/block/sda"
BOGUS = "/etc/tuned/mssql/tuned.conf"
TUNED = content("/run/tuned/tuned.pid", "7\n"), content("/etc/tuned/active_profile", "mssql\n")


def tuned(text: str) -> Arrange:
    return lambda host: [arrange(host) for arrange in (*TUNED, content(BOGUS, text))]


def in_a_file(target: str) -> Arrange:
    """Let a file system lie in a file on that of SQL Server."""

    def arrange(host: BigHost) -> None:
        host.add_layer(loop("loop0", "7:0"))
        host.loops["loop0"] = "8:17"
        vars(host.mounts[target]).update(device="7:0", source="/dev/loop0", disk="loop0")

    return arrange


def journal_on(name: str) -> Arrange:
    return lambda host: setattr(host.mounts[MYSQL], "journal_on", name)


#: Part, entry, fact, what changes underneath, the fact before and after.
TABLE: list[tuple[str, str, str, Arrange, Any, Any]] = [
    ("disks", "sda", "id", disk("sda", serial="OTHER"), SDA, "serial:OTHER"),
    ("disks", "sda", "id", disk("sda", wwn="0x50"), SDA, "wwn:0x50"),
    ("disks", "sda", "id", disk("sdb", serial="QEMU_HARDDISK_SATA0001"), SDA, None),
    ("disks", "sda", "serial", disk("sda", serial="OTHER"), "QEMU_HARDDISK_SATA0001", "OTHER"),
    ("disks", "sda", "model", disk("sda", model="ST4000"), "WDC WD4003FZEX", "ST4000"),
    (
        "disks",
        "sda",
        "kind",
        lambda h: h.commands.update({("systemd-detect-virt",): "kvm\n"}),
        "physical",
        "virtual",
    ),
    ("disks", "sda", "kind", disk("sda", model="VBOX HARDDISK"), "physical", "virtual"),
    ("disks", "sdc", "kind", disk("sdc", vendor="DGC", model="VRAID"), "physical", "san"),
    ("disks", "sda", "raid", moved("sda", VOLUME, "megaraid_sas"), None, NOT_ASKED),
    ("disks", "sda", "transport", moved("sda", USB), "sata", "usb"),
    ("disks", "sda", "control", moved("sda", USB), "sata", "none"),
    ("disks", "sda", "switchable", moved("sda", USB), "yes", "no"),
    (
        "disks",
        "vdb",
        "switchable",
        lambda h: h.modes.update({h.resolve("/sys/block/vdb/cache_type"): 0o444}),
        "yes",
        "no",
    ),
    ("disks", "sda", "place", moved("sda", USB), "host", "bridge"),
    ("disks", "sda", "flush", content(f"{flush.OWED}/sda", ""), "done", "owed"),
    ("disks", "sda", "write_cache.device", disk("sda", cache="disabled"), "enabled", "disabled"),
    ("disks", "sdc", "write_cache.device", disk("sdc", cache="disabled"), "enabled", "disabled"),
    ("disks", "sdc", "write_cache.device", disk("sdc", caching_page=False), "enabled", "unknown"),
    ("disks", "vdb", "write_cache.device", disk("vdb", cache="disabled"), "enabled", "disabled"),
    ("disks", "nvme0n1", "write_cache.device", disk("nvme0n1", cache="disabled"), "enabled", "disabled"),
    ("disks", "nvme0n1", "write_cache.device", disk("nvme0n1", cache="none"), "enabled", "none"),
    (
        "disks",
        "sda",
        "write_cache.kernel",
        disk("sda", cache_mode="write through"),
        "write back",
        "write through",
    ),
    (
        "disks",
        "sdc",
        "write_cache.kernel",
        disk("sdc", cache_mode="write through"),
        "write back",
        "write through",
    ),
    ("disks", "sda", "write_cache.persisted", cache_rule(SDA, "sata", "disabled"), "unset", "disabled"),
    ("disks", "sdc", "write_cache.persisted", cache_rule(SDC, "scsi", "enabled"), "unset", "enabled"),
    ("disks", "nvme0n1", "write_cache.persisted", cache_rule(NVME, "nvme", "disabled"), "unset", "disabled"),
    ("disks", "nvme0n1", "write_cache.volatile", disk("nvme0n1", cache="none"), "unknown", "non_volatile"),
    ("disks", "sda", "fua", disk("sda", fua="1"), "unsupported", "supported"),
    ("disks", "sdc", "fua_efficient", disk("sdc", fua="0"), "yes", "no"),
    ("disks", "sda", "rotational", disk("sda", rotational="1"), "no", "yes"),
    ("disks", "sda", "scheduler.running", disk("sda", scheduler="none [mq-deadline]"), "none", "mq-deadline"),
    (
        "disks",
        "sda",
        "scheduler.available",
        disk("sda", scheduler="[none] bfq"),
        ["none", "mq-deadline"],
        ["none", "bfq"],
    ),
    ("disks", "sda", "sector.logical", disk("sda", logical="4096"), "512", "4096"),
    ("disks", "sda", "sector.physical", disk("sda", physical="512"), "4096", "512"),
    ("disks", "sda", "scheduler.persisted", queue_rule(SDA, scheduler="none"), "unset", "none"),
    ("disks", "sda", "readahead.running", disk("sda", readahead="512"), "128", "512"),
    ("disks", "sda", "readahead.persisted", queue_rule(SDA, readahead="512"), "unset", "512"),
    ("mounts", PG, "targets", mounted("99 30 8:1 /x /mnt/x rw - ext4 /dev/sda1 rw\n"), [PG], [PG, "/mnt/x"]),
    ("mounts", PG, "hidden_in", in_a_container, None, "process 77 (postgres)"),
    (
        "mounts",
        PG,
        "views",
        lambda h: h.add_process(77, "9", "postgres", "31 1 8:1 / /data rw,noatime - ext4 /dev/sda1 rw\n"),
        [],
        [{"pid": 77, "command": "postgres", "target": "/data", "atime": "noatime"}],
    ),
    ("mounts", PG, "source", mount(PG, source="/dev/disk/by-uuid/pg"), "/dev/sda1", "/dev/disk/by-uuid/pg"),
    ("mounts", PG, "device", mount(PG, device="8:17"), "8:1", "8:17"),
    ("mounts", PG, "carrier", mount(PG, device="8:17"), "sda", "sdb"),
    ("mounts", PG, "carrier_id", disk("sda", serial="OTHER"), SDA, "serial:OTHER"),
    ("mounts", FAIRCOM, "carrier_id", layer("dm-0", uuid="LVM-other"), "dm:LVM-dm-0-uuid", "dm:LVM-other"),
    ("mounts", PG, "fstype", mount(PG, fstype="ext3"), "ext4", "ext3"),
    ("mounts", PG, "barrier", mount(PG, barrier="off"), "on", "off"),
    ("mounts", BTRFS, "barrier", mount(BTRFS, barrier="off"), "on", "off"),
    ("mounts", PG, "data_mode", mount(PG, data="writeback"), "ordered", "writeback"),
    ("mounts", PG, "data_mode", mount(PG, journal=False), "ordered", "none"),
    ("mounts", PG, "atime", mount(PG, atime="noatime"), "relatime", "noatime"),
    ("mounts", PG, "atime", mount(PG, atime="strictatime"), "relatime", "strictatime"),
    ("mounts", PG, "sync", mount(PG, super_options=("sync",)), "no", "yes"),
    ("mounts", PG, "sync", mount(PG, flags=("rw", "sync")), "no", "yes"),
    (
        "mounts",
        PG,
        "options_running",
        mount(PG, flags=("ro", "nodev")),
        ["rw", "relatime", "rw"],
        ["ro", "nodev", "relatime", "rw"],
    ),
    (
        "mounts",
        PG,
        "options_fstab",
        line("pgdata\text4\tdefaults", "pgdata\text4\tnoatime"),
        ["defaults"],
        ["noatime"],
    ),
    ("mounts", PG, "dir_index", mount(PG, dir_index=False), "yes", "no"),
    ("mounts", PG, "options_fstab", line("/srv/pgdata", "/srv/other"), ["defaults"], None),
    (
        "mounts",
        PG,
        "options_boot",
        line("pgdata\text4\tdefaults", "pgdata\text4\tnoatime"),
        ["defaults"],
        ["noatime"],
    ),
    (
        "mounts",
        PG,
        "options_boot",
        content(f"{UNITS}/srv-pgdata.mount.d/x.conf", "[Mount]\nOptions=nobarrier\n"),
        ["defaults"],
        ["nobarrier"],
    ),
    (
        "mounts",
        PG,
        "persisted.barrier",
        line("pgdata\text4\tdefaults", "pgdata\text4\tnobarrier"),
        "on",
        "off",
    ),
    ("mounts", PG, "persisted.barrier", mount(PG, sb_options=("nobarrier",)), "on", "off"),
    (
        "mounts",
        PG,
        "persisted.barrier",
        content(f"{UNITS}/srv-pgdata.mount.d/x.conf", "[Mount]\nOptions=nobarrier\n"),
        "on",
        "off",
    ),
    ("mounts", "/srv/mssql", "persisted.barrier", line("xfs defaults", "xfs nobarrier"), "on", "refused"),
    ("mounts", PG, "persisted.data_mode", mount(PG, sb_options=("data=journal",)), "ordered", "journal"),
    (
        "mounts",
        "/",
        "persisted.data_mode",
        content("/proc/cmdline", "rootflags=data=journal"),
        "ordered",
        "journal",
    ),
    (
        "mounts",
        PG,
        "persisted.atime",
        line("pgdata\text4\tdefaults", "pgdata\text4\tnoatime"),
        "relatime",
        "noatime",
    ),
    ("mounts", PG, "stack[].name", mount(PG, device="254:16"), ["sda1", "sda"], ["vdb"]),
    ("mounts", PG, "stack[].type", mount(PG, device="254:16"), ["partition", "disk"], ["disk"]),
    (
        "mounts",
        FAIRCOM,
        "stack[].detail",
        layer("dm-0", tables=("striped 1 64 9:0 0",)),
        ["linear", "raid1", "", "", "", ""],
        ["striped", "raid1", "", "", "", ""],
    ),
    (
        "mounts",
        FAIRCOM,
        "stack[].state",
        sysfs("md0", "md/sync_action", "recover\n"),
        ["", "resync", "", "", "", ""],
        ["", "resync, recover", "", "", "", ""],
    ),
    (
        "mounts",
        FAIRCOM,
        "stack[].state",
        sysfs("md0", "md/degraded", "1\n"),
        ["", "resync", "", "", "", ""],
        ["", "resync, degraded by 1", "", "", "", ""],
    ),
    ("mounts", PG, "stack[].below", mount(PG, device="254:16"), [["sda"], []], [[]]),
    (
        "mounts",
        FAIRCOM,
        "stack[].label",
        layer("dm-0", mapped="vg-other"),
        ["lvm-dm-0", "", "", "", "", ""],
        ["vg-other", "", "", "", "", ""],
    ),
    (
        "mounts",
        FAIRCOM,
        "stack[].cache_mode",
        layer("dm-0", cache_mode="write through"),
        ["write back", "write back", "", "", "", ""],
        ["write through", "write back", "", "", "", ""],
    ),
    ("mounts", PG, "disks", mount(PG, device="254:16"), ["sda"], ["vdb"]),
    (
        "mounts",
        FAIRCOM,
        "stack[].cause",
        layer("dm-0", tables=("vdo x",)),
        [None] * 6,
        [
            {
                "cause": "not_understood",
                "parameters": {
                    "layer": "dm-0",
                    "type": "device-mapper vdo",
                    "why": [{"cause": "no_rule_for_layer", "parameters": {}}],
                },
            },
            *[None] * 5,
        ],
    ),
    (
        "mounts",
        FAIRCOM,
        "stack[].id",
        layer("dm-0", uuid="LVM-x"),
        ["dm:LVM-dm-0-uuid", *[""] * 5],
        ["dm:LVM-x", *[""] * 5],
    ),
    ("mounts", PG, "stack[].held_on", in_a_file(PG), ["", ""], ["8:17", "", ""]),
    ("mounts", FAIRCOM, "disks", layer("dm-0", tables=("vdo x",)), ["sdc", "sdd"], "unknown"),
    (
        "mounts",
        PG,
        "devices_missing",
        lambda host: host.commands.pop((*ext4.SHOW, "/dev/block/8:1")),
        [],
        [
            {
                "cause": "superblock_unread",
                "parameters": {"target": "/srv/pgdata", "error": "superblock: od: No such file or directory"},
            }
        ],
    ),
    ("mounts", MYSQL, "disks", journal_on("sdb1"), ["sde", "nvme0n1"], ["sde", "sdb"]),
    ("mounts", PG, "disks_seen", mount(PG, device="254:16"), ["sda"], ["vdb"]),
    ("mounts", MYSQL, "external_log", journal_on("sdb1"), "/dev/nvme0n1p2", "/dev/sdb1"),
    (
        "mounts",
        "/srv/mssql",
        "external_log",
        mount("/srv/mssql", super_options=("logdev=/dev/vdb",)),
        None,
        "/dev/vdb",
    ),
    (
        "mounts",
        FAIRCOM,
        "write_hole",
        sysfs("md0", "md/level", "raid5\n"),
        [],
        [{"maker": "md", "name": "md0", "level": "raid5"}],
    ),
    ("mounts", FAIRCOM, "readahead.running", layer("dm-0", readahead="512"), "128", "512"),
    (
        "mounts",
        FAIRCOM,
        "readahead.persisted",
        queue_rule("dm:LVM-dm-0-uuid", readahead="512"),
        "unset",
        "512",
    ),
    ("mounts", FAIRCOM, "fua_path", disk("sdd", fua="0"), "yes", "no"),
    ("mounts", FAIRCOM, "fua_path", content("/proc/sys/kernel/osrelease", "5.4.0\n"), "yes", "no"),
    (
        "",
        "",
        "boot_id",
        content("/proc/sys/kernel/random/boot_id", "2\n"),
        "11111111-2222-3333-4444-555555555555",
        "2",
    ),
    ("", "", "kernel", content("/proc/sys/kernel/osrelease", "6.12.1\n"), "6.1.0-26-amd64", "6.12.1"),
    (
        "",
        "",
        "virtualization",
        lambda h: h.commands.update({("systemd-detect-virt",): "kvm\n"}),
        "none",
        "kvm",
    ),
    ("", "", "platform", content("/sys/class/dmi/id/sys_vendor", "Hetzner\n"), "none", "hetzner"),
    ("", "", "root_image", content("/proc/cmdline", OSTREE), "none", "ostree"),
    (
        "",
        "",
        "next_root",
        lambda h: h.files.update({"/proc/cmdline": OSTREE, "/run/ostree/staged-deployment": ""}),
        "same",
        "other",
    ),
    ("disks", "sdc", "flush_blocked_by", layer("dm-0", cache_mode="write through"), [], ["dm-0"]),
    (
        "disks",
        "sdc",
        "multipath",
        lambda h: [
            vars(h.disk(name)).update(wwn=h.disk("sdc").wwn, multipath="1") for name in ("sdc", "sdd")
        ],
        "no",
        "yes",
    ),
    ("", "", "tuned.profile", tuned("[disk]\n"), None, "mssql"),
    ("", "", "tuned.sets", tuned("[disk]\nelevator=bfq\n"), {}, {"elevator": "bfq"}),
    (
        "",
        "",
        "tuned.cause",
        tuned("[main]\ninclude=gone\n"),
        None,
        {"cause": "no_tuned_profile", "parameters": {"profile": "gone"}},
    ),
    (
        "mounts",
        PG,
        "boots",
        lambda h: h.files.update(
            {"/etc/fstab": h.files["/etc/fstab"].replace("ext4\tdefaults", "ext4\tnofail")}
        ),
        {PG: "required"},
        {PG: "optional"},
    ),
    (
        "",
        "",
        "other_mounts",
        mounted("98 30 0:9 / /ram rw - tmpfs tmpfs rw\n"),
        {"/proc": "proc", "/tmp": "tmpfs"},
        {"/proc": "proc", "/tmp": "tmpfs", "/ram": "tmpfs"},
    ),
    (
        "",
        "",
        "resolved",
        lambda h: (
            h.links.update({"/srv/pgdata/base": "/srv/maria/base"})
            or h.files.update({"/srv/maria/base/x": ""})
        ),
        {"/srv/pgdata/base": None},
        {"/srv/pgdata/base": "/srv/maria/base"},
    ),
    (
        "",
        "",
        "links",
        lambda h: (
            h.links.update({"/srv/pgdata/base": "/srv/maria/base", "/srv/maria/base/wal": "/srv/maria/wal"})
            or h.files.update({"/srv/maria/wal/1": ""})
        ),
        {},
        {"/srv/pgdata/base": ["/srv/maria/wal"]},
    ),
    (
        "",
        "",
        "unresolved",
        lambda h: setattr(h, "hung", ("/srv/pgdata/base",)),
        {},
        {"/srv/pgdata/base": "/srv/pgdata/base: no answer within 10 s"},
    ),
    ("", "", "leased", content(LEASE, "{}"), "no", "yes"),
    (
        "",
        "",
        "boot_faults",
        content("/etc/fstab", "UUID=root / ext4 noatmie,nofail 0 1\n"),
        [],
        [
            {
                "source": "/etc/fstab line 1",
                "target": "/",
                "fstype": "ext4",
                "boot": "optional",
                "cause": "unknown_option",
                "state": "refused",
                "parameters": {"type": "ext4", "wrong": ["noatmie"], "near": ["noatime"]},
                "options": ["noatmie"],
            }
        ],
    ),
    (
        "",
        "",
        "fstab_error",
        content("/etc/fstab", "one two\n"),
        None,
        "/etc/fstab line 1: observed 2 fields; expected 'device target type options [dump] [pass]', and a"
        " comment behind all six only",
    ),
]


@pytest.mark.parametrize(
    ("part", "name", "fact", "arrange", "before", "after"),
    TABLE,
    ids=[f"{row[0]} {row[1]} {row[2]}".strip() for row in TABLE],
)
def test_the_fact_changes_with_what_it_is_about(
    part: str, name: str, fact: str, arrange: Arrange, before: Any, after: Any
) -> None:
    host = BigHost()
    assert value(entry(host, part, name), fact) == before
    arrange(host)
    found = entry(host, part, name) if fact != "fstab_error" else collect(host, NOW)
    assert value(found, fact) == after


def test_every_fact_has_a_row() -> None:
    host = BigHost()
    found = collect(host, NOW)
    facts = {("disks", path) for item in found["disks"] for path in leaves(item)}
    facts |= {("mounts", path) for item in found["mounts"] for path in leaves(item)}
    facts |= {
        ("", path)
        for key, item in found.items()
        if key not in ("disks", "mounts")
        for path in leaves(item, key)
    }
    rows = {(part, fact) for part, _name, fact, *_rest in TABLE}
    assert facts - rows - set(UNCHANGING) == set()
    assert (rows | set(UNCHANGING)) - facts == set()


def test_a_raw_device_has_the_same_facts() -> None:
    """A database may lie on a device without a file system."""
    host = BigHost()
    host.links["/srv/raw"] = "/dev/sdf"
    found = next(m for m in collect(host, NOW, ["/srv/raw"])["mounts"] if m["target"] == "/dev/sdf")
    assert (found["fstype"], found["barrier"], found["disks"]) == ("raw", "unknown", ["sdf"])
    assert set(found) == set(entry(host, "mounts", PG)) - {"dir_index"}
