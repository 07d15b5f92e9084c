# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The witness's host: starts the witness, reads its log, and removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from typing import Any, NamedTuple
from urllib.parse import quote

from ..host import trusted_path
from ..host.seam import Host, sync_directory
from . import daemon, plug_log, plug_witness, scratch
from .limits import Refused
from .plug_job import Job

READY = "ready"
#: Seconds beyond the job's own for which a witness listens: for the last answers.
_LONGER = 120
#: Seconds that it may take to begin, and to end on request.
_PATIENCE = 20.0


class Paths(NamedTuple):
    """A host's log, and the file that ends its witness."""

    log: str
    stop: str


def paths(directory: str, host: str) -> Paths:
    """Return where a host's witness keeps what it hears. Raises Refused."""
    if not directory.startswith("/") or not host:
        raise Refused(f"directory {directory!r}, host {host!r}: expected an absolute path and a name")
    name = f"{directory}/witness-{quote(host, safe='')}"
    return Paths(f"{name}.log", f"{name}.stop")


def start(place: Paths, job: Job, key: str, address: str, port: int) -> None:
    """Start a witness and return once it listens. Raises Refused, OSError or Unobservable."""
    if len(key) < 32:
        raise Refused("key: observed a short one; expected at least 32 characters")
    _expect_own(os.path.dirname(place.log))
    before = os.umask(0o022)  # os.makedirs has no mode for those above.
    try:
        os.makedirs(os.path.dirname(place.log), mode=0o700, exist_ok=True)
    finally:
        os.umask(before)
    try:
        log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND, 0o600)
    except FileExistsError:
        raise Refused(
            f"{place.log}: the log of an earlier run is there; verify that one, or clean it away, first"
        ) from None
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        listener = _listen(address, port)
        os.write(log, plug_witness.first_line(job))
        os.fsync(log)
        _remove(place.stop)
        sync_directory(os.path.dirname(place.log))
        message = daemon.detach(lambda say: _serve(listener, log, job, key, place, say), _PATIENCE)
        listener.close()
        if message != READY:
            raise Refused(f"the witness did not start: {message or 'it gave no reason'}")
    except BaseException:
        os.unlink(place.log)
        raise
    finally:
        os.close(log)


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _name, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(plug_witness.STRANGERS)
    except OSError as error:
        raise Refused(
            f"{address} port {port}: {error.strerror}; expected an address of the witness and a free port"
        ) from error
    return listener


def _serve(listener: socket.socket, log: int, job: Job, key: str, place: Paths, say: Any) -> None:
    witness = plug_witness.Witness(listener, log, job, key, lambda: os.path.exists(place.stop))
    say(READY)
    witness.serve(job.seconds + _LONGER)


def read(place: Paths) -> plug_log.Log:
    """Return what was written down. Raises Refused, OSError or Unobservable."""
    if not os.path.exists(place.log):
        raise Refused(f"{place.log}: not there: no run was started with this witness, or it was cleaned away")
    _expect_own(os.path.dirname(place.log))
    directory = os.open(os.path.dirname(place.log), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        log = scratch.open_own(directory, os.path.basename(place.log))
    finally:
        os.close(directory)
    with os.fdopen(log, encoding="ascii", errors="replace", newline="\n") as handle:
        return plug_log.parse(handle)


def stop(place: Paths) -> bool:
    """End the witness and remove its log; return whether there was one. Raises Refused, OSError or Unobservable."""
    if not os.path.exists(place.log):
        return False
    _expect_own(os.path.dirname(place.log))
    with open(place.stop, "w", encoding="ascii"), open(place.log, encoding="ascii") as handle:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(f"{place.log}: its witness does not end; check its process") from None
                time.sleep(0.1)
    _remove(place.log)
    _remove(place.stop)
    return True


def _expect_own(directory: str) -> None:
    """Raise Refused if others could put a log of theirs, or a link, or exchange a directory above. Raises Unobservable.

    What is checked stays so: only root and this user can change it.
    """
    why = trusted_path.weak_future(Host(), directory, {0, os.geteuid()}, sticky=True)
    if why:
        raise Refused(
            f"{directory}: {why}. Other users could exchange the log of the witness. Fix: set durable_witness_directory to a"
            " directory that, with all above it, only this user and root can change"
        )


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
