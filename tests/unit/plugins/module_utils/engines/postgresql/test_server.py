# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real psql at the socket of a listener that is not the server: it learns nothing, and answers nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import server
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ENVIRONMENT, Host

#: The server's user, who has a name; and another one.
NOBODY, OTHER = 65534, 4711
PSQL = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"), reverse=True)), None)
#: Requests a password in clear text, and prints what it is sent behind that: postgresql.org, message formats.
LISTENER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
listener.settimeout(5)
print("listens", flush=True)
client, _address = listener.accept()
hello = client.recv(4096)
if hello:
    client.sendall(b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big"))
    print(client.recv(4096), flush=True)
else:
    print("no word", flush=True)
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others"),
    pytest.mark.skipif(PSQL is None, reason="needs a psql below /usr/lib/postgresql"),
]


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory where any user can listen, as in /tmp; a home with a password; a server's data directory."""
    with tempfile.TemporaryDirectory(dir="/srv") as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "sockets").mkdir()
        (path / "sockets").chmod(0o1777)
        (path / "postmaster.pid").write_text(
            f"1\n{path}\n1\n5432\n{path}/sockets\n\n\nready\n", encoding="ascii"
        )
        users = f"nobody:x:{NOBODY}:{NOBODY}::{path}/home:/bin/sh\nother:x:{OTHER}:{OTHER}::/none:/bin/sh\n"
        (path / "passwd").write_text(users, encoding="ascii")
        (path / "home").mkdir()
        password = path / "home/.pgpass"
        password.write_text("*:*:*:*:of-nobody\n", encoding="ascii")
        password.chmod(0o600)
        os.chown(password, NOBODY, NOBODY)
        yield path


def heard(top: Path, user: int) -> tuple[str, str]:
    """Let a user listen, and psql ask; return what the listener heard, and psql's complaint."""
    socket, python = top / "sockets/.s.PGSQL.5432", shutil.which("python3", path="/usr/bin") or sys.executable
    # In this namespace the home of the server's user is that of the test.
    script = 'mount --bind "$1" /etc/passwd; shift; exec "$@"'
    with subprocess.Popen(
        ["setpriv", f"--reuid={user}", "--clear-groups", "--", python, "-c", LISTENER, str(socket)],
        stdout=subprocess.PIPE,
        text=True,
    ) as listener:
        try:
            assert listener.stdout and listener.stdout.readline() == "listens\n"
            login = server.Login("nobody", NOBODY, "/none", str(top), str(PSQL))
            argv = [*server.command(Host(), login), "-c", "SELECT 1"]
            said = subprocess.run(
                ["unshare", "--mount", "sh", "-euc", script, "sh", f"{top}/passwd", *argv],
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
                env=ENVIRONMENT,
            )
            assert said.returncode != 0
            return listener.stdout.readline().strip(), said.stderr
        finally:
            listener.kill()


def test_a_listener_of_another_user_gets_not_a_word(top: Path) -> None:
    word, why = heard(top, OTHER)
    assert word == "no word"
    assert 'requirepeer specifies "nobody", but actual peer user name is "other"' in why


def test_one_of_the_server_s_user_gets_no_password_from_that_user_s_file(top: Path) -> None:
    word, why = heard(top, NOBODY)
    assert "of-nobody" not in word
    assert "no password supplied" in why
