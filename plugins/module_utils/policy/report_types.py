# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of the report's parts, as its JSON has them. plugins/plugin_utils/report.schema.json describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, TypedDict

from ..facts.ups import GuardFacts, Seconds, UpsFacts

#: A target of a step, in the form of the layer's module.
Target = dict[str, Any]
#: {phase: {layer: its targets}}.
Plan = dict[str, dict[str, list[Target]]]
#: The result of a task or module, as Ansible registers it: of any form.
Result = Mapping[str, Any]


class Change(TypedDict):
    """A change of one setting; `persisted`: None if only the running value changes."""

    phase: str
    layer: str
    target: str
    setting: str
    running: str
    persisted: str | None
    wanted: str


class Outcome(Change):
    """A change with its result."""

    state: str


#: One step of a plan.
Step = TypedDict("Step", {"phase": str, "layer": str, "class": str, "arguments": dict[str, Any]})


class LeaseTerms(TypedDict):
    """The lease of the guard."""

    mounts: list[str]
    expires: str
    quiet: int
    needed: dict[str, Seconds]
    test_ups: bool
    units: list[str]


class ReasonEntry(TypedDict):
    """A finding: the fields of rows.Reason."""

    id: str
    verdict: str
    reason: str
    fix: str
    targets: list[str]
    observed: dict[str, str]


class RequirementEntry(TypedDict):
    """A requirement; `attest`: the lines of an attestation that would meet it."""

    name: str
    target: str
    state: str
    evidence: str
    why: str
    remedy: str
    expires: str
    attest: tuple[str, ...]
    id: str


class Rating(TypedDict):
    """A profile on one host: its verdict now and after a run, the changes, and what is left."""

    verdict: str
    after: str
    changes: list[Change]
    unmet: list[RequirementEntry]
    why: list[str]


class Recommendation(TypedDict):
    """The profile that fits best, others that fit alike, and the variables that pin it."""

    profile: str
    why: list[str]
    also: list[str]
    group_vars: list[str]


class Pending(TypedDict):
    """A setting that needs a restart or a reboot; `after`: the changes that come first."""

    layer: str
    target: str
    setting: str
    needs: str
    why: str
    after: list[str]


class MountEntry(TypedDict):
    """A mount: its profile, whether it is assessed, and why not."""

    target: str
    profile: str | None
    judged: str
    reason: str


class FileEntry(TypedDict):
    """Files of an engine in one directory."""

    directory: str
    opened: str
    count: int
    mount: str | None
    disks: str | list[str]


class EngineEntry(TypedDict, total=False):
    """An instance of an engine; of an unread one some fields are missing."""

    engine: str
    name: str
    state: str
    version: str
    product: str
    judged: str
    reason: str
    files: list[FileEntry]


class PowerSection(TypedDict):
    """The UPS, the budgets with their sums as text, and the guard."""

    upses: list[UpsFacts]
    budget: dict[str, dict[str, Any]]
    guard: GuardFacts


#: A row of the report: the fields of rows.Setting.
Row = TypedDict(
    "Row",
    {
        "layer": str,
        "target": str,
        "setting": str,
        "class": str,
        "wanted_running": str,
        "wanted_persisted": str,
        "running": str,
        "persisted": str,
        "verdict": str,
        "phase": Optional[str],
        "evidence": dict[str, Any],
        "why": str,
        "remedy": str,
        "profile": str,
        "finding": str,
    },
)


class Since(TypedDict):
    """The changes of a host since an earlier report."""

    time: str
    verdict: str
    settings: list[dict[str, Any]]


class Stack(TypedDict):
    """Mounts with the layers below each, and the disks below all."""

    mounts: list[dict[str, Any]]
    disks: list[dict[str, Any]]


class Checklist(TypedDict):
    """The six answers of a rated host, each as text."""

    file_systems: str
    cache_layers: str
    ups: str
    write_cache: str
    barriers: str
    commit_delay: str


class _OfRun(TypedDict, total=False):
    """Fields of a report that not every one has."""

    checklist: Checklist | None
    since: Since | None
    switch: str
    undone: bool
    begun: list[list[str]]
    time: str


class Report(_OfRun):
    """The report of a host, with the fields that the page and the other outputs read."""

    host: str
    profile: str | None
    verdict: str
    was: str
    looked_only: bool
    fails: bool
    error: str | None
    why: list[str]
    reasons: list[ReasonEntry]
    changes: list[Outcome]
    settings: list[Row]
    requirements: list[RequirementEntry]
    ratings: dict[str, Rating]
    recommendation: Recommendation | None
    warnings: list[str]
    accepted: list[dict[str, str]]
    exposed: list[str]
    engines: list[EngineEntry]
    stack: Stack
    power: PowerSection | None
