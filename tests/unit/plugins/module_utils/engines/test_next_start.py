# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server will be at its next start is what its unit then gives it, not what it was given this time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.units import differs, next_arguments, parse

from ..fakes.captured import captured
from ..fakes.fake_mariadb import SERVER_CNF, MariaHost
from ..fakes.fake_postgresql import BIN, DATA, ETC, FakePostgresql
from ..fakes.fake_postgresql import UNIT as UNIT_OF_DEBIAN
from ..fakes.fake_proc import OTHER, FakeProcess, ProcHost
from ..fakes.vendor_host import (
    CFG,
    FAIRCOM,
    FAIRCOM_UNIT,
    MSSQL_UNIT,
    SQLSERVR,
    VendorHost,
    with_faircom,
    with_mssql,
)
from ..fakes.vendor_host import (
    CONF as MSSQL_FILE,
)

CONFIG = f"{DATA}/postgresql.conf"
UNIT = "postgresql-15.service"


def command(program: str, words: str) -> str:
    """Return a command as systemd shows it."""
    return f"{{ path={program} ; argv[]={program} {words} ; ignore_errors=no ; start_time=[n/a] }}"


def told(host: ProcHost, engine: str) -> dict[str, Any]:
    (facts,) = map(causes.of_instance, Engines(host, (engine,)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


def persisted(host: ProcHost, engine: str) -> dict[str, str]:
    return {name: row["persisted"] for name, row in told(host, engine)["settings"].items()}


def is_known(host: ProcHost, engine: str) -> bool:
    """Tell whether all of the next start is known: each setting, and that no undocumented script decides arguments."""
    facts = told(host, engine)
    persist = {row["persisted"] for row in facts["settings"].values()}
    return "unknown" not in persist and "start_arguments" not in facts["evidence"]


def postgresql(*argv: str, shown: str) -> FakePostgresql:
    """Return a cluster of an RPM's unit, which was started with some arguments."""
    host = FakePostgresql(*argv, config=CONFIG, cgroup=f"0::/system.slice/{UNIT}\n")
    host.units = {UNIT: {"TimeoutStopUSec": "1h", "ExecStart": command(f"{BIN}/postgres", shown)}}
    return host


SAME = f"-D {DATA} -c config_file={CONFIG}"


@pytest.mark.parametrize(
    ("argv", "shown", "word"),
    [
        ((), SAME, "on"),
        (("-c", "search_path=a b"), f"{SAME} -c search_path=a b", "on"),
        (("-F",), f"{SAME} -F", "off"),
        # Changed since it began: what else that brings is not looked into.
        ((), f"{SAME} -F", "unknown"),
        (("-F",), SAME, "unknown"),
    ],
)
def test_the_command_of_the_unit_is_what_counts(argv: tuple[str, ...], shown: str, word: str) -> None:
    host = postgresql(*argv, shown=shown)
    seen = told(host, "postgresql")
    assert seen["settings"]["fsync"]["persisted"] == word
    if word == "unknown":
        assert {row["persisted"] for row in seen["settings"].values()} == {"unknown"}
        assert UNIT in seen["settings"]["fsync"]["reason"]
        assert seen["pending_restart"] == []


def test_what_is_in_the_unit_of_another_server_is_not_compared() -> None:
    host = postgresql("-F", shown=SAME)
    host.units[UNIT]["MainPID"] = "49"
    assert persisted(host, "postgresql")["fsync"] == "off"


PG_CTL = "/usr/pgsql-15/bin/pg_ctl"


@pytest.mark.parametrize(
    ("argv", "words", "given", "word"),
    [
        ((), f"start -D {DATA} -s -w -t 300", {}, "on"),
        ((), f"start -D {DATA} -s -o -p 5432 -w -t 300", {}, "on"),
        ((), "start -D ${PGDATA} -s", {"Environment": f"PGDATA={DATA}"}, "on"),
        (("-F",), f"start -D {DATA} -o -F", {}, "off"),
        # What has changed since it began, however it is written.
        ((), f"start -D {DATA} -o -F", {}, "unknown"),
        ((), f"start -D {DATA} -so -p 5432 -F -w", {}, "unknown"),
        ((), f"-D {DATA} --options=-F start", {}, "unknown"),
        ((), f"start -D {DATA} -o $OPTS", {"Environment": "'OPTS=-p 5432 -c fsync=off'"}, "unknown"),
        (("-F",), f"start -D {DATA}", {}, "unknown"),
        ((), "start -D /data/other", {}, "unknown"),
        ((), f"start -D {DATA} -p /tmp/postgres", {}, "unknown"),
        ((), f"start -D {DATA} -o $(cat /etc/x)", {}, "unknown"),
        ((), f"start -D {DATA}", {"Environment": "LD_PRELOAD=/usr/lib/libeatmydata.so"}, "unknown"),
    ],
)
def test_what_a_unit_has_pg_ctl_give_to_the_server_is_what_counts(
    argv: tuple[str, ...], words: str, given: dict[str, str], word: str
) -> None:
    host = postgresql(shown=SAME)
    host.options = (f"{BIN}/postgres", "-D", DATA, *argv)
    host.end(50)
    host.start(replace(host.main, argv=host.options, environment={"PGDATA": DATA}))
    host.units[UNIT].update(given, ExecStart=command(PG_CTL, words), MainPID="50")
    row = told(host, "postgresql")["settings"]["fsync"]
    assert row["persisted"] == word
    assert word != "unknown" or UNIT in str(row["reason"])


@pytest.mark.parametrize(
    ("uid", "states"), [(26, ["running"]), (1000, ["running", "stopped"]), (1500, ["running", "stopped"])]
)
def test_a_server_of_a_person_does_not_hide_a_stopped_service_by_its_configuration(
    uid: int, states: list[str]
) -> None:
    """Anybody can start a server with the configuration of another one. A service's user is the server's own."""
    host = postgresql(shown=f"-D {DATA} -c fsync=off")
    host.stop_server()
    host.files[f"/lib/systemd/system/{UNIT}"] = ""
    group = f"0::/user.slice/user-{uid}.slice/session-1.scope\n"
    argv = (f"{BIN}/postgres", "-D", "/home/eve/pg", "-c", f"config_file={CONFIG}")
    host.start(FakeProcess(60, f"{BIN}/postgres", argv, cwd="/home/eve/pg", cgroup=group, uid=uid))
    found = Engines(host, ("postgresql",)).instances()
    assert [each["state"] for each in found] == states
    assert found[-1]["settings"]["fsync"]["persisted"] == ("off" if len(found) > 1 else "on")


def test_a_stopped_advanced_server_of_edb_is_found() -> None:
    host = postgresql(shown=SAME)
    host.stop_server()
    unit = "edb-as-16.service"
    host.files[f"/usr/lib/systemd/system/{unit}"] = ""
    shown = command("/usr/edb/as16/bin/edb-postgres", f"-D {DATA} -c fsync=off")
    host.units = {unit: {"ExecStart": shown}}
    assert persisted(host, "postgresql")["fsync"] == "off"


@pytest.mark.parametrize(
    ("words", "word"), [("start -o -F", "off"), ("start -s", "on"), ("start -p /x", "unknown")]
)
def test_a_stopped_cluster_is_given_what_pg_ctl_is_given(words: str, word: str) -> None:
    host = postgresql(shown=SAME)
    host.stop_server()
    host.files[f"/lib/systemd/system/{UNIT}"] = ""
    host.units[UNIT].update(ExecStart=command(PG_CTL, f"{words} -D {DATA}"))
    assert persisted(host, "postgresql")["fsync"] == word


@pytest.mark.parametrize("running", [True, False])
def test_what_a_script_gives_to_the_server_is_unknown(running: bool) -> None:
    host = postgresql(shown=SAME)
    host.units[UNIT].update(ExecStart=command("/opt/start.sh", "now"), MainPID="50")
    if not running:
        host.stop_server()
        host.files[f"/lib/systemd/system/{UNIT}"] = ""
        host.units[UNIT].update(ExecStart=command("/opt/start.sh", f"-D {DATA}"))
    facts = told(host, "postgresql")
    if running:
        decides = facts["evidence"]["start_arguments"]
        assert (decides["value"], decides["source"], decides["cause"]) == (
            "unknown",
            "/opt/start.sh",
            "script",
        )
        assert {row["persisted"] for row in facts["settings"].values()} == {"on", "off", "fdatasync"}
    else:
        assert {row["persisted"] for row in facts["settings"].values()} == {"unknown"}
        assert f"{UNIT} starts /opt/start.sh" in str(facts["settings"]["fsync"]["reason"])
        assert facts["settings"]["fsync"]["causes"][0]["cause"] == "undocumented_program"


@pytest.mark.parametrize(("parent", "known"), [("/usr/bin/dash", False), ("/usr/bin/agent", True)])
def test_a_script_that_stays_is_told_from_a_manager(parent: str, known: bool) -> None:
    host = postgresql(shown=SAME)
    host.end(50)
    host.start(FakeProcess(49, parent, cgroup="0::/system.slice/own.service\n"))
    host.start(replace(host.main, ppid=49, cgroup="0::/system.slice/own.service\n"))
    host.units = {"own.service": {"ExecStart": command("/opt/start", "now"), "MainPID": "49"}}
    assert is_known(host, "postgresql") == known


def test_what_starts_a_container_is_no_script_of_the_server() -> None:
    host = postgresql(shown=SAME)
    host.end(50)
    inside = f"0::/system.slice/{UNIT}/libpod-{'a' * 64}/container\n"
    host.start(replace(host.main, namespace=OTHER, pid_namespace=OTHER, cgroup=inside))
    host.files["/proc/50/root/data/pg/postgresql.conf"] = host.files[CONFIG]
    host.units[UNIT].update(ExecStart=command("/usr/bin/podman", "run x"), MainPID="50")
    seen = told(host, "postgresql")
    assert seen["namespace"] == "container"
    assert UNIT not in str(seen["settings"]["fsync"]["reason"])


DEBIAN = "--skip-systemctl-redirect 15-main start"


@pytest.mark.parametrize(
    ("words", "files", "why"),
    [
        (DEBIAN, {}, None),
        (DEBIAN, {"environment": "# ours\nLANG = 'C'\n", "pg_ctl.conf": "pg_ctl_options = '-t 90'\n"}, None),
        (
            DEBIAN,
            {"environment": "LD_PRELOAD = '/usr/lib/x86_64-linux-gnu/libeatmydata.so'\n"},
            "makes fsync do",
        ),
        (DEBIAN, {"pg_ctl.conf": "pg_ctl_options = '-p /tmp/postgres'\n"}, "another program"),
        (DEBIAN, {"pg_ctl.conf": "pg_ctl_options = '-o \"$MORE\"'\n"}, "a shell replaces"),
        (f"{DEBIAN} -o -F", {}, UNIT_OF_DEBIAN),
        (f"{DEBIAN} -- -o -F", {}, UNIT_OF_DEBIAN),
        (f"--bindir=/tmp {DEBIAN}", {}, UNIT_OF_DEBIAN),
        (f"--foreground {DEBIAN}", {}, UNIT_OF_DEBIAN),
    ],
)
def test_what_debians_tools_give_to_the_server(words: str, files: dict[str, str], why: str | None) -> None:
    host = FakePostgresql()
    host.units[UNIT_OF_DEBIAN].update(ExecStart=command("/usr/bin/pg_ctlcluster", words), MainPID="50")
    host.files.update({f"{ETC}/{name}": text for name, text in files.items()})
    row = told(host, "postgresql")["settings"]["fsync"]
    assert row["persisted"] == ("unknown" if why else "on")
    assert (why or "") in str(row["reason"])


@pytest.mark.parametrize("program", ["postgres", "pg_ctl"])
@pytest.mark.parametrize("running", [True, False])
def test_a_unit_that_starts_a_cluster_of_debian_without_its_tools_is_what_counts(
    running: bool, program: str
) -> None:
    """An administrator can replace ExecStart= in a drop-in: then pg_ctl.conf counts no more."""
    host = FakePostgresql("-F")
    host.files[f"{ETC}/pg_ctl.conf"] = "pg_ctl_options = '-o -cwal_sync_method=fsync'\n"
    words = " ".join(host.options[1:])
    if program == "pg_ctl":
        words = f"start -D {DATA} -o {words}"
        host.end(50)
        host.start(replace(host.main, environment={"PGDATA": DATA}))
    host.units = {UNIT_OF_DEBIAN: {"ExecStart": command(f"{BIN}/{program}", words), "MainPID": "50"}}
    host.start_server()
    if not running:
        host.stop_server()
    found = told(host, "postgresql")["settings"]
    assert (found["fsync"]["persisted"], found["wal_sync_method"]["persisted"]) == ("off", "fdatasync")
    where = "its command line" if running else f"ExecStart of {UNIT_OF_DEBIAN}"
    assert found["fsync"]["from"] == found["fsync"]["held"]["parameters"]["source"] == where


@pytest.mark.parametrize("option", ["--options=-F", "--opt=-F", "-so -F", "-o -F", "-soF -o-F"])
def test_options_of_pg_ctl_conf_in_all_its_ways(option: str) -> None:
    host = FakePostgresql()
    host.files[f"{ETC}/pg_ctl.conf"] = f"pg_ctl_options = '{option}'\n"
    assert persisted(host, "postgresql")["fsync"] == "off"


SAFE = "/usr/bin/mysqld_safe"


def safe_host(*argv: str, running: bool = True) -> MariaHost:
    added = (
        "--basedir=/usr",
        "--datadir=/var/lib/mysql",
        "--plugin-dir=/usr/lib/mysql/plugin",
        "--user=mysql",
    )
    host = MariaHost(argv=(*added, *argv, "--pid-file=x.pid", "--port=3306"), running=running)
    host.units[host.unit].update(ExecStart=command(SAFE, ""))
    return host


@pytest.mark.parametrize(
    ("argv", "words", "files", "same"),
    [
        ((), "", {}, True),
        ((), "--nice=5 --timezone=UTC --port=3306", {}, True),
        (("--skip-name-resolve",), "--skip-name-resolve", {}, True),
        ((), "", {SERVER_CNF: "[mysqld_safe]\nnice = 0\nskip_log_error\nsyslog\n[mysqld]\n"}, True),
        ((), "", {SERVER_CNF: "[mysqld_safe]\nmalloc-lib = /usr/lib/libjemalloc.so\n"}, True),
        ((), "--datadir=/var/lib/mysql/", {}, True),
        ((), "--datadir=/data", {}, False),
        ((), "", {SERVER_CNF: "[mysqld_safe]\ndatadir = /data\n"}, False),
        ((), "--skip-innodb-doublewrite", {}, False),
        (("--skip-innodb-doublewrite",), "", {}, False),
        ((), "$MORE", {}, False),
        ((), "--defaults-file=/etc/other.cnf", {"/etc/other.cnf": ""}, False),
        ((), "--ledir=/opt/other", {}, False),
        ((), "--malloc-lib=/usr/lib/x86_64-linux-gnu/libeatmydata.so", {}, False),
        ((), "", {SERVER_CNF: "[mysqld_safe]\nmalloc_lib = /usr/lib/libeatmydata.so\n"}, False),
        ((), "", {SERVER_CNF: "[mysqld]\nmalloc-lib = /usr/lib/libeatmydata.so\n"}, False),
        ((), "", {SERVER_CNF: "[mysqld_safe]\nmysqld-version = debug\n"}, False),
    ],
)
@pytest.mark.parametrize("by", ["unit", "its wrapper"])
def test_what_mysqld_safe_gives_to_the_server(
    by: str, argv: tuple[str, ...], words: str, files: dict[str, str], same: bool
) -> None:
    host = safe_host(*argv)
    host.units[host.unit].update(
        ExecStart=command(SAFE, words), EnvironmentFiles="/etc/default/m (ignore_errors=yes)"
    )
    if by != "unit":
        host.start(FakeProcess(49, "/usr/bin/dash", ("/bin/sh", SAFE), name="mysqld_safe"))
        host.units[host.unit]["MainPID"] = "49"
        host.end(80)
        host.start(replace(host.process, ppid=49))
    host.files.update({"/etc/default/m": "MORE=--sync-binlog=0\n", **files})
    rows = told(host, "mariadb")["settings"]
    assert ("unknown" not in {row["persisted"] for row in rows.values()}) == same, rows
    named = {name for row in rows.values() for name in (host.unit, SERVER_CNF) if name in str(row["reason"])}
    assert same or named


@pytest.mark.parametrize(
    ("words", "given", "same"),
    [
        ("", {}, True),
        ("--skip-innodb-doublewrite", {}, False),
        ("$MORE", {"EnvironmentFiles": "/etc/default/m (ignore_errors=yes)"}, False),
        ("", {"Environment": "LD_PRELOAD=libeatmydata.so"}, False),
        ("", {"Environment": "LD_PRELOAD=/usr/lib64/nosync/nosync.so"}, False),
        ("", {"EnvironmentFiles": "/etc/default/m (ignore_errors=yes)"}, True),
    ],
)
def test_a_stopped_mariadb_is_given_what_mysqld_safe_is_given(
    words: str, given: dict[str, str], same: bool
) -> None:
    host = safe_host(running=False)
    host.files["/etc/default/m"] = "MORE=--sync-binlog=0\n"
    host.units[host.unit].update(given, ExecStart=command(SAFE, words))
    assert is_known(host, "mariadb") == same


#: What Debian 13's mariadb.service has a shell do.
OF_11_8 = parse(captured("systemctl_show_mariadb_11.8.txt"))[0].argv.partition(" ")[2]
OPTIONS = "$MYSQLD_OPTS $_WSREP_NEW_CLUSTER"


@pytest.mark.parametrize(
    ("argv", "words", "given", "same"),
    [
        ((), OF_11_8, {}, True),
        ((), OF_11_8, {"Environment": "MYSQLD_OPTS=--sync-binlog=0"}, False),
        (("--skip-name-resolve",), OF_11_8, {"Environment": "MYSQLD_OPTS=--skip-name-resolve"}, True),
        (("--skip-name-resolve",), OF_11_8, {}, False),
        ((), OF_11_8, {"Environment": "MYSQLD_OPTS=--max-connections=40"}, True),
        (("--max_connections=40",), OF_11_8, {}, True),
        ((), OF_11_8, {"Environment": '"MYSQLD_OPTS=--max-connections=40 --sync-binlog=0"'}, False),
        # Of this one not every release knows the name: a server that does not know it does not start.
        ((), OF_11_8, {"Environment": "MYSQLD_OPTS=--max-other=40"}, False),
        (
            ("--wsrep-new-cluster", "--wsrep_start_position=4f7a9c:12"),
            OF_11_8,
            {"EnvironmentFiles": "/run/mariadb-wsrep-new-cluster (ignore_errors=yes)"},
            True,
        ),
        (("--wsrep-on=1",), OF_11_8, {}, False),
        ((), OF_11_8, {"EnvironmentFiles": "/etc/default/m (ignore_errors=yes)"}, False),
        ((), OF_11_8, {"Environment": "LD_PRELOAD=/usr/lib/libeatmydata.so"}, False),
        ((), OF_11_8, {"Environment": "MYSQL_HOME=/srv/home"}, False),
        ((), OF_11_8, {"NeedDaemonReload": "yes"}, False),
        ((), OF_11_8.replace(OPTIONS, f"--port=3307 {OPTIONS}"), {}, False),
        # Another script, as like as it may be.
        ((), OF_11_8.replace("/usr/sbin/mariadbd", "/usr/sbin/other"), {}, False),
        ((), OF_11_8.replace("exec ", "exec eatmydata "), {}, False),
        ((), OF_11_8.replace("`/usr/bin/galera_recovery`", "`/opt/galera_recovery`"), {}, False),
        ((), OF_11_8.replace(OPTIONS, "$MORE"), {}, False),
        ((), OF_11_8.replace(OPTIONS, "$(cat /etc/options)"), {}, False),
        ((), OF_11_8.replace("set -f; ", "set -f; export LD_PRELOAD=libeatmydata.so; "), {}, False),
        ((), OF_11_8 + "; true", {}, False),
        ((), "-c exec /usr/sbin/mariadbd", {}, False),
    ],
)
def test_what_the_shell_in_the_unit_of_mariadb_gives_to_the_server(
    argv: tuple[str, ...], words: str, given: dict[str, str], same: bool
) -> None:
    host = MariaHost("11.8.9-MariaDB-0+deb13u1", argv=argv)
    host.files["/etc/default/m"] = "MYSQLD_OPTS=--sync-binlog=0\n"
    host.units[host.unit].update(given, ExecStart=command("/bin/sh", words), MainPID="80")
    assert is_known(host, "mariadb") == same


@pytest.mark.parametrize(
    ("words", "given", "same"),
    [
        (OF_11_8, {}, True),
        (OF_11_8, {"Environment": "MYSQLD_OPTS=--sync-binlog=0"}, False),
        (OF_11_8, {"Environment": "LD_PRELOAD=libeatmydata.so"}, False),
        (OF_11_8.replace(OPTIONS, f"--skip-innodb-doublewrite {OPTIONS}"), {}, False),
        ("-c exec /usr/sbin/mariadbd", {}, False),
    ],
)
def test_a_stopped_mariadb_is_given_what_its_shell_is_given(
    words: str, given: dict[str, str], same: bool
) -> None:
    host = MariaHost("11.8.9-MariaDB-0+deb13u1", running=False)
    host.units[host.unit].update(given, ExecStart=command("/bin/sh", words))
    assert is_known(host, "mariadb") == same


def test_a_stopped_mariadb_reads_the_files_that_its_environment_names() -> None:
    host = MariaHost(running=False)
    host.files["/srv/home/my.cnf"] = "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n"
    host.units[host.unit].update(ExecStart=command(host.program, ""), Environment="MYSQL_HOME=/srv/home")
    assert persisted(host, "mariadb")["innodb_flush_log_at_trx_commit"] == "2"


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({}, True),
        ({"Environment": "MYSQLD_OPTS="}, True),
        ({"Environment": "MYSQLD_OPTS=--sync-binlog=0"}, False),
        ({"Environment": "A=b 'MYSQLD_OPTS=--skip-name-resolve --sync-binlog=0' C=d"}, False),
        ({"EnvironmentFiles": "/etc/default/mariadb (ignore_errors=yes)"}, False),
        ({"EnvironmentFiles": "/etc/default/none (ignore_errors=yes)"}, True),
        ({"Environment": "MYSQLD_OPTS=--max-connections=40"}, True),
        ({"NeedDaemonReload": "yes"}, False),
        ({"NeedDaemonReload": "no"}, True),
        ({"Environment": "LD_PRELOAD=/usr/lib/libeatmydata.so"}, False),
    ],
)
def test_variables_of_a_command_are_those_of_the_next_start(given: dict[str, str], same: bool) -> None:
    host = MariaHost()
    shown = command(host.program, "$MYSQLD_OPTS $_WSREP_NEW_CLUSTER $_WSREP_START_POSITION")
    host.files["/etc/default/mariadb"] = "# Ours\nMYSQLD_OPTS='--sync-binlog=0'\n"
    host.units[host.unit].update(ExecStart=shown, **given)
    assert is_known(host, "mariadb") == same


