# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say which mounts of a host are managed, as the measuring playbooks ask it."""

from __future__ import annotations

from typing import Any

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.policy.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.policy.results import cause
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput, choose
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute, learned
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Unreadable, Variables


class ActionModule(Bounded):
    """A shell around the policy, which the measuring playbooks share with harden_db. One execution on the host."""

    TRANSFERS_FILES = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mount points, and the pinned profile's settings. Fails where there is nothing to measure."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            inputs = Variables(self._templar, task_vars or {}).inputs()
        except Unreadable as error:
            raise refused(f"{error}. Nothing was written.") from error
        arguments = {"databases": inputs.databases, "power": "never"}
        answer = execute(self, "durable.dbhost.host_facts", arguments, task_vars or {})
        storage, engines = (_facts(answer, f"durable_{name}") for name in ("storage", "engines"))
        try:
            found = mounts_of(inputs.mounts, inputs.databases, storage, engines)
            profile = None
            if inputs.profile:
                profile = choose(inputs.profile, inputs.shipped, inputs.own, inputs.overrides)[0]._asdict()
        except BadInput as error:
            raise refused(f"{error}. Nothing was written.") from error
        targets = [mount["target"] for mount in found if mount["fstype"] != "raw"]
        if not targets:
            raise refused(
                "no managed mount: seen no database engine with files on one, and none listed; wanted durable_mounts,"
                " or durable_databases with paths on a file system. Nothing was written."
            )
        result.update(changed=False, mounts=targets, profile=profile, **learned(answer))
        return result


def _facts(answer: dict[str, Any], name: str) -> dict[str, Any]:
    told, failed = (answer.get(part) for part in ("ansible_facts", "failures"))
    found = told.get(name) if isinstance(told, dict) else None
    if isinstance(found, dict):
        return found
    why = failed.get(name) if isinstance(failed, dict) else None
    raise refused(f"{name}: not collected: {why or cause(answer) or 'no reason given'}")
