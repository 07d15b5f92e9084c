# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine is, in the words of kernel, devices and files. Plain Python, without the collection.

Runs on a machine of the lab: as a program it prints what `look` returns.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

RULES = "/etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules"
LEASE = "/etc/durable-dbhost/guard.json"
GUARD = "durable-dbhost-guard.service"
OURS = re.compile(r"(SATA|SCSI|NVME|VIRT)\d+$")


def look() -> dict[str, Any]:
    """Return `{disks: {serial: ...}, mounts: {target: ...}, guard, boot_id}`."""
    return {
        "disks": dict(_disks()),
        "mounts": dict(_mounts()),
        "guard": {"lease": os.path.exists(LEASE), "runs": guard_runs()},
        "boot_id": text("/proc/sys/kernel/random/boot_id"),
    }


def guard_runs() -> bool:
    """Tell whether a process runs in the guard's service, by its control group."""
    return bool(text(f"/sys/fs/cgroup/system.slice/{GUARD}/cgroup.procs").strip())


def text(path: str) -> str:
    """Return a file's content, nothing of one that is not there."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except OSError:
        return ""


def say(*argv: str) -> str:
    """Return what a command prints."""
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def flushes() -> dict[str, int]:
    """Return how many flushes each disk was sent, by its kernel name."""
    return {name: int(text(f"/sys/block/{name}/stat").split()[15]) for name in os.listdir("/sys/block")}


def _disks():  # type: ignore[no-untyped-def]
    rules = text(RULES).splitlines()
    for line in say("lsblk", "--nodeps", "--noheadings", "--raw", "--output", "NAME,SERIAL").splitlines():
        name, _blank, serial = line.partition(" ")
        if not OURS.match(serial):
            continue
        # What udev knows, without a process for each disk.
        known = text("/run/udev/data/b" + text(f"/sys/block/{name}/dev").strip())
        wwn = re.search(r"^E:ID_WWN(?:_WITH_EXTENSION)?=(\S+)$", known, re.M)
        names = [serial] + ([wwn.group(1)] if wwn else [])
        rule = [line for line in rules for n in names if f'_{n}"' in line or f'"{n}"' in line]
        yield (
            serial,
            {
                "name": name,
                "cache": "on" if _caches(name, serial) else "off",
                "cache_mode": text(f"/sys/block/{name}/queue/write_cache").strip(),
                "flushes": int(text(f"/sys/block/{name}/stat").split()[15]),
                "rule": "\n".join(line for line in rule if not line.startswith("#")),
            },
        )


def _caches(name: str, serial: str) -> bool:
    device = "/dev/" + name
    if serial.startswith("SATA"):
        return "(on)" in say("hdparm", "-W", device)
    if serial.startswith("SCSI"):
        return "0x01" in say("sdparm", "-q", "-r", "--get", "WCE=1", "-H", device)
    if serial.startswith("NVME"):
        return not say("nvme", "get-feature", device, "-f", "6").strip().endswith("0")
    return text(f"/sys/block/{name}/cache_type").strip() == "write back"


def _mounts():  # type: ignore[no-untyped-def]
    fstab = {}
    for line in text("/etc/fstab").splitlines():
        fields = line.split()
        if len(fields) > 3 and not line.startswith("#"):
            fstab[fields[1]] = fields[3]
    for line in text("/proc/mounts").splitlines():
        source, target, fstype, options = line.split()[:4]
        if target.startswith("/srv/"):
            name = os.path.basename(source)
            kernel = text(f"/proc/fs/ext4/{name}/options").split()
            yield (
                target,
                {
                    "source": name,
                    "fstype": fstype,
                    "options": options.split(","),
                    "barrier": "off" if "nobarrier" in kernel else "on",
                    "data": next((w[5:] for w in kernel if w.startswith("data=")), ""),
                    "fstab": fstab.get(target, ""),
                },
            )


if __name__ == "__main__":
    print(json.dumps(look()))
