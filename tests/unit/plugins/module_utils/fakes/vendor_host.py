# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with fakes of SQL Server and FairCom DB: files have times, and servers read theirs at their start."""

from __future__ import annotations

import configparser
import io

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    READ_TIMEOUT,
    ChangeFailed,
    Result,
    Status,
)

from .fake_host import Mutation
from .fake_proc import DIRECT, RDWR, FakeProcess, ProcHost, as_user

BOOT = 1700000000.0
#: The owner of mssql.conf and its directory, as whom mssql-conf runs.
MSSQL = 998
AS_MSSQL = [*as_user(MSSQL, MSSQL), "env", "PYTHONNOUSERSITE=1"]
TOOL = "/opt/mssql/bin/mssql-conf"
SQLSERVR = "/opt/mssql/bin/sqlservr"
HOME = "/var/opt/mssql"
CONF = f"{HOME}/mssql.conf"
ERRORLOG = "/var/opt/mssql/log/errorlog"
MSSQL_UNIT, FAIRCOM_UNIT = "mssql-server.service", "faircom.service"
FAIRCOM = "/opt/faircom/server/faircom"
CFG = "/opt/faircom/config/ctsrvr.cfg"
STATUS = "/opt/faircom/data/CTSTATUS.FCS"
MSSQL_CONF = "[EULA]\naccepteula = Y\n\n"
CTSRVR_CFG = "; Ours\nSERVER_NAME FAIRCOMS\nLOCAL_DIRECTORY ../data\nCOMPATIBILITY KEEP_ME\n"
CU18 = "Microsoft SQL Server 2022 (RTM-CU18) (KB5050771) - 16.0.4185.3 (X64) "


class VendorHost(ProcHost):
    """The machine. `times`: path -> when it was last changed, in seconds since the epoch, 60 s after the boot
    where it is not there; `owners`: path -> `user:group`; `clock` is now, and goes on by 5 s with each change.

    `sqlservr` and `faircom` say what restarted servers log; `broken` makes mssql-conf change nothing,
    `chowns` makes it take the file for root; `hard_links`: the names of mssql.conf;
    `deaf` makes a restart leave the server as it was; `ends` makes it
    end so many seconds after a restart.
    """

    def __init__(self, *processes: FakeProcess) -> None:
        super().__init__(*processes)
        self.times: dict[str, float] = {}
        self.owners: dict[str, str] = {}
        self.clock = BOOT + 5000
        self.version = "V12.0.1.214(Build-230103)"
        self.broken = self.chowns = self.deaf = False
        self.slept, self.hard_links = 0, 1
        self.ends: int | None = None
        self.files["/proc/uptime"] = lambda: f"{self.clock - BOOT:.2f} 1.00\n"
        self.after_mutation = self._age
        self.files["/proc/sys/fs/protected_hardlinks"] = "1\n"
        self.units = {MSSQL_UNIT: {"TimeoutStopUSec": "30min"}, FAIRCOM_UNIT: {"TimeoutStopUSec": "10min"}}

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if tuple(argv) in self.commands:
            return super().run(argv, timeout)
        if argv[0] == "date":
            return Result(0, f"{self.clock:.9f}\n", "")
        if argv[0] == "sleep":
            self.clock += float(argv[1])
            self.slept += 1
            if self.slept == self.ends:
                self.end(50)
                self.end(60)
            return Result(0, "", "")
        if argv[:2] == ["getent", "passwd"]:
            known = argv[2] == str(MSSQL)
            return Result(0, f"mssql:x:998:998::{HOME}:/bin/bash\n", "") if known else Result(2, "", "")
        return super().run(argv, timeout)

    def on_change(self, argv: list[str]) -> None:
        if argv[: len(AS_MSSQL)] == AS_MSSQL:
            assert argv[len(AS_MSSQL)] == TOOL
            self._mssql_conf(argv[len(AS_MSSQL) + 1 :])
        elif argv[:2] == ["systemctl", "restart"]:
            self._restart(argv[-1])
        elif argv[0] != "sync":
            super().on_change(argv)

    def on_give(self, path: str, user: int, group: int) -> None:
        self.owners[path] = f"{user}:{group}"
        self.times[path] = self.clock

    def conf(self) -> configparser.ConfigParser:
        """Return mssql.conf as it is."""
        config = configparser.ConfigParser(interpolation=None)
        config.read_string(self.read(CONF) if self.exists(CONF) else "")
        return config

    def write(self, path: str, text: str, at: float | None = None) -> None:
        """Let somebody write a file, now unless `at` says when."""
        self.files[path] = text
        self.times[path] = self.clock if at is None else at

    def status(self, path: str) -> Status:
        found, at = super().status(path), self.times.get(path, BOOT + 60)
        usual = f"{MSSQL}:{MSSQL}" if f"{path}/".startswith(f"{HOME}/") else f"{found.user}:{found.group}"
        user, group = map(int, self.owners.get(path, usual).split(":"))
        mode = found.mode & ~0o7777 | self.modes.get(path, 0o660) if path == CONF else found.mode
        links = self.hard_links if path == CONF else 1
        return found._replace(user=user, group=group, mode=mode, modified=at, changed=at, links=links)

    def _mssql_conf(self, words: list[str]) -> None:
        config = self.conf()
        if words[0] == "traceflag":
            _trace_flag(config, words[1], words[2])
        else:
            _control(config, *words)
        text = io.StringIO()
        config.write(text)
        if not self.broken:
            self.write(CONF, text.getvalue())
        if self.chowns:
            self.owners[CONF] = "0:0"

    def _restart(self, unit: str) -> None:
        if self.deaf:
            return
        old = {MSSQL_UNIT: 50, FAIRCOM_UNIT: 60}[unit]
        new = FAKES[unit](ticks=int((self.clock + 1 - BOOT) * 100))
        self.clock += 2
        self.end(old)
        self.start(new)
        if unit == MSSQL_UNIT:
            flags = dict(self.conf().items("traceflag")) if self.conf().has_section("traceflag") else {}
            self.write(ERRORLOG, errorlog(*flags.values()))
        else:
            synchronous = "COMPATIBILITY LOG_WRITETHRU" in self.read(CFG)
            before = self.read(STATUS) if self.exists(STATUS) else ""
            self.write(STATUS, before + status(self.version, synchronous))

    def _age(self) -> None:
        mutation: Mutation = self.mutations[-1]
        if mutation[0] == "file":
            self.times[mutation[1]] = self.clock
        self.clock += 5


