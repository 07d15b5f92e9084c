# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only way from a module to the controller: results, failures and warnings, made printable."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from . import bounds
from .printable import line, message, printable

#: What the names of our modules begin with.
_MODULES = __name__.partition(".module_utils.")[0] + ".modules."


def finish(module: AnsibleModule, changed: bool = False, **result: Any) -> None:
    """End a module with its result. Never returns."""
    _end(module, {"changed": changed, **printable(result)})


def observed(module: AnsibleModule, name: str, facts: Mapping[str, Any]) -> None:
    """End a module with facts, or with why they are more than a controller takes. Never returns."""
    shown = printable(facts)
    refused = bounds.too_large(shown)
    if refused:
        fail(module, f"This machine cannot be observed: {refused}")
    _end(module, {"changed": False, "ansible_facts": {name: shown}})


def fail(module: AnsibleModule, why: object, changed: bool = False, **result: Any) -> None:
    """End a module with a reason, an exception or a text. Never returns."""
    module.fail_json(msg=line(message(str(why))), changed=changed, **printable(result))


def warn(module: AnsibleModule, text: str) -> None:
    """Have the controller show a warning."""
    module.warn(line(message(text)))


def observed_all(
    module: AnsibleModule,
    facts: Mapping[str, object],
    failures: dict[str, str],
    looked_at: int,
    switch: dict[str, str],
    changed: bool = False,
) -> None:
    """End a module with several kinds of facts, bounded and printable already, why others are not there, the run
    that was the last to change the host, and the rollback timer."""
    result = {
        "changed": changed,
        "ansible_facts": facts,
        "failures": failures,
        "looked_at": looked_at,
        "switch": {name: line(text) for name, text in switch.items()},
    }
    _end(module, result)


def _end(module: AnsibleModule, result: Mapping[str, object]) -> None:
    # Not where a test calls a module's main(): that process has more to do, and an exit code of its own.
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec and spec.name.startswith(_MODULES):
        atexit.register(_leave)
    module.exit_json(**result)


def _leave() -> None:
    """End the process without taking apart what it has made: the kernel takes all of it back at once, where Python needs a
    tenth of the cost of one collection. Ansible has removed the module's files by now."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
