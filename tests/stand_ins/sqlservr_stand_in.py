# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for SQL Server on Linux: it opens and writes its files as mssql.conf says, and logs its start.

A parent watches a child that does the work, as the real one has it. Files of databases are opened with
O_DIRECT, and with O_DSYNC too where writethrough is 1 and alternatewritethrough 0; with 1 and 1 each
write is followed by a flush. MSSQL_STAND_IN_ROOT is put before its paths, for tests;
MSSQL_STAND_IN_VERSION is what it says it is. MSSQL_STAND_IN_TEMPDB is the directory of tempdb's files, which the
real one is told by ALTER DATABASE.
"""

from __future__ import annotations

import configparser
import mmap
import os
import re
import signal
import sys
import time
from types import FrameType

ROOT = os.environ.get("MSSQL_STAND_IN_ROOT", "")
HOME = "/var/opt/mssql"
VERSION = os.environ.get(
    "MSSQL_STAND_IN_VERSION", "Microsoft SQL Server 2022 (RTM-CU18) (KB5050771) - 16.0.4185.3 (X64)"
)
PAGE = 8192
#: [filelocation] key -> (environment variable that goes before it, default).
PLACES = {
    "defaultdatadir": ("MSSQL_DATA_DIR", f"{HOME}/data"),
    "defaultlogdir": ("MSSQL_LOG_DIR", f"{HOME}/data"),
    "errorlogfile": ("MSSQL_ERROR_LOG_FILE", f"{HOME}/log/errorlog"),
    "masterdatafile": ("MSSQL_MASTER_DATA_FILE", f"{HOME}/data/master.mdf"),
    "masterlogfile": ("MSSQL_MASTER_LOG_FILE", f"{HOME}/data/mastlog.ldf"),
}


class Settings:
    """What it read from mssql.conf, the environment and its command line."""

    def __init__(self) -> None:
        config = configparser.ConfigParser(interpolation=None, allow_no_value=True)
        config.read(f"{ROOT}{HOME}/mssql.conf")
        self.through = config.get("control", "writethrough", fallback="1") == "1"
        self.alternate = config.get("control", "alternatewritethrough", fallback="1") == "1"
        flags = dict(config.items("traceflag")) if config.has_section("traceflag") else {}
        self.flags = [value for key, value in flags.items() if re.fullmatch(r"traceflag\d*", key)]
        self.flags += [word[2:] for word in sys.argv[1:] if re.fullmatch(r"-T\d+", word)]
        self.places = {
            key: ROOT + (os.environ.get(variable) or config.get("filelocation", key, fallback=default))
            for key, (variable, default) in PLACES.items()
        }

    @property
    def opened(self) -> int:
        """Flags with which files of databases are opened."""
        dsync = os.O_DSYNC if self.through and not self.alternate else 0
        return os.O_RDWR | os.O_CREAT | os.O_DIRECT | dsync

    @property
    def flushes(self) -> bool:
        """Whether each write is followed by a flush."""
        return self.through and self.alternate


class ErrorLog:
    """Its log, which begins again at each start; the former one becomes errorlog.1."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.rename(path, f"{path}.1")
        self.handle = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 (open while it runs)

    def say(self, words: str) -> None:
        """Log one message."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now * 100) % 100:02}"
        self.handle.write(f"{stamp} Server      {words}\n")


def main() -> None:
    """Watch the child that does the work, and hand it the signal to stop."""
    # Neither of the two shall miss a signal that comes before it is ready for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda _number, _frame: os.kill(child, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _pid, status = os.waitpid(child, 0)
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def work() -> None:
    """Open the files, say so, and write a log record twice a second until SIGTERM."""
    stopping: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    settings = Settings()
    log = ErrorLog(settings.places["errorlogfile"])
    announce(log, settings)
    names = (settings.places["masterdatafile"], settings.places["masterlogfile"])
    data, logs = settings.places["defaultdatadir"], settings.places["defaultlogdir"]
    scratch = os.environ.get("MSSQL_STAND_IN_TEMPDB")
    tempdb = (f"{scratch or data}/tempdb.mdf", f"{scratch or logs}/templog.ldf")
    paths = dict.fromkeys([*names, *tempdb, f"{data}/user.mdf", f"{logs}/user_log.ldf"])
    files = {path: open_file(path, settings) for path in paths}
    log.say(
        "SQL Server is now ready for client connections. This is an informational message; no user action is required."
    )
    count = 0
    while not stopping:
        write(files[f"{logs}/user_log.ldf"], count % 16, settings)
        count += 1
        time.sleep(0.5)
    log.say("SQL Server is terminating because of a system shutdown. This is an informational message only.")


def announce(log: ErrorLog, settings: Settings) -> None:
    """Log version and start-up parameters."""
    log.say(
        f"{VERSION} \n\tJan  1 2026 00:00:00 \n\tA stand-in, no SQL Server\n"
        "\tDeveloper Edition (64-bit) on Linux (stand-in) <X64>"
    )
    log.say("UTC adjustment: 0:00")
    log.say(f"Server process ID is {os.getpid()}.")
    log.say(f"Logging SQL Server messages in file '{settings.places['errorlogfile']}'.")
    parameters = [f"-T {flag}" for flag in settings.flags]
    parameters += [f"-d {settings.places['masterdatafile']}", f"-l {settings.places['masterlogfile']}"]
    lines = "".join(f"\n\t {words}" for words in [*parameters, f"-e {settings.places['errorlogfile']}"])
    log.say(f"Registry startup parameters: {lines}")
    log.say("This is a stand-in for SQL Server: no SQL, no network.")


def open_file(path: str, settings: Settings) -> int:
    """Open a file of a database, and give it its first pages."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, settings.opened, 0o660)
    if os.fstat(descriptor).st_size < 16 * PAGE:
        os.posix_fallocate(descriptor, 0, 16 * PAGE)
    write(descriptor, 0, settings)
    return descriptor


def write(descriptor: int, page: int, settings: Settings) -> None:
    """Write one page, and flush where that is this server's way."""
    with mmap.mmap(-1, PAGE) as memory:
        memory.write(str(time.time_ns()).encode().ljust(PAGE, b"\0"))
        os.pwritev(descriptor, [memory], page * PAGE)
    if settings.flushes:
        os.fdatasync(descriptor)


if __name__ == "__main__":
    main()
