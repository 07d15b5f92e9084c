# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""firebird.conf and databases.conf: values, blocks, macros and includes as Firebird takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import conf as firebird_conf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, render

from ...fakes.texts import HOSTILE, ODD, Files, texts

EXAMPLE = """\
# Firebird configuration
DatabaseAccess = Restrict /srv/firebird; $(dir_sampleDb)   # where databases lie
#MaxUnflushedWrites = 100
maxunflushedwrites = -1
TempDirectories = "/tmp # one"
UseFileSystemCache=true
"""
LINE = st.sampled_from(
    [
        "",
        " \t",
        "# comment",
        ODD,
        "MaxUnflushedWrites = 100",
        "maxUNFLUSHEDwrites=-1",
        "\tMaxUnflushedWrites =  5  # comment",
        'MaxUnflushedWrites = "7"',
        "Other = a { b } = c",
        'Other = "a # b"',
        "Other =",
        "include other.conf",
        "# durable.dbhost: note",
    ]
)


@given(texts(LINE))
def test_every_byte_stays(text: str) -> None:
    assert render(firebird_conf.parse(text)) == text


@given(st.text(st.sampled_from('Key = "value"{}#include $()\n\r\t\udcff')), st.booleans())
def test_any_text_stays_or_is_refused(text: str, blocks: bool) -> None:
    try:
        lines = firebird_conf.parse(text, blocks=blocks)
    except Malformed:
        return
    assert render(lines) == text


def test_example() -> None:
    found = firebird_conf.effective(Files({"/f": EXAMPLE}).read_file, lambda _path: None, "/f").settings
    assert found["maxunflushedwrites"] == ("-1", "/f", 4)
    assert found["tempdirectories"] == ("/tmp # one", "/f", 5)
    assert found["databaseaccess"].value == "Restrict /srv/firebird; $(dir_sampleDb)"
    assert "providers" not in found


def test_line_ends_of_another_system_stay() -> None:
    text = EXAMPLE.replace("\n", "\r\n")
    found = firebird_conf.effective(Files({"/f": text}).read_file, lambda _path: None, "/f").settings
    assert found["usefilesystemcache"] == ("true", "/f", 6)
    assert render(firebird_conf.parse(text)) == text


def test_the_first_of_a_key_counts() -> None:
    text = "A = 1\nMaxUnflushedWrites = 5\nmaxunflushedwrites = 6\n"
    found = firebird_conf.effective(Files({"/f": text}).read_file, lambda _path: None, "/f")
    assert found.settings["maxunflushedwrites"] == ("5", "/f", 2)
    assert found.overridden == {"maxunflushedwrites": (("6", "/f", 3),)}


@pytest.mark.parametrize(
    "line, wanted",
    [
        ('A = "x', "closed on its line"),
        ('A = "x" y', "nothing behind the closing quote"),
        ('A = "x" "y"', "nothing behind the closing quote"),
        ('"A" = x', "'Key = Value'"),
        ("= x", "'Key = Value'"),
        ("A", "'Key = Value'"),
        ("A # = 1", "'Key = Value'"),
        ("{", "'Key = Value'"),
        ("\udcff", "'Key = Value'"),
    ],
)
def test_a_bad_line_is_refused_by_number(line: str, wanted: str) -> None:
    text = f"# first\n{line}\nB = 1\n"
    with pytest.raises(Malformed, match=rf"^/etc/firebird\.conf line 2: observed .*; expected .*{wanted}"):
        firebird_conf.parse(text, "/etc/firebird.conf")


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        firebird_conf.parse(text)


def effective(**files: str) -> list[str]:
    """Return what A is in /f/main.conf with includes, or the files that were read."""
    tree = Files({f"/f/{name.replace('__', '/')}.conf": text for name, text in files.items()})
    return firebird_conf.effective(tree.read_file, tree.names, "/f/main.conf").files


