# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a power cut, and the attestation that an administrator may sign. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import NamedTuple

from ..attestations import HEAD, written
from ..host.printable import Lines, lines
from .limits import Refused
from .plug_job import Job, Losses

#: Acknowledged commits below which nothing is attested: a short run meets few of them on their way.
ENOUGH = 1000


class Verdict(NamedTuple):
    """kept, lost, not_cut or too_few; and why."""

    word: str
    why: str


def assess(job: Job, losses: Losses, ended: Mapping[int, str]) -> Verdict:
    """Say what a run has shown."""
    if ended:
        client, why = sorted(ended.items())[0]
        return Verdict(
            "not_cut", f"client {client} ended before the cut ({why}): the power was not cut under it"
        )
    if losses.lost:
        return Verdict(
            "lost",
            f"{losses.lost} of {losses.checked} acknowledged commits are lost: a cache below, or a layer, does"
            " not keep what it acknowledged; run the audit and prove-fua, and trust this host with nothing until then",
        )
    if losses.acknowledged < ENOUGH:
        return Verdict(
            "too_few",
            f"observed {losses.acknowledged} acknowledged commits, expected at least {ENOUGH}: run it longer",
        )
    if losses.unchecked:
        return Verdict(
            "too_few",
            f"no acknowledged commit of {', '.join(losses.unchecked)} could be checked: the next commit empties a full file."
            " Fix: start a new run",
        )
    return Verdict("kept", f"every one of the {losses.checked} commits that could be checked is there")


def attestation(job: Job, losses: Losses, by: str, today: str, virtualization: str) -> Lines:
    """Return the YAML for the host's variables. `today` is an ISO 8601 date. Raises Refused or BadInput."""
    if not by.strip():
        raise Refused(
            "by: observed nothing; expected the name of the person who attests that the plug was pulled"
        )
    try:
        begin = datetime.date.fromisoformat(today)
    except ValueError:
        raise Refused(f"today: observed {today!r}; expected YYYY-MM-DD") from None
    reason = (
        f"plug pulled, verified on {today}, {losses.acknowledged} commits acknowledged by {job.clients} clients"
        f" ({', '.join(job.patterns)}) on {', '.join(job.mounts)}, {losses.checked} checked, none lost; run {job.run}"
    )
    notes = [
        "# Below: only if what was cut is the power of the machine that holds the disks, with its own caches"
        " (not a reset, not the end of a virtual machine), and these mounts use all disks of the host."
        " A disk of an array is not the host's: its target is its own id, which the report names."
    ]
    if virtualization not in ("none", ""):
        notes.append(
            f"# This host is a virtual machine ({virtualization}): it was its hypervisor's power that counts."
        )
    further = written("host_honours_flush", by, reason, begin)
    return lines([HEAD, *written("plug_pulled", by, reason, begin), *notes, *(f"# {row}" for row in further)])


def table(job: Job, losses: Losses, verdict: Verdict) -> Lines:
    """Return all of it as text."""
    return lines(
        (
            f"pull-the-plug {job.run}: {verdict.word}",
            f"  {verdict.why}",
            f"  mounts: {', '.join(job.mounts)}; patterns: {', '.join(job.patterns)}; clients: {job.clients}",
            f"  acknowledged: {losses.acknowledged}, checked: {losses.checked}, lost: {losses.lost}",
            *(f"  lost: {name}" for name in losses.named),
        )
    )
