# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a mount down to its disks: what is not understood is unknown, never skipped."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import Because
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    READ_TIMEOUT,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.blockstack import (
    Blocks,
    Holder,
    Layer,
    Stack,
    parse_loops,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, look
from ..fakes.sentences import sentence, sentences
from ..fakes.small_host import BigHost, FakeDisk, FakeLayer, FakeMount, SmallHost, bcache, dm, loop, md

NUMBER = "253:9"
GONE = "/dev/mapper/lvm-dm-10 /srv/gone ext4 noatime 0 2\n"


def walk(host: SmallHost, *devices: str) -> Stack:
    return Blocks(host).walk(devices)


def over(*layers: FakeLayer) -> SmallHost:
    """Return a host with these layers, the last of which has the number."""
    host = BigHost()
    for layer in layers:
        host.add_layer(layer)
    return host


def types(stack: Stack) -> list[tuple[str, str, str]]:
    return [(layer.name, layer.type, layer.detail) for layer in stack.layers]


def test_a_partition_lies_on_its_disk() -> None:
    stack = walk(SmallHost(), "8:1")
    assert stack == Stack((Layer("sda1", "partition", below=("sda",)), Layer("sda", "disk")), ("sda",))
    assert stack.as_list()[0]["below"] == ["sda"]


def test_a_whole_disk() -> None:
    assert walk(SmallHost(), "254:16") == Stack((Layer("vdb", "disk"),), ("vdb",))


def test_a_volume_on_a_mirror_goes_down_to_both_disks() -> None:
    stack = walk(BigHost(), "253:0")
    assert types(stack) == [
        ("dm-0", "lvm", "linear"),
        ("md0", "md", "raid1"),
        ("sdc1", "partition", ""),
        ("sdd1", "partition", ""),
        ("sdc", "disk", ""),
        ("sdd", "disk", ""),
    ]
    assert (stack.disks, sentences(stack.causes), stack.write_hole) == (("sdc", "sdd"), (), ())


@pytest.mark.parametrize(
    ("layer", "type_", "detail"),
    [
        (dm("dm-9", "LVM", ("sdc1",), NUMBER, "linear 8:33 0"), "lvm", "linear"),
        (dm("dm-9", "LVM", ("sdc1",), NUMBER, "linear 8:33 0", "linear 8:33 9999"), "lvm", "linear"),
        (dm("dm-9", "LVM", ("sdc1", "sdd1"), NUMBER, "striped 2 128 8:33 0 8:49 0"), "lvm", "striped"),
        (
            dm("dm-9", "LVM", ("sdc1", "sdd1"), NUMBER, "linear 8:33 0", "striped 2 8:33"),
            "lvm",
            "linear+striped",
        ),
        (
            dm("dm-9", "LVM", ("sdc1", "sdd1"), NUMBER, "raid raid1 3 0 region_size 4096 2 8:33 8:49"),
            "lvm",
            "raid1",
        ),
        (dm("dm-9", "LVM", ("sdc1",), NUMBER, "raid raid10 3 0 region_size 4096 2 8:33"), "lvm", "raid10"),
        (
            dm("dm-9", "CRYPT", ("sdc1",), NUMBER, "crypt aes-xts-plain64 :64:logon:x:y 0 8:33 32768"),
            "crypt",
            "crypt",
        ),
        (
            dm("dm-9", "mpath", ("sda", "sdb"), NUMBER, "multipath 0 0 2 1 round-robin 0 1 1 8:0 1"),
            "multipath",
            "multipath",
        ),
        # Made by hand, without a uuid.
        (FakeLayer("dm-9", "dm", ("sdc1",), NUMBER, "mine", "", ("linear 8:33 0",)), "dm", "linear"),
        (md("md9", "raid0", ("sdc1", "sdd1"), NUMBER), "md", "raid0"),
        (md("md9", "raid1", ("sdc1", "sdd1"), NUMBER), "md", "raid1"),
        (md("md9", "raid10", ("sdc1", "sdd1"), NUMBER), "md", "raid10"),
        (md("md9", "linear", ("sdc1", "sdd1"), NUMBER), "md", "linear"),
        (md("md9", "raid0", ("sdc1", "sdd1"), NUMBER), "md", "raid0"),
        (
            dm("dm-9", "LVM", ("sdc1",), NUMBER, "raid raid6_ls_6 3 0 region_size 4096 2 8:33"),
            "lvm",
            "raid6_ls_6",
        ),
    ],
)
def test_every_layer_that_is_understood(layer: FakeLayer, type_: str, detail: str) -> None:
    stack = walk(over(layer), NUMBER)
    assert types(stack)[0] == (layer.name, type_, detail)
    assert sentences(stack.causes) == ()
    assert len(stack.disks) == len(layer.below)


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("mirror", "core 1 4096 2 253:31 0 253:32 0"),
        ("clone", ""),
        ("era", ""),
        ("vdo", ""),
        ("zero", ""),
        ("error", ""),
        ("delay", "8:33 0 500"),
        ("flakey", "8:33 0 1 1"),
        ("log-writes", "8:33 8:49"),
        ("dust", ""),
        ("verity", ""),
        ("zoned", ""),
        ("ebs", ""),
        ("of-tomorrow", ""),
    ],
)
@pytest.mark.parametrize("beside", [(), ("linear 8:33 0",)])
@pytest.mark.parametrize("under_lvm", [False, True])
@pytest.mark.fact(47)
def test_device_mapper_layers_that_break_promises_are_unknown_and_named(
    target: str, arguments: str, beside: tuple[str, ...], under_lvm: bool
) -> None:
    """Any that no rule knows, also as one segment of several."""
    strange = dm("dm-9", "LVM", ("sdc1",), NUMBER, *beside, f"{target} {arguments}".strip())
    layers = [strange, dm("dm-10", "LVM", ("dm-9",), "253:10", f"linear {NUMBER} 0")]
    stack = walk(over(*layers), "253:10" if under_lvm else NUMBER)
    assert sentences(stack.causes) == (
        f"dm-9 is a device-mapper {target} device: no rule covers how it handles flushes",
    )
    assert ("dm-9", "unknown", f"device-mapper {target}") in types(stack)
    # Never skipped: what is safer for the disks below stays safer.
    assert stack.disks == ("sdc",)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("loop0", "loop"),
        ("nbd0", "nbd"),
        ("zd0", "zd"),
        ("ublkb0", "ublkb"),
        ("strange", "strange"),
    ],
)
@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.fact(47)
def test_a_layer_without_a_rule_is_unknown_and_named(name: str, kind: str, partition: bool) -> None:
    """ZFS volumes and others: unknown unless understood."""
    host = over(FakeLayer(name, "other", (), "9:9"))
    if partition:
        host.add_partition(name, f"{name}p1", "9:10")
    stack = walk(host, "9:10" if partition else "9:9")
    assert stack.disks == ()
    assert types(stack)[-1] == (name, "unknown", kind)
    assert sentences(stack.causes) == (f"{name} is a {kind} device: no rule covers how it handles flushes",)


