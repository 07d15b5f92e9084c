# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts module: a shell that returns what was collected, or says that nothing can be."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import assess_answer
from ansible_collections.durable.dbhost.plugins.modules import (
    engine_facts,
    io_scheduler,
    power_facts,
    storage_facts,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import (
    BOOT_ID,
    SmallHost,
)

from .run_module import run_module


@pytest.mark.parametrize("check", [False, True])
def test_facts_come_under_one_name_and_nothing_changes(
    check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = SmallHost()
    result = run_module(storage_facts, host, monkeypatch, capsys, check)
    assert result["changed"] is False
    assert list(result["ansible_facts"]) == ["durable_storage"]
    facts = result["ansible_facts"]["durable_storage"]
    assert facts["boot_id"] == BOOT_ID
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["time"])
    assert host.mutations == []


def test_names_that_are_no_text_reach_the_controller(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = SmallHost()
    odd = "99 30 8:99 / /srv/caf\udce9 rw - ext4 /dev/sdz rw\n"
    host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + odd
    result = run_module(storage_facts, host, monkeypatch, capsys)
    assert result["ansible_facts"]["durable_storage"]["mounts"][-1]["target"].startswith("/srv/caf")


def test_a_machine_that_cannot_be_observed_fails_by_cause(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = SmallHost()
    del host.files["/proc/self/mountinfo"]
    result = run_module(storage_facts, host, monkeypatch, capsys)
    assert result["msg"] == "This machine cannot be observed: /proc/self/mountinfo: No such file or directory"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (storage_facts, {}),
        (engine_facts, {}),
        (power_facts, {}),
        (io_scheduler, {"targets": [{"device": "sda", "scheduler": "none"}]}),
    ],
)
def test_who_is_not_root_is_told_so_in_one_line(
    module: ModuleType, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Else much would look as if it were not there."""
    host = SmallHost()
    host.acts_as = 1000
    result = run_module(module, host, monkeypatch, capsys, **arguments)
    assert result["failed"]
    assert result["msg"].endswith("observed user 1000, expected root (become); log in as root, or add -b")
    (why,) = assess_answer(Inputs(), "2026-01-31T12:00:00Z", result)["why"]
    assert "\n" not in why
    assert "log in as root, or add -b (become: true)" in why
