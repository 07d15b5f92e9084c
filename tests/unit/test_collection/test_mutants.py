# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of mutants fits the sources, and the command's verdict is that of its outcome."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutants
    import venvs

    yield mutants, venvs
    for name in ("mutants", "venvs"):
        sys.modules.pop(name, None)


def test_each_mutant_fits_its_source_and_names_tests_that_are_there(tools: Any) -> None:
    mutants, _venvs = tools
    found = mutants.read()
    assert len(found) >= 155
    for mutant in found:
        text = (ROOT / mutants.SOURCES / mutant.file).read_text(encoding="utf-8")
        compile(mutants.mutated(mutant, text), mutant.file, "exec")
        assert all((ROOT / mutants.TESTS / test).exists() for test in mutant.tests), mutant.name


@pytest.mark.parametrize("text", ["b", "aa", ""])
def test_a_mutant_whose_text_is_not_there_once_is_refused(tools: Any, text: str) -> None:
    mutants, _venvs = tools
    with pytest.raises(mutants.Wrong, match="expected once"):
        mutants.mutated(mutants.Mutant("m", "f.py", "a", "c", ("t",)), text)


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor(tools: Any) -> None:
    mutants, _venvs = tools
    plain = mutants.Mutant("plain", "f.py", "a", "b", ("t",))
    known = plain._replace(name="known", survives="nothing can see it")
    many = [plain._replace(name=str(number)) for number in range(100)]
    assert mutants.judge([*many, known], [known]) == []
    assert mutants.judge([*many, plain], [plain]) == ["survived: plain (f.py)"]
    assert mutants.judge([*many, known], []) == ["killed by now, remove its reason: known"]
    others = [known._replace(name=f"known {number}") for number in range(4)]
    assert mutants.judge([*many, *others], others) == ["4 of 104 survive; expected at most 3%"]


def test_the_environments_of_another_checkout_are_never_made_anew(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever works there uses them now; to make one is to delete it first."""
    _mutants, venvs = tools
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (theirs / "run/bin").mkdir(parents=True)
    (theirs / "run/stamp").write_text("of another place")
    ours.symlink_to(theirs)
    monkeypatch.setattr(venvs, "VENVS", ours)
    monkeypatch.setattr(venvs, "find_python", lambda _versions: "/usr/bin/python3")
    monkeypatch.setattr(venvs, "make", lambda *_given: pytest.fail("made again"))
    assert venvs.ensure("run") == ours / "run"
    with pytest.raises(venvs.Unavailable, match="make it there"):
        venvs.ensure("lint")
    assert (theirs / "run/stamp").read_text() == "of another place"


def test_mutants_are_tried_side_by_side_and_told_in_their_order(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each copy has one mutant at a time, and is whole again after it."""
    mutants, _venvs = tools
    copies = [tmp_path / "one", tmp_path / "two"]
    for copy in copies:
        (copy / mutants.SOURCES).mkdir(parents=True)
        (copy / mutants.SOURCES / "f.py").write_text("0 1 2 3 4 5")
    found = [mutants.Mutant(f"m{number}", "f.py", str(number), "x", ("t",)) for number in range(6)]

    def run_tests(checkout: Path, _tests: tuple[str, ...]) -> int:
        text = (checkout / mutants.SOURCES / "f.py").read_text()
        assert text.count("x") <= 1
        return 1 if "x" in text and "3" in text else 0

    monkeypatch.setattr(mutants, "run_tests", run_tests)
    assert [mutant.name for mutant in mutants.survivors(found, copies)] == ["m3"]
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [m.name for m in found]
    assert {(copy / mutants.SOURCES / "f.py").read_text() for copy in copies} == {"0 1 2 3 4 5"}
    monkeypatch.setattr(mutants, "run_tests", lambda *_given: 1)
    with pytest.raises(mutants.Wrong, match="without any mutant"):
        list(mutants.survivors(found, copies))
