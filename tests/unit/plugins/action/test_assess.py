# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The assess action: reads the variables, asks the host once, and loses no host."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

import yaml
from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleUndefinedVariable

from ansible_collections.durable.dbhost.plugins.action import assess as action
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed, unpacked
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import NOW
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

#: A host's variables, except what a test is about.
PINNED = {"durable_profile": "strict", "durable_mounts": ["/srv/pgdata"]}


def answered(**facts: Any) -> dict[str, Any]:
    """Return what host_facts answers; without arguments, for a small host without engines."""
    host = SmallHost()
    storage = collect(host, NOW)
    nothing: dict[str, list[Any]] = {
        name: [] for name in ("engines", "paths", "stop_timeouts", "unattributed", "writers")
    }
    engines = {"boot_id": storage["boot_id"], "time": NOW, **nothing}
    good = {"durable_storage": storage, "durable_engines": engines}
    return {"ansible_facts": {**good, **facts}, "failures": {}}


def started(variables: dict[str, Any], answer: Any, check: bool = False, **arguments: Any) -> Any:
    """Return the action over a host that gives this answer, or with which an error is raised."""
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=check)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    templar = MagicMock(template=lambda value: value)
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    plugin._low_level_execute_command = MagicMock(return_value={"stdout": ""})  # type: ignore[method-assign]
    plugin._execute_module = MagicMock(  # type: ignore[method-assign]
        **{"side_effect" if isinstance(answer, Exception) else "return_value": answer}
    )
    return plugin


def run(
    variables: dict[str, Any] | None = None, answer: Any = None, check: bool = False, **arguments: Any
) -> dict[str, Any]:
    """Return the assessment of a host."""
    given = {**PINNED, **(variables or {})}
    plugin = started(given, answered() if answer is None else answer, check, **arguments)
    result = plugin.run(task_vars=given)
    assert isinstance(result, dict)
    assert result["changed"] is False
    assert "failed" not in result
    return unpacked(result["assessment"])


def assessment(plugin: Any, variables: dict[str, Any]) -> dict[str, Any]:
    """Return what an action finds with these variables."""
    return unpacked(plugin.run(task_vars=variables)["assessment"])


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action.time, "strftime", lambda _form, _when: NOW)


def test_a_host_is_assessed_in_one_execution() -> None:
    plugin = started(PINNED, answered())
    found = assessment(plugin, PINNED)
    assert (found["verdict"], found["profile"]) == ("drifted", "strict")
    assert found["plan"]["tighten"]["write_cache"]
    (call,) = plugin._execute_module.call_args_list
    assert call.kwargs["module_name"] == "durable.dbhost.host_facts"
    assert call.kwargs["module_args"] == {"databases": None, "power": "guarded"}


@pytest.mark.parametrize(
    ("variables", "rate", "power"),
    [
        ({}, False, "guarded"),
        ({}, True, "always"),
        ({"durable_profile": "ups"}, False, "always"),
        ({"durable_profile": "ours", "durable_profiles": {"ours": {"rests_on": "ups"}}}, False, "guarded"),
        ({"durable_profile": "misspelt"}, False, "guarded"),
        ({"durable_profile": ["ups"]}, False, "guarded"),
        ({"durable_profile": ""}, False, "guarded"),
    ],
)
def test_the_power_is_looked_at_where_it_matters(variables: dict[str, Any], rate: bool, power: str) -> None:
    """Where a profile rests on it, for a rating, and where a guard is: that the host itself tells."""
    given = {**PINNED, **variables}
    plugin = started(given, answered(), rate=rate)
    plugin.run(task_vars=given)
    assert plugin._execute_module.call_args.kwargs["module_args"]["power"] == power
    without = {"durable_mounts": ["/srv/pgdata"]}
    plugin = started(without, answered())
    plugin.run(task_vars=without)
    assert plugin._execute_module.call_args.kwargs["module_args"]["power"] == "always"


@pytest.mark.parametrize(
    ("kept", "said"), [(False, "no benchmark of this host"), (True, "it cannot be read")]
)
def test_the_benchmark_that_was_kept_of_a_host_is_read(kept: bool, said: str, tmp_path: Path) -> None:
    given = {
        "durable_mounts": ["/srv/pgdata"],
        "durable_report_dir": str(tmp_path),
        "inventory_hostname": "a/b",
    }
    if kept:
        (tmp_path / "benchmark-a%2Fb.json").write_text("{}")
    found = assessment(started(given, answered(), rate=True), given)
    assert said in found["recommendation"]["why"][-1]


