# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The apply action: one module for each step, the safest first, and what failed is for the report."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.durable.dbhost.plugins.action import apply as action


def step(phase: str, layer: str, **arguments: Any) -> dict[str, Any]:
    """Return a step of a plan."""
    return {
        "phase": phase,
        "layer": layer,
        "module": f"durable.dbhost.{layer}",
        "arguments": arguments,
        "options": [],
    }


STEPS = [
    step("tighten", "mount_options", targets=[1]),
    step("tighten", "write_cache", targets=[2]),
    step("loosen", "mount_options", targets=[3]),
]


def run(steps: list[dict[str, Any]], answers: list[Any], **variables: Any) -> tuple[dict[str, Any], Any]:
    """Return the action's result, and the mock of what runs modules; an answer may be an error that is raised."""
    task = MagicMock(args={"steps": steps}, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    templar = MagicMock(template=lambda value: value)
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    executed = MagicMock(side_effect=answers)
    plugin._execute_module = executed  # type: ignore[method-assign]
    result = plugin.run(task_vars=variables)
    assert "failed" not in result
    return result, executed


def test_each_step_is_one_execution_in_the_order_of_the_plan() -> None:
    diff = {"before": "a\n", "after": "b\n"}
    result, executed = run(STEPS, [{"changed": False}, {"changed": True, "diff": diff}, {"changed": False}])
    calls = [(call.kwargs["module_name"], call.kwargs["module_args"]) for call in executed.call_args_list]
    assert calls == [(each["module"], each["arguments"]) for each in STEPS]
    assert (result["changed"], result["error"]) == (True, None)
    assert result["begun"] == [[each["phase"], each["layer"]] for each in STEPS]
    header = "tighten write_cache"
    assert result["diff"] == [{"before_header": header, "after_header": header, **diff}]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"failed": True, "msg": "the disk refused"}, "tighten mount_options: the disk refused"),
        (AnsibleError("sudo: a password is required"), "tighten mount_options: root's rights were not given"),
        (AnsibleConnectionFailure("no route"), "tighten mount_options: lost the host: no route"),
        ({"failed": True}, "tighten mount_options: failed, and said nothing"),
    ],
)
def test_after_a_failure_what_makes_safer_is_done_and_nothing_is_made_less_strict(
    answer: Any, why: str
) -> None:
    result, executed = run(STEPS, [answer, {"changed": True}])
    assert [call.kwargs["module_name"] for call in executed.call_args_list] == [
        "durable.dbhost.mount_options",
        "durable.dbhost.write_cache",
    ]
    assert result["begun"] == [["tighten", "mount_options"], ["tighten", "write_cache"]]
    assert result["changed"] is True
    assert result["error"].startswith(why)


def test_what_was_changed_before_a_step_failed_counts() -> None:
    result, _executed = run(STEPS[:1], [{"failed": True, "changed": True, "msg": "half"}])
    assert (result["changed"], result["error"]) == (True, "tighten mount_options: half")


def test_the_password_goes_to_the_step_that_writes_it_alone() -> None:
    ups = {"monitor": {"user": "upsmon", "password": "hunter2"}}
    steps = [*STEPS[:1], step("tighten", "power", targets=[{"x": "y"}], state="present")]
    _result, executed = run(steps, [{}, {}], durable_ups=ups)
    other, power = (call.kwargs["module_args"] for call in executed.call_args_list)
    assert "hunter2" not in str(other)
    assert power["password"] == "hunter2"
    assert "hunter2" not in str(steps)


def test_warnings_of_the_modules_are_shown() -> None:
    result, _executed = run(STEPS[:2], [{"warnings": ["a"]}, {"warnings": ["b"]}])
    assert result["warnings"] == ["a", "b"]


def test_a_step_has_the_options_that_the_inventory_gives_its_layer() -> None:
    steps = [{**step("tighten", "firebird", targets=[1]), "options": ["user", "password", "server"]}]
    given = {"firebird_password": "hunter2", "firebird_server": None, "firebird_state": "released"}
    _result, executed = run(steps, [{}], **given)
    assert executed.call_args.kwargs["module_args"] == {"targets": [1], "password": "hunter2"}
    assert "hunter2" not in str(steps)


@pytest.mark.parametrize(
    "said",
    [
        "give the password of SYSDBA in firebird_password",
        "MONITOR x: seen no password",
        "it has become read-only",
    ],
)
def test_a_module_s_own_words_are_not_taken_for_missing_rights(said: str) -> None:
    result, _executed = run(STEPS[:1], [{"failed": True, "msg": said}])
    assert result["error"] == f"tighten mount_options: {said}"


def test_a_host_that_is_lost_is_no_error_of_the_cleaning_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible removes its directory there at the end of a task; a connection that is gone would end the host's run."""

    def lost(_self: Any, force: bool = False) -> None:
        raise AnsibleConnectionFailure("no route")

    monkeypatch.setattr(action.Bounded.__mro__[1], "cleanup", lost)
    plugin = action.ActionModule(*[MagicMock()] * 5, None)
    plugin.cleanup(force=True)
