# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What persists is what the last component sets at the next start, ours or another, with its file and line."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import (
    causes,
    config_writes,
    next_preloads,
    others,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import JUDGES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import statements
from ansible_collections.durable.dbhost.plugins.module_utils.engines.others import Change, Text
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import statements as pg
from ansible_collections.durable.dbhost.plugins.module_utils.engines.start_commands import Commands
from ansible_collections.durable.dbhost.plugins.module_utils.host import (
    named_by,
    our_paths,
    system_conf,
    tmpfiles_d,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.foreign import Identity
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    Host,
    Result,
    Status,
    Unobservable,
)

from ..fakes.fake_firebird import FakeDatabase, FirebirdHost
from ..fakes.fake_host import FakeHost
from ..fakes.fake_mariadb import DROP_IN, MYSQL, SERVER_CNF, MariaHost
from ..fakes.fake_postgresql import AUTO, ETC, FakePostgresql
from ..fakes.fake_postgresql import CONF as CONF_OF_PG
from ..fakes.fake_postgresql import UNIT as PG_UNIT
from ..fakes.fake_proc import PRIVATE, FakeProcess, ProcHost
from ..fakes.vendor_host import CFG, CONF, MSSQL_UNIT, with_faircom, with_mssql

LOG, BINLOG = "innodb_flush_log_at_trx_commit", "sync_binlog"
OVERRIDE = "/etc/systemd/system/mariadb.service.d/override.conf"
UNIT = "/lib/systemd/system/mariadb.service"
OTHER = "/etc/systemd/system/tune-db.service"
WANTED = "/etc/systemd/system/multi-user.target.wants/tune-db.service"
ZERO = "mariadb -e 'SET GLOBAL sync_binlog=0'"


def told(host: ProcHost, engine: str = "mariadb") -> dict[str, Any]:
    (facts,) = map(causes.of_instance, Engines(host, (engine,)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


def setting(host: ProcHost, name: str, engine: str = "mariadb") -> dict[str, Any]:
    found: dict[str, Any] = told(host, engine)["settings"][name]
    return found


def fix_of(row: Any, engine: str = "mariadb") -> str:
    return str(JUDGES[engine].fix(row["held"]))


def persisted(host: ProcHost, name: str, engine: str = "mariadb") -> str:
    return str(setting(host, name, engine)["persisted"])


def maria(**more: str) -> MariaHost:
    """Return a server with our drop-in, which has each commit flushed, and a unit that waits until it is ready."""
    host = MariaHost(**more)
    host.files[DROP_IN] = f"[mysqld]\nloose_{BINLOG} = 1\nloose_{LOG} = 1\n"
    host.variables[BINLOG] = "1"
    host.files[f"/lib/systemd/system/{host.unit}"] = "[Service]\nType=notify\nExecStart=/usr/sbin/mariadbd\n"
    return host


# init_file


def with_init_file(sql: str, host: MariaHost | None = None) -> MariaHost:
    host = host or maria()
    host.files[SERVER_CNF] += "init_file = /etc/mysql/init.sql\n"
    host.files["/etc/mysql/init.sql"] = sql
    return host


@pytest.mark.fact(81)
@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SET GLOBAL sync_binlog=0;\n", "0"),
        ("set @@global.sync_binlog := 0\n", "0"),
        ("SET GLOBAL max_connections=9, sync_binlog = '0';", "0"),
        ("SET PERSIST sync_binlog = 100;", "100"),
        ("SET GLOBAL sync_binlog=DEFAULT;", "0"),
        ("SET GLOBAL sync_binlog=0; SET GLOBAL sync_binlog=1;", "1"),
        # What cannot be read.
        ("SET GLOBAL sync_binlog=@x;", "unknown"),
        ("SET GLOBAL sync_binlog=(1-1);", "unknown"),
        ("SET GLOBAL sync_binlog=1, GLOBAL sync_binlog=(1-1);", "unknown"),
        ("/*!50000 SET GLOBAL sync_binlog=0 */;", "unknown"),
        ("SET STATEMENT sync_binlog=0 FOR SELECT 1;", "unknown"),
        ("SET PERSIST_ONLY sync_binlog=0;", "unknown"),
        ("CALL app.tune();", "unknown"),
        ("EXECUTE IMMEDIATE 'SET GLOBAL sync_binlog=0';", "unknown"),
        # What changes nothing.
        ("SET GLOBAL sync_binlog=1;", "1"),
        ("SET sync_binlog=0;", "1"),
        ("# SET GLOBAL sync_binlog=0\n-- SET GLOBAL sync_binlog=0\n/* SET GLOBAL sync_binlog=0; */", "1"),
        ("SELECT @@global.sync_binlog;\nSHOW VARIABLES LIKE 'sync_binlog';", "1"),
        ("SET GLOBAL my_sync_binlog=0; SET GLOBAL max_connections=0;", "1"),
        ("", "1"),
    ],
)
def test_statements_of_an_init_file_set_what_persists(sql: str, word: str) -> None:
    found = setting(with_init_file(sql), BINLOG)
    assert found["persisted"] == word
    if word == "1" and "sync_binlog=1" not in sql:
        assert found["from"] == f"{DROP_IN} line 2"


def test_the_line_of_an_init_file_is_named_with_its_fix() -> None:
    found = setting(with_init_file("SELECT 1;\n\nSET GLOBAL sync_binlog=0;\n"), BINLOG)
    assert found["from"] == "/etc/mysql/init.sql line 3 (init_file)"
    assert fix_of(found) == "remove sync_binlog from /etc/mysql/init.sql line 3, then run again"
    assert (found["by"], found["fix"]) == ("init_file", found["held"])
    found = setting(with_init_file("SET GLOBAL sync_binlog=@x;\n"), BINLOG)
    assert "/etc/mysql/init.sql line 1 (init_file) may set sync_binlog" in found["reason"]
    assert fix_of(found) == "remove sync_binlog from /etc/mysql/init.sql line 1, then run again"
    assert (found["by"], found["fix"]) == ("init_file", found["held"])


def test_the_component_that_sets_a_setting_last_is_named() -> None:
    host = maria()
    found = told(host)["settings"]
    assert (found[BINLOG]["by"], "fix" in found[BINLOG]) == ("durable.dbhost", False)
    assert {found[name]["by"] for name in found if name not in (BINLOG, LOG)} == {"server"}
    host.files["/etc/mysql/mariadb.conf.d/zzz.cnf"] = f"[mysqld]\n{LOG} = 2\n"
    assert setting(host, LOG)["by"] == "server"
    host.files[OVERRIDE] = f"[Service]\nExecStartPost=/usr/bin/{ZERO}\n"
    assert setting(host, BINLOG)["by"] == "ExecStartPost of mariadb.service"
    # Nobody knows what sets what cannot be read.
    host.files["/opt/start.sh"] = "#!/bin/sh\n"
    host.files[OVERRIDE] += "ExecStartPost=/opt/start.sh\n"
    host.unreadable["/opt/start.sh"] = "Input/output error"
    found = told(host)["settings"]
    assert (found[BINLOG]["by"], found[LOG]["by"]) == (None, None)


def test_an_init_file_that_cannot_be_read_makes_what_it_may_set_unknown() -> None:
    host = with_init_file("")
    del host.files["/etc/mysql/init.sql"]
    assert persisted(host, BINLOG) == persisted(host, LOG) == "unknown"
    host.files["/etc/mysql/init.sql"] = ""
    host.unreadable["/etc/mysql/init.sql"] = "Permission denied"
    assert "Permission denied" in setting(host, LOG)["reason"]
    fix = "make /etc/mysql/init.sql a file that root can read, or remove init_file from"
    assert fix_of(setting(host, LOG)).startswith(f"{fix} {SERVER_CNF} line ")
    assert persisted(host, "innodb_doublewrite") == "ON"


def test_an_init_file_on_the_command_line_counts() -> None:
    host = MariaHost(argv=("--init-file=/srv/init.sql",))
    host.files["/srv/init.sql"] = f"SET GLOBAL {LOG}=0;"
    assert persisted(host, LOG) == "0"


def test_a_setting_that_a_version_fixes_at_its_start_is_not_set_later() -> None:
    sql = "SET GLOBAL innodb_doublewrite=OFF;"
    assert persisted(with_init_file(sql), "innodb_doublewrite") == "ON"
    assert persisted(with_init_file(sql, MariaHost("11.4.2-MariaDB")), "innodb_doublewrite") == "OFF"


def test_mysql_s_redo_log_can_be_turned_off_by_an_init_file() -> None:
    host = MariaHost(MYSQL)
    host.files[SERVER_CNF] += "init_file = /etc/mysql/init.sql\n"
    host.files["/etc/mysql/init.sql"] = "ALTER INSTANCE DISABLE INNODB REDO_LOG;\n"
    assert persisted(host, "innodb_redo_log_enabled") == "OFF"


