# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SCSI disks, driven through real rings: what they say of themselves, the cache page, FUA, and plugging."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lab.vhost_master import Bench, Scsi

READY = bytes(6)
POWER_ON, BAD_OPCODE, BAD_FIELD = (6, 0x29, 0), (5, 0x20, 0), (5, 0x24, 0)
BAD_PARAMETER, BAD_LENGTH = (5, 0x26, 0), (5, 0x1A, 0)
BLOCKS = 2048


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Serve two disks, the first with FUA and a WWN."""
    one = {"serial": "ONE", "bus": "scsi", "fua": True, "wwn": "0x5000000000000001"}
    with Bench(tmp_path, one, {"serial": "TWO", "bus": "scsi"}).served() as bench:
        yield bench


@pytest.fixture
def scsi(bench: Bench) -> Iterator[Scsi]:
    """Return the controller, for a machine whose kernel has seen the unit attention of power-on."""
    scsi = Scsi(bench.socket("scsi"))
    assert scsi.sense(READY) == POWER_ON
    yield scsi
    scsi.close()


def stats(bench: Bench) -> dict[str, int | str]:
    """Return the counters of the first disk."""
    found: dict[str, int | str] = bench.tell("stats")["ONE"]
    return found


def mode_sense(scsi: Scsi, control: int = 0, page: int = 8, target: int = 0) -> bytes:
    """Return the data of MODE SENSE (6) without block descriptor."""
    return scsi.good(bytes((0x1A, 8, control << 6 | page, 0, 255, 0)), room=255, target=target)


def mode_select(wce: bool) -> tuple[bytes, bytes]:
    """Return MODE SELECT (6) of the caching page, and its data."""
    return bytes((0x15, 0x10, 0, 0, 24, 0)), bytes(4) + bytes((8, 18, 4 if wce else 0)).ljust(20, b"\0")


def transfer(code: int, block: int, count: int, flags: int = 0) -> bytes:
    """Return READ or WRITE (10)."""
    return struct.pack(">BBIBHB", code, flags, block, 0, count, 0)


def test_power_on_is_told_once(bench: Bench) -> None:
    """INQUIRY and REPORT LUNS do not take the notice away, REQUEST SENSE reads it."""
    scsi = Scsi(bench.socket("scsi"))
    scsi.good(b"\x12\0\0\0\x24\0", room=36)
    assert scsi.good(b"\xa0".ljust(9, b"\0") + b"\x10\0\0", room=16) == b"\0\0\0\x08" + bytes(12)
    assert scsi.good(b"\3\0\0\0\x12\0", room=18) == b"\x70\0\6\0\0\0\0\x0a\0\0\0\0\x29".ljust(18, b"\0")
    scsi.good(READY)
    assert scsi.good(b"\3\0\0\0\x12\0", room=18) == b"\x70\0\0\0\0\0\0\x0a".ljust(18, b"\0")
    scsi.close()


def test_it_is_named_as_by_qemu(scsi: Scsi) -> None:
    """Standard INQUIRY data."""
    data = scsi.good(b"\x12\0\0\0\xff\0", room=255)
    assert data[:8] == bytes((0, 0, 5, 0x12, 250, 0, 0, 0x12))
    assert data[8:36] == b"QEMU    QEMU HARDDISK   2.5+"
    assert len(scsi.good(b"\x12\0\0\0\x24\0", room=36)) == 36


def test_vital_product_data(scsi: Scsi) -> None:
    """Pages that there are, serial, identification with and without a WWN, limits."""

    def page(code: int, target: int = 0) -> bytes:
        return scsi.good(bytes((0x12, 1, code, 0, 255, 0)), room=255, target=target)

    assert page(0) == b"\0\0\0\6\0\x80\x83\xb0\xb1\xb2"
    assert page(0x80) == b"\0\x80\0\3ONE"
    assert page(0x83) == b"\0\x83\0\x13\2\0\0\3ONE\1\3\0\x08\x50\0\0\0\0\0\0\1"
    assert scsi.command(READY, target=1)[1] == 2
    assert page(0x83, target=1) == b"\0\x83\0\7\2\0\0\3TWO"
    assert [len(page(code)) for code in (0xB0, 0xB1, 0xB2)] == [64, 64, 8]
    assert page(0xB2)[5:7] == b"\xe0\2"
    assert scsi.sense(b"\x12\1\x90\0\xff\0", room=255) == BAD_FIELD
    assert scsi.sense(b"\x12\0\x80\0\xff\0", room=255) == BAD_FIELD


def test_capacity(scsi: Scsi) -> None:
    """By READ CAPACITY (10) and (16); the latter says that blocks can be unmapped."""
    assert scsi.good(b"\x25".ljust(10, b"\0"), room=8) == struct.pack(">II", BLOCKS - 1, 512)
    data = scsi.good(b"\x9e\x10".ljust(13, b"\0") + b"\x20\0\0", room=32)
    assert data == struct.pack(">QIBB", BLOCKS - 1, 512, 0, 0) + b"\x80" + bytes(17)
    assert scsi.sense(b"\x9e\x11".ljust(16, b"\0"), room=32) == BAD_FIELD


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (bytes((0x0A, 0, 0, 9, 2, 0)), bytes((0x08, 0, 0, 9, 2, 0))),
        (transfer(0x2A, 9, 2), transfer(0x28, 9, 2)),
        (struct.pack(">BBIIBB", 0xAA, 0, 9, 2, 0, 0), struct.pack(">BBIIBB", 0xA8, 0, 9, 2, 0, 0)),
        (struct.pack(">BBQIBB", 0x8A, 0, 9, 2, 0, 0), struct.pack(">BBQIBB", 0x88, 0, 9, 2, 0, 0)),
    ],
)
def test_reads_and_writes_of_all_lengths(bench: Bench, scsi: Scsi, write: bytes, read: bytes) -> None:
    """What is written lies in the file."""
    data = os.urandom(1024)
    scsi.good(write, data)
    assert scsi.good(read, room=1024) == data
    assert (bench.directory / "ONE.img").read_bytes()[9 * 512 : 11 * 512] == data


def test_fua_and_synchronize_cache_are_seen(bench: Bench, scsi: Scsi) -> None:
    """Each is counted; the disk says that it knows FUA only where it is configured so."""
    scsi.good(transfer(0x2A, 0, 1), bytes(512))
    scsi.good(transfer(0x2A, 0, 1, 8), bytes(512))
    scsi.good(b"\x35".ljust(10, b"\0"))
    scsi.good(b"\x91".ljust(16, b"\0"))
    seen = stats(bench)
    assert [seen[name] for name in ("writes", "fua_writes", "through_writes", "flushes")] == [2, 1, 0, 2]
    assert mode_sense(scsi)[2] == 0x10
    scsi.command(READY, target=1)
    assert mode_sense(scsi, target=1)[2] == 0


def test_the_caching_page(scsi: Scsi) -> None:
    """Current and default values say on; WCE is what can be changed; none are saved."""
    body = bytes((8, 18, 4)).ljust(20, b"\0")
    for control in (0, 1, 2):
        assert mode_sense(scsi, control) == bytes((23, 0, 0x10, 0)) + body
    assert scsi.sense(b"\x1a\x08\xc8\0\xff\0", room=255) == (5, 0x39, 0)
    assert scsi.sense(b"\x1a\x08\x0a\0\xff\0", room=255) == BAD_FIELD
    both = mode_sense(scsi, page=0x3F)
    assert both[4:6] == b"\1\x0a" and both[16:] == body
    ten = scsi.good(b"\x5a\0\x08\0\0\0\0\0\xff\0", room=255)
    assert ten == bytes((0, 34, 0, 0x10, 0, 0, 0, 8)) + struct.pack(">II", BLOCKS, 512) + body


def test_mode_select_switches_the_cache(bench: Bench, scsi: Scsi) -> None:
    """Off, the cache is emptied and each write goes through."""
    scsi.good(*mode_select(False))
    assert mode_sense(scsi)[6] == 0
    scsi.good(transfer(0x2A, 0, 1), bytes(512))
    seen = stats(bench)
    assert [seen[name] for name in ("cache", "through_writes", "fua_writes", "flushes")] == ["off", 1, 0, 1]
    ten = b"\x55\x10".ljust(8, b"\0") + b"\x1c\0", bytes(8) + bytes((8, 18, 4)).ljust(20, b"\0")
    scsi.good(*ten)
    assert stats(bench)["cache"] == "on"


@pytest.mark.parametrize(
    ("cdb", "data", "sense"),
    [
        (b"\x15\x11\0\0\x18\0", mode_select(False)[1], BAD_FIELD),
        (b"\x15\0\0\0\x18\0", mode_select(False)[1], BAD_FIELD),
        (b"\x15\x10\0\0\x18\0", bytes(4) + bytes((8, 18, 1)).ljust(20, b"\0"), BAD_PARAMETER),
        (b"\x15\x10\0\0\x18\0", bytes(4) + bytes((7, 18, 4)).ljust(20, b"\0"), BAD_PARAMETER),
        (b"\x15\x10\0\0\x17\0", bytes(4) + bytes((8, 17, 4)).ljust(19, b"\0"), BAD_PARAMETER),
        (b"\x15\x10\0\0\x17\0", bytes(4) + bytes((8, 18, 4)).ljust(19, b"\0"), BAD_LENGTH),
        (b"\x15\x10\0\0\x03\0", bytes(3), BAD_LENGTH),
        (b"\x15\x10\0\0\x18\0", b"\0\0\0\7" + bytes(20), BAD_PARAMETER),
        (b"\x15\x10\0\0\x08\0", b"\0\0\0\x08" + bytes(4), BAD_LENGTH),
    ],
)
def test_other_mode_selects_change_nothing(
    bench: Bench, scsi: Scsi, cdb: bytes, data: bytes, sense: tuple[int, int, int]
) -> None:
    """Saving, other bits, other pages and wrong lengths are refused."""
    assert scsi.sense(cdb, data) == sense
    assert stats(bench)["cache"] == "on"


def test_errors(scsi: Scsi) -> None:
    """Commands and blocks that there are not, protection information, and units other than 0."""
    assert scsi.sense(b"\xa3\x0c".ljust(12, b"\0")) == BAD_OPCODE
    assert scsi.sense(transfer(0x28, BLOCKS, 1), room=512) == (5, 0x21, 0)
    assert scsi.sense(transfer(0x28, 0, 1, 0x20), room=512) == BAD_FIELD
    assert scsi.sense(READY, lun=3) == (5, 0x25, 0)
    assert scsi.command(b"\x12\0\0\0\x24\0", room=36, lun=3)[3][0] == 0x7F
    assert scsi.command(transfer(0x28, 0, 2), room=512)[0] == 1
    assert scsi.command(READY, target=7)[0] == 3
    scsi.good(b"\x1b\0\0\0\1\0")


def test_unmap_and_write_same(bench: Bench, scsi: Scsi) -> None:
    """All make zeros, except WRITE SAME of something else."""
    scsi.good(transfer(0x2A, 0, 32), b"x" * 16384)
    ranges = struct.pack(">QIIQII", 0, 2, 0, 8, 1, 0)
    unmap = struct.pack(">HH4x", 6 + len(ranges), len(ranges)) + ranges
    scsi.good(struct.pack(">B6xHB", 0x42, len(unmap), 0), unmap)
    scsi.good(struct.pack(">BBQIBB", 0x93, 8, 4, 1, 0, 0), bytes(512))
    scsi.good(struct.pack(">BBIBHB", 0x41, 0, 5, 0, 2, 0), b"y" * 512)
    found = scsi.good(transfer(0x28, 0, 10), room=5120)
    assert bytes(found[::512]) == b"\0\0xx\0yyx\0x"
    assert stats(bench)["discards"] == 3
    assert scsi.sense(b"\x42".ljust(8, b"\0") + b"\4\0", bytes(4)) == BAD_LENGTH
    assert scsi.sense(struct.pack(">BBQIBB", 0x93, 8, 0, 0, 0, 0), bytes(512)) == BAD_FIELD


def test_a_reset_is_told_and_brings_the_cache_back(bench: Bench, scsi: Scsi) -> None:
    """Whether the server is told to, or the driver asks for it."""
    scsi.good(*mode_select(False))
    bench.tell("reset", serial="ONE")
    assert scsi.sense(READY) == POWER_ON
    assert mode_sense(scsi)[6] == 4
    scsi.good(*mode_select(False))
    assert task(scsi, function=5) == 0
    assert scsi.sense(READY) == POWER_ON
    assert mode_sense(scsi)[6] == 4


def task(scsi: Scsi, function: int, target: int = 0) -> int:
    """Return the response to a task management function."""
    words = struct.pack("<II8sQ", 0, function, bytes((1, target, 0x40, 0)), 0)
    return scsi.queues[0].request([words], [1])[0][0]


def test_other_control_requests(bench: Bench, scsi: Scsi) -> None:
    """Tasks are not aborted one by one; there is nothing to subscribe to; what is unknown stops the ring."""
    assert (task(scsi, 0), task(scsi, 5, target=9)) == (11, 3)
    assert scsi.queues[0].request([struct.pack("<I8sI", 1, bytes(8), 0)], [5]) == [bytes(5)]
    scsi.queues[0].add([struct.pack("<I", 9)], [5])
    scsi.good(READY)


def test_a_machine_that_comes_again_finds_all_as_after_power_on(bench: Bench, scsi: Scsi) -> None:
    """As after a reboot."""
    scsi.good(*mode_select(False))
    again = Scsi(bench.socket("scsi"))
    assert again.sense(READY) == POWER_ON
    assert mode_sense(again)[6] == 4
    again.close()


def test_disks_come_and_go(bench: Bench, scsi: Scsi) -> None:
    """The driver is told by an event; without a buffer it is told with the next that something was missed."""
    bench.tell("unplug", serial="ONE")
    assert scsi.queues[1].wait()[2] == [struct.pack("<IBB6xI", 1, 1, 0, 2)]
    assert scsi.command(READY)[0] == 3
    bench.tell("plug", disk={"serial": "NEW", "bus": "scsi", "store": bench.file("NEW")})
    scsi.queues[1].add([], [16])
    assert scsi.queues[1].wait()[2][0][:4] == struct.pack("<I", 1 << 31)
    assert scsi.sense(READY) == POWER_ON
    scsi.queues[1].add([], [16])
    bench.tell("unplug", serial="NEW")
    assert scsi.queues[1].wait()[2] == [struct.pack("<IBB6xI", 1, 1, 0, 2)]
    scsi.queues[1].add([], [16])
    bench.tell("plug", disk={"serial": "ONE", "bus": "scsi", "target": 5, "store": bench.file("ONE")})
    assert scsi.queues[1].wait()[2] == [struct.pack("<IBB6xI", 1, 1, 5, 1)]


def test_the_configuration_space_of_the_controller(scsi: Scsi) -> None:
    """The driver writes back the sizes that it found; others are refused."""
    words = struct.unpack("<IIIIIIIHHI", scsi.config(0, 36))
    assert words[0] == 1 and words[5:] == (96, 32, 0, 63, 0)
    assert scsi.set_config(20, struct.pack("<I", 96)) == 0
    assert scsi.set_config(24, struct.pack("<I", 32)) == 0
    assert scsi.set_config(20, struct.pack("<I", 252)) == 1
