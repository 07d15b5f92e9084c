# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is, in the words of kernel, devices and files: nothing of ours is asked.

`read` runs truth_script.py on the machine: plain Python without the collection.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.machine import Machine

SCRIPT = Path(__file__).with_name("truth_script.py")


def read(machine: Machine) -> dict[str, Any]:
    """Return `{disks: {serial: ...}, mounts: {target: ...}, guard, boot_id}`."""
    return dict(json.loads(machine.run(["python3", "-"], input=SCRIPT.read_text()).stdout))


def weaknesses(truth: dict[str, Any], targets: dict[str, str]) -> set[str]:
    """Return all in which this machine is less safe than it could be, now and at its next boot.

    `targets` is {mount point: serial of the disk below it}.
    """
    found = set()
    guarded = truth["guard"]["lease"] and truth["guard"]["runs"]
    for target, serial in targets.items():
        mount, disk = truth["mounts"][target], truth["disks"][serial]
        cached = disk["cache"] == "on"
        # What turns the cache off: of SATA, of NVMe, of SCSI and virtio.
        kept_off = any(words in disk["rule"] for words in ("-W0", "--value=0", "write through"))
        found |= {
            name
            for name, holds in {
                f"{serial} caches": cached,
                f"{serial} caches and takes no flush": cached and disk["cache_mode"] != "write back",
                f"{target} without barriers": mount["barrier"] == "off",
                f"{target} without barriers over a cache": cached and mount["barrier"] == "off",
                f"{target} writeback": mount["data"] == "writeback",
                # Barriers are away, and nobody is there to put them back before the power is gone.
                f"{target} without barriers and without a guard": mount["barrier"] == "off" and not guarded,
                f"{serial} caches at boot": not kept_off,
                f"{target} without barriers at boot": "barrier=0" in mount["fstab"],
                f"{target} writeback at boot": "data=writeback" in mount["fstab"],
                f"{target} not mounted at boot": not mount["fstab"],
            }.items()
            if holds
        }
    # A guard begins with each boot, and takes barriers away when it sees a reason.
    return found | ({"a guard may take barriers away"} if truth["guard"]["lease"] else set())
