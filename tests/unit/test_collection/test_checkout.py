# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make` makes never becomes part of the checkout: a link `.venv` in a commit leads every clone astray."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Where `make` and its tools write; a worktree may have a link there to another checkout's.
MADE = (".venv", "playbooks/collections", "lab/.cache", "tests/output/last.json")


def git(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run git in a checkout."""
    return subprocess.run(("git", *arguments), cwd=cwd, capture_output=True, text=True, check=False)


def test_nothing_that_is_ignored_is_tracked() -> None:
    listed = git("ls-files", "--cached", "--ignored", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.split() == []


@pytest.mark.parametrize("path", MADE)
def test_a_link_where_make_writes_is_ignored_as_a_directory_is(path: str, tmp_path: Path) -> None:
    assert git("init", "--quiet", cwd=tmp_path).returncode == 0
    (tmp_path / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).symlink_to(tmp_path)
    ignored = git("check-ignore", path, cwd=tmp_path)
    assert ignored.stdout.split() == [path], ignored.stderr
