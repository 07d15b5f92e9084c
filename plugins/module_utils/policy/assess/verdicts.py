# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a host, and its reasons, from the findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...catalog import LAYERS, is_engine
from ...host.observation import UNKNOWN
from ...host.printable import name as quoted
from ...rows import VERDICTS, Reason, Setting, value_of
from ...storage import mount_settings
from .. import kinds
from ..expect.waivers import Accepted
from ..report_types import Pending
from . import guard, plan
from .found import Findings
from .requirements import Requirement

#: Settings of a disk that decide the cache mode of a layer over it.
_CACHE_SETTINGS = ("write_cache", "kernel_cache_mode")


def of(found: Findings) -> str:
    """Return the verdict of a host: the worst of its findings that are not accepted."""
    wrong = unaccepted(found)
    if wrong:
        return wrong[0].verdict
    accepted = accepted_by(found)
    if not found.promises or any(each.found.verdict == "at_risk" for each in accepted):
        return "accepted_loss"
    is_attested = any(need.state == "attested" for need in found.needed)
    return "attested" if is_attested or accepted else "durable"


def unaccepted(found: Findings) -> list[Reason]:
    """Return all findings that are not accepted, worst first: the first has the host's verdict.

    Settings about speed are notes.
    """
    waived = {each.found for each in accepted_by(found)}
    needed = [need for need in found.needed if not waived.intersection(_of_need(need))]
    stated = {
        (each.target, each.setting)
        for each in found.causes
        if each.risk in found.risks and each.risk not in waived
    }
    # A risk has the cause, the fix and the verdict of its setting.
    rows = (
        row for row in found.rows if row.verdict != "drift_running" or (row.target, row.setting) not in stated
    )
    found = found._replace(rows=tuple(rows))
    left = [each for each in _wrong(found, _missing(needed)) if each not in waived]
    return sorted(left, key=lambda each: VERDICTS.index(each.verdict))


def accepted_by(found: Findings) -> list[Accepted]:
    """Return all findings that a waiver accepts."""
    if not found.waivers.entries:
        return []
    both = ((found.waivers.of(each), each) for each in every(found))
    return [Accepted(waiver, each) for waiver, each in both if waiver]


def every(found: Findings) -> list[Reason]:
    """Return all findings, each with one target or none."""
    return _wrong(found, [each for need in found.needed for each in _of_need(need)])


def _wrong(found: Findings, missing: list[Reason]) -> list[Reason]:
    """Return all findings; `missing`: those of requirements."""
    rows = [row for row in found.rows if row.verdict != "ok" and row.klass == "safety"]
    return [
        *found.risks,
        *(each for each in missing if each.verdict == "blocked"),
        *(_withheld(row, found) for row in rows if found.withholds(row)),
        *found.unknowns,
        *(drift(row) for row in rows if row.verdict != guard.TIGHTENED),
        *(each for each in missing if each.verdict == "unverified" and found.promises),
    ]


def drift(row: Setting) -> Reason:
    """Return the finding of a wrong safety setting."""
    return reason(row, _verdict_of(row))


def _verdict_of(row: Setting) -> str:
    """Return the verdict that a wrong safety setting gives its host: an unknown value hides behind no drift."""
    if UNKNOWN in (row.verdict, row.running, row.persisted):
        return UNKNOWN
    return "pending" if row.verdict == "pending" else "drifted"


def reasons(found: Findings) -> list[Reason]:
    """Return why a host has its verdict, the worst first."""
    by_design = (reason(row, "attested") for row in found.rows if row.verdict == guard.TIGHTENED)
    left = unaccepted(found)
    # A withheld row has one reason: no run sets it.
    twice = {drift(row) for row in found.rows if found.withholds(row) and _withheld(row, found) in left}
    return [*(each for each in left if each not in twice), *by_design]


def slow(rows: Iterable[Setting]) -> list[Reason]:
    """Return the settings of class performance that differ: they are listed, and decide no verdict."""
    return [reason(row, "note") for row in rows if row.klass != "safety" and row.verdict != "ok"]


