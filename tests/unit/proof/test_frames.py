# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frames: the verdicts are those of whole images, on real file systems whose journals are written meanwhile."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from proof import checks, machine, writer
from proof.errors import ProofError
from proof.images import copy_sparse
from proof.log import SECTOR, Event, Kind
from proof.sweep import Files, Outcome, Run, schedule, summary, sweep
from proof.writer import BLOCK, Job

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
TOOLS = ("mkfs.ext4", "mkfs.xfs", "e2fsck", "debugfs", "xfs_repair", "mount")
mounts = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or not all(shutil.which(tool, path=PATH) for tool in TOOLS),
    reason=f"needs root, loop devices, {' '.join(TOOLS)}",
)
CLIENTS, COMMITS, DIRECTORY = 3, 12, "d"


@contextmanager
def mounted(image: Path, target: Path, file_system: str) -> Iterator[Path]:
    """Mount an image itself."""
    target.mkdir()
    subprocess.run(["mount", "-t", file_system, "-o", "loop", str(image), str(target)], check=True)
    try:
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


def content(image: Path) -> dict[int, bytes]:
    """Return an image by its blocks, without holes."""
    found = {}
    with image.open("rb") as file:
        at, end = 0, image.stat().st_size
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:
                break
            stop = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            for place in range(at, stop, BLOCK):
                found[place] = os.pread(file.fileno(), BLOCK, place)
            at = stop
    return found


def recorded(directory: Path, file_system: str, pattern: str, flushes: bool) -> tuple[Run, tuple[str, ...]]:
    """Record a run by the host's own file system: after each commit, what has changed in its image.

    Each change is a write, in a random order; a flush follows each commit, or none does.
    """
    image, base, chance = directory / "disk.img", directory / "base.img", random.Random(pattern)
    machine.make_file_system(image, file_system)
    events = list[Event]()

    def tell(kind: Kind, offset: int = 0, data: bytes = b"") -> None:
        events.append(Event(len(events), kind, offset, len(data), False, data))

    with mounted(image, directory / "mount", file_system) as target:
        job = Job(str(target / DIRECTORY), pattern, CLIENTS, COMMITS, seed=1, noise=2)
        writer.prepare(job)
        subprocess.run(["sync", "-f", str(target)], check=True)
        copy_sparse(image, base)
        before = content(base)
        for number in range(COMMITS):
            for client in range(CLIENTS):
                commit(job, client, number)
                after = content(image)
                changes = [place for place in after if after[place] != before.get(place, bytes(BLOCK))]
                for place in chance.sample(changes, len(changes)):
                    tell(Kind.WRITE, place, after[place])
                before = after
                if flushes:
                    tell(Kind.FLUSH)
                tell(Kind.ACK, writer.acknowledgement_place(client), writer.acknowledgement(client, number))
    full = [f"/{DIRECTORY}/{writer.NOISE}"]
    if not writer.PATTERNS[pattern].appends:
        full.append(f"/{DIRECTORY}/{job.file_of(0)}")
    return Run(base, events, job), tuple(full)


def commit(job: Job, client: int, number: int) -> None:
    """Write noise and one commit, as the writer does."""
    block = mmap.mmap(-1, BLOCK)
    block[:] = bytes([1 + number]) * BLOCK
    noise = os.open(Path(job.directory, writer.NOISE), os.O_WRONLY | os.O_DIRECT)
    for count in range(job.noise):
        os.pwrite(noise, block, ((number * CLIENTS + client) * job.noise + count) * BLOCK)
    os.close(noise)
    pattern = writer.PATTERNS[job.pattern]
    file = os.open(Path(job.directory, job.file_of(client)), os.O_WRONLY | pattern.flags)
    os.pwrite(file, writer.record(job, client, number), job.offset_of(client, number))
    os.fsync(file)
    os.close(file)


def left_by(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return what the cuts left, however they were looked at."""
    return [replace(outcome, whole=False, frame=False, said="") for outcome in outcomes]


@mounts
@pytest.mark.parametrize(
    ("file_system", "pattern", "flushes", "count"),
    [
        ("ext4", "append_fsync", True, 120),
        ("ext4", "append_fsync", False, 120),
        ("ext4", "osync", True, 120),
        ("xfs", "append_fsync", True, 24),
        ("xfs", "osync", False, 24),
    ],
)
def test_a_frame_gives_the_verdict_of_the_whole_image(
    tmp_path: Path, file_system: str, pattern: str, flushes: bool, count: int
) -> None:
    """Cut by cut, safe or not, whether the files were full or grow."""
    run, full = recorded(tmp_path, file_system, pattern, flushes)
    cuts = schedule(run.events, count, 1)
    whole = Files(checks.CHECKS[file_system], run.job, f"/{DIRECTORY}")
    framed = replace(whole, full=full, places=checks.PLACES[file_system])
    expected = list(sweep(run, cuts, whole, look_at_all=True))
    found = list(sweep(run, cuts, framed, look_at_all=True))
    assert left_by(found) == left_by(expected)
    told = summary(found)
    assert 0 < told.whole < told.frames < count
    assert (summary(expected).whole, summary(expected).frames) == (count, 0)
    # the order within one commit is not the kernel's, so a few are lost with flushes too
    assert told.losing <= 0.1 * told.cuts if flushes else told.losing >= 0.3 * told.cuts


@mounts
@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_places_are_those_of_what_was_written(tmp_path: Path, file_system: str) -> None:
    """Sector by sector in the order of the file; a file that was only allocated, or is not there, has none."""
    image, words = tmp_path / "disk.img", random.Random(1).randbytes(3 * BLOCK)
    machine.make_file_system(image, file_system)
    with mounted(image, tmp_path / "mount", file_system) as target:
        (target / "full").write_bytes(words)
        with (target / "allocated").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, BLOCK)
    found = checks.PLACES[file_system](image, ["/full", "/allocated", "/gone"], tmp_path)
    assert (found["/allocated"], found["/gone"]) == ([], [])
    data = image.read_bytes()
    assert b"".join(data[sector * SECTOR : (sector + 1) * SECTOR] for sector in found["/full"]) == words


@mounts
def test_a_frame_that_lacks_what_recovery_reads_is_an_error(tmp_path: Path) -> None:
    """Sectors of the journal are taken for content: then recovery does not see what was committed there."""
    run, full = recorded(tmp_path, "ext4", "append_fsync", True)
    written = [event.offset // SECTOR for event in run.events if event.kind is Kind.WRITE]
    journal = [sector for sector, count in Counter(written).items() if count == 1]

    def wrong(image: Path, paths: Sequence[str], scratch: Path) -> dict[str, list[int]]:
        found = checks.places_in_ext4(image, paths, scratch)
        more = [sector + at for sector in journal for at in range(BLOCK // SECTOR)]
        return {path: [*sectors, *more] for path, sectors in found.items()}

    framed = Files(checks.ext4, run.job, f"/{DIRECTORY}", full, wrong)
    with pytest.raises(ProofError, match="a frame gives"):
        list(sweep(run, schedule(run.events, 60, 1), framed, look_at_all=True, doubtful=1))
