# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of a scratch server: which server, its settings, the clients' output; and, if installed, real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import confined
from ansible_collections.durable.dbhost.plugins.module_utils.host.confined import Account
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    benchmark,
    fio,
    firebird_load,
    planned,
    plot,
    transactions,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import MIB, Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.transactions import (
    _FIREBIRD,
    _MYSQL,
    _POSTGRESQL,
    LOADS,
    Server,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import AS_IT_IS, Variant

from ..fakes.fake_proc import FakeProcess, ProcHost
from .test_benchmark import ROW, FioHost, place, row
from .test_scratch import mount_of

BIN = "/usr/lib/postgresql/15/bin"
#: Output of pgbench 15, and of pgbench 13 with its two lines.
PGBENCH = """\
pgbench (15.18)
transaction type: <builtin: TPC-B (sort of)>
number of transactions actually processed: 1679
number of failed transactions: 0 (0.000%)
latency average = 7.059 ms
initial connection time = 53.780 ms
tps = 566.636867 (without initial connection time)
"""
PGBENCH_13 = """\
number of transactions actually processed: 400
tps = 190.000000 (including connections establishing)
tps = 200.000000 (excluding connections establishing)
"""
#: Output of sysbench 1.0.20.
SYSBENCH = """\
    transactions:                        1271   (422.19 per sec.)
    queries:                             25420  (8443.85 per sec.)
Latency (ms):
         avg:                                    9.44
         99th percentile:                       41.10
"""
POSTGRESQL = Server(
    _POSTGRESQL, f"{BIN}/postgres", "postgres (PostgreSQL) 15.18", Account(26, 26), f"{BIN}/pgbench", 2
)
MARIADB = Server(
    _MYSQL, "/usr/sbin/mariadbd", "mariadbd Ver 10.11.19-MariaDB", Account(27, 27), "/usr/bin/sysbench", 2
)
FIREBIRD = Server(
    _FIREBIRD,
    "/usr/sbin/firebird",
    "ISQL Version: LI-V3.0.11.33637 Firebird 3.0",
    Account(28, 28),
    "/usr/bin/isql-fb",
    2,
)
MYSQL = MARIADB._replace(program="/usr/sbin/mysqld", version="mysqld Ver 8.0.36 for Linux")


class TestParse:
    def test_figures(self) -> None:
        assert transactions.parse(PGBENCH, 4) == fio.Figures(1679, 566.6, 7.059, None)
        assert transactions.parse(PGBENCH_13, 1).rate == 200.0
        assert transactions.parse("durable-firebird: 90 commits in 4.5 s\n", 4).rate == 20.0
        assert transactions.parse(SYSBENCH, 4) == fio.Figures(1271, 422.2, 9.474, 41.1)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "tps = 5",
            PGBENCH.replace("1679", "0"),
            SYSBENCH.replace("422.19", "0.00"),
            SYSBENCH.partition("Lat")[0],
        ],
    )
    def test_other_output_is_no_figure(self, text: str) -> None:
        with pytest.raises(Unobservable, match="not the output of pgbench, sysbench or isql"):
            transactions.parse(text, 1)


