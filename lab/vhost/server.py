# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All disks of one machine, served in one thread."""

from __future__ import annotations

import signal
import socket
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.vhost.blk import Blk
from lab.vhost.config import Config, DiskConfig, disk_config, make_store
from lab.vhost.control import Command, Control
from lab.vhost.device import Device
from lab.vhost.disk import OPERATIONS, Disk, Effect
from lab.vhost.inquiry import Identity
from lab.vhost.listener import Listener
from lab.vhost.loop import Loop
from lab.vhost.sbc import Target
from lab.vhost.scsi import Controller
from lab.vhost.session import Session


class Port:
    """A device at its socket. One master at a time: the newest, for the one before may only seem to live."""

    def __init__(self, device: Device, path: Path, loop: Loop) -> None:
        """Wait for masters."""
        self._device = device
        self._loop = loop
        self._session: Session | None = None
        self._listener = Listener(path, loop, self._accepted)

    def close(self) -> None:
        """Send the master away and take no other."""
        self._listener.close()
        if self._session is not None:
            self._session.close()

    def retire(self) -> None:
        """Take no other master, and let this one's kernel take the device away."""
        self._listener.close()
        if self._session is not None:
            self._session.retire()

    def _accepted(self, connection: socket.socket) -> None:
        if self._session is not None:
            self._session.close()
        self._session = Session(connection, self._device, self._loop, self._ended)

    def _ended(self, session: Session) -> None:
        self._session = None


class Server:
    """Makes disks, and takes them away."""

    def __init__(self, config: Config) -> None:
        """Open all stores, then all sockets; that of the control comes last. LabError and OSError: why not."""
        self.loop = Loop()
        self._disks: dict[str, Disk] = {}
        self._targets: dict[str, Target] = {}
        self._ports: dict[str, Port] = {}
        self._controller = Controller() if config.scsi is not None else None
        for each in config.disks:
            self._open(each)
        for each in config.disks:
            self._connect(each)
        if self._controller is not None and config.scsi is not None:
            self._scsi = Port(self._controller, config.scsi, self.loop)
        self._control = Control(config.control, self.loop, self._commands())

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or the command `quit`."""
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        self.loop.add(woken.fileno(), lambda: _drain(woken))
        signal.set_wakeup_fd(wake.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.loop.end())
        self.loop.run()
        self.close()

    def close(self) -> None:
        """Let go of sockets and stores."""
        self._control.close()
        for port in self._ports.values():
            port.close()
        if self._controller is not None:
            self._scsi.close()
        for disk in self._disks.values():
            disk.close()

    def _open(self, config: DiskConfig) -> None:
        store = make_store(config.store)
        disk = self._disks[config.serial] = Disk(config.serial, store, self.loop, config.cache)
        # In the next round: the request that it leaves at is held by then.
        disk.leave = partial(self.loop.soon, partial(self._leave, config.serial))

    def _connect(self, config: DiskConfig) -> None:
        disk = self._disks[config.serial]
        if config.socket is not None:
            self._ports[config.serial] = Port(Blk(disk, config.unnamed), config.socket, self.loop)
        elif self._controller is None:
            raise LabError("there are SCSI disks, and no socket `scsi` for their controller")
        else:
            target = Target(disk, Identity(config.serial, config.wwn), config.fua)
            number = self._controller.free() if config.target is None else config.target
            self._controller.plug(number, target)
            self._targets[config.serial] = target

    def _commands(self) -> dict[str, tuple[Command, dict[str, type]]]:
        return {
            "stats": (self._stats, {}),
            "plug": (self._plug, {"disk": dict}),
            "unplug": (self._unplug, {"serial": str}),
            "set_cache": (self._set_cache, {"serial": str, "on": bool}),
            "reset": (self._reset, {"serial": str}),
            "fault": (self._fault, {"serial": str, "operation": str, "effect": str}),
            "copy": (_copy, {"source": str, "target": str}),
            "quit": (self.loop.end, {}),
        }

    def _stats(self) -> dict[str, dict[str, int | str]]:
        return {serial: disk.stats() for serial, disk in self._disks.items()}

    def _plug(self, disk: dict[str, Any]) -> None:
        """The guest is told of a SCSI disk; a virtio disk waits for the kernel that is told of its socket."""
        config = disk_config(disk)
        if config.serial in self._disks:
            raise LabError(f"there is a disk {config.serial} already")
        self._open(config)
        try:
            self._connect(config)
        except LabError:
            self._disks.pop(config.serial).close()
            raise

    def _unplug(self, serial: str) -> None:
        """A SCSI disk goes by an event, a virtio disk with its whole device."""
        disk = self._disk(serial)
        if serial in self._targets and self._controller is not None:
            self._controller.unplug(self._targets.pop(serial))
        else:
            self._ports.pop(serial).retire()
        del self._disks[serial]
        disk.close()

    def _leave(self, serial: str) -> None:
        """Unplug a disk by its own fault, once: more requests may have met it."""
        if serial in self._disks:
            self._unplug(serial)

    def _set_cache(self, serial: str, on: bool) -> None:
        """The guest is not told."""
        self._disk(serial).cache = on

    def _reset(self, serial: str) -> None:
        """The guest is told by the next command's unit attention."""
        self._disk(serial)
        if serial not in self._targets:
            raise LabError(f"disk {serial} is a virtio disk: only SCSI disks are reset")
        self._targets[serial].reset()

    def _fault(self, serial: str, operation: str, effect: str) -> None:
        """Give a disk a fault; the effect `none` takes it away."""
        disk = self._disk(serial)
        effects = {"none": None, **{each.value: each for each in Effect}}
        if operation not in OPERATIONS.values() or effect not in effects:
            wanted = (
                f"one of {', '.join(dict.fromkeys(OPERATIONS.values()))}, and one of {', '.join(effects)}"
            )
            raise LabError(f"observed is the fault {operation!r} {effect!r}; expected is {wanted}")
        # The write to a virtio disk's switch has no answer that could fail or come late.
        if serial not in self._targets and operation == "mode_select" and effect not in ("lie", "none"):
            raise LabError(f"disk {serial} is a virtio disk: its mode select can only lie, not {effect}")
        disk.set_fault(operation, effects[effect])

    def _disk(self, serial: str) -> Disk:
        if serial not in self._disks:
            raise LabError(f"there is no disk {serial!r}, only {', '.join(self._disks) or 'none'}")
        return self._disks[serial]


def _copy(source: str, target: str) -> None:
    """Copy a directory of disks between two requests: nothing is served meanwhile."""
    argv = ["cp", "-r", "--reflink=auto", "--sparse=auto", "--no-target-directory", source, target]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"cannot copy {source} to {target}: {done.stderr.strip()}")


def _drain(connection: socket.socket) -> None:
    connection.recv(4096)
