# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upsmon.conf: read as NUT's parseconf does, edited in single directives, and no password is told.

The texts are written after upsmon.conf(5) and the source of NUT 2.7 and 2.8.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, Setting
from ansible_collections.durable.dbhost.plugins.module_utils.ups import upsmon_conf

EXAMPLE = """\
# Network UPS Tools: example upsmon configuration
RUN_AS_USER nut
MONITOR rack@localhost 1 upsmon "s3#cret" primary
"""
EXAMPLE = (
    EXAMPLE.replace("s3#cret", "s3\\#cret")
    + """\
MINSUPPLIES 1
SHUTDOWNCMD "/sbin/shutdown -h +0"
NOTIFYCMD /usr/sbin/upssched  # a comment behind it
POLLFREQ 5
POWERDOWNFLAG /etc/killpower
NOTIFYFLAG ONBATT SYSLOG+WALL+EXEC
NOTIFYFLAG ONLINE IGNORE
FINALDELAY 5
"""
)
NOTE = "managed"
MARK = "# durable.dbhost: managed\n"


def words(text: str) -> list[tuple[str, ...]]:
    return [each.words for each in upsmon_conf.parse(text) if each.words]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('this "is also" a line\n', ("this", "is also", "a", "line")),
        ("embedded\\ space\n", ("embedded space",)),
        ("embedded\\\\backslash\n", ("embedded\\backslash",)),
        ('a "quoted \\"word\\""\n', ("a", 'quoted "word"')),
        ('a "with \\# sign"\n', ("a", "with # sign")),
        ("a b#comment\n", ("a", "b")),
        ("a=b\n", ("a", "=", "b")),
        ("a =b\n", ("a", "=", "b")),
        ('a "x=y"\n', ("a", "x=y")),
        ('a mid"dle\n', ("a", 'mid"dle')),
        ('a "b"c\n', ("a", "b", "c")),
        ('a ""\n', ("a", "")),
        ("a b\r\n", ("a", "b")),
        ("a\tb\n", ("a", "b")),
        ("joined \\\nline\n", ("joined", "line")),
        ('a "joined \\\nquote"\n', ("a", "joined quote")),
        ("dro\u00fcpped \udcff\n", ("dropped", "")),
        ("no newline", ("no", "newline")),
        ("# a comment that ends in \\\na b\n", ("a", "b")),
        ("  indented word\n", ("indented", "word")),
        ("a " + "b" * 600 + "\n", ("a", "b" * 512)),
        ("w " * 40 + "\n", ("w",) * 32),
    ],
)
def test_words_are_those_of_parseconf(text: str, wanted: tuple[str, ...]) -> None:
    assert words(text) == [wanted]


@pytest.mark.parametrize(
    "text", ['MONITOR a@b 1 u "topsecret\nx" p\n', 'NOTIFYCMD "a # b"\n', '"topsecret', 'topsecret "\n']
)
def test_a_quote_that_cannot_be_read_is_refused_without_its_content(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        upsmon_conf.parse(text, "/etc/nut/upsmon.conf")
    assert "/etc/nut/upsmon.conf line 1: " in str(refused.value)
    assert "; expected " in str(refused.value)
    assert "topsecret" not in str(refused.value)


def test_rows_are_those_of_the_file() -> None:
    found = [each for each in upsmon_conf.parse("a \\\nb\n\n# c\nd e\n") if each.words]
    assert [each.row for each in found] == [1, 5]


def test_values() -> None:
    lines = upsmon_conf.parse(EXAMPLE)
    assert upsmon_conf.value(lines, "SHUTDOWNCMD") == Setting("/sbin/shutdown -h +0", "upsmon.conf", 5)
    assert upsmon_conf.value(lines, "NOTIFYCMD") == Setting("/usr/sbin/upssched", "upsmon.conf", 6)
    assert upsmon_conf.value(lines, "HOSTSYNC") is None
    assert upsmon_conf.flags(lines, "ONBATT") == ("SYSLOG", "WALL", "EXEC")
    assert upsmon_conf.flags(lines, "ONLINE") == ("IGNORE",)
    assert upsmon_conf.flags(lines, "FSD") == ("SYSLOG", "WALL")


def test_the_last_line_counts_and_capitals_do() -> None:
    lines = upsmon_conf.parse("POLLFREQ 5\nPOLLFREQ 7\npollfreq 9\n# POLLFREQ 11\n")
    assert upsmon_conf.value(lines, "POLLFREQ") == Setting("7", "upsmon.conf", 2)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("primary", "primary"), ("Master", "primary"), ("slave", "secondary"), ("other", "secondary")],
)
def test_monitors_tell_no_password(word: str, kind: str) -> None:
    found = upsmon_conf.monitors(upsmon_conf.parse(f"MONITOR rack@up:3493 2 u topsecret {word}\n"))
    assert found == [upsmon_conf.Monitor("rack@up:3493", 2, "u", kind, word, 1)]
    assert "topsecret" not in repr(found)


