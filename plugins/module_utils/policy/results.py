# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the results of the facts modules, as a playbook registers them, to an assessment. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Optional

from . import engines, ups
from .assessment import Inputs, assess, unobserved

Result = Optional[dict[str, Any]]

_PYTHON = "install Python 3.9 or later there, or name one in ansible_python_interpreter"
#: What a task's failure says, and what it means: Ansible itself tells of a symptom only.
_CAUSES = (
    (
        re.compile(r"interpreter .* was not found|python[\d.]*: (command )?not found", re.I),
        f"no Python where Ansible looks for it ({{said}}); {_PYTHON}",
    ),
    (
        # 3.6 knows no annotations, 3.7 no :=, and 3.8 no dict[...].
        re.compile(r"SyntaxError|object is not subscriptable|requires a minimum of Python", re.I),
        f"its Python is too old ({{said}}); {_PYTHON}",
    ),
    (
        re.compile(r"become|sudo|\bsu:|\bdoas|privilege escalation|password", re.I),
        "root's rights were not given ({said}); log in as root, or add -b (become: true), with its password (-K)",
    ),
    (
        re.compile(r"template|undefined|Finalization of task args|vault", re.I),
        "the host's variables: {said}",
    ),
)
#: By these Ansible says no more than that a module has ended badly: the host's own words are elsewhere.
_SYMPTOMS = re.compile(r"Module result deserialization failed|MODULE FAILURE|See stdout/stderr", re.I)


def cause(result: dict[str, Any]) -> str:
    """Return in one line why a task has failed, with what to do where that is known; '' where nothing is said.

    `result` is the task's, as registered or as `ansible_failed_result`.
    """
    said = str(result.get("msg") or "")
    if _SYMPTOMS.search(said) or not said:
        said = str(result.get("module_stderr") or result.get("module_stdout") or said)
    lines = [line.strip() for line in said.split("\n") if line.strip() and not line.startswith(">>>")]
    if not lines:
        return ""
    # Of a traceback, and of what sudo adds, the end is the cause; else the sentence that the module chose.
    last = lines[-1] if len(lines) > 1 else lines[0]
    for pattern, meaning in _CAUSES:
        if pattern.search(said):
            return meaning.format(said=last)
    return last if _SYMPTOMS.search(str(result.get("msg") or "")) else " ".join(lines)


def not_assessed(inputs: Inputs, failed: dict[str, Any]) -> dict[str, Any]:
    """Return the assessment of a host on which a task before the policy has failed: what a user wrote blocks it."""
    why = cause(failed) or "a task failed, and said nothing"
    if why.startswith("the host's variables: "):
        return unobserved(inputs, "blocked", why)
    return unobserved(inputs, "unknown", f"no facts: {why}")


def assess_results(
    inputs: Inputs, now: str, storage: Result, found_engines: Result, power: Result
) -> dict[str, Any]:
    """Return the assessment of one host. A result is None where nobody asked; one that failed is no facts.

    `now` is the controller's UTC time in ISO 8601.
    """
    lost = next((each for each in (storage, found_engines, power) if each and each.get("unreachable")), None)
    if lost:
        return unobserved(inputs, "unreachable", f"unreachable: {' '.join(str(lost.get('msg', '')).split())}")
    facts = _facts(storage or {}, "durable_storage")
    if facts is None:
        return unobserved(inputs, "unknown", f"no facts: {cause(storage or {}) or 'none collected'}")
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
    why = cause(result) or f"no {name} was collected"
    return _facts(result, name) or {**nothing(str(moment["time"]), why), **moment}


def _facts(result: dict[str, Any], name: str) -> Result:
    """Return the facts in a result, None where there are none of that form: whoever is root there wrote it."""
    told = result.get("ansible_facts")
    found = told.get(name) if isinstance(told, dict) else None
    return found if isinstance(found, dict) else None
