# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host names as it likes is shown as text: nothing in it moves a cursor, turns letters around or ends a line."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import (
    Lines,
    command,
    is_plain,
    line,
    lines,
    message,
    name,
    printable,
)

#: What never leaves as it is: C0, DEL, C1, line ends of Unicode, marks of direction, letters without width, bytes.
HOSTILE = (
    *map(chr, range(32)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u3164\uffa0\ufe0f\u180e\U000e0001\U000e0100",
    *("\udc80", "\udcff", "\ud800", "\udfff", "\ue000", "\uffff", "\u00a0"),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/srv/pgdata", "/srv/pgdata"),
        ("/srv/données/база/数据", "/srv/données/база/数据"),
        ("a\ndb1: durable", "a\\ndb1: durable"),
        ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
        ("\x9b2J", "\\u009b2J"),
        ("a\u202eb", "a\\u202eb"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\\nb", "a\\nb"),
        ("a\tb\r", "a\\tb\\r"),
    ],
)
def test_a_line(text: str, wanted: str) -> None:
    assert line(text) == wanted


@pytest.mark.parametrize("letter", HOSTILE, ids=lambda letter: f"U+{ord(letter):04X}")
def test_what_is_never_seen_is_written_out(letter: str) -> None:
    shown = line(f"a{letter}b")
    assert letter not in shown
    assert shown.isascii()
    assert shown.isprintable()


@given(st.text(st.characters() | st.sampled_from(HOSTILE)))
def test_any_text_becomes_one_line_that_a_terminal_prints(text: str) -> None:
    shown = line(text)
    assert shown.isprintable()
    assert shown.splitlines() in ([shown], [])
    assert line(shown) == shown
    shown.encode("utf-8")


@given(st.lists(st.text(st.characters() | st.sampled_from(HOSTILE)), max_size=4))
def test_no_line_of_a_text_becomes_two(rows: list[str]) -> None:
    assert lines(rows).splitlines() == [line(row) for row in rows]


@pytest.mark.parametrize(
    "text", ["/srv/fb/shop.fdb", "13/main", "docker:0123 /var/lib/pg", "dm:LVM-x (vg-data)", "Größe"]
)
def test_a_name_that_can_only_be_a_name_stays_as_it_is(text: str) -> None:
    assert name(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a; curl evil|sh #.fdb",
        "a $(reboot)",
        "x do: reboot",
        "x Fix: reboot",
        'a"b',
        "a\\",
        " a",
        "a  b",
        "",
        "`a`",
    ],
)
def test_any_other_name_is_in_quotes_and_cannot_end_them(text: str) -> None:
    shown = name(text)
    assert shown[0] == shown[-1] == '"'
    assert json.loads(shown) == text


def test_values_are_made_printable_all_the_way_down() -> None:
    told = {"a\n": ["b\x1b", {"c": ("d\u202e", 1, None, 1.5, True)}], "table": lines(["one\r", "two"])}
    shown = printable(told)
    assert shown == {
        "a\\n": ["b\\x1b", {"c": ["d\\u202e", 1, None, 1.5, True]}],
        "table": "one\\r\ntwo\n",
    }
    assert not isinstance(shown["table"], Lines)
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/db: /srv/db: no answer within 10 s", "/srv/db: no answer within 10 s"),
        ("postgresql /srv/db: /srv/db: /srv/db: x; /a: /a: y", "postgresql /srv/db: x; /a: y"),
        ("/srv/db: /srv/db2: x", "/srv/db: /srv/db2: x"),
        ("x/srv/db: /srv/db: x", "x/srv/db: /srv/db: x"),
        ("a: b: a: b: c", "a: b: a: b: c"),
        ("", ""),
    ],
)
def test_a_message_names_its_path_once(text: str, shown: str) -> None:
    assert message(text) == shown


def test_only_what_was_laid_out_keeps_its_lines() -> None:
    assert printable(Lines("a\nb\n")) == "a\nb\n"
    assert printable(str(Lines("a\nb\n"))) == "a\\nb\\n"


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_each_word_of_a_command_is_one(words: list[str]) -> None:
    assert shlex.split(command(*words)) == words


@pytest.mark.parametrize("text", ["x{{ 1 }}", "{%", "{#", "a\nb", "\x1b", "\u202e", "\udcff"])
def test_templates_and_what_is_not_seen_are_not_plain(text: str) -> None:
    assert not is_plain(text)
    assert is_plain("/srv/{a}/b{ {c} }} %} #}")
