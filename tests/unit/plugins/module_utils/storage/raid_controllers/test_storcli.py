# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MegaRAID's JSON: every word that is known, and none that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import storcli
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers.volume import Volume

from ...fakes.captured import captured

VALL, CALL, BBU, CV = (captured(f"raid/storcli_{name}.json") for name in ("vall", "call", "bbu", "cv"))


def changed(text: str, change: Callable[[dict[str, Any]], object]) -> str:
    """Return an answer whose first controller says something else."""
    whole = json.loads(text)
    change(whole["Controllers"][0])
    return json.dumps(whole)


def battery(**properties: str) -> str:
    """Return the answer of a controller with a battery."""
    rows = [{"Property": name.replace("_", " "), "Value": value} for name, value in properties.items()]
    status = {"Controller": 0, "Status": "Success"}
    data = {"BBU_Info": rows[:1], "BBU_Firmware_Status": rows[1:]}
    return json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]})


def test_the_volumes_of_the_listing() -> None:
    assert storcli.parse(VALL, CALL, BBU, CV) == [
        Volume("/c0/v0", "600605b000000000aaaa000000000000", "write_back", "good", "disabled"),
        Volume("/c0/v1", "600605b000000000aaaa000000000001", "write_through", "good", "unknown"),
        Volume("/c0/v2", "600605b000000000aaaa000000000002", "always_write_back", "good", "enabled"),
    ]


@pytest.mark.parametrize(
    ("cache", "policy"),
    [
        ("RWBD", "write_back"),
        ("NRWBC", "write_back"),
        ("RaWBD", "write_back"),
        ("WB", "write_back"),
        ("RWTD", "write_through"),
        ("NRWTD", "write_through"),
        # Read ahead, always write back: not "RA" and write back.
        ("RAWBD", "always_write_back"),
        ("NRAWBD", "always_write_back"),
        ("RaAWBC", "always_write_back"),
        ("RFWBD", "always_write_back"),
        ("NRFWBD", "always_write_back"),
        ("RXWBD", "unknown"),
        ("RWBDX", "unknown"),
        ("wb", "unknown"),
        ("-", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_write_policy(cache: Any, policy: str) -> None:
    text = changed(VALL, lambda said: said["Response Data"]["/c0/v0"][0].update(Cache=cache))
    assert storcli.parse(text, CALL, BBU, CV)[0].write_policy == policy


@pytest.mark.parametrize("setting", ["Always Write Back", "AlwaysWriteBack", "Force WriteBack", "AWB", "FWB"])
@pytest.mark.parametrize("cache", ["RWTD", "RWBD"])
def test_what_is_to_write_back_always_and_does_not_now_may_do_so_again(setting: str, cache: str) -> None:
    def change(said: dict[str, Any]) -> None:
        said["Response Data"]["VD0 Properties"]["Write Cache(initial setting)"] = setting
        said["Response Data"]["/c0/v0"][0]["Cache"] = cache

    assert storcli.parse(changed(VALL, change), CALL, BBU, CV)[0].write_policy == "unknown"


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Enabled", "enabled"),
        ("Disabled", "disabled"),
        ("Disk's Default", "unknown"),
        ("Off", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_caches_of_the_disks(said: Any, word: str) -> None:
    change = {"Disk Cache Policy": said}
    text = changed(VALL, lambda row: row["Response Data"]["VD0 Properties"].update(change))
    assert storcli.parse(text, CALL, BBU, CV)[0].drive_caches == word


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"Battery_State": "Optimal"}, "good"),
        ({"Battery_State": "Optimal", "Learn_Cycle_Active": "No", "Battery_Pack_Missing": "No"}, "good"),
        ({"Battery_State": "Optimal", "Learn_Cycle_Active": "Yes"}, "charging"),
        ({"Battery_State": "Optimal", "Battery_Replacement_required": "Yes"}, "failed"),
        ({"Battery_State": "Optimal", "Replacement_required": "Yes"}, "failed"),
        ({"Battery_State": "Optimal", "Remaining_Capacity_Low": "Yes"}, "failed"),
        ({"Battery_State": "Optimal", "No_space_to_cache_offload": "Yes"}, "failed"),
        ({"Battery_State": "Optimal", "Pack_is_about_to_fail_&_should_be_replaced": "Yes"}, "failed"),
        ({"Battery_State": "Optimal", "Battery_Pack_Missing": "Yes"}, "missing"),
        ({"Battery_State": "Optimal", "Replacement_required": "Perhaps"}, "unknown"),
        ({"Battery_State": "Learning"}, "charging"),
        ({"Battery_State": "Charging"}, "charging"),
        ({"Battery_State": "Degraded"}, "failed"),
        ({"Battery_State": "Failed", "Learn_Cycle_Active": "Yes"}, "failed"),
        ({"Battery_State": "Splendid"}, "unknown"),
        ({"Battery_State": ""}, "unknown"),
        ({"Type": "BBU"}, "unknown"),
    ],
)
def test_the_battery(properties: dict[str, str], word: str) -> None:
    assert storcli.parse(VALL, battery(**properties))[0].backup == word


