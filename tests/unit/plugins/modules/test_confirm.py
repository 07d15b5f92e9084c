# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection after a run removes the rollback timer; the facts modules change nothing."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils import host_facts as collecting
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.undo import arm, installed
from ansible_collections.durable.dbhost.plugins.modules import confirm, host_facts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes import runs
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.undo_host import UndoHost

from .run_module import run_module

STEPS = [
    {
        "phase": "tighten",
        "layer": "mount_options",
        "class": "safety",
        "arguments": {"targets": [{"target": "/srv/maria", "atime": "noatime", "persist": True}]},
    }
]


@pytest.fixture
def host() -> UndoHost:
    """Return a host with an armed timer."""
    host = UndoHost()
    arm.arm(host, runs.LAYERS, STEPS, 600)
    assert installed.switch_of(host).state == installed.ARMED
    return host


def query(
    module: ModuleType, host: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, **given: Any
) -> dict[str, Any]:
    """Return the response of a module to a query without power."""
    monkeypatch.setattr(time, "gmtime", lambda: time.struct_time((2026, 1, 31, 12, 0, 0, 5, 31, 0)))
    return run_module(module, host, monkeypatch, capsys, power="never", **given)


def test_the_timer_is_removed_after_the_facts_are_collected(
    host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    result = query(confirm, host, monkeypatch, capsys)
    assert "durable_storage" in result["ansible_facts"]
    assert (result["changed"], result["switch"]["state"]) == (True, installed.NONE)
    assert installed.switch_of(host).state == installed.NONE
    again = query(confirm, host, monkeypatch, capsys)
    assert (again["changed"], again["switch"]["state"]) == (False, installed.NONE)


def test_in_check_mode_the_timer_stays_armed(
    host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host.mutations.clear()
    result = query(confirm, host, monkeypatch, capsys, check=True)
    assert (result["changed"], result["switch"]["state"], host.mutations) == (False, installed.ARMED, [])


def test_without_facts_of_storage_the_timer_stays_armed(
    host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise Unobservable("the disks cannot be read")

    monkeypatch.setattr(collecting.storage, "collect", refuse)
    host.mutations.clear()
    result = query(confirm, host, monkeypatch, capsys)
    assert (result["changed"], result["switch"]["state"], host.mutations) == (False, installed.ARMED, [])


def test_host_facts_reports_an_armed_timer_and_changes_nothing(
    host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host.mutations.clear()
    result = query(host_facts, host, monkeypatch, capsys)
    assert (result["changed"], result["switch"]["state"], host.mutations) == (False, installed.ARMED, [])


def test_host_facts_has_no_option_that_changes_the_host(
    host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert "Unsupported parameters" in query(host_facts, host, monkeypatch, capsys, disarm=True)["msg"]
