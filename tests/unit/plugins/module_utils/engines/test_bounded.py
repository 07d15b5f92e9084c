# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files at paths that somebody else chose: no pipe and no disk that hangs stops the reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import bounded, mariadb_options
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird_setup import read as setup
from ansible_collections.durable.dbhost.plugins.module_utils.engines.textfile import LIMIT
from ansible_collections.durable.dbhost.plugins.module_utils.host import Host, Unobservable

from ..fake_firebird import FirebirdHost
from ..fake_mariadb import MYSQL, MariaHost
from ..fake_postgresql import CONF, DATA, FakePostgresql
from ..fake_proc import FakeProcess, ProcHost
from ..vendor_host import with_faircom, with_mssql
from .test_managers import PATRONI, manager, postgres, with_file


def test_a_file_is_read_as_it_is_and_a_pipe_is_not(tmp_path: Path) -> None:
    path = tmp_path / "-n\n"
    path.write_bytes(b"a\xff\r\nb")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    assert bounded.read(Host(), str(path)) == bounded.read(Host(), f"{tmp_path}/link") == "a\udcff\r\nb"
    assert bounded.read(Host(), f"{tmp_path}/none") is None
    for name in ("pipe", ""):
        with pytest.raises(Unobservable, match="not a regular file"):
            bounded.read(Host(), f"{tmp_path}/{name}")
    path.write_bytes(b"x" * (LIMIT + 9))
    assert len(bounded.read(Host(), str(path)) or "") == LIMIT + 1


def test_names_are_read_as_they_are(tmp_path: Path) -> None:
    for name in ("b", ".a", "c\n\udcff"):
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d" / name).touch()
    (tmp_path / "link").symlink_to("d")
    assert bounded.names(Host(), f"{tmp_path}/link") == Host().names(f"{tmp_path}/d")
    for name in ("none", "d/b"):
        with pytest.raises(Unobservable):
            bounded.names(Host(), f"{tmp_path}/{name}")


def test_patroni_s_configuration_may_be_a_pipe() -> None:
    host = with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml")
    host.pipes.add("/etc/patroni.yml")
    assert manager(host) == (
        "unknown",
        "Patroni runs, and its configuration cannot be read: /etc/patroni.yml: not a regular file",
    )


def test_patroni_s_configuration_may_be_too_long() -> None:
    host = with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml", "x" * 2**21)
    assert manager(host)[0] == "unknown"


@pytest.mark.parametrize("path", ["/srv/my.cnf", "/etc/mysql/x.cnf", "/var/lib/mysql/mysqld-auto.cnf"])
def test_option_files_may_be_pipes(path: str) -> None:
    host = MariaHost(MYSQL, argv=("--defaults-file=/srv/my.cnf",))
    host.files["/srv/my.cnf"] = "!includedir /etc/mysql\n"
    host.files[path] = ""
    host.pipes.add(path)
    (found,) = collect(host, "now")["engines"]
    row = found["settings"]["sync_binlog"]
    assert (row["persisted"], "not a regular file" in row["reason"]) == ("unknown", True)


def test_directories_of_option_files_may_lie_on_a_disk_that_hangs() -> None:
    host = MariaHost()
    host.files["/srv/conf/a.cnf"] = ""
    host.hung = ("/srv/conf",)
    with pytest.raises(Unobservable, match="no answer"):
        mariadb_options.Files(host).names("/srv/conf")


def test_postgresql_s_configuration_may_be_a_pipe() -> None:
    host = FakePostgresql()
    host.pipes.add(CONF)
    (found,) = collect(host, "now")["engines"]
    assert found["settings"]["fsync"]["persisted"] == "unknown"


@pytest.mark.parametrize("where", ["/etc/postgresql/15/main/conf.d", f"{DATA}/pg_tblspc"])
def test_postgresql_s_directories_may_lie_on_a_disk_that_hangs(where: str) -> None:
    host = FakePostgresql()
    names = host.names

    def hang(path: str) -> list[str]:
        assert path != where, "whoever lists it waits for ever"
        return names(path)

    host.hung = (where,)
    host.names = hang  # type: ignore[method-assign]
    (found,) = collect(host, "now")["engines"]
    assert "no answer within 10 s" in str(found["evidence"]) + str(found["settings"])


def test_of_a_container_no_directory_is_listed_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    root = "/proc/60/root"
    host = FirebirdHost()
    host.files[f"{root}/etc/firebird/4.0/firebird.conf"] = "ServerMode = Classic\n"
    host.files[f"{root}/usr/lib/x86_64-linux-gnu/firebird/4.0/x"] = ""
    listed: list[str] = []
    names = host.names
    monkeypatch.setattr(host, "names", lambda path: listed.append(path) or names(path))
    seen = setup(host, root, "/etc/firebird/4.0/firebird.conf")
    assert seen.settings["ServerMode"]["persisted"] == "Classic"
    assert listed == []


def test_firebird_s_directories_may_lie_on_a_disk_that_hangs() -> None:
    host = FirebirdHost()
    host.files["/opt/firebird/firebird.conf"] = "include /srv/conf/*.conf\n"
    host.files["/srv/conf/a.conf"] = ""
    host.hung = ("/srv/conf",)
    assert "no answer" in setup(host, "", "/opt/firebird/firebird.conf").unread["/opt/firebird/firebird.conf"]


def test_option_files_are_never_looked_at_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    host = MariaHost(MYSQL, argv=("--defaults-file=/srv/my.cnf",))
    host.files["/srv/my.cnf"] = ""
    monkeypatch.setattr(host, "mode", lambda path: pytest.fail(f"{path}: its disk may hang"))
    (found,) = collect(host, "now")["engines"]
    assert found["settings"]["sync_binlog"]["persisted"] == "1"


SHADOW = "root:$6$secret:19000:0:99999:7:::\n"


def test_no_report_shows_what_stands_in_a_file_that_is_no_configuration() -> None:
    """Whoever runs a server can name any file, and root reads it."""
    postgresql = FakePostgresql()
    postgresql.files[CONF] = SHADOW
    firebird = FirebirdHost(FakeProcess(50, "/opt/firebird/bin/firebird"))
    firebird.files["/opt/firebird/firebird.conf"] = firebird.files["/opt/firebird/databases.conf"] = SHADOW
    maria = MariaHost()
    maria.files["/etc/mysql/conf.d/x.cnf"] = SHADOW
    faircom = with_faircom(SHADOW)
    mssql = with_mssql(SHADOW)
    for host in (postgresql, firebird, maria, faircom, mssql):
        facts = json.dumps(collect(host, "now"))
        assert "secret" not in facts
        assert "wanted" in facts
