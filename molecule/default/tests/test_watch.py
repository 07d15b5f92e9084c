# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that watches itself says what a check says, notices drift by its timer's service, and is released without a trace."""

from __future__ import annotations

import json
from typing import Any

from support.runs import Playbooks

from lab.machine import Machine

SERVICE, TIMER = "durable-dbhost-watch.service", "durable-dbhost-watch.timer"
NUMBERS = "/srv/numbers"
FILES = (
    "/usr/local/lib/durable-dbhost/watch.pyz",
    "/etc/durable-dbhost/watch.json",
    f"/etc/systemd/system/{SERVICE}",
    f"/etc/systemd/system/{TIMER}",
    "/var/lib/durable-dbhost/watch.json",
    f"{NUMBERS}/durable_dbhost.prom",
)


def look(machine: Machine) -> tuple[str, dict[str, Any], list[str]]:
    """Let the host look once; return what systemd makes of it, its report, and its numbers."""
    machine.run(["systemctl", "start", SERVICE], check=False)
    result = machine.run(["systemctl", "show", "--property=ExecMainStatus", "--value", SERVICE]).stdout
    report = machine.run(["cat", "/var/lib/durable-dbhost/watch.json"]).stdout
    numbers = machine.run(["cat", f"{NUMBERS}/durable_dbhost.prom"]).stdout
    return result.strip(), json.loads(report), numbers.splitlines()


def test_a_host_that_watches_itself(machine: Machine, playbooks: Playbooks) -> None:
    machine.run(["mkdir", "-p", NUMBERS])
    given = {"watch_calendar": "*:0/15", "watch_metrics": NUMBERS}
    run = playbooks.run("watch_db", variables=given)
    assert (run.code, run.recap["dbhost"]["changed"]) == (0, 1)
    again = playbooks.run("watch_db", variables=given)
    assert (again.code, again.recap["dbhost"]["changed"]) == (0, 0)
    assert machine.run(["systemctl", "is-active", TIMER]).stdout == "active\n"

    check = playbooks.run("harden-db", "--check")
    code, report, numbers = look(machine)
    told = check.reports["dbhost"]
    same = ("profile", "verdict", "why", "settings", "requirements", "warnings")
    assert {name: report[name] for name in same} == {name: told[name] for name in same}
    assert (code, check.code) == ("0", 0)
    assert f'durable_dbhost_verdict{{verdict="{told["verdict"]}",profile="strict"}} 1' in numbers
    assert "durable_dbhost_failing 0" in numbers

    machine.run(["mount", "-o", "remount,barrier=0", "/srv/pgdata"])
    code, report, numbers = look(machine)
    assert (code, report["fails"]) == ("2", True)
    assert "durable_dbhost_failing 1" in numbers
    assert (
        'durable_dbhost_settings{layer="mount_options",class="safety",verdict="drift_running"} 1' in numbers
    )
    journal = machine.run(["journalctl", "--no-pager", "--output=cat", "--priority=err", f"--unit={SERVICE}"])
    assert f"is {report['verdict']}: " in journal.stdout

    assert playbooks.run("release_db").code == 0
    listed = machine.run(["sh", "-c", f"ls -d {' '.join(FILES)} 2>/dev/null || true"]).stdout
    assert listed == ""
    assert machine.run(["systemctl", "is-active", TIMER], check=False).stdout != "active\n"
