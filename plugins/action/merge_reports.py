# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merge the reports of several runs into one page and one result."""

from __future__ import annotations

import functools
import time
from datetime import datetime
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput, gathered
from ansible_collections.durable.dbhost.plugins.plugin_utils.merge import merge
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import collected, refused
from ansible_collections.durable.dbhost.plugins.plugin_utils.publish import publish
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables

_MAX_HOURS = 48
#: The controller of a run without an inventory of its own.
_NOBODY = "localhost"


class ActionModule(ActionBase):
    """Runs once; never on a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("directories", "hosts", "max_hours"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the verdicts, and the line with which the run is to fail. What is no report is one that fails."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        try:
            directories, hours = gathered(
                (
                    functools.partial(_directories, given.get("directories")),
                    functools.partial(_hours, given.get("max_hours")),
                )
            )
        except BadInput as error:
            raise refused(error) from None
        expected = [host for host in given.get("hosts") or () if host != _NOBODY]
        now = datetime(*time.gmtime()[:6])
        try:
            fleet = merge(collected(directories), expected, now, hours)
        except OSError as error:
            raise refused(f"durable_reports: {error.filename}: {error.strerror}") from error
        if not fleet.reports:
            raise refused(
                f"durable_reports: observed no report in {', '.join(directories)}; expected directories with HOST.json files"
            )
        page = publish(
            Variables(self._templar, task_vars or {}), fleet.reports, (), fleet.notes, of_hosts=False
        )
        failing = [report["host"] for report in fleet.reports if report["fails"] or report["error"]]
        result.update(
            changed=False,
            failing=failing,
            failure=f"{len(failing)} of {len(fleet.reports)} hosts fail (the page says why)"
            if failing
            else None,
            verdicts={report["host"]: report["verdict"] for report in fleet.reports},
            page=page,
        )
        return result


def _directories(found: Any) -> list[str]:
    """Return the directories to read. Raises BadInput."""
    directories = [found] if isinstance(found, str) else found
    if not isinstance(directories, list) or not directories or not all(map(str, directories)):
        raise BadInput(
            f"durable_reports: observed {found!r}; expected a directory with reports, or a list of them; add"
            " -e durable_reports=DIRECTORY"
        )
    return [str(each) for each in directories]


def _hours(found: Any) -> float:
    """Return how old a report may be. Raises BadInput."""
    try:
        hours = float(_MAX_HOURS if found is None else found)
    except (TypeError, ValueError):
        hours = 0
    # A number that is none is in no order.
    if not 0 < hours <= 24 * 366:
        raise BadInput(
            f"durable_reports_max_hours: observed {found!r}; expected hours, above 0 and at most 8784"
        )
    return hours
