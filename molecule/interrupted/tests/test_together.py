# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs at once, from two controllers and to two profiles: their steps never mix, and each report is true."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.runs import Playbooks, Run

from lab.machine import Machine

SCENARIO = Path(__file__).resolve().parents[1]
#: As often as DBHOST_LAB_ROUNDS says.
ROUNDS = int(os.environ.get("DBHOST_LAB_ROUNDS", "3"))
#: What a run says that has changed nothing, because another one did.
NOTHING = "nothing was changed by this"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_two_runs_at_once(machine: Machine, tmp_path: Path, number: int) -> None:
    def run(profile: str) -> Run:
        own = tmp_path / profile
        own.mkdir()
        playbooks = Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], own, {})
        return playbooks.run("harden-db", variables={"durable_profile": profile})

    with ThreadPoolExecutor(2) as both:
        runs = dict(zip(("strict", "flush"), both.map(run, ("strict", "flush"))))
    settled = {}
    for profile, done in runs.items():
        report = done.reports[machine.name]
        if report["error"]:
            assert NOTHING in report["error"]
            assert {change["state"] for change in report["changes"]} <= {"not_begun"}
        elif done.code == 0:
            settled[profile] = report
    assert settled, "neither run has reached its profile"
    last = Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
    now = {
        profile: last.run("harden-db", "--check", variables={"durable_profile": profile}).code
        for profile in runs
    }
    # It is one of the two, whole.
    assert sorted(now.values()) == [0, 2], now
