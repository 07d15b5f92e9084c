# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that may be Firebird databases: where they are, how they begin, and who has them open.

Everything that touches a disk is a command with a time limit: a disk that hangs must not hang us.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .. import bounds
from ..host import Host, Unobservable
from ..paths import normal
from . import openfiles
from .firebird_header import LENGTH

#: How far below a directory databases are looked for, and how many files are looked into there.
DEPTH, MOST_FILES = 8, bounds.DATABASES
#: KiB. A new database of Firebird 3 with the smallest pages has more than 800.
_SMALLEST = 256
_BATCH = 100
_LOCKS = "/proc/locks"
_LOCK = re.compile(
    r"^\d+: (?:-> )?\S+ +\S+ +\S+ +(?P<pid>-?\d+) (?P<major>[0-9a-f]+):(?P<minor>[0-9a-f]+):(?P<inode>\d+) ",
    re.M,
)


class Status(NamedTuple):
    """A file's device and inode, who owns it, by number, and its kind and permissions as st_mode."""

    device: int
    inode: int
    user: int
    group: int
    mode: int

    @property
    def is_readable(self) -> bool:
        """Tell whether it is safe to open: opening others, as a watchdog or a pipe, does things."""
        return stat.S_ISREG(self.mode) or stat.S_ISBLK(self.mode)


class Lock(NamedTuple):
    """A lock that a process holds; the pid is -1 or 0 where the kernel does not tell it."""

    pid: int
    device: int
    inode: int


class Files:
    """The files of one host; `root` is where a container's files are seen, or ''."""

    def __init__(self, host: Host, root: str = "") -> None:
        self.host = host
        self.root = root
        self._locks: list[Lock] | None = None

    def beginnings(self, paths: Iterable[str]) -> dict[str, bytes | str]:
        """Return {path: its first bytes}, or the reason where they cannot be read."""
        found: dict[str, bytes | str] = {}
        for batch in _by_directory(paths):
            try:
                found.update(self._together(batch))
            except Unobservable as error:
                found.update(dict.fromkeys(batch, str(error)))
        return found

    def statuses(self, paths: Iterable[str]) -> dict[str, Status | str]:
        """Return {path: its status, links followed}, or the reason where that cannot be read."""
        found: dict[str, Status | str] = {}
        for batch in _by_directory(paths):
            argv = ["stat", "--dereference", "--printf=%d %i %u %g %f %n\\0", "--"]
            try:
                result = self.host.run([*argv, *(self.root + path for path in batch)])
            except Unobservable as error:
                found.update(dict.fromkeys(batch, str(error)))
                continue
            found.update(dict.fromkeys(batch, _last_line(result.stderr) or "it is not there"))
            for entry in result.stdout.split("\0")[:-1]:
                device, inode, user, group, mode, name = entry.split(" ", 5)
                numbers = int(device), int(inode), int(user), int(group), int(mode, 16)
                found[name[len(self.root) :]] = Status(*numbers)
        return found

    def search(self, directory: str) -> list[str]:
        """Return the files in and below a directory that are large enough for a database.

        Raises Unobservable when it takes too long, or when there are too many.
        """
        argv = ["find", "-H", self.root + directory, "-maxdepth", str(DEPTH)]
        result = self.host.run([*argv, "-type", "f", "-size", f"+{_SMALLEST - 1}k", "-print0"])
        if result.rc != 0:
            raise Unobservable(_last_line(result.stderr) or f"find: exit {result.rc}")
        paths = [normal(path[len(self.root) :]) for path in result.stdout.split("\0")[:-1]]
        if len(paths) > MOST_FILES:
            raise Unobservable(
                f"{directory}: seen {len(paths)} files; wanted at most {MOST_FILES}: name a directory closer to"
                " the databases"
            )
        return sorted(paths)

    def holders(self, path: str, status: Status) -> list[int]:
        """Return the processes that hold a lock on a file: Firebird locks each database that it opens.

        -1 stands for one that the kernel does not name. Raises Unobservable.
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
                    flags, _mount = openfiles.parse_fdinfo(self.host.read(f"/proc/{pid}/fdinfo/{number}"))
                except ValueError as error:
                    raise Unobservable(f"/proc/{pid}/fdinfo/{number}: {error}") from error
                if openfiles.is_writable(flags):
                    found.append(openfiles.opened(flags, machine))
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

    def _together(self, batch: list[str]) -> dict[str, bytes | str]:
        argv = ["head", f"--bytes={LENGTH}", "--verbose", "--", *(self.root + path for path in batch)]
        said = _bytes(self.host.run(argv).stdout)
        found = take_apart(said, [_bytes(self.root + path) for path in batch])
        if found is None or None in found:
            return {path: self._alone(path) for path in batch}
        return dict(zip(batch, filter(None, found)))

    def _alone(self, path: str) -> bytes | str:
        try:
            result = self.host.run(["head", f"--bytes={LENGTH}", "--", self.root + path])
        except Unobservable as error:
            return str(error)
        if result.rc != 0:
            return _last_line(result.stderr) or f"head: exit {result.rc}"
        return _bytes(result.stdout)


def take_apart(said: bytes, names: list[bytes]) -> list[bytes | None] | None:
    """Return the beginnings that `head --verbose` prints one after another, None for a file left out.

    None for the whole where a file is shorter than that: then a name in its content could mislead.
    """
    found: list[bytes | None] = []
    position = 0
    for name in names:
        mark = (b"\n" if position else b"") + b"==> " + name + b" <==\n"
        if said[position : position + len(mark)] != mark:
            found.append(None)
            continue
        position += len(mark)
        found.append(said[position : position + LENGTH])
        position += LENGTH
    return found if position == len(said) or not said else None


def parse_locks(text: str) -> Iterator[Lock]:
    """Yield the locks in /proc/locks: proc_locks(5)."""
    for found in _LOCK.finditer(text):
        device = os.makedev(int(found["major"], 16), int(found["minor"], 16))
        yield Lock(int(found["pid"]), device, int(found["inode"]))


def _by_directory(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yield paths in batches, each of one directory: a disk that hangs keeps nobody else's back."""
    groups: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        groups.setdefault(posixpath.dirname(path), []).append(path)
    for group in groups.values():
        for start in range(0, len(group), _BATCH):
            yield group[start : start + _BATCH]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
