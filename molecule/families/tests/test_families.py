# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebuilt layouts of distribution families, from the first audit to the release: each gives the verdicts of Debian's.

The tests run in this order, and each continues from the state that the one before it left.
"""

from __future__ import annotations

import re
import time
from typing import Any

import yaml
from support import stand_ins, truth
from support.attested import attested
from support.devices import sh
from support.families import MSSQL, Family
from support.runs import Playbooks, Run

from ansible_collections.durable.dbhost.plugins.module_utils.capture import capture, recording
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from lab.machine import Machine

#: What the stand-ins stand in for, on each machine.
STAND_INS = {"mssql", "faircom"}


def verdict(run: Run, machine: Machine) -> tuple[int, str]:
    """Return the exit code, and the verdict of the machine."""
    return run.code, run.reports[machine.name]["verdict"]


def wrong(run: Run, machine: Machine) -> dict[tuple[str, str], str]:
    """Return {(target, setting): verdict} of what is not as the profile says."""
    return {key: word for key, word in run.settings(machine.name).items() if word != "ok"}


def engines(run: Run, machine: Machine) -> dict[tuple[str, str], dict[str, Any]]:
    """Return {(engine, name): entry} of a report."""
    return {(one["engine"], one["name"]): one for one in run.reports[machine.name]["engines"]}


def state(machine: Machine) -> dict[str, Any]:
    """Return what the machine itself reports, without the flushes that its servers cause."""
    found = truth.read(machine)
    for disk in found["disks"].values():
        del disk["flushes"]
    return found


def assert_reproduced(run: Run, machine: Machine, playbooks: Playbooks) -> None:
    """Require that the assessment of a capture, without the machine, is that of a run."""
    assert playbooks.run("capture").code == 0
    (path,) = playbooks.directory.glob("durable-report/capture-*.json")
    recorded = recording.loads(path.read_text(encoding="ascii"))
    assert (recorded["failed"], recorded["differs"]) == (None, [])
    profiles = yaml.safe_load(
        (playbooks.collection / "playbooks/vars/profiles.yml").read_text(encoding="utf-8")
    )
    servers = capture.replay_engines(recorded)
    assert servers
    now = servers["time"]
    inputs = Inputs(
        profile="strict",
        shipped=profiles["durable_shipped_profiles"],
        own={},
        overrides={},
        attestations={"durable_attestations": [attested("host_honours_flush")]},
        allow=["restart_engines"],
    )
    found = assess(inputs, capture.replay(recorded, now), now, servers)
    report = run.reports[machine.name]
    assert found["verdict"] == report["verdict"], found["why"]
    verdicts = [
        sorted((row["setting"], row["verdict"]) for row in each["settings"]) for each in (found, report)
    ]
    assert verdicts[0] == verdicts[1]
    assert sorted(each["id"] for each in found["reasons"]) == sorted(each["id"] for each in report["reasons"])


def assert_converged(machine: Machine, playbooks: Playbooks) -> None:
    """Require that a check finds nothing to change."""
    check = playbooks.run("harden-db", "--check")
    assert verdict(check, machine) == (0, "attested"), wrong(check, machine)
    assert check.recap[machine.name]["changed"] == 0


def test_the_machine_is_laid_out_as_the_familys_documents_say(machine: Machine, family: Family) -> None:
    assert sh(machine, "systemctl --failed --quiet --plain --no-legend") == ""
    for path, owner in {**family.owners, **MSSQL}.items():
        assert sh(machine, f"stat -c '%U:%G %a' {path}").strip() == owner, path
    for user, number in family.numbers.items():
        assert sh(machine, f"id -u {user}; id -g {user}").split() == [str(number)] * 2
    for unit, program in family.programs.items():
        pids = f"/sys/fs/cgroup$(systemctl show -P ControlGroup {unit})/cgroup.procs"
        assert program in sh(machine, f"for pid in $(cat {pids}); do readlink /proc/$pid/exe; done").split()
    for target, fstype in family.mounts.items():
        assert sh(machine, f"findmnt -no FSTYPE {target}").strip() == fstype
    for label in re.findall(r"^LABEL=(\S+)", sh(machine, "cat /etc/fstab"), re.M):
        assert len(sh(machine, f"blkid -c /dev/null -o device -t LABEL={label}").split()) == 1, label
    assert machine.run(["systemctl", "is-active", "tuned"], check=False).stdout.strip() == family.tuned


def test_an_audit_rates_it_and_a_check_lists_changes_and_neither_changes_anything(
    machine: Machine, playbooks: Playbooks, family: Family
) -> None:
    before = state(machine)
    audit = playbooks.run("audit")
    assert (audit.code, audit.reports[machine.name]["ratings"]["strict"]["verdict"]) == (2, "drifted")
    check = playbooks.run("harden-db", "--check")
    assert verdict(check, machine) == (2, "drifted")
    found = engines(check, machine)
    assert {one["product"] for one in found.values()} == {*STAND_INS, *family.products}
    assert all(one["version"] not in ("", "unknown") for one in found.values())
    assert {name for engine, name in found if engine == "postgresql"} == {
        name for name, _conf in family.clusters.values()
    }
    stored = {row["mount"] for one in found.values() for row in one["files"]}
    assert stored >= set(family.mounts)
    assert state(machine) == before


def test_a_run_brings_it_to_the_profile_and_a_second_one_changes_nothing(
    machine: Machine, playbooks: Playbooks
) -> None:
    run = playbooks.run("harden-db")
    assert verdict(run, machine) == (0, "attested"), wrong(run, machine)
    again = playbooks.run("harden-db")
    assert verdict(again, machine) == (0, "attested")
    assert again.recap[machine.name]["changed"] == 0
    settings = {(row["target"], row["setting"]): row for row in again.reports[machine.name]["settings"]}
    for (target, setting), row in settings.items():
        if setting == "atime":
            options = sh(machine, f"findmnt -no VFS-OPTIONS {target}").strip().split(",")
            assert (row["running"], "noatime" in options) == ("noatime", True), target


def test_drift_is_found_and_fixed(machine: Machine, playbooks: Playbooks, family: Family) -> None:
    unit, (name, conf) = next(iter(family.clusters.items()))
    sh(machine, f"echo 'fsync = off' >> {conf}; systemctl reload {unit}")
    machine.run([*family.client, "-e", "set global innodb_flush_log_at_trx_commit = 2"])
    deadline = time.monotonic() + 60
    while True:
        check = playbooks.run("harden-db", "--check")
        if verdict(check, machine) == (2, "at_risk") or time.monotonic() > deadline:
            break
    (other,) = [one["name"] for one in engines(check, machine).values() if one["product"] == family.client[0]]
    assert wrong(check, machine) == {
        (name, "fsync"): "drift_running",
        (other, "innodb_flush_log_at_trx_commit"): "drift_running",
    }
    assert verdict(check, machine) == (2, "at_risk")
    assert_reproduced(check, machine, playbooks)
    run = playbooks.run("harden-db")
    assert verdict(run, machine) == (0, "attested"), wrong(run, machine)
    running = machine.run([*family.client, "-Ne", "select @@innodb_flush_log_at_trx_commit"]).stdout
    assert running.strip() == "1"


def test_it_is_at_the_profile_after_a_power_cycle(
    machine: Machine, playbooks: Playbooks, family: Family
) -> None:
    before = truth.read(machine)["boot_id"]
    machine.reset()
    assert truth.read(machine)["boot_id"] != before
    # On a busy computer some still start.
    machine.run(["systemctl", "is-system-running", "--wait"], check=False)
    for unit in (*family.programs, *(f"{name}.service" for name in stand_ins.UNITS)):
        machine.run(["systemctl", "is-active", unit])
    assert_converged(machine, playbooks)


def test_release_leaves_nothing_of_ours(machine: Machine, playbooks: Playbooks, family: Family) -> None:
    assert playbooks.run("release_db").code == 0
    own = "find /etc /usr/local /srv /var/lib/pgsql /var/lib/mysql /var/lib/firebird -path '*durable*' 2> /dev/null || true"
    assert sh(machine, own) == ""
    assert "durable" not in sh(machine, "cat /etc/fstab")
    _unit, (_name, conf) = next(iter(family.clusters.items()))
    assert "fsync = off" in sh(machine, f"cat {conf}")
