# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed before any single change to SATA and NVMe disks, a machine is at least as safe as the weaker of both ends.

Between all profiles, on SCSI and virtio disks, scenario `default` does the same.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.devices import id_of
from support.kill_points import Deaths
from support.whole import whole_only

from lab.machine import Machine

pytestmark = whole_only("20 boots of an emulated machine: make scenario NAME=buses")

PROFILES = ("strict", "disposable")
MANAGED = {"/srv/pgdata": "SATA0001", "/srv/nvme": "NVME0002"}
#: Fewer deaths than this each way, and the harness has lost some: at least a rule, a cache and barriers of each disk.
LEAST = 6


@pytest.fixture(scope="module")
def deaths(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    """The harness on the machine."""
    found = Deaths(machine, MANAGED, tmp_path_factory.mktemp("kill"))
    found.install(PROFILES, {serial: id_of(machine, serial) for serial in MANAGED.values()})
    return found


@pytest.fixture(scope="module")
def states(deaths: Deaths) -> dict[str, set[str]]:
    """The machine's weaknesses at each profile.

    Strict comes last: a line of fstab keeps the words for barriers and data= once another profile was there.
    """
    learned: dict[str, dict[str, Any]] = deaths.learn(PROFILES[::-1])
    for told in learned.values():
        assert told["first"]["ended"]["changes"] == told["second"]["changes"] == []
    return {profile: deaths.weaknesses(told["truth"]) for profile, told in learned.items()}


def test_the_profiles_differ_as_much_as_they_should(states: dict[str, set[str]]) -> None:
    assert not any("caches" in weakness for weakness in states["strict"] if "at boot" not in weakness)
    assert {f"{serial} caches" for serial in MANAGED.values()} <= states["disposable"]
    assert {f"{target} without barriers over a cache" for target in MANAGED} <= states["disposable"]


@pytest.mark.parametrize(("start", "goal"), [PROFILES, PROFILES[::-1]])
def test_killed_at_any_step_it_is_as_safe_as_the_weaker_end(
    deaths: Deaths, states: dict[str, set[str]], start: str, goal: str
) -> None:
    way = deaths.way(start, goal)
    allowed = states[start] | states[goal]
    for point in (*way.points, way.end):
        print(
            f"  {point['number']:>2} {point['seconds']:>5} s  {point.get('killed_before', 'came to its end')}"
        )
        seen = deaths.weaknesses(point["truth"])
        assert seen <= allowed, f"{point.get('killed_before')}: {sorted(seen - allowed)}"
    for number, point in enumerate(way.points):
        assert (point["number"], len(point["made"])) == (number + 1, number)
    ended = way.end["ended"]
    assert [point["killed_before"] for point in way.points] == ended["made"]
    assert len(way.points) >= LEAST
    assert ended["changes"] == []
    assert way.differs == []
    assert deaths.weaknesses(way.booted) == states[goal]
