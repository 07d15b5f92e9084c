# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a host's facts against its safety profile, on the controller."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import (
    Inputs,
    assess,
    unobserved,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.engines import nothing_known


class ActionModule(ActionBase):
    """A shell around the policy: reads the clock and the registered facts, nothing else."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(Inputs._fields) - {"own"} | {"profiles", "storage", "engines", "failure"}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the assessment."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = dict(self._task.args)
        storage, engines = given.pop("storage", {}), given.pop("engines", None)
        failure = given.pop("failure", None)
        if given.get("fail_on") is None:
            given.pop("fail_on", None)
        inputs = Inputs(own=given.pop("profiles", {}), **given)
        found = unobserved(inputs, "blocked", failure) if failure else _assess(inputs, storage, engines)
        result.update(changed=False, assessment=found)
        return result


def _assess(inputs: Inputs, storage: dict[str, Any], engines: dict[str, Any] | None) -> dict[str, Any]:
    lost = next((result for result in (storage, engines) if result and result.get("unreachable")), None)
    if lost:
        return unobserved(inputs, "unreachable", f"unreachable: {lost.get('msg', '')}")
    facts = _facts(storage, "durable_storage")
    if facts is None:
        return unobserved(inputs, "unknown", f"no facts: {storage.get('msg', 'none collected')}")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if engines is None:
        return assess(inputs, facts, now)
    # Where engines could not be looked for, disks and mounts are made safer all the same.
    why = engines.get("msg", "no facts of engines were collected")
    return assess(inputs, facts, now, _facts(engines, "durable_engines") or nothing_known(now, why))


def _facts(result: dict[str, Any], name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = result.get("ansible_facts", {}).get(name)
    return found
