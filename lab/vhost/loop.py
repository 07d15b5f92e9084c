# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One thread that waits for all: descriptors to read, and times to come."""

from __future__ import annotations

import heapq
import select
import time
from collections.abc import Callable


class Timer:
    """Something to do at a time, unless it is cancelled before."""

    __slots__ = ("act", "at", "number")

    def __init__(self, at: float, number: int, act: Callable[[], None]) -> None:
        """Equal times keep their order by number."""
        self.at = at
        self.number = number
        self.act: Callable[[], None] | None = act

    def __lt__(self, other: Timer) -> bool:
        """Order by time."""
        return (self.at, self.number) < (other.at, other.number)

    def cancel(self) -> None:
        """Do nothing then."""
        self.act = None


class Loop:
    """Calls what was registered, round by round, until it is told to end."""

    def __init__(self) -> None:
        """Begin with nothing to wait for."""
        self.at_end: list[Callable[[], None]] = []
        self._poll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._timers: list[Timer] = []
        self._soon: list[Callable[[], None]] = []
        self._count = 0
        self._goes_on = True

    def add(self, descriptor: int, read: Callable[[], None]) -> None:
        """Call `read` whenever there is something to read, or the other end is gone."""
        self._readers[descriptor] = read
        self._poll.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        """Wait for this one no longer; it must still be open."""
        del self._readers[descriptor]
        self._poll.unregister(descriptor)

    def after(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Call `act` once, after a time."""
        self._count += 1
        timer = Timer(time.monotonic() + seconds, self._count, act)
        heapq.heappush(self._timers, timer)
        return timer

    def soon(self, act: Callable[[], None]) -> None:
        """Call `act` in the next round, after all that waits now had its turn."""
        self._soon.append(act)

    def end(self) -> None:
        """Return from `run` after this round."""
        self._goes_on = False

    def run(self) -> None:
        """Serve until the end."""
        while self._goes_on:
            self.round()

    def round(self) -> None:
        """Wait once and do what is to be done. What piles up for the end of a round is done at its end."""
        for descriptor, _ in self._wait():
            reader = self._readers.get(descriptor)
            if reader is not None:
                reader()
        if self._timers:
            self._ring_timers()
        if self._soon:
            acts, self._soon = self._soon, []
            for act in acts:
                act()
        if self.at_end:
            for act in self.at_end:
                act()
            self.at_end.clear()

    def close(self) -> None:
        """Let go of the poll."""
        self._poll.close()

    def _wait(self) -> list[tuple[int, int]]:
        if self._soon:
            return self._poll.poll(0)
        if not self._timers:
            return self._poll.poll()
        # epoll counts whole milliseconds, and rounds up: too coarse for the times of a disk
        rest = max(0.0, self._timers[0].at - time.monotonic())
        select.select([self._poll], (), (), rest)
        return self._poll.poll(0)

    def _ring_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0].at <= now:
            act = heapq.heappop(self._timers).act
            if act is not None:
                act()
