# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of a rotating disk against times worked out by hand."""

from __future__ import annotations

import pytest

from proof.log import SECTOR, Kind
from proof.mechanics import Drive, Mechanics

#: A turn of 10 ms, 100 sectors to a track, 0.1 ms to transfer one; numbers to be added up in the head.
EASY = Drive(rpm=6000, seek=0.02, rate=100 * SECTOR * 100, cache=8 * SECTOR, command=0.001)
TRACK = 100 * SECTOR
FAR = 0.02 + 0.005
SECTOR_TIME = 0.0001


def disk() -> Mechanics:
    """Return a disk at rest."""
    return Mechanics(EASY)


def test_the_constants_are_those_that_were_stated() -> None:
    """7,200 rpm and an average seek of 8.5 ms: 79 places a second, or 120 turns where the head stays."""
    drive = Drive()
    assert drive.turn == pytest.approx(0.008333, abs=1e-6)
    assert drive.track == 2539
    assert 1 / (drive.seek + drive.turn / 2) == pytest.approx(78.9, abs=0.1)
    assert EASY.track == 100


def test_a_cached_write_costs_a_command_and_waits() -> None:
    """Also a whole track of it, and zeros; nothing moves until a flush."""
    made = disk()
    assert made.take(Kind.WRITE, 0, SECTOR) == made.take(Kind.ZERO, SECTOR, SECTOR) == pytest.approx(0.001)
    assert made.moves == 0
    assert made.take(Kind.FLUSH) == pytest.approx(0.001 + FAR + 2 * SECTOR_TIME)
    assert made.moves == 1


def test_a_flush_writes_what_waits_once_for_each_track() -> None:
    """Three sectors in two tracks: two moves. The second flush has nothing to do."""
    made = disk()
    for offset in (0, SECTOR, 5 * TRACK, 0):
        made.take(Kind.WRITE, offset, SECTOR)
    assert made.take(Kind.FLUSH) == pytest.approx(0.001 + 2 * FAR + 3 * SECTOR_TIME)
    assert made.take(Kind.FLUSH) == pytest.approx(0.001)
    assert made.moves == 2


def test_where_the_head_is_already_it_waits_a_whole_turn() -> None:
    """A log that goes on in its track; and that track comes first, whatever else waits."""
    made = disk()
    assert made.take(Kind.WRITE, 7 * TRACK, SECTOR, fua=True) == pytest.approx(0.001 + FAR + SECTOR_TIME)
    assert made.take(Kind.WRITE, 7 * TRACK + SECTOR, SECTOR, fua=True) == pytest.approx(
        0.001 + 0.01 + SECTOR_TIME
    )
    made.take(Kind.WRITE, 0, SECTOR)
    made.take(Kind.WRITE, 7 * TRACK, SECTOR)
    assert made.take(Kind.FLUSH) == pytest.approx(0.001 + 0.01 + FAR + 2 * SECTOR_TIME)
    assert made.take(Kind.WRITE, 0, SECTOR, fua=True) == pytest.approx(0.001 + 0.01 + SECTOR_TIME)


def test_a_fua_write_leaves_the_rest_in_the_cache() -> None:
    """It carries its own sectors only, and those need no flush any more."""
    made = disk()
    made.take(Kind.WRITE, 3 * TRACK, SECTOR)
    made.take(Kind.WRITE, 0, SECTOR)
    assert made.take(Kind.WRITE, 0, 2 * SECTOR, fua=True) == pytest.approx(0.001 + FAR + 2 * SECTOR_TIME)
    assert made.take(Kind.FLUSH) == pytest.approx(0.001 + FAR + SECTOR_TIME)


def test_what_is_trimmed_is_not_written_and_notes_cost_nothing() -> None:
    """Acknowledgements go to another disk."""
    made = disk()
    made.take(Kind.WRITE, 0, SECTOR)
    assert made.take(Kind.TRIM, 0, SECTOR) == pytest.approx(0.001)
    assert made.take(Kind.FLUSH) == pytest.approx(0.001)
    assert made.take(Kind.ACK, 0, SECTOR) == made.take(Kind.NOTE) == 0.0


def test_a_full_cache_is_written_back_first() -> None:
    """Eight sectors fit, the ninth does not."""
    made = disk()
    assert made.take(Kind.WRITE, 0, 8 * SECTOR) == pytest.approx(0.001)
    assert made.take(Kind.WRITE, 8 * SECTOR, SECTOR) == pytest.approx(0.001 + FAR + 9 * SECTOR_TIME)
