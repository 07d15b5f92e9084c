# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Once wrong, found by review: each of these guards a mistake that was made."""

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import originals
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    ext4,
    flush,
    fstab,
    scheduler_rules,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import io_scheduler as lis
from ansible_collections.durable.dbhost.plugins.module_utils.storage import mount_options as lmo
from ansible_collections.durable.dbhost.plugins.module_utils.storage import write_cache as lwc
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import (
    CONTROLS,
    has_volatile_cache,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

from .runs import NOW, attested, enforce, inputs, look, settled, shipped
from .small_host import BigHost, FakeDisk, FakeMount, SmallHost, dm

SDA, VDB = "serial:QEMU_HARDDISK_SATA0001", "serial:VIRT0001"
PG = "/srv/pgdata"


@pytest.mark.fact(5)
def test_data_mode_of_root_is_never_written_to_fstab():
    """T (lab, Debian 12): superblock data=writeback + `data=ordered` on fstab's root line:
    systemd-remount-fs fails, the host comes up with a read-only root."""
    host = SmallHost()
    vars(host.mounts["/"]).update(sb_options=("data=writeback",), data="writeback")
    found = look(host, "strict", mounts=["/"])
    with contextlib.suppress(ChangeFailed):
        enforce(host, found)
    assert not [w for w in host.boot_options("/") if w.startswith("data=")]


def test_a_read_only_bind_mount_does_not_make_the_file_system_read_only():
    """T (lab): `mount -o remount,ro,... SOURCE BIND` turns the superblock read-only for all."""
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    bind = "29 30 8:1 / /mnt/bind ro,relatime - ext4 /dev/sda1 rw,nobarrier\n"
    rest = host._mountinfo
    host.files["/proc/self/mountinfo"] = lambda: bind + rest()
    real = host.on_change
    host.on_change = lambda argv: None if argv[0] == "mount" else real(argv)
    target = [lmo.Target("/mnt/bind", {"barrier": "on"}, False)]
    with contextlib.suppress(ChangeFailed):
        lmo.apply(host, lmo.plan(host, target), target)
    for m in host.mutations:
        if m[1] == "mount":
            assert "ro" not in m[3].split(","), m


def test_a_database_on_tmpfs_is_not_said_to_lie_on_its_parent():
    host = SmallHost()
    host.files["/proc/self/mountinfo"] = (
        host.read("/proc/self/mountinfo") + "98 31 0:50 / /srv/pgdata/ram rw - tmpfs tmpfs rw\n"
    )
    found = look(
        host, "strict", mounts=None, databases=[{"engine": "postgresql", "paths": ["/srv/pgdata/ram/db"]}]
    )
    assert found["verdict"] in ("blocked", "unknown", "at_risk"), found["verdict"]


def test_release_does_not_put_back_what_the_kernel_refuses():
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("xfs defaults", "xfs nobarrier")
    target = [lmo.Target("/srv/mssql", {"barrier": "on"})]
    lmo.apply(host, lmo.plan(host, target), target)
    assert "nobarrier" not in lmo.plan_release(host).fstab


def test_without_the_superblock_barriers_still_come_on():
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    del host.commands[(*ext4.SHOW, "/dev/block/8:1")]
    found = look(host, "strict", mounts=[PG])
    # Its journal may lie on a disk that was not flushed: so it is not called done.
    with pytest.raises(ChangeFailed, match=r"on sda only: .*whether /srv/pgdata has its journal elsewhere"):
        enforce(host, found)
    assert host.mounts[PG].barrier == "on"
    assert host.disk("sda").flushes > 100


def test_a_disk_that_cannot_be_asked_does_not_keep_the_others_exposed():
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: no answer within 10 s")
    host.disk("sda").belief = "write through"
    with contextlib.suppress(ChangeFailed):
        enforce(host, look(host, "strict"))
    assert [host.disk(n).cache for n in ("sdb", "vdb")] == ["disabled", "disabled"]


def test_keep_does_not_switch_a_virtio_cache_on():
    host = SmallHost()
    vars(host.disk("vdb")).update(cache="disabled", belief="write through")
    host.files[f"{flush.OWED}/vdb"] = ""
    target = [lwc.Target(VDB, "keep")]
    with contextlib.suppress(ChangeFailed):
        lwc.apply(host, lwc.plan(host, target), target)
    assert host.disk("vdb").cache == "disabled"


def test_release_takes_away_a_rule_file_whose_rules_were_edited():
    host = SmallHost()
    text = cache_rules.render({SDA: ("sata", "disabled")})
    host.files[cache_rules.RULES_PATH] = text.replace("hdparm -q", "hdparm  -q")
    assert lwc.plan_release(host).changes != ()


def test_originals_of_a_removed_line_do_not_come_back_into_a_new_one():
    host = SmallHost()
    target = [lmo.Target(PG, {"atime": "noatime"})]
    lmo.apply(host, lmo.plan(host, target), target)
    lines = host.read("/etc/fstab").split("\n")
    lines = [line for line in lines if PG not in line and not line.startswith(fstab.MARK)]
    host.files["/etc/fstab"] = "\n".join(lines)
    work = lmo.plan_release(host)
    if work.changes:
        lmo.apply_release(host, work)
    # The module applies a release only when it changes something: what is kept stays for ever.
    assert originals.load(host) == {}


def test_a_missing_udevadm_is_the_reason_that_is_shown():
    host = SmallHost()
    del host.commands[("udevadm", "info", "--export-db")]
    assert "udevadm" in Disks(host).collect("sda")["evidence"]["id"]["reason"]
    rows = look(host, "strict", mounts=[PG])["settings"]
    assert "udevadm" in next(row for row in rows if row["setting"] == "write_cache")["remedy"]


def test_an_unreadable_rule_file_is_unknown():
    host = SmallHost()
    host.files[cache_rules.RULES_PATH] = Unobservable("I/O error")
    assert Disks(host).collect("sda")["write_cache"]["persisted"] == "unknown"


def test_a_virtio_cache_is_switched_on_under_a_belief_that_is_high_already():
    host = SmallHost()
    vars(host.disk("vdb")).update(cache="disabled", belief="write back")
    target = [lwc.Target(VDB, "enabled")]
    lwc.apply(host, lwc.plan(host, target), target)


def test_an_fstab_line_of_another_device_says_nothing_of_this_one():
    host = SmallHost()
    host.files["/etc/fstab"] = "/dev/sdz9 /srv/pgdata xfs noatime 0 2\n"
    facts = next(m for m in collect(host, NOW)["mounts"] if m["target"] == PG)
    assert facts["persisted"]["barrier"] != "on"


def test_garbage_in_the_options_file_is_no_missing_journal():
    host = SmallHost()
    host.files["/proc/fs/ext4/sda1/options"] = "garbage\n"
    facts = next(m for m in collect(host, NOW)["mounts"] if m["target"] == PG)
    assert facts["data_mode"] == "unknown"


def test_bare_mount_over_an_unknown_stack_is_at_risk():
    """A bare mount on a disk whose cache is unknown is at_risk; on a stack that is unknown it is only `unknown`."""
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    host.links["/sys/dev/block/8:1"] = "/sys/devices/virtual/block/dm-0"
    host.files["/proc/fs/ext4/dm-0/options"] = host.files["/proc/fs/ext4/sda1/options"]
    assert look(host, "strict", mounts=[PG])["verdict"] == "at_risk"


def test_one_mount_that_fails_does_not_leave_the_others_unpersisted():
    host = SmallHost()
    for name in (PG, "/srv/maria"):
        host.mounts[name].barrier = "off"
    text = host.read("/etc/fstab").replace("defaults,nofail", "nobarrier")
    host.files["/etc/fstab"] = text.replace("defaults\t0", "nobarrier\t0")
    host.disk("sda").counts = False
    with contextlib.suppress(ChangeFailed):
        enforce(host, look(host, "strict", mounts=[PG, "/srv/maria"]))
    assert "nobarrier" not in host.boot_options("/srv/maria")


@pytest.mark.fact(46)
def test_a_database_behind_a_link_lies_where_the_link_leads():
    host = SmallHost()
    host.links["/var/lib/data"] = "/srv/pgdata/data"
    host.files["/srv/pgdata/data"] = ""
    databases = [{"engine": "postgresql", "paths": ["/var/lib/data"]}]
    found = look(host, "strict", mounts=None, databases=databases)
    assert {row["target"] for row in found["settings"] if row["layer"] == "mount_options"} == {PG}


def test_a_database_that_is_not_there_is_not_attributed_to_what_would_hold_it():
    given = inputs("strict", mounts=None, databases=[{"engine": "postgresql", "paths": ["/srv/pgdta"]}])
    found = assess(given, collect(SmallHost(), NOW, ["/srv/pgdta"]), NOW)
    assert found["verdict"] == "blocked"
    assert "/srv/pgdta, which is not there" in found["why"][0]


def test_two_lines_for_one_mount_point_are_unknown_and_left_alone():
    host = SmallHost()
    text = host.read("/etc/fstab") + "UUID=pg /srv/pgdata ext4 nobarrier 0 2\n"
    host.files["/etc/fstab"] = text
    found = look(host, "strict", mounts=[PG])
    assert found["verdict"] == "unknown"
    assert any("lines 3 and 6 both mount /srv/pgdata" in why for why in found["why"])
    enforce(host, found)
    assert host.read("/etc/fstab") == text


@pytest.mark.parametrize("name", ["srv-pgdata.mount", "srv-pgdata.mount.d/override.conf"])
def test_a_unit_that_sets_options_overrides_fstab(name):
    host = SmallHost()
    device = "" if ".d/" in name else "What=/dev/sda1\n"
    host.files[f"/etc/systemd/system/{name}"] = f"[Mount]\n{device}Options=nobarrier\n"
    host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "../srv-pgdata.mount"
    found = look(host, "strict", mounts=[PG])
    (row,) = [row for row in found["settings"] if row["setting"] == "barrier"]
    assert (row["persisted"], row["verdict"]) == ("off", "drift_persisted")
    enforce(host, found)
    host.reboot()
    assert host.mounts[PG].barrier == "on"


def test_a_drop_in_about_something_else_does_not():
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount.d/x.conf"] = "[Unit]\nAfter=network.target\n"
    assert look(host, "strict", mounts=[PG])["verdict"] == "drifted"


def test_a_cache_is_not_turned_on_under_a_neighbour_without_barriers():
    host = SmallHost()
    other = FakeMount("/srv/other", "ext4", "8:18", "/dev/sdb2", "sdb", barrier="off")
    host.add_mount(other)
    host.disk("sdb").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/mssql"])
    assert found["verdict"] == "blocked"
    assert any("/srv/other has no barriers" in why for why in found["why"])
    assert not found["plan"]["loosen"]


@pytest.mark.fact(23)
def test_a_disk_behind_a_usb_bridge_is_not_a_sata_disk():
    host = SmallHost()
    host.links["/sys/block/sda"] = "/sys/devices/pci0000:00/usb1/1-1/host6/target6:0:0/6:0:0:0/block/sda"
    facts = Disks(host).collect("sda")
    assert (facts["transport"], facts["kind"], facts["write_cache"]["device"]) == (
        "usb",
        "unknown",
        "unknown",
    )


def test_a_virtio_switch_that_is_read_only_is_left_to_the_hypervisor():
    host = SmallHost()
    host.modes[host.resolve("/sys/block/vdb/cache_type")] = 0o444
    found = look(host, "strict", mounts=["/srv/maria"])
    assert not found["plan"]["tighten"].get("write_cache")
    (row,) = [row for row in found["settings"] if row["setting"] == "write_cache"]
    assert "hypervisor" in row["remedy"]


def test_barriers_over_a_disk_that_lies_are_not_called_done():
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    host.disk("sda").belief = "write through"
    target = [lmo.Target(PG, {"barrier": "on"})]
    with pytest.raises(ChangeFailed, match="sends it no flush, while its cache is enabled"):
        lmo.apply(host, lmo.plan(host, target), target)


def test_a_stricter_journal_needs_no_reboot():
    host = SmallHost()
    host.mounts[PG].data = "journal"
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(
        "pgdata\text4\tdefaults", "pgdata\text4\tdata=writeback"
    )
    assert look(host, "strict", mounts=[PG])["pending"] == []


@pytest.mark.parametrize("mounts", ["", {}, 0, False])
def test_what_is_no_list_is_not_taken_for_none(mounts):
    assert look(SmallHost(), "strict", mounts=mounts)["verdict"] == "blocked"


def over_a_deaf_layer(name: str, **more: str) -> tuple[SmallHost, FakeDisk]:
    """Return a host with a volume that was made when the cache of its disk was off, and that disk."""
    host = SmallHost()
    number = {"sda": "8:0", "vdb": "254:16", "sdg": "8:96"}[name]
    if name == "sdg":
        host.add_disk(FakeDisk("sdg", "scsi", "35sdg", wwn="0x5000c500a1b2c3e0"), number)
    disk = host.disk(name)
    vars(disk).update(cache="disabled", belief="write through", power_on="disabled", **more)
    for mount in [mount for mount in host.mounts.values() if mount.disk == name]:
        del host.mounts[mount.target]
    host.add_layer(dm("dm-5", "LVM", (name,), "253:5", f"linear {number} 0"))
    host.layers["dm-5"].belief = "write through"
    volume = FakeMount("/srv/lv", "ext4", "253:5", "/dev/mapper/lvm-dm-5", "dm-5")
    host.add_mount(volume, "/dev/mapper/lvm-dm-5 /srv/lv ext4 noatime 0 2\n")
    return host, disk


def unflushed(host: SmallHost) -> set[str]:
    """Return where commits on the volume are in a cache now that nothing flushes."""
    return host._exposed("now", host.mounts["/srv/lv"])


DEAF = pytest.mark.parametrize("name", ["sda", "sdg", "vdb"])


@DEAF
def test_a_cache_below_a_deaf_layer_is_not_turned_on_before_the_boot(name):
    """A virtio cache came on at once: its belief and its cache are one switch."""
    host, disk = over_a_deaf_layer(name)
    target = [lwc.Target(disk.id, "enabled")]
    work = lwc.plan(host, target)
    lwc.apply(host, work, target)
    assert (disk.cache, unflushed(host)) == ("disabled", set())
    assert work.states == {disk.id: "keep"}
    assert cache_rules.read(host)[disk.id][1] == "enabled"
    assert lwc.plan(host, target).changes == ()
    host.reboot()
    assert (disk.cache, unflushed(host)) == ("enabled", set())


@DEAF
def test_no_event_turns_a_cache_on_below_a_deaf_layer(name):
    """The rule that was to act at the next boot acted at any change event."""
    host, disk = over_a_deaf_layer(name)
    target = [lwc.Target(disk.id, "enabled")]
    lwc.apply(host, lwc.plan(host, target), target)
    host.event("change", name)
    assert (disk.cache, unflushed(host)) == ("disabled", set())


@DEAF
def test_an_initramfs_that_makes_the_layer_first_does_not_lose_commits(name):
    host, disk = over_a_deaf_layer(name)
    host.initramfs = ("dm-5",)
    target = [lwc.Target(disk.id, "enabled")]
    lwc.apply(host, lwc.plan(host, target), target)
    host.reboot()
    assert (disk.cache, unflushed(host)) == ("disabled", set())


@DEAF
def test_where_nobody_can_look_above_no_rule_turns_a_cache_on(name):
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


def test_the_rule_looks_for_device_mapper_by_the_name_that_the_kernel_gives():
    """Types are many (lvm, crypt, mpath, dmraid, vdo, stratis); the kernel's name is dm-N for all."""
    for control in CONTROLS.values():
        look_above, *rest = [rule for rule in control.rules("enabled") if "temporary" not in rule[-1]]
        assert "KNAME" in look_above[0]
        assert look_above[1] == 'RESULT!="*dm-*"'
        assert all('ENV{.DURABLE_DBHOST_ABOVE}=="nothing"' in rule for rule in rest)
        assert not any("DURABLE" in action for rule in control.rules("disabled") for action in rule)


@pytest.mark.parametrize("managed", ["/", "/srv/lv"])
def test_a_deaf_layer_below_the_root_is_not_said_to_wait_for_a_boot(managed):
    """The initramfs makes it before any rule of ours acts, so it was pending for ever."""
    host, _disk = over_a_deaf_layer("sda")
    vars(host.mounts["/"]).update(device="253:5", source="/dev/mapper/lvm-dm-5", disk="dm-5")
    host.mounts["/"].journal = False
    if managed == "/srv/lv":
        # Another volume of the same group, over the same dm-crypt, say.
        host.add_layer(dm("dm-6", "LVM", ("dm-5",), "253:6", "linear 253:5 0"))
        vars(host.mounts["/srv/lv"]).update(device="253:6", source="/dev/mapper/lvm-dm-6", disk="dm-6")
    found = look(host, "strict", mounts=[managed])
    rows = {row["target"]: row for row in found["settings"] if row["setting"] == "layer_belief"}
    row = rows["lvm-dm-5"]
    assert (row["verdict"], row["persisted"]) == ("drift_running", "write through")
    assert "initramfs" in row["remedy"]
    assert not [entry for entry in found["pending"] if entry["target"] == "lvm-dm-5"]


def test_a_deaf_layer_elsewhere_waits_for_the_boot():
    host, _disk = over_a_deaf_layer("sda")
    (row,) = [
        row
        for row in look(host, "strict", mounts=["/srv/lv"])["settings"]
        if row["setting"] == "layer_belief"
    ]
    assert (row["verdict"], row["remedy"][:6]) == ("pending", "reboot")


def test_a_masked_unit_is_not_overwritten_and_costs_no_rules():
    """A run replaced /dev/null by a regular file."""
    host = SmallHost()
    host.links[cache_rules.UNIT_PATH], host.files["/dev/null"] = "/dev/null", ""
    target = [lwc.Target(SDA, "disabled")]
    with pytest.raises(ChangeFailed, match="not a regular file"):
        lwc.apply(host, lwc.plan(host, target), target)
    assert (host.disk("sda").cache, host.read("/dev/null")) == ("disabled", "")
    assert cache_rules.read_rules(host) == {SDA: ("sata", "disabled")}


def bound(unit: str, host: SmallHost) -> dict[str, str]:
    """Return (running, persisted, verdict) of /srv/pgdata's barriers, with a unit for a second mount."""
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(
        "pgdata\text4\tdefaults", "pgdata\text4\tbarrier=0"
    )
    rest = host._mountinfo
    bind = "99 1 8:1 /main /var/lib/pg rw,relatime - ext4 /dev/sda1 rw\n"
    host.files["/proc/self/mountinfo"] = lambda: rest() + bind
    host.files["/etc/systemd/system/var-lib-pg.mount"] = unit
    (row,) = [r for r in look(host, "strict", mounts=[PG])["settings"] if r["setting"] == "barrier"]
    return row


BIND = "[Mount]\nWhat=/srv/pgdata/main\nWhere=/var/lib/pg\n"


@pytest.mark.parametrize("words", ["Type=none\nOptions=bind\n", "Type=none\n", "Options=rbind,noatime\n"])
@pytest.mark.parametrize("enabled", [True, False])
def test_the_unit_of_a_bind_mount_mounts_no_file_system(words, enabled):
    """It hid the line of fstab that turns barriers off."""
    host = SmallHost()
    if enabled:
        link = "/etc/systemd/system/multi-user.target.wants/var-lib-pg.mount"
        host.links[link] = "/etc/systemd/system/var-lib-pg.mount"
    assert bound(BIND + words, host)["persisted"] == "off"


@pytest.mark.parametrize("what", ["/dev/disk/by-uuid/ANOTHER", "UUID=ma", "/dev/vdb"])
def test_a_unit_about_another_device_says_nothing_of_this_one(what):
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount"] = f"[Mount]\nWhat={what}\nWhere={PG}\nType=ext4\n"
    host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "x"
    (row,) = [r for r in look(host, "strict", mounts=[PG])["settings"] if r["setting"] == "barrier"]
    assert (row["persisted"], row["verdict"]) == ("unknown", "unknown")
    assert f"mounts {what} at /srv/pgdata, not /dev/sda1" in row["why"]


@pytest.mark.parametrize("what", ["UUID=pg", "/dev/sda1", "/dev/disk/by-uuid/pg"])
def test_a_unit_about_this_device_decides_however_it_names_it(what):
    host = SmallHost()
    unit = f"[Mount]\nWhat={what}\nWhere={PG}\nType=ext4\nOptions=nobarrier\n"
    host.files["/etc/systemd/system/srv-pgdata.mount"] = unit
    host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "x"
    (row,) = [r for r in look(host, "strict", mounts=[PG])["settings"] if r["setting"] == "barrier"]
    assert row["persisted"] == "off"


@pytest.mark.parametrize("name", ["-.mount", "-.mount.d/x.conf"])
def test_the_root_is_mounted_before_systemd_reads_a_unit_of_it(name):
    """A drop-in hid barrier=0 in the root's line of fstab, by which it is mounted."""
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("remount-ro", "remount-ro,barrier=0")
    host.files[f"/etc/systemd/system/{name}"] = "[Mount]\nOptions=errors=remount-ro\n"
    (row,) = [r for r in look(host, "strict", mounts=["/"])["settings"] if r["setting"] == "barrier"]
    assert (row["persisted"], row["evidence"]["persisted"]["source"]) == (
        "off",
        "/etc/fstab line 2, superblock defaults",
    )


def test_a_neighbour_of_which_nothing_is_known_keeps_a_cache_off():
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", belief="write back", pinned=True)
    host.add_mount(
        FakeMount("/srv/n", "ext4", "8:2", "/dev/sda2", "sda"), "UUID=n /srv/n ext4 defaults 0 2\n"
    )
    given = {"mounts": [PG], "attestations": [attested("host_honours_flush")]}
    assert look(host, "flush", **given)["plan"]["loosen"]
    del host.files["/proc/fs/ext4/sda2/options"]
    del host.commands[(*ext4.SHOW, "/dev/block/8:2")]
    found = look(host, "flush", **given)
    assert not found["plan"]["loosen"]
    assert "/srv/n is not known to have barriers" in "\n".join(found["why"])


def test_a_flush_owed_by_a_virtio_cache_that_is_off_turns_no_cache_on():
    """Its belief and its cache are one switch: to flush it would be to turn it on."""
    host, disk = over_a_deaf_layer("vdb")
    note = f"{flush.OWED}/vdb"
    host.files[note] = ""
    target = [lwc.Target(disk.id, "disabled")]
    lwc.apply(host, lwc.plan(host, target), target)
    assert [mutation for mutation in host.mutations if mutation[0] != "file"][:1] == [("remove", note)]
    assert ("attribute", "/sys/block/vdb/cache_type", "write back") not in host.mutations
    assert disk.cache == "disabled"


FOREIGN = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", RUN+="/sbin/hdparm -q -W1 $devnode"\n'


def test_a_rule_of_somebody_elses_in_our_file_is_drift_and_goes_and_ours_stay():
    """It runs behind ours and turns the cache on; the report said that all is as wanted."""
    host = settled("strict")
    before, verdict = host.read(cache_rules.RULES_PATH), look(host, "strict")["verdict"]
    host.files[cache_rules.RULES_PATH] += FOREIGN
    assert look(host, "strict")["verdict"] == "drifted"
    # Also where the run is about one of the disks only.
    enforce(host, look(host, "strict", mounts=[PG]))
    assert host.read(cache_rules.RULES_PATH) == before
    assert look(host, "strict")["verdict"] == verdict != "drifted"


def test_a_rule_of_somebody_elses_beside_our_schedulers_goes_and_ours_stay():
    host = SmallHost()
    rules = {SDA: {"scheduler": "none"}, VDB: {"scheduler": "mq-deadline"}}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(rules) + FOREIGN
    assert scheduler_rules.read(host) == {}
    target = [lis.Target(SDA, {"scheduler": "none"})]
    lis.apply(host, lis.plan(host, target), target)
    assert scheduler_rules.read(host) == rules


def test_no_name_that_is_not_ascii_ends_a_run():
    host = settled("strict")
    strange = cache_rules.render({"serial:\u00c4": ("sata", "disabled")})[len(cache_rules.HEADER) :]
    host.files[cache_rules.RULES_PATH] += strange
    enforce(host, look(host, "strict"))
    assert host.read(cache_rules.RULES_PATH).isascii()


def test_no_write_carries_fua_through_a_layer_that_drops_flushes():
    host = BigHost()

    def fua_path() -> str:
        return next(m for m in collect(host, NOW)["mounts"] if m["target"] == "/srv/faircom")["fua_path"]

    assert fua_path() == "yes"
    host.layers["dm-0"].belief = "write through"
    assert fua_path() == "no"


@pytest.mark.parametrize("how", ["member", "directory"])
def test_a_member_of_btrfs_that_cannot_be_read_is_not_passed_over(how):
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
    assert "the devices of /dev/sdf are not known: " in facts["evidence"]["disks"]["reason"]


def test_a_deaf_layer_that_is_not_mounted_is_seen_by_facts_and_layer_alike():
    """Swap on a volume: the layer never turned the cache on, and the report asked for it for ever."""
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", belief="write through", power_on="disabled")
    host.add_partition("sda", "sda2", "8:2")
    host.add_layer(dm("dm-7", "LVM", ("sda2",), "253:7", "linear 8:2 0"))
    host.layers["dm-7"].belief = "write through"
    given = {"mounts": [PG], "attestations": [attested("host_honours_flush")]}
    enforce(host, look(host, "flush", **given))
    found = look(host, "flush", **given)
    assert next(d for d in collect(host, NOW)["disks"] if d["name"] == "sda")["unheard"] == ["dm-7"]
    assert [(row["target"], row["setting"]) for row in found["pending"]] == [(SDA, "write_cache")]
    assert not any(found["plan"].values())
    host.reboot()
    assert look(host, "flush", **given)["verdict"] == "durable"


@pytest.mark.parametrize("how", ["bare", "absent"])
def test_a_device_that_orders_no_queue_has_no_scheduler_to_set(how):
    host = BigHost()
    path = f"{host.disk('nvme0n1').sysfs}/queue/scheduler"
    if how == "bare":
        host.files[path] = "none\n"
    else:
        del host.files[path]
    disk = Disks(host).collect("nvme0n1")["scheduler"]
    assert (disk["running"], disk["available"]) == ("none", [])
    own = {"mine": {**shipped()["flush"], "scheduler_solid_state": "mq-deadline"}}
    found = look(host, "mine", own=own, mounts=["/srv/firebird"])
    assert not [row for row in found["settings"] if row["setting"] == "scheduler"]
    host.files[path] = Unobservable("I/O error")
    (row,) = [
        row
        for row in look(host, "mine", own=own, mounts=["/srv/firebird"])["settings"]
        if row["setting"] == "scheduler"
    ]
    assert row["verdict"] == "unknown"


@pytest.mark.parametrize("mode", ["ordered", "writeback"])
def test_a_root_without_a_line_does_not_keep_the_others_from_being_persisted(mode):
    """The run ended with "no fstab line of its own": for access times that nobody can write."""
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=root / ext4 errors=remount-ro 0 1\n", "")
    if mode == "writeback":
        vars(host.mounts["/"]).update(sb_options=("data=writeback",), data="writeback")
    host.mounts[PG].barrier = "off"
    enforce(host, look(host, "strict", mounts=["/", PG]))
    assert (host.mounts[PG].barrier, host.mounts["/"].atime) == ("on", "noatime")
    assert "noatime" in host.boot_options(PG)
    assert "data=writeback" not in host.mounts["/"].sb_options
    (row,) = [
        row
        for row in look(host, "strict", mounts=["/", PG])["settings"]
        if (row["target"], row["setting"]) == ("/", "atime")
    ]
    assert (row["verdict"], row["phase"]) == ("drift_persisted", None)
    assert "add a line for / to /etc/fstab" in row["remedy"]


def test_rules_are_written_where_systemctl_fails():
    host = SmallHost()

    def no_bus(argv: list[str]) -> None:
        raise ChangeFailed("systemctl: exit 1: Failed to connect to bus")

    host._systemctl = no_bus
    target = [lwc.Target(SDA, "disabled")]
    with pytest.raises(ChangeFailed, match="bus"):
        lwc.apply(host, lwc.plan(host, target), target)
    assert cache_rules.read_rules(host) == {SDA: ("sata", "disabled")}


def test_an_attestation_counts_where_the_tool_is_missing():
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: No such file or directory")

    def row(*words: dict[str, str]) -> dict[str, str]:
        found = look(host, "protected", mounts=[PG], attestations=list(words))
        return next(row for row in found["settings"] if row["setting"] == "write_cache")

    assert (row()["verdict"], "the tool may be missing" in row()["remedy"]) == ("unknown", True)
    assert (row(attested())["verdict"], row(attested())["wanted_running"]) == ("ok", "attested")


LUN = {"vendor": "NETAPP", "model": "LUN C-Mode", "driver": "qla2xxx"}
LUN_PORTS = [f"0000:03:00.0/host{n}/rport-{n}:0-1/target{n}:0:0/{n}:0:0:0/block" for n in (2, 3)]


def on_a_san(*multipath: str, ports: list[str] = LUN_PORTS, **make: str) -> SmallHost:
    """Return a host with a LUN on two paths, each claimed by multipathd or not, and a file system on it."""
    host = SmallHost()
    for name, number, port, claimed in zip(("sdg", "sdh"), ("8:96", "8:112"), ports, multipath):
        path = FakeDisk(name, "scsi", "lun1", port=port, multipath=claimed, rotational="1", **(make or LUN))
        host.add_disk(path, number)
    table = "multipath 0 0 2 1 round-robin 0 1 1 8:96 1 round-robin 0 1 1 8:112 1"
    host.add_layer(dm("dm-5", "mpath", ("sdg", "sdh"), "253:5", table))
    volume = FakeMount("/srv/v", "ext4", "253:5", "/dev/mapper/mpath-dm-5", "dm-5", atime="noatime")
    host.add_mount(volume, "/dev/mapper/mpath-dm-5 /srv/v ext4 noatime 0 2\n")
    return host


def test_the_paths_of_a_multipath_disk_can_be_attested_and_are_never_switched():
    host = on_a_san("1", "1")
    disks = {d["name"]: d for d in collect(host, NOW)["disks"] if d["name"] in ("sdg", "sdh")}
    assert {d["id"] for d in disks.values()} == {"serial:lun1"}
    assert {(d["switchable"], d["multipath"]) for d in disks.values()} == {("no", "yes")}
    assert Disks(host).find("serial:lun1") is Disks(host).id_of("sdg") is None
    words = [attested("power_loss_protection", "serial:lun1"), attested("host_honours_flush")]
    found = look(host, "protected", mounts=["/srv/v"], attestations=words)
    assert found["verdict"] == "attested", found["why"]
    assert not any(found["plan"].values())


def test_a_physical_disk_on_two_paths_gets_no_rule_by_the_name_that_they_share():
    ports = [
        f"0000:01:00.0/host{n}/port-{n}:0/end_device-{n}:0/target{n}:0:0/{n}:0:0:0/block" for n in (2, 3)
    ]
    host = on_a_san("1", "1", ports=ports, vendor="SEAGATE", model="ST1200MM0099", driver="mpt3sas")
    kinds = {d["name"]: (d["kind"], d["switchable"]) for d in collect(host, NOW)["disks"]}
    assert kinds["sdg"] == kinds["sdh"] == ("physical", "no")
    found = look(host, "strict", mounts=["/srv/v"])
    rows = {row["target"]: row for row in found["settings"] if row["setting"] == "scheduler"}
    assert {name: row["phase"] for name, row in rows.items()} == {"sdg": None, "sdh": None}
    assert not {row["phase"] for row in found["settings"] if row["target"] == "serial:lun1"} - {None}


@pytest.mark.parametrize("multipath", [("1", ""), ("", "")])
def test_disks_that_share_a_name_without_being_paths_of_one_have_none(multipath):
    host = on_a_san(*multipath)
    disks = [d for d in collect(host, NOW)["disks"] if d["name"] in ("sdg", "sdh")]
    assert {(d["id"], d["multipath"]) for d in disks} == {(None, "no")}


def test_what_is_owed_to_a_disk_that_is_not_ours_says_how_to_pay():
    host = on_a_san("1", "1")
    host.files[f"{flush.OWED}/sdg"] = ""
    found = look(host, "flush", mounts=["/srv/v"], attestations=[attested("host_honours_flush")])
    (row,) = [row for row in found["settings"] if row["setting"] == "flush"]
    assert row["remedy"] == f"sync /dev/sdg and remove {flush.OWED}/sdg, or reboot"


def test_a_readahead_with_a_point_is_refused():
    """128.0 in YAML passed, and the kernel refused it."""
    own = {"mine": {**shipped()["strict"], "readahead": 128.0}}
    found = look(SmallHost(), "mine", own=own)
    assert found["verdict"] == "blocked"
    assert any("128.0" in why for why in found["why"])


def test_a_bare_include_of_tuned_includes_nothing():
    host = SmallHost()
    host.files.update(
        {
            "/etc/tuned/active_profile": "x\n",
            "/run/tuned/tuned.pid": "1",
            "/etc/tuned/x/tuned.conf": "[main]\ninclude\n[disk]\nelevator=bfq\n",
        }
    )
    assert collect(host, NOW)["tuned"]["sets"] == {"elevator": "bfq"}


def test_a_number_without_end_ends_no_run():
    """Python refuses to read more than 4300 digits, and int(inf)."""
    host = SmallHost()
    text = host.read("/etc/fstab").replace("defaults,nofail", f"barrier={'1' * 5000}")
    host.files["/etc/fstab"] = text
    assert collect(host, NOW)
    with pytest.raises(ValueError, match="nvme id-ctrl named no vwc"):
        has_volatile_cache('{"vwc": 1e999}')


def test_release_takes_links_that_lead_nowhere():
    host = settled("strict")
    del host.files[cache_rules.UNIT_PATH]
    lwc.apply_release(host, lwc.plan_release(host))
    assert not [link for link in host.links if "durable" in link]
    assert lwc.plan_release(host).changes == ()
