# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mariadb_config: a check run touches nothing, and predicts exactly what a run then does."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.modules import mariadb_config
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_mariadb import (
    DROP_IN,
    MYSQL,
    SERVER_CNF,
    MariaHost,
)

from .run_module import run_module

LOG = "innodb_flush_log_at_trx_commit"
SETTINGS = {LOG: 1, "sync_binlog": 1, "innodb_doublewrite": True}
TARGETS = [{"instance": "mariadb", "settings": SETTINGS}]


def drifting(version: str = "10.11.19-MariaDB-0+deb12u1") -> MariaHost:
    host = MariaHost(version)
    host.files[SERVER_CNF] += f"{LOG} = 2\nskip-innodb-doublewrite\nsync_binlog = 0\n"
    host.variables.update({LOG: "2", "innodb_doublewrite": "OFF", "sync_binlog": "0"})
    return host


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("version", ["10.11.19-MariaDB-0+deb12u1", "11.4.2-MariaDB", MYSQL])
def test_check_predicts_what_a_run_does_and_a_second_run_does_nothing(
    version: str, restart: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting(version)
    given = {"targets": TARGETS, "restart": restart}
    predicted = run_module(mariadb_config, host, monkeypatch, capsys, True, **given)
    assert host.mutations == []
    done = run_module(mariadb_config, host, monkeypatch, capsys, **given)
    assert done == predicted
    assert done["changed"] is True
    assert done["diff"][0]["before"] != done["diff"][0]["after"]
    assert host.restarts == int(restart)
    for check in (True, False):
        host.mutations.clear()
        again = run_module(mariadb_config, host, monkeypatch, capsys, check, **given)
        assert (again["changed"], again["changes"], host.mutations) == (False, [], [])


def test_release_takes_back_what_was_written(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = drifting()
    run_module(mariadb_config, host, monkeypatch, capsys, targets=TARGETS)
    host.mutations.clear()
    predicted = run_module(mariadb_config, host, monkeypatch, capsys, True, state="released")
    assert host.mutations == []
    assert run_module(mariadb_config, host, monkeypatch, capsys, state="released") == predicted
    assert predicted["changed"] is True
    assert DROP_IN not in host.files
    assert run_module(mariadb_config, host, monkeypatch, capsys, state="released")["changed"] is False


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "target",
    [
        {"instance": "other", "settings": SETTINGS},
        {"instance": "mariadb", "settings": {"sync_binlog": "often"}},
        {"instance": "mariadb", "settings": {"max_connections": 1}},
    ],
)
def test_what_cannot_be_done_fails_in_check_mode_too(
    target: dict[str, Any], check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    result = run_module(mariadb_config, host, monkeypatch, capsys, check, targets=[target])
    assert result["failed"] is True
    assert "expected" in result["msg"]
    assert host.mutations == []


@pytest.mark.parametrize(
    "target", [{"instance": "mariadb"}, {"settings": {}}, {"instance": "x", "settings": "y"}]
)
def test_a_wrong_argument_is_refused(
    target: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    assert run_module(mariadb_config, host, monkeypatch, capsys, targets=[target])["failed"] is True
    assert host.mutations == []


def test_no_targets_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = drifting()
    result = run_module(mariadb_config, host, monkeypatch, capsys)
    assert (result["changed"], host.mutations, host.asked) == (False, [], [])
