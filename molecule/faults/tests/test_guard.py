# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard of a UPS on a host with a fault: its disk fails or hangs while it turns barriers on; the battery is low in a run.

On a machine of its own, of layout `power`. What a power cut then loses is tested in scenario `power`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fault_runs import GOOD
from support.faults import GUARDED, LOW_BATTERY, GuardFault
from support.runs import ROOT, Playbooks, before_call
from support.site import FLUSHED, GUARD, LIMIT, LOW, MOUNT, PLENTY
from support.whole import whole_only

from lab.layout import load
from lab.machine import Machine

NAME = "faults-ups"
HOSTS = ROOT / "molecule/power/inventory/hosts.yml"
SERIAL = "SCSI0001"

pytestmark = whole_only("a machine with engines and a UPS: make scenario NAME=faults")


def sh(machine: Machine, script: str) -> str:
    """Return what a script prints that must succeed."""
    return machine.run(["sh", "-eu"], input=script, timeout=300.0).stdout.strip()


def until(machine: Machine, condition: str) -> None:
    """Wait until a condition of the shell holds."""
    sh(machine, f"for n in $(seq {LIMIT:.0f}); do if {condition}; then exit 0; fi; sleep 1; done; exit 1")


_LOOSE = f'grep -qx nobarrier "/proc/fs/ext4/$(basename "$(findmnt -no SOURCE {MOUNT})")/options"'


@pytest.fixture(scope="module")
def ups_host() -> Iterator[Machine]:
    """A machine with databases behind a UPS."""
    found = Machine(NAME)
    found.down()
    try:
        found.up(load(ROOT / "lab/layouts/power.yml"))
        yield found
    finally:
        found.down()


@pytest.fixture
def plays(ups_host: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the inventory of scenario `power` for this machine."""
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(f"databases:\n  hosts:\n    {NAME}:\n")
    return Playbooks([ups_host.inventory, HOSTS, hosts], tmp_path, {}, limit=NAME)


def ups(machine: Machine, status: str, runtime: int = PLENTY) -> None:
    """Have the UPS report a status. The driver would miss two within one second."""
    sh(machine, f"sleep 1.1; lab-ups '{status}' {runtime}")


def loosened(machine: Machine, plays: Playbooks) -> None:
    """Bring the host to the profile, with barriers turned off by its guard."""
    ups(machine, "OL")
    run = plays.run("harden-db")
    assert (run.code, run.reports[NAME]["verdict"]) == (0, "attested")
    until(machine, _LOOSE)


@pytest.mark.parametrize("fault", GUARDED, ids=lambda fault: fault.name)
def test_a_guard_that_meets_a_fault_turns_barriers_on_and_reports_what_it_could_not_flush(
    ups_host: Machine, plays: Playbooks, results: dict[str, tuple[str, ...]], fault: GuardFault
) -> None:
    loosened(ups_host, plays)
    began = sh(ups_host, "date +@%s")
    for serial, operation, effect in fault.disk:
        ups_host.set_fault(serial, operation, effect)
    lift = threading.Timer(fault.lifted, lambda: lift_all(ups_host, fault))
    if fault.lifted:
        lift.start()
    try:
        ups(ups_host, fault.event)
        until(ups_host, f"! {_LOOSE}")
        if not fault.disk or fault.lifted:
            said = f"journalctl --no-pager --output=cat --since={began} _SYSTEMD_UNIT={GUARD}"
            until(ups_host, f"{said} | grep -q '{FLUSHED}'")
        check = plays.run("harden-db", "--check")
        said = sh(ups_host, f"journalctl --no-pager --output=cat --since={began} _SYSTEMD_UNIT={GUARD}")
    finally:
        lift.cancel()
        lift_all(ups_host, fault)
    report = check.reports[NAME]
    print(check.code, report["verdict"], report["why"], said)
    assert (check.code, report["verdict"] in fault.verdicts) == (fault.code, True)
    assert re.search(fault.says, f"{check.details}{said}")
    if fault.disk and not fault.lifted:
        assert report["verdict"] not in GOOD
        # Its file system may have met the error too.
        ups_host.reset()
    loosened(ups_host, plays)
    results[fault.name] = (
        f"{check.code}, `{report['verdict']}` (a check)",
        "barriers on",
        "0, `attested`",
    )


def lift_all(machine: Machine, fault: GuardFault) -> None:
    """Take the faults of disks away."""
    for serial, operation, _effect in fault.disk:
        machine.set_fault(serial, operation, "none")


def test_a_low_battery_during_a_run_shuts_down_with_barriers_on(
    ups_host: Machine, plays: Playbooks, results: dict[str, tuple[str, ...]]
) -> None:
    loosened(ups_host, plays)
    boot = sh(ups_host, "cat /proc/sys/kernel/random/boot_id").replace("-", "")
    ssh = f"ssh -F {ups_host.ssh_config} {NAME}"
    before_call(plays, NAME, 2, f"{ssh} \"sleep 1.1; lab-ups 'OB DISCHRG' {LOW}\" < /dev/null >&2")
    run = plays.run("harden-db", variables={"durable_profile": "strict"})
    plays.inventories.pop()
    report = run.reports.get(NAME, {})
    deadline = time.monotonic() + 2 * LIMIT
    while ups_host.running:
        assert time.monotonic() < deadline, "it does not power off"
        time.sleep(1)
    ups_host.stop()
    ups_host.boot()
    said = sh(ups_host, f"journalctl --no-pager --output=cat _BOOT_ID={boot} _SYSTEMD_UNIT={GUARD}")
    print(run.code, report.get("verdict"), said)
    last = [line for line in said.splitlines() if "barriers are" in line][-1]
    assert "barriers are on" in last
    assert FLUSHED in said.rpartition("barriers are on")[2]
    loosened(ups_host, plays)
    results[LOW_BATTERY] = (
        f"{run.code}, `{report.get('verdict')}`",
        "shut down, barriers on and flushed",
        "0, `attested`",
    )
