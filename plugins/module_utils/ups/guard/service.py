# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard as a service: one loop that receives events, decides and starts tasks, and never waits for a disk."""

from __future__ import annotations

import os
import queue
import re
import selectors
import signal
import threading
from collections.abc import Callable
from typing import Any

from ...host.our_paths import STATE
from ...host.seam import ChangeFailed, Host, Unobservable
from . import lease as leases
from . import monitors, state
from .decisions import LOOSEN, TIGHTEN, Machine
from .health import Clock, Eyes, Snapshot
from .ipc import Fifo, say, tell_manager
from .lease import Lease, Leased
from .mount_keeper import Keeper
from .parallel import together
from .state import FAILED, LOOSE, STOPPED, TIGHT, WAITING, Below, Record

#: Seconds from the end of one look to the next, and that a look may take.
POLL = 3.0
SNAPSHOT_LIMIT = 10.0
#: Seconds between two turns of the loop at most; so many without one, and something was not heard.
_TURN = 1.0
_DEAF = 10.0
#: Seconds that the clock may be set back, as a time service does, without counting as set back.
_SLACK = 60.0
#: Seconds that all mounts are given to be tightened, to be examined before, and to be loosened.
_TIGHTEN_LIMIT = 1000.0
_PREPARE_LIMIT = 30.0
_LOOSEN_LIMIT = 30.0
#: Seconds after which the guard counts as started, whatever a disk does meanwhile.
_START_LIMIT = 30.0
#: Seconds that stopping waits for disks. The unit's TimeoutStopSec is longer.
STOP_LIMIT = 120.0
#: Seconds between two signs of life in the state file.
_BEAT = 5.0
_WARNING = 4
_FIGURES = re.compile(r"\d+")