@pytest.mark.parametrize(
    ("manager", "unit", "same"),
    [
        ("LANG=C PATH=/usr/bin", "", True),
        ("LANG=C MYSQLD_OPTS=--sync-binlog=0", "", False),
        ('LANG=C "MYSQLD_OPTS=--skip-name-resolve --sync-binlog=0"', "", False),
        # What the unit says itself goes before.
        ("MYSQLD_OPTS=--sync-binlog=0", "MYSQLD_OPTS=", True),
        ("LD_PRELOAD=/usr/lib/libeatmydata.so", "", False),
        ("MYSQLD_OPTS='", "", False),
    ],
)
def test_what_systemd_itself_hands_on_is_a_part_of_the_next_start(
    manager: str, unit: str, same: bool
) -> None:
    """Set by `systemctl set-environment` since, or by DefaultEnvironment= of system.conf."""
    host = MariaHost()
    shown = command(host.program, "$MYSQLD_OPTS $_WSREP_NEW_CLUSTER")
    host.units[host.unit].update(ExecStart=shown, Environment=unit)
    host.manager = manager
    assert is_known(host, "mariadb") == same


def test_where_systemd_does_not_tell_its_environment_the_next_start_is_unknown() -> None:
    host = MariaHost()
    host.units[host.unit].update(ExecStart=command(host.program, "$MYSQLD_OPTS"))
    host.commands[("systemctl", "show", "--property=Environment")] = Result(1, "", "Failed to connect to bus")
    assert set(persisted(host, "mariadb").values()) == {"unknown"}