def test_what_a_replica_executes_as_it_connects_is_read() -> None:
    host = maria()
    host.files[SERVER_CNF] += 'init_slave = "SET GLOBAL sync_binlog=0"\n'
    assert persisted(host, BINLOG) == "unknown"


@pytest.mark.parametrize("piece", ["/*", "'\\", "`'", '"/*', "/*!", "SET GLOBAL ", "-- "])
def test_an_init_file_of_its_owner_s_making_takes_no_more_time_than_its_length(piece: str) -> None:
    before = time.monotonic()
    assert statements.of_file(piece * 200000, "/x", None) == []
    assert time.monotonic() - before < 10


# Events


class WithEvents(MariaHost):
    """A server with a scheduler, and `count` events that name a setting."""

    def __init__(self, count: str, scheduler: str = "ON", rc: int = 0) -> None:
        super().__init__()
        self.count, self.rc = count, rc
        self.variables["event_scheduler"] = scheduler

    def run(self, argv: list[str], timeout: float = 10) -> Result:
        if "information_schema.EVENTS" in argv[-1]:
            assert f"{LOG}|{BINLOG}" in argv[-1]
            return Result(self.rc, self.count, "ERROR 1577 (HY000): Cannot proceed\n" if self.rc else "")
        return super().run(argv, timeout)


@pytest.mark.parametrize(
    ("host", "word"),
    [
        (WithEvents("1\n"), "unknown"),
        (WithEvents("0\n"), "0"),
        (WithEvents("1\n", "OFF"), "0"),
        (WithEvents("", rc=1), "unknown"),
    ],
)
def test_events_that_name_a_setting_make_it_unknown(host: WithEvents, word: str) -> None:
    assert persisted(host, BINLOG) == word
    if word == "unknown":
        found = setting(host, BINLOG)
        assert "information_schema.EVENTS" in (found["reason"] or "")
        do = "let root's login read" if host.rc else f"drop or alter the events that set {BINLOG} (SELECT "
        assert found["held"] == found["fix"] and fix_of(found).startswith(do)


# Commands of the server's unit


@pytest.mark.fact(81)
@pytest.mark.parametrize(
    ("command", "word"),
    [
        ('/usr/bin/mariadb -e "SET GLOBAL sync_binlog=0"', "0"),
        ("/usr/bin/mysql --execute='SET GLOBAL max_connections=5; SET GLOBAL sync_binlog = 7'", "7"),
        ('+/usr/bin/mariadb -uroot "-eSET GLOBAL sync_binlog=0"', "0"),
        # systemd passes over a failure; a shell, a variable, and another program may do anything.
        ('-/usr/bin/mariadb -e "SET GLOBAL sync_binlog=0"', "unknown"),
        (f'/bin/sh -c "{ZERO}"', "unknown"),
        ('/usr/bin/mariadb -e "SET GLOBAL sync_binlog=$N"', "unknown"),
        ('/opt/tool/sql "SET GLOBAL sync_binlog=0"', "unknown"),
        ("/usr/bin/mariadb -e 'SET GLOBAL sync_binlog=1'", "1"),
        ("-/bin/sh -c \"mariadb -e 'SET GLOBAL sync_binlog = 1'\"", "1"),
        ("/usr/bin/mariadb -h db2.example.org -e 'SET GLOBAL sync_binlog=0'", "1"),
        # Of several commands, and of a variable, the host is unknown.
        ("/usr/bin/mariadb --host=$HOST -e 'SET GLOBAL sync_binlog=0'", "unknown"),
        ("/bin/sh -c \"ls -h x; mariadb -e 'SET GLOBAL sync_binlog=0'\"", "unknown"),
        ("/usr/bin/mariadb -h localhost -e 'SET GLOBAL sync_binlog=0'", "0"),
        ("/usr/bin/mariadb -Ne 'SELECT @@sync_binlog'", "1"),
        ("/bin/sh -c \"mariadb -Ne 'SELECT @@sync_binlog=0'\"", "1"),
        ("/bin/true", "1"),
    ],
)
def test_a_command_after_the_start_sets_what_persists(command: str, word: str) -> None:
    host = maria()
    host.files[OVERRIDE] = f"# Tuning\n[Service]\nExecStartPost={command}\n"
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    if word != "1":
        assert found["from"] == f"{OVERRIDE} line 3 (ExecStartPost of mariadb.service)"
        assert fix_of(found) == f"remove sync_binlog from {OVERRIDE} line 3, then run again"
    assert persisted(host, LOG) == "1"


FIB = "  +-- 10.0.0.0/24 2 0 2\n     |-- 10.0.0.5\n        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("db1", "0"),
        ("DB1.example.org", "0"),
        ("10.0.0.5", "0"),
        ("fd00::5", "0"),
        ("db2", "1"),
        ("db1-replica", "1"),
        ("10.0.0.6", "1"),
        ("10.0.0.255", "1"),
        ("fd00::6", "1"),
    ],
)
@pytest.mark.parametrize("option", ["-h ", "--host="])
def test_a_command_that_is_sent_to_this_host_by_its_name_or_address_sets_what_persists(
    name: str, word: str, option: str
) -> None:
    host = maria()
    host.files["/proc/sys/kernel/hostname"] = "db1.example.com\n"
    host.files["/proc/net/fib_trie"] = FIB
    host.files["/proc/net/if_inet6"] = "fd000000000000000000000000000005 02 40 00 80     eth0\n"
    command = f"/usr/bin/mariadb {option}{name} -e 'SET GLOBAL sync_binlog=0'"
    host.files[OVERRIDE] = f"[Service]\nExecStartPost={command}\n"
    assert persisted(host, BINLOG) == word


def test_without_a_type_that_waits_a_command_may_come_too_early() -> None:
    host = maria()
    host.files[UNIT] = "[Service]\nType=simple\n"
    host.files[OVERRIDE] = f"[Service]\nExecStartPost=/usr/bin/{ZERO}\n"
    assert persisted(host, BINLOG) == "unknown"


def test_an_empty_line_takes_back_the_commands_before_it_and_a_file_hides_its_name() -> None:
    host = maria()
    host.files[UNIT] += f"ExecStartPost=/usr/bin/{ZERO}\n"
    assert persisted(host, BINLOG) == "0"
    host.files[OVERRIDE] = "[Service]\nExecStartPost=\n"
    assert persisted(host, BINLOG) == "1"
    del host.files[OVERRIDE]
    host.files["/etc/systemd/system/mariadb.service"] = "[Service]\nType=notify\n"
    assert persisted(host, BINLOG) == "1"


@pytest.mark.parametrize(
    "directory",
    [
        "/run/systemd/system/mariadb.service.d",
        "/etc/systemd/system/service.d",
        "/usr/lib/systemd/system/mariadb.service.d",
    ],
)
def test_each_directory_of_drop_ins_counts(directory: str) -> None:
    host = maria()
    host.files[f"{directory}/x.conf"] = (
        f"[Service]\nExecStartPost=/usr/bin/mariadb \\\n  -e 'SET GLOBAL {BINLOG}=0'\n"
    )
    assert persisted(host, BINLOG) == "0"


def test_a_continued_line_has_the_number_of_its_first_part() -> None:
    text = "[Service]\nExecStartPost=/a \\\n# no end\n\n b\nExecStop=/c \\\\\nUser=x\n"
    assert list(system_conf.parse(text, "/u")) == [
        ("Service", "ExecStartPost", "/a   b", "/u line 2"),
        ("Service", "ExecStop", "/c \\\\", "/u line 6"),
        ("Service", "User", "x", "/u line 7"),
    ]


def test_scripts_that_a_unit_runs_are_read_and_those_that_they_run() -> None:
    host = maria()
    host.files[UNIT] += "ExecStartPost=/etc/mysql/debian-start\n"
    script = "#!/bin/bash\n# sync_binlog=0 is faster\nsource /usr/share/mysql/inc.sh\nmysqlcheck --all\n"
    host.files["/etc/mysql/debian-start"] = script
    host.files["/usr/share/mysql/inc.sh"] = "check() { mysql -e 'select @@sync_binlog'; }\n"
    assert persisted(host, BINLOG) == "1"
    host.files["/usr/share/mysql/inc.sh"] += f"{ZERO}\n"
    found = setting(host, BINLOG)
    assert found["persisted"] == "unknown"
    assert found["from"].startswith("/usr/share/mysql/inc.sh line 2, run by /etc/mysql/debian-start line 3")
    host.files["/usr/share/mysql/inc.sh"] = ""
    host.files["/etc/mysql/debian-start"] += "echo 'SET GLOBAL sync_binlog=0' | mariadb\n"
    assert "/etc/mysql/debian-start line 5" in setting(host, BINLOG)["from"]


def chain(host: MariaHost, depth: int, directory: str = "/opt") -> None:
    """Plant scripts of which each runs the next; the last one turns flushes off."""
    for number in range(depth - 1):
        host.files[f"{directory}/s{number}"] = f"#!/bin/sh\n{directory}/s{number + 1} start\n"
    host.files[f"{directory}/s{depth - 1}"] = f"#!/bin/sh\n{ZERO}\n"


