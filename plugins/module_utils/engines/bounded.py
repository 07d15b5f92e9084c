# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories at paths that somebody else chose, read by commands that have a time limit.

Whoever opens a pipe, or a file on a disk that hangs, waits for ever and cannot be ended. A command
waits in its stead.
"""

from __future__ import annotations

from ..host import Host, Unobservable
from .places import look
from .processes import output
from .textfile import LIMIT


def read(host: Host, path: str) -> str | None:
    """Return a file's text, one byte over LIMIT at most; None where there is no such file.

    Raises Unobservable, also for what is no regular file, and where its disk does not answer in time.
    """
    if not look(host, path):
        return None
    if host.run(["test", "-f", path]).rc != 0:
        raise Unobservable(f"{path}: not a regular file")
    return output(host, ["head", f"--bytes={LIMIT + 1}", "--", path])


def names(host: Host, path: str) -> list[str]:
    """Return the sorted names in a directory. Raises Unobservable, also where its disk does not answer."""
    found = output(
        host, ["find", f"{path.rstrip('/')}/", "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\0"]
    )
    return sorted(found.split("\0")[:-1])
