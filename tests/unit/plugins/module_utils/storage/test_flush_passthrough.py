# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers that pass no flush on: found, named, and never relied on."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush_passthrough import (
    FlushLayer,
    early_ack,
    layers,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.write_cache import Target, apply, plan

from ..fakes.runs import NOW, attested, enforce, look, settled
from ..fakes.small_host import BigHost, FakeDisk, FakeMount, dm, md

FAIRCOM = "/srv/faircom"


def mount(host: BigHost, target: str = FAIRCOM) -> dict[str, Any]:
    return next(mount for mount in collect(host, NOW)["mounts"] if mount["target"] == target)


def deaf() -> BigHost:
    """Return a host whose volume was made when nothing below it cached."""
    host = BigHost()
    host.layers["dm-0"].cache_mode = "write through"
    return host


def test_a_layer_whose_cache_mode_is_write_through_is_found_with_the_disks_below() -> None:
    assert layers(mount(BigHost())) == []
    assert layers(mount(deaf())) == [
        FlushLayer("dm-0", "lvm-dm-0", "write through", ("sdc", "sdd"), ("md0", "sdc1", "sdd1"))
    ]


def test_one_of_which_it_is_not_known_counts() -> None:
    host = BigHost()
    del host.files["/sys/devices/virtual/block/md0/queue/write_cache"]
    assert layers(mount(host)) == [FlushLayer("md0", "md0", "unknown", ("sdc", "sdd"), ("sdc1", "sdd1"))]


def test_disks_and_partitions_are_no_layers() -> None:
    host = BigHost()
    host.disk("sda").cache_mode = "write through"
    assert layers(mount(host, "/srv/pgdata")) == []


def test_a_caching_disk_below_is_at_risk_and_a_reboot_ends_it() -> None:
    """Commits since then were acknowledged and never flushed: settings above and below look right."""
    host = deaf()
    found = look(host, "flush", mounts=[FAIRCOM])
    assert found["verdict"] == "at_risk"
    lost = "commits since the last flush on sdc can be lost: lvm-dm-0 drops flushes; reboot"
    assert any(line.startswith(lost) for line in found["why"])
    (row,) = [row for row in found["settings"] if row["setting"] == "layer_cache_mode"]
    assert (row["verdict"], row["phase"]) == ("pending", None)
    enforce(host, found)
    host.reboot()
    assert look(host, "flush", mounts=[FAIRCOM])["verdict"] not in ("at_risk", "pending")


def test_a_cache_is_not_turned_on_below_one() -> None:
    host = settled_strict()
    host.layers["dm-0"].cache_mode = "write through"
    target = Target(host.disk("sdc").id, "enabled")
    work = plan(host, [target])
    assert {(change.setting, change.when) for change in work.changes} == {("write_cache", "persisted")}
    apply(host, work, [target])
    assert host.disk("sdc").cache == "disabled"
    # At the next boot the rule turns it on before the layer is made.
    host.reboot()
    assert (host.disk("sdc").cache, host.layers["dm-0"].cache_mode) == ("enabled", "write back")


def settled_strict() -> BigHost:
    host = BigHost()
    enforce(host, look(host, "strict", mounts=[FAIRCOM]))
    host.reboot()
    host.mutations.clear()
    return host


def test_from_strict_to_flush_it_is_pending_until_the_boot_and_then_done() -> None:
    host = settled_strict()
    host.layers["dm-0"].cache_mode = "write through"
    given = {"mounts": [FAIRCOM], "attestations": [attested("host_honours_flush")]}
    enforce(host, look(host, "flush", **given))
    found = look(host, "flush", **given)
    assert (found["verdict"], found["changes"]) == ("pending", [])
    assert {row["needs"] for row in found["pending"]} == {"reboot"}
    host.reboot()
    assert look(host, "flush", **given)["verdict"] not in ("at_risk", "drifted", "pending")


def test_a_host_that_was_settled_and_rebooted_has_none() -> None:
    assert settled("strict").layers == {}
    assert layers(mount(settled_strict())) == []


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_without_a_cache_below_it_is_of_no_concern(profile: str) -> None:
    host = BigHost()
    host.disk("nvme0n1").cache = "none"
    host.layers["dm-1"].cache_mode = "write through"
    found = look(host, profile, mounts=["/srv/firebird"])
    assert [row for row in found["settings"] if row["setting"] == "layer_cache_mode"] == []
    assert found["verdict"] != "at_risk"


def rows(found: dict[str, Any], setting: str = "layer_cache_mode") -> dict[str, tuple[str, str, str]]:
    """Return {target: (running, persisted, verdict)} of a setting."""
    return {
        row["target"]: (row["running"], row["persisted"], row["verdict"])
        for row in found["settings"]
        if row["setting"] == setting
    }