def test_what_a_node_of_a_cluster_was_started_with_once_makes_no_difference() -> None:
    host = MariaHost(argv=("--wsrep_start_position=0:1",))
    host.units[host.unit]["ExecStart"] = command(host.program, "$_WSREP_START_POSITION")
    assert is_known(host, "mariadb")
    host.units[host.unit]["ExecStart"] = command(host.program, "")
    assert set(persisted(host, "mariadb").values()) == {"unknown"}


@pytest.mark.parametrize("running", [True, False])
def test_a_trace_flag_in_the_unit_of_sql_server(running: bool) -> None:
    host = with_mssql()
    host.files[f"/lib/systemd/system/{MSSQL_UNIT}"] = ""
    host.units[MSSQL_UNIT]["ExecStart"] = command(SQLSERVR, "-T3979")
    if not running:
        host.end(50)
    assert persisted(host, "mssql")["traceflag3979"] == ("unknown" if running else "on")


@pytest.mark.parametrize(
    "given",
    [
        {"Environment": "MSSQL_DATA_DIR=/data/env MSSQL_MASTER_LOG_FILE=/log/env/master.ldf"},
        {"EnvironmentFiles": "/etc/default/mssql (ignore_errors=no)"},
    ],
)
def test_the_variables_of_a_stopped_sql_server_go_before_its_file(given: dict[str, str]) -> None:
    host = with_mssql()
    host.end(50)
    host.files[f"/lib/systemd/system/{MSSQL_UNIT}"] = ""
    host.files["/etc/default/mssql"] = "MSSQL_DATA_DIR=/data/env\nMSSQL_MASTER_LOG_FILE=/log/env/master.ldf\n"
    host.write(MSSQL_FILE, "[filelocation]\ndefaultdatadir = /data/conf\ndefaultlogdir = /log/conf\n")
    host.units[MSSQL_UNIT].update(given, ExecStart=command(SQLSERVR, ""))
    assert told(host, "mssql")["directories"] == ["/var/opt/mssql", "/data/env", "/log/env", "/log/conf"]


