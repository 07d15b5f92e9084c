# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's lease, and the barriers that it may disable, compared with a profile. Pure.

Under a profile that rests on a UPS, barriers are on at boot, and only the guard disables them at run time.
The expected running and persisted values differ by design.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...facts.storage import MountFacts
from ...facts.ups import GuardFacts, PowerFacts, Seconds
from ...host.observation import UNKNOWN
from ...host.our_paths import LEASE
from ...rows import RUN, Reason, Setting
from ...storage import flush_passthrough, mount_settings
from ...ups import findings
from ..report_types import LeaseTerms
from .requirements import why_not_only_databases

LAYER = "power_guard"
#: The journal has the details.
_SEE = findings.GUARD_FAILED.fix
_UNKNOWN = "run again, and if it stays unknown, read journalctl -u durable-dbhost-guard"
#: The verdict on barriers that the guard has enabled again, or has not disabled yet: not drift.
TIGHTENED = "tightened"
#: States in which a guard runs and does what its lease says.
_RUNS = ("waiting", "loose", "tight")
#: The compared terms of a lease; the guard sets its first day.
_TERMS = ("expires", "quiet", "test_ups")


class Lease(NamedTuple):
    """The permissions of the guard, in the form of the layer's module.

    `mounts`: mount points; `expires`: the last day, ISO 8601; `quiet`: seconds; `needed`: {budget: seconds
    of runtime}; `test_ups`: whether a simulated UPS counts; `units`: the engines' services.
    """

    mounts: tuple[str, ...]
    expires: str
    quiet: int
    needed: dict[str, Seconds]
    test_ups: bool
    units: tuple[str, ...]

    def as_dict(self) -> LeaseTerms:
        """Return it as JSON has it."""
        return {
            "mounts": list(self.mounts),
            "expires": self.expires,
            "quiet": self.quiet,
            "needed": self.needed,
            "test_ups": self.test_ups,
            "units": list(self.units),
        }


def why_not_switched(mount: MountFacts) -> str:
    """Return why the barriers of a mount always stay on; '' if the guard may disable them."""
    if mount["fstype"] not in mount_settings.SWITCHED:
        return f"on {mount['fstype']} they are not switched at run time"
    if mount["hidden_in"] is not None:
        return f"only {mount['hidden_in']} sees it"
    if mount_settings.waits(mount):
        return "it is not mounted until a process accesses it"
    if mount["disks"] == UNKNOWN:
        return "the layers below it are unknown"
    if any(flush_passthrough.layers(mount)):
        return "a layer below it drops flushes"
    if any(layer["cause"] for layer in mount["stack"]):
        return "a layer below it is known by an attestation alone"
    if any(layer["held_on"] for layer in mount["stack"]):
        return "it is stored in a file of another file system, whose barriers the guard does not control"
    return why_not_only_databases(mount)


def held(power: PowerFacts | None, mounts: Iterable[MountFacts], today: str) -> frozenset[str]:
    """Return the mount points whose barriers the guard has off by a lease that holds today."""
    guard = _guard(power)
    lease = guard["lease"]
    if guard["state"] != "loose" or not lease or str(lease.get("expires") or "") < today:
        return frozenset()
    return frozenset(
        mount["target"]
        for mount in mounts
        if mount["target"] in lease["mounts"] and not why_not_switched(mount)
    )


def risks(power: PowerFacts | None) -> list[Reason]:
    """Return how acknowledged commits can be lost because of the guard."""
    guard = _guard(power)
    if guard["state"] != "failed":
        return []
    return [findings.GUARD_FAILED.found(cause=str(guard["reason"]))]


def barrier(row: Setting, mount: MountFacts, power: PowerFacts | None, is_held: bool, may: bool) -> Setting:
    """Return the row of a mount's barriers; `row`: that without a guard.

    `is_held`: the guard has them off by its lease; `may`: it will have a lease for this mount. Barriers
    that are off for another reason, now or at boot, drift as without a guard, and are enabled.
    """
    reason = why_not_switched(mount)
    if reason:
        return row._replace(why=f"keeps its barriers: {reason}") if row.verdict == "ok" else row
    if row.persisted != "on" or row.running == UNKNOWN or not may:
        return row
    by_guard = row._replace(layer=LAYER, wanted_running="off", phase=None, remedy="")
    if row.running == "on":
        found = _guard(power)
        remedy = _SEE if found["state"] == "failed" else ""
        return by_guard._replace(verdict=TIGHTENED, why=_why_tight(mount["target"], found), remedy=remedy)
    if is_held:
        why = f"the guard has disabled them, and enables them when the UPS is in doubt: {_guard(power)['reason']}"
        return by_guard._replace(verdict="ok", why=why)
    return row


