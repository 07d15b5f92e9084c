# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Acknowledgements that came too early: before the disk had to keep what they acknowledge.

A cut looks at one moment. Here every acknowledgement of a log is looked at: when it came, was each byte of its commit
flushed, or written with FUA? `hunt` makes many long runs of one workload in one boot for what happens once in
thousands of commits, with the guest's kernel traced if it can be, and keeps what the kernel did before the first one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from lab.progress import say
from proof import log, machine
from proof.cells import PLANTS, WORKLOADS, Setting
from proof.disk import VolatileDisk
from proof.edits import commits_in
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.writer import RECORD, SECTOR, Job, acknowledgement_place, record

COMMITS = 300
#: Lines of the trace that are kept, up to the acknowledgement's write.
EXCERPT = 24
TRACE = "/root/early.trace"
_EVENTS = (
    "xfs/xfs_file_fsync xfs/xlog_iclog_switch xfs/xlog_iclog_sync xfs/xlog_iclog_sync_done xfs/xlog_iclog_wait_on "
    "jbd2/jbd2_start_commit jbd2/jbd2_end_commit ext4/ext4_sync_file_enter ext4/ext4_sync_file_exit "
    "sched/sched_waking syscalls/sys_exit_pwritev2 syscalls/sys_exit_fsync syscalls/sys_exit_fdatasync block/block_rq_issue"
)
_TRACED = f"""
t=/sys/kernel/tracing
[ -e $t/tracing_on ] || mount -t tracefs tracefs $t
echo 0 > $t/tracing_on
echo 32768 > $t/buffer_size_kb
echo > $t/trace
for event in {_EVENTS}; do [ ! -e "$t/events/$event/enable" ] || echo 1 > "$t/events/$event/enable"; done
echo 'comm=="python3"' > $t/events/sched/sched_waking/filter
echo 1 > $t/tracing_on
"$@" > /dev/null
echo 0 > $t/tracing_on
cat $t/trace > {TRACE}
"""


class Early(NamedTuple):
    """A commit, the write that holds it (None: none yet), and its acknowledgement, as sequences of the log."""

    client: int
    number: int
    write: int | None
    acknowledged: int


@dataclass(frozen=True)
class Found:
    """What many runs gave: how many acknowledgements, which were early, and the trace before the first of them."""

    setting: str
    workload: str
    clients: int
    runs: int
    acknowledged: int
    versions: dict[str, str]
    early: list[tuple[int, ...]] = field(default_factory=list)
    excerpt: list[str] = field(default_factory=list)


def early(events: Sequence[Event], job: Job) -> list[Early]:
    """Return the acknowledgements of one run that came before the disk had to keep the bytes of their commit.

    The log is that of the run; a file's metadata is not looked at.
    """
    volatile, durable = dict[tuple[int, int], int](), set[tuple[int, int]]()
    found = []
    for event in events:
        if event.kind is Kind.FLUSH:
            durable.update(volatile)
            volatile.clear()
        elif event.kind is Kind.WRITE:
            for commit in _commits(event, job):
                if event.fua:
                    durable.add(commit)
                elif commit not in durable:
                    volatile[commit] = event.sequence
        elif event.kind is Kind.ACK:
            _, client, number = RECORD.unpack_from(event.data)
            if (client, number) not in durable:
                found.append(Early(client, number, volatile.get((client, number)), event.sequence))
    return found


def _commits(event: Event, job: Job) -> list[tuple[int, int]]:
    """Return the commits of this job that a write holds whole: what an earlier run left in a block has another seed."""
    data = bytes(event.data)
    return [
        (client, number)
        for at, client, number in commits_in(event, job)
        if data[at : at + job.size] == record(job, client, number)
    ]


def hunt(setting: Setting, workload: str, runs: int, directory: Path) -> Found:
    """Make so many long runs of one workload, and look at each acknowledgement. ProofError or LabError says what failed."""
    if setting.engine or workload not in WORKLOADS:
        raise ProofError(
            f"{setting.name}/{workload}: wanted a cell of the small writer: its commits are known by their bytes"
        )
    machine.make_directory(directory)
    image = directory / "empty.img"
    machine.make_file_system(image, setting.file_system)
    disk = VolatileDisk.made(directory / "disk", image, machine.FLUSH, 0.0)
    with machine.booted(setting, directory, disk) as rig:
        rig.mount()
        rig.harden()
        rig.plant("first part", PLANTS[setting.plant].before)
        jobs = _jobs(rig, workload, runs)
        rig.prepare(jobs)
        found = Found(setting.name, workload, machine.CLIENTS, runs, 0, machine.versions_of(rig.machine))
        for number, job in enumerate(jobs, 1):
            found = _added(found, *_one(rig, job))
            say(
                f"{setting.name}/{workload}: {number} of {runs} runs, {len(found.early)} of {found.acknowledged} early"
            )
    return found


def _jobs(rig: machine.Rig, workload: str, runs: int) -> list[Job]:
    made = machine.jobs(workload, range(1, runs + 1), f"/dev/{rig.name}", rig.ack)
    return [replace(job, commits=COMMITS) for job in made if job.clients > 1]


def _one(rig: machine.Rig, job: Job) -> tuple[int, list[Early], list[str]]:
    begin = log.count(rig.disk.directory)
    script = _TRACED if rig.can_trace else '"$@" > /dev/null'
    rig.shell(f"run, seed {job.seed}", script, *rig.run_of(job), limit=machine.LIMIT)
    events = log.read(rig.disk.directory).events[begin:]
    found = early(events, job)
    kept = _excerpt(rig, found[0]) if found else []
    return sum(event.kind is Kind.ACK for event in events), found, kept


def _added(found: Found, acknowledged: int, new: Sequence[Early], excerpt: list[str]) -> Found:
    return replace(
        found,
        acknowledged=found.acknowledged + acknowledged,
        early=[*found.early, *(tuple(-1 if word is None else word for word in one) for one in new)],
        excerpt=found.excerpt or excerpt,
    )


def _excerpt(rig: machine.Rig, one: Early) -> list[str]:
    """Return what the kernel did up to the write of an acknowledgement."""
    if not rig.can_trace:
        return [f"{machine.NOT_TRACED}: the kernel of User Mode Linux cannot be"]
    text = rig.shell("read the trace", 'cat "$1"; cat "/sys/block/${2#/dev/}/dev"', TRACE, rig.ack)
    *lines, device = text.strip().splitlines()
    major_minor = device.replace(":", ",")
    sector = acknowledgement_place(one.client) // SECTOR
    mine = re.compile(rf"block_rq_issue: {re.escape(major_minor)} .* {sector} \+ 1 ")
    places = [place for place, line in enumerate(lines) if mine.search(line)]
    if len(places) <= one.number:
        return ["the trace does not have this acknowledgement"]
    end = places[one.number] + 1
    return [" ".join(line.split()) for line in lines[max(0, end - EXCERPT) : end]]


def as_json(found: Found) -> dict[str, Any]:
    """Return it for the evidence."""
    return asdict(found)
