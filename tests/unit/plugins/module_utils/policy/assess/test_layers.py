# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with layers that keep blocks of their own: green where each disk below keeps its word, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from ...fakes.runs import attested, enforce, look
from ...fakes.small_host import (
    BigHost,
    FakeDisk,
    FakeLayer,
    FakeMount,
    bcache,
    dm,
    loop,
)

GREEN = ("durable", "attested")
SRV = "/srv/lv"
#: What lies on sdc (SAS) and keeps blocks on nvme0n1: a cache, tags, a store, metadata.
TABLES = {
    "thin pool": "thin-pool 259:2 8:33 128 0 0 ",
    "cache, writeback": "cache 259:1 259:2 8:33 128 1 writeback smq 0",
    "cache, writethrough": "cache 259:1 259:2 8:33 128 1 writethrough smq 0",
    "cache, passthrough": "cache 259:1 259:2 8:33 128 1 passthrough smq 0",
    "writecache": "writecache s 8:33 259:2 4096 0",
    "snapshot": "snapshot 8:33 259:2 P 8",
    "origin": "snapshot-origin 8:33",
    "integrity": "integrity 8:33 0 4 J 1 meta_device:259:2",
    "integrity, bitmap": "integrity 8:33 0 4 B 1 meta_device:259:2",
}


def over(table: str, *below: str) -> BigHost:
    """Return a host with a managed volume of this table."""
    host = BigHost()
    host.add_layer(dm("dm-9", "LVM", below or ("sdc1", "nvme0n1p2"), "253:9", table))
    line = "/dev/mapper/lvm-dm-9 /srv/lv ext4 noatime 0 2\n"
    host.add_mount(FakeMount(SRV, "ext4", "253:9", "/dev/mapper/lvm-dm-9", "dm-9", atime="noatime"), line)
    return host


def brought(host: BigHost, profile: str, **given: Any) -> dict[str, Any]:
    """Return the assessment after a run and a boot."""
    enforce(host, look(host, profile, mounts=[SRV], **given))
    host.reboot()
    return look(host, profile, mounts=[SRV], **given)


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.fact(81)
@pytest.mark.fact(82)
def test_a_layer_that_is_understood_is_as_durable_as_the_disks_below(name: str, profile: str) -> None:
    host = over(TABLES[name])
    found = brought(host, profile)
    assert found["verdict"] in GREEN, found["why"]
    # The device with the blocks that are nowhere else is a disk of the mount.
    wanted = "disabled" if profile == "strict" else "enabled"
    assert {host.disk(disk).cache for disk in ("sdc", "nvme0n1")} == {wanted}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.fact(82)
def test_a_volatile_cache_below_that_nothing_flushes_is_at_risk(name: str) -> None:
    """The control: the kernel cache mode of the caching device is write through."""
    host = over(TABLES[name])
    enforce(host, look(host, "flush", mounts=[SRV]))
    vars(host.disk("nvme0n1")).update(cache_mode="write through", forced=True)
    found = look(host, "flush", mounts=[SRV])
    assert found["verdict"] == "at_risk"
    assert any("on nvme0n1 can be lost" in why for why in found["why"])


def test_a_writecache_on_memory_that_may_be_plain_is_not_green() -> None:
    host = BigHost()
    host.add_disk(FakeDisk("pmem0", "pmem", ""), "259:9")
    host.add_layer(dm("dm-9", "LVM", ("sdc1", "pmem0"), "253:9", "writecache p 8:33 259:9 4096 0"))
    host.add_mount(
        FakeMount(SRV, "ext4", "253:9", "/dev/mapper/lvm-dm-9", "dm-9"),
        f"/dev/mapper/lvm-dm-9 {SRV} ext4 noatime\n",
    )
    for profile in ("strict", "flush", "protected"):
        assert brought(host, profile)["verdict"] not in (*GREEN, "unverified")


@pytest.mark.parametrize(
    ("table", "requirement"),
    [("snapshot 8:33 259:2 N 8", "layer_lasts"), ("integrity 8:33 0 4 D 0", "tags_whole")],
)
@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
def test_a_layer_that_loses_by_itself_blocks_its_host(table: str, requirement: str, profile: str) -> None:
    words = [attested(target=f"wwn:{wwn}") for wwn in ("0x5000c500a1b2c3d4",)]
    found = brought(over(table), profile, attestations=[*words, attested(target="nvme:eui.0025385")])
    assert found["verdict"] == "blocked"
    needs = {need["name"]: need for need in found["requirements"] if need["state"] == "unmet"}
    assert set(needs) == {requirement}
    assert needs[requirement]["target"] == SRV
    # Also named where a second segment is at rest.
    assert "lvm-dm-9" in needs[requirement]["evidence"]


