# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""power_config: a check run predicts what a run does, touches nothing, and no result tells a password."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import HOOK, LOCK
from ansible_collections.durable.dbhost.plugins.modules import power_config
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.nut_host import (
    SECRET,
    TEXT,
    UPSMON,
    ApcHost,
    MonitorHost,
    NutHost,
)

from .run_module import run_module

GUARD = [{"notify_command": HOOK}, {"notify_flags": "EXEC"}]
MONITOR = {"system": "rack@localhost", "power_value": 2, "user": "upsmon", "type": "primary"}
CASES = {
    "nut": (NutHost, {"targets": [*GUARD, {"monitor": MONITOR}], "password": "n3w one"}),
    "apcupsd": (ApcHost, {"targets": GUARD}),
}


@pytest.mark.parametrize(("kind", "arguments"), CASES.values(), ids=CASES)
def test_check_predicts_what_a_run_does_and_release_what_was_there(
    kind: type[MonitorHost], arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = kind()
    before = dict(host.files)
    predicted = run_module(power_config, host, monkeypatch, capsys, True, **arguments)
    assert host.mutations == []
    done = run_module(power_config, host, monkeypatch, capsys, **arguments)
    assert host.mutations
    assert done == predicted
    assert done["changed"] is True
    assert done["diff"][0]["before"] != done["diff"][0]["after"]
    host.mutations.clear()
    again = run_module(power_config, host, monkeypatch, capsys, **arguments)
    assert (again["changed"], host.mutations) == (False, [])
    for result in (predicted, done):
        assert SECRET not in json.dumps(result)
        assert "n3w" not in json.dumps({**result, "invocation": None})
    run_module(power_config, host, monkeypatch, capsys, state="released")
    del host.files[LOCK]  # It goes with the boot.
    assert dict(host.files) == before


@pytest.mark.parametrize(
    "target",
    [
        {"final_delay": "soon"},
        {"notify_flags": "SYSLOG"},
        {"mode": "none"},
        {"monitor": {**MONITOR, "type": "master"}},
        {"monitor": {**MONITOR, "password": "here"}},
        {"pollfreq": 5},
    ],
)
def test_a_wrong_argument_is_refused(
    target: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = NutHost()
    assert run_module(power_config, host, monkeypatch, capsys, targets=[target])["failed"] is True
    assert (host.files[UPSMON], host.mutations) == (TEXT, [])
