# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: its calls, its bytes, and what verify finds of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.archive import MODULE_UTILS
from proof import verify, writer
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.verify import Acknowledged, Records
from proof.writer import PATTERNS, Job


def acked(client: int, number: int, offset: int | None = None) -> Event:
    """Return the event of an acknowledgement."""
    place = writer.acknowledgement_place(client) if offset is None else offset
    return Event(0, Kind.ACK, place, 512, False, writer.acknowledgement(client, number))


def files_of(job: Job) -> dict[str, bytes | None]:
    """Read what a job wrote."""
    return {name: Path(job.directory, name).read_bytes() for name in Records(job).files}


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_a_run_writes_all_its_commits(tmp_path: Path, pattern: str) -> None:
    """Prepared and run as on a machine; a file stands for the disk of acknowledgements."""
    (tmp_path / "ack").write_bytes(bytes(4096))
    job = Job(
        str(tmp_path / "data"), pattern, clients=3, commits=7, size=1024, seed=5, ack=str(tmp_path / "ack")
    )
    words = json.dumps(job.__dict__)
    # What the collection's own writing of files needs lies beside the writer in a machine.
    (tmp_path / "durable").symlink_to(MODULE_UTILS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for verb in ("prepare", "run"):
        command = [sys.executable, writer.__file__, verb, words]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    answer = json.loads(done.stdout)
    assert answer["commits"] == [7, 7, 7]
    assert answer["job"]["pattern"] == pattern
    losses = Records(job).losses(files_of(job), [7, 7, 7])
    assert (losses.acknowledged, losses.count) == (21, 0)
    acks = (tmp_path / "ack").read_bytes()
    for client in range(3):
        place = writer.acknowledgement_place(client)
        assert acks[place : place + 512] == writer.acknowledgement(client, 6)
    assert not any(acks[512 : writer.acknowledgement_place(1)]), "adjoining sectors are merged into one write"


@pytest.mark.parametrize(
    ("pattern", "flags", "calls"),
    [
        ("direct_dsync", os.O_DIRECT | os.O_DSYNC, ["write 0"]),
        ("direct_fdatasync", os.O_DIRECT, ["write 0", "fdatasync"]),
        ("direct", os.O_DIRECT, ["write 0"]),
        ("rwf_dsync", os.O_DIRECT, ["write 2"]),
        ("osync", os.O_SYNC, ["write 0"]),
        ("dsync", os.O_DSYNC, ["write 0"]),
        ("append_fsync", os.O_APPEND, ["append", "fsync"]),
        ("no_sync", 0, ["write 0"]),
    ],
)
def test_each_pattern_makes_its_own_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, flags: int, calls: list[str]
) -> None:
    """And the acknowledgement is the last of them."""
    ack = tmp_path / "ack"
    ack.touch()
    job = Job(str(tmp_path), pattern, clients=1, commits=1, ack=str(ack))
    writer.prepare(job)
    seen: list[str] = []
    opened: dict[str, int] = {}
    monkeypatch.setattr(os, "open", lambda path, flags: opened.setdefault(Path(path).name, flags) and 99)
    monkeypatch.setattr(
        os, "pwritev", lambda f, data, at, flags: seen.append(f"write {flags}") or len(data[0])
    )
    monkeypatch.setattr(os, "write", lambda f, data: seen.append("append") or len(data))
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: seen.append("ack") or len(data))
    for name in ("fsync", "fdatasync"):
        monkeypatch.setitem(writer.SYNCS, name, lambda f, name=name: seen.append(name))
    writer.run(job)
    assert seen == [*calls, "ack"]
    assert opened == {
        job.file_of(0): os.O_WRONLY | flags,
        "ack": os.O_WRONLY | os.O_DIRECT,
    }


def test_noise_is_written_before_each_commit_and_never_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that something is volatile at every acknowledgement."""
    job = Job(str(tmp_path), "direct_fdatasync", clients=1, commits=2, noise=2)
    writer.prepare(job)
    assert (tmp_path / writer.NOISE).stat().st_size == writer.NOISE_BLOCKS * writer.BLOCK
    seen: list[str] = []
    monkeypatch.setattr(os, "pwritev", lambda f, data, at, flags: seen.append("commit") or len(data[0]))
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: seen.append("noise") or len(data))
    monkeypatch.setitem(writer.SYNCS, "fdatasync", lambda f: seen.append("sync"))
    writer.run(job)
    assert seen == ["noise", "noise", "commit", "sync"] * 2


def test_a_client_that_pauses_writes_no_more_than_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each commit, and outside the seconds that the commit took."""
    pauses = list[float]()
    monkeypatch.setattr(writer.time, "sleep", pauses.append)
    job = Job(str(tmp_path), "no_sync", clients=2, commits=3, pause=7.0)
    writer.prepare(job)
    found = writer.run(job)
    assert found["commits"] == [3, 3]
    assert pauses == [7.0] * 6
    assert found["commit_seconds"]["max"] < 7.0


