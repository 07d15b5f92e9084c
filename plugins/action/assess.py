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
from ansible_collections.durable.dbhost.plugins.module_utils.policy.engines import nothing_known as no_engines
from ansible_collections.durable.dbhost.plugins.module_utils.policy.ups import nothing_known as no_power


class ActionModule(ActionBase):
    """A shell around the policy: reads the clock and the registered facts, nothing else."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(Inputs._fields) - {"own"} | {"profiles", "storage", "engines", "power", "failure"}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the assessment."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = dict(self._task.args)
        looked = [given.pop(name, None) for name in ("storage", "engines", "power")]
        failure = given.pop("failure", None)
        if given.get("fail_on") is None:
            given.pop("fail_on", None)
        inputs = Inputs(own=given.pop("profiles", {}), **given)
        found = unobserved(inputs, "blocked", failure) if failure else _assess(inputs, *looked)
        result.update(changed=False, assessment=found)
        return result


def _assess(inputs: Inputs, *looked: dict[str, Any] | None) -> dict[str, Any]:
    lost = next((result for result in looked if result and result.get("unreachable")), None)
    if lost:
        return unobserved(inputs, "unreachable", f"unreachable: {lost.get('msg', '')}")
    storage, engines, power = looked
    facts = _facts(storage or {}, "durable_storage")
    if facts is None:
        return unobserved(inputs, "unknown", f"no facts: {(storage or {}).get('msg', 'none collected')}")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # Where engines or the UPS could not be looked at, disks and mounts are made safer all the same.
    found = [
        _facts(engines, "durable_engines", no_engines, now),
        _facts(power, "durable_power", no_power, now),
    ]
    return assess(inputs, facts, now, *found)


def _facts(result: dict[str, Any] | None, name: str, nothing: Any = None, now: str = "") -> Any:
    """Return the facts of a result: None where nobody asked, what stands for nothing where it failed."""
    if result is None:
        return None
    found = result.get("ansible_facts", {}).get(name)
    return found or (nothing(now, result.get("msg", "no facts were collected")) if nothing else None)
