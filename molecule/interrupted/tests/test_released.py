# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After release and a boot the host is what it was before the first run, whatever lay between: /etc, units, live state.

On a machine of its own, which nothing of ours has touched before. DBHOST_LAB_WHOLE=1 tries every profile without a UPS (the
scenario `power` has one), a run that dies at more places, and one of an earlier version; else one that dies halfway.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.kill_points import Deaths
from support.layout import TARGETS, id_of
from support.lost import lose
from support.runs import ROOT, Playbooks
from support.whole import IS_WHOLE

from lab.layout import load
from lab.machine import Machine

NAME = "released"
HOSTS = ROOT / "molecule/interrupted/inventory/hosts.yml"
#: Of some 35 changes: before systemd is told of fstab; in a trial of options, before fstab, among caches, rules and units.
HALFWAY, OTHERS = 14, (10, 13, 21, 32, 33)
#: The collection as it was before its folders were re-cut and hosts were looked at once.
EARLIER = "35339196625fb6db8dbbe2ced5ec07bbb7b917d3"
#: Disks by their serials: which one is called sda may be another at each boot.
_SNAPSHOT = r"""
cd /
# In the first seconds after a boot, a busy machine answers later than systemctl waits by itself.
export SYSTEMD_BUS_TIMEOUT=300
find etc usr/local run/durable-dbhost var/lib/durable-dbhost var/lib/systemd/timers run/systemd/system run/udev/rules.d \
    ! -type d -printf '%p %y %m %u:%g %l\n' 2> /dev/null | sort
find etc usr/local -type f -print0 | sort -z | xargs -0 sha256sum
find / -xdev -name '*durable*' -not -path '/root/*' -not -path '/proc/*' -not -path '/tmp/*'
systemctl list-unit-files --no-legend | sort
systemctl list-units --all --no-legend --plain '*durable*'
findmnt --noheadings --raw --types ext4,xfs --output TARGET | sort | while read -r target; do
    findmnt --noheadings --raw --output TARGET,UUID,FSTYPE,OPTIONS "$target"
    dumpe2fs -h "$(findmnt --noheadings --output SOURCE "$target")" 2> /dev/null | grep 'Default mount options'
done
lsblk --nodeps --noheadings --raw --output SERIAL,NAME | sort | while read -r serial name; do
    cd "/sys/block/$name" || exit
    echo "$serial"
    grep -s . queue/scheduler queue/read_ahead_kb queue/write_cache cache_type device/scsi_disk/*/cache_type || true
done
"""


@pytest.fixture(scope="module")
def pristine() -> Iterator[Machine]:
    """A machine as it was installed, kept as `first`."""
    found = Machine(NAME)
    found.down()
    try:
        found.up(load(ROOT / "lab/layouts/default.yml"), os.environ.get("DBHOST_LAB_RELEASE", "bookworm"))
        found.save("first")
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def before(pristine: Machine) -> str:
    """What it is once it has booted."""
    pristine.load("first")
    return snapshot(pristine)


@pytest.fixture
def first(pristine: Machine, before: str) -> Machine:
    """The machine as it was installed."""
    pristine.load("first")
    return pristine


@pytest.fixture
def plays(pristine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks; what the scenario's inventory says is said of this machine too."""
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(f"databases:\n  hosts:\n    {NAME}:\n")
    inventories = [pristine.inventory, HOSTS, hosts]
    return Playbooks(inventories, tmp_path, {}, limit=NAME)


def snapshot(machine: Machine) -> str:
    """Return all that a run could have changed."""
    return str(machine.run(["sh", "-c", _SNAPSHOT]).stdout)


def died(machine: Machine, plays: Playbooks, number: int) -> None:
    """Let a run die before one of its changes."""
    deaths = Deaths(machine, TARGETS, plays.directory)
    deaths.install(("strict",), {serial: id_of(serial) for serial in TARGETS.values()})
    assert "killed_before" in deaths.enforce("strict", number)


def reached(machine: Machine, plays: Playbooks, profile: str) -> None:
    """Bring it to a profile; that a boot is pending is no failure here."""
    variables = {"durable_profile": profile, "durable_accept_data_loss": True, "durable_fail_on": []}
    report = plays.run("harden-db", variables=variables).reports[NAME]
    assert (report["error"], report["profile"]) == (None, profile)
    assert report["changes"]


def lost(machine: Machine, plays: Playbooks) -> None:
    """Lose a run; the rollback timer has not put back what that run found."""
    reached(machine, plays, "strict")
    lose(machine, plays, "true")
    # What lost it was in the inventory.
    plays.inventories.pop()


def ran_earlier(machine: Machine, plays: Playbooks) -> None:
    """Run an earlier version."""
    reached(machine, replace(plays, collection=unpacked(plays.directory / "earlier")), "strict")


def upgraded(machine: Machine, plays: Playbooks) -> None:
    """Run an earlier version, and then this one."""
    ran_earlier(machine, plays)
    reached(machine, plays, "disposable")


def unpacked(target: Path) -> Path:
    """Return a checkout of the earlier version, which finds itself as a collection."""
    target.mkdir()
    tar = subprocess.run(["git", "-C", str(ROOT), "archive", EARLIER], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=tar.stdout, check=True)
    link = target / "playbooks/collections/ansible_collections/durable/dbhost"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return target


HALF = f"a run that died before its change {HALFWAY}"
EVERYTHING: dict[str, Callable[[Machine, Playbooks], None]] = {
    HALF: partial(died, number=HALFWAY),
    **{f"a run that died before its change {number}": partial(died, number=number) for number in OTHERS},
    **{name: partial(reached, profile=name) for name in ("strict", "flush", "protected", "disposable")},
    "a run that was lost": lost,
    "a run of an earlier version": ran_earlier,
    "one of an earlier version and one of this": upgraded,
}
BEFORE = EVERYTHING if IS_WHOLE else {HALF: EVERYTHING[HALF]}


@pytest.mark.parametrize("what", BEFORE)
def test_release_and_a_boot_bring_back_what_was_there(
    first: Machine, plays: Playbooks, before: str, what: str
) -> None:
    BEFORE[what](first, plays)
    assert "durable" in snapshot(first)
    assert plays.run("release_db").code == 0
    first.power_off()
    first.boot()
    after = snapshot(first)
    assert list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)) == []