@pytest.mark.parametrize(
    ("began", "unit", "same"),
    [
        ({}, "", True),
        ({"FCSRVR_CFG": CFG}, f"FCSRVR_CFG={CFG}", True),
        ({}, "FCSRVR_CFG=/opt/faircom/other.cfg", False),
        ({"FCSRVR_CFG": CFG}, "", False),
        ({"OTHER": "1"}, "OTHER=2", True),
    ],
)
def test_a_variable_that_names_another_configuration_next_time(
    began: dict[str, str], unit: str, same: bool
) -> None:
    host = with_faircom(environment=began)
    host.units[FAIRCOM_UNIT].update(ExecStart=command(FAIRCOM, ""), Environment=unit)
    assert is_known(host, "faircom") == same


def test_a_variable_names_the_configuration_of_a_stopped_faircom() -> None:
    other = "/opt/faircom/other.cfg"
    host = stopped_faircom("", Environment=f"FCSRVR_CFG={other}")
    host.files[other] = "DELAYED_DURABILITY 5\n"
    assert told(host, "faircom")["config"] == other
    assert persisted(host, "faircom")["DELAYED_DURABILITY"] == "5"


def stopped_faircom(words: str, **given: str) -> VendorHost:
    host = with_faircom()
    host.end(60)
    host.files[f"/lib/systemd/system/{FAIRCOM_UNIT}"] = ""
    unit = {"ExecStart": command(FAIRCOM, words), "WorkingDirectory": "/opt/faircom/server", **given}
    host.units[FAIRCOM_UNIT].update(unit)
    return host


