# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real PostgreSQL of this host: commits by its own client, a kill, and recovery from an image; no machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proof import checks, engine_writer, postgresql
from proof.engine import Server
from proof.errors import ProofError
from proof.writer import Job

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
JOB = Job("", "postgresql", clients=3, commits=20, seed=4)
pytestmark = pytest.mark.skipif(
    not SERVERS
    or os.geteuid() != 0
    or not shutil.which("losetup", path=PATH)
    or not Path("/dev/loop-control").exists(),
    reason="needs root, loop devices and the package postgresql",
)


def as_server(*argv: str) -> None:
    """Run a program of the server as its account."""
    command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *argv]
    subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Return an ext4 that holds a cluster whose server was killed after JOB had ended."""
    programs = SERVERS[-1].parent
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as name:
        directory = Path(name)
        tree, sockets = directory / "tree", directory / "s"
        for path in (directory, tree, sockets, tree / "postgresql"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        for path in (sockets, tree / "postgresql"):
            shutil.chown(path, "postgres", "postgres")
        data = tree / "postgresql"
        as_server(str(programs / "initdb"), "-N", "-A", "trust", "-U", "postgres", "-D", str(data))
        options = f"-k {sockets} -c listen_addresses= -c shared_buffers=16MB"
        log = str(sockets / "log")
        as_server(str(programs / "pg_ctl"), "-w", "-l", log, "-D", str(data), "-o", options, "start")
        try:
            words = ["psql", "-qX", "-h", str(sockets), "-U", "postgres", "-c"]
            table = "create table commits (seed integer, client integer, number integer)"
            subprocess.run([*words, table], check=True, capture_output=True)
            found = engine_writer.run(replace(JOB, socket=str(sockets)), postgresql.CLIENT)
            assert found["commits"] == [20, 20, 20]
        finally:
            as_server(str(programs / "pg_ctl"), "-w", "-m", "immediate", "-D", str(data), "stop")
        target = directory / "image"
        argv = ["mkfs.ext4", "-q", "-d", str(tree), str(target), "160M"]
        subprocess.run(argv, check=True, capture_output=True, env=os.environ | {"PATH": PATH})
        yield target


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a directory as the sweep makes it."""
    with checks.scratch_directory() as name:
        yield Path(name)


def test_its_own_server_finds_the_commits(image: Path, scratch: Path) -> None:
    """All that were acknowledged; one that never was is missing; those of another run too."""
    judge = Server(postgresql.ENGINE, "ext4", JOB)
    before = image.read_bytes()
    assert judge(image, [20, 20, 20], scratch) == (True, "", 0, 0)
    assert judge(image, [20, 22, 20], scratch) == (True, "", 2, 0)
    assert replace(judge, job=replace(JOB, seed=5))(image, [1, 0, 0], scratch).missing == 1
    assert image.read_bytes() == before


def test_a_cluster_that_does_not_come_up_has_lost_all(image: Path, scratch: Path, tmp_path: Path) -> None:
    """And the server's words are kept."""
    broken = tmp_path / "image"
    shutil.copy(image, broken)
    command = ["debugfs", "-w", "-R", "rm /postgresql/global/pg_control", str(broken)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PATH": PATH})
    clean, said, missing, _ = Server(postgresql.ENGINE, "ext4", JOB)(broken, [20, 0, 1], scratch)
    assert (clean, missing) == (False, 21)
    assert "pg_control" in said


def test_an_image_without_a_cluster_is_an_error(scratch: Path, tmp_path: Path) -> None:
    """It says nothing about commits."""
    empty = tmp_path / "image"
    subprocess.run(["mkfs.ext4", "-q", str(empty), "16M"], check=True, env=os.environ | {"PATH": PATH})
    with pytest.raises(ProofError, match="no postgresql"):
        Server(postgresql.ENGINE, "ext4", JOB)(empty, [1], scratch)


def test_a_client_that_ends_is_told(tmp_path: Path) -> None:
    """It acknowledges nothing."""
    with pytest.raises(engine_writer.EngineError, match="client 0: commit 0 answered ''"):
        engine_writer.run(replace(JOB, socket=str(tmp_path), clients=1), postgresql.CLIENT)
