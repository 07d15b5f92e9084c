# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flushes counted by the kernel's tracing, for kernels without a counter: before Linux 5.5.

Each trace is a separate instance of tracefs, which disturbs no other trace.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator

from ..host.seam import ChangeFailed, Host, Unobservable

#: Where tracefs is: by itself, or where only debugfs is mounted below that.
PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
#: Then the number of the process, and one of its own for each trace of it.
_OURS = "durable-dbhost-"
_NUMBERS = itertools.count(1)
_EVENT = "events/block/block_rq_complete"
#: "8,0 FF () 0 + 0 [0]": the disk, a flush by itself, its command, sectors, from Linux 6.8 the priority, its error.
_FLUSHED = re.compile(
    r": block_rq_complete: \d+,\d+ FF\w* \([^()]*\) \d+ \+ \d+ (?:\S+ )?\[0\]$", re.MULTILINE
)


@contextlib.contextmanager
def traced(host: Host, names: Iterable[str], why: str) -> Iterator[Callable[[], int]]:
    """Trace some disks; what is given counts the flushes that these have answered since, without an error.

    `why` it must be a trace. Raises ChangeFailed.
    """
    with contextlib.ExitStack() as stack:
        try:
            disks = " || ".join(f"dev == {_number(host, name)}" for name in names)
            directory = f"{_instances(host)}/{_OURS}{os.getpid()}-{next(_NUMBERS)}"
            host.change(["mkdir", directory])
            stack.callback(host.change, ["rmdir", directory])
            host.write_attribute(f"{directory}/{_EVENT}/filter", f'({disks}) && rwbs ~ "FF*"')
            host.write_attribute(f"{directory}/{_EVENT}/enable", "1")
        except ChangeFailed as error:
            raise ChangeFailed(f"{why}, and they could not be traced: {error}") from error
        yield lambda: count(_read(host, f"{directory}/trace"))


def count(text: str) -> int:
    """Return how many flushes a trace has that ended well."""
    return len(_FLUSHED.findall(text))


def _instances(host: Host) -> str:
    """Return where traces are made, without those that killed processes of ours have left there."""
    found = next((f"{place}/instances" for place in PLACES if host.exists(f"{place}/instances")), None)
    if found is None:
        raise ChangeFailed(
            f"observed no tracefs at {' or '.join(PLACES)}; expected one with instances; mount -t tracefs nodev {PLACES[0]},"
            " then run again"
        )
    with contextlib.suppress(Unobservable, ChangeFailed):
        for name in host.names(found):
            if name.startswith(_OURS) and not host.exists(f"/proc/{name[len(_OURS) :].partition('-')[0]}"):
                host.change(["rmdir", f"{found}/{name}"])
    return found


def _number(host: Host, name: str) -> int:
    """Return the number of a device as the kernel keeps it."""
    major, _colon, minor = _read(host, f"/sys/block/{name}/dev").strip().partition(":")
    if not (major.isdigit() and minor.isdigit()):
        raise ChangeFailed(f"/sys/block/{name}/dev: observed {major[:40]!r}, expected the device's number")
    return int(major) << 20 | int(minor)


def _read(host: Host, path: str) -> str:
    try:
        return host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