class Service:
    """The running guard."""

    def __init__(
        self, host: Host, clock: Clock | None = None, eyes: Eyes | None = None, fifo: Fifo | None = None
    ) -> None:
        self.host = host
        self.clock = clock or Clock()
        self.eyes = eyes or Eyes(host, self.clock)
        self.fifo = fifo or Fifo()
        self.machine = Machine(self.clock.steady())
        self.lease: Lease | None = None
        self.keepers: dict[str, Keeper] = {}
        self.loose: set[str] = set()
        self.stopping = ""
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watch = monitors.Watch(host, {})
        self._snapshot_since: float | None = None
        self._next_snapshot = 0.0
        self._last_turn = self.clock.steady()
        self._asleep = self.clock.awake() - self.clock.steady()
        self._offset = self.clock.wall() - self.clock.awake()
        self._me = (os.getpid(), state.identity(host, os.getpid()))
        self._saving = threading.Lock()
        self._saved: tuple[str, str] = ("", "")
        self._since = self.clock.now()
        self._beat = 0.0
        self._is_ready = False
        self._has_tightened = False
        self._last_alarm = ""
        self._began = self.clock.steady()

    def run(self) -> int:
        """Guard until a signal stops it; return the exit code, 0 when everything is tight and flushed."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop_by)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        try:
            self.begin()
            while not self.stopping:
                self.turn()
        except Exception as error:
            # Nothing that goes wrong here is a reason to leave barriers off.
            say(f"the guard failed: {type(error).__name__}: {error}", _WARNING)
            self.stopping = f"it failed: {error}"
            self.end()
            return 1
        return self.end()

    def begin(self) -> None:
        """Start to watch the mounts, before anything else is read. Raises OSError."""
        for target, keeper in inherited(self.host, say).items():
            self.keepers[target] = keeper
        self.fifo.make(0)

    def turn(self) -> None:
        """Read the messages, decide, and start the action."""
        heard = self._hear(_TURN)
        now = self.clock.steady()
        for why in (*heard, *self._odd_times(now)):
            self._alarm(why, now)
        while not self._done.empty():
            self._done.get()()
        self._act(now)
        if not self.stopping:
            self._start_snapshot(now)
        self._save_if_due(now)
        if self._has_tightened or now - self._began > _START_LIMIT:
            self._ready()  # Only now: whoever waited for it reads the state.
        tell_manager("WATCHDOG=1")

    def end(self) -> int:
        """Tighten and flush whatever is unknown to be tight, say so, and return the exit code."""
        tell_manager("STOPPING=1", f"STATUS={self.stopping}")
        now = self.clock.steady()
        deadline = now + STOP_LIMIT
        if self.machine.under_way != TIGHTEN and not self._is_tight():
            self.machine.alarm(self.stopping, now, are_off=True)
        while not self._is_tight() and self.clock.steady() < deadline:
            try:
                self.turn()
            except Exception as error:
                say(f"while stopping: {type(error).__name__}: {error}", _WARNING)
                break
        word = STOPPED if self._is_tight() else FAILED
        reason = self.stopping if word == STOPPED else f"{self.stopping}; {self.machine.reason}"
        say(f"{word}: {reason}", 5 if word == STOPPED else _WARNING)
        try:
            self._save(word, reason)
        except (ChangeFailed, Unobservable) as error:
            say(str(error), _WARNING)
        return 0 if word == STOPPED else 1

    def _is_tight(self) -> bool:
        """Return whether everything is tight, flushed, and so by the kernel's own word."""
        if self.machine.state not in (TIGHT, WAITING) or self.machine.under_way is not None:
            return False
        try:
            return all(keeper.barrier() in ("on", "absent") for keeper in self.keepers.values())
        except (ChangeFailed, Unobservable):
            return False

    def _stop_by(self, number: int, _frame: Any) -> None:
        self.stopping = self.stopping or f"stopped by {signal.Signals(number).name}"

    def _alarm(self, why: str, now: float, are_off: bool = False) -> None:
        # A cause that differs only in its figures is logged once.
        gist = _FIGURES.sub("", why)
        if self.machine.state in (LOOSE, WAITING) or are_off or gist != self._last_alarm:
            say(why, _WARNING)
        self._last_alarm = gist
        self.machine.alarm(why, now, are_off)

    def _hear(self, limit: float) -> list[str]:
        """Wait for a word, a death, or the end of what is under way; return what is alarming of it."""
        found = []
        with selectors.DefaultSelector() as selector:
            for descriptor in (self.fifo.descriptor, self._wake_reader, *self._watch.descriptors):
                if descriptor >= 0:
                    selector.register(descriptor, selectors.EVENT_READ)
            ready = {key.fd for key, _events in selector.select(limit)}
        if self.fifo.descriptor in ready:
            found += [f"the monitor says {word}" for word in self.fifo.words()]
        if self._wake_reader in ready:
            try:
                os.read(self._wake_reader, 4096)
            except BlockingIOError:
                pass
        gone = self._watch.ended()
        if gone or ready & set(self._watch.descriptors):
            found.append(f"the monitor's process {' and '.join(map(str, gone)) or 'was'} ended")
            self._rewatch({})
        return found

    def _odd_times(self, now: float) -> list[str]:
        """Return what of the clocks contradicts the snapshot."""
        found = []
        if now - self._last_turn > _DEAF:
            found.append(f"the guard did not run for {now - self._last_turn:.0f} s")
        self._last_turn = now
        asleep = self.clock.awake() - now
        if asleep > self._asleep + 2.0:
            found.append("the host was asleep")
        self._asleep = asleep
        offset = self.clock.wall() - self.clock.awake()
        if offset < self._offset - _SLACK:
            found.append(f"the clock was set back by {self._offset - offset:.0f} s")
        self._offset = offset
        if self._snapshot_since is not None and now - self._snapshot_since > SNAPSHOT_LIMIT:
            found.append(f"no answer about the power for {SNAPSHOT_LIMIT:.0f} s")
            self._snapshot_since = now  # logged at intervals, and never loosened meanwhile
        return found

    def _act(self, now: float) -> None:
        action = self.machine.due(now)
        turn = self.machine.turn
        if action == TIGHTEN:
            say(f"tightening: {self.machine.reason}", _WARNING if self._is_ready else 6)
            keepers = dict(self.keepers)
            self._spawn(lambda: self._tighten(turn, keepers))
        elif action == LOOSEN and self.lease:
            say(f"loosening: {self.machine.reason}")
            leased = {mount.target: self.keepers[mount.target] for mount in self.lease.mounts}
            self._spawn(lambda: self._loosen(turn, leased))

    def _spawn(self, act: Callable[[], Callable[[], None]]) -> None:
        """Do something in a separate thread, and what it returns in the loop."""

        def take() -> None:
            try:
                self._done.put(act())
            except BaseException as error:
                why = f"{type(error).__name__}: {error}"
                self._done.put(lambda: _fail(why))
            try:
                os.write(self._wake_writer, b"\n")
            except OSError:
                pass  # It is full: the loop is woken anyway.

        try:
            threading.Thread(target=take, daemon=True).start()
        except RuntimeError:
            take()  # No more threads are given out.

    def _tighten(self, turn: int, keepers: dict[str, Keeper]) -> Callable[[], None]:
        began = self.clock.steady()
        failures = together(keepers, lambda target: keepers[target].tighten(), _TIGHTEN_LIMIT)

        def end() -> None:
            now = self.clock.steady()
            for why in failures.values():
                say(why, 3)
            self.machine.tightened(turn, list(failures.values()), now)
            if not failures and self.machine.turn == turn:
                self.loose.clear()
                self._forget()
            say(f"{self.machine.state} after {now - began:.3f} s: {self.machine.reason}")
            self._has_tightened = True

        return end

    def _loosen(self, turn: int, keepers: dict[str, Keeper]) -> Callable[[], None]:
        withheld = together(keepers, lambda target: keepers[target].prepare(), _PREPARE_LIMIT)
        wanted = [target for target in keepers if target not in withheld]
        failures: dict[str, str] = {}
        try:
            # Before anything changes: who comes after us finds there what is below.
            self._save()
            failures = together(
                wanted, lambda t: keepers[t].loosen(lambda: self.machine.may_loosen(turn)), _LOOSEN_LIMIT
            )
        except (ChangeFailed, Unobservable) as error:
            failures = {STATE: str(error)}
        done = [target for target in wanted if not failures]

        def end() -> None:
            for why in (*withheld.values(), *failures.values()):
                say(why, _WARNING)
            if self.machine.may_loosen(turn):
                self.loose = set(done)
            self.machine.loosened(
                turn, done, list(withheld.values()), list(failures.values()), self.clock.steady()
            )

        return end

    def _start_snapshot(self, now: float) -> None:
        if self._snapshot_since is None and now >= self._next_snapshot:
            self._snapshot_since = now
            is_watched = self.machine.state == LOOSE and bool(self._watch.processes)
            self._spawn(lambda: self._see(is_watched))

    def _see(self, is_watched: bool) -> Callable[[], None]:
        snapshot = self.eyes.see(is_watched)
        return lambda: self._assess(snapshot)

    def _assess(self, snapshot: Snapshot) -> None:
        now = self.clock.steady()
        self._snapshot_since, self._next_snapshot = None, now + POLL
        if self.stopping:
            return
        if snapshot.replaced:
            # Tightened by what still runs; systemd starts what is there now.
            self.stopping = f"{snapshot.replaced} was replaced: the guard starts again"
            return
        self._allow(snapshot, now)
        if snapshot.processes is not None and snapshot.processes != self._watch.processes:
            if self._watch.processes:
                self._alarm("the monitor's processes are others than before", now)
            self._rewatch(snapshot.processes)
        if not self.fifo.is_there():
            self._alarm("no monitor can reach the guard: its fifo was removed", now)
            self.fifo.make(monitors.group(self.host, self._watch.processes))
        if snapshot.problems:
            self._alarm("; ".join(snapshot.problems), now)
        if self.machine.under_way is None:
            self._compare(now)
        if not snapshot.problems and self._watch.processes:
            self.machine.well(snapshot.began, now)

    def _allow(self, snapshot: Snapshot, now: float) -> None:
        """Take up another lease than before, or none."""
        if snapshot.lease == self.lease:
            return
        if self.lease is not None:
            self._alarm("the lease has changed", now)
        self.lease = snapshot.lease
        for mount in snapshot.lease.mounts if snapshot.lease else ():
            # Never two for one mount point: each has its turn with it.
            keeper = self.keepers.setdefault(mount.target, Keeper(self.host, mount, Below(), say))
            keeper.leased = mount
        self.machine.allow(snapshot.lease.quiet if snapshot.lease else float("inf"))

    def _forget(self) -> None:
        """Look no more after what is tight and leased no more."""
        named = {mount.target for mount in self.lease.mounts} if self.lease else set()
        if self.lease is not None:
            self.keepers = {target: keeper for target, keeper in self.keepers.items() if target in named}

    def _compare(self, now: float) -> None:
        """Hold the kernel's own word against what was done."""
        for target, keeper in self.keepers.items():
            if target in self.loose and self.machine.state == LOOSE:
                doubt = keeper.doubt()
                if doubt:
                    self._alarm(doubt, now)
                continue
            try:
                barrier = keeper.barrier()
            except (ChangeFailed, Unobservable) as error:
                barrier = str(error)
            if barrier not in ("on", "absent") and self.machine.state != FAILED:
                self._alarm(f"{target}: barriers {barrier}, and not by the guard", now, are_off=True)

    def _rewatch(self, processes: dict[int, int]) -> None:
        self._watch.close()
        self._watch = monitors.Watch(self.host, processes)
        if processes and self.fifo.descriptor >= 0:
            self.fifo.give(monitors.group(self.host, processes))

    def _ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            tell_manager("READY=1")

    def _save_if_due(self, now: float) -> None:
        if (self.machine.state, self.machine.reason) == self._saved and now - self._beat < _BEAT:
            return
        try:
            self._save()
        except (ChangeFailed, Unobservable) as error:
            # A guard whose state cannot be written is not trusted: tighten.
            self._alarm(str(error), now)

    def _save(self, word: str = "", reason: str = "") -> None:
        """Write the state down. Raises ChangeFailed or Unobservable."""
        with self._saving:
            now = self.clock.steady()
            current = (word or self.machine.state, reason or self.machine.reason)
            if current[0] != self._saved[0]:
                self._since = self.clock.now()
            below = {target: keeper.below for target, keeper in dict(self.keepers).items()}
            write(self.host, self._me, current[0], current[1], self._since, self.machine.left(now), below)
            self._saved, self._beat = current, now
        tell_manager(f"STATUS={current[0]}: {current[1]}")


