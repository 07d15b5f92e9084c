# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that share a log: who writes for whom, how fast they may be, and that they end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.measure import grouped, scratch
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import MIB
from ansible_collections.durable.dbhost.plugins.module_utils.measure.patterns import BLOCK

BLOCKS = MIB // BLOCK


@pytest.fixture
def log(tmp_path: Path) -> Iterator[int]:
    """A log that was written in full."""
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    scratch.fill(descriptor, MIB)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was written: blocks, and at which one. Each write takes 5 ms, as on a disk."""
    found: list[tuple[int, int]] = []

    def pwritev(_file: int, parts: list[bytes], offset: int) -> int:
        time.sleep(0.005)
        found.append((len(parts), offset // BLOCK))
        return len(parts) * BLOCK

    monkeypatch.setattr(grouped.os, "pwritev", pwritev)
    return found


def test_one_writes_for_all_that_wait(log: int, written: list[Any]) -> None:
    (figures,) = grouped.measure([log], 8, 20, 0.5, 10**6)
    assert figures.commits == sum(count for count, _first in written)
    assert max(count for count, _first in written) == 8, "all eight wait within 20 ms"
    assert figures.mean > 20


def test_without_a_delay_each_client_syncs_for_itself(log: int, written: list[Any]) -> None:
    (figures,) = grouped.measure([log], 8, grouped.NO_DELAY, 0.2, 10**6)
    assert {count for count, _first in written} == {1}
    assert figures.commits == len(written) > 8


def test_no_write_goes_beyond_the_end_of_the_log(log: int, written: list[Any]) -> None:
    shared = grouped.Log(log, grouped.NO_DELAY)
    shared._next = BLOCKS - 3
    for _number in range(5):
        shared._write([b""] * 2)
    shared.close()
    assert written == [(2, BLOCKS - 3), (2, 0), (2, 2), (2, 4), (2, 6)]


def test_it_is_no_faster_than_it_may(log: int) -> None:
    figures = grouped.measure([log], 4, 0, 0.5, 80)
    assert 4 <= figures[0].commits <= 44


def test_each_log_has_its_own_figures(log: int, tmp_path: Path) -> None:
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    scratch.fill(other, MIB)
    found = grouped.measure([log, other], 2, 1, 0.2, 10**6)
    os.close(other)
    assert len(found) == 2
    assert all(one.commits > 0 and one.rate > 0 and one.p99 >= 1 for one in found)


def test_what_is_written_was_opened_to_wait_for_the_disk(log: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    reopen = scratch.reopen
    monkeypatch.setattr(
        grouped.scratch, "reopen", lambda file, flags: asked.append(flags) or reopen(file, flags)
    )
    grouped.Log(log, 1).close()
    assert asked == [os.O_WRONLY | os.O_SYNC]


@pytest.mark.parametrize("delay", [grouped.NO_DELAY, 5])
def test_a_disk_that_fails_fails_all(log: int, delay: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(grouped.os, "pwritev", broken)
    with pytest.raises(OSError, match="Input/output error"):
        grouped.measure([log], 4, delay, 5, 10**6)


def test_the_start_of_the_clients_is_not_measured(log: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(grouped._Client):
        """A client whose thread takes a while to start."""

        def start(self) -> None:
            super().start()
            time.sleep(0.1)

    monkeypatch.setattr(grouped, "_Client", Slow)
    (figures,) = grouped.measure([log], 4, grouped.NO_DELAY, 0.2, 40)
    # Each client has a commit every 0.1 s: two within 0.2 s, or three if the last is early.
    assert 8 <= figures.commits <= 12
    assert 0.18 < figures.commits / figures.rate < 0.35


def test_a_signal_ends_all_clients(log: int) -> None:
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    began = time.monotonic()
    with pytest.raises(scratch.Ended), scratch.signals_end():
        timer.start()
        grouped.measure([log], 4, 1, 30, 10**6)
    assert time.monotonic() - began < 5
    clients = [thread for thread in threading.enumerate() if isinstance(thread, grouped._Client)]
    for client in clients:
        client.join(1)  # One that has ended stands in the list for a moment yet.
    assert not [client for client in clients if client.is_alive()]
