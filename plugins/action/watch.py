# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the watch on a host, with the settings of the inventory."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import declared
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import ALSO
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables, collection_version


class ActionModule(Bounded):
    """One execution on the host."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("calendar", "metrics", "state"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returns."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = dict(self._task.args)
        inventory = Variables(self._templar, task_vars or {})
        if given.get("state") != "released":
            given.update(inputs=_inputs(inventory), version=collection_version())
        result.update(execute(self, "durable.dbhost.watch", given, task_vars or {}, inventory.time_limit()))
        return result


def _inputs(inventory: Variables) -> dict[str, Any]:
    """Return what the inventory says of the host, as an assessment takes it."""
    found = inventory.inputs()
    wrong = ALSO.join(declared.errors(found, time.strftime("%Y-%m-%d", time.gmtime())))
    if wrong:
        raise refused(f"{wrong}{'' if wrong.endswith(('?', '.')) else '.'} Nothing was changed.")
    own = [name for name in found.names if name.startswith("durable_")]
    return found._replace(names=own)._asdict()
