# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a unit that systemd reports as changed has changed.

systemd 252 compares the time of each drop-in with the time of its last load. Of a masked drop-in that is the time of
/dev/null, which udev sets at each boot: then systemd reports a change that does not exist, until the next daemon-reload.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .processes import output
from .seam import Host, Unobservable
from .unit_names import scopes

_NOTHING = "/dev/null"
_LOADED = "UnitsLoadFinishTimestampMonotonic"


def is_due(host: Host, names: Sequence[str], directories: Iterable[str]) -> bool:
    """Tell whether systemd would load a unit otherwise than it has; for a unit that it reports as changed.

    `names`: its own name first; `directories`: those of units. False only if a drop-in is masked, and each other file and
    each directory of drop-ins is older than the last load.
    """
    try:
        files = _shown(host, "FragmentPath,SourcePath,DropInPaths", names[0])
        real = [path for path in files if host.resolve(path) != _NOTHING]
        if len(real) == len(files):
            return True
        since = _loaded(host)
        places = [f"{base}/{scope}.d" for name in names for scope in scopes(name) for base in directories]
        # What was removed is no longer in its directory, or the directory is gone.
        expected = dict.fromkeys((*real, *(path.rpartition("/")[0] for path in files)))
        present = (path for path in dict.fromkeys(places) if path not in expected and host.exists(path))
        return any(_is_newer(host, path, since) for path in (*expected, *present))
    except (Unobservable, ValueError, IndexError):
        return True


def _shown(host: Host, properties: str, *names: str) -> list[str]:
    """Return the words of all values of properties."""
    text = output(host, ["systemctl", "show", f"--property={properties}", *(("--", *names) if names else ())])
    return " ".join(line.partition("=")[2] for line in text.split("\n")).split()


def _loaded(host: Host) -> float:
    """Return when systemd last loaded its units, in seconds since the epoch by the clock of now.

    systemd's clock stands still while a host is suspended: then the result is too early, and more files are newer.
    """
    (microseconds,) = _shown(host, _LOADED)
    now = float(output(host, ["date", "+%s.%N"]))
    return now - float(host.read("/proc/uptime").split()[0]) + int(microseconds) / 1e6


def _is_newer(host: Host, path: str, since: float) -> bool:
    status = host.locate(path).status
    return status is None or status.changed >= since
