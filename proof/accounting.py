# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a commit costs: flushes and FUA writes by the kernel's counters, by its trace, and by the disk's own log.

Three witnesses, for each sees something else. Field 16 of `stat` counts flushes that the kernel sent, and no FUA; the
trace names both; the log has what arrived, so what a device model made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from proof.cells import WITH_FUA, Setting
from proof.errors import ProofError
from proof.log import Event, Kind

#: Fields of /sys/block/DISK/stat, counted from 0 (Documentation/block/stat.rst): writes and flushes that ended.
WRITES, FLUSHES = 4, 15
#: What a commit may be off the minimum, of one client. A log's own metadata is written now and then.
TOLERANCE = 0.02
#: ext4 commits its journal after so many seconds whoever asks (commit=5), with so many flushes.
JOURNAL_INTERVAL, BY_ITSELF = 5.0, 2
# dev_t, rwbs, bytes: as TP_printk of block_rq_issue has them
_ISSUED = re.compile(r"block_rq_issue: (\d+),(\d+) ([A-Z]+) \d+ ")


@dataclass(frozen=True)
class Counted:
    """Numbers of one run."""

    writes: int
    flushes: int
    fua: int

    def per_commit(self, commits: int) -> dict[str, float]:
        """Return them for each commit."""
        return {name: round(number / commits, 3) for name, number in asdict(self).items()} if commits else {}


def of_stat(before: str, after: str) -> Counted:
    """Return what two readings of `stat` tell; FUA is not among it."""
    first, last = _numbers(before), _numbers(after)
    return Counted(last[WRITES] - first[WRITES], last[FLUSHES] - first[FLUSHES], 0)


def of_trace(text: str, device: str) -> Counted:
    """Count what the kernel issued to a device "major:minor", from lines of the event block_rq_issue.

    In `rwbs` an F in front is a flush before, the next letter is what is done (W: a write, F: a flush alone), and
    an F right behind that is FUA.
    """
    writes = flushes = fua = 0
    for match in _ISSUED.finditer(text):
        if f"{match[1]}:{match[2]}" != device:
            continue
        operation = re.match(r"(F?)(W|F)(F?)", match[3])
        if operation is None:
            continue
        flushes += bool(operation[1]) or operation[2] == "F"
        writes += operation[2] == "W"
        fua += operation[2] == "W" and bool(operation[3])
    return Counted(writes, flushes, fua)


def of_log(events: Iterable[Event]) -> Counted:
    """Count what reached the disk."""
    writes = flushes = fua = 0
    for event in events:
        writes += event.kind is Kind.WRITE
        flushes += event.kind is Kind.FLUSH
        fua += event.kind is Kind.WRITE and event.fua
    return Counted(writes, flushes, fua)


@dataclass(frozen=True)
class Minimum:
    """What the kernel has to send for one commit of one client; None: nothing is claimed."""

    flushes: float | None
    fua: float | None


def minimum(setting: Setting, workload: str) -> Minimum:
    """Return the physical minimum of a safe setting: facts 14, 16 and 17.

    A file that grows needs its data and then its journal on the medium: two flushes, or a flush and a FUA write. Writes
    that lie in place need one, or none if the write itself is FUA. A disk whose cache is off needs none;
    where the kernel cache mode is pinned at write back the kernel sends some all the same, which cost nothing. O_SYNC may commit
    the file's times too, so nothing is claimed for it.
    """
    if setting.engine:
        return Minimum(None, None)
    fua = setting.device in WITH_FUA
    if setting.cache_is_off:
        return Minimum(0.0, 0.0) if setting.device == "virtio" else Minimum(None, None)
    if workload in ("direct_dsync", "rwf_dsync") and fua:
        return Minimum(0.0, 1.0)
    if workload == "append_fsync":
        return Minimum(None, None) if fua else Minimum(2.0, 0.0)
    if workload in ("direct_dsync", "rwf_dsync", "direct_fdatasync", "dsync"):
        return Minimum(1.0, None if fua else 0.0)
    return Minimum(None, None)


def deviation(kernel: Counted, commits: int, wanted: Minimum, clients: int, seconds: float = 0.0) -> str:
    """Return in words how the kernel's flushes deviate from the minimum, or nothing.

    One client has the minimum exactly; more may share flushes, and have at most as many. What a journal commits by
    itself in a run of so many seconds comes on top.
    """
    if wanted.flushes is None or not commits:
        return ""
    seen = kernel.flushes / commits
    by_itself = BY_ITSELF * int(seconds / JOURNAL_INTERVAL + 1) / commits if seconds else 0.0
    low = wanted.flushes - TOLERANCE if clients == 1 else 0.0
    if low <= seen <= wanted.flushes + TOLERANCE + by_itself:
        return ""
    limit = "" if clients == 1 else "at most "
    return f"{clients} clients: seen {seen:.3f} flushes for each commit, wanted {limit}{wanted.flushes:.2f}"


def _numbers(stat: str) -> list[int]:
    numbers = [int(word) for word in stat.split()]
    if len(numbers) <= FLUSHES:
        raise ProofError(f"stat has {len(numbers)} fields; flushes are field {FLUSHES + 1}, since Linux 5.5")
    return numbers
