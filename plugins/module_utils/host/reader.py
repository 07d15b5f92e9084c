# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A separate process that opens files, so that a disk that hangs does not block the caller.

It is made by fork at the first question, answers one after another, and ends with its parent. One
that does not answer in time is left to itself, for a process in disk sleep cannot be ended; the next
question has a new one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import stat
import struct
import threading
import time
from typing import Any, NamedTuple

from . import bounds, child_process, foreign
from .mount_api.calls import syncfs

_LENGTHS = struct.Struct("!II")
_PIECE = 65536


class Question(NamedTuple):
    """What to do with the file at `path` inside `root`, links followed.

    `what`: status; content (`limit` bytes from the beginning, or the end, and `flush`: the file is on the
    disk now); way, everything that is passed; names in a directory; search for files in it and `depth`
    levels below, of `smallest` bytes at least, whose names end in `ending`; links, the directories to which
    links in it lead; sync of the file, or with
    `flush` of its whole file system; give, to set the `owner` (user and group) of the file that was `assessed` (device, inode,
    user and group). `named_by`: the user who named the path, None for root.
    """

    what: str
    path: str
    root: str = ""
    limit: int = 0
    at_end: bool = False
    flush: bool = False
    depth: int = 1
    smallest: int = 0
    ending: str = ""
    named_by: foreign.Identity | None = None
    assessed: tuple[int, ...] = ()
    owner: tuple[int, ...] = ()

    @property
    def namer(self) -> foreign.Identity | None:
        """`named_by`, also of a question that was sent as JSON."""
        named: list[Any] = list(self.named_by or ())
        return foreign.Identity(named[0], named[1], tuple(named[2])) if named else None


class Answer(NamedTuple):
    """`path`: inside the root, links followed. `status`: as `_numbers` makes it, None if nothing is there.
    `error`: why there is nothing to tell; `withheld`: it is that the user who named the path may not read it."""

    path: str = ""
    status: list[float] | None = None
    error: str | None = None
    withheld: bool = False
    content: bytes = b""


class TimedOut(Exception):
    """There was no answer in time."""


