# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show what was measured on a host, and keep it on the controller."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class ActionModule(ActionBase):
    """Written by the controller's own process; never connects to a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("name", "show", "files", "dir"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the paths of what was written."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        host = (task_vars or {})["inventory_hostname"]
        paths = []
        if given.get("dir"):
            stem = f"{given['name']}-{quote(host, safe='')}"
            for suffix, text in given["files"].items():
                path = os.path.join(os.path.abspath(given["dir"]), f"{stem}.{suffix}")
                if text:
                    _write(path, str(text))
                    paths.append(path)
                else:
                    _remove(path)
        kept = f"\nkept in {', '.join(paths)}" if paths else ""
        Display().display(f"\n{host}\n{given['show']}{kept}\n")
        result.update(changed=False, paths=paths)
        return result


def _remove(path: str) -> None:
    """Take an earlier run's file away: it would be taken for what this one has found."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise AnsibleActionFail(f"{path}: {error.strerror}; it is of an earlier run: remove it") from error


def _write(path: str, text: str) -> None:
    """Write a file whole, or leave the one that was there."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8", errors="backslashreplace") as handle:
            handle.write(text)
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise AnsibleActionFail(
            f"dir (durable_report_dir): {path}: {error.strerror}; name a directory that this user may write,"
            " or '' for none"
        ) from error
