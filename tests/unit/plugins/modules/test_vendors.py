# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of SQL Server and FairCom DB: a check run touches nothing, and predicts what a run then does."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom_layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as mssql_layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.modules import faircom_config, mssql_conf
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.captured import COLLECTION
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.vendor_host import (
    CFG,
    CONF,
    VendorHost,
    with_faircom,
    with_mssql,
)

from .run_module import run_module

WRONG = "[traceflag]\ntraceflag12 = 3979\n[control]\nwritethrough = false\n"
CASES = {
    "mssql_conf": (
        mssql_conf,
        lambda: with_mssql(WRONG, "3979"),
        {"instance": "mssql", "settings": {"traceflag3979": "off", "writethrough": "1"}},
        CONF,
    ),
    "faircom_config": (
        faircom_config,
        with_faircom,
        {"instance": "/opt/faircom", "settings": {"LOG_WRITETHRU": "on", "COMMIT_DELAY": 2}},
        CFG,
    ),
}
case = pytest.mark.parametrize(("module", "make", "target", "path"), CASES.values(), ids=CASES)
wait = pytest.mark.parametrize("restart", [False, True], ids=["no restart", "restart"])


@case
@wait
@pytest.mark.fact(29)
def test_check_predicts_what_a_run_does_and_a_second_run_does_nothing(
    module: ModuleType,
    make: Any,
    target: Any,
    path: str,
    restart: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    host = make()
    arguments = {"targets": [target], "restart": restart}
    predicted = run_module(module, host, monkeypatch, capsys, True, **arguments)
    assert host.mutations == []
    done = run_module(module, host, monkeypatch, capsys, **arguments)
    assert done == predicted
    assert done["changed"] is True
    assert done["diff"][0]["before"] != done["diff"][0]["after"]
    assert {change["when"] for change in done["changes"]} == {"persisted", *(["running"] if restart else [])}
    assert any(mutation[1] == "systemctl" for mutation in host.mutations) == restart
    for check in (True, False):
        host.mutations.clear()
        again = run_module(module, host, monkeypatch, capsys, check, **arguments)
        assert (again["changed"], again["changes"], host.mutations) == (False, [], [])


@case
def test_release_takes_back_what_was_written(
    module: ModuleType, make: Any, target: Any, path: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = make()
    if module is mssql_conf:
        # mssql-conf would not write it again: it is no value of this setting.
        host.write(CONF, WRONG.replace("false", "0"), at=1.0)
    before = host.read(path)
    run_module(module, host, monkeypatch, capsys, targets=[target])
    assert host.read(path) != before
    host.mutations.clear()
    predicted = run_module(module, host, monkeypatch, capsys, True, state="released")
    assert host.mutations == []
    assert run_module(module, host, monkeypatch, capsys, state="released") == predicted
    assert predicted["changed"] is True
    assert "3979" in host.read(path) if module is mssql_conf else host.read(path) == before
    assert run_module(module, host, monkeypatch, capsys, state="released")["changed"] is False


@pytest.mark.parametrize("check", [False, True])
@case
def test_what_cannot_be_done_fails_in_check_mode_too(
    module: ModuleType,
    make: Any,
    target: Any,
    path: str,
    check: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    host = make()
    host.write(path, "\0", at=1.0)
    result = run_module(module, host, monkeypatch, capsys, check, targets=[target])
    assert result["failed"] is True
    assert "expected" in result["msg"]
    assert host.mutations == []


@case
@pytest.mark.parametrize("state", ["present", "released"])
def test_on_a_host_without_the_server_there_is_nothing_to_do(
    module: ModuleType,
    make: Any,
    target: Any,
    path: str,
    state: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    host = VendorHost()
    result = run_module(module, host, monkeypatch, capsys, state=state)
    assert (result["changed"], host.mutations) == (False, [])
    assert make() and target and path


@pytest.mark.parametrize(
    ("module", "settings"),
    [
        (mssql_conf, {"writethrough": "0"}),
        (mssql_conf, {"writethrough": "false"}),
        (mssql_conf, {"alternatewritethrough": "2"}),
        (mssql_conf, {"traceflag3979": "yes"}),
        (mssql_conf, {"traceflag1": "on"}),
        (faircom_config, {"SYNC_LOG": "on"}),
        (faircom_config, {"NO_SYS_FLUSH_ON_CLOSE": "on"}),
        (faircom_config, {"DELAYED_DURABILITY": "1"}),
        (faircom_config, {"INDEX_WRITETHRU": "on"}),
        (faircom_config, {"COMMIT_DELAY": "much"}),
    ],
)
@pytest.mark.fact(32)
def test_a_wrong_argument_is_refused(
    module: ModuleType, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = with_mssql(WRONG)
    target = {"instance": "mssql", "settings": settings}
    result = run_module(module, host, monkeypatch, capsys, targets=[target])
    assert result["failed"] is True
    assert host.mutations == []


@pytest.mark.parametrize(
    ("module", "layer", "role", "names"),
    [
        (mssql_conf, mssql_layer, "mssql", {*mssql.FLAGS, *mssql.SWITCHES}),
        (faircom_config, faircom_layer, "faircom", set(faircom_layer.SETTINGS)),
    ],
)
def test_documentation_role_and_code_know_the_same_settings(
    module: ModuleType, layer: ModuleType, role: str, names: set[str]
) -> None:
    taken = layer.ARGUMENTS.target["settings"]["options"]
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]["targets"]["suboptions"]["settings"][
        "suboptions"
    ]
    specs = yaml.safe_load((COLLECTION / f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    of_role = specs["argument_specs"]["main"]["options"][f"{role}_targets"]["options"]["settings"]["options"]
    assert set(documented) == set(of_role) == set(taken) == names
    for name in names:
        assert documented[name].get("choices") == of_role[name].get("choices") == taken[name].get("choices")
        assert documented[name]["type"] == of_role[name]["type"] == taken[name]["type"]
