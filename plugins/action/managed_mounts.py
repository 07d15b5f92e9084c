# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the managed mounts of a host, for the playbooks that measure."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import engine_scope, guarantees
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    cause,
    facts_of,
    why_missing,
)
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import ALSO, BadInput, choose, known
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute, learned
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables


class ActionModule(Bounded):
    """A shell around the policy, which the measuring playbooks share with harden_db. One execution on the host."""

    TRANSFERS_FILES = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mount points, the settings of the profile of each, and of all that are known.

        Fails if there is nothing to measure.
        """
        result: dict[str, Any] = super().run(tmp, task_vars)
        inventory = Variables(self._templar, task_vars or {})
        inputs = inventory.inputs()
        if inputs.unreadable:
            raise refused(f"{ALSO.join(error for _name, error in inputs.unreadable)}. Nothing was written.")
        arguments = {"databases": inputs.databases, "power": "never"}
        answer = execute(
            self, "durable.dbhost.host_facts", arguments, task_vars or {}, inventory.time_limit()
        )
        storage, engines = (_collected(answer, f"durable_{name}") for name in ("storage", "engines"))
        try:
            today = time.strftime("%Y-%m-%d", time.gmtime())
            ignored = engine_scope.read(inputs.ignore, inputs.databases, today).entries
            assessed = engine_scope.judged(engine_scope.standings(engines, inputs.databases, ignored))
            named = guarantees.read(inputs.mount_profiles, inputs.shipped, inputs.own)
            found = mounts_of(inputs.mounts, inputs.databases, storage, assessed, named)
            found = [mount for mount in found if mount["fstype"] != "raw"]
            every = {
                name: choose(name, inputs.shipped, inputs.own, None)[0]
                for name in known(inputs.shipped, inputs.own)
            }
            profiles = {}
            if inputs.profile:
                host = choose(inputs.profile, inputs.shipped, inputs.own, inputs.overrides)
                held = guarantees.of_mounts(found, named, *host)
                profiles = {each.facts["target"]: each.profile for each in held}
        except BadInput as error:
            raise refused(f"{error}. Nothing was written.") from error
        targets = [mount["target"] for mount in found]
        if not targets:
            raise refused(
                "no managed mount: observed no database engine with files on one, and none listed; expected durable_mounts,"
                " or durable_databases with paths on a file system. Nothing was written."
            )
        lasting = [target for target, profile in profiles.items() if profile.promises_durability]
        result.update(
            changed=False,
            mounts=targets,
            lasting=lasting or targets,
            known={name: profile._asdict() for name, profile in every.items()},
            profiles={target: profile._asdict() for target, profile in profiles.items()},
            **learned(answer),
        )
        return result


def _collected(answer: dict[str, Any], name: str) -> Any:
    found = facts_of(answer, name)
    if found is None:
        raise refused(
            f"{name}: not collected: {why_missing(answer, name) or cause(answer) or 'no reason given'}"
        )
    return found