@pytest.mark.parametrize(
    "text", ["MONITOR a@b x u topsecret slave\n", "MONITOR a 1 u p slave\nMONITOR a 0 u p slave\n"]
)
def test_monitors_that_cannot_be_told_are_refused(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        upsmon_conf.monitors(upsmon_conf.parse(text))
    assert "topsecret" not in str(refused.value)


def test_what_upsmon_could_not_use() -> None:
    text = "MONITOR a@b 1 topsecret\nPOLLFREQ\nFINALDELY 5\nNOTIFYFLAG ONBATT\ndebug_min 1\nPOLLFREQ 5\n"
    said = upsmon_conf.complaints(upsmon_conf.parse(text))
    assert [line.partition(":")[0] for line in said] == [f"upsmon.conf line {row}" for row in (1, 2, 3, 4)]
    assert not any("topsecret" in line for line in said)
    assert upsmon_conf.complaints(upsmon_conf.parse(EXAMPLE)) == []


@pytest.mark.parametrize(
    ("word", "wanted"), [("5", 5), ("0", 0), ("5s", None), ("-1", None), ("", None), ("\u0665", None)]
)
def test_numbers_are_plain_or_unknown(word: str, wanted: int | None) -> None:
    assert upsmon_conf.number(word) == wanted


def test_a_value_is_replaced_in_place_and_marked() -> None:
    after = upsmon_conf.set_value(EXAMPLE, "NOTIFYCMD", "/usr/local/lib/hook", NOTE)
    line = "NOTIFYCMD /usr/sbin/upssched  # a comment behind it\n"
    assert after == EXAMPLE.replace(line, MARK + line.replace("/usr/sbin/upssched", "/usr/local/lib/hook"))
    assert upsmon_conf.set_value(after, "NOTIFYCMD", "/usr/local/lib/hook", NOTE) == after
    assert upsmon_conf.set_value(after, "NOTIFYCMD", "x", NOTE).count(MARK) == 1


def test_a_value_is_appended_and_taken_away_again() -> None:
    after = upsmon_conf.set_value(EXAMPLE, "HOSTSYNC", "30", NOTE)
    assert after == EXAMPLE + MARK + "HOSTSYNC 30\n"
    assert upsmon_conf.unset(after, "HOSTSYNC") == EXAMPLE


def test_flags_are_set_and_taken_away() -> None:
    after = upsmon_conf.set_flags(EXAMPLE, "ONBATT", ("SYSLOG", "EXEC"), NOTE)
    assert after == EXAMPLE.replace(
        "NOTIFYFLAG ONBATT SYSLOG+WALL+EXEC", MARK + "NOTIFYFLAG ONBATT SYSLOG+EXEC"
    )
    added = upsmon_conf.set_flags(EXAMPLE, "FSD", ("SYSLOG", "WALL", "EXEC"), NOTE)
    assert added == EXAMPLE + MARK + "NOTIFYFLAG FSD SYSLOG+WALL+EXEC\n"
    assert upsmon_conf.unset_flags(added, "FSD") == EXAMPLE


def test_a_monitor_is_set_and_taken_away() -> None:
    row = ("rack@localhost", "1", "upsmon", 'n "e#w\\', "primary")
    after = upsmon_conf.set_monitor(EXAMPLE, row, NOTE)
    assert upsmon_conf.monitor_words(after, "rack@localhost") == row
    before = 'MONITOR rack@localhost 1 upsmon "s3\\#cret" primary\n'
    assert after == EXAMPLE.replace(
        before, MARK + 'MONITOR rack@localhost 1 upsmon "n \\"e\\#w\\\\" primary\n'
    )
    added = upsmon_conf.set_monitor(EXAMPLE, ("b@c", "0", "u", "p", "slave"), NOTE)
    assert upsmon_conf.remove_monitor(added, "b@c") == EXAMPLE


@pytest.mark.parametrize("word", ["a\nb", "a\0b", "\u00fc", "x" * 513])
def test_what_upsmon_would_drop_is_not_written_nor_shown(word: str) -> None:
    with pytest.raises(ValueError) as refused:
        upsmon_conf.encode(word)
    assert word not in str(refused.value)


@given(st.text(alphabet='ab "\\#=\n\r\t@+', max_size=60))
def test_every_text_is_rendered_as_it_was(text: str) -> None:
    try:
        lines = upsmon_conf.parse(text)
    except Malformed:
        return
    assert upsmon_conf.render(lines) == text


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_what_is_encoded_is_read_again(word: str) -> None:
    assert words(f"NOTIFYCMD {upsmon_conf.encode(word)} next\n") == [("NOTIFYCMD", word, "next")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FINALDELAY", ()),
        ("FINALDELAY 5\\", ("FINALDELAY", "5")),
        ("FINALDELAY 5", ("FINALDELAY", "5")),
        ('FINALDELAY ""', ("FINALDELAY", "")),
        ('"FINALDELAY"', ("FINALDELAY",)),
        ("FINALDELAY\n", ("FINALDELAY",)),
    ],
)
def test_what_upsmon_drops_at_the_end_of_a_file(text: str, words: tuple[str, ...]) -> None:
    (line,) = upsmon_conf.parse(text)
    assert line.words == words