def _fail(why: str) -> None:
    raise RuntimeError(why)


def inherited(host: Host, say: Callable[[str], None]) -> dict[str, Keeper]:
    """Return a keeper for each mount point that the lease names, or that an earlier guard looked after.

    `say` takes lines for the journal: what cannot be read adds nothing, and says so.
    """
    below: dict[str, Below] = {}
    leased: dict[str, Leased] = {}
    try:
        record = state.last(host)
        boot = host.read("/proc/sys/kernel/random/boot_id").strip()
        below = record.kept if record is not None and record.boot == boot else {}
    except Unobservable as error:
        say(str(error))
    try:
        allowed = leases.read(host)
        leased = {mount.target: mount for mount in allowed.mounts} if allowed else {}
    except Unobservable as error:
        say(str(error))
    return {
        target: Keeper(host, leased.get(target, Leased(target, "")), below.get(target, Below()), say)
        for target in dict.fromkeys((*below, *leased))
    }


def write(
    host: Host,
    me: tuple[int, tuple[str, int]],
    word: str,
    reason: str,
    since: str,
    quiet: int | None,
    below: dict[str, Below],
) -> None:
    """Write down what the guard says of itself. Raises ChangeFailed or Unobservable."""
    pid, (boot, start) = me
    record = Record(boot, pid, start, state.uptime(host), word, reason, since, quiet, below)
    host.write_file(STATE, record.render().encode("ascii"), 0o644)


