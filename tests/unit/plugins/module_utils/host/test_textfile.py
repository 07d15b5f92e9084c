# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that keep every byte, and what no configuration file may hold."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host import textfile

from ..fakes.texts import HOSTILE, ODD


@given(st.text(st.characters(blacklist_characters="\0\ufeff")))
def test_lines_are_the_text(text: str) -> None:
    lines = textfile.split(text, "x.conf")
    assert "".join(lines) == text
    assert all(line.count("\n") == line.endswith("\n") for line in lines)


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_what_no_server_reads_is_refused_with_file_and_reason(text: str, wanted: str) -> None:
    with pytest.raises(textfile.Malformed, match=rf"^/etc/x\.conf.*: observed .*; expected .*{wanted}"):
        textfile.split(text, "/etc/x.conf")


def test_the_line_with_a_nul_is_named() -> None:
    with pytest.raises(textfile.Malformed, match=r"x\.conf line 2: observed 'b\\x00'; expected .*; restore"):
        textfile.split("a\nb\0\n", "x.conf")


def test_a_text_at_the_limit_is_read_and_bytes_count() -> None:
    assert textfile.split("x" * textfile.LIMIT, "x") == ["x" * textfile.LIMIT]
    with pytest.raises(textfile.Malformed, match="observed 1048577 bytes"):
        textfile.split("x" * (textfile.LIMIT - 1) + "\u00e9", "x")


def test_odd_white_space_ends_no_line() -> None:
    assert textfile.split(f"{ODD}\na", "x") == [f"{ODD}\n", "a"]


def test_a_long_line_is_shown_by_its_beginning() -> None:
    message = str(textfile.refusal("x", 1, "y" * 500 + "\r\n", "less"))
    assert message == f"x line 1: observed {'y' * 80 + '...'!r}; expected less; fix that line, then run again"


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", "none"),
        ("a", "none"),
        ("a\nb", "unix"),
        ("a\r\n", "dos"),
        ("a\r\nb\n", "mixed"),
        ("a\rb\n", "unix"),
    ],
)
def test_line_ends(text: str, wanted: str) -> None:
    assert textfile.line_ends(text) == wanted


def test_the_last_counts_or_the_first() -> None:
    each = [("a", textfile.Setting(str(number), "f", number)) for number in (1, 2, 3)]
    last = textfile.settled(each, ["f"])
    assert last.settings["a"].value == "3"
    assert [setting.value for setting in last.overridden["a"]] == ["1", "2"]
    first = textfile.settled(each, ["f"], first=True)
    assert first.settings["a"].value == "1"
    assert [setting.value for setting in first.overridden["a"]] == ["2", "3"]
    assert textfile.settled(each[:1], ["f"]).overridden == {}


@pytest.mark.parametrize("note", ["a\nb", "a\rb", "a\0b", "a\x1b[31m"])
def test_a_note_cannot_end_its_comment(note: str) -> None:
    with pytest.raises(ValueError, match=re.escape("expected text on one line")):
        textfile.insert([], 0, "x", "#", note)


def test_a_marked_line_is_found_changed_and_removed_with_its_mark() -> None:
    text = textfile.insert([textfile.Line(1, "a")], 1, "x 1", "#", "first")
    assert text == "a\n# durable.dbhost: first\nx 1\n"
    lines = [textfile.Line(number, raw) for number, raw in enumerate(text.splitlines(keepends=True), start=1)]
    assert textfile.is_marked(lines, lines[2], "#")
    assert not textfile.is_marked(lines, lines[1], "#")
    assert (
        textfile.replace(lines, [(lines[2], 2, 3, "2")], "#", "second")
        == "a\n# durable.dbhost: second\nx 2\n"
    )
    assert textfile.remove(lines, [lines[2]], "#") == "a\n"


@pytest.mark.parametrize("words", ["2\n[client]", "2\r", "2\x00", "2\x0b"])
def test_a_part_of_a_line_never_becomes_several_lines(words: str) -> None:
    line = textfile.Line(1, "a = 1\n", "setting", "", "a", "1", 4, 5)
    with pytest.raises(ValueError, match="expected text on one line"):
        textfile.replace([line], [(line, 4, 5, words)], "#", "managed")
    assert textfile.replace([line], [(line, 4, 5, "2")], "#", "managed").endswith("a = 2\n")
