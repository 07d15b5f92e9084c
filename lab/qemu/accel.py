# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hardware acceleration, if it really works."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from lab.errors import LabError
from lab.paths import Lab

PROBE_LIMIT = 5.0
# Emulated, a plain processor boots with a fifth less work than `max`: less of it is there to be tried out.
CPU = {"kvm": "host", "tcg": "qemu64"}

# mov dx, 0xf4; mov al, 0x10; out dx, al; hlt: QEMU's debug-exit device ends with (0x10 << 1) | 1
BOOT_SECTOR = bytes.fromhex("baf400b010eef4").ljust(510, b"\0") + b"\x55\xaa"
EXIT_CODE = 0x21


def choose(lab: Lab) -> str:
    """Return `kvm` or `tcg`: $DBHOST_LAB_ACCEL, or what a probe found since this host booted."""
    asked = os.environ.get("DBHOST_LAB_ACCEL")
    if asked:
        if asked not in CPU:
            raise LabError(f"DBHOST_LAB_ACCEL is {asked!r}; known are {list(CPU)}")
        return asked
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = lab.root / f"accel-{boot}"
    if not known.exists():
        lab.root.mkdir(parents=True, exist_ok=True)
        known.write_text("kvm" if kvm_works() else "tcg")
    return known.read_text()


def kvm_works() -> bool:
    """Run a boot sector under KVM: the device may be there, and the guest still hang."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    with tempfile.NamedTemporaryFile() as disk:
        disk.write(BOOT_SECTOR)
        disk.flush()
        argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "64"]
        argv += ["-nodefaults", "-display", "none", "-device", "isa-debug-exit"]
        argv += ["-drive", f"file={disk.name},format=raw,if=ide"]
        try:
            done = subprocess.run(argv, timeout=PROBE_LIMIT, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == EXIT_CODE


@cache
def qemu_version() -> str:
    """Return the first line of QEMU's version: snapshots are of use to the same QEMU only."""
    argv = ["qemu-system-x86_64", "--version"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()[0]
