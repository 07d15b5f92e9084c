# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers for which root's option files stay unchanged, and what their owners change instead.

A process chooses its own arguments and environment. What it says there must not become text in a file that root's
programs read: a group suffix names any group, and with a newline in it any option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...host import bounds
from ...host.printable import line
from ...host.seam import ChangeFailed, Unobservable
from .. import fixes
from . import my_cnf, options
from .fixes import FIXES
from .snapshot import Snapshot

#: Suffixes that turn a server's group into no program's: mariadb@.service has the first form, mysqld_multi the second. Of
#: others "-dump" makes [mariadb-dump], and "ump" makes [mysqldump].
_HARMLESS = re.compile(r"\.[\w.@-]{1,60}|\d{1,10}", re.ASCII)


def apart(snapshot: Snapshot, places: Sequence[str]) -> str:
    """Return why nothing is written into root's option files for a server, '' if something is.

    `places`: root's directories that its option files include. Raises ChangeFailed.
    """
    if snapshot.started is None or snapshot.version is None:
        return ""
    if snapshot.apart:
        return snapshot.apart
    if snapshot.started.suffix:
        return (
            f"its group suffix `{line(bounds.short(snapshot.started.suffix, 60))}` gives it separate groups"
        )
    is_system = any(path in my_cnf.MAINS for path in snapshot.started.mains)
    if not places and (not is_system or _separate(snapshot, _read(snapshot))):
        return "its own option files include none of the directories that root's option files include"
    return ""


def advice(snapshot: Snapshot, wanted: Mapping[str, str], why: str, group: str) -> str:
    """Return what the owner of a server changes, and where. Raises ChangeFailed.

    `group`: that of its flavour. All option lines are ours; a suffix is shown as one of them only if it is harmless.
    """
    if snapshot.started is None or snapshot.version is None:
        raise ChangeFailed(snapshot.reason or "its version cannot be read")
    coming = options.persisted(
        list(wanted), snapshot.version, snapshot.started, snapshot.files, snapshot.data, snapshot.stated
    )
    values = "; ".join(
        f"{name} is {coming[name].word} (from {line(coming[name].origin or 'an unknown place')}), must be {word}"
        for name, word in wanted.items()
    )
    held = [options.held(name, coming[name].origin) for name in wanted]
    first = dict.fromkeys(fixes.text(each, FIXES) for each in held if each)
    fixed = ", then ".join([*first, fix(snapshot, wanted, group), "run again"])
    return f"{values}. Root's option files are left unchanged for this server: {why}. Fix: {fixed}"


def fix(snapshot: Snapshot, wanted: Mapping[str, str], group: str) -> str:
    """Return the lines that the owner of a server adds, and to which file. Raises ChangeFailed."""
    lines = _lines(wanted)
    suffix, file = snapshot.started.suffix if snapshot.started else "", _file(snapshot)
    if not file or not (suffix or snapshot.apart or _separate(snapshot, _read(snapshot))):
        # At the end of the system's file the lines would be for other servers as well.
        return f"start it with {', '.join(f'`--{name}={word}`' for name, word in wanted.items())}"
    if suffix and not _HARMLESS.fullmatch(suffix):
        return (
            "start it with a group suffix that begins with a dot, because with this suffix its group can be that"
            f" of another program, then add the new group and {', '.join(lines)} at the end of {file}"
        )
    return _added(f"{group}{suffix}", lines, file)


def fix_without_directory(snapshot: Snapshot, wanted: Mapping[str, str], group: str) -> str:
    """Return what to add to the system's option file that includes no directory; a directory has files of others too."""
    return f"{_added(group, _lines(wanted), _file(snapshot))}, then run again"


def _lines(wanted: Mapping[str, str]) -> list[str]:
    return [f"`{name}={word}`" for name, word in wanted.items()]


def _added(group: str, lines: list[str], file: str) -> str:
    return f"add {', '.join([f'`[{group}]`', *lines])}, one line each, at the end of {file}"


def _file(snapshot: Snapshot) -> str:
    """Return the last main option file that the owner of a server can change, '' if none is there."""
    read, every = _read(snapshot), snapshot.started.mains if snapshot.started else ()
    mains = (
        _separate(snapshot, read)
        if snapshot.apart
        else [path for path in every if path in read] or list(every)
    )
    return line(bounds.short(mains[-1])) if mains else ""


def _separate(snapshot: Snapshot, read: Sequence[str]) -> list[str]:
    """Return those of the files that a server reads that are main ones, and not the system's."""
    mains = snapshot.started.mains if snapshot.started else ()
    return [path for path in mains if path not in my_cnf.MAINS and path in read]


def _read(snapshot: Snapshot) -> list[str]:
    """Return the files that a server reads. Raises ChangeFailed."""
    if snapshot.started is None or snapshot.version is None:
        return []
    try:
        return list(options.effective(snapshot.files, snapshot.started, snapshot.version).files)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