def reason(row: Setting, verdict: str) -> Reason:
    """Return the finding of a setting; `verdict`: that which it gives the host, or `note`."""
    target = plan.named(row.layer, row.target)
    why = f"{target}: {row.setting}{_state(row)}"
    values = (("persisted", row.persisted), ("running", row.running), ("wanted", row.wanted_running))
    return Reason(row.id, verdict, why, row.remedy, (row.target,), values)


def _state(row: Setting) -> str:
    """Return the observed value, the expected one if it differs, and the meaning."""
    if row.verdict == "drift_persisted":
        observed, expected, when = row.persisted, row.wanted_persisted, " at the next boot"
    else:
        observed, expected, when = row.running, row.wanted_running, ""
    # Some sentences have only the observed value.
    is_value = row.why == value_of(row.setting, observed) and observed != expected
    meaning = "" if is_value else f": {row.why}"
    if row.verdict == UNKNOWN:
        return f" is unknown{meaning}"
    return f"{f' is {observed}{when}, expected {expected}' if observed != expected else ''}{meaning}"


def _withheld(row: Setting, found: Findings) -> Reason:
    values = {"setting": f"{plan.named(row.layer, row.target)} {row.setting}", "wanted": row.wanted_running}
    if found.left_out:
        return kinds.WITHHELD_LAYER.found(row.target, layers=", ".join(found.left_out), **values)
    if found.lasting:
        return kinds.WITHHELD_ENGINE.found(row.target, engines=", ".join(found.lasting), **values)
    return kinds.WITHHELD_REQUIREMENT.found(row.target, **values)


#: State of a requirement -> the verdict that it gives the host.
_MISSING = {"unmet": "blocked", "unverified": "unverified"}


def _of_need(need: Requirement) -> list[Reason]:
    """Return the finding of a requirement: one reason, or none."""
    return _missing([need])


def _missing(needed: Iterable[Requirement]) -> list[Reason]:
    """Return one reason for all requirements of a state with the same text, for all their names and targets."""
    targets: dict[tuple[str, str, str, str, str], list[str]] = {}
    for need in needed:
        if need.why and need.state in _MISSING:
            key = (_MISSING[need.state], need.id, need.name, need.why, need.remedy)
            targets.setdefault(key, []).append(need.target)
    names: dict[tuple[str, str, tuple[str, ...], str, str], list[str]] = {}
    for (verdict, kind, name, why, fix), where in targets.items():
        names.setdefault((verdict, kind, tuple(where), why, fix), []).append(name)
    return [
        Reason(kind, verdict, f"{', '.join(who)} ({', '.join(map(quoted, where))}): {why}", fix, where)
        for (verdict, kind, where, why, fix), who in names.items()
    ]


def will_wait(row: Setting, found: Findings) -> bool:
    """Return whether a setting needs a reboot or restart, or will after a run has persisted it."""
    if row.verdict == "pending":
        return True
    if is_engine(row.layer):
        wrong = row.running not in (row.wanted_running, "stopped", UNKNOWN)
        return row.verdict == "drift_persisted" and wrong and bool(row.phase) and not found.withholds(row)
    if row.setting not in LAYERS[row.layer].waits or row.verdict != "drift_persisted":
        return False
    waits = not mount_settings.satisfies(row.setting, row.running, row.wanted_running)
    return waits and row.phase is not None and not found.withholds(row)


def pending(row: Setting) -> Pending:
    """Return a pending setting for the report."""
    layer = LAYERS[row.layer]
    # A layer over disks must be recreated after a change of these disks.
    over = [(disk, setting) for disk in row.evidence.get("below", ()) for setting in _CACHE_SETTINGS]
    return {
        "layer": row.layer,
        "target": row.target,
        "setting": row.setting,
        "needs": layer.needs,
        "why": str(layer.waits.get(row.setting, layer.waits.get(""))),
        # The changes that come first: a run reboots only for its own changes.
        "after": [f"{target} {setting}" for target, setting in over or [(row.target, row.setting)]],
    }
