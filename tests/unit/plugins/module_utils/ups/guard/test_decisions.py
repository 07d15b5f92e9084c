# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's decisions, told of everything by hand."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.decisions import (
    LOOSEN,
    TIGHTEN,
    Machine,
)
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.state import (
    FAILED,
    LOOSE,
    TIGHT,
    WAITING,
)

PG = "/srv/pgdata"


def tight(quiet: float = 30.0) -> Machine:
    """Return one that has begun at 0 and found everything tight at 1."""
    machine = Machine(0.0)
    machine.allow(quiet)
    assert machine.due(0.0) == TIGHTEN
    machine.tightened(machine.turn, [], 1.0)
    assert machine.state == TIGHT
    return machine


def loose() -> Machine:
    """Return one that has loosened at 32."""
    machine = tight()
    machine.well(2.0, 2.0)
    machine.well(31.5, 32.0)
    assert machine.due(32.0) == LOOSEN
    machine.loosened(machine.turn, [PG], [], [], 32.5)
    assert (machine.state, machine.due(33.0)) == (LOOSE, None)
    return machine


def test_it_begins_by_tightening_and_is_not_tight_before_that_has_ended() -> None:
    machine = Machine(0.0)
    assert machine.state == FAILED
    assert machine.due(0.0) == TIGHTEN
    assert machine.due(0.1) is None
    machine.well(0.5, 0.6)
    assert machine.state == FAILED


def test_it_loosens_after_the_quiet_time_and_not_before() -> None:
    machine = tight()
    machine.well(2.0, 3.0)
    assert (machine.state, machine.left(3.0), machine.due(3.0)) == (WAITING, 30, None)
    machine.well(32.0, 32.9)
    assert (machine.left(32.9), machine.due(32.9)) == (1, None)
    machine.well(32.5, 33.0)
    assert machine.due(33.0) == LOOSEN
    # It says so before it is done.
    assert machine.state == LOOSE


def test_without_a_lease_it_never_loosens() -> None:
    machine = tight(float("inf"))
    machine.well(2.0, 2.0)
    machine.well(1e9, 1e9)
    assert machine.due(1e9) is None
    assert machine.left(1e9) is None


@pytest.mark.parametrize("moment", [2.0, 31.9])
def test_an_alarm_while_waiting_starts_the_quiet_time_anew(moment: float) -> None:
    machine = tight()
    machine.well(2.0, 2.0)
    machine.alarm("a word", moment)
    assert (machine.state, machine.reason, machine.due(moment)) == (TIGHT, "a word", None)
    machine.well(moment + 1, moment + 1)
    machine.well(moment + 30.9, moment + 30.9)
    assert machine.due(moment + 30.9) is None
    machine.well(moment + 31, moment + 31)
    assert machine.due(moment + 31) == LOOSEN


def test_a_look_that_began_before_an_alarm_tells_nothing() -> None:
    machine = tight(0.0)
    machine.alarm("a word", 5.0)
    machine.well(4.9, 6.0)
    assert machine.due(6.0) is None
    machine.well(5.1, 6.5)
    assert machine.due(6.5) == LOOSEN


def test_an_alarm_when_loose_tightens_at_once_and_is_not_tight_before_it_is_done() -> None:
    machine = loose()
    machine.alarm("on battery", 40.0)
    assert machine.state == FAILED
    assert machine.due(40.0) == TIGHTEN
    assert "on battery" in machine.reason
    machine.tightened(machine.turn, [], 40.5)
    assert (machine.state, machine.reason) == (TIGHT, "on battery")
    # And the quiet time has begun again.
    machine.well(41.0, 41.0)
    assert machine.left(41.0) == 30


def test_an_alarm_while_loosening_tightens_without_waiting_for_its_end() -> None:
    machine = tight(0.0)
    machine.well(2.0, 2.0)
    assert machine.due(2.0) == LOOSEN
    turn = machine.turn
    assert machine.may_loosen(turn)
    machine.alarm("on battery", 2.1)
    assert not machine.may_loosen(turn)
    assert machine.due(2.1) == TIGHTEN
    # What comes of it late changes nothing, and does not end the tightening.
    machine.loosened(turn, [PG], [], [], 2.2)
    assert (machine.state, machine.under_way) == (FAILED, TIGHTEN)


