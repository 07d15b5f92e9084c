# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""durable_ups: what may stand in it, and that nothing of it that may be a secret is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.ups_inputs import (
    KEYS,
    Requested,
    read,
)
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

LINE = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Requested(300, {})),
        ({}, Requested(300, {})),
        ({"quiet": 10, "margin": 0}, Requested(10, {})),
        ({"monitor": {**LINE, "password": True}}, Requested(300, {"monitor": LINE})),
        ({"final_delay": 0, "monitor": LINE}, Requested(300, {"final_delay": 0, "monitor": LINE})),
        (
            {"shutdown_command": "/sbin/shutdown -h +0", "powerdown_flag": "/etc/killpower"},
            Requested(300, {"shutdown_command": "/sbin/shutdown -h +0", "powerdown_flag": "/etc/killpower"}),
        ),
    ],
)
def test_what_may_be_asked_for(value: Any, expected: Requested) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hunter2", "durable_ups: observed text; expected a mapping of quiet"),
        (7, "durable_ups: observed a number; expected a mapping of quiet"),
        (True, "durable_ups: observed a boolean; expected a mapping of quiet"),
        (["hunter2"], "observed a list; expected"),
        ({"password": "hunter2"}, "durable_ups: observed password; expected only"),
        ({"quiet": "300"}, "durable_ups: quiet: observed '300'; expected seconds as a number, 10 to 86400"),
        ({"quiet": True}, "quiet: observed True"),
        ({"quiet": 9}, "quiet: observed 9"),
        ({"margin": -1}, "margin: observed -1"),
        ({"final_delay": 3601}, "final_delay: observed 3601"),
        ({"host_sync": None}, "host_sync: observed None"),
        (
            {"shutdown_command": "true"},
            "shutdown_command: observed 'true'; expected one line that begins with /",
        ),
        (
            {"shutdown_command": "/sbin/shutdown -k now"},
            "at once: it warns only (-k); use /sbin/shutdown -h now",
        ),
        ({"shutdown_command": "/sbin/shutdown -h +15"}, "at once: it waits 15 min (+15)"),
        ({"shutdown_command": "/sbin/reboot"}, "at once: it restarts the host"),
        ({"shutdown_command": "/sbin/x\nNOTIFYCMD /y"}, "shutdown_command: observed"),
        (
            {"shutdown_command": "upsdrvctl --password=hunter2"},
            "observed [command not shown: it can contain a secret]; expected one line that begins with /",
        ),
        (
            {"shutdown_command": "/bin/echo --password=hunter2"},
            "[command not shown: it can contain a secret] does not shut this host down at once",
        ),
        ({"powerdown_flag": 1}, "powerdown_flag: observed 1"),
        (
            {"monitor": "rack@localhost 1 upsmon hunter2 primary"},
            "monitor: observed text; expected exactly password and",
        ),
        (
            {"monitor": {**LINE, "pass": "hunter2"}},
            "monitor: observed pass; expected exactly password and system, power_value, user, type."
            " Did you mean password?",
        ),
        ({"margins": 3}, "observed margins; expected only quiet, margin,"),
        ({"margins": 3}, ". Did you mean margin?"),
        (
            {"monitor": {"system": "rack@localhost"}},
            "monitor: observed system; expected exactly password and system, power_value, user, type; add power_value, user,"
            " type, password",
        ),
        (
            {"monitor": {"system": "rack@localhost", "password": True}},
            "monitor: observed password, system; expected exactly password and system, power_value, user, type; add"
            " power_value, user, type",
        ),
        (
            {"monitor": {**LINE, "type": "primry"}},
            "monitor: type: observed 'primry'; expected primary or secondary. Did you mean primary?",
        ),
        ({"monitor": {**LINE, "system": "rack"}}, "monitor: system: observed 'rack'; expected ups@host"),
        ({"monitor": {**LINE, "system": "a@b c"}}, "monitor: system: observed"),
        ({"monitor": {**LINE, "power_value": "1"}}, "monitor: power_value: observed '1'"),
        ({"monitor": {**LINE, "user": ""}}, "monitor: user: observed ''"),
    ],
)
def test_what_may_not_and_that_no_secret_is_shown(value: Any, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(value)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    monitor = {"system": "rack", "power_value": True, "user": "upsmon", "pass": "hunter2"}
    with pytest.raises(BadInput) as caught:
        read({"quiet": 9, "margins": 3, "shutdown_command": "/sbin/reboot", "monitor": monitor})
    starts = (
        "9; expected seconds",
        "margins; expected only",
        "'/sbin/reboot' does ",
        "pass, power_value, ",
        "pass; expected exactly",
        "'rack'; expected ups",
        "True; expected a number",
    )
    errors = [re.sub(r"^durable_ups: (\w+: )?(\w+: )?(observed )?", "", each) for each in caught.value.errors]
    assert len(errors) == len(starts)
    assert [error for error, start in zip(errors, starts) if not error.startswith(start)] == []
    assert "add type, password" in str(caught.value) and "hunter2" not in str(caught.value)


def test_every_key_has_a_rule() -> None:
    for key in KEYS:
        with pytest.raises(BadInput, match=key):
            read({key: object()})
