# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollback timer: a host that a run has lost is reachable again within its limit, as it was; one that the run comes
back to keeps what was changed, and nothing of the switch."""

from __future__ import annotations

import time

from support import truth
from support.layout import TARGETS
from support.lost import LIMIT, LOOSE, await_fired, lose
from support.runs import Executions, Playbooks

from lab.machine import Machine

_LEFT = "find /etc/durable-dbhost /etc/systemd/system -name '*undo*' ; systemctl list-units --all --no-legend '*dbhost-undo*'"
_FILES = "cat /etc/fstab /etc/udev/rules.d/*durable-dbhost* /var/lib/durable-dbhost/originals.json; ls /etc/systemd/system"


#: Stands in for a kernel that refuses what a run has written: mount(8) asks it in place of the kernel.
_HELPER = "/sbin/mount.ext4"
_REFUSES = """#!/bin/sh
case "$*" in *barrier=0*) exit 32 ;; esac
exec mount -i -t ext4 "$@"
"""


def shell(machine: Machine, script: str) -> str:
    """Return what a shell says."""
    return str(machine.run(["sh", "-c", script]).stdout)


def files(machine: Machine) -> str:
    """Return what a boot reads."""
    return shell(machine, _FILES)


def assert_as_it_was(machine: Machine, before: str) -> None:
    """Require the files of before, no weakness of the looser profile, and nothing of the switch but what it says."""
    assert files(machine) == before
    left = truth.weaknesses(truth.read(machine), TARGETS)
    # The kernel keeps data= until the next mount.
    assert {weakness for weakness in left if not weakness.endswith(" writeback")} == set()
    assert shell(machine, f"{_LEFT}; ls /etc/durable-dbhost/undo").split() == [
        "/etc/durable-dbhost/undo",
        "fired.json",
    ]
    assert "put_back" in shell(machine, "cat /etc/durable-dbhost/undo/fired.json")


def test_disarmed_it_leaves_nothing_and_keeps_what_was_changed(strict: Machine, playbooks: Playbooks) -> None:
    executions = Executions(strict)
    run = playbooks.run("harden-db", variables=LOOSE)
    report = run.reports[strict.name]
    assert (report["error"], report["switch"]) == (None, "none")
    assert executions.count() == 3
    assert shell(strict, _LEFT).split() == []
    time.sleep(LIMIT + 10)
    assert truth.weaknesses(truth.read(strict), TARGETS)


def test_a_host_whose_sshd_is_stopped_in_the_middle_goes_back(strict: Machine, playbooks: Playbooks) -> None:
    before = files(strict)
    # Whatever stopped it is over later than the limit.
    later = f"systemd-run --on-active={LIMIT + 20} systemctl start ssh"
    lose(
        strict,
        playbooks,
        f"ssh -F {strict.ssh_config} {strict.name} '{later}; systemctl stop ssh.socket ssh'",
    )
    await_fired(strict)
    assert_as_it_was(strict, before)
    told = playbooks.run("harden-db", "--check").reports[strict.name]
    assert told["switch"] == "fired"
    assert any("has restored this host" in note for note in told["warnings"])


def test_a_host_that_boots_in_the_middle_goes_back(strict: Machine, playbooks: Playbooks) -> None:
    before = files(strict)
    lose(strict, playbooks, "true")
    strict.cut()
    strict.boot()
    assert "barrier=0" in files(strict)
    await_fired(strict)
    assert_as_it_was(strict, before)
    strict.reboot()
    assert truth.weaknesses(truth.read(strict), TARGETS) == set()


def test_a_host_in_emergency_mode_goes_back_and_boots_on(strict: Machine, playbooks: Playbooks) -> None:
    before = files(strict)
    lose(strict, playbooks, "true")
    strict.run(["systemctl", "--no-block", "isolate", "emergency.target"], check=False)
    await_fired(strict)
    assert_as_it_was(strict, before)
    assert shell(strict, "systemctl is-active ssh").strip() == "active"


def test_a_boot_that_fails_at_what_the_run_wrote_goes_back_and_boots_on(
    strict: Machine, playbooks: Playbooks
) -> None:
    before = files(strict)
    lose(strict, playbooks, "true")
    shell(strict, f"cat > {_HELPER} <<'END'\n{_REFUSES}END\nchmod 755 {_HELPER}; sync")
    strict.cut()
    strict.boot()
    await_fired(strict)
    assert "emergency.target" in shell(strict, "journalctl --boot --output cat UNIT=emergency.target; true")
    assert_as_it_was(strict, before)


def test_a_run_that_was_killed_is_taken_up_by_the_next(strict: Machine, playbooks: Playbooks) -> None:
    lose(strict, playbooks, "true")
    playbooks.inventories.pop()
    report = playbooks.run("harden-db", variables=LOOSE).reports[strict.name]
    assert (report["error"], report["switch"]) == (None, "none")
    assert shell(strict, _LEFT).split() == []
