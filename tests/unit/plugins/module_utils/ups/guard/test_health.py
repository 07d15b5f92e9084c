# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard looks at: whatever cannot be seen is a problem."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import conditions
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import health as module
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import monitors
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.health import Clock, Eyes

from ...fakes.small_host import SmallHost

#: The process that keeps root's rights, which NUT 2.7's service does not call its main process; and that one.
PARENT, UPSMON = 4241, 4242
GROUP = "0::/system.slice/nut-monitor.service\n"
TERMS = {
    "schema": 1,
    "mounts": [{"target": "/srv/pgdata", "uuid": "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"}],
    "issued": "2026-01-01",
    "expires": "2026-12-31",
    "quiet": 300,
    "needed": {"durability": 90, "clean_stop": 240},
    "test_ups": True,
    "units": [],
}
WELL = [conditions.met(name, "host", "seen") for name in conditions.NAMES]


class Noon(Clock):
    """One day of the lease."""

    def today(self) -> str:
        return "2026-06-01"


class Power(NamedTuple):
    """What is asked of the power besides its conditions."""

    unit: str
    pid: int


POWER = Power("nut-monitor.service", UPSMON)


def start(host: SmallHost, pid: int, began: int, comm: str = "upsmon", group: str = GROUP) -> None:
    """Start a process; `began` in the kernel's ticks."""
    host.files[f"/proc/{pid}/comm"] = f"{comm}\n"
    host.files[f"/proc/{pid}/cgroup"] = group
    host.files[f"/proc/{pid}/stat"] = f"{pid} ({comm}) S 1 {'0 ' * 17}{began} 0\n"
    host.files[f"/proc/{pid}/status"] = f"Name:\t{comm}\nGid:\t{pid}\t{pid}\t{pid}\t{pid}\n"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> SmallHost:
    """Return a host where all is well."""
    found = SmallHost()
    found.files[LEASE] = json.dumps(TERMS)
    found.files["/proc/uptime"] = "99.07 1.00\n"
    start(found, PARENT, began=6)
    start(found, UPSMON, began=7)
    found.asked_with = []  # type: ignore[attr-defined]

    def live(power: Any, needed: Any, test_ups: Any) -> Any:
        found.asked_with.append((power, needed, test_ups))  # type: ignore[attr-defined]
        return list(WELL)

    monkeypatch.setattr(module, "observe", lambda _host: POWER)
    monkeypatch.setattr(module, "live", live)
    return found


def problems(host: SmallHost, is_watched: bool = False) -> str:
    """Return all that is wrong, as one text."""
    return "; ".join(Eyes(host, Noon()).see(is_watched).problems)


def test_when_all_is_well_nothing_is_wrong(host: SmallHost) -> None:
    seen = Eyes(host, Noon()).see(False)
    assert (seen.problems, seen.processes) == ((), {PARENT: 6, UPSMON: 7})
    assert seen.lease is not None
    # The lease's own seconds, and its word on test drivers, are what conditions are held against.
    assert host.asked_with == [(POWER, {"durability": 90.0, "clean_stop": 240.0}, True)]  # type: ignore[attr-defined]


def test_processes_whose_end_will_be_heard_of_are_not_looked_for(host: SmallHost) -> None:
    del host.files[f"/proc/{UPSMON}/comm"]
    seen = Eyes(host, Noon()).see(True)
    assert (seen.problems, seen.processes) == ((), None)


@pytest.mark.parametrize("name", conditions.NAMES)
@pytest.mark.parametrize("state", ["unmet", "unknown"])
def test_each_condition_counts_and_unknown_is_not_met(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, name: str, state: str
) -> None:
    found = [each._replace(state=state) if each.name == name else each for each in WELL]
    monkeypatch.setattr(module, "live", lambda *_words: found)
    assert problems(host) == f"{name}: {state}: seen"


@pytest.mark.fact(40)
def test_no_conditions_are_not_all_conditions(host: SmallHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "live", lambda *_words: [])
    assert problems(host) == "monitor_active: was not asked; status_online: was not asked"


