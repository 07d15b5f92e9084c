# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The apply action: all steps in one execution, passwords for it alone, and what failed is for the report."""

from __future__ import annotations

import getpass
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.durable.dbhost.plugins.action import apply as action
from ansible_collections.durable.dbhost.plugins.module_utils.catalog import LAYERS

STEPS = [
    {"phase": "tighten", "layer": "mount_options", "class": "safety", "arguments": {"targets": [1]}},
    {"phase": "tighten", "layer": "firebird", "class": "safety", "arguments": {"targets": [2]}},
    {"phase": "loosen", "layer": "mount_options", "class": "safety", "arguments": {"targets": [3]}},
]
BEGUN = [[step["phase"], step["layer"]] for step in STEPS]


def taken(
    number: int, *failures: str, before: str = "", after: str = "", files: list[Any] | None = None
) -> dict[str, Any]:
    """Return what a host reports of a step; with --diff its settings, and files that change."""
    settings = {"before": before, "after": after}
    step = {"step": BEGUN[number], "class": "safety", "failures": list(failures)}
    return {**step, "diff": [settings, *(files or ())]} if before or files else step


def run(
    answer: Any,
    steps: list[dict[str, Any]] | None = None,
    looked_at: Any = 4,
    transport: str = "ssh",
    release: bool = False,
    **variables: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the action's result, and what the module was given; an answer may be an error that is raised."""
    what = {"release": True} if release else {"steps": steps or STEPS, "looked_at": looked_at}
    task = MagicMock(args=what, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None), transport=transport)
    templar = MagicMock(template=lambda value: value)
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    executed = MagicMock(side_effect=[answer])
    plugin._execute_module = executed  # type: ignore[method-assign]
    result = plugin.run(task_vars=variables)
    assert "failed" not in result
    assert executed.call_args.kwargs["module_name"] == "durable.dbhost.apply"
    return result, executed.call_args.kwargs["module_args"]


def test_a_release_takes_all_layers_and_arms_no_switch() -> None:
    _result, given = run({"taken": []}, release=True, durable_undo_after=600, firebird_user="OWNER")
    assert [step["layer"] for step in given["steps"]] == list(LAYERS)
    assert {step["arguments"]["state"] for step in given["steps"]} == {"released"}
    (firebird,) = [step for step in given["steps"] if step["layer"] == "firebird"]
    assert firebird["arguments"]["user"] == "OWNER"
    assert (given["undo_after"], given["looked_at"]) == (0, None)
    assert run({"taken": []}, durable_undo_after=600)[1]["undo_after"] == 600


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"looked_at": 4},
        {"steps": STEPS},
        {"steps": STEPS, "looked_at": 4, "release": True},
        {"release": False},
        {"release": True, "looked_at": 4},
    ],
)
def test_neither_steps_nor_a_release_or_both_is_refused(args: dict[str, Any]) -> None:
    task = MagicMock(args=args, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None), transport="ssh")
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    with pytest.raises(AnsibleError, match="expected steps with looked_at, or release: true alone"):
        plugin.run(task_vars={})


def test_a_release_that_loses_its_host_may_have_begun_anything() -> None:
    result, _given = run(AnsibleConnectionFailure("gone"), release=True)
    assert [layer for _phase, layer in result["begun"]] == list(LAYERS)
    assert "lost the host" in result["error"]


def test_all_steps_are_one_execution() -> None:
    answer = {"changed": True, "taken": [taken(0), taken(1, before="a\n", after="b\n"), taken(2)]}
    result, given = run(answer)
    assert given["steps"] == STEPS
    assert (given["looked_at"], given["by"].partition(" on ")[0]) == (4, getpass.getuser())
    assert (result["changed"], result["error"], result["begun"]) == (True, None, BEGUN)
    header = "tighten firebird"
    assert result["diff"] == [
        {"before_header": header, "after_header": header, "before": "a\n", "after": "b\n"}
    ]


