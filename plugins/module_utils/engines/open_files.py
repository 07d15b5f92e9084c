# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that an engine writes to, their devices and open flags, from /proc: no login is needed.

Nothing here opens a path: the links and numbers in /proc/PID/fd and fdinfo are the kernel's own
memory, and can be read even when the disk below hangs.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..facts.classes import OpenedFacts
from ..host import bounds
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN, Observation, caused
from ..host.process_context import Place
from ..host.processes import DELETED, Process
from ..host.seam import Host, Unobservable

SOURCE = "/proc/PID/fd, /proc/PID/fdinfo"

_ACCESS, _READ_ONLY = 0o3, 0o0
_DSYNC, _SYNC = 0o10000, 0o4010000
#: O_DIRECT by what uname(2) calls the machine: include/uapi/asm-generic/fcntl.h, and what the
#: architectures' own headers say otherwise. O_DSYNC and O_SYNC are the same on all of these.
_DIRECT = {
    **dict.fromkeys(("x86_64", "i386", "i486", "i586", "i686", "s390x", "riscv64", "loongarch64"), 0o40000),
    **dict.fromkeys(("aarch64", "aarch64_be", "armv5tel", "armv6l", "armv7l", "armv8l"), 0o200000),
    **dict.fromkeys(("ppc", "ppc64", "ppc64le"), 0o400000),
}
#: Standard input, output and error: where a server's words go, never its data.
_STANDARD = ("0", "1", "2")
#: Not on any disk.
_ELSEWHERE = ("/proc/", "/sys/", "/memfd:", "/dev/shm/", "/dev/mqueue/", "/dev/hugepages/")


class Opened(NamedTuple):
    """One file that a process has open for writing: `path` as the process sees it."""

    path: str
    device: str
    opened: str


class _Enough(Exception):
    """More files are open than are examined."""


