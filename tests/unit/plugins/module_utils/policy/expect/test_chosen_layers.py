# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`durable_layers`: what is left out is not touched, and nothing is loosened that rests on it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import chosen_layers
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from ...fakes.runs import attested, look, settled
from ...fakes.small_host import SmallHost

LAYERS = {layer for _phase, layer in plan.STEPS}


def test_without_the_variable_all_layers_are_chosen_and_the_groups_hold_each_once() -> None:
    assert chosen_layers.read(None) == LAYERS
    grouped = [layer for group in chosen_layers.GROUPS.values() for layer in group]
    assert (set(grouped), len(grouped)) == (LAYERS, len(LAYERS))
    assert chosen_layers.read(list(chosen_layers.GROUPS)) == LAYERS
    assert chosen_layers.read(["mssql", "power"]) == {"mssql", "power", "power_guard"}


@pytest.mark.parametrize("value", [[], ["mysql"], "storage", {"storage": True}, 1, [None], [["storage"]]])
def test_another_word_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match=r"durable_layers: observed .*; expected a list of engines, faircom, "):
        chosen_layers.read(value)
    assert look(SmallHost(), layers=value)["verdict"] == "blocked"


@pytest.mark.parametrize(
    ("value", "nearest"), [(["storage", "engines", "mount_option"], "mount_options"), ("storagee", "storage")]
)
def test_a_misspelt_layer_gets_the_nearest_name(value: Any, nearest: str) -> None:
    with pytest.raises(BadInput, match=rf"write_cache\. Did you mean {nearest}\?$"):
        chosen_layers.read(value)


def touched(found: dict[str, Any]) -> set[str]:
    """Return the layers of a plan."""
    return {layer for layers in found["plan"].values() for layer in layers}


@pytest.mark.parametrize("layers", [["write_cache"], ["mount_options"], ["engines"], ["storage"]])
def test_only_the_chosen_layers_are_touched_and_the_verdict_is_the_whole_host_s(layers: list[str]) -> None:
    whole, part = look(SmallHost()), look(SmallHost(), layers=layers)
    assert {"write_cache", "mount_options"} <= touched(whole)
    chosen = chosen_layers.read(layers)
    assert touched(part) == touched(whole) & chosen
    assert {change["layer"] for change in part["changes"]} == touched(part)
    assert (part["verdict"], part["why"][0].split(":")[0]) == (
        whole["verdict"],
        whole["why"][0].split(":")[0],
    )
    for row in part["settings"]:
        if row["layer"] not in chosen and row["verdict"].startswith("drift"):
            assert row["remedy"] == f"add {row['layer']} to durable_layers, then run harden_db"


def test_nothing_is_loosened_while_a_layer_that_is_left_out_is_not_safe() -> None:
    """Caches may come on once barriers flush them, and not before."""
    given = {
        "mounts": ["/srv/pgdata"],
        "overrides": {"write_cache": "enabled"},
        "attestations": [attested()],
    }
    host = settled("strict", mounts=["/srv/pgdata"])
    loosened = look(host, **given)
    assert "write_cache" in loosened["plan"]["loosen"]
    alone = look(host, **given, layers=["write_cache"])
    assert alone["plan"]["loosen"] == loosened["plan"]["loosen"]
    host.mounts["/srv/pgdata"].barrier = "off"
    bare = look(host, **given, layers=["write_cache"])
    assert (bare["plan"]["loosen"], bare["plan"]["tighten"]) == ({}, {})
    assert any("withheld until mount_options has made its part safer" in why for why in bare["why"])
    assert look(host, **given)["plan"]["tighten"]["mount_options"]


def test_what_is_only_slow_holds_nothing_back() -> None:
    given = {
        "mounts": ["/srv/pgdata"],
        "overrides": {
            "write_cache": "enabled",
            "scheduler_rotational": "bfq",
            "scheduler_solid_state": "bfq",
        },
        "attestations": [attested()],
        "layers": ["write_cache"],
    }
    host = settled("strict", mounts=["/srv/pgdata"])
    found = look(host, **given)
    slow = [row for row in found["settings"] if row["layer"] == "io_scheduler" and row["verdict"] != "ok"]
    assert slow
    assert "write_cache" in found["plan"]["loosen"]


def test_ratings_are_of_all_layers() -> None:
    whole, part = look(SmallHost(), rate=True), look(SmallHost(), rate=True, layers=["power"])
    assert part["ratings"] == whole["ratings"]
