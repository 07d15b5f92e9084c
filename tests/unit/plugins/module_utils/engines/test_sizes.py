# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Large hostile texts: each parser reads or refuses them in a moment, not in hours."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import ctsrvr
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import conf as firebird_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import databases_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import my_cnf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import conf as mssql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import conf as postgresql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import LIMIT, Malformed
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apcupsd

from ..fakes.texts import Files

PLENTY = LIMIT // 8


def ctsrvr_cfg(text: str) -> object:
    """Read and change."""
    return ctsrvr.set_keyword(text, "A", "2", "n"), ctsrvr.log_places(ctsrvr.parse(text), "/")


def mssql(text: str) -> object:
    """Read."""
    return mssql_conf.trace_flags(mssql_conf.parse(f"[traceflag]\n{text}"))


def firebird(text: str) -> object:
    """Read."""
    return firebird_conf.parse(text)


def databases(text: str) -> object:
    """Read with macros."""
    files = Files({"/f": text})
    return databases_conf.databases(files.read_file, files.names, "/f", {"root": "/"})


def postgresql(text: str) -> object:
    """Read."""
    return postgresql_conf.parse(text)


def mysql(text: str) -> object:
    """Read."""
    return my_cnf.parse(f"[mysqld]\n{text}")


@pytest.mark.parametrize("parser", [ctsrvr_cfg, mssql, firebird, databases, postgresql, mysql, apcupsd.parse])
@pytest.mark.parametrize(
    "text",
    [
        "A 1\n" * (PLENTY // 4),
        "a = 1\n" * (PLENTY // 6),
        "".join(f"a = {number}\n" for number in range(PLENTY // 10)),
        "a = x" + " " * PLENTY + "y",
        "a" + " " * PLENTY + "\rx",
        "a " + (" " * 80 + "x") * (PLENTY // 81),
        "a = '" + "\\'" * (PLENTY // 2) + "'",
        "a = " + "$(" * (PLENTY // 2),
        "a = " + "$(root)" * (PLENTY // 7),
        "a = " + "b " * (PLENTY // 2),
        "a = '" + "''" * (PLENTY // 2),
        ";SUBSYSTEM A {\n}\n" * (PLENTY // 20),
        ";SUBSYSTEM A {\n" * (PLENTY // 16),
        "a = " + "{" * PLENTY,
        "a = " + '"' * PLENTY,
        "[" * PLENTY,
        "\n" * PLENTY,
    ],
    ids=lambda value: value[:12].encode("unicode_escape").decode() if isinstance(value, str) else None,
)
def test_a_large_text_is_soon_read_or_refused(parser: Callable[[str], object], text: str) -> None:
    try:
        parser(text)
    except Malformed as error:
        assert len(str(error)) < 1000
