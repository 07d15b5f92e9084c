# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first process of a machine's own name spaces: it starts what belongs to the machine, and all of it ends with it.

    unshare --mount --net --pid --fork --kill-child python3 -m lab.uml.supervisor CONFIG LISTENER LOCK

CONFIG is a JSON file that lab.uml.kind writes. LISTENER is the number of a file descriptor: a TCP socket of 127.0.0.1 that
was opened outside, so that connections which come there reach the machine's ssh inside. LOCK is one too: a locked file that
every process here keeps open. Mounts, tap device and processes are seen in here alone, so the kernel takes them away,
however this process ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

HOST, GUEST, SSH = "10.0.2.2/24", "10.0.2.15", 22
TAP = "tap0"
#: The kernel's last words before it would start again (kernel/reboot.c).
RESTART = b"reboot: Restarting system"
SERVER_LIMIT = 30.0
CONNECT_LIMIT = 3.0


def main(config_path: str, listener: str, lock: str) -> int:
    """Run the machine until it ends; return its exit code."""
    config: dict[str, Any] = json.loads(Path(config_path).read_text())
    # One processor for all: the kernel and the programs in it are processes that take turns at each system call, and a turn
    # that goes to another processor takes five times as long.
    os.sched_setaffinity(0, {int(config["processor"])})
    _network()
    _mounts(Path(config["root"]), Path(config["sockets"]), int(config["memory"]))
    _serve_disks(Path(config["disks"]), int(lock))
    threading.Thread(target=_relay, args=(socket.socket(fileno=int(listener)),), daemon=True).start()
    while RESTART in _run(config, int(lock)):
        # The process ends and begins again: its own way to do so would leave the tap device taken.
        continue
    return 0


def _network() -> None:
    for words in (
        ["link", "set", "lo", "up"],
        ["tuntap", "add", "dev", TAP, "mode", "tap"],
        ["address", "add", HOST, "dev", TAP],
        ["link", "set", TAP, "up"],
    ):
        subprocess.run(["ip", *words], check=True)


def _mounts(root: Path, sockets: Path, memory: int) -> None:
    """Give the program's root what it wants: devices, processes, the machine's sockets, and a place for its memory."""
    for words in (
        ["-t", "proc", "proc", root / "proc"],
        ["--rbind", "/dev", root / "dev"],
        ["--bind", sockets, root / "run"],
        ["-t", "tmpfs", "-o", f"size={memory + 64}M", "tmpfs", root / "tmp"],
    ):
        subprocess.run(["mount", *map(str, words)], check=True)


def _serve_disks(config: Path, lock: int) -> None:
    """Start the disk server, and return when it answers."""
    control = Path(json.loads(config.read_text())["control"])
    control.unlink(missing_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-m", "lab.vhost", str(config)], stdin=subprocess.DEVNULL, pass_fds=(lock,)
    )
    deadline = time.monotonic() + SERVER_LIMIT
    while not control.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the disk server does not start")
        time.sleep(0.01)


def _run(config: dict[str, Any], lock: int) -> bytes:
    """Run User Mode Linux, whose consoles want pipes, and write what it prints to the console's file; return the end of it."""
    # Its memory is a file; /tmp is the tmpfs of this machine.
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp"}
    guest = subprocess.Popen(
        ["chroot", config["root"], "/usr/bin/linux.uml", *config["arguments"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(lock,),
        env=environment,
    )
    assert guest.stdout is not None
    end = b""
    with Path(config["console"]).open("ab", buffering=0) as console:
        while data := os.read(guest.stdout.fileno(), 65536):
            console.write(data)
            end = (end + data)[-4096:]
    guest.wait()
    return end


def _relay(listener: socket.socket) -> None:
    while True:
        outer, _ = listener.accept()
        threading.Thread(target=_connect, args=(outer,), daemon=True).start()


def _connect(outer: socket.socket) -> None:
    try:
        inner = socket.create_connection((GUEST, SSH), timeout=CONNECT_LIMIT)
    except OSError:
        outer.close()
        return
    inner.settimeout(None)
    pairs = ((outer, inner), (inner, outer))
    pumps = [threading.Thread(target=_pump, args=pair, daemon=True) for pair in pairs]
    _start_and_wait(pumps)
    outer.close()
    inner.close()


def _start_and_wait(threads: Iterable[threading.Thread]) -> None:
    started = list(threads)
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(*sys.argv[1:]))
