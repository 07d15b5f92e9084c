# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The short part gives what was kept, and says what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proof import run, short


def test_the_kept_outcomes_come_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Cut by cut, on every Python."""
    assert run.main(["--short"]) == 0
    assert "nothing: " in capsys.readouterr().out


def test_what_differs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One other digest fails."""
    kept = json.loads(short.KEPT.read_text())
    kept["fua"]["digest"] = "0"
    monkeypatch.setattr(short, "KEPT", tmp_path / "short.json")
    assert short.main() == 1
    short.KEPT.write_text(json.dumps(kept))
    assert short.main() == 1
    assert "proof: fua: seen" in capsys.readouterr().out


def test_what_must_never_be_is_told_whatever_was_kept() -> None:
    """A safe case that loses, a lie that no cut shows, a trial that is missed."""
    rows = {name: {"cuts": 9, "losing": 0 if name in short.SAFE else 1} for name, *_ in short.CASES}
    good = {**rows, "less one flush": {"trials": 2, "caught": 2}}
    assert short.problems(good) == []
    assert short.problems({**good, "flush": {"losing": 1}}) == ["flush: 1 cuts lose commits"]
    assert short.problems({**good, "nothing": {"losing": 0}}) == ["nothing: no cut shows it"]
    assert short.problems({**good, "less one flush": {"trials": 2, "caught": 1}}) == [
        "less one flush: not always caught"
    ]
