# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines tools/words.py shows: those that people read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
RULES = "# a comment\npermitted: 7\n\\bgood old\\b -> established\n"


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return tools/words.py."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import words

    yield words
    for name in ("words", "venvs"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("docs/a.md", "new\nthe Good old way\n", [2]),
        ("docs/a.md", "`good old`\n```text\ngood old\n```\n", []),
        ("docs/a.md", "good old <!-- words: allow -->\n", []),
        ("roles/a.yml", "- name: A good old task\n  x: good old\n", [1]),
        ("plugins/a.py", '''"""New.\n\nGood old.\n"""\n# good old\n''', [3]),
        ("plugins/a.py", "x = f'good old {y}'\n", [1]),
        ("plugins/a.py", "x = 'good old'  # words: allow\n", []),
    ],
)
def test_lines_that_people_read_are_checked(words: Any, name: str, text: str, lines: list[int]) -> None:
    bound, rules = words.phrases(RULES)
    assert bound == 7
    rows = list(words.avoided(name, text, rules))
    assert [int(row.split(":")[1]) for row in rows] == lines
    assert all(row.endswith("-> established") for row in rows)


@pytest.mark.parametrize(("found", "code"), [(6, 0), (5, 1), (7, 0), (8, 1)])
def test_more_than_permitted_or_far_fewer_fail(
    words: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: int, code: int
) -> None:
    phrases = tmp_path / "words.txt"
    phrases.write_text(RULES)
    monkeypatch.setattr(words, "PHRASES", phrases)
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "SLACK", 1)
    listed = type("Listed", (), {"stdout": "README.md\n"})
    monkeypatch.setattr(words.subprocess, "run", lambda *_, **__: listed)
    (tmp_path / "README.md").write_text("good old\n" * found)
    monkeypatch.setattr(sys, "argv", ["words.py"])
    assert words.main() == code
