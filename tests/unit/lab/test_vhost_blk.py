# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtio disks, driven through real rings: requests, the switch of the cache, and drivers that break the rules."""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lab.vhost_master import GUEST, NEXT, RING, SIZE, WRITE, Bench, Disk, Gone

FLUSH, CONFIG_WCE = 1 << 9, 1 << 11
IN, OUT, GET_ID, DISCARD, ZEROES = 0, 1, 8, 11, 13
OK, IOERR, UNSUPP = 0, 1, 2


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Serve two disks."""
    with Bench(
        tmp_path, {"serial": "ONE", "bus": "virtio"}, {"serial": "TWO", "bus": "virtio", "unnamed": True}
    ).served() as bench:
        yield bench


@pytest.fixture
def disk(bench: Bench) -> Iterator[Disk]:
    """Return the first disk, for a machine that just started."""
    disk = Disk(bench.socket("ONE"))
    yield disk
    disk.close()


def counted(bench: Bench, name: str, serial: str = "ONE") -> int | str:
    """Return one counter of a disk."""
    found: int | str = bench.tell("stats")[serial][name]
    return found


def test_what_is_written_is_read(bench: Bench, disk: Disk) -> None:
    """And lies in the file; a flush is counted."""
    data = os.urandom(8192)
    disk.write(3, data)
    disk.flush()
    assert disk.read(3, 8192) == data
    assert (bench.directory / "ONE.img").read_bytes()[3 * 512 : 3 * 512 + 8192] == data
    assert [counted(bench, name) for name in ("writes", "reads", "flushes")] == [1, 1, 1]


def test_the_configuration_space_tells_the_size_and_the_cache(disk: Disk) -> None:
    """Capacity, block size and writeback; a part of it can be asked for."""
    space = disk.config(0, 60)
    assert int.from_bytes(space[:8], "little") == 2048
    assert int.from_bytes(space[20:24], "little") == 512
    assert space[32] == 1
    assert disk.config(32, 1) == b"\1"
    assert disk.config(0, 100) == space + bytes(40)


def test_the_serial(disk: Disk) -> None:
    """Twenty bytes, with zeros behind."""
    assert disk.do(GET_ID, room=20) == (OK, b"ONE".ljust(20, b"\0"))


def test_an_unnamed_disk_tells_no_serial(bench: Bench) -> None:
    disk = Disk(bench.socket("TWO"))
    assert disk.do(GET_ID, room=20) == (OK, bytes(20))
    disk.close()


def test_writeback_is_a_switch(bench: Bench, disk: Disk) -> None:
    """While it is off each write is as good as flushed; a new machine finds it on."""
    assert disk.set_config(32, b"\0") == 0
    disk.write(0, bytes(512))
    assert (counted(bench, "through_writes"), counted(bench, "cache")) == (1, "off")
    assert disk.config(32, 1) == b"\0"
    assert disk.set_config(32, b"\1") == 0
    disk.write(0, bytes(512))
    assert (counted(bench, "through_writes"), counted(bench, "cache")) == (1, "on")
    assert disk.set_config(32, b"\0") == 0
    again = Disk(bench.socket("ONE"))
    assert again.config(32, 1) == b"\1"
    again.close()


def test_the_rest_of_the_configuration_space_cannot_be_written(disk: Disk) -> None:
    """The driver is told, and the disk goes on."""
    assert disk.set_config(0, b"\0") == 1
    assert disk.set_config(32, b"\2") == 1
    disk.write(0, bytes(512))


def test_a_driver_that_cannot_flush_has_no_cache(bench: Bench) -> None:
    """Virtio 1.x, section 5.2.5.2."""
    disk = Disk(bench.socket("ONE"), refused=FLUSH)
    assert counted(bench, "cache") == "off"
    disk.close()


def test_a_cache_that_the_server_switches(bench: Bench, disk: Disk) -> None:
    """The guest is not told; it sees it where it looks."""
    bench.tell("set_cache", serial="ONE", on=False)
    assert disk.config(32, 1) == b"\0"


def test_zeros_and_discards(bench: Bench, disk: Disk) -> None:
    """Both read as zeros."""
    disk.write(0, b"x" * 16384)
    assert disk.do(DISCARD, data=struct.pack("<QII", 8, 8, 0)) == (OK, b"")
    assert disk.do(ZEROES, data=struct.pack("<QII", 24, 1, 1)) == (OK, b"")
    assert disk.read(0, 16384) == b"x" * 4096 + bytes(4096) + b"x" * 4096 + bytes(512) + b"x" * 3584
    assert counted(bench, "discards") == 2


@pytest.mark.parametrize(
    ("kind", "sector", "data", "room", "status"),
    [
        (OUT, 2048, bytes(512), 0, IOERR),
        (OUT, 2047, bytes(1024), 0, IOERR),
        (OUT, 0, bytes(511), 0, IOERR),
        (IN, 1 << 60, b"", 512, IOERR),
        (DISCARD, 0, bytes(15), 0, IOERR),
        (DISCARD, 0, struct.pack("<QII", 0, 8, 1), 0, UNSUPP),
        (ZEROES, 0, struct.pack("<QII", 2048, 1, 0), 0, IOERR),
        (99, 0, b"", 0, UNSUPP),
    ],
)
def test_what_cannot_be_done_is_answered(
    disk: Disk, kind: int, sector: int, data: bytes, room: int, status: int
) -> None:
    """And the disk goes on."""
    assert disk.do(kind, sector, data, room)[0] == status
    disk.write(0, bytes(512))


def test_many_requests_at_once_and_round_the_ring(disk: Disk) -> None:
    """More than the ring has places, some of them before one kick is answered."""
    queue = disk.queues[0]
    for turn in range(5):
        disk._free = 4096
        for number in range(RING):
            header = struct.pack("<IIQ", OUT, 0, turn * RING + number)
            queue.add([header, bytes([turn * RING + number]) * 512], [1], indirect=True)
        assert [queue.wait()[2] for _ in range(RING)] == [[b"\0"]] * RING
    disk._free = 4096
    everything = disk.read(0, 5 * RING * 512)
    assert everything == b"".join(bytes([number]) * 512 for number in range(5 * RING))


def test_buffers_may_be_divided_anyhow(disk: Disk) -> None:
    """Header, data and status need not have descriptors of their own (2.7.4)."""
    header = struct.pack("<IIQ", OUT, 0, 7)
    assert disk.queues[0].request([header[:3], header[3:] + b"a" * 100, b"b" * 412], [1]) == [b"\0"]
    assert disk.read(7, 512) == b"a" * 100 + b"b" * 412
    got = disk.queues[0].request([struct.pack("<IIQ", IN, 0, 7)], [500, 13])
    assert got == [b"a" * 100 + b"b" * 400, b"b" * 12 + b"\0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([(GUEST, 16, 0), (GUEST + SIZE - 8, 16, WRITE)], "not in guest memory"),
        ([(1, 16, 0), (GUEST, 1, WRITE)], "not in guest memory"),
        ([((1 << 64) - 8, 16, 0), (GUEST, 1, WRITE)], "not in guest memory"),
        ([(GUEST, 16, 0), (GUEST, 512, 0)], "without a writable buffer"),
        ([(GUEST, 16, 0), (GUEST, 0, WRITE)], "empty buffer for its status"),
        ([(GUEST, 8, 0), (GUEST, 1, WRITE)], "8 bytes short"),
        ([(GUEST, 16, 0), (GUEST, 1, WRITE), (GUEST, 1, 0)], "a buffer to read follows one to write"),
        ([(GUEST, 8, 4)], "bad indirect descriptor"),
    ],
)
def test_a_bad_chain_stops_its_disk_only(
    bench: Bench,
    disk: Disk,
    capfd: pytest.CaptureFixture[str],
    words: list[tuple[int, int, int]],
    message: str,
) -> None:
    """It is told on standard error; the file for errors is signalled; the other disk goes on; a new machine is served."""
    broken = os.eventfd(0)
    disk.ask(14, struct.pack("<Q", 0), [broken])
    disk.queues[0].add_raw(words)
    assert select.select([broken], [], [], 10)[0]
    other = Disk(bench.socket("TWO"))
    other.write(0, b"t" * 512)
    other.close()
    assert not disk.queues[0].is_done()
    assert f"virtio disk ONE: ring 0 is stopped: {message}"[:20] in (said := capfd.readouterr().err)
    assert message in said
    again = Disk(bench.socket("ONE"))
    again.write(0, b"a" * 512)
    again.close()
    os.close(broken)


def test_a_loop_and_a_wrong_index_end(disk: Disk, bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    """A chain has at most as many descriptors as the ring."""
    queue = disk.queues[0]
    queue.put(queue.table, struct.pack("<QIHH", GUEST, 16, NEXT, 0))
    queue.offer(0)
    bench.tell("stats")
    Disk(bench.socket("TWO")).flush()
    assert "it has a loop" in capfd.readouterr().err
    again = Disk(bench.socket("ONE"))
    again.queues[0].offer(RING)
    Disk(bench.socket("TWO")).flush()
    assert f"descriptor {RING} of a table of {RING}" in capfd.readouterr().err
    again = Disk(bench.socket("ONE"))
    again.queues[0].put(again.queues[0].avail + 2, struct.pack("<H", 1000))
    os.eventfd_write(again.queues[0].kick, 1)
    Disk(bench.socket("TWO")).flush()
    assert "offers requests 0 to 1000" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "payload"),
    [
        (77, b""),
        (2, struct.pack("<Q", 1 << 50)),
        (5, struct.pack("<II", 1, 0)),
        (5, struct.pack("<IIQQQQ", 1, 0, 0, 4096, 0, 0)),
        (8, struct.pack("<II", 3, 16)),
        (8, b"\0"),
        (12, struct.pack("<Q", 0)),
        (9, struct.pack("<IIQQQQ", 0, 0, 0x1000, 0x1000, 0x1000, 0)),
    ],
)
def test_a_bad_message_is_refused(bench: Bench, code: int, payload: bytes) -> None:
    """With an answer where one is wanted; without, the master is sent away."""
    disk = Disk(bench.socket("ONE"))
    assert disk.status(code, payload) == 1
    disk.send(code, payload)
    with pytest.raises(Gone):
        disk.receive()
    other = Disk(bench.socket("ONE"))
    other.flush()
    other.close()


@pytest.mark.parametrize("message", [b"\1\0\0\0\2\0\0\0\0\0\0\0", b"\1\0\0\0\1\0\0\0\xff\xff\0\0"])
def test_what_is_no_message_ends_the_connection(bench: Bench, message: bytes) -> None:
    """Another version, or a size beyond reason."""
    disk = Disk(bench.socket("ONE"))
    disk.socket.sendall(message)
    with pytest.raises(Gone):
        disk.receive()


def test_a_ring_stops_and_goes_on(disk: Disk) -> None:
    """GET_VRING_BASE tells how far it came; disabled, it waits."""
    disk.write(0, bytes(512))
    disk.ask(18, struct.pack("<II", 0, 0))
    header = struct.pack("<IIQ", 4, 0, 0)
    disk._free = 4096
    disk.queues[0].add([header], [1], indirect=True)
    assert not disk.queues[0].is_done()
    disk.ask(18, struct.pack("<II", 0, 1))
    assert disk.queues[0].wait()[2] == [b"\0"]
    disk.send(11, struct.pack("<II", 0, 0))
    assert disk.receive() == struct.pack("<II", 0, 2)


def test_a_virtio_disk_is_unplugged_with_its_device(bench: Bench, disk: Disk) -> None:
    """The file for requests closes: Linux takes the device away, and then closes the connection."""
    bench.tell("unplug", serial="ONE")
    assert select.select([disk.alive], [], [], 10)[0] and os.read(disk.alive, 1) == b""
    disk.ask(18, struct.pack("<II", 0, 0))
    assert disk.number(1) == disk.features
    assert list(bench.tell("stats")) == ["TWO"]
    assert not bench.socket("ONE").exists()
    bench.tell(
        "plug",
        disk={
            "serial": "ONE",
            "bus": "virtio",
            "socket": str(bench.socket("ONE")),
            "store": bench.file("ONE"),
        },
    )
    again = Disk(bench.socket("ONE"))
    again.flush()
    again.close()
