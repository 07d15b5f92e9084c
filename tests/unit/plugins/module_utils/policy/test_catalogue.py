# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that other tests produce as rows or facts alone, as reasons of a host with their ids."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import FAULTS
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, inputs, look, settled
from ..fakes.small_host import SmallHost
from .test_engines import database, instance, judged

PG = ["/srv/pgdata"]


def ids(found: dict[str, Any]) -> dict[str, list[str]]:
    """Return {id: targets} of the reasons of a host."""
    return {each["id"]: each["targets"] for each in found["reasons"]}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("state", "verdict"), [("refused", "drifted"), ("unknown", "unknown")])
def test_each_fault_of_the_next_boot_is_a_finding(fault: str, state: str, verdict: str) -> None:
    storage = copy.deepcopy(collect(settled("strict", mounts=PG), NOW))
    storage["boot_faults"] = [
        {
            "source": "/etc/fstab line 3",
            "target": PG[0],
            "fstype": "ext4",
            "boot": "required",
            "fault": fault,
            "state": state,
            "why": "it cannot be",
            "remedy": "correct it",
            "options": [],
        }
    ]
    found = assess(inputs(mounts=PG), storage, NOW)
    assert ids(found)[f"setting.mount_options.{fault}"] == PG
    assert found["verdict"] == verdict


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
def test_a_library_of_the_next_start_is_a_finding_of_its_engine(engine: str) -> None:
    coming = {"value": "/usr/lib/libeatmydata.so", "source": "/etc/ld.so.preload", "reason": None}
    given = {"databases": [database()]} if engine == "firebird" else {}
    found = judged(instance(engine, evidence={"next_preloads": coming}, **given))
    assert f"setting.{engine}.preloads" in ids(found)
    assert found["verdict"] not in ("durable", "attested")


def test_a_host_on_which_nothing_can_be_rated_says_so() -> None:
    host = SmallHost()
    host.mounts.clear()
    assert "host.unrated" in ids(look(host, None, mounts=None))
