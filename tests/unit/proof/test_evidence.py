# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was judged stays in the evidence: cells are written beside those of other runs, and of earlier versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proof import evidence


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page wants whole cells; here they have a name and a machine."""
    monkeypatch.setattr(evidence, "_write_page", lambda directory: None)


def cell(name: str, cuts: int, kind: str = "qemu") -> dict[str, Any]:
    """Return a cell as far as it is kept by it."""
    return {"cell": name, "cuts": cuts, "versions": {"kind": kind}}


def cuts(directory: Path) -> list[int]:
    """Return the cuts of each cell that is kept."""
    return [found["cuts"] for found in evidence.read(directory)]


def test_a_run_of_some_cells_keeps_the_others(tmp_path: Path) -> None:
    evidence.write([cell("b", 1), cell("a", 2, "uml"), cell("a", 3)], tmp_path / "new")
    evidence.write([cell("b", 4)], tmp_path / "new")
    assert cuts(tmp_path / "new") == [3, 2, 4]
    assert [path.name for path in (tmp_path / "new").iterdir()] == [evidence.CELLS]


def test_files_of_single_cells_are_read_and_then_kept_in_one(tmp_path: Path) -> None:
    evidence.write([cell("a", 1)], tmp_path)
    (tmp_path / "cells").mkdir()
    for found in (cell("a", 2), cell("b", 3)):
        (tmp_path / f"cells/{found['cell']}.json").write_text(json.dumps(found, indent=1))
    assert cuts(tmp_path) == [2, 3]
    evidence.write([cell("c", 4)], tmp_path)
    assert cuts(tmp_path) == [2, 3, 4]
    assert not (tmp_path / "cells").exists()


def test_a_write_that_ends_halfway_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence.write([cell("a", 1)], tmp_path)

    def full(path: Path, text: str) -> int:
        with path.open("w") as file:
            file.write(text[:5])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        evidence.write([cell("a", 2)], tmp_path)
    assert cuts(tmp_path) == [1]


def test_the_page_tells_what_cuts_on_the_disk_of_the_root_left() -> None:
    """A row for each run, the files, what was wrong, and what the control broke."""

    def step(wrong: int, problems: dict[str, int], files: list[str]) -> dict[str, Any]:
        counts = {
            "events": 5,
            "cuts": 40,
            "between": 7,
            "unfinished": 3,
            "checked": 2,
            "refused": 1,
            "wrong": wrong,
        }
        return {**counts, "problems": problems, "files": files}

    steps = {
        "release": step(1, {"/etc/fstab is gone": 1}, ["/etc/fstab", "/etc/a.rules"]),
        evidence.CONTROL: step(9, {"/etc/fstab is empty": 9}, ["/etc/fstab", "/etc/b.rules"]),
    }
    page = evidence.page([], boots={"xfs": {"root": "xfs", "steps": steps}})
    assert "| xfs | release | 5 | 40 | 7 | 3 | 2 | 1 | 1 |" in page
    assert "- `/etc/a.rules`\n- `/etc/fstab`\n\n" in page
    assert "- root on xfs: release: /etc/fstab is gone (1 cuts)\n" in page
    assert "- xfs, the control: /etc/fstab is empty (9 cuts)\n" in page
    assert "on the disk of the root" not in evidence.page([])