@pytest.mark.parametrize(
    ("layer", "level"),
    [
        (md("md9", "multipath", ("sdc1",), NUMBER), "multipath"),
        (md("md9", "faulty", ("sdc1",), NUMBER), "faulty"),
        (md("md9", "container", ("sdc1",), NUMBER), "container"),
        (md("md9", "raid7", ("sdc1",), NUMBER), "raid7"),
        (dm("dm-9", "LVM", ("sdc1",), NUMBER, "raid raid7 3 0 region_size 4096 2 8:33"), "raid7"),
    ],
)
def test_an_array_of_a_level_that_is_not_known_is_unknown(layer: FakeLayer, level: str) -> None:
    """The host was durable with each of them."""
    stack = walk(over(layer), NUMBER)
    assert types(stack)[0][1] == "unknown"
    (reason,) = sentences(stack.causes)
    assert f"observed level {level}, expected one of linear and RAID" in reason
    assert stack.disks == ("sdc",)


@pytest.mark.parametrize("mode", ["writeback", "writethrough", "writearound", "none"])
@pytest.mark.parametrize("state", ["clean", "dirty"])
@pytest.mark.fact(85)
def test_below_a_bcache_lie_its_backing_device_and_its_cache(mode: str, state: str) -> None:
    stack = walk(over(bcache("bcache0", ("sdc", "nvme0n1"), "9:9", mode, state)), "9:9")
    assert stack.layers[0][1:4] == ("bcache", mode, state)
    assert (sorted(stack.disks), sentences(stack.causes)) == (["nvme0n1", "sdc"], ())


