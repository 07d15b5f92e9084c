# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts module of power: a shell that returns what was collected, as it is documented."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.ups import conditions
from ansible_collections.durable.dbhost.plugins.modules import power_facts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_proc import BOOT_ID
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import (
    SECRET,
    nut_28,
    with_apcupsd,
)

from .run_module import run_module

STOPS = [{"engine": "mssql", "unit": "mssql-server.service", "seconds": "1800"}]
DOCUMENTED = yaml.safe_load(power_facts.RETURN)["ansible_facts"]["contains"]["durable_power"]["contains"]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("make", [nut_28, with_apcupsd])
def test_facts_come_under_one_name_and_nothing_changes(
    make: Any, check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = make()
    result = run_module(power_facts, host, monkeypatch, capsys, check)
    assert result["changed"] is False
    assert list(result["ansible_facts"]) == ["durable_power"]
    facts = result["ansible_facts"]["durable_power"]
    assert facts["boot_id"] == BOOT_ID
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["time"])
    assert facts["guard"]["state"] == "absent"
    assert host.mutations == []
    assert SECRET not in json.dumps(result)


@pytest.mark.parametrize("make", [nut_28, with_apcupsd])
def test_each_field_is_documented_and_each_documented_one_is_there(
    make: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    result = run_module(power_facts, make(), monkeypatch, capsys, stop_timeouts=STOPS)
    facts = result["ansible_facts"]["durable_power"]
    assert set(facts) == set(DOCUMENTED)
    for name in ("upses", "conditions"):
        assert set(facts[name][0]) == set(DOCUMENTED[name]["contains"])
    assert set(facts["guard"]) == set(DOCUMENTED["guard"]["contains"])
    assert set(facts["budget"]) == set(DOCUMENTED["budget"]["contains"])
    sum_ = DOCUMENTED["budget"]["contains"]["clean_stop"]["contains"]
    for name in facts["budget"]:
        assert set(facts["budget"][name]) == set(sum_)
        assert set(facts["budget"][name]["terms"][0]) == set(sum_["terms"]["contains"])
    for name in ("settings", "evidence"):
        assert {key for row in facts[name].values() for key in row} == {"value", "source", "reason"}


def test_the_conditions_that_are_documented_are_those_there_are() -> None:
    (text,) = DOCUMENTED["conditions"]["contains"]["name"]["description"]
    assert re.findall(r"V\((\w+)\)", text) == list(conditions.NAMES)


def test_what_is_to_be_stopped_and_the_margin_count(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    result = run_module(power_facts, nut_28(), monkeypatch, capsys, stop_timeouts=STOPS, margin=5)
    found = result["ansible_facts"]["durable_power"]["budget"]
    assert (found["clean_stop"]["needed"], found["durability"]["needed"]) == (1817, 28)
    assert found["clean_stop"]["state"] == "unmet"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"margin": -1}, "margin: observed -1, expected seconds, 0 or more"),
        ({"stop_timeouts": [{"unit": "x"}]}, "expected engine, unit and seconds"),
    ],
)
def test_bad_input_is_refused_by_cause(
    arguments: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert words in run_module(power_facts, nut_28(), monkeypatch, capsys, **arguments)["msg"]


def test_a_machine_that_cannot_be_observed_fails_by_cause(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = nut_28()
    del host.files["/proc/sys/kernel/random/boot_id"]
    result = run_module(power_facts, host, monkeypatch, capsys)
    assert result["msg"].startswith("This machine cannot be observed: /proc/sys/kernel/random/boot_id")


def test_a_driver_whose_name_is_no_text_is_not_known(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["driver.name"] = "caf\udce9"
    result = run_module(power_facts, host, monkeypatch, capsys)
    told = result["ansible_facts"]["durable_power"]
    assert told["upses"][0]["driver"] == "unknown"
    assert [each["state"] for each in told["conditions"] if each["name"] == "driver_real"] == ["unknown"]
