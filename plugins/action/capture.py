# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the capture module on the host and write its result on the controller."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import (
    PRIVATE,
    keep,
    refused,
    show,
)
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables

#: What people must know of the file before they pass it on.
NOTE = (
    "It holds what the facts read there. Serial numbers, WWNs, UUIDs, host names and addresses are replaced;"
    " mount points, names of volumes and labels are not: read it before you send it."
)


class ActionModule(Bounded):
    """One execution on the host; the file is written by the controller's own process."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("databases", "dir"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return where the file is, or the recording without a directory."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = dict(self._task.args)
        inventory = Variables(self._templar, task_vars or {})
        directory = given.pop("dir", None)
        if directory is None:
            directory = inventory.report_dir()
            if not directory:
                raise refused("durable_report_dir: observed '', expected a directory: a capture is a file")
        result.update(execute(self, "durable.dbhost.capture", given, task_vars or {}, inventory.time_limit()))
        if result.get("failed") or result.get("unreachable") or not directory:
            return result
        if not _is_answer(result):
            raise refused(
                "the answer of the host is not a result of this module: nothing was written; run again with -vvv"
            )
        host = (task_vars or {})["inventory_hostname"]
        result["path"] = _write(os.path.abspath(directory), host, result.pop("recording"))
        show([f"{host}: {result['path']}", NOTE, *_doubts(result)])
        return result


def _is_answer(result: dict[str, Any]) -> bool:
    """Return whether an answer has the form of the module's result: root of the host wrote it."""
    differs = result.get("differs")
    return (
        isinstance(result.get("recording"), str)
        and isinstance(result.get("failed_at"), (str, type(None)))
        and isinstance(differs, list)
        and all(isinstance(name, str) for name in differs)
    )


def _doubts(result: dict[str, Any]) -> list[str]:
    doubts = []
    if result["failed_at"]:
        doubts.append(f"The facts could not be collected to the end: {result['failed_at']}.")
    if result["differs"]:
        doubts.append(
            f"A replay of the file gives other values than the host for: {', '.join(result['differs'])}."
        )
    return doubts


def _write(directory: str, host: str, text: str) -> str:
    """Write the file, for its owner alone, and return its path. An old one is replaced whole."""
    try:
        return keep(directory, f"capture-{quote(host, safe='')}.json", text, PRIVATE)
    except OSError as error:
        raise refused(
            f"dir (durable_report_dir): {directory}: {error.strerror}; name a directory that this user may write"
        ) from error
