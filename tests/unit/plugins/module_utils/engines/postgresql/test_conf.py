# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""postgresql.conf: words, includes and the last word as PostgreSQL takes them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import conf as postgresql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Effective, Malformed, render

from ...fakes.texts import HOSTILE, ODD, Files, texts

MAIN = "/etc/postgresql/15/main/postgresql.conf"
EXAMPLE = """\
# -----------------------------
data_directory = '/var/lib/postgresql/15/main'\t\t# use data in another directory
#fsync = off
shared_buffers = 128MB
Fsync  On
commit_delay 0x10
include_dir = 'conf.d'
"""
LINE = st.sampled_from(
    [
        "",
        " \t",
        "# comment",
        ODD,
        "fsync = on",
        "FSYNC off  # comment",
        "\tfsync='of'",
        "other = 'it''s \\'x\\' # no comment'",
        "a.b = 1",
        "include_if_exists 'x'",
        "# durable.dbhost: a note",
    ]
)


@given(texts(LINE))
def test_every_byte_stays(text: str) -> None:
    assert render(postgresql_conf.parse(text)) == text


@given(st.text(st.sampled_from("fsync.on = 'x\\1'#-+0.5e\n\r\tinclude\udcff")))
def test_any_text_stays_or_is_refused(text: str) -> None:
    try:
        lines = postgresql_conf.parse(text)
    except Malformed:
        return
    assert render(lines) == text


def test_example() -> None:
    lines = postgresql_conf.parse(EXAMPLE)
    assert postgresql_conf.get(lines, "data_directory", "f") == ("/var/lib/postgresql/15/main", "f", 2)
    assert postgresql_conf.get(lines, "fsync", "f") == ("On", "f", 5)
    assert postgresql_conf.get(lines, "commit_delay", "f") == ("0x10", "f", 6)
    assert postgresql_conf.get(lines, "shared_buffers", "f") == ("128MB", "f", 4)


def test_line_ends_of_another_system_stay() -> None:
    text = EXAMPLE.replace("\n", "\r\n")
    assert postgresql_conf.get(postgresql_conf.parse(text), "fsync", "f") == ("On", "f", 5)
    assert render(postgresql_conf.parse(text)) == text


# What postgres 15.18 -C prints for the same lines.
@pytest.mark.parametrize(
    "line, wanted",
    [
        ("a = 'a\\303\\251''b'", "aé'b"),
        ("a = 'x\\ty\\z'", "x\tyz"),
        ("a 'b'", "b"),
        ("a=b#c", "b"),
        ("a = b-c.d:e/f", "b-c.d:e/f"),
        ("a = -1.5e3", "-1.5e3"),
        ("a = .5", ".5"),
        ("a = 10MB", "10MB"),
        ("a = ''", ""),
        ("a = '#'", "#"),
        ("\r a = b \r", "b"),
        ("a = é\udcff", "é\udcff"),
    ],
)
def test_values(line: str, wanted: str) -> None:
    found = postgresql_conf.get(postgresql_conf.parse(line), "a")
    assert found is not None
    assert found.value == wanted


# guc-file.l, the server's own rules: LETTER, LETTER_OR_DIGIT (in a name with a point too) and UNQUOTED_STRING.
@pytest.mark.parametrize(
    "line, name, value, more",
    [
        ("{} = on", "{}", "on", ""),
        ("a{}b = on", "a{}b", "on", f"{string.digits}."),
        ("a = b-{}c", "a", "b-{}c", f"{string.digits}-.:/"),
    ],
)
def test_which_characters_make_words(line: str, name: str, value: str, more: str) -> None:
    def is_taken(character: str) -> bool:
        try:
            found = postgresql_conf.get(postgresql_conf.parse(line.format(character)), name.format(character))
        except Malformed:
            return False
        return found is not None and found.value == value.format(character)

    beyond_ascii = ("\x80", "\u00ff", "\u0100", "\udcff", "\uffff", "\U00010000", "\U0010ffff")
    taken = {character for character in (*map(chr, range(128)), *beyond_ascii) if is_taken(character)}
    assert taken == {*string.ascii_letters, "_", *more, *beyond_ascii}


# postgres 15.18 does not start with any of them.
@pytest.mark.parametrize(
    "line, wanted",
    [
        ("fsync", "'name = value'"),
        ("fsync =", "'name = value'"),
        ("fsync = = on", "'name = value'"),
        ("fsync = on off", "'name = value'"),
        ("fsync on off", "'name = value'"),
        ("a-b = on", "'name = value'"),
        ("1 = on", "'name = value'"),
        ("a = b.c", "'name = value'"),
        ("a = 1.5ms", "'name = value'"),
        ("a = 'x", "quote that is closed"),
        ("a = 'x\\'", "quote that is closed"),
        ("a = x,y", "values that need no quotes"),
        ("a = /srv", "values that need no quotes"),
        ('a = "x"', "values that need no quotes"),
        ("[a]", "values that need no quotes"),
        ("a = 'x\\000y'", "NUL"),
        ("a = b\x0b", "values that need no quotes"),
    ],
)
def test_a_line_that_postgresql_refuses_is_refused_by_number(line: str, wanted: str) -> None:
    text = f"# first\n{line}\nfsync = on\n"
    with pytest.raises(Malformed, match=rf"^/p\.conf line 2: observed .*; expected .*{wanted}.*; fix"):
        postgresql_conf.parse(text, "/p.conf")


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        postgresql_conf.parse(text)