AT_START = [
    {OVERRIDE: "[Service]\nExecStartPost=/opt/s0\n"},
    {OTHER: "[Service]\nExecStart=/opt/s0\n", WANTED: ""},
    {"/etc/rc.local": "#!/bin/sh\n/opt/s0\n"},
    {"/etc/cron.d/tune": "@reboot root /opt/s0\n"},
    {"/etc/udev/rules.d/70-x.rules": 'SUBSYSTEM=="net", RUN+="/opt/s0"\n'},
]


@pytest.mark.parametrize("files", AT_START)
def test_scripts_below_scripts_count_however_deep(files: dict[str, str]) -> None:
    host = maria()
    host.files.update(files)
    host.modes["/etc/rc.local"] = 0o755
    chain(host, 5)
    found = setting(host, BINLOG)
    assert found["persisted"] == "unknown"
    assert "/opt/s4 line 2, run by /opt/s3 line 2" in found["from"]
    chain(host, 80)
    found = setting(host, BINLOG)
    (path,) = (path for path in files if path != WANTED)
    assert found["persisted"] == "unknown"
    assert f"{path} line " in found["reason"]
    assert "runs more than 64 scripts" in found["reason"]


def test_deep_scripts_of_packages_count_if_they_are_executed() -> None:
    host = maria()
    host.files[OVERRIDE] = "[Service]\nExecStartPost=/usr/share/x/s0\n"
    chain(host, 5, "/usr/share/x")
    assert persisted(host, BINLOG) == "unknown"
    host.files["/usr/share/x/s3"] = "#!/bin/sh\ntest -e /usr/share/x/s4\n"
    assert persisted(host, BINLOG) == "1"


def test_a_long_line_is_read_to_its_end() -> None:
    host = maria()
    host.files[OVERRIDE] = (
        f"[Service]\nExecStartPost=/bin/sh -c '{': ;' * 3000} {ZERO.replace(chr(39), chr(34))}'\n"
    )
    assert persisted(host, BINLOG) == "unknown"


def test_a_command_that_names_too_many_paths_is_unknown() -> None:
    host = maria()
    paths = " ".join(f"/srv/{number}" for number in range(9000))
    host.files[OVERRIDE] = "[Service]\nExecStartPost=/opt/s0\n"
    host.files["/opt/s0"] = f"#!/bin/sh\nrm {paths}\n"
    assert "names more than 8192 paths" in setting(host, BINLOG)["reason"]


def test_too_many_scripts_of_a_login_set_nothing() -> None:
    host = maria()
    host.files["/var/spool/cron/crontabs/joe"] = "@reboot /opt/s0\n"
    host.uids["/var/spool/cron/crontabs/joe"] = 1500
    chain(host, 80)
    host.questions.clear()
    assert persisted(host, BINLOG) == "1"
    assert len({path for _kind, path, *_more in host.questions if path.startswith("/opt/s")}) <= 16


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"/etc/systemd/system/sockets.target.wants/tune-db.socket": ""}, "unknown"),
        ({"/etc/systemd/system/a.service": "[Service]\nSockets=tune-db.socket\n"}, "unknown"),
        ({WANTED: ""}, "1"),
        ({}, "1"),
    ],
)
def test_commands_of_a_socket_that_a_boot_starts_count(files: dict[str, str], word: str) -> None:
    host = maria()
    host.files["/etc/systemd/system/tune-db.socket"] = (
        f"[Socket]\nListenStream=/run/t\nExecStartPost=/bin/{ZERO}\n"
    )
    host.files.update(files)
    assert persisted(host, BINLOG) == word


def test_a_drop_in_of_a_packaged_socket_counts_and_its_other_sections_do_not() -> None:
    host = maria()
    path = "/etc/systemd/system/ssh.socket.d/x.conf"
    host.files[path] = f"[Service]\nExecStartPost=/bin/{ZERO}\n"
    assert persisted(host, BINLOG) == "1"
    host.files[path] = f"[Socket]\nExecStartPost=/bin/{ZERO}\n"
    assert setting(host, BINLOG)["by"] == "ExecStartPost of ssh.socket"


def test_a_unit_on_the_kernel_s_command_line_starts() -> None:
    host = maria()
    host.files[OTHER] = f"[Service]\nExecStart=/usr/bin/{ZERO}\n"
    assert persisted(host, BINLOG) == "1"
    host.files["/proc/cmdline"] = "root=/dev/vda ro systemd.wants=tune-db.service\n"
    assert persisted(host, BINLOG) == "unknown"


def test_a_script_that_cannot_be_read_makes_what_persists_unknown() -> None:
    host = maria()
    host.files[UNIT] += "ExecStartPost=/opt/start.sh\n"
    host.files["/opt/start.sh"] = "#!/bin/sh\n"
    host.unreadable["/opt/start.sh"] = "Input/output error"
    found = setting(host, BINLOG)
    assert found["persisted"] == "unknown"
    assert "/opt/start.sh: Input/output error" in found["reason"]


def test_a_program_is_no_script() -> None:
    host = maria()
    host.files[UNIT] += "ExecStartPost=/usr/bin/tool\n"
    host.files["/usr/bin/tool"] = "\x7fELF\x02 SET GLOBAL sync_binlog=0\n"
    assert persisted(host, BINLOG) == "1"


def test_what_is_no_script_is_not_read_as_one() -> None:
    host = maria()
    host.files[UNIT] += "ExecStartPost=/usr/bin/logger --file-of-log /var/log/db.log $X\n"
    host.files["/var/log/db.log"] = "SET GLOBAL sync_binlog=0\n" * 100000
    assert persisted(host, BINLOG) == "1"
    host.files[UNIT] += "ExecStartPost=/bin/sh -c 'mariadb < /srv/tune'\n"
    host.files["/srv/tune"] = "SET GLOBAL sync_binlog=0\n"
    assert persisted(host, BINLOG) == "unknown"
    host.files["/srv/tune"] = "SELECT 1;\n" * 200000
    assert "/srv/tune, which " in setting(host, BINLOG)["reason"]


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ('Environment="SQL=SET GLOBAL sync_binlog=0"\n', {}),
        ("EnvironmentFile=-/etc/default/db\n", {"/etc/default/db": "SQL='SET GLOBAL sync_binlog=0'\n"}),
    ],
)
def test_a_variable_that_a_command_executes_is_read(lines: str, files: dict[str, str]) -> None:
    host = maria()
    host.files.update(files)
    host.files[OVERRIDE] = f"[Service]\n{lines}"
    assert persisted(host, BINLOG) == "1"
    host.files[OVERRIDE] += 'ExecStartPost=/bin/sh -c "mariadb -e \\"$SQL\\""\n'
    assert persisted(host, BINLOG) == "unknown"


