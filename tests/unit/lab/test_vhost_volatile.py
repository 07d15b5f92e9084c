# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof's volatile disk in this server: one order of writes, flushes and acknowledgements, and its times."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabError
from lab.vhost.config import load
from lab.vhost.server import Server
from proof import log
from proof.log import Kind
from proof.mechanics import Mechanics
from tests.unit.lab.vhost_master import Bench, Disk, Scsi

OUT, FLUSH, DISCARD, ZEROES = 1, 4, 11, 13


def a_bench(directory: Path, bus: str = "virtio", **times: float) -> Bench:
    """Return a server of a volatile disk and its disk of acknowledgements."""
    (directory / "newest.img").touch()
    os.truncate(directory / "newest.img", 1 << 20)
    where = {"directory": str(directory)}
    disk = {"type": "python", "factory": "proof.vhost_store:disk", "arguments": where | times}
    ack = {"type": "python", "factory": "proof.vhost_store:ack", "arguments": where}
    return Bench(
        directory,
        {"serial": "D", "bus": bus, "store": disk},
        {"serial": "ACK", "bus": "virtio", "store": ack},
    )


def seen(directory: Path) -> list[tuple[Any, ...]]:
    """Return what is in the log, without who came."""
    events = [event for event in log.read(directory).events if event.kind is not Kind.NOTE]
    return [(event.kind, event.offset, event.length, event.fua, bytes(event.data[:1])) for event in events]


def kinds(directory: Path) -> list[Kind]:
    """Return the kinds only."""
    return [event[0] for event in seen(directory)]


def start(disk: Disk, kind: int, sector: int = 0, data: bytes = b"") -> None:
    """Offer a request, and do not wait for it."""
    disk.queues[0].add([struct.pack("<IIQ", kind, 0, sector), *([data] if data else [])], [1], indirect=True)


def test_writes_flushes_and_acknowledgements_have_one_order(tmp_path: Path) -> None:
    """Two disks, one log; with the cache off each write is one with FUA."""
    with a_bench(tmp_path).served() as bench:
        disk, ack = Disk(bench.socket("D")), Disk(bench.socket("ACK"))
        disk.write(0, b"a" * 512)
        disk.flush()
        ack.write(0, b"1" * 512)
        disk.set_config(32, b"\0")
        disk.write(8, b"b" * 1024)
        ack.write(1, b"2" * 512)
        assert disk.do(ZEROES, data=struct.pack("<QII", 16, 8, 0))[0] == 0
        disk.set_config(32, b"\1")
        assert disk.do(DISCARD, data=struct.pack("<QII", 0, 1, 0))[0] == 0
        ack.flush()
        assert disk.read(0, 512) == bytes(512)
        assert disk.read(8, 1024) == b"b" * 1024
        assert ack.read(0, 1024) == b"1" * 512 + b"2" * 512
    assert seen(tmp_path) == [
        (Kind.WRITE, 0, 512, False, b"a"),
        (Kind.FLUSH, 0, 0, False, b""),
        (Kind.ACK, 0, 512, False, b"1"),
        (Kind.WRITE, 4096, 1024, True, b"b"),
        (Kind.ACK, 512, 512, False, b"2"),
        (Kind.ZERO, 8192, 4096, True, b""),
        (Kind.TRIM, 0, 512, False, b""),
    ]
    notes = [bytes(event.data) for event in log.read(tmp_path).events if event.kind is Kind.NOTE]
    assert notes == [b"opened disk", b"opened ack"]


def test_a_flush_counts_at_its_end(tmp_path: Path) -> None:
    """An acknowledgement that comes meanwhile is before it in the log; a write waits."""
    with a_bench(tmp_path, flush=1.5).served() as bench:
        disk, ack = Disk(bench.socket("D")), Disk(bench.socket("ACK"))
        disk.write(0, b"a" * 512)
        started = time.monotonic()
        start(disk, FLUSH)
        start(disk, OUT, 8, b"b" * 512)
        ack.write(0, b"1" * 512)
        assert time.monotonic() - started < 1.5
        assert kinds(tmp_path) == [Kind.WRITE, Kind.ACK]
        assert not disk.queues[0].is_done()
        assert [disk.queues[0].wait()[2] for _ in range(2)] == [[b"\0"]] * 2
        assert time.monotonic() - started >= 1.5
        ack.write(1, b"2" * 512)
    assert kinds(tmp_path) == [Kind.WRITE, Kind.ACK, Kind.FLUSH, Kind.WRITE, Kind.ACK]