def effective(files: dict[str, str], auto: str | None = "/data/postgresql.auto.conf") -> Effective:
    """Return what counts in files beside the main one; absolute names stay."""
    tree = Files(
        {name if name[0] == "/" else f"/etc/postgresql/15/main/{name}": text for name, text in files.items()}
    )
    return postgresql_conf.effective(tree.read_file, tree.names, MAIN, auto)


def test_the_last_word_counts_and_what_it_overrides_is_named() -> None:
    found = effective(
        {
            "postgresql.conf": "fsync = on\ninclude_dir 'conf.d'\nwal_level = minimal\nInclude '/srv/x'\n",
            "conf.d/99-x.conf": "FSYNC = off\n",
            "conf.d/10-a.conf": "fsync = on\ninclude_if_exists '../gone.conf'\ninclude 'below/y'\n",
            "conf.d/below/y": "full_page_writes = off\n",
            "conf.d/.hidden.conf": "fsync = x\n",
            "conf.d/.conf": "fsync = x\n",
            "conf.d/backup.conf~": "fsync = x\n",
            "/srv/x": "wal_level = replica\n",
            "/data/postgresql.auto.conf": "# not by hand\nwal_level = 'logical'\n",
        }
    )
    base = "/etc/postgresql/15/main"
    assert found.files == [
        MAIN,
        f"{base}/conf.d/10-a.conf",
        f"{base}/conf.d/below/y",
        f"{base}/conf.d/99-x.conf",
        "/srv/x",
        "/data/postgresql.auto.conf",
    ]
    assert found.settings == {
        "fsync": ("off", f"{base}/conf.d/99-x.conf", 1),
        "full_page_writes": ("off", f"{base}/conf.d/below/y", 1),
        "wal_level": ("logical", "/data/postgresql.auto.conf", 2),
    }
    assert found.overridden["fsync"] == (("on", MAIN, 1), ("on", f"{base}/conf.d/10-a.conf", 1))
    assert [setting.value for setting in found.overridden["wal_level"]] == ["minimal", "replica"]


def test_names_are_sorted_by_bytes() -> None:
    names = ["a.conf", "B.conf", "é.conf", "\udcff.conf", "😀.conf", "10.conf", "9.conf"]
    found = effective(
        {"postgresql.conf": "include_dir d\n", **{f"d/{name}": "a = 1\n" for name in names}}, None
    )
    assert [path.rpartition("/")[2] for path in found.files[1:]] == [
        "10.conf",
        "9.conf",
        "B.conf",
        "a.conf",
        "é.conf",
        "😀.conf",
        "\udcff.conf",
    ]


def test_no_auto_conf() -> None:
    assert effective({"postgresql.conf": ""}).files == [MAIN]
    assert effective({"postgresql.conf": ""}, None).files == [MAIN]


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("include 'gone'\n", "/etc/postgresql/15/main/gone: observed no such file"),
        ("\ninclude_dir 'gone'\n", r"postgresql\.conf line 2: observed .*/gone is not"),
        ("include ''\n", "the name of a file or directory"),
        ("include_dir ' '\n", "the name of a file or directory"),
        ("include 'postgresql.conf'\n", "another file than this one"),
        ("include_if_exists '../main/postgresql.conf'\n", "another file than this one"),
        ("include other\n", "deeper than 10"),
    ],
)
def test_includes_that_keep_postgresql_from_starting(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        effective({"postgresql.conf": text, "other": "include 'postgresql.conf'"})


def test_ten_levels_are_read_and_no_more() -> None:
    deep = {f"f{i}": f"include f{i + 1}" for i in range(1, 10)}
    assert len(effective({"postgresql.conf": "include f1", **deep, "f10": ""}).files) == 11
    with pytest.raises(Malformed, match="deeper than 10"):
        effective({"postgresql.conf": "include f1", **deep, "f10": "include f11", "f11": ""})


def test_a_flood_of_includes_is_refused() -> None:
    fan = {f"f{i}": f"include f{i + 1}\n" * 9 for i in range(1, 10)}
    with pytest.raises(Malformed, match="more files than 1000"):
        effective({"postgresql.conf": "include f1\n", **fan, "f10": ""})


def test_a_broken_included_file_is_named() -> None:
    with pytest.raises(Malformed, match=r"^/etc/postgresql/15/main/conf\.d/a\.conf line 2: observed 'fsync'"):
        effective({"postgresql.conf": "include_dir 'conf.d'", "conf.d/a.conf": "\nfsync\n"})


@pytest.mark.parametrize(
    "words, wanted",
    [("on ON true TR t yes ye Y 1", "on"), ("off of false F no n 0", "off"), ("o onn offf 2 x -1 ja ¹", "")],
)
def test_booleans(words: str, wanted: str) -> None:
    for word in words.split():
        if wanted:
            assert postgresql_conf.boolean(word) == wanted
        else:
            with pytest.raises(ValueError, match="expected on or off"):
                postgresql_conf.boolean(word)
    with pytest.raises(ValueError):
        postgresql_conf.boolean("")


SYNC = ("local", "remote_write", "remote_apply", "on", "off")


@pytest.mark.parametrize(
    "word, wanted",
    [("ON", "on"), ("true", "on"), ("1", "on"), ("No", "off"), ("Remote_Apply", "remote_apply")],
)
def test_choices(word: str, wanted: str) -> None:
    assert postgresql_conf.choice(word, SYNC) == wanted


@pytest.mark.parametrize("word", ["t", "", "remote", "remote_apply ", "2"])
def test_choices_take_no_beginnings(word: str) -> None:
    with pytest.raises(ValueError, match="expected one of local, remote_write"):
        postgresql_conf.choice(word, SYNC)
    with pytest.raises(ValueError):
        postgresql_conf.choice("1", ["fdatasync", "fsync"])
