# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse variables of a play in places where they would have no effect."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import declared
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import names
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import ALSO
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables

#: What a play reads before any variable of the inventory.
_READ_FIRST = ("durable_hosts", "durable_serial")
_UNREAD = (
    "{name}: observed in the inventory, where a play cannot read it; expected -e {name}=... on the command line, or vars of"
    " import_playbook: delete it there"
)
_UNPINNED = (
    "No host of this run has a durable_profile; expected one pinned in the inventory's group_vars, for example"
    " durable_profile: strict in group_vars/databases.yml in the same directory as the inventory file"
    " (group_vars next to a playbook that imports this one are not read)"
)
_UNCHANGED = ". Nothing was changed."


class _Evaluated:
    """Leaves values as they are: hostvars has evaluated them."""

    def template(self, value: Any) -> Any:
        """Return the value."""
        return value


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
        wrong: dict[str, list[str]] = {}
        own = Variables(self._templar, variables)
        for error in own.report_errors():
            wrong[error] = []
        read_in = {host: Variables(_Evaluated(), hostvars[host]) for host in play_hosts}
        for host, given in read_in.items():
            unreadable = [_UNREAD.format(name=name) for name in unread if name in hostvars[host]]
            for error in (*unreadable, *given.report_errors()):
                wrong.setdefault(error, []).append(host)
        if self._task.args.get("pinned") and not _is_pinned(variables, play_hosts):
            wrong[_UNPINNED] = []
        if wrong:
            today = time.strftime("%Y-%m-%d", time.gmtime())
            for host, given in read_in.items():
                for error in declared.errors(given.inputs(), today):
                    wrong.setdefault(error, []).append(host)
            raise refused(ALSO.join(f"{error}{_on(hosts)}" for error, hosts in wrong.items()) + _UNCHANGED)
        own.report_dir()
        own.report_formats()
        result.update(changed=False, clock=time.monotonic_ns())
        return result


def _on(hosts: list[str]) -> str:
    return f" (of {names(hosts)})" if hosts else ""


def _is_pinned(variables: dict[str, Any], hosts: list[str]) -> bool:
    """Return whether a host of the run has a profile. A run without one can change nothing."""
    return "durable_profile" in variables or any(
        "durable_profile" in variables["hostvars"][host] for host in hosts
    )
