# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the guard receives and sends messages: the monitor's fifo, the journal, the service manager."""

from __future__ import annotations

import os
import re
import socket
import stat

from ...host import printable
from ...host.our_paths import FIFO, RUNTIME

_WORD = re.compile(r"[A-Z_]{1,32}", re.ASCII)
_PIECE = 4096
#: Where the monitor's user has to come through.
_WAY = (os.path.dirname(RUNTIME), RUNTIME)


class Fifo:
    """What the monitor's notify command writes into. `descriptor` is for select(2)."""

    def __init__(self, path: str = FIFO) -> None:
        self.path = path
        self.descriptor = -1

    def make(self, group: int) -> None:
        """Make it again, for members of a group to write. Raises OSError."""
        self.close()
        os.makedirs(os.path.dirname(self.path), 0o755, exist_ok=True)
        if self.path == FIFO:
            for directory in _WAY:
                os.chmod(directory, 0o755)  # whatever umask it was made under
        if os.path.lexists(self.path):
            os.unlink(self.path)
        os.mkfifo(self.path, 0o600)
        # For reading and writing: it never comes to its end, and writers find it open.
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        self.give(group)

    def give(self, group: int) -> None:
        """Let a group write into it; group 0 is root's own. Raises OSError."""
        os.fchown(self.descriptor, -1, group)
        # For reading too: the hook opens it for both, so that it never waits for us.
        os.fchmod(self.descriptor, 0o660 if group else 0o600)

    def is_there(self) -> bool:
        """Return whether the path is still what is read here."""
        try:
            status, mine = os.stat(self.path, follow_symlinks=False), os.fstat(self.descriptor)
        except OSError:
            return False
        return stat.S_ISFIFO(status.st_mode) and (status.st_dev, status.st_ino) == (mine.st_dev, mine.st_ino)

    def words(self) -> list[str]:
        """Return the messages that arrived, without waiting."""
        try:
            received = os.read(self.descriptor, _PIECE)
        except BlockingIOError:
            return []
        lines = [line.strip().decode("ascii", "replace") for line in received.split(b"\n")]
        return [line if _WORD.fullmatch(line) else "an unreadable word" for line in lines if line]

    def close(self) -> None:
        """Read no more."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def say(line: str, level: int = 6) -> None:
    """Write a line for the journal, with its level: standard error is the journal's, and never blocks
    (`never_wait`)."""
    try:
        os.write(2, f"<{level}>{printable.line(line)}\n".encode())
    except OSError:
        pass


def never_wait() -> None:
    """Have a journal that hangs miss lines, rather than the guard wait for it."""
    os.set_blocking(2, False)


def tell_manager(*words: str) -> None:
    """Tell systemd assignments, by sd_notify(3)'s protocol, if it requests them."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as messages:
            messages.setblocking(False)
            messages.sendto("\n".join(map(printable.line, words)).encode(), address.replace("@", "\0", 1))
    except OSError:
        pass  # It hears nothing of us, and will end us: whoever ends us tightens.
