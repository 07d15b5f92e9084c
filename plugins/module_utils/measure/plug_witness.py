# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A witness on another host: logs the acknowledged commits durably, until the measured host is silent.

A client says hello with a key that both were given, then names each commit once its call has returned, and
waits for the answer before the next. The answer is given once the line is on the witness's own disk.
"""

from __future__ import annotations

import hmac
import os
import secrets
import selectors
import socket
import time
from collections import Counter
from typing import Callable

from ..host import printable
from . import plug_job
from .plug_job import Job

#: Bytes of one line of a client, and of a log.
LINE, MOST = 128, 256 * 1024 * 1024
#: A connection that is reset this long after its last word was not ended by its process: the host was gone.
_GONE = 2.0
#: Seconds that a stranger may take to say hello, whatever it says meanwhile.
_HELLO = 5.0
#: Connections that have not sent hello. One more takes the place of another: to come late locks nobody out.
STRANGERS = 64


def prove(key: str, challenge: str, client: int) -> str:
    """Return what a client answers to a challenge."""
    return hmac.new(key.encode(), f"{challenge} {client}".encode(), "sha256").hexdigest()


class Peer:
    """One connection from an address: `client` is -1 until it has named itself, and a stranger till then."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self.challenge = secrets.token_hex(16)
        self.client = -1
        self.unread = b""
        self.since = self.heard = time.monotonic()


class Witness:
    """Serves one run. `log`: an open file whose first line is the job. `stopped` says when to end."""

    def __init__(
        self, listener: socket.socket, log: int, job: Job, key: str, stopped: Callable[[], bool]
    ) -> None:
        self._listener, self._log, self._job, self._key, self._stopped = listener, log, job, key, stopped
        self._selector = selectors.DefaultSelector()
        self._next = dict.fromkeys(range(job.clients), 0)
        self._used: set[int] = set()
        self._written = os.fstat(log).st_size
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, None)

    def serve(self, seconds: float) -> None:
        """Serve until the time is over, the log is full, or a user stops it. Raises OSError for the log's disk."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._written < MOST and not self._stopped():
            lines: list[str] = []
            answers: list[tuple[Peer, bytes]] = []
            ready = [key.data for key, _events in self._selector.select(0.5)]
            for peer in filter(None, ready):
                self._hear(peer, lines, answers)
            self._drop_strangers()
            if None in ready:
                self._accept()
            # All that came together becomes durable together, and only then is answered.
            self._keep(lines)
            for peer, answer in answers:
                self._send(peer, answer)
        for peer in self._peers():
            self._forget(peer)
        self._selector.close()

    def _accept(self) -> None:
        """Take who is waiting: as many as there is room for, so that answers are not delayed."""
        for _newcomer in range(STRANGERS):
            try:
                connection, address = self._listener.accept()
            except OSError:
                return
            self._make_room()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(connection, address[0])
            self._selector.register(connection, selectors.EVENT_READ, peer)
            self._send(peer, f"{peer.challenge}\n".encode())

    def _make_room(self) -> None:
        """Forget a stranger where there are too many: the oldest of the address that has the most."""
        strangers = self._strangers()
        if len(strangers) >= STRANGERS:
            count = Counter(peer.address for peer in strangers)
            self._forget(min(strangers, key=lambda peer: (-count[peer.address], peer.since)))

    def _hear(self, peer: Peer, lines: list[str], answers: list[tuple[Peer, bytes]]) -> None:
        try:
            received = peer.connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            # A host that is back after a cut resets what it does not know any more.
            if time.monotonic() - peer.heard < _GONE:
                self._note_end(peer, "reset", lines)
            self._forget(peer)
            return
        if not received:
            self._note_end(peer, "closed", lines)
            self._forget(peer)
            return
        peer.heard = time.monotonic()
        peer.unread += received
        while b"\n" in peer.unread:
            line, _newline, peer.unread = peer.unread.partition(b"\n")
            if not self._take(peer, line.decode("ascii", "backslashreplace"), lines, answers):
                self._forget(peer)
                return
        if len(peer.unread) > LINE:
            self._forget(peer)

    def _take(self, peer: Peer, line: str, lines: list[str], answers: list[tuple[Peer, bytes]]) -> bool:
        """Process a line; False if its sender must not be served any more."""
        if peer.client < 0:
            client, _space, proof = line.partition(" ")
            number = int(client) if client.isdigit() and len(client) < 4 else -1
            if number not in self._next or number in self._used:
                return False
            if not hmac.compare_digest(proof.encode(), prove(self._key, peer.challenge, number).encode()):
                return False
            peer.client = number
            self._used.add(number)
            answers.append((peer, b"ok\n"))
            return True
        if line.startswith("end "):
            self._note_end(peer, line[4:], lines)
            return True
        if line != str(self._next[peer.client]):
            self._note_end(peer, "sent a line out of order", lines)
            return False
        lines.append(f"a {peer.client} {line}\n")
        self._next[peer.client] += 1
        answers.append((peer, f"{line}\n".encode()))
        return True

    def _note_end(self, peer: Peer, why: str, lines: list[str]) -> None:
        if peer.client >= 0:
            lines.append(f"e {peer.client} {printable.line(why)[:LINE]}\n")

    def _keep(self, lines: list[str]) -> None:
        if lines:
            text = "".join(lines).encode("ascii")
            view = memoryview(text)
            while view:
                view = view[os.write(self._log, view) :]
            os.fdatasync(self._log)
            self._written += len(text)

    def _send(self, peer: Peer, answer: bytes) -> None:
        try:
            peer.connection.send(answer)
        except OSError:
            pass  # That it is gone is heard when it is read next.

    def _drop_strangers(self) -> None:
        for peer in self._strangers():
            if time.monotonic() - peer.since > _HELLO:
                self._forget(peer)

    def _strangers(self) -> list[Peer]:
        return [peer for peer in self._peers() if peer.client < 0]

    def _peers(self) -> list[Peer]:
        return [key.data for key in self._selector.get_map().values() if key.data is not None]

    def _forget(self, peer: Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()


def first_line(job: Job) -> bytes:
    """Return how a log begins."""
    return f"{plug_job.dumps(job)}\n".encode("ascii")
