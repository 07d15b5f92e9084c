# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel is taken out of its compression, or the reason is said."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess

import pytest

from lab import vmlinux
from lab.errors import LabError

ELF = b"\x7fELF" + bytes(5000)
SETUP_SECTORS, OFFSET = 3, 700


def image(packed: bytes) -> bytes:
    """Return a bzImage as the kernel's build makes it: what is packed is followed by its length, unpacked."""
    payload = packed + struct.pack("<I", len(ELF))
    head = bytearray(512 * (SETUP_SECTORS + 1) + OFFSET)
    head[0x1F1] = SETUP_SECTORS
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, OFFSET, len(payload))
    return bytes(head) + payload + b"what follows is not packed"


@pytest.mark.skipif(not shutil.which("xz"), reason="needs xz")
def test_of_xz() -> None:
    assert vmlinux.unpack(image(lzma.compress(ELF))) == ELF


@pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd")
def test_of_zstd() -> None:
    packed = subprocess.run(["zstd", "-qc"], input=ELF, capture_output=True, check=True).stdout
    assert vmlinux.unpack(image(packed)) == ELF


@pytest.mark.skipif(not shutil.which("xz"), reason="needs xz")
@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (bytes(1000), "HdrS is missing"),
        (b"MZ", "HdrS is missing"),
        (image(b"BZh9 and more"), "begins with 425a68392061, which none of xz, zstd unpacks"),
        (image(lzma.compress(ELF)[:-30]), "xz does not unpack this kernel: "),
        (image(lzma.compress(b"no program")), "no ELF file came out"),
    ],
    ids=["no kernel", "nothing", "bzip2", "cut off", "no ELF"],
)
def test_what_is_none_is_refused(kernel: bytes, why: str) -> None:
    with pytest.raises(LabError, match=why):
        vmlinux.unpack(kernel)