def test_a_directory_that_cannot_be_read_costs_no_host(tmp_path: Path) -> None:
    given = {
        "durable_mounts": ["/srv/pgdata"],
        "durable_report_dir": str(tmp_path),
        "inventory_hostname": "db1",
    }
    (tmp_path / "benchmark-db1.json").mkdir()
    found = assessment(started(given, answered(), rate=True), given)
    assert "it cannot be read" in found["recommendation"]["why"][-1]


@pytest.mark.parametrize("margin", [0, 90])
def test_the_margin_of_the_ups_reaches_the_host(margin: int) -> None:
    given = {**PINNED, "durable_ups": {"margin": margin}}
    plugin = started(given, answered())
    plugin.run(task_vars=given)
    assert plugin._execute_module.call_args.kwargs["module_args"]["margin"] == margin


@pytest.mark.parametrize(
    ("answer", "verdict", "why"),
    [
        (
            AnsibleConnectionFailure("no route to host"),
            "unreachable",
            'unreachable: no route leads to it ("no route to host")',
        ),
        (
            {"failed": True, "msg": "This machine cannot be observed"},
            "unknown",
            'no facts: "This machine cannot be observed"',
        ),
        (
            {"failures": {"durable_storage": "This machine cannot be observed: x"}, "ansible_facts": {}},
            "unknown",
            'no facts: "This machine cannot be observed: x"',
        ),
        ({}, "unknown", "no facts: none collected"),
        ({"ansible_facts": {}}, "unknown", "no facts: none collected"),
        ({"ansible_facts": []}, "unknown", "no facts: none collected"),
        ({"ansible_facts": {"durable_storage": 1}, "failures": 2}, "unknown", "no facts: none collected"),
    ],
)
def test_a_host_without_facts_is_not_lost(answer: Any, verdict: str, why: str) -> None:
    found = run(answer=answer)
    fix = (
        "correct the error that the reason names, then run again"
        if why.startswith("no facts")
        else "start the host, or check the network and its firewalls, then run again"
    )
    assert (found["verdict"], found["why"], found["changes"]) == (verdict, [f"{why}; {fix}"], [])
    assert [(each["reason"], each["fix"]) for each in found["reasons"]] == [(why, fix)]


def test_without_facts_of_engines_the_host_is_unknown_and_made_safer_all_the_same() -> None:
    answer = answered()
    del answer["ansible_facts"]["durable_engines"]
    answer["failures"] = {"durable_engines": "its collection failed: OSError: no more room"}
    found = run(answer=answer)
    assert found["verdict"] == "unknown"
    assert any("no more room" in why for why in found["why"])
    assert found["plan"]["tighten"]["write_cache"]


