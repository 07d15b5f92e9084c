# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One volatile disk: its directory, and how a machine of either kind comes to it.

QEMU comes to it through nbdkit, which has to run; the disk server of a `uml` machine opens it by itself. Behind both is
logged.py, with one order of writes, flushes, FUA and acknowledgements in one process.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.hardware import BootDisk
from lab.machine import Machine
from proof.errors import ProofError
from proof.images import copy_sparse

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 30.0
BASE = "base.img"
NEWEST = "newest.img"


class VolatileDisk:
    """A disk in a directory: the image that it began with, its newest image, and its log.

    disk = VolatileDisk.made(directory, base)
    with disk.served_for(machine):
        machine.boot(disk.boot_disk("PROOF0001", "scsi"), disk.ack_disk("PROOFACK"))

    The log begins when the disk is first opened, once: after a power cut another disk is made of what is left. What was
    answered is in the log, and the power cut itself lies in the log, anywhere.
    """

    def __init__(self, directory: Path, flush: float = 0.0, slow: float = 0.0) -> None:
        """Take a directory that holds a disk, and its time: the seconds of a flush, or by how much mechanics.py is slowed."""
        self.directory = directory
        self.flush = flush
        self.slow = slow
        self._sockets: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def made(cls, directory: Path, base: Path, flush: float = 0.0, slow: float = 0.0) -> VolatileDisk:
        """Make a disk that begins with an image."""
        directory.mkdir(parents=True)
        for name in (BASE, NEWEST):
            copy_sparse(base, directory / name)
        return cls(directory, flush, slow)

    @property
    def base(self) -> Path:
        """The image that the log begins with."""
        return self.directory / BASE

    @contextmanager
    def served_for(self, machine: Machine) -> Iterator[VolatileDisk]:
        """Serve it to a machine that is made: a disk server of its own needs no help, QEMU needs nbdkit."""
        if machine.record().hardware.kind == "qemu":
            with self:
                yield self
        else:
            yield self

    def boot_disk(self, serial: str, bus: str = "virtio", fua: bool = False) -> BootDisk:
        """Return the disk for `Machine.boot` or `plug_in`, called where it is served."""
        times = {"flush": self.flush, "slow": self.slow}
        return BootDisk(bus, serial, fua=fua, nbd=self._nbd("disk"), store=self._store("disk", times))

    def ack_disk(self, serial: str) -> BootDisk:
        """Return the disk of acknowledgements, which shares the log."""
        return BootDisk("virtio", serial, nbd=self._nbd("ack"), store=self._store("ack", {}))

    @property
    def socket(self) -> Path:
        """The unix socket of both exports; a short path, for sockaddr_un holds 108 bytes."""
        if self._sockets is None:
            raise ProofError(f"the disk {self.directory} is not served")
        return Path(self._sockets.name, "nbd")

    def __enter__(self) -> VolatileDisk:
        """Start nbdkit and return when it answers. It ends with the thread that starts it."""
        self._sockets = tempfile.TemporaryDirectory(prefix="dbhost-nbd-")
        ready = self.socket.with_name("ready")
        argv = ["nbdkit", "--exit-with-parent", "--unix", str(self.socket), "--pidfile", str(ready)]
        plugin = [
            "python",
            str(ROOT / "proof/nbd_plugin.py"),
            f"directory={self.directory.absolute()}",
            f"flush={self.flush}",
            f"slow={self.slow}",
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        with self.complaints.open("wb") as errors:
            self._process = subprocess.Popen([*argv, *plugin], env=environment, stderr=errors)
        try:
            self._wait(ready)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Stop serving it; ProofError if nbdkit had ended by itself."""
        ended = self._process is not None and self._process.poll() is not None
        self.stop()
        if ended:
            raise ProofError(f"nbdkit ended before it was stopped: {self.complaints.read_text().strip()}")

    @property
    def complaints(self) -> Path:
        """What nbdkit said."""
        return self.directory / "nbdkit.txt"

    def stop(self) -> None:
        """Kill nbdkit. Asked to end, it would wait for its clients."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT)
            self._process = None
        if self._sockets is not None:
            self._sockets.cleanup()
            self._sockets = None

    def _nbd(self, export: str) -> str | None:
        """Return the address of an export, None while nbdkit does not serve it."""
        return None if self._sockets is None else f"nbd+unix:///{export}?socket={self.socket}"

    def _store(self, name: str, times: dict[str, float]) -> dict[str, Any]:
        """Return what the disk server of a `uml` machine opens."""
        where = {"directory": str(self.directory.absolute())}
        return {"type": "python", "factory": f"proof.vhost_store:{name}", "arguments": where | times}

    def _wait(self, ready: Path) -> None:
        # nbdkit writes the file once it accepts connections
        deadline = time.monotonic() + LIMIT
        while not ready.exists():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise ProofError(
                    f"nbdkit does not serve {self.directory}: {self.complaints.read_text().strip()}"
                )
            time.sleep(0.01)
