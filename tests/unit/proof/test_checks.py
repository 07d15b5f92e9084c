# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks on real images: what is whole, what is broken, and what is read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from proof import checks, writer
from proof.errors import ProofError
from proof.simulated import Setup, events
from proof.sweep import Files, Run, every_ack, schedule, summary, sweep
from proof.writer import Job

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
JOB = Job("/d", "direct_fdatasync", clients=4, commits=32)


def needs(*tools: str) -> pytest.MarkDecorator:
    """Skip without these tools."""
    missing = [tool for tool in tools if not shutil.which(tool, path=PATH)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' '.join(missing)}")


ext4_tools = needs("mkfs.ext4", "e2fsck", "debugfs")


def command(*argv: str) -> str:
    """Run a tool that must work."""
    environment = os.environ | {"PATH": PATH, "LC_ALL": "C"}
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=environment).stdout


@pytest.fixture
def ext4(tmp_path: Path) -> Path:
    """Return an ext4 of 16 MiB with one full file for commits and one for noise, both in one piece."""
    tree, image = tmp_path / "tree", tmp_path / "base.img"
    tree.mkdir()
    (tree / "commits").write_bytes(b"\1" * (JOB.clients * JOB.commits * JOB.size))
    (tree / "noise").write_bytes(b"\1" * 64 * writer.BLOCK)
    command("mkfs.ext4", "-q", "-d", str(tree), str(image), "16M")
    return image


def first_block(image: Path, path: str) -> int:
    """Return where a file begins on the disk, in bytes."""
    return int(command("debugfs", "-R", f"bmap {path} 0", str(image))) * block_size(image)


def block_size(image: Path) -> int:
    """Return the size of its blocks."""
    words = command("dumpe2fs", "-h", str(image)).splitlines()
    return int(next(line for line in words if line.startswith("Block size")).split()[-1])


@ext4_tools
def test_files_of_ext4_are_read(ext4: Path, tmp_path: Path) -> None:
    """All of them; one that is not there is None, and the image stays as it was."""
    before = ext4.read_bytes()
    checked = checks.ext4(ext4, ["/commits", "/gone"], tmp_path)
    assert checked.clean
    assert checked.said == ""
    assert checked.files == {"/commits": b"\1" * (JOB.clients * JOB.commits * JOB.size), "/gone": None}
    assert ext4.read_bytes() == before


@ext4_tools
def test_a_broken_inode_table_is_damage(ext4: Path, tmp_path: Path) -> None:
    """Told in e2fsck's words."""
    size = block_size(ext4)
    words = command("debugfs", "-R", "imap /commits", str(ext4))
    block = int(words.split("located at block ")[1].split(",")[0])
    with ext4.open("r+b") as file:
        file.seek(block * size)
        file.write(b"\xff" * size)
    checked = checks.ext4(ext4, ["/commits"], tmp_path)
    assert not checked.clean
    assert "UNEXPECTED INCONSISTENCY" in checked.said


@ext4_tools
def test_what_is_no_file_system_is_damage(tmp_path: Path) -> None:
    """And has no file."""
    image = tmp_path / "zeros.img"
    image.write_bytes(bytes(1 << 20))
    checked = checks.ext4(image, ["/commits"], tmp_path)
    assert (checked.clean, checked.files) == (False, {"/commits": None})


@ext4_tools
@pytest.mark.parametrize(("by", "losing"), [("flush", 0), ("fua", 0), ("nothing", 1)])
def test_a_sweep_over_ext4(ext4: Path, by: str, losing: int) -> None:
    """Direct writes into full files change no metadata: their blocks are where debugfs says."""
    setup = Setup(by, first_block(ext4, "/commits"), 1, first_block(ext4, "/noise"))
    run = Run(ext4, events(JOB, setup), JOB)
    found = summary(
        sweep(run, [*every_ack(run.events, 1)[::8], *schedule(run.events, 16, 1)], Files(checks.ext4, JOB))
    )
    assert found.damaged == 0
    assert found.cuts >= 8
    assert (found.losing >= 0.5 * found.cuts) if losing else found.losing == 0


def test_a_path_that_debugfs_cannot_take_is_refused(tmp_path: Path) -> None:
    """It has no escape for a quotation mark."""
    image = tmp_path / "zeros.img"
    image.write_bytes(bytes(1 << 20))
    with pytest.raises(ProofError, match="cannot be asked for"):
        checks.ext4(image, ['/a"b'], tmp_path)


def test_mounting_is_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said, with the way out."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ProofError, match="only root can mount an image"):
        checks.xfs(tmp_path / "x.img", ["/commits"], tmp_path)
