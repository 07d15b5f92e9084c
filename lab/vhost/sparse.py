# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Holes in files: Python has no call for them."""

from __future__ import annotations

import ctypes
import os

KEEP_SIZE = 1
PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(file: int, offset: int, length: int) -> None:
    """Make a range of a file a hole, which reads as zeros. OSError as ever."""
    if length and _libc.fallocate(file, KEEP_SIZE | PUNCH_HOLE, offset, length):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
