# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a host, as proc(5) shows them. Independent of engines.

What the kernel reports without a read of the process's memory is read at once for all of them. Its
arguments, environment and maps are read for few, and by commands with a time limit: the kernel
makes the reader wait where a thread of the process waits for a disk while it changes its memory.
"""

from __future__ import annotations

import contextlib
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from . import bounds
from .seam import Host, Unobservable

#: Start times are in these, on every architecture whose open flags are known here: USER_HZ.
TICKS = 100
#: What the kernel adds to the path of a file that is gone, such as a program that was upgraded.
DELETED = " (deleted)"
#: Readings of the clock between two of the time since the boot: a busy host delays the command, for seconds at times.
_CLOCK_ATTEMPTS, _CLOCK_DELAY = 5, 0.05
#: The time since the boot is cut to this, in seconds.
_UPTIME_STEP = 0.01
#: Users below are the system's: login.defs(5).
FIRST_PERSON = 1000
_DIGITS = frozenset("0123456789")
_BOOT_TIME = re.compile(r"^btime (\d+)$", re.M)
#: Libraries that make fsync(2) do nothing, by a part of their files' names: Stewart Smith's libeatmydata, Fedora's nosync.
_BREAK_FSYNC = ("eatmydata", "nosync")


def booted(host: Host) -> float:
    """Return when the kernel began, in seconds since the epoch, good to a second. Raises Unobservable."""
    found = _BOOT_TIME.search(host.read("/proc/stat"))
    if not found:
        raise Unobservable("/proc/stat: observed no btime")
    return float(found[1])


def booted_by_clock(host: Host) -> float:
    """Return when the kernel began by the clock of now, in seconds since the epoch: never too late, and at most 0.05 s
    too early unless the host is so busy that each command takes longer. Raises Unobservable, also for a clock that is set
    meanwhile.
    """
    earliest, latest = -math.inf, math.inf
    for _attempt in range(_CLOCK_ATTEMPTS):
        before = _uptime(host)
        text = output(host, ["date", "+%s.%N"])
        up = _uptime(host)
        try:
            now = float(text)
        except ValueError as error:
            raise Unobservable(f"date: {error}") from error
        earliest, latest = max(earliest, now - up - _UPTIME_STEP), min(latest, now - before)
        if latest - earliest <= _CLOCK_DELAY:
            break
    if latest < earliest:
        raise Unobservable("the clock was set while it was read; run again")
    return earliest


def _uptime(host: Host) -> float:
    source = "/proc/uptime"
    try:
        return float(host.read(source).split()[0])
    except (IndexError, ValueError) as error:
        raise Unobservable(f"{source}: {error}") from error


class Process(NamedTuple):
    """One process.

    `name` is what it calls itself, at most 15 bytes: a hint, no proof. `exe` is the file that
    runs, None where `reason` says why that is unknown. `state` is a letter of proc_pid_stat(5).
    `started` is in seconds since the epoch, good to a second, or None. `ticks` is the start as proc_pid_stat(5) has it.
    """

    pid: int
    ppid: int
    name: str
    state: str
    exe: str | None
    reason: str | None
    started: float | None
    ticks: str = ""

    @property
    def program(self) -> str:
        """The file name of what runs, '' if it is unknown."""
        return posixpath.basename(self.exe or "")


class Processes:
    """The processes of one host at one moment.

    Raises Unobservable where /proc does not show them all: a process that is missing might be an engine.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        if not host.exists("/proc/1/stat"):
            raise Unobservable("/proc shows only some of the processes: run as root")
        boot = _BOOT_TIME.search(host.read("/proc/stat")) if host.exists("/proc/stat") else None
        since = float(boot[1]) if boot else None
        pids = sorted(int(name) for name in host.names("/proc") if name.isdigit())
        _expect_countable(host, pids)
        found = (_read(host, pid, since) for pid in pids)
        self.all = {process.pid: process for process in _shared(process for process in found if process)}

    def running(self, programs: Collection[str]) -> list[Process]:
        """Return the processes that run one of these programs, the lowest process id first."""
        return [process for process in self.all.values() if process.program in programs]

    def mains(self, programs: Collection[str]) -> list[Process]:
        """Return those of them that were not started by another one of them."""
        return [process for process in self.running(programs) if self._parent(process) not in programs]

    def family(self, main: Process, programs: Collection[str]) -> tuple[Process, ...]:
        """Return a process and those that descend from it and run one of these programs."""
        children: dict[int, list[Process]] = {}
        for process in self.running(programs):
            children.setdefault(process.ppid, []).append(process)
        found, known = [main], {main.pid}
        for process in found:
            new = [child for child in children.get(process.pid, ()) if child.pid not in known]
            known.update(child.pid for child in new)
            found += new
        return tuple(found)

    def ancestors(self, process: Process) -> list[Process]:
        """Return the parent, its parent and so on."""
        found: list[Process] = []
        parent = self.all.get(process.ppid)
        while parent and parent not in found:
            found.append(parent)
            parent = self.all.get(parent.ppid)
        return found

    def is_gone(self, process: Process) -> bool:
        """Return whether a process has ended meanwhile."""
        return not self.host.exists(f"/proc/{process.pid}/stat")

    def argv(self, process: Process) -> list[str]:
        """Return the arguments, the program's name first; a process can write over them.

        Raises Unobservable.
        """
        return argv_of(self.host, process.pid)

    def environment(self, process: Process, names: Iterable[str]) -> dict[str, str]:
        """Return these of the variables that a process was started with. Raises Unobservable.

        No other is read: passwords are handed over in environments.
        """
        return variables(self.host, process.pid, names)

    def directory(self, process: Process) -> str:
        """Return the working directory, as the process itself sees it. Raises Unobservable."""
        return self.inside(process, self.host.link(f"/proc/{process.pid}/cwd"))

    def program(self, process: Process) -> str:
        """Return the path of what runs, as the process itself sees it. Raises Unobservable."""
        if process.exe is None:
            raise Unobservable(process.reason or f"/proc/{process.pid}/exe is unknown")
        return self.inside(process, process.exe)

    def inside(self, process: Process, path: str) -> str:
        """Return a path that a link in /proc shows without the root directory of a chroot(2).

        Raises Unobservable.
        """
        top = self.host.link(f"/proc/{process.pid}/root")
        return path[len(top) :] if top != "/" and path.startswith(f"{top}/") else path

    def user(self, process: Process) -> str:
        """Return the number of the user as whom a process acts. Raises Unobservable."""
        return user_of(self.host, process.pid)

    def is_of_a_person(self, process: Process) -> bool:
        """Return whether a process acts as a user who is not one of the system's, or as an unknown one."""
        try:
            return int(self.user(process)) >= FIRST_PERSON
        except Unobservable:
            return True

    def preloads(self, process: Process) -> list[str]:
        """Return the libraries in its memory that break fsync. Raises Unobservable."""
        argv = ["grep", "-aF", "\n".join(_BREAK_FSYNC), f"/proc/{process.pid}/maps"]
        lines = output(self.host, argv, none=1).split("\n")
        paths = {line.split(None, 5)[5] for line in lines if len(line.split(None, 5)) == 6}
        return sorted(filter(breaks_fsync, paths))

    def _parent(self, process: Process) -> str:
        parent = self.all.get(process.ppid)
        return parent.program if parent else ""


