# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules run on a host by our actions. A lost or hanging host, or missing rights, is a result, no exception."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..action.engine_facts import Bounded
from ..module_utils.host.printable import printable
from ..module_utils.host.refusals import remedy
from ..module_utils.policy.show.results import Explained, Recognised, of_python
from ..module_utils.rows import HANGS, NO_ANSWER
from . import interpreters
from .deadline import Expired, deadline
from .interpreters import Result

#: What mkdir prints that cannot make a directory.
_MKDIR = re.compile(r"^mkdir: .*", re.M)
#: How ansible-core before 2.19 begins `msg` for a module that printed no result.
_NO_JSON = "MODULE FAILURE"
#: Facts with which Ansible remembers what it has found out of a host on the way to a module.
_LEARNED = ("discovered_interpreter_python",)
#: Seconds for what ends a connection; it asks a process of the controller only.
_RESET = 10


def execute(
    action: Bounded, module: str, arguments: Mapping[str, object], variables: Mapping[str, Any], limit: int
) -> Result:
    """Return what a module returns; for one that could not be run `failed` or `unreachable`, and `msg`.

    A host that does not answer within `limit` seconds (0: no limit) is unreachable. What the module does there may go on.
    """
    started = time.monotonic()
    try:
        with deadline(limit):
            result: Result = action._execute_module(
                module_name=module, module_args=arguments, task_vars=variables
            )
            reason = _unhandled(result)
            if reason is not None:
                result = {**result, "msg": _message(reason)}
            if result.get("failed") and (reason is not None or of_python(result)):
                result = interpreters.explained(action, variables, result)
    except Expired:
        waited = int(time.monotonic() - started)
        action.is_given_up = True
        connect_anew(action)
        why = Explained(f"{NO_ANSWER} {waited} seconds", fix=HANGS)
        return Recognised({"unreachable": True, "msg": f"{why.meaning}; {why.fix}"}, why)
    except AnsibleConnectionFailure as error:
        # Ansible reports a directory that it cannot make as a lost connection, and drops the error of mkdir.
        refused = _MKDIR.search(action.last_stderr)
        if refused:
            return {"failed": True, "msg": f"Failed to create temporary directory: {refused[0]}"}
        return {"unreachable": True, "msg": str(error)}
    except AnsibleError as error:
        return {"failed": True, "msg": str(error)}
    return result


def _unhandled(result: Result) -> str | None:
    """Return the exception that ended a module, None for another end: Ansible has the reason in `exception` alone.

    ansible-core 2.19 and later make it an object, and leave `msg` empty. Earlier ones have the traceback.
    """
    found, msg = result.get("exception"), result.get("msg")
    if not result.get("failed"):
        return None
    if isinstance(found, str) and str(msg).startswith(_NO_JSON):
        return found.rstrip().rpartition("\n")[2]
    reason: str | None = None if msg else getattr(getattr(found, "event", None), "msg", None)
    return reason


def _message(reason: str) -> str:
    is_full = os.strerror(errno.ENOSPC) in reason
    fix = remedy(reason) if is_full else "run again with -vvv, which shows the traceback, and report it"
    return f"the module failed with an error that it does not handle: {reason or 'no text'}; {fix}"


def connect_anew(action: Bounded) -> None:
    """End a persistent connection: it proves nothing of a new one. If that fails, the next task reports why."""
    with contextlib.suppress(AnsibleError, Expired), deadline(_RESET):
        action._connection.reset()


def learned(answer: Mapping[str, Any]) -> Result:
    """Return what an action hands on of a module's answer to Ansible: what it learned of the host, and its warnings."""
    facts = answer.get("ansible_facts")
    discovered = {name: facts[name] for name in _LEARNED if name in facts} if isinstance(facts, dict) else {}
    warnings = printable(answer.get("warnings"))
    return {
        **({"ansible_facts": discovered} if discovered else {}),
        **({"warnings": warnings} if warnings else {}),
    }
