# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The assess action: a shell that hands on its arguments and loses no host."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

import jinja2
import yaml

from ansible_collections.durable.dbhost.plugins.action import assess as action
from ansible_collections.durable.dbhost.plugins.module_utils.policy import results
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.runs import NOW, shipped
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.small_host import SmallHost


def run(variables: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """Return what the action returns."""
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    result = plugin.run(task_vars=variables or {})
    assert isinstance(result, dict)
    assert result["changed"] is False
    assert "failed" not in result
    found = result["assessment"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action.time, "strftime", lambda _form, _when: NOW)


def test_a_host_is_assessed_by_the_arguments_alone() -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    found = run(profile="strict", shipped=shipped(), mounts=["/srv/pgdata"], storage=storage)
    assert (found["verdict"], found["profile"]) == ("drifted", "strict")
    assert found["plan"]["tighten"]["write_cache"]


def test_every_argument_reaches_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(results, "assess", lambda *arguments: seen.append(arguments) or {})
    given = {name: f"given {name}" for name in Inputs._fields if name not in ("own", "names")}
    storage = {"ansible_facts": {"durable_storage": {"x": 1}}}
    engines = {"ansible_facts": {"durable_engines": {"y": 1}}}
    power = {"ansible_facts": {"durable_power": {"z": 1}}}
    run({"durable_mouts": 1}, **given, profiles="given own", storage=storage, engines=engines, power=power)
    assert seen == [
        (Inputs(**given, own="given own", names=["durable_mouts"]), {"x": 1}, NOW, {"y": 1}, {"z": 1})
    ]
    named = {*given, "profiles", "storage", "engines", "power", "failure"}
    assert named == action.ActionModule._VALID_ARGS


@pytest.mark.parametrize(
    ("storage", "verdict", "why"),
    [
        ({"unreachable": True, "msg": "no route to host"}, "unreachable", "unreachable: no route to host"),
        ({"unreachable": True}, "unreachable", "unreachable: "),
        (
            {"failed": True, "msg": "This machine cannot be observed"},
            "unknown",
            "no facts: This machine cannot be observed",
        ),
        ({"skipped": True}, "unknown", "no facts: none collected"),
        ({}, "unknown", "no facts: none collected"),
        ({"ansible_facts": {}}, "unknown", "no facts: none collected"),
    ],
)
def test_a_host_without_facts_is_not_lost(storage: dict[str, Any], verdict: str, why: str) -> None:
    found = run(profile="strict", shipped=shipped(), storage=storage)
    assert (found["verdict"], found["why"], found["changes"]) == (verdict, [why], [])


def test_without_facts_of_engines_the_host_is_unknown_and_made_safer_all_the_same() -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    engines = {"failed": True, "msg": "not root"}
    given = {"profile": "strict", "shipped": shipped(), "mounts": ["/srv/pgdata"], "storage": storage}
    found = run(**given, engines=engines)
    assert found["verdict"] == "unknown"
    assert any("not root" in why for why in found["why"])
    assert found["plan"]["tighten"]["write_cache"]


@pytest.mark.parametrize(
    ("power", "why"),
    [(None, "nobody asked for the UPS"), ({"failed": True, "msg": "no such module"}, "no such module")],
)
def test_without_facts_of_the_ups_its_profile_is_blocked_and_the_host_made_safer(
    power: Any, why: str
) -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    given = {"profile": "ups", "shipped": shipped(), "mounts": ["/srv/pgdata"], "storage": storage}
    found = run(**given, power=power)
    assert found["verdict"] == "blocked"
    assert why in "\n".join(found["why"])
    assert found["plan"]["tighten"]["write_cache"]


@pytest.mark.parametrize(
    ("failed", "verdict", "why"),
    [
        (
            "Task failed: Premature end of stream waiting for become success.\n>>> Standard Error\n"
            "sudo: a password is required",
            "unknown",
            "no facts: root's rights were not given (sudo: a password is required); log in as root, or",
        ),
        (
            "Missing sudo password",
            "unknown",
            "no facts: root's rights were not given (Missing sudo password)",
        ),
        (
            "Finalization of task args for 'durable.dbhost.assess' failed: 'x' is undefined",
            "blocked",
            "the host's variables: Finalization of task args",
        ),
        (
            "This machine cannot be observed: seen user 1000, wanted root (become)",
            "unknown",
            "no facts: root's rights were not given (This machine cannot be observed: seen user 1000, wanted root (become));"
            " log in as root, or add -b (become: true)",
        ),
        ("No more room", "unknown", "no facts: No more room"),
        ("", "unknown", "no facts: a task failed, and said nothing"),
    ],
)
def test_what_failed_before_the_policy_is_told(failed: str, verdict: str, why: str) -> None:
    found = run(shipped=shipped(), failure={"msg": failed})
    assert (found["verdict"], len(found["why"])) == (verdict, 1)
    assert found["why"][0].startswith(why)
    assert "\n" not in found["why"][0]


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (
            {"msg": "The module interpreter '/usr/bin/python3' was not found.", "rc": 127},
            "no facts: no Python where Ansible looks for it (The module interpreter '/usr/bin/python3' was not found.);",
        ),
        (
            {
                "msg": "Module result deserialization failed: No start of json char found",
                "module_stderr": 'File "x.py", line 7\nSyntaxError: future feature annotations is not defined\n',
            },
            "no facts: its Python is too old (SyntaxError: future feature annotations is not defined); install Python 3.9",
        ),
        (
            {"msg": "Task failed: Module failed: 'type' object is not subscriptable"},
            "no facts: its Python is too old (Task failed: Module failed: 'type' object is not subscriptable)",
        ),
        (
            {
                "msg": "MODULE FAILURE: No start of json char found\nSee stdout/stderr for the exact error",
                "module_stderr": "Traceback\nOSError: [Errno 28] No space left on device",
            },
            "no facts: OSError: [Errno 28] No space left on device",
        ),
    ],
)
def test_why_a_module_could_not_run_is_told_in_one_line(result: dict[str, Any], why: str) -> None:
    for name in ("storage", "engines"):
        storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
        given = {"storage": storage, name: {"failed": True, **result}}
        found = run(profile="strict", shipped=shipped(), mounts=["/srv/pgdata"], **given)
        (said,) = [line for line in found["why"] if why.replace("no facts: ", "") in line]
        assert "\n" not in said
        assert name == "engines" or said.startswith(why)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("durable_profil", "durable_profile"),
        ("durable_mount", "durable_mounts"),
        ("durable_attestation", "durable_attestations"),
        ("durable_acept_data_loss", "durable_accept_data_loss"),
        ("durable_zzz", "a name of docs/variables.md"),
    ],
)
@pytest.mark.parametrize("profile", [None, "strict"])
def test_a_misspelt_variable_blocks_its_host(name: str, wanted: str, profile: str | None) -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    given = {"profile": profile, "shipped": shipped(), "mounts": ["/srv/pgdata"], "storage": storage}
    found = run({name: 1, "durable_before": {}, "other": 2}, **given)
    assert (found["verdict"], found["fails"], found["changes"]) == ("blocked", True, [])
    assert found["why"] == [
        f"{name}: no such variable; wanted {wanted}: correct it, or give a variable of your own another name"
    ]
    assert run({"durable_mounts": 1, "durable_before": {}}, **given)["verdict"] != "blocked"


