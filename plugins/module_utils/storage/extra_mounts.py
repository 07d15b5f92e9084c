# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that the kernel's command line adds to those of fstab: systemd.mount-extra= (systemd-fstab-generator(8), 254)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from ..next_boot import command_lines
from .boot_faults import Fault
from .fstab import Entry, unquoted
from .shown_options import without_login

_SEPARATOR, _ESCAPED = re.compile(r"(?<!\\):"), re.compile(r"\\(.)")
#: Where an initramfs has the root of the host.
_SYSROOT = "/sysroot"
_FIELDS = range(2, 5)


class Extra(NamedTuple):
    """A mount that the next boot's command line adds; `key`: the name of its option; `is_sure`: all candidates have it."""

    line: Entry
    key: str
    is_sure: bool


def of_host(host: Host) -> list[Extra]:
    """Return the mounts that the next boot's command line adds. Raises Unobservable."""
    found = command_lines.words(host)
    made = ((parse(text, each.place), each) for text, each in found.items())
    return [Extra(line, each.key, each.is_sure) for line, each in made if line]


def parse(text: str, place: str) -> Entry | None:
    """Return the mount that a word of a command line adds, None for any other word, and for one that systemd passes over.

    Its value is WHAT:WHERE[:FSTYPE[:OPTIONS]]. What only the initramfs mounts counts if it is below the host's root.
    """
    key, _equals, value = text.partition("=")
    if command_lines.plain(key) not in ("systemd.mount-extra", "rd.systemd.mount-extra"):
        return None
    fields = [_ESCAPED.sub(r"\1", field) for field in _SEPARATOR.split(value)]
    what, where, fstype, options = (*fields, "", "", "")[:4]
    if key.startswith("rd."):
        is_below = f"{where}/".startswith(f"{_SYSROOT}/")
        where = where[len(_SYSROOT) :] or "/" if is_below else ""
    if len(fields) not in _FIELDS or not what or not where.startswith("/") or fstype == "swap":
        return None
    target = "/" + "/".join(part for part in where.split("/") if part not in ("", "."))
    return Entry(
        -1, unquoted(what), target, fstype or "auto", tuple((options or "defaults").split(",")), place
    )


def faults(
    host: Host,
    extras: Iterable[Extra],
    lines: Iterable[Entry],
    here: Mapping[str, Mount],
    is_of: Callable[[Entry, Mount], bool],
) -> Iterator[Fault]:
    """Yield those that are mounted over what is at their mount point now: another mount, or files.

    `lines`: of fstab and units; `here`: {mount point: mount}; `is_of`: whether a line is about a mount. An initramfs with
    systemd makes them before the lines of fstab, another one leaves the lines to win.
    """
    in_fstab = {line.target for line in lines}
    for line, key, is_sure in extras:
        mount = here.get(line.target)
        if mount is not None and is_of(line, mount):
            continue
        is_mount = mount is not None or line.target in in_fstab
        has_files = not is_mount and _has_files(host, line.target)
        if not is_mount and has_files is False:
            continue
        is_certain = is_sure and line.target not in in_fstab and has_files is not None
        values = {
            "spec": without_login(line.spec),
            "key": key,
            "covers": "mount" if is_mount else "files",
        }
        # One with nofail hides them too.
        made = line._replace(options=("defaults",))
        yield Fault(made, "extra_mount", "refused" if is_certain else UNKNOWN, values, effect="hides")


def _has_files(host: Host, path: str) -> bool | None:
    """Return whether a directory has anything in it, None if that cannot be read."""
    if not host.exists(path):
        return False
    try:
        return bool(host.names(path))
    except Unobservable:
        return None
