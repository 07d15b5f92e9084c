# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: one clear message, exit code 2, and a machine on which nothing changed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import truth
from support.layout import cache_on, id_of
from support.runs import ROOT, Playbooks, Run, before_call, connection, inventory

from lab.machine import Machine

SCENARIO = Path(__file__).resolve().parents[1]
GOOD = {"claim": "host_honours_flush", "target": "host", "by": "a", "reason": "b"}
SOON = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))

#: It is a state of the host, not bad input.
VANISHED = "mount that does not exist"
#: name: (variables, words of the message: what was seen, what was wanted)
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown profile": (
        {"durable_profile": "stritc"},
        ("'stritc'", "disposable, flush, protected, strict, ups"),
    ),
    VANISHED: (
        {"durable_mounts": ["/srv/nowhere"]},
        ("/srv/nowhere", "nothing is mounted"),
    ),
    "contradictory override": (
        {"durable_overrides": {"barrier": "off"}},
        ("barrier 'off' with write_cache 'disabled' contradict", "set barrier 'on'"),
    ),
    "own profile that shadows a shipped one": (
        {"durable_profiles": {"strict": {}}},
        ("strict, which this collection ships",),
    ),
    "a verdict that does not exist": ({"durable_fail_on": ["at-risk"]}, ("'at-risk'", "at_risk, blocked")),
    "text for a boolean": ({"durable_accept_data_loss": "yes please"}, ("expected true or false",)),
}


@pytest.fixture(scope="module")
def exposed(machine: Machine) -> Machine:
    """The machine with something to mend, so that "nothing changed" means something."""
    machine.run(["mount", "-o", "remount,barrier=0", "/srv/pgdata"])
    return machine


def state_of(machine: Machine) -> dict[str, Any]:
    """Return all that a run could have changed."""
    seen = truth.read(machine)
    for disk in seen["disks"].values():
        del disk["flushes"]  # the machine's own journal flushes its disk too
    return {**seen, "fstab": machine.run(["cat", "/etc/fstab"]).stdout}


@pytest.fixture(scope="module")
def refused(
    exposed: Machine, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, dict[str, Any], dict[str, Any]]:
    """One run over the machine under a name for each case, with that case's variables, and its state before and after.

    A run ends with 2 when any host has failed; which ones, its recap says.
    """
    scratch = tmp_path_factory.mktemp("refused")
    hosts = {
        name_of(case): {**connection(exposed), **variables} for case, (variables, _words) in CASES.items()
    }
    cases = inventory(scratch / "cases.yml", {"databases": {"hosts": hosts}})
    playbooks = Playbooks([SCENARIO / "inventory/hosts.yml", cases], scratch, {})
    playbooks.limit = "databases:!dbhost"
    before = state_of(exposed)
    run = playbooks.run("harden-db")
    return run, before, state_of(exposed)


def name_of(case: str) -> str:
    """Return the name that the machine has for a case."""
    return case.replace(" ", "-")


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named_and_changes_nothing(
    refused: tuple[Run, dict[str, Any], dict[str, Any]], case: str
) -> None:
    run, before, after = refused
    name, (_variables, words) = name_of(case), CASES[case]
    assert (run.code, run.recap[name]["failed"]) == (2, 1)
    assert run.reports[name]["verdict"] == ("unknown" if case == VANISHED else "blocked")
    (message,) = run.reports[name]["why"]
    assert all(word in message for word in words), message
    assert run.recap[name]["changed"] == 0
    assert after == before


def test_an_unquoted_date_in_the_inventory_is_named(exposed: Machine, playbooks: Playbooks) -> None:
    inventory = playbooks.directory / "inventory.yml"
    fields = "".join(f", {key}: {value}" for key, value in GOOD.items())
    inventory.write_text(
        "databases: {hosts: {dbhost: {durable_attestations_host: [{expires: " + SOON + fields + "}]}}}\n"
    )
    playbooks.inventories.append(inventory)
    before = state_of(exposed)
    run = playbooks.run("harden-db")
    assert run.code == 2
    (message,) = run.reports["dbhost"]["why"]
    assert "unquoted date" in message
    assert f'expires: "{SOON}"' in message
    assert state_of(exposed) == before


def test_a_malformed_fstab_line_is_named_and_left(exposed: Machine, playbooks: Playbooks) -> None:
    exposed.run(
        ["sh", "-c", "cp /etc/fstab /root/fstab; echo 'LABEL=x /srv/x ext4 defaults 0 two' >> /etc/fstab"]
    )
    before = state_of(exposed)
    run = playbooks.run("harden-db")
    assert run.code == 2
    (message,) = run.reports["dbhost"]["why"]
    assert "/etc/fstab line" in message
    assert "a fifth or sixth field that is no number" in message
    assert state_of(exposed) == before
    exposed.run(["sh", "-c", "cat /root/fstab > /etc/fstab"])


def test_a_disk_that_vanishes_mid_run_is_named_and_the_others_are_made_safer(
    exposed: Machine, playbooks: Playbooks
) -> None:
    # Two caches to switch off; the first disk leaves once the facts have been taken.
    switch_on = f"{cache_on('SCSI0002')}; {cache_on('SCSI0003')}"
    exposed.run(["sh", "-c", f"mount -o remount,barrier=1 /srv/pgdata; {switch_on}"])
    lab = f"cd {ROOT} && {sys.executable} -m lab unplug {exposed.name} SCSI0002"
    before_call(playbooks, "dbhost", 2, f"({lab}) >&2")
    run = playbooks.run("harden-db")
    assert run.code == 2
    assert f"{id_of('SCSI0002')}: no disk of that id is there" in run.details
    assert run.reports["dbhost"]["verdict"] not in ("durable", "attested", "unverified")
    assert truth.read(exposed)["disks"]["SCSI0003"]["cache"] == "off"
