# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of a scratch server of this host's own version, with its own files, socket and port.

Server and clients run as the server's user, in a directory that a supervisor removes. Every commit waits for the disk.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ..engines.contract import ENGINES
from ..host import confined
from ..host.process_context import Places
from ..host.processes import Process, Processes
from ..host.seam import Host, Unobservable
from . import fio, firebird_load
from .limits import MIB, Refused, expect_space
from .supervisor import Supervisor, supervised

#: Seconds for which the server may start, for its tables to be created, and that a client may take beyond its run time.
_START, _LOAD, _PATIENCE = 60.0, 600.0, 60.0
_AGAIN = 0.5
#: As the working directory of server and clients is the scratch directory: libpq requires an absolute path.
_HERE = "/proc/self/cwd"


class Kind(NamedTuple):
    """The servers that one client program measures. `folders`: patterns of directories with a server's program."""

    names: str
    engine: str
    user: str
    folders: tuple[str, ...]
    client: str
    package: str


_POSTGRESQL = Kind(
    "PostgreSQL",
    "postgresql",
    "postgres",
    ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin", "/usr/bin"),
    "pgbench",
    "postgresql-VERSION (Debian), postgresql-contrib (Red Hat, SUSE)",
)
_MYSQL = Kind(
    "MariaDB or MySQL",
    "mariadb",
    "mysql",
    ("/usr/sbin", "/usr/libexec", "/usr/bin"),
    "sysbench",
    "sysbench (Debian, SUSE, EPEL)",
)
_FIREBIRD = Kind(
    "Firebird",
    "firebird",
    "firebird",
    ("/usr/sbin", "/usr/bin"),
    # Not isql, which is a program of unixODBC.
    "isql-fb",
    "firebird3.0-utils (Debian), firebird-utils (Red Hat)",
)
#: What is measured, by its name: the kind of the server.
LOADS = {
    "pgbench_tpcb": _POSTGRESQL,
    "oltp_read_write": _MYSQL,
    "oltp_write_only": _MYSQL,
    "firebird_tpcb": _FIREBIRD,
}
#: TPC-B updates one row for each branch, so there are as many branches as clients; MiB of a branch, and of the rest.
_BRANCH, _CLUSTER = 17, 700
#: Of sysbench: 8 tables of 25000 rows need 60 MiB, the server's files 200 MiB.
_TABLES, _ROWS, _SCHEMA = 8, 25000, 400
#: MiB of a Firebird database, and of the locks and sort files of a client.
_DATABASE_SIZE, _CLIENT_SIZE = 100, 2
_DATABASE = "durable_benchmark"
_PGBENCH = re.compile(
    r"actually processed: (\d+).*^tps = ([\d.]+) \((?:without initial connection time|excluding connections)",
    re.M | re.S,
)
_SYSBENCH = re.compile(r"transactions: +(\d+) +\(([\d.]+) per sec\.\).*99th percentile: +([\d.]+)", re.S)
#: What pgbench reports of its connections, and without a transaction; the seconds that it gets for them.
_CONNECTED, _NONE = (
    re.compile(r"^initial connection time = ([\d.]+) ms", re.M),
    re.compile(r"actually processed: 0$", re.M),
)
_CONNECTING = (5, 20, 60)
#: Seconds in which a client connects at least, on a slow host.
CONNECTION = 3
#: Output of a client before the server accepts connections.
_NOT_YET = re.compile(r"unable to connect|could not connect|connection to server|starting up")


class Server(NamedTuple):
    """A server's program and version, its user, and the client program; `cpus`: how many threads a client may use."""

    kind: Kind
    program: str
    version: str
    user: confined.Account
    client: str
    cpus: int

    @property
    def is_postgresql(self) -> bool:
        """Return whether pgbench measures it; else it is sysbench."""
        return self.kind.engine == _POSTGRESQL.engine

    def size(self, clients: int) -> int:
        """Return the bytes that a scratch server for so many clients needs."""
        if self.kind is _FIREBIRD:
            return MIB * (_DATABASE_SIZE + _CLIENT_SIZE * clients)
        return MIB * (_CLUSTER + _BRANCH * clients if self.is_postgresql else _SCHEMA)


def find(host: Host, loads: Sequence[str], targets: Sequence[str]) -> dict[str, Server]:
    """Return the server of each load. Raises Refused, with the package, if a program is missing."""
    servers = {kind: _server(host, kind, targets) for kind in dict.fromkeys(LOADS[load] for load in loads)}
    return {load: servers[LOADS[load]] for load in loads}


