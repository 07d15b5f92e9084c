# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that may be Firebird databases: paths, first bytes, and processes that have them open.

Everything that touches a disk has a time limit: a disk that hangs must not hang us.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from ...host import bounds
from ...host.paths import normal
from ...host.seam import Host, NoAnswer, Status, Unobservable
from .. import open_files
from .header import LENGTH

#: How far below a directory databases are searched for, and how many files are examined there.
DEPTH, MOST_FILES = 8, bounds.DATABASES
#: Bytes. A new database of Firebird 3 with the smallest pages has more than 800 KiB.
_SMALLEST = 256 * 1024
#: What databases are called by custom.
_ENDINGS = (".fdb", ".FDB", ".gdb", ".GDB", ".ib")
#: Reasons for which what was found is no database: opening a pipe or a watchdog does things.
GONE, NO_FILE = "it is not there", "it is not a regular file"
_LOCKS = "/proc/locks"
_LOCK = re.compile(
    r"^\d+: (?:-> )?\S+ +\S+ +\S+ +(?P<pid>-?\d{1,9}) (?P<major>[0-9a-f]{1,8}):(?P<minor>[0-9a-f]{1,8}):(?P<inode>\d{1,20}) ",
    re.M | re.ASCII,
)


class Beginning(NamedTuple):
    """The first bytes of a file, or the reason why there are none; its status if that is known."""

    status: Status | None
    page: bytes
    reason: str | None = None


class Lock(NamedTuple):
    """A lock that a process holds; the pid is -1 or 0 where the kernel does not tell it."""

    pid: int
    device: int
    inode: int


class Files:
    """The files of one host; `root` is where a container's files are mounted, or ''."""

    def __init__(self, host: Host, root: str = "") -> None:
        self.host = host
        self.root = root
        self._locks: list[Lock] | None = None
        self._hung: dict[str, str] = {}

    def beginning(self, path: str) -> Beginning:
        """Return how a file begins, links followed."""
        directory = posixpath.dirname(path)
        if directory in self._hung:
            return Beginning(None, b"", self._hung[directory])
        status = None
        try:
            status = self.host.locate(path, self.root).status
            if status is None:
                return Beginning(None, b"", GONE)
            if not stat.S_ISREG(status.mode):
                return Beginning(status, b"", NO_FILE)
            part = self.host.read_part(path, self.root, LENGTH)
            return Beginning(part.status, part.content) if part else Beginning(None, b"", GONE)
        except NoAnswer as error:
            # One disk that hangs keeps nobody else's back, and is not waited for again for each file.
            self._hung[directory] = str(error)
            return Beginning(status, b"", str(error))
        except Unobservable as error:
            return Beginning(status, b"", str(error))

    def search(self, directory: str) -> list[str]:
        """Return the files in and below a directory that are large enough for a database.

        Raises Unobservable when it takes too long, or when there are too many.
        """
        found = self.host.find_files(directory, self.root, MOST_FILES + 1, DEPTH, _SMALLEST)
        if len(found) > MOST_FILES:
            raise Unobservable(
                f"{directory}: observed more than {MOST_FILES} files; expected fewer: name a directory closer to the"
                " databases"
            )
        return sorted(normal(posixpath.join(directory, path)) for path in found)

    def neighbours(self, directory: str) -> list[str]:
        """Return the files in a directory that are large enough for a database, of too many only those that end in a usual
        way. Raises Unobservable if there are too many of these, too."""
        found = self.host.find_files(directory, self.root, MOST_FILES + 1, 1, _SMALLEST)
        if len(found) > MOST_FILES:
            found = [
                path
                for ending in _ENDINGS
                for path in self.host.find_files(directory, self.root, MOST_FILES + 1, 1, _SMALLEST, ending)
            ]
        if len(found) > MOST_FILES:
            raise Unobservable(
                f"{directory}: more than {MOST_FILES} files are next to a database: move the databases to a directory"
                " of their own, then run again"
            )
        return sorted(normal(posixpath.join(directory, path)) for path in found)

    def holders(self, path: str, status: Status) -> list[int]:
        """Return the processes that hold a lock on a file: Firebird locks each database that it opens.

        -1 is one that the kernel does not name. Raises Unobservable.
        """
        if self._locks is None:
            self._locks = list(parse_locks(self.host.read(_LOCKS)))
        found = {
            lock.pid
            for lock in self._locks
            if lock.inode == status.inode
            # A subvolume of btrfs has a device of its own, and locks tell that of the whole.
            and (lock.device == status.device or path in self._open_in(lock.pid))
        }
        return sorted(pid if pid > 0 else -1 for pid in found)

    def flags(self, pid: int, path: str) -> list[str]:
        """Return how a process has a file open for writing, as openfiles.opened says it.

        Raises Unobservable.
        """
        machine = self.host.run(["uname", "-m"]).stdout.strip()
        found = []
        for number, target in self._links(pid):
            if target == path:
                try:
                    flags, _mount = open_files.parse_fdinfo(self.host.read(f"/proc/{pid}/fdinfo/{number}"))
                except ValueError as error:
                    raise Unobservable(f"/proc/{pid}/fdinfo/{number}: {error}") from error
                if open_files.is_writable(flags):
                    found.append(open_files.opened(flags, machine))
        return found

    def _open_in(self, pid: int) -> list[str]:
        try:
            return [target for _number, target in self._links(pid)]
        except Unobservable:
            return []

    def _links(self, pid: int) -> Iterator[tuple[str, str]]:
        for number in self.host.names(f"/proc/{pid}/fd"):
            try:
                yield number, self.host.link(f"/proc/{pid}/fd/{number}")
            except Unobservable:
                continue  # It was closed meanwhile.


def parse_locks(text: str) -> Iterator[Lock]:
    """Yield the locks in /proc/locks: proc_locks(5)."""
    for found in _LOCK.finditer(text):
        device = os.makedev(int(found["major"], 16), int(found["minor"], 16))
        yield Lock(int(found["pid"]), device, int(found["inode"]))
