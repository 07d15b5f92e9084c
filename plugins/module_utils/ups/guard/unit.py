# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit of the guard."""

from __future__ import annotations

from ...host.our_paths import LEASE, PROGRAM, SERVICE
from ...storage.mount_units import unit_name
from .lease import Lease

#: The monitors, by the names that distributions give them.
MONITORS = (
    "nut-server.service",
    "nut-monitor.service",
    "nut-client.service",
    "upsmon.service",
    "apcupsd.service",
)
#: Neither variables nor directories nor packages added to the interpreter have a say.
OPTIONS = "-I -S"
WANTED_BY = f"/etc/systemd/system/multi-user.target.wants/{SERVICE}"

_TEXT = """\
# Managed by durable.dbhost. playbooks/release_db.yml takes it away.
[Unit]
Description=Write barriers of databases' file systems, while a UPS protects the host
ConditionPathExists={lease}
# What starts before it stops after it: barriers are back and all is flushed before a database ends.
After={after}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={python} {options} {program} run
# After each end, also by SIGKILL, by the watchdog or for want of memory.
ExecStopPost={python} {options} {program} tighten
Restart=always
RestartSec=5
WatchdogSec=20
# One that was stopped, or hangs, hears no other.
WatchdogSignal=SIGKILL
TimeoutStartSec=60
TimeoutStopSec=150
# The mount and sync that it has started are not ended by the signal that tells it to tighten.
KillMode=mixed
OOMScoreAdjust=-900
# Many times what it needs; a process that makes it take more has barriers brought back.
MemoryMax=512M
MemorySwapMax=0
UMask=0022
Nice=-10
# It remounts, reads disks' caches and mount points of others, gives the fifo to the monitor's group, and sees all
# processes where /proc hides them.
CapabilityBoundingSet=CAP_SYS_ADMIN CAP_SYS_RAWIO CAP_DAC_READ_SEARCH CAP_CHOWN CAP_SYS_PTRACE
NoNewPrivileges=yes
# The journal, systemd and name services; UPSes; addresses of this host, and udev.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
# No separate mount namespace, which ProtectSystem= and its like make: it remounts what the host has mounted.

[Install]
WantedBy=multi-user.target
"""


def render(lease: Lease, python: str) -> str:
    """Return the unit's text for a lease; `python` is the interpreter that runs the program."""
    mounts = [unit_name(mount.target) for mount in lease.mounts]
    after = dict.fromkeys(("local-fs.target", *MONITORS, *mounts, *lease.units))
    # A percent sign would be read as a specifier.
    names = " ".join(after).replace("%", "%%")
    return _TEXT.format(lease=LEASE, after=names, python=python, options=OPTIONS, program=PROGRAM)