def test_a_failed_write_is_no_commit(tmp_path: Path) -> None:
    """The error of any client ends the run with an error."""
    job = Job(str(tmp_path / "nowhere"), "dsync", clients=2, commits=1)
    with pytest.raises(FileNotFoundError):
        writer.run(job)


def test_a_short_write_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never acknowledged."""
    job = Job(str(tmp_path), "dsync", clients=1, commits=1)
    writer.prepare(job)
    monkeypatch.setattr(os, "pwritev", lambda *_: 100)
    with pytest.raises(OSError, match="only 100 of 512"):
        writer.run(job)


def test_missing_and_torn_are_told_apart() -> None:
    """Only what was acknowledged counts."""
    job = Job("/d", "dsync", clients=2, commits=3, size=1024)
    records = Records(job)
    content = bytearray(6 * 1024)
    for client, number in ((0, 0), (1, 0), (0, 1), (1, 1)):
        at = job.offset_of(client, number)
        content[at : at + 1024] = writer.record(job, client, number)
    content[job.offset_of(1, 0) + 512 : job.offset_of(1, 0) + 1024] = bytes(512)
    losses = records.losses({"commits": bytes(content)}, [3, 1])
    assert (losses.missing, losses.torn) == ([(0, 2)], [(1, 0)])
    assert (losses.acknowledged, losses.count) == (4, 2)


def test_the_record_of_another_client_number_or_seed_does_not_count() -> None:
    """Nor does one in another place."""
    job = Job("/d", "dsync", clients=2, commits=2)
    wrong = [
        writer.record(job, 1, 0),
        writer.record(job, 0, 1),
        writer.record(Job("/d", "dsync", seed=1), 0, 0),
        b"",
    ]
    for content in wrong:
        assert Records(job).losses({"commits": content}, [1, 0]).missing == [(0, 0)]
    assert Records(job).losses({"commits": None}, [1, 0]).missing == [(0, 0)]


def test_acknowledgements_are_counted() -> None:
    """In order for each client."""
    counts = Acknowledged(Job("/d", "dsync", clients=2))
    for client, number in ((0, 0), (1, 0), (1, 1)):
        counts.take(acked(client, number))
    assert counts.counts == [1, 2]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (acked(0, 1), "acknowledges 1, wanted 0"),
        (acked(5, 0), "whom the job does not have"),
        (acked(1, 0, offset=0), "whom the job does not have"),
        (Event(4, Kind.ACK, 0, 512, False, bytes(512)), "event 4 is no acknowledgement"),
        (Event(4, Kind.ACK, 0, 4, False, b"DBHA"), "event 4 is no acknowledgement"),
    ],
)
def test_what_is_no_acknowledgement_of_this_job_is_an_error(event: Event, reason: str) -> None:
    """The rig is wrong, and its verdict would be."""
    with pytest.raises(ProofError, match=reason):
        verify.Acknowledged(Job("/d", "dsync", clients=2)).take(event)


def test_the_writer_runs_on_the_oldest_python() -> None:
    """It is copied to hosts: only syntax and names of Python 3.9, only the standard library."""
    import ast

    tree = ast.parse(Path(writer.__file__).read_text(), feature_version=(3, 9))
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    modules |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    assert {str(module).split(".")[0] for module in modules} <= sys.stdlib_module_names


@pytest.mark.parametrize("pattern", ["osync", "direct_dsync", "direct_fdatasync"])
def test_clients_of_one_log_share_its_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """All commits are in the log, one behind the other, with fewer syncs than commits; the first waits for the others."""
    (tmp_path / "ack").write_bytes(bytes(4 << 10))
    job = Job(str(tmp_path / "data"), pattern, clients=5, commits=6, ack=str(tmp_path / "ack"), delay=0.02)
    writer.prepare(job)
    real, written = os.pwritev, list[int]()
    monkeypatch.setattr(
        os, "pwritev", lambda file, data, at, flags: written.append(len(data)) or real(file, data, at, flags)
    )
    answer = writer.run(job)
    assert answer["commits"] == [6] * 5
    assert answer["syncs"] == len(written) < 30
    assert sum(written) == 30
    assert max(written) > 1
    assert 0 < answer["waited"] <= 0.02 * answer["syncs"]
    content = Path(job.directory, "commits").read_bytes()
    found = {content[at : at + job.size] for at in range(0, len(content), job.size)}
    assert found == {writer.record(job, client, number) for client in range(5) for number in range(6)}


def test_no_commit_of_a_group_returns_before_its_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acknowledgements follow the sync of the group that they were in, and never a later one."""
    ack = tmp_path / "ack"
    ack.touch()
    job = Job(str(tmp_path), "direct_fdatasync", clients=4, commits=5, ack=str(ack), delay=0.005)
    writer.prepare(job)
    steps = list[str]()
    synced, waiting = set[bytes](), set[bytes]()
    real = os.pwritev

    def pwritev(file: int, data: list[bytes], at: int, flags: int) -> int:
        waiting.update(bytes(one[8:20]) for one in data)
        return real(file, data, at, flags)

    def sync(file: int) -> None:
        time.sleep(0.002)
        synced.update(waiting)

    def pwrite(file: int, data: bytes, at: int) -> int:
        steps.append("ok" if bytes(data[8:20]) in synced else "too early")
        return len(data)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setitem(writer.SYNCS, "fdatasync", sync)
    writer.run(job)
    assert steps == ["ok"] * 20


