# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that runs a scratch server in a scratch directory, and removes both when its parent ends.

The supervisor is the parent, by PR_SET_CHILD_SUBREAPER of prctl(2), of every process that a server or client leaves behind.
It notices that the measuring process has ended, also by SIGKILL, because the socket between the two is closed. If the
supervisor is killed too, `timeout` ends the server, and the next run removes the directory.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ..host import child_process, json_text, keyring
from ..host.confined import Account
from ..host.seam import ENVIRONMENT, Result, Unobservable
from . import scratch
from .limits import Refused, is_enough_left

_SUBREAPER = 36
#: Bytes of a command's output that are returned: the last ones.
_OUTPUT = 65536
#: Seconds between two checks of a running command, for a server to stop, and for the removal.
_PERIOD, _STOP, _REMOVAL = 0.1, 5.0, 120.0
#: Seconds for killed processes to end: many on a busy host, or one that waits for the disk.
_KILLED = 60.0
#: Seconds that an answer may take on a busy host, beyond the time of a command.
_PATIENCE = 60.0
#: SIGQUIT: PostgreSQL stops without a checkpoint but releases its shared memory; MariaDB and MySQL shut down.
_QUIT = signal.SIGQUIT


class _Over(Exception):
    """The parent ended, the time is over, or the file system is nearly full. The message is the reason."""


class Supervisor:
    """The measuring process's side. Each method raises Unobservable if the supervisor ended, with its reason."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        """Run a command in the scratch directory and return its exit code and output (both streams)."""
        answer = self._request({"run": list(argv), "timeout": timeout}, timeout + _PATIENCE)
        return Result(int(answer["rc"]), str(answer["output"]), "")

    def start(self, argv: Sequence[str]) -> None:
        """Start the server: it runs until the supervisor ends."""
        self._request({"start": list(argv)}, _PATIENCE)

    def server_output(self) -> str:
        """Return the last lines of the server's output."""
        return str(self._request({"output": True}, _PATIENCE)["output"])

    def _request(self, request: Mapping[str, object], patience: float) -> dict[str, Any]:
        try:
            self._channel.sendall(json.dumps(request).encode("ascii") + b"\n")
        except OSError:
            pass  # Its last answer has the reason.
        return self.answer(patience)

    def answer(self, patience: float) -> dict[str, Any]:
        """Return the next answer. Raises Unobservable."""
        line = _line(self._channel, patience)
        if not line:
            raise Unobservable(f"the scratch server's supervisor did not respond within {patience:g} s")
        answer: dict[str, Any] = json_text.loads(line)
        if "error" in answer:
            raise Unobservable(answer["error"])
        return answer


@contextmanager
def supervised(target: str, place: int, owner: Account, text: str, seconds: float) -> Iterator[Supervisor]:
    """Create a scratch directory of `owner` in an open directory, and a supervisor whose commands run in it.

    `text`: content of the file ../init.sql. All ends after `seconds`. Raises Unobservable, also if something remains.
    """
    ours, its = socket.socketpair()
    child = os.fork()
    if child == 0:
        _serve(its, target, place, owner, text, time.monotonic() + seconds)
    its.close()
    supervisor = Supervisor(ours)
    try:
        supervisor.answer(_PATIENCE)
        yield supervisor
    finally:
        with suppress(OSError):
            ours.shutdown(socket.SHUT_WR)
        remains = _remains(ours)
        ours.close()
        with suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG if remains else 0)
        if remains:
            raise Unobservable(
                f"{target}: {remains}. Fix: run the benchmark again, which removes its remains"
            )


def _remains(channel: socket.socket) -> str:
    """Return what the supervisor could not remove, '' after it removed everything."""
    deadline = time.monotonic() + _REMOVAL
    while True:
        line = _line(channel, max(0.0, deadline - time.monotonic()))
        if not line:
            return "the supervisor of the scratch server ended without a response"
        answer = json_text.loads(line)
        if "removed" in answer:
            return str(answer["removed"])