class _Gathered:
    """Open files of one instance, each once, within their bounds; `until`: no later than this time.monotonic()."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.files: set[Opened] = set()
        self._rows: set[tuple[str, str, str]] = set()
        self._inspected = self._letters = 0

    def may_inspect(self, numbers: list[str]) -> Iterator[str]:
        """Yield the numbers of open files as long as there are not too many. Raises _Enough."""
        for number in numbers:
            if self._inspected >= bounds.OPEN_FILES:
                raise _Enough(f"{bounds.OPEN_FILES} open files were examined, and there are more")
            if time.monotonic() >= self._until:
                raise _Enough("the time for this examination was over")
            self._inspected += 1
            yield number

    def add(self, files: Iterable[Opened]) -> None:
        """Add files. Raises _Enough."""
        for file in files:
            if file in self.files:
                continue
            self._rows.add(_row(file))
            self._letters += len(file.path)
            if len(self._rows) > bounds.ROWS or self._letters > bounds.OPEN_PATHS:
                raise _Enough(
                    f"files in {bounds.ROWS} directories, or with {bounds.OPEN_PATHS} letters in their paths, were"
                    " examined, and more are open"
                )
            self.files.add(file)


class OpenFiles:
    """Reads the open files of processes; `mounts` are those that this process sees."""

    def __init__(self, host: Host, mounts: dict[str, Mount]) -> None:
        self.host = host
        self.mounts = mounts
        try:
            self.machine = host.run(["uname", "-m"]).stdout.strip()
        except Unobservable:
            self.machine = UNKNOWN

    def written(self, processes: Iterable[Process], place: Place) -> tuple[tuple[Opened, ...], Observation]:
        """Return the files that are open for writing, and how complete they are.

        Files that no longer have a name are left out. The word is complete, partial or unknown, with
        the reason. `processes`: the main one first.
        """
        family = list(processes)
        chosen, reasons = choose(family), []
        if len(chosen) < len(family):
            reasons.append(f"{len(chosen)} of {len(family)} processes were examined")
        found = _Gathered(self.host.until)
        for process in chosen:
            try:
                numbers = self.host.names(f"/proc/{process.pid}/fd")
                found.add(self._of(process, place, found.may_inspect(numbers)))
            except _Enough as error:
                reasons.append(f"process {process.pid}: {error}")
                break
            except Unobservable as error:
                # One that ends meanwhile takes its files with it; without the main one nothing is known.
                if process == family[0] or self.host.exists(f"/proc/{process.pid}/stat"):
                    reasons.append(str(error))
        named, why = self._named(found.files, place)
        word = "complete" if not reasons + why else "partial" if named else UNKNOWN
        return tuple(named), Observation(word, SOURCE, "; ".join(reasons + why) or None)

    def of(self, process: Process, place: Place) -> list[Opened]:
        """Return the files with a name that one process has open for writing. Raises Unobservable."""
        numbers = self.host.names(f"/proc/{process.pid}/fd")[: bounds.OPEN_FILES_OF_OTHERS]
        return [file for file in self._of(process, place, numbers) if not file.path.endswith(DELETED)]

    def rows(self, processes: Iterable[Process], place: Place) -> tuple[list[OpenedFacts], Observation]:
        """Return a row for each (directory, device, way of opening), and how complete they are."""
        found, completeness = self.written(processes, place)
        return group(found), completeness

    def _of(self, process: Process, place: Place, numbers: Iterable[str]) -> Iterator[Opened]:
        base = f"/proc/{process.pid}"
        for number in numbers:
            if number in _STANDARD:
                continue
            try:
                path = self.host.link(f"{base}/fd/{number}")
                # Sockets, pipes and the like have no path, and most of them no mount either.
                if not path.startswith("/") or path.startswith(_ELSEWHERE):
                    continue
                flags, mount = parse_fdinfo(self.host.read(f"{base}/fdinfo/{number}"))
            except (Unobservable, ValueError) as error:
                if self.host.exists(f"{base}/fd/{number}"):
                    raise Unobservable(f"{base}/fd/{number}: {error}") from error
                continue
            if is_writable(flags):
                device = self._device(path, mount, place)
                if device is not None:
                    yield Opened(path, device, opened(flags, self.machine))

    def _device(self, path: str, mount: str, place: Place) -> str | None:
        """Return `major:minor` of the device of an open file, None for a character device."""
        if path.startswith("/dev/"):
            name = posixpath.basename(path)
            try:
                return self.host.read(f"/sys/class/block/{name}/dev").strip()
            except Unobservable:
                return None
        # A file may have been opened in another namespace, or before a change of root.
        found = place.mounts.get(mount) or self.mounts.get(mount)
        return found.device if found else UNKNOWN

    def _named(self, found: set[Opened], place: Place) -> tuple[list[Opened], list[str]]:
        """Return the files that still have a name, and why that is unknown of some.

        The kernel marks the others at the end of their path, where a name can say the same.
        """
        marked = sorted({file.path for file in found if file.path.endswith(DELETED)})
        if not marked:
            return list(found), []
        prefix = place.root if place.top == "/" else ""
        # Prints the path of each that is there, and complains about the others.
        argv = ["stat", "--printf=%n\\0", "--", *[prefix + path for path in marked]]
        try:
            there = set(self.host.run(argv).stdout.split("\0"))
        except Unobservable as error:
            return list(found), [f"whether {marked[0]} and the like are gone: {error}"]
        gone = {path for path in marked if prefix + path not in there}
        return [file for file in found if file.path not in gone], []


def choose(family: list[Process]) -> list[Process]:
    """Return the processes to examine: the main one, those at work, then the oldest.

    The oldest children of a server are its writers; those that wait for a client come later.
    """
    others = sorted(family[1:], key=lambda process: (process.state not in "RD", process.started or 0))
    return [*family[:1], *others][: bounds.PROCESSES]


def parse_fdinfo(text: str) -> tuple[int, str]:
    """Return (flags, mount id) of an open file: proc_pid_fdinfo(5). Raises ValueError."""
    fields = dict(line.partition(":")[::2] for line in text.split("\n"))
    if "flags" not in fields or "mnt_id" not in fields:
        raise ValueError("fdinfo has no flags or no mnt_id")
    return int(fields["flags"], 8), fields["mnt_id"].strip()


def is_writable(flags: int) -> bool:
    """Return whether a file was opened for writing."""
    return flags & _ACCESS != _READ_ONLY


def opened(flags: int, machine: str) -> str:
    """Return how a file was opened, as sorted keywords: buffered or direct, and dsync or sync.

    `unknown` on an architecture whose bits are unknown here.
    """
    if machine not in _DIRECT:
        return UNKNOWN
    words = ["direct" if flags & _DIRECT[machine] else "buffered"]
    if flags & _SYNC == _SYNC:
        words.append("sync")
    elif flags & _DSYNC:
        words.append("dsync")
    return " ".join(words)


def write_through(files: Iterable[Opened], no_file: str) -> Observation:
    """Return whether all of these files are open for synchronous writes: yes, no with one that is not, or unknown.

    `no_file`: the cause if none of them is open.
    """
    found = sorted(files)
    for file in found:
        if file.opened != UNKNOWN and not {"dsync", "sync"} & set(file.opened.split()):
            return caused("no", SOURCE, "opened_as", path=file.path, opened=file.opened)
    if not found:
        return caused(UNKNOWN, SOURCE, no_file)
    if any(file.opened == UNKNOWN for file in found):
        return caused(UNKNOWN, SOURCE, "open_flags", path=found[0].path)
    return Observation("yes", SOURCE)


def _row(file: Opened) -> tuple[str, str, str]:
    return posixpath.dirname(file.path), file.device, file.opened


def group(files: Iterable[Opened]) -> list[OpenedFacts]:
    """Return a row for each (directory, device, way of opening)."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        groups.setdefault(_row(file), []).append(file.path)
    return [
        {
            "directory": directory,
            "device": device,
            "opened": how,
            "count": len(paths),
            "example": min(paths),
        }
        for (directory, device, how), paths in sorted(groups.items())
    ]
