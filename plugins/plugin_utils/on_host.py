# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules run on a host from our actions: a host that is lost, or gives no rights, is a result and no exception."""

from __future__ import annotations

import contextlib
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ..module_utils.host.printable import printable

#: Facts with which Ansible remembers what it has found out of a host on the way to a module.
_LEARNED = ("discovered_interpreter_python",)


def execute(
    action: ActionBase, module: str, arguments: dict[str, Any], variables: dict[str, Any]
) -> dict[str, Any]:
    """Return what a module returns; for one that could not be run `failed` or `unreachable`, and `msg`."""
    try:
        result: dict[str, Any] = action._execute_module(
            module_name=module, module_args=arguments, task_vars=variables
        )
    except AnsibleConnectionFailure as error:
        return {"unreachable": True, "msg": str(error)}
    except AnsibleError as error:
        return {"failed": True, "msg": str(error)}
    return result


def connect_anew(action: ActionBase) -> None:
    """End a connection that is kept open: it proves nothing of a new one. Where that fails, what runs next says why."""
    with contextlib.suppress(AnsibleError):
        action._connection.reset()


def learned(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what an action hands on of a module's answer to Ansible: what it learned of the host, and its warnings."""
    facts = answer.get("ansible_facts")
    kept = {name: facts[name] for name in _LEARNED if name in facts} if isinstance(facts, dict) else {}
    warnings = printable(answer.get("warnings"))
    return {**({"ansible_facts": kept} if kept else {}), **({"warnings": warnings} if warnings else {})}
