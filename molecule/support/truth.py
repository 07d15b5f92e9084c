# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is, in the words of kernel, devices and files: nothing of ours is asked.

`read` runs one script on the machine; the script is plain Python without the collection.
"""

from __future__ import annotations

import json
from typing import Any

from lab.machine import Machine

_SCRIPT = r"""
import json, os, re, subprocess

def text(path):
    try:
        return open(path).read()
    except OSError:
        return ""

def say(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout

rules = text("/etc/udev/rules.d/99-durable-dbhost-write-cache.rules")
disks = {}
for line in say("lsblk", "--nodeps", "--noheadings", "--raw", "--output", "NAME,SERIAL").splitlines():
    name, _blank, serial = line.partition(" ")
    if not re.match(r"(SATA|SCSI|NVME|VIRT)\d+$", serial):
        continue
    if serial.startswith("SATA"):
        on = "(on)" in say("hdparm", "-W", "/dev/" + name)
    elif serial.startswith("SCSI"):
        on = "0x01" in say("sdparm", "-q", "-r", "--get", "WCE=1", "-H", "/dev/" + name)
    elif serial.startswith("NVME"):
        on = not say("nvme", "get-feature", "/dev/" + name, "-f", "6").strip().endswith("0")
    else:
        on = text("/sys/block/%s/cache_type" % name).strip() == "write back"
    known = say("udevadm", "info", "--query=property", "--name=" + name)
    wwn = re.search(r"^ID_WWN(?:_WITH_EXTENSION)?=(\S+)$", known, re.M)
    names = [serial] + ([wwn.group(1)] if wwn else [])
    rule = [line for line in rules.splitlines() for n in names if '_%s"' % n in line or '"%s"' % n in line]
    disks[serial] = {
        "name": name,
        "cache": "on" if on else "off",
        "belief": text("/sys/block/%s/queue/write_cache" % name).strip(),
        "flushes": int(text("/sys/block/%s/stat" % name).split()[15]),
        "rule": "\n".join(line for line in rule if not line.startswith("#")),
    }
fstab = {}
for line in text("/etc/fstab").splitlines():
    fields = line.split()
    if len(fields) > 3 and not line.startswith("#"):
        fstab[fields[1]] = fields[3]
mounts = {}
for line in text("/proc/mounts").splitlines():
    source, target, fstype, options = line.split()[:4]
    if target.startswith("/srv/"):
        kernel = text("/proc/fs/ext4/%s/options" % os.path.basename(source)).split()
        mounts[target] = {
            "source": os.path.basename(source),
            "fstype": fstype,
            "options": options.split(","),
            "barrier": "off" if "nobarrier" in kernel else "on",
            "data": next((w[5:] for w in kernel if w.startswith("data=")), ""),
            "fstab": fstab.get(target, ""),
        }
print(json.dumps({"disks": disks, "mounts": mounts, "boot_id": text("/proc/sys/kernel/random/boot_id")}))
"""


def read(machine: Machine) -> dict[str, Any]:
    """Return `{disks: {serial: ...}, mounts: {target: ...}, boot_id}`."""
    return dict(json.loads(machine.run(["python3", "-"], input=_SCRIPT).stdout))


def weaknesses(truth: dict[str, Any], targets: dict[str, str]) -> set[str]:
    """Return all in which this machine is less safe than it could be, now and at its next boot.

    `targets` is {mount point: serial of the disk below it}.
    """
    found = set()
    for target, serial in targets.items():
        mount, disk = truth["mounts"][target], truth["disks"][serial]
        cached = disk["cache"] == "on"
        # A SATA rule that does not pin the belief would let a reset go unnoticed.
        kept_off = "-W0" in disk["rule"] or "write through" in disk["rule"]
        found |= {
            name
            for name, holds in {
                f"{serial} caches": cached,
                f"{serial} caches and takes no flush": cached and disk["belief"] != "write back",
                f"{target} without barriers": mount["barrier"] == "off",
                f"{target} without barriers over a cache": cached and mount["barrier"] == "off",
                f"{target} writeback": mount["data"] == "writeback",
                f"{serial} caches at boot": not kept_off,
                f"{target} without barriers at boot": "barrier=0" in mount["fstab"],
                f"{target} writeback at boot": "data=writeback" in mount["fstab"],
                f"{target} not mounted at boot": not mount["fstab"],
            }.items()
            if holds
        }
    return found