@pytest.mark.parametrize("table", ["snapshot 8:33 259:2 N 8", "integrity 8:33 0 4 D 0"])
def test_who_accepts_loss_is_not_told(table: str) -> None:
    found = look(over(table), "disposable", mounts=[SRV], accept_data_loss=True)
    assert found["verdict"] not in ("blocked", "at_risk")


def on(layer: FakeLayer, host: BigHost | None = None) -> BigHost:
    """Return a host with a managed file system on a device of its own."""
    host = host or BigHost()
    host.add_layer(layer)
    mount = FakeMount(SRV, "ext4", layer.number, f"/dev/{layer.name}", layer.name, atime="noatime")
    host.add_mount(mount, f"UUID=layer {SRV} ext4 noatime 0 2\n")
    host.links["/dev/disk/by-uuid/layer"] = f"/dev/{layer.name}"
    return host


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
@pytest.mark.fact(85)
def test_a_bcache_is_as_durable_as_the_disks_below(mode: str, profile: str) -> None:
    host = on(bcache("bcache0", ("sdc", "nvme0n1"), "9:9", mode))
    assert brought(host, profile)["verdict"] in GREEN
    vars(host.disk("nvme0n1")).update(cache="enabled", cache_mode="write through", forced=True)
    assert look(host, "flush", mounts=[SRV])["verdict"] == "at_risk"


@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
def test_a_file_system_in_memory_is_never_green(profile: str) -> None:
    host = BigHost()
    host.add_disk(FakeDisk("zram0", "other", ""), "9:9")
    host.links["/sys/class/block/zram0"] = "/sys/devices/virtual/block/zram0"
    host.add_mount(FakeMount(SRV, "ext4", "9:9", "/dev/zram0", "zram0"), f"UUID=zram {SRV} ext4 noatime\n")
    host.links["/dev/disk/by-uuid/zram"] = "/dev/zram0"
    found = brought(host, profile)
    assert found["verdict"] == "blocked"
    assert "disk_lasts" in {need["name"] for need in found["requirements"] if need["state"] == "unmet"}


#: The file system that holds the file, and its device.
HOLDER, NUMBER = "/srv/pgdata", "8:1"


def looped() -> BigHost:
    host = on(loop("loop0", "7:0", f"{HOLDER}/db.img"))
    host.loops["loop0"] = NUMBER
    return host


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.fact(84)
def test_a_loop_device_is_as_durable_as_what_holds_its_file(profile: str) -> None:
    host = looped()
    found = brought(host, profile)
    assert found["verdict"] in GREEN, found["why"]
    assert host.disk("sda").cache == ("disabled" if profile == "strict" else "enabled")


@pytest.mark.fact(84)
def test_the_barriers_of_what_holds_a_loop_devices_file_count_and_are_set() -> None:
    host = looped()
    host.mounts[HOLDER].barrier = "off"
    found = look(host, "flush", mounts=[SRV])
    assert found["verdict"] == "at_risk"
    assert any(f"{HOLDER} is mounted without barriers" in why for why in found["why"])
    enforce(host, found)
    assert host.mounts[HOLDER].barrier == "on"
    assert look(host, "flush", mounts=[SRV])["verdict"] in GREEN


@pytest.mark.parametrize("number", ["0:24", "8:99"])
def test_a_loop_device_over_memory_or_an_unknown_file_system_is_unknown(number: str) -> None:
    host = looped()
    host.loops["loop0"] = number
    assert brought(host, "strict")["verdict"] == "unknown"


def test_what_holds_its_file_is_not_loosened_unless_it_is_listed() -> None:
    found = look(looped(), "disposable", mounts=[SRV], accept_data_loss=True)
    assert found["verdict"] == "blocked"
    assert {need["target"] for need in found["requirements"] if need["state"] == "unmet"} == {HOLDER}


STRANGE = "vdo V4 /dev/sdc1 4096 32768 16380"
ABOUT = "dm:LVM-dm-9-uuid"


def vouching(target: str = ABOUT, **changes: str) -> dict[str, str]:
    return {**attested("layer_passes_flushes", target), **changes}


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_a_layer_that_no_rule_knows_passes_by_an_attestation(profile: str) -> None:
    host = over(STRANGE, "sdc1")
    found = brought(host, profile)
    assert found["verdict"] == "unknown"
    assert any(f"attest layer_passes_flushes for {ABOUT}" in why for why in found["why"])
    found = brought(host, profile, attestations=[vouching()])
    assert found["verdict"] == "attested"
    assert not any("no disk or unknown layer here has" in note for note in found["warnings"])
    (need,) = [need for need in found["requirements"] if need["name"] == "layer_passes_flushes"]
    assert (need["state"], need["target"], need["expires"]) == ("attested", SRV, "2026-06-30")
    assert "vdo" in need["evidence"]
    assert "A. Person" in need["evidence"]


