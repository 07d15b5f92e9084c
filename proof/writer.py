# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the guest: commits as an engine writes its log, and acknowledges each commit once the call returned.

    python3 writer.py prepare JOB    make the files, written in full and durable
    python3 writer.py run JOB        write; print the figures as JSON

JOB is a Job as JSON. One file, Python 3.9, nothing but the standard library: it is copied into machines. Only what replaces
files asks the collection, which lies beside it as the package `durable` then.

An acknowledgement is one direct write of 512 bytes to the disk of acknowledgements, at 512 x client. It goes to the
same process as the commit did, so whatever made the commit durable has been seen there before.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import mmap
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, NamedTuple

SECTOR = 512
BLOCK = 4096
NOISE = "noise"
NOISE_BLOCKS = 256
RECORD = struct.Struct("<8sIQ")
RECORD_MAGIC = b"DBHCOMIT"
ACK_MAGIC = b"DBHACKED"
#: What pwritev2(2) knows as RWF_DSYNC; Python has the name on Linux only.
RWF_DSYNC = getattr(os, "RWF_DSYNC", 2)


class Pattern(NamedTuple):
    """How one commit is written: flags of open(2) and pwritev2(2), the call that follows, and whether files grow.

    `replaces`: how a client's whole file becomes the commit instead, one of REPLACED.
    """

    flags: int
    then: str = ""
    with_flags: int = 0
    appends: bool = False
    replaces: str = ""

    @property
    def lies_in_place(self) -> bool:
        """Tell whether commits go where the files have been written in full before."""
        return not (self.appends or self.replaces)


O_DIRECT = getattr(os, "O_DIRECT", 0)
PATTERNS = {
    "direct_dsync": Pattern(O_DIRECT | os.O_DSYNC),
    "direct_fdatasync": Pattern(O_DIRECT, "fdatasync"),
    "direct": Pattern(O_DIRECT),
    "rwf_dsync": Pattern(O_DIRECT, with_flags=RWF_DSYNC),
    "osync": Pattern(os.O_SYNC),
    "dsync": Pattern(os.O_DSYNC),
    "append_fsync": Pattern(0, "fsync", appends=True),
    "no_sync": Pattern(0),
    "replace_file": Pattern(0, replaces="as harden-db does"),
    "rewrite_file": Pattern(0, replaces="plainly"),
}


@dataclass(frozen=True)
class Job:
    """What to write, and where.

    `device` is the block device below the directory: `prepare` flushes it by itself, for a file system without
    barriers would not. `ack` is the disk of acknowledgements; without one nothing is acknowledged.
    `seconds` ends the run early; 0 is no limit. `noise` is how many blocks of 4 KiB each client writes before each
    commit, directly and never synced, as an engine writes its data files between checkpoints: so that a disk that
    honours FUA has something volatile to lose. `socket` says where an engine's server listens, for
    engine_writer.py; `pattern` is then the engine's name.

    With a `delay` of 0 or more the clients share one log and its syncs, as an engine's do that groups commits: whoever
    comes first waits so many seconds, then writes and syncs for all who have come. Their commits lie in the order
    in which they came, so verify.py does not know where. Below 0 each client syncs for itself.

    `pause` is how many seconds a client waits after each commit, so that one which goes on all the while writes no more
    than a log can be read of.
    """

    directory: str
    pattern: str
    clients: int = 4
    commits: int = 250
    size: int = 512
    seed: int = 0
    ack: str = ""
    device: str = ""
    seconds: float = 0.0
    noise: int = 0
    socket: str = ""
    delay: float = -1.0
    pause: float = 0.0

    def file_of(self, client: int) -> str:
        """Return the name of the file that has a client's commits: one log for all, or one each that grows."""
        return "commits" if PATTERNS[self.pattern].lies_in_place else f"commits.{client}"

    def offset_of(self, client: int, number: int) -> int:
        """Return where a commit lies in its file: clients take turns in the log."""
        if PATTERNS[self.pattern].replaces:
            return 0
        slot = number if PATTERNS[self.pattern].appends else number * self.clients + client
        return slot * self.size


