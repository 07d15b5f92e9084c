# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a SCSI disk says is wrong: sense key, additional sense code and its qualifier (SPC-3, section 4.5)."""

from __future__ import annotations

from typing import NamedTuple


class Sense(NamedTuple):
    """The three numbers."""

    key: int
    code: int
    qualifier: int = 0

    def fixed(self) -> bytes:
        """Return sense data of the fixed format."""
        return bytes((0x70, 0, self.key, 0, 0, 0, 0, 10, 0, 0, 0, 0, self.code, self.qualifier, 0, 0, 0, 0))

    def descriptor(self) -> bytes:
        """Return sense data of the descriptor format."""
        return bytes((0x72, self.key, self.code, self.qualifier, 0, 0, 0, 0))


class Refused(Exception):
    """A command that ends in CHECK CONDITION."""

    def __init__(self, sense: Sense) -> None:
        """With this sense data."""
        super().__init__(sense)
        self.sense = sense


NONE = Sense(0x0, 0x00)
READ_ERROR = Sense(0x3, 0x11)
WRITE_ERROR = Sense(0x3, 0x0C)
TARGET_FAILURE = Sense(0x4, 0x44)
INVALID_OPCODE = Sense(0x5, 0x20)
OUT_OF_RANGE = Sense(0x5, 0x21)
INVALID_FIELD = Sense(0x5, 0x24)
NO_SUCH_LUN = Sense(0x5, 0x25)
INVALID_PARAMETER = Sense(0x5, 0x26)
PARAMETER_LENGTH = Sense(0x5, 0x1A)
SAVING_NOT_SUPPORTED = Sense(0x5, 0x39)
POWER_ON = Sense(0x6, 0x29)
ABORTED = Sense(0xB, 0x00)
