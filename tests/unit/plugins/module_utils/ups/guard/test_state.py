# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease, and what counts of the guard's state."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE, STATE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import lease, state

from ...fakes.small_host import BOOT_ID, SmallHost

PG = "/srv/pgdata"
UUID = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"
TERMS: dict[str, Any] = {
    "schema": 1,
    "mounts": [{"target": PG, "uuid": UUID}],
    "issued": "2026-01-02",
    "expires": "2026-12-31",
    "quiet": 300,
    "needed": {"durability": 90, "clean_stop": 240.5},
    "test_ups": False,
    "units": ["postgresql@15-main.service"],
}
PID, START = 4711, 987


def said(**more: Any) -> state.Record:
    """Return what a running guard says."""
    fields: dict[str, Any] = {
        "boot": BOOT_ID,
        "pid": PID,
        "start": START,
        "beat": 1000.0,
        "state": "loose",
        "reason": "every check has passed for long enough",
        "since": "2026-06-01T10:00:00Z",
        "quiet": None,
        "kept": {PG: state.Below("8:1", ("sda",))},
    }
    return state.Record(**{**fields, **more})


def host(found: state.Record | str | None, allowed: Any = "as in TERMS", runs: bool = True) -> SmallHost:
    """Return a host with a state, a lease (None: without), and the guard's process."""
    seen = SmallHost()
    allowed = TERMS if allowed == "as in TERMS" else allowed
    seen.files["/proc/uptime"] = "1002.50 4000.00\n"
    if found is not None:
        seen.files[STATE] = found if isinstance(found, str) else found.render()
    if allowed is not None:
        seen.files[LEASE] = allowed if isinstance(allowed, str) else json.dumps(allowed)
    if runs:
        seen.files[f"/proc/{PID}/stat"] = f"{PID} (a) b (c) S 1 {'0 ' * 17}{START} 0 0\n"
    return seen


def test_a_lease_is_read_as_it_was_written() -> None:
    found = lease.parse(json.dumps(TERMS))
    assert lease.parse(found.render()) == found
    assert found.mounts == (lease.Leased(PG, UUID),)
    assert (found.quiet, found.needed) == (300, {"durability": 90.0, "clean_stop": 240.5})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schema": 2}, "not a lease of schema 1"),
        ({"more": 1}, "says more, which this guard does not know"),
        ({"mounts": []}, "mounts: expected a list"),
        ({"mounts": [{"target": "srv", "uuid": UUID}]}, "expected an absolute path"),
        ({"mounts": [{"target": PG, "uuid": "x"}]}, "expected a file system's UUID"),
        ({"mounts": [{"target": PG, "uuid": UUID}] * 2}, "named twice"),
        ({"expires": "tomorrow"}, "expires: observed 'tomorrow'"),
        ({"expires": None}, "expires: observed None"),
        ({"issued": ""}, "issued: observed ''"),
        ({"quiet": True}, "quiet: observed True"),
        ({"quiet": -1}, "quiet: observed -1"),
        ({"quiet": float("inf")}, "not JSON"),
        ({"needed": {"durability": 1}}, "needed: expected seconds for durability and clean_stop"),
        ({"needed": {"durability": 1, "clean_stop": "infinity"}}, "needed.clean_stop: observed 'infinity'"),
        ({"test_ups": "no"}, "test_ups: observed 'no'"),
        ({"units": ["a.service\nExecStart=/bin/false"]}, "units: observed"),
        ({"units": "a.service"}, "units: observed"),
    ],
)
def test_what_is_no_lease_says_what_is_wrong(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        lease.parse(json.dumps({**TERMS, **more}))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100000, "nul", "\0"])
def test_a_damaged_lease_is_none(text: str) -> None:
    with pytest.raises(Unobservable, match=LEASE):
        lease.read(host(None, text))


