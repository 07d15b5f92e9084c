# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next boot mounts, as the report tells it: a line of fstab or a unit decides, or it is unknown."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, enforce, look
from ..fakes.small_host import SmallHost

PG = "/srv/pgdata"


def test_an_fstab_line_of_another_device_says_nothing_of_this_one() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "/dev/sdz9 /srv/pgdata xfs noatime 0 2\n"
    facts = next(m for m in collect(host, NOW)["mounts"] if m["target"] == PG)
    assert facts["persisted"]["barrier"] != "on"


def test_two_lines_for_one_mount_point_are_unknown_and_left_alone() -> None:
    host = SmallHost()
    text = host.read("/etc/fstab") + "UUID=pg /srv/pgdata ext4 nobarrier 0 2\n"
    host.files["/etc/fstab"] = text
    found = look(host, "strict", mounts=[PG])
    assert found["verdict"] == "unknown"
    assert any("lines 3 and 6 both mount /srv/pgdata" in why for why in found["why"])
    enforce(host, found)
    assert host.read("/etc/fstab") == text


@pytest.mark.parametrize("name", ["srv-pgdata.mount", "srv-pgdata.mount.d/override.conf"])
def test_a_unit_that_sets_options_overrides_fstab(name: str) -> None:
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


def test_a_drop_in_about_something_else_does_not() -> None:
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount.d/x.conf"] = "[Unit]\nAfter=network.target\n"
    assert look(host, "strict", mounts=[PG])["verdict"] == "drifted"


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
def test_the_unit_of_a_bind_mount_mounts_no_file_system(words: str, enabled: bool) -> None:
    """It hid the line of fstab that turns barriers off."""
    host = SmallHost()
    if enabled:
        link = "/etc/systemd/system/multi-user.target.wants/var-lib-pg.mount"
        host.links[link] = "/etc/systemd/system/var-lib-pg.mount"
    assert bound(BIND + words, host)["persisted"] == "off"


@pytest.mark.parametrize("what", ["/dev/disk/by-uuid/ANOTHER", "UUID=ma", "/dev/vdb"])
def test_a_unit_about_another_device_says_nothing_of_this_one(what: str) -> None:
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount"] = f"[Mount]\nWhat={what}\nWhere={PG}\nType=ext4\n"
    host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "x"
    (row,) = [r for r in look(host, "strict", mounts=[PG])["settings"] if r["setting"] == "barrier"]
    assert (row["persisted"], row["verdict"]) == ("unknown", "unknown")
    assert f"mounts {what} at /srv/pgdata, not /dev/sda1" in row["why"]


@pytest.mark.parametrize("what", ["UUID=pg", "/dev/sda1", "/dev/disk/by-uuid/pg"])
def test_a_unit_about_this_device_decides_however_it_names_it(what: str) -> None:
    host = SmallHost()
    unit = f"[Mount]\nWhat={what}\nWhere={PG}\nType=ext4\nOptions=nobarrier\n"
    host.files["/etc/systemd/system/srv-pgdata.mount"] = unit
    host.links["/etc/systemd/system/local-fs.target.wants/srv-pgdata.mount"] = "x"
    (row,) = [r for r in look(host, "strict", mounts=[PG])["settings"] if r["setting"] == "barrier"]
    assert row["persisted"] == "off"


@pytest.mark.parametrize("name", ["-.mount", "-.mount.d/x.conf"])
def test_the_root_is_mounted_before_systemd_reads_a_unit_of_it(name: str) -> None:
    """A drop-in hid barrier=0 in the root's line of fstab, by which it is mounted."""
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("remount-ro", "remount-ro,barrier=0")
    host.files[f"/etc/systemd/system/{name}"] = "[Mount]\nOptions=errors=remount-ro\n"
    (row,) = [r for r in look(host, "strict", mounts=["/"])["settings"] if r["setting"] == "barrier"]
    assert (row["persisted"], row["evidence"]["persisted"]["source"]) == (
        "off",
        "/etc/fstab line 2, superblock defaults",
    )