@pytest.mark.parametrize(
    ("failures", "why"),
    [({}, "the facts of the UPS were not collected"), ({"durable_power": "no such file"}, "no such file")],
)
def test_without_facts_of_the_ups_its_profile_is_blocked_and_the_host_made_safer(
    failures: dict[str, str], why: str
) -> None:
    found = run({"durable_profile": "ups"}, {**answered(), "failures": failures})
    assert found["verdict"] == "blocked"
    assert why in "\n".join(found["why"])
    assert found["plan"]["tighten"]["write_cache"]


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (
            "Task failed: Premature end of stream waiting for become success.\n>>> Standard Error\n"
            "sudo: a password is required",
            'no facts: could not become root: the become password is missing or wrong ("sudo: a password is required"); give it',
        ),
        (
            "Missing sudo password",
            'no facts: could not become root: the become password is missing or wrong ("Missing sudo password"); give it',
        ),
        (
            "sudo: a terminal is needed",
            'no facts: could not become root ("sudo: a terminal is needed"); log in',
        ),
        (
            "Failed to create temporary directory. In some cases",
            'no facts: Ansible cannot write its own files there ("Failed to create temporary directory. In some cases");',
        ),
        (
            "This machine cannot be observed: observed user 1000, expected root (become)",
            'no facts: could not become root ("This machine cannot be observed: observed user 1000, expected root'
            ' (become)"); log in as root, or add -b (become: true)',
        ),
        (
            "Task failed: /bin/sh: 1: sudo: not found",
            'no facts: could not become root: the program of become_method is not installed ("Task failed: /bin/sh: 1:'
            ' sudo: not found"); set become_method',
        ),
        ("No more room", 'no facts: "No more room"; correct the error that the reason names, then run again'),
    ],
)
@pytest.mark.parametrize("raised", [True, False])
def test_why_the_host_could_not_be_asked_is_told_in_one_line(failed: str, why: str, raised: bool) -> None:
    found = run(answer=AnsibleError(failed) if raised else {"failed": True, "msg": failed})
    assert (found["verdict"], len(found["why"])) == ("unknown", 1)
    assert found["why"][0].startswith(why)
    assert "\n" not in found["why"][0]


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (
            {"msg": "The module interpreter '/usr/bin/python3' was not found.", "rc": 127},
            "no facts: no Python where Ansible looks for it (\"The module interpreter '/usr/bin/python3' was not found.\");",
        ),
        (
            {
                "msg": "Module result deserialization failed: No start of json char found",
                "module_stderr": 'File "x.py", line 7\nSyntaxError: future feature annotations is not defined\n',
            },
            'no facts: its Python is too old ("SyntaxError: future feature annotations is not defined"); install Python 3.9',
        ),
        (
            {"msg": "Task failed: Module failed: 'type' object is not subscriptable"},
            "no facts: its Python is too old (\"Task failed: Module failed: 'type' object is not subscriptable\")",
        ),
        (
            {
                "msg": "MODULE FAILURE: No start of json char found\nSee stdout/stderr for the exact error",
                "module_stderr": "Traceback\nOSError: [Errno 28] No space left on device",
            },
            "no facts: Ansible cannot write its own files there: No space left on device"
            ' ("OSError: [Errno 28] No space left on device"); free space',
        ),
    ],
)
def test_why_a_module_could_not_run_is_told_in_one_line(result: dict[str, Any], why: str) -> None:
    (said,) = run(answer={"failed": True, **result})["why"]
    assert "\n" not in said
    assert said.startswith(why)


def test_each_variable_that_cannot_be_read_blocks_its_host_by_name() -> None:
    given = {
        **PINNED,
        "durable_profiles": "{{ y }}",
        "durable_profile": "ours",
        "durable_mount_profiles": {"/srv": "ours"},
        "durable_ups": "vault",
        "durable_allow": ["reboots"],
    }
    plugin = started(given, answered())

    def template(value: Any) -> Any:
        if value == ["/srv/pgdata"]:
            raise AnsibleUndefinedVariable("'x' is undefined")
        if value == "{{ y }}":
            # As ansible-core 2.16 has it.
            raise AnsibleUndefinedVariable("'y' is undefined. 'y' is undefined")
        if value == "vault":
            raise AnsibleError("Attempting to decrypt but no vault secrets found.")
        return value

    plugin._templar.template = template
    found = assessment(plugin, given)
    assert (found["verdict"], found["fails"], found["changes"]) == ("blocked", True, [])
    assert found["why"] == [
        "durable_profiles: 'y' is undefined; correct this value, then run again",
        "durable_mounts: 'x' is undefined; correct this value, then run again",
        "durable_ups: Attempting to decrypt but no vault secrets found; give its vault password with"
        " --vault-password-file or --ask-vault-pass",
        "durable_allow: observed ['reboots']; expected a list of restart_engines, reboot, alter_system; correct this value,"
        " then run again. Did you mean reboot?",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("durable_profil", "durable_profile"),
        ("durable_mount", "durable_mounts"),
        ("durable_attestation", "durable_attestations"),
        ("durable_acept_data_loss", "durable_accept_data_loss"),
        ("durable_layer", "durable_layers"),
        ("mount_options_tragets", "mount_options_targets"),
        ("io_scheduler_staet", "io_scheduler_state"),
        ("mount_option_targets", "mount_options_targets"),
        ("write_cache_target", "write_cache_targets"),
    ],
)
@pytest.mark.parametrize("pinned", [False, True])
def test_a_misspelt_variable_blocks_its_host(name: str, meant: str, pinned: bool) -> None:
    given = {**(PINNED if pinned else {}), name: 1, "durable_managed": {}, "other": 2}
    found = assessment(started(given, answered()), given)
    assert (found["verdict"], found["fails"], found["changes"]) == ("blocked", True, [])
    assert found["why"] == [
        f"{name}: no such variable; correct it, or give a variable of your own another name. Did you mean {meant}?"
    ]
    assert run({"durable_managed": {}})["verdict"] != "blocked"