class Programs(ProcHost):
    """A host with some programs, each of which reports its path as its version."""

    isql = FIREBIRD.version

    def __init__(self, programs: Sequence[str], processes: Sequence[FakeProcess] = ()) -> None:
        super().__init__(*processes)
        for path in programs:
            self.files[path] = "program"

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[:2] == ["getent", "passwd"]:
            user = argv[2]
            return Result(0, f"x:x:{user if user.isdigit() else 26}:26:::\n", "")
        if argv[1:] == ["-z", "-quiet"]:
            return Result(0, f"{self.isql}\n", "")
        if argv[1:] == ["--version"]:
            return Result(0, f"{argv[0]} 15\n", "")
        return super().run(argv, timeout)


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands as they are: the fake host has neither keys nor directories."""
    monkeypatch.setattr(confined, "command", lambda _host, _user, argv, _variables=None: list(argv))


@pytest.mark.usefixtures("unconfined")
class TestFind:
    def found(self, host: ProcHost, load: str = "pgbench_tpcb") -> tuple[str, int, str]:
        server = transactions.find(host, [load], ["/data"])[load]
        assert server.version == f"{server.program} 15"
        return server.program, server.user.uid, server.client

    def test_the_server_that_runs_is_measured_with_its_own_client_and_user(self) -> None:
        other = "/usr/lib/postgresql/13/bin"
        host = Programs(
            [f"{BIN}/postgres", f"{BIN}/pgbench", f"{other}/postgres", f"{other}/pgbench"],
            [FakeProcess(700, f"{other}/postgres", uid=4711)],
        )
        assert self.found(host) == (f"{other}/postgres", 4711, f"{other}/pgbench")

    def test_of_several_it_is_the_one_in_the_measured_mount(self) -> None:
        programs = [
            f"/usr/lib/postgresql/{version}/bin/{name}"
            for version in (13, 15)
            for name in ("postgres", "pgbench")
        ]
        here = FakeProcess(701, f"{BIN}/postgres", cwd="/data/main")
        there = FakeProcess(700, "/usr/lib/postgresql/13/bin/postgres", cwd="/database/main")
        assert self.found(Programs(programs, [here, there]))[0] == f"{BIN}/postgres"
        with pytest.raises(
            Refused, match=r"several servers of PostgreSQL run: .*13.*15.* Fix: measure the mount of one"
        ):
            self.found(Programs(programs, [here.__class__(701, here.exe), there]))

    def test_a_server_in_a_container_has_programs_that_the_host_has_not(self) -> None:
        inside = FakeProcess(
            700,
            "/usr/bin/postgres",
            cgroup=f"0::/system.slice/docker-{'a' * 64}.scope\n",
            namespace="4026533111",
            mountinfo="22 1 0:99 / / rw - overlay overlay rw\n",
        )
        host = Programs([f"{BIN}/postgres", f"{BIN}/pgbench"], [inside])
        assert self.found(host)[0] == f"{BIN}/postgres"

    def test_without_a_running_server_it_is_the_only_one_that_is_installed(self) -> None:
        host = Programs(["/usr/sbin/mariadbd", "/usr/bin/sysbench"])
        assert self.found(host, "oltp_write_only") == ("/usr/sbin/mariadbd", 26, "/usr/bin/sysbench")
        two = Programs([f"{BIN}/postgres", "/usr/pgsql-13/bin/postgres"])
        with pytest.raises(Refused, match="several servers of PostgreSQL are installed"):
            self.found(two)

    def test_the_engine_of_firebird_is_that_of_isql(self) -> None:
        host = Programs(["/usr/sbin/firebird", "/usr/bin/isql-fb"])
        server = transactions.find(host, ["firebird_tpcb"], ["/data"])["firebird_tpcb"]
        assert (server.version, server.client) == (FIREBIRD.version, "/usr/bin/isql-fb")
        host.isql = "ISQL Version: LI-V2.5.9.27139 Firebird 2.5"
        with pytest.raises(Refused, match=r"observed 'ISQL.*2.5'; expected Firebird 3, 4 or 5"):
            transactions.find(host, ["firebird_tpcb"], ["/data"])

    @pytest.mark.parametrize(
        ("programs", "load", "why"),
        [
            ([], "pgbench_tpcb", "no server program of PostgreSQL is installed"),
            ([], "oltp_read_write", "no server program of MariaDB or MySQL is installed"),
            (
                [f"{BIN}/postgres"],
                "pgbench_tpcb",
                rf"pgbench is missing in {BIN}. Fix: install .*postgresql-contrib",
            ),
            ([], "firebird_tpcb", "no server program of Firebird is installed"),
            # That is unixODBC's.
            (["/usr/sbin/firebird", "/usr/bin/isql"], "firebird_tpcb", "isql-fb is missing .*-utils"),
            (["/usr/sbin/mysqld"], "oltp_read_write", "sysbench is missing .* Fix: install sysbench"),
        ],
    )
    def test_a_missing_program_is_refused_with_its_package(
        self, programs: list[str], load: str, why: str
    ) -> None:
        with pytest.raises(Refused, match=why):
            transactions.find(Programs(programs), [load], ["/data"])


class FakeSupervisor:
    """Records commands; `results` are returned one after the other, then success."""

    def __init__(self, *results: Result) -> None:
        self.results, self.ran, self.started = list(results), [], []  # type: list[Result], list[Any], list[Any]

    def run(self, argv: Sequence[str], _timeout: float) -> Result:
        self.ran.append(list(argv))
        return self.results.pop(0) if self.results else Result(0, PGBENCH, "")

    def start(self, argv: Sequence[str]) -> None:
        self.started.append(list(argv))

    def server_output(self) -> str:
        return "the disk\nis full"


OK = Result(0, "", "")


@pytest.mark.usefixtures("unconfined")
class TestScratch:
    def scratch(self, server: Server, supervisor: Any) -> transactions.Scratch:
        return transactions.Scratch(Host(), server, supervisor)

    def test_postgresql_waits_for_the_disk_and_listens_only_in_its_directory(self) -> None:
        supervisor = FakeSupervisor()
        found = self.scratch(POSTGRESQL, supervisor)
        found.prepare(80)
        (started,) = supervisor.started
        settings = {
            "fsync=on",
            "synchronous_commit=on",
            "listen_addresses=",
            "unix_socket_directories=.",
            "dynamic_shared_memory_type=mmap",
        }
        assert settings <= set(started)
        assert [argv[0] for argv in supervisor.ran] == [f"{BIN}/initdb", f"{BIN}/pgbench"]
        assert {"--scale=80", "--host=/proc/self/cwd"} <= set(supervisor.ran[1])
        assert found.measure("pgbench_tpcb", 40, 5).commits == 1679
        assert {"--client=40", "--jobs=2", "--time=5", "--no-vacuum"} <= set(supervisor.ran[2])

    def test_mariadb_and_mysql_wait_for_the_disk_and_listen_on_no_network(self) -> None:
        for server, first in ((MARIADB, []), (MYSQL, [["--initialize-insecure"]])):
            supervisor = FakeSupervisor(*[OK] * (len(first) + 1), Result(0, SYSBENCH, ""))
            found = self.scratch(server, supervisor)
            found.prepare(80)
            (started,) = supervisor.started
            assert started[:2] == [server.program, "--no-defaults"]
            assert {"--innodb-flush-log-at-trx-commit=1", "--skip-networking", "--socket=./s"} <= set(started)
            assert ("--mysqlx=OFF" in started) == (server is MYSQL)
            assert [argv[-1:] for argv in supervisor.ran[:-1]] == first
            assert supervisor.ran[-1][-1] == "prepare"
            assert found.measure("oltp_read_write", 4, 5).p99 == 41.1
            assert supervisor.ran[-1][1] == "oltp_read_write"
            assert {"--threads=4", "--time=5", "run"} <= set(supervisor.ran[-1])

    def test_firebird_opens_its_database_without_a_server(self) -> None:
        done = Result(0, "durable-firebird: 90 commits in 4.5 s\n", "")
        supervisor = FakeSupervisor(OK, done)
        found = self.scratch(FIREBIRD, supervisor)
        found.prepare(80)
        assert found.measure("firebird_tpcb", 40, 5).commits == 90
        assert supervisor.started == []
        isql = ["/usr/bin/isql-fb", "Engine12"]
        assert [argv[4:] for argv in supervisor.ran] == [
            [*isql, "prepare", "80", "0"],
            [*isql, "run", "40", "5"],
        ]
        assert {argv[3] for argv in supervisor.ran} == {firebird_load.DRIVER}
        with pytest.raises(Unobservable, match="exit 1: isql: no engine"):
            self.scratch(FIREBIRD, FakeSupervisor(Result(1, "isql: no engine", ""))).prepare(1)

    def test_the_tables_are_created_when_the_server_accepts_connections(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transactions, "_AGAIN", 0.0)
        refused = Result(1, 'pgbench: error: connection to server on socket ".s.PGSQL.5432" failed', "")
        starting = Result(1, "FATAL:  the database system is starting up", "")
        supervisor = FakeSupervisor(OK, refused, starting)
        self.scratch(POSTGRESQL, supervisor).prepare(1)
        assert len(supervisor.ran) == 4
        failed = FakeSupervisor(OK, Result(1, "could not extend file", ""))
        with pytest.raises(
            Unobservable, match="pgbench: exit 1: could not extend file; the server's output: the disk is"
        ):
            self.scratch(POSTGRESQL, failed).prepare(1)
        monkeypatch.setattr(transactions, "_START", -1.0)
        with pytest.raises(Unobservable, match="starting up"):
            self.scratch(POSTGRESQL, FakeSupervisor(OK, starting)).prepare(1)

    def test_connections_that_take_the_time_are_given_more(self) -> None:
        none = PGBENCH.partition("actually processed")[0] + "actually processed: 0\n"
        slow = PGBENCH.replace("53.780", "9000.0")
        supervisor = FakeSupervisor(Result(0, none, ""), Result(0, slow, ""), Result(0, slow, ""))
        found = self.scratch(POSTGRESQL, supervisor)
        assert found.measure("pgbench_tpcb", 80, 5).rate == 566.6
        found.measure("pgbench_tpcb", 80, 5)
        found.measure("pgbench_tpcb", 1, 5)
        times = [word for argv in supervisor.ran for word in argv if word.startswith("--time")]
        assert times == ["--time=5", "--time=10", "--time=25", "--time=25", "--time=5"]
        with pytest.raises(Unobservable, match="no transaction"):
            self.scratch(POSTGRESQL, FakeSupervisor(*[Result(0, none, "")] * 4)).measure("pgbench_tpcb", 1, 5)

    @pytest.mark.parametrize("load", ["pgbench_tpcb", "oltp_write_only", "firebird_tpcb"])
    def test_a_failed_command_is_no_figure(self, load: str) -> None:
        server = {_POSTGRESQL: POSTGRESQL, _MYSQL: MARIADB, _FIREBIRD: FIREBIRD}[LOADS[load]]
        with pytest.raises(Unobservable, match="exit 2: lost connection"):
            self.scratch(server, FakeSupervisor(Result(2, "lost\nconnection", ""))).measure(load, 1, 2)
        if server is POSTGRESQL:
            with pytest.raises(Unobservable, match="initdb: exit 2"):
                self.scratch(server, FakeSupervisor(Result(2, "no", ""))).prepare(1)

    def test_without_the_space_nothing_is_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert (POSTGRESQL.size(80), MARIADB.size(80)) == (2060 * MIB, 400 * MIB)
        status = os.statvfs_result((MIB, MIB, 10000, 8000, 8000, 1, 1, 1, 0, 255))
        monkeypatch.setattr(transactions.os, "fstatvfs", lambda _place: status)
        with (
            pytest.raises(Refused, match="8240 MiB for a scratch file"),
            transactions.running(Host(), POSTGRESQL, "/srv", 0, 80, 5),
        ):
            pass


class TestBenchmark:
    """What the benchmark makes of transactions."""

    def test_they_are_planned_as_more_ways_to_commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            transactions, "find", lambda _host, loads, _targets: dict.fromkeys(loads, POSTGRESQL)
        )
        made = planned.plan(FioHost(), {**ROW, "patterns": [], "transactions": ["pgbench_tpcb"]})
        assert (made.ways, made.runs) == ([planned.Way("pgbench_tpcb")], 2)
        unnamed = {**ROW, "patterns": ["osync"], "clients": None}
        assert planned.plan(FioHost(), unnamed).clients == [1, 4, 16]
        unnamed["transactions"] = ["pgbench_tpcb"]
        assert planned.plan(FioHost(), unnamed).clients == [1, 10, 20, 40, 80]
        both = planned.plan(FioHost(), {**ROW, "patterns": ["osync"], "transactions": ["pgbench_tpcb"]})
        assert both.ways == [planned.Way("osync"), planned.Way("pgbench_tpcb")]
        # One mount after the other.
        assert both._replace(places=[place(), place(target="/log")]).runs == 6
        with pytest.raises(Refused, match="transactions: observed"):
            planned.plan(FioHost(), {**ROW, "transactions": ["tpcc"]})
        with pytest.raises(Refused, match="patterns: observed"):
            planned.plan(FioHost(), {**ROW, "patterns": []})

    def test_each_number_of_clients_has_a_row_with_the_server(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        measured = []

        class Fake:
            def measure(self, load: str, clients: int, seconds: int) -> fio.Figures:
                measured.append((load, clients, seconds))
                return fio.Figures(100, 60000.0, 1.0, None)

        @contextmanager
        def running(_host: Any, server: Any, target: str, _place: int, clients: int, _seconds: float) -> Any:
            measured.append((server, target, clients))
            yield Fake()

        monkeypatch.setattr(transactions, "running", running)
        ways = [planned.Way("oltp_read_write"), planned.Way("oltp_write_only")]
        there = place(target=str(tmp_path), mount=mount_of(tmp_path))
        servers = {way.pattern: MARIADB for way in ways}
        made = planned.Plan([there], ways, [1, 80], [Variant(AS_IT_IS)], 5, 1, 50000, None, servers)
        rows = benchmark.run(FioHost(), made, busy_allowed=True)
        pairs = [(load, clients, 5) for load in servers for clients in (1, 80)]
        assert measured == [(MARIADB, str(tmp_path), 80), *pairs], "one server, for the most clients"
        assert [(each["pattern"], each["clients"]) for each in rows] == [pair[:2] for pair in pairs]
        assert {(each["server"], each["held_back"], each["p99"]) for each in rows} == {
            (MARIADB.version, "no", None)
        }

    def test_the_cost_of_a_profile_in_transactions_is_next_to_the_patterns(self) -> None:
        load = {**row(AS_IT_IS, 50, pattern="pgbench_tpcb"), "server": POSTGRESQL.version, "p99": None}
        rows = [row(AS_IT_IS, 100), load]
        made = planned.Plan([place()], [planned.Way("dsync")], [1], [Variant(AS_IT_IS)], 5, 1, 50000)
        known = {"flush": {"engines": "full", "rests_on": "flush", "barrier": "on", "write_cache": "enabled"}}
        result = benchmark.result_of(made, rows, {}, known)
        table = str(result["table"]).splitlines()
        assert [line.split()[0] for line in table[2:4]] == ["dsync", "pgbench_tpcb"]
        assert table[3].split()[1:] == ["50", "(1.00)", "flush"]
        assert [rate["server"] for rate in result["prices"][0]["rates"]] == [None, POSTGRESQL.version]
        assert f"pgbench_tpcb: transactions of {POSTGRESQL.version}" in table
        assert next(line for line in table[4:] if line.startswith("pgbench_tpcb ")).split()[-2] == "-"
        # Transactions are no way to write a log.
        assert [line for line in result["advice"] if "fastest" in line] == [
            "/srv, 1 client(s): dsync is the fastest way to commit, 10.0 ms"
        ]
        assert benchmark.result_of(made, [load], {}, known)["advice"] == []
        assert plot.way(load) == "pgbench_tpcb"


class TestFirebird:
    """The driver of isql, with a program in its place."""

    ISQL = f"""#!{sys.executable} -I
