# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The contents of a root image. Any change results in another image."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError

RELEASES = ("bookworm", "bullseye", "trixie", "sid")
#: Debian's unstable distribution.
NEWEST = "sid"
DIRECTORY = Path(__file__).parent / "recipe"
PACKAGES = "packages.txt"
#: With all drivers: the cloud kernel lacks SATA and scsi_debug. Half of an image is its modules, and machines that bring a
#: kernel of their own have no use for them.
KERNEL = "linux-image-amd64"
SIZE = "6G"
_INITRAMFS = "/usr/share/initramfs-tools"
#: Paths of packages that do not come into the image. Documents, though not the directories of the manual: packages make
#: links there. And what makes the initramfs large or slow, at each boot: the root is on nothing but a virtio disk, and udev
#: finds all other devices once it is mounted.
LEFT_OUT = (
    "/usr/share/man/*/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
    f"{_INITRAMFS}/hooks/*",
    *(f"{_INITRAMFS}/scripts/*/{name}" for name in ("keymap", "lvm2", "mdadm", "nbd", "udev")),
)
#: Of those, the hooks that an initramfs cannot be without.
KEPT = tuple(f"{_INITRAMFS}/hooks/{name}" for name in ("fsck", "klibc-utils", "kmod"))


@dataclass(frozen=True)
class Recipe:
    """A Debian release, the key that may log in as root, packages beyond the lab's own; `kernel`: whether it has one."""

    release: str
    public_key: str
    packages: tuple[str, ...] = ()
    kernel: bool = True
    directory: Path = DIRECTORY

    def __post_init__(self) -> None:
        """Refuse releases nobody has tried."""
        if self.release not in RELEASES:
            raise LabError(f"unknown release {self.release!r}; known are {list(RELEASES)}")

    @property
    def key(self) -> str:
        """`<release>-<hash>`: the image's name in the cache."""
        own = [self.public_key, sorted(self.added), SIZE, LEFT_OUT, KEPT]
        return self._hashed(own, *sorted(self.directory.iterdir()))

    @property
    def added(self) -> tuple[str, ...]:
        """The packages that it has and its release's base has not."""
        return (*((KERNEL,) if self.kernel else ()), *self.packages)

    @property
    def base(self) -> str:
        """`<release>-<hash>` of what the images of a release have in common."""
        return self._hashed([LEFT_OUT, KEPT], self.early, self.directory / PACKAGES)

    @property
    def early(self) -> Path:
        """The script that runs before the kernel is installed."""
        return self.directory / "early.sh"

    def _hashed(self, own: list[Any], *files: Path) -> str:
        digest = hashlib.sha256(json.dumps([self.release, *own]).encode())
        for path in files:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return f"{self.release}-{digest.hexdigest()[:12]}"

    @property
    def root_uuid(self) -> str:
        """The root file system's UUID, the same each time this recipe is built."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, self.key))

    @property
    def base_packages(self) -> list[str]:
        """The lab's own packages."""
        lines = (self.directory / PACKAGES).read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]
