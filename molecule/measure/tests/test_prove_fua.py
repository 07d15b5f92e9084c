# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a commit becomes on each disk, by the kernel's counters, its trace, and QEMU's own count."""

from __future__ import annotations

from typing import Any

import pytest
from support import truth
from support.runs import Executions, Playbooks, Run, connection, inventory

from lab.machine import Machine
from lab.qemu.argv import drive_id

MACHINE = "measure"
CONFIRM = "durable_confirm=prove-fua"
COMMITS = 40
LIMITS = {"patterns": ["direct_dsync", "direct_fdatasync", "append_fsync"], "commits": COMMITS, "seconds": 60}
TRACED = {**LIMITS, "patterns": ["direct_dsync", "direct_fdatasync"]}
SERIALS = {
    "/srv/fua": "SCSI0001",
    "/srv/fuaxfs": "SCSI0002",
    "/srv/flush": "SCSI0003",
    "/srv/uncached": "SCSI0004",
    "/srv/virtio": "VIRT0001",
    "/srv/small": "SATA0001",
}
#: Mount -> what a commit becomes, and how many flushes and FUA writes it is, by the pattern in the order of LIMITS.
EXPECTED = {
    "/srv/fua": (("FUA", 0, 1), ("flush", 1, 0), ("flush", 1, 1)),
    "/srv/fuaxfs": (("FUA", 0, 1), ("flush", 1, 0), ("flush", 1, 1)),
    "/srv/flush": (("flush", 1, 0), ("flush", 1, 0), ("flush", 2, 0)),
    "/srv/uncached": (("neither", 0, 0),) * 3,
    "/srv/virtio": (("flush", 1, 0), ("flush", 1, 0), ("flush", 2, 0)),
    "/srv/small": (("neither", 0, 0),) * 3,
}
#: What a run must leave as it was: files, mounts, traces, processes.
MANIFEST = """
ls -A /srv/*
cat /proc/mounts
grep . /sys/block/*/trace/enable
ls /sys/kernel/debug/block/*
ps -e -o comm= | grep -e blktrace -e blkparse || true
"""


def device_flushes(machine: Machine) -> dict[str, int]:
    """Return how often QEMU was told to flush each disk; a write with FUA is a write and a flush to it."""
    found = {block["device"]: block["stats"]["flush_operations"] for block in machine.qmp("query-blockstats")}
    return {target: found[drive_id(serial)] for target, serial in SERIALS.items()}


def manifest(machine: Machine) -> str:
    """Return what a run must leave as it was."""
    return machine.run(["sh", "-c", MANIFEST]).stdout


class Proved:
    """One run over all disks, and what was around it."""

    def __init__(self, machine: Machine, playbooks: Playbooks) -> None:
        self.before, flushed = manifest(machine), device_flushes(machine)
        self.run: Run = playbooks.run("prove-fua", "-e", CONFIRM, variables={"durable_prove_fua": LIMITS})
        self.after = manifest(machine)
        self.flushed = {target: count - flushed[target] for target, count in device_flushes(machine).items()}
        report = self.run.reports.get("prove-fua-measure", {"rows": []})
        self.rows: dict[tuple[str, str], dict[str, Any]] = {
            (row["mount"], row["pattern"]): row for row in report["rows"]
        }


@pytest.fixture(scope="module")
def disks(machine: Machine) -> dict[str, str]:
    """Kernel names by mount: one disk's cache is off, and one lies below a file system without barriers."""
    known = {serial: disk["name"] for serial, disk in truth.read(machine)["disks"].items()}
    names = {target: known[serial] for target, serial in SERIALS.items()}
    switch = f"tee /sys/block/{names['/srv/uncached']}/device/scsi_disk/*/cache_type"
    machine.run(["sh", "-c", f"echo write through | {switch}; mount -o remount,barrier=0 /srv/small"])
    return names


@pytest.fixture(scope="module")
def proved(machine: Machine, playbooks: Playbooks, disks: dict[str, str]) -> Proved:
    return Proved(machine, playbooks)


