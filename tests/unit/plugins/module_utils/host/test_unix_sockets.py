# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unix sockets of this machine: who listens at a file, and a path that leads to that file alone."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import unix_sockets
from ansible_collections.durable.dbhost.plugins.module_utils.host.listener import proven
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import by_id
from ansible_collections.durable.dbhost.plugins.module_utils.host.process_context import cgroup_of
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ASK_TIMEOUT,
    Host,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.unix_sockets import INODE

HOST = Host()
#: A user other than root; without root there is one only.
OTHER = 65534 if os.geteuid() == 0 else os.geteuid()
#: Listens at a path, answers each client with a word, and says when it listens. It has the rights of a user.
_SERVER = """\
import contextlib, os, socket, sys
path, word, uid = sys.argv[1:]
if int(uid) != os.geteuid():
    os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(5)
print("listens", flush=True)
while True:
    client, _address = server.accept()
    with contextlib.suppress(BrokenPipeError):
        client.sendall(word.encode())
    client.close()
"""


@contextmanager
def server(path: Path, word: str, uid: int = OTHER) -> Iterator[int]:
    """Yield the number of a process that listens."""
    argv = [sys.executable, "-I", "-c", _SERVER, str(path), word, str(uid)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "listens\n"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(name="directory")
def _directory() -> Iterator[Path]:
    """Yield a directory of the other user, as /run/mysqld is one of the server's. pytest's are closed to others."""
    with tempfile.TemporaryDirectory(prefix="durable-test-", dir="/tmp") as found:
        os.chown(found, OTHER, -1)
        yield Path(found)


def prove(path: Path, pid: int, cgroup: str | None = None, host: Host = HOST) -> str:
    """Return what `proven` does for a process of this machine, by default in its real control group."""
    mounts = by_id(HOST.read(f"/proc/{pid}/mountinfo"))
    there = cgroup_of(HOST.read(f"/proc/{pid}/cgroup"))
    return proven(host, str(path), pid, there if cgroup is None else cgroup, mounts)


def answer(path: str) -> str:
    """Return what the listener at a path says to a client, which is another process of this user."""
    client = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(99).decode())"
    argv = [sys.executable, "-I", "-c", client, path]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


def test_a_client_reaches_the_process_that_was_proven(directory: Path) -> None:
    with server(directory / "s", "server") as pid:
        assert answer(prove(directory / "s", pid)) == "server"


def test_the_socket_of_another_process_is_not_proven(directory: Path) -> None:
    """The user of the server puts a socket of another process in its place."""
    with server(directory / "s", "server") as pid:
        os.rename(directory / "s", directory / "real")
        with (
            server(directory / "s", "thief"),
            pytest.raises(Unobservable, match=f"process {pid} does not listen at"),
        ):
            prove(directory / "s", pid)
        assert answer(prove(directory / "real", pid)) == "server"


def test_an_exchange_after_the_proof_leads_no_client_elsewhere(directory: Path) -> None:
    with server(directory / "s", "server") as pid:
        held = prove(directory / "s", pid)
        os.rename(directory / "s", directory / "real")
        with server(directory / "s", "thief"):
            assert answer(str(directory / "s")) == "thief"
            assert answer(held) == "server"


class Alike(Host):
    """A file system whose socket files have one number by the kernel's list, as two subvolumes of Btrfs have."""

    def listeners(self, timeout: float = ASK_TIMEOUT) -> list[unix_sockets.Listener]:
        found = super().listeners(timeout)
        inodes = {os.stat(path).st_ino for path in self.alike}
        return [
            row._replace(inode=inode)
            for row in found
            for inode in (inodes if row.inode in inodes else [row.inode])
        ]

    def __init__(self, *alike: Path) -> None:
        self.alike = alike