def test_variables_of_roles_and_of_others_are_no_misspelt_ones() -> None:
    given = {**PINNED, "mount_options_targets": [], "mysql_targets": 1, "power_supply_state": "on"}
    assert assessment(started(given, answered()), given)["verdict"] != "blocked"


def test_bad_input_is_a_verdict_and_no_failure() -> None:
    assert run({"durable_profile": "strikt"})["verdict"] == "blocked"


def test_an_empty_profile_is_no_host_without_one() -> None:
    assert run({"durable_profile": None})["verdict"] == "blocked"
    given = {"durable_mounts": ["/srv/pgdata"]}
    assert assessment(started(given, answered()), given)["verdict"] == "not_managed"


def test_a_check_does_not_ask_the_host_a_second_time() -> None:
    before = run()
    plugin = started(PINNED, answered(), True, before=packed(before), applied={})
    assert assessment(plugin, PINNED) == before
    plugin._execute_module.assert_not_called()
    plugin = started(PINNED, answered(), False, before=packed(before), applied={})
    plugin.run(task_vars=PINNED)
    plugin._execute_module.assert_called_once()


def test_the_interpreter_that_was_found_is_kept_and_no_facts_of_the_host() -> None:
    answer = answered(discovered_interpreter_python="/usr/bin/python3.11")
    plugin = started(PINNED, {**answer, "warnings": ["look out"]})
    result = plugin.run(task_vars=PINNED)
    assert result["ansible_facts"] == {"discovered_interpreter_python": "/usr/bin/python3.11"}
    assert result["warnings"] == ["look out"]


LINE = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}


@pytest.mark.parametrize(
    ("given", "inputs", "password"),
    [
        ({}, {}, ""),
        ({"durable_ups": None}, {}, ""),
        ({"durable_ups": {"quiet": 60}}, {"quiet": 60}, ""),
        (
            {"durable_ups": {"quiet": 60, "monitor": {**LINE, "password": "hunter2"}}},
            {"quiet": 60, "monitor": {**LINE, "password": True}},
            "hunter2",
        ),
        ({"durable_ups": {"monitor": LINE}}, {"monitor": LINE}, ""),
        ({"durable_ups": {"monitor": "rack@localhost 1 u hunter2 primary"}}, {"monitor": ""}, ""),
        ({"durable_ups": "hunter2"}, "", ""),
        ({"durable_ups": 7}, 0, ""),
        ({"durable_ups": ["hunter2"]}, [], ""),
    ],
)
def test_the_password_of_the_ups_is_no_input_of_the_policy(
    given: dict[str, Any], inputs: Any, password: str
) -> None:
    variables = action.Variables(MagicMock(template=lambda value: value), given)
    found = variables.inputs()
    assert found.ups == inputs
    assert "hunter2" not in str(found)
    assert variables.secrets("power", ("password",)) == {"password": password}


def test_every_variable_of_a_host_reaches_the_policy() -> None:
    given = {
        f"durable_{name}": f"given {name}"
        for name in (
            *("profile", "profiles", "overrides", "mounts", "databases", "allow", "layers"),
            *("accept_data_loss", "fail_on"),
        )
    }
    lists = {name: [name] for name in ("durable_attestations", "durable_attestations_group")}
    found = action.Variables(MagicMock(template=lambda value: value), {**given, **lists}).inputs(True)
    told = {f"durable_{name}": value for name, value in found._asdict().items()}
    told["durable_profiles"] = told.pop("durable_own")
    assert {name: told[name] for name in given} == given
    assert found.attestations == {**lists, "durable_attestations_host": []}
    assert (found.rate, sorted(found.names)) == (True, sorted({**given, **lists}))
    assert {"strict", "flush", "protected", "ups", "disposable"} == set(found.shipped)


