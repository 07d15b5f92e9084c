# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems compared on a spare disk: each is measured, and nothing remains, also after the module was killed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support import truth
from support.background import in_background
from support.runs import Playbooks, Run

from lab.machine import Machine

MACHINE = "pull"
SERIAL, BY_ID = "SCSI0002", "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{}"
DEVICE = BY_ID.format(SERIAL)
FILE_SYSTEMS = ["ext3", "xfs", "btrfs"]
OPTIONS = ["defaults", "sync,noatime"]
PATIENCE = 60.0
#: What a run must leave as it was: signatures, scheduler, mounts of all processes, its record, processes.
MANIFEST = """
wipefs --no-act "/dev/$1"
cat "/sys/block/$1/queue/scheduler"
cat /proc/[0-9]*/mountinfo 2> /dev/null | grep "/dev/$1\\|/proc/.*/fd/" | sort -u
ls /var/lib/durable-dbhost 2> /dev/null
pgrep -x fio
btrfs filesystem show
true
"""
#: Kills the module once fio writes to the second file system: fio's parent works for the module.
KILLER = """
until dmesg | grep -q "XFS ($1): Mounting" && pgrep -x fio; do sleep 0.05; done
kill -KILL $(ps -o ppid= -p $(ps -o ppid= -p $(pgrep -o -x fio)))
"""


def compare(playbooks: Playbooks, **limits: Any) -> Run:
    """Run compare_filesystems with one run of a second each."""
    requested = {
        "device": DEVICE,
        "overwrite": DEVICE,
        "file_systems": FILE_SYSTEMS,
        "mount_options": OPTIONS,
        "ext3_options": ["data=journal"],
        "seconds": 1,
        "runs": 1,
        "size": 2,
        **limits,
    }
    return playbooks.run(
        "compare_filesystems",
        "-e",
        "durable_confirm=compare-filesystems",
        variables={"durable_filesystems": requested},
    )


@pytest.fixture(scope="module")
def disk(machine: Machine) -> str:
    """What the kernel calls the spare disk."""
    return str(truth.read(machine)["disks"][SERIAL]["name"])


def manifest(machine: Machine, disk: str) -> str:
    """Return what a run must leave as it was."""
    return machine.run(["sh", "-c", MANIFEST, "manifest", disk]).stdout


def test_each_file_system_is_measured_and_the_disk_is_as_before(
    machine: Machine, playbooks: Playbooks, disk: str
) -> None:
    before = manifest(machine, disk)
    run = compare(playbooks)
    assert run.code == 0
    assert manifest(machine, disk) == before
    report = run.reports["filesystems-pull"]
    schedulers = machine.run(["cat", f"/sys/block/{disk}/queue/scheduler"]).stdout.split()
    mounts = [("raw device", "defaults")] + [
        (kind, options)
        for kind in FILE_SYSTEMS
        for options in [*OPTIONS, *(["data=journal"] if kind == "ext3" else [])]
    ]
    assert len(report["rows"]) == len(mounts) * len(schedulers)
    assert list(dict.fromkeys((row["file_system"], row["options"]) for row in report["rows"])) == mounts
    assert {row["scheduler"] for row in report["rows"]} == {name.strip("[]") for name in schedulers}
    assert report["rows"][0]["of_raw"] == 100
    for row in report["rows"]:
        assert row["rate"] > 0, row
        assert row["flushes_per_commit"] > 0.9, row
    stored = playbooks.directory / "durable-report"
    assert "raw device" in (stored / "filesystems-pull.txt").read_text()
    assert (stored / "filesystems-pull.svg").read_text().count("<title>") == len(report["rows"]) + 1


def test_after_the_module_is_killed_nothing_remains(
    machine: Machine, playbooks: Playbooks, disk: str
) -> None:
    before = manifest(machine, disk)
    machine.run(["dmesg", "--clear"])
    with in_background(machine, "killer", "sh", "-c", KILLER, "killer", disk):
        run = compare(playbooks)
    assert run.code == 2
    deadline = time.monotonic() + PATIENCE
    while (after := manifest(machine, disk)) != before and time.monotonic() < deadline:
        time.sleep(0.5)
    assert after == before
    assert "filesystems-pull" not in run.reports


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (
            {"overwrite": BY_ID.format("SCSI0001")},
            "the same name again, because all data on that disk is destroyed",
        ),
        (dict.fromkeys(("device", "overwrite"), BY_ID.format("SCSI0001")), "mounted at /srv/flush"),
        (
            dict.fromkeys(("device", "overwrite"), "/dev/sda"),
            "expected the permanent name of a whole spare disk",
        ),
        ({"device": DEVICE, "overwrite": DEVICE, "file_systems": ["jfs"]}, "mkfs.jfs is missing"),
    ],
    ids=["not named twice", "mounted", "name of one boot", "no program"],
)
def test_what_is_no_spare_disk_is_refused(
    machine: Machine, playbooks: Playbooks, disk: str, limits: dict[str, Any], why: str
) -> None:
    before = manifest(machine, disk)
    run = compare(playbooks, **limits)
    assert run.code == 2
    assert why in " ".join(run.output.split())
    assert manifest(machine, disk) == before


def test_a_signature_of_another_program_is_refused_and_stays(
    machine: Machine, playbooks: Playbooks, disk: str
) -> None:
    machine.run(["pvcreate", "--quiet", f"/dev/{disk}"])
    try:
        before = manifest(machine, disk)
        run = compare(playbooks)
        assert "observed a signature of LVM2_member" in " ".join(run.output.split())
        assert manifest(machine, disk) == before
    finally:
        machine.run(["pvremove", "--quiet", f"/dev/{disk}"])
