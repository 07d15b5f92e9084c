# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of a volatile disk: every write, flush and acknowledgement, in one order.

Two files that only grow: LOG holds records of a fixed size, DATA what was written. DATA is written first, so
a record without its data can only be the last one, of a process that was killed.

The file starts with MAGIC, the version and the size of the disk; each record is

    sequence u64, kind u8, flags u8, 0 u16, length u32, offset u64, place in DATA u64,
    nanoseconds u64, CRC-32 of the data u32, CRC-32 of this record u32

all little-endian. `time` is for people; nothing is decided by it.
"""

from __future__ import annotations

import enum
import mmap
import os
import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from proof.errors import ProofError

MAGIC = b"DBHPROOF"
VERSION = 1
HEADER = struct.Struct("<8sIIQ24x")
RECORD = struct.Struct("<QBBHIQQQI")
CRC = struct.Struct("<I")
SIZE = RECORD.size + CRC.size
FUA = 1
SECTOR = 512


class Kind(enum.IntEnum):
    """What the disk was told."""

    WRITE = 1
    ZERO = 2
    TRIM = 3
    FLUSH = 4
    ACK = 5
    NOTE = 6


CHANGES = (Kind.WRITE, Kind.ZERO, Kind.TRIM)
WITH_DATA = (Kind.WRITE, Kind.ACK, Kind.NOTE)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that the disk was told. ZERO and TRIM have a length and no data: they read as zeros."""

    sequence: int
    kind: Kind
    offset: int = 0
    length: int = 0
    fua: bool = False
    data: bytes | memoryview = b""
    time: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A log that was read: the disk's size in bytes, and `torn`, which is empty or says what is missing."""

    size: int
    events: list[Event]
    torn: str = ""


class Writer:
    """Appends to a new log. What was appended survives the death of this process, not of this host."""

    def __init__(self, directory: Path, size: int) -> None:
        """Begin a log of a disk of `size` bytes; a log that is there already is refused."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._log = os.open(log_file(directory), flags, 0o644)
        self._data = os.open(data_file(directory), flags, 0o644)
        self._sequence = 0
        self._place = 0
        _write_all(self._log, HEADER.pack(MAGIC, VERSION, SIZE, size))

    def append(
        self, kind: Kind, offset: int = 0, length: int = 0, fua: bool = False, data: bytes = b""
    ) -> None:
        """Append one event."""
        _write_all(self._data, data)
        words = (self._sequence, kind, FUA if fua else 0, 0, length or len(data), offset, self._place)
        record = RECORD.pack(*words, time.time_ns(), zlib.crc32(data))
        _write_all(self._log, record + CRC.pack(zlib.crc32(record)))
        self._sequence += 1
        self._place += len(data)

    def close(self) -> None:
        """Close the files."""
        os.close(self._log)
        os.close(self._data)


def log_file(directory: Path) -> Path:
    """Return the file of the records."""
    return directory / "disk.records"


def data_file(directory: Path) -> Path:
    """Return the file of what was written."""
    return directory / "disk.data"


def count(directory: Path) -> int:
    """Return how many events a log has by now; the process that writes it may be at work."""
    return max(0, log_file(directory).stat().st_size - HEADER.size) // SIZE


def read(directory: Path) -> Log:
    """Read a log. A torn end is told in `torn` and left out; ProofError: anything else is wrong with it."""
    records = log_file(directory).read_bytes()
    if len(records) < HEADER.size:
        raise ProofError(f"{log_file(directory)}: too short for a log")
    magic, version, record_size, size = HEADER.unpack_from(records)
    if (magic, version, record_size) != (MAGIC, VERSION, SIZE):
        raise ProofError(f"{log_file(directory)}: not a log of version {VERSION}")
    return _events(records, _mapped(data_file(directory)), size)


def _events(records: bytes, data: memoryview, size: int) -> Log:
    events: list[Event] = []
    count, rest = divmod(len(records) - HEADER.size, SIZE)
    for number in range(count):
        wrong, event = _event(records, HEADER.size + number * SIZE, data)
        if not wrong and event.sequence != number:
            wrong = f"it has the sequence {event.sequence}"
        if wrong and number == count - 1 and not rest:
            return Log(size, events, f"the last record, {number}, is left out: {wrong}")
        if wrong:
            raise ProofError(f"record {number} of {count}: {wrong}")
        events.append(event)
    return Log(size, events, f"record {count} ends after {rest} of {SIZE} bytes" if rest else "")


def _event(records: bytes, at: int, data: memoryview) -> tuple[str, Event]:
    """Return what is wrong with a record, or nothing, and its event."""
    sequence, kind, flags, _, length, offset, place, nanoseconds, crc = RECORD.unpack_from(records, at)
    if CRC.unpack_from(records, at + RECORD.size)[0] != zlib.crc32(records[at : at + RECORD.size]):
        return "its checksum is wrong", Event(0, Kind.NOTE)
    own = data[place : place + length] if kind in WITH_DATA else data[:0]
    if kind in WITH_DATA and len(own) != length:
        return "its data is missing", Event(0, Kind.NOTE)
    if zlib.crc32(own) != crc:
        return "the checksum of its data is wrong", Event(0, Kind.NOTE)
    return "", Event(sequence, Kind(kind), offset, length, bool(flags & FUA), own, nanoseconds)


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of it: a short write would tear the log while the disk goes on."""
    while data:
        data = data[os.write(descriptor, data) :]
