# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text of a host's storage and power facts is shown as this collection's advice: it is in quotes, or not shown."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect as storage_of
from ansible_collections.durable.dbhost.plugins.module_utils.ups.conditions import NAMES

from ..module_utils.fakes.runs import NOW, inputs, settled
from ..module_utils.fakes.told_power import WORDS, condition, leased, power
from ..module_utils.policy.assess.test_every_fact_counts import PG, nodes
from ..module_utils.test_captures import CAPTURES, facts_of
from .advice import expect_quoted

MONITOR = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}


@pytest.mark.parametrize(("guard", "state"), [("loose", "met"), ("failed", "unmet"), ("tight", "unknown")])
def test_a_text_of_the_power_facts_is_never_advice(guard: str, state: str) -> None:
    storage = {**storage_of(settled("strict", mounts=[PG]), NOW), "leased": "yes"}
    asked = {"monitor": MONITOR, "shutdown_command": "/sbin/shutdown -h now"}
    given = inputs("ups", mounts=[PG], attestations=list(WORDS), ups=asked)
    facts = power(*(condition(name, state) for name in NAMES), guard=leased(guard))
    facts["upses"][0]["reason"] = "x"
    if state == "unknown":
        for row in facts["settings"].values():
            row.update(value="unknown", reason="x")
    assert expect_quoted(facts, nodes(facts), lambda: assess(given, storage, NOW, None, facts)) > 3  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", [None, "strict", "unsafe"])
def test_a_text_of_the_storage_facts_is_never_advice(profile: Any) -> None:
    kinds: set[str] = set()
    shown = 0
    for capture in CAPTURES:
        facts = facts_of(capture)
        given = inputs(profile, mounts=[mount["target"] for mount in facts["mounts"]][:8])
        paths = {
            ".".join("*" if isinstance(part, int) else part for part in path): path for path in nodes(facts)
        }
        new = [path for kind, path in paths.items() if kind not in kinds]
        kinds.update(paths)
        shown += expect_quoted(facts, new, lambda: assess(given, facts, facts["time"]))  # noqa: B023
    assert shown > 3
