# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of which some hosts hang and some answer with garbage: the run ends, and its report has every host.

The hosts are stand-ins: programs in the place of Python, over the connection `local`.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.tests.unit.plugins.action.test_assess import answered
from ansible_collections.durable.dbhost.tests.unit.test_collection.test_run_ends_with_page import run

HANGING, GARBAGE, ALL = 5, 3, 30
BRIEF = {"ANSIBLE_STDOUT_CALLBACK": "durable.dbhost.brief"}
#: In the place of Python. Those that hang end long after the test has given them up.
ANSWERS, HANGS = 'exec cat "{answer}"', "exec sleep 300"
NONSENSE = (
    'echo \'{"ansible_facts": {"durable_storage": 7}}\'',
    "head -c 3000 /dev/urandom",
    "exit 0",
)


def _answer() -> str:
    """Return what host_facts answers now for a small host."""
    found = answered()
    for facts in found["ansible_facts"].values():
        facts["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({**found, "changed": False, "looked_at": 0})


@pytest.fixture(name="directory")
def a_fleet(tmp_path: Path) -> Path:
    """Return a directory with the inventory of a fleet."""
    (tmp_path / "answer.json").write_text(_answer())
    programs = [HANGS] * HANGING + list(NONSENSE)
    programs += [ANSWERS.format(answer=tmp_path / "answer.json")] * (ALL - len(programs))
    hosts: dict[str, Any] = {}
    for number, program in enumerate(programs, 1):
        path = tmp_path / f"python{number}"
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
        hosts[f"db{number:02}"] = {"ansible_python_interpreter": str(path)}
    variables = {
        "ansible_connection": "local",
        "durable_profile": "strict",
        "durable_mounts": ["/srv/pgdata"],
    }
    inventory = {"databases": {"vars": variables, "hosts": hosts}}
    (tmp_path / "hosts.yml").write_text(json.dumps(inventory))
    return tmp_path


def _verdicts(directory: Path) -> dict[str, str]:
    found = (json.loads(path.read_text()) for path in (directory / "durable-report").glob("db*.json"))
    return {report["host"]: report["verdict"] for report in found}


def test_a_run_lists_every_host_and_ends(directory: Path) -> None:
    (directory / "durable-report").mkdir()
    (directory / "durable-report/db01.json").write_text('{"host": "db01", "verdict": "attested"}')
    # Long enough for those that answer, on a busy machine.
    limit = ("-e", '{"durable_time_limit": 40}')
    code, out, _err = run(directory, "--check", "--forks=10", *limit, **BRIEF)
    found = _verdicts(directory)
    assert Counter(found.values()) == {
        "unreachable": HANGING,
        "unknown": GARBAGE,
        "drifted": ALL - HANGING - GARBAGE,
    }
    assert {host for host, verdict in found.items() if verdict == "unreachable"} == {
        f"db{number:02}" for number in range(1, HANGING + 1)
    }
    assert f"{ALL} hosts: " in out
    assert f"{ALL} of {ALL} hosts fail" in out
    assert "unreachable: no answer within 40 seconds" in out
    assert code == 2


def test_a_shorter_limit_of_ansible_costs_no_host_its_report(directory: Path) -> None:
    hosts = ("--limit", f"db01,db{ALL}")
    code, out, _err = run(directory, "--check", *hosts, ANSIBLE_TASK_TIMEOUT="22", **BRIEF)
    assert _verdicts(directory) == {"db01": "unreachable", f"db{ALL}": "drifted"}
    assert "2 of 2 hosts fail (1 unreachable, 1 drifted): exit code 2" in out
    assert code == 2


def test_a_host_that_hangs_does_not_end_a_release(directory: Path) -> None:
    """Of the modules of a release that of the role watch is the first."""
    limit = ("-e", '{"durable_time_limit": 20}')
    code, out, _err = run(directory, "--limit", f"db01,db{ALL}", *limit, playbook="release_db")
    assert "fatal: [db01]: UNREACHABLE!" in out
    assert "no answer within 20 seconds" in out
    assert f"fatal: [db{ALL}]: UNREACHABLE!" not in out
    assert "not released  db01\n  cause     no answer within 20 seconds" in out
    assert code == 2
