# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nfsmount.conf(5): options that mount.nfs(8) adds to those of a line or unit.

It adds each option that the line does not name, behind those of the line (nfs-utils, utils/mount/configfile.c): `soft` there
overrides `hard` in fstab, because the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..host.boot_files import existing, text_of
from ..host.mountinfo import Mount
from ..host.observation import Observation, unread
from ..host.seam import Host, Unobservable

_MAIN = ("/usr/etc/nfsmount.conf", "/etc/nfsmount.conf")
_GLOBAL, _SERVER, _MOUNT_POINT = "nfsmount_global_options", "server", "mountpoint"
_SECTION = re.compile(r"\[\s*(?P<kind>\w+)\s*[\"\u201c]?(?P<name>[^\"\u201d\]]*?)[\"\u201d]?\s*\]", re.A)
_INCLUDE = re.compile(r"-?include\b", re.I)
#: Options by which a client gives writes up.
_GIVES_UP = ("soft", "softerr")


def recovery(host: Host, mount: Mount, targets: Iterable[str]) -> Observation | None:
    """Return the recovery option that the files give to a mount at these mount points, None if they give none."""
    server = mount.source.partition(":")[0].lower()
    ours = {(_GLOBAL, ""), (_SERVER, server), *((_MOUNT_POINT, target.lower()) for target in targets)}
    try:
        found = [each for path in _files(host) for each in _options(text_of(host, path), path, ours)]
    except Unobservable as error:
        return unread(_MAIN[-1], error)
    return found[0] if found else None


def _files(host: Host) -> Iterator[str]:
    for main in _MAIN:
        yield main
        yield from existing(host, f"{main}.d", ".conf")


def _options(text: str, path: str, ours: set[tuple[str, str]]) -> Iterator[Observation]:
    """Yield the options of a file that concern a mount. Raises Unobservable if it includes other files."""
    section = ("", "")
    for row, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        head = _SECTION.match(line)
        if head:
            section = (head["kind"].lower(), head["name"].strip().lower())
        elif _INCLUDE.match(line):
            raise Unobservable(f"{path} line {row}: files that it includes are not read here")
        key, _equals, value = (part.strip().lower() for part in line.partition("="))
        if section in ours and key in _GIVES_UP and value.strip("\"'") == "true":
            yield Observation(key, f"{path} line {row}", by="nfsmount.conf")
