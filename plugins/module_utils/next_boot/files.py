# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories that other components read at boot."""

from __future__ import annotations

from ..host.seam import DIRECTORY, NO_FILE, Host, Unobservable
from ..host.system_conf import names_in

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


def existing(host: Host, directory: str, ending: str = "") -> list[str]:
    """Return the files in a directory whose names end so, sorted; none if it is not there. Raises Unobservable."""
    names = names_in(host, directory)
    return [f"{directory}/{name}" for name in names if name.endswith(ending) and not name.startswith(".")]


def text_of(host: Host, path: str) -> str:
    """Return a file's text, '' if it is not there or a directory. Raises Unobservable."""
    if not host.exists(host.resolve(path)):
        return ""
    try:
        return host.read(path)
    except Unobservable as error:
        if any(why in str(error) for why in (NO_FILE, DIRECTORY)):
            return ""
        raise


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
