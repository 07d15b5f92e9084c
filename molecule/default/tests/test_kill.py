# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed before any single change, on the way from any profile to any other, a machine is at
least as safe as the weaker of where it came from and where it goes."""

from __future__ import annotations

import io
import json
import tarfile
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import truth
from support.layout import TARGETS
from support.runs import ROOT

from lab.archive import add_module_utils
from lab.machine import Machine

PROFILES = ("strict", "flush", "disposable")
#: SATA below ext4 and virtio below XFS: between them every sort of step there is.
MANAGED = {target: TARGETS[target] for target in ("/srv/pgdata", "/srv/faircom")}


def inputs_for(profile: str) -> dict[str, Any]:
    """Return what the inventory would say."""
    shipped = yaml.safe_load((ROOT / "playbooks/vars/profiles.yml").read_text())
    return {
        "profile": profile,
        "shipped": shipped["durable_shipped_profiles"],
        "own": {},
        "overrides": {},
        "mounts": list(MANAGED),
        "accept_data_loss": True,
        "attestations": {
            "durable_attestations": [
                {
                    "claim": "host_honours_flush",
                    "target": "host",
                    "by": "the lab",
                    "reason": "a machine of the lab",
                    "expires": time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400)),
                }
            ]
        },
    }


def install(machine: Machine, scratch: Path) -> None:
    """Put policy, layers and harness on the machine as the package durable."""
    archive = scratch / "durable.tar"
    with tarfile.open(archive, "w") as tar:
        add_module_utils(tar, "durable")
        tar.add(ROOT / "molecule/support/kill_harness.py", "durable/kill_harness.py")
        for profile in PROFILES:
            text = json.dumps(inputs_for(profile)).encode()
            member = tarfile.TarInfo(f"{profile}.json")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    machine.put(archive, "/root/durable.tar")
    # Synced, because a power cycle keeps only what reached the disk.
    machine.run(["sh", "-c", "tar -C /root -xf /root/durable.tar && sync"])


def enforce(machine: Machine, profile: str, kill_before: int = 0) -> str:
    """Run the harness; return what it printed."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    script = f"cd /root && exec python3 -m durable.kill_harness {profile}.json {now} {kill_before}"
    return machine.run(["sh", "-c", script], check=False).stdout


@pytest.fixture(scope="module")
def states(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Snapshots of the machine at each profile, and its weaknesses there."""
    install(machine, tmp_path_factory.mktemp("kill"))
    found = {}
    for profile in ("flush", "disposable"):
        assert json.loads(enforce(machine, profile))["changes"] == []
        if profile == "disposable":
            machine.reset()  # data=writeback waits for a mount
        found[profile] = truth.weaknesses(truth.read(machine), MANAGED)
        machine.save(profile)
    machine.load("flush")
    assert json.loads(enforce(machine, "strict"))["changes"] == []
    found["strict"] = truth.weaknesses(truth.read(machine), MANAGED)
    machine.save("strict-here")
    return found


def test_the_profiles_differ_as_much_as_they_should(states: dict[str, set[str]]) -> None:
    assert states["strict"] == set()
    assert any("caches" in weakness for weakness in states["flush"])
    assert not any("barriers" in weakness for weakness in states["flush"])
    assert "/srv/pgdata without barriers over a cache" in states["disposable"]
    assert "/srv/pgdata writeback" in states["disposable"]


@pytest.mark.parametrize(("start", "goal"), list(permutations(PROFILES, 2)))
def test_killed_at_any_step_it_is_as_safe_as_the_weaker_end(
    machine: Machine, states: dict[str, set[str]], start: str, goal: str
) -> None:
    snapshot = "strict-here" if start == "strict" else start
    allowed = states[start] | states[goal]
    killed = 0
    while True:
        machine.load(snapshot)
        said = enforce(machine, goal, killed + 1)
        seen = truth.weaknesses(truth.read(machine), MANAGED)
        assert seen <= allowed, f"{said}: {sorted(seen - allowed)}"
        if not said.startswith("killed before"):
            break
        print(said.strip())
        killed += 1
    ended = json.loads(said)
    assert killed == len(ended["made"]) > 0
    assert ended["changes"] == []


def test_a_power_cut_in_the_middle_of_tightening_boots_and_the_next_run_ends_it(
    machine: Machine, states: dict[str, set[str]]
) -> None:
    machine.load("disposable")
    steps = len(json.loads(enforce(machine, "strict"))["made"])
    machine.load("disposable")
    assert enforce(machine, "strict", steps // 2).startswith("killed before")
    machine.cut()
    machine.boot()
    seen = truth.weaknesses(truth.read(machine), MANAGED)
    assert seen <= states["disposable"] | states["strict"]
    assert json.loads(enforce(machine, "strict"))["changes"] == []
