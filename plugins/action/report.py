# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write each host's report on the controller and show the table."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.policy.report import (
    render,
    with_outcomes,
    worst_first,
)
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import keep, refused, show
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables


class ActionModule(ActionBase):
    """Runs once for a batch; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("hosts",))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the reports, worst first."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        hostvars = (task_vars or {})["hostvars"]
        hosts = self._task.args["hosts"]
        reports = [
            with_outcomes({"host": host, **hostvars[host]["harden_concluded"]["report"]})
            for host in hosts
            if "report" in hostvars[host].get("harden_concluded", {})
        ]
        reached = {report["host"] for report in reports}
        missing = [host for host in hosts if host not in reached]
        directory = Variables(self._templar, task_vars or {}).report_dir()
        if directory:
            _write(os.path.abspath(directory), reports)
        show(render(reports, missing).splitlines())
        result.update(
            changed=False, missing=missing, verdicts={r["host"]: r["verdict"] for r in worst_first(reports)}
        )
        return result


def _write(directory: str, reports: list[dict[str, Any]]) -> None:
    try:
        for report in reports:
            text = json.dumps(report, indent=2, sort_keys=True, default=str)
            keep(directory, f"{quote(report['host'], safe='')}.json", f"{text}\n")
    except OSError as error:
        raise refused(
            f"durable_report_dir: {directory}: {error.strerror}; name a directory that this user may write, or '' for"
            " none"
        ) from error
