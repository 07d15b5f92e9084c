# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a mount down to its disks: what is not understood is unknown, never skipped."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.blockstack import Layer, walk

from .small_host import SmallHost


def test_a_partition_lies_on_its_disk() -> None:
    stack = walk(SmallHost(), "8:1")
    assert stack == ((Layer("sda1", "partition"), Layer("sda", "disk")), ("sda",), None)
    assert stack.as_list()[0] == {"name": "sda1", "type": "partition"}


def test_a_whole_disk() -> None:
    assert walk(SmallHost(), "254:16") == ((Layer("vdb", "disk"),), ("vdb",), None)


@pytest.mark.parametrize(
    ("name", "uuid", "kind"),
    [
        ("dm-0", "LVM-abc", "device-mapper LVM"),
        ("dm-1", "CRYPT-LUKS2-abc", "device-mapper CRYPT"),
        ("dm-2", "", "device-mapper"),
        ("md127", None, "md"),
        ("loop0", None, "loop"),
        ("zram0", None, "zram"),
        ("bcache0", None, "bcache"),
        ("drbd1", None, "drbd"),
    ],
)
@pytest.mark.parametrize("partition", [False, True])
def test_a_layer_without_a_rule_is_unknown_and_named(
    name: str, uuid: str | None, kind: str, partition: bool
) -> None:
    host = SmallHost()
    base = f"/sys/devices/virtual/block/{name}"
    host.links[f"/sys/block/{name}"] = base
    host.links["/sys/dev/block/9:9"] = f"{base}/{name}p1" if partition else base
    host.files[f"{base}/queue/write_cache"] = "write back\n"
    if partition:
        host.files[f"{base}/{name}p1/partition"] = "1\n"
    if uuid is not None:
        host.files[f"{base}/dm/uuid"] = f"{uuid}\n"
    stack = walk(host, "9:9")
    assert stack.disks == ()
    assert stack.layers[-1] == Layer(name, "unknown")
    assert stack.reason == f"{name} is a {kind} device: this release does not know what it promises"


def test_no_block_device_is_unknown() -> None:
    stack = walk(SmallHost(), "0:45")
    assert (stack.layers, stack.disks) == ((Layer("0:45", "unknown"),), ())
    assert stack.reason == "device 0:45 has no block device behind it"
