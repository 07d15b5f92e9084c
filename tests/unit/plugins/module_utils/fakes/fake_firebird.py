# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with databases of Firebird, and a fake gfix that behaves as Firebird 3 and 4 were seen to.

It changes the header of a database also while others have it open; a server in mode Super keeps
others from opening it by a lock. It refuses a database that is read-only or shut down.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    CHANGE_TIMEOUT,
    READ_TIMEOUT,
    ChangeFailed,
    CommandFailed,
    Result,
    Status,
    Unobservable,
)

from .fake_proc import DSYNC, RDWR, FakeProcess, ProcHost

#: The device of the disk that fake_proc has mounted on /data.
DEVICE = os.makedev(8, 17)
OWNER, PERSON = 150, 1000
PASSWORD = "secret word"
GFIX = "/usr/bin/gfix"
#: How a program begins.
ELF = "\x7fELF\x02\x01"
REFUSED = (
    "Your user name and password are not defined. Ask your database administrator to set up a Firebird login."
)
FORCED, READ_ONLY, SHADOW, BACKUP, SHUT = 0x2, 0x20, 0x1, 0x400, 0x1000


@dataclass
class FakeDatabase:
    """A file that begins as a database does. `kind` is that of st_mode."""

    flags: int = FORCED
    major: int = 12
    sequence: int = 0
    following: str = ""
    owner: int = OWNER
    created: bytes = b"created!"
    inode: int = 4711
    kind: int = 0o100660
    content: bytes | None = None

    def page(self) -> bytes:
        """Return its first bytes."""
        if self.content is not None:
            return self.content
        page = bytearray(1024)
        page[0] = 1
        struct.pack_into("=HH", page, 16, 8192, 0x8000 | self.major)
        struct.pack_into("=HH", page, 40, self.sequence, self.flags)
        page[44:52] = self.created
        name = self.following.encode()
        start = 132 if self.major == 12 else 128
        page[start : start + 2 + len(name)] = bytes((2 if name else 0, len(name))) + name
        return bytes(page)


@dataclass
class Server:
    """What a test says of the server that a database is changed by with a password.

    `said`: (user and group, command, variables, firebird.conf that the client reads).
    """

    answers: bool = False
    said: list[tuple[Any, ...]] = field(default_factory=list)


class FirebirdHost(ProcHost):
    """The machine. `databases`: path -> file; `locks`: (pid, path); `lie`: gfix says that it did, and did not;
    `opened_by`: a process that opens a database while gfix changes it; `accounts`: numbers of users that
    have a name, beside those up to 1000; `version`: what gfix prints of itself.
    """

    def __init__(self, *processes: FakeProcess, **databases: FakeDatabase) -> None:
        super().__init__(*processes)
        self.databases: dict[str, FakeDatabase] = {}
        self.locks: list[tuple[int, str]] = []
        self.server = Server()
        self.lie = False
        self.version = "gfix version LI-V3.0.11.33637 Firebird 3.0"
        self.accounts: set[str] = set()
        self.files.update({"/usr/bin/gfix": "", "/usr/bin/gstat": ""})
        self.opened_by: FakeProcess | None = None
        self.add(**{f"/data/{name}.fdb": database for name, database in databases.items()})

    def add(self, **databases: FakeDatabase) -> None:
        """Add files by path."""
        for path, database in databases.items():
            database.inode += len(self.databases)
            self.databases[path] = database
            self.files[path] = ""

    def install(self, path: str = GFIX, content: str = ELF) -> None:
        """Install a gfix."""
        self.files[path] = content

    def open(
        self, pid: int, path: str, flags: int = RDWR | DSYNC, program: str = "/usr/sbin/firebird"
    ) -> None:
        """Start a process that has a database open, and locked."""
        self.start(FakeProcess(pid, program, files=((path, flags, 31),)))
        self.locks.append((pid, path))

    def read(self, path: str) -> str:
        if path == "/proc/locks":
            lines = (
                f"{number}: FLOCK  ADVISORY  WRITE {pid} 08:11:{self.databases[name].inode} 0 EOF\n"
                for number, (pid, name) in enumerate(self.locks, 1)
            )
            return "1: POSIX  ADVISORY  READ 9 08:11:1 0 EOF\n" + "".join(lines)
        return super().read(path)

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if tuple(argv) in self.commands:
            return super().run(argv, timeout)
        paths = [word for word in argv[1:] if word.startswith("/")]
        if any(path == hung or path.startswith(f"{hung}/") for path in paths for hung in self.hung):
            self.asked.append(tuple(argv))
            raise Unobservable(f"{' '.join(argv)}: no answer within {timeout:g} s")
        if argv[:2] == ["getent", "passwd"]:
            self.asked.append(tuple(argv))
            uid = {"firebird": str(OWNER)}.get(argv[2], argv[2])
            known = uid in self.accounts or int(uid) <= PERSON
            return Result(0, f"u:x:{uid}:{uid}::/:\n", "") if known else Result(2, "", "")
        if argv[0] == "setpriv" and argv[-1] == "-z" and argv[-2] in self.files:
            self.asked.append(tuple(argv))
            return Result(0, f"{self.version}\n", "")
        if argv[0] == "setpriv" or argv[-1] == "-z":
            self.asked.append(tuple(argv))
            raise Unobservable(f"{argv[0]}: No such file or directory")
        return super().run(argv, timeout)

    def change(
        self,
        argv: list[str],
        timeout: float = CHANGE_TIMEOUT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        assert PASSWORD not in " ".join(argv)
        super().change(argv, timeout, environment)

    def on_change(self, argv: list[str]) -> None:
        if argv[0] == "sync":
            return
        assert argv[0] == "setpriv", argv
        ids, command = argv[1:4], argv[6:]
        word, path = command[2:]
        conf = self.files.get(f"{self.environment.get('FIREBIRD')}/firebird.conf")
        self.server.said.append((ids, command, dict(self.environment), conf))
        remote = path.partition(":")[2] if ":" in path else ""
        if remote and self.environment.get("ISC_PASSWORD") != PASSWORD:
            raise CommandFailed(argv, 1, REFUSED)
        self._gfix(self.databases[remote or path], ids, word, remote)

    def _gfix(self, database: FakeDatabase, ids: list[str], word: str, remote: str) -> None:
        if database.flags & SHUT or database.flags & READ_ONLY:
            raise ChangeFailed("gfix: exit 1: attempted update on read-only database")
        if not remote and ids != [f"--reuid={OWNER}", f"--regid={OWNER}", "--init-groups"]:
            raise ChangeFailed("gfix: exit 1: Permission denied -/tmp/firebird/")
        if remote and not self.server.answers:
            raise ChangeFailed("gfix: exit 1: Failed to establish a connection.")
        if not self.lie:
            database.flags = database.flags | FORCED if word == "sync" else database.flags & ~FORCED
        if self.opened_by:
            self.start(self.opened_by)
            self.locks.append((self.opened_by.pid, self.opened_by.files[0][0]))

    def status(self, path: str) -> Status:
        found = super().status(path)._replace(device=DEVICE)
        database = self.databases.get(path)
        if database is None:
            return found
        return found._replace(inode=database.inode, user=database.owner, group=150, mode=database.kind)

    def size(self, path: str) -> int:
        return 2**20 if path in self.databases else 0

    def content(self, path: str) -> bytes:
        return self.databases[path].page() if path in self.databases else super().content(path)
