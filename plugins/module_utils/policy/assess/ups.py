# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requirements of a profile that rests on a UPS: conditions of the host, and attestations. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ...attestations import HOST, Attestation
from ...attestations import find as find_attestation
from ...facts.storage import DiskFacts
from ...facts.ups import BudgetFacts, ConditionFacts, PowerFacts
from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import name as quoted
from ...host.printable import quote
from ...ups import findings
from ...ups.conditions import NAMES
from . import budgets
from .requirements import Requirement, of_disk

#: The names of the conditions of power_facts.
CONDITIONS = NAMES
#: States of a UPS on battery: the guard handles them automatically.
_AWAY = ("OL", "OB", "LB", "CHRG", "DISCHRG")
#: Fields of power facts that hold sentences of the host, and those that are compared or have a sentence of ours.
_TEXTS, _UNCHANGED = ("reason", "evidence"), ("lease", "fixes", "value", "source")


def explained(power: PowerFacts) -> PowerFacts:
    """Return power facts with texts that are fit for messages: sentences in quotes, and others unless they can only be names."""
    return cast("PowerFacts", _shown(power))


def _shown(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: each if name in _UNCHANGED else _shown(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, str) and value:
        return quote(value) if key in _TEXTS else quoted(value)
    return value


def nothing_known(now: str, why: str) -> PowerFacts:
    """Return durable_power for a host whose UPS could not be collected."""
    unread: BudgetFacts = {"needed": UNKNOWN, "available": UNKNOWN, "state": UNKNOWN, "terms": []}
    return {
        "boot_id": "",
        "time": now,
        "kernel": "",
        "monitor": UNKNOWN,
        "unit": "",
        "mode": "",
        "upses": [],
        "timing": {},
        "budget": {"durability": unread, "clean_stop": unread},
        "conditions": [],
        "guard": {
            "state": UNKNOWN,
            "reason": why,
            "since": None,
            "quiet": None,
            "lease": None,
            "mounts": [],
        },
        "settings": {},
        "evidence": {"observation": {"value": UNKNOWN, "source": "power_facts", "reason": why}},
    }


def requirements(
    power: PowerFacts | None, virtualization: str, disks: list[DiskFacts], attestations: list[Attestation]
) -> list[Requirement]:
    """Return all requirements for the guard to disable barriers.

    `power`: durable_power, None if not collected; `virtualization`: the output of systemd-detect-virt;
    `disks`: the leaves below the managed mounts.
    """
    found = list(_of_facts(power, attestations))
    found += [_of_claim(claim, attestations) for claim in ("ups_rehearsed", "plug_pulled")]
    # A host of unknown kind must meet the requirements of both kinds.
    if virtualization != "none":
        found.append(_of_claim("virtual_host_power", attestations))
    if virtualization in ("none", UNKNOWN):
        found += [of_disk("ups", disk, attestations) for disk in disks]
    return found


def is_test(needed: list[Requirement]) -> bool:
    """Return whether a simulated UPS is accepted."""
    return any((need.name, need.state) == ("driver_real", "attested") for need in needed)


def last_day(needed: list[Requirement]) -> str:
    """Return the last day on which all attestations of the requirements are valid; '' without any."""
    return min((need.expires for need in needed if need.expires), default="")


def section(power: PowerFacts | None) -> dict[str, Any] | None:
    """Return the section of the report about power; None if not collected."""
    if power is None:
        return None
    texts = {
        name: {**each, "arithmetic": budgets.in_words(each)} for name, each in budgets.by_name(power).items()
    }
    conditions = [
        {
            **{field: value for field, value in each.items() if field != "fixes"},
            "remedy": findings.fix_text(each["fixes"]),
        }
        for each in power["conditions"]
    ]
    fields = ("monitor", "mode", "upses", "timing", "guard")
    return {
        **{field: value for field, value in power.items() if field in fields},
        "conditions": conditions,
        "budget": texts,
    }


def _of_facts(power: PowerFacts | None, attestations: list[Attestation]) -> Iterator[Requirement]:
    if power is None or not power["conditions"]:
        observed = power["evidence"].get("observation", NOTHING) if power else NOTHING
        why = observed.get("reason") or "the facts of the UPS were not collected"
        kind = findings.POWER_NOT_ASKED if power is None else findings.POWER_UNKNOWN
        yield Requirement.failed(kind, HOST, "no power facts", name="power_known", cause=why)
        return
    reported = {condition["name"] for condition in power["conditions"]}
    for condition in power["conditions"]:
        need = _condition(condition, attestations)
        yield _guarded(need, power) if (need.name, condition["state"]) == ("status_online", "unmet") else need
    for name in CONDITIONS:
        if name not in reported:
            kind, cure = findings.CONDITION_UNKNOWN, "collect the facts with this release"
            cause = "the power facts do not contain it"
            yield Requirement.failed(kind, HOST, "not reported", name=name, cause=cause, cure=cure)


def _condition(condition: ConditionFacts, attestations: list[Attestation]) -> Requirement:
    name, target, state = condition["name"], condition["target"], condition["state"]
    if state == "met":
        return Requirement(name, target, "met", condition["evidence"], "", "")
    attestation = (
        find_attestation(attestations, ("test_ups",), None)
        if (name, state) == ("driver_real", "unmet")
        else None
    )
    if attestation:
        return Requirement(name, target, "attested", attestation.sentence, "", "", attestation.expires)
    observed = condition["evidence"]
    cure = findings.fix_text(condition["fixes"]) or "correct what the reason names, then run again"
    if state != "unmet":
        kind = findings.CONDITION_UNKNOWN
        return Requirement.failed(kind, target, observed, name=name, cause=observed, cure=cure)
    return Requirement.failed(findings.CONDITIONS[name], target, observed, cure=cure)


def _guarded(need: Requirement, power: PowerFacts) -> Requirement:
    """Return the requirement of utility power; `guarded` if the guard has enabled the barriers for it.

    Its lease stays, and the host has not drifted. Any other fault of the UPS needs a fix.
    """
    status = {each for ups in power["upses"] for each in ups["status"]}
    guard = power["guard"]
    if status and status <= set(_AWAY) and guard["lease"] and guard["state"] in ("tight", "waiting"):
        return need._replace(state="guarded")
    return need


def _of_claim(claim: str, attestations: list[Attestation]) -> Requirement:
    attestation = find_attestation(attestations, (claim,), None)
    if attestation:
        return Requirement(claim, HOST, "attested", attestation.sentence, "", "", attestation.expires)
    return Requirement.failed(findings.NOT_ATTESTED[claim], HOST, "no attestation")