class Reader:
    """Asks such a process, and makes it. May be used by many threads, one after another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid, self._parent = 0, 0
        self._link: socket.socket | None = None

    def ask(self, question: Question, timeout: float) -> Answer:
        """Return the answer. Raises TimedOut, and OSError if no process can be made."""
        end = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise TimedOut
        try:
            head, content = self._exchange(question, end)
        finally:
            self._lock.release()
        return Answer(*json.loads(head))._replace(content=content)

    def _exchange(self, question: Question, end: float) -> tuple[bytes, bytes]:
        link = self._ready()
        try:
            _send(link, json.dumps(question).encode("ascii"), b"", end)
            return _receive(link, end)
        except (OSError, EOFError, TimedOut) as error:
            self._abandon()
            raise TimedOut from error
        except BaseException:
            # The caller is being ended: half an answer must not be taken for the next one.
            self._abandon()
            raise

    def _ready(self) -> socket.socket:
        if self._link is None or self._parent != os.getpid():
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                _serve(theirs)
            theirs.close()
            self._pid, self._parent, self._link = pid, os.getpid(), ours
        return self._link

    def _abandon(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)


def _serve(link: socket.socket) -> None:
    """Answer until no process asks any more. Never returns."""
    try:
        child_process.isolate(link.fileno())
        while True:
            head, _content = _receive(link, None)
            answer = answer_to(Question(*json.loads(head)))
            _send(link, json.dumps(answer[:4]).encode("ascii"), answer.content, None)
    except BaseException:
        pass  # Its parent has ended, or takes the silence for what it is.
    finally:
        os._exit(0)


def answer_to(question: Question) -> Answer:
    """Return the answer to a question, from the file system. May block indefinitely."""
    try:
        with foreign.Walk(question.root, question.path, question.namer) as walk:
            if walk.status is None:
                return Answer(walk.path)
            found = Answer(walk.path, _numbers(walk.status, walk.changed))
            content = _ACTS[question.what](walk, question)
            if len(content) > bounds.OUTPUT:
                raise foreign.Refused(f"names of more than {bounds.OUTPUT} bytes in one directory")
            return found._replace(content=content)
    except foreign.Refused as error:
        return Answer(error=str(error), withheld=isinstance(error, foreign.Withheld))
    except OSError as error:
        return Answer(error=foreign.reason(error))
    except ValueError:
        return Answer(error="it is no path")


def _numbers(status: os.stat_result, links: float) -> list[float]:
    return [
        status.st_dev,
        status.st_ino,
        status.st_uid,
        status.st_gid,
        status.st_mode,
        status.st_size,
        status.st_mtime,
        max(status.st_ctime, links),
        status.st_nlink,
    ]


def _status(_walk: foreign.Walk, _question: Question) -> bytes:
    return b""


def _content(walk: foreign.Walk, question: Question) -> bytes:
    with walk.opened(stat.S_ISREG, "regular file") as descriptor:
        if question.at_end:
            os.lseek(descriptor, max(0, os.fstat(descriptor).st_size - question.limit), os.SEEK_SET)
        found = bytearray()
        while len(found) < question.limit:
            piece = os.read(descriptor, min(_PIECE, question.limit - len(found)))
            if not piece:
                break
            found += piece
        if question.flush:
            os.fsync(descriptor)
        return bytes(found)


def _way(walk: foreign.Walk, _question: Question) -> bytes:
    return json.dumps({path: _numbers(status, 0.0) for path, status in walk.passed.items()}).encode("ascii")


def _names(walk: foreign.Walk, _question: Question) -> bytes:
    with walk.opened(stat.S_ISDIR, "directory") as descriptor, os.scandir(descriptor) as entries:
        names = [os.fsencode(entry.name) for entry in itertools.islice(entries, bounds.NAMES + 1)]
    if len(names) > bounds.NAMES:
        raise foreign.Refused(f"more than {bounds.NAMES} names in one directory")
    return b"".join(name + b"\0" for name in sorted(names))


def _search(walk: foreign.Walk, question: Question) -> bytes:
    if not stat.S_ISDIR(walk.steps[-1].status.st_mode):
        raise foreign.Refused("not a directory")
    wanted = (
        os.fsencode(path) + b"\0"
        for path, status in walk.below(question.depth)
        if status.st_size >= question.smallest and path.endswith(question.ending)
    )
    return b"".join(sorted(itertools.islice(wanted, question.limit)))


def _links(walk: foreign.Walk, question: Question) -> bytes:
    with walk.opened(stat.S_ISDIR, "directory") as descriptor, os.scandir(descriptor) as entries:
        links = (entry.name for entry in entries if entry.is_symlink())
        names = sorted(itertools.islice(links, bounds.NAMES + 1))
    if len(names) > bounds.NAMES:
        raise foreign.Refused(f"more than {bounds.NAMES} links in one directory")
    led = (_directory_at(question, os.path.join(walk.path, name)) for name in names)
    found = dict.fromkeys(path for path in led if path)
    return b"".join(os.fsencode(path) + b"\0" for path in itertools.islice(found, question.limit))


def _directory_at(question: Question, path: str) -> str:
    """Return to which directory a link leads, '' for anything else, for one that leads to nothing, and for the kernel's
    directories, which hold no data."""
    try:
        with foreign.Walk(question.root, path, question.namer) as walk:
            return walk.path if walk.status and stat.S_ISDIR(walk.status.st_mode) else ""
    except (foreign.Dangling, foreign.OfTheKernel):
        return ""


def _sync(walk: foreign.Walk, question: Question) -> bytes:
    kind = (lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode)) if question.flush else stat.S_ISREG
    with walk.opened(kind, "regular file") as descriptor:
        if question.flush:
            syncfs(descriptor)
        else:
            os.fsync(descriptor)
    return b""


def _give(walk: foreign.Walk, question: Question) -> bytes:
    """Set the owner of the file that was assessed, by a descriptor that the user who chose it could open for reading.

    Under a second name it can be any file of the system. The kernel prevents that name only with fs.protected_hardlinks.
    """
    with walk.opened(stat.S_ISREG, "regular file") as descriptor:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino, status.st_uid, status.st_gid) != tuple(question.assessed):
            raise foreign.Refused("another file is there since it was assessed")
        if status.st_nlink != 1 or not foreign.are_links_protected():
            raise foreign.Refused("it may have another name (fs.protected_hardlinks, number of hard links)")
        os.fchown(descriptor, *question.owner)
        os.fsync(descriptor)
    return b""


_ACTS = {
    "give": _give,
    "links": _links,
    "status": _status,
    "content": _content,
    "names": _names,
    "search": _search,
    "sync": _sync,
    "way": _way,
}


def _send(link: socket.socket, head: bytes, content: bytes, end: float | None) -> None:
    link.settimeout(_left(end))
    link.sendall(_LENGTHS.pack(len(head), len(content)) + head + content)


def _receive(link: socket.socket, end: float | None) -> tuple[bytes, bytes]:
    first, second = _LENGTHS.unpack(_exactly(link, _LENGTHS.size, end))
    return _exactly(link, first, end), _exactly(link, second, end)


def _exactly(link: socket.socket, size: int, end: float | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        link.settimeout(_left(end))
        piece = link.recv(min(_PIECE, size - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _left(end: float | None) -> float | None:
    if end is None:
        return None
    left = end - time.monotonic()
    if left <= 0:
        raise TimedOut
    return left
