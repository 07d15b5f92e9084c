# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a host's facts against its safety profile, on the controller."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.results import (
    assess_results,
    not_assessed,
)

_RESULTS = ("storage", "engines", "power")


class ActionModule(ActionBase):
    """A shell around the policy: reads the clock and the registered facts, nothing else."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(Inputs._fields) - {"own", "names"} | {"profiles", *_RESULTS, "failure"}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the assessment."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = dict(self._task.args)
        storage, engines, power = (given.pop(name, None) for name in _RESULTS)
        failure = given.pop("failure", None)
        if given.get("fail_on") is None:
            given.pop("fail_on", None)
        inputs = Inputs(own=given.pop("profiles", {}), names=[str(name) for name in task_vars or ()], **given)
        if failure:
            found = not_assessed(inputs, failure)
        else:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            found = assess_results(inputs, now, storage, engines, power)
        result.update(changed=False, assessment=printable(found))
        return result
