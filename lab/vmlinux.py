# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kernel without compression: an emulated processor needs seconds to decompress it at each boot.

Its header is that of the x86 boot protocol (Documentation/arch/x86/boot.rst of the kernel's sources). QEMU starts what
is inside by the entry for PVH, which Debian's kernels have.
"""

from __future__ import annotations

import struct
import subprocess

from lab.errors import LabError

#: How what is packed begins -> the command that unpacks it.
UNPACKERS = {
    b"\xfd7zXZ\0": ["xz", "-dc"],
    b"\x28\xb5\x2f\xfd": ["zstd", "-qdc"],
}
_SECTOR = 512
_SIGNATURE = (0x202, b"HdrS")
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
#: Behind what is packed the kernel's build writes how long it is unpacked.
_LENGTH = 4


def unpack(image: bytes) -> bytes:
    """Return the ELF file in a bzImage. LabError: it is none, or packed by what is unknown here."""
    place, signature = _SIGNATURE
    if image[place : place + len(signature)] != signature:
        raise LabError("this is no Linux kernel for x86: HdrS is missing")
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    begin = (image[_SETUP_SECTORS] + 1) * _SECTOR + offset
    packed = image[begin : begin + length]
    for magic, command in UNPACKERS.items():
        if packed.startswith(magic):
            done = subprocess.run(command, input=packed[:-_LENGTH], capture_output=True, check=False)
            if done.returncode or not done.stdout.startswith(b"\x7fELF"):
                said = done.stderr.decode(errors="replace").strip()
                raise LabError(f"{command[0]} does not unpack this kernel: {said or 'no ELF file came out'}")
            return done.stdout
    known = ", ".join(command[0] for command in UNPACKERS.values())
    raise LabError(f"this kernel begins with {packed[:6].hex()}, which none of {known} unpacks")