def breaks_fsync(library: str) -> bool:
    """Return whether a library makes fsync(2) do nothing, by the name of its file."""
    name = posixpath.basename(library)
    return ".so" in name and any(word in name for word in _BREAK_FSYNC)


def expect_same(host: Host, process: Process) -> None:
    """Raise Unobservable unless a process ID is still that process, and it still runs the same program.

    exec(2) keeps the ID and the start time. With a set-user-ID program it also makes another user's process root's.
    """
    now = _read(host, process.pid, None)
    if now is None:
        raise Unobservable(f"/proc/{process.pid}/stat: the process has ended; run again")
    if now.ticks != process.ticks:
        raise Unobservable(f"/proc/{process.pid}/stat: the ID is another process's by now; run again")
    if process.exe is None or now.exe != process.exe:
        was, runs = process.exe or "a program that is unknown", now.exe or "a program that is unknown"
        raise Unobservable(
            f"/proc/{process.pid}/exe: observed {bounds.short(runs, 100)}, expected {bounds.short(was, 100)}; run again"
        )


def argv_of(host: Host, pid: int) -> list[str]:
    """Return the arguments of a process, the program's name first. Raises Unobservable."""
    path = f"/proc/{pid}/cmdline"
    text = output(host, ["cat", path])
    if len(text) > bounds.COMMAND_LINE:
        raise Unobservable(f"{path}: longer than {bounds.COMMAND_LINE} bytes")
    return text.rstrip("\0").split("\0")


