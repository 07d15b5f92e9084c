# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of SUSE's packages start a script whose arguments are documented. Rebuilt: neither script is SUSE's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..fakes.fake_firebird import FakeDatabase, FirebirdHost
from ..fakes.fake_mariadb import MariaHost
from ..fakes.fake_postgresql import BIN, DATA, FakePostgresql
from ..fakes.fake_proc import FakeProcess
from .test_next_start import command, is_known, persisted, told

UNIT = "postgresql.service"
SCRIPT = "/usr/share/postgresql/postgresql-script"
SYSCONFIG = "/etc/sysconfig/postgresql"
#: A script that does what the documents say.
TEXT = """\
#!/bin/bash
# Options such as -c fsync=off are for POSTGRES_OPTIONS.
eval DATADIR=${POSTGRES_DATADIR:-~postgres/data}
case $1 in
start) pg_ctl start -s -w -D "$DATADIR" -o "$POSTGRES_OPTIONS" ;;
stop) pg_ctl stop -s -D "$DATADIR" -m fast ;;
esac
"""
PASSWD = "root:x:0:0::/root:/bin/sh\npostgres:x:26:26::/data:/bin/bash\n"
AT = f'POSTGRES_DATADIR="{DATA}"\n'


def suse(sysconfig: str, *argv: str, running: bool = True, text: str = TEXT) -> FakePostgresql:
    """Return a host whose unit starts SUSE's script."""
    host = FakePostgresql(config=f"{DATA}/postgresql.conf", cgroup=f"0::/system.slice/{UNIT}\n")
    host.options = (f"{BIN}/postgres", "-D", DATA, *argv)
    host.end(50)
    host.start(replace(host.main, argv=host.options, environment={"PGDATA": DATA}))
    host.start_server()
    del host.units["postgresql@15-main.service"]
    host.units[UNIT] = {
        "TimeoutStopUSec": "5min",
        "ExecStart": command(SCRIPT, "start"),
        "MainPID": "50",
        "EnvironmentFiles": f"{SYSCONFIG} (ignore_errors=yes)",
    }
    host.files.update({f"/usr/lib/systemd/system/{UNIT}": "", SCRIPT: text, "/etc/passwd": PASSWD})
    if sysconfig:
        host.files[SYSCONFIG] = sysconfig
    if not running:
        host.stop_server()
        host.units[UNIT]["MainPID"] = "0"
    return host


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("sysconfig", "argv", "word"),
    [
        (AT, (), "on"),
        (f'{AT}POSTGRES_OPTIONS="-p 5433"\nPOSTGRES_TIMEOUT="600"\n', ("-p", "5433"), "on"),
        (f'{AT}POSTGRES_OPTIONS="-c fsync=off"\n', ("-c", "fsync=off"), "off"),
        (f"{AT}POSTGRES_OPTIONS='$(cat /etc/more)'\n", (), "unknown"),
    ],
)
def test_suses_script_gives_the_server_what_its_file_names(
    sysconfig: str, argv: tuple[str, ...], word: str, running: bool
) -> None:
    facts = told(suse(sysconfig, *argv, running=running), "postgresql")
    assert facts["settings"]["fsync"]["persisted"] == word, facts
    assert (facts["unit"], facts["managed_by"]) == (UNIT, "systemd")
    assert facts["directories"] == [DATA] or (word, running) == ("unknown", False)


@pytest.mark.parametrize("value", ["~postgres/pg", "~/pg"])
def test_the_home_of_postgres_holds_the_data(value: str) -> None:
    host = suse(f'POSTGRES_DATADIR="{value}"\n', running=False)
    assert persisted(host, "postgresql")["fsync"] == "on"
    del host.files["/etc/passwd"]
    assert persisted(host, "postgresql")["fsync"] == "unknown"


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("script", TEXT.replace("-s -w", "-o -F -s -w")),
        ("script", TEXT.replace("case", "export LD_PRELOAD=libeatmydata.so\ncase")),
        ("script", TEXT.replace("POSTGRES_OPTIONS", "OPTIONS")),
        ("script", None),
        ("ExecStart", command(SCRIPT, "start -o -F")),
        ("ExecStart", command("/opt/postgresql-script", "start")),
        ("Environment", "LD_PRELOAD=/usr/lib64/libeatmydata.so"),
        ("NeedDaemonReload", "yes"),
    ],
)
def test_a_changed_script_is_unknown(change: str, value: str | None, running: bool) -> None:
    host = suse(AT, running=running)
    if change != "script":
        host.units[UNIT][change] = str(value)
    elif value is None:
        del host.files[SCRIPT]
    else:
        host.files[SCRIPT] = value
    assert not is_known(host, "postgresql")


@pytest.mark.parametrize(
    "sysconfig", ['POSTGRES_DATADIR="/data/other"\n', f'{AT}POSTGRES_OPTIONS="-c fsync=off"\n']
)
def test_a_file_that_changed_since_the_start_is_unknown(sysconfig: str) -> None:
    assert persisted(suse(sysconfig), "postgresql")["fsync"] == "unknown"


HELPER = "/usr/libexec/mysql/mysql-systemd-helper"
HELPS = """\
#!/bin/bash
INSTANCE=${2:-$INSTANCE}
config=/etc/my$INSTANCE.cnf
case $1 in
start) exec /usr/sbin/mysqld \\
    --defaults-file="$config" --user=mysql --socket="$socket" ;;
esac
"""
SUSE_ARGV = ("--user=mysql", "--socket=/run/mysql/mysql.sock")
FILE = "/etc/my.cnf"


