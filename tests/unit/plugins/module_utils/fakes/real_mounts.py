# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real file systems on loop devices, mounted below a test's directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount, parse_mountinfo

MKFS = "mkfs.ext4"


def _can_mount() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, (MKFS, "losetup", "unshare"))):
        return False
    argv = ["unshare", "--mount", "--propagation", "private", "losetup", "--find"]
    return subprocess.run(argv, capture_output=True, check=False, timeout=10).returncode == 0


#: For a test that makes loop devices and mounts them.
needs_mounts = pytest.mark.skipif(not _can_mount(), reason="needs root, loop devices and mkfs.ext4")


def sh(script: str, *arguments: object) -> str:
    """Run a script that must succeed; return its output."""
    argv = ["sh", "-euc", script, "sh", *map(str, arguments)]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def left(devices: Callable[[], str]) -> str:
    """Return the loop devices that are still there after ten seconds, or '' as soon as there are none.

    A loop device stays while any program has it open: other tests, and what they start, look at all block devices.
    """
    end = time.monotonic() + 10
    while (found := devices()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextmanager
def ext4(directory: Path, options: str = "rw") -> Iterator[Path]:
    """Mount a small ext4 at `directory`/top/mnt, and yield that mount point. Its image is beside it."""
    target = directory / "top/mnt"
    target.mkdir(parents=True)
    # mount(8) would make a loop device of its own read-only for a read-only mount.
    script = (
        'truncate -s 16M "$1"; mkfs.ext4 -q -F "$1"; device=$(losetup --find --show "$1");'
        ' mount -o "$2" "$device" "$3"; losetup --detach "$device"'
    )
    sh(script, directory / "image", options, target)
    try:
        yield target
    finally:
        sh('grep -F "$1" /proc/self/mountinfo | cut -d" " -f5 | sort -r | xargs -r -n1 umount -l', directory)


def mounted(target: Path) -> Mount:
    """Return the mount at a path, as the kernel lists it."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        found = parse_mountinfo(table.read())
    return [mount for mount in found if mount.target == str(target)][-1]


def options(target: Path) -> list[str]:
    """Return the options of an ext4 that are in effect, as its driver lists them."""
    name = os.path.basename(os.readlink(f"/sys/dev/block/{mounted(target).device}"))
    return Path(f"/proc/fs/ext4/{name}/options").read_text(encoding="ascii").split()