def record(job: Job, client: int, number: int) -> bytes:
    """Return the bytes of one commit: who, which, and a checksum of both and the seed that fills the rest."""
    head = RECORD.pack(RECORD_MAGIC, client, number)
    digest = hashlib.sha256(head + str(job.seed).encode()).digest()
    return (head + digest * (job.size // len(digest) + 1))[: job.size]


def acknowledgement(client: int, number: int) -> bytes:
    """Return the sector that says that a commit's call has returned."""
    return RECORD.pack(ACK_MAGIC, client, number).ljust(SECTOR, b"\0")


def acknowledgement_place(client: int) -> int:
    """Return its offset. No client's adjoins another's, or the kernel would merge two into one write."""
    return client * BLOCK


def prepare(job: Job) -> None:
    """Make the files of a job, in full unless they are to grow, and wait until the disk has them."""
    directory = Path(job.directory)
    directory.mkdir(parents=True, exist_ok=True)
    pattern = PATTERNS[job.pattern]
    for name in sorted({job.file_of(client) for client in range(job.clients)}):
        with (directory / name).open("wb") as file:
            if pattern.lies_in_place:
                _fill(file, job.clients * job.commits * job.size)
            file.flush()
            os.fsync(file.fileno())
    if job.noise:
        with (directory / NOISE).open("wb") as file:
            _fill(file, NOISE_BLOCKS * BLOCK)
            file.flush()
            os.fsync(file.fileno())
    for place in (directory, directory.parent, job.device):
        if place:
            descriptor = os.open(place, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def run(job: Job) -> dict[str, Any]:
    """Write as all clients at once; return the job, the commits of each and the seconds that each commit took.

    `syncs` is how often the log was written and synced; `waited` how many seconds of the delay passed while it was not.
    """
    group = _Group(job) if job.delay >= 0 else None
    clients = [_Client(job, number, group) for number in range(job.clients)]
    figures = at_once(job, clients)
    return {
        **figures,
        "syncs": group.syncs if group else sum(figures["commits"]),
        "waited": round(group.waited, 6) if group else 0.0,
    }


def at_once(job: Job, clients: Sequence[Any]) -> dict[str, Any]:
    """Let all clients work at the same time; return the job, the commits of each and the seconds that a commit took.

    A client has `work`, and then `took`, the seconds of each commit, and `error`, which is raised if there is one.
    """
    threads = [threading.Thread(target=client.work) for client in clients]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    for client in clients:
        if client.error:
            raise client.error
    took = sorted(moment for client in clients for moment in client.took)
    return {
        "job": asdict(job),
        "commits": [len(client.took) for client in clients],
        "seconds": round(seconds, 6),
        "commit_seconds": {name: _quantile(took, share) for name, share in QUANTILES.items()},
    }


QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


class _Gathering:
    """Commits that will be written together, and what came of it."""

    def __init__(self) -> None:
        self.commits: list[mmap.mmap] = []
        self.done = threading.Event()
        self.error: OSError | None = None


class _Group:
    """One log for all clients. The first to come leads: it waits for others, then writes and syncs for all of them.

    Its delay begins when it comes, also while those before it are being written; no two groups are written at once.
    """

    def __init__(self, job: Job) -> None:
        if not PATTERNS[job.pattern].lies_in_place:
            raise ValueError(
                f"seen the pattern {job.pattern} with a delay, wanted one whose log does not grow"
            )
        self.syncs = 0
        self.waited = 0.0
        self._job = job
        self._file = _opened(job, 0)
        self._place = 0
        self._gathering = _Gathering()
        self._joining, self._writing = threading.Lock(), threading.Lock()
        self._ended = 0.0

    def commit(self, data: mmap.mmap) -> None:
        """Return when the commit has been synced, by whomever; OSError if that failed."""
        came = time.monotonic()
        with self._joining:
            mine = self._gathering
            mine.commits.append(data)
            leads = len(mine.commits) == 1
        if leads:
            self._lead(mine, came)
        mine.done.wait()
        if mine.error:
            raise mine.error

    def _lead(self, mine: _Gathering, came: float) -> None:
        time.sleep(self._job.delay)
        with self._writing:
            with self._joining:
                # Who comes from here on belongs to the next group.
                self._gathering = _Gathering()
            self.waited += max(0.0, came + self._job.delay - max(came, self._ended))
            try:
                _synced(self._job, self._file, mine.commits, self._place)
            except OSError as error:
                mine.error = error
            self._place += len(mine.commits) * self._job.size
            self.syncs += 1
            self._ended = time.monotonic()
        mine.done.set()


def _opened(job: Job, client: int) -> int:
    pattern = PATTERNS[job.pattern]
    flags = os.O_WRONLY | pattern.flags | (os.O_APPEND if pattern.appends else 0)
    return os.open(Path(job.directory, job.file_of(client)), flags)


def _synced(job: Job, file: int, commits: list[mmap.mmap], offset: int) -> None:
    """Write commits at an offset of a log that does not grow, and sync them, as the pattern does."""
    pattern = PATTERNS[job.pattern]
    all_of(os.pwritev(file, commits, offset, pattern.with_flags), len(commits) * job.size)
    if pattern.then:
        SYNCS[pattern.then](file)


class _Client:
    """One client, for a thread of its own."""

    def __init__(self, job: Job, number: int, group: _Group | None = None) -> None:
        self.took: list[float] = []
        self.error: OSError | None = None
        self._job = job
        self._number = number
        self._group = group

    def work(self) -> None:
        try:
            self._work()
        except OSError as error:
            self.error = error

    def _work(self) -> None:
        job, end = self._job, time.monotonic() + (self._job.seconds or 1e9)
        file = -1 if self._group else _opened(job, self._number)
        acks = os.open(job.ack, os.O_WRONLY | O_DIRECT) if job.ack else -1
        # Direct writes want aligned memory; a mapping is aligned to a page.
        commit, ack = mmap.mmap(-1, job.size), mmap.mmap(-1, SECTOR)
        noise = Noise(job, self._number)
        for number in range(job.commits):
            if time.monotonic() > end:
                break
            noise.write()
            commit[:] = record(job, self._number, number)
            started = time.monotonic()
            self._commit(file, commit, number)
            self.took.append(time.monotonic() - started)
            if job.ack:
                ack[:] = acknowledgement(self._number, number)
                all_of(os.pwrite(acks, ack, acknowledgement_place(self._number)), SECTOR)
            if job.pause:
                time.sleep(job.pause)

    def _commit(self, file: int, data: mmap.mmap, number: int) -> None:
        job, pattern = self._job, PATTERNS[self._job.pattern]
        if self._group:
            self._group.commit(data)
        elif pattern.replaces:
            path = os.path.join(job.directory, job.file_of(self._number))
            REPLACED[pattern.replaces](path, bytes(data))
        elif pattern.appends:
            all_of(os.write(file, data), job.size)
            SYNCS[pattern.then](file)
        else:
            _synced(job, file, [data], job.offset_of(self._number, number))


class Noise:
    """Writes of a client that nobody waits for; their places depend on the seed alone."""

    def __init__(self, job: Job, client: int) -> None:
        self._count = job.noise
        self._chance = random.Random(f"{job.seed} {client}")
        self._file = os.open(Path(job.directory, NOISE), os.O_WRONLY | O_DIRECT) if job.noise else -1
        self._block = mmap.mmap(-1, BLOCK)

    def write(self) -> None:
        for _ in range(self._count):
            place = int(self._chance.random() * NOISE_BLOCKS)
            self._block[:] = bytes([int(self._chance.random() * 256)]) * BLOCK
            all_of(os.pwrite(self._file, self._block, place * BLOCK), BLOCK)


def _as_harden_db_does(path: str, content: bytes) -> None:
    """Write a file as every file of the collection is written. Raises OSError."""
    seam = importlib.import_module("durable.host.seam")
    try:
        seam.Host().write_file(path, content)
    except seam.ChangeFailed as error:
        raise OSError(str(error)) from error


def _plainly(path: str, content: bytes) -> None:
    """Write a file as a plain program does: over what is there, and no sync."""
    with open(path, "wb") as file:
        file.write(content)


REPLACED: dict[str, Callable[[str, bytes], None]] = {
    "as harden-db does": _as_harden_db_does,
    "plainly": _plainly,
}
SYNCS: dict[str, Callable[[int], None]] = {"fsync": os.fsync, "fdatasync": os.fdatasync}


def all_of(done: int, wanted: int) -> None:
    if done != wanted:
        raise OSError(f"only {done} of {wanted} bytes were written")


def _fill(file: Any, size: int) -> None:
    step = 1 << 20
    for start in range(0, size, step):
        file.write(bytes(min(step, size - start)))


def _quantile(took: list[float], share: float) -> float:
    return round(took[min(len(took) - 1, int(share * len(took)))], 6) if took else 0.0


def main() -> int:
    """Do what the command line says."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "run"):
        print(__doc__, file=sys.stderr)
        return 2
    job = Job(**json.loads(sys.argv[2]))
    if sys.argv[1] == "prepare":
        prepare(job)
    else:
        print(json.dumps(run(job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
