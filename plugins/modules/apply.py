#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the apply action, which runs the layers' modules on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Carry out the steps of a plan, the safest first
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Does what the modules of the layers do, step by step in the order of the plan, in one execution on the host.
  - After a failed step, the steps that make the host safer still run, but no step that makes it less strict.
  - A failed step that changes only speed does not stop other steps. Its failures are in RV(slow).
  - It holds the host's lock, as the modules of the layers do. If another run holds the lock, or has started to change the
    host since it was collected, nothing is done.
  - With O(undo_after), it starts the rollback timer before the first change of mounts, caches and their boot files. The
    timer restores these unless M(durable.dbhost.confirm) removes it.
  - It does not fail the task. Failures are in RV(error), and the host must be collected again.
  - Passwords are read from the inventory, are in no argument of a task, and are not shown.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
attributes:
  diff_mode:
    description: Returns what each setting was and is, by step, and the lines of the files that change.
    support: full
options:
  steps:
    description: The steps, as M(durable.dbhost.assess) returns them. Required without O(release).
    type: list
    elements: dict
    default: []
  release:
    description:
      - Release all layers instead, in the order of the catalogue, the guard of a UPS first. The action makes the steps.
      - The first layer that cannot be released ends the release. A rollback timer that runs is removed before; none is
        started.
    type: bool
    default: false
  looked_at:
    description:
      - Number of the last run when the host was collected, as M(durable.dbhost.assess) returns it. Required with O(steps).
    type: int
  by:
    description: Name in the message of other runs while the host is locked. Without it, the user and the name of the controller.
    type: str
  undo_after:
    description: Seconds without a change after which the rollback timer restores the host, 0 for none. Set by the action itself.
    type: int
    default: 0
  secrets:
    description: Set by the action itself.
    type: dict
    default: {}
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Collect facts and assess
  durable.dbhost.assess:
  register: before

- name: Apply the plan, the safest step first
  durable.dbhost.apply:
    steps: "{{ before.steps }}"
    looked_at: "{{ before.looked_at }}"
  register: applied
"""

RETURN = r"""
clock:
  description: Time of this result, in nanoseconds of the controller's own clock, for O(durable.dbhost.conclude#module:since).
  returned: always
  type: int
begun:
  description: The phase and layer of each step that was started. If the connection was lost, of all steps.
  returned: always
  type: list
  elements: list
error:
  description: What failed, in one line, or null.
  returned: always
  type: str
released:
  description: The changes of each layer that was released, or would be in check mode, without those that failed.
  returned: with O(release)
  type: dict
slow:
  description: Failures of steps that change only speed. They fail no run and stop no other step.
  returned: always
  type: list
  elements: str
switch:
  description: State of the rollback timer, V(armed) or V(none); V(unknown) if the connection to the host was lost.
  returned: always
  type: str
undo_after:
  description: Seconds without a change after which the rollback timer restores the host, 0 if these steps start none.
  returned: always
  type: int
"""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import LAYERS
from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import as_diff
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.steps import StepResult, take
from ansible_collections.durable.dbhost.plugins.module_utils.engines import unit_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import apply as firebird
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish, warn
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Host,
    Unobservable,
    expect_root,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    io_scheduler,
    mount_options,
    write_cache,
)
from ansible_collections.durable.dbhost.plugins.module_utils.undo import installed
from ansible_collections.durable.dbhost.plugins.module_utils.undo.arm import arm, expect_possible
from ansible_collections.durable.dbhost.plugins.module_utils.undo.journal import UnarmedHost
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as power
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import apply as power_guard

#: The code of each layer of the catalogue.
CODE = {
    "power_guard": power_guard,
    "power": power,
    "write_cache": write_cache,
    "io_scheduler": io_scheduler,
    "mount_options": mount_options,
    "unit_mounts": unit_mounts,
    "mssql": mssql,
    "faircom": faircom,
    "firebird": firebird,
    "postgresql": postgresql,
    "mariadb": mariadb,
}


def _guarded(host: Host, given: Mapping[str, Any], check_mode: bool) -> tuple[Host, str]:
    """Return the host for steps that the rollback timer takes back, and why the timer is not armed, '' if it is.

    Raises ChangeFailed if the timer cannot work on this host.
    """
    if not given["undo_after"]:
        return host, ""
    expect_possible(host)
    if check_mode:
        return host, ""
    try:
        return arm(host, CODE, given["steps"], given["undo_after"]), ""
    except ChangeFailed as error:
        # A remount, or a switch of a cache, needs no file of the boot.
        return UnarmedHost(host), str(error)


def _as_result(step: StepResult, shows_diff: bool) -> Mapping[str, object]:
    return {
        "step": [step.phase, step.layer],
        "class": step.klass,
        "failures": list(step.outcome.failures),
        **({"diff": [as_diff(step.outcome.changes), *step.outcome.files]} if shows_diff else {}),
        # The page of a release names them.
        **({"changes": [row._asdict() for row in step.outcome.changes]} if step.phase == "release" else {}),
    }


def main() -> None:
    """Run the module."""
    spec = {
        "steps": {"type": "list", "elements": "dict", "default": []},
        "release": {"type": "bool", "default": False},
        "looked_at": {"type": "int"},
        "by": {"type": "str"},
        "undo_after": {"type": "int", "default": 0},
        "secrets": {"type": "dict", "default": {}, "no_log": True},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    given, host = module.params, Host()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    reach = dict.fromkeys(str(step["layer"]) for step in given["steps"])
    alone = one_run.hold(host, given["by"] or "an administrator", now, reach, given["looked_at"])
    try:
        expect_root(host)
        with nullcontext() if module.check_mode else alone:
            # Left armed, it would put back what is released here.
            is_disarmed = given["release"] and (
                installed.switch_of(host).state != installed.NONE
                if module.check_mode
                else installed.clear(host)
            )
            undone = [layer for layer in reach if LAYERS[layer].undone]
            guarded, unarmed = _guarded(host, given, module.check_mode) if undone else (host, "")
            hosts = dict.fromkeys(undone, guarded)
            results = list(
                take(
                    host,
                    CODE,
                    given["steps"],
                    given["secrets"],
                    module.check_mode,
                    hosts,
                    failed=bool(unarmed),
                    shows_files=module._diff,
                )
            )
    except (ChangeFailed, Unobservable) as error:
        fail(module, error)
    for warning in (warning for step in results for warning in step.outcome.warnings):
        warn(module, warning)
    changed = is_disarmed or any(step.outcome.changed for step in results)
    as_results = [_as_result(step, module._diff) for step in results]
    if unarmed:
        fail(module, unarmed, changed, taken=as_results)
    finish(module, changed=changed, taken=as_results, switch=installed.switch_of(host).state)


if __name__ == "__main__":
    main()
