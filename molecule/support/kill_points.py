# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that die before each change in turn, on a lab machine: how they are started there, and what they left.

kill_harness.py does it on the machine, many deaths in one call; tests judge what it tells.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.archive import add_module_utils
from lab.machine import Machine
from support import truth
from support.attested import attested
from support.runs import ROOT

#: Seconds for all deaths between two profiles, on an emulated machine.
LIMIT = 1800.0
_PROGRAMS = ("kill_harness.py", "kill_state.py", "truth_script.py")
#: Profile strict, with another one for a single mount: {name of these inputs: durable_mount_profiles}.
SIDES = {
    "loose_virtio": {"/srv/faircom": "disposable"},
    "loose_scsi": {"/srv/pgdata": "disposable"},
}
#: What power_facts tells of a UPS that is all right: a stand-in, there is none on these machines.
_CONDITIONS = (
    "monitor_active",
    "monitor_enabled",
    "mode_set",
    "power_values",
    "shutdown_command",
    "powerdown_flag",
    "notify_reaches_guard",
    "driver_real",
    "status_online",
    "runtime_durability",
    "runtime_clean_stop",
)
_HOOK = "/usr/local/lib/durable-dbhost/bin/ups-notify"


@dataclass
class Way:
    """From one profile to another: the truth at its start, after each death, and once it had ended.

    `points` are the harness's: number, killed_before, made, truth, owed, seconds; `end`, which has `ended`, is that of a run
    without a stop.
    `booted` is the truth once the mounts were made again from fstab, `differs` in what the machine was then
    another than one that has had the goal's profile all along.
    """

    points: list[dict[str, Any]]
    end: dict[str, Any]
    booted: dict[str, Any]
    differs: list[str]


class Deaths:
    """The harness on one machine. `managed` is {mount point: serial of the disk below it}."""

    def __init__(self, machine: Machine, managed: dict[str, str], scratch: Path) -> None:
        self.machine = machine
        self.managed = managed
        self.scratch = scratch

    def install(self, profiles: tuple[str, ...], disks: dict[str, str]) -> None:
        """Put policy, layers and harness on the machine as the package durable; `disks` is {serial: id in reports}."""
        archive = self.scratch / "durable.tar"
        with tarfile.open(archive, "w") as tar:
            add_module_utils(tar, "durable")
            for name in _PROGRAMS:
                tar.add(ROOT / "molecule/support" / name, f"durable/{name}")
            for profile in profiles:
                text = json.dumps(given(profile, self.managed, disks)).encode()
                member = tarfile.TarInfo(f"{profile}.json")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text))
        self.machine.put(archive, "/root/durable.tar")
        # Synced, because a power cycle keeps only what reached the disk.
        self.machine.run(["sh", "-c", "tar -C /root -xf /root/durable.tar && sync"])

    def enforce(self, profile: str, kill_before: int = 0) -> dict[str, Any]:
        """Bring the machine to a profile, dying before a change; return what was told last."""
        return self._told("enforce", profile, _now(), str(kill_before))[-1]

    def learn(self, profiles: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        """Let the machine learn what it is at each profile, booted; {profile: first, second, truth}."""
        told = {line["profile"]: line for line in self._told("learn", _now(), *profiles)}
        self.machine.run(["sync"])
        return told

    def way(self, start: str, goal: str) -> Way:
        """Die before each change from one profile to another."""
        *points, end, last = self._told("points", start, goal, _now())
        return Way(points, end, last["booted"], last["differs"])

    def anew(self, start: str, goal: str) -> list[dict[str, Any]]:
        """Die before each change from one profile to another, each time in a run from the start; the last comes to its end."""
        return self._told("again", start, goal, _now())

    def undone(self, start: str, goal: str, first: int) -> list[dict[str, Any]]:
        """Die before each change from one profile to another, from the first one on, and let the rollback timer put the
        machine back."""
        return self._told("undone", start, goal, _now(), str(first))

    def restore(self, profile: str) -> None:
        """Bring the machine back to a profile, on disk too."""
        self._run("restore", profile)
        self.machine.run(["sync"])

    def truth(self) -> dict[str, Any]:
        """Return the truth of the machine."""
        return truth.read(self.machine)

    def weaknesses(self, seen: dict[str, Any]) -> set[str]:
        """Return the weaknesses in a truth."""
        return truth.weaknesses(seen, self.managed)

    def _told(self, *words: str) -> list[dict[str, Any]]:
        done = self._run(*words)
        assert done.stdout, f"the harness said nothing: {done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = ["sh", "-c", f"cd /root && exec python3 -m durable.kill_harness {' '.join(words)}"]
        return self.machine.run(argv, check=words[0] != "enforce", timeout=LIMIT)


def given(profile: str, managed: dict[str, str], disks: dict[str, str]) -> dict[str, Any]:
    """Return what the inventory says of a host with a profile, and the facts of its UPS."""
    shipped = yaml.safe_load((ROOT / "playbooks/vars/profiles.yml").read_text())
    of_host = ("host_honours_flush", "virtual_host_power", "ups_rehearsed", "plug_pulled")
    words = [attested(claim) for claim in of_host]
    words += [attested("power_loss_protection", disks[serial]) for serial in managed.values()]
    inputs = {
        "profile": "strict" if profile in SIDES else profile,
        "mount_profiles": SIDES.get(profile, {}),
        "shipped": shipped["durable_shipped_profiles"],
        "own": {},
        "overrides": {},
        "mounts": list(managed),
        "accept_data_loss": profile == "disposable" or profile in SIDES,
        "attestations": {"durable_attestations": words},
    }
    return {"inputs": inputs, "power": _power(is_used=profile == "ups")}


def _power(is_used: bool) -> dict[str, Any]:
    """Return the facts of a UPS, all of them well; the monitor tells a guard where one is wanted.

    Its configuration is not part of these runs: it is as wanted before.
    """
    terms: list[dict[str, Any]] = [
        {"name": name, "seconds": seconds, "source": "a stand-in"}
        for name, seconds in (("poll", 5.0), ("notify", 1.0), ("margin", 60.0))
    ]
    needed = sum(term["seconds"] for term in terms)
    budget = {"needed": needed, "available": 3600.0, "state": "met", "terms": terms}
    told = {"source": "the lab", "reason": None}
    notify = {"notify_command": {**told, "value": _HOOK}, "notify_flags": {**told, "value": "exec"}}
    return {
        "monitor": "nut",
        "mode": "standalone",
        "upses": [],
        "timing": {},
        "budget": {"durability": budget, "clean_stop": budget},
        "conditions": [
            {
                "name": name,
                "target": "host",
                "state": "met",
                "evidence": "a stand-in",
                "fixes": [],
            }
            for name in _CONDITIONS
        ],
        "settings": notify if is_used else {},
        "evidence": {},
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
