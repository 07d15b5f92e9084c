# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems compared on a spare disk: each is created, mounted with some options and written to, one after the other.

A separate process does it, and ends with its parent. Its mounts are attached to no path: the kernel removes them when
their descriptors are closed, however the process ends.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypedDict

from ..enforce import one_run
from ..host import json_text
from ..host.mount_api import calls
from ..host.mount_api import options as mount_options
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage.blockstack import Blocks
from ..storage.disks import Disks
from ..storage.flush import flushes
from . import fio, planned, scratch, spare, variants
from .advice import scheduler_setting
from .benchmark import expect_quiet
from .limits import MIB, Refused, chosen, number
from .spare import Spare

#: What writes without a file system: the measure of the others.
RAW = "raw device"
DEFAULTS = "defaults"
#: A file grows only in a file system.
PATTERNS = tuple(name for name in fio.WORDS if name != "append_fsync")
#: fstab options that a user may name, and those that suit ext3 alone.
OPTIONS = (DEFAULTS, "noatime", "sync", "sync,noatime")
EXT3_OPTIONS = ("data=ordered", "data=journal", "data=writeback", "barrier=0")
#: A file system is created without discards and with all of its tables, so that nothing writes to it in the background.
_EXT = ("mke2fs", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-L", "{label}", "-t")
_PATIENCE = 60.0
_DEATH_SIGNAL = 1


class Kind(NamedTuple):
    """A kind of file system: the command that creates it, and the package of that."""

    argv: tuple[str, ...]
    package: str


KINDS = {
    "ext2": Kind((*_EXT, "ext2"), "e2fsprogs"),
    "ext3": Kind((*_EXT, "ext3"), "e2fsprogs"),
    "ext4": Kind((*_EXT, "ext4"), "e2fsprogs"),
    "xfs": Kind(("mkfs.xfs", "-q", "-f", "-K", "-L", "{label}"), "xfsprogs"),
    "btrfs": Kind(("mkfs.btrfs", "-q", "-f", "-K", "-L", "{label}"), "btrfs-progs"),
    "jfs": Kind(("mkfs.jfs", "-q", "-L", "{label}"), "jfsutils"),
}


class Row(TypedDict):
    """The median of several runs; `of_raw`: its rate, with 100 for the raw disk and its present scheduler."""

    file_system: str
    options: str
    scheduler: str
    pattern: str
    clients: int
    rate: float
    mean: float
    p99: float | None
    flushes_per_commit: float | str
    runs: int
    spread: float
    of_raw: float


class Measured(NamedTuple):
    """The rows, and by which share the raw disk was faster after them than before: of a quiet disk about 0.

    `warning`: as spare.clean returns it.
    """

    rows: list[Row]
    drift: float
    warning: str = ""


class Plan(NamedTuple):
    """What is compared; `left_out`: why a kind of file system is not, by its name.

    `setting`: the key of a profile that sets the disk's scheduler. `looked_at`: as Plan of planned.py has it.
    """

    spare: Spare
    kinds: Sequence[str]
    left_out: Mapping[str, str]
    options: Sequence[str]
    ext3_options: Sequence[str]
    schedulers: Sequence[str]
    patterns: Sequence[str]
    clients: Sequence[int]
    seconds: int
    runs: int
    size: int
    setting: str | None = None
    looked_at: int | None = None

    def options_of(self, kind: str) -> list[str]:
        """Return the options that a kind of file system is mounted with."""
        return [*self.options, *(self.ext3_options if kind == "ext3" else ())]

    @property
    def total(self) -> int:
        """Return the number of runs."""
        mounts = 1 + sum(len(self.options_of(kind)) for kind in self.kinds)
        # The raw disk again at the end, with one scheduler.
        return (mounts * len(self.schedulers) + 1) * len(self.patterns) * len(self.clients) * self.runs


def plan(host: Host, row: Mapping[str, Any]) -> Plan:
    """Return the plan that the module's options ask for; reads only. Raises Refused."""
    looked_at = one_run.last_run(host)
    disk = spare.find(host, row["device"], row["overwrite"])
    kinds, left_out = _kinds(host, row["file_systems"])
    present = disk.schedulers or (disk.scheduler,)
    requested = row["schedulers"] or present
    missing = [name for name in requested if name not in present]
    if missing:
        raise Refused(f"schedulers: observed {', '.join(missing)}; expected some of {', '.join(present)}")
    made = Plan(
        spare=disk,
        kinds=kinds,
        left_out=left_out,
        options=chosen("mount_options", row["mount_options"], OPTIONS),
        ext3_options=chosen("ext3_options", row["ext3_options"], EXT3_OPTIONS) if row["ext3_options"] else [],
        # The present one first: it is that of the raw disk with 100.
        schedulers=sorted(set(requested) | {disk.scheduler}, key=lambda name: (name != disk.scheduler, name)),
        patterns=chosen("patterns", row["patterns"], PATTERNS),
        clients=sorted({number("clients", count, 1, planned.CLIENTS) for count in row["clients"]}),
        seconds=number("seconds", row["seconds"], 1, 60),
        runs=number("runs", row["runs"], 1, 9),
        size=number("size", row["size"], 1, 64),
        setting=scheduler_setting(Disks(host, Blocks(host)).collect_all([disk.name])),
        looked_at=looked_at,
    )
    if not made.clients:
        raise Refused("clients: observed none; expected at least one number")
    if made.size * made.clients[-1] * MIB * 4 > disk.size:
        raise Refused(
            f"size: observed {made.size} MiB for each of {made.clients[-1]} clients; expected at most a quarter of"
            f" {disk.size // MIB} MiB for all"
        )
    most = number("minutes", row["minutes"], 1, 120) * 60
    if made.total * made.seconds > most:
        raise Refused(
            f"{made.total} runs of {made.seconds} s: observed {made.total * made.seconds} s, expected at most {most}. Fix:"
            " measure less, or allow more minutes"
        )
    planned.expect_fio(host, made.patterns)
    return made


def _kinds(host: Host, requested: Any) -> tuple[list[str], dict[str, str]]:
    """Return the kinds to compare, and why others are left out. Raises Refused if a named one is unavailable."""
    names = chosen("file_systems", requested, KINDS) if requested else list(KINDS)
    why = {name: reason for name in names if (reason := _why_not(host, name))}
    if requested and why:
        raise Refused("file_systems: " + "; ".join(f"{name}: {reason}" for name, reason in why.items()))
    found = [name for name in names if name not in why]
    if not found:
        raise Refused("file_systems: none is available: " + "; ".join(f"{name}: {why[name]}" for name in why))
    return found, why


def _why_not(host: Host, kind: str) -> str:
    program = KINDS[kind].argv[0]
    if not any(host.exists(f"{folder}/{program}") for folder in ("/usr/sbin", "/sbin", "/usr/bin")):
        return f"{program} is missing. Fix: install {KINDS[kind].package}"
    try:
        os.close(calls.fsopen(kind))
    except OSError as error:
        if error.errno == errno.ENODEV:
            return "this kernel does not have it"
        if error.errno in calls.MISSING:
            raise Refused(
                f"kernel: observed no fsopen(2) ({error.strerror}); expected Linux 5.2 or later, and root"
            ) from error
        return f"fsopen: {error.strerror}"
    return ""


def run(host: Host, made: Plan, busy_allowed: bool = False) -> Measured:
    """Compare and return the figures. Raises Refused before anything is written, else ChangeFailed, Unobservable, OSError.

    The work is done by a child, which cleans up also if this process is killed.
    """
    if not busy_allowed:
        expect_quiet(host, [made.spare.name])
    calls.load()
    reader, writer = os.pipe()
    with scratch.signals_end():
        child = os.fork()
        if child == 0:
            _serve(host, made, writer)
        os.close(writer)
        try:
            answer = _read(reader)
        except BaseException:
            os.kill(child, signal.SIGTERM)
            raise
        finally:
            os.waitpid(child, 0)
            os.close(reader)
    if not answer:
        raise Unobservable("the process that compares file systems ended without a result. Fix: run again")
    found = json_text.loads(answer.decode("ascii"))
    if "error" in found:
        error = {"Refused": Refused, "ChangeFailed": ChangeFailed}.get(found["kind"], Unobservable)
        raise error(found["error"])
    return Measured(found["rows"], found["drift"], found["warning"])


def _read(reader: int) -> bytes:
    found = bytearray()
    while piece := os.read(reader, 65536):
        found += piece
    return bytes(found)


def _serve(host: Host, made: Plan, writer: int) -> None:
    """Write the result. Never returns: the child must not continue as its parent."""
    try:
        parent = os.getppid()
        # A signal to the session of the parent must not end the process that cleans up.
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        with scratch.signals_end():
            ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
            try:
                if os.getppid() != parent:
                    raise scratch.Ended("the measuring process ended")
                answer: dict[str, Any] = compare(host, made)._asdict()
            except (Refused, ChangeFailed, Unobservable, OSError, scratch.Ended) as error:
                answer = {"error": str(error), "kind": type(error).__name__}
        left = json.dumps(answer).encode("ascii")
        with suppress(OSError):
            while left:
                left = left[os.write(writer, left) :]
    finally:
        os._exit(0)


def compare(host: Host, made: Plan) -> Measured:
    """Measure the raw disk, each file system, and the raw disk again.

    The disk is wiped and its scheduler restored at any end.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    label = f"db{secrets.token_hex(5)}"
    rows: list[Row] = []
    with one_run.hold(host, "the module compare_filesystems", now, ["scheduler"], made.looked_at):
        warning = spare.clean(host)
        with spare.held(host, made.spare, label) as disk, _restored(host, made.spare):
            paths = [spare.path_of(disk)] * made.clients[-1]
            with spare.claimed(disk):
                rows += _measured(host, made, RAW, DEFAULTS, paths)
            for kind in made.kinds:
                rows += _created(host, made, kind, label, disk)
            with spare.claimed(disk):
                again = _measured(host, made._replace(schedulers=made.schedulers[:1]), RAW, DEFAULTS, paths)
    ratios = [after["rate"] / before["rate"] for before, after in zip(rows, again)]
    return Measured(_of_raw(rows), round(max(ratios, key=lambda ratio: abs(ratio - 1)) - 1, 3), warning)


def _created(host: Host, made: Plan, kind: str, label: str, disk: int) -> list[Row]:
    """Create a file system, and return its rows with each of its mount options."""
    rows: list[Row] = []
    spare.wait_until_unused(disk)
    spare.unlock(disk)
    spare.run(host, [word.format(label=label) for word in KINDS[kind].argv] + [spare.path_of(disk)])
    spare.lock(disk)
    for options in made.options_of(kind):
        with (
            _mounted(disk, kind, options) as place,
            scratch.files(kind, place, [made.size * MIB] * made.clients[-1]) as files,
        ):
            rows += _measured(host, made, kind, options, [spare.path_of(each) for each in files])
        spare.wait_until_unused(disk)
    return rows


@contextmanager
def _restored(host: Host, disk: Spare) -> Iterator[None]:
    try:
        yield
    finally:
        with scratch.signals_ignored():
            if len(disk.schedulers) > 1:
                variants.schedule(host, disk.queue, disk.scheduler)


@contextmanager
def _mounted(disk: int, kind: str, options: str) -> Iterator[int]:
    """Mount the disk at no path, and yield its root directory. Raises ChangeFailed, OSError."""
    words = [word for word in options.split(",") if word != DEFAULTS]
    attributes = calls.ATTRIBUTES_OF_ATIME["noatime"] if "noatime" in words else 0
    context = calls.fsopen(kind)
    try:
        calls.set_option(context, f"source={spare.path_of(disk)}")
        for word in mount_options.for_file_system(words):
            calls.set_option(context, word)
        calls.create(context)
        mount = calls.fsmount(context, attributes)
    except OSError as error:
        why = "; ".join(calls.messages(context)) or error.strerror
        raise ChangeFailed(f"{kind}, {options}: could not be mounted: {why}") from error
    finally:
        os.close(context)
    try:
        # The root of the mount, as a directory that can be listed.
        place = os.open(f"/proc/self/fd/{mount}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield place
        finally:
            os.close(place)
    finally:
        os.close(mount)


def _measured(host: Host, made: Plan, kind: str, options: str, paths: Sequence[str]) -> list[Row]:
    """Return a row for each scheduler, pattern and number of clients."""
    rows = []
    for scheduler in made.schedulers:
        if len(made.spare.schedulers) > 1:
            variants.schedule(host, made.spare.queue, scheduler)
        for pattern in made.patterns:
            for clients in made.clients:
                found = [_one(host, made, kind, pattern, paths[:clients]) for _run in range(made.runs)]
                by_rate = sorted(found, key=lambda each: each[0].rate)
                figures, per_commit = by_rate[(len(by_rate) - 1) // 2]
                rows.append(
                    Row(
                        file_system=kind,
                        options=options,
                        scheduler=scheduler,
                        pattern=pattern,
                        clients=clients,
                        rate=figures.rate,
                        mean=figures.mean,
                        p99=figures.p99,
                        flushes_per_commit=per_commit,
                        runs=made.runs,
                        spread=round((by_rate[-1][0].rate - by_rate[0][0].rate) / figures.rate, 3),
                        of_raw=0.0,
                    )
                )
    return rows


def _one(
    host: Host, made: Plan, kind: str, pattern: str, paths: Sequence[str]
) -> tuple[fio.Figures, float | str]:
    """Return the figures of one run, and the flushes for each commit."""
    argv = fio.argv(pattern, [paths], made.size, made.seconds, planned.MOST, is_device=kind == RAW)
    before = _flushes(host, made.spare.name)
    result = host.run(argv, timeout=made.seconds + _PATIENCE)
    if result.rc != 0:
        raise Unobservable(f"fio: exit {result.rc}: {(result.stderr.strip() or result.stdout.strip())[:500]}")
    (figures,) = fio.parse(result.stdout, 1, len(paths))
    after = _flushes(host, made.spare.name)
    if before is None or after is None:
        return figures, "unknown"
    return figures, round((after - before) / figures.commits, 2)


def _flushes(host: Host, name: str) -> int | None:
    try:
        return flushes(host, name)
    except ChangeFailed:
        return None


def _of_raw(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their share of the raw disk's rate with its present scheduler, which is the first row's."""
    raw = {
        (row["pattern"], row["clients"]): row["rate"]
        for row in rows
        if (row["file_system"], row["scheduler"]) == (RAW, rows[0]["scheduler"])
    }
    return [
        Row({**row, "of_raw": round(100 * row["rate"] / raw[row["pattern"], row["clients"]], 1)})
        for row in rows
    ]
