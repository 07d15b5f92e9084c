# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that a supervisor or an undocumented script starts.

Rebuilt from the documents of runit, s6 and GitLab's omnibus; none ran.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines

from ..fakes.fake_postgresql import BIN, DATA, FakePostgresql
from ..fakes.fake_proc import FakeProcess
from ..policy.assess.test_engines import instance, judged
from .test_next_start import command

UNIT = "gitlab-runsvdir.service"
GROUP = f"0::/system.slice/{UNIT}\n"
SERVICE = "/opt/gitlab/sv/postgresql"
RUN = f"{SERVICE}/run"
TEXT = f"#!/bin/sh\nexec 2>&1\nexec chpst -u gitlab-psql:gitlab-psql {BIN}/postgres -D {DATA}\n"
SCRIPT = "/opt/db/start.sh"
KEYS = {"value": "unknown", "source": RUN, "reason": None, "cause": "script", "parameters": {}}


def supervised(supervisor: str = "/usr/bin/runsv", text: str = TEXT, uid: int = 0) -> FakePostgresql:
    """Return a host on which a supervisor, below another, starts a cluster."""
    host = FakePostgresql(config=f"{DATA}/postgresql.conf", cgroup=GROUP)
    host.options = (f"{BIN}/postgres", "-D", DATA)
    host.end(50)
    host.start(FakeProcess(40, "/usr/bin/runsvdir", cgroup=GROUP, uid=0))
    host.start(FakeProcess(45, supervisor, ppid=40, cwd=SERVICE, cgroup=GROUP, uid=uid))
    host.start(replace(host.main, argv=host.options, ppid=45))
    host.start_server()
    host.units = {
        UNIT: {"MainPID": "40", "ExecStart": command("/opt/gitlab/embedded/bin/runsvdir-start", "")}
    }
    host.files[RUN] = text
    return host


def scripted(text: str, *words: str, is_exec: bool = True) -> FakePostgresql:
    """Return a host whose unit has a script start a cluster: the script becomes the server, or stays."""
    group = "0::/system.slice/db.service\n"
    host = FakePostgresql(*words, config=f"{DATA}/postgresql.conf", cgroup=group)
    host.units = {"db.service": {"Type": "simple", "MainPID": "50", "ExecStart": command(SCRIPT, "")}}
    if not is_exec:
        host.end(50)
        host.start(FakeProcess(49, "/usr/bin/bash", ("/bin/bash", SCRIPT), cgroup=group))
        host.start(replace(host.main, ppid=49))
        host.units["db.service"]["MainPID"] = "49"
    host.files[SCRIPT] = text
    return host


