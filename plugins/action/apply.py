# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out the steps of a plan on a host, or of a release, in safe order."""

from __future__ import annotations

import getpass
import platform
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.catalog import LAYERS, release
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import as_changes
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import line, printable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import undo_is_valid
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import cause
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute, learned
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import difference, refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Unreadable, Variables

_MODULE = "durable.dbhost.apply"
#: Connections that are not lost with the host's network: this machine, and what lies on it.
_LOCAL = (
    "local",
    "chroot",
    "jail",
    "iocage",
    "zone",
    "buildah",
    "docker",
    "podman",
    "lxc",
    "lxd",
    "incus",
    "nspawn",
)


class ActionModule(Bounded):
    """One execution for all steps. A failure is reported, and the host is collected again."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("steps", "release", "looked_at", "by"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the steps that started, and failures; those about speed alone are in `slow` and fail no run."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        inventory = Variables(self._templar, variables)
        try:
            arguments = self._arguments(inventory)
        except Unreadable as error:
            result.update(
                changed=False,
                begun=[],
                slow=[],
                switch="none",
                undo_after=0,
                clock=time.monotonic_ns(),
                error=printable(f"the host's variables: {error}"),
            )
            return result
        answer = execute(self, _MODULE, arguments, variables, inventory.time_limit())
        results, malformed = _results(answer)
        slow, errors = _failures(results, is_slow=True), [*_failures(results, is_slow=False), *malformed]
        lost = bool(answer.get("unreachable"))
        if lost:
            errors.append(f"lost the host: {answer.get('msg', 'unreachable')}")
        elif answer.get("failed"):
            # What failed before the first step explains the failures of the steps.
            errors.insert(0, cause(answer) or "the module failed without a message")
        every = [[step["phase"], step["layer"]] for step in arguments["steps"]]
        result.update(
            changed=bool(answer.get("changed")) or lost,
            # Of a host that is lost it is unknown how far it came.
            begun=every if lost else [step["step"] for step in results],
            error=printable("; ".join(errors)) or None,
            switch=_switch(answer, lost),
            undo_after=arguments["undo_after"],
            clock=time.monotonic_ns(),
            slow=printable(slow),
        )
        diffs = [shown for step in results for shown in step["diff"]]
        result.update(learned(answer), **({"diff": diffs} if diffs else {}))
        if arguments["release"]:
            # Of a step that failed, the error lists what was done.
            result["released"] = printable(
                {step["step"][1]: step["changes"] for step in results if not step["failures"]}
            )
        return result

    def _arguments(self, inventory: Variables) -> dict[str, Any]:
        """Return the module's arguments, with passwords, which are in no task's and in no assessment. Raises Unreadable."""
        given = self._task.args
        is_release = boolean(given.get("release", False))
        what = set(given) - {"release", "by"}
        if what != (set() if is_release else {"steps", "looked_at"}):
            raise refused(
                f"apply: observed {', '.join(sorted(given)) or 'nothing'}; expected steps with looked_at, or release: true alone"
            )
        steps, secrets = [], {}
        for step in release() if is_release else given["steps"]:
            layer = step["layer"]
            options = inventory.options(layer, LAYERS[layer].options)
            steps.append({**step, "arguments": {**step["arguments"], **options}})
            secrets[layer] = inventory.secrets(layer, LAYERS[layer].secrets)
        by = given.get("by") or f"{getpass.getuser()} on {platform.node()}"
        return {
            "steps": steps,
            "release": is_release,
            # A release collects its targets itself: it needs no earlier facts.
            "looked_at": None if is_release else _number(given["looked_at"]),
            "by": by,
            "secrets": secrets,
            # What is released waits for the next boot: no connection is lost by it.
            "undo_after": self._undo_after(inventory)
            if not is_release and any(LAYERS[step["layer"]].undone for step in steps)
            else 0,
        }

    def _undo_after(self, inventory: Variables) -> int:
        """Return after how many seconds the host rolls back automatically, 0 for never. Raises Unreadable."""
        seconds = inventory.undo_after()
        if not undo_is_valid(seconds):
            raise Unreadable(f"durable_undo_after: observed {seconds!r}; expected whole seconds")
        return 0 if str(self._connection.transport).rpartition(".")[2] in _LOCAL else int(seconds)


def _failures(results: Iterable[Mapping[str, Any]], is_slow: bool) -> list[str]:
    """Return the failures of the steps that are about speed alone, or of all others."""
    return [
        f"{' '.join(step['step'])}: {why}"
        for step in results
        if step["is_slow"] is is_slow
        for why in step["failures"]
    ]


def _switch(answer: dict[str, Any], lost: bool) -> str:
    """Return the state of the host's rollback timer, `unknown` if the host is lost."""
    return "unknown" if lost else "armed" if answer.get("switch") == "armed" else "none"


def _number(number: Any) -> int:
    """Return the number of the last run on the host, or one with which nothing is changed if it is missing.

    Before ansible-core 2.19 a template makes a text of a number.
    """
    if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,15}", number):
        return int(number)
    return number if isinstance(number, int) else -1


def _results(answer: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the steps that a host reports, and why its answer is malformed: a host's root can
    forge it."""
    try:
        return [
            {
                "step": [str(phase), str(layer)],
                "is_slow": step["class"] == "performance",
                "failures": [line(str(why)) for why in step["failures"]],
                "diff": [
                    difference(shown, f"{phase} {layer}")
                    for shown in step.get("diff", ())
                    if shown["before"] or shown["after"]
                ],
                "changes": as_changes(step.get("changes", ())),
            }
            for step in answer.get("taken", ())
            for phase, layer in [step["step"]]
        ], []
    except (TypeError, KeyError, ValueError) as error:
        return [], [f"its answer is not one of the module's: {error!r}"]
