# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make test` never calls well what failed, or what did not run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
NOTHING = Path("does-not-matter")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return tools/run_tests.py with its output elsewhere, and no environments to make."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import run_tests

    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "OUTPUT", tmp_path)

    def ensure(name: str) -> Path:
        if name == "absent":
            raise run_tests.venvs.Unavailable("needs what is not here")
        return NOTHING

    monkeypatch.setattr(run_tests.venvs, "ensure", ensure)
    return run_tests


def run(runner: ModuleType, *stages: tuple[str, str]) -> tuple[int, int, int, int]:
    """Run stages, given as (environment, Python code); count passed, failed, impossible, not reached."""
    found = runner.run_all(
        [
            runner.Stage("lint", f"stage {number}", venv, (sys.executable, "-c", code), Path.cwd())
            for number, (venv, code) in enumerate(stages)
        ]
    )
    return found.passed, len(found.failed), len(found.impossible), len(found.not_reached)


def test_counts_what_passed(runner: ModuleType) -> None:
    assert run(runner, ("here", ""), ("here", "")) == (2, 0, 0, 0)


def test_stops_at_the_first_failure_and_shows_its_output(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(runner, ("here", ""), ("here", "exit('the reason')"), ("here", "")) == (1, 1, 0, 1)
    assert "the reason" in capsys.readouterr().out


def test_names_what_this_machine_cannot_run(runner: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(runner, ("absent", ""), ("here", "")) == (1, 0, 1, 0)
    assert "NOT RUN: needs what is not here" in capsys.readouterr().out


def test_a_long_stage_repeats_at_its_end_what_says_why(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "print('FAILED tests/test_x.py::test_y'); print('a word'); exit(1)"
    stage = runner.Stage("lab", "long", "here", (sys.executable, "-c", code), Path.cwd(), live=True)
    found = runner.run_all([stage])
    assert runner.summary(found) == [
        "  failed: long",
        "    | FAILED tests/test_x.py::test_y",
        "0 passed, 1 failed",
    ]
    after = capsys.readouterr().out.rpartition("FAILED (exit code")[2]
    assert "FAILED tests/test_x.py::test_y" in after
    assert "a word" not in after


def test_neighbours_run_beside_each_other_and_what_comes_after_a_failure_does_not_begin(
    runner: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each of the first two waits until the other has begun; the third never begins."""
    meet = (
        "import pathlib, sys, time\n"
        "mine, other = map(pathlib.Path, sys.argv[1:3])\n"
        "mine.touch()\n"
        "end = time.monotonic() + 30\n"
        "while not other.exists() and time.monotonic() < end: time.sleep(0.01)\n"
        "print('met' if other.exists() else 'alone')\n"
        "sys.exit(mine.name == 'b')\n"
    )
    names = ("a", "b", "c")

    def stage(name: str) -> object:
        other = "a" if name == "b" else "b"
        command = (sys.executable, "-c", meet, str(tmp_path / name), str(tmp_path / other))
        return runner.Stage("lab", name, "here", command, Path.cwd(), live=True, beside=True)

    runner.TOGETHER = 2
    found = runner.run_all([stage("a"), stage("b")])
    told = capsys.readouterr().out
    assert (found.passed, list(found.failed)) == (1, ["b"])
    assert "    a | met" in told and "    b | met" in told
    assert [[one.name for one in batch] for batch in runner.batches([stage(name) for name in names])] == [
        ["a", "b", "c"]
    ]
    failing = runner.Stage("lab", "first", "here", (sys.executable, "-c", "exit(1)"), Path.cwd(), beside=True)
    runner.TOGETHER = 1
    assert runner.run_all([failing, stage("c")]).not_reached == ["c"]
    assert not (tmp_path / "c").exists()