@pytest.mark.parametrize(
    ("hardware", "word"), [("Absent", "missing"), ("Present", "unknown"), (None, "unknown")]
)
def test_a_controller_without_a_battery_says_so_in_its_hardware(hardware: Any, word: str) -> None:
    text = changed(
        CALL,
        lambda said: said["Response Data"].update({"Cachevault_Info": [], "HwCfg": {"BBU": hardware}}),
    )
    assert storcli.parse(VALL, text, BBU)[0].backup == word


@pytest.mark.parametrize(
    ("hardware", "word"),
    [
        ({"Energy Pack": "Absent"}, "missing"),
        ({"Energy Pack": "ABSENT"}, "missing"),
        ({"energy pack": "absent"}, "missing"),
        ({"Energy Pack": "Present"}, "unknown"),
        # One that is there, and one that is not.
        ({"Energy Pack": "Present", "BBU": "Absent"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_controller_of_hpe_has_an_energy_pack(hardware: Any, word: str) -> None:
    text = changed(
        CALL, lambda said: said["Response Data"].update({"Cachevault_Info": [], "HwCfg": hardware})
    )
    assert storcli.parse(VALL, text, BBU)[0].backup == word


@pytest.mark.parametrize("section", ["Energy Pack Info", "Energy_Pack_Info"])
@pytest.mark.parametrize("key", ["Status", "State"])
@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("Optimal", "good"),
        ("OPTIMAL", "good"),
        ("Critical", "failed"),
        ("Degraded", "failed"),
        ("Charging", "charging"),
        ("Absent", "missing"),
        ("New Word", "unknown"),
    ],
)
def test_the_state_of_an_energy_pack(section: str, key: str, state: str, word: str) -> None:
    row = {"Type": "Supercap", "SubType": "FBU345", key: state}
    text = changed(
        CALL,
        lambda said: said["Response Data"].update(
            {"Cachevault_Info": [], "HwCfg": {"Energy Pack": "Present"}, section: [row]}
        ),
    )
    assert storcli.parse(VALL, text, BBU)[0].backup == word


def test_of_two_answers_about_one_battery_the_worse_counts() -> None:
    failed = changed(CV, lambda said: said["Response Data"]["Cachevault_Info"][2].update(Value="Failed"))
    assert {found.backup for found in storcli.parse(VALL, CALL, BBU, failed)} == {"failed"}


def test_the_battery_of_another_controller_is_not_its_own() -> None:
    other = changed(CALL, lambda said: said["Command Status"].update(Controller=1))
    assert {found.backup for found in storcli.parse(VALL, other)} == {"unknown"}


def test_a_controller_that_failed_to_answer_has_no_volumes() -> None:
    text = changed(VALL, lambda said: said["Command Status"].update(Status="Failure"))
    assert storcli.parse(text, CALL) == []


@pytest.mark.parametrize(
    "answer", ["", "[]", "{}", '{"Controllers": 3}', "garbage", '{"Controllers": [', "NaN"]
)
def test_what_is_no_answer_is_refused(answer: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        storcli.parse(answer)
    with pytest.raises(ValueError, match=r"."):
        storcli.parse(VALL, answer)


@pytest.mark.parametrize(
    "answer", ['{"Controllers": [3, null, {"Command Status": {"Status": "Success"}, "Response Data": 7}]}']
)
def test_rows_of_another_form_are_passed_over(answer: str) -> None:
    assert storcli.parse(answer, answer) == []