@pytest.mark.parametrize(
    "word", [vouching("dm:LVM-dm-8-uuid"), vouching(expires="2026-01-30"), attested("host_honours_flush")]
)
def test_another_word_does_not_do(word: dict[str, str]) -> None:
    found = brought(over(STRANGE, "sdc1"), "strict", attestations=[word])
    assert found["verdict"] in ("unknown", "blocked")


def test_it_vouches_for_nothing_else() -> None:
    """Neither for the disks below, nor for their kernel cache mode, nor for another layer."""
    words = [vouching()]
    host = over(STRANGE, "sdc1")
    brought(host, "flush", attestations=words)
    vars(host.disk("sdc")).update(cache_mode="write through", forced=True)
    assert look(host, "flush", mounts=[SRV], attestations=words)["verdict"] == "at_risk"
    host = over(STRANGE, "sdc1")
    brought(host, "flush", attestations=words)
    host.layers["dm-9"].cache_mode = "write through"
    assert look(host, "flush", mounts=[SRV], attestations=words)["verdict"] == "at_risk"


@pytest.mark.parametrize("table", ["linear 253:8 0", STRANGE])
def test_it_vouches_for_no_layer_below(table: str) -> None:
    words = [vouching()]
    host = over(table, "dm-8")
    host.add_layer(dm("dm-8", "LVM", ("sdc1",), "253:8", STRANGE))
    host.links["/sys/devices/virtual/block/dm-9/slaves/dm-8"] = "/sys/devices/virtual/block/dm-8"
    assert look(host, "strict", mounts=[SRV], attestations=words)["verdict"] == "unknown"


@pytest.mark.parametrize("lost", ["below", "table", "journal"])
def test_what_is_not_seen_cannot_be_vouched_for(lost: str) -> None:
    host = over(STRANGE, "sdc1")
    if lost == "below":
        host = over(STRANGE)
        host.layers["dm-9"].below = ()
        del host.links["/sys/devices/virtual/block/dm-9/slaves/sdc1"]
        del host.links["/sys/devices/virtual/block/dm-9/slaves/nvme0n1p2"]
        # A disk of it is seen, that of its journal.
        vars(host.mounts[SRV]).update(journal_on="nvme0n1p2", beside=("nvme0n1p2",))
    elif lost == "table":
        del host.commands[("dmsetup", "table")]
    else:
        host.mounts[SRV].super_options = ("logdev=/dev/gone",)
    assert look(host, "strict", mounts=[SRV], attestations=[vouching()])["verdict"] == "unknown"


def test_it_has_to_name_one_layer() -> None:
    found = look(over(STRANGE, "sdc1"), "strict", mounts=[SRV], attestations=[vouching("host")])
    assert found["verdict"] == "blocked"
    assert "layer_passes_flushes: observed target 'host'; expected a layer's id" in found["why"][0]


def test_one_about_a_layer_that_is_understood_is_a_note() -> None:
    words = [vouching("dm:LVM-dm-0-uuid")]
    found = look(over(STRANGE, "sdc1"), "strict", mounts=[SRV], attestations=words)
    assert any(
        "no disk or unknown layer here has the id dm:LVM-dm-0-uuid" in note for note in found["warnings"]
    )


@pytest.mark.parametrize(("profile", "verdict"), [("strict", "blocked"), ("flush", "at_risk")])
@pytest.mark.fact(86)
def test_jfs_is_at_risk_over_a_cache_and_never_green(profile: str, verdict: str) -> None:
    """A reset turns on the cache that strict has turned off, and nothing flushes it."""
    host = BigHost()
    host.add_mount(
        FakeMount(SRV, "jfs", "8:33", "/dev/sdc1", "sdc", atime="noatime"),
        f"UUID=jfs {SRV} jfs noatime 0 2\n",
    )
    host.links["/dev/disk/by-uuid/jfs"] = "/dev/sdc1"
    found = brought(host, profile)
    assert found["verdict"] == verdict
    assert any("move the data to ext4 or XFS: JFS sends no flushes" in why for why in found["why"])
    ids = {each["id"] for each in found["reasons"] if each["verdict"] == "at_risk"}
    assert ids == ({"risk.barrier_off.jfs"} if profile == "flush" else set())


def test_who_accepts_loss_may_have_jfs() -> None:
    host = BigHost()
    host.add_mount(
        FakeMount(SRV, "jfs", "8:33", "/dev/sdc1", "sdc", atime="noatime"),
        f"UUID=jfs {SRV} jfs noatime 0 2\n",
    )
    host.links["/dev/disk/by-uuid/jfs"] = "/dev/sdc1"
    enforce(host, look(host, "disposable", mounts=[SRV], accept_data_loss=True))
    assert look(host, "disposable", mounts=[SRV], accept_data_loss=True)["verdict"] == "accepted_loss"
