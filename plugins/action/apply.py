# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out the steps of a plan on a host, each by its layer's module, in the order that is safe."""

from __future__ import annotations

from typing import Any

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.results import cause
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute, learned
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import laid_out
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Unreadable, Variables


class ActionModule(Bounded):
    """One execution for each step. After one that failed those that make safer are still done, and no other."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("steps",))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was done, and what failed. A failure is for the report: the host is to be looked at again."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        begun: list[list[str]] = []
        errors: list[str] = []
        answers: list[dict[str, Any]] = []
        for step in self._task.args["steps"]:
            if step["phase"] == "loosen" and errors:
                continue
            begun.append([step["phase"], step["layer"]])
            answer = self._take(step, variables)
            answers.append(answer)
            if answer.get("failed") or answer.get("unreachable"):
                errors.append(_said(step, answer))
        result.update(
            changed=any(answer.get("changed") for answer in answers),
            begun=begun,
            error=printable("; ".join(errors)) or None,
        )
        diffs = [
            {
                **{f"{side}_header": " ".join(step) for side in ("before", "after")},
                **{side: str(laid_out(str(answer["diff"].get(side, "")))) for side in ("before", "after")},
            }
            for step, answer in zip(begun, answers)
            if isinstance(answer.get("diff"), dict)
        ]
        warnings = [warning for answer in answers for warning in answer.get("warnings") or ()]
        result.update(learned({"warnings": warnings}), **({"diff": diffs} if diffs else {}))
        return result

    def _take(self, step: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of one step's module."""
        inventory = Variables(self._templar, variables)
        try:
            # Passwords are in no task's arguments and in no assessment.
            arguments = {**step["arguments"], **inventory.options(step["layer"], step["options"])}
            if step["layer"] == "power":
                arguments["password"] = inventory.ups_password()
        except Unreadable as error:
            return {"failed": True, "msg": f"the host's variables: {error}"}
        return execute(self, step["module"], arguments, variables)


def _said(step: dict[str, Any], answer: dict[str, Any]) -> str:
    if answer.get("unreachable"):
        why = f"lost the host: {answer.get('msg', 'unreachable')}"
    else:
        why = cause(answer) or "failed, and said nothing"
    return f"{step['phase']} {step['layer']}: {why}"