def test_it_stays_a_shell() -> None:
    assert len(Path(action.__file__).read_text(encoding="utf-8").splitlines()) < 75


def test_each_field_is_documented_and_each_documented_one_is_there() -> None:
    text = (Path(action.__file__).parents[1] / "modules/assess.py").read_text(encoding="utf-8")
    documented = yaml.safe_load(text.split('RETURN = r"""')[1].split('"""')[0])["assessment"]["contains"]
    assert set(documented) == set(run(answer={}))


@pytest.mark.parametrize(
    ("arguments", "variables", "disarms"),
    [
        ({}, {}, False),
        ({"disarm": True}, {}, True),
        ({"disarm": True, "before": packed({"changes": []})}, {}, True),
        ({"disarm": True, "before": packed({"changes": []}), "applied": {"switch": "armed"}}, {}, True),
        ({"disarm": True, "before": packed({"changes": []}), "applied": {"unreachable": True}}, {}, True),
        # Other connections cannot be made again, and have none.
        ({"disarm": True, "before": packed({"changes": []}), "applied": {"switch": "none"}}, {}, False),
        # The reboot is still to come, and what a boot reads is tried by no other.
        ({"disarm": True, "before": packed({"changes": []})}, {"durable_allow": ["reboot"]}, False),
        ({"disarm": True}, {"durable_allow": ["reboot"]}, True),
    ],
)
def test_the_switch_is_disarmed_over_a_connection_that_is_made_anew(
    arguments: dict[str, Any], variables: dict[str, Any], disarms: bool
) -> None:
    given = {**PINNED, **variables}
    told = {"state": "none", "said": ""}
    plugin = started(given, {**answered(), "switch": told}, **arguments)
    order: list[str] = []
    plugin._connection.reset.side_effect = lambda: order.append("reset")
    plugin._execute_module.side_effect = lambda **_given: (
        order.append("asked") or {**answered(), "switch": told}
    )
    assert plugin.run(task_vars=given)["switch"] == told
    assert order == (["reset", "asked"] if disarms else ["asked"])
    module = "confirm" if disarms else "host_facts"
    assert plugin._execute_module.call_args.kwargs["module_name"] == f"durable.dbhost.{module}"


def test_a_connection_that_cannot_be_ended_keeps_nothing_from_being_looked_at() -> None:
    plugin = started(PINNED, answered(), disarm=True)
    plugin._connection.reset.side_effect = AnsibleError("cannot reset")
    assert assessment(plugin, PINNED)["verdict"] == "drifted"


def test_in_a_check_no_switch_is_disarmed() -> None:
    plugin = started(
        PINNED,
        answered(),
        check=True,
        disarm=True,
        before=packed({"changes": [], "pending": [], "steps": []}),
    )
    assert plugin.run(task_vars=PINNED)["switch"]["state"] == "unreported"
    plugin._execute_module.assert_not_called()
    plugin._connection.reset.assert_not_called()


@pytest.mark.parametrize("told", [None, 1, [], {}, {"state": "fine"}, {"state": ["armed"]}])
def test_what_is_no_switch_is_none(told: Any) -> None:
    plugin = started(PINNED, {**answered(), "switch": told})
    assert plugin.run(task_vars=PINNED)["switch"]["state"] == "unreported"


@pytest.mark.parametrize("wrong", [9, 86401, "600", True, 1.5])
def test_a_time_limit_that_is_none_blocks_the_host_which_is_looked_at_all_the_same(wrong: Any) -> None:
    found = run({"durable_time_limit": wrong})
    assert found["verdict"] == "blocked"
    assert (
        f"durable_time_limit: observed {wrong!r}; expected whole seconds from 10 to 86400" in found["why"][0]
    )


@pytest.mark.parametrize(
    ("given", "limit"), [({}, 600), ({"durable_time_limit": 0}, 0), ({"durable_time_limit": "x"}, 600)]
)
def test_the_look_has_the_time_limit_of_the_inventory(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], limit: int
) -> None:
    asked: list[int] = []

    def execute(*words: Any) -> dict[str, Any]:
        asked.append(words[-1])
        return answered()

    monkeypatch.setattr(action, "execute", execute)
    run(given)
    assert asked == [limit]