@pytest.mark.fact(14)
@pytest.mark.fact(17)
@pytest.mark.parametrize("target", EXPECTED)
def test_each_commit_is_what_the_disk_makes_of_it(proved: Proved, disks: dict[str, str], target: str) -> None:
    for pattern, (found, flushes, fua) in zip(LIMITS["patterns"], EXPECTED[target], strict=True):
        row = proved.rows[target, pattern]
        counted = {name: round(share) for name, share in row["flushes_per_commit"].items()}
        assert (row["found"], row["commits"], row["fua_unknown"]) == (found, COMMITS, None), row
        assert counted == {disks[target]: flushes}, row
        assert {name: round(share) for name, share in row["fua_per_commit"].items()} == {disks[target]: fua}


def test_neither_is_all_right_without_a_cache_and_fails_the_host_without_barriers(proved: Proved) -> None:
    safety = {(target, row["safety"]) for (target, _pattern), row in proved.rows.items()}
    assert safety == {(target, "at_risk" if target == "/srv/small" else "ok") for target in EXPECTED}
    assert proved.run.code == 2
    assert "measure: /srv/small: the kernel would flush" in proved.run.output
    assert proved.run.recap["measure"]["changed"] == 0


@pytest.mark.parametrize("target", ["/srv/fua", "/srv/fuaxfs", "/srv/flush", "/srv/virtio"])
def test_the_disk_was_told_as_often_as_the_kernel_says(proved: Proved, target: str) -> None:
    rows = [row for (mount, _pattern), row in proved.rows.items() if mount == target]
    told = sum(
        row["commits"] * share
        for row in rows
        for each in (row["flushes_per_commit"], row["fua_per_commit"])
        for share in each.values()
    )
    assert proved.flushed[target] >= round(told) >= COMMITS


def test_nothing_is_left_behind(proved: Proved) -> None:
    assert proved.after == proved.before
    assert "durable-scratch" not in proved.after
    assert "enable:1" not in proved.after


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "expected -e durable_confirm=prove-fua"),
        (("-e", "durable_confirm=benchmark"), "expected -e durable_confirm=prove-fua"),
        (("-e", CONFIRM, "--check"), "cannot be taken in check mode"),
    ],
    ids=["no word", "another's word", "check mode"],
)
def test_the_machine_is_not_even_asked(
    machine: Machine, playbooks: Playbooks, options: tuple[str, ...], said: str
) -> None:
    executions = Executions(machine)
    run = playbooks.run("prove-fua", *options)
    assert run.code == 2
    assert said in " ".join(run.output.split())
    assert executions.count() == 0


def test_what_cannot_be_measured_is_refused_and_what_cannot_be_counted_is_unknown(
    machine: Machine, playbooks: Playbooks, disks: dict[str, str]
) -> None:
    hosts = {
        "small": {"durable_mounts": ["/srv/small"], "durable_prove_fua": {"size": 32}},
        "elsewhere": {"durable_mounts": ["/srv/elsewhere"]},
        "traced": {"durable_mounts": ["/srv/fua"], "durable_prove_fua": TRACED},
    }
    names = {name: {**connection(machine), **variables} for name, variables in hosts.items()}
    aliases = inventory(playbooks.directory / "aliases.yml", {"refused": {"hosts": names}})
    playbooks.inventories.append(aliases)
    trace = f"blktrace -d /dev/{disks['/srv/fua']} -a read -o - > /dev/null"
    machine.run(["systemd-run", "--collect", "--unit=another-trace", "sh", "-c", f"exec {trace}"])
    try:
        traced = f"grep -q 1 /sys/block/{disks['/srv/fua']}/trace/enable"
        machine.run(["sh", "-c", f"until {traced}; do sleep 0.2; done; sleep 2"])
        before = manifest(machine)
        run = playbooks.run("prove-fua", "-e", CONFIRM, "-e", "durable_hosts=refused")
        assert manifest(machine) == before
    finally:
        machine.run(["systemctl", "stop", "another-trace"])
        playbooks.inventories.remove(aliases)
    said = " ".join(run.output.split())
    assert {host: counts["failed"] for host, counts in run.recap.items()} == {
        **dict.fromkeys(hosts, 1),
        "traced": 0,
    }
    assert "/srv/small: observed" in said
    assert "expected 128 MiB for a scratch file of 32 MiB" in said
    assert "observed /srv/elsewhere: nothing is mounted there" in said
    rows = {row["pattern"]: row for row in run.reports["prove-fua-traced"]["rows"]}
    assert {name: row["found"] for name, row in rows.items()} == {
        "direct_dsync": "unknown",
        "direct_fdatasync": "flush",
    }
    assert "another process traces this disk already" in rows["direct_dsync"]["why"]
