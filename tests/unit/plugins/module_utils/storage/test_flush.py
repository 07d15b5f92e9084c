# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A flush that is not counted has not happened."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush import (
    flush_disk,
    flush_mount,
    flushes,
    is_owed,
    owe,
    takes_flushes,
)

from ..fakes.small_host import BigHost, Multipath, SmallHost

STAT = "/sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda/stat"


@pytest.mark.fact(17)
@pytest.mark.fact(43)
def test_exact_commands_and_the_counter_rises() -> None:
    """Flushes are counted in field 16 of the disk's stat; a syncfs makes the one that is owed."""
    host = SmallHost()
    (mount,) = (m for m in parse_mountinfo(host.read("/proc/self/mountinfo")) if m.target == "/srv/pgdata")
    flush_mount(host, mount, ["sda", "sdb"])
    assert host.mutations == [
        ("change", "sync", "--file-system", "/srv/pgdata"),
        ("change", "sync", "/dev/sda"),
        ("change", "sync", "/dev/sdb"),
    ]
    assert [flushes(host, name) for name in ("sda", "sdb", "vdb")] == [101, 101, 100]


def test_a_flush_that_is_not_counted_fails_and_names_the_disk() -> None:
    host = SmallHost()
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match=r"sda: observed no flush counted during a sync; expected one"):
        flush_disk(host, "sda")


def named(host: SmallHost, **wwids: str) -> None:
    """Give disks a WWID each."""
    for name, wwid in wwids.items():
        host.files[f"{host.disk(name).sysfs}/device/wwid"] = f"{wwid}\n"


def test_a_pending_flush_is_of_the_disk_and_not_of_its_kernel_name() -> None:
    """A disk came back as sdb with what its cache held: it was reported as flushed, and sda's flush was taken for its own."""
    host = SmallHost()
    named(host, sda="naa.1", sdb="naa.2")
    owe(host, "sda")
    assert [is_owed(host, name) for name in ("sda", "sdb", "vdb")] == [True, False, False]
    named(host, sda="naa.3", sdb="naa.1")
    assert [is_owed(host, name) for name in ("sda", "sdb", "vdb")] == [False, True, False]
    flush_disk(host, "sda")
    assert is_owed(host, "sdb")
    flush_disk(host, "sdb")
    assert not is_owed(host, "sdb")


def test_each_path_of_one_disk_has_a_pending_flush_until_it_was_flushed_itself() -> None:
    host = SmallHost()
    named(host, sda="naa.1", sdb="naa.1")
    owe(host, "sda")
    owe(host, "sdb")
    flush_disk(host, "sda")
    assert [is_owed(host, name) for name in ("sda", "sdb")] == [False, True]


@pytest.mark.parametrize(("before", "after"), [("", "naa.1"), ("naa.1", ""), ("", "")])
def test_without_a_wwid_a_pending_flush_is_that_of_the_kernel_name(before: str, after: str) -> None:
    host = SmallHost()
    named(host, sda=before)
    owe(host, "sda")
    named(host, sda=after)
    assert is_owed(host, "sda")
    flush_disk(host, "sda")
    assert not is_owed(host, "sda")


def test_a_disk_that_caches_nothing_needs_none() -> None:
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through")
    flush_disk(host, "sda")
    assert host.mutations == []


@pytest.mark.fact(56)
@pytest.mark.parametrize("path", ["nvme0c0n1", "nvme0c1n1"])
def test_flushes_of_a_disk_with_several_paths_are_counted_on_the_paths(path: str) -> None:
    """NVMe native multipath: the head's own counter stays where it is."""
    host = Multipath()
    host.flushed = path
    flush_disk(host, "nvme0n1")
    assert flushes(host, "nvme0n1") == 100 + 3 + 5 + 1
    host.disk("nvme0n1").counts = False
    with pytest.raises(ChangeFailed, match="nvme0n1: observed no flush counted"):
        flush_disk(host, "nvme0n1")


@pytest.mark.fact(56)
def test_a_path_that_takes_no_flush_makes_its_disk_one_that_takes_none() -> None:
    host = Multipath()
    assert takes_flushes(host, "nvme0n1")
    assert facts(host)["kernel"] == "write back"
    host.kernel["nvme0c1n1"] = "write through"
    assert not takes_flushes(host, "nvme0n1")
    assert facts(host)["kernel"] == "write through"
    host.kernel["nvme0c1n1"] = "nonsense"
    with pytest.raises(ChangeFailed, match="nvme0c1n1: queue/write_cache: observed 'nonsense'"):
        takes_flushes(host, "nvme0n1")
    assert facts(host)["kernel"] == "unknown"


def facts(host: BigHost) -> Any:
    return Disks(host).collect("nvme0n1")["write_cache"]


def test_a_path_that_went_meanwhile_leaves_the_flush_uncounted() -> None:
    host = Multipath()
    host.after_mutation = lambda: host.links.pop("/sys/block/nvme0c0n1", None)
    with pytest.raises(ChangeFailed, match="nvme0n1: observed"):
        flush_disk(host, "nvme0n1")


@pytest.mark.parametrize("text", ["1 2 3\n", "", " ".join(["1"] * 15)])
def test_a_kernel_that_neither_counts_nor_traces_flushes_fails(text: str) -> None:
    host = SmallHost()
    host.files[STAT] = text
    with pytest.raises(
        ChangeFailed,
        match=r"sda: kernel 6\.1\.0-26-amd64 counts no flushes of disks, as Linux 5\.5 and later do, and they could not be"
        r" traced: observed no tracefs at .*mount -t tracefs nodev /sys/kernel/tracing, then run again",
    ):
        flush_disk(host, "sda")
    assert host.mutations == []
    with pytest.raises(ChangeFailed, match=r"sda: kernel 6\.1\.0-26-amd64 counts no flushes of disks"):
        flushes(host, "sda")


def test_a_vanished_disk_is_a_failed_change() -> None:
    host = SmallHost()
    host.unplug("sda")
    with pytest.raises(ChangeFailed, match="/sys/block/sda/queue/write_cache: No such file"):
        flush_disk(host, "sda")
    assert host.mutations == []
