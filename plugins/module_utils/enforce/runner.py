# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main program of every layer's module: arguments, the lock, the layer's steps, the result."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..host.reply import fail, finish, warn
from ..host.seam import ChangeFailed, Host, Unobservable, expect_root
from . import one_run
from .bring import bring
from .change import as_diff


def run(layer: Any) -> None:
    """Run the module of a layer, as enforce/bring.py has it."""
    module = AnsibleModule(argument_spec=layer.ARGUMENTS.spec, supports_check_mode=True)
    host = Host()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = str(module._name).rpartition(".")[2]
    try:
        expect_root(host)
        alone = one_run.hold(host, f"the module {name}", now, [name])
        with nullcontext() if module.check_mode else alone:
            done = bring(host, layer, module.params, module.check_mode, shows_files=module._diff)
    except (ChangeFailed, Unobservable) as error:
        fail(module, error)
    for warning in done.warnings:
        warn(module, warning)
    if done.failures:
        fail(module, "; ".join(done.failures), changed=done.changed)
    finish(
        module,
        changed=done.changed,
        changes=[change._asdict() for change in done.changes],
        **({"diff": [as_diff(done.changes), *done.files]} if module._diff else {}),
    )
