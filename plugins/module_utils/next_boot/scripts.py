# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings made by rc.local, SysV scripts and cron's @reboot at each boot, and by jobs of cron and of the network after it."""

from __future__ import annotations

import re

from ..host import boot_scripts
from ..host.seam import Host
from . import commands, programs
from .acts import Act
from .starts import Starts

BY = "rc.local, cron"
#: How a script of an initramfs names the root of the host.
_ROOT = re.compile(r"\$(?:\{rootmnt\}|rootmnt\b)/?")
#: Programs with which another user can run a command as root.
_AS_ROOT = re.compile(r"\b(?:sudo|doas|pkexec|run0|su)\b")


def collect(host: Host, starts: Starts) -> list[Act]:
    """Return what the scripts and commands of a boot do. Raises Unobservable."""
    found: list[Act] = []
    for path, by, text in starts.scripts:
        # Most SysV scripts are of packages, and so is what they run.
        found += programs.of_shell(host, text, path, by, packaged=by != boot_scripts.SYSV)
    for command in starts.commands:
        if command.is_roots:
            found += programs.of_shell(host, command.text, command.source, boot_scripts.CRON, 0)
        elif _AS_ROOT.search(command.text):
            # What sudo allows is unknown, and so is what a script of another user does by then.
            acts = commands.of_script(command.text, command.source, boot_scripts.CRON, 0)
            found += [act._replace(is_certain=False) for act in acts]
    return [*found, *_later(host, starts)]


def _later(host: Host, starts: Starts) -> list[Act]:
    """Return what jobs do some time after the boot. Their packaged scripts are not read. Raises Unobservable."""
    found: list[Act] = []
    for path, by, text in boot_scripts.later_scripts(host):
        of_host = _ROOT.sub("/", text) if by == boot_scripts.INITRAMFS else text
        found += programs.of_shell(host, of_host, path, by, packaged=False)
    jobs = [(each, boot_scripts.CRON) for each in boot_scripts.later(host, starts.tables)]
    jobs += ((each, boot_scripts.NETWORK) for each in boot_scripts.of_interfaces(host))
    for command, by in jobs:
        found += programs.of_shell(host, command.text, command.source, by, 0, packaged=False)
    return [act._replace(is_certain=False) for act in found]
