# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one report of each host's run: the state before, the changes, the state after."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.policy import kinds
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import unobserved
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    cause,
    conclude,
    failure,
)
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed, unpacked
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import collection_version

#: What roles/harden registers of a host, in the order of its run: results of assess, of apply and of reboot.
LOOKS = ("harden_before", "harden_after", "harden_last")
APPLIED, REBOOTED = "harden_applied", "harden_rebooted"
_NOT_RUN = "no collection of facts was run"
_REMOVED = "the run failed for this host, or lost it, before its facts were collected; see its error above, then run again"


class ActionModule(ActionBase):
    """A shell around the policy, once for a batch of hosts; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("hosts", "removed", "since", "looked_only"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the report of each host, and the line with which one is to fail."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given, hostvars = self._task.args, (task_vars or {})["hostvars"]
        looked_only = boolean(given.get("looked_only", False)) or bool(self._task.check_mode)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        made = {"time": now, "collection": collection_version()}
        reports = {
            host: {**_concluded(hostvars[host], int(given["since"]), looked_only), **made}
            for host in given["hosts"]
        }
        for host in given.get("removed") or ():
            # Those of earlier batches, and of an earlier play of this run, have a report.
            if host not in (hostvars[host].get("harden_concluded") or {}).get("reports", {}):
                reports[host] = {**conclude([_without_facts(_REMOVED)], {}, {}, looked_only), **made}
        causes = {host: failure(report) for host, report in reports.items()}
        failures = {host: line for host, line in causes.items() if line is not None}
        texts = {host: packed(report) for host, report in reports.items()}
        result.update(changed=False, reports=texts, failures=failures)
        return result


def _without_facts(why: str) -> dict[str, Any]:
    """Return a result, as that of assess, of a host of which no facts were collected."""
    return {"assessment": unobserved(Inputs(), kinds.NO_FACTS.found(cause=why, detail="", cure=""))}


def _concluded(registered: Mapping[str, Any], since: int, looked_only: bool) -> dict[str, Any]:
    """Return the report of one host, of what was registered since a time of the controller's own clock.

    A task that had no reason to run leaves what an earlier play has registered.
    """
    found = {name: registered.get(name) or {} for name in (APPLIED, *LOOKS)}
    fresh = {name: facts for name, facts in found.items() if facts.get("clock", since - 1) >= since}
    # A stock module's result has no time: the module ran if the collection before it required that.
    is_rebooted = fresh.get("harden_after", {}).get("wants_reboot", False)
    collected = [
        {**fresh[name], "assessment": unpacked(fresh[name]["assessment"])} for name in LOOKS if name in fresh
    ]
    # A failed task has no time.
    failed = [
        cause(facts) or "a task failed without a message" for facts in found.values() if facts.get("failed")
    ]
    if not collected:
        collected = [_without_facts((failed or [_NOT_RUN])[-1])]
    elif found["harden_last"].get("failed"):
        collected.append({**collected[-1], "error": f"the facts were not collected again: {failed[-1]}"})
    return conclude(
        collected,
        fresh.get(APPLIED, {}),
        registered.get(REBOOTED) or {} if is_rebooted else {},
        looked_only,
    )
