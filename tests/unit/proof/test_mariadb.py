# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real MariaDB of this host: commits by its own client, a kill, and recovery from an image; no machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import engine_image
import pytest

from proof import checks, engine_writer, mariadb
from proof.engine import Server
from proof.errors import ProofError
from proof.writer import Job

JOB = Job("", "mariadb", clients=3, commits=20, seed=4)
JUDGE = Server(mariadb.ENGINE, "ext4", JOB)
pytestmark = engine_image.needs(mariadb.ENGINE, "mariadb", "mariadb-install-db")


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Return an ext4 that holds the files of a server that was killed after JOB had ended."""
    with tempfile.TemporaryDirectory(prefix="maria-", dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        data, socket = directory / "tree/mariadb", directory / "s/socket"
        for path in (data, socket.parent):
            path.mkdir(parents=True)
            shutil.chown(path, "nobody", "nogroup")
        options = ["--no-defaults", f"--datadir={data}", *(f"--{s.replace(' ', '')}" for s in mariadb.SIZES)]
        engine_image.run(engine_image.as_account("mariadb-install-db", *options, "--skip-test-db", "--force"))
        listens = ["--skip-networking", f"--socket={socket}", "--log-bin=binlog", "--sync-binlog=1"]
        argv = engine_image.as_account(mariadb.PROGRAM, *options, *listens)
        with subprocess.Popen(argv, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                _wait(socket, server)
                table = mariadb.PREPARE.partition("<<END\n")[2].partition("END")[0]
                engine_image.run(["mariadb", "--no-defaults", "-u", "root", f"--socket={socket}"], table)
                found = engine_writer.run(replace(JOB, socket=str(socket)), mariadb.CLIENT)
                assert found["commits"] == [20, 20, 20]
            finally:
                server.kill()
        engine_image.image_of(directory / "tree", directory / "image")
        yield directory / "image"


def _wait(socket: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not socket.exists():
        assert server.poll() is None and time.monotonic() < deadline, "the server does not come up"
        time.sleep(0.05)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a directory as the sweep makes it."""
    with checks.scratch_directory() as name:
        yield Path(name)


def test_its_own_server_finds_the_commits(image: Path, scratch: Path) -> None:
    """All that were acknowledged; one that never was is missing; those of another run too; the image stays."""
    before = image.read_bytes()
    assert JUDGE(image, [20, 20, 20], scratch) == (True, "", 0, 0)
    assert JUDGE(image, [20, 22, 20], scratch).missing == 2
    assert replace(JUDGE, job=replace(JOB, seed=5))(image, [1, 0, 0], scratch).missing == 1
    assert image.read_bytes() == before


@pytest.mark.parametrize("lost", ["ibdata1", "ib_logfile0", "proof/commits.frm"])
def test_files_that_are_damaged_have_lost_all(lost: str, image: Path, scratch: Path, tmp_path: Path) -> None:
    """The server does not come up, or ends without an answer; its words are kept."""
    broken = engine_image.without(image, f"/mariadb/{lost}", tmp_path / "image")
    clean, said, missing, _ = JUDGE(broken, [20, 0, 1], scratch)
    assert (clean, missing) == (False, 21)
    assert "the server ended with" in said


def test_a_transaction_that_only_one_log_has_is_not_there(image: Path, scratch: Path, tmp_path: Path) -> None:
    """InnoDB has prepared it, and asks the binary log, which has to be there: so both are part of a commit."""
    broken = engine_image.without(image, "/mariadb/binlog.000001", tmp_path / "image")
    assert JUDGE(broken, [20, 20, 20], scratch).clean is False


def test_an_image_without_its_files_is_an_error(scratch: Path, tmp_path: Path) -> None:
    """It says nothing about commits."""
    (tmp_path / "tree").mkdir()
    engine_image.image_of(tmp_path / "tree", tmp_path / "image")
    with pytest.raises(ProofError, match="no mariadb"):
        JUDGE(tmp_path / "image", [1], scratch)


def test_a_client_that_ends_is_told(tmp_path: Path) -> None:
    """It acknowledges nothing."""
    assert os.geteuid() == 0
    job = replace(JOB, socket=str(tmp_path / "none"), clients=1)
    with pytest.raises(engine_writer.EngineError, match="client 0: commit 0 answered ''"):
        engine_writer.run(job, mariadb.CLIENT)
