# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line of the next boot, and the units that it starts: kernel-command-line(7)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host.seam import Host
from . import boot_entries
from .boot_entries import Entry

_WANTS = re.compile(r"""(?:^|\s)["']?systemd\.wants=["']?([^\s"']+)""")


def candidates(host: Host) -> list[Entry]:
    """Return the entries of the boot loader of which the next boot's is one; [] without a boot loader. Raises Unobservable.

    Those for repairs are chosen by hand, unless the default is one.
    """
    found = boot_entries.find(host)
    entries = found.entries or found.others
    return [each for each in entries if (found.entries and found.is_decided) or not each.is_repair]


def of_this_boot(host: Host) -> tuple[str, str]:
    """Return this boot's, and its place. Raises Unobservable."""
    return host.read("/proc/cmdline"), "the kernel's command line of this boot (/proc/cmdline)"


def wants(host: Host) -> Mapping[str, bool]:
    """Return {unit: whether each candidate has it} of `systemd.wants=`. Raises Unobservable."""
    lines = [each.line for each in candidates(host)] or [of_this_boot(host)[0]]
    found = [set(_WANTS.findall(line)) for line in lines]
    return {unit: all(unit in each for each in found) for unit in set().union(*found)}
