# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""databases.conf: every alias with its path and its own settings, or the reason why not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import databases_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.databases_conf import Database
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, render

from ...fakes.texts import HOSTILE, ODD, Files, texts

EXAMPLE = """\
# Example Database:
employee.fdb = $(dir_sampleDb)/employee.fdb
Employee = $(dir_sampleDb)/employee.fdb

security.db = $(dir_secDb)/security3.fdb
{
\tRemoteAccess = false
\tDefaultDbCachePages = 50  # few
}
live = /srv/live.fdb {
  MaxUnflushedWrites = 100
}
"""
MACROS = {"dir_sampledb": "/data", "dir_secdb": "/sec"}
LINE = st.sampled_from(
    [
        "",
        "# comment",
        ODD,
        'a = "/srv/a b.fdb"',
        "b = c:/x",
        "c=relative",
        "d = /srv/d.fdb\n{\nA = 1\n}",
        "e = /srv/e.fdb {\n\tA = 1\n # {\n}  # closed",
        "f = $(nonsense)",
    ]
)


def read(text: str, **others: str) -> dict[str, Database]:
    """Return {alias: database} of a databases.conf beside others."""
    tree = Files({"/f/databases.conf": text, **{f"/f/{name}.conf": other for name, other in others.items()}})
    found, _files = databases_conf.databases(tree.read_file, tree.names, "/f/databases.conf", MACROS)
    return {database.alias: database for database in found}


@given(texts(LINE))
def test_every_byte_stays(text: str) -> None:
    assert render(databases_conf.parse(text)) == text


def test_example() -> None:
    found = read(EXAMPLE)
    assert {alias: database.path for alias, database in found.items()} == {
        "employee.fdb": "/data/employee.fdb",
        "Employee": "/data/employee.fdb",
        "security.db": "/sec/security3.fdb",
        "live": "/srv/live.fdb",
    }
    assert found["security.db"].settings["defaultdbcachepages"] == ("50", "/f/databases.conf", 8)
    assert found["live"].settings == {"maxunflushedwrites": ("100", "/f/databases.conf", 11)}
    assert found["Employee"].settings == {}
    assert (found["live"].file, found["live"].line) == ("/f/databases.conf", 10)


def test_line_ends_of_another_system() -> None:
    assert read(EXAMPLE.replace("\n", "\r\n"))["live"].path == "/srv/live.fdb"


def test_quotes_and_odd_names() -> None:
    found = read('Bücher = "/srv/b # c.fdb"\n\udcff = /srv/\udcfe.fdb\n')
    assert found["Bücher"].path == "/srv/b # c.fdb"
    assert found["\udcff"].path == "/srv/\udcfe.fdb"


@pytest.mark.parametrize(
    "value, reason",
    [
        ("relative.fdb", "is not absolute"),
        ("", "is not absolute"),
        ("server:/srv/x.fdb", "on another server"),
        ("inet://server/x", "on another server"),
        ("$(dir_udf)/x", "is unknown"),
        ("$(nonsense)/x", "observed the macro"),
        ("/srv\\x.fdb", "takes for a slash"),
    ],
)
def test_a_path_that_is_not_known_has_a_reason(value: str, reason: str) -> None:
    database = read(f"a = {value}\n")["a"]
    assert database.path is None
    assert reason in (database.reason or "")


def test_the_first_setting_of_a_block_counts() -> None:
    assert read("a = /a {\nX = 1\nx = 2\n}\n")["a"].settings["x"].value == "1"


def test_included_aliases() -> None:
    found = read("a = /a\ninclude o*.conf\n", other="b = $(this)/b.fdb\n")
    assert found["b"] == Database("b", "/f/b.fdb", {}, "/f/other.conf", 1)


@pytest.mark.parametrize(
    "text, line, wanted",
    [
        ("a = /a\na = /b\n", 2, "each alias once"),
        ("a = /a {\nX = 1\n", 1, "a closing brace"),
        ("a = /a\n}\n", 2, "an opening brace before"),
        ("{\n}\n", 1, "an alias before"),
        ("a = /a\n{\nb {\n}\n}\n", 3, "'Key = Value'"),
        ("a = /a\n{\n{\n}\n}\n", 3, "only settings in the block of line 2"),
        ("a = /a\n{\ninclude b\n}\n", 3, "only settings in the block of line 2"),
        ("a = /a { X = 1 }\n", 1, "brace that opens a block at the end of the line"),
        ("a = /a }\n", 1, "brace that opens"),
        ("a\n", 1, "'Key = Value'"),
        ('a = "/a\n', 1, "closed on its line"),
        # Firebird passes over this block and says nothing.
        ("a = /a\n{ # few\nX = 1\n}\n", 2, "no comment behind an opening brace"),
    ],
)
def test_what_firebird_refuses_is_refused(text: str, line: int, wanted: str) -> None:
    with pytest.raises(
        Malformed, match=rf"^/f/databases\.conf line {line}: observed .*; expected .*{wanted}"
    ):
        read(text)


def test_a_second_block_for_one_database_is_refused() -> None:
    with pytest.raises(
        Malformed, match=r"line 5: observed a second block of settings for /a; expected one, that of a"
    ):
        read("a = /a {\nX = 1\n}\n\nb = /a {\n}\n")
    with pytest.raises(Malformed, match="a second block"):
        read("a = /a {\n}\nb = /a\n{\n}\n")


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        read(text)