# Other units, timers, cron and rc.local


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n", WANTED: ""}, "unknown"),
        ({OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n"}, "1"),
        (
            {
                OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                "/etc/systemd/system/timers.target.wants/tune-db.timer": "",
            },
            "unknown",
        ),
        (
            {
                OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                "/etc/systemd/system/app.target": "[Unit]\nWants=tune-db.service\n",
            },
            "unknown",
        ),
        ({OTHER: "[Service]\nExecStart=/usr/bin/mariadb -e 'SET GLOBAL sync_binlog=1'\n", WANTED: ""}, "1"),
        ({OTHER: "[Service]\nExecReload=/usr/bin/mariadb -e 'SET GLOBAL sync_binlog=0'\n", WANTED: ""}, "1"),
        (
            {"/etc/systemd/system/cron.service.d/x.conf": f"[Service]\nExecStartPost=/usr/bin/{ZERO}\n"},
            "unknown",
        ),
        ({"/etc/rc.local": f"#!/bin/sh\n{ZERO}\n"}, "unknown"),
        ({"/etc/cron.d/tune": f"@reboot root {ZERO}\n"}, "unknown"),
        ({"/var/spool/cron/crontabs/root": f"@reboot {ZERO}\n"}, "unknown"),
        (
            {
                OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                "/etc/systemd/system/multi-user.target.d/x.conf": "[Unit]\nWants=tune-db.service\n",
            },
            "unknown",
        ),
        (
            {
                OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                "/etc/rc.local": "#!/bin/sh\nsystemctl start tune-db\n",
            },
            "unknown",
        ),
        (
            {
                OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                "/etc/systemd/system/a.service": "[Service]\nExecStart=/bin/systemctl start tune-db\n",
            },
            "unknown",
        ),
        # Its own user can change a server.
        ({"/var/spool/cron/crontabs/mysql": f"@reboot {ZERO}\n"}, "unknown"),
        ({"/etc/cron.d/tune": f"0 3 * * * root {ZERO}\n"}, "1"),
        # Backups and checks read the configuration.
        (
            {
                OTHER: "[Service]\nExecStart=/usr/bin/mariabackup --defaults-file=/etc/mysql/my.cnf --backup\n",
                WANTED: "",
            },
            "1",
        ),
    ],
)
def test_other_commands_at_a_boot_make_what_they_name_unknown(files: dict[str, str], word: str) -> None:
    host = maria()
    host.files.update(files)
    host.modes["/etc/rc.local"] = 0o755
    assert persisted(host, BINLOG) == word
    host.modes["/etc/rc.local"] = 0o644
    assert persisted(host, BINLOG) == ("1" if "/etc/rc.local" in files else word)


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({}, "no"),
        ({"/etc/rc.local": "#!/bin/sh\nsystemctl start mariadb\n"}, "unknown"),
        ({"/etc/rc.local": "#!/bin/sh\nservice mysql start\n"}, "unknown"),
        ({"/etc/rc.local": "#!/bin/sh\n/etc/init.d/mariadb restart\n"}, "unknown"),
        ({"/etc/rc.local": "#!/bin/sh\n/usr/bin/mysqld_safe --user=mysql &\n"}, "unknown"),
        ({"/etc/rc.local": "#!/bin/sh\nservice mariadb stop\nsystemctl start other\n"}, "no"),
        ({"/etc/rc.local": "#!/bin/sh\nrm -f /run/mysqld/mysqld.sock /var/log/mysqld_safe.log\n"}, "no"),
        ({"/etc/cron.d/db": "@reboot root systemctl start mysql.service\n"}, "unknown"),
        ({"/etc/udev/rules.d/9.rules": 'ENV{SYSTEMD_WANTS}+="mariadb.service"\n'}, "unknown"),
        ({"/proc/cmdline": "ro systemd.wants=mariadb.service\n"}, "unknown"),
        ({OTHER: "[Service]\nExecStart=/usr/sbin/mariadbd\n", WANTED: ""}, "unknown"),
        ({OTHER: "[Service]\nExecStart=/usr/sbin/mariadbd\n"}, "no"),
        ({"/etc/crontab": Unobservable("/etc/crontab: Input/output error")}, "unknown"),
        # It starts another server.
        (
            {"/etc/systemd/system/mariadb@b.service.d/x.conf": "[Service]\nExecStart=/usr/sbin/mariadbd\n"},
            "no",
        ),
    ],
)
def test_a_disabled_server_may_be_started_by_what_a_boot_runs(files: dict[str, Any], word: str) -> None:
    host = MariaHost(running=False)
    host.units["mariadb.service"].update(
        UnitFileState="disabled", ActiveState="inactive", Names="mariadb.service mysql.service"
    )
    host.files.update(files)
    host.modes["/etc/rc.local"] = 0o755
    assert told(host)["starts_at_boot"] == word
    host.units["mariadb.service"].update(LoadState="masked", UnitFileState="masked")
    runs_it = "mysqld_safe" in str(files.get("/etc/rc.local")) or WANTED in files or "/etc/crontab" in files
    assert told(host)["starts_at_boot"] == ("unknown" if runs_it and word == "unknown" else "no")


CLOUD = "/var/lib/cloud/scripts/per-boot/tune-db"


@pytest.mark.parametrize(
    ("files", "mode", "word"),
    [
        ({CLOUD: f"#!/bin/sh\n{ZERO}\n"}, 0o755, "unknown"),
        ({CLOUD: f"#!/bin/sh\n{ZERO}\n"}, 0o644, "1"),
        ({CLOUD: f"\x7fELF\x02 {ZERO}\n"}, 0o755, "1"),
        ({CLOUD: f"#!/bin/sh\n{ZERO}\n", "/etc/cloud/cloud-init.disabled": ""}, 0o755, "1"),
        ({f"{CLOUD}/x": f"#!/bin/sh\n{ZERO}\n"}, 0o755, "1"),
    ],
)
def test_scripts_that_cloud_init_runs_at_each_boot_count(files: dict[str, str], mode: int, word: str) -> None:
    host = maria()
    host.files.update(files)
    host.modes[CLOUD] = mode
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    assert word == "1" or found["from"] == f"{CLOUD} line 2 (cloud-init)"


SYSV = "/etc/init.d/tune-db"


@pytest.mark.parametrize(
    ("files", "links", "word"),
    [
        ({}, {"/etc/rc2.d/S20tune-db": SYSV}, "unknown"),
        ({}, {"/etc/rcS.d/S05tune-db": SYSV}, "unknown"),
        ({}, {"/etc/rc.d/rc3.d/S99tune-db": SYSV}, "unknown"),
        # What the generator has made of it in this boot is no native unit.
        (
            {"/run/systemd/generator.late/tune-db.service": "[Service]\n"},
            {"/etc/rc5.d/S20tune-db": SYSV},
            "unknown",
        ),
        ({}, {}, "1"),
        (
            {},
            {"/etc/rc2.d/K20tune-db": SYSV, "/etc/rc0.d/S20tune-db": SYSV, "/etc/rc6.d/S20tune-db": SYSV},
            "1",
        ),
        ({}, {"/etc/rc2.d/S20gone": "/etc/init.d/gone", "/etc/rc2.d/README": "/x"}, "1"),
        ({"/lib/systemd/system/tune-db.service": ""}, {"/etc/rc2.d/S20tune-db": SYSV}, "1"),
        (
            {"/lib/systemd/system/tuner.service": "[Service]\n"},
            {
                "/etc/rc2.d/S20tune-db": SYSV,
                "/etc/systemd/system/tune-db.service": "/lib/systemd/system/tuner.service",
            },
            "1",
        ),
        (
            {"/dev/null": ""},
            {"/etc/rc2.d/S20tune-db": SYSV, "/etc/systemd/system/tune-db.service": "/dev/null"},
            "1",
        ),
    ],
)
def test_scripts_of_a_run_level_count_unless_a_unit_has_their_name(
    files: dict[str, str], links: dict[str, str], word: str
) -> None:
    host = maria()
    host.files.update({SYSV: f"#!/bin/sh\n# SysV\n{ZERO}\n", **files})
    host.modes[SYSV] = 0o755
    host.links.update(links)
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    if word == "unknown":
        assert found["from"] == f"{SYSV} line 3 (SysV script)"
    host.modes[SYSV] = 0o644
    assert persisted(host, BINLOG) == "1"


def test_scripts_with_an_ending_have_a_unit_without_it_and_what_they_run_is_read() -> None:
    host = maria()
    host.files.update({f"{SYSV}.sh": "#!/bin/sh\n. /opt/inc\n", "/opt/inc": f"{ZERO}\n"})
    host.modes[f"{SYSV}.sh"] = 0o755
    host.links["/etc/rc4.d/S20tune-db.sh"] = f"{SYSV}.sh"
    assert setting(host, BINLOG)["from"].startswith("/opt/inc line 1, run by ")
    host.files["/usr/lib/systemd/system/tune-db.service"] = "[Service]\n"
    assert persisted(host, BINLOG) == "1"


RULE = "/etc/udev/rules.d/80-db.rules"
STARTED = {OTHER: f"[Service]\nExecStart=/usr/bin/{ZERO}\n"}


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({RULE: f'ACTION=="add", SUBSYSTEM=="block", RUN+="/usr/bin/{ZERO}"\n'}, "unknown"),
        ({RULE: f'# A\\\n\nKERNEL=="sd*", \\\n  RUN{{program}}+="/bin/sh -c \\"{ZERO}\\""\n'}, "unknown"),
        ({RULE: f'PROGRAM=="/usr/bin/{ZERO}"\n'}, "unknown"),
        ({RULE: f'IMPORT{{program}}="/usr/bin/{ZERO}"\n'}, "unknown"),
        ({"/usr/local/lib/udev/rules.d/x.rules": f'RUN+="/usr/bin/{ZERO}"\n'}, "unknown"),
        ({RULE: 'RUN+="/opt/tune.sh %k"\n', "/opt/tune.sh": f"#!/bin/sh\n{ZERO}\n"}, "unknown"),
        ({RULE: 'RUN+="tune-db"\n', "/usr/lib/udev/tune-db": f"#!/bin/sh\n{ZERO}\n"}, "unknown"),
        ({RULE: "RUN+=\"/usr/bin/mariadb -e 'SET GLOBAL sync_binlog=1'\"\n"}, "1"),
        ({RULE: f'RUN{{builtin}}+="kmod load {ZERO}"\n'}, "1"),
        ({RULE: f'#RUN+="/usr/bin/{ZERO}"\n'}, "1"),
        ({RULE: f'ENV{{X}}="/usr/bin/{ZERO}"\n'}, "1"),
        ({"/usr/lib/udev/rules.d/80-db.rules": f'RUN+="/usr/bin/{ZERO}"\n'}, "1"),
        # Our own.
        ({our_paths.CACHE_RULES: f'RUN+="/usr/bin/{ZERO}"\n'}, "1"),
        # Units that a rule starts.
        ({**STARTED, RULE: 'TAG+="systemd", ENV{SYSTEMD_WANTS}+="a.target tune-db.service"\n'}, "unknown"),
        ({**STARTED, RULE: 'ENV{SYSTEMD_WANTS}="tune-$env{ID_X}.service"\n'}, "unknown"),
        ({**STARTED, RULE: 'RUN+="/bin/systemctl --no-block start tune-db"\n'}, "unknown"),
        (
            {
                "/etc/systemd/system/tune@.service": f"[Service]\nExecStart=/usr/bin/{ZERO}\n",
                RULE: 'ENV{SYSTEMD_WANTS}+="tune@%k.service"\n',
            },
            "unknown",
        ),
        ({**STARTED, RULE: 'ENV{SYSTEMD_WANTS}+="other.service", RUN+="/bin/systemctl start x"\n'}, "1"),
        ({**STARTED, RULE: 'ENV{SYSTEMD_WANTS}=="tune-db.service", RUN+="/bin/true"\n'}, "1"),
    ],
)
def test_udev_rules_of_administrators_run_commands_and_start_units(files: dict[str, str], word: str) -> None:
    host = maria()
    host.files.update(files)
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    if word == "unknown" and OTHER not in files and "/etc/systemd/system/tune@.service" not in files:
        assert "(udev rule)" in found["from"]
        assert next(path for path in files if path.endswith(".rules")) in found["from"]


