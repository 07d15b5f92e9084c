# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What database servers, their configuration files and their processes say."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.durable.dbhost.plugins.module_utils.engines import (
    open_files,
    since_start,
    start_files,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom_layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import ctsrvr
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import observe as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import (
    status as faircom_status_log,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import conf as firebird_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import (
    databases as firebird_databases,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import databases_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import files as firebird_files
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import header as firebird_header
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import client as mariadb_client
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import drop_in as mariadb_drop_in
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import my_cnf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import options as mariadb_options
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import versions as mariadb_words
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import conf as mssql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import rules as mssql_policy
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    cluster as postgresql_cluster,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import conf as postgresql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    server as postgresql_server,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import (
    process_context,
    processes,
    textfile,
    trusted_path,
    units,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from fuzz.target import Says, fixtures, of_bytes, of_text

NOTE = "a note"
#: A page of the smallest file that is a database: ODS 13, with a second file.
_PAGE = (
    b"\x01"
    + bytes(15)
    + (4096).to_bytes(2, "little")
    + (0x800D).to_bytes(2, "little")
    + bytes(108)
    + b"\x02\x04/d/b\0"
).ljust(1024, b"\0")


def _kept(text: str, lines: Iterable[textfile.Line]) -> None:
    assert textfile.render(lines) == text
    assert textfile.line_ends(text) in ("unix", "dos", "mixed", "none")


def _tree(text: str) -> Callable[[str], str | None]:
    """Return how a parser reads a tree of a main file and of two that it, and they, may include."""
    return {"/c/main": text, "/c/d/more.conf": text[:100], "/c/d/more.cnf": text[-100:]}.get


def _names(path: str) -> list[str] | None:
    return ["more.conf", "more.cnf", ".hidden"] if path.rstrip("/") == "/c/d" else None


@of_text(
    Malformed,
    seeds=[
        "# a comment\nfsync = off # why\nwal_sync_method 'fdatasync'\ninclude_dir = '/c/d'\na.b = 1.5e3\n",
        "include_if_exists '/c/none'\nfull_page_writes=\"x\"\n",
        "data_directory = '/d''x\\n\\101'\r\nshared_buffers=128MB\n",
    ],
)
def postgresql_conf_file(text: str) -> None:
    lines = postgresql_conf.parse(text)
    _kept(text, lines)
    postgresql_conf.effective(_tree(text), _names, "/c/main", "/c/d/more.conf")


@of_text(
    Malformed,
    seeds=[
        "# a comment\n[mysqld]\ninnodb_flush_log_at_trx_commit = 0 # why\nskip-log-bin\n!includedir /c/d\n",
        '[client-server]\n[mariadb-10.11]\nloose-innodb_doublewrite="o\\sn"\n!include /c/d/more.cnf\n[mysqld\n',
        "[mysqld]\r\nlog_bin='a#b'\r\nsync-binlog=1K\r\n",
    ],
)
def option_file(text: str) -> None:
    lines = my_cnf.parse(text)
    _kept(text, lines)
    found = my_cnf.effective(_tree(text), _names, ["/c/main"], "mariadb", "10.11.6-MariaDB", "x")
    for name in found.settings:
        my_cnf.may_mean(name, "innodb_doublewrite")


@of_text(
    ValueError,
    seeds=[
        mariadb_drop_in.HEADER + "[mariadb]\nloose_innodb_doublewrite=ON\nsync_binlog=1\n",
        mariadb_drop_in.HEADER,
    ],
)
def mariadb_drop_in_file(text: str) -> None:
    assert mariadb_drop_in.parse(mariadb_drop_in.render(mariadb_drop_in.parse(text))) is not None


@of_text(ValueError, seeds=["1", "ON", "fsync", "O_DIRECT_NO_FSYNC", "4k", "detect_only", "-1"])
def mariadb_value(text: str) -> None:
    for said in ("8.0.40", "11.4.2-MariaDB", "10.3.9-MariaDB"):
        version = mariadb_words.release(said)
        assert version
        for name in mariadb_words.names(version):
            try:
                mariadb_words.word(version, name, text)
            except ValueError:
                continue


@of_text(
    seeds=[
        "mysqld  Ver 8.0.40 for Linux on x86_64",
        "11.4.2-MariaDB-deb12-log",
        "Ver 15.1 Distrib 10.3.39-MariaDB",
    ]
)
def mariadb_version(text: str) -> None:
    found = mariadb_words.release(text)
    if found:
        my_cnf.groups(found.flavour, found.text)


@of_text(
    Unobservable,
    seeds=[
        "datadir\t/var/lib/mysql/\nversion\t10.11.6-MariaDB\nlog_bin\tOFF\nx\ta\\tb\\0\\\\\n",
        "ERROR 1045\n",
    ],
)
def mariadb_answer(text: str) -> None:
    mariadb_client.ask(Says(text), mariadb_client.Server("/usr/bin/mariadb", "/s", (("--user=root",),)))


@of_text(
    Unobservable,
    seeds=[
        '{"Version": 2, "mysql_static_variables": {"innodb_doublewrite": {"Value": "OFF", "Metadata": {}}}}',
        '{"Version": 1, "mysql_server": {"sync_binlog": {"Value": "0"}}}',
        "/usr/sbin/mariadbd\0--no-defaults\0--innodb-doublewrite=0\0--log-bin\0--datadir\0/d",
    ],
)
def mariadb_start(text: str) -> None:
    version = mariadb_words.release("8.0.40")
    assert version
    begun = mariadb_options.start(text.split("\0"), {"HOME": text[:20]}, "/opt/m/bin/mariadbd")
    names = [name for name in mariadb_words.names(version) if name != mariadb_words.REDO]
    mariadb_options.persisted(
        names, version, begun, mariadb_options.Files(Says(text), "", ("27", "27")), "/d"
    )


@of_text(
    Malformed,
    seeds=[
        "[control]\nalternatewritethrough = 0\nwritethrough = 1\n[traceflag]\ntraceflag0 = 3979\ntraceflag=1800\n",
        "[filelocation]\nerrorlogfile = /v/log/errorlog\ndefaultdatadir=/d\n# x\n; y\n\n",
    ],
)
def mssql_conf_file(text: str) -> None:
    lines = mssql_conf.parse(text)
    _kept(text, lines)
    mssql.words(lines, None)
    list(mssql._directories(lines, {}))
    mssql._unclear_locations(lines, {})
    mssql._error_log(lines, {})


@of_text(
    seeds=[
        "2026-01-31 12:00:00.10 Server      Microsoft SQL Server 2022 (RTM-CU16) (KB5048033) - 16.0.4165.4 (X64)\n"
        "2026-01-31 12:00:00.11 Server      Registry startup parameters: \n\t -T 3979\n\t -T 1800\n\t -d /d/master.mdf\n",
        "/opt/mssql/bin/sqlservr -T3979 -T 1800 -m",
        "16.0.4185.3",
    ]
)
def mssql_log(text: str) -> None:
    number, _name, _flags = mssql.parse_log(text)
    mssql_policy.parse_version(number or "")
    mssql_policy.parse_version(text)
    mssql._flags_in(text)


@of_text(
    Malformed,
    ValueError,
    seeds=[
        "; a comment\nLOCAL_DIRECTORY ../data\nCOMPATIBILITY LOG_WRITETHRU\nCOMPATIBILITY TDATA_WRITETHRU\n",
        "SUBSYSTEM EVENT disk_full {\n  threshold 5\n}\nLOG_EVEN D0000000\nSERVER_DIRECTORY /d\n",
        ";SUBSYSTEM x {\n; }\nSYNC_COMMIT yes ; no\n",
    ],
)
def ctsrvr_cfg(text: str) -> None:
    lines = ctsrvr.parse(text)
    _kept(text, lines)
    ctsrvr.log_places(lines, "/w")
    ctsrvr.log_names(lines)
    faircom.words(lines, "ctsrvr.cfg", None)
    after = ctsrvr.add_compatibility(text, "LOG_WRITETHRU", NOTE)
    assert "LOG_WRITETHRU" in ctsrvr.compatibility(ctsrvr.parse(after))
    after = ctsrvr.remove_compatibility(after, "LOG_WRITETHRU")
    assert "LOG_WRITETHRU" not in ctsrvr.compatibility(ctsrvr.parse(after))
    after = ctsrvr.set_keyword(text, "LOG_EVEN", "L", NOTE)
    assert ctsrvr.value(ctsrvr.parse(ctsrvr.unset_keyword(after, "LOG_EVEN")), "LOG_EVEN") is None


@of_text(ChangeFailed, seeds=["; durable.dbhost: x\nCOMPATIBILITY LOG_WRITETHRU\nLOG_EVEN L\n"])
def ctsrvr_cfg_of_layer(text: str) -> None:
    faircom_layer._words(text, "ctsrvr.cfg")
    wanted = {"LOG_WRITETHRU": "on", "TDATA_WRITETHRU": "off"}
    faircom_layer._unmarked(faircom_layer._edit(text, "ctsrvr.cfg", wanted))


@of_text(
    seeds=[
        "Mon Jan 31 12:00:00 2026\n - User# 00001 FairCom DB Server V12.0.1.110-200724 Build 200724\n"
        "Mon Jan 31 12:00:01 2026\n - User# 00001 Server Is Operational -\tName 'FAIRCOMS'\n",
        "Server Is Operational\nServer shutdown completed\nLOG_WRITETHRU synchronous writes\n",
        "Sat Jan 31 12:00:00 2026\n - User# 00001\tProcess ID: 60\n"
        "Sat Jan 31 12:00:00 2026\n - User# 00001\tFairCom DB V12.0.1.214 Server Is Operational\n" * 2,
        "Mon Jan 31 12:00:00 2026\n - User# 00001\ttranrcv: Reconstructing index a.idx\n"
        "Mon Jan 31 12:00:01 2026\n - User# 00001\tAutomatic recovery terminated with error: 571\n",
    ]
)
def faircom_status(text: str) -> None:
    for running in (True, False):
        faircom_status_log.parse(text, "CTSTATUS.FCS", running)


@of_text(
    ValueError,
    seeds=[
        '# a comment\nRootDirectory = $(root)\nDatabaseAccess = Restrict /d; "/e f"\ninclude = /c/d/*.conf\n',
        'ForcedWrites="x\\"y"\nMaxUnflushedWrites = 5M\nExternalFileAccess = $(dir_udf)/x\n',
    ],
)
def firebird_conf_file(text: str) -> None:
    lines = firebird_conf.parse(text)
    _kept(text, lines)
    firebird_conf.effective(_tree(text), _names, "/c/main")
    for line in lines:
        for read in (firebird_conf.boolean, firebird_conf.integer):
            try:
                read(line.value or "")
            except ValueError:
                continue


@of_text(
    Malformed,
    seeds=[
        "employee = $(dir_sampleDb)/employee.fdb\nlive = /d/live.fdb\n{\n  RemoteAccess = false\n}\n",
        "security.db = $(dir_secDb)/security5.fdb\n{ DefaultDbCachePages = 256 }\nx = host:/d/x\ninclude = /c/d/*.conf\n",
    ],
)
def databases_conf_file(text: str) -> None:
    _kept(text, databases_conf.parse(text))
    databases_conf.databases(_tree(text), _names, "/c/main", {"root": "/r", "dir_secdb": "/s"})


@of_bytes(firebird_header.Unfamiliar, seeds=[_PAGE, _PAGE[:200]])
def firebird_page(page: bytes) -> None:
    firebird_header.is_database(page)
    firebird_header.next_file(page)
    firebird_databases._header(page)
    firebird_header.parse(page)


@of_text(
    seeds=[
        "1: POSIX  ADVISORY  WRITE 1234 08:01:131 0 EOF\n2: -> FLOCK ADVISORY READ -1 fd:00:9 0 EOF\n",
        "cat: x\n y\n",
    ]
)
def locks(text: str) -> None:
    list(firebird_files.parse_locks(text))


@of_text(
    Unobservable,
    seeds=[
        *fixtures("postgresql_15_answer.json"),
        *fixtures("postgresql_18_answer.json"),
        '{"version":"15.1","config":null,"settings":{},"pending":[],"overrides":[],"busy":0}',
    ],
)
def postgresql_answer(text: str) -> None:
    login = postgresql_server.Login("postgres", 26, "/usr/lib/postgresql/15/bin", "/d", "psql")

    class Server(Says):
        """The file of its process says where it is asked."""

        def run(self, argv: list[str], timeout: float = 0.0) -> Result:
            return Result(0, text, "")

    postgresql_server.ask(Server("1\n/d\n2\n5432\n/run\n"), login)


@of_text(Unobservable, seeds=fixtures("postmaster_pid_15.txt"))
def postmaster_pid(text: str) -> None:
    login = postgresql_server.Login("postgres", 26, "/usr/lib/postgresql/15/bin", "/d", "psql")
    postgresql_server.command(Says(text), login)


@of_text(
    Malformed,
    Unobservable,
    seeds=[
        "ExecStart={ path=/usr/bin/postgres ; argv[]=/usr/bin/postgres -D /d -c fsync=off -F --work-mem=1 ; x }\n",
        "Environment=PGDATA=/d A=b\nExecStart={ path=/x ; argv[]=/x -D ${PGDATA} -p 5433 ; }\nEnvironmentFiles=\n",
        "pg_ctl_options = '-o \"-c fsync=off\" -ox'\n",
    ],
)
def postgresql_start(text: str) -> None:
    host = Says(text)
    postgresql_cluster.settings_of(text.split())
    for find in (
        lambda: postgresql_cluster.data_of_unit(host, "postgresql.service"),
        lambda: postgresql_cluster._pg_ctl_words(postgresql_cluster.Files(host, ""), "/c/pg_ctl.conf"),
        lambda: postgresql_cluster._unit_words(text, "postgresql.service"),
        lambda: postgresql_cluster._unit_words(
            f"ExecStart={{ path=/p ; argv[]=/p {text} ; ignore_errors=no }}", "postgresql.service"
        ),
    ):
        try:
            find()
        except (Malformed, Unobservable):
            continue


@of_text(
    Unobservable,
    seeds=[
        "Id=mariadb.service\nNames=mariadb.service mysql.service\nLoadState=loaded\nActiveState=active\n"
        "TimeoutStopUSec=1min 30s\nExecStart={ path=/usr/sbin/mariadbd ; argv[]=/usr/sbin/mariadbd $OPTS ${X} ; }\n"
        'Environment=OPTS=--x A="b c"\nEnvironmentFiles=/etc/default/x (ignore_errors=yes)\nMainPID=17\n\nId=x\n',
        "Id=a\nTimeoutStopUSec=infinity\nNeedDaemonReload=yes\nWantedBy=multi-user.target\n",
        "OPTS='--y'\nX=\"z\"\n",
    ],
)
def systemd_units(text: str) -> None:
    host = Says(text)
    units.show(host, ["x"])
    # Each reads this text as a file of its own: a host has a few units of engines.
    for unit in units.parse(text)[:8]:
        units.differs(host, unit, [text[:20]], ["OPTS"], {"OPTS": text[:5]})


@of_text(ValueError, seeds=["1min 30s", "infinity", "0", "1y 2month 3.5s", "5us"])
def time_span(text: str) -> None:
    float(units.seconds(text))


@of_text(
    Unobservable,
    seeds=[
        "17 (a b) c) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2 3\n",
        "Name:\tx\nUid:\t999\t999\t999\t999\n/usr/sbin/x\0--a\0",
        "7f00-7f01 r-xp 00000000 08:01 131 /usr/lib/libeatmydata.so\nHOME=/root\0PGDATA=/d\0",
    ],
)
def process(text: str) -> None:
    host = Says(text)
    for read in (
        lambda: processes._read(host, 17, 1.0),
        lambda: processes.argv_of(host, 17),
        lambda: processes.variables(host, 17, ["HOME", "PGDATA"]),
        lambda: processes.user_of(host, 17),
    ):
        try:
            read()
        except Unobservable:
            continue


@of_text(
    Unobservable,
    seeds=['{"settings": {"fsync": "on"}, "start": "12345"}', "12.5 3\n", "1795201043.5\n", "0 81ed\n"],
)
def start_of_server(text: str) -> None:
    host = Says(text)
    start_files.noted(host, "mssql", since_start.Start(17, "12345", 1.0, 0.0))
    trusted_path.statuses(host, ["/x"])


@of_text(
    Unobservable,
    seeds=[
        "Id=x.service\nActiveState=active\nInactiveExitTimestamp=Tue 2023-11-14 22:13:21 UTC\n"
        "InactiveExitTimestampMonotonic=1000000\n"
    ],
)
def units_since_start(text: str) -> None:
    start = since_start.Start(17, "12345", 1.0, 0.0)
    since_start._set_clock(Says(text), start, since_start._fields(text))


@of_text(ValueError, seeds=["pos:\t0\nflags:\t02100002\nmnt_id:\t29\nino:\t131\n"])
def fdinfo(text: str) -> None:
    flags, _mount = open_files.parse_fdinfo(text)
    open_files.is_writable(flags)
    open_files.opened(flags, "x86_64")


@of_text(
    seeds=[
        "0::/system.slice/mariadb.service\n",
        "2:name=systemd:/x\n0::/system.slice/docker-" + "a" * 64 + ".scope/init\n",
        "0::/user.slice/user-1000.slice/session-1.scope\n",
    ]
)
def control_group(text: str) -> None:
    group = process_context.cgroup_of(text)
    process_context.container_of(group)
    process_context.unit_of(group)