def test_the_end_of_an_old_loosening_is_not_taken_for_that_of_a_new_one() -> None:
    machine = tight(0.0)
    machine.well(2.0, 2.0)
    machine.due(2.0)
    old = machine.turn
    machine.alarm("on battery", 2.1)
    machine.due(2.1)
    machine.tightened(machine.turn, [], 2.2)
    machine.well(3.0, 3.0)
    assert machine.due(3.0) == LOOSEN
    machine.loosened(old, [PG], [], ["late"], 3.1)
    assert (machine.state, machine.under_way) == (LOOSE, LOOSEN)


def test_a_failed_loosening_is_tightened() -> None:
    machine = tight(0.0)
    machine.well(2.0, 2.0)
    machine.due(2.0)
    machine.loosened(machine.turn, [], [], ["refused"], 2.1)
    assert machine.due(2.1) == TIGHTEN


def test_what_may_not_be_loosened_keeps_its_barriers_and_says_why() -> None:
    machine = tight(0.0)
    machine.well(2.0, 2.0)
    machine.due(2.0)
    machine.loosened(machine.turn, [PG], ["/srv/b: another file system"], [], 2.1)
    assert machine.state == LOOSE
    assert machine.reason.endswith("/srv/b: another file system")


def test_when_nothing_may_be_loosened_it_is_tight_and_waits_as_long_again() -> None:
    machine = tight(10.0)
    machine.well(2.0, 2.0)
    machine.well(12.0, 12.0)
    machine.due(12.0)
    machine.loosened(machine.turn, [], ["/srv/b: another file system"], [], 12.1)
    assert (machine.state, machine.reason) == (TIGHT, "/srv/b: another file system")
    assert machine.due(12.1) is None
    machine.well(13.0, 13.0)
    machine.well(22.0, 22.0)
    assert machine.due(22.0) is None


def test_a_failed_tightening_is_tried_again_ever_less_often_and_never_loosened() -> None:
    machine = loose()
    machine.alarm("on battery", 40.0)
    machine.due(40.0)
    machine.tightened(machine.turn, ["sda: no flush"], 41.0)
    assert (machine.state, machine.reason) == (FAILED, "sda: no flush")
    machine.well(45.0, 45.0)
    machine.well(50.9, 50.9)
    assert (machine.state, machine.due(50.9)) == (FAILED, None)
    assert machine.due(51.0) == TIGHTEN
    machine.tightened(machine.turn, ["sda: no flush"], 52.0)
    assert machine.due(71.9) is None
    assert machine.due(72.0) == TIGHTEN
    machine.tightened(machine.turn, [], 73.0)
    assert machine.state == TIGHT
    machine.well(74.0, 74.0)
    assert machine.left(74.0) == 30


def test_a_failed_tightening_is_never_followed_by_a_loosening() -> None:
    machine = tight(0.0)
    machine.alarm("barriers off, and not by the guard", 5.0, are_off=True)
    machine.due(5.0)
    machine.tightened(machine.turn, ["sda: no flush"], 6.0)
    machine.well(7.0, 7.0)
    machine.well(8.0, 8.0)
    assert (machine.state, machine.due(8.0)) == (FAILED, None)


def test_a_second_tightening_waits_for_the_first() -> None:
    machine = loose()
    machine.alarm("on battery", 40.0)
    assert machine.due(40.0) == TIGHTEN
    machine.alarm("barriers off, and not by the guard", 40.1, are_off=True)
    assert machine.due(40.1) is None
    machine.tightened(machine.turn, [], 40.5)
    assert machine.due(40.6) == TIGHTEN


def test_barriers_that_somebody_took_away_come_back() -> None:
    machine = tight()
    machine.alarm("barriers off, and not by the guard", 5.0, are_off=True)
    assert (machine.state, machine.due(5.0)) == (FAILED, TIGHTEN)
