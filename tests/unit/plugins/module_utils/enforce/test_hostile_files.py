# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations that nobody wanted: a clear error and an untouched file, or our bytes alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ..fakes.fake_mariadb import DROP_IN, MAIN, SERVER_CNF, MariaHost
from ..fakes.fake_postgresql import CONF as POSTGRESQL_CONF
from ..fakes.fake_postgresql import ETC, OURS, FakePostgresql
from ..fakes.fake_proc import ProcHost
from ..fakes.vendor_host import CFG, CONF, with_faircom, with_mssql


class Case(NamedTuple):
    """A host with one server, the file that is spoilt, what is set, and the one file that may be written for
    it; `good`: a line of it that the server takes, `sign`: what starts a comment."""

    layer: Any
    make: Any
    path: str
    instance: str
    settings: dict[str, str]
    written: str
    good: str
    sign: str = "#"


def slow_postgresql() -> FakePostgresql:
    """Return a host whose cluster commits early."""
    host = FakePostgresql()
    host.files[f"{ETC}/conf.d/x.conf"] = ""
    host.state["synchronous_commit"] = "off"
    return host


def slow_mariadb() -> MariaHost:
    """Return a host whose server flushes its log each second."""
    host = MariaHost()
    host.variables["innodb_flush_log_at_trx_commit"] = "2"
    return host


_ON = {"synchronous_commit": "on"}
_EACH = {"innodb_flush_log_at_trx_commit": "1"}
_MSSQL = "[control]\nalternatewritethrough = 0\n"
CASES = {
    "mssql.conf": Case(mssql, with_mssql, CONF, "mssql", {"alternatewritethrough": "1"}, CONF, _MSSQL),
    "ctsrvr.cfg": Case(
        faircom, with_faircom, CFG, "/opt/faircom", {"COMMIT_DELAY": "2"}, CFG, "COMMIT_DELAY 9\n", ";"
    ),
    "postgresql.conf": Case(
        postgresql,
        slow_postgresql,
        POSTGRESQL_CONF,
        "15/main",
        _ON,
        OURS,
        "synchronous_commit = off\ninclude_dir = 'conf.d'\n",
    ),
    "included by postgresql.conf": Case(
        postgresql,
        slow_postgresql,
        f"{ETC}/conf.d/x.conf",
        "15/main",
        _ON,
        OURS,
        "synchronous_commit = off\n",
    ),
    "my.cnf": Case(
        mariadb,
        slow_mariadb,
        MAIN,
        "mariadb",
        _EACH,
        DROP_IN,
        "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n!includedir /etc/mysql/mariadb.conf.d/\n",
    ),
    "included by my.cnf": Case(
        mariadb,
        slow_mariadb,
        SERVER_CNF,
        "mariadb",
        _EACH,
        DROP_IN,
        "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n",
    ),
}
case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def plan(case: Case, host: ProcHost) -> Any:
    """Return the work for the one server."""
    return case.layer.plan(host, targets(case))


def targets(case: Case) -> list[Any]:
    """Return the one target."""
    return [case.layer.target_of({"instance": case.instance, "settings": case.settings})]


@case
@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ("\ufeff{}", "byte order mark"),
        ("{}# a\0b\n", "NUL"),
        ("\udcff\udcfea\0=\0", "NUL"),
        ("{}" + "#" * 10 * 2**20, "expected at most 1048576"),
    ],
    ids=["byte order mark", "NUL", "UTF-16", "10 MB"],
)
def test_what_no_server_reads_is_an_error_and_stays(case: Case, spoilt: str, message: str) -> None:
    host = case.make()
    text = spoilt.replace("#", case.sign).format(case.good)
    host.files[case.path] = text
    with pytest.raises(ChangeFailed) as failed:
        plan(case, host)
    said = str(failed.value)
    assert message in said
    assert "expected" in said
    assert len(said) < 1000
    assert host.mutations == []
    assert host.files[case.path] == text


@case
def test_line_ends_of_another_system_and_bytes_that_are_no_text_stay(case: Case) -> None:
    """All that changes is the line that is ours, or a file of our own."""
    host = case.make()
    text = f"{case.sign} caf\udce9\n{case.good}".replace("\n", "\r\n")
    host.files[case.path] = text
    case.layer.apply(host, plan(case, host), targets(case))
    assert plan(case, host).changes == ()
    if case.path != case.written:
        assert host.files[case.path] == text
        assert host.files[case.written]
    elif case.layer is faircom:
        lines = [line for line in host.read(case.path).split("\n") if "durable.dbhost" not in line]
        assert "\n".join(lines) == text.replace("DELAY 9", "DELAY 2")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "mssql.conf",
            "[control]\nalternatewritethrough = 0\nalternatewritethrough = 1\nwritethrough = 1\nwritethrough = 0\n",
        ),
        ("mssql.conf", "[control]\nalternatewritethrough = 0\n\udcff\n"),
        ("ctsrvr.cfg", "COMMIT_DELAY 9\nSUBSYSTEM EVENT X {\n"),
        ("ctsrvr.cfg", "COMMIT_DELAY 9\n\udcff 1\n"),
        ("postgresql.conf", "synchronous_commit = off\n\udcff\udcfe\n"),
        ("included by postgresql.conf", "synchronous_commit = 'off\n"),
        ("my.cnf", "innodb_flush_log_at_trx_commit = 2\n"),
        ("included by my.cnf", "[mysqld\ninnodb_flush_log_at_trx_commit = 2\n"),
    ],
)
def test_what_its_format_leaves_open_is_an_error_and_stays(name: str, text: str) -> None:
    case = CASES[name]
    host = case.make()
    host.files[case.path] = text
    with pytest.raises(ChangeFailed, match="expected"):
        plan(case, host)
    assert host.mutations == []
    assert host.files[case.path] == text
