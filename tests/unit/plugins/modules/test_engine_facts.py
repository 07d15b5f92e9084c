# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts module of engines: a shell that returns what was collected, as it is documented."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect as engines_of
from ansible_collections.durable.dbhost.plugins.modules import engine_facts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_firebird import (
    FakeDatabase,
    FirebirdHost,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_mariadb import MariaHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_postgresql import (
    FakePostgresql,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_proc import (
    BOOT_ID,
    RDWR,
    FakeProcess,
    ProcHost,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.vendor_host import (
    with_faircom,
    with_mssql,
)

from .run_module import run_module

MARIA = FakeProcess(77, "/usr/sbin/mariadbd", cwd="/data", files=(("/data/caf\udce9/x", RDWR, 31),))
FIREBIRD = FakeProcess(78, "/opt/firebird/bin/firebird")
STRANGER = FakeProcess(79, "/usr/bin/python3", name="mysqld")


@pytest.mark.parametrize("check", [False, True])
def test_facts_come_under_one_name_and_nothing_changes(
    check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = ProcHost(MARIA)
    result = run_module(engine_facts, host, monkeypatch, capsys, check)
    assert result["changed"] is False
    assert list(result["ansible_facts"]) == ["durable_engines"]
    facts = result["ansible_facts"]["durable_engines"]
    assert facts["boot_id"] == BOOT_ID
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["time"])
    # A name that is no text reaches the controller.
    assert facts["engines"][0]["files"][0]["directory"] == "/data/caf\\xe9"
    assert host.mutations == []


def test_a_machine_that_cannot_be_observed_fails_by_cause(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = ProcHost()
    host.end(1)
    result = run_module(engine_facts, host, monkeypatch, capsys)
    assert result["msg"] == (
        "This machine cannot be observed: /proc shows only some of the processes: run as root"
    )


def test_each_field_is_documented_and_each_documented_one_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    result = run_module(engine_facts, ProcHost(MARIA, FIREBIRD, STRANGER), monkeypatch, capsys)
    documented = yaml.safe_load(engine_facts.RETURN)["ansible_facts"]["contains"]["durable_engines"][
        "contains"
    ]
    facts = result["ansible_facts"]["durable_engines"]
    assert set(facts) == set(documented)
    assert set(facts["unattributed"][0]) == set(documented["unattributed"]["contains"])
    instance = documented["engines"]["contains"]
    assert {key for found in facts["engines"] for key in found} == set(instance)
    files = [row for found in facts["engines"] for row in found["files"]]
    assert set(files[0]) == set(instance["files"]["contains"])


def test_databases_are_looked_for_where_the_inventory_names_them(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = FirebirdHost(FIREBIRD, a=FakeDatabase())
    host.files["/opt/firebird/firebird.conf"] = ""
    named = [{"engine": "firebird", "paths": ["/data"]}, {"engine": "mariadb", "paths": ["/log"]}, "nonsense"]
    result = run_module(engine_facts, host, monkeypatch, capsys, databases=named)
    (facts,) = result["ansible_facts"]["durable_engines"]["engines"]
    assert [row["path"] for row in facts["databases"]] == ["/data/a.fdb"]
    documented = yaml.safe_load(engine_facts.RETURN)["ansible_facts"]["contains"]["durable_engines"]
    rows = documented["contains"]["engines"]["contains"]["databases"]["contains"]
    assert set(facts["databases"][0]) == set(rows) - {"causes"}
    assert not any("/log" in word for argv in (*host.asked, *host.questions) for word in argv)


@pytest.mark.parametrize(
    "host", [FakePostgresql(), FirebirdHost(a=FakeDatabase()), MariaHost(), with_mssql(), with_faircom()]
)
def test_the_commands_that_are_run_are_required(host: ProcHost) -> None:
    host.start(FIREBIRD)
    engines_of(host, "now")
    needed = " ".join(yaml.safe_load(engine_facts.DOCUMENTATION)["requirements"])
    words = set(re.findall(r"[a-z]+", needed))
    run = {argv[0].rpartition("/")[2] for argv in host.asked}
    assert len(run) > 2
    assert run <= words