def tighten(host: Host, clock: Clock | None = None) -> int:
    """Tighten and flush all that a guard may have left behind; return the exit code.

    Nothing is done if a guard has reported that it stopped with everything tight, and the kernel confirms it.
    """
    clock = clock or Clock()
    keepers = inherited(host, say)
    if _ended_well(host, keepers):
        return 0
    say("tightening: the guard has ended", _WARNING)
    began = clock.steady()
    failures = together(keepers, lambda target: keepers[target].tighten(), STOP_LIMIT)
    for why in failures.values():
        say(why, 3)
    word = FAILED if failures else STOPPED
    reason = "; ".join(failures.values()) or "the guard has ended; all was tightened after it"
    say(f"{word} after {clock.steady() - began:.3f} s: {reason}", 3 if failures else 5)
    try:
        me = (os.getpid(), state.identity(host, os.getpid()))
        below = {target: keeper.below for target, keeper in keepers.items()}
        write(host, me, word, reason, clock.now(), None, below)
    except (ChangeFailed, Unobservable) as error:
        say(str(error), _WARNING)
        return 1
    return 1 if failures else 0


def _ended_well(host: Host, keepers: dict[str, Keeper]) -> bool:
    try:
        record = state.last(host)
        boot = host.read("/proc/sys/kernel/random/boot_id").strip()
        if record is None or record.boot != boot or record.state != STOPPED:
            return False
        return all(keeper.barrier() in ("on", "absent") for keeper in keepers.values())
    except (ChangeFailed, Unobservable):
        return False
