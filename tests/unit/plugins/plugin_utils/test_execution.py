# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a module did not run on a host, or ended by an exception, is in its result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.action.engine_facts import ActionModule
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute

ROOT = Path(__file__).resolve().parents[4]
FULL = "mkdir: cannot create directory '/root/.ansible/tmp/x': No space left on device"
READ_ONLY = "mkdir: cannot create directory '/root/.ansible/tmp/x': Read-only file system"


def action(answers: list[Any], transport: str = "ssh") -> ActionModule:
    """Return an action whose module needs a temporary directory; `answers`: to each command on the host."""
    shell = MagicMock(tmpdir=None, expand_user=lambda path, **_more: f"echo {path}")
    connection = MagicMock(_shell=shell, transport=transport, _remote_is_local=False, become=None)
    connection.is_pipelining_enabled.return_value = False
    task = MagicMock(args={}, async_val=0, diff=False, check_mode=False)
    plugin = ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    plugin._answers = iter(answers)  # type: ignore[attr-defined]
    plugin._remote_expand_user = lambda path, **_more: path  # type: ignore[method-assign]
    plugin.get_shell_option = lambda _name, default=None: default  # type: ignore[method-assign]
    plugin._execute_module = lambda **_given: plugin._make_tmp_path()  # type: ignore[method-assign]
    return plugin


def executed(*answers: Any, transport: str = "ssh") -> dict[str, Any]:
    """Return the result of a module; an answer may be an error that is raised."""

    def answer(self: Any, *_given: Any, **_more: Any) -> dict[str, Any]:
        found = next(self._answers)
        if isinstance(found, Exception):
            raise found
        return {"stdout": "", "stderr": "", "rc": 0, **found}

    plugin = action(list(answers), transport)
    with patch.object(ActionBase, "_low_level_execute_command", answer):
        return execute(plugin, "durable.dbhost.host_facts", {}, {}, 0)


@pytest.mark.parametrize("said", [FULL, READ_ONLY])
@pytest.mark.parametrize("before", ["", "Warning: Permanently added 'db1' to the list of known hosts.\n"])
def test_a_directory_that_ansible_cannot_make_is_no_lost_connection(said: str, before: str) -> None:
    found = executed({"rc": 1, "stderr": f"{before}{said}\n"})
    assert found == {"failed": True, "msg": f"Failed to create temporary directory: {said}"}


def test_a_connection_that_is_lost_stays_lost() -> None:
    assert executed({"rc": 255, "stderr": "ssh: connect to host db1: timed out"}).get("unreachable")
    assert executed(AnsibleConnectionFailure("no route")) == {"unreachable": True, "msg": "no route"}


def test_an_earlier_refusal_does_not_explain_a_connection_that_is_lost_now() -> None:
    plugin = action([{"rc": 1, "stderr": FULL}, AnsibleConnectionFailure("no route")])

    def answer(self: Any, *_given: Any, **_more: Any) -> dict[str, Any]:
        found = next(self._answers)
        if isinstance(found, Exception):
            raise found
        return {"stdout": "", **found}

    with patch.object(ActionBase, "_low_level_execute_command", answer):
        plugin._low_level_execute_command("true")
        assert execute(plugin, "durable.dbhost.host_facts", {}, {}, 0).get("unreachable")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[Errno 28] No space left on device: '/run/x'", "free space on that file system"),
        ("'NoneType' object is not iterable", "run again with -vvv"),
        ("", "no text; run again with -vvv"),
    ],
)
def test_an_exception_of_a_module_is_its_message(text: str, shown: str) -> None:
    """As ansible-core 2.19 and later hand it to an action."""
    plugin = action([])
    plugin._low_level_execute_command = lambda *_given, **_more: {"stdout": ""}  # type: ignore[method-assign]
    error = SimpleNamespace(event=SimpleNamespace(msg=text))
    plugin._execute_module = lambda **_given: {"failed": True, "exception": error}  # type: ignore[method-assign]
    found = execute(plugin, "durable.dbhost.apply", {}, {}, 0)["msg"]
    assert found.startswith("the module failed with an error that it does not handle: ")
    assert text in found and shown in found
    plugin._execute_module = lambda **_given: {"failed": True, "msg": "no", "exception": error}  # type: ignore[method-assign]
    assert execute(plugin, "durable.dbhost.apply", {}, {}, 0)["msg"] == "no"


def test_a_traceback_of_an_earlier_ansible_core_is_its_last_line() -> None:
    """As ansible-core 2.16 to 2.18 hand it to an action."""
    plugin = action([])
    plugin._low_level_execute_command = lambda *_given, **_more: {"stdout": ""}  # type: ignore[method-assign]
    trace = "Traceback (most recent call last):\n  File \"<stdin>\", line 1\nOSError: [Errno 28] No space left on device: '/x'\n"
    hint = "MODULE FAILURE\nSee stdout/stderr for the exact error"
    plugin._execute_module = lambda **_given: {"failed": True, "msg": hint, "exception": trace}  # type: ignore[method-assign]
    found = execute(plugin, "durable.dbhost.apply", {}, {}, 0)["msg"]
    assert "does not handle: OSError: [Errno 28] No space left on device: '/x'; " in found
    assert "Traceback" not in found and "-vvv" not in found
    plugin._execute_module = lambda **_given: {"failed": True, "msg": "no", "exception": trace}  # type: ignore[method-assign]
    assert execute(plugin, "durable.dbhost.apply", {}, {}, 0)["msg"] == "no"


PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - durable.dbhost.assess:
      register: found
    - durable.dbhost.apply: {steps: [], looked_at: 0}
      register: applied
    - debug: {msg: "{{ (found.assessment | from_json).why }} {{ applied.error }} {{ applied.begun }}"}
"""


def test_ansible_itself_over_a_file_system_that_takes_no_directory(tmp_path: Path) -> None:
    """In /proc nobody can make one. No module runs on this machine."""
    (tmp_path / "ansible_collections/durable").mkdir(parents=True)
    (tmp_path / "ansible_collections/durable/dbhost").symlink_to(ROOT)
    (tmp_path / "play.yml").write_text(PLAY)
    given = ["-e", "ansible_remote_tmp=/proc/ansible", "-e", "ansible_connection=local"]
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "db1,", *given, "play.yml"]
    environment = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "ANSIBLE_PIPELINING": "false"}
    done = subprocess.run(
        argv, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert "unreachable=0" in done.stdout, done.stdout + done.stderr
    shown = done.stdout.replace('\\"', '"')
    assert shown.count('Ansible cannot write its own files there ("Failed to create temporary') == 2
    assert "mkdir: " in done.stdout