def _raise(error: Exception) -> Callable[[Any], Any]:
    def look(_host: Any) -> Any:
        raise error

    return look


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unobservable("upsd: no answer"), "upsd: no answer"),
        (ZeroDivisionError("division by zero"), "the snapshot failed: ZeroDivisionError: division by zero"),
        (MemoryError(), "the snapshot failed: MemoryError: "),
    ],
)
def test_a_look_that_fails_is_a_problem(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr(module, "observe", _raise(error))
    assert problems(host) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no lease"),
        ("{", f"{LEASE}: not JSON"),
        (json.dumps({**TERMS, "expires": "2026-05-31"}), "the lease ended with 2026-05-31"),
        (json.dumps({**TERMS, "issued": "2026-06-02"}), "it was set back"),
    ],
)
def test_a_lease_that_does_not_hold_is_a_problem(host: SmallHost, text: str | None, said: str) -> None:
    if text is None:
        del host.files[LEASE]
    else:
        host.files[LEASE] = text
    assert said in problems(host)


@pytest.mark.parametrize(
    ("comm", "group", "stat"),
    [
        ("sshd", GROUP, "S"),
        ("upsmon", GROUP, "Z"),
        # Every login may make groups below its own, and give its processes any name.
        (
            "upsmon",
            "0::/user.slice/user-1000.slice/user@1000.service/system.slice/nut-monitor.service\n",
            "S",
        ),
        ("upsmon", "0::/system.slice/nut-monitor.service/of-a-login\n", "S"),
        ("upsmon", "0::/system.slice/ssh.service\n", "S"),
        ("apcupsd", "0::/system.slice/system.slice/nut-monitor.service\n", "S"),
    ],
)
def test_only_the_services_own_processes_are_the_monitors(
    host: SmallHost, comm: str, group: str, stat: str
) -> None:
    start(host, 6666, 5, comm, group)
    host.files["/proc/6666/stat"] = f"6666 ({comm}) {stat} 1 {'0 ' * 17}5 0\n"
    seen = Eyes(host, Noon()).see(False)
    assert seen.processes == {PARENT: 6, UPSMON: 7}
    # Nobody else's group may write into the fifo then.
    assert monitors.group(host, seen.processes or {}) == UPSMON


@pytest.mark.parametrize("pid", [0, 6666])
def test_without_a_main_process_there_is_no_monitor(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, pid: int
) -> None:
    monkeypatch.setattr(module, "observe", lambda _host: POWER._replace(pid=pid))
    assert problems(host) == "no process of upsmon or apcupsd runs as nut-monitor.service"


def test_a_number_that_a_login_took_after_systemd_was_asked_is_not_the_monitor(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_host: Any) -> Power:
        # It ends behind systemd's back, and its number goes to whoever has waited for it.
        host.files["/proc/uptime"] = "99.09 1.00\n"
        start(host, UPSMON, 9907, group="0::/user.slice/user-1000.slice/session-1.scope\n")
        return POWER

    monkeypatch.setattr(module, "observe", look)
    seen = Eyes(host, Noon()).see(False)
    assert (seen.processes, seen.problems) == (
        {},
        ("no process of upsmon or apcupsd runs as nut-monitor.service",),
    )


def test_a_number_that_a_login_took_has_no_say_in_who_may_write(host: SmallHost) -> None:
    found = Eyes(host, Noon()).see(False).processes or {}
    start(host, UPSMON, 9910)
    assert monitors.group(host, found) == PARENT


def test_a_program_that_was_replaced_is_noticed(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "guard.pyz"
    path.write_text("old")
    monkeypatch.setattr(module, "PROGRAM", str(path))
    eyes = Eyes(host, Noon())
    assert eyes.see(False).replaced == ""
    (tmp_path / "new").write_text("new")
    (tmp_path / "new").rename(path)
    assert eyes.see(False).replaced == str(path)
    path.unlink()
    del host.files[LEASE]
    assert eyes.see(False).replaced == str(path)


def test_an_interpreter_that_was_replaced_is_noticed(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "python3"
    path.write_text("old")
    monkeypatch.setattr(module.sys, "executable", str(path))
    eyes = Eyes(host, Noon())
    assert eyes.see(False).replaced == ""
    path.unlink()
    assert eyes.see(False).replaced == str(path)
