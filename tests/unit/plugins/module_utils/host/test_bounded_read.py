# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files at paths that somebody else chose: no pipe and no disk that hangs stops the reader."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.contract import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.setup import read as setup
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Instance
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import options as mariadb_options
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import versions as mariadb_words
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.next_start import NextStart
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounded_read
from ansible_collections.durable.dbhost.plugins.module_utils.host.process_context import Place
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import LIMIT

from ..engines.test_managers import PATRONI, manager, postgres, with_file
from ..fakes.fake_firebird import FirebirdHost
from ..fakes.fake_mariadb import MYSQL, MariaHost
from ..fakes.fake_postgresql import CONF, DATA, FakePostgresql
from ..fakes.fake_proc import FakeProcess, ProcHost
from ..fakes.vendor_host import with_faircom, with_mssql


def test_a_file_is_read_as_it_is_and_a_pipe_is_not(tmp_path: Path) -> None:
    path = tmp_path / "-n\n"
    path.write_bytes(b"a\xff\r\nb")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    assert (
        bounded_read.read(Host(), str(path))
        == bounded_read.read(Host(), f"{tmp_path}/link")
        == "a\udcff\r\nb"
    )
    assert bounded_read.read(Host(), f"{tmp_path}/none") is None
    for name in ("pipe", ""):
        with pytest.raises(Unobservable, match="not a regular file"):
            bounded_read.read(Host(), f"{tmp_path}/{name}")
    path.write_bytes(b"x" * (LIMIT + 9))
    assert len(bounded_read.read(Host(), str(path)) or "") == LIMIT + 1


def test_names_are_read_as_they_are(tmp_path: Path) -> None:
    for name in ("b", ".a", "c\n\udcff"):
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d" / name).touch()
    (tmp_path / "link").symlink_to("d")
    assert bounded_read.names(Host(), f"{tmp_path}/link") == Host().names(f"{tmp_path}/d")
    for name in ("none", "d/b"):
        with pytest.raises(Unobservable):
            bounded_read.names(Host(), f"{tmp_path}/{name}")


def test_patroni_s_configuration_may_be_a_pipe() -> None:
    host = with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml")
    host.pipes.add("/etc/patroni.yml")
    assert manager(host) == (
        "unknown",
        'Patroni runs, and its configuration cannot be read: "/etc/patroni.yml: not a regular file"',
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
    for host in (postgresql, firebird, maria, faircom, with_mssql(SHADOW)):
        facts = json.dumps(collect(host, "now"))
        assert "secret" not in facts
        assert "expected" in facts


#: Engine -> the path of its configuration, one that is unsafe, and a setting of it with that word.
CONFIGURATIONS = {
    "mssql": (mssql.CONFIG, "[control]\nwritethrough = 0\n", "writethrough", "0"),
    "faircom": ("/opt/faircom/config/ctsrvr.cfg", "COMMIT_DELAY 9\n", "COMMIT_DELAY", "9"),
    "firebird": ("/opt/firebird/firebird.conf", "ServerMode = Classic\n", "ServerMode", "Classic"),
    "postgresql": ("/srv/pg/postgresql.conf", "fsync = off\n", "fsync", "off"),
}


def persisted(root: Path, engine: str) -> tuple[str | None, str]:
    """Return what a real container's file says of a setting, and why not."""
    path, _text, name, _word = CONFIGURATIONS[engine]
    place = Place("container", str(root), "/", "", "docker:1", None, {})
    found = Instance(engine, engine, config=path, directories=(os.path.dirname(path),), begins=NextStart(()))
    row = ENGINES[engine].observer.observe(Host(), found, place).settings[name]
    return row["persisted"], str(row["reason"])


def spoilt(root: Path, engine: str, way: str) -> None:
    """Put something else in the place of a container's configuration."""
    path, text, _name, _word = CONFIGURATIONS[engine]
    config = root / path[1:]
    config.parent.mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/own.conf").write_text(text)
    if way == "file":
        config.write_text(text)
    elif way == "pipe":
        os.mkfifo(config)
    elif way == "watchdog":
        os.mknod(root / "etc/watchdog", 0o600 | stat.S_IFCHR, os.makedev(10, 130))
        config.symlink_to("/etc/watchdog")
    elif way == "secret":
        (root / "etc/own.conf").chmod(0o600)
        os.chown(config.parent, 54321, 54321)
        config.symlink_to("/etc/own.conf")
    else:
        config.symlink_to({"link": "/etc/own.conf", "dangling": "/etc/none.conf", "out": str(root)}[way])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others, and make devices")
@pytest.mark.parametrize("engine", CONFIGURATIONS)
@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("file", ""),
        ("link", ""),
        ("dangling", "a link on the way leads to what is not there"),
        ("out", "a link on the way leads to what is not there"),
        ("pipe", "not a regular file"),
        ("watchdog", "not a regular file"),
        ("secret", "chosen by user 54321, who may not read it"),
    ],
)
def test_what_lies_at_the_place_of_a_configuration(tmp_path: Path, engine: str, way: str, why: str) -> None:
    spoilt(tmp_path, engine, way)
    word, reason = persisted(tmp_path, engine)
    assert word == ("unknown" if why else CONFIGURATIONS[engine][3])
    assert why in reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others, and make devices")
@pytest.mark.parametrize("way", ["file", "link", "dangling", "pipe", "watchdog", "secret"])
def test_what_lies_at_the_place_of_option_files(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONFIGURATIONS, "mariadb", ("/srv/db/my.cnf", "[mariadb]\nsync_binlog=7\n", "", ""))
    spoilt(tmp_path, "mariadb", way)
    files = mariadb_options.Files(Host(), str(tmp_path), ("0",))
    begun = mariadb_options.Start(("/srv/db/my.cnf",))
    kept = mariadb_options.persisted(
        ["sync_binlog"], mariadb_words.release("10.11.19-MariaDB"), begun, files, "/srv/db"
    )["sync_binlog"]
    assert kept.word == ("7" if way in ("file", "link") else "unknown")
