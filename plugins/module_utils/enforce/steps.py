# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a plan on its host, each for one layer, in safe order. One process runs all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..host.seam import Host
from .bring import Outcome, bring

#: The phases that make a host safer.
_SAFER = ("raise", "tighten")


class StepResult(NamedTuple):
    """A step that was started, and its result."""

    phase: str
    layer: str
    klass: str
    outcome: Outcome


def take(
    host: Host,
    code: Mapping[str, Any],
    steps: list[Mapping[str, Any]],
    secrets: Mapping[str, Mapping[str, Any]],
    foretell: bool,
    hosts: Mapping[str, Host] = MappingProxyType({}),
    failed: bool = False,
    shows_files: bool = False,
) -> Iterator[StepResult]:
    """Yield each step as it ends. After one that failed those that make safer are still done, and no other: a guard that could
    not be released may still remove barriers. One about speed alone keeps nothing back.

    `code`: {layer: what enforce/bring.py takes}; `steps`: [{phase, layer, class, arguments}], as the plan has them; `secrets`:
    {layer: arguments of the step or of its targets that are never shown}; `hosts`: {layer: the host as that layer takes it}, if
    it is another; `failed`: whether something failed before the first step; `shows_files`: as enforce/bring.py takes it.
    """
    for step in steps:
        phase, layer, klass = str(step["phase"]), str(step["layer"]), str(step["class"])
        if failed and phase not in _SAFER:
            continue
        given = _with_secrets(step["arguments"], secrets.get(layer, {}), code[layer].ARGUMENTS.shared)
        # What makes less safe changes all targets of its step or none.
        partly = phase in _SAFER and code[layer].ARGUMENTS.apart
        outcome = _brought(hosts.get(layer, host), code[layer], given, foretell, partly, shows_files)
        failed = failed or (bool(outcome.failures) and klass != "performance")
        yield StepResult(phase, layer, klass, outcome)


def _with_secrets(
    given: Mapping[str, Any], secrets: Mapping[str, Any], shared: Collection[str]
) -> dict[str, Any]:
    """Return the arguments of a step with the secret ones; those that are not `shared` take the place of its targets' own."""
    found = {**given, **{name: value for name, value in secrets.items() if name in shared}}
    own = {name: value for name, value in secrets.items() if name not in shared}
    if own and given.get("targets"):
        found["targets"] = [
            {name: own.get(name, value) for name, value in target.items()} for target in given["targets"]
        ]
    return found


def _brought(
    host: Host, code: Any, given: Mapping[str, Any], foretell: bool, partly: bool, shows_files: bool
) -> Outcome:
    try:
        checked = ArgumentSpecValidator(code.ARGUMENTS.spec).validate(given)
        if checked.error_messages:
            return Outcome(failures=tuple(checked.error_messages))
        return bring(host, code, checked.validated_parameters, foretell, partly, shows_files)
    except (
        Exception
    ) as error:  # Steps that make safer are still done; the next collection finds what this one did.
        return Outcome(changed=True, failures=(f"{type(error).__name__}: {error}",))
