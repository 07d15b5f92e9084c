# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the guard disables and enables barriers. The caller reports every event and acts.

Time is given in seconds of a clock that is never set, by the caller.
"""

from __future__ import annotations

import math

from .state import FAILED, LOOSE, TIGHT, WAITING

#: What is to be done, or under way.
TIGHTEN = "tighten"
LOOSEN = "loosen"
#: Seconds until a failed tightening is tried again, at first and at most: each may leave a process behind
#: that waits for its disk.
_RETRY, _RETRY_MOST = 10.0, 600.0


class Machine:
    """The guard's state. It begins with everything to be tightened, whatever is found.

    `under_way` is the action that runs now, or None; `turn` counts the started ones.
    """

    def __init__(self, now: float) -> None:
        self.state = FAILED
        self.reason = "the guard has just started: nothing is checked yet"
        self.under_way: str | None = None
        self._quiet = math.inf
        self._alarmed = now
        self._well_since: float | None = None
        self._due: str | None = TIGHTEN
        self._retry_at = math.inf
        self._retry_after = _RETRY
        self._why = "the guard has just started"
        self.turn = 0

    def allow(self, quiet: float) -> None:
        """Set the seconds for which all must have been well before barriers go; infinity: they never go."""
        self._quiet = quiet

    def alarm(self, why: str, now: float, are_off: bool = False) -> None:
        """Something is not as it must be: barriers come back, and all must be well for long again.

        `are_off`: barriers were found off that the guard did not remove.
        """
        self._alarmed, self._well_since, self._why = now, None, why
        if self.state == LOOSE or self.under_way == LOOSEN or are_off:
            # Not tight again before that was read.
            self.state, self._due = FAILED, TIGHTEN
            self.reason = f"{why}: barriers are being brought back"
        elif self.state != FAILED:
            self.state, self.reason = TIGHT, why

    def well(self, began: float, now: float) -> None:
        """A snapshot that started then has no problem. One that started before an alarm has no effect."""
        if began <= self._alarmed:
            return
        if self._well_since is None:
            self._well_since = now
        if self.state in (TIGHT, WAITING) and self.under_way is None:
            self.state = WAITING
            self.reason = f"every check passes, for {now - self._well_since:.0f} s of {self._quiet:.0f} s now"
            if now - self._well_since >= self._quiet:
                self._due = LOOSEN

    def due(self, now: float) -> str | None:
        """Return what has to begin now, once. Tightening begins also while loosening is under way."""
        if self._due is None and self.under_way is None and now >= self._retry_at:
            self._due = TIGHTEN
        if self._due is None or self.under_way == TIGHTEN:
            return None
        self.under_way, self._due = self._due, None
        self._retry_at = math.inf
        self.turn += 1
        if self.under_way == LOOSEN:
            # Reported before it is done: the next guard restores them if this one dies.
            self.state, self.reason = LOOSE, "every check has passed for long enough"
        return self.under_way

    def may_loosen(self, turn: int) -> bool:
        """Return whether the loosening that began as that turn may still go on."""
        return self.turn == turn and self.under_way == LOOSEN and self._due is None

    def loosened(
        self, turn: int, done: list[str], withheld: list[str], failures: list[str], now: float
    ) -> None:
        """Loosening has ended: mount points whose barriers are off, reasons why others keep them, failures.

        When an alarm has come between, all that is being tightened already.
        """
        if not self.may_loosen(turn):
            return
        self.under_way = None
        if failures:
            self.alarm("; ".join((*failures, *withheld)), now)
        elif not done:
            self.state = TIGHT
            self.alarm("; ".join(withheld) or "there is no file system to loosen", now)
        elif withheld:
            self.reason = f"{self.reason}; {'; '.join(withheld)}"

    def tightened(self, turn: int, failures: list[str], now: float) -> None:
        """Tightening has ended, with all that was not done."""
        if self.turn != turn:
            return
        self.under_way = None
        self._alarmed, self._well_since = now, None
        if failures:
            self.state, self.reason = FAILED, "; ".join(failures)
            self._retry_at, self._retry_after = (
                now + self._retry_after,
                min(2 * self._retry_after, _RETRY_MOST),
            )
            return
        self._retry_after = _RETRY
        self.state, self.reason = TIGHT, self._why

    def left(self, now: float) -> int | None:
        """Return the whole seconds that are still to wait, None where it does not wait."""
        if self.state != WAITING or self._well_since is None or math.isinf(self._quiet):
            return None
        return max(0, math.ceil(self._quiet - (now - self._well_since)))