def test_a_rule_that_is_masked_runs_nothing() -> None:
    host = maria()
    host.files["/usr/local/lib/udev/rules.d/80-db.rules"] = f'RUN+="/usr/bin/{ZERO}"\n'
    assert persisted(host, BINLOG) == "unknown"
    host.files[RULE] = ""
    assert persisted(host, BINLOG) == "1"


def test_only_regular_files_are_opened_on_a_real_host(tmp_path: Path) -> None:
    """A pipe has whoever reads it wait, a link may lead to nothing, and a masked unit to /dev/null."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "masked").symlink_to("/dev/null")
    (tmp_path / "script").write_text(f"#!/bin/sh\n{ZERO}\n", encoding="utf-8")
    (tmp_path / "program").write_bytes(b"\x7fELF\x02\0" + ZERO.encode())
    for name, wanted in (
        ("fifo", 1),
        ("directory", 1),
        ("gone", 1),
        ("masked", 1),
        ("program", 1),
        ("script", 2),
    ):
        text = Text(f"/bin/sh {tmp_path}/{name}", "unit line 1", "unit")
        assert len(Commands(Host())._followed(text)) == wanted, name
    assert system_conf.text_of(Host(), str(tmp_path / "gone")) == ""
    assert system_conf.text_of(Host(), str(tmp_path / "masked")) == ""
    with pytest.raises(Unobservable, match="not a regular file"):
        system_conf.text_of(Host(), str(tmp_path / "fifo"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")
@pytest.mark.parametrize(
    ("user", "mode", "wanted"),
    [(1500, 0o600, 1), (1500, 0o644, 2), (105, 0o644, 2), (105, 0o600, None)],
)
def test_a_script_of_a_table_of_cron_is_read_with_the_rights_of_its_owner(
    user: int, mode: int, wanted: int | None
) -> None:
    """What a login cannot read sets nothing of a server; of the user of a server it is unknown."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o711)
        script = Path(directory, "x.sh")
        script.write_text(f"#!/bin/sh\n{ZERO}\n", encoding="utf-8")
        script.chmod(mode)
        text, owner = Text(f"/bin/sh {script}", "crontab line 1", "cron"), Identity(user, user, ())
        if wanted is None:
            with pytest.raises(Unobservable):
                Commands(Host())._followed(text, owner)
        else:
            assert len(Commands(Host())._followed(text, owner)) == wanted