def lease(wanted: Lease | None, power: PowerFacts | None, leased: str) -> Setting | None:
    """Return the row of the guard's lease; None if none is expected and none is present.

    `wanted`: None if none is allowed; `leased`: whether the lease's file is there, yes, no or unknown.
    """
    guard = _guard(power)
    is_there = "yes" if guard["lease"] else leased
    if wanted is None:
        if is_there == "no":
            return None
        current = "present" if is_there == "yes" else UNKNOWN
        why = "the guard may disable barriers, and its requirements are not met here"
        return _row(
            "absent", current, "drift_running" if is_there == "yes" else UNKNOWN, "tighten", why, guard, ()
        )
    current, why = _compare(wanted, guard, is_there)
    if current == "current":
        return _row("current", current, "ok", None, "as wanted", guard, wanted.mounts)
    phase = None if current == UNKNOWN else "loosen"
    verdict = UNKNOWN if current == UNKNOWN else "drift_running"
    return _row("current", current, verdict, phase, why, guard, wanted.mounts)


def is_wider(wanted: Lease, power: PowerFacts | None) -> bool:
    """Return whether the guard's lease allows more than the wanted one."""
    found = _guard(power)["lease"]
    return found is not None and (
        not set(found.get("mounts") or ()) <= set(wanted.mounts)
        or not set(wanted.units) <= set(found.get("units") or ())
        or str(found.get("expires") or "") > wanted.expires
        or (found.get("quiet") or 0) < wanted.quiet
        or (found.get("test_ups") is not False and not wanted.test_ups)
        or not _suffices(found.get("needed"), wanted.needed)
    )


def _compare(wanted: Lease, guard: GuardFacts, is_there: str) -> tuple[str, str]:
    """Return how the guard's lease differs from the wanted one, and why."""
    found = guard["lease"]
    if not found:
        if is_there == "no":
            return "absent", "the guard has no lease yet"
        return UNKNOWN, guard["reason"] or "the guard's lease could not be read"
    if guard["state"] == UNKNOWN:
        return UNKNOWN, guard["reason"] or "the guard's state could not be read"
    now: dict[str, Any] = {
        name: value for name, value in found.items() if name in (*_TERMS, "mounts", "units")
    }
    then: dict[str, Any] = {name: getattr(wanted, name) for name in _TERMS}
    for name in ("mounts", "units"):
        now[name], then[name] = sorted(now.get(name) or ()), sorted(getattr(wanted, name))
    differing = [name for name in then if now.get(name) != then[name]]
    if not _suffices(found.get("needed"), wanted.needed):
        differing.append("needed")
    if differing:
        return "differs", f"its lease is another one: {', '.join(differing)}"
    if guard.get("installed", "current") in ("absent", "differs"):
        return "differs", "the guard's program or its unit is not the one of this release"
    if guard["state"] not in _RUNS:
        return "differs", f"the guard is {guard['state']}: {guard['reason']}"
    return "current", ""


def _suffices(found: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether a lease requires at least the wanted seconds. A secondary that connects or disconnects
    changes the sum, and a lease that requires more is harmless."""
    if found == wanted:
        return True
    both = [(found.get(name), seconds) for name, seconds in wanted.items()] if isinstance(found, dict) else []
    numbers = all(isinstance(value, (int, float)) for pair in both for value in pair)
    return bool(both) and numbers and all(leased >= seconds for leased, seconds in both)


def _row(
    wanted: str,
    current: str,
    verdict: str,
    phase: str | None,
    why: str,
    guard: GuardFacts,
    mounts: tuple[str, ...],
) -> Setting:
    reason = why if current == UNKNOWN else None
    observed = {"value": current, "source": LEASE, "reason": reason}
    remedy = "" if verdict == "ok" else RUN if phase else _UNKNOWN
    return Setting.of(
        layer=LAYER,
        target="host",
        setting="lease",
        wanted=wanted,
        observed=(current, current),
        verdict=verdict,
        phase=phase,
        evidence={
            "running": observed,
            "persisted": observed,
            "guard": guard["state"],
            "mounts": list(mounts),
        },
        why=why,
        remedy=remedy,
    )


def _why_tight(target: str, guard: GuardFacts) -> str:
    lease = guard["lease"]
    if not lease or target not in lease["mounts"]:
        return "barriers are on: the guard has no lease for it yet"
    if guard["state"] == "loose":
        return "barriers are on, though the guard disabled them: another process enabled them"
    return f"barriers are on, the guard is {guard['state']}: {guard['reason']}"


def _guard(power: PowerFacts | None) -> GuardFacts:
    if power is None:
        return {
            "state": UNKNOWN,
            "reason": "the guard was not queried",
            "since": None,
            "quiet": None,
            "lease": None,
            "mounts": [],
        }
    return power["guard"]
