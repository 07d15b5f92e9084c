# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every sort of mount, brought to strict: by the word of kernel and devices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import truth
from support.runs import Executions, Playbooks

from lab.machine import Machine

#: One release is enough for what does not depend on it.
pytestmark = pytest.mark.parametrize("machine", ["bookworm"], indirect=True)
#: Mount point -> the disks that it writes to, as lab/layouts/playbooks/mounts.yml laid them out.
LEAVES = {
    "/srv/extjournal": {"SCSI0005", "SCSI0001"},
    "/srv/xfslog": {"VIRT0001", "SCSI0006"},
    "/srv/btrfs": {"SCSI0002", "VIRT0002"},
    "/srv/ext3": {"SCSI0007"},
    "/srv/journaled": {"VIRT0004"},
    "/srv/bound": {"SCSI0004"},
    "/srv/unit": {"VIRT0005"},
}
DROP_INS = "/etc/systemd/system/srv-unit.mount.d"


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout


def options(machine: Machine, target: str) -> list[str]:
    """Return the options in force, of the mount and of its superblock."""
    argv = ["findmnt", "--noheadings", "--output", "VFS-OPTIONS,FS-OPTIONS", target]
    return ",".join(machine.run(argv).stdout.split()).split(",")


def flushes(machine: Machine) -> dict[str, int]:
    """Return {serial: flushes since the boot}."""
    return {serial: disk["flushes"] for serial, disk in truth.read(machine)["disks"].items()}


def check(playbooks: Playbooks, **variables: Any) -> dict[str, Any]:
    """Return the report of a check run with these variables."""
    run = playbooks.run("harden-db", "--check", variables=variables)
    (report,) = run.reports.values()
    return report


def test_each_disk_below_is_off_also_those_of_journals_and_logs(machine: Machine) -> None:
    disks = truth.read(machine)["disks"]
    below = sorted(set().union(*LEAVES.values()))
    assert {serial: disks[serial]["cache"] for serial in below} == dict.fromkeys(below, "off")
    for serial in below:
        wanted = "write through" if serial.startswith("VIRT") else "write back"
        assert disks[serial]["cache_mode"] == wanted, serial
    # A disk below nothing that is managed keeps what it had.
    assert disks["SCSI0003"]["cache"] == "on"


@pytest.mark.parametrize("mode", [(), ("--check",)], ids=["run", "check"])
def test_a_second_run_changes_nothing_in_one_execution(
    machine: Machine, playbooks: Playbooks, mode: tuple[str, ...]
) -> None:
    executions = Executions(machine)
    run = playbooks.run("harden-db", *mode)
    assert run.code == 0
    assert run.recap[machine.name]["changed"] == 0
    assert run.reports[machine.name]["verdict"] == "attested"
    assert executions.count() == 1


@pytest.mark.parametrize("target", sorted(LEAVES))
def test_every_managed_mount_is_noatime(machine: Machine, target: str) -> None:
    assert "noatime" in options(machine, target)


@pytest.mark.fact(45)
def test_the_read_only_view_stays_read_only_and_its_file_system_writable(machine: Machine) -> None:
    assert "ro" in sh(machine, "findmnt -no VFS-OPTIONS /srv/bound-ro").strip().split(",")
    sh(machine, "touch /srv/bound/written")


def test_a_mount_unit_is_overridden_by_a_drop_in_of_ours_and_else_left_alone(machine: Machine) -> None:
    assert "Options=noatime\n" in sh(machine, "cat /etc/systemd/system/srv-unit.mount")
    # It says noatime already, so there is nothing to override yet.
    assert machine.run(["test", "-e", DROP_INS], check=False).returncode != 0


@pytest.mark.fact(9)
@pytest.mark.fact(52)
def test_what_has_no_rule_is_unknown_by_its_name(machine: Machine, playbooks: Playbooks) -> None:
    device = "/dev/" + sh(machine, "lsblk -ndro NAME,SERIAL | sed -n 's/ SCSI0091//p'").strip()
    words = {
        "/srv/ext2": "no journal",
        "/srv/nojournal": "no journal",
        "/srv/overlay": "overlay",
        device: "no file system",
    }
    report = check(
        playbooks,
        durable_mounts=["/srv/ext2", "/srv/nojournal", "/srv/overlay"],
        durable_databases=[{"engine": "mssql", "paths": [device]}],
    )
    assert report["verdict"] == "unknown"
    for target, word in words.items():
        assert any(target in why and word in why for why in report["why"]), target


@pytest.mark.fact(46)
def test_what_only_a_service_has_mounted_is_not_passed_over(machine: Machine, playbooks: Playbooks) -> None:
    run = playbooks.run("audit", variables={"durable_mounts": []})
    assert "/srv/hidden" not in sh(machine, "cat /proc/mounts")
    text = json.dumps(run.reports[machine.name])
    assert "/srv/hidden" in text


class TestDrift:
    def test_it_is_found_and_mended_with_a_flush_on_each_disk(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        sh(
            machine,
            "mount -o remount,nobarrier /srv/btrfs;"
            "mount --options-source=disable -o remount,rw,noatime,barrier=0"
            " $(findmnt -no SOURCE /srv/extjournal) /srv/extjournal;"
            "sed -i s/Options=noatime/Options=noatime,barrier=0/ /etc/systemd/system/srv-unit.mount;"
            "systemctl daemon-reload; sed -i 's|\\(/srv/btrfs btrfs [^ ]*\\)|\\1,nobarrier|' /etc/fstab",
        )
        # The caches of two of the disks come on again, so that barriers matter.
        names = {serial: disk["name"] for serial, disk in truth.read(machine)["disks"].items()}
        sh(machine, f"sdparm -q --set WCE=1 /dev/$(ls /sys/block/{names['SCSI0001']}/device/scsi_generic)")
        found = playbooks.run("harden-db", "--check")
        assert (found.code, found.reports[machine.name]["verdict"]) == (2, "at_risk")
        settings = found.settings(machine.name)
        assert settings["/srv/btrfs", "barrier"] == "drift_running"
        assert settings["/srv/extjournal", "barrier"] == "drift_running"
        assert settings["/srv/unit", "barrier"] == "drift_persisted"

        before = flushes(machine)
        run = playbooks.run("harden-db")
        assert run.code == 0
        after = flushes(machine)
        for serial in ("SCSI0005", "SCSI0001", "SCSI0002"):
            assert after[serial] > before[serial], serial
        assert "nobarrier" not in options(machine, "/srv/btrfs")
        assert "nobarrier" not in options(machine, "/srv/extjournal")
        text = sh(machine, f"cat {DROP_INS}/*.conf")
        assert "barrier=1" in text
        assert "barrier=0" in sh(machine, "cat /etc/systemd/system/srv-unit.mount")  # not our file

    def test_the_next_boot_mounts_as_the_drop_in_says(self, machine: Machine, playbooks: Playbooks) -> None:
        machine.reset()
        assert "nobarrier" not in options(machine, "/srv/unit")
        assert "nobarrier" not in options(machine, "/srv/btrfs")
        again = playbooks.run("harden-db", "--check")
        assert (again.code, again.recap[machine.name]["changed"]) == (0, 0)

    def test_release_takes_the_drop_in_away(self, machine: Machine, playbooks: Playbooks) -> None:
        assert playbooks.run("release_db").code == 0
        assert machine.run(["test", "-e", DROP_INS], check=False).returncode != 0
        assert "durable" not in sh(machine, "cat /etc/fstab; ls /etc/udev/rules.d /etc/systemd/system")