def test_includes_are_read_in_place() -> None:
    assert effective(main="include d/*.conf\ninclude one.conf\n", one="A = 1\n", d__a="", d__b="B = 2\n") == [
        "/f/main.conf",
        "/f/d/a.conf",
        "/f/d/b.conf",
        "/f/one.conf",
    ]
    assert effective(main="INCLUDE\t$(this)/one.conf\ninclude one.conf\n", one="B = 1\n") == [
        "/f/main.conf",
        "/f/one.conf",
    ]
    assert effective(main="include d/[a].c?nf\n", d__a="") == ["/f/main.conf"]
    assert effective(main="include nothing*\n") == ["/f/main.conf"]


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("include nothing.conf\n", r"/f/nothing\.conf is not there"),
        ("A = 1\ninclude */a.conf\n", "line 2: .*files in one directory"),
        ("include $(root)/a.conf\n", r"macros but \$\(dir_conf\) and \$\(this\)"),
        ("include $(dir_conf)/a.conf\n", r"macros but"),
    ],
)
def test_an_include_that_cannot_be_followed_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        effective(main=text)


def test_an_include_may_name_the_directory_of_the_configuration() -> None:
    """As the firebird.conf of SUSE's package does."""
    tree = Files({"/f/main.conf": "include $(dir_conf)/d/*.conf\n", "/etc/d/a.conf": "A = 1\n"})
    macros = {"dir_conf": "/etc", "root": "/usr"}
    assert firebird_conf.effective(tree.read_file, tree.names, "/f/main.conf", macros).files == [
        "/f/main.conf",
        "/etc/d/a.conf",
    ]
    tree = Files({"/f/main.conf": "include $(root)/a.conf\n", "/usr/a.conf": ""})
    with pytest.raises(Malformed, match="macros but"):
        firebird_conf.effective(tree.read_file, tree.names, "/f/main.conf", macros)


def test_what_two_files_of_one_pattern_both_set_is_refused() -> None:
    """Firebird reads them in the order of the directory."""
    with pytest.raises(Malformed, match=r"main\.conf line 2: .*expected a in one of these files alone"):
        effective(main="B = 1\ninclude d/*.conf\n", d__a="A = 1\n", d__b="a = 2\n")
    with pytest.raises(Malformed, match="no known order"):
        effective(main="include d/*.conf\n", d__a="include ../e.conf\n", d__b="A = 2\n", e="A = 1\n")


def test_a_missing_file_and_endless_includes_are_refused() -> None:
    with pytest.raises(Malformed, match="no such file"):
        effective(other="")
    with pytest.raises(Malformed, match="deeper than 64"):
        effective(main="include f0.conf", **{f"f{i}": f"include f{i + 1}.conf" for i in range(70)}, f70="")
    with pytest.raises(Malformed, match="deeper than 64"):
        effective(main="include one.conf\n", one="include main.conf\ninclude main.conf\n")
    with pytest.raises(Malformed, match="more files than 1000"):
        twice = {f"f{i}": f"include f{i + 1}.conf\n" * 2 for i in range(20)}
        effective(main="include f0.conf\n", **twice, f20="")


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("$(dir_sampleDb)/employee.fdb", "/data/employee.fdb"),
        ("$(DIR_SAMPLEDB)/$(this)", "/data//etc/firebird"),
        ("$(this)/x", "/etc/firebird/x"),
        ("/plain", "/plain"),
    ],
)
def test_macros(value: str, wanted: str) -> None:
    assert firebird_conf.resolve(value, {"dir_sampledb": "/data/"}, "/etc/firebird/databases.conf") == wanted


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("$(nonsense)/x", r"observed the macro \$\(nonsense\); expected one of Firebird's"),
        ("$(root)/x", r"directory of \$\(root\) is unknown"),
        ("$(root", "macro that is closed"),
    ],
)
def test_macros_that_stay_unknown(value: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        firebird_conf.resolve(value, {}, "/f")


@pytest.mark.parametrize(
    "words, wanted",
    [("1 true True YES y -3 007", "on"), ("0 000 false No n", "off"), ("x 1x truthy on off ²", "")],
)
def test_booleans(words: str, wanted: str) -> None:
    for word in words.split():
        if wanted:
            assert firebird_conf.boolean(word) == wanted
        else:
            with pytest.raises(ValueError, match="expected true or false"):
                firebird_conf.boolean(word)


def test_numbers() -> None:
    assert [firebird_conf.integer(word) for word in ("-1", "100", "2K", "3m", "1G")] == [
        -1,
        100,
        2048,
        3 << 20,
        1 << 30,
    ]
    for word in ("", "x", "1kb", "1.5", "--1", "²"):
        with pytest.raises(ValueError, match="expected a number"):
            firebird_conf.integer(word)
