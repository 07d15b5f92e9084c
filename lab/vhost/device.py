# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a device is to its master, whatever it does."""

from __future__ import annotations

import struct
from typing import Protocol

from lab.vhost.ring import Chain, Ring

INDIRECT_DESC = 1 << 28
VERSION_1 = 1 << 32
COMMON = INDIRECT_DESC | VERSION_1


class Device(Protocol):
    """A virtio device. LabError from any of these: the driver broke the rules, and the device stops."""

    name: str
    features: int
    queues: int

    def reset(self, features: int) -> None:
        """A driver begins with these features: power-on state."""

    def config(self) -> bytes:
        """Return the configuration space."""

    def set_config(self, offset: int, data: bytes) -> None:
        """Take what the driver wrote into it."""

    def handle(self, index: int, ring: Ring, chain: Chain) -> None:
        """Take a request; it is given back by `ring.push`, now or later."""

    def abandon(self) -> None:
        """Forget what is not done yet: no ring is to be touched any more."""

    def abort(self) -> None:
        """Fail what is not done yet."""


def padded(config: bytes, size: int) -> bytes:
    """Return `size` bytes of a configuration space, zeros behind its end."""
    return struct.pack(f"{size}s", config[:size])