def _trace_flag(config: configparser.ConfigParser, number: str, state: str) -> None:
    if not config.has_section("traceflag"):
        config.add_section("traceflag")
    there = [key for key, value in config.items("traceflag") if value == number]
    for key in there if state == "off" else ():
        config.remove_option("traceflag", key)
    if state == "on" and not there:
        free = next(i for i in range(99) if not config.has_option("traceflag", f"traceflag{i}"))
        config.set("traceflag", f"traceflag{free}", number)


def _control(config: configparser.ConfigParser, command: str, name: str, value: str = "") -> None:
    section, _dot, key = name.partition(".")
    if command == "set" and value not in ("0", "1"):
        raise ChangeFailed(f"{TOOL}: exit 1: Validation error on setting '{name}'")
    if not config.has_section(section):
        config.add_section(section)
    if command == "set":
        config.set(section, key, value)
    else:
        config.remove_option(section, key)


def errorlog(*flags: str, version: str = CU18) -> str:
    """Return what SQL Server logs at its start."""
    listed = "".join(f"\t -T {flag}\n" for flag in flags)
    return (
        f"2026-01-31 12:00:00.01 Server      {version}\n\tFeb 1 2025 00:00:00 \n"
        "2026-01-31 12:00:00.02 Server      UTC adjustment: 0:00\n"
        f"2026-01-31 12:00:00.02 Server      Registry startup parameters: \n{listed}"
        "\t -d /var/opt/mssql/data/master.mdf\n\t -e /var/opt/mssql/log/errorlog\n"
        "2026-01-31 12:00:00.03 Server      SQL Server is starting at normal priority base (=7).\n"
    )


def status(version: str, synchronous: bool) -> str:
    """Return what FairCom DB logs at a start."""
    said = ["Server shutdown completed", "Process ID: 60"]
    said += ["Transaction logs using synchronous I/O."] if synchronous else []
    said.append(f"FairCom DB {version} Server Is Operational       -SN 50475612")
    return "".join(f"\nSat Jan 31 12:00:00 2026\n - User# 00001\t{words}\n" for words in said)


def sqlservr(ticks: int = 100000, argv: tuple[str, ...] = (), **given: object) -> FakeProcess:
    """Return the process of SQL Server, which began 1000 s after the boot."""
    return FakeProcess(
        50,
        SQLSERVR,
        (SQLSERVR, *argv),
        ticks=ticks,
        cgroup=f"0::/system.slice/{MSSQL_UNIT}\n",
        files=(("/data/master.mdf", RDWR | DIRECT, 31),),
        **given,  # type: ignore[arg-type]
    )


def faircom(ticks: int = 100000, argv: tuple[str, ...] = (), **given: object) -> FakeProcess:
    """Return the process of FairCom DB, which began 1000 s after the boot."""
    return FakeProcess(
        60,
        FAIRCOM,
        ("./faircom", *argv),
        ticks=ticks,
        cwd="/opt/faircom/server",
        cgroup=f"0::/system.slice/{FAIRCOM_UNIT}\n",
        files=(("/data/L0000001.FCS", RDWR, 31),),
        **given,  # type: ignore[arg-type]
    )


FAKES = {MSSQL_UNIT: sqlservr, FAIRCOM_UNIT: faircom}


def with_mssql(text: str = MSSQL_CONF, *flags: str, **given: object) -> VendorHost:
    """Return a host where SQL Server runs with this configuration."""
    host = VendorHost(sqlservr(**given))  # type: ignore[arg-type]
    host.files.update({TOOL: "", CONF: text})
    host.write(ERRORLOG, errorlog(*flags), at=BOOT + 1001)
    return host


def with_faircom(text: str = CTSRVR_CFG, synchronous: bool = False, **given: object) -> VendorHost:
    """Return a host where FairCom DB runs with this configuration."""
    host = VendorHost(faircom(**given))  # type: ignore[arg-type]
    host.files.update({CFG: text})
    host.write(STATUS, status(host.version, synchronous), at=BOOT + 1001)
    return host
