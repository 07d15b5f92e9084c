# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches below a layer that drops flushes: none comes on before the layer is made again."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules, flush
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.write_cache import Target, apply, plan

from ..fakes.runs import NOW, attested, enforce, look
from ..fakes.small_host import BigHost, FakeDisk, FakeMount, SmallHost, dm

PG = "/srv/pgdata"
SDA = "serial:QEMU_HARDDISK_SATA0001"


def over_a_deaf_layer(name: str, **more: str) -> tuple[SmallHost, FakeDisk]:
    """Return a host with a volume that was made when the cache of its disk was off, and that disk."""
    host = SmallHost()
    number = {"sda": "8:0", "vdb": "254:16", "sdg": "8:96"}[name]
    if name == "sdg":
        host.add_disk(FakeDisk("sdg", "scsi", "35sdg", wwn="0x5000c500a1b2c3e0"), number)
    disk = host.disk(name)
    vars(disk).update(cache="disabled", cache_mode="write through", power_on="disabled", **more)
    for mount in [mount for mount in host.mounts.values() if mount.disk == name]:
        del host.mounts[mount.target]
    host.add_layer(dm("dm-5", "LVM", (name,), "253:5", f"linear {number} 0"))
    host.layers["dm-5"].cache_mode = "write through"
    volume = FakeMount("/srv/lv", "ext4", "253:5", "/dev/mapper/lvm-dm-5", "dm-5")
    host.add_mount(volume, "/dev/mapper/lvm-dm-5 /srv/lv ext4 noatime 0 2\n")
    return host, disk


def unflushed(host: SmallHost) -> set[str]:
    """Return where commits on the volume are in a cache now that nothing flushes."""
    return host._exposed("now", host.mounts["/srv/lv"])


DEAF = pytest.mark.parametrize("name", ["sda", "sdg", "vdb"])


@DEAF
def test_a_cache_below_a_deaf_layer_is_not_turned_on_before_the_boot(name: str) -> None:
    """A virtio cache came on at once: its cache mode and its cache are one switch."""
    host, disk = over_a_deaf_layer(name)
    target = [Target(disk.id, "enabled")]
    work = plan(host, target)
    apply(host, work, target)
    assert (disk.cache, unflushed(host)) == ("disabled", set())
    assert work.states == {disk.id: "keep"}
    assert cache_rules.read(host)[disk.id][1] == "enabled"
    assert plan(host, target).changes == ()
    host.reboot()
    assert (disk.cache, unflushed(host)) == ("enabled", set())


@DEAF
def test_no_event_turns_a_cache_on_below_a_deaf_layer(name: str) -> None:
    """The rule that was to act at the next boot acted at any change event."""
    host, disk = over_a_deaf_layer(name)
    target = [Target(disk.id, "enabled")]
    apply(host, plan(host, target), target)
    host.event("change", name)
    assert (disk.cache, unflushed(host)) == ("disabled", set())


@DEAF
def test_an_initramfs_that_makes_the_layer_first_does_not_lose_commits(name: str) -> None:
    host, disk = over_a_deaf_layer(name)
    host.initramfs = ("dm-5",)
    target = [Target(disk.id, "enabled")]
    apply(host, plan(host, target), target)
    host.reboot()
    assert (disk.cache, unflushed(host)) == ("disabled", set())


@DEAF
def test_where_nobody_can_look_above_no_rule_turns_a_cache_on(name: str) -> None:
    host, disk = over_a_deaf_layer(name)
    host.files[cache_rules.RULES_PATH] = cache_rules.render({disk.id: (disk.transport, "enabled")})
    host.layers.clear()

    def missing(argv: list[str]) -> str:
        raise Unobservable(f"{argv[0]}: No such file or directory")

    host._lsblk, there = missing, host._lsblk
    host.event("change", name)
    assert disk.cache == "disabled"
    host._lsblk = there
    host.event("change", name)
    assert disk.cache == "enabled"


@pytest.mark.parametrize("managed", ["/", "/srv/lv"])
def test_a_deaf_layer_below_the_root_is_not_said_to_wait_for_a_boot(managed: str) -> None:
    """The initramfs makes it before any rule of ours acts, so it was pending for ever."""
    host, _disk = over_a_deaf_layer("sda")
    vars(host.mounts["/"]).update(device="253:5", source="/dev/mapper/lvm-dm-5", disk="dm-5")
    host.mounts["/"].journal = False
    if managed == "/srv/lv":
        # Another volume of the same group, over the same dm-crypt, say.
        host.add_layer(dm("dm-6", "LVM", ("dm-5",), "253:6", "linear 253:5 0"))
        vars(host.mounts["/srv/lv"]).update(device="253:6", source="/dev/mapper/lvm-dm-6", disk="dm-6")
    found = look(host, "strict", mounts=[managed])
    rows = {row["target"]: row for row in found["settings"] if row["setting"] == "layer_cache_mode"}
    row = rows["lvm-dm-5"]
    assert (row["verdict"], row["persisted"]) == ("drift_running", "write through")
    assert "initramfs" in row["remedy"]
    assert not [entry for entry in found["pending"] if entry["target"] == "lvm-dm-5"]


def test_a_deaf_layer_elsewhere_waits_for_the_boot() -> None:
    host, _disk = over_a_deaf_layer("sda")
    (row,) = [
        row
        for row in look(host, "strict", mounts=["/srv/lv"])["settings"]
        if row["setting"] == "layer_cache_mode"
    ]
    assert (row["verdict"], row["remedy"][:6]) == ("pending", "reboot")


def test_a_flush_owed_by_a_virtio_cache_that_is_off_turns_no_cache_on_below_a_deaf_layer() -> None:
    """Its cache mode and its cache are one switch: to flush it would be to turn it on. So the flush stays pending."""
    host, disk = over_a_deaf_layer("vdb")
    note = f"{flush.OWED}/vdb"
    host.files[note] = ""
    target = [Target(disk.id, "disabled")]
    with pytest.raises(ChangeFailed, match=r"vdb: a flush is pending.*observed dm-5.*Fix: reboot"):
        apply(host, plan(host, target), target)
    assert ("attribute", "/sys/block/vdb/cache_type", "write back") not in host.mutations
    assert (disk.cache, host.exists(note)) == ("disabled", True)


def test_no_write_carries_fua_through_a_layer_that_drops_flushes() -> None:
    host = BigHost()

    def fua_path() -> str:
        return next(m for m in collect(host, NOW)["mounts"] if m["target"] == "/srv/faircom")["fua_path"]

    assert fua_path() == "yes"
    host.layers["dm-0"].cache_mode = "write through"
    assert fua_path() == "no"


def test_a_deaf_layer_that_is_not_mounted_is_seen_by_facts_and_layer_alike() -> None:
    """Swap on a volume: the layer never turned the cache on, and the report asked for it for ever."""
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through", power_on="disabled")
    host.add_partition("sda", "sda2", "8:2")
    host.add_layer(dm("dm-7", "LVM", ("sda2",), "253:7", "linear 8:2 0"))
    host.layers["dm-7"].cache_mode = "write through"
    given = {"mounts": [PG], "attestations": [attested("host_honours_flush")]}
    enforce(host, look(host, "flush", **given))
    found = look(host, "flush", **given)
    assert next(d for d in collect(host, NOW)["disks"] if d["name"] == "sda")["flush_blocked_by"] == ["dm-7"]
    assert [(row["target"], row["setting"]) for row in found["pending"]] == [(SDA, "write_cache")]
    assert not any(found["plan"].values())
    host.reboot()
    assert look(host, "flush", **given)["verdict"] == "durable"
