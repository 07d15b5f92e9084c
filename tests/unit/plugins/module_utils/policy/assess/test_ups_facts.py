# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy takes the facts as they are collected, not only as tests write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts import power_fixes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.ups import (
    CONDITIONS,
    nothing_known,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect as storage
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.ups import findings
from ansible_collections.durable.dbhost.plugins.module_utils.ups.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.ups.conditions import NAMES

from ...fakes.power_host import (
    PowerHost,
    nut_27,
    nut_28,
    with_apcupsd,
)
from ...fakes.runs import NOW, inputs, settled
from ...fakes.told_power import (
    HOOK,
    WORDS,
    condition,
    leased,
    power,
)

PG = ("/srv/pgdata",)
STOPS = [{"engine": "postgresql", "unit": "postgresql@15-main.service", "seconds": "60"}]


def test_the_conditions_have_the_same_names() -> None:
    assert set(CONDITIONS) == set(NAMES)


@pytest.mark.parametrize("make", [nut_28, nut_27, with_apcupsd])
def test_the_facts_have_the_shape_that_tests_of_the_policy_write(make: Callable[[], PowerHost]) -> None:
    collected, written = collect(make(), NOW, STOPS), power(guard=leased())
    assert set(collected) == set(written)
    for part in ("upses", "conditions"):
        assert set(written[part][0]) <= set(collected[part][0])
    assert set(collected["budget"]["clean_stop"]) == set(written["budget"]["clean_stop"])
    assert set(collected["guard"]) == set(written["guard"])
    assert set(written["settings"]) <= set(collected["settings"])


@pytest.mark.parametrize("make", [nut_28, nut_27, with_apcupsd])
def test_collected_facts_of_a_ups_that_is_all_right_lead_to_a_lease(make: Callable[[], PowerHost]) -> None:
    collected = collect(make(), NOW, STOPS)
    unmet = [each for each in collected["conditions"] if each["state"] != "met"]
    assert unmet == []
    given = inputs("ups", attestations=list(WORDS), mounts=PG)
    found = assess(given, storage(settled("ups", mounts=PG), NOW), NOW, None, collected)
    assert found["plan"]["loosen"] == {"power_guard": [{"mount": "/srv/pgdata"}]}
    assert found["plan"]["tighten"] == {}
    needed = found["lease"]["needed"]
    assert needed["clean_stop"] > needed["durability"] > 60


@pytest.mark.parametrize("make", [nut_28, with_apcupsd])
def test_the_layer_takes_what_is_planned_for_a_monitor_that_tells_nobody(
    make: Callable[[], PowerHost],
) -> None:
    host = make()
    for path, text in host.files.items():
        if isinstance(text, str) and HOOK in text and path != HOOK:
            host.files[path] = text.replace(HOOK, "/usr/bin/true")
            host.modes[path] = 0o640
    collected = collect(host, NOW, STOPS)
    given = inputs("ups", attestations=list(WORDS), mounts=PG, ups={"shutdown_command": "/sbin/poweroff"})
    found = assess(given, storage(settled("ups", mounts=PG), NOW), NOW, None, collected)
    targets = found["plan"]["tighten"]["power"]
    assert {"notify_command": HOOK} in targets
    assert [layer.target_of(target) for target in targets] == targets
    assert list(found["plan"]["loosen"]) == ["power_guard"]
    work = layer.plan(host, [layer.target_of(target) for target in targets])
    assert work.edits
    assert {edit.path for edit in work.edits} <= set(found["files"])