def test_a_delay_that_a_sync_hides_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One client waits each time; of more, who comes during a long sync has waited already."""
    job = Job(str(tmp_path), "direct_fdatasync", clients=1, commits=5, delay=0.01)
    writer.prepare(job)
    alone = writer.run(job)
    assert alone["syncs"] == 5
    assert alone["waited"] == pytest.approx(0.05)
    many = Job(str(tmp_path), "direct_fdatasync", clients=6, commits=5, delay=0.01)
    writer.prepare(many)
    turns = iter(range(100))

    def sync(file: int) -> None:
        time.sleep(0.05)

    monkeypatch.setitem(writer.SYNCS, "fdatasync", sync)
    # clients that do not all come at once, so that some come while others are synced
    monkeypatch.setattr(writer.Noise, "write", lambda self: time.sleep(0.02 * (next(turns) % 3)))
    answer = writer.run(many)
    assert answer["waited"] < 0.01 * answer["syncs"]


def test_a_sync_that_fails_fails_for_all_in_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is left waiting, nobody acknowledges."""
    ack = tmp_path / "ack"
    ack.touch()
    job = Job(str(tmp_path), "osync", clients=3, commits=2, ack=str(ack), delay=0.01)
    writer.prepare(job)

    def fails(*_: object) -> int:
        raise OSError(5, "of the disk")

    monkeypatch.setattr(os, "pwritev", fails)
    with pytest.raises(OSError, match="of the disk"):
        writer.run(job)
    assert ack.read_bytes() == b""


def test_a_log_that_grows_is_not_shared() -> None:
    """Each client has its own there."""
    with pytest.raises(ValueError, match="wanted one whose log does not grow"):
        writer.run(Job("/d", "append_fsync", delay=0.0))


FILE = Job("/d", "replace_file", clients=1, commits=3, size=4000)


@pytest.mark.parametrize(
    ("content", "acknowledged", "missing", "torn"),
    [
        (b"", 0, [], []),
        (None, 0, [], []),
        (writer.record(FILE, 0, 0), 0, [], []),
        (writer.record(FILE, 0, 1), 2, [], []),
        (writer.record(FILE, 0, 2), 2, [], []),
        (writer.record(FILE, 0, 0), 3, [(0, 1), (0, 2)], []),
        (b"", 1, [(0, 0)], []),
        (None, 1, [(0, 0)], []),
        (writer.record(FILE, 0, 1)[:3999], 2, [], [(0, 1)]),
        (writer.record(FILE, 0, 1)[:3584] + bytes(416), 2, [], [(0, 1)]),
        (writer.record(FILE, 0, 0)[:512] + writer.record(FILE, 0, 1)[512:], 1, [], [(0, 0)]),
        (bytes(4000), 0, [], [(0, 0)]),
    ],
)
def test_a_boots_file_is_whole_and_no_older_than_what_was_acknowledged(
    content: bytes | None, acknowledged: int, missing: list[tuple[int, int]], torn: list[tuple[int, int]]
) -> None:
    losses = Records(FILE).losses({"commits.0": content}, [acknowledged])
    assert (losses.missing, losses.torn) == (missing, torn)