def helped(*words: str, instance: str = "", running: bool = True) -> MariaHost:
    """Return a host whose unit starts SUSE's helper; `words`: those behind `start`."""
    file = f"/etc/my{instance}.cnf"
    host = MariaHost(argv=(f"--defaults-file={file}", *SUSE_ARGV), running=running)
    host.files.update({HELPER: HELPS, file: "[mysqld]\ninnodb_flush_log_at_trx_commit = 1\n"})
    host.units[host.unit].update(
        ExecStart=command(HELPER, " ".join(("start", *words))),
        MainPID=str(host.process.pid if running else 0),
    )
    return host


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("words", "instance", "environment"),
    [((), "", ""), (("two",), "two", ""), ((), "two", "INSTANCE=two")],
)
def test_suses_helper_has_the_server_read_the_file_of_its_instance(
    words: tuple[str, ...], instance: str, environment: str, running: bool
) -> None:
    host = helped(*words, instance=instance, running=running)
    host.units[host.unit]["Environment"] = environment
    # A file that is read without --defaults-file.
    host.files["/etc/mysql/conf.d/late.cnf"] = "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n"
    assert persisted(host, "mariadb")["innodb_flush_log_at_trx_commit"] == "1"
    host.files[f"/etc/my{instance}.cnf"] = "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n"
    assert persisted(host, "mariadb")["innodb_flush_log_at_trx_commit"] == "2"


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("helper", HELPS.replace("--user=mysql", "--skip-innodb-doublewrite --user=mysql")),
        ("helper", HELPS.replace("--defaults-file", "--defaults-extra-file")),
        ("helper", ""),
        ("ExecStart", command(HELPER, "start a b")),
        ("ExecStart", command(HELPER, "start ../x")),
        ("ExecStart", command(HELPER, "upgrade")),
        ("ExecStart", command("/opt/mysql-systemd-helper", "start")),
        ("Environment", "LD_PRELOAD=libeatmydata.so"),
    ],
)
def test_a_changed_helper_is_unknown(change: str, value: str, running: bool) -> None:
    host = helped(running=running)
    if change == "helper":
        host.files[HELPER] = value
    else:
        host.units[host.unit][change] = value
    assert not is_known(host, "mariadb")


def test_a_server_of_another_file_is_unknown() -> None:
    host = helped("two")
    assert not is_known(host, "mariadb")


def test_a_helper_that_stays_is_the_starter() -> None:
    host = helped()
    host.start(FakeProcess(49, "/usr/bin/bash", ("/bin/bash", HELPER, "start")))
    host.units[host.unit]["MainPID"] = "49"
    host.end(host.process.pid)
    host.start(replace(host.process, ppid=49))
    assert is_known(host, "mariadb")


SYSV = "/etc/init.d/firebird"
#: As the package's script begins and starts the guardian.
STARTS = """\
#!/bin/sh
# FIREBIRD=/srv/other
if [ -r /etc/sysconfig/firebird ]
  then
  . /etc/sysconfig/firebird
fi
FIREBIRD=/etc/firebird
export FIREBIRD
case $1 in
start) startproc -u firebird /usr/sbin/fbguard -forever -pidfile "$pidfile" ;;
esac
"""
ETC = "/etc/firebird"


def firebird(home: str = ETC, running: bool = True) -> FirebirdHost:
    """Return a host where systemd's unit of a SysV script starts Firebird; `home` is FIREBIRD of the server."""
    unit = "firebird.service"
    group = f"0::/system.slice/{unit}\n"
    guard = FakeProcess(49, "/usr/sbin/fbguard", cgroup=group)
    server = FakeProcess(50, "/usr/sbin/firebird", ppid=49, environment={"FIREBIRD": home}, cgroup=group)
    host = FirebirdHost(*((guard, server) if running else ()), a=FakeDatabase())
    host.units = {unit: {"ExecStart": command(SYSV, "start"), "Type": "forking", "TimeoutStopUSec": "5min"}}
    host.files.update({SYSV: STARTS, f"{ETC}/firebird.conf": "", f"/run/systemd/generator.late/{unit}": ""})
    return host


@pytest.mark.parametrize("running", [True, False])
def test_a_sysv_script_with_the_name_of_firebird_s_server_is_no_server(running: bool) -> None:
    facts = told(firebird(running=running), "firebird")
    assert "unknown" not in {row["persisted"] for row in facts["settings"].values()}
    assert "start_arguments" not in facts["evidence"]
    assert (facts["name"], facts["unit"]) == ("firebird", "firebird.service")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (SYSV, STARTS.replace(ETC, "/srv/other")),
        (SYSV, STARTS.replace("FIREBIRD=/etc", "FIREBIRD=$HOME/etc")),
        (SYSV, STARTS.replace("export FIREBIRD\n", "")),
        (SYSV, STARTS.replace("export", "export LD_PRELOAD=/usr/lib64/libeatmydata.so\nexport")),
        (SYSV, STARTS.replace("fbguard", "other")),
        (SYSV, f"{STARTS}gfix -write async /data/a.fdb\n"),
        ("/etc/sysconfig/firebird", "export LD_PRELOAD=libeatmydata.so\n"),
        ("/etc/sysconfig/firebird", "FIREBIRD=/srv/other\n"),
    ],
)
def test_a_changed_sysv_script_is_unknown(file: str, text: str) -> None:
    host = firebird()
    host.files[file] = text
    assert not is_known(host, "firebird")


@pytest.mark.parametrize("home", ["$HOME/etc", "/srv/a; FIREBIRD=/srv/b"])
def test_a_directory_that_only_the_shell_determines_is_unknown_before_the_start(home: str) -> None:
    host = firebird(running=False)
    host.files[SYSV] = STARTS.replace(f"FIREBIRD={ETC}", f"FIREBIRD={home}")
    assert not is_known(host, "firebird")
