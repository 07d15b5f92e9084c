# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One log, opened with O_SYNC, that all clients share: FairCom DB's LOG_WRITETHRU with its COMMIT_DELAY.

fio(1) has no option for it: there each client syncs for itself.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from array import array
from collections.abc import Sequence

from . import scratch
from .fio import Figures, figures
from .patterns import BLOCK

PATTERN = "group_osync"
#: Of COMMIT_DELAY in milliseconds: none at all, and more than anybody waits for.
NO_DELAY, LONGEST = -1, 1000


class _Group:
    """Commits that are written together, and the result."""

    def __init__(self) -> None:
        self.commits: list[bytes] = []
        self.done = threading.Event()
        self.error: OSError | None = None


class Log:
    """A log that is overwritten from its beginning to its end, again and again.

    The first client waits for others for the delay, then writes and syncs for all that have come. Below
    0 each client syncs for itself.
    """

    def __init__(self, descriptor: int, delay: int) -> None:
        """`descriptor`: a file written in full before, a MiB at least; `delay` in milliseconds. Raises OSError."""
        self._file = scratch.reopen(descriptor, os.O_WRONLY | os.O_SYNC)
        self._blocks = os.fstat(descriptor).st_size // BLOCK
        self._delay = delay / 1000
        self._next = 0
        self._group = _Group()
        self._joining, self._writing = threading.Lock(), threading.Lock()

    def commit(self, data: bytes) -> None:
        """Return once a block is durable as far as the kernel reports, written by any client. Raises OSError."""
        if self._delay < 0:
            self._write([data])
            return
        with self._joining:
            mine = self._group
            mine.commits.append(data)
            leads = len(mine.commits) == 1
        if leads:
            self._lead(mine)
        mine.done.wait()
        if mine.error:
            raise mine.error

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)

    def _lead(self, mine: _Group) -> None:
        time.sleep(self._delay)
        with self._writing:
            with self._joining:
                # Who comes from here on belongs to the next group.
                self._group = _Group()
            try:
                self._write(mine.commits)
            except OSError as error:
                mine.error = error
            finally:
                mine.done.set()

    def _write(self, commits: Sequence[bytes]) -> None:
        with self._joining:
            first = self._next if self._next + len(commits) <= self._blocks else 0
            self._next = first + len(commits)
        done = os.pwritev(self._file, commits, first * BLOCK)
        if done != len(commits) * BLOCK:
            raise OSError(f"only {done} of {len(commits) * BLOCK} bytes were written")


class _Client(threading.Thread):
    """Commits without a rest for some seconds, but no faster than `pace`; `took`: the seconds of each commit."""

    def __init__(
        self, log: Log, pace: float, seconds: float, start: threading.Event, stop: threading.Event
    ) -> None:
        """`start`: set once all clients run, because the start of a thread takes time."""
        super().__init__(daemon=True)
        self.took, self.ended, self.error = array("d"), 0.0, None  # type: array[float], float, OSError | None
        self._log, self._pace, self._seconds = log, pace, seconds
        self._start, self._stopped = start, stop

    def run(self) -> None:
        filler = secrets.token_bytes(BLOCK - 8)
        self._start.wait()
        until = time.monotonic() + self._seconds
        try:
            while time.monotonic() < until and not self._stopped.is_set():
                began = time.monotonic()
                self._log.commit(len(self.took).to_bytes(8, "big") + filler)
                self.took.append(time.monotonic() - began)
                self._stopped.wait(max(0.0, began + self._pace - time.monotonic()))
        except OSError as error:
            self.error = error
        self.ended = time.monotonic()


def measure(descriptors: Sequence[int], clients: int, delay: int, seconds: float, most: int) -> list[Figures]:
    """Let so many clients commit to each log at the same time, and return the figures of each log.

    `most`: commits in a second to one log. Raises OSError.
    """
    logs = [Log(descriptor, delay) for descriptor in descriptors]
    start, stop = threading.Event(), threading.Event()
    every = [
        [_Client(log, clients / most, seconds, start, stop) for _client in range(clients)] for log in logs
    ]
    started = []
    try:
        for client in (client for those in every for client in those):
            client.start()
            started.append(client)
        began = time.monotonic()
        start.set()
        for client in started:
            client.join()
    finally:
        stop.set()
        start.set()
        for client in started:
            client.join()
        for log in logs:
            log.close()
    return [_figures(those, began) for those in every]


def _figures(clients: Sequence[_Client], began: float) -> Figures:
    for client in clients:
        if client.error:
            raise client.error
    took = sorted(seconds for client in clients for seconds in client.took)
    lasted = max(client.ended for client in clients) - began
    return figures(len(took), lasted, len(clients), 1000 * took[int(0.99 * (len(took) - 1))])