def test_a_bcache_whose_cache_was_detached_lies_on_one_disk() -> None:
    stack = walk(over(bcache("bcache0", ("sdc",), "9:9", "writeback", "no cache")), "9:9")
    assert (stack.disks, sentences(stack.causes)) == (("sdc",), ())


def test_a_loop_device_below_a_bcache_is_none_though_it_has_the_same_directory() -> None:
    backing = loop("loop5", "7:5")
    backing.files.update({"bcache/state": "dirty", "bcache/cache_mode": "[writeback]"})
    host = over(backing, bcache("bcache0", ("loop5", "sdc"), "252:0"))
    host.loops["loop5"] = "8:33"
    blocks = Blocks(host)
    blocks.holder_of = {"8:33": Holder("ext4", ("8:33",))}.get
    stack = blocks.walk(["252:0"])
    assert sorted(layer.type for layer in stack.layers) == ["bcache", "disk", "loop", "partition"]
    assert sentences(stack.causes) == ()


@pytest.mark.parametrize(
    ("mode", "state", "below", "why"),
    [
        (
            "writeback",
            "inconsistent",
            ("sdc",),
            "no rule covers the state inconsistent with the mode writeback",
        ),
        ("writeback", "dirty", ("sdc",), "its state is dirty, and no cache device is listed below it"),
        ("writeback", "", ("sdc", "sdd"), "no rule covers the state none with the mode writeback"),
        ("of_tomorrow", "clean", ("sdc", "sdd"), "no rule covers the state clean with the mode none"),
    ],
)
def test_a_bcache_that_is_not_understood_names_its_disks(
    mode: str, state: str, below: tuple[str, ...], why: str
) -> None:
    stack = walk(over(bcache("bcache0", below, "9:9", mode, state)), "9:9")
    assert (stack.disks, sentences(stack.causes)) == (below, (f"bcache0 is a bcache device: {why}",))


@pytest.mark.parametrize("name", ["zram0", "ram0", "nullb0"])
@pytest.mark.parametrize("partition", [False, True])
def test_memory_is_a_disk_and_never_one_that_lasts(name: str, partition: bool) -> None:
    host = over(FakeLayer(name, "other", (), "9:9"))
    if partition:
        host.add_partition(name, f"{name}p1", "9:10")
    stack = walk(host, "9:10" if partition else "9:9")
    assert (stack.disks, sentences(stack.causes)) == ((name,), ())


def in_a_file(number: str, holder_of: Holder | None = None, dio: str = "0") -> Stack:
    host = over(loop("loop3", "7:3", dio=dio))
    host.loops["loop3"] = number
    blocks = Blocks(host)
    blocks.holder_of = {number: holder_of}.get
    return blocks.walk(["7:3"])


@pytest.mark.parametrize(("dio", "state"), [("0", "buffered"), ("1", "direct")])
@pytest.mark.fact(84)
def test_below_a_loop_device_lie_the_devices_of_the_file_system_that_holds_its_file(
    dio: str, state: str
) -> None:
    stack = in_a_file("8:33", Holder("ext4", ("8:33", "259:2")), dio)
    assert stack.layers[0][1:4] == ("loop", "ext4", state)
    assert (stack.layers[0].held_on, sentences(stack.causes)) == ("8:33", ())
    assert sorted(stack.disks) == ["nvme0n1", "sdc"]


