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


@pytest.mark.parametrize("option", ["noload", "norecovery"])
def test_a_journal_that_the_next_mount_leaves_out_is_unknown(option: str) -> None:
    host = SmallHost()
    enforce(host, look(host, "strict", mounts=[PG]))
    assert look(host, "strict", mounts=[PG])["verdict"] == "durable"
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(",barrier=1", f",barrier=1,{option}")
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("ext4\tdefaults", f"ext4\tdefaults,{option}")
    found = look(host, "strict", mounts=[PG])
    (row,) = [row for row in found["settings"] if row["setting"] == "data_mode"]
    assert (row["running"], row["persisted"], found["verdict"]) == ("ordered", "none", "unknown")
    assert row["remedy"].startswith(f"remove {option} from /etc/fstab line ")


def test_a_mount_of_the_command_line_is_left_to_its_owner_and_stays_unknown() -> None:
    host = SmallHost()
    enforce(host, look(host, "strict", mounts=[PG]))
    assert look(host, "strict", mounts=[PG])["verdict"] == "durable"
    words = "systemd.mount-extra=/dev/sda1:/mnt/second:ext4:nobarrier"
    host.files["/proc/cmdline"] = f"root=UUID=root ro {words}\n"
    text = host.read("/etc/fstab").replace("pgdata\text4\t", "pgdata\text4\tbarrier=0,")
    host.files["/etc/fstab"] = text
    found = look(host, "strict", mounts=[PG])
    assert found["verdict"] == "drifted"
    enforce(host, found)
    assert not host.exists("/etc/systemd/system/mnt-second.mount.d/zz-durable-dbhost.conf")
    assert look(host, "strict", mounts=[PG])["verdict"] == "unknown"


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


def on_access(options: str, automount: str = "") -> SmallHost:
    """Return a host after a boot: systemd mounts /srv/pgdata when a process accesses it."""
    host = SmallHost()
    line = "UUID=pg\t/srv/pgdata\text4\tdefaults\t0 2\n"
    changed = line.replace("defaults", options) if not automount else ""
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(line, changed)
    before = host._mountinfo

    def mountinfo() -> str:
        rows = before().splitlines(keepends=True)
        (row,) = [each for each in rows if f" {PG} " in each]
        number, parent = row.split()[:2]
        there = f"{number} {parent} 0:60 / {PG} rw,relatime - autofs systemd-1 rw,fd=40,direct,pipe_ino=9\n"
        return "".join(there if each is row else each for each in rows)

    host.files["/proc/self/mountinfo"] = mountinfo
    host.files["/proc/filesystems"] += "nodev\tautofs\n"
    if automount:
        unit = "/etc/systemd/system/srv-pgdata.mount"
        host.files[unit] = f"[Mount]\nWhat=UUID=pg\nWhere={PG}\nType=ext4\nOptions={options}\n"
        host.links[f"/etc/systemd/system/multi-user.target.wants/srv-pgdata.{automount}"] = unit
    return host


@pytest.mark.parametrize("automount", ["", "automount"])
def test_a_mount_that_the_first_access_makes_is_assessed_by_what_mounts_it(automount: str) -> None:
    """It was blocked after each boot, until a process accessed the path."""
    settled = look(SmallHost(), "strict", mounts=[PG])
    host = on_access("defaults" if automount else "defaults,x-systemd.automount", automount)
    found = look(host, "strict", mounts=[PG])
    assert found["verdict"] == settled["verdict"] != "blocked"
    rows = {row["setting"]: row for row in found["settings"] if row["target"] == PG}
    assert [(rows[name]["running"], rows[name]["verdict"]) for name in ("barrier", "data_mode")] == [
        ("on", "ok"),
        ("ordered", "ok"),
    ]
    assert "(automount)" in rows["barrier"]["evidence"]["running"]["source"]
    assert [mount["disks"] for mount in collect(host, NOW)["mounts"] if mount["target"] == PG] == [["sda"]]
    assert collect(host, NOW)["other_mounts"] == {"/proc": "proc", "/tmp": "tmpfs"}


def test_without_barriers_it_is_no_risk_now_and_drift_at_the_first_access() -> None:
    host = on_access("barrier=0,x-systemd.automount")
    found = look(host, "strict", mounts=[PG])
    (row,) = [row for row in found["settings"] if (row["target"], row["setting"]) == (PG, "barrier")]
    assert (row["running"], row["persisted"], row["verdict"]) == ("unknown", "off", "drift_persisted")
    assert (row["phase"], row["remedy"]) == (None, "mount it (ls /srv/pgdata), then run harden_db")
    # No run turns barriers on of what is not mounted.
    assert found["verdict"] == "blocked" and "ls /srv/pgdata" in str(found)
    host.files["/proc/self/mountinfo"] = host._mountinfo
    host.mounts[PG].barrier = "off"
    assert look(host, "strict", mounts=[PG])["verdict"] == "at_risk"


def test_a_profile_without_barriers_is_not_applied_to_what_is_not_mounted() -> None:
    host = on_access("defaults,x-systemd.automount")
    found = look(host, "disposable", mounts=[PG], accept_data_loss=True)
    assert not [row for row in found["settings"] if row["target"] == PG and row["phase"]]


@pytest.mark.parametrize("line", ["noatime", "noauto"])
def test_an_automount_of_another_program_holds_nothing(line: str) -> None:
    assert look(on_access(line), "strict", mounts=[PG])["verdict"] == "unknown"


@pytest.mark.parametrize(
    "mode", ["orderd", "ORDERED", '"ordered"', "none", "unset", "refused", "unknown", ""]
)
def test_a_value_of_data_that_no_kernel_takes_costs_that_mount_alone(mode: str) -> None:
    """All facts of the host were unreadable, and the mount without barriers next to it was not reported."""
    host = SmallHost()
    text = host.read("/etc/fstab").replace("pgdata\text4\tdefaults", f"pgdata\text4\tdata={mode}")
    host.files["/etc/fstab"] = text
    host.mounts["/srv/maria"].barrier = "off"
    found = look(host, "strict", mounts=[PG, "/srv/maria"])
    assert found["verdict"] == "at_risk"
    rows = {(row["target"], row["setting"]): row for row in found["settings"]}
    assert rows[PG, "data_mode"]["persisted"] == "unknown"
    assert rows["/srv/maria", "data_mode"]["verdict"] == "ok"
    assert rows[PG, "options"]["verdict"] == "drift_persisted"


@pytest.mark.fact(55)
@pytest.mark.parametrize(
    ("number", "value"),
    [
        *(("0", "off"), ("0x0", "off"), ("00", "off"), ("+0", "off"), ("1", "on"), ("2", "on"), ("01", "on")),
        *(
            ("0x10", "on"),
            ("2147483647", "on"),
            ("2147483648", "unknown"),
            ("1k", "unknown"),
            ("-1", "unknown"),
        ),
    ],
)
def test_numbers_of_barrier_mean_what_the_kernel_makes_of_them(number: str, value: str) -> None:
    host = SmallHost()
    text = host.read("/etc/fstab").replace("pgdata\text4\tdefaults", f"pgdata\text4\tbarrier={number}")
    host.files["/etc/fstab"] = text
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == PG]
    assert mount["persisted"]["barrier"] == value
