# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a root image is made from. Any change makes another image."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

RELEASES = ("bookworm", "bullseye", "trixie")
DIRECTORY = Path(__file__).parent / "recipe"
SIZE = "6G"


@dataclass(frozen=True)
class Recipe:
    """A Debian release, packages beyond the lab's own, and the key that may log in as root."""

    release: str
    public_key: str
    packages: tuple[str, ...] = ()
    directory: Path = DIRECTORY

    def __post_init__(self) -> None:
        """Refuse releases nobody has tried."""
        if self.release not in RELEASES:
            raise LabError(f"unknown release {self.release!r}; known are {list(RELEASES)}")

    @property
    def key(self) -> str:
        """`<release>-<hash>`: the image's name in the cache."""
        own = [self.release, self.public_key, sorted(self.packages), SIZE]
        digest = hashlib.sha256(json.dumps(own).encode())
        for path in sorted(self.directory.iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return f"{self.release}-{digest.hexdigest()[:12]}"

    @property
    def root_uuid(self) -> str:
        """The root file system's UUID, the same each time this recipe is built."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, self.key))

    @property
    def all_packages(self) -> list[str]:
        """The lab's packages and the layout's."""
        lines = (self.directory / "packages.txt").read_text().splitlines()
        own = [line for line in lines if line and not line.startswith("#")]
        return own + [package for package in self.packages if package not in own]
