# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories that other components read at boot: which are there."""

from __future__ import annotations

from ..host import shell_lines
from ..host.seam import Host, Unobservable
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


def existing(host: Host, directory: str, ending: str = "") -> list[str]:
    """Return the files in a directory whose names end so, sorted; none if it is not there. Raises Unobservable."""
    names = names_in(host, directory)
    return [f"{directory}/{name}" for name in names if name.endswith(ending) and not name.startswith(".")]


def text_of(host: Host, path: str) -> str:
    """Return a file's text, '' if it is not there or a directory. Raises Unobservable."""
    if not host.exists(host.resolve(path)):
        return ""
    return host.read(path)


def script(host: Host, path: str, command: str, packaged: bool = False) -> str:
    """Return the text of a script that a command runs, '' for a program and for what cannot be read.

    `packaged`: also one in a directory of packages.
    """
    real = host.resolve(path)
    if real.startswith(_KERNEL) or (real.startswith(PACKAGED) and not packaged):
        return ""
    try:
        text = text_of(host, path)
    except Unobservable:
        return ""
    return text if text and shell_lines.is_script(text, path, command) else ""
