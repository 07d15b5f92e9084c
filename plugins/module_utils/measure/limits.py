# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources that a measurement may use on a live host, checked before anything is written."""

from __future__ import annotations

import os
from typing import Any

MIB = 1024 * 1024
#: A scratch file takes at most this part of what is free...
_PART_OF_FREE = 4
#: ...and leaves at least this part of the whole file system free, in percent.
_LEFT = 5


class Refused(ValueError):
    """A measurement that is not started. The message: the observed value, the expected one, the fix."""


def number(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number within its limits. Raises Refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"{name}: observed {value!r}; expected a whole number from {least} to {most}")
    return value


def chosen(name: str, values: Any, known: Any) -> list[str]:
    """Return a list of known values, each once. Raises Refused."""
    requested = list(values) if isinstance(values, (list, tuple)) else []
    wrong = [word for word in requested if word not in known]
    if not requested or wrong:
        raise Refused(f"{name}: observed {values!r}; expected some of {', '.join(known)}")
    return list(dict.fromkeys(requested))


def is_enough_left(status: os.statvfs_result) -> bool:
    """Return whether the part of a file system that a measurement leaves free is free."""
    return status.f_bavail * 100 >= status.f_blocks * _LEFT


def expect_space(target: str, status: os.statvfs_result, size: int) -> None:
    """Raise Refused unless a file system is writable and `size` bytes are small compared with the free space."""
    if status.f_flag & os.ST_RDONLY:
        raise Refused(f"{target}: mounted read-only; expected one that can be written, as an engine would")
    free, whole = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    wanted = max(size * _PART_OF_FREE, size + whole * _LEFT // 100)
    if free < wanted:
        raise Refused(
            f"{target}: observed {free // MIB} MiB free, expected {-(-wanted // MIB)} MiB for a scratch file of"
            f" {-(-size // MIB)} MiB: free space, or choose a smaller size"
        )
