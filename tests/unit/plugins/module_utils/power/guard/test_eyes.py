# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard looks at: whatever cannot be seen is a problem."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.power import conditions
from ansible_collections.durable.dbhost.plugins.module_utils.power.guard import eyes as module
from ansible_collections.durable.dbhost.plugins.module_utils.power.guard.eyes import Clock, Eyes
from ansible_collections.durable.dbhost.plugins.module_utils.power.guard.paths import LICENCE

from ...small_host import SmallHost

UPSMON = 4242
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
    """One day of the licence."""

    def today(self) -> str:
        return "2026-06-01"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> SmallHost:
    """Return a host where all is well."""
    found = SmallHost()
    found.files[LICENCE] = json.dumps(TERMS)
    found.files.update(
        {
            f"/proc/{UPSMON}/comm": "upsmon\n",
            f"/proc/{UPSMON}/cgroup": "0::/system.slice/nut-monitor.service\n",
            f"/proc/{UPSMON}/stat": f"{UPSMON} (upsmon) S 1 {'0 ' * 17}7 0\n",
        }
    )
    found.asked_with = []  # type: ignore[attr-defined]

    def live(power: Any, needed: Any, test_ups: Any) -> Any:
        found.asked_with.append((power, needed, test_ups))  # type: ignore[attr-defined]
        return list(WELL)

    monkeypatch.setattr(module, "look", lambda _host: "power")
    monkeypatch.setattr(module, "live", live)
    return found


def problems(host: SmallHost, is_watched: bool = False) -> str:
    """Return all that is wrong, as one text."""
    return "; ".join(Eyes(host, Noon()).see(is_watched).problems)


def test_when_all_is_well_nothing_is_wrong(host: SmallHost) -> None:
    seen = Eyes(host, Noon()).see(False)
    assert (seen.problems, seen.processes) == ((), {UPSMON: 7})
    assert seen.licence is not None
    # The licence's own seconds, and its word on test drivers, are what conditions are held against.
    assert host.asked_with == [("power", {"durability": 90.0, "clean_stop": 240.0}, True)]  # type: ignore[attr-defined]


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
        (ZeroDivisionError("division by zero"), "the look failed: ZeroDivisionError: division by zero"),
        (MemoryError(), "the look failed: MemoryError: "),
    ],
)
def test_a_look_that_fails_is_a_problem(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr(module, "look", _raise(error))
    assert problems(host) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no licence"),
        ("{", f"{LICENCE}: not JSON"),
        (json.dumps({**TERMS, "expires": "2026-05-31"}), "the licence ended with 2026-05-31"),
        (json.dumps({**TERMS, "issued": "2026-06-02"}), "it was set back"),
    ],
)
def test_a_licence_that_does_not_hold_is_a_problem(host: SmallHost, text: str | None, said: str) -> None:
    if text is None:
        del host.files[LICENCE]
    else:
        host.files[LICENCE] = text
    assert said in problems(host)


@pytest.mark.parametrize(
    "files",
    [
        {f"/proc/{UPSMON}/comm": "sshd\n"},
        {f"/proc/{UPSMON}/cgroup": "0::/user.slice/user-1000.slice/session-1.scope\n"},
        {f"/proc/{UPSMON}/stat": f"{UPSMON} (upsmon) Z 1 {'0 ' * 17}7 0\n"},
    ],
)
def test_what_only_looks_like_the_monitor_is_none(host: SmallHost, files: dict[str, str]) -> None:
    host.files.update(files)
    assert problems(host) == "no process of upsmon or apcupsd runs as a service"


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
    del host.files[LICENCE]
    assert eyes.see(False).replaced == str(path)
