# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where instances of each engine are found: those that run, and those that could."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import observe as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import observe as firebird
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Instance
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import observe as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import observe as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Processes

from ..fakes.fake_proc import OTHER, FakeProcess, ProcHost

PG = "/usr/lib/postgresql/15/bin/postgres"
CONTAINER = "50 40 0:99 / / rw - overlay overlay rw\n"
DATA = "/var/lib/postgresql/15/main"


def find(engine: Any, *processes: FakeProcess, files: tuple[str, ...] = ()) -> list[Instance]:
    """Return what an engine's module finds among these processes, on a host with these files."""
    host = ProcHost(*processes)
    host.files.update(dict.fromkeys(files, ""))
    found: list[Instance] = engine.find(host, Processes(host))
    return found


def one(engine: Any, *processes: FakeProcess, files: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """Return name, process ids, configuration and directories of the only instance."""
    (found,) = find(engine, *processes, files=files)
    return found.name, [process.pid for process in found.processes], found.config, found.directories


def why(found: Instance) -> str:
    """Return why an instance's configuration is unknown."""
    return causes.text(dict(found.evidence)["config"].as_dict())


@pytest.mark.parametrize("engine", [mssql, faircom, firebird, postgresql, mariadb])
def test_nothing_is_nothing(engine: Any) -> None:
    assert (
        find(engine, FakeProcess(77, "/usr/bin/python3", (engine.PROGRAMS[0],), name=engine.PROGRAMS[0]))
        == []
    )
    assert engine.installed(ProcHost(), []) == []


@pytest.mark.parametrize("engine", [mssql, faircom, firebird, postgresql, mariadb])
def test_a_process_whose_arguments_do_not_come_is_an_instance_all_the_same(engine: Any) -> None:
    host = ProcHost(
        FakeProcess(77, f"/opt/{engine.PROGRAMS[0]}"), FakeProcess(88, f"/opt/{engine.PROGRAMS[0]}")
    )
    host.deny(77, "cmdline", "environ")
    found = engine.find(host, Processes(host))
    assert ("process 77", "Permission denied" in why(found[0])) == (found[0].name, True)
    assert len(found) == 2
    processes = Processes(host)
    host.end(77)
    assert [instance.processes[0].pid for instance in engine.find(host, processes)] == [88]


@pytest.mark.parametrize(
    ("argv", "environment", "config"),
    [
        (("postgres",), {}, f"{DATA}/postgresql.conf"),
        (("postgres", "-D", "/etc/pg"), {}, "/etc/pg/postgresql.conf"),
        (("postgres", "-D/etc/pg"), {"PGDATA": "/no"}, "/etc/pg/postgresql.conf"),
        (("postgres",), {"PGDATA": "/srv/pg"}, "/srv/pg/postgresql.conf"),
        # Relative to where it was started: that was the data directory as well.
        (("postgres", "-D", "."), {}, f"{DATA}/postgresql.conf"),
        (("postgres", "-D", "/x", "-c", "config_file=/etc/y.conf"), {}, "/etc/y.conf"),
        (("postgres", "-cconfig_file=/etc/y.conf"), {}, "/etc/y.conf"),
        (("postgres", "--config-file=/etc/y.conf"), {}, "/etc/y.conf"),
        (("postgres", "--config_file=/a", "-c", "config_file=/b=c"), {}, "/b=c"),
        (("postgres", "-c", "port=1", "-c"), {}, f"{DATA}/postgresql.conf"),
        (("postgres", "-D"), {}, f"{DATA}/postgresql.conf"),
        (("postgres", "-D", "/a\nb"), {}, "/a\nb/postgresql.conf"),
    ],
)
def test_postgresql(argv: tuple[str, ...], environment: dict[str, str], config: str) -> None:
    main = FakeProcess(50, PG, argv, cwd=DATA, environment=environment)
    writer = FakeProcess(51, PG, ("postgres: walwriter ",), ppid=50, cwd=DATA)
    # The data directory is where it works, wherever -D points.
    assert one(postgresql, main, writer) == (DATA, [50, 51], config, (DATA,))


def test_clusters_of_debian_have_their_names() -> None:
    found = find(
        postgresql,
        *(
            FakeProcess(
                pid, PG, (PG, "-D", f"/d/{name}", "-c", f"config_file=/etc/postgresql/{name}/postgresql.conf")
            )
            for pid, name in ((50, "15/main"), (60, "13/my-db"))
        ),
    )
    assert [instance.name for instance in found] == ["15/main", "13/my-db"]


def test_a_backend_whose_postmaster_is_gone_is_no_cluster() -> None:
    assert find(postgresql, FakeProcess(51, PG, ("postgres: 15/main: walwriter ",), ppid=1)) == []


def test_postgresql_that_could_run() -> None:
    host = ProcHost()
    host.files.update(
        dict.fromkeys(
            [
                "/etc/postgresql/15/main/postgresql.conf",
                "/etc/postgresql/15/my-db/postgresql.conf",
                "/etc/postgresql/15/empty/start.conf",
                # Its package was removed, its configuration was left.
                "/etc/postgresql/13/main/postgresql.conf",
                PG,
            ],
            "",
        )
    )
    names = ["postgresql-14.service", "postgresql.service", "postgresql@15-main.service"]
    found = postgresql.installed(host, names)
    assert [(instance.name, instance.unit) for instance in found] == [
        ("15/main", "postgresql@15-main.service"),
        ("15/my-db", "postgresql@15-my-db.service"),
        ("postgresql-14.service", "postgresql-14.service"),
        ("postgresql.service", "postgresql.service"),
    ]
    # Debian's unit of that name starts nothing itself.
    host.files["/usr/bin/pg_ctlcluster"] = ""
    assert [instance.unit for instance in postgresql.installed(host, names)][-1] == "postgresql-14.service"


@pytest.mark.parametrize(
    ("argv", "cwd", "files", "expected"),
    [
        (
            (),
            "/var/lib/mysql",
            ("/etc/mysql/my.cnf",),
            ("mariadb", [50], "/etc/mysql/my.cnf", ("/var/lib/mysql",)),
        ),
        ((), "/srv/2", ("/etc/my.cnf", "/etc/mysql/my.cnf"), ("/srv/2", [50], "/etc/my.cnf", ("/srv/2",))),
        (("--defaults-file=/srv/my.cnf",), "/srv/2", (), ("/srv/2", [50], "/srv/my.cnf", ("/srv/2",))),
        (("--defaults-extra-file=/srv/my.cnf",), "/srv/2", (), ("/srv/2", [50], "/srv/my.cnf", ("/srv/2",))),
        (("--defaults-file=my.cnf",), "/srv/2", ("/etc/my.cnf",), ("/srv/2", [50], None, ("/srv/2",))),
        ((), "/srv/2", (), ("/srv/2", [50], None, ("/srv/2",))),
    ],
)
def test_mariadb(argv: tuple[str, ...], cwd: str, files: tuple[str, ...], expected: Any) -> None:
    safe = FakeProcess(49, "/usr/bin/dash", ("/bin/sh", "/usr/bin/mysqld_safe"), name="mysqld_safe")
    main = FakeProcess(50, "/usr/sbin/mariadbd", ("mariadbd", *argv), ppid=49, cwd=cwd)
    assert one(mariadb, safe, main, files=files) == expected


def test_mariadb_and_mysql_are_told_apart_only_where_the_program_tells() -> None:
    found = find(mariadb, FakeProcess(50, "/usr/sbin/mariadbd"), FakeProcess(60, "/usr/sbin/mysqld"))
    assert [instance.flavour for instance in found] == ["mariadb", "unknown"]


def test_a_container_s_configuration_is_looked_for_in_the_container() -> None:
    main = FakeProcess(50, "/usr/sbin/mariadbd", cwd="/var/lib/mysql", namespace=OTHER, mountinfo=CONTAINER)
    assert one(mariadb, main, files=("/etc/my.cnf",))[2] is None
    assert one(mariadb, main, files=("/proc/50/root/etc/mysql/my.cnf",))[2] == "/etc/mysql/my.cnf"


def test_mariadb_that_could_run() -> None:
    host = ProcHost()
    host.files["/etc/mysql/my.cnf"] = ""
    # That file comes with a client as well.
    assert mariadb.installed(host, []) == []
    host.files["/usr/sbin/mariadbd"] = ""
    (found,) = mariadb.installed(host, [])
    assert (found.name, found.config, found.unit) == ("mariadb", "/etc/mysql/my.cnf", None)
    assert [i.name for i in mariadb.installed(host, ["mariadb.service"])] == ["mariadb"]
    several = ["mysqld.service", "mysqld@2.service"]
    assert [i.name for i in mariadb.installed(host, several)] == several


def test_the_two_processes_of_sql_server_are_one_instance() -> None:
    parent = FakeProcess(50, "/opt/mssql/bin/sqlservr", environment={"MSSQL_DATA_DIR": "/srv/data"})
    child = FakeProcess(52, "/opt/mssql/bin/sqlservr", ppid=50)
    assert one(mssql, parent, child) == (
        "mssql",
        [50, 52],
        "/var/opt/mssql/mssql.conf",
        ("/var/opt/mssql", "/srv/data"),
    )


@pytest.mark.fact(49)
def test_sql_server_s_environment_names_more_directories() -> None:
    environment = {
        "MSSQL_LOG_DIR": "/srv/log",
        "MSSQL_BACKUP_DIR": "relative",
        "MSSQL_MASTER_DATA_FILE": "/srv/master/master.mdf",
        "MSSQL_MASTER_LOG_FILE": "/srv/master/mastlog.ldf",
        "MSSQL_SA_PASSWORD": "/secret",
    }
    (found,) = find(mssql, FakeProcess(50, "/opt/mssql/bin/sqlservr", environment=environment))
    assert found.directories == ("/var/opt/mssql", "/srv/log", "/srv/master")


def test_sql_server_that_could_run() -> None:
    host = ProcHost()
    host.files["/var/opt/mssql/mssql.conf"] = ""
    assert mssql.installed(host, []) == []
    host.files["/opt/mssql/bin/sqlservr"] = ""
    assert [instance.unit for instance in mssql.installed(host, [])] == [None]
    assert [instance.unit for instance in mssql.installed(host, ["mssql-server.service"])] == [
        "mssql-server.service"
    ]


FAIRCOM = "/opt/faircom/server/faircom"


@pytest.mark.fact(31)
@pytest.mark.parametrize(
    ("argv", "environment", "files", "expected"),
    [
        (
            (),
            {},
            ("/opt/faircom/config/ctsrvr.cfg",),
            ("/opt/faircom", "/opt/faircom/config/ctsrvr.cfg", "/run/here"),
        ),
        ((), {}, ("/run/here/ctsrvr.cfg",), ("/opt/faircom", "/run/here/ctsrvr.cfg", "/run/here")),
        ((), {}, (), ("/opt/faircom", None, "/run/here")),
        (("CTSRVR_CFG", "/etc/a.cfg"), {"FCSRVR_CFG": "/b"}, (), ("/etc/a.cfg", "/etc/a.cfg", "/run/here")),
        (("ctsrvr_cfg", "a.cfg"), {}, (), ("/run/here/a.cfg", "/run/here/a.cfg", "/run/here")),
        ((), {"FCSRVR_CFG": "/b"}, (), ("/b", "/b", "/run/here")),
        (("LOCAL_DIRECTORY", "../data"), {}, (), ("/opt/faircom", None, "/run/data")),
        (("CTSRVR_CFG",), {}, (), ("/opt/faircom", None, "/run/here")),
    ],
)
def test_faircom(argv: Any, environment: dict[str, str], files: tuple[str, ...], expected: Any) -> None:
    main = FakeProcess(50, FAIRCOM, ("./faircom", *argv), cwd="/run/here", environment=environment)
    (found,) = find(faircom, main, files=files)
    name, config, directory = expected
    assert (found.name, found.config, found.directories) == (name, config, (directory,))
    assert found.config or "runs with its defaults" in why(found)


def test_two_faircom_servers_of_one_installation() -> None:
    found = find(
        faircom,
        *(
            FakeProcess(pid, FAIRCOM, ("faircom", "CTSRVR_CFG", f"/etc/{pid}.cfg"), cwd="/x")
            for pid in (50, 60)
        ),
    )
    assert [instance.name for instance in found] == ["/etc/50.cfg", "/etc/60.cfg"]


def test_faircom_in_a_change_of_root() -> None:
    main = FakeProcess(50, f"/jail{FAIRCOM}", cwd="/jail/run", root="/jail")
    files = ("/proc/50/root/opt/faircom/config/ctsrvr.cfg",)
    assert one(faircom, main, files=files) == (
        "/opt/faircom",
        [50],
        "/opt/faircom/config/ctsrvr.cfg",
        ("/run",),
    )


@pytest.mark.parametrize(
    ("exe", "environment", "files", "config"),
    [
        ("/opt/firebird/bin/firebird", {}, ("/opt/firebird/firebird.conf",), "/opt/firebird/firebird.conf"),
        ("/opt/firebird/bin/fbserver", {"FIREBIRD": "/srv/fb/"}, (), "/srv/fb/firebird.conf"),
        ("/usr/sbin/firebird", {}, ("/etc/firebird/3.0/firebird.conf",), "/etc/firebird/3.0/firebird.conf"),
        ("/usr/sbin/firebird", {}, ("/etc/firebird/firebird.conf",), "/etc/firebird/firebird.conf"),
        (
            "/usr/sbin/firebird",
            {},
            ("/etc/firebird/3.0/firebird.conf", "/etc/firebird/4.0/firebird.conf", "/etc/firebird/5.0/x"),
            None,
        ),
        ("/usr/sbin/firebird", {}, (), None),
    ],
)
def test_firebird(exe: str, environment: dict[str, str], files: tuple[str, ...], config: str | None) -> None:
    guard = FakeProcess(49, "/opt/firebird/bin/fbguard")
    (found,) = find(firebird, guard, FakeProcess(50, exe, ppid=49, environment=environment), files=files)
    assert ([process.pid for process in found.processes], found.config) == ([50], config)
    assert config or "expected one" in why(found)


@pytest.mark.parametrize(
    ("exe", "argv"),
    [("/opt/firebird/bin/fb_inet_server", ()), ("/opt/firebird/bin/firebird", ("firebird", "-i"))],
)
def test_a_process_for_each_client_is_one_instance(exe: str, argv: tuple[str, ...]) -> None:
    found = find(firebird, *(FakeProcess(pid, exe, argv) for pid in (50, 60, 70)))
    assert [[process.pid for process in instance.processes] for instance in found] == [[50, 60, 70]]


def test_two_superservers_are_two_instances() -> None:
    found = find(
        firebird,
        FakeProcess(50, "/opt/firebird/bin/firebird"),
        FakeProcess(60, "/opt/firebird/bin/firebird", environment={"FIREBIRD": "/srv/fb"}),
    )
    assert [instance.name for instance in found] == ["firebird", "/srv/fb"]


def test_firebird_that_could_run() -> None:
    host = ProcHost()
    host.files["/etc/firebird/3.0/firebird.conf"] = ""
    assert firebird.installed(host, []) == []
    (found,) = firebird.installed(host, ["firebird3.0.service"])
    assert (found.name, found.config) == ("firebird", "/etc/firebird/3.0/firebird.conf")
    host.files["/usr/sbin/firebird"] = ""
    assert [instance.unit for instance in firebird.installed(host, [])] == [None]


@pytest.mark.parametrize(
    ("engine", "unit", "matches"),
    [
        (mssql, "mssql-server.service", True),
        (mssql, "mssql-conf.service", False),
        (faircom, "faircom-prod.service", True),
        (faircom, "ctreesql.service", True),
        (firebird, "firebird3.0.service", True),
        (postgresql, "postgresql.service", True),
        (postgresql, "postgresql@15-main.service", True),
        (postgresql, "postgresql-15.service", True),
        (postgresql, "postgresql-setup.service", False),
        (postgresql, "postgres_exporter.service", False),
        (mariadb, "mariadb.service", True),
        (mariadb, "mysqld@2.service", True),
        (mariadb, "rh-mariadb105-mariadb.service", True),
        (mariadb, "mysqld_exporter.service", False),
        (mariadb, "mysqlrouter.service", False),
    ],
)
def test_units(engine: Any, unit: str, matches: bool) -> None:
    assert bool(engine.UNITS.fullmatch(unit)) is matches
