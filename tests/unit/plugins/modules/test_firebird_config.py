# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module firebird_config: check tells what a run does, and a password is shown to nobody."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.modules import firebird_config
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_firebird import (
    PASSWORD,
    FakeDatabase,
    FirebirdHost,
)

from .run_module import run_module

A = "/data/a.fdb"
TARGETS = [{"database": A, "forced_writes": "on"}, {"directory": "/log", "forced_writes": "on"}]


def host() -> FirebirdHost:
    machine = FirebirdHost(a=FakeDatabase(flags=0))
    machine.add(**{"/log/b.fdb": FakeDatabase(flags=0, major=13)})
    return machine


def test_check_predicts_a_run_and_a_second_one_does_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    machine = host()
    predicted = run_module(firebird_config, machine, monkeypatch, capsys, True, targets=TARGETS)
    assert machine.mutations == []
    done = run_module(firebird_config, machine, monkeypatch, capsys, targets=TARGETS)
    assert done == predicted
    assert done["changed"] is True
    assert done["diff"][0]["after"] == (
        "/data/a.fdb forced_writes (persisted): on\n/log/b.fdb forced_writes (persisted): on\n"
    )
    documented = yaml.safe_load(firebird_config.RETURN)["changes"]["contains"]
    assert set(done["changes"][0]) == set(documented)
    machine.mutations.clear()
    for check in (True, False):
        again = run_module(firebird_config, machine, monkeypatch, capsys, check, targets=TARGETS)
        assert (again["changed"], machine.mutations) == (False, [])


def test_release(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    machine = host()
    run_module(firebird_config, machine, monkeypatch, capsys, targets=TARGETS)
    machine.mutations.clear()
    predicted = run_module(firebird_config, machine, monkeypatch, capsys, True, state="released")
    assert machine.mutations == []
    done = run_module(firebird_config, machine, monkeypatch, capsys, state="released")
    assert done == predicted
    assert [database.flags for database in machine.databases.values()] == [0, 0]
    assert run_module(firebird_config, machine, monkeypatch, capsys, state="released")["changed"] is False


@pytest.mark.parametrize("check", [True, False])
def test_a_database_in_use_is_a_warning(check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    machine = host()
    machine.open(99, A, 2)
    # In a process that has been a controller, Ansible sends warnings to its display instead.
    warned: list[str] = []
    monkeypatch.setattr(
        "ansible.module_utils.basic.AnsibleModule.warn", lambda _module, text, **_: warned.append(text)
    )
    result = run_module(firebird_config, machine, monkeypatch, capsys, check, targets=TARGETS)
    assert [change["target"] for change in result["changes"]] == ["/log/b.fdb"]
    assert len(warned) == 1
    assert "a process has it open" in warned[0]


@pytest.mark.parametrize("answers", [True, False])
def test_a_password_is_nowhere_in_what_is_told(
    answers: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    machine = FirebirdHost(a=FakeDatabase(flags=0, owner=1000))
    machine.install()
    machine.server.answers = answers
    given = {"targets": TARGETS[:1], "password": PASSWORD}
    result = run_module(firebird_config, machine, monkeypatch, capsys, **given)
    assert PASSWORD not in str(result)
    assert machine.server.said[-1][2]["ISC_PASSWORD"] == PASSWORD
    assert bool(result.get("failed")) != answers


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "target",
    [
        {"database": "/data/gone.fdb", "forced_writes": "on"},
        {"database": A, "forced_writes": "sync"},
        {"database": A},
        {"forced_writes": "on"},
        {"database": "a.fdb", "forced_writes": "on"},
    ],
)
def test_what_cannot_be_done_fails_in_check_mode_too(
    target: dict[str, str], check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    machine = host()
    result = run_module(firebird_config, machine, monkeypatch, capsys, check, targets=[target])
    assert result["failed"] is True
    assert machine.mutations == []


def test_no_targets_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    machine = host()
    result = run_module(firebird_config, machine, monkeypatch, capsys)
    assert (result["changed"], machine.mutations) == (False, [])