def test_a_socket_with_the_same_inode_in_the_kernel_s_list_is_not_proven(directory: Path) -> None:
    with server(directory / "s", "server") as pid:
        os.rename(directory / "s", directory / "real")
        host = Alike(directory / "s", directory / "real")
        with server(directory / "s", "thief") as thief:
            with pytest.raises(Unobservable, match=f"process {thief} listens at .*, and not process {pid}"):
                prove(directory / "s", pid, host=host)
            assert answer(prove(directory / "real", pid, host=host)) == "server"


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can mount")
def test_nor_one_whose_inode_has_the_same_lower_half_on_a_large_xfs(large: Path) -> None:
    home = next(home for home in homes(large) if home.stat().st_ino >> 31 == 1)
    os.chown(home, OTHER, OTHER)
    with server(home / "s", "server") as pid:
        inode = (home / "s").stat().st_ino
        alike = next(path for path in sockets(home) if path.stat().st_ino & INODE == inode & INODE)
        alike.unlink()
        with server(alike, "thief") as thief:
            assert alike.stat().st_ino & INODE == inode & INODE, "the file system gave another inode"
            (home / "s").rename(home / "moved")
            alike.rename(home / "s")
            with pytest.raises(Unobservable, match=f"process {thief} listens at"):
                prove(home / "s", pid)


@pytest.fixture(name="large")
def _large() -> Iterator[Path]:
    """Yield an XFS with inodes of more than 32 bits, in a sparse file."""
    with tempfile.TemporaryDirectory(prefix="durable-test-", dir="/tmp") as top:
        os.chmod(top, 0o755)
        image, point = f"{top}/image", Path(top, "point")
        point.mkdir()
        with open(image, "wb") as file:
            file.truncate(4 << 40)
        for argv in (
            ["mkfs.xfs", "-q", "-K", "-l", "size=64m", image],
            ["mount", "-o", "loop,inode64", image, str(point)],
        ):
            if not shutil.which(argv[0]):
                pytest.skip(f"NOT RUN: no {argv[0]} is here")
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"NOT RUN: {done.stderr.strip()}")
        try:
            yield point
        finally:
            subprocess.run(["umount", "-l", str(point)], check=True)


def homes(top: Path) -> Iterator[Path]:
    """Make directories: XFS puts each in another allocation group."""
    for number in range(16):
        (top / f"home{number}").mkdir()
        yield top / f"home{number}"


def sockets(home: Path) -> Iterator[Path]:
    """Make socket files in directories of other allocation groups than that of `home`."""
    for number in range(200):
        directory = home / f"{number}"
        directory.mkdir()
        os.chown(directory, OTHER, OTHER)
        for name in range(200) if directory.stat().st_ino >> 32 != home.stat().st_ino >> 32 else ():
            path = directory / f"{name}"
            with socket.socket(socket.AF_UNIX) as file:
                file.bind(str(path))
            yield path
            if not path.exists() or path.stat().st_ino >> 32 == home.stat().st_ino >> 32:
                break


class Activated(Host):
    def socket_listener(self, path: str, timeout: float = ASK_TIMEOUT) -> int:
        super().socket_listener(path, timeout)
        return 1


def test_a_socket_at_which_systemd_listens_for_the_server_counts(directory: Path) -> None:
    """Socket activation: the process that called listen(2) is systemd."""
    with server(directory / "s", "server") as pid:
        assert prove(directory / "s", pid, host=Activated())


def test_a_listener_with_a_full_queue_is_not_waited_for(directory: Path) -> None:
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as waiting:
        full.bind(str(directory / "s"))
        full.listen(0)
        waiting.connect(str(directory / "s"))
        before = time.monotonic()
        with pytest.raises(Unobservable, match="accepts no connection: Connection timed out"):
            HOST.socket_listener(str(directory / "s"), timeout=0.2)
        assert time.monotonic() - before < 2


def test_a_server_that_ended_is_not_replaced_by_a_new_one_behind_the_same_path(directory: Path) -> None:
    with server(directory / "s", "server") as pid:
        held = prove(directory / "s", pid)
    os.unlink(directory / "s")
    with server(directory / "s", "thief"), pytest.raises(subprocess.CalledProcessError):
        answer(held)


def test_a_server_with_mounts_that_others_do_not_have_is_proven_through_its_root(directory: Path) -> None:
    """A service with PrivateTmp= has its socket where no path of this process leads."""
    script = f'mount -t tmpfs none {directory}; exec "$@"'
    argv = [sys.executable, "-I", "-c", _SERVER, str(directory / "s"), "server", "0"]
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-euc", script, "sh", *argv], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "listens\n"
        try:
            with server(directory / "s", "thief"):
                held = prove(Path(f"/proc/{process.pid}/root{directory}/s"), process.pid)
                assert answer(held) == "server"
                with pytest.raises(Unobservable, match="on a mount that process"):
                    prove(directory / "s", process.pid)
        finally:
            process.kill()


