# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only interface between this collection and a machine.

Everything that reads, runs or writes on a managed host goes through :class:`Host`, so that
parsers and planners stay pure, and tests can replay a captured host or stop a change half-way.
The standard library is enough: it runs on a host without Ansible.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import pwd
import resource
import selectors
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from . import bounds, child_process, keyring, labels, lock_file, unix_sockets
from .foreign import Identity
from .mount_api import calls, change, query, trial
from .mountinfo import Mount
from .reader import Answer, Question, Reader, TimedOut
from .refusals import remedy

#: Seconds that a single reading command may take before its answer counts as unknown.
READ_TIMEOUT = 10.0
#: Seconds that a changing command may take; a sync of a busy disk is slow.
CHANGE_TIMEOUT = 300.0
#: Seconds that a daemon may take for all questions of one connection.
ASK_TIMEOUT = 3.0
_PIECE = 65536
#: /dev/null, in every kernel: devices.txt of Linux.
_NULL = os.makedev(1, 3)
#: How reading a pipe, a socket or a device is refused, and a directory.
NO_FILE, DIRECTORY = "not a regular file", "Is a directory"
#: The attribute in which the kernel keeps an access list, as acl(5) has it.
_ACCESS = "system.posix_acl_access"
#: Opens what others own, for all that this process asks.
_READER = Reader()
#: The environment of every command: stable messages, and sbin if cron or su left it out.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class Unobservable(Exception):
    """A value could not be read. The message is the reason that the report shows."""


class Withheld(Unobservable):
    """The user who named a path may not reach or read what it leads to."""


class NoProgram(Unobservable):
    """A program is not installed."""


class NoAnswer(Unobservable):
    """Nothing came in time: other files on the same disk will not come either."""


class TooLong(Unobservable):
    """A text has more bytes than are read at once."""


class ChangeFailed(Exception):
    """A change was refused, or did not take effect. The message: target, observed, expected, remedy."""


class Refused(ChangeFailed):
    """A change that is not made as things are. `reason`: target, observed, expected; `fix`: the remedy."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(f"{reason}; {fix}")
        self.reason, self.fix = reason, fix


class CommandFailed(ChangeFailed):
    """A command that changes the host has ended badly. `text` is what it printed, in one line."""

    def __init__(self, argv: Sequence[str], rc: int, text: str) -> None:
        super().__init__(f"{' '.join(argv)}: exit {rc}: {text}; {remedy(text)}")
        self.text = text


class TrialRefused(ChangeFailed):
    """The kernel does not mount a scratch image with some options. The message is its reason."""


class Held(ChangeFailed):
    """Another process holds a lock. `holder`: what it recorded of itself there."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path}: another process holds this lock")
        self.holder = holder


class Result(NamedTuple):
    """The result of a finished command: its exit code, standard output and standard error."""

    rc: int
    stdout: str
    stderr: str


class Status(NamedTuple):
    """The kernel's data of a file: `user` and `group` by number, `mode` as st_mode.

    `modified` and `changed` are in seconds since the epoch; a link on the way that changed later counts. `links`: how many
    names the file has.
    """

    device: int
    inode: int
    user: int
    group: int
    mode: int
    size: int = 0
    modified: float = 0.0
    changed: float = 0.0
    links: int = 1


class Located(NamedTuple):
    """Where a path leads inside its root directory; `status` is None if nothing is there."""

    path: str
    status: Status | None


class Part(NamedTuple):
    """Some bytes of a file, its status, and where it lies inside the root directory."""

    path: str
    status: Status
    content: bytes

    @property
    def text(self) -> str:
        """The bytes as a text, byte for byte."""
        return self.content.decode("utf-8", "surrogateescape")


def expect_root(host: Host) -> None:
    """Raise Unobservable unless this process acts as root: to other users much appears to be missing."""
    if host.user() != 0:
        raise Unobservable(f"observed user {host.user()}, expected root (become); log in as root, or add -b")


