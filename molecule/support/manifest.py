# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything of a machine that a look could change, or a test could leave behind: to compare, not to read."""

from __future__ import annotations

from lab.machine import Machine

#: Files, kernel knobs, devices, mounts, modules.
_SCRIPT = r"""
find / -xdev \( -path /run -o -path /var/log -o -path /root/.ansible -o -path /tmp -o -path /var/lib/systemd \) -prune \
    -o -printf '%p %C@ %s\n' | sort
grep -r . /sys/block/*/queue /sys/class/scsi_disk 2>/dev/null | sort
cat /sys/block/vd*/cache_type
for disk in /dev/sd?; do
    sdparm --quiet --readonly --get WCE=1 -H $disk
    dumpe2fs -h $disk 2>/dev/null | grep -i options
done
cat /proc/mounts
cut -d' ' -f1 /proc/modules | sort
"""


def read(machine: Machine) -> str:
    """Return it."""
    return machine.run(["sh", "-c", _SCRIPT]).stdout
