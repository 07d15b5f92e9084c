# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wherever a run ends that nobody comes back from, the rollback timer makes the next boot the one that the run found, and
what runs at least as safe.

The runs of `default`'s kill test (and its stand-ins, for the facts of a UPS), with the switch armed before: they die before
each change of the layers, and once not at all. What the switch does when it has waited is done at once. DBHOST_LAB_WHOLE=1 goes
the ways between all ordered pairs of the shipped profiles, on the first before each change of the arming too; else one, on which
all is loosened that can be.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from support.kill_points import Deaths
from support.layout import TARGETS, id_of
from support.whole import IS_WHOLE

from lab.machine import Machine

PROFILES = ("strict", "disposable", "flush", "protected", "ups") if IS_WHOLE else ("strict", "disposable")
WAYS = list(permutations(PROFILES, 2)) if IS_WHOLE else [PROFILES]
#: SCSI below ext4 and virtio below XFS: between them every sort of step there is.
MANAGED = {target: TARGETS[target] for target in ("/srv/pgdata", "/srv/faircom")}
JOURNAL = "write /etc/durable-dbhost/undo/journal.json"
#: So many changes arm the switch.
LAST_OF_ARMING = 8
#: Pairs that differ in nothing that is on a host.
ALIKE = {frozenset({"flush", "protected"})}
#: The guard's: a run that took it away has made the host safer, and so it stays.
GUARDS = ("/guard", "-guard.", "/ups-notify")
#: That a cache holds what nobody has flushed: true from the start where nothing is ever flushed, and gone with the boot.
OWED = ("/flush-owed/",)


@pytest.fixture(scope="module")
def deaths(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    """The harness on the machine, which has learned what it is at each profile."""
    machine.load("strict")
    found = Deaths(machine, MANAGED, tmp_path_factory.mktemp("undone"))
    found.install(PROFILES, {serial: id_of(serial) for serial in MANAGED.values()})
    found.enforce("disposable")
    return found


@pytest.fixture(scope="module")
def states(deaths: Deaths) -> dict[str, set[str]]:
    """The machine's weaknesses at each profile; at `ups`, while the guard has barriers off."""
    return {profile: deaths.weaknesses(told["truth"]) for profile, told in deaths.learn(PROFILES).items()}


@pytest.fixture(scope="module")
def counted() -> dict[tuple[str, ...], int]:
    """From how many places the switch has put the machine back, on each way."""
    return {}


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_the_switch_takes_the_machine_back_from_any_step(
    deaths: Deaths, states: dict[str, set[str]], counted: dict[tuple[str, ...], int], way: tuple[str, ...]
) -> None:
    start, goal = way
    # The arming is the same on each way.
    first = 1 if IS_WHOLE and not counted else LAST_OF_ARMING + 1
    *points, end = deaths.undone(start, goal, first)
    counted[way] = len(points) + 1
    print(f"{start} -> {goal}: put back after {len(points)} deaths, and after the end")
    for point in (*points, end):
        print(
            f"  {point['number']:>2} {point['seconds']:>5} s  {point.get('killed_before', 'came to its end')}"
        )
        left = OWED if start == "disposable" else GUARDS if start == "ups" else ()
        differs = [path for path in point["differs"] if not any(name in path for name in left)]
        assert (point["code"], differs) == (0, []), point["said"]
        assert deaths.weaknesses(point["truth"]) <= states[start]
        # Before its journal is there the run has changed nothing but the switch's own files.
        assert (point["state"] == "fired") == (JOURNAL in point["made"])
    assert end["state"] == "fired"
    assert end["ended"]["made"][LAST_OF_ARMING - 1].startswith("systemctl restart")
    assert len(points) == len(end["ended"]["made"]) - first + 1
    assert frozenset(way) in ALIKE or points


def test_no_way_was_left_out(counted: dict[tuple[str, ...], int]) -> None:
    print(f"put back from {sum(counted.values())} places on {len(counted)} ways")
    assert list(counted) == WAYS
