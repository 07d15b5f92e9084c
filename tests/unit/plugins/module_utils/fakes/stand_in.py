# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a daemon that listens on loopback: it says what a test wants, as slowly as it wants."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

#: Holds one conversation; the connection ends with it.
Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(talk: Talk, times: int = 1) -> Iterator[int]:
    """Listen for so many conversations, and yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def serve() -> None:
            for _time in range(times):
                with contextlib.suppress(OSError):
                    link, _address = server.accept()
                    with link:
                        link.settimeout(10)
                        talk(link)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def answering(answer: Callable[[bytes], bytes], size: int = 7) -> Talk:
    """Answer each line, or each record of apcupsd's, in pieces of a few bytes, until nothing more comes."""

    def talk(link: socket.socket) -> None:
        while True:
            question = link.recv(4096)
            if not question:
                return
            said = answer(question)
            for place in range(0, len(said), size):
                link.sendall(said[place : place + size])

    return talk
