# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a power cut needs: disks that lose what was not flushed, and a wire that then falls silent."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.errors import LabError
from lab.machine import Machine
from proof import log
from proof.disk import VolatileDisk
from proof.machine import FLUSH, make_file_system
from proof.sweep import Cut, Model, Run, rebuild
from proof.volatile import DROP, WriteBack
from proof.writer import Job

#: Nothing gets durable but by a flush or FUA: what was not asked for is lost.
NEVER = Model(WriteBack(bytes=1 << 40, age=1 << 40))


def volatile_disk(directory: Path) -> VolatileDisk:
    """Return a disk with an empty ext4, not yet served."""
    image = directory.with_suffix(".img")
    make_file_system(image, "ext4")
    return VolatileDisk.made(directory, image, FLUSH)


def plug_in(machine: Machine, disk: VolatileDisk, serial: str, target: str, options: str) -> None:
    """Give the running machine a disk that is served, and mount it as soon as udev knows it."""
    machine.plug_in(disk.boot_disk(serial, bus="scsi"))
    wait = 'until [ -e "$1" ]; do sleep 0.2; done; udevadm settle'
    machine.run(["sh", "-c", wait, "plug-in", link(serial)], timeout=60.0)
    machine.run(["mkdir", "-p", target])
    machine.run(["mount", "-o", options, link(serial), target])


def link(serial: str) -> str:
    """Return the path of such a disk in the machine."""
    return f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{serial}"


def after_cut(disk: VolatileDisk, directory: Path) -> VolatileDisk:
    """Return the disk as a power cut at the end of its log leaves it, all that was volatile lost."""
    told = log.read(disk.directory)
    left = directory.with_suffix(".img")
    # Of no acknowledgements: this log has none, the witness has them.
    run = Run(disk.base, told.events, Job("", ""))
    rebuild(run, Cut(len(told.events), DROP.name, 0), left, NEVER)
    return VolatileDisk.made(directory, left)


@contextmanager
def forwarded(machine: Machine, port: int) -> Iterator[None]:
    """Lead what comes to 127.0.0.1:`port` in the machine to the same port here, by ssh.

    No other way leads from every kind of machine to this host. It ends with the machine, too.
    """
    way = f"127.0.0.1:{port}:127.0.0.1:{port}"
    options = ("-o", "ControlPath=none", "-o", "ExitOnForwardFailure=yes")
    argv = [
        "ssh",
        "-F",
        str(machine.ssh_config),
        *options,
        "-R",
        way,
        machine.name,
        "echo ready; exec sleep inf",
    ]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise LabError(f"{machine.name}: ssh does not forward port {port}")
            yield
        finally:
            process.kill()


class Wire:
    """Stands in for the network between the machine and the witness.

    When a machine is killed, its connections are closed on this host, which tells the witness of an end. A
    cable tells nothing: here the witness's side stays open.
    """

    def __init__(self, near: tuple[str, int], far: tuple[str, int]) -> None:
        """Listen at `near`, and connect each that comes to `far`."""
        self._far = far
        self._listener = socket.create_server(near)
        self._open = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Take it away, once the witness's log was read."""
        for connection in self._open:
            # Closed alone, it would stay open for whoever waits in recv.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _address = self._listener.accept()
                far = socket.create_connection(self._far)
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while said := one.recv(4096):
            other.sendall(said)
