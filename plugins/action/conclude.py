# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one report of a host's run, of what it began with, what was done and how it ended."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.policy.results import conclude, failure
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import collection_version


class ActionModule(ActionBase):
    """A shell around the policy; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("looks", "applied", "rebooted", "looked_only"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the report, and the line with which the host is to fail."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        report = conclude(
            [look for look in given["looks"] if "assessment" in look],
            given.get("applied") or {},
            given.get("rebooted") or {},
            bool(given.get("looked_only")) or bool(self._task.check_mode),
        )
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        report.update(time=now, collection=collection_version())
        result.update(changed=False, report=report, failure=failure(report))
        return result
