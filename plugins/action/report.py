# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the page at the end of a run, and write its files on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import as_changes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import release
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import names
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import (
    natural,
    with_outcomes,
    worst_first,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import explained
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import unpacked
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import show
from ansible_collections.durable.dbhost.plugins.plugin_utils.publish import publish
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables


class ActionModule(ActionBase):
    """Runs once for a batch; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("hosts", "release"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the reports, worst first. The page is shown also where its files cannot be written."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        hosts = self._task.args["hosts"]
        if boolean(self._task.args.get("release", False)):
            found = [_released(host, variables["hostvars"][host]) for host in sorted(hosts, key=natural)]
            rows = release.render(found, bool(self._task.check_mode)).splitlines()
            show(rows)
            result.update(changed=False, page=rows)
            return result
        reports = worst_first(_reports(hosts, variables))
        reached = {report["host"] for report in reports}
        missing = sorted((host for host in hosts if host not in reached), key=natural)
        inventory = Variables(self._templar, variables)
        page = publish(inventory, reports, missing, _unpinned(hosts, variables))
        result.update(
            changed=False,
            missing=missing,
            verdicts={report["host"]: report["verdict"] for report in reports},
            page=page,
        )
        return result


def _released(host: str, registered: Mapping[str, Any]) -> release.Released:
    """Return what the tasks of a release have registered of a host."""
    watch, layers = (registered.get(name) or {} for name in ("release_watch", "release_applied"))
    changes = dict(layers.get("released") or {})
    error = layers.get("error") or ""
    if watch.get("failed") or watch.get("unreachable"):
        # The layers were not released after it.
        changes, error = {}, _cause(watch) or "the watch was not released, without a reason"
    else:
        if "released" not in layers and not error:
            error = _cause(layers) or "not released yet, or the run lost this host; see its error above"
        try:
            changes = {"watch": as_changes(watch.get("changes") or ()), **changes}
        except (TypeError, KeyError) as malformed:
            error = error or f"the answer of its watch is not one of the module's: {malformed!r}"
    changes = {layer: rows for layer, rows in changes.items() if rows}
    return release.Released(host, changes, error, "durable_profile" in registered)


def _cause(result: Mapping[str, Any]) -> str:
    """Return why a task failed, with the fix, without the message of Ansible if its meaning is known."""
    found = explained(result)
    return "; ".join(filter(None, (found.meaning, found.fix)))


def _reports(hosts: list[str], variables: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports of the hosts that have been concluded, those of earlier batches too.

    All hosts of this batch have the reports of all. Of another host only its own is read: with it there may be reports
    of hosts that an earlier play has concluded.
    """
    reports = dict(_concluded(variables))
    for host in hosts:
        if host not in reports:
            own = _concluded(variables["hostvars"][host])
            reports |= {host: own[host]} if host in own else {}
    return [with_outcomes({"host": host, **unpacked(reports[host])}) for host in hosts if host in reports]


def _concluded(variables: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = (variables.get("harden_concluded") or {}).get("reports") or {}
    return found


def _unpinned(hosts: list[str], variables: dict[str, Any]) -> list[str]:
    """Return notes on hosts without a profile in groups of which other hosts have one."""
    hostvars = variables["hostvars"]
    pinned = {host for host in hosts if "durable_profile" in hostvars[host]}
    found = []
    for group, members in sorted((variables.get("groups") or {}).items()):
        here = set(hosts).intersection(members) if group not in ("all", "ungrouped") else set()
        left = sorted(here - pinned, key=natural)
        if left and here & pinned:
            found.append(
                f"{names(left)}: no durable_profile, and others of the group {group} have one: a slip?"
            )
    return found
