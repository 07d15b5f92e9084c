# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect a host's facts in one execution, and compare them with its safety profile."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    assess_answer,
    cause,
    disarms,
    limit_of_collection,
    question,
    reported_switch,
    wants_reboot,
)
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed, unpacked
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import connect_anew, execute, learned
from ansible_collections.durable.dbhost.plugins.plugin_utils.publish import benchmark_of
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables


class ActionModule(Bounded):
    """A shell around the policy: reads the inventory's variables, the clock and the host's facts, nothing else."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("rate", "before", "applied", "failed", "disarm"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the assessment, whatever the inventory says and the host answers."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        answer: dict[str, Any] = {}
        before = unpacked(given["before"]) if given.get("before") else None
        inventory = Variables(self._templar, task_vars or {})
        inputs = inventory.inputs(bool(given.get("rate")))
        if before and self._task.check_mode:
            found = before  # Nothing was changed since.
        else:
            is_confirmed = disarms(inputs, given)
            if is_confirmed:
                connect_anew(self)
            module = "durable.dbhost.confirm" if is_confirmed else "durable.dbhost.host_facts"
            limit = limit_of_collection(inventory.time_limit(), given.get("applied"))
            answer = execute(self, module, question(inputs), task_vars or {}, limit)
            inputs = inputs._replace(benchmark=benchmark_of(inventory))
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            found = printable(assess_answer(inputs, now, answer))
        reboot = wants_reboot(inputs, found, before, given.get("applied"))
        why = cause(given["failed"]) or "a task failed without a message" if given.get("failed") else None
        result.update(
            changed=False,
            assessment=packed(found),
            steps=found["steps"],
            looked_at=answer.get("looked_at"),
            switch=reported_switch(answer),
            wants_reboot=reboot,
            error=printable(why),
            clock=time.monotonic_ns(),
            **learned(answer),
        )
        return result
