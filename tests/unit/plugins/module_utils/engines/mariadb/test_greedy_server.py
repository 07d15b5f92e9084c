# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that requests the password in another way, and the real client if this machine has one.

Without one, the command line is compared with the one that was tried with the clients 10.11.19 and 11.8.9.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import client
from ansible_collections.durable.dbhost.plugins.module_utils.host import unix_sockets
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import READ_TIMEOUT, Host, Result

from ...fakes.fake_mariadb import LISTENS, SOCKET, MariaHost
from ...fakes.greedy_mariadb import GreedyServer

SECRET = "secret-word"
CLIENT = shutil.which("mariadb")
RESTRICTED = "--host=localhost;restricted_auth=mysql_native_password,client_ed25519"
#: By what a client would show the password, and what comes before: (named at once, requested then).
REQUESTS = [
    ("mysql_native_password", "mysql_clear_password"),
    ("mysql_native_password", "mysql_old_password"),
    ("mysql_native_password", "dialog"),
    ("mysql_native_password", "sha256_password"),
    ("mysql_native_password", "caching_sha2_password"),
    ("mysql_clear_password", ""),
    ("mysql_old_password", ""),
    ("dialog", ""),
    ("caching_sha2_password", ""),
]


class MachineHost(MariaHost):
    """The fake machine, but its server listens at a socket of this machine, and its client is this machine's."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.uids[SOCKET] = 26
        self.login = "nobody"

    def hold_socket(self, path: str, timeout: float = READ_TIMEOUT) -> unix_sockets.HeldSocket:
        assert path == SOCKET
        return Host().hold_socket(str(self.path), timeout)._replace(mount="22")

    def listeners(self, timeout: float = READ_TIMEOUT) -> list[unix_sockets.Listener]:
        inode = self.path.stat().st_ino
        found = [row for row in Host().listeners() if row.inode == inode & unix_sockets.INODE]
        assert found, "the kernel lists no such socket"
        return [row._replace(number=LISTENS, device="8:1") for row in found]

    def socket_listener(self, path: str, timeout: float = READ_TIMEOUT) -> int:
        assert Host().socket_listener(path) == os.getpid()
        return self.listener

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if CLIENT and argv[0] == "grep" and argv[-1] == "/usr/bin/mariadb":
            return Host().run([*argv[:-1], CLIENT])
        if argv[0] != "/usr/bin/mariadb":
            return super().run(argv, timeout)
        self.asked.append(tuple(argv))
        if CLIENT is None:
            return Result(1, "", "no client here\n")
        done = run_client(argv)
        return Result(done.returncode, done.stdout, done.stderr)


def run_client(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run this machine's client, which finds a password in its environment as well."""
    environment = {**os.environ, "MYSQL_PWD": SECRET}
    return subprocess.run(
        [str(CLIENT), *argv[1:]],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture(name="machine")
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineHost:
    passwords = tmp_path / "my.cnf"
    passwords.write_text(f"[client]\nuser = root\npassword = {SECRET}\nskip-ssl\n")
    monkeypatch.setattr(client, "PASSWORDS", str(passwords))
    host = MachineHost(tmp_path / "s")
    host.files[str(passwords)] = ""
    return host


def sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def scramble() -> bytes:
    """Return the answer to the challenge by which mysql_native_password proves the password."""
    stage = sha1(SECRET.encode())
    mask = sha1(b"abcdefghijklmnopqrst" + sha1(stage))
    return bytes(one ^ other for one, other in zip(stage, mask))


@pytest.mark.parametrize(("first", "then"), REQUESTS)
def test_a_server_that_requests_the_password_gets_at_most_an_answer_to_a_challenge(
    first: str, then: str, machine: MachineHost
) -> None:
    server = GreedyServer(machine.path, first, then)
    try:
        (found,) = collect.Engines(machine, ("mariadb",)).instances()
    finally:
        server.close()
    assert found["settings"]["innodb_flush_log_at_trx_commit"]["running"] == "unknown"
    logins = [argv for argv in machine.asked if argv[0] == "/usr/bin/mariadb"]
    assert "--skip-password" in logins[0]
    # An old client gets no password.
    assert all(RESTRICTED in argv for argv in logins[1:])
    if CLIENT is None:
        assert len(logins) == 2
        pytest.skip("NOT RUN: no mariadb client is here, so its answers to the server are not compared")
    # The first login has no password; the second sends its first packet only to a server that names a challenge.
    assert not [sent for sent in server.answers if SECRET.encode() in sent]
    proofs = [sent for sent in server.answers if scramble() in sent]
    assert len(proofs) == (len(logins) - 1 if then else 0)
    # What it requested instead is refused: no packet follows.
    assert server.answers[len(server.answers) - len(proofs) :] == proofs
