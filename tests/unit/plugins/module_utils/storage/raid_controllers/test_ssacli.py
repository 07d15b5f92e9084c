# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Smart Array's text: what belongs to the controller, what to a logical drive, and words that are unknown."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import ssacli
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers.volume import Volume

from ...fakes.captured import captured

P410I = captured("raid/ssacli_p410i.txt")
ONE = "controller in slot 0, logical drive 1"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p410i", [Volume(ONE, "600508b10000000000000000000000a1", "write_back", "good", "disabled")]),
        (
            "gen10",
            [
                Volume(ONE, "600508b10000000000000000000000b1", "write_back", "charging", "unknown"),
                Volume(
                    ONE[:-1] + "2", "600508b10000000000000000000000b2", "write_through", "charging", "unknown"
                ),
            ],
        ),
        # It fell back: safe, only slow.
        (
            "p420i_failed",
            [Volume(ONE, "600508b10000000000000000000000c1", "write_through", "failed", "disabled")],
        ),
    ],
)
def test_the_volumes_of_the_listings(name: str, expected: list[Volume]) -> None:
    assert ssacli.parse(captured(f"raid/ssacli_{name}.txt")) == expected


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        (
            "No-Battery Write Cache: Disabled",
            "No-Battery Write Cache: Enabled",
            "write_policy",
            "always_write_back",
        ),
        ("No-Battery Write Cache: Disabled", "No-Battery Write Cache: Sometimes", "write_policy", "unknown"),
        ("   No-Battery Write Cache: Disabled\n", "", "write_policy", "unknown"),
        ("Caching:  Enabled", "Caching:  Disabled", "write_policy", "write_through"),
        ("Caching:  Enabled", "Caching:  Perhaps", "write_policy", "unknown"),
        ("Cache Status: OK", "Cache Status: Temporarily Disabled", "write_policy", "write_through"),
        ("Cache Status: OK", "Cache Status: Not Configured", "write_policy", "write_through"),
        ("Cache Status: OK", "Cache Status: New Word", "write_policy", "unknown"),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: Recharging", "backup", "charging"),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: Ok", "backup", "good"),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: NOT FULLY CHARGED", "backup", "charging"),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: FAILED", "backup", "failed"),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: Not Present", "backup", "missing"),
        (
            "Battery/Capacitor Status: OK",
            "Battery/Capacitor Status: Failed (Replace Batteries)",
            "backup",
            "failed",
        ),
        ("Battery/Capacitor Status: OK", "Battery/Capacitor Status: Splendid", "backup", "unknown"),
        ("   Battery/Capacitor Status: OK\n", "", "backup", "unknown"),
        ("Battery/Capacitor Count: 1", "Battery/Capacitor Count: 0", "backup", "missing"),
        ("Drive Write Cache: Disabled", "Drive Write Cache: Enabled", "drive_caches", "enabled"),
        ("Drive Write Cache: Disabled", "Drive Write Cache: Unchanged", "drive_caches", "unknown"),
        ("600508B10000000000000000000000A1", "none", "id", ""),
        # Two lines that say different things say nothing.
        (
            "   Cache Status: OK\n",
            "   Cache Status: Failed\n   Cache Status: OK\n",
            "write_policy",
            "unknown",
        ),
        # What a port or a sensor says is not the controller's.
        ("   Cache Status: OK\n", "   Port Name: 1I\n      Cache Status: OK\n", "write_policy", "unknown"),
    ],
)
def test_each_word(old: str, new: str, field: str, value: str) -> None:
    assert old in P410I
    (found,) = ssacli.parse(P410I.replace(old, new, 1))
    assert getattr(found, field) == value


@pytest.mark.parametrize(
    "text", ["", "garbage", "Error: No controllers detected.\n", "Logical Drive: 1\n   Caching: Enabled\n"]
)
def test_without_a_controller_there_is_no_volume(text: str) -> None:
    assert ssacli.parse(text) == []


@pytest.mark.parametrize("status", ["Temporarily Disabled", "Permanently Disabled", "Not Configured"])
@pytest.mark.parametrize(
    ("without", "policy"), [("Disabled", "write_through"), ("Enabled", "unknown"), ("Odd", "unknown")]
)
def test_a_cache_that_is_off_now_and_forced_may_come_on_again(status: str, without: str, policy: str) -> None:
    text = P410I.replace("Cache Status: OK", f"Cache Status: {status}")
    (found,) = ssacli.parse(
        text.replace("No-Battery Write Cache: Disabled", f"No-Battery Write Cache: {without}")
    )
    assert found.write_policy == policy