def test_what_a_table_of_a_login_names_is_not_even_looked_for_as_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Root would follow links of that login, onto a file system that never answers."""
    host, asked = Host(), []
    real = host.locate

    def locate(path: str, *given: Any) -> Any:
        asked.append((path, host.named_by))
        return real(path, *given)

    for name in ("resolve", "exists", "link", "read"):
        monkeypatch.setattr(host, name, lambda path: pytest.fail(f"{path} was read by root"))
    monkeypatch.setattr(host, "locate", locate)
    owner = Identity(1000, 1000, ())
    text = Text("/home/eve/x.sh > /dev/null", "crontab line 1", "cron")
    assert Commands(host)._followed(text, owner) == [text]
    assert asked == [("/home/eve/x.sh", owner)]


def test_a_table_of_cron_that_cannot_be_read_makes_what_persists_unknown() -> None:
    host = maria()
    host.files["/etc/crontab"] = "@reboot root true\n"
    assert persisted(host, BINLOG) == "1"
    host.files["/etc/crontab"] = Unobservable("/etc/crontab: Input/output error")
    assert "/etc/crontab: Input/output error" in setting(host, BINLOG)["reason"]


# What starts the server is no process any more


def test_a_unit_whose_command_has_ended_is_what_starts_the_server() -> None:
    """Type=oneshot with RemainAfterExit: systemd reports no main process, and the script may have been edited."""
    host = maria()
    host.unit = "start-db.service"
    host.end(host.process.pid)
    process = FakeProcess(
        host.process.pid,
        host.program,
        (host.program,),
        cwd="/var/lib/mysql",
        cgroup="0::/system.slice/start-db.service\n",
        environment={"HOME": "/nonexistent"},
    )
    host.start(process)
    host.files[f"/proc/{process.pid}/status"] = "Uid:\t0\t26\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t30 \n"
    command = "{ path=/opt/start-db.sh ; argv[]=/opt/start-db.sh ; ignore_errors=no ; start_time=[n/a] }"
    host.units = {"start-db.service": {"MainPID": "0", "Type": "oneshot", "ExecStart": command}}
    found = next(each for each in Engines(host, ("mariadb",)).instances() if each["state"] == "running")
    assert found["evidence"]["start_arguments"]["source"] == "/opt/start-db.sh"


# PostgreSQL

PG_OVERRIDE = f"/etc/systemd/system/{PG_UNIT}.d/x.conf"


@pytest.mark.parametrize(
    ("files", "word"),
    [
        (
            {PG_OVERRIDE: "[Service]\nExecStartPost=/usr/bin/psql -c 'ALTER SYSTEM SET fsync = off'\n"},
            "unknown",
        ),
        (
            {PG_OVERRIDE: "[Service]\nExecStartPost=/usr/bin/psql -c \"ALTER SYSTEM SET fsync TO 'off'\"\n"},
            "unknown",
        ),
        ({PG_OVERRIDE: "[Service]\nExecStartPost=/usr/bin/psql -c 'ALTER SYSTEM SET fsync = on'\n"}, "on"),
        ({PG_OVERRIDE: "[Service]\nExecStartPost=/usr/bin/psql -c 'ALTER SYSTEM RESET ALL'\n"}, "unknown"),
        (
            {PG_OVERRIDE: "[Service]\nExecStartPost=/usr/bin/psql -h far -c 'ALTER SYSTEM SET fsync=off'\n"},
            "on",
        ),
        (
            {
                PG_OVERRIDE: "[Service]\nExecStartPre=/opt/pre.sh\n",
                "/opt/pre.sh": f"#!/bin/sh\necho 'fsync = off' > {ETC}/conf.d/x.conf\n",
            },
            "unknown",
        ),
        (
            {
                PG_OVERRIDE: "[Service]\nExecStartPre=/opt/pre.sh\n",
                "/opt/pre.sh": f"#!/bin/sh\nPGCONF={ETC}/conf.d/x.conf\necho fsync off > $PGCONF\n",
            },
            "unknown",
        ),
        (
            {
                PG_OVERRIDE: "[Service]\nExecStartPre=/opt/pre.sh\n",
                "/opt/pre.sh": f"#!/bin/sh\necho 'work_mem = 1GB' > {ETC}/conf.d/x.conf\ndd if=a of=b conv=fsync\n",
            },
            "on",
        ),
        (
            {PG_OVERRIDE: f"[Service]\nExecStartPre=/bin/cp /srv/x.conf {ETC}/conf.d/\n", "/srv/x.conf": "a"},
            "unknown",
        ),
        ({PG_OVERRIDE: f"[Service]\nExecStartPre=/bin/cp {ETC}/postgresql.conf /srv/backup.conf\n"}, "on"),
        ({PG_OVERRIDE: f"[Service]\nExecStartPre=/bin/chown postgres: {ETC}/postgresql.conf\n"}, "on"),
        (
            {"/etc/udev/rules.d/x.rules": "\nRUN+=\"/usr/bin/psql -c 'ALTER SYSTEM SET fsync=off'\"\n"},
            "unknown",
        ),
        (
            {
                "/etc/udev/rules.d/x.rules": f'\nRUN+="/bin/cp /srv/x.conf {ETC}/conf.d/"\n',
                "/srv/x.conf": "a",
            },
            "unknown",
        ),
        (
            {
                "/etc/systemd/system/postgresql@.service.d/y.conf": "[Service]\n"
                "ExecStartPost=/usr/bin/psql -c 'ALTER SYSTEM SET fsync=off'\n"
            },
            "unknown",
        ),
    ],
)
def test_commands_of_a_cluster_s_unit(files: dict[str, str], word: str) -> None:
    host = FakePostgresql()
    host.files.update(files)
    found = setting(host, "fsync", "postgresql")
    assert found["persisted"] == word
    if word == "unknown":
        assert "line 2" in found["reason"]
        assert fix_of(found, "postgresql").startswith("remove fsync from ")
        assert found["permission"] is None


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (f"cp -t {ETC}/conf.d /srv/x.conf", "unknown"),
        (f"cp /srv/x.conf {ETC}/conf.d/ > /var/log/x", "unknown"),
        (f"cp /srv/x.conf {ETC}/conf.d/ && logger /x", "unknown"),
        (f"cd {ETC}/conf.d; cp /srv/x.conf .", "unknown"),
        (f"curl -o {ETC}/conf.d/zz.conf https://site.example/x", "unknown"),
        (f"wget -qO {ETC}/conf.d/zz.conf https://site.example/x", "unknown"),
        (f"tar -xf /srv/x.tar -C {ETC}/conf.d", "unknown"),
        (f"tar -czf /srv/backup.tar {ETC}/conf.d", "on"),
        (f"cp {ETC}/conf.d/x.conf /srv/backup/ && logger /x", "on"),
        (f"curl -T {ETC}/conf.d/zz.conf https://site.example/x", "on"),
    ],
)
def test_commands_at_boot_that_write_a_cluster_s_configuration(command: str, word: str) -> None:
    host = FakePostgresql()
    host.files["/etc/rc.local"] = f"#!/bin/sh\n{command}\n"
    host.modes["/etc/rc.local"] = 0o755
    assert setting(host, "fsync", "postgresql")["persisted"] == word


GOLDEN = "/srv/golden"


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (f"cp {GOLDEN}/postgresql.conf {ETC}/", "unknown"),
        (f"cp {GOLDEN}/*.conf {ETC}", "unknown"),
        (f"cp $SOURCE {ETC}/", "unknown"),
        (f"cp postgresql.conf {ETC}/", "unknown"),
        (f"install -m 640 -t {ETC} {GOLDEN}/postgresql.conf", "unknown"),
        (f"mv {GOLDEN}/postgresql.conf {ETC}", "unknown"),
        (f"ln -sf {GOLDEN}/postgresql.conf {ETC} 2>/dev/null", "unknown"),
        (f"cp -r {GOLDEN}/. {ETC}", "unknown"),
        (f"rsync -a {GOLDEN}/ {ETC}/", "unknown"),
        ("cp -a /srv/etc /", "unknown"),
        (f"tar -xzf /srv/x.tgz -C {ETC}", "unknown"),
        ("tar xf /srv/x.tar -C /etc/postgresql", "unknown"),
        ("unzip -o /srv/x.zip -d /etc", "unknown"),
        # Nothing of these is there.
        (f"cp {GOLDEN}/pg_hba.conf {ETC}/", "on"),
        (f"cp -r {GOLDEN} {ETC}", "on"),
        (f"rsync -a {GOLDEN} {ETC}/", "on"),
        ("rsync -a /srv/other/ /", "on"),
        (f"cp {ETC}/postgresql.conf /srv/backup/", "on"),
        ("tar -czf /srv/x.tgz -C /etc postgresql", "on"),
        ("unzip -o /srv/x.zip -d /srv", "on"),
        # It is the same.
        (f"cp /srv/same/postgresql.conf {ETC}/", "on"),
    ],
)
def test_commands_that_copy_a_cluster_s_configuration_into_its_directory(command: str, word: str) -> None:
    host = FakePostgresql()
    host.files["/etc/rc.local"] = f"#!/bin/sh\n{command}\n"
    host.modes["/etc/rc.local"] = 0o755
    host.files[f"{GOLDEN}/postgresql.conf"] = host.files[f"/srv{CONF_OF_PG}"] = "fsync = off\n"
    host.files["/srv/same/postgresql.conf"] = host.files[CONF_OF_PG]
    assert setting(host, "fsync", "postgresql")["persisted"] == word


@pytest.mark.parametrize("command", ["tar ", "tar x ", "cp ", "cp *a ", "cp -t / ", "unzip ", "rsync -t"])
def test_a_command_of_a_login_s_table_of_cron_takes_no_more_time_than_its_length(command: str) -> None:
    config = config_writes.of_instance(f"{ETC}/x", [], [], [f"{ETC}/{number}.conf" for number in range(100)])
    names = " ".join(f"*{number}" for number in range(600))
    before = time.process_time()
    for text in (command * 1000, f"{command} {names} {ETC}", f"{command} {names.replace('*', 'a')} /"):
        assert len(list(config_writes._copies(text, config))) <= 100 * 1000
    assert time.process_time() - before < 5


@pytest.mark.parametrize(
    ("path", "word"),
    [
        # It sets none of them now.
        (f"{ETC}/tuning.inc", "unknown"),
        # A link of the configuration leads there.
        ("/srv/real.conf", "unknown"),
        (f"{ETC}/more.d/x.conf", "unknown"),
        (f"{ETC}/pg_hba.conf", "on"),
    ],
)
@pytest.mark.parametrize("form", ["cp /srv/x.conf {}", "w {} - - - - fsync=off"])
def test_each_file_that_a_cluster_reads_is_its_configuration(path: str, word: str, form: str) -> None:
    host = FakePostgresql()
    host.files[CONF_OF_PG] = (
        "include_dir 'more.d'\ninclude 'tuning.inc'\ninclude 'real.conf'\ninclude_dir 'conf.d'\n"
    )
    host.directories = {*host.directories, f"{ETC}/more.d"}
    host.files.update({f"{ETC}/tuning.inc": "", "/srv/real.conf": "", f"{ETC}/more.d/x.conf": ""})
    host.files[f"{ETC}/pg_hba.conf"] = ""
    host.links[f"{ETC}/real.conf"] = "/srv/real.conf"
    if form.startswith("cp"):
        host.files["/etc/rc.local"] = f"#!/bin/sh\n{form.format(path)}\n"
        host.modes["/etc/rc.local"] = 0o755
    else:
        host.files["/etc/tmpfiles.d/x.conf"] = f"{form.format(path)}\n"
    assert setting(host, "fsync", "postgresql")["persisted"] == word


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/etc/mysql/conf.d/x.cnf", "unknown"),
        ("/etc/mysql/conf.d/x.txt", "1"),
        ("/etc/my.cnf", "unknown"),
        ("/etc/mysql/debian.cnf", "1"),
    ],
)
def test_each_option_file_that_a_server_reads_or_would_read_is_its_configuration(
    path: str, word: str
) -> None:
    host = maria()
    host.files["/etc/mysql/my.cnf"] = (
        "[client]\n!includedir /etc/mysql/conf.d/\n!includedir /etc/mysql/mariadb.conf.d/\n"
    )
    host.files["/etc/mysql/conf.d/mysql.cnf"] = ""
    assert persisted(host, BINLOG) == "1"
    host.files["/etc/rc.local"] = f"#!/bin/sh\ncp /srv/x.cnf {path}\n"
    host.modes["/etc/rc.local"] = 0o755
    assert persisted(host, BINLOG) == word


def test_names_of_postgresql_s_settings_count_only_with_a_value() -> None:
    def of(text: str) -> list[tuple[str, str | None]]:
        return [(change.name, change.value) for change in pg.of_text(Text(text, "x line 1", "x"))]

    assert of("dd if=/dev/zero of=/x conv=fsync") == []
    assert of("conv=fsync,notrunc status=none") == []
    assert of("postgres -c fsync=off") == [("fsync", "off")]
    assert of("synchronous_commit local") == [("synchronous_commit", "local")]
    assert of("wal_sync_method = $METHOD") == [("wal_sync_method", None)]
    assert of('[ "$fsync" = off ]') == []


# Other files at the paths of the configuration


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("BindPaths=/srv/own.cnf:/etc/mysql/mariadb.conf.d/50-server.cnf", "unknown"),
        ("BindReadOnlyPaths=-/srv/mysql:/etc/mysql:norbind /srv", "unknown"),
        ("BindPaths=/srv/%i:%t/x", "unknown"),
        ("TemporaryFileSystem=/etc:ro", "unknown"),
        ("InaccessiblePaths=-/etc/mysql", "unknown"),
        ("RootDirectory=/srv/root", "unknown"),
        ("BindPaths=/srv/mysql:/etc/mysql\nBindPaths=", "1"),
        ("BindPaths=/etc/mysql /srv/x:/srv/y\nBindReadOnlyPaths=/etc/mysql:/etc/mysql", "1"),
        ("InaccessiblePaths=/home\nTemporaryFileSystem=/tmp", "1"),
        ("ReadOnlyPaths=/etc/mysql\nProtectSystem=full", "1"),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_a_unit_that_gives_a_server_other_files_than_the_host_has_leaves_its_next_start_unknown(
    lines: str, word: str, running: bool
) -> None:
    host = MariaHost(running=running)
    host.files[DROP_IN] = f"[mysqld]\nloose_{BINLOG} = 1\n"
    host.files[OVERRIDE] = f"[Service]\n{lines}\n"
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    assert word == "1" or f"{OVERRIDE} line 2" in found["reason"]


@pytest.mark.parametrize(
    ("path", "word"), [(SERVER_CNF, "unknown"), ("/etc/my.cnf", "unknown"), ("/etc/other", "1")]
)
def test_a_file_in_the_mount_namespace_of_a_server_that_is_not_the_host_s_is_another_one(
    path: str, word: str
) -> None:
    host = maria()
    host.end(host.process.pid)
    host.start(replace(host.process, namespace=PRIVATE))
    real = host.locate

    def locate(asked: str, root: str = "", timeout: float = 10) -> Any:
        found = real(asked)
        return found._replace(status=Status(7, 7, 0, 0, 0o100644)) if root and asked == path else found

    host.locate = locate  # type: ignore[method-assign]
    found = setting(host, BINLOG)
    assert found["persisted"] == word
    assert word == "1" or f"{path}: the process has another file there" in found["reason"]


# tmpfiles.d

CONF_D = f"{ETC}/conf.d"


@pytest.mark.parametrize(
    ("line", "there", "word"),
    [
        (f"f {CONF_D}/99.conf 0644 root root - fsync=off\\n", None, "unknown"),
        # It writes to a new file alone.
        (f"f {CONF_D}/99.conf 0644 root root - fsync=off\\n", "fsync=on\n", "on"),
        (f"f+ {CONF_D}/99.conf 0644 root root - fsync=off\\n", "fsync=on\n", "unknown"),
        (f"F {CONF_D}/99.conf - - - - work_mem=1GB\\n", "fsync=on\n", "unknown"),
        (f"w {CONF_D}/99.conf - - - - fsync=off", "fsync=on\n", "unknown"),
        (f"w {CONF_D}/99.conf - - - - fsync=off", None, "on"),
        (f"w+ {AUTO} - - - - fsync=off\\n", None, "unknown"),
        # It takes patterns.
        ("w+ /etc/postgresql/*/main/postgresql.conf - - - - fsync=off\\n", None, "unknown"),
        (f"w {CONF_D}/*.conf - - - - work_mem=1GB", "fsync=on\n", "unknown"),
        ("w+ /etc/postgresql/*/other/postgresql.conf - - - - fsync=off\\n", None, "on"),
        (f"f+ {CONF_D}/99.conf - - - - fsync=on\\n", "fsync=on\n", "on"),
        (f"f {CONF_D}/99.conf 0644 root root - work_mem=1GB\\n", None, "on"),
        (f"L+ {CONF_D}/99.conf - - - - /srv/x.conf", "fsync=on\n", "unknown"),
        (f"L {CONF_D}/99.conf - - - - /srv/x.conf", None, "unknown"),
        (f"C+ {ETC} - - - - /srv/etc", None, "unknown"),
        (f"C {ETC} - - - - /srv/etc", None, "on"),
        (f"r {CONF_D}/*.conf", "fsync=on\n", "unknown"),
        (f"R {ETC}", None, "unknown"),
        (f"D {CONF_D} 0755 root root", None, "unknown"),
        (f"d {CONF_D} 0755 root root", None, "on"),
        ("d /run/postgresql 2775 postgres postgres", None, "on"),
        (f"# f+ {CONF_D}/99.conf - - - - fsync=off", "fsync=on\n", "on"),
    ],
)
def test_lines_of_tmpfiles_that_write_a_cluster_s_configuration(
    line: str, there: str | None, word: str
) -> None:
    host = FakePostgresql()
    host.files["/etc/tmpfiles.d/db.conf"] = f"# Ours\n{line}\n"
    if there:
        host.files[f"{CONF_D}/99.conf"] = there
    host.directories = {*host.directories, ETC}
    found = setting(host, "fsync", "postgresql")
    assert found["persisted"] == word, found
    if word == "unknown":
        assert "/etc/tmpfiles.d/db.conf line 2 (tmpfiles.d)" in found["reason"]
        assert fix_of(found) == "remove fsync from /etc/tmpfiles.d/db.conf line 2, then run again"


def test_a_stronger_directory_of_tmpfiles_hides_a_file() -> None:
    host = FakePostgresql()
    host.files["/usr/lib/tmpfiles.d/db.conf"] = f"f {CONF_D}/99.conf - - - - fsync=off\\n\n"
    assert persisted(host, "fsync", "postgresql") == "unknown"
    host.links["/etc/tmpfiles.d/db.conf"] = "/dev/null"
    host.files["/dev/null"] = ""
    assert persisted(host, "fsync", "postgresql") == "on"


# SQL Server, FairCom DB and Firebird


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("/usr/bin/install -m 644 /srv/mssql.conf /var/opt/mssql/mssql.conf", "unknown"),
        ("/bin/sh -c 'cat /srv/x >/var/opt/mssql/mssql.conf'", "unknown"),
        ("/opt/tool/render /var/opt/mssql/mssql.conf", "unknown"),
        ("/bin/sed -i s/a/b/ /var/opt/mssql/mssql.conf", "unknown"),
        ("/opt/mssql/bin/mssql-conf set control.writethrough 0", "unknown"),
        ("/bin/chown mssql:mssql /var/opt/mssql/mssql.conf", "1"),
        ("/bin/sed -n 1p /var/opt/mssql/mssql.conf", "1"),
        ("/usr/bin/test -r /var/opt/mssql/mssql.conf", "1"),
    ],
)
def test_commands_that_write_sql_server_s_configuration(command: str, word: str) -> None:
    host = with_mssql()
    host.files[f"/etc/systemd/system/{MSSQL_UNIT}.d/x.conf"] = f"[Service]\nExecStartPre={command}\n"
    found = setting(host, "writethrough", "mssql")
    assert found["persisted"] == word
    if word == "unknown":
        assert f"/etc/systemd/system/{MSSQL_UNIT}.d/x.conf line 2" in found["reason"]
    assert CONF == "/var/opt/mssql/mssql.conf"


def test_a_copy_of_the_same_content_changes_nothing() -> None:
    host = with_mssql()
    host.files[f"/etc/systemd/system/{MSSQL_UNIT}.d/x.conf"] = (
        f"[Service]\nExecStartPre=/bin/cp /srv/x.conf {CONF}\n"
    )
    host.files["/srv/x.conf"] = host.files[CONF]
    assert persisted(host, "writethrough", "mssql") == "1"
    host.files["/srv/x.conf"] = "[control]\nwritethrough = 0\n"
    assert persisted(host, "writethrough", "mssql") == "unknown"


def test_tmpfiles_that_write_faircom_s_configuration() -> None:
    host = with_faircom()
    before = {row["persisted"] for row in told(host, "faircom")["settings"].values()}
    assert before - {"unknown"}
    host.files["/etc/tmpfiles.d/x.conf"] = f"C+ {CFG} - - - - /srv/ctsrvr.cfg\n"
    assert {row["persisted"] for row in told(host, "faircom")["settings"].values()} == {"unknown"}


def firebird(command: str) -> list[str]:
    host = FirebirdHost(
        FakeProcess(50, "/opt/firebird/bin/firebird", cgroup="0::/system.slice/firebird.service\n"),
        a=FakeDatabase(),
        b=FakeDatabase(),
    )
    host.files.update({"/opt/firebird/bin/firebird": "", "/opt/firebird/firebird.conf": ""})
    host.files["/opt/firebird/databases.conf"] = "a = /data/a.fdb\nb = /data/b.fdb\n"
    host.units = {"firebird.service": {"ExecStart": ""}}
    host.files["/etc/systemd/system/firebird.service.d/x.conf"] = f"[Service]\nExecStartPost={command}\n"
    found = told(host, "firebird")["databases"]
    for row in found:
        assert (row["forced_writes"] == "unknown") == bool(row["reason"] and "x.conf line 2" in row["reason"])
    return [row["forced_writes"] for row in found]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/usr/bin/gfix -write async /data/a.fdb", ["unknown", "on"]),
        ("/usr/bin/gfix -user SYSDBA -w async b", ["unknown", "unknown"]),
        ("/usr/bin/gfix -write sync /data/a.fdb", ["on", "on"]),
        ("/usr/bin/gfix -sweep /data/a.fdb", ["on", "on"]),
    ],
)
def test_gfix_at_a_start_makes_forced_writes_unknown(command: str, words: list[str]) -> None:
    assert firebird(command) == words


# Libraries that make fsync do nothing


PRELOAD = "/usr/lib/x86_64-linux-gnu/libeatmydata.so"


@pytest.mark.fact(81)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{PRELOAD}\n", True),
        (f"# {PRELOAD}\n/usr/lib/libjemalloc.so:{PRELOAD}", True),
        ("libeatmydata.so\n", True),
        ("/usr/$LIB/nosync/nosync.so", True),
        (f"# {PRELOAD}\n", False),
        ("/usr/lib/libjemalloc.so\n", False),
        # ld.so goes on without one that is not there.
        ("/opt/gone/libeatmydata.so\n", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_ld_so_preload_acts_at_the_next_start_of_any_server(text: str, found: bool, running: bool) -> None:
    host = MariaHost(running=running)
    host.files.update({"/etc/ld.so.preload": text, PRELOAD: ""})
    evidence = told(host)["evidence"]
    assert ("next_preloads" in evidence) == found
    if found:
        assert evidence["next_preloads"]["source"].startswith("/etc/ld.so.preload line ")
        assert evidence.get("preloads", {"value": "none"})["value"] == "none"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")
def test_an_ld_so_preload_below_a_root_directory_is_followed_with_the_rights_of_its_user() -> None:
    """A user can have a root directory, in which links lead out of it, or to what only root can reach."""
    with tempfile.TemporaryDirectory(dir="/srv") as name:
        top, eve = Path(name), Identity(65534, 65534, ())
        root, outside = top / "root", top / "outside"
        for directory in (root / "etc", root / "own", root / "roots", outside):
            directory.mkdir(parents=True)
            (directory / "libeatmydata.so").touch()
        (root / "leads-out").symlink_to(outside)
        top.chmod(0o755)
        (root / "roots").chmod(0o700)
        values = {}
        for way in ("own", "roots", "leads-out"):
            (root / "etc/ld.so.preload").write_text(f"/{way}/libeatmydata.so\n")
            host = Host()
            with named_by.one(host, eve):
                found = next_preloads.find(host, str(root), None)
            values[way] = found.value if found else None
    assert values == {"own": "/own/libeatmydata.so", "roots": "unknown", "leads-out": "unknown"}


def test_an_ld_so_preload_that_cannot_be_read_is_unknown() -> None:
    host = MariaHost()
    host.files["/etc/ld.so.preload"] = ""
    host.unreadable["/etc/ld.so.preload"] = "Input/output error"
    assert told(host)["evidence"]["next_preloads"]["value"] == "unknown"


@pytest.mark.parametrize(
    ("files", "environment", "source"),
    [
        (
            {"/etc/systemd/system.conf.d/x.conf": f"[Manager]\nDefaultEnvironment=LD_PRELOAD={PRELOAD}\n"},
            {},
            "/etc/systemd/system.conf.d/x.conf line 2",
        ),
        (
            {
                "/usr/lib/systemd/system.conf": f'[Manager]\nDefaultEnvironment="A=b c" "LD_PRELOAD={PRELOAD}"\n'
            },
            {},
            "/usr/lib/systemd/system.conf line 2",
        ),
        (
            {OVERRIDE: f"[Service]\nEnvironment=LD_PRELOAD={PRELOAD}\n"},
            {"Environment": f"LD_PRELOAD={PRELOAD}"},
            f"{OVERRIDE} line 2",
        ),
        (
            {
                OVERRIDE: "[Service]\nEnvironmentFile=-/etc/default/db\n",
                "/etc/default/db": f"LD_PRELOAD={PRELOAD}\n",
            },
            {"EnvironmentFiles": "/etc/default/db (ignore_errors=yes)"},
            f"/etc/default/db ({OVERRIDE} line 2)",
        ),
    ],
)
def test_a_preload_of_the_unit_or_of_systemd_acts_at_the_next_start(
    files: dict[str, str], environment: dict[str, str], source: str
) -> None:
    host = maria()
    host.files.update({**files, PRELOAD: ""})
    command = "{ path=/usr/sbin/mariadbd ; argv[]=/usr/sbin/mariadbd ; ignore_errors=no ; start_time=[n/a] }"
    host.units[host.unit].update(environment, ExecStart=command, MainPID=str(host.process.pid))
    facts = told(host)
    coming = facts["evidence"]["next_preloads"]
    assert (coming["value"], coming["source"]) == (PRELOAD, source)
    assert facts["preloads"] == []
    assert facts["settings"][BINLOG]["persisted"] == "unknown"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"EnvironmentFiles": "/etc/firebird/*.env (ignore_errors=no)"}, "unknown"),
        ({"EnvironmentFiles": "/etc/default/firebird (ignore_errors=no)"}, "unknown"),
        ({"Environment": "FIREBIRD=/opt/firebird"}, None),
    ],
)
def test_variables_that_are_not_understood_may_preload_a_library_into_a_server_without_settings(
    given: dict[str, str], value: str | None
) -> None:
    host = FirebirdHost(
        FakeProcess(50, "/opt/firebird/bin/firebird", cgroup="0::/system.slice/firebird.service\n"),
        a=FakeDatabase(),
    )
    host.files.update({"/opt/firebird/bin/firebird": "", "/opt/firebird/firebird.conf": ""})
    host.files["/opt/firebird/databases.conf"] = "a = /data/a.fdb\n"
    host.files["/etc/default/firebird"] = f"LD_PRELOAD=$X{PRELOAD}\n"
    command = "{ path=/opt/firebird/bin/fbguard ; argv[]=/opt/firebird/bin/fbguard ; ignore_errors=no ; start_time=[n/a] }"
    host.units = {"firebird.service": {"ExecStart": command, "MainPID": "50", **given}}
    coming = told(host, "firebird")["evidence"].get("next_preloads")
    assert (coming and coming["value"]) == value


def test_default_environment_that_something_takes_back_is_none() -> None:
    host = maria()
    host.files.update(
        {
            PRELOAD: "",
            "/etc/systemd/system.conf": f"[Manager]\nDefaultEnvironment=LD_PRELOAD={PRELOAD}\n",
            "/etc/systemd/system.conf.d/x.conf": "[Manager]\nDefaultEnvironment=\n",
        }
    )
    assert "next_preloads" not in told(host)["evidence"]


def test_a_variable_that_systemd_has_not_read_yet_makes_the_next_start_unknown() -> None:
    host = maria()
    host.files["/etc/systemd/system.conf"] = "[Manager]\nDefaultEnvironment=MYSQL_HOME=/srv/own\n"
    command = "{ path=/usr/sbin/mariadbd ; argv[]=/usr/sbin/mariadbd ; ignore_errors=no ; start_time=[n/a] }"
    host.units[host.unit].update(ExecStart=command, MainPID=str(host.process.pid))
    found = setting(host, BINLOG)
    assert found["persisted"] == "unknown"
    assert "/etc/systemd/system.conf line 2 sets MYSQL_HOME from the next boot on" in found["reason"]
    host.manager += " MYSQL_HOME=/srv/own"
    assert "from the next boot on" not in (setting(host, BINLOG)["reason"] or "")


# The rule itself


def row(word: str) -> others.Settings:
    return {
        "a": {
            "running": word,
            "persisted": word,
            "source": "x",
            "reason": None,
            "from": "f line 1",
            "held": None,
            "permission": "alter_system",
        }
    }


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ([("0", True)], "0"),
        ([("0", False)], "unknown"),
        ([(None, False)], "unknown"),
        ([("1", False)], "1"),
        ([(None, False), ("1", True)], "1"),
        ([("0", True), ("1", False)], "unknown"),
        ([("1", True), (None, False)], "unknown"),
    ],
)
def test_the_last_certain_value_persists_and_a_doubt_after_it_is_unknown(
    changes: list[tuple[str | None, bool]], word: str
) -> None:
    given = [Change("a", value, "s line 1", "x", certain) for value, certain in changes]
    assert others.apply(row("1"), given)["a"]["persisted"] == word


def test_what_is_unknown_before_stays_so_with_its_own_reason() -> None:
    unknown = {"a": {**row("unknown")["a"], "reason": "first"}}
    assert others.apply(unknown, [Change("a", None, "s line 1", "x")]) == unknown


def test_a_file_next_to_the_configuration_is_none_of_it() -> None:
    config = config_writes.of_instance(
        f"{ETC}/postgresql.conf", [f"{ETC}/conf.d/zz.conf"], [f"{AUTO}:3", "default of 15", None], []
    )
    assert config.has(AUTO) and config.has(f"{ETC}/conf.d/new.conf") and config.has(f"{ETC}/conf.d/")
    beside = config_writes.of_instance("/d/postgresql.conf", ["/d/zz.conf"], [], [])
    assert beside.has("/d/zz.conf") and not beside.has("/d/pg_hba.conf")
    assert not config.has(f"{ETC}/pg_hba.conf") and not config.has(f"{ETC}/conf.d/README")
    assert tmpfiles_d.collect(FakeHost()) == []