class Host:
    """The machine itself.

    `until`: the time.monotonic() from which on reading commands are not run any more. `whose`: who answers for
    what is read meanwhile, for the reasons of what is too much. `named_by`: the user who names the paths that are
    located, listed, read and synced meanwhile, None for root; :mod:`.named_by` sets it. `follows_owners`: whether the
    owner of a configuration that root named names what is opened after it. `mains`: processes whose paths were opened, by
    ID, as they were listed.
    """

    until = math.inf
    whose = ""
    named_by: Identity | None = None
    follows_owners = False
    mains: Mapping[int, Any] = MappingProxyType({})

    def __init__(self) -> None:
        _lift_memory_limit()

    def user(self) -> int:
        """Return the number of the user as whom this process acts."""
        return os.geteuid()

    def read(self, path: str) -> str:
        """Return a text file's content, byte for byte. Raises Unobservable with the reason."""
        try:
            # In pieces: the kernel refuses to give out one of its own files in a very large one.
            with open(path, "rb", buffering=0, opener=_opened) as handle:
                if not _is_text(os.fstat(handle.fileno())):
                    raise Unobservable(f"{path}: {NO_FILE}")
                content = bytearray()
                while len(content) <= bounds.OUTPUT:
                    piece = handle.read(_PIECE)
                    if not piece:
                        break
                    content += piece
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error
        if len(content) > bounds.OUTPUT:
            raise TooLong(f"{path}: longer than {bounds.OUTPUT} bytes")
        return content.decode("utf-8", "surrogateescape")

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a text that is too long to be read at once, without their ends. Raises Unobservable."""
        try:
            with open(path, "rb", buffering=_PIECE, opener=_opened) as handle:
                while content := handle.readline(bounds.FILE):
                    if len(content) == bounds.FILE:
                        raise TooLong(f"{path}: a line is longer than {bounds.FILE} bytes")
                    yield content.rstrip(b"\n").decode("utf-8", "surrogateescape")
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory. Raises Unobservable."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def exists(self, path: str) -> bool:
        """Return whether a path is there (a link's target need not be)."""
        return os.path.lexists(path)

    def mode(self, path: str) -> int:
        """Return a file's permission bits. Raises Unobservable."""
        try:
            return os.stat(path).st_mode & 0o7777
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def resolve(self, path: str) -> str:
        """Return a path with its symbolic links followed."""
        return os.path.realpath(path)

    def link(self, path: str) -> str:
        """Return what a symbolic link says, not followed. Raises Unobservable."""
        try:
            return os.readlink(path)
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def is_block_device(self, path: str) -> bool:
        """Return whether a path, links followed, is a block device."""
        try:
            return stat.S_ISBLK(os.stat(path).st_mode)
        except OSError:
            return False

    def locate(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> Located:
        """Return where a path that another user chose leads, links followed inside `root` ('' is our own).

        Raises Unobservable, also for a link that leads to nothing, and where a disk does not answer in time.
        """
        answer = self._query(Question("status", path, root), timeout)
        return Located(answer.path, _status_of(answer))

    def read_part(
        self,
        path: str,
        root: str = "",
        limit: int = bounds.OUTPUT,
        at_end: bool = False,
        flush: bool = False,
        timeout: float = READ_TIMEOUT,
    ) -> Part | None:
        """Return at most `limit` bytes of another user's regular file, None if there is none.

        From its beginning, or `at_end` its last ones. `flush`: only once the file is on the disk. It is
        read with the rights of the user who may have chosen the file at the path. Raises Unobservable.
        """
        limit = min(limit, bounds.OUTPUT)
        answer = self._query(Question("content", path, root, limit, at_end, flush), timeout)
        status = _status_of(answer)
        return Part(answer.path, status, answer.content) if status else None

    def way(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> dict[str, Status]:
        """Return all that is passed on the way to a path: directories, links, and what it leads to.

        By their paths inside `root`; of a link its own status. Raises Unobservable, also for what is not there.
        """
        answer = self._query(Question("way", path, root), timeout)
        if not answer.status:
            raise Unobservable(f"{path}: No such file or directory")
        return {passed: _status(numbers) for passed, numbers in json.loads(answer.content).items()}

    def list_names(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> list[str] | None:
        """Return the sorted names in another user's directory, None if there is none. Raises Unobservable."""
        answer = self._query(Question("names", path, root), timeout)
        return _paths_in(answer) if answer.status else None

    def linked_directories(
        self, path: str, most: int = bounds.FOUND, timeout: float = READ_TIMEOUT
    ) -> list[str]:
        """Return `most` of the directories to which links in another user's directory lead, at most.

        Links that lead to nothing are left out. Raises Unobservable.
        """
        return _paths_in(self._query(Question("links", path, limit=most), timeout))

    def find_files(
        self,
        path: str,
        root: str = "",
        most: int = bounds.FOUND,
        depth: int = 1,
        smallest: int = 0,
        ending: str = "",
        timeout: float = READ_TIMEOUT,
    ) -> list[str]:
        """Return `most` of the files in another user's directory and `depth` levels of it, at most.

        They are paths from there, of files that have `smallest` bytes at least and whose names end in
        `ending`; no link below the directory is followed. Raises Unobservable.
        """
        question = Question("search", path, root, most, depth=depth, smallest=smallest, ending=ending)
        return _paths_in(self._query(question, timeout))

    def sync(self, path: str, whole: bool = False, timeout: float = CHANGE_TIMEOUT) -> None:
        """Sync another user's file to the disk, or the `whole` file system of a path.

        Raises ChangeFailed.
        """
        try:
            answer = _READER.ask(Question("sync", path, flush=whole, named_by=self.named_by), timeout)
        except TimedOut:
            raise ChangeFailed(f"{path}: it was not synced within {timeout:g} s") from None
        except OSError as error:
            raise _unsynced(path, str(error.strerror)) from error
        if answer.error or not answer.status:
            raise _unsynced(path, answer.error or "it is not there")

    def give_file(
        self, path: str, status: Status, user: int, group: int, timeout: float = CHANGE_TIMEOUT
    ) -> None:
        """Set the owner of another user's regular file, which must be the one that was assessed (`status`).

        The file is opened for reading with the rights of the user who chose it, so that this user gets no text that was
        withheld before, and changed by that descriptor. Raises ChangeFailed, also for a file with a second name.
        """
        assessed = (status.device, status.inode, status.user, status.group)
        question = Question("give", path, named_by=self.named_by, assessed=assessed, owner=(user, group))
        try:
            answer = _READER.ask(question, timeout)
        except TimedOut:
            raise ChangeFailed(f"{path}: its owner was not set within {timeout:g} s") from None
        except OSError as error:
            raise _not_given(path, str(error.strerror)) from error
        if answer.error or not answer.status:
            raise _not_given(path, answer.error or "it is missing")

    def sync_mount(self, mount: Mount, timeout: float = CHANGE_TIMEOUT) -> None:
        """Write all data of a mounted file system to its devices. Raises ChangeFailed."""
        _on_mount(mount, "sync", lambda: change.sync(mount), timeout)

    def set_mount_options(
        self, mount: Mount, options: Sequence[str], timeout: float = CHANGE_TIMEOUT
    ) -> None:
        """Change options of a mounted file system, and nothing else of it. The result is not read back.

        Raises ChangeFailed, also if another mount is at the path by now.
        """
        _on_mount(mount, ",".join(options), lambda: change.set_options(mount, options), timeout)

    def set_mount_atime(self, mount: Mount, atime: str, timeout: float = CHANGE_TIMEOUT) -> None:
        """Change the atime of one mount, and nothing else of it. Raises ChangeFailed as set_mount_options."""
        _on_mount(mount, atime, lambda: change.set_atime(mount, atime), timeout)

    def make_mount_writable(self, mount: Mount, timeout: float = CHANGE_TIMEOUT) -> None:
        """Make a read-only mount and its file system writable. Raises ChangeFailed as set_mount_options."""
        _on_mount(mount, "rw", lambda: change.make_writable(mount), timeout)

    def try_mount(
        self, image: str, fstype: str, steps: Sequence[Sequence[str]], timeout: float = CHANGE_TIMEOUT
    ) -> None:
        """Mount a scratch image, detached from every path, with the options of the first step, then with those of
        each further one. Raises TrialRefused with the kernel's reason.
        """
        calls.load()
        try:
            child_process.run(lambda: trial.try_mount(image, fstype, steps), timeout)
        except OSError as error:
            raise TrialRefused(str(error.strerror)) from error

    def refused_mount_options(
        self, fstype: str, options: Sequence[str], timeout: float = READ_TIMEOUT
    ) -> dict[str, str] | None:
        """Return {option: the kernel's message} of the options that the running kernel refuses for a type of file
        system, None if it cannot be queried for that type.
        """
        calls.load()
        try:
            found: dict[str, str] | None = child_process.run(lambda: query.refused(fstype, options), timeout)
            return found
        except OSError:
            return None

    def _query(self, question: Question, timeout: float) -> Answer:
        left = self.until - time.monotonic()
        if left <= 0:
            raise Unobservable(f"{question.path}: not read: the time for all queries of this host was over")
        try:
            answer = _READER.ask(question._replace(named_by=self.named_by), min(timeout, left))
        except TimedOut:
            raise NoAnswer(f"{question.path}: no answer within {min(timeout, left):g} s") from None
        except OSError as error:
            raise Unobservable(f"{question.path}: {error.strerror}") from error
        if answer.error:
            kind = Withheld if answer.withheld else Unobservable
            raise kind(f"{question.path}: {answer.error}")
        return answer

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        """Run a command that only reads. Raises Unobservable when it is missing, too slow or says too much."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise Unobservable(f"{argv[0]}: not run: the time for all queries of this host was over")
        return _run(argv, min(timeout, left), memory=bounds.MEMORY)

    def run_with_secret(
        self, argv: list[str], environment: Mapping[str, str], timeout: float = READ_TIMEOUT
    ) -> Result:
        """Run a command that only reads, with a secret in its environment. Raises Unobservable, as `run`."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise Unobservable(f"{argv[0]}: not run: the time for all queries of this host was over")
        return _run(argv, min(timeout, left), environment, memory=bounds.MEMORY)

    def ask(
        self,
        address: str,
        port: int,
        questions: Sequence[bytes],
        is_whole: Callable[[bytearray], bool],
        timeout: float = ASK_TIMEOUT,
    ) -> list[bytes]:
        """Return what a daemon answers to each question, over one TCP connection. Raises Unobservable.

        Each question is sent when `is_whole` has found the answer to the one before complete. `timeout`
        is for all of them together; looking up a name has the resolver's own limit.
        """
        try:
            return _ask(address, port, questions, is_whole, min(timeout, self.until - time.monotonic()))
        except (socket.timeout, TimeoutError) as error:
            raise Unobservable(f"{address} port {port}: no answer within {timeout:g} s") from error
        except (OSError, UnicodeError) as error:
            # Of a name that cannot be looked up the text is in the error itself.
            why = getattr(error, "strerror", None) or str(error)
            raise Unobservable(f"{address} port {port}: {why}") from error

    def hold_socket(self, path: str, timeout: float = READ_TIMEOUT) -> unix_sockets.HeldSocket:
        """Hold the file of a unix socket open until this process ends, the last name not followed.

        Raises Unobservable.
        """
        try:
            return unix_sockets.hold(path, min(timeout, max(0.0, self.until - time.monotonic())))
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def listeners(self, timeout: float = ASK_TIMEOUT) -> list[unix_sockets.Listener]:
        """Return the unix sockets that listen at files. Raises Unobservable."""
        try:
            return unix_sockets.listeners(timeout)
        except OSError as error:
            raise Unobservable(f"the kernel does not list unix sockets: {error.strerror or error}") from error

    def socket_listener(self, path: str, timeout: float = ASK_TIMEOUT) -> int:
        """Return the ID of the process that listens at a held socket, 0 if it is unknown. Raises Unobservable.

        The process accepts one connection that is closed at once.
        """
        try:
            return unix_sockets.peer(path, min(timeout, max(0.0, self.until - time.monotonic())))
        except OSError as error:
            raise Unobservable(f"the socket accepts no connection: {error.strerror or error}") from error

    def change(
        self,
        argv: list[str],
        timeout: float = CHANGE_TIMEOUT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run a command that changes the host. Raises ChangeFailed: CommandFailed with its output.

        `environment` is added to its variables: no list of processes shows a password there.
        """
        try:
            result = _run(argv, timeout, environment)
        except Unobservable as error:
            raise ChangeFailed(f"{error}; {remedy(str(error))}") from error
        if result.rc != 0:
            printed = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise CommandFailed(argv, result.rc, " ".join(printed))

    def write_attribute(self, path: str, value: str) -> None:
        """Write a kernel attribute in one write(2). Raises ChangeFailed."""
        try:
            descriptor = os.open(path, os.O_WRONLY)
            try:
                os.write(descriptor, value.encode("ascii"))
            finally:
                os.close(descriptor)
        except OSError as error:
            why = f"{path}: writing {value!r}: {error.strerror}"
            raise ChangeFailed(f"{why}; {remedy(why)}") from error

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        """Replace a file so that a power cut leaves the old or the new one, whole and named.

        An existing file keeps its owner, mode, access list, users' attributes and SELinux label; `mode` is for a
        new one, which gets the label that the policy has for it.
        A link is followed, so that it stays a link. `owner`: as whom it is written, where that user may
        change a directory on the way to it; 0 is this process's own user. Raises ChangeFailed.
        A content that is too long for `read` is refused.
        """
        if len(content) > bounds.OUTPUT:
            raise ChangeFailed(
                f"{path}: not changed: its new content has {len(content)} bytes, and at most {bounds.OUTPUT} are read back."
                f" Fix: make {path} shorter, then run again"
            )
        _durably(path, owner, os.path.realpath, lambda place: _replace(place, content, mode))

    def lock_text(self, path: str) -> str | None:
        """Return the text in a lock's file, '' for no file, None while a process holds the lock. Raises Unobservable."""
        try:
            return lock_file.read_free(path)
        except OSError as error:
            raise Unobservable(f"{path}: {error.strerror}") from error

    def make_lock(self, path: str) -> None:
        """Create the file of a lock if it is missing. Raises ChangeFailed."""
        try:
            os.close(lock_file.open_file(path))
        except OSError as error:
            raise _not_locked(path, error) from error

    @contextmanager
    def hold(self, path: str, tell: Callable[[str], str], is_text_needed: bool = True) -> Iterator[None]:
        """Hold a lock while a block runs. However this process ends, the kernel releases the lock.

        `tell` takes the text in the lock's file and returns the new one; an exception of it ends the attempt.
        `is_text_needed`: whether the block must not run if the new text cannot be written. Else the text is then made
        unreadable. Raises Held, and ChangeFailed for an error of the file system.
        """
        try:
            descriptor = lock_file.open_file(path)
        except OSError as error:
            raise _not_locked(path, error) from error
        try:
            text = tell(_lock(descriptor, path))
            try:
                _describe(descriptor, text, is_text_needed)
            except OSError as error:
                raise _not_locked(path, error) from error
            yield
        finally:
            os.close(descriptor)

    def remove_file(self, path: str, owner: int = 0) -> None:
        """Remove a file durably, `owner` as for write_file. Raises ChangeFailed."""
        _durably(path, owner, str, os.unlink)


def _lift_memory_limit() -> None:
    """Set this process's soft limit of memory to the hard one.

    On a controller that is itself the host, a module inherits the limit that the action has set for an answer. With it the
    start of a thread can fail.
    """
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _opened(path: str, flags: int) -> int:
    """Open a file without waiting for another process: a pipe without a writer does not block."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _is_text(status: os.stat_result) -> bool:
    """Return whether a file has a text: a regular file, and /dev/null, to which a link masks a file of systemd and udev."""
    is_null = stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL
    return is_null or stat.S_ISREG(status.st_mode)


def _paths_in(answer: Answer) -> list[str]:
    return [os.fsdecode(name) for name in answer.content.split(b"\0")[:-1]]


def _status_of(answer: Answer) -> Status | None:
    return _status(answer.status) if answer.status is not None else None


def _status(numbers: list[float]) -> Status:
    device, inode, user, group, mode, size = map(int, numbers[:6])
    return Status(device, inode, user, group, mode, size, numbers[6], numbers[7], int(numbers[8]))


def _ask(
    address: str, port: int, questions: Sequence[bytes], is_whole: Callable[[bytearray], bool], timeout: float
) -> list[bytes]:
    """Hold a conversation. Raises OSError, TimeoutError or socket.timeout when the time is over."""
    end = time.monotonic() + timeout

    def left() -> float:
        seconds = end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    answers = []
    with socket.create_connection((address, port), timeout=left()) as link:
        for question in questions:
            link.settimeout(left())
            link.sendall(question)
            received = bytearray()
            while not is_whole(received):
                link.settimeout(left())
                piece = link.recv(_PIECE)
                received += piece
                if not piece:
                    raise OSError(errno.ECONNRESET, f"ended the connection after {bytes(received[:60])!r}")
                if len(received) > bounds.DAEMON_OUTPUT:
                    raise OSError(errno.EMSGSIZE, f"answers more than {bounds.DAEMON_OUTPUT} bytes")
            answers.append(bytes(received))
    return answers


def _run(
    argv: list[str], timeout: float, environment: Mapping[str, str] | None = None, memory: int | None = None
) -> Result:
    child = _start(argv, environment)
    if memory:
        try:
            resource.prlimit(child.pid, resource.RLIMIT_AS, (memory, memory))
        except OSError:
            pass  # It has ended, or became another user's: what it says is limited all the same.
    try:
        output = _collect(child, time.monotonic() + timeout)
    except _TooMuch:
        _abandon(child)
        raise Unobservable(f"{' '.join(argv)}: says more than {bounds.OUTPUT} bytes") from None
    except BaseException:
        # The caller is being ended: no process waits for the answer any more.
        _abandon(child)
        raise
    if output is None:
        _abandon(child)
        raise Unobservable(f"{' '.join(argv)}: no answer within {timeout:g} s")
    return Result(child.returncode, *output)


def _start(argv: list[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    """Start a command with nothing of this process: its keys, directory and variables stay here."""
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        # A process group of its own: what it starts can be ended with it.
        # Not run_command of AnsibleModule: it has no time limit, and this runs without Ansible.
        child = subprocess.Popen(  # pylint: disable=ansible-bad-function
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**ENVIRONMENT, **(environment or {})},
            start_new_session=True,
            umask=0o022,  # Whatever umask this runs under: others write nothing that a command makes.
        )
        children.append(child)

    try:
        keyring.start(start)
    except OSError as error:
        kind = NoProgram if error.errno == errno.ENOENT else Unobservable
        raise kind(f"{argv[0]}: {error.strerror}") from error
    except BaseException:
        for child in children:
            _abandon(child)
        raise
    return children[0]


class _TooMuch(Exception):
    """A command printed more than OUTPUT."""


def _collect(child: subprocess.Popen[bytes], deadline: float) -> tuple[str, str] | None:
    """Return both outputs once the child has ended, or None at the deadline."""
    streams = [stream for stream in (child.stdout, child.stderr) if stream]
    chunks: dict[int, list[bytes]] = {stream.fileno(): [] for stream in streams}
    try:
        if not _drain(chunks, deadline):
            return None
        child.wait(max(0.01, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        for stream in streams:
            stream.close()
    texts = [b"".join(parts).decode("utf-8", "surrogateescape") for parts in chunks.values()]
    return texts[0], texts[1]


def _drain(chunks: dict[int, list[bytes]], deadline: float) -> bool:
    """Read every descriptor to its end; False when the deadline came first. Raises _TooMuch."""
    size = 0
    with selectors.DefaultSelector() as selector:
        for descriptor in chunks:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            for key, _events in selector.select(remaining):
                data = os.read(key.fd, _PIECE)
                size += len(data)
                if size > bounds.OUTPUT:
                    raise _TooMuch
                if data:
                    chunks[key.fd].append(data)
                else:
                    selector.unregister(key.fd)
    return True


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """End a child that hangs. It is not waited for: a process in disk sleep cannot be ended."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.poll()


def _on_mount(mount: Mount, what: str, act: Callable[[], None], timeout: float) -> None:
    """Change a mount in a child process, which can be left if the disk hangs. Raises ChangeFailed."""
    calls.load()
    try:
        child_process.run(act, timeout)
    except OSError as error:
        why = f"{mount.target}: {what}: {error.strerror}"
        raise ChangeFailed(why if error.errno == errno.ESTALE else f"{why}; {remedy(why)}") from error


def _lock(descriptor: int, path: str) -> str:
    """Lock an open file and return its text. Raises Held, ChangeFailed."""
    try:
        is_ours, text = lock_file.take(descriptor), lock_file.read(descriptor)
    except OSError as error:
        raise _not_locked(path, error) from error
    if not is_ours:
        raise Held(path, text)
    return text


def _describe(descriptor: int, text: str, is_text_needed: bool) -> None:
    """Write the text of a lock that is held. Raises OSError."""
    try:
        lock_file.write(descriptor, text)
    except OSError:
        if is_text_needed:
            raise
        lock_file.spoil(descriptor)


def _not_locked(path: str, error: OSError) -> ChangeFailed:
    why = str(error.strerror)
    return ChangeFailed(
        f"{path}: the lock of this host cannot be taken: {why}. Nothing was changed. Fix: {remedy(why, path)}"
    )


def _not_given(path: str, why: str) -> ChangeFailed:
    return ChangeFailed(f"{path}: its owner could not be set: {why}; {remedy(why, path)}")


def _unsynced(path: str, why: str) -> ChangeFailed:
    return ChangeFailed(f"{path}: it could not be synced: {why}; {remedy(why, path)}")


def _durably(path: str, owner: int, find: Callable[[str], str], act: Callable[[str], None]) -> None:
    """Change a file as a user, where `find` says that it lies, and bring its directory to the disk.

    Raises ChangeFailed, which says what is there then.
    """
    left = "not changed"
    try:
        _act_as(owner, lambda: act(find(path)))
        left = "changed, but a power cut may take that back"
        _act_as(owner, lambda: sync_directory(os.path.dirname(find(path))))
    except OSError as error:
        why = str(error.strerror)
        left = "changed or not" if error.errno == errno.ETIMEDOUT else left
        raise ChangeFailed(f"{path}: {why}: {left}; {remedy(why, path)}") from error


def _act_as(owner: int, act: Callable[[], None]) -> None:
    """Change files in a child process with the rights of a user, 0 for this process's own. Raises OSError.

    The user may stop that process, or have it wait at their own file system: it has a time limit.
    """
    if not owner:
        act()
        return

    def act_as_user() -> None:
        _become(owner)
        act()

    try:
        child_process.run(act_as_user, CHANGE_TIMEOUT)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}, as user {owner}") from error


def _become(owner: int) -> None:
    """Give up all rights but those of a user. Raises OSError."""
    try:
        entry = pwd.getpwuid(owner)
    except KeyError:
        raise OSError(errno.EINVAL, f"user {owner} has no name") from None
    os.initgroups(entry.pw_name, entry.pw_gid)
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(owner, owner, owner)


def _replace(path: str, content: bytes, mode: int) -> None:
    directory = os.path.dirname(path)
    _make_directory(directory)
    owner = None
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            # A link to /dev/null is how an administrator masks a file: it is not ours to replace.
            raise OSError(errno.EINVAL, "not a regular file; it was masked or replaced")
        mode, owner = status.st_mode & 0o7777, (status.st_uid, status.st_gid)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    descriptor, temporary = tempfile.mkstemp(prefix=".durable-", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            if owner is not None:
                os.fchown(handle.fileno(), *owner)
            os.fchmod(handle.fileno(), mode)
            if owner is not None:
                _keep_attributes(path, handle.fileno())
            else:
                labels.give_policys(path, handle.fileno())
            os.fsync(handle.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _make_directory(path: str) -> None:
    """Make a directory, and those above it that are missing, for all to come through. Raises OSError."""
    if os.path.isdir(path):
        return
    _make_directory(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode=0o755)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchmod(descriptor, 0o755)  # Whatever umask this runs under.
        labels.give_policys(path, descriptor)
    finally:
        os.close(descriptor)


def _keep_attributes(path: str, descriptor: int) -> None:
    """Give a new file the access list, label and users' attributes of the one that it replaces.

    Raises OSError.
    """
    try:
        names = os.listxattr(path)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return
        raise
    if _ACCESS not in names and _ACCESS in os.listxattr(descriptor):
        os.removexattr(descriptor, _ACCESS)  # Its directory gives one to new files.
    for name in names:
        if name == _ACCESS or name.startswith("user."):
            os.setxattr(descriptor, name, os.getxattr(path, name))
        elif name == labels.NAME:
            labels.keep(path, descriptor)


def sync_directory(path: str) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
