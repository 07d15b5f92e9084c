# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adaptec's text, of both families of its controllers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import arcconf
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers.volume import Volume

from ...fakes.captured import captured

AACRAID = captured("raid/arcconf_aacraid.txt")
SMARTPQI = captured("raid/arcconf_smartpqi.txt")
ONE = "controller 1, logical device 0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aacraid", Volume(ONE, "de170000", "write_back", "good", "disabled")),
        ("asr8805", Volume(ONE, "609b0000", "write_back", "good", "enabled")),
        # Writes back, and has nothing behind its cache.
        ("zmm", Volume(ONE, "5d0a0000", "always_write_back", "missing", "disabled")),
        ("not_present", Volume(ONE, "7d300000", "always_write_back", "missing", "disabled")),
        ("smartpqi", Volume(ONE, "600508b10000000000000000000000d1", "write_through", "charging", "unknown")),
    ],
)
def test_the_volumes_of_the_listings(name: str, expected: Volume) -> None:
    assert arcconf.parse(captured(f"raid/arcconf_{name}.txt")) == [expected]


@pytest.mark.parametrize(
    ("text", "old", "new", "field", "value"),
    [
        (AACRAID, ": On when protected by battery/ZMM", ": On", "write_policy", "always_write_back"),
        (
            AACRAID,
            ": On when protected by battery/ZMM",
            ": Enabled (write-back)",
            "write_policy",
            "always_write_back",
        ),
        (AACRAID, ": On when protected by battery/ZMM", ": Off", "write_policy", "unknown"),
        (AACRAID, ": On when protected by battery/ZMM", ": On when it rains", "write_policy", "unknown"),
        (AACRAID, "Write-cache status                       : On", "x : y", "write_policy", "unknown"),
        (
            AACRAID,
            "Write-cache status                       : On",
            "Write-cache status : Off",
            "write_policy",
            "write_through",
        ),
        (
            AACRAID,
            "Write-cache status                       : On",
            "Write-cache status : Odd",
            "write_policy",
            "unknown",
        ),
        (
            AACRAID,
            "   Status                                   : Optimal",
            "   Status : Charging",
            "backup",
            "charging",
        ),
        (
            AACRAID,
            "   Status                                   : Optimal",
            "   Status : Failed",
            "backup",
            "failed",
        ),
        (
            AACRAID,
            "   Status                                   : Optimal",
            "   Status : Not Installed",
            "backup",
            "missing",
        ),
        (
            AACRAID,
            "   Status                                   : Optimal",
            "   Status : Splendid",
            "backup",
            "unknown",
        ),
        (AACRAID, "Disabled (write-through)", "Enabled (write-back)", "drive_caches", "enabled"),
        (AACRAID, "Disabled (write-through)", "Drive Specific", "drive_caches", "unknown"),
        (AACRAID, "State                              : Online", "State : Failed", "drive_caches", "unknown"),
        (AACRAID, "DE170000", "none", "id", ""),
        (SMARTPQI, ": Temporarily Disabled", ": Ok", "write_policy", "write_back"),
        (SMARTPQI, ": Not Fully Charged", ": Ok", "backup", "good"),
        (
            SMARTPQI,
            "Configured Drives                          : Default",
            "Configured Drives : Disabled",
            "drive_caches",
            "disabled",
        ),
        (
            SMARTPQI,
            "Configured Drives                          : Default",
            "Configured Drives : Enabled",
            "drive_caches",
            "enabled",
        ),
        (
            SMARTPQI,
            "Caching                                    : Enabled",
            "Caching : Odd",
            "write_policy",
            "unknown",
        ),
    ],
)
def test_each_word(text: str, old: str, new: str, field: str, value: str) -> None:
    assert old in text
    (found,) = arcconf.parse(text.replace(old, new, 1))
    assert getattr(found, field) == value


@pytest.mark.parametrize("name", ["aacraid", "asr8805", "zmm", "smartpqi", "not_present"])
@pytest.mark.parametrize("change", [str.upper, str.lower, str.title])
def test_capitals_change_nothing(name: str, change: Callable[[str], str]) -> None:
    text = captured(f"raid/arcconf_{name}.txt")
    assert [found[1:] for found in arcconf.parse(change(text))] == [
        found[1:] for found in arcconf.parse(text)
    ]


