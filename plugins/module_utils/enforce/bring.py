# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of every layer: plan, and act unless only a prediction is requested.

A layer has ARGUMENTS, target_of, plan, apply, plan_release and apply_release; a plan has `changes`. It may have
`warnings`: what is left as it is, and why; and `failures`, {target: reason}: the others are done, then it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..host.printable import message
from ..host.seam import ChangeFailed, Host, Unobservable
from . import file_diff
from .change import Change, account


class Outcome(NamedTuple):
    """The result of a layer.

    `changes`: what was planned; `changed`: whether any of it was made, or would be; `failures`: why the rest, or all of
    it, was not, ending in what was done by then; `warnings`: what is left as it is, and why; `files`: what `--diff` shows of
    the files that were planned, if it was requested.
    """

    changes: tuple[Change, ...] = ()
    changed: bool = False
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: tuple[dict[str, str], ...] = ()


def bring(
    host: Host,
    layer: Any,
    given: Mapping[str, Any],
    foretell: bool,
    partly: bool = False,
    shows_files: bool = False,
) -> Outcome:
    """Bring a layer to what its arguments say, or foretell it. `given`: values of all of layer.ARGUMENTS.spec.

    `partly`: whether a target that cannot be planned, as a disk that was pulled, leaves the others to be changed. `shows_files`:
    whether the lines of files that change are returned, as `--diff` shows them.
    """
    common = {name: given[name] for name in layer.ARGUMENTS.shared}
    options = {**common, **{name: given[name] for name in layer.ARGUMENTS.permissions}}
    released = given["state"] == "released"
    failures: list[str] = []
    try:
        targets = [layer.target_of(row) for row in given.get("targets", ())]
        if released:
            plan = partial(layer.plan_release, host, **common)
            work = plan()
        else:
            plan = partial(layer.plan, host, **options)
            work, targets, failures = _planned(plan, targets, partly)
            plan = partial(plan, targets)
    except (ChangeFailed, Unobservable) as error:
        return Outcome(failures=(f"{message(str(error))}; nothing of this step was done",))
    failures += getattr(work, "failures", {}).values()
    left: tuple[Change, ...] | None = ()
    files = file_diff.of_plan(host, layer, work) if shows_files and work.changes else ()
    try:
        if work.changes and not foretell:
            if released:
                layer.apply_release(host, work)
            else:
                layer.apply(host, work, targets)
    except (ChangeFailed, Unobservable) as error:
        failures.insert(0, str(error))
        left = _left(plan)
    changes = tuple(work.changes)
    if failures and not foretell and (done := account(changes, left)):
        failures[-1] += f"; {done}"
    # Also if it cannot be read any more.
    changed = left is None or any(change not in left for change in changes)
    changed = changed and not (failures and foretell)
    warnings = tuple(getattr(work, "warnings", ()))
    return Outcome(changes, changed, tuple(map(message, failures)), warnings, tuple(files))


def _planned(
    plan: Callable[[list[Any]], Any], targets: list[Any], partly: bool
) -> tuple[Any, list[Any], list[str]]:
    """Return the plan of all targets, these, and no failures; or `partly`, of those that can be planned, and why others cannot.

    Raises ChangeFailed and Unobservable as the plan of all targets does; if no target can be planned, with all reasons.
    """
    try:
        return plan(targets), targets, []
    except (ChangeFailed, Unobservable):
        if not partly or len(targets) < 2:
            raise
    able: list[Any] = []
    # Each reason once.
    failures: dict[str, None] = {}
    for target in targets:
        try:
            plan([target])
            able.append(target)
        except (ChangeFailed, Unobservable) as error:
            failures[str(error)] = None
    try:
        if able:
            return plan(able), able, list(failures)
    except (ChangeFailed, Unobservable) as error:
        failures[str(error)] = None
    raise ChangeFailed("; ".join(failures))


def _left(plan: Callable[[], Any]) -> tuple[Change, ...] | None:
    """Return the changes still to make after a failure, or None if they cannot be read."""
    try:
        return tuple(plan().changes)
    except (ChangeFailed, Unobservable):
        return None
