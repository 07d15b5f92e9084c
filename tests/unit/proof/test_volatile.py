# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of a volatile cache, against a slow one that holds the whole history of each sector."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof.errors import ProofError
from proof.log import CHANGES, SECTOR, Event, Kind
from proof.volatile import BLOCKS, DROP, KEEP, POLICIES, SECTORS, Disk, Faults, Piece, Policy, WriteBack

SIZE = 32
UNBOUNDED = WriteBack(1 << 40, 1 << 40)


def write(sequence: int, sector: int, count: int = 1, fua: bool = False) -> Event:
    """Return a write whose sectors tell its sequence and their own place."""
    data = b"".join(bytes([sequence % 255 + 1, sector + i]) * (SECTOR // 2) for i in range(count))
    return Event(sequence, Kind.WRITE, sector * SECTOR, count * SECTOR, fua, data)


def flush(sequence: int) -> Event:
    """Return a flush."""
    return Event(sequence, Kind.FLUSH)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw what a small disk is told; half of it falls into one block, so that writes meet."""
    events = []
    for sequence in range(draw(st.integers(1, 40))):
        kind = draw(st.sampled_from(["write"] * 6 + ["zero", "trim", "flush", "ack"]))
        sector = draw(st.one_of(st.integers(0, 7), st.integers(0, SIZE - 1)))
        count = draw(st.integers(1, min(12, SIZE - sector)))
        fua = draw(st.sampled_from([False, False, False, True]))
        if kind == "write":
            events.append(write(sequence, sector, count, fua))
        elif kind in ("zero", "trim"):
            events.append(Event(sequence, Kind[kind.upper()], sector * SECTOR, count * SECTOR, fua))
        else:
            events.append(Event(sequence, Kind[kind.upper()]))
    return events


def put(image: bytearray, pieces: Sequence[Piece]) -> None:
    """Write pieces into an image."""
    for offset, length, data in pieces:
        image[offset : offset + length] = bytes(length) if data is None else data


def durable(disk: Disk, events: Sequence[Event]) -> bytearray:
    """Return what the disk has made durable after these events."""
    image = bytearray(SIZE * SECTOR)
    for event in events:
        put(image, disk.apply(event))
    return image


def after(image: bytearray, disk: Disk, policy: Policy, seed: object) -> bytes:
    """Return the image that a cut leaves."""
    left = bytearray(image)
    put(left, disk.cut(policy, seed))
    return bytes(left)


def sector_of(image: bytes | bytearray, sector: int) -> bytes:
    """Return one sector."""
    return bytes(image[sector * SECTOR : (sector + 1) * SECTOR])


def history_of(events: Sequence[Event], sector: int) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return what is durable in a sector and what waits there, by going through all that was told."""
    held, waiting = bytes(SECTOR), list[tuple[int, bytes]]()
    for event in events:
        first, last = event.offset // SECTOR, (event.offset + event.length) // SECTOR
        if event.kind is Kind.FLUSH:
            held, waiting = (waiting[-1][1] if waiting else held), []
        elif event.kind in (Kind.WRITE, Kind.ZERO, Kind.TRIM) and first <= sector < last:
            at = (sector - first) * SECTOR
            content = bytes(event.data[at : at + SECTOR]) if event.kind is Kind.WRITE else bytes(SECTOR)
            if event.fua:
                held, waiting = content, []
            else:
                waiting.append((event.sequence, content))
    return held, waiting


@settings(deadline=None)
@given(histories())
def test_drop_and_keep_leave_what_the_histories_say(events: list[Event]) -> None:
    """Durable is what was flushed or FUA, newest is what was written last."""
    disk = Disk(UNBOUNDED)
    image = durable(disk, events)
    dropped, kept = after(image, disk, DROP, 0), after(image, disk, KEEP, 0)
    for sector in range(SIZE):
        held, waiting = history_of(events, sector)
        assert sector_of(dropped, sector) == held
        assert sector_of(kept, sector) == (waiting[-1][1] if waiting else held)
        assert (sector in disk.pending) == bool(waiting)


@settings(deadline=None)
@given(histories(), st.integers(0, 5))
def test_a_random_cut_leaves_each_sector_old_or_a_version_that_waits(events: list[Event], seed: int) -> None:
    """Nothing is invented, and nothing durable is lost."""
    disk = Disk(UNBOUNDED)
    image = durable(disk, events)
    left = after(image, disk, SECTORS, seed)
    for sector in range(SIZE):
        held, waiting = history_of(events, sector)
        assert sector_of(left, sector) in {held, *(content for _, content in waiting)}
    assert left == after(image, disk, SECTORS, seed)


@settings(deadline=None)
@given(histories(), st.integers(0, 5))
def test_a_random_cut_in_blocks_leaves_a_prefix_of_each(events: list[Event], seed: int) -> None:
    """One block of 4 KiB as it was after some write to it, never the later without the earlier."""
    disk = Disk(UNBOUNDED)
    left = after(durable(disk, events), disk, BLOCKS, seed)
    for block in range(SIZE // 8):
        sectors = range(block * 8, block * 8 + 8)
        possible = set()
        all_waiting = {sector: history_of(events, sector) for sector in sectors}
        for limit in range(-1, len(events)):
            versions = [
                next((c for s, c in reversed(waiting) if s <= limit), held)
                for held, waiting in all_waiting.values()
            ]
            possible.add(b"".join(versions))
        assert left[block * 4096 : (block + 1) * 4096] in possible


@settings(deadline=None)
@given(histories(), st.integers(0, 5), st.integers(0, 8), st.integers(0, 6))
def test_write_back_keeps_its_bounds_and_the_order_of_each_sector(
    events: list[Event], seed: int, sectors: int, age: int
) -> None:
    """What it makes durable waited there, and what waits still is newer than that."""
    disk = Disk(WriteBack(sectors * SECTOR, age), seed=seed)
    image = bytearray(SIZE * SECTOR)
    for place, event in enumerate(events):
        put(image, disk.apply(event))
        assert len(disk.pending) <= sectors
        if event.kind in CHANGES:
            assert all(
                event.sequence - e.sequence <= age for waiting in disk.pending.values() for e in waiting
            )
        for sector in range(SIZE):
            held, waiting = history_of(events[: place + 1], sector)
            durable_now = [
                content for _, content in waiting[: len(waiting) - len(disk.pending.get(sector, []))]
            ]
            assert sector_of(image, sector) == (durable_now[-1] if durable_now else held)


def test_write_back_differs_by_seed_alone() -> None:
    """The same log and seed give the same image; another seed another one."""
    events = [write(number, number % SIZE) for number in range(200)]

    def states(seed: int) -> list[bytes]:
        disk, image = Disk(WriteBack(8 * SECTOR, 1000), seed=seed), bytearray(SIZE * SECTOR)
        found = []
        for event in events:
            put(image, disk.apply(event))
            found.append(bytes(image))
        return found

    assert states(1) == states(1)
    assert states(1) != states(2)


def test_every_nth_flush_is_ignored() -> None:
    """The second of two: its write waits until the third."""
    disk = Disk(UNBOUNDED, Faults(ignore_flush_every=2))
    pieces = [
        disk.apply(event) for event in (write(0, 0), flush(1), write(2, 1), flush(3), write(4, 2), flush(5))
    ]
    assert [len(found) for found in pieces] == [0, 1, 0, 0, 0, 2]


def test_flushes_are_ignored_in_a_row_from_where_the_count_begins() -> None:
    """The third and fourth of each four; after one that was before, the second and third."""
    for before, ignored in ((1, [3, 4]), (2, [2, 3])):
        disk = Disk(UNBOUNDED, Faults(ignore_flush_every=4, in_a_row=2, flushes=before))
        told = []
        for number in range(1, 5):
            disk.apply(write(number * 2, number))
            told += [number] if not disk.apply(flush(number * 2 + 1)) else []
        assert told == ignored


def test_a_disk_that_ignores_fua_keeps_such_writes_in_its_cache() -> None:
    """As QEMU's NVMe does."""
    event = write(0, 0, fua=True)
    assert [piece.offset for piece in Disk(UNBOUNDED).apply(event)] == [0]
    liar = Disk(UNBOUNDED, Faults(ignore_fua=True))
    assert liar.apply(event) == []
    assert list(liar.pending) == [0]


def test_a_random_cut_keeps_nearly_none_to_nearly_all() -> None:
    """Both ends are hit: a file system breaks by one block that is missing, or by one that is there."""
    disk = Disk(UNBOUNDED)
    for number in range(SIZE):
        disk.apply(write(number, number))
    kept = {sum(p.length for p in disk.cut(SECTORS, seed)) // SECTOR for seed in range(200)}
    assert min(kept) <= 1
    assert max(kept) >= SIZE - 1
    assert len(kept) > 20


def test_an_older_version_can_be_what_survives() -> None:
    """A cache that was writing a sector back while it was written again."""
    disk = Disk(UNBOUNDED)
    for number in range(3):
        disk.apply(write(number, 0))
    found = {bytes(p.data or b"")[0] for seed in range(100) for p in disk.cut(SECTORS, seed)}
    assert found == {1, 2, 3}


def test_half_a_sector_is_no_write_of_a_disk() -> None:
    """The log is not one of a disk with sectors."""
    with pytest.raises(ProofError, match="event 7 is not whole sectors"):
        Disk().apply(Event(7, Kind.WRITE, 256, 512, False, bytes(512)))


@settings(max_examples=20, deadline=None)
@given(histories())
def test_acknowledgements_and_a_cut_change_nothing(events: list[Event]) -> None:
    """One history serves all cuts."""
    plain, cut = Disk(UNBOUNDED), Disk(UNBOUNDED)
    for event in events:
        for policy in POLICIES.values():
            cut.cut(policy, event.sequence)
        if event.kind is not Kind.ACK:
            assert plain.apply(event) == cut.apply(event)
    assert plain.pending == cut.pending
