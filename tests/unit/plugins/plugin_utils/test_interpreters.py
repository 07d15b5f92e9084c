# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose Python is too old or missing: the report names the version, and an interpreter of that host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded, TooMuch
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import assess_answer
from ansible_collections.durable.dbhost.plugins.plugin_utils import interpreters
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute

from ..module_utils.fakes.runs import NOW, inputs

OLD = "/usr/bin/python3"
HOST = f"{OLD} /usr/bin/python3.8\n/usr/local/bin/python3.12 /usr/local/bin/python3.12\n/usr/bin/python3.9 /usr/bin/python3.9\n"
#: What ansible-core's own check prints, before a module starts: 2.21, and 2.20 and earlier.
REFUSALS = (
    "Ansible requires Python 3.9 or newer on the target. Current version: 3.8.18 (default, May  9 2026) [GCC 12.2.0]",
    "ansible-core requires a minimum of Python version 3.9. Current version: 3.8.18 (default) [GCC 12.2.0]",
)
FIX = "set ansible_python_interpreter to /usr/bin/python3.9 (or /usr/local/bin/python3.12) in the inventory"


class Action(Bounded):
    """An action whose module fails; `said`: what the listing on its host prints."""

    def __init__(self, result: dict[str, Any], said: str | Exception = HOST) -> None:
        templar = MagicMock(template=lambda value: value)
        super().__init__(MagicMock(async_val=0), MagicMock(), MagicMock(), MagicMock(), templar, None)
        self.result, self.said, self.commands = result, said, []

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        raise NotImplementedError

    def _execute_module(self, *_args: Any, **_named: Any) -> dict[str, Any]:
        return self.result

    def _low_level_execute_command(self, cmd: str, *_args: Any, **named: Any) -> dict[str, Any]:
        self.commands.append((cmd, named))
        if isinstance(self.said, Exception):
            raise self.said
        return {"stdout": self.said, "stderr": "", "rc": 0}


def why(action: Action, **variables: Any) -> str:
    answer = execute(action, "durable.dbhost.host_facts", {}, variables, 0)
    (found,) = assess_answer(inputs(), NOW, answer)["why"]
    return str(found)


@pytest.mark.parametrize("said", REFUSALS)
def test_ansible_s_own_refusal_names_both_versions_and_an_interpreter_of_the_host(said: str) -> None:
    found = why(Action({"failed": True, "msg": said}), ansible_python_interpreter=OLD)
    assert found == f"no facts: Python 3.8 observed, 3.9 or later expected; {FIX}"


@pytest.mark.parametrize(
    "result",
    [
        {"failed": True, "msg": "Task failed: Module failed: 'type' object is not subscriptable"},
        {
            "failed": True,
            "exception": MagicMock(event=MagicMock(msg="'str' has no attribute 'removesuffix'")),
        },
        {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "'functools' has no attribute 'cache'"},
    ],
)
def test_a_module_that_fails_on_an_old_interpreter_has_the_version_of_that_interpreter(
    result: dict[str, Any],
) -> None:
    found = why(Action(result), ansible_python_interpreter=OLD)
    assert found == f"no facts: Python 3.8 observed, 3.9 or later expected; {FIX}"


def test_an_interpreter_that_is_missing_is_named_with_one_that_is_there() -> None:
    missing = {"failed": True, "msg": "The module interpreter '/opt/x' was not found.", "rc": 127}
    found = why(Action(missing), ansible_python_interpreter="/opt/x")
    assert found == f"no facts: no usable Python at /opt/x, 3.9 or later expected; {FIX}"


@pytest.mark.parametrize(
    "said",
    [
        "",
        f"{OLD} /usr/bin/python3.8\n",
        "/usr/bin/python3.11$(reboot) /usr/bin/python3.11\n/x y /usr/bin/python3.12\n/usr/bin/z /usr/bin/python4\n",
        AnsibleConnectionFailure("lost"),
        TooMuch("more"),
    ],
)
def test_without_a_later_interpreter_the_fix_is_to_install_one(said: str | Exception) -> None:
    found = why(Action({"failed": True, "msg": REFUSALS[0]}, said), ansible_python_interpreter=OLD)
    assert found == (
        "no facts: Python 3.8 observed, 3.9 or later expected; install Python 3.9 or later there, or name one in"
        " ansible_python_interpreter"
    )


@pytest.mark.parametrize(
    "result",
    [
        {"ansible_facts": {}},
        {"failed": True, "msg": "sudo: a password is required"},
        {"failed": True, "msg": "no space left on device"},
    ],
)
def test_no_other_host_gets_a_further_command(result: dict[str, Any]) -> None:
    action = Action(result)
    execute(action, "durable.dbhost.host_facts", {}, {"ansible_python_interpreter": OLD}, 0)
    assert action.commands == []


def test_a_failure_on_a_new_interpreter_stays_as_it_is() -> None:
    result = {"failed": True, "exception": MagicMock(event=MagicMock(msg="an error"))}
    found = execute(
        Action(result, f"{OLD} /usr/bin/python3.11\n"), "x", {}, {"ansible_python_interpreter": OLD}, 0
    )
    assert found["msg"].startswith("the module failed with an error that it does not handle: an error")


def test_the_listing_starts_no_interpreter_and_quotes_the_inventory(tmp_path: Path) -> None:
    """The command runs here, with an interpreter that would leave a mark."""
    mark, real = tmp_path / "mark", tmp_path / "python3.8"
    real.write_text(f"#!/bin/sh\ntouch {mark}\n")
    real.chmod(0o755)
    named = tmp_path / "it's python"
    named.symlink_to(real)
    action = Action({}, "")
    interpreters._listed(action, str(named))
    interpreters._listed(action, "")
    ((command, given), (plain, _given)) = action.commands
    assert given == {"sudoable": False}
    printed = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert f"{named} {os.path.realpath(real)}" in printed.splitlines()
    assert not mark.exists()
    assert subprocess.run(["sh", "-c", plain], capture_output=True, check=True).returncode == 0


def test_it_runs_as_the_login_user() -> None:
    """Root starts nothing for it: `sudoable` False takes become off."""
    assert "sudoable" in ActionBase._low_level_execute_command.__code__.co_varnames
