# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""I/O scheduler and readahead beside what the profile wants: rows of performance, not of safety."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..host.observation import UNKNOWN
from ..profiles import KEEP, Profile
from ..rows import MEND, Setting
from .settings import judge, reason

#: Setting -> what TuneD calls it.
_IN_TUNED = {"scheduler": "elevator", "readahead": "readahead"}


def rows(
    mounts: list[dict[str, Any]], disks: list[dict[str, Any]], profile: Profile, tuned: dict[str, Any]
) -> list[Setting]:
    """Return a row for the scheduler of each disk, and one for the readahead of each device with a
    file system on it: the readahead that counts is that of the topmost device."""
    found: dict[tuple[str, str], Setting] = {}
    for row in (*_schedulers(disks, profile, tuned), *_readaheads(mounts, profile, tuned)):
        found[row.target, row.setting] = row
    return list(found.values())


def wanted_scheduler(disk: dict[str, Any], profile: Profile) -> str:
    """Return the scheduler that a profile wants for a disk; `keep` where it has no say.

    What a controller, an array or a hypervisor makes of a queue is theirs to know.
    """
    if disk["kind"] == "virtual":
        return profile.scheduler_virtual
    if disk["kind"] != "physical":
        return KEEP
    by_medium = {"yes": profile.scheduler_rotational, "no": profile.scheduler_solid_state}
    return by_medium.get(disk["rotational"], KEEP)


def _schedulers(disks: list[dict[str, Any]], profile: Profile, tuned: dict[str, Any]) -> Iterator[Setting]:
    for disk in disks:
        wanted = wanted_scheduler(disk, profile)
        # A device that orders no queue of its own has no scheduler to set.
        if wanted != KEEP and (disk["scheduler"]["available"] or disk["scheduler"]["running"] == UNKNOWN):
            seen = (disk["scheduler"]["running"], disk["scheduler"]["persisted"])
            evidence = {
                "disk": disk["name"],
                "running": disk["evidence"]["scheduler.running"],
                "persisted": disk["evidence"]["scheduler.persisted"],
            }
            own_id = disk["id"] if disk["multipath"] == "no" else None
            yield _row(disk["name"], own_id, "scheduler", wanted, seen, evidence, tuned)


def _readaheads(mounts: list[dict[str, Any]], profile: Profile, tuned: dict[str, Any]) -> Iterator[Setting]:
    wanted = str(profile.readahead)
    for mount in mounts:
        if wanted != KEEP and mount["readahead"]:
            seen = (mount["readahead"]["running"], mount["readahead"]["persisted"])
            evidence = {
                "disk": mount["carrier"],
                "running": mount["evidence"]["readahead.running"],
                "persisted": mount["evidence"]["readahead.persisted"],
            }
            yield _row(mount["carrier"], mount["carrier_id"], "readahead", wanted, seen, evidence, tuned)


def _row(
    name: str,
    device_id: str | None,
    setting: str,
    wanted: str,
    seen: tuple[str, str],
    evidence: dict[str, Any],
    tuned: dict[str, Any],
) -> Setting:
    verdict = judge(setting, seen[0], seen[1], wanted, live=True)
    theirs = tuned["sets"].get(_IN_TUNED[setting])
    owner = f"TuneD's profile {tuned['profile']} sets {_IN_TUNED[setting]}={theirs}"
    if verdict == "ok" and theirs not in (None, wanted):
        verdict = "drift_persisted"  # until TuneD starts again
    why = {
        "unset": f"no rule sets the {setting} of {name}, so its own default applies",
        **({wanted: f"{owner}, when it starts next"} if theirs else {}),
    }
    phase: str | None = "tighten"
    remedy = "run harden-db"
    if verdict == "ok":
        phase, remedy = None, ""
    elif verdict == UNKNOWN:
        phase, remedy = None, MEND
    elif theirs not in (None, wanted):
        phase, remedy = None, f"{owner}: change it there, or turn TuneD off"
    elif device_id is None:
        phase, remedy = None, "give the device a name of its own: without one no setting can be kept for it"
    return Setting(
        layer="io_scheduler",
        target=device_id or name,
        setting=setting,
        klass="performance",
        wanted_running=wanted,
        wanted_persisted=wanted,
        running=seen[0],
        persisted=seen[1],
        verdict=verdict,
        phase=phase,
        evidence=evidence,
        why=reason(verdict, setting, seen, why, evidence),
        remedy=remedy,
    )
