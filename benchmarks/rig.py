# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that is measured: its disks appear and disappear, and some hang."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import archive, layout
from lab.machine import Machine
from lab.progress import say

ROOT = Path(__file__).resolve().parent.parent
HOME = "/root/bench"
PACKAGE = "ansible_collections/durable/dbhost/plugins/module_utils"
#: Seconds that bringing hundreds of disks up may take on an emulated processor.
SLOW = 1200.0
#: Seconds after which a process that does not end counts as one that never will.
NEVER = 90.0
#: 512-byte sectors of one volume: large enough for a journal.
VOLUME = 16 * 2048
#: What scsi_debug waits before each answer, in jiffies: longer than any limit.
DEAF = 5000
DELAY = "/sys/bus/pseudo/drivers/scsi_debug/delay"


class Rig:
    """One machine of the lab with this collection's code on it."""

    def __init__(self, name: str, release: str) -> None:
        """Name it and its release."""
        self.machine = Machine(name)
        self.release = release

    def __enter__(self) -> Rig:
        """Boot it, with the code as it is now."""
        self.machine.up(layout.load(ROOT / "benchmarks/layout.yml"), self.release)
        with tempfile.TemporaryDirectory() as scratch:
            packed = Path(scratch, "bench.tar")
            with tarfile.open(packed, "w") as tar:
                tar.add(ROOT / "benchmarks/guest.py", "guest.py")
                archive.add_module_utils(tar, PACKAGE)
            self.machine.put(packed, "/root/bench.tar")
        self.shell(f"mkdir -p {HOME} && tar -C {HOME} -xf /root/bench.tar")
        return self

    def __exit__(self, *error: object) -> None:
        """Delete it."""
        self.machine.down()

    def shell(self, script: str, check: bool = True) -> str:
        """Run a script on the machine; return what it printed."""
        return self.machine.run(["sh", "-ec", script], check=check, timeout=SLOW).stdout

    def guest(self, *arguments: str) -> Any:
        """Run guest.py with these arguments; return its answer."""
        command = shlex.join(["python3", "guest.py", *arguments])
        return json.loads(self.shell(f"cd {HOME} && exec {command}"))

    def facts(self, *paths: str) -> dict[str, Any]:
        """Take the facts in a process of its own, and see whether that ends."""
        found: dict[str, Any] = self.guest("whole", str(NEVER), "facts", *paths)
        return found

    def ansible(self) -> tuple[float, int, str]:
        """Take the facts through Ansible; return seconds, exit code and output."""
        program = str(Path(sys.executable).with_name("ansible"))
        module = ["-m", "durable.dbhost.storage_facts"]
        started = time.monotonic()
        done = subprocess.run(
            [program, "-i", str(self.machine.inventory), self.machine.name, *module],
            cwd=ROOT / "playbooks",
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(Path.home()),
                "ANSIBLE_COLLECTIONS_PATH": "collections",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return time.monotonic() - started, done.returncode, done.stdout + done.stderr

    @contextmanager
    def luns(self, count: int, megabytes: int = 8) -> Iterator[None]:
        """Give the machine so many disks more; all share `megabytes` of memory."""
        if count == 0:
            yield
            return
        started = time.monotonic()
        self.shell(
            f"modprobe scsi_debug num_tgts=1 max_luns={count} dev_size_mb={megabytes}\n"
            f"until [ $(ls -d /sys/bus/scsi/drivers/sd/*:*:*:*/block 2>/dev/null | wc -l) -ge {count} ]\n"
            f"do sleep 1; done\n"
            "udevadm settle --timeout=900"
        )
        say(f"{count} disks are there after {time.monotonic() - started:.0f} s")
        yield
        self.shell(
            "for try in 1 2 3 4 5 6 7 8 9 10\n"
            "do udevadm settle --timeout=900; modprobe -r scsi_debug && exit; sleep 3; done; exit 1"
        )
        self.shell("udevadm settle --timeout=900")

    @contextmanager
    def mounts(self, count: int, devices: list[str]) -> Iterator[list[str]]:
        """Cut so many volumes from devices in turn, mount an ext4 on each; give their numbers.

        They are in fstab, and nothing of them is in the page cache but what the kernel holds on to.
        """
        lines = [
            f"dmsetup create bench{number} --table '0 {VOLUME} linear "
            f"{devices[number % len(devices)]} {number * VOLUME}'\n"
            f"mkfs.ext4 -q -F /dev/mapper/bench{number}\n"
            f"mkdir -p /srv/bench{number}\n"
            f"echo /dev/mapper/bench{number} /srv/bench{number} ext4 defaults 0 0 >> /etc/fstab\n"
            # Mounted again, because the journal holds what it wrote in memory.
            f"mount /srv/bench{number}; mkdir /srv/bench{number}/data; umount /srv/bench{number}\n"
            f"mount /srv/bench{number}"
            for number in range(count)
        ]
        self.shell("\n".join(["cp /etc/fstab /root/fstab", *lines, "udevadm settle --timeout=900"]))
        self.forget()
        numbers = self.shell(f"for n in $(seq 0 {count - 1}); do mountpoint -d /srv/bench$n; done")
        yield numbers.split()
        self.shell(
            "cp /root/fstab /etc/fstab\n"
            f"for n in $(seq 0 {count - 1}); do umount /srv/bench$n; dmsetup remove --retry bench$n; done\n"
            "udevadm settle --timeout=900"
        )

    def forget(self) -> None:
        """Empty the page cache, so that a file system has to ask its disk again."""
        self.shell("sync; echo 3 > /proc/sys/vm/drop_caches")

    @contextmanager
    def suspended(self, count: int) -> Iterator[None]:
        """Make the first volumes stop answering; nothing may be synced meanwhile."""
        each = f"for n in $(seq 0 {count - 1}); do dmsetup {{}} bench$n; done"
        self.shell(each.format("suspend --nolockfs --noudevsync"))
        try:
            yield
        finally:
            self.shell(each.format("resume --noudevsync"))
            self.shell("udevadm settle --timeout=900")

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Make all of scsi_debug's disks stop answering."""
        before = self.shell(f"cat {DELAY}").strip()
        self.shell(f"echo {DEAF} > {DELAY}")
        try:
            yield
        finally:
            # It is refused while anything waits for an answer.
            self.shell(f"until echo {before} > {DELAY}; do sleep 2; done 2>/dev/null")
            self.shell("udevadm settle --timeout=900")
