# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Firebird's embedded engine on this host: commits by isql, a kill, and the question to an image; no machine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import engine_image
import pytest

from proof import checks, engine_writer, firebird
from proof.engine import Ended, Server
from proof.errors import ProofError
from proof.writer import Job

#: One client: the embedded engine takes the database for itself, which a server shares.
JOB = Job("", "firebird", clients=1, commits=20, seed=4)
JUDGE = Server(firebird.ENGINE, "ext4", JOB)
real = engine_image.needs(firebird.ENGINE)


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Return an ext4 that holds a database whose client was killed after JOB had ended."""
    with tempfile.TemporaryDirectory(prefix="fire-", dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        data, locks = directory / "tree/firebird", directory / "locks"
        for path in (data, locks):
            path.mkdir(parents=True)
            shutil.chown(path, "nobody", "nogroup")
        database = str(data / firebird.DATABASE)
        isql = engine_image.as_account("env", f"FIREBIRD_LOCK={locks}", f"FIREBIRD_TMP={locks}", "isql-fb")
        words = [*isql, "-q", "-bail", "-user", "SYSDBA"]
        engine_image.run(words, f"create database '{database}' page_size 4096;")
        table = firebird.PREPARE.partition("'")[2].partition("'")[0]
        engine_image.run([*words, database], table)
        found = engine_writer.run(JOB, replace(firebird.CLIENT, argv=(*words, database)))
        assert found["commits"] == [20]
        engine_image.image_of(directory / "tree", directory / "image")
        yield directory / "image"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a directory as the sweep makes it."""
    with checks.scratch_directory() as name:
        yield Path(name)


@real
def test_its_own_engine_finds_the_commits(image: Path, scratch: Path) -> None:
    """All that were acknowledged; one that never was is missing; those of another run too; the image stays."""
    before = image.read_bytes()
    assert JUDGE(image, [20], scratch) == (True, "", 0, 0)
    assert JUDGE(image, [22], scratch).missing == 2
    assert replace(JUDGE, job=replace(JOB, seed=5))(image, [1], scratch).missing == 1
    assert image.read_bytes() == before


@real
def test_a_database_that_is_gone_or_no_database_has_lost_all(
    image: Path, scratch: Path, tmp_path: Path
) -> None:
    """And the engine's words are kept."""
    broken = engine_image.without(image, "/firebird/proof.fdb", tmp_path / "image")
    clean, said, missing, _ = JUDGE(broken, [20], scratch)
    assert (clean, missing) == (False, 20)
    assert "the engine ended with" in said


@real
def test_a_page_that_is_damaged_is_told_though_the_commits_are_there(
    image: Path, scratch: Path, tmp_path: Path
) -> None:
    """gfix looks at pages that no answer needed."""
    database = tmp_path / "proof.fdb"
    engine_image.run(["debugfs", "-R", f"dump /firebird/proof.fdb {database}", str(image)])
    pages = bytearray(database.read_bytes())
    # the last page that says it is of an index (7), as those of system tables are
    at = max(at for at in range(0, len(pages), 4096) if pages[at] == 7)
    pages[at : at + 4096] = bytes(4096)
    (tmp_path / "tree/firebird").mkdir(parents=True)
    (tmp_path / "tree/firebird/proof.fdb").write_bytes(pages)
    engine_image.image_of(tmp_path / "tree", tmp_path / "image")
    clean, said, _, _ = JUDGE(tmp_path / "image", [20], scratch)
    assert not clean and said


@real
def test_an_image_without_its_files_is_an_error(scratch: Path, tmp_path: Path) -> None:
    """It says nothing about commits."""
    (tmp_path / "tree").mkdir()
    engine_image.image_of(tmp_path / "tree", tmp_path / "image")
    with pytest.raises(ProofError, match="no firebird"):
        JUDGE(tmp_path / "image", [1], scratch)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(0, ""), ""),
        (Ended(0, "Summary of validation errors\n\n\tNumber of database page warnings\t: 3"), ""),
        (Ended(0, "Number of record level errors\t: 1\nNumber of page warnings\t: 3"), "record level errors"),
        (Ended(1, "cannot attach"), "gfix ended with 1: cannot attach"),
        (Ended(0, "something else"), "gfix ended with 0: something else"),
    ],
)
def test_what_gfix_says_is_damage_unless_it_is_known_not_to_be(ended: Ended, said: str) -> None:
    """A page that nothing leads to is a warning: allocated before the pointer to it, by design."""
    assert said in firebird.damage(ended)
    assert bool(firebird.damage(ended)) == bool(said)