def _server(host: Host, kind: Kind, targets: Sequence[str]) -> Server:
    try:
        program, user = _running(host, kind, targets) or _installed(host, kind)
        folder = posixpath.dirname(program)
        folders = (folder,) if kind is _POSTGRESQL else ("/usr/bin", "/usr/local/bin", folder)
        client = next((path for each in folders if host.exists(path := f"{each}/{kind.client}")), "")
        if not client:
            raise Refused(
                f"transactions: {kind.client} is missing in {', '.join(folders)}. Fix: install {kind.package}"
            )
        account = confined.account(host, user)
        # The engine of Firebird is that of isql, which opens the database itself.
        asked = [client, "-z", "-quiet"] if kind is _FIREBIRD else [program, "--version"]
        result = host.run(confined.command(host, account, asked))
        if result.rc != 0:
            raise Unobservable(f"{' '.join(asked)}: exit {result.rc}: {result.stderr.strip()[:200]}")
        confined.command(host, account, [client])
    except Unobservable as error:
        raise Refused(f"transactions: {error}") from error
    version = (result.stdout.strip() or result.stderr.strip()).partition("\n")[0]
    if kind is _FIREBIRD and not firebird_load.engine(version):
        raise Refused(f"transactions: {client}: observed {version!r}; expected Firebird 3, 4 or 5")
    return Server(kind, program, version, account, client, os.cpu_count() or 1)


def _running(host: Host, kind: Kind, targets: Sequence[str]) -> tuple[str, str] | None:
    """Return program and user of the server that runs: of one in a measured mount, else of the only one."""
    processes = Processes(host)
    places = Places(host)
    mains = [
        main
        for main in processes.mains(ENGINES[kind.engine].observer.PROGRAMS)
        if main.exe and not (places.of(main).root or places.of(main).container)
    ]
    here = [main for main in mains if _is_in(processes, main, targets)] or mains
    found = {(host.resolve(str(main.exe)), processes.user(main)) for main in here}
    return _only(kind, sorted(found), "run") if found else None


def _is_in(processes: Processes, main: Process, targets: Sequence[str]) -> bool:
    """Return whether a server's working directory, which is its data directory, is in one of these mounts."""
    directory = processes.directory(main)
    return any(f"{directory}/".startswith(f"{target.rstrip('/')}/") for target in targets)


def _installed(host: Host, kind: Kind) -> tuple[str, str]:
    programs = ENGINES[kind.engine].observer.PROGRAMS[:2]
    paths = [
        f"{folder}/{name}" for each in kind.folders for folder in _folders(host, each) for name in programs
    ]
    found = {host.resolve(path) for path in paths if host.exists(path)}
    if not found:
        raise Refused(
            f"transactions: no server program of {kind.names} is installed. Fix: choose other transactions"
        )
    return _only(kind, sorted((path, kind.user) for path in found), "are installed")


def _folders(host: Host, pattern: str) -> list[str]:
    """Return the directories of a pattern with at most one `*`."""
    if "*" not in pattern:
        return [pattern]
    before, _star, after = pattern.partition("*")
    parent, start = posixpath.split(before)
    names = host.names(parent) if host.exists(parent) else []
    return [f"{parent}/{name}{after}" for name in names if name.startswith(start)]


def _only(kind: Kind, found: Sequence[tuple[str, str]], how: str) -> tuple[str, str]:
    if len(found) > 1:
        named = ", ".join(f"{program} (user {user})" for program, user in found)
        raise Refused(
            f"transactions: several servers of {kind.names} {how}: {named}. Fix: measure the mount of one that runs"
        )
    return found[0]


