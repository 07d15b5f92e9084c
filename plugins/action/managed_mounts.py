# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say which mounts of a host are managed, on the controller."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.policy.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput, choose
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import refused


class ActionModule(ActionBase):
    """A shell around the policy, which the measuring playbooks share with harden_db."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(
        ("mounts", "databases", "storage", "engines", "profile", "shipped", "profiles", "overrides")
    )

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mount points, and the pinned profile's settings. Fails where there is nothing to measure."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        storage = _facts(given["storage"], "durable_storage")
        engines = _facts(given["engines"], "durable_engines")
        try:
            found = mounts_of(given.get("mounts"), given.get("databases"), storage, engines)
            profile = None
            if given.get("profile"):
                profile = choose(
                    given["profile"], given["shipped"], given.get("profiles"), given.get("overrides")
                )
        except BadInput as error:
            raise refused(f"{error}. Nothing was written.") from error
        targets = [mount["target"] for mount in found if mount["fstype"] != "raw"]
        if not targets:
            raise refused(
                "no managed mount: seen no database engine with files on one, and none listed; wanted durable_mounts,"
                " or durable_databases with paths on a file system. Nothing was written."
            )
        result.update(changed=False, mounts=targets, profile=profile[0]._asdict() if profile else None)
        return result


def _facts(result: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = result.get("ansible_facts", {}).get(name)
    if found is None:
        raise refused(f"{name}: not collected: {result.get('msg', 'no reason given')}")
    return found