@pytest.mark.parametrize(
    ("said", "backup"),
    [
        ("Not Present", "missing"),
        ("ZMM not installed", "missing"),
        ("ZMM Not Installed", "missing"),
        ("NOT INSTALLED", "missing"),
        ("Not Supported", "missing"),
        ("Absent", "missing"),
        ("ZMM Optimal", "good"),
        ("Ready", "good"),
        ("Not Ready", "failed"),
        ("ZMM Failed", "failed"),
        ("Fatal", "failed"),
        ("Degraded", "failed"),
        ("Reconditioning", "charging"),
        ("ZMM", "unknown"),
        ("", "unknown"),
    ],
)
def test_each_state_of_a_backup(said: str, backup: str) -> None:
    text = AACRAID.replace("Status                                   : Optimal", f"Status : {said}", 1)
    assert arcconf.parse(text)[0].backup == backup


@pytest.mark.parametrize(
    ("said", "drives"),
    [
        ("Disabled (write-through)", "disabled"),
        ("Drive Specific", "unknown"),
        ("Enabled (write-back)", "enabled"),
    ],
)
def test_the_least_safe_drive_decides(said: str, drives: str) -> None:
    text = AACRAID.replace(": Ready", ": Online").replace(": Enabled (write-back)", f": {said}")
    assert text.count("Online") == 2
    assert arcconf.parse(text)[0].drive_caches == drives


@pytest.mark.parametrize(("said", "backup"), [("ZMM Optimal", "good"), ("ZMM Failed", "unknown")])
def test_two_backups_count_only_if_equal(said: str, backup: str) -> None:
    lines = AACRAID.split("\n")
    at = next(number for number, line in enumerate(lines) if "Controller Battery Information" in line)
    rule = lines[at - 1]
    zmm = [rule, "   Controller ZMM Information", rule, f"   Status : {said}"]
    assert arcconf.parse("\n".join([*lines[: at - 1], *zmm, *lines[at - 1 :]]))[0].backup == backup


@pytest.mark.parametrize(
    ("lines", "policy"),
    [
        ("Write-cache mode : Not supported", "write_through"),
        ("Write-cache mode : NOT SUPPORTED\n   Write-cache setting : Not Supported", "write_through"),
        ("Write-cache mode : Not supported\n   Write-cache setting : Enabled", "unknown"),
        ("Write-cache setting : Enabled\n   Write-cache status : On", "always_write_back"),
        ("Write-cache setting : Disabled\n   Write-cache status : Off", "write_through"),
        ("Write-cache setting : Enabled\n   Write-cache status : Off", "unknown"),
        (
            "Write-cache setting : Enabled when protected by battery/ZMM\n   Write-cache status : On",
            "write_back",
        ),
        ("Write-cache setting : Enabled", "unknown"),
    ],
)
def test_enabled_asks_for_no_battery(lines: str, policy: str) -> None:
    setting, status = (line for line in AACRAID.split("\n") if "Write-cache s" in line)
    text = AACRAID.replace(f"{setting}\n{status}", f"   {lines}")
    assert lines in text
    assert arcconf.parse(text)[0].write_policy == policy


@pytest.mark.parametrize(
    ("setting", "policy"), [("Off", "write_through"), ("On", "unknown"), ("Odd", "unknown")]
)
def test_a_cache_that_is_off_now_and_forced_may_come_on_again(setting: str, policy: str) -> None:
    text = AACRAID.replace("Write-cache status                       : On", "Write-cache status : Off")
    text = text.replace("On when protected by battery/ZMM", setting)
    assert arcconf.parse(text)[0].write_policy == policy


def test_a_forced_cache_of_smartraid() -> None:
    text = SMARTPQI.replace(": Temporarily Disabled", ": Ok").replace(
        "No-Battery Write Cache                     : Disabled", "No-Battery Write Cache : Enabled"
    )
    assert [(found.write_policy, found.backup) for found in arcconf.parse(text)] == [
        ("always_write_back", "charging")
    ]


def test_every_controller_is_asked_once() -> None:
    asked: list[tuple[str, ...]] = []

    def ask(*arguments: str) -> str:
        asked.append(arguments)
        return AACRAID.replace("Controllers found: 1", "Controllers found: 2")

    assert [found.name for found in arcconf.volumes(ask)] == [ONE, "controller 2, logical device 0"]
    assert asked == [("getconfig", number, "al", "nologs") for number in "12"]


@pytest.mark.parametrize("count", ["999999999999999999999", "0", "-3", "x"])
def test_no_number_of_controllers_asks_for_ever(count: str) -> None:
    asked: list[str] = []

    def ask(*arguments: str) -> str:
        asked.append(arguments[1])
        return f"Controllers found: {count}\n"

    assert arcconf.volumes(ask) == []
    assert 1 <= len(asked) <= arcconf.MOST


@pytest.mark.parametrize("text", ["", "garbage", "Controllers found: 0\n", "Unique Identifier : 12345678\n"])
def test_without_a_logical_device_there_is_no_volume(text: str) -> None:
    assert arcconf.parse(text) == []