def test_a_monitor_that_began_before_its_file_was_changed_is_started_again_by_the_layer() -> None:
    host = nut_28()
    host.changed["/etc/nut/upsmon.conf"] = 10
    collected = collect(host, NOW, STOPS)
    (unmet,) = [each for each in collected["conditions"] if each["state"] != "met"]
    assert (unmet["name"], unmet["state"]) == ("notify_reaches_guard", "unmet")
    assert (
        unmet["evidence"] == "nut-monitor.service: /etc/nut/upsmon.conf was changed after the process started"
    )
    found = assess(
        inputs("ups", attestations=list(WORDS), mounts=PG),
        storage(settled("ups", mounts=PG), NOW),
        NOW,
        None,
        collected,
    )
    assert {"notify_command": HOOK} in found["plan"]["tighten"]["power"]


def test_a_monitor_of_which_nobody_knows_when_it_began_is_not_known_to_wake_the_guard() -> None:
    host = nut_28()
    del host.files["/proc/812/stat"]
    (unmet,) = [each for each in collect(host, NOW, STOPS)["conditions"] if each["state"] != "met"]
    assert (unmet["name"], unmet["state"]) == ("notify_reaches_guard", "unknown")


@pytest.mark.parametrize(
    "attack",
    [lambda host: host.changed.update({"/etc/nut": 10}), lambda host: setattr(host, "noted_boot", 7600.0)],
    ids=["its directory was exchanged", "the clock was an hour slow"],
)
def test_a_monitor_that_may_have_read_another_file_is_not_known_to_wake_the_guard(
    attack: Callable[[PowerHost], object],
) -> None:
    host = nut_28()
    attack(host)
    (unmet,) = [each for each in collect(host, NOW, STOPS)["conditions"] if each["state"] != "met"]
    assert unmet["name"] == "notify_reaches_guard"
    assert unmet["state"] in ("unmet", "unknown")


def test_an_observation_without_a_reason_is_no_observation() -> None:
    disks = storage(settled("ups", mounts=PG), NOW)
    collected = {**nothing_known(NOW, "x"), "boot_id": disks["boot_id"], "evidence": {"observation": 3}}
    found = assess(inputs("ups", attestations=list(WORDS), mounts=PG), disks, NOW, None, collected)
    assert found["verdict"] == "unknown"
    assert any("durable_power.evidence: observed" in why for why in found["why"]), found["why"]


def test_each_fix_of_the_closed_list_has_one_sentence() -> None:
    assert set(findings.FIXES) == set(power_fixes.PARAMETERS)


@pytest.mark.parametrize("name", power_fixes.PARAMETERS)
def test_each_value_of_a_fix_is_in_its_sentence(name: str) -> None:
    parameters = {each: f"<{each}>" for each in power_fixes.PARAMETERS[name]}
    text = findings.fix_text([{"fix": name, "parameters": parameters}])
    assert text and "{" not in text
    assert all(value in text for value in parameters.values())


@pytest.mark.parametrize(
    "fix",
    [
        "run this",
        {"fix": "run this", "parameters": {}},
        {"fix": "start_unit", "parameters": {}},
        {"fix": "start_unit", "parameters": {"unit": 3}},
        {"fix": "start_unit", "parameters": {"unit": "x.service", "then": "run this"}},
        {"fix": "start_unit", "parameters": {"unit": "x.service"}, "text": "run this"},
        {"fix": ["start_unit"], "parameters": {"unit": "x.service"}},
        {"fix": "start_unit", "parameters": {"unit": "x.service; run this"}},
        {"fix": "serve_status", "parameters": {"path": "/x", "port": "1; run this"}},
    ],
)
def test_a_fix_outside_the_closed_list_makes_the_power_facts_unreadable(fix: Any) -> None:
    disks = storage(settled("ups", mounts=PG), NOW)
    reported = power(condition("monitor_active", "unmet", fixes=[fix]), boot_id=disks["boot_id"])
    found = assess(inputs("ups", attestations=list(WORDS), mounts=PG), disks, NOW, None, reported)
    assert found["verdict"] == "unknown"
    assert any("conditions[0].fixes: observed" in why for why in found["why"]), found["why"]
    assert "run this" not in " ".join(reason["fix"] for reason in found["reasons"])
