# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's periodic checks, and the reasons for which it enables barriers."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NamedTuple

from ...host.our_paths import PROGRAM
from ...host.seam import Host, Unobservable
from ..collect import Power, live, observe
from ..conditions import MET
from . import lease, monitors, state
from .lease import Lease

#: Conditions without which the facts are incomplete.
_LEAST = ("monitor_active", "status_online")


class Snapshot(NamedTuple):
    """One look: when it began, the lease of that moment, what is wrong, and the monitor's processes,
    None where they were not searched for. `replaced` says why the guard has to start again, '' where it has not."""

    began: float
    lease: Lease | None
    problems: tuple[str, ...]
    processes: dict[int, int] | None
    replaced: str = ""


class Clock:
    """The host's clocks. `steady` is never set; `asleep` grows while the host sleeps; `wall` is the time of day."""

    def steady(self) -> float:
        """Return the seconds of a clock that is never set, and stands while the host sleeps."""
        return time.monotonic()

    def awake(self) -> float:
        """Return the seconds since the boot, those asleep too."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def today(self) -> str:
        """Return the date, ISO, UTC."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.wall()))

    def now(self) -> str:
        """Return date and time, ISO, UTC."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.wall()))


class Eyes:
    """Reads lease, power and monitor. Slow: it runs in a thread for which the loop never waits."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self.host = host
        self.clock = clock
        self._files = (sys.executable, PROGRAM)
        self._before = [_mark(path) for path in self._files]

    def see(self, is_watched: bool) -> Snapshot:
        """Return a snapshot; what cannot be read is a problem. Nothing here raises.

        `is_watched`: the monitor's processes are known, and their end will be heard of.
        """
        began = self.clock.steady()
        found: Lease | None = None
        processes: dict[int, int] | None = None
        problems: list[str] = []
        try:
            found = lease.read(self.host)
            if found is None:
                return Snapshot(began, None, ("there is no lease",), None, self._replaced())
            over = found.over(self.clock.today())
            problems += [over] if over else []
            queried_at = state.uptime(self.host)
            power = observe(self.host)
            problems += _unmet(power, found)
            if not is_watched:
                processes = monitors.find(self.host, power.pid, queried_at)
            if processes == {}:
                problems.append(f"no process of upsmon or apcupsd runs as {power.unit or 'a service'}")
        except Unobservable as error:
            problems.append(str(error))
        except Exception as error:
            # Whatever it is: who cannot look does not know that all is well.
            problems.append(f"the snapshot failed: {type(error).__name__}: {error}")
        return Snapshot(began, found, tuple(problems), processes, self._replaced())

    def _replaced(self) -> str:
        """Return which file this program was started from that is another by now, or gone."""
        pairs = zip(self._files, self._before)
        return ", ".join(path for path, before in pairs if _mark(path) != before)


def _unmet(power: Power, allowed: Lease) -> list[str]:
    conditions = live(power, allowed.needed, allowed.test_ups)
    missing = [f"{name}: was not asked" for name in _LEAST if name not in {c.name for c in conditions}]
    return [*missing, *(f"{c.name}: {c.state}: {c.evidence}" for c in conditions if c.state != MET)]


def _mark(path: str) -> Any:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
