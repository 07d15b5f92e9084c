# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the results of the facts modules, as a playbook registers them, to an assessment. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from . import engines, ups
from .assessment import Inputs, assess, unobserved

Result = Optional[dict[str, Any]]


def assess_results(
    inputs: Inputs, now: str, storage: Result, found_engines: Result, power: Result
) -> dict[str, Any]:
    """Return the assessment of one host. A result is None where nobody asked; one that failed is no facts.

    `now` is the controller's UTC time in ISO 8601.
    """
    lost = next((each for each in (storage, found_engines, power) if each and each.get("unreachable")), None)
    if lost:
        return unobserved(inputs, "unreachable", f"unreachable: {lost.get('msg', '')}")
    facts = _facts(storage or {}, "durable_storage")
    if facts is None:
        return unobserved(inputs, "unknown", f"no facts: {(storage or {}).get('msg', 'none collected')}")
    return assess(
        inputs,
        facts,
        now,
        # Where they could not be looked at, disks and mounts are made safer all the same.
        _or_nothing(found_engines, "durable_engines", engines.nothing_known, facts),
        _or_nothing(power, "durable_power", ups.nothing_known, facts),
    )


def _or_nothing(
    result: Result, name: str, nothing: Callable[[str, str], dict[str, Any]], storage: dict[str, Any]
) -> Result:
    """Return the facts of a result; of one that failed, that nothing is known, as of the storage facts' moment."""
    if result is None:
        return None
    moment = {field: storage.get(field) for field in ("boot_id", "time")}
    why = result.get("msg", f"no {name} was collected")
    return _facts(result, name) or {**nothing(str(moment["time"]), why), **moment}


def _facts(result: dict[str, Any], name: str) -> Result:
    found: Result = result.get("ansible_facts", {}).get(name)
    return found
