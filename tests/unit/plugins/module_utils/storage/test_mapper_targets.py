# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of device-mapper: what is understood of each target, and that all else is not."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.mapper_targets import (
    Segment,
    parse_tables,
    understand,
)

from ..fakes.captured import captured
from ..fakes.sentences import sentences

NEW = (6, 1)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("linear 8:33 0", Segment("linear")),
        ("thin 253:25 1", Segment("thin")),
        ("thin 253:25 1 253:7", Segment("thin")),
        ("thin-pool 253:23 253:24 128 0 0 ", Segment("thin-pool")),
        ("thin-pool 253:23 253:24 128 0 1 skip_block_zeroing", Segment("thin-pool")),
        ("snapshot-origin 253:28", Segment("snapshot-origin")),
        ("raid raid1 3 0 region_size 4096 2 253:2 253:3", Segment("raid1")),
        ("raid raid5_ls 3 128 region_size 4096 3 253:7", Segment("raid5_ls", write_hole=True)),
        ("raid raid5_ls 3 128 journal_dev 253:6 3 253:7", Segment("raid5_ls")),
        ("cache 253:1 253:2 253:3 128 0 smq 0", Segment("cache", "writeback")),
        ("cache 253:1 253:2 253:3 128 1 writeback smq 0", Segment("cache", "writeback")),
        ("cache 253:1 253:2 253:3 128 2 metadata2 writethrough mq 0", Segment("cache", "writethrough")),
        ("cache 253:1 253:2 253:3 128 3 metadata2 passthrough no_discard_passdown smq 0", Segment("cache", "passthrough")),
        ("writecache s 253:36 253:35 4096 0", Segment("writecache", "ssd")),
        ("writecache p 253:36 253:35 4096 2 high_watermark 60", Segment("writecache", "pmem")),
        ("snapshot 253:28 253:29 P 8", Segment("snapshot", "persistent")),
        ("snapshot 253:28 253:29 PO 8", Segment("snapshot", "persistent")),
        ("snapshot 253:28 253:29 N 8", Segment("snapshot", "transient")),
        ("snapshot-merge 253:28 253:29 P 8", Segment("snapshot-merge", "persistent")),
        ("integrity 253:16 0 4 J 8 meta_device:253:15", Segment("integrity", "journal")),
        ("integrity 253:16 0 - B 0", Segment("integrity", "bitmap")),
        ("integrity 253:16 0 4 D 0", Segment("integrity", "no journal")),
    ],
)  # fmt: skip
def test_every_target_that_is_understood(table: str, wanted: Segment) -> None:
    target, _blank, arguments = table.partition(" ")
    assert understand(target, arguments, NEW) == wanted


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("cache", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128 x writeback smq 0", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128 9 writeback", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128 -1 writeback", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128 2 writeback writethrough smq 0", "its table does not have the form of this target"),
        ("cache 253:1 253:2 253:3 128 1 of_tomorrow smq 0", "no rule covers its feature of_tomorrow"),
        ("writecache", "its table does not have the form of this target"),
        ("writecache x 253:36 253:35 4096 0", "its table does not have the form of this target"),
        ("snapshot 253:28 253:29", "its table does not have the form of this target"),
        ("snapshot 253:28 253:29 Q 8", "its table does not have the form of this target"),
        ("snapshot-merge 253:28 253:29", "its table does not have the form of this target"),
        ("integrity 253:16 0 4 R 0", "its table does not have the form of this target"),
        ("integrity 253:16 0 4 I 0", "its table does not have the form of this target"),
        ("delay 8:33 0 500", "no rule covers how it handles flushes"),
        ("flakey 8:33 0 1 1", "no rule covers how it handles flushes"),
        ("mirror core 1 4096 2 253:31 0 253:32 0", "no rule covers how it handles flushes"),
        ("vdo", "no rule covers how it handles flushes"),
        ("Thin 253:25 1", "no rule covers how it handles flushes"),
        ("thin-pool2", "no rule covers how it handles flushes"),
    ],
)  # fmt: skip
def test_what_is_not_is_named_with_the_reason(table: str, why: str) -> None:
    target, _blank, arguments = table.partition(" ")
    found = understand(target, arguments, NEW)
    assert found.cause
    assert sentences([found.cause]) == (why,)
    assert found == Segment(target, cause=found.cause)


@pytest.mark.parametrize(
    ("kernel", "known"), [((5, 10), False), ((5, 13), False), ((5, 14), True), ((0, 0), False)]
)
@pytest.mark.parametrize("kind", ["s", "p"])
@pytest.mark.fact(83)
def test_a_writecache_flushes_its_origin_since_5_14(kernel: tuple[int, int], known: bool, kind: str) -> None:
    assert (not understand("writecache", f"{kind} 253:36 253:35 4096 0", kernel).cause) is known


def test_each_captured_table_is_understood_but_for_an_old_mirror() -> None:
    for rows in parse_tables(captured("dmsetup_table_bookworm.txt")).values():
        for target, arguments in rows:
            assert bool(understand(target, arguments, NEW).cause) is (target == "mirror")


@pytest.mark.parametrize("name", ["dmsetup_table_bookworm.txt", "dmsetup_table_bullseye.txt"])
def test_captured_tables(name: str) -> None:
    found = {
        device: [target for target, _rest in rows] for device, rows in parse_tables(captured(name)).items()
    }
    assert len(found) == len(captured(name).splitlines())
    expected = {
        "vgm-lin": ["snapshot-origin"],
        "vgm-lin-real": ["linear"],
        "vgm-str": ["striped"],
        "vgm-mir1": ["raid"],
        "vgm-mirint_rimage_0": ["integrity"],
        "vgm-oldmir": ["mirror"],
        "vgm-orig": ["writecache"],
        "vgm-corig": ["cache"],
        "vgm-pool-tpool": ["thin-pool"],
        "vgm-thin": ["thin"],
        "vgm-snap": ["snapshot"],
        "vgm-r5": ["raid"],
    }
    seen = {device: targets for device, targets in found.items() if device in expected}
    assert seen.items() <= expected.items()
    assert len(seen) >= 8


def test_the_captured_table_of_encrypted_devices() -> None:
    found = parse_tables(captured("dmsetup_table_crypt.txt"))
    assert {device: [target for target, _rest in rows] for device, rows in found.items()} == {
        "cr": ["crypt"],
        "plain": ["crypt"],
    }


@pytest.mark.parametrize("mapped", ["a: b", "a:0 1 linear", "vg-lv--with--dashes"])
def test_a_name_may_hold_what_separates(mapped: str) -> None:
    assert parse_tables(f"{mapped}: 0 8 thin 253:1 1\n") == {mapped: [("thin", "253:1 1")]}