import os, sys, time
if os.path.exists("broken"):
    sys.exit("Statement failed")
for line in sys.stdin:
    open("script", "a").write(line)
    if "as forced" in line:
        print("FORCED                          1", flush=True)
    if "as ready" in line:
        print("READY                           1", flush=True)
    if "returns (commits" in line:
        time.sleep(0.2)
        print("COMMITS                         7", flush=True)
"""

    def run(self, directory: Path, *arguments: Any) -> Any:
        isql = directory / "isql"
        isql.write_text(self.ISQL)
        isql.chmod(0o755)
        argv = firebird_load.argv(sys.executable, str(isql), "Engine12", *arguments)
        return subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=30, check=False)

    def test_the_commits_of_all_clients_are_counted_each_on_its_own_branch(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, "run", 3, 2)
        assert transactions.parse(done.stdout, 3).commits == 21
        script = (tmp_path / "script").read_text()
        assert script.count("connect 'tpcb.fdb'") == script.count("in autonomous transaction do") == 3
        assert all(f"where bid = {number} + 1" in script for number in range(3))

    def test_the_database_forces_writes_and_no_server_is_used(self, tmp_path: Path) -> None:
        assert self.run(tmp_path, "prepare", 80, 0).returncode == 0
        assert "while (b <= 80)" in (tmp_path / "script").read_text()
        assert "Providers = Engine12\n" in (tmp_path / "firebird.conf").read_text()
        self.ISQL = self.ISQL.replace("FORCED                          1", "FORCED 0")
        assert "does not force writes" in self.run(tmp_path, "prepare", 80, 0).stderr
        (tmp_path / "broken").touch()
        done = self.run(tmp_path, "prepare", 80, 0)
        assert (done.returncode, "isql: Statement failed" in done.stderr) == (1, True)


@pytest.mark.parametrize("load", ["pgbench_tpcb", "oltp_write_only", "firebird_tpcb"])
def test_real_transactions_and_nothing_remains(load: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as the server's user")
    # A server that was installed without its package's service has no user.
    kind = LOADS[load]._replace(user="nobody")
    monkeypatch.setitem(LOADS, load, kind)
    monkeypatch.setattr(transactions, "_ROWS", 1000)
    try:
        server = transactions.find(Host(), [load], ["/"])[load]
    except Refused as error:
        pytest.skip(str(error))
    # The user must reach it, which pytest's own directory does not allow.
    with tempfile.TemporaryDirectory(dir="/srv") as name:
        os.chmod(name, 0o755)
        directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        with transactions.running(Host(), server, name, directory, 2, 60) as scratch:
            figures = scratch.measure(load, 2, 2)
        os.close(directory)
        assert figures.commits > 2
        assert (figures.p99 is None) == (load != "oltp_write_only")
        assert os.listdir(name) == []
