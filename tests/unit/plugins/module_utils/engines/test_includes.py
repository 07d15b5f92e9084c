# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any configuration that is cut up into files that include each other says what it said in one file."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import conf as firebird_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import databases_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import my_cnf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import conf as postgresql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import render

from ..fakes.texts import Files

MAIN = "/etc/x/main.conf"


class Format(NamedTuple):
    """A format: its parser, pieces of it that may be moved to another file, and how that is included."""

    parse: Any
    pieces: tuple[str, ...]
    include: tuple[str, ...]
    said: Any


def postgresql(files: Files) -> Any:
    """Return what counts, and what it beats."""
    found = postgresql_conf.effective(files.read_file, files.names, MAIN, None)
    return values(found.settings), {name: [s.value for s in each] for name, each in found.overridden.items()}


def mysql(files: Files) -> Any:
    """Return what counts, and what it beats."""
    found = my_cnf.effective(files.read_file, files.names, (MAIN,), "mariadb", "10.11.6", "")
    return values(found.settings), {name: [s.value for s in each] for name, each in found.overridden.items()}


def firebird(files: Files) -> Any:
    """Return what counts: the first."""
    return values(firebird_conf.effective(files.read_file, files.names, MAIN).settings)


def databases(files: Files) -> Any:
    """Return every alias with its path and its own settings."""
    found, _files = databases_conf.databases(files.read_file, files.names, MAIN, {})
    return [(one.alias, one.path, values(one.settings)) for one in found]


def values(settings: Any) -> dict[str, str | None]:
    """Return settings without where they stand."""
    return {name: setting.value for name, setting in settings.items()}


FORMATS = {
    "postgresql.conf": Format(
        postgresql_conf.parse,
        ("fsync = on\n", "FSYNC off # x\r\n", "# caf\udce9\n", "a.b = 'it''s'\n", "\n", "fsync = 'on'\n"),
        ("include '{}'\n", "include_if_exists '{}'\r\n", "INCLUDE = '{}' # x\n"),
        postgresql,
    ),
    "my.cnf": Format(
        my_cnf.parse,
        (
            "[mysqld]\nsync_binlog = 1\n",
            "[mariadb]\r\nsync-binlog=0 # caf\udce9\r\n",
            "[client]\nsync_binlog = 7\n",
            "[server]\nskip-sync-binlog\n# x\n",
        ),
        ("!include {}\n", " !include   {}\n"),
        mysql,
    ),
    "firebird.conf": Format(
        firebird_conf.parse,
        ("MaxUnflushedWrites = 1\n", "maxunflushedwrites=2 # x\r\n", "# caf\udce9\n", 'Other = "a # b"\n'),
        ("include {}\n", "include {}\r\n"),
        firebird,
    ),
    "databases.conf": Format(
        databases_conf.parse,
        ("a{n} = /srv/a{n}.fdb\n", "b{n} = /srv/b{n}.fdb\n{{\n\tX = {n}\n}}\n", "# caf\udce9\n"),
        ("include {}\n", "include {}\r\n"),
        databases,
    ),
}


@st.composite
def cut(draw: Any, form: Format) -> tuple[str, Files]:
    """Return a text, and the same cut up into files, up to four deep."""
    files = Files()
    numbers = iter(range(1000))

    def file(path: str, depth: int) -> str:
        """Write one file; return all that it says, in one text."""
        own, whole = "", ""
        for _part in range(draw(st.integers(0, 4))):
            if depth < 4 and draw(st.booleans()):
                name = f"/etc/x/part{next(numbers)}.conf"
                inner = file(name, depth + 1)
                own, whole = own + draw(st.sampled_from(form.include)).format(name), whole + inner
            else:
                piece = draw(st.sampled_from(form.pieces))
                piece = piece.format(n=next(numbers)) if "{n}" in piece else piece
                own, whole = own + piece, whole + piece
        files[path] = own
        return whole

    return file(MAIN, 0), files


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@given(data=st.data())
def test_files_that_include_each_other_say_what_one_file_says(form: Format, data: Any) -> None:
    whole, files = data.draw(cut(form))
    assert form.said(files) == form.said(Files({MAIN: whole}))
    for text in (*files.values(), whole):
        assert render(form.parse(text)) == text