DEAF = ("write through", "write through", "drift_running")


def vmware() -> BigHost:
    """A disk that tells nothing of its cache, and has no name without disk.EnableUUID."""
    host = BigHost()
    host.add_disk(
        FakeDisk("sdg", "scsi", "", model="Virtual disk", vendor="VMware", driver="vmw_pvscsi"), "8:96"
    )
    vars(host.disk("sdg")).update(caching_page=False)
    return host


def raid() -> BigHost:
    """A RAID volume whose disks' caches the controller hides."""
    host = BigHost()
    port = "0000:03:00.0/host7/target7:2:0/7:2:0:0/block"
    host.add_disk(FakeDisk("sdg", "scsi", "V1", wwn="0xv1", driver="megaraid_sas", port=port), "8:96")
    return host


def array() -> BigHost:
    """A LUN that says that it caches nothing, found on two paths."""
    host = BigHost()
    for name, number in (("sdg", "8:96"), ("sdh", "8:112")):
        disk = FakeDisk(name, "scsi", "L1", wwn="0xl1", vendor="PURE", model="FlashArray", multipath="1")
        host.add_disk(disk, number)
        vars(disk).update(power_on="disabled", cache="disabled")
    host.add_layer(
        dm("dm-8", "mpath", ("sdg", "sdh"), "253:8", "multipath 0 0 1 1 round-robin 0 2 1 8:96 1 8:112 1")
    )
    return host


#: What nothing on this host can switch, and the id by which somebody vouches for it.
UNSWITCHED = {
    "VMware": (vmware, "sdg", None),
    "RAID": (raid, "sdg", "wwn:0xv1"),
    "LUN": (array, "dm-8", "wwn:0xl1"),
}


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("name", UNSWITCHED)
def test_over_a_disk_that_no_rule_can_pin_it_does_not_wait_for_a_boot(name: str, profile: str) -> None:
    """The kernel trusts at each boot what such a disk says, so that a reboot makes the same layer again."""
    make, under, known = UNSWITCHED[name]
    host = make()
    vars(host.disk("sdg")).update(cache_mode="write through", power_on="disabled", cache="disabled")
    host.add_layer(dm("dm-9", "LVM", (under,), "253:9", "linear 8:96 0"))
    for layer in ("dm-8", "dm-9"):
        if layer in host.layers:
            host.layers[layer].cache_mode = "write through"
    host.add_mount(FakeMount("/srv/lv", "ext4", "253:9", "/dev/mapper/lvm-dm-9", "dm-9"))
    for disk in host.disks.values():
        disk.cache_mode = "write through" if disk.power_on == "disabled" else disk.cache_mode
    for _boot in range(2):
        found = look(host, profile, mounts=["/srv/lv"])
        assert rows(found)["lvm-dm-9"] == DEAF
        assert not [entry for entry in found["pending"] if entry["needs"] == "reboot"]
        (row,) = [row for row in found["settings"] if row["target"] == "lvm-dm-9"]
        assert "attest power_loss_protection" in row["remedy"]
        enforce(host, found)
        host.reboot()
    if known:
        vouched = look(host, profile, mounts=["/srv/lv"], attestations=[attested(target=known)])
        assert rows(vouched) == {}


@pytest.mark.parametrize("name", ["early", "late"])
def test_over_a_layer_of_the_initramfs_it_does_not_wait_for_a_boot(name: str) -> None:
    """It takes its cache mode from that layer, whatever the disks below are pinned to."""
    host = with_root("sata")
    host.add_layer(dm("dm-6", "LVM", ("dm-5",), "253:6", "linear 253:5 0"))
    host.add_mount(FakeMount("/srv/lv", "ext4", "253:6", "/dev/mapper/lvm-dm-6", "dm-6"))
    host.layers["dm-6"].cache_mode = "write through"
    host.layers["dm-5"].cache_mode = "write through" if name == "early" else "write back"
    found = rows(look(host, "strict", mounts=["/srv/lv"]))["lvm-dm-6"]
    assert found == (DEAF if name == "early" else ("write through", "write back", "pending"))