def _line(channel: socket.socket, patience: float) -> str:
    """Return the next line of a socket, '' at its end or without one in time."""
    found = bytearray()
    deadline = time.monotonic() + patience
    while not found.endswith(b"\n"):
        if not select.select([channel], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return ""
        piece = channel.recv(1)
        if not piece:
            return ""
        found += piece
    return found.decode("ascii")


def _serve(channel: socket.socket, target: str, place: int, owner: Account, text: str, until: float) -> None:
    """Run the supervisor. Never returns: the child must not continue as its parent."""
    try:
        child_process.isolate(channel.fileno(), place)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            # Not SIG_IGN, which the commands would inherit.
            signal.signal(number, lambda _number, _frame: None)
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
        made: Directory | None = None
        removed = ""
        work = _Work(channel, place, until)
        try:
            made = Directory.create(place, owner, text)
            os.fchdir(made.inner)
            work.answer({"ready": True})
            work.loop(made)
        except (_Over, Refused, OSError) as error:
            work.answer({"error": f"{target}: {error}"})
        finally:
            removed = _ended()
            if made:
                try:
                    made.remove(place)
                except OSError as error:
                    removed = f"{made.name} could not be removed: {error.strerror}"
        work.answer({"removed": removed})
    finally:
        os._exit(0)


class _Work:
    """The supervisor's side."""

    def __init__(self, channel: socket.socket, place: int, until: float) -> None:
        self._channel, self._place, self._until = channel, place, until
        self._server = -1

    def answer(self, answer: Mapping[str, object]) -> None:
        """Send an answer; without a parent there is no reader."""
        with suppress(OSError):
            self._channel.sendall(json.dumps(answer).encode("ascii") + b"\n")

    def loop(self, made: Directory) -> None:
        """Answer requests until the parent ends. Raises _Over, OSError."""
        while True:
            line = _line(self._channel, self._until - time.monotonic())
            if not line and time.monotonic() >= self._until:
                raise _Over("the scratch server's time limit is over. Fix: measure less at once")
            if not line:
                return
            request = json_text.loads(line)
            if "run" in request:
                output = made.output()
                self.answer(self._run(request["run"], output, request["timeout"]))
                os.close(output)
            elif "start" in request:
                self._server = made.output()
                limit = f"{max(1.0, self._until - time.monotonic()):.0f}"
                # If this process is killed, the server still ends.
                _start(["timeout", f"--kill-after={_STOP:g}", limit, *request["start"]], self._server)
                self.answer({"started": True})
            else:
                self.answer({"output": _last(self._server)})

    def _run(self, argv: list[str], output: int, timeout: float) -> Mapping[str, object]:
        deadline = min(self._until, time.monotonic() + timeout)
        try:
            child = _start(argv, output)
        except OSError as error:
            return {"error": f"{argv[0]}: {error.strerror}"}
        while child.poll() is None:
            if select.select([self._channel], [], [], _PERIOD)[0]:
                raise _Over("the measuring process ended")
            if time.monotonic() > deadline:
                raise _Over(f"{' '.join(argv)[:200]}: no result within {timeout:g} s")
            if not is_enough_left(os.fstatvfs(self._place)):
                raise _Over("less than 5 % of the file system is free. Fix: free space, or use fewer clients")
        return {"rc": child.returncode, "output": _last(output)}


def _start(argv: Sequence[str], output: int) -> subprocess.Popen[bytes]:
    """Start a command in this directory, with nothing of this process. Raises OSError."""
    children = []

    def start() -> None:
        children.append(
            subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRONMENT,
                start_new_session=True,
                umask=0o077,
            )
        )

    keyring.start(start)
    return children[0]


def _last(output: int) -> str:
    """Return the end of a file, '' without one."""
    if output < 0:
        return ""
    size = os.fstat(output).st_size
    return os.pread(output, _OUTPUT, max(0, size - _OUTPUT)).decode("utf-8", "replace")


def _ended() -> str:
    """End all that descends from this process. Return '', or which processes remain."""
    for number, seconds in ((_QUIT, _STOP), (signal.SIGKILL, _KILLED)):
        deadline = time.monotonic() + seconds
        # Its own children first: a server's main process then ends the others, and releases what they share.
        _signal(number, _descendants(most=1))
        while (left := _descendants()) and time.monotonic() < deadline:
            if number == signal.SIGKILL:
                _signal(number, left)
            time.sleep(_PERIOD)
    return f"processes {', '.join(map(str, left))} do not end" if left else ""


def _signal(number: int, pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _descendants(most: int = 1000) -> list[int]:
    """Return the living descendants of this process, `most` generations; those that have ended are waited for."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    for _generation in range(most):
        new = {pid for pid, parent in parents.items() if parent in found} - found
        if not new:
            break
        found |= new
    return sorted(found - {os.getpid()})


class Directory(NamedTuple):
    """A scratch directory of root, `outer`, and in it the one of a server's user, `inner`: descriptors.

    Only root can change what is in `outer`, so `inner` is ours whatever the owner of the mount's directory does.
    """

    name: str
    outer: int
    inner: int

    @classmethod
    def create(cls, place: int, owner: Account, text: str) -> Directory:
        """Create both, and ../init.sql with a text. Raises Refused, OSError."""
        name, outer = scratch.create_directory(place)
        file = os.open(
            scratch.INIT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=outer
        )
        os.fchmod(file, 0o644)
        os.write(file, text.encode("ascii"))
        os.close(file)
        os.mkdir(scratch.INNER, 0o700, dir_fd=outer)
        inner = os.open(scratch.INNER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        os.fchown(inner, owner.uid, owner.gid)
        return cls(name, outer, inner)

    def output(self) -> int:
        """Return a new file without a name, in root's directory. Raises OSError."""
        file = scratch.create(self.outer, scratch.OUTPUT)
        scratch.remove(self.outer, scratch.OUTPUT)
        return file

    def remove(self, place: int) -> None:
        """Remove both. Raises OSError."""
        os.chdir("/")
        scratch.remove_directory(place, self.name, self.outer)
        os.fsync(place)