def test_a_process_in_another_control_group_is_not_proven(directory: Path) -> None:
    with (
        server(directory / "s", "server") as pid,
        pytest.raises(Unobservable, match=r"and not in /system\.slice/mariadb\.service"),
    ):
        prove(directory / "s", pid, "/system.slice/mariadb.service")


def test_a_mount_that_the_process_does_not_have_proves_nothing(directory: Path) -> None:
    with (
        server(directory / "s", "server") as pid,
        pytest.raises(Unobservable, match="on a mount that process"),
    ):
        proven(HOST, str(directory / "s"), pid, "/", {})


def test_only_a_socket_itself_is_held(directory: Path) -> None:
    (directory / "file").touch()
    (directory / "link").symlink_to("s")
    with server(directory / "s", "server"):
        HOST.hold_socket(str(directory / "s"))
        for name in ("file", "link", "gone"):
            with pytest.raises(Unobservable, match=name):
                HOST.hold_socket(str(directory / name))


def test_a_socket_is_held_once_however_often_it_is_proven(directory: Path) -> None:
    with server(directory / "s", "server") as pid:
        first = prove(directory / "s", pid)
        before = len(os.listdir("/proc/self/fd"))
        assert {prove(directory / "s", pid) for _time in range(5)} == {first}
        assert len(os.listdir("/proc/self/fd")) == before


def test_of_very_many_sockets_no_more_are_held(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_sockets, "_MOST", 0)
    with server(directory / "s", "server"), pytest.raises(Unobservable, match="Too many open files"):
        HOST.hold_socket(str(directory / "s"))


def test_a_disk_that_does_not_answer_is_not_waited_for(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, slow = os.open, time.sleep

    def hang(*given: object) -> int:
        slow(0.5)
        return opened(*given)  # type: ignore[arg-type]

    with server(directory / "s", "server"):
        monkeypatch.setattr(unix_sockets.os, "open", hang)
        before = time.monotonic()
        with pytest.raises(Unobservable, match="timed out"):
            HOST.hold_socket(str(directory / "s"), timeout=0.1)
        assert time.monotonic() - before < 0.4


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


def listening(number: int, *attributes: bytes) -> bytes:
    return message(20, struct.pack("=BBBBIII", 1, 1, 10, 0, number, 0, 0) + b"".join(attributes))


NAME = struct.pack("=HH", 7, 0) + b"/x\0\0"
FILE = struct.pack("=HHII", 12, 1, 4711, (253 << 20) | 9)


def test_the_kernel_s_list_names_files_by_device_and_inode() -> None:
    answer = listening(5, NAME, FILE) + listening(6, NAME) + message(3, b"\0\0\0\0")
    assert unix_sockets.parse(answer) == ([unix_sockets.Listener(5, "253:9", 4711)], True)
    assert unix_sockets.parse(listening(5, FILE)) == ([unix_sockets.Listener(5, "253:9", 4711)], False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (message(2, struct.pack("=i", -2)), "No such file"),
        (message(2, b""), "Protocol error"),
        (listening(5, FILE)[:-1], "Protocol error"),
        (b"\0" * 16, "Protocol error"),
    ],
)
def test_a_refusal_and_another_form_are_errors(answer: bytes, why: str) -> None:
    with pytest.raises(OSError, match=why):
        unix_sockets.parse(answer)


@pytest.mark.parametrize("attribute", [struct.pack("=HH", 0, 0), struct.pack("=HH", 12, 1), b"\1"])
def test_an_attribute_of_another_form_names_no_file(attribute: bytes) -> None:
    assert unix_sockets.parse(listening(5, attribute)) == ([], False)


def test_a_kernel_that_lists_no_unix_sockets_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_sockets, "_SOCK_DIAG", 4000)
    with pytest.raises(Unobservable, match="the kernel does not list unix sockets"):
        HOST.listeners()
