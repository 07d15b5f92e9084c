# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""I/O scheduler and readahead compared with the profile: rows of performance, not of safety."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...facts.storage import DiskFacts, TunedFacts
from ...host.observation import UNKNOWN
from ...next_boot.tuned import BY as TUNED
from ...profiles import KEEP, Profile
from ...rows import FIX_READ_ERROR, RUN, Setting
from ...storage import causes
from ..expect.guarantees import Disk, Mount
from . import requirements
from .settings import judge, reason

#: Setting -> what TuneD calls it.
IN_TUNED = {"scheduler": "elevator", "readahead": "readahead"}


def rows(mounts: Iterable[Mount], disks: Iterable[Disk], tuned: TunedFacts) -> list[Setting]:
    """Return a row for the scheduler of each disk, and one for the readahead of each device with a
    file system on it: the readahead of the topmost device takes effect."""
    found: dict[tuple[str, str], Setting] = {}
    for row in (*_schedulers(disks, tuned), *_readaheads(mounts, tuned)):
        found[row.target, row.setting] = row
    return list(found.values())


def wanted_scheduler(disk: DiskFacts, profile: Profile) -> str:
    """Return the scheduler that a profile wants for a disk; `keep` for none.

    Controllers, arrays and hypervisors schedule their own queues.
    """
    if disk["kind"] == "virtual":
        return profile.scheduler_virtual
    if disk["kind"] != "physical":
        return KEEP
    by_medium = {"yes": profile.scheduler_rotational, "no": profile.scheduler_solid_state}
    return by_medium.get(disk["rotational"], KEEP)


def _schedulers(disks: Iterable[Disk], tuned: TunedFacts) -> Iterator[Setting]:
    for disk, profile in disks:
        wanted = wanted_scheduler(disk, profile)
        # A device without its own queue has no scheduler.
        if wanted != KEEP and (disk["scheduler"]["available"] or disk["scheduler"]["running"] == UNKNOWN):
            observed = (disk["scheduler"]["running"], disk["scheduler"]["persisted"])
            evidence = {
                "disk": disk["name"],
                "running": disk["evidence"]["scheduler.running"],
                "persisted": disk["evidence"]["scheduler.persisted"],
            }
            own_id = disk["id"] if disk["multipath"] == "no" else None
            how = requirements.how_named(disk) if disk["multipath"] == "no" else ""
            row = _row(disk["name"], own_id, "scheduler", wanted, observed, evidence, tuned, how)
            yield row._replace(profile=profile.name)


def _readaheads(mounts: Iterable[Mount], tuned: TunedFacts) -> Iterator[Setting]:
    for mount, profile, _pinned in mounts:
        wanted = str(profile.readahead)
        if wanted != KEEP and mount["carrier"] and mount["readahead"]:
            observed = (mount["readahead"]["running"], mount["readahead"]["persisted"])
            evidence = {
                "disk": mount["carrier"],
                "running": mount["evidence"]["readahead.running"],
                "persisted": mount["evidence"]["readahead.persisted"],
            }
            row = _row(mount["carrier"], mount["carrier_id"], "readahead", wanted, observed, evidence, tuned)
            yield row._replace(profile=profile.name)


def _row(
    name: str,
    device_id: str | None,
    setting: str,
    wanted: str,
    observed: tuple[str, str],
    evidence: dict[str, Any],
    tuned: TunedFacts,
    place_of_id: str = "",
) -> Setting:
    """Return a row; `place_of_id`: how the device gets an id, '' if it can have none."""
    verdict = judge(setting, observed[0], observed[1], wanted, live=True)
    option = IN_TUNED[setting]
    theirs = tuned["sets"].get(option)
    # TuneD may set other disks only.
    contested = evidence["persisted"].get("by") == TUNED and observed[1] != wanted
    if verdict == "ok" and tuned["profile"] == UNKNOWN:
        verdict = UNKNOWN
    why = {
        "unset": f"no rule sets the {setting} of {name}, so its own default applies",
    }
    phase: str | None = "tighten"
    remedy, addition = RUN, ""
    if verdict == "ok":
        phase, remedy = None, ""
    elif tuned["profile"] == UNKNOWN:
        phase, remedy = None, "correct the error that the reason names, or run tuned-adm off"
        cause = causes.text(tuned["cause"]) if tuned["cause"] else UNKNOWN
        addition = f"; TuneD's profile could not be read: {cause}"
    elif verdict == UNKNOWN:
        phase, remedy = None, FIX_READ_ERROR
    elif contested:
        phase, addition = None, f"; TuneD's profile {tuned['profile']} sets {option}={theirs}"
        remedy = f"set {option}={wanted} in a copy of TuneD's profile {tuned['profile']} in /etc/tuned, or run tuned-adm off"
    elif device_id is None:
        phase = None
        remedy = place_of_id or f"set {setting} to {wanted} for {name} by a udev rule of your own"
    return Setting.of(
        layer="io_scheduler",
        target=device_id or name,
        setting=setting,
        wanted=wanted,
        observed=observed,
        verdict=verdict,
        phase=phase,
        evidence=evidence,
        why=f"{reason(verdict, setting, observed, why, evidence)}{addition}",
        remedy=remedy,
        klass="performance",
    )
