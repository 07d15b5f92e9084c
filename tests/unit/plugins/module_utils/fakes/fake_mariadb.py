# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake MariaDB or MySQL server on a fake host: what is set in it, or in its files, shows in its answers."""

from __future__ import annotations

import contextlib
import re

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import options
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import versions as words
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    CHANGE_TIMEOUT,
    READ_TIMEOUT,
    ChangeFailed,
    Result,
    Status,
    Unobservable,
)

from .fake_proc import FakeProcess, ProcHost

PID = 80
SOCKET = "/run/mysqld/mysqld.sock"
MAIN = "/etc/mysql/mariadb.cnf"
SERVER_CNF = "/etc/mysql/mariadb.conf.d/50-server.cnf"
DROP_IN = "/etc/mysql/mariadb.conf.d/zz-durable-dbhost.cnf"
MARIADB = "10.11.19-MariaDB-0+deb12u1"
MYSQL = "8.0.36-0ubuntu0.22.04.1"
#: The socket that the server listens at, and its descriptor of it.
LISTENS, DESCRIPTOR = 777, 21
#: What the client of MariaDB 10.11 has in it of connection strings.
CLIENT = ("restricted-auth", "in connection string (offset")
DENIED = "ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: NO)\n"
#: As Debian ships them, without the comments.
FILES = {
    MAIN: (
        "[client-server]\nsocket = /run/mysqld/mysqld.sock\n"
        "!includedir /etc/mysql/conf.d/\n!includedir /etc/mysql/mariadb.conf.d/\n"
    ),
    "/etc/mysql/conf.d/mysql.cnf": "[mysql]\n",
    "/etc/mysql/mariadb.conf.d/50-client.cnf": "[client]\npassword = secret-word\n",
    SERVER_CNF: "[mysqld]\nbind-address = 127.0.0.1\nbasedir = /usr\n",
}
VARIABLES = {
    "aria_log_dir_path": "/var/lib/mysql/",
    "datadir": "/var/lib/mysql/",
    "innodb_data_file_path": "ibdata1:12M:autoextend",
    "innodb_data_home_dir": "",
    "innodb_doublewrite": "ON",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_flush_method": "O_DIRECT",
    "innodb_log_group_home_dir": "./",
    "innodb_undo_directory": "./",
    "log_bin": "OFF",
    "log_bin_basename": "",
    "sync_binlog": "0",
}
_LOG = "innodb_flush_log_at_trx_commit"
_LIVE = (_LOG, "sync_binlog")


