# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process at Firebird's port that asks gfix for the hash, and the real gfix if this machine has one.

Without one, its configuration is compared with the one that was tried with gfix 3.0.11 and 4.0.5.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import login
from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host

SECRET = "secret-word"
#: What Legacy_Auth makes of it: crypt(3) with the salt "9z", without that salt.
HASH = b"vHTCBYsMisE"
GFIX = next(
    filter(
        None,
        (shutil.which(path) for path in ("/opt/firebird/bin/gfix", "/usr/lib/firebird/4.0/bin/gfix", "gfix")),
    ),
    None,
)


def number(value: int) -> bytes:
    return struct.pack(">I", value & 0xFFFFFFFF)


def counted(text: bytes) -> bytes:
    return number(len(text)) + text + b"\0" * (-len(text) % 4)


#: Protocols 10 and 13, as op_accept, op_cond_accept and op_cont_auth of protocol.h name them.
OLD = number(3) + number(10) + number(1) + number(3)
NEW = number(98) + number(-0x8000 | 13) + number(1) + number(5) + counted(b"")
REQUESTS = {
    "old protocol": [OLD],
    "Legacy_Auth at once": [NEW + counted(b"Legacy_Auth") + number(0) + counted(b"")],
    "Legacy_Auth after Srp": [
        NEW + counted(b"Srp") + number(0) + counted(b""),
        number(92) + counted(b"") + counted(b"Legacy_Auth") * 2 + counted(b""),
    ],
}


class Thief:
    """Listens at a port of its own, and answers what each client sends with the next of some texts."""

    def __init__(self, texts: list[bytes]) -> None:
        self.texts, self.heard = texts, b""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._server.accept()
                client.settimeout(1)
                with client, contextlib.suppress(OSError):
                    for text in self.texts:
                        self.heard += client.recv(1 << 16)
                        client.sendall(text)
                    self.heard += client.recv(1 << 16)


@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_process_at_the_server_s_port_gets_no_hash_of_the_password(
    request_of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(our_paths, "FIREBIRD_CLIENT", str(tmp_path))
    monkeypatch.setattr(login, "_CONF", str(tmp_path / "firebird.conf"))
    with login.srp_alone(Host()) as variables:
        assert variables == {"FIREBIRD": str(tmp_path)}
        assert (tmp_path / "firebird.conf").read_text() == "AuthClient = Srp256, Srp\n"
        if GFIX is not None:
            assert attack(GFIX, request_of, variables).count(HASH) == 0
    assert os.listdir(tmp_path) == []


def attack(gfix: str, request_of: str, variables: dict[str, str]) -> bytes:
    """Return what gfix says to a process that asks for the hash."""
    thief = Thief(REQUESTS[request_of])
    environment = {**os.environ, **variables, "ISC_USER": "SYSDBA", "ISC_PASSWORD": SECRET}
    argv = [gfix, "-write", "sync", f"127.0.0.1/{thief.port}:/data/a.fdb"]
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, timeout=60, check=False)
    finally:
        thief.close()
    assert done.returncode != 0
    # It did come as far as to name its user.
    assert b"SYSDBA" in thief.heard
    return thief.heard


if GFIX is not None:

    @pytest.mark.parametrize("request_of", REQUESTS)
    def test_without_that_configuration_it_gets_the_hash(request_of: str) -> None:
        """Shows that each of these requests is an attack."""
        assert attack(str(GFIX), request_of, {}).count(HASH) > 0
