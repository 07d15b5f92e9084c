# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's SELinux policy, enforced: each file has the label of its place, and nothing of ours is denied.

What the policy denies at a boot without us is of the distribution, and is taken off. Not part of it: a UPS, and so the guard.
The tests stand in an order.
"""

from __future__ import annotations

import re

import pytest
from support import truth
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
    """Require that the policy is enforced, and that no program is denied anything but those which were before we came."""
    assert sh(machine, "getenforce").strip() == "Enforcing"
    programs = {(program, domain) for _permissions, program, domain, _label in noise}
    found = {denial for denial in denials(machine) if denial[1:3] not in programs}
    assert found == set()


def test_what_a_run_wrote_has_the_label_of_its_place(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    assert playbooks.run("harden-db").recap["selinux"]["changed"] == 0  # converge was the run
    paths = sh(machine, OURS).split()
    assert "/etc/udev/rules.d/99-durable-dbhost-write-cache.rules" in paths
    told = machine.run(["matchpathcon", "-V", *paths], check=False).stdout
    # Of what lies below /run and goes with the boot it knows no label.
    unlike = [line for line in told.splitlines() if not line.endswith((" verified.", " <<none>>"))]
    assert unlike == []
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


def test_release_leaves_the_labels_of_before(
    machine: Machine, playbooks: Playbooks, noise: set[tuple[str, ...]]
) -> None:
    assert playbooks.run("release_db").code == 0
    left = sh(machine, OURS).split()
    print(left)
    assert [path for path in left if not path.startswith("/run")] == ["/etc/fstab"]
    assert "etc_t" in sh(machine, "ls -Z /etc/fstab")
    assert_nothing_is_denied(machine, noise)
