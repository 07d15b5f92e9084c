# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volatile disk as a plugin of nbdkit: it serves the newest data and logs all that it is told.

One process has two exports: "disk", and "ack", a disk of ACK_SIZE to which the guest writes its acknowledgements.
What they do, and what `flush` and `slow` mean, is in logged.py.

    nbdkit python proof/nbd_plugin.py directory=DIR [flush=SECONDS | slow=FACTOR]

DIR holds the disk's data, `newest.img`, and gets the log. PYTHONPATH has to lead to this package.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbdkit

from proof.log import Kind
from proof.logged import ACK_SIZE, NEWEST, Duration, Logged

API_VERSION = 2


class Export:
    """What a client opened."""

    def __init__(self, name: str) -> None:
        """Open an export by its name."""
        if name not in ("disk", "ack"):
            raise RuntimeError(f"there is no export {name!r}, only disk and ack")
        self.is_disk = name == "disk"


class State:
    """The one disk of this process."""

    directory = Path()
    flush = 0.0
    slow = 0.0
    duration: Duration
    logged: Logged
    order = threading.Lock()


def config(key: str, value: str) -> None:
    """Take a parameter of the command line."""
    if key == "directory":
        State.directory = Path(value)
    elif key == "flush":
        State.flush = float(value)
    elif key == "slow":
        State.slow = float(value)
    else:
        raise RuntimeError(f"unknown parameter {key!r}; known are directory, flush and slow")


def config_complete() -> None:
    """Refuse to begin without a disk, or with two opinions on its time."""
    State.duration = Duration(State.flush, State.slow)
    if not (State.directory / NEWEST).is_file():
        raise RuntimeError(f"there is no {NEWEST} in the directory {State.directory}")


def get_ready() -> None:
    """Open the disk and begin its log."""
    State.logged = Logged(State.directory)


def thread_model() -> int:
    """One request of each connection at a time; a lock makes one order of them all."""
    return int(nbdkit.THREAD_MODEL_SERIALIZE_REQUESTS)


def list_exports(readonly: int, is_tls: int) -> list[tuple[str, str]]:
    """Name the exports."""
    return [("disk", "a disk with a volatile cache"), ("ack", "where acknowledgements go")]


def default_export(readonly: int, is_tls: int) -> str:
    """Leave no client in doubt which export it has."""
    return "disk"


def open(readonly: int) -> Export:
    """Note who came."""
    export = Export(nbdkit.export_name())
    with State.order:
        State.logged.opened("disk" if export.is_disk else "ack")
    return export


def get_size(export: Export) -> int:
    """Return the size in bytes."""
    return State.logged.size if export.is_disk else ACK_SIZE


def block_size(export: Export) -> tuple[int, int, int]:
    """Whole sectors only; larger requests are split by the client."""
    return (512, 4096, 32 << 20)


def can_write(export: Export) -> bool:
    """Both."""
    return True


def can_flush(export: Export) -> bool:
    """Say that there is a volatile cache."""
    return True


def can_fua(export: Export) -> int:
    """FUA is an event of its own, not a write and a flush."""
    return int(nbdkit.FUA_NATIVE)


def can_zero(export: Export) -> bool:
    """Zeros are logged without their bytes."""
    return True


def can_fast_zero(export: Export) -> bool:
    """Nothing is refused."""
    return False


def can_trim(export: Export) -> bool:
    """The disk forgets what is trimmed, and reads as zeros there."""
    return export.is_disk


def can_multi_conn(export: Export) -> bool:
    """A flush on one connection covers them all; no client needs to know."""
    return False


def pread(export: Export, buffer: Any, offset: int, flags: int) -> None:
    """Serve the newest data, flushed or not."""
    if not export.is_disk:
        buffer[:] = State.logged.read_acks(offset, len(buffer))
    else:
        State.logged.read(offset, [buffer])


def pwrite(export: Export, buffer: Any, offset: int, flags: int) -> None:
    """Log first: what is answered is in the log."""
    data = bytes(buffer)
    if not export.is_disk:
        with State.order:
            State.logged.acknowledge(offset, data)
        return
    with _in_order(Kind.WRITE, offset, len(data), _is_fua(flags)):
        State.logged.write(offset, data, _is_fua(flags))


def zero(export: Export, count: int, offset: int, flags: int) -> None:
    """Write zeros, cached like any write."""
    if not export.is_disk:
        pwrite(export, bytes(count), offset, flags)
        return
    _clear(Kind.ZERO, count, offset, flags)


def trim(export: Export, count: int, offset: int, flags: int) -> None:
    """Forget data, cached like any write."""
    _clear(Kind.TRIM, count, offset, flags)


def flush(export: Export, flags: int) -> None:
    """Log it. The export of acknowledgements has nothing to flush."""
    if export.is_disk:
        with _in_order(Kind.FLUSH):
            State.logged.flush()


def _clear(kind: Kind, count: int, offset: int, flags: int) -> None:
    with _in_order(kind, offset, count, _is_fua(flags)):
        State.logged.clear(kind, offset, count, _is_fua(flags))


def _is_fua(flags: int) -> bool:
    return bool(flags & nbdkit.FLAG_FUA)


@contextmanager
def _in_order(kind: Kind, offset: int = 0, length: int = 0, fua: bool = False) -> Iterator[None]:
    """Take the time that a request to the disk takes, then the turn."""
    with State.order:
        seconds = State.duration.seconds(kind, offset, length, fua)
    if seconds:
        time.sleep(seconds)
    with State.order:
        yield
