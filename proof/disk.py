# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One volatile disk: its directory, its nbdkit, and how QEMU comes to it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from proof.errors import ProofError
from proof.images import copy_sparse

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 30.0
BASE = "base.img"
NEWEST = "newest.img"


class VolatileDisk:
    """A disk in a directory: the image that it began with, its newest image, and its log.

    `with VolatileDisk.made(directory, base) as disk:` serves it. Leaving kills nbdkit: what it answered
    is in the log, and the power cut itself lies in the log, anywhere.
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

    @property
    def socket(self) -> Path:
        """The unix socket of both exports; a short path, for sockaddr_un holds 108 bytes."""
        if self._sockets is None:
            raise ProofError(f"the disk {self.directory} is not served")
        return Path(self._sockets.name, "nbd")

    def __enter__(self) -> VolatileDisk:
        """Start nbdkit and return when it answers."""
        self._sockets = tempfile.TemporaryDirectory(prefix="dbhost-nbd-")
        ready = self.socket.with_name("ready")
        argv = ["nbdkit", "--foreground", "--unix", str(self.socket), "--pidfile", str(ready)]
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

    def url(self, export: str) -> str:
        """Return the address of "disk" or "ack" for an NBD client."""
        return f"nbd+unix:///{export}?socket={self.socket}"

    def drive(self, identity: str, export: str) -> str:
        """Return what follows QEMU's `-drive`: write-back caching, so that flush and FUA are passed on."""
        address = f"file.driver=nbd,file.server.type=unix,file.server.path={self.socket},file.export={export}"
        return f"if=none,id={identity},format=raw,cache=writeback,discard=unmap,{address}"

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