NAMELESS = "the devices of the {} that holds its file are unknown: one device has no name"
NOWHERE = "no mounted file system that stores data is known to hold its file: it is stored on device 8:33"


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (None, NOWHERE),
        (Holder("nfs", ("0:51",)), NAMELESS.format("nfs")),
        (Holder("btrfs", ()), NAMELESS.format("btrfs")),
        (
            Holder("ext4", ("8:33",), (Because("journal_unread", {"target": "/srv", "error": "gone"}),)),
            'the devices of the ext4 that holds its file are unknown: the device of the journal of /srv cannot be read: "gone"',
        ),
    ],
)
def test_a_loop_device_whose_file_lies_nowhere_known_is_unknown(held: Holder | None, why: str) -> None:
    assert sentences(in_a_file("8:33", held).causes) == (f"loop3 is a loop device: {why}",)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Unobservable("losetup: not found"), "losetup: not found"),
        (Result(1, "", "no"), "losetup --list --noheadings --output NAME,BACK-MAJ:MIN: exit 1: no"),
        ("/dev/loop4 8:33\n", "losetup --list --noheadings --output NAME,BACK-MAJ:MIN: no row for it"),
        (
            "/dev/loop3 8:33 x\n/dev/loop3\n",
            "losetup --list --noheadings --output NAME,BACK-MAJ:MIN: no row for it",
        ),
    ],
)
def test_without_losetup_a_loop_device_is_unknown_with_the_reason(answer: Any, why: str) -> None:
    host = over(loop("loop3", "7:3"))
    host.commands[("losetup", "--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN")] = answer
    (reason,) = sentences(walk(host, "7:3").causes)
    assert reason.endswith(f'is known to hold its file: "{why}"')


def test_what_losetup_lists() -> None:
    text = "/dev/loop0   254:0  \n/dev/loop11 8:1\n/dev/sda 8:0\nloop1 8:1\n"
    assert parse_loops(text) == {"loop0": "254:0", "loop11": "8:1"}


@pytest.mark.parametrize(
    "layer",
    [
        dm("dm-9", "mpath", (), NUMBER, "multipath 0 0 0 0"),
        dm("dm-9", "LVM", (), NUMBER, "linear 8:33 0"),
        md("md9", "raid1", (), NUMBER),
    ],
)
@pytest.mark.parametrize("under_lvm", [False, True])
def test_a_stack_that_ends_above_any_disk_is_unknown(layer: FakeLayer, under_lvm: bool) -> None:
    """As when all paths of a multipath device are gone: no disk is seen, and none is at rest."""
    above = dm("dm-10", "LVM", (layer.name,), "253:10", f"linear {NUMBER} 0")
    host = over(layer, above)
    stack = walk(host, "253:10" if under_lvm else NUMBER)
    assert stack.disks == ()
    (reason,) = sentences(stack.causes)
    assert reason.startswith(f"{layer.name} (")
    assert reason.endswith("lists no device below it: its disks are unknown")
    host.add_mount(FakeMount("/srv/gone", "ext4", "253:10", "/dev/mapper/lvm-dm-10", "dm-10"), GONE)
    found = look(host, "strict", mounts=["/srv/gone"])
    assert found["verdict"] == "unknown"
    assert any(line.startswith(f"/srv/gone: {reason}") for line in found["why"])


@pytest.mark.fact(81)
def test_below_a_thin_volume_lie_the_data_and_the_metadata_of_its_pool() -> None:
    layers = [
        dm("dm-2", "LVM", ("nvme0n1p1",), "253:2", "linear 259:1 0"),
        dm("dm-3", "LVM", ("sdc1",), "253:3", "linear 8:33 0"),
        dm("dm-4", "LVM", ("dm-2", "dm-3"), "253:4", "thin-pool 253:2 253:3 128 0 0 "),
        dm("dm-9", "LVM", ("dm-4",), NUMBER, "thin 253:4 1"),
    ]
    stack = walk(over(*layers), NUMBER)
    assert types(stack)[:2] == [("dm-9", "lvm", "thin"), ("dm-4", "lvm", "thin-pool")]
    assert (sorted(stack.disks), sentences(stack.causes)) == (["nvme0n1", "sdc"], ())


