# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One disk behind whatever bus: its cache switch, its counters, and one request at a time."""

from __future__ import annotations

import enum
import errno
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from lab.vhost.loop import Loop, Timer
from lab.vhost.store import Kind, Store, Timed


class Outcome(enum.Enum):
    """How a request ended. One that was aborted had no effect."""

    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"


class Effect(enum.Enum):
    """A fault of a disk: what it does with requests of one kind, in place of carrying them out.

    An error is answered at once. A hang has no answer until the fault is taken away; other requests go on. A lie is answered
    as if it had been done. A disk that leaves is unplugged when the first of these requests comes.
    """

    ERROR = "error"
    HANG = "hang"
    LIE = "lie"
    LEAVE = "leave"


#: The operation whose fault a request meets. Zeros are written.
OPERATIONS = {
    Kind.FLUSH: "flush",
    Kind.WRITE: "write",
    Kind.ZERO: "write",
    Kind.SELECT: "mode_select",
}


class Request:
    """What a disk is to do, and whom to tell how it ended."""

    __slots__ = ("finish", "fua", "kind", "length", "offset", "turn_on", "views")

    def __init__(
        self,
        kind: Kind,
        offset: int,
        length: int,
        views: list[memoryview],
        finish: Callable[[Outcome], None],
        fua: bool = False,
        turn_on: bool = False,
    ) -> None:
        """`fua` is what the guest asked for; the disk adds its own when its cache is off.

        `turn_on`: the state of the cache that a mode select sets.
        """
        self.kind = kind
        self.offset = offset
        self.length = length
        self.views = views
        self.finish = finish
        self.fua = fua
        self.turn_on = turn_on


@dataclass
class Counters:
    """What was carried out. `fua_writes` had the FUA bit, `through_writes` came while the cache was off."""

    reads: int = 0
    writes: int = 0
    fua_writes: int = 0
    through_writes: int = 0
    flushes: int = 0
    discards: int = 0
    failed: int = 0


class Disk:
    """Requests are carried out in their order, one after the other.

    A request of a timed store takes effect at its end; until then the disk takes nothing else, and other disks go on.
    """

    def __init__(self, serial: str, store: Store, loop: Loop, cache: bool = True) -> None:
        """`cache` is how the write cache comes up at each power-on."""
        self.serial = serial
        self.store = store
        self.size = store.size
        self.cache = cache
        self.counters = Counters()
        self._cache_at_start = cache
        self._loop = loop
        self._timed = store if isinstance(store, Timed) else None
        self._waiting: deque[Request] = deque()
        self._current: Request | None = None
        self._timer: Timer | None = None
        self._effects: dict[str, Effect] = {}
        self._held: list[Request] = []
        #: Unplugs this disk: the server's.
        self.leave: Callable[[], None] = lambda: None

    def set_fault(self, operation: str, effect: Effect | None) -> None:
        """Give the disk a fault, which outlasts its power-on, or take it away: what hung is carried out then."""
        self._effects.pop(operation, None)
        if effect is not None:
            self._effects[operation] = effect
        held, self._held = self._held, []
        for request in held:
            self.submit(request)

    def effect_on(self, kind: Kind) -> Effect | None:
        """Return the fault that a request of this kind meets."""
        return self._effects.get(OPERATIONS.get(kind, ""))

    def power_on(self) -> None:
        """Begin again: a machine that ended has no requests, and settings are those of the start."""
        self.abandon()
        self.cache = self._cache_at_start

    def abandon(self) -> None:
        """Forget what is not done yet: nobody waits for it."""
        self._waiting.clear()
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._current = None

    def abort(self) -> None:
        """Fail what is not done yet."""
        current = [self._current] if self._current is not None else []
        pending = [*self._held, *current, *self._waiting]
        self.abandon()
        for request in pending:
            request.finish(Outcome.ABORTED)

    def submit(self, request: Request) -> None:
        """Carry a request out, now or after those before it; one that a fault holds has no place among them."""
        effect = self.effect_on(request.kind)
        if effect in (Effect.HANG, Effect.LEAVE):
            self._held.append(request)
            if effect is Effect.LEAVE:
                self.leave()
        elif self._current is not None or self._waiting:
            self._waiting.append(request)
        else:
            self._begin(request)

    def stats(self) -> dict[str, int | str]:
        """Return the counters and the state of the cache."""
        return {**asdict(self.counters), "cache": "on" if self.cache else "off"}

    def close(self) -> None:
        """Let go of the store."""
        self.abandon()
        self.store.close()

    def _begin(self, request: Request) -> None:
        if self._timed is not None:
            fua = request.fua or not self.cache
            empties = request.kind is Kind.SELECT and not request.turn_on
            kind = Kind.FLUSH if empties else request.kind
            seconds = self._timed.seconds(kind, request.offset, request.length, fua)
            if seconds > 0:
                self._current = request
                self._timer = self._loop.after(seconds, partial(self._end, request))
                return
        request.finish(self._carry_out(request))

    def _end(self, request: Request) -> None:
        self._current = self._timer = None
        request.finish(self._carry_out(request))
        while self._waiting and self._current is None:
            self._begin(self._waiting.popleft())

    def _carry_out(self, request: Request) -> Outcome:
        counters, kind = self.counters, request.kind
        effect = self.effect_on(kind)
        if effect is Effect.LIE:
            return Outcome.DONE
        try:
            if effect is Effect.ERROR:
                raise OSError(errno.EIO, "a fault that was set")
            if kind is Kind.WRITE:
                counters.writes += 1
                counters.fua_writes += request.fua
                counters.through_writes += not self.cache
                self.store.write(request.offset, request.views, request.fua or not self.cache)
            elif kind is Kind.READ:
                counters.reads += 1
                self.store.read(request.offset, request.views)
            elif kind is Kind.FLUSH or (kind is Kind.SELECT and not request.turn_on):
                counters.flushes += 1
                self.store.flush()
            elif kind is Kind.ZERO:
                counters.discards += 1
                self.store.zero(request.offset, request.length, request.fua or not self.cache)
            elif kind is Kind.DISCARD:
                counters.discards += 1
                self.store.discard(request.offset, request.length)
            if kind is Kind.SELECT:
                self.cache = request.turn_on
        except OSError as error:
            counters.failed += 1
            print(f"disk {self.serial}: {kind.value} at {request.offset} failed: {error}", file=sys.stderr)
            return Outcome.FAILED
        return Outcome.DONE
