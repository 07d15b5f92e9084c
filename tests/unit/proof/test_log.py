# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log: what is appended is read back, and what is damaged is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof import log
from proof.errors import ProofError
from proof.log import Kind

EVENTS = (
    (Kind.WRITE, 4096, 512, False, b"a" * 512),
    (Kind.WRITE, 8192, 1024, True, b"b" * 1024),
    (Kind.ZERO, 0, 1 << 20, True, b""),
    (Kind.TRIM, 512, 512, False, b""),
    (Kind.FLUSH, 0, 0, False, b""),
    (Kind.ACK, 0, 512, False, b"c" * 512),
    (Kind.NOTE, 0, 4, False, b"note"),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with a log of EVENTS."""
    writer = log.Writer(tmp_path, 1 << 26)
    for kind, offset, length, fua, data in EVENTS:
        writer.append(kind, offset, length, fua, data)
    writer.close()
    return tmp_path


def test_what_was_appended_is_read_back(directory: Path) -> None:
    """All fields, in order, numbered from 0."""
    read = log.read(directory)
    seen = tuple((e.kind, e.offset, e.length, e.fua, bytes(e.data)) for e in read.events)
    assert seen == EVENTS
    assert [event.sequence for event in read.events] == list(range(len(EVENTS)))
    assert (read.size, read.torn) == (1 << 26, "")
    times = [event.time for event in read.events]
    assert times == sorted(times)
    assert times[0] > 0


def test_a_log_without_data_can_be_read(tmp_path: Path) -> None:
    """A disk that was only flushed."""
    writer = log.Writer(tmp_path, 512)
    writer.append(Kind.FLUSH)
    writer.close()
    assert [event.kind for event in log.read(tmp_path).events] == [Kind.FLUSH]


def test_a_log_is_never_continued(directory: Path) -> None:
    """Two runs in one log would have two orders."""
    with pytest.raises(FileExistsError):
        log.Writer(directory, 512)


@pytest.mark.parametrize("lost", [1, log.SIZE - 1])
def test_a_torn_record_is_told(directory: Path, lost: int) -> None:
    """The process was killed while it wrote the last record."""
    _shorten(log.log_file(directory), lost)
    read = log.read(directory)
    assert len(read.events) == len(EVENTS) - 1
    assert read.torn == f"record 6 ends after {log.SIZE - lost} of {log.SIZE} bytes"


def test_missing_data_of_the_last_record_is_told(directory: Path) -> None:
    """Data goes first, but nothing holds a host to that order once it has crashed."""
    _shorten(log.data_file(directory), 1)
    read = log.read(directory)
    assert len(read.events) == len(EVENTS) - 1
    assert read.torn == "the last record, 6, is left out: its data is missing"


def test_missing_data_elsewhere_is_an_error(directory: Path) -> None:
    """Then the log tells nothing for sure."""
    _shorten(log.data_file(directory), 5)
    with pytest.raises(ProofError, match="record 5 of 7: its data is missing"):
        log.read(directory)


@pytest.mark.parametrize(
    ("file", "at", "reason"),
    [
        (log.log_file, log.HEADER.size + 20, "record 0 of 7: its checksum is wrong"),
        (log.data_file, 100, "record 0 of 7: the checksum of its data is wrong"),
        (log.log_file, 0, "not a log of version 1"),
        (log.log_file, 8, "not a log of version 1"),
    ],
)
def test_a_flipped_bit_is_an_error(directory: Path, file: object, at: int, reason: str) -> None:
    """Evidence that changed on its way is none."""
    path = file(directory)  # type: ignore[operator]
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ProofError, match=reason):
        log.read(directory)


def test_a_record_that_is_missing_in_the_middle_is_an_error(directory: Path) -> None:
    """Its sequence number is missed."""
    path = log.log_file(directory)
    content = path.read_bytes()
    at = log.HEADER.size + 2 * log.SIZE
    path.write_bytes(content[:at] + content[at + log.SIZE :])
    with pytest.raises(ProofError, match="record 2 of 6: it has the sequence 3"):
        log.read(directory)


def test_an_empty_file_is_no_log(tmp_path: Path) -> None:
    """Said so, not shown as a disk that got nothing."""
    log.log_file(tmp_path).touch()
    with pytest.raises(ProofError, match="too short"):
        log.read(tmp_path)


def _shorten(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:-count])
