# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of disks, driven through real rings: errors, hangs, lies, and a disk that leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.vhost_master import Bench, Disk, Scsi

READY, SYNCHRONIZE = bytes(6), b"\x35".ljust(10, b"\0")
OFF = bytes((0x15, 0x10, 0, 0, 24, 0)), bytes(4) + bytes((8, 18, 0)).ljust(20, b"\0")
SWITCH = 32
T_FLUSH, OK, IOERR = 4, 0, 1
DATA = b"x" * 512


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Serve a disk of each bus, and one more of SCSI."""
    disks = [{"serial": "S", "bus": "scsi"}, {"serial": "T", "bus": "scsi"}, {"serial": "V", "bus": "virtio"}]
    with Bench(tmp_path, *disks).served() as bench:
        yield bench


@pytest.fixture
def scsi(bench: Bench) -> Iterator[Scsi]:
    """Return the controller, for a machine that has seen the first disk's power-on."""
    scsi = Scsi(bench.socket("scsi"))
    scsi.sense(READY)
    yield scsi
    scsi.close()


@pytest.fixture
def virtio(bench: Bench) -> Iterator[Disk]:
    """Return the virtio disk."""
    disk = Disk(bench.socket("V"))
    yield disk
    disk.close()


def stats(bench: Bench, serial: str) -> dict[str, Any]:
    """Return the counters of a disk."""
    found: dict[str, Any] = bench.tell("stats")[serial]
    return found


def is_answered(scsi: Scsi) -> bool:
    """Tell whether there is an answer within a third of a second."""
    time.sleep(0.3)
    return scsi.queues[2].is_done()


def test_an_error_is_answered_until_it_is_taken_away(bench: Bench, scsi: Scsi, virtio: Disk) -> None:
    for serial in "SV":
        bench.tell("fault", serial=serial, operation="flush", effect="error")
    assert scsi.sense(SYNCHRONIZE) == (3, 0x0C, 0)
    assert virtio.do(T_FLUSH)[0] == IOERR
    assert [stats(bench, serial)["flushes"] for serial in "SV"] == [0, 0]
    # Other operations and other disks have no fault.
    virtio.write(0, DATA)
    for serial in "SV":
        bench.tell("fault", serial=serial, operation="flush", effect="none")
    scsi.good(SYNCHRONIZE)
    virtio.flush()
    assert [stats(bench, serial)["flushes"] for serial in "SV"] == [1, 1]


def test_a_lie_is_answered_as_if_it_had_been_done(bench: Bench, scsi: Scsi, virtio: Disk) -> None:
    bench.tell("fault", serial="V", operation="write", effect="lie")
    virtio.write(0, DATA)
    assert virtio.read(0, 512) == bytes(512)
    bench.tell("fault", serial="S", operation="flush", effect="lie")
    scsi.good(SYNCHRONIZE)
    assert stats(bench, "S")["flushes"] == 0


def test_a_mode_select_that_fails_or_lies_leaves_the_cache_on(bench: Bench, scsi: Scsi, virtio: Disk) -> None:
    bench.tell("fault", serial="S", operation="mode_select", effect="error")
    assert scsi.sense(*OFF) == (4, 0x44, 0)
    for serial in "SV":
        bench.tell("fault", serial=serial, operation="mode_select", effect="lie")
    scsi.good(*OFF)
    assert virtio.set_config(SWITCH, b"\0") == 0
    assert [stats(bench, serial)["cache"] for serial in "SV"] == ["on", "on"]
    for serial in "SV":
        bench.tell("fault", serial=serial, operation="mode_select", effect="none")
    scsi.good(*OFF)
    assert virtio.set_config(SWITCH, b"\0") == 0
    assert [stats(bench, serial)["cache"] for serial in "SV"] == ["off", "off"]


@pytest.mark.parametrize("command", [(SYNCHRONIZE,), OFF], ids=["flush", "mode_select"])
def test_what_hangs_is_done_once_the_fault_is_taken_away(
    bench: Bench, scsi: Scsi, command: tuple[bytes, ...]
) -> None:
    """Other requests of the disk go on."""
    operation = "flush" if command == (SYNCHRONIZE,) else "mode_select"
    bench.tell("fault", serial="S", operation=operation, effect="hang")
    scsi.start(*command)
    assert not is_answered(scsi)
    assert stats(bench, "S")["cache"] == "on"
    bench.tell("fault", serial="S", operation=operation, effect="none")
    assert scsi.answer()[:2] == (0, 0)
    assert stats(bench, "S")["flushes"] == 1
    assert stats(bench, "S")["cache"] == ("on" if operation == "flush" else "off")


def test_a_reset_aborts_what_hangs_and_the_fault_stays(bench: Bench, scsi: Scsi) -> None:
    bench.tell("fault", serial="S", operation="flush", effect="hang")
    scsi.start(SYNCHRONIZE)
    assert not is_answered(scsi)
    bench.tell("reset", serial="S")
    assert scsi.answer()[1] == 2
    assert scsi.sense(READY) == (6, 0x29, 0)
    scsi.start(SYNCHRONIZE)
    assert not is_answered(scsi)


def test_a_disk_leaves_at_the_first_of_its_requests(bench: Bench, scsi: Scsi) -> None:
    bench.tell("fault", serial="S", operation="flush", effect="leave")
    scsi.good(READY)
    scsi.start(SYNCHRONIZE)
    assert scsi.answer()[1] == 2
    assert list(bench.tell("stats")) == ["T", "V"]


def test_what_is_no_fault_is_refused(bench: Bench) -> None:
    assert "one of flush, write, mode_select" in bench.refusal(
        "fault", serial="S", operation="read", effect="lie"
    )
    assert "one of none, error, hang" in bench.refusal("fault", serial="S", operation="flush", effect="slow")
    for effect in ("error", "hang", "leave"):
        said = bench.refusal("fault", serial="V", operation="mode_select", effect=effect)
        assert f"can only lie, not {effect}" in said
    assert "no disk 'X'" in bench.refusal("fault", serial="X", operation="flush", effect="lie")