@pytest.mark.parametrize("text", ["FINALDELAY \\", "FINALDELAY \\\n", "\\", '"FINALDELAY"\\'])
def test_a_file_that_ends_in_a_backslash_alone_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="goes on behind the file's end"):
        upsmon_conf.parse(text)


#: Pieces of lines that stand where nobody puts them: no white space between words, escaped line ends.
PIECES = ["NOTIFYCMD", "MONITOR", "NOTIFYFLAG", "ONBATT", "EXEC", "rack", "other", "1", "u", "master"]
ODD = st.lists(
    st.sampled_from(
        [*PIECES, '"NOTIFYCMD"', '"a b"', "=", " ", " ", " ", "\t", "\\", "\n", "\n", "\r\n", "#"]
    ),
    max_size=24,
).map("".join)
ROW = ("rack", "1", "u", "p w", "master")
EDITS = {
    "set_value": (lambda text: upsmon_conf.set_value(text, "NOTIFYCMD", "/x", NOTE), ("NOTIFYCMD",)),
    "unset": (lambda text: upsmon_conf.unset(text, "NOTIFYCMD"), ("NOTIFYCMD",)),
    "set_flags": (
        lambda text: upsmon_conf.set_flags(text, "ONBATT", ("EXEC",), NOTE),
        ("NOTIFYFLAG", "ONBATT"),
    ),
    "unset_flags": (lambda text: upsmon_conf.unset_flags(text, "ONBATT"), ("NOTIFYFLAG", "ONBATT")),
    "set_monitor": (lambda text: upsmon_conf.set_monitor(text, ROW, NOTE), ("MONITOR", "rack")),
    "remove_monitor": (lambda text: upsmon_conf.remove_monitor(text, "rack"), ("MONITOR", "rack")),
}


def others(text: str, about: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the directives that an edit is not about. A word alone is none; at a file's end upsmon drops it."""
    needed = {"NOTIFYFLAG": 3, "MONITOR": 6}.get(about[0], 2)
    return [
        found
        for found in words(text)
        if len(found) > 1 and (len(found) < needed or found[: len(about)] != about)
    ]


@pytest.mark.parametrize("edit", EDITS)
@settings(max_examples=200)
@given(ODD)
@example("NOTIFYCMD=a\n")
@example('NOTIFYCMD "a"b\n')
@example("other a\\")
@example("other a\\\n")
@example("MONITOR rack 1 u p master\\")
def test_an_edit_changes_what_it_is_about_and_nothing_else(edit: str, text: str) -> None:
    act, about = EDITS[edit]
    try:
        before = others(text, about)
        after = act(text)
    except Malformed:
        return
    assert others(after, about) == before
    if edit == "set_value":
        assert upsmon_conf.value(upsmon_conf.parse(after), "NOTIFYCMD").value == "/x"
    elif edit == "set_flags":
        assert upsmon_conf.flags(upsmon_conf.parse(after), "ONBATT") == ("EXEC",)
    elif edit == "set_monitor":
        assert upsmon_conf.monitor_words(after, "rack") == ROW
    assert act(after) == after
