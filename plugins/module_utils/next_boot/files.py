# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and scripts that other components run at boot."""

from __future__ import annotations

from ..host.boot_files import text_of
from ..host.seam import Host, Unobservable

#: Directories in which only packages have files.
PACKAGED = (
    "/usr/lib/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/share/",
    "/lib/",
    "/bin/",
    "/sbin/",
    "/usr/libexec/",
)
_KERNEL = ("/dev/", "/proc/", "/sys/")
#: In the reason of host.seam.TooLong: over 4 MiB, so a program.
_TOO_LONG = ": longer than "


def program_text(host: Host, path: str, packaged: bool = False) -> str:
    """Return what is in a file that a command can run, '' for none, for a directory, and for one that is too long for a script.

    `packaged`: also of one in a directory of packages. Raises Unobservable.
    """
    real = host.resolve(path)
    if real.startswith(_KERNEL) or (real.startswith(PACKAGED) and not packaged):
        return ""
    try:
        return text_of(host, path)
    except Unobservable as error:
        if _TOO_LONG in str(error):
            return ""
        raise
