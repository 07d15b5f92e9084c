# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed before any single change, on the way from any profile to any other, a machine is at
least as safe as the weaker of where it came from and where it goes.

Two mounts with profiles of their own change sides as well: one tightens while the other loosens.

`make scenario NAME=default` goes between all ordered pairs of the five shipped profiles (of three of them where the processor
is emulated); `make test` goes two of these ways (DBHOST_LAB_WHOLE=1 goes all there too). One run goes each way and
dies before each change, and its copy goes on (support/kill_harness.py); one more goes through without a stop.
Policy, layers, kernel, disks and the guard's files, unit, lease and end are real. Stand-ins, in
support/kill_points.py and support/kill_state.py: the facts of a UPS that is well (there is none), and at the start of
each way from `ups` the process of a guard that has barriers off; on the way to `ups` the real guard begins, finds no
UPS, and leaves them on. That it takes them off, and what it does at each event of a UPS, is scenario `power`. Not
part of it: steps of engines (there are none here) and of the UPS monitor's configuration.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from support.kill_points import SIDES, Deaths, Way
from support.layout import TARGETS, id_of
from support.whole import IS_WHOLE

from lab.machine import Machine

PROFILES = ("strict", "flush", "protected", "ups", "disposable")
#: SCSI below ext4 and virtio below XFS: between them every sort of step there is.
MANAGED = {target: TARGETS[target] for target in ("/srv/pgdata", "/srv/faircom")}
#: Pairs that differ in nothing that is on a host: they are told apart by what they rest on.
ALIKE = {frozenset({"flush", "protected"})}
#: Where the processor is emulated a way takes four minutes: these then, which touch every disk, mount and file.
SHORT = ("strict", "flush", "disposable")
#: Between the strictest and the loosest, there and back.
SAMPLE = list(permutations(("strict", "disposable")))
WAYS = list(permutations(PROFILES, 2)) if IS_WHOLE else SAMPLE
#: Fewer deaths than this on so many ways, and the harness has lost some.
LEAST = {20: 190, 6: 60, 4: 40, 2: 20}
#: data= waits for a mount where these are left or reached.
REMOUNTED = {"disposable"}