def variables(host: Host, pid: int, names: Iterable[str]) -> dict[str, str]:
    """Return variables of a process's environment, as `Processes.environment`. Raises Unobservable."""
    requested = set(names)
    pattern = f"^({'|'.join(sorted(requested))})="
    argv = ["grep", "-zaE", pattern, f"/proc/{pid}/environ"]
    pairs = (entry.partition("=")[::2] for entry in output(host, argv, none=1).split("\0"))
    return {name: value for name, value in pairs if name in requested}


def _expect_countable(host: Host, pids: list[int]) -> None:
    """Raise Unobservable if there are more processes than can be read, with who has the most of them."""
    if len(pids) <= bounds.ALL_PROCESSES:
        return
    users: Counter[str] = Counter()
    for pid in pids[:: len(pids) // 1000]:
        with contextlib.suppress(Unobservable):
            users[user_of(host, pid)] += 1
    most = f"most of them of user {users.most_common(1)[0][0]}" if users else "of users who are unknown"
    raise Unobservable(
        f"/proc: observed {len(pids)} processes, {most}; expected at most {bounds.ALL_PROCESSES}"
    )


def _shared(found: Iterable[Process]) -> Iterator[Process]:
    """Yield processes, those of one program with one text for it; long ones are unknown where there are too many."""
    known: dict[str, str] = {}
    left = bounds.LONG_PROGRAMS
    for process in found:
        exe = process.exe
        if exe is None or exe in known:
            yield process._replace(exe=known[exe] if exe else None)
            continue
        left -= len(exe) if len(exe) > bounds.PROGRAM else 0
        if left < 0 and len(exe) > bounds.PROGRAM:
            why = f"programs with paths of more than {bounds.LONG_PROGRAMS} letters in all run"
            yield process._replace(exe=None, reason=f"/proc/{process.pid}/exe: {why}")
            continue
        known[exe] = exe
        yield process


def _read(host: Host, pid: int, since: float | None) -> Process | None:
    """Return a process, None for one that has ended or is about to."""
    try:
        text = host.read(f"/proc/{pid}/stat")
    except Unobservable:
        return None
    # The name is whatever the process likes, brackets and blanks too; what follows is numbers.
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    if not bracket or len(fields) < 20 or not all(map(_is_number, (fields[1], fields[19]))):
        if text:
            raise Unobservable(f"/proc/{pid}/stat: not as proc_pid_stat(5) says")
        return None
    if fields[0] in "ZXx":
        return None
    exe, reason = _exe(host, pid)
    return Process(
        pid=pid,
        ppid=int(fields[1]),
        name=head.partition("(")[2],
        state=fields[0],
        exe=exe,
        reason=reason,
        started=None if since is None else since + int(fields[19]) / TICKS,
        ticks=fields[19],
    )


def _is_number(text: str) -> bool:
    return len(text) <= bounds.DIGITS and _DIGITS.issuperset(text)


def _exe(host: Host, pid: int) -> tuple[str | None, str | None]:
    try:
        path = host.link(f"/proc/{pid}/exe")
    except Unobservable as error:
        return None, str(error)
    return path[: -len(DELETED)] if path.endswith(DELETED) else path, None


def output(host: Host, argv: list[str], none: int = 0) -> str:
    """Return what a reading command prints; exit code `none` means that nothing is found. Raises Unobservable."""
    result = host.run(argv)
    if result.rc not in (0, none):
        raise Unobservable(" ".join(result.stderr.split()) or f"{' '.join(argv)}: exit {result.rc}")
    return result.stdout


def user_of(host: Host, pid: int) -> str:
    """Return the number of the user as whom a process acts. Raises Unobservable."""
    source = f"/proc/{pid}/status"
    found = re.search(r"^Uid:\s+\d+\s+(\d+)", host.read(source), re.M)
    if not found:
        raise Unobservable(f"{source}: names no user")
    return found[1]
