# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commits on the host whose power will be cut. Each is reported to the witness before the next."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence

from .patterns import PATTERNS, Log
from .plug_job import Job, record
from .plug_witness import LINE, prove

#: Seconds that a witness may take to answer.
PATIENCE = 10.0


class Ends(Exception):
    """A client ends, and why."""


class Client:
    """One client: commits, informs the witness, waits for its answer, and repeats until the end."""

    def __init__(self, job: Job, number: int, address: tuple[str, int], key: str, file: int) -> None:
        """`file`: the client's file, written in full unless it is to grow. Raises OSError or Ends."""
        self.job, self.number = job, number
        self.acknowledged = 0
        self.why = ""
        self._unread = b""
        self._log = Log(file, PATTERNS[job.pattern_of(number)])
        self._witness = socket.create_connection(address, PATIENCE)
        self._witness.settimeout(PATIENCE)
        self._witness.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._say(f"{number} {prove(key, self._hear(), number)}")
        if self._hear() != "ok":
            raise Ends("the witness does not know us: is it another run's?")

    def work(self, stopped: threading.Event) -> None:
        """Commit until stopped; `why` is the reason of the end."""
        try:
            self._work(stopped)
        except (OSError, Ends) as error:
            self.why = str(error) or type(error).__name__
        stopped.set()
        try:
            self._say(f"end {self.why or 'stopped'}"[: LINE - 1])
        except OSError:
            pass  # The witness hears the connection end.
        self.close()

    def close(self) -> None:
        """Give the connection and the file back."""
        self._witness.close()
        self._log.close()

    def _work(self, stopped: threading.Event) -> None:
        job, began = self.job, time.monotonic()
        pause = job.clients / job.rate
        for commit in itertools.count():
            due = began + commit * pause
            if stopped.wait(max(0.0, due - time.monotonic())):
                return
            if time.monotonic() - began > job.seconds:
                raise Ends("the time was over without a power cut")
            self._log.commit(record(job, self.number, commit), job.slot_of(self.number, commit))
            self._say(str(commit))
            if self._hear() != str(commit):
                raise Ends("the witness answered something else")
            self.acknowledged = commit + 1

    def _say(self, line: str) -> None:
        self._witness.sendall(f"{line}\n".encode("ascii", "replace"))

    def _hear(self) -> str:
        while b"\n" not in self._unread:
            received = self._witness.recv(4096)
            if not received or len(self._unread) > LINE:
                raise Ends("the witness has gone")
            self._unread += received
        line, _newline, self._unread = self._unread.partition(b"\n")
        return line.decode("ascii", "replace")


def commit_all(clients: Sequence[Client], stopped: threading.Event, began: Callable[[], None]) -> str:
    """Run all clients until one ends; call `began` once each has a commit acknowledged. Return why it ended.

    One that ends ends all: what is left would not be the load that was requested.
    """
    threads = [threading.Thread(target=client.work, args=(stopped,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    while not stopped.wait(0.05):
        if all(client.acknowledged for client in clients):
            began()
            break
    for thread in threads:
        thread.join()
    return next((client.why for client in clients if client.why), "stopped")