@pytest.mark.parametrize(
    ("today", "why"),
    [
        ("2026-01-02", None),
        ("2026-12-31", None),
        ("2027-01-01", "the lease ended with 2026-12-31"),
        (
            "2026-01-01",
            "the clock says 2026-01-01, before the lease's first day 2026-01-02: it was set back",
        ),
        (
            "1970-01-01",
            "the clock says 1970-01-01, before the lease's first day 2026-01-02: it was set back",
        ),
    ],
)
def test_a_lease_holds_from_its_first_day_to_its_last(today: str, why: str | None) -> None:
    assert lease.parse(json.dumps(TERMS)).over(today) == why


@pytest.mark.parametrize("word", ["waiting", "loose", "tight", "failed"])
def test_a_running_guard_counts(word: str) -> None:
    seen = host(said(state=word, quiet=17))
    seen.mounts[PG].barrier = "off"
    assert state.read(seen) == {
        "state": word,
        "reason": "every check has passed for long enough",
        "since": "2026-06-01T10:00:00Z",
        "quiet": 17 if word == "waiting" else None,
        "lease": {**lease.parse(json.dumps(TERMS)).as_dict(), "mounts": [PG]},
        # The kernel's word, not the guard's.
        "mounts": [{"target": PG, "barrier": "off"}],
    }


@pytest.mark.parametrize(
    ("found", "allowed", "runs", "expected", "reason"),
    [
        (None, None, False, "absent", "there is no lease"),
        (None, TERMS, False, "stopped", "no guard has run since the boot"),
        (None, "{", False, "unknown", "not JSON"),
        ("{", TERMS, True, "unknown", "not JSON"),
        (said(boot="another"), TERMS, True, "unknown", "of another boot"),
        (said(beat=900.0), TERMS, True, "unknown", "102 s ago, and nothing since"),
        (said(beat=1100.0), TERMS, True, "unknown", "and nothing since"),
        (said(state="tight"), TERMS, False, "stopped", f"its process {PID} has ended"),
        (said(state="waiting"), TERMS, False, "stopped", f"its process {PID} has ended"),
        (said(start=1, state="tight"), TERMS, True, "stopped", f"its process {PID} has ended"),
        # Nobody has flushed what was written without barriers.
        (said(), TERMS, False, "failed", "has ended while barriers were off"),
        (said(), None, False, "failed", "has ended while barriers were off"),
        (said(state="failed", beat=1.0), TERMS, False, "failed", "every check has passed"),
        (said(state="stopped", reason="stopped by SIGTERM"), TERMS, False, "stopped", "stopped by SIGTERM"),
        (said(state="stopped"), None, False, "absent", "the guard has stopped"),
        (said(), None, True, "loose", "every check has passed"),
    ],
)
def test_what_cannot_be_trusted_does_not_count(
    found: Any, allowed: Any, runs: bool, expected: str, reason: str
) -> None:
    seen = state.read(host(found, allowed, runs))
    assert seen["state"] == expected
    assert reason in seen["reason"]


def test_a_process_that_waits_to_be_buried_does_not_run() -> None:
    seen = host(said(state="tight"))
    seen.files[f"/proc/{PID}/stat"] = f"{PID} (guard) Z 1 {'0 ' * 17}{START} 0 0\n"
    assert state.read(seen)["state"] == "stopped"


@pytest.mark.parametrize(
    "more",
    [
        {"kept": {PG: {"device": "8:1", "disks": ["../../etc/passwd"]}}},
        {"kept": {PG: {"device": 1, "disks": []}}},
        {"kept": []},
        {"pid": "1"},
        {"beat": None},
        {"state": "fine"},
        {"reason": 1},
    ],
)
def test_a_state_of_another_form_is_unknown(more: dict[str, Any]) -> None:
    text = json.dumps({**json.loads(said().render()), **more})
    assert state.read(host(text))["state"] == "unknown"


def test_barriers_of_what_is_not_mounted_are_unknown() -> None:
    seen = host(said(kept={"/srv/gone": state.Below()}))
    assert state.read(seen)["mounts"] == [
        {"target": PG, "barrier": "on"},
        {"target": "/srv/gone", "barrier": "unknown"},
    ]
