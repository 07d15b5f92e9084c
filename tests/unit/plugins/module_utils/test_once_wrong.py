# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Once wrong, found by review: each of these guards a mistake that was made."""

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils import (
    cache_rules,
    flush,
    fstab,
    originals,
)
from ansible_collections.durable.dbhost.plugins.module_utils import layer_mount_options as lmo
from ansible_collections.durable.dbhost.plugins.module_utils import layer_write_cache as lwc
from ansible_collections.durable.dbhost.plugins.module_utils.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.disks import Disks
from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect

from .policy import NOW, enforce, inputs, look
from .small_host import FakeMount, SmallHost

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
    bind = "29 1 8:1 / /mnt/bind ro,relatime - ext4 /dev/sda1 rw,nobarrier\n"
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
        host.read("/proc/self/mountinfo") + "98 1 0:50 / /srv/pgdata/ram rw - tmpfs tmpfs rw\n"
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


def test_without_dumpe2fs_barriers_still_come_on():
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    del host.commands[("dumpe2fs", "-h", "/dev/block/8:1")]
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
    host.files[f"/etc/systemd/system/{name}"] = "[Mount]\nOptions=nobarrier\n"
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