class MariaHost(ProcHost):
    """One server on Debian. Change `variables` and files freely.

    `login`: the arguments that are let in; `unflushed`: what of its log waits to be flushed, `log` in
    InnoDB's, `binlog` in the kernel's memory; `deaf`: settings that it takes and forgets; `owners`:
    path -> (mode, user, group) as stat(1) says them. After a restart it `ends` at once, or is silent for
    `silent` seconds. `stated`: what its program says that it would start with, other than what our own
    reading of its files makes of them; None has it say nothing. `client`: texts that are in the client.
    """

    def __init__(self, version: str = MARIADB, running: bool = True, argv: tuple[str, ...] = ()) -> None:
        self.version = version
        self.is_mariadb = "MariaDB" in version
        self.program = "/usr/sbin/mariadbd" if self.is_mariadb else "/usr/sbin/mysqld"
        self.unit = "mariadb.service" if self.is_mariadb else "mysql.service"
        super().__init__()
        self.process = FakeProcess(
            PID,
            self.program,
            (self.program, *argv),
            cwd="/var/lib/mysql",
            cgroup=f"0::/system.slice/{self.unit}\n",
            environment={"HOME": "/nonexistent", "SECRET": "secret-word"},
        )
        self.variables = {**VARIABLES, "version": version}
        self.redo = "ON" if not self.is_mariadb else ""
        if not self.is_mariadb:
            self.variables.update(sync_binlog="1", log_bin="ON", innodb_flush_method="fsync")
            self.variables["log_bin_basename"] = "/var/lib/mysql/binlog"
        self.login = "--user=root"
        self.unflushed: set[str] = set()
        self.deaf: tuple[str, ...] = ()
        self.owners: dict[str, tuple[str, str, str]] = {}
        self.client = CLIENT
        self.restarts = 0
        self.ends = False
        self.silent = 0
        self.stated: dict[str, str] | None = {}
        self.files.update(FILES)
        self.files.update(dict.fromkeys([self.program, "/usr/bin/mariadb", "/usr/bin/mysql"], ""))
        self.files[f"/lib/systemd/system/{self.unit}"] = ""
        self.files["/var/lib/mysql/ibdata1"] = ""
        self.files["/etc/passwd"] = "root:x:0:0::/root:/bin/sh\nmysql:x:104:110::/nonexistent:/bin/false\n"
        self.links["/etc/mysql/my.cnf"] = MAIN
        self.units = {self.unit: {"TimeoutStopUSec": "15min", "ExecStart": ""}}
        if running:
            self.start(self.process)
            self.listen(SOCKET)
            self.files[f"/proc/{PID}/status"] = "Uid:\t0\t26\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t30 \n"

    def listen(self, path: str) -> None:
        """Let the server listen at a socket file."""
        self.files[path] = ""
        self.listening, self.listener = {path: LISTENS}, PID
        self.magic[f"/proc/{PID}/fd/{DESCRIPTOR}"] = f"socket:[{LISTENS}]"

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if argv[:2] == ["grep", "-aoF"] and argv[-1].startswith("/usr/bin/m"):
            found = [text for text in self.client if f"--regexp={text}" in argv]
            return Result(0 if found else 1, "".join(f"{text}\n" for text in found), "")
        if argv[0] == "sleep":
            self.silent = max(0, self.silent - int(argv[1]))
            return Result(0, "", "")
        if argv[0].startswith("/usr/bin/m"):
            self.asked.append(tuple(argv))
            return self._answer(argv)
        if argv[0] == "setpriv" and argv[-2:] == ["--help", "--verbose"]:
            self.asked.append(tuple(argv))
            return self._help(argv)
        if argv[0] == "setpriv" and argv[-3:] == [self.program, "--no-defaults", "--version"]:
            self.asked.append(tuple(argv))
            return Result(0, f"{self.program}  Ver {self.version} for Linux on x86_64\n", "")
        return super().run(argv, timeout)

    def status(self, path: str) -> Status:
        found = super().status(path)
        if path not in self.owners:
            return found
        mode, user, group = self.owners[path]
        return found._replace(user=int(user), group=int(group), mode=found.mode & ~0o7777 | int(mode, 8))

    def change(self, argv: list[str], timeout: float = CHANGE_TIMEOUT) -> None:
        super().change(argv, timeout)

    def on_change(self, argv: list[str]) -> None:
        if argv[0].startswith("/usr/bin/m"):
            if self.login not in argv:
                raise ChangeFailed(DENIED)
            (sql,) = [word for word in argv if word.startswith("--execute=")]
            for statement in sql[len("--execute=") :].split("; "):
                self._execute(statement)
        elif argv[:3] == ["systemctl", "restart", "--"]:
            assert argv[3:] == [self.unit]
            self.restart()
        elif argv[:2] == ["sync", "--file-system"]:
            assert argv[2].startswith("/")
            self.unflushed.discard("binlog")
        else:
            super().on_change(argv)

    def restart(self) -> None:
        """Start the server again, with what its files say."""
        self.restarts += 1
        if self.ends:
            self.end(PID)
        for name in ("innodb_doublewrite", "innodb_flush_method", *_LIVE):
            said = self._configured(name)
            if said is not None and name not in self.deaf:
                self.variables[name] = said

    def _configured(self, name: str) -> str | None:
        """Return the last word of the files that Debian's configuration includes, in the order of their names."""
        found = None
        for path in sorted(path for path in self.files if path.startswith("/etc/mysql/mariadb.conf.d/")):
            for line in self.files[path].splitlines():
                key, equals, value = line.partition("=")
                if equals and key.strip().replace("-", "_") in (name, f"loose_{name}"):
                    found = value.strip()
        return found

    def _answer(self, argv: list[str]) -> Result:
        if f"--socket={SOCKET}" not in argv and "--socket=/proc" not in " ".join(argv):
            return Result(1, "", "ERROR 2002 (HY000): Can't connect to local server through socket\n")
        if self.restarts and self.silent:
            return Result(1, "", "ERROR 2002 (HY000): Can't connect to local server through socket\n")
        if self.login not in argv:
            return Result(1, "", DENIED)
        (sql,) = [word for word in argv if word.startswith("--execute=")]
        asked = re.findall(r"'([a-z_]+)'", sql)
        rows = [
            f"{name}\t{self._escaped(self.variables[name])}\n" for name in asked if name in self.variables
        ]
        if self.redo:
            rows.append(f"Innodb_redo_log_enabled\t{self.redo}\n")
        return Result(0, "".join(rows), "")

    def _help(self, argv: list[str]) -> Result:
        """Answer as the program does: oracles/mariadb.py holds our reading against a real one."""
        if self.stated is None:
            return Result(7, "", "unknown variable\n")
        first = argv.index(self.program)
        end = argv.index("--") + 1
        given = dict(word.split("=", 1) for word in argv[end + 1 : first])
        version = words.release(self.version)
        assert version
        begun = options.start(argv[first:], given, self.program)
        uid, gid = (argv[number].partition("=")[2] for number in (1, 2))
        groups = argv[3].partition("=")[2].split(",")
        rows = {name: self._default(version, name) for name in words.names(version) if name != words.REDO}
        if version.is_mariadb:
            rows[words.NO_SYNC] = "FALSE"
        with contextlib.suppress(Unobservable):
            found = options.effective(options.Files(self, "", (uid, gid, *groups)), begun, version)
            for name in rows:
                with contextlib.suppress(Unobservable):
                    last = options.last_value(name, options.Reading(version, begun, found))
                    if last:
                        rows[name] = "TRUE" if last[0] is None else last[0]
        if rows[words.LOG_BIN] == "0":
            rows[words.LOG_BIN] = "(No default value)"
        rows.update(self.stated)
        table = "".join(f"{name.replace('_', '-'):<60} {value}\n" for name, value in sorted(rows.items()))
        heading = "Variables (--variable-name=value)\nand boolean options {FALSE|TRUE}  Value\n----- -----\n"
        return Result(0, f"{self.program}  Ver {self.version}\n\n{heading}{table}\nTo see\n", "")

    def _default(self, version: words.Release, name: str) -> str:
        word = words.default(version, name)
        return ("mysqld-bin" if word == "ON" else "0") if name == words.LOG_BIN else word

    def _escaped(self, value: str) -> str:
        return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")

    def _execute(self, statement: str) -> None:
        match = re.fullmatch(r"SET GLOBAL (\w+) = (\d+)", statement)
        if match and match[1] in _LIVE:
            if match[1] not in self.deaf:
                self.variables[match[1]] = match[2]
        elif statement == "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS":
            # Measured with 10.11.19: at 3 it flushes nothing.
            if self.variables[_LOG] == "1" or not self.is_mariadb:
                self.unflushed.discard("log")
        elif statement == "ALTER INSTANCE ENABLE INNODB REDO_LOG" and self.redo:
            self.redo = "ON"
        else:
            raise ChangeFailed(f"ERROR 1064 (42000) at line 1: {statement}")
