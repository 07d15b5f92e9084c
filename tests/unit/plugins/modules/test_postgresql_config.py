# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""postgresql_config: a check run touches nothing, and predicts exactly what a run then does."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.cluster import VALUES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.rules import JUDGE
from ansible_collections.durable.dbhost.plugins.modules import postgresql_config as module
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_postgresql import (
    CONF,
    MAIN,
    OURS,
    REFUSED,
    FakePostgresql,
)

from .run_module import run_module

SETTINGS = {"fsync": "on", "synchronous_commit": "on", "data_sync_retry": "off"}
ARGUMENTS = {"targets": [{"instance": "15/main", "settings": SETTINGS}]}


def drifting() -> FakePostgresql:
    host = FakePostgresql()
    host.files[CONF] = f"fsync = off\nsynchronous_commit = off\ndata_sync_retry = on\n{MAIN}"
    host.start_server()
    return host


@pytest.mark.parametrize("restart", [False, True])
def test_check_predicts_what_a_run_does_and_a_second_run_does_nothing(
    restart: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    arguments = {**ARGUMENTS, "restart": restart}
    predicted = run_module(module, host, monkeypatch, capsys, True, **arguments)
    assert host.mutations == []
    done = run_module(module, host, monkeypatch, capsys, **arguments)
    assert (done, done["changed"]) == (predicted, True)
    assert done["diff"][0]["before"] != done["diff"][0]["after"]
    assert ("restart" in host.done) is restart
    for check in (True, False):
        host.mutations.clear()
        again = run_module(module, host, monkeypatch, capsys, check, **arguments)
        assert (again["changed"], again["changes"], host.mutations) == (False, [], [])


def test_release_takes_back_what_was_written(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = drifting()
    before = host.files[CONF]
    run_module(module, host, monkeypatch, capsys, **ARGUMENTS)
    host.mutations.clear()
    predicted = run_module(module, host, monkeypatch, capsys, True, state="released")
    assert host.mutations == []
    done = run_module(module, host, monkeypatch, capsys, state="released")
    assert (done, done["changed"]) == (predicted, True)
    assert (host.files[CONF], OURS in host.files) == (before, False)
    assert run_module(module, host, monkeypatch, capsys, state="released")["changed"] is False


@pytest.mark.parametrize("check", [False, True])
def test_what_fails_does_not_stop_the_others(
    check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    host.files["/etc/postgresql/15/other/postgresql.conf"] = "data_directory = '/data/other'\n"
    host.files["/data/other/PG_VERSION"] = "15\n"
    host.units["postgresql@15-other.service"] = {}
    host.refused = REFUSED
    other = {"instance": "15/other", "settings": {"synchronous_commit": "local"}}
    arguments = {"targets": [*ARGUMENTS["targets"], other]}
    result = run_module(module, host, monkeypatch, capsys, check, **arguments)
    assert result["failed"] is True
    assert "Peer authentication failed" in result["msg"]
    assert bool(host.mutations) is not check


@pytest.mark.parametrize("check", [False, True])
def test_what_cannot_be_done_fails_in_check_mode_too(
    check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    host.refused = REFUSED
    result = run_module(module, host, monkeypatch, capsys, check, **ARGUMENTS)
    assert result["failed"] is True
    assert "Peer authentication failed" in result["msg"]
    assert host.mutations == []


@pytest.mark.parametrize(
    "target",
    [
        {"instance": "15/main", "settings": {"fsync": "maybe"}},
        {"instance": "15/main", "settings": {"work_mem": "4MB"}},
        {"instance": "15/main", "settings": {"wal_sync_method": "fsync_writethrough"}},
        {"instance": "15/main"},
        {"settings": {"fsync": "on"}},
    ],
)
def test_a_wrong_argument_is_refused(
    target: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    result = run_module(module, host, monkeypatch, capsys, targets=[target])
    assert result["failed"] is True
    assert host.mutations == []


def test_it_takes_what_the_policy_sets() -> None:
    taken = layer.ARGUMENTS.target["settings"]["options"]
    assert set(taken) == set(VALUES) == set(JUDGE.full["postgresql"])
    for rules in (JUDGE.full, JUDGE.relaxed):
        for name, rule in rules["postgresql"].items():
            assert {rule.value, *rule.accepts} <= set(taken[name]["choices"])