def test_what_the_unit_of_a_stopped_faircom_gives_it_goes_before_its_file() -> None:
    assert persisted(stopped_faircom(""), "faircom")["DELAYED_DURABILITY"] == "0"
    assert persisted(stopped_faircom("DELAYED_DURABILITY 5"), "faircom")["DELAYED_DURABILITY"] == "unknown"
    lost = stopped_faircom("$MORE", EnvironmentFiles="/etc/default/faircom (ignore_errors=no)")
    lost.files["/etc/default/faircom"] = 'MORE="DELAYED_DURABILITY" 5\n'
    assert set(persisted(lost, "faircom").values()) == {"unknown"}


def test_a_stopped_mariadb_is_given_what_a_file_says() -> None:
    host = MariaHost(running=False)
    host.units[host.unit].update(
        ExecStart=command(host.program, "$MYSQLD_OPTS"),
        EnvironmentFiles="/etc/default/mariadb (ignore_errors=yes)",
    )
    assert is_known(host, "mariadb")
    host.files["/etc/default/mariadb"] = "MYSQLD_OPTS=--sync-binlog=0\n"
    assert persisted(host, "mariadb")["sync_binlog"] == "unknown"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "on"),
        ({"Environment": "PG_OPTS=-F"}, "off"),
        ({"Environment": "PG_OPTS=-F", "NeedDaemonReload": "yes"}, "unknown"),
    ],
)
def test_a_stopped_cluster_is_given_what_a_variable_says(given: dict[str, str], word: str) -> None:
    host = postgresql(shown=f"{SAME} $PG_OPTS")
    host.stop_server()
    host.files[f"/lib/systemd/system/{UNIT}"] = ""
    host.units[UNIT].update(given, ExecStart=command(f"{BIN}/postgres", f"-D {DATA} $PG_OPTS"))
    assert persisted(host, "postgresql")["fsync"] == word


