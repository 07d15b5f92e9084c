# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pseudo file systems, in which a read can change state or never end.

devtmpfs is not listed: the kernel reports it as tmpfs. Its device files are refused by their type.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

#: Type of a file system by the number that statfs(2) reports: include/uapi/linux/magic.h, and the file systems' sources.
_KINDS = {
    0x9FA0: "proc",
    0x9FA1: "openprom",
    0x9FA2: "usbdevfs",
    0x62656572: "sysfs",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x73636673: "securityfs",
    0xCAFE4A11: "bpf",
    0x27E0EB: "cgroup",
    0x63677270: "cgroup2",
    0x62656570: "configfs",
    0xDE5E81E4: "efivarfs",
    0x6165676C: "pstore",
    0xF97CFF8C: "selinuxfs",
    0x43415D53: "smackfs",
    0x5A3C69F0: "apparmorfs",
    0x42494E4D: "binfmt_misc",
    0x19800202: "mqueue",
    0x1CD1: "devpts",
    0x6E736673: "nsfs",
    0x50495045: "pipefs",
    0x534F434B: "sockfs",
    0x9041934: "anon_inodefs",
    0x65735543: "fusectl",
    0x67596969: "rpc_pipefs",
    0x6E667364: "nfsd",
    0xA647361: "functionfs",
    0xAEE71EE7: "gadgetfs",
    0xABBA1974: "xenfs",
    0x7655821: "resctrl",
    0x6C6F6F70: "binder",
    0x444D4142: "dma-buf",
    0x50494446: "pidfs",
    0x76A9F425: "ocfs2_dlmfs",
    0x687970: "s390_hypfs",
    0x23C9B64E: "spufs",
}
#: Larger than struct statfs of any architecture.
_SIZE = 512


def kind(descriptor: int) -> str:
    """Return the type of the kernel's file system on which an open file is, '' on any other. Raises OSError."""
    return _KINDS.get(_number(descriptor), "")


def _number(descriptor: int) -> int:
    """Return f_type of fstatfs(2), which Python's fstatvfs leaves out. Raises OSError."""
    buffer = ctypes.create_string_buffer(_SIZE)
    if _fstatfs()(descriptor, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The first member: an int on s390, a long everywhere else.
    size = 4 if os.uname().machine.startswith("s390") else ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(buffer.raw[:size], sys.byteorder) & 0xFFFFFFFF


@functools.cache
def _fstatfs() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    # On 32 bits the plain one fails for large file systems; musl has no other.
    return getattr(libc, "fstatfs64", None) or libc.fstatfs
