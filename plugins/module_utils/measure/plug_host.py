# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host whose power is cut: starts the commits, and checks the acknowledged ones afterwards."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from .. import attestations
from ..host.seam import Host
from . import daemon, plug_job, scratch
from .limits import MIB, Refused, expect_space
from .patterns import PATTERNS
from .plug_job import Job, Losses
from .plug_writer import Client, Ends, commit_all
from .targets import find

PREFIX = ".durable-plug-"
STARTED = "started"
#: Seconds that all clients may take to their first acknowledged commit.
_PATIENCE = 60.0


def plan(host: Host, run: str, row: Mapping[str, Any]) -> Job:
    """Return the job that the module's options ask for; reads only. Raises Refused or Unobservable."""
    places = find(host, row["mounts"])
    attestations.expect_plain(place["target"] for place in places)
    job = plug_job.make(run, boot_id(host), places, row)
    for mount, place in enumerate(places):
        with scratch.directory(place["mount"]) as opened:
            expect_space(place["target"], os.fstatvfs(opened), _size_on(job, mount))
            _expect_none(place["target"], opened)
    return job


def begin(host: Host, job: Job, address: tuple[str, int], key: str) -> None:
    """Begin the commits, and return once each client has one acknowledged. Raises Refused, OSError or Unobservable.

    They go on until the power is cut, or until the job's time is over; then their files are removed.
    """
    if boot_id(host) != job.boot_id:
        raise Refused("the host was restarted since the run was planned; begin again")
    with ExitStack() as stack:
        found = find(host, job.mounts)
        for place, device in zip(found, job.devices):
            if place["device"] != device:
                raise Refused(
                    f"{place['target']}: found device {place['device']}, expected {device}: what is mounted there has changed."
                    " Fix: begin a new run"
                )
        places = [stack.enter_context(scratch.directory(place["mount"])) for place in found]
        made: list[tuple[int, str]] = []
        try:
            clients = _clients(job, places, address, key, made)
            message = daemon.detach(lambda say: _run(clients, places, made, say), _PATIENCE)
        except BaseException:
            _remove(places, made)
            raise
        if message != STARTED:
            raise Refused(f"the commits did not begin: {message or 'no client got ahead in time'}")


def _clients(
    job: Job, places: Sequence[int], address: tuple[str, int], key: str, made: list[tuple[int, str]]
) -> list[Client]:
    """Return the clients, each with its file and its connection; what is made is added to `made`."""
    for mount, place in enumerate(places):
        expect_space(job.mounts[mount], os.fstatvfs(place), _size_on(job, mount))
        _expect_none(job.mounts[mount], place)
    clients = []
    for number in range(job.clients):
        place = places[job.mount_of(number)]
        descriptor = scratch.create(place, job.name_of(number))
        made.append((place, job.name_of(number)))
        grows = PATTERNS[job.pattern_of(number)].appends
        scratch.fill(descriptor, 0 if grows else job.size * MIB)
        os.fsync(place)
        try:
            clients.append(Client(job, number, address, key, descriptor))
        except Ends as error:
            raise Refused(f"the witness: {error}") from error
        except OSError as error:
            raise Refused(
                f"the witness at {address[0]} port {address[1]}: {error}; expected one that this host reaches:"
                " check its address and the firewalls between"
            ) from error
    return clients


def _run(clients: Sequence[Client], places: Sequence[int], made: Sequence[tuple[int, str]], say: Any) -> None:
    """Commit until the end; in the process that goes on alone."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())

    def began() -> None:
        try:
            say(STARTED)
        except OSError:
            stopped.set()  # Whoever began it does not wait any more.

    try:
        why = commit_all(clients, stopped, began)
        if not all(client.acknowledged for client in clients):
            say(why)
    finally:
        _remove(places, made)


def verify(host: Host, job: Job, acknowledged: Mapping[int, int]) -> Losses:
    """Look for each commit that was acknowledged. Raises Refused, OSError or Unobservable."""
    if boot_id(host) == job.boot_id:
        raise Refused(
            "the host was not restarted since the commits were started: observed the same boot, expected the one after"
            " the power was cut"
        )
    with _files(host, job) as files:
        return plug_job.check(job, acknowledged, files)


@contextmanager
def _files(host: Host, job: Job) -> Iterator[dict[int, int]]:
    """Open the clients' files; one that is not there is left out: what was in it is lost.

    Raises Refused for one that another user may have written: the content of a commit is no secret.
    """
    found: dict[int, int] = {}
    with ExitStack() as stack:
        # Of another boot a device has another number.
        places = [stack.enter_context(scratch.directory(place["mount"])) for place in find(host, job.mounts)]
        try:
            for client in range(job.clients):
                with suppress(FileNotFoundError):
                    found[client] = scratch.open_own(places[job.mount_of(client)], job.name_of(client))
            yield found
        finally:
            for descriptor in found.values():
                os.close(descriptor)


def clean(host: Host, mounts: Sequence[str]) -> list[str]:
    """Remove the files of runs that have ended, and return them. Raises Refused or OSError."""
    gone = []
    for place in find(host, mounts):
        with scratch.directory(place["mount"]) as opened:
            for name in _left(opened):
                scratch.remove(opened, name)
                gone.append(f"{place['target'].rstrip('/')}/{name}")
            os.fsync(opened)
    return gone


def boot_id(host: Host) -> str:
    """Return the name of this boot. Raises Unobservable."""
    return host.read("/proc/sys/kernel/random/boot_id").strip()


def _size_on(job: Job, mount: int) -> int:
    return sum(job.size * MIB for client in range(job.clients) if job.mount_of(client) == mount)


def _expect_none(target: str, place: int) -> None:
    """Raise Refused where files of another run lie: they may be evidence."""
    names = [name for name in os.listdir(place) if name.startswith(PREFIX)]
    if names:
        raise Refused(
            f"{target}: observed {len(names)} file(s) of another run ({names[0]}); verify that one, or clean it away, first"
        )


def _left(place: int) -> list[str]:
    """Return this user's regular files of runs that have ended. Raises Refused if one still runs."""
    found = []
    for name in sorted(name for name in os.listdir(place) if name.startswith(PREFIX)):
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(name)
        except BlockingIOError:
            raise Refused(f"{name}: a run still writes it; wait for its end, or cut the power") from None
        finally:
            os.close(descriptor)
    return found


def _remove(places: Sequence[int], made: Sequence[tuple[int, str]]) -> None:
    for place, name in made:
        scratch.remove(place, name)
    for place in places:
        os.fsync(place)
