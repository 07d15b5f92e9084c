# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every layer's module does with its layer: plan; show; unless in check mode, act."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..host.reply import fail, finish, warn
from ..host.seam import ChangeFailed, Host, Unobservable, expect_root
from .change import as_diff


def run(
    layer: Any, target: dict[str, Any], restarts: bool = False, shared: dict[str, Any] | None = None
) -> None:
    """Run the module of a layer; `target` is the argument spec of one of its targets.

    A layer has target_of, plan, apply, plan_release and apply_release; a plan has `changes`.
    `restarts`: its plan takes `restart`, whether it may restart a server that needs it. `shared` is the
    spec of options for all targets, which plan and plan_release take. A plan may have `warnings`: what
    is left as it is, and why; and `failures`, {target: reason}: the others are done, then the module fails.
    """
    spec: dict[str, Any] = {
        "targets": {"type": "list", "elements": "dict", "default": [], "options": target},
        "state": {"type": "str", "default": "present", "choices": ["present", "released"]},
    }
    if restarts:
        spec["restart"] = {"type": "bool", "default": False}
    spec.update(shared or {})
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    host = Host()
    common = {name: module.params[name] for name in shared or {}}
    options = {**common, "restart": module.params["restart"]} if restarts else common
    try:
        expect_root(host)
        targets = [layer.target_of(row) for row in module.params["targets"]]
        released = module.params["state"] == "released"
        plan = (
            partial(layer.plan_release, host, **common)
            if released
            else partial(layer.plan, host, targets, **options)
        )
        work = plan()
    except (ChangeFailed, Unobservable) as error:
        fail(module, error)
    failures = list(getattr(work, "failures", {}).values())
    try:
        if work.changes and not module.check_mode:
            if released:
                layer.apply_release(host, work)
            else:
                layer.apply(host, work, targets)
    except (ChangeFailed, Unobservable) as error:
        failures.insert(0, str(error))
    for warning in getattr(work, "warnings", ()):
        warn(module, warning)
    if failures:
        fail(module, "; ".join(failures), changed=not module.check_mode and _has_changed(work, plan))
    finish(
        module,
        changed=bool(work.changes),
        changes=[change._asdict() for change in work.changes],
        diff=as_diff(work.changes),
    )


def _has_changed(work: Any, plan: Callable[[], Any]) -> bool:
    """Tell whether any change of a plan was made before a failure; so too where that cannot be seen any more."""
    try:
        left = plan().changes if work.changes else work.changes
    except (ChangeFailed, Unobservable):
        return True
    return any(change not in left for change in work.changes)
