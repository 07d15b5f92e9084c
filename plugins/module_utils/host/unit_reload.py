# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the next start of a unit uses other files than systemd has loaded.

systemd reports that as NeedDaemonReload, with two errors (measured with 252). It misses a new unit file in a stronger
directory, and a new directory of drop-ins. And it compares the time of each drop-in with the time of its last load: of a
masked drop-in that is the time of /dev/null, which udev sets at each boot.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from .processes import booted_by_clock, output
from .seam import Host, Unobservable
from .system_conf import Line, assigned, drop_ins, parse, text_of
from .unit_names import scopes, template

_NOTHING = "/dev/null"
#: Section -> keys that change neither the program of a service nor its user, nor what it waits for. The commands beside the
#: program are read from the files, loaded or not. In [Unit] systemd ignores keys of [Service]: systemd.unit(5),
#: systemd.exec(5), systemd.resource-control(5).
_UNRELATED = {
    "Unit": re.compile(r"Description|Documentation|Exec\w+|Environment\w*"),
    "Service": re.compile(
        r"Nice|Limit\w+|OOM\w+|Restart|RestartSec|TimeoutStartSec|SyslogIdentifier|Standard(?:Output|Error)|UMask"
        r"|(?:CPU|Memory|IO|Tasks)\w+|Exec(?:StartPre|StartPost|Reload)"
    ),
    "Install": re.compile(r"\w+"),
}
#: Variables of locale(7) and tzset(3).
_OF_LANGUAGE = re.compile(r"LANG|LANGUAGE|LC_\w+|TZ")
_LOADED = "UnitsLoadFinishTimestampMonotonic"


class Loaded(NamedTuple):
    """The files of a unit that systemd has loaded: its own, the one that a generator made it from, and its drop-ins, which may
    be masked. `is_reported`: systemd reports that they have changed."""

    fragment: str
    source: str
    drop_ins: tuple[str, ...]
    is_reported: bool


def is_due(host: Host, names: Sequence[str], loaded: Loaded, directories: Sequence[str]) -> bool:
    """Return whether the next start of a unit uses other files than are loaded, or may do so.

    `names`: its own name first; `directories`: those of units, the strongest first.
    """
    try:
        if _has_others(host, names, loaded, directories):
            return True
        if not loaded.is_reported:
            return False
        # Reported for a drop-in that is masked, or that changes nothing here, if none of the others is newer or gone.
        real = (path for path in loaded.drop_ins if host.resolve(path) != _NOTHING)
        since = _last_load(host)
        return any(_is_newer(host, path, since) for path in (loaded.fragment, loaded.source, *real) if path)
    except (Unobservable, ValueError):
        return True


def _has_others(host: Host, names: Sequence[str], loaded: Loaded, directories: Sequence[str]) -> bool:
    """Return whether a unit file or drop-in is there that systemd has not loaded."""
    mains = (f"{base}/{name}" for name in (names[0], template(names[0])) for base in directories)
    main = next((path for path in mains if host.exists(path)), None)
    if main and loaded.fragment and host.resolve(main) != host.resolve(loaded.fragment):
        return True
    places = dict.fromkeys(
        f"{base}/{scope}.d" for name in names for scope in scopes(name) for base in directories
    )
    known = {_place(host, path) for path in loaded.drop_ins}
    others = (path for path in drop_ins(host, places) if _place(host, path) not in known)
    return any(_matters(host, path) for path in others)


def _matters(host: Host, path: str) -> bool:
    """Return whether a drop-in may change how a server is started, or when it is stopped. Raises Unobservable."""
    return any(_is_related(line) for line in parse(text_of(host, path), path))


def _is_related(line: Line) -> bool:
    if line.key == "Environment" and line.section == "Service":
        return not line.value or not all(_OF_LANGUAGE.fullmatch(name) for name, _value in assigned(line))
    return line.section not in _UNRELATED or not _UNRELATED[line.section].fullmatch(line.key)


def _place(host: Host, path: str) -> str:
    """Return the path of a drop-in below its real directory: /lib can be a link to /usr/lib."""
    return f"{host.resolve(posixpath.dirname(path))}/{posixpath.basename(path)}"


def _last_load(host: Host) -> float:
    """Return when systemd last loaded its units, in seconds since the epoch by the clock of now.

    systemd's clock stands still while a host is suspended: then the result is too early, and more files are newer. Raises
    Unobservable, ValueError.
    """
    microseconds = output(host, ["systemctl", "show", f"--property={_LOADED}"]).strip().partition("=")[2]
    return booted_by_clock(host) + int(microseconds) / 1e6


def _is_newer(host: Host, path: str, since: float) -> bool:
    status = host.locate(path).status
    return status is None or status.changed >= since