def with_root(transport: str, **changes: Any) -> BigHost:
    """Return a host whose root lies on LVM over a disk of its own; the initramfs makes it."""
    host = BigHost()
    host.add_disk(FakeDisk("sdg", transport, "ROOT", rotational="1"), "8:96")
    vars(host.disk("sdg")).update(changes)
    host.add_layer(dm("dm-5", "LVM", ("sdg",), "253:5", "linear 8:96 0"))
    host.initramfs = ("dm-5",)
    del host.mounts["/"]
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=root / ext4 errors=remount-ro 0 1\n", "")
    line = "UUID=lvroot / ext4 noatime 0 1\n"
    host.add_mount(FakeMount("/", "ext4", "253:5", "/dev/mapper/lvm-dm-5", "dm-5", atime="noatime"), line)
    host.links["/dev/disk/by-uuid/lvroot"] = "/dev/dm-5"
    return host


@pytest.mark.parametrize(("table", "wanted"), [("thin 8:96 1", {}), ("linear 8:96 0", {"lvm-dm-5"})])
def test_a_layer_that_takes_each_flush_itself_does_not_go_by_its_disks(table: str, wanted: set[str]) -> None:
    """Below the root, over a disk that has saved that its cache is off."""
    host = with_root("scsi", saves=True, power_on="disabled")
    host.layers["dm-5"].tables = (table,)
    assert set(rows(look(host, "flush", mounts=["/"]))) == set(wanted)


@pytest.mark.fact(67)
@pytest.mark.parametrize("saves", [True, False])
def test_below_the_root_a_disk_that_saves_its_page_is_as_durable_after_the_boot(saves: bool) -> None:
    """Saved as off, no reset turns it on: a layer that drops flushes costs nothing then."""
    host = with_root("scsi", saves=saves)
    enforce(host, look(host, "strict", mounts=["/"]))
    before = look(host, "strict", mounts=["/"])
    host.reboot()
    assert host.layers["dm-5"].cache_mode == ("write through" if saves else "write back")
    after = look(host, "strict", mounts=["/"])
    assert (before["verdict"], after["verdict"]) == ("durable", "durable"), after["why"]
    assert rows(after) == {}
    # Nor is it, once the disk is another that does not save.
    if saves:
        vars(host.disk("sdg")).update(saves=False, power_on="enabled")
        assert rows(look(host, "strict", mounts=["/"]))["lvm-dm-5"] == DEAF


@pytest.mark.fact(67)
def test_below_the_root_a_disk_that_does_not_tell_how_it_powers_on_is_unknown() -> None:
    host = with_root("scsi", saves=True)
    host.commands[("sdparm", "--quiet", "--readonly", "--get", "WCE", "-H", "/dev/sdg")] = "0x01\n"
    enforce(host, look(host, "strict", mounts=["/"]))
    found = look(host, "strict", mounts=["/"])
    assert (found["verdict"], rows(found)["lvm-dm-5"]) == ("unknown", ("write back", "unknown", "unknown"))
    assert 'how the cache of sdg powers on could not be read: "sdparm named neither' in "\n".join(
        found["why"]
    )
    host.reboot()
    assert rows(look(host, "strict", mounts=["/"]))["lvm-dm-5"] == DEAF


@pytest.mark.fact(67)
def test_below_the_root_a_cache_that_is_on_and_saved_as_off_is_drift() -> None:
    host = with_root("scsi", saves=True, power_on="disabled")
    enforce(host, look(host, "flush", mounts=["/"]))
    found = look(host, "flush", mounts=["/"])
    assert rows(found)["lvm-dm-5"] == ("write back", "write through", "drift_persisted")
    assert "the initramfs makes lvm-dm-5 over sdg, whose cache powers on as off" in "\n".join(found["why"])
    assert found["pending"] == []


@pytest.mark.fact(67)
def test_from_strict_to_flush_below_the_root_no_reboot_is_waited_for() -> None:
    host = with_root("scsi", saves=True)
    enforce(host, look(host, "strict", mounts=["/"]))
    host.reboot()
    for _boot in range(2):
        enforce(host, look(host, "flush", mounts=["/"]))
        found = look(host, "flush", mounts=["/"])
        assert (found["verdict"], found["changes"], found["pending"]) == ("drifted", [], [])
        (row,) = [row for row in found["settings"] if row["setting"] == "write_cache"]
        assert row["remedy"] == (
            "with the databases down, load the tables of dm-5 again (LUKS: cryptsetup refresh, others: dmsetup reload and"
            " dmsetup resume), then run harden_db"
        )
        host.reboot()
    # The remedy.
    host.layers["dm-5"].cache_mode = "write back"
    enforce(host, look(host, "flush", mounts=["/"]))
    assert host.disk("sdg").cache == "enabled"
    host.reboot()
    assert look(host, "flush", mounts=["/"])["verdict"] == "durable"


