# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running guard: its loop, turn by turn, with clocks and looks made up; threads and fifo are real."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE, STATE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import service as services
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import state
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.health import Clock, Eyes, Snapshot
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.ipc import Fifo
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.lease import Lease, Leased
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.service import Service, tighten

from ...fakes.small_host import SmallHost

PG, MA = "/srv/pgdata", "/srv/maria"
UUID = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"
LEASED = Lease(
    mounts=(Leased(PG, UUID), Leased(MA, UUID)),
    issued="2026-01-01",
    expires="2026-12-31",
    quiet=30,
    needed={"durability": 90.0, "clean_stop": 240.0},
    test_ups=False,
    units=(),
)
#: No process of this machine has this number, the kernel's limit is one less: the guard asks the kernel to tell of its end.
UPSMON = (1 << 22) + 1
FSYNC = ("change", "sync", "--file-system", PG)


class FakeClock(Clock):
    """Goes when it is told to."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept = 0.0
        self.of_day = 1780000000.0

    def steady(self) -> float:
        return self.time

    def awake(self) -> float:
        return self.time + self.slept

    def wall(self) -> float:
        return self.of_day + self.time


class FakeEyes(Eyes):
    """Sees what a test wants seen."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lease: Lease | None = LEASED
        self.problems: tuple[str, ...] = ()
        self.processes: dict[int, int] = {UPSMON: 7}
        self.replaced = ""
        self.looks = 0
        self.wait: Callable[[], None] = lambda: None

    def see(self, is_watched: bool) -> Snapshot:
        began = self.clock.steady()
        self.looks += 1
        self.wait()
        processes = None if is_watched else dict(self.processes)
        return Snapshot(began, self.lease, self.problems, processes, self.replaced)


class Guard:
    """A guard on a small host, and what turns it."""

    def __init__(self, directory: Path) -> None:
        self.host = SmallHost()
        self.clock = FakeClock()
        self.eyes = FakeEyes(self.clock)
        self.host.files["/proc/uptime"] = lambda: f"{self.clock.awake():.2f} 1.00\n"
        for pid, began in ((os.getpid(), 5), (UPSMON, 7)):
            self.host.files[f"/proc/{pid}/stat"] = f"{pid} (x) S 1 {'0 ' * 17}{began} 0\n"
        self.host.files[LEASE] = LEASED.render()
        self.fifo = directory / "notify"
        self.service = Service(self.host, self.clock, self.eyes, Fifo(str(self.fifo)))
        self.service.begin()

    @property
    def state(self) -> str:
        return self.service.machine.state

    @property
    def reason(self) -> str:
        return self.service.machine.reason

    def barriers(self) -> list[str]:
        return [self.host.mounts[target].barrier for target in (PG, MA)]

    def turn(self, until: Callable[[], bool]) -> None:
        """Turn until something is so, with the clock standing."""
        deadline = time.monotonic() + 10
        while not until():
            assert time.monotonic() < deadline, (self.state, self.reason)
            self.service.turn()

    def look(self) -> None:
        """Let the time of one look pass, and all that comes of it happen."""
        before = self.eyes.looks
        self.clock.time += services.POLL + 0.1
        self.turn(lambda: self.eyes.looks > before and self.service._snapshot_since is None)
        self.turn(lambda: self.service.machine.under_way is None and self.service.machine._due is None)

    def loosen(self) -> None:
        """Let all be well until barriers are off."""
        for _look in range(12):
            self.look()
        assert (self.state, self.barriers()) == ("loose", ["off", "off"])
        self.host.disk("sda").dirty = True
        self.host.mutations.clear()

    def expect_tight(self, reason: str) -> None:
        self.turn(lambda: self.state in ("tight", "waiting") and self.service.machine.under_way is None)
        assert reason in self.reason
        assert self.barriers() == ["on", "on"]
        assert FSYNC in self.host.mutations
        assert self.host.disk("sda").dirty is False

    def facts(self) -> dict[str, object]:
        return state.read(self.host)


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    monkeypatch.setattr(services, "_TURN", 0.005)
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    found = Guard(tmp_path)
    yield found
    found.service.fifo.close()


def test_it_begins_tight_and_flushes_what_an_earlier_one_may_have_left(guard: Guard) -> None:
    guard.host.mounts[PG].barrier = "off"
    guard.host.disk("sda").dirty = True
    guard.expect_tight("has just started")


