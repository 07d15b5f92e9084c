# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: its calls, its bytes, and what verify finds of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    for verb in ("prepare", "run"):
        command = [sys.executable, writer.__file__, verb, words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
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
