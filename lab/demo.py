# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on a throw-away host: check, harden, check again.

    python3 -m lab.demo

Boots a machine with SCSI and virtio disks, leaves one database volume without barriers, and runs
the playbook as a user would. The machine is deleted at the end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import layout, watch
from lab.errors import LabError
from lab.machine import Machine
from lab.progress import say

ROOT = Path(__file__).resolve().parent.parent
#: What an administrator in search of speed leaves behind.
NEGLECT = """
mount -o remount,barrier=0 /srv/fbdata
sed -i 's|\\(/srv/fbdata ext4 [^ ]*\\)|\\1,barrier=0|' /etc/fstab
"""


def harden(machine: Machine, directory: str, *options: str) -> int:
    """Run harden-db on the machine; return its exit code."""
    say(f"ansible-playbook harden-db.yml {' '.join(options)}")
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        *("-i", str(machine.inventory)),
        *("-i", str(ROOT / "lab/demo_inventory/hosts.yml")),
        str(ROOT / "playbooks/harden-db.yml"),
        *options,
    ]
    return subprocess.run(command, cwd=directory, check=False).returncode


def main() -> int:
    """Show it; the exit code is 0 when the host ended at its profile."""
    started = time.monotonic()
    watch.own()
    machine = Machine("demo")
    try:
        machine.up(layout.load(ROOT / "lab/layouts/default.yml"))
        machine.run(["sh", "-c", NEGLECT])
        with tempfile.TemporaryDirectory() as directory:
            before = harden(machine, directory, "--check")
            ran = harden(machine, directory)
            after = harden(machine, directory, "--check")
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        machine.down()
    print(
        f"\nexit codes: {before} before (2: the host is at risk), {ran} of the run,"
        f" {after} after; {time.monotonic() - started:.0f} s"
    )
    return 0 if (before, ran, after) == (2, 0, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