def test_it_counts_as_started_only_when_its_state_can_be_read(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had it started reads the state next, and takes what it says there for its word."""
    read: list[object] = []

    def hear(words: str) -> None:
        if words == "READY=1":
            read.append(guard.facts()["state"])

    monkeypatch.setattr(services, "tell_manager", hear)
    guard.turn(lambda: guard.service.machine.under_way is None and guard.state == "tight")
    guard.service.turn()
    assert read == ["tight"]


def test_it_loosens_after_the_quiet_time_alone(guard: Guard) -> None:
    guard.look()
    for _look in range(9):
        guard.look()
        assert (guard.state, guard.barriers()) == ("waiting", ["on", "on"])
    left = guard.service.machine.left(guard.clock.time)
    assert left is not None
    assert 0 < left < 7
    guard.loosen()
    facts = guard.facts()
    assert (facts["state"], facts["reason"]) == ("loose", "every check has passed for long enough")
    assert facts["mounts"] == [{"target": PG, "barrier": "off"}, {"target": MA, "barrier": "off"}]
    said = state.last(guard.host)
    assert said is not None
    assert said.kept[PG] == state.Below("8:1", ("sda",))


@pytest.mark.parametrize("is_loop_late", [False, True])
def test_what_lies_below_is_written_down_before_a_barrier_goes(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, is_loop_late: bool
) -> None:
    seen = []
    if is_loop_late:
        monkeypatch.setattr(guard.service, "_save_if_due", lambda _now: None)

    def note() -> None:
        last = guard.host.mutations[-1]
        if last[0] == "options" and last[2] == "barrier=0":
            text = guard.host.read(STATE)
            seen.append((json.loads(text)["state"], json.loads(text)["kept"][PG]["disks"]))

    guard.host.after_mutation = note
    for _look in range(12):
        guard.look()
    assert seen == [("loose", ["sda"])] * 2


def test_a_state_that_cannot_be_written_keeps_barriers_on(guard: Guard) -> None:
    guard.look()
    write = guard.host._write

    def refuse(path: str, text: str) -> None:
        if path == STATE:
            raise ChangeFailed(f"{path}: No space left on device")
        write(path, text)

    guard.host._write = refuse  # type: ignore[method-assign]
    for _look in range(15):
        guard.look()
    assert guard.barriers() == ["on", "on"]
    assert "No space left" in guard.reason


@pytest.mark.parametrize(
    "word", ["ONBATT", "LOWBATT", "FSD", "COMMBAD", "NOCOMM", "REPLBATT", "ONLINE", "ONBATTERY"]
)
def test_each_word_of_the_monitor_tightens_at_once(guard: Guard, word: str) -> None:
    guard.loosen()
    with guard.fifo.open("w") as fifo:
        fifo.write(f"{word}\n")
    looks = guard.eyes.looks
    guard.expect_tight(f"the monitor says {word}")
    assert guard.eyes.looks == looks
    # And it does not loosen before all has been well for the quiet time again.
    for _look in range(9):
        guard.look()
        assert guard.barriers() == ["on", "on"]
    guard.look()
    guard.loosen()


def test_an_unreadable_word_is_a_word_too(guard: Guard) -> None:
    guard.loosen()
    with guard.fifo.open("wb") as fifo:
        fifo.write(b"\xff\x00 $(reboot)\n")
    guard.expect_tight("an unreadable word")


def test_barriers_are_the_first_thing_that_happens(guard: Guard) -> None:
    guard.loosen()
    with guard.fifo.open("w") as fifo:
        fifo.write("ONBATT\n")
    guard.expect_tight("ONBATT")
    acts = [act for act in guard.host.mutations if act[0] in ("change", "options")]
    first = acts.index(("change", "sync", "/dev/sda"))
    assert acts[0][0] == "options"
    assert ("options", PG, "barrier=1") in acts[:first]
    assert acts.index(FSYNC) > first


def test_a_condition_that_is_not_met_tightens(guard: Guard) -> None:
    guard.loosen()
    guard.eyes.problems = ("status_online: unmet: OB DISCHRG",)
    guard.look()
    guard.expect_tight("status_online: unmet: OB DISCHRG")
    for _look in range(20):
        guard.look()
    assert (guard.state, guard.barriers()) == ("tight", ["on", "on"])


def test_a_look_that_gives_no_answer_tightens(guard: Guard) -> None:
    guard.loosen()
    answer: list[bool] = []

    def hang() -> None:
        while not answer:
            time.sleep(0.005)

    guard.eyes.wait = hang
    guard.clock.time += services.POLL + 0.1
    guard.turn(lambda: guard.service._snapshot_since is not None)
    for _step in range(4):
        guard.clock.time += 3
        guard.service.turn()
    guard.expect_tight("no answer about the power")
    answer.append(True)
    guard.turn(lambda: guard.service._snapshot_since is None)
    assert guard.state == "tight"


def test_the_death_of_the_monitor_tightens_without_waiting_for_a_look(guard: Guard) -> None:
    guard.loosen()
    looks = guard.eyes.looks
    del guard.host.files[f"/proc/{UPSMON}/stat"]
    guard.service.turn()
    guard.expect_tight(f"the monitor's process {UPSMON} ended")
    assert guard.eyes.looks == looks
    guard.eyes.processes = {}
    for _look in range(20):
        guard.look()
    assert guard.barriers() == ["on", "on"]


def test_a_monitor_that_was_started_anew_is_another(guard: Guard) -> None:
    guard.loosen()
    guard.host.files[f"/proc/{UPSMON}/stat"] = f"{UPSMON} (x) S 1 {'0 ' * 17}8 0\n"
    guard.service.turn()
    guard.expect_tight("ended")


def test_another_monitor_process_restarts_the_quiet_time(guard: Guard) -> None:
    for _look in range(8):
        guard.look()
    left = guard.service.machine.left(guard.clock.time)
    guard.host.files[f"/proc/{UPSMON + 1}/stat"] = f"{UPSMON + 1} (x) S 1 {'0 ' * 17}9 0\n"
    guard.eyes.processes = {UPSMON: 7, UPSMON + 1: 9}
    guard.look()
    assert (guard.state, guard.reason) == ("tight", "the monitor's processes are others than before")
    guard.look()
    assert left is not None
    assert (guard.service.machine.left(guard.clock.time) or 0) > left + 10


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda clock: setattr(clock, "slept", 60.0), "the host was asleep"),
        (lambda clock: setattr(clock, "of_day", clock.of_day - 3600), "the clock was set back by 3600 s"),
        (lambda clock: setattr(clock, "time", clock.time + 30), "the guard did not run for 30 s"),
    ],
)
def test_what_the_clocks_say(guard: Guard, change: Callable[[FakeClock], None], reason: str) -> None:
    guard.loosen()
    change(guard.clock)
    guard.service.turn()
    guard.expect_tight(reason)


def test_a_clock_that_is_put_right_by_a_moment_alarms_nobody(guard: Guard) -> None:
    guard.loosen()
    guard.clock.of_day -= 1.5
    guard.look()
    assert guard.state == "loose"


@pytest.mark.parametrize("lease", [None, LEASED._replace(expires="2026-06-30"), LEASED._replace(quiet=31)])
def test_another_lease_or_none_tightens(guard: Guard, lease: Lease | None) -> None:
    guard.loosen()
    guard.eyes.lease = lease
    guard.look()
    guard.expect_tight("the lease has changed")


def test_what_is_leased_no_more_is_tightened_and_then_left_alone(guard: Guard) -> None:
    guard.loosen()
    guard.eyes.lease = LEASED._replace(mounts=(Leased(PG, UUID),))
    guard.look()
    guard.expect_tight("the lease has changed")
    assert set(guard.service.keepers) == {PG}
    for _look in range(13):
        guard.look()
    assert guard.barriers() == ["off", "on"]


def test_a_mount_point_has_one_keeper_whatever_its_lease_says(guard: Guard) -> None:
    """Two would not wait for each other: one could take away what the other has just brought back."""
    guard.loosen()
    before = guard.service.keepers[PG]
    other = Leased(PG, "ffffffff-55f3-4c1e-9a52-3f4c0a8e7d10")
    guard.eyes.lease = LEASED._replace(mounts=(other, LEASED.mounts[1]))
    guard.look()
    guard.expect_tight("the lease has changed")
    assert guard.service.keepers[PG] is before
    for _look in range(13):
        guard.look()
    assert guard.barriers() == ["on", "off"]


def test_why_it_stays_tight_is_told_once(guard: Guard, capfd: pytest.CaptureFixture[str]) -> None:
    for runtime in range(5):
        guard.eyes.problems = (f"runtime_clean_stop: unmet: 9{runtime} s",)
        guard.look()
    assert capfd.readouterr().err.count("<4>runtime_clean_stop: unmet") == 1


def test_only_what_is_still_the_one_named_is_loosened(guard: Guard) -> None:
    guard.host.mounts[MA].uuid = "ffffffff-55f3-4c1e-9a52-3f4c0a8e7d10"
    for _look in range(13):
        guard.look()
    assert (guard.state, guard.barriers()) == ("loose", ["off", "on"])
    assert f"{MA}: observed the file system ffffffff" in guard.reason


def test_barriers_that_somebody_else_changed_are_noticed(guard: Guard) -> None:
    guard.loosen()
    guard.host.mounts[MA].barrier = "on"
    guard.look()
    guard.expect_tight(f"{MA}: barriers on: not as the guard left them")
    guard.host.mutations.clear()
    guard.host.mounts[PG].barrier = "off"
    guard.host.disk("sda").dirty = True
    guard.look()
    guard.expect_tight(f"{PG}: barriers off, and not by the guard")


def test_a_program_that_was_replaced_tightens_and_starts_anew(guard: Guard) -> None:
    guard.loosen()
    guard.eyes.replaced = "/usr/bin/python3"
    before = guard.eyes.looks
    guard.clock.time += services.POLL + 0.1
    guard.turn(lambda: guard.eyes.looks > before and bool(guard.service.stopping))
    assert guard.service.end() == 0
    assert guard.facts()["reason"] == "/usr/bin/python3 was replaced: the guard starts again"
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False


def _no_flush(guard: Guard) -> None:
    vars(guard.host.disk("sda")).update(cache_mode="write through", cache="disabled")


def _pulled(guard: Guard) -> None:
    del guard.host.links["/sys/block/sda"]


def _read_only(guard: Guard) -> None:
    vars(guard.host.mounts[PG]).update(sb_flag="ro")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_no_flush, "sends sda no flush any more"),
        (_pulled, "/sys/block/sda/queue/write_cache"),
        (_read_only, "it has become read-only"),
    ],
)
def test_what_changes_below_a_file_system_without_barriers(
    guard: Guard, change: Callable[[Guard], None], reason: str
) -> None:
    guard.loosen()
    change(guard)
    guard.look()
    assert guard.barriers() == ["on", "on"]
    said = guard.reason if guard.state == "tight" else guard.service.machine._why
    assert reason in said


def test_a_file_system_that_goes_while_it_has_no_barriers_is_flushed(guard: Guard) -> None:
    guard.loosen()
    del guard.host.mounts[PG], guard.host.files["/proc/fs/ext4/sda1/options"]
    guard.look()
    assert guard.state == "tight"
    assert guard.host.disk("sda").dirty is False


def test_a_remount_that_is_refused_brings_everything_back(guard: Guard) -> None:
    change = guard.host.on_options

    def refuse(target: str, options: Sequence[str]) -> None:
        if (target, *options) == (MA, "barrier=0"):
            raise ChangeFailed("mount: refused")
        change(target, options)

    guard.host.on_options = refuse  # type: ignore[method-assign]
    reasons = set()
    for _look in range(13):
        guard.look()
        reasons.add(guard.reason)
        assert guard.barriers() == ["on", "on"]
    assert "mount: refused" in reasons


def test_a_disk_that_hangs_holds_up_neither_the_others_nor_the_loop(guard: Guard) -> None:
    guard.loosen()
    change, let_go = guard.host.on_change, []

    def hang(argv: list[str]) -> None:
        while argv[-1] in (MA, "/dev/vdb") and not let_go:
            time.sleep(0.005)
        change(argv)

    guard.host.on_change = hang  # type: ignore[method-assign]
    with guard.fifo.open("w") as fifo:
        fifo.write("ONBATT\n")
    guard.turn(lambda: guard.host.mounts[PG].barrier == "on" and not guard.host.disk("sda").dirty)
    assert guard.state == "failed"
    assert guard.facts()["state"] == "failed"
    let_go.append(True)
    guard.expect_tight("ONBATT")


def test_what_was_not_flushed_is_tried_again_and_never_called_tight(guard: Guard) -> None:
    guard.loosen()
    guard.host.disk("sda").counts = False
    with guard.fifo.open("w") as fifo:
        fifo.write("ONBATT\n")
    guard.turn(lambda: guard.service.machine.under_way is None and guard.state == "failed")
    guard.turn(lambda: "expected one" in guard.reason)
    assert guard.facts()["state"] == "failed"
    guard.host.disk("sda").counts = True
    guard.clock.time += 9.0
    guard.service.turn()
    assert guard.state == "failed"
    guard.clock.time += 1.1
    guard.expect_tight("ONBATT")


def test_stopping_tightens_and_says_so(guard: Guard) -> None:
    guard.loosen()
    guard.service.stopping = "stopped by SIGTERM"
    assert guard.service.end() == 0
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False
    facts = guard.facts()
    assert (facts["state"], facts["reason"]) == ("stopped", "stopped by SIGTERM")
    # Whoever comes after it finds nothing to do.
    guard.host.mutations.clear()
    assert tighten(guard.host, guard.clock) == 0
    assert guard.host.mutations == []


def test_stopping_when_tight_does_not_keep_a_shutdown_waiting(guard: Guard) -> None:
    guard.look()
    guard.host.mutations.clear()
    guard.service.stopping = "stopped by SIGTERM"
    assert guard.service.end() == 0
    assert [act[0] for act in guard.host.mutations] == ["file"]


def test_stopping_restores_barriers_that_another_program_removed(guard: Guard) -> None:
    guard.look()
    guard.host.mounts[PG].barrier = "off"
    guard.host.disk("sda").dirty = True
    guard.service.stopping = "stopped by SIGTERM"
    assert guard.service.end() == 0
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False


def test_stopping_does_not_wait_for_ever(guard: Guard) -> None:
    guard.loosen()
    guard.host.disk("sda").counts = False
    guard.service.stopping = "stopped by SIGTERM"
    turn = guard.service.turn

    def hurry() -> None:
        turn()
        guard.clock.time += 1.0

    guard.service.turn = hurry  # type: ignore[method-assign]
    assert guard.service.end() == 1
    assert guard.facts()["state"] == "failed"


def test_whatever_goes_wrong_in_it_tightens(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.loosen()
    monkeypatch.setattr(services.signal, "signal", lambda *_words: None)
    monkeypatch.setattr(services.signal, "set_wakeup_fd", lambda *_words, **_more: None)
    monkeypatch.setattr(guard.service, "_start_snapshot", lambda _now: 1 / 0)
    monkeypatch.setattr(guard.service, "begin", lambda: None)
    assert guard.service.run() == 1
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False


def test_after_a_kill_all_is_tightened_by_what_was_written_down(guard: Guard) -> None:
    guard.loosen()
    del guard.host.files[f"/proc/{os.getpid()}/stat"]
    assert guard.facts()["state"] == "failed"
    guard.host.files[f"/proc/{os.getpid()}/stat"] = f"{os.getpid()} (x) S 1 {'0 ' * 17}9 0\n"
    assert tighten(guard.host, guard.clock) == 0
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False
    assert guard.facts()["state"] == "stopped"


def test_after_a_kill_a_remounted_file_system_is_still_flushed(guard: Guard) -> None:
    """A remount flushes no cache."""
    guard.loosen()
    for target in (PG, MA):
        guard.host.mounts[target].barrier = "on"
    assert tighten(guard.host, guard.clock) == 0
    assert FSYNC in guard.host.mutations
    assert guard.host.disk("sda").dirty is False


def test_the_state_of_another_boot_is_ignored(guard: Guard) -> None:
    """Disks can have other names since, and its flushes do not cover commits of this boot."""
    guard.loosen()
    guard.service.stopping = "stopped by SIGTERM"
    assert guard.service.end() == 0
    said = json.loads(guard.host.read(STATE))
    said["boot"] = "99999999-2222-3333-4444-555555555555"
    guard.host.files[STATE] = json.dumps(said)
    kept = services.inherited(guard.host, lambda _line: None)
    assert {target: keeper.below for target, keeper in kept.items()} == dict.fromkeys((PG, MA), state.Below())
    guard.host.mutations.clear()
    assert tighten(guard.host, guard.clock) == 0
    assert FSYNC in guard.host.mutations


@pytest.mark.parametrize("damage", [LEASE, STATE])
def test_after_a_kill_one_damaged_file_does_not_leave_barriers_off(guard: Guard, damage: str) -> None:
    guard.loosen()
    guard.host.files[damage] = "{"
    assert tighten(guard.host, guard.clock) == 0
    assert guard.barriers() == ["on", "on"]
    assert guard.host.disk("sda").dirty is False


def test_a_fifo_that_somebody_took_away_is_made_again(guard: Guard) -> None:
    guard.loosen()
    guard.fifo.unlink()
    guard.look()
    guard.expect_tight("its fifo was removed")
    assert guard.fifo.is_fifo()