def test_lines_of_files_have_the_headers_of_their_files() -> None:
    edit = {
        "before_header": "/etc/fstab",
        "after_header": "/etc/fstab",
        "before": "a\n",
        "after": "b\x1b[2J\nc\n",
    }
    result, _given = run({"changed": True, "taken": [taken(0, files=[edit])]})
    assert result["diff"] == [{**edit, "after": "b\\x1b[2J\nc\n"}]
    assert "diff" not in run({"changed": True, "taken": [taken(0)]})[0]
    result, _given = run({"changed": True, "taken": [taken(0, files=[{**edit, "before": ""}])]})
    assert result["diff"][0]["before"] == ""


@pytest.mark.parametrize("files", [["x"], [{"before": "a"}], [7]])
def test_malformed_lines_of_files_are_a_malformed_answer(files: list[Any]) -> None:
    result, _given = run({"changed": True, "taken": [taken(0, files=files)]})
    assert "its answer is not one of the module's" in result["error"]


def test_what_was_changed_before_a_step_failed_counts() -> None:
    result, _given = run({"changed": True, "taken": [taken(0, "the disk refused", "another too"), taken(1)]})
    assert (result["changed"], result["begun"]) == (True, BEGUN[:2])
    assert result["error"] == "tighten mount_options: the disk refused; tighten mount_options: another too"


def test_what_a_step_says_of_a_full_disk_is_handed_on_as_it_is() -> None:
    why = "/etc/fstab: No space left on device: not changed; free space on / (df -h, df -i), then run again"
    assert run({"taken": [taken(0, why)]})[0]["error"] == f"tighten mount_options: {why}"
    assert run({"taken": [taken(0, "No space left on device")]})[0]["error"].endswith(
        ": No space left on device"
    )


def test_a_step_about_speed_that_failed_is_no_error() -> None:
    slow = {**taken(0, "no bfq"), "class": "performance"}
    result, _given = run({"changed": True, "taken": [slow, taken(1), taken(2)]})
    assert (result["error"], result["slow"]) == (None, ["tighten mount_options: no bfq"])
    result, _given = run({"changed": True, "taken": [slow, taken(1, "it refused"), taken(2)]})
    assert (result["error"], len(result["slow"])) == ("tighten firebird: it refused", 1)


@pytest.mark.parametrize(
    ("answer", "why", "begun"),
    [
        ({"failed": True, "msg": "another run changes this host"}, "another run changes this host", []),
        (
            AnsibleError("sudo: a password is required"),
            "could not become root: the become password is missing or wrong",
            [],
        ),
        # How far it came nobody knows.
        (AnsibleConnectionFailure("no route"), "lost the host: no route", BEGUN),
        ({"failed": True}, "the module failed without a message", []),
        ({"taken": [{"step": 1}]}, "its answer is not one of the module's: TypeError", []),
        ({"taken": [{"step": []}]}, "its answer is not one of the module's: ValueError", []),
        ({"taken": [{"step": ["x"]}]}, "its answer is not one of the module's: ValueError", []),
        ({"taken": 3}, "its answer is not one of the module's: TypeError", []),
    ],
)
def test_a_module_that_could_not_do_its_work_is_told(answer: Any, why: str, begun: list[Any]) -> None:
    result, _given = run(answer)
    assert result["error"].startswith(why)
    assert result["begun"] == begun
    assert result["changed"] is bool(begun)


@pytest.mark.parametrize(("looked_at", "number"), [("4", 4), ("0", 0), ("-1", -1), (140737488355328, 2**47)])
def test_a_number_that_a_template_of_an_older_ansible_made_a_text_of_is_a_number(
    looked_at: Any, number: int
) -> None:
    _result, given = run({"taken": []}, looked_at=looked_at)
    assert given["looked_at"] == number


@pytest.mark.parametrize("looked_at", [None, "", "four", "4 "])
def test_without_the_number_of_a_look_nothing_can_be_changed(looked_at: Any) -> None:
    _result, given = run({"taken": []}, looked_at=looked_at)
    assert given["looked_at"] == -1