def shown(words: str, *lines: str) -> str:
    return "\n".join(["Id=a.service", f"ExecStart={command('/bin/a', words)}", *lines, ""])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (shown("-x $A ${B}/c $$d $C", "Environment=A=1 'B=two three'"), "-x 1 two three/c $d"),
        # As releases without quotes print it.
        (shown("$A", "Environment=A=1 2 B=3"), "1 2"),
        # Files go before it, the last first.
        (
            shown(
                "$A $B",
                "Environment=A=1 B=1",
                "EnvironmentFiles=/e/1 (ignore_errors=no)",
                "EnvironmentFiles=/e/2 (ignore_errors=yes)",
            ),
            "9 2",
        ),
        (shown("$A", "EnvironmentFiles=/e/1 (ignore_errors=no)"), "8"),
        # Only a whole word is a variable without braces.
        (shown("x$A", "Environment=A=1"), "x$A"),
    ],
)
def test_words_of_the_next_start(text: str, words: str) -> None:
    host = ProcHost()
    host.files.update({"/e/1": "B=2\n  A = 8 \n#A=0\n", "/e/2": 'A="9"\nXA=7\nC=`\n'})
    (unit,) = parse(text)
    assert next_arguments(host, unit._replace(manager="PATH=/usr/bin")) == words.split()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (shown("$A", "Environment=A='1"), "not understood"),
        (shown("$A", "EnvironmentFiles=/e/*.conf (ignore_errors=no)"), "not understood"),
        (shown("$A", "EnvironmentFiles=/e/1 (ignore_errors=no)"), "/e/1: what it sets A to"),
        (shown("x", "EnvironmentFiles=/e/2 (ignore_errors=no)"), "makes fsync do nothing"),
        (shown("x", "NeedDaemonReload=yes"), "daemon-reload"),
    ],
)
def test_what_of_the_next_start_cannot_be_told(text: str, why: str) -> None:
    host = ProcHost()
    host.files.update({"/e/1": "A='x' \\\n", "/e/2": "LD_PRELOAD=libeatmydata.so\n"})
    (unit,) = parse(text)
    with pytest.raises(Unobservable, match=why):
        next_arguments(host, unit)
    assert why in str(differs(host, unit, ["a", "x"]))
