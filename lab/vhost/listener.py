# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unix sockets that others connect to."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabError
from lab.vhost.loop import Loop

LONGEST = 107


class Listener:
    """A socket at a path; `accepted` gets each connection."""

    def __init__(self, path: Path, loop: Loop, accepted: Callable[[socket.socket], None]) -> None:
        """Listen. The path appears only when it can be connected to. LabError: another process listens there."""
        if len(bytes(path)) > LONGEST - 4:
            raise LabError(f"the path of the socket {path} has {len(bytes(path))} bytes: {LONGEST - 4} fit")
        self._path = path
        self._loop = loop
        self._accepted = accepted
        _must_be_free(path)
        self._socket = socket.socket(socket.AF_UNIX)
        fresh = path.with_name(f"{path.name}.new")
        try:
            fresh.unlink(missing_ok=True)
            self._socket.bind(str(fresh))
            self._socket.listen()
            fresh.rename(path)
        except OSError as error:
            self._socket.close()
            raise LabError(f"cannot listen at {path}: {error.strerror}") from error
        loop.add(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Listen no longer."""
        self._loop.remove(self._socket.fileno())
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        self._accepted(self._socket.accept()[0])


def _must_be_free(path: Path) -> None:
    """What a server that was killed left behind is no obstacle; a living one is."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return
    raise LabError(f"another process listens at {path}")