def test_passwords_go_to_their_steps_alone() -> None:
    ups = {"monitor": {"user": "upsmon", "password": "hunter2"}}
    power = {"phase": "tighten", "layer": "power", "arguments": {"targets": [{"x": "y"}], "state": "present"}}
    steps = [*STEPS, power]
    variables = {"firebird_password": "masterkey", "firebird_server": "db1", "firebird_state": "released"}
    _result, given = run({"taken": []}, steps, durable_ups=ups, **variables)
    assert given["secrets"] == {
        "mount_options": {},
        "firebird": {"password": "masterkey"},
        "power": {"password": "hunter2"},
    }
    assert given["steps"][1]["arguments"] == {"targets": [2], "server": "db1"}
    assert not {"hunter2", "masterkey"} & set(str((given["steps"], steps)).split("'"))


@pytest.mark.parametrize(
    ("command", "secrets"),
    [
        ("/bin/x --password=hunter2", {"shutdown_command": "/bin/x --password=hunter2"}),
        # A mask of it would hide a common word in all that the module reports.
        ("/sbin/shutdown -h now", {}),
        (None, {}),
    ],
)
def test_a_command_with_a_password_goes_to_its_step_as_one(
    command: str | None, secrets: dict[str, str]
) -> None:
    power = {"phase": "tighten", "layer": "power", "arguments": {"targets": [{"shutdown_command": "x"}]}}
    _result, given = run({"taken": []}, [power], durable_ups={"shutdown_command": command})
    assert given["secrets"] == {"power": {"password": "", **secrets}}
    assert "hunter2" not in str(given["steps"])


@pytest.mark.parametrize(
    ("transport", "variables", "seconds"),
    [
        ("ssh", {}, 900),
        ("ansible.netcommon.libssh", {}, 900),
        ("ssh", {"durable_undo_after": 120}, 120),
        ("ssh", {"durable_undo_after": 0}, 0),
        ("local", {"durable_undo_after": 120}, 0),
        ("chroot", {}, 0),
        ("community.general.chroot", {}, 0),
        ("community.docker.docker", {}, 0),
    ],
)
def test_the_switch_is_for_connections_that_can_be_lost(
    transport: str, variables: dict[str, Any], seconds: int
) -> None:
    result, given = run({"taken": []}, transport=transport, **variables)
    assert result["undo_after"] == given["undo_after"] == seconds
    engine = [step for step in STEPS if step["layer"] == "firebird"]
    assert run({"taken": []}, engine, transport=transport, **variables)[0]["undo_after"] == 0


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"taken": [], "switch": "armed"}, "armed"),
        ({"taken": [], "switch": "none"}, "none"),
        ({"taken": [], "switch": ["armed"]}, "none"),
        (AnsibleConnectionFailure("no route"), "unknown"),
    ],
)
def test_whether_the_switch_waits_is_handed_on(answer: Any, state: str) -> None:
    assert run(answer)[0]["switch"] == state


def test_warnings_of_the_module_are_shown() -> None:
    assert run({"taken": [], "warnings": ["a", "b"]})[0]["warnings"] == ["a", "b"]


@pytest.mark.parametrize(
    "said",
    [
        "give the password of SYSDBA in firebird_password",
        "MONITOR x: observed no password",
        "it has become read-only",
    ],
)
def test_a_layer_s_own_words_are_not_taken_for_missing_rights(said: str) -> None:
    assert run({"taken": [taken(0, said)]})[0]["error"] == f"tighten mount_options: {said}"


def test_a_host_that_is_lost_is_no_error_of_the_cleaning_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible removes its directory there at the end of a task; a connection that is gone would end the host's run."""

    def lost(_self: Any, force: bool = False) -> None:
        raise AnsibleConnectionFailure("no route")

    monkeypatch.setattr(action.Bounded.__mro__[1], "cleanup", lost)
    plugin = action.ActionModule(*[MagicMock()] * 5, None)
    plugin.cleanup(force=True)