def test_a_host_that_is_lost_before_its_ups_was_asked() -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    power = {"unreachable": True, "msg": "gone"}
    assert run(profile="ups", shipped=shipped(), storage=storage, power=power)["verdict"] == "unreachable"


def test_a_host_that_is_lost_after_its_engines_were_found() -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    found = run(
        profile="strict", shipped=shipped(), storage=storage, engines={"unreachable": True, "msg": "gone"}
    )
    assert (found["verdict"], found["why"]) == ("unreachable", ["unreachable: gone"])


def test_a_host_that_is_unreachable_is_waited_for_once() -> None:
    engines = {"unreachable": True, "msg": "no route"}
    found = run(profile="strict", shipped=shipped(), storage={"skipped": True}, engines=engines)
    assert (found["verdict"], found["why"]) == ("unreachable", ["unreachable: no route"])


@pytest.mark.parametrize(
    ("engines", "asked"),
    [
        ({"unreachable": True, "msg": "no route"}, False),
        ({"unreachable": False}, True),
        ({"failed": True}, True),
        ({"ansible_facts": {}}, True),
    ],
)
def test_the_disks_are_asked_unless_the_host_was_unreachable(engines: dict[str, Any], asked: bool) -> None:
    path = Path(action.__file__).parents[2] / "playbooks/tasks/assess.yml"
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))[0]["block"]
    (task,) = [task for task in tasks if "durable.dbhost.storage_facts" in task]
    condition = jinja2.Environment(autoescape=True).compile_expression(task["when"])
    assert condition(durable_engines_result=engines) is asked


@pytest.mark.parametrize(
    ("looked", "asked"),
    [
        ({}, False),
        ({"durable_rate": True}, True),
        ({"profile": None}, True),
        ({"durable_rests_on_ups": True}, True),
        ({"durable_licensed": "yes"}, True),
        ({"durable_licensed": "unknown"}, True),
        ({"durable_rests_on_ups": True, "storage": {"unreachable": True}}, False),
        ({"durable_rests_on_ups": True, "engines": {"unreachable": True}}, False),
    ],
)
def test_the_ups_is_asked_where_it_matters(looked: dict[str, Any], asked: bool) -> None:
    path = Path(action.__file__).parents[2] / "playbooks/tasks/assess.yml"
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))[0]["block"]
    (task,) = [task for task in tasks if "durable.dbhost.power_facts" in task]
    variables = {
        "durable_rate": False,
        "durable_rests_on_ups": False,
        "durable_licensed": "no",
        "durable_inputs": {"profile": looked.pop("profile", "strict")},
        "durable_storage_result": looked.pop("storage", {}),
        "durable_engines_result": looked.pop("engines", {}),
        **looked,
    }
    environment = jinja2.Environment(autoescape=True)
    assert all(environment.compile_expression(line)(**variables) for line in task["when"]) is asked


def test_bad_input_is_a_verdict_and_no_failure() -> None:
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), NOW)}}
    found = run(profile="strikt", shipped=shipped(), mounts=["/srv/pgdata"], storage=storage)
    assert found["verdict"] == "blocked"


def test_it_stays_a_shell() -> None:
    assert len(Path(action.__file__).read_text(encoding="utf-8").splitlines()) < 60


def test_each_field_is_documented_and_each_documented_one_is_there() -> None:
    text = (Path(action.__file__).parents[1] / "modules/assess.py").read_text(encoding="utf-8")
    documented = yaml.safe_load(text.split('RETURN = r"""')[1].split('"""')[0])["assessment"]["contains"]
    assert set(documented) == set(run(shipped=shipped(), failure={"msg": "x"}))
