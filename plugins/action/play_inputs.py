# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse variables of a play that were set where no play can read them."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars


class ActionModule(ActionBase):
    """Runs once for a batch; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("names", "hosts"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when a host's own variables name one of these. Extra variables may."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        hostvars = (task_vars or {})["hostvars"]
        # Of a play's own variables hostvars holds nothing: what is there is extra or inventory.
        unread = [name for name in self._task.args["names"] if name not in load_extra_vars(self._loader)]
        for name in unread:
            hosts = [host for host in self._task.args["hosts"] if name in hostvars[host]]
            if hosts:
                raise AnsibleActionFail(
                    f"{name}: seen in the inventory (for {', '.join(hosts[:3])}), where a play cannot read it;"
                    f" wanted -e {name}=... on the command line, or vars of import_playbook."
                    " Nothing was changed."
                )
        result.update(changed=False)
        return result