@pytest.fixture(scope="module")
def deaths(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    """The harness on the machine."""
    found = Deaths(machine, MANAGED, tmp_path_factory.mktemp("kill"))
    found.install((*PROFILES, *SIDES), {serial: id_of(serial) for serial in MANAGED.values()})
    return found


@pytest.fixture(scope="module")
def learned(deaths: Deaths) -> dict[str, dict[str, Any]]:
    """What the machine is at each profile.

    One with other words in fstab comes before: a line keeps those for barriers and data= that any profile gave it.
    """
    deaths.enforce("disposable")
    return deaths.learn((*PROFILES, *SIDES))


@pytest.fixture(scope="module")
def states(deaths: Deaths, learned: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """The machine's weaknesses at each profile; at `ups`, while the guard has barriers off."""
    return {profile: deaths.weaknesses(told["truth"]) for profile, told in learned.items()}


@pytest.fixture(scope="module")
def ways() -> dict[tuple[str, str], Way]:
    """The ways that were gone, by their ends."""
    return {}


def test_each_profile_is_reached_without_a_refusal(learned: dict[str, dict[str, Any]]) -> None:
    for profile, told in learned.items():
        first, second = told["first"]["ended"], told["second"]
        assert first["changes"] == second["changes"] == second["pending"] == []
        assert second["verdict"] == ("accepted_loss" if profile == "disposable" else "attested")


def test_the_profiles_differ_as_much_as_they_should(states: dict[str, set[str]]) -> None:
    assert states["strict"] == set()
    assert any("caches" in weakness for weakness in states["flush"])
    assert not any("barriers" in weakness for weakness in states["flush"])
    assert states["protected"] == states["flush"]
    assert "/srv/pgdata without barriers over a cache" in states["ups"]
    assert "a guard may take barriers away" in states["ups"]
    assert not any("at boot" in weakness and "barriers" in weakness for weakness in states["ups"])
    assert "/srv/pgdata without barriers and without a guard" not in states["ups"]
    assert "/srv/pgdata without barriers and without a guard" in states["disposable"]
    assert "/srv/pgdata without barriers over a cache" in states["disposable"]
    assert "/srv/pgdata writeback" in states["disposable"]


@pytest.mark.parametrize(("start", "goal"), WAYS)
def test_killed_at_any_step_it_is_as_safe_as_the_weaker_end(
    deaths: Deaths,
    states: dict[str, set[str]],
    ways: dict[tuple[str, str], Way],
    start: str,
    goal: str,
) -> None:
    if deaths.machine.is_emulated and not {start, goal} <= set(SHORT):
        pytest.skip(f"emulated processor: only the ways between {', '.join(SHORT)} are gone")
    way = ways[start, goal] = deaths.way(start, goal)
    print(f"{start} -> {goal}: {len(way.points)} deaths")
    allowed = states[start] | states[goal]
    for point in (*way.points, way.end):
        print(
            f"  {point['number']:>2} {point['seconds']:>5} s  {point.get('killed_before', 'came to its end')}"
        )
        seen = deaths.weaknesses(point["truth"])
        assert seen <= allowed, f"{point.get('killed_before')}: {sorted(seen - allowed)}"
        assert mixed(seen, states[start], states[goal]) == []
        assert unflushed(point, start) == []
    for number, point in enumerate(way.points):
        assert (point["number"], len(point["made"])) == (number + 1, number)
    ended = way.end["ended"]
    assert [point["killed_before"] for point in way.points] == ended["made"]
    assert bool(way.points) == (frozenset({start, goal}) not in ALIKE)
    assert ended["changes"] == []
    assert [(row["target"], row["setting"]) for row in ended["pending"]] == (
        [("/srv/pgdata", "data_mode")] if {start, goal} & REMOUNTED else []
    )
    assert_arrived(deaths, way, states, goal)


def test_two_mounts_that_change_sides_are_at_no_death_less_safe_than_either_end(
    deaths: Deaths, states: dict[str, set[str]]
) -> None:
    """While the one is made strict the other is strict still; nothing is loosened before all is tightened."""
    start, goal = SIDES
    assert states[start] and states[goal] and not states[start] & states[goal]
    way = deaths.way(start, goal)
    print(f"{start} -> {goal}: {len(way.points)} deaths")
    for point in (*way.points, way.end):
        seen = deaths.weaknesses(point["truth"])
        print(f"  {point['number']:>2} {sorted(seen)} {point.get('killed_before', 'came to its end')}")
        assert seen <= states[start] | states[goal]
        assert mixed(seen, states[start], states[goal]) == []
    assert [point["killed_before"] for point in way.points] == way.end["ended"]["made"]
    assert len(way.points) > 3
    assert way.end["ended"]["changes"] == []
    assert way.differs == []
    assert deaths.weaknesses(way.booted) == states[goal]


def assert_arrived(deaths: Deaths, way: Way, states: dict[str, set[str]], goal: str) -> None:
    """Require that with its next mounts the machine is what the goal's profile makes of it, in every file and disk."""
    assert way.differs == []
    seen = deaths.weaknesses(way.booted)
    if goal == "ups":
        # Where there is no UPS the guard leaves barriers on.
        assert seen == {weakness for weakness in states["ups"] if "without barriers" not in weakness}
    else:
        assert seen == states[goal]


def mixed(seen: set[str], start: set[str], goal: set[str]) -> list[str]:
    """Return weaknesses of either end alone that are there at once: something loosened before all was tightened.

    A journal's mode lasts until the file system is mounted again, so it has no part in the order.
    """
    lasting = {weakness for weakness in start if weakness.endswith(" writeback")}
    left, come = seen & (start - goal - lasting), seen & (goal - start)
    return sorted(left | come) if left and come else []


def unflushed(point: dict[str, Any], start: str) -> list[str]:
    """Return the mounts whose barriers came back and whose disk neither was flushed nor is noted as owed a flush."""
    if start not in ("ups", "disposable"):
        return []
    found = []
    for target, serial in MANAGED.items():
        mount, disk = point["truth"]["mounts"][target], point["truth"]["disks"][serial]
        # The guard's end flushes; so does each step that says so.
        by_guard = any(made.startswith("systemctl --quiet disable --now") for made in point["made"])
        is_flushed = by_guard or f"sync /dev/{disk['name']}" in point["made"]
        is_back = mount["barrier"] == "on" and any(
            "barrier=1" in made and made.endswith(f" {target}") for made in point["made"]
        )
        if is_back and not is_flushed and disk["name"] not in point["owed"]:
            found.append(target)
    return found


def test_a_run_of_its_own_for_each_death_leaves_the_same(
    deaths: Deaths, ways: dict[tuple[str, str], Way]
) -> None:
    """Where a run dies, it leaves the same machine whether copies of it have died before or it came there without a stop."""
    way = ways["disposable", "strict"]
    points = deaths.anew("disposable", "strict")
    assert [left_by(point) for point in points] == [left_by(point) for point in (*way.points, way.end)]


def left_by(point: dict[str, Any]) -> dict[str, Any]:
    """Return what was told of a death, or of an end, except what counts: process, seconds, flushes."""
    disks = {
        serial: {key: value for key, value in disk.items() if key != "flushes"}
        for serial, disk in point["truth"]["disks"].items()
    }
    kept = {key: value for key, value in point.items() if key not in ("pid", "seconds")}
    return {**kept, "truth": {**point["truth"], "disks": disks}}


def test_no_death_was_left_out(machine: Machine, ways: dict[tuple[str, str], Way]) -> None:
    total = sum(len(way.points) for way in ways.values())
    print(f"{total} deaths on {len(ways)} ways between profiles")
    assert set(ways) == {way for way in WAYS if not machine.is_emulated or set(way) <= set(SHORT)}
    assert total >= LEAST[len(ways)]


def test_a_power_cut_in_the_middle_of_tightening_boots_and_the_next_run_ends_it(
    machine: Machine, deaths: Deaths, states: dict[str, set[str]], ways: dict[tuple[str, str], Way]
) -> None:
    steps = len(ways["disposable", "strict"].points)
    deaths.restore("disposable")
    assert "killed_before" in deaths.enforce("strict", steps // 2)
    machine.cut()
    machine.boot()
    seen = deaths.weaknesses(deaths.truth())
    assert seen <= states["disposable"] | states["strict"]
    assert deaths.enforce("strict")["ended"]["changes"] == []