@pytest.mark.parametrize("transport", ["sata", "scsi"])
def test_from_strict_to_flush_below_the_root_a_disk_that_powers_on_with_its_cache_needs_the_boot(
    transport: str,
) -> None:
    host = with_root(transport, cache="disabled")
    host.layers["dm-5"].cache_mode = "write through"
    enforce(host, look(host, "flush", mounts=["/"]))
    (row,) = [row for row in look(host, "flush", mounts=["/"])["settings"] if row["setting"] == "write_cache"]
    assert row["verdict"] == "pending"
    host.reboot()
    assert look(host, "flush", mounts=["/"])["verdict"] == "durable"


def test_what_usr_lies_on_is_made_by_the_initramfs_too() -> None:
    host = with_root("sata", cache="disabled")
    host.layers["dm-5"].cache_mode = "write through"
    host.mounts["/"].target = "/usr"
    assert rows(look(host, "strict", mounts=["/usr"]))["lvm-dm-5"] == DEAF
    host.mounts["/"].target = "/srv/usr"
    assert rows(look(host, "strict", mounts=["/srv/usr"]))["lvm-dm-5"][2] == "pending"


@pytest.mark.parametrize(
    ("kernel", "tool", "after_the_boot"),
    [
        # No run switches what cannot be read, or writes its rule: the next boot is as this one.
        ("write through", False, "write through"),
        ("write back", False, "write back"),
        ("write through", True, "write back"),
    ],
)
def test_a_layer_is_mended_by_a_boot_where_the_kernel_flushes_the_disk_then(
    kernel: str, tool: bool, after_the_boot: str
) -> None:
    host = deaf()
    for name in ("sdc", "sdd"):
        vars(host.disk(name)).update(cache_mode=kernel, caching_page=tool)
    found = rows(look(host, "strict", mounts=[FAIRCOM]))["lvm-dm-0"]
    assert found[:2] == ("write through", after_the_boot)


@pytest.mark.parametrize(
    ("cache", "profile", "concerned"),
    [("disabled", "strict", False), ("disabled", "flush", True), ("enabled", "strict", True)],
)
def test_over_a_virtio_disk_it_matters_while_that_caches_or_is_to(
    cache: str, profile: str, concerned: bool
) -> None:
    """No reset of its own turns it on."""
    host = BigHost()
    vars(host.disk("vdb")).update(
        cache=cache, cache_mode="write back" if cache == "enabled" else "write through"
    )
    host.add_layer(dm("dm-9", "LVM", ("vdb",), "253:9", "linear 254:16 0"))
    host.layers["dm-9"].cache_mode = "write through"
    host.add_mount(FakeMount("/srv/lv", "ext4", "253:9", "/dev/mapper/lvm-dm-9", "dm-9"))
    found = rows(look(host, profile, mounts=["/srv/lv"]))
    assert found == ({"lvm-dm-9": ("write through", "write back", "pending")} if concerned else {})


def test_what_waits_for_a_boot_says_whose_change_it_follows() -> None:
    host = deaf()
    found = look(host, "flush", mounts=[FAIRCOM])
    assert {entry["target"]: entry["after"] for entry in found["pending"]} == {
        "lvm-dm-0": [
            f"{host.disk(name).id} {setting}"
            for name in ("sdc", "sdd")
            for setting in ("write_cache", "kernel_cache_mode")
        ]
    }


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"consistency_policy": "ppl"}, True),
        ({"consistency_policy": "ppl", "degraded": "1"}, True),
        ({"consistency_policy": "ppl", "sync_action": "recover", "degraded": "1"}, True),
        ({"consistency_policy": "resync"}, False),
        ({"consistency_policy": "resync", "sync_action": "ppl-like"}, False),
    ],
)
def test_an_array_with_a_partial_parity_log_is_hasty_whatever_else_it_is_doing(
    state: dict[str, str], found: bool
) -> None:
    host = BigHost()
    host.add_layer(md("md9", "raid5", ("sda1",), "9:9", **state))
    host.add_mount(FakeMount("/srv/x", "ext4", "9:9", "/dev/md9", "md9"))
    assert [layer.name for layer in early_ack(mount(host, "/srv/x"))] == (["md9"] if found else [])


@pytest.mark.parametrize(
    ("state", "early"),
    [
        ("ppl", True),
        ("ppl, degraded by 1", True),
        ("resync, ppl", True),
        ("applied", False),
        ("bitmap", False),
    ],
)
def test_a_partial_parity_log_counts_whatever_else_the_array_is_doing(state: str, early: bool) -> None:
    found = mount(BigHost())
    for layer in found["stack"]:
        layer["state"] = state if layer["type"] == "md" else ""
    assert [layer.name for layer in early_ack(found)] == (["md0"] if early else [])
