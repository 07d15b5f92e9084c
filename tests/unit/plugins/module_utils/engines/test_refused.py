# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a layer would refuse, the facts tell beforehand: a check promises no change that its run does not make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import judge_of
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.restart import Target
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ..fakes import vendor_host
from ..fakes.fake_mariadb import DROP_IN, SERVER_CNF, MariaHost
from ..fakes.fake_postgresql import CONF, ETC, MAIN, OURS, FakePostgresql


class Engine(NamedTuple):
    """A host whose server is set wrongly, the layer that sets it, and how."""

    host: Callable[[], Any]
    layer: Any
    target: Target


def postgresql_host() -> FakePostgresql:
    host = FakePostgresql()
    host.write(CONF, f"fsync = off\n{MAIN}")
    return host


def mariadb_host() -> MariaHost:
    host = MariaHost("10.11.19-MariaDB-0+deb12u1")
    host.files[SERVER_CNF] += "innodb_flush_log_at_trx_commit = 2\n"
    return host


ENGINES = {
    "postgresql": Engine(postgresql_host, postgresql, Target("15/main", {"fsync": "on"})),
    "mariadb": Engine(mariadb_host, mariadb, Target("mariadb", {"innodb_flush_log_at_trx_commit": "1"})),
    "faircom": Engine(vendor_host.with_faircom, faircom, Target("/opt/faircom", {"LOG_WRITETHRU": "on"})),
    "mssql": Engine(
        lambda: vendor_host.with_mssql("[control]\nalternatewritethrough = 0\n"),
        mssql,
        Target("mssql", {"writethrough": "1", "alternatewritethrough": "1"}),
    ),
}


def held(host: Any, engine: str) -> set[tuple[str | None, str | None]]:
    """Return what the facts say that keeps a run from setting what it has to, and what to do about it."""
    (facts,) = Engines(host, (engine,)).instances()
    assert host.mutations == []
    rows = [facts["settings"][name] for name in ENGINES[engine].target.wanted]
    return {
        (judge_of(facts).refusal(row["refused"]), judge_of(facts).fix(row["held"]))
        if row.get("refused")
        else (None, judge_of(facts).fix(row["held"]))
        for row in rows
    }


def linked(path: str) -> Callable[[Any], None]:
    def link(host: Any) -> None:
        host.files["/etc/other.conf"] = host.files.pop(path, "")
        host.links[path] = "/etc/other.conf"

    return link


def owned(path: str) -> Callable[[Any], None]:
    return lambda host: host.uids.update({path: 1000})


#: Before a text of the host that is no keyword.
REPORTED = 'correct what the reason names, then run again. The host reports: "'
LATER = "/etc/mysql/mariadb.conf.d/zzz.cnf"
REFUSED: dict[str, tuple[str, Callable[[Any], None], str, str]] = {
    "PostgreSQL: a file of somebody else's": (
        "postgresql",
        lambda host: host.files.update({OURS: "fsync = off\n"}),
        "observed a file that is not ours",
        f"move {OURS} away",
    ),
    "PostgreSQL: a link": ("postgresql", linked(OURS), "observed a link", f"move {OURS} away"),
    "PostgreSQL: a directory of somebody's": (
        "postgresql",
        owned(f"{ETC}/conf.d"),
        "belongs to user 1000",
        f"{REPORTED}let only root or user",
    ),
    "MariaDB: a link": ("mariadb", linked(DROP_IN), "observed a link", f"move {DROP_IN} away"),
    "MariaDB: a directory of somebody's": (
        "mariadb",
        owned("/etc/mysql/mariadb.conf.d"),
        "user 1000",
        f"{REPORTED}let only root",
    ),
    "MariaDB: a later file": (
        "mariadb",
        lambda host: host.files.update({LATER: "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n"}),
        f"observed 2 from {LATER} line 2; expected 1",
        f"{REPORTED}remove innodb_flush_log_at_trx_commit from {LATER} line 2",
    ),
    "FairCom: a link": (
        "faircom",
        linked(vendor_host.CFG),
        "observed a link",
        f"{REPORTED}put the file itself at",
    ),
    "FairCom: a directory of somebody's": (
        "faircom",
        owned("/opt/faircom/config"),
        "user 1000",
        f"{REPORTED}let only root",
    ),
    "SQL Server: a link": ("mssql", linked(vendor_host.CONF), "observed a link", "put the file at"),
    "SQL Server: a program of somebody's": (
        "mssql",
        owned(vendor_host.TOOL),
        "user 1000",
        f"{REPORTED}chown that to root",
    ),
}


@pytest.mark.parametrize(("engine", "arrange", "why", "fix"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_refused_is_told(
    engine: str, arrange: Callable[[Any], None], why: str, fix: str
) -> None:
    host, layer, target = ENGINES[engine].host(), ENGINES[engine].layer, ENGINES[engine].target
    arrange(host)
    ((said, do),) = held(host, engine)
    assert why in str(said)
    assert str(do).startswith(fix) and ";" not in str(do)
    with pytest.raises(ChangeFailed, match=why):
        layer.plan(host, [target])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_would_not_be_refused_is_held_by_nothing(engine: str) -> None:
    host = ENGINES[engine].host()
    assert held(host, engine) == {(None, None)}
    assert ENGINES[engine].layer.plan(host, [ENGINES[engine].target]).changes


@pytest.mark.parametrize("says", [{"superuser": False}, {}])
def test_a_login_without_rights_sets_nothing(says: dict[str, Any]) -> None:
    host = postgresql_host()
    host.says = says
    ((said, do),) = held(host, "postgresql")
    assert ("is no superuser" in str(said)) == bool(says)
    assert do == ('as a superuser run ALTER ROLE "postgres" SUPERUSER' if says else None)


def test_faircom_without_a_file_has_none_to_be_written() -> None:
    host = vendor_host.with_faircom()
    del host.files[vendor_host.CFG]
    ((said, do),) = held(host, "faircom")
    assert "observed no ctsrvr.cfg" in str(said)
    fix = "create an empty /opt/faircom/config/ctsrvr.cfg, owned by the server's user, then run again"
    assert do == fix


def test_mariadb_s_file_is_not_asked_for_where_nothing_is_wrong() -> None:
    host = MariaHost("10.11.19-MariaDB-0+deb12u1")
    host.files[SERVER_CNF] += "sync_binlog = 1\n"
    linked(DROP_IN)(host)
    (facts,) = Engines(host, ("mariadb",)).instances()
    assert facts["settings"]["sync_binlog"]["held"] is None