@pytest.mark.fact(82)
@pytest.mark.parametrize(
    ("table", "detail", "state"),
    [
        ("cache 259:1 259:2 8:33 128 1 writeback smq 0", "cache", "writeback"),
        ("cache 259:1 259:2 8:33 128 2 metadata2 writethrough mq 0", "cache", "writethrough"),
        ("writecache s 8:33 259:2 4096 0", "writecache", "ssd"),
        ("snapshot 8:33 259:2 P 8", "snapshot", "persistent"),
        ("integrity 8:33 0 4 B 1 meta_device:259:2", "integrity", "bitmap"),
    ],
)
def test_what_holds_blocks_of_a_volume_is_a_disk_of_it(table: str, detail: str, state: str) -> None:
    """Whatever else it writes to has to hold what it was told: the cache, the store, the tags."""
    stack = walk(over(dm("dm-9", "LVM", ("sdc1", "nvme0n1p2"), NUMBER, table)), NUMBER)
    assert (stack.layers[0].detail, stack.layers[0].state) == (detail, state)
    assert (sorted(stack.disks), sentences(stack.causes)) == (["nvme0n1", "sdc"], ())


def test_one_segment_that_is_garbled_makes_the_device_unknown() -> None:
    host = over(dm("dm-9", "LVM", ("sdc1",), NUMBER, "linear 8:33 0", "cache 8:33"))
    (reason,) = sentences(walk(host, NUMBER).causes)
    assert reason == "dm-9 is a device-mapper cache device: its table does not have the form of this target"


def test_a_writecache_of_an_older_kernel_is_unknown() -> None:
    host = over(dm("dm-9", "LVM", ("sdc1", "sdd1"), NUMBER, "writecache s 8:33 8:49 4096 0"))
    host.files["/proc/sys/kernel/osrelease"] = "5.10.0-32-amd64\n"
    (reason,) = sentences(walk(host, NUMBER).causes)
    assert "before Linux 5.14 it can write to its origin without flushing it" in reason


@pytest.mark.parametrize(("uuid", "id_"), [("LVM-abc", "dm:LVM-abc"), ("", "dm-name:lvm-dm-9")])
def test_a_device_mapper_device_has_a_name_that_stays(uuid: str, id_: str) -> None:
    host = over(dm("dm-9", "LVM", ("sdc1",), NUMBER, "linear 8:33 0"))
    host.layers["dm-9"].uuid = uuid
    layers = walk(host, NUMBER).layers
    assert [layer.id for layer in layers] == [id_, "", ""]


def test_a_file_system_that_names_no_device_is_unknown() -> None:
    """As a btrfs whose directory of devices is empty."""
    assert walk(BigHost()) == Stack((), (), (Because("no_device"),))


def test_no_block_device_is_unknown() -> None:
    stack = walk(SmallHost(), "0:45")
    assert stack == Stack((), (), (Because("no_block_device", {"number": "0:45"}),))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Unobservable("dmsetup: No such file or directory"), "dmsetup: No such file or directory"),
        (Result(1, "", "/dev/mapper/control: open failed"), "dmsetup table: exit 1: /dev/mapper/control"),
        ("No devices found\n", "dmsetup table: no row for it"),
        ("lvm-dm-0 0 2048 linear 9:0 2048\n", "dmsetup table: no row for it"),
        ("garbage\udcff\0\n", "dmsetup table: no row for it"),
    ],
)
def test_without_its_table_a_device_mapper_device_is_unknown_with_the_reason(answer: Any, why: str) -> None:
    host = BigHost()
    host.commands[("dmsetup", "table")] = answer
    stack = walk(host, "253:0")
    assert sentences(stack.causes)[0].startswith(
        f'dm-0 is a device-mapper device: its table is unknown: "{why}'
    )
    assert stack.disks == ("sdc", "sdd")


def test_device_mapper_is_asked_once_and_only_where_there_is_any() -> None:
    host = BigHost()
    blocks = Blocks(host)
    for device in ("8:1", "9:0"):
        blocks.walk([device])
    assert host.asked == []
    for device in ("253:0", "253:1"):
        blocks.walk([device])
    assert host.asked == [("dmsetup", "table")]


def test_device_mapper_is_asked_once_also_by_threads() -> None:
    class Slow(BigHost):
        def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
            time.sleep(0.05)
            return super().run(argv, timeout)

    host = Slow()
    collect(host, "2026-01-31T12:00:00Z")
    assert host.asked.count(("dmsetup", "table")) == 1


