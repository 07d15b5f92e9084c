# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse what would have no effect: variables of a play where no play can read them."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables

#: What a play reads before any variable of the inventory.
_READ_FIRST = ("durable_hosts", "durable_serial")


class ActionModule(ActionBase):
    """Runs once for a batch; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("pinned",))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when a host's own variables name one of these (extra variables may)."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        hostvars, play_hosts = variables["hostvars"], variables["ansible_play_hosts_all"]
        # Of a play's own variables hostvars holds nothing: what is there is extra or inventory.
        unread = [name for name in _READ_FIRST if name not in load_extra_vars(self._loader)]
        for name in unread:
            hosts = [host for host in play_hosts if name in hostvars[host]]
            if hosts:
                raise refused(
                    f"{name}: observed in the inventory (for {', '.join(hosts[:3])}), where a play cannot read it;"
                    f" expected -e {name}=... on the command line, or vars of import_playbook."
                    " Nothing was changed."
                )
        given = Variables(self._templar, variables)
        given.report_formats()
        given.report_dir()
        if self._task.args.get("pinned"):
            _check_pinned(variables, play_hosts)
        result.update(changed=False, clock=time.monotonic_ns())
        return result


def _check_pinned(variables: dict[str, Any], hosts: list[str]) -> None:
    """Refuse a run that can change nothing: no host of it has a profile."""
    if "durable_profile" in variables or any(
        "durable_profile" in variables["hostvars"][host] for host in hosts
    ):
        return
    raise refused(
        "No host of this run has a durable_profile; expected one pinned in the inventory's group_vars, for example"
        " durable_profile: strict in group_vars/databases.yml in the same directory as the inventory file"
        " (group_vars beside a playbook that imports this one are not read). Nothing was changed."
    )