def test_a_fua_write_of_a_scsi_disk_counts_at_its_end(tmp_path: Path) -> None:
    """FUA is seen as such; other commands of the disk that move no data are answered at once."""
    with a_bench(tmp_path, "scsi", flush=0.2).served() as bench:
        scsi, ack = Scsi(bench.socket("scsi")), Disk(bench.socket("ACK"))
        scsi.command(bytes(6))
        scsi.start(struct.pack(">BBIBHB", 0x2A, 8, 0, 0, 1, 0), b"f" * 512)
        ack.write(0, b"1" * 512)
        assert scsi.answer()[:2] == (0, 0)
        scsi.good(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0), b"g" * 512)
    assert [event[:4:3] for event in seen(tmp_path)] == [
        (Kind.ACK, False),
        (Kind.WRITE, True),
        (Kind.WRITE, False),
    ]


def test_a_slowed_disk_takes_the_time_of_the_model(tmp_path: Path) -> None:
    """So many times over."""
    model, took, wanted = Mechanics(), list[float](), list[float]()
    with a_bench(tmp_path, slow=10).served() as bench:
        disk = Disk(bench.socket("D"))
        for ask, words in (
            (lambda: disk.write(0, b"a" * 512), (Kind.WRITE, 0, 512, False)),
            (disk.flush, (Kind.FLUSH, 0, 0, False)),
            (disk.flush, (Kind.FLUSH, 0, 0, False)),
        ):
            started = time.monotonic()
            ask()
            took.append(time.monotonic() - started)
            wanted.append(10 * model.take(*words))
        assert disk.read(0, 512) == b"a" * 512
    assert wanted[1] > 0.1 and wanted[2] < 0.01
    assert all(real >= meant for real, meant in zip(took, wanted, strict=True))
    assert took[0] < wanted[1] > took[2]


def test_a_machine_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was not answered is forgotten; the next machine begins at once, with the cache on."""
    with a_bench(tmp_path, flush=0.2).served() as bench:
        disk = Disk(bench.socket("D"))
        disk.set_config(32, b"\0")
        start(disk, OUT, 0, b"a" * 512)
        start(disk, OUT, 8, b"b" * 512)
        bench.tell("stats")
        disk.close()
        again = Disk(bench.socket("D"))
        again.write(16, b"c" * 512)
        time.sleep(0.3)
        assert seen(tmp_path) == [(Kind.WRITE, 8192, 512, False, b"c")]


def test_what_waits_fails_when_its_disk_is_unplugged_or_reset(tmp_path: Path) -> None:
    """And has no effect."""
    with a_bench(tmp_path, "scsi", flush=5).served() as bench:
        scsi = Scsi(bench.socket("scsi"))
        scsi.command(bytes(6))
        scsi.start(b"\x35".ljust(10, b"\0"))
        scsi.start(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0), b"g" * 512)
        while bench.tell("reset", serial="D") is not None or not scsi.queues[2].is_done():
            pass
        assert [scsi.answer()[1:3][1][2] for _ in range(2)] == [0xB, 0xB]
        bench.tell("unplug", serial="D")
    assert not seen(tmp_path)
    (virtio := tmp_path / "virtio").mkdir()
    with a_bench(virtio, flush=5).served() as bench:
        disk = Disk(bench.socket("D"))
        start(disk, FLUSH)
        bench.tell("unplug", serial="D")
        assert disk.queues[0].wait()[2] == [b"\1"]
    assert not seen(virtio)


def test_a_disk_has_one_way_of_taking_its_time_and_one_log(tmp_path: Path) -> None:
    """Both ways, no disk, and a log that is there already are refused."""
    bench = a_bench(tmp_path, flush=0.1, slow=2)
    with pytest.raises(LabError, match="both flush and slow"):
        Server(load(bench.config))
    (empty := tmp_path / "empty").mkdir()
    bench = a_bench(empty)
    (empty / "newest.img").unlink()
    with pytest.raises(FileNotFoundError, match=r"no newest\.img"):
        Server(load(bench.config))
    (other := tmp_path / "other").mkdir()
    log.Writer(other, 512).close()
    with pytest.raises(FileExistsError):
        Server(load(a_bench(other).config))