class Scratch:
    """A scratch server that accepts connections."""

    def __init__(self, host: Host, server: Server, supervisor: Supervisor) -> None:
        self._host, self._server, self._supervisor = host, server, supervisor
        #: Clients -> the seconds that pgbench gets for their connections.
        self._connecting: dict[int, int] = {}

    def prepare(self, clients: int) -> None:
        """Create the cluster, start the server and create the tables. Raises Unobservable."""
        if self._server.kind is _FIREBIRD:
            self._run(self._firebird("prepare", clients, 0), firebird_load.VARIABLES)
            return
        self._start()
        deadline = time.monotonic() + _START
        load = self._client("oltp_write_only", "prepare")
        if self._server.is_postgresql:
            load = self._pgbench("--initialize", "--quiet", f"--scale={clients}")
        while True:
            result = self._supervisor.run(load, _LOAD)
            if result.rc == 0:
                return
            if not _NOT_YET.search(result.stdout) or time.monotonic() > deadline:
                server = self._supervisor.server_output()
                raise Unobservable(
                    f"{self._server.client}: exit {result.rc}: {_end(result.stdout)}; the server's output: {_end(server)}"
                )
            time.sleep(_AGAIN)

    def measure(self, load: str, clients: int, seconds: int) -> fio.Figures:
        """Return the figures of so many clients. Raises Unobservable."""
        if self._server.is_postgresql:
            return self._measure_pgbench(clients, seconds)
        if self._server.kind is _FIREBIRD:
            run = self._as_user(self._firebird("run", clients, seconds), firebird_load.VARIABLES)
            return parse(self._output(run, seconds + CONNECTION * clients), clients)
        argv = self._client(load, "run", f"--threads={clients}", f"--time={seconds}", "--percentile=99")
        return parse(self._output(argv, seconds), clients)

    def _measure_pgbench(self, clients: int, seconds: int) -> fio.Figures:
        """Return the figures of pgbench, whose time includes that of its connections, and whose rate does not.

        If these take more than half of the time, it is measured again with more time.
        """
        threads = min(clients, self._server.cpus)
        known = self._connecting.get(clients, 0)
        for more in (known, *(extra for extra in _CONNECTING if extra > known)):
            limit = seconds + more
            output = self._output(
                self._pgbench("--no-vacuum", f"--client={clients}", f"--jobs={threads}", f"--time={limit}"),
                limit,
            )
            connected = _CONNECTED.search(output)
            spent = float(connected[1]) / 1000 if connected else limit if _NONE.search(output) else 0.0
            if limit - spent >= seconds / 2:
                self._connecting[clients] = more
                break
        return parse(output, clients)

    def _output(self, argv: Sequence[str], seconds: int) -> str:
        result = self._supervisor.run(argv, seconds + _PATIENCE)
        if result.rc != 0:
            raise Unobservable(f"{self._server.client}: exit {result.rc}: {_end(result.stdout)}")
        return result.stdout

    def _start(self) -> None:
        program = self._server.program
        if self._server.is_postgresql:
            folder = posixpath.dirname(program)
            self._run(
                [
                    f"{folder}/initdb",
                    "--pgdata=.",
                    "--no-sync",
                    "--auth=trust",
                    "--username=postgres",
                    "--no-locale",
                ]
            )
            # Shared memory in the directory, which is removed, and not in /dev/shm.
            settings = {
                "listen_addresses": "",
                "unix_socket_directories": ".",
                "max_connections": "100",
                "max_wal_size": "512MB",
                "fsync": "on",
                "synchronous_commit": "on",
                "dynamic_shared_memory_type": "mmap",
            }
            self._supervisor.start(
                self._as_user(
                    [
                        program,
                        "-D",
                        ".",
                        *(word for name in settings for word in ("-c", f"{name}={settings[name]}")),
                    ]
                )
            )
            return
        first = [program, "--no-defaults", "--datadir=.", "--tmpdir=.", "--skip-networking"]
        if "MariaDB" not in self._server.version:
            self._run([*first[:3], "--initialize-insecure"])
            first.append("--mysqlx=OFF")
        self._supervisor.start(
            self._as_user(
                [
                    *first,
                    "--socket=./s",
                    "--pid-file=./pid",
                    "--skip-grant-tables",
                    "--skip-log-bin",
                    "--max-connections=100",
                    "--innodb-flush-log-at-trx-commit=1",
                    "--init-file=../durable-init.sql",
                ]
            )
        )

    def _firebird(self, action: str, clients: int, seconds: int) -> list[str]:
        plugin = firebird_load.engine(self._server.version)
        return firebird_load.argv(sys.executable, self._server.client, plugin, action, clients, seconds)

    def _run(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        result = self._supervisor.run(self._as_user(argv, variables), _LOAD)
        if result.rc != 0:
            raise Unobservable(f"{argv[0]}: exit {result.rc}: {_end(result.stdout)}")

    def _pgbench(self, *words: str) -> list[str]:
        return self._as_user(
            [self._server.client, f"--host={_HERE}", "--username=postgres", *words, "postgres"]
        )

    def _client(self, load: str, action: str, *words: str) -> list[str]:
        return self._as_user(
            [
                self._server.client,
                load,
                "--db-driver=mysql",
                "--mysql-socket=./s",
                "--mysql-user=root",
                f"--mysql-db={_DATABASE}",
                f"--tables={_TABLES}",
                f"--table-size={_ROWS}",
                *words,
                action,
            ]
        )

    def _as_user(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
        return confined.command(self._host, self._server.user, argv, variables)


@contextmanager
def running(
    host: Host, server: Server, target: str, place: int, clients: int, seconds: float
) -> Iterator[Scratch]:
    """Run a scratch server for at most `clients` on a mount, open at `place`, for `seconds` at most.

    Raises Refused without the space, Unobservable.
    """
    expect_space(target, os.fstatvfs(place), server.size(clients))
    text = f"CREATE DATABASE IF NOT EXISTS {_DATABASE};\n"
    with supervised(target, place, server.user, text, seconds + _START + _LOAD) as supervisor:
        scratch = Scratch(host, server, supervisor)
        scratch.prepare(clients)
        yield scratch


def parse(text: str, clients: int) -> fio.Figures:
    """Return the figures that a client reports; only sysbench has a `p99`. Raises Unobservable. Pure."""
    found = _PGBENCH.search(text) or _SYSBENCH.search(text) or firebird_load.RESULT.search(text)
    commits, rate = (int(found[1]), float(found[2])) if found else (0, 0.0)
    if not found or commits < 1 or rate <= 0:
        raise Unobservable(
            f"transactions: not the output of pgbench, sysbench or isql, or no transaction: {_end(text)}"
        )
    if found.re is firebird_load.RESULT:
        rate = commits / rate
    p99 = float(found[3]) if found.re is _SYSBENCH else None
    return fio.figures(commits, commits / rate, clients, p99)


def _end(text: str) -> str:
    """Return the last lines of an output as one."""
    return " ".join(text.split())[-500:]
