# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts in one execution: each sort may fail by itself, and the answer stays one that a controller takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils import host_facts as collecting
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE
from ansible_collections.durable.dbhost.plugins.modules import host_facts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_proc import ProcHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import nut_28
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

from .run_module import run_module

ENGINES, STORAGE, POWER = "durable_engines", "durable_storage", "durable_power"


def ask(host: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, **arguments: Any) -> dict[str, Any]:
    """Return the module's answer, which changes nothing."""
    result = run_module(host_facts, host, monkeypatch, capsys, **arguments)
    assert result["changed"] is False
    assert host.mutations == []
    return result


def test_what_fails_is_named_and_the_others_are_there(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """This model of a host has disks, but no processes."""
    result = ask(SmallHost(), monkeypatch, capsys)
    assert set(result["ansible_facts"]) == {STORAGE, POWER}
    assert list(result["failures"]) == [ENGINES]
    assert result["failures"][ENGINES].startswith("This machine cannot be observed: /proc shows only some")
    assert result["ansible_facts"][STORAGE]["mounts"]
    assert result["ansible_facts"][POWER]["guard"]["installed"] == "absent"


def test_a_host_with_processes_and_no_disks(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    result = ask(ProcHost(), monkeypatch, capsys, power="never")
    assert (list(result["ansible_facts"]), list(result["failures"])) == ([ENGINES], [STORAGE])


def test_what_nobody_foresaw_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fall(*_arguments: Any) -> None:
        raise KeyError("sd\x1ba")

    monkeypatch.setattr(collecting.storage, "collect", fall)
    result = ask(nut_28(), monkeypatch, capsys)
    assert set(result["ansible_facts"]) == {ENGINES, POWER}
    (why,) = result["failures"].values()
    assert why.startswith("its collection failed: KeyError:")
    assert "\x1b" not in why


@pytest.mark.parametrize(
    ("power", "leased", "asked"),
    [
        ("always", False, True),
        ("guarded", False, False),
        ("guarded", True, True),
        ("never", True, False),
    ],
)
def test_power_is_asked_for_where_it_matters(
    power: str, leased: bool, asked: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = SmallHost()
    if leased:
        host.files[LEASE] = "{}"
    result = ask(host, monkeypatch, capsys, power=power)
    assert (POWER in result["ansible_facts"]) is asked
    assert POWER not in result["failures"]


def test_a_guard_that_nothing_is_known_of_may_have_barriers_off(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = nut_28()  # Whose storage cannot be looked at.
    assert POWER in ask(host, monkeypatch, capsys, power="guarded")["ansible_facts"]


def test_the_margin_reaches_the_sum(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (small, large) = (
        ask(nut_28(), monkeypatch, capsys, margin=margin)["ansible_facts"][POWER]["budget"]["durability"][
            "needed"
        ]
        for margin in (5, 65)
    )
    assert large - small == 60


def test_an_answer_that_is_too_large_loses_its_largest_part(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    whole = ask(SmallHost(), monkeypatch, capsys)["ansible_facts"]
    assert bounds.size(whole[STORAGE]) > bounds.size(whole[POWER])
    monkeypatch.setattr(bounds, "ANSWER", len(json.dumps(whole)) - 1)
    result = ask(SmallHost(), monkeypatch, capsys)
    assert list(result["ansible_facts"]) == [POWER]
    assert "its answer would be too large" in result["failures"][STORAGE]


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = SmallHost()
    host.acts_as = 1000
    result = run_module(host_facts, host, monkeypatch, capsys)
    assert result["failed"]
    assert result["msg"].endswith("observed user 1000, expected root (become); log in as root, or add -b")


def test_a_margin_below_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    result = run_module(host_facts, SmallHost(), monkeypatch, capsys, margin=-1)
    assert result["msg"] == "margin: observed -1, expected seconds, 0 or more"