@pytest.mark.parametrize(
    ("level", "words", "closed"),
    [
        ("raid5", {}, False),
        ("raid6", {}, False),
        ("raid4", {}, False),
        # A bitmap shortens the resync and closes nothing.
        ("raid5", {"consistency_policy": "bitmap"}, False),
        ("raid5", {"consistency_policy": "ppl"}, True),
        ("raid5", {"consistency_policy": "journal", "journal_mode": "[write-through] write-back"}, True),
        # The journal has failed: the policy goes on to say journal.
        ("raid5", {"consistency_policy": "journal", "journal_mode": ""}, False),
        ("raid6", {"consistency_policy": ""}, False),
        ("raid6", {"consistency_policy": "unknown"}, False),
        ("raid1", {}, True),
        ("raid10", {}, True),
        ("raid0", {}, True),
    ],
)
@pytest.mark.fact(47)
def test_parity_without_a_journal_or_partial_parity_log_has_the_write_hole(
    level: str, words: dict[str, str], closed: bool
) -> None:
    """md RAID 4, 5 and 6 can lose older data when a crash parts data from parity."""
    stack = walk(over(md("md9", level, ("sdc1", "sdd1", "sde"), "9:9", **words)), "9:9")
    hole = {"maker": "md", "name": "md9", "level": level}
    assert stack.write_hole == (() if closed else (hole,))
    assert sentences(stack.causes) == ()


@pytest.mark.parametrize(
    ("arguments", "detail", "closed"),
    [
        ("raid5_ls 3 128 region_size 4096 3 253:7 253:8 253:9 253:10", "raid5_ls", False),
        ("raid6_zr 3 128 region_size 4096 3 253:7 253:8", "raid6_zr", False),
        ("raid4 3 128 region_size 4096 3 253:7 253:8", "raid4", False),
        ("raid5_ls 5 128 journal_dev 253:6 journal_mode writethrough 3 253:7", "raid5_ls", True),
        ("raid1 3 0 region_size 4096 2 253:2 253:3", "raid1", True),
        ("raid10 3 0 region_size 4096 2 253:2 253:3", "raid10", True),
    ],
)
def test_device_mapper_raid_has_it_as_well(arguments: str, detail: str, closed: bool) -> None:
    stack = walk(over(dm("dm-9", "LVM", ("sdc1", "sdd1"), NUMBER, f"raid {arguments}")), NUMBER)
    (name, _type, found) = types(stack)[0]
    assert found == detail
    assert stack.write_hole == (() if closed else ({"maker": "dm", "name": name, "level": detail},))


@pytest.mark.fact(16)
def test_journal_and_spares_of_an_array_are_leaves_too() -> None:
    """Whatever the array writes to has to hold what it was told: every leaf is looked at."""
    array = md("md9", "raid5", ("sdc1", "sdd1", "sde", "nvme0n1p2"), "9:9", consistency_policy="journal")
    assert sorted(walk(over(array), "9:9").disks) == ["nvme0n1", "sdc", "sdd", "sde"]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ({}, "resync"),
        ({"consistency_policy": "bitmap"}, "bitmap"),
        ({"sync_action": "recover", "degraded": "1"}, "resync, recover, degraded by 1"),
        ({"consistency_policy": "unknown", "sync_action": ""}, ""),
    ],
)
def test_what_an_array_is_doing_is_told(words: dict[str, str], state: str) -> None:
    stack = walk(over(md("md9", "raid1", ("sdc1", "sdd1"), "9:9", **words)), "9:9")
    assert stack.layers[0].state == state


def test_an_array_without_a_level_is_unknown() -> None:
    stack = walk(over(md("md9", "", ("sdc1",), "9:9")), "9:9")
    assert sentences(stack.causes) == ("md9 is a md device: it reports no level",)


def test_several_devices_are_one_stack_with_each_layer_once() -> None:
    stack = walk(BigHost(), "8:65", "259:2", "259:1", "253:1")
    names = [layer.name for layer in stack.layers]
    assert sorted(names) == sorted({"sde1", "sde", "nvme0n1p2", "nvme0n1p1", "nvme0n1", "dm-1"})
    assert stack.disks == ("sde", "nvme0n1")


