# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directories of the lab."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: The checkout that this package is in: its machines have a directory of their own.
CHECKOUT = Path(__file__).resolve().parent.parent
# sockaddr_un holds 108 bytes; ssh adds a 17-byte suffix while it makes a socket.
LONGEST_SOCKET_DIRECTORY = 108 - len("/control.") - 18


@dataclass(frozen=True)
class Lab:
    """One cache directory; everything in it can be deleted and made again."""

    root: Path

    @classmethod
    def default(cls) -> Lab:
        """Return $DBHOST_LAB_DIR, or `durable-dbhost-lab` in the user's cache directory."""
        own = os.environ.get("DBHOST_LAB_DIR")
        if own:
            return cls(Path(own).absolute())
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(cache).absolute() / "durable-dbhost-lab")

    @property
    def images(self) -> Path:
        """Root images, by release and hash of the recipe."""
        return self.root / "images"

    @property
    def prepared(self) -> Path:
        """Disks of prepared machines, each with a snapshot named `ready`."""
        return self.root / "prepared"

    @property
    def machines(self) -> Path:
        """One directory for each machine of this checkout that is up or cut: another checkout has machines of the same names."""
        return self.root / "machines" / hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]

    @property
    def uml(self) -> Path:
        """The package User Mode Linux, by distribution and version, with the libc that it wants."""
        return self.root / "uml"

    @property
    def locks(self) -> Path:
        """Lock files; they outlive what they guard."""
        return self.root / "locks"

    @property
    def key(self) -> Path:
        """The private ssh key that every machine of this lab accepts for root."""
        return self.root / "id_ed25519"


@dataclass(frozen=True)
class MachineFiles:
    """The files of one machine."""

    directory: Path

    @property
    def disks(self) -> Path:
        """Directory of files, one for each disk."""
        return self.directory / "disks"

    @property
    def record(self) -> Path:
        """What the machine was made from, as JSON."""
        return self.directory / "machine.json"

    @property
    def console(self) -> Path:
        """All that the guest wrote to its serial console."""
        return self.directory / "console.log"

    @property
    def log(self) -> Path:
        """What the machine's own programs had to say."""
        return self.directory / "machine.log"

    @property
    def pid(self) -> Path:
        """The id of the machine's first process."""
        return self.directory / "machine.pid"

    @property
    def ssh_config(self) -> Path:
        """Client configuration with one host: the machine."""
        return self.directory / "ssh_config"

    @property
    def inventory(self) -> Path:
        """Ansible inventory with one host: the machine."""
        return self.directory / "inventory.yml"

    def caches_off(self, tag: str) -> Path:
        """Serials of the disks whose write cache was off when `tag` was saved, as JSON."""
        return self.directory / f"caches-off-{tag}.json"

    @property
    def sockets(self) -> Path:
        """Directory for unix sockets: the machine's own, or a short one if that is too long."""
        if len(os.fsencode(self.directory)) <= LONGEST_SOCKET_DIRECTORY:
            return self.directory
        short = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"dbhost-lab-{os.getuid()}-{short}"

    @property
    def qmp(self) -> Path:
        """QEMU's machine protocol socket."""
        return self.sockets / "qmp"

    @property
    def control(self) -> Path:
        """The ssh connection that commands and Ansible share."""
        return self.sockets / "control"