def told(host: FakePostgresql) -> dict[str, Any]:
    (facts,) = map(causes.of_instance, Engines(host, ("postgresql",)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


@pytest.mark.parametrize("supervisor", ["/usr/bin/runsv", "/usr/bin/s6-supervise", "/usr/bin/supervise"])
def test_a_supervised_server_is_assessed_and_its_script_named(supervisor: str) -> None:
    facts = told(supervised(supervisor))
    row = facts["settings"]["fsync"]
    assert (row["running"], row["persisted"]) == ("on", "on")
    assert {**facts["evidence"]["start_arguments"], "reason": None} == KEYS
    host = supervised(supervisor)
    host.write(f"{DATA}/postgresql.conf", "fsync = off\n")
    row = told(host)["settings"]["fsync"]
    assert (row["running"], row["persisted"], row["from"]) == ("off", "off", f"{DATA}/postgresql.conf:1")


@pytest.mark.parametrize(
    ("name", "words", "source"),
    [
        ("supervisord", ("-n", "-c", "/etc/supervisor/supervisord.conf"), "/etc/supervisor/supervisord.conf"),
        ("supervisord", ("--configuration=own.conf",), f"{SERVICE}/own.conf"),
        ("supervisord", ("-n",), "process 45 (supervisord)"),
        ("circusd", ("--daemon", "/etc/circus.ini"), "/etc/circus.ini"),
    ],
)
@pytest.mark.parametrize("has_unit", [True, False])
def test_a_supervisor_of_many_services_is_named_by_its_configuration(
    name: str, words: tuple[str, ...], source: str, has_unit: bool
) -> None:
    """Only that has the command of the next start. Without systemd, as with runit as process 1, it is no other."""
    host = supervised()
    group = GROUP if has_unit else "0::/\n"
    for pid in (40, 45, 50):
        host.end(pid)
    python = "/usr/bin/python3.11"
    argv = ("python3", f"/usr/bin/{name}", *words)
    host.start(FakeProcess(45, python, argv, cwd=SERVICE, cgroup=group, uid=0, name=name))
    host.start(replace(host.main, argv=host.options, ppid=45, cgroup=group))
    facts = told(host)
    assert facts["settings"]["fsync"]["persisted"] == "on"
    assert facts["evidence"]["start_arguments"]["source"] == source


@pytest.mark.parametrize("is_exec", [True, False])
def test_a_server_of_a_script_is_assessed_and_the_script_named(is_exec: bool) -> None:
    facts = told(scripted(f"#!/bin/bash\nexec {BIN}/postgres -D {DATA} $OPTIONS\n", is_exec=is_exec))
    assert facts["settings"]["fsync"]["persisted"] == "on"
    assert {**facts["evidence"]["start_arguments"], "reason": None} == {**KEYS, "source": SCRIPT}


@pytest.mark.parametrize(
    ("line", "source"),
    [
        (f"exec {BIN}/postgres -D {DATA} -c fsync=off", "line 2"),
        (f"exec {BIN}/postgres -D {DATA} -F", "line 2"),
        (f"{BIN}/pg_ctl start -o '-p 5432 -F' -D {DATA}", "line 2"),
        (f"export LD_PRELOAD=/usr/lib/libeatmydata.so; exec {BIN}/postgres", "makes fsync do nothing"),
        (f"exec eatmydata {BIN}/postgres -D {DATA}", "makes fsync do nothing"),
        (f". /etc/default/db\nexec {BIN}/postgres $OPTIONS", "/etc/default/db line 1"),
    ],
)
def test_what_a_script_sets_is_not_known_to_persist(line: str, source: str) -> None:
    text = f"#!/bin/sh\n{line}\n"
    for host in (supervised(text=text), scripted(text)):
        host.files["/etc/default/db"] = "OPTIONS='-c fsync=off'\n"
        row = told(host)["settings"]["fsync"]
        assert (row["running"], row["persisted"]) == ("on", "unknown"), row
        assert source in str(row["reason"])


def test_a_script_that_sets_what_runs_changes_nothing() -> None:
    host = scripted(f"#!/bin/sh\nexec {BIN}/postgres -c fsync=off\n", "-c", "fsync=off")
    row = told(host)["settings"]["fsync"]
    assert (row["running"], row["persisted"]) == ("off", "off")


def test_the_script_of_a_user_s_supervisor_is_not_read_by_root() -> None:
    facts = told(supervised(uid=1000))
    assert facts["evidence"]["start_arguments"]["cause"] == "script_of_user"
    host = supervised(text="#!/bin/sh\nexec postgres -c fsync=off\n", uid=1000)
    assert told(host)["settings"]["fsync"]["persisted"] == "on"


def test_a_script_that_cannot_be_read_leaves_the_next_start_unknown() -> None:
    host = supervised()
    host.deny(45, "cwd")
    assert told(host)["settings"]["fsync"]["persisted"] == "unknown"


#: As engine_facts has it.
DECIDES = {"start_arguments": KEYS}


def test_what_the_script_alone_decides_is_one_finding_that_can_be_accepted_until_a_date() -> None:
    found = judged(instance(evidence=DECIDES), mounts=["/srv/pgdata"])
    (reason,) = [each for each in found["reasons"] if each["verdict"] == "unknown"]
    assert (reason["id"], reason["targets"]) == ("unknown.start_script", ["postgresql main"])
    assert RUN in reason["reason"] and "durable_accept" in reason["fix"]
    assert found["verdict"] == "unknown"
    accept = {
        "finding": reason["id"],
        "target": reason["targets"][0],
        "by": "dba",
        "reason": "the script gives no option",
        "expires": "2026-06-30",
    }
    after = judged(instance(evidence=DECIDES), mounts=["/srv/pgdata"], accept=[accept])
    assert after["verdict"] != "unknown"
    assert after["verdict"] not in ("durable",)
    over = judged(
        instance(evidence=DECIDES),
        mounts=["/srv/pgdata"],
        accept=[{**accept, "expires": "2026-01-30"}],
    )
    assert over["verdict"] == "unknown"


def test_a_running_risk_is_reported_whatever_the_script_decides() -> None:
    found = judged(instance(evidence=DECIDES, running={"fsync": "off"}), mounts=["/srv/pgdata"])
    assert found["verdict"] == "at_risk"


def test_where_loss_is_accepted_the_script_is_no_finding() -> None:
    found = judged(instance(evidence=DECIDES), profile="disposable", accept_data_loss=True)
    assert "unknown.start_script" not in {each["id"] for each in found["reasons"]}
