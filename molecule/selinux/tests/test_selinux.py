# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's SELinux policy, enforced: each file has the label of its place, and nothing of ours is denied.

What the policy denies at a boot without us is of the distribution, and is taken off. The tests stand in an order.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from support import truth
from support.attested import UPS_CLAIMS, attested
from support.devices import sh
from support.lost import await_fired, lose
from support.runs import Playbooks

from lab.machine import Machine

#: Who was denied what, on what: of a line of the kernel's.
_DENIED = re.compile(
    r'avc: +denied +\{ ([^}]*) \} .*comm="([^"]*)".*scontext=\w+:\w+:(\w+):\S* tcontext=\w+:\w+:(\w+)'
)
#: All that is of ours, and what we write to of others.
OURS = "find /etc /usr/local /var/lib /run -path '*durable*' -not -path '*/originals*' ; echo /etc/fstab"
#: What the policy denies where a guard is: the guard gives up new privileges, so that what it runs stays in its domain; its
#: fifo has the label of what services write, so that it hears of an event when it asks the monitor itself; and NUT's message
#: to all terminals, which is NUT's own.
EXPECTED = {
    ("nnp_transition", "python3", "initrc_t", "mount_t"),
    ("search", "ups-notify", "nut_upsmon_t", "initrc_runtime_t"),
    ("read", "wall", "nut_upsmon_t", "initrc_runtime_t"),
}
#: What is the monitor's, and written to.
MONITORS = "/etc/nut/upsmon.conf /etc/nut/nut.conf"
GUARD = "durable-dbhost-guard.service"
#: The profile of a host with a UPS, with the shortest times that may be asked for, for the mount whose barriers can go.
UPS: dict[str, Any] = {
    "durable_profile": "ups",
    "durable_mounts": ["/srv/pgdata"],
    "durable_ups": {"quiet": 10, "margin": 30, "host_sync": 10},
    "durable_attestations": [attested(claim) for claim in UPS_CLAIMS],
}


def denials(machine: Machine, *options: str) -> set[tuple[str, ...]]:
    """Return what was denied in this boot: permissions, program, its domain, and the label of what it wanted."""
    told = machine.run(["journalctl", "--boot", "--no-pager", "--dmesg", "--output=cat", *options]).stdout
    return {found.groups() for line in told.splitlines() if (found := _DENIED.search(line))}


@pytest.fixture(scope="module")
def noise(machine: Machine) -> set[tuple[str, ...]]:
    """What the policy denied before we came: until the first module of Ansible's in the first boot's journal."""
    first = machine.run(
        ["journalctl", "--boot", "--no-pager", "--output=short-unix", "--grep=^Invoked"]
    ).stdout
    return denials(machine, f"--until=@{int(float(first.split()[0]))}")


def assert_nothing_is_denied(machine: Machine, noise: set[tuple[str, ...]]) -> None:
    """Require that the policy is enforced, and that none is denied anything but those who were before we came, and EXPECTED."""
    assert sh(machine, "getenforce").strip() == "Enforcing"
    programs = {(program, domain) for _permissions, program, domain, _label in noise}
    found = {denial for denial in denials(machine) if denial[1:3] not in programs}
    assert found - EXPECTED == set()


def unlike_their_places(machine: Machine, paths: list[str]) -> list[str]:
    """Return what the policy says of the paths whose label is not the one of their place."""
    told = machine.run(["matchpathcon", "-V", *paths], check=False).stdout
    # Of what lies below /run and goes with the boot it knows no label.
    return [line for line in told.splitlines() if not line.endswith((" verified.", " <<none>>"))]


def await_output(machine: Machine, script: str, wanted: str) -> None:
    """Wait until a script has this in its output."""
    end = time.monotonic() + 120
    while wanted not in (seen := sh(machine, script)):
        assert time.monotonic() < end, f"{wanted!r} is not in what {script} prints: {seen}"
        time.sleep(1)


def test_what_a_run_wrote_has_the_label_of_its_place(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    assert playbooks.run("harden-db").recap["selinux"]["changed"] == 0  # converge was the run
    paths = sh(machine, OURS).split()
    assert "/etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules" in paths
    assert unlike_their_places(machine, paths) == []
    assert_nothing_is_denied(machine, noise)


def test_a_host_that_watches_itself(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    assert playbooks.run("watch_db").code == 0
    service = "durable-dbhost-watch.service"
    sh(machine, f"systemctl start {service}")
    assert sh(machine, f"systemctl show --property=ExecMainStatus --value {service}").strip() == "0"
    assert_nothing_is_denied(machine, noise)


def test_a_machine_that_boots_under_the_policy_is_at_its_profile(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    machine.cut()
    machine.boot()
    disks = truth.read(machine)["disks"]
    assert {disk["cache"] for disk in disks.values()} == {"off"}
    assert playbooks.run("harden-db", "--check").code == 0
    assert_nothing_is_denied(machine, noise)


def test_the_switch_puts_a_lost_machine_back(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    before = sh(machine, "cat /etc/fstab; ls -Z /etc/fstab")
    lose(machine, playbooks, "true")
    await_fired(machine)
    assert sh(machine, "cat /etc/fstab; ls -Z /etc/fstab") == before
    assert playbooks.run("harden-db").code == 0
    assert_nothing_is_denied(machine, noise)


def test_a_guard_takes_barriers_away_while_the_power_is_there(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    labels = sh(machine, f"ls -Z {MONITORS}")
    assert playbooks.run("harden-db", variables=UPS).code == 0
    options = "cat /proc/fs/ext4/$(basename $(findmnt -no SOURCE /srv/pgdata))/options"
    await_output(machine, options, "nobarrier")
    paths = sh(machine, OURS).split()
    assert {"/usr/local/lib/durable-dbhost/bin/ups-notify", f"/etc/systemd/system/{GUARD}"} < set(paths)
    assert unlike_their_places(machine, paths) == []
    assert sh(machine, f"ls -Z {MONITORS}") == labels

    sh(machine, "sleep 1.1; lab-ups 'OB DISCHRG' 3600")
    await_output(machine, options, "\nbarrier\n")
    # The hook has run the command that was there before it.
    await_output(machine, "journalctl --boot --no-pager --output=cat --identifier=lab-notify", "ONBATT")
    sh(machine, "sleep 1.1; lab-ups OL 3600")
    await_output(machine, options, "nobarrier")
    assert_nothing_is_denied(machine, noise)


def test_release_leaves_the_labels_of_before(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    assert playbooks.run("release_db").code == 0
    left = sh(machine, OURS).split()
    print(left)
    assert [path for path in left if not path.startswith("/run")] == ["/etc/fstab"]
    assert "etc_t" in sh(machine, "ls -Z /etc/fstab")
    assert unlike_their_places(machine, MONITORS.split()) == []
    assert_nothing_is_denied(machine, noise)