def test_a_circle_ends() -> None:
    host = over(dm("dm-9", "LVM", ("dm-10",), NUMBER, "linear 253:10 0"))
    host.add_layer(dm("dm-10", "LVM", ("dm-9", "sdc1"), "253:10", f"linear {NUMBER} 0"))
    host.links["/sys/devices/virtual/block/dm-9/slaves/dm-10"] = "/sys/devices/virtual/block/dm-10"
    assert walk(host, NUMBER).disks == ("sdc",)
    assert Blocks(host).blocking_above("sdc") == []


@pytest.mark.parametrize(
    ("deaf", "disk", "found"),
    [
        ((), "sdc", []),
        (("dm-0",), "sdc", ["dm-0"]),
        (("dm-0",), "sdd", ["dm-0"]),
        (("dm-0",), "sde", []),
        (("dm-1",), "nvme0n1", ["dm-1"]),
        (("md0", "dm-0"), "sdc", ["dm-0", "md0"]),
    ],
)
def test_layers_above_a_disk_that_pass_no_flush_on(
    deaf: tuple[str, ...], disk: str, found: list[str]
) -> None:
    """A device-mapper device keeps the cache mode that its disks had when its table was loaded."""
    host = BigHost()
    for name in deaf:
        host.layers[name].cache_mode = "write through"
    assert Blocks(host).blocking_above(disk) == found


def test_the_cache_mode_of_a_layer_that_cannot_be_read_is_unknown() -> None:
    host = BigHost()
    del host.files["/sys/devices/virtual/block/dm-0/queue/write_cache"]
    assert walk(host, "253:0").layers[0].cache_mode == "unknown"
    assert Blocks(host).blocking_above("sdc") == ["dm-0"]


def test_a_layer_has_the_name_that_was_given_to_it() -> None:
    assert [layer.label for layer in walk(BigHost(), "253:0").layers][:2] == ["lvm-dm-0", ""]


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/dev/sda1", "8:1"),
        ("/dev/mapper/lvm-dm-0", "253:0"),
        ("/dev/disk/by-uuid/pg", "8:1"),
        ("/dev/nothing", None),
    ],
)
def test_the_number_behind_a_path(path: str, number: str | None) -> None:
    assert Blocks(BigHost()).number_of(path) == number


def test_the_whole_device_of_a_partition() -> None:
    blocks = Blocks(BigHost())
    assert [blocks.whole(name) for name in ("sda1", "nvme0n1p2", "md0", "vdb")] == [
        "sda",
        "nvme0n1",
        "md0",
        "vdb",
    ]


def test_a_partition_of_an_array_lies_on_the_array() -> None:
    host = over(md("md9", "raid1", ("sdc1", "sdd1"), "9:9"))
    host.add_partition("md9", "md9p1", "259:9")
    assert types(walk(host, "259:9"))[:2] == [("md9p1", "partition", ""), ("md9", "md", "raid1")]


def test_a_disk_without_a_device_behind_it_is_no_disk() -> None:
    host = SmallHost()
    host.add_disk(FakeDisk("sdx", "sata", "X"), "8:240")
    for path in [path for path in host.files if "/sdx/device/" in path]:
        del host.files[path]
    assert walk(host, "8:240").disks == ()


def test_a_device_with_others_below_it_is_no_disk() -> None:
    host = SmallHost()
    base = host.resolve("/sys/class/block/vdb")
    host.links[f"{base}/slaves/sda"] = host.resolve("/sys/class/block/sda")
    stack = walk(host, "254:16")
    assert (stack.disks, stack.layers[0].type) == (("sda",), "unknown")
    assert "vdb" in sentences(stack.causes)[0]


@pytest.mark.parametrize("how", ["member", "directory"])
def test_a_member_of_btrfs_that_cannot_be_read_is_not_passed_over(how: str) -> None:
    host = BigHost()
    if how == "member":
        host.links["/sys/fs/btrfs/b0b0/devices/sdq"] = "/sys/devices/gone/sdq"
    else:
        names = host.names

        def vanishing(path: str) -> list[str]:
            if path.endswith("/b0b0/devices"):
                raise Unobservable("gone")
            return names(path)

        host.names = vanishing
    facts = next(m for m in collect(host, NOW)["mounts"] if m["target"] == "/srv/btrfs")
    assert facts["disks"] == "unknown"
    assert "the devices of /dev/sdf are unknown: " in sentence(facts, "disks")
