# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of a master's own program.

User Mode Linux does not share its image, with which its physical memory begins, and yet lets disks read from it: its
page of zeros is there, with which XFS fills up what is written with O_DIRECT, and md new metadata.
"""

from __future__ import annotations

import ctypes

#: Where the program is loaded on x86_64 (arch/x86/Makefile.um), and so what has the physical address 0.
START = 0x60000000


class _Part(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


_PARTS = ctypes.POINTER(_Part), ctypes.c_ulong
_process_vm_readv = ctypes.CDLL(None).process_vm_readv
_process_vm_readv.argtypes = [ctypes.c_int, *_PARTS, *_PARTS, ctypes.c_ulong]
_process_vm_readv.restype = ctypes.c_ssize_t


class Image:
    """The image of the program that a process runs."""

    def __init__(self, process: int, start: int = START) -> None:
        """`start` is where it lies in the process."""
        self._process = process
        self._start = start

    def read(self, address: int, length: int) -> bytes | None:
        """Return what lies at a physical address, None where that is nothing.

        By process_vm_readv(2), not by /proc, which may show the processes of another name space.
        """
        data = ctypes.create_string_buffer(length)
        here, there = _Part(ctypes.addressof(data), length), _Part(self._start + address, length)
        count = _process_vm_readv(self._process, here, 1, there, 1, 0)
        return data.raw if count == length else None
