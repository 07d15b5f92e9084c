# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the report: each setting of a host beside what its profile wants."""

from __future__ import annotations

from typing import Any, NamedTuple

#: What to do where a value could not be read, and no more is known.
MEND = "mend what could not be read, then run again"
#: How the reason begins for which a host that hangs is unreachable.
NO_ANSWER = "no answer within"
#: What to do about it.
HANGS = "look there for processes that wait for a disk or a network file system (ps, dmesg), or raise durable_time_limit"
#: What to do about a file system of which nothing here can be known: one in memory, or of another machine.
MOVE = "move the data to ext4 or XFS on a block device of its own: no rule here vouches for this"


class Reason(NamedTuple):
    """One thing that is not right with a host, as each output takes it: none of them reads it back out of a text.

    `id`: the stable name of its kind, as `risk.barrier_off`; `verdict`: what it makes of the host; `reason`: what is wrong, with
    the observed values; `fix`: what to do, '' where `reason` states it; `targets`: what it concerns.
    """

    id: str
    verdict: str
    reason: str
    fix: str = ""
    targets: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it in one line."""
        return f"{self.reason}; {self.fix}" if self.fix else self.reason


def at_risk(kind: str, why: str, fix: str, *targets: str) -> Reason:
    """Return how acknowledged commits can vanish now, as a reason."""
    return Reason(f"risk.{kind}", "at_risk", why, fix, targets)


class Unknown(NamedTuple):
    """Something of a host that is not known, and keeps it from any promise: why, and the one thing to do."""

    why: str
    remedy: str = MEND

    def told(self) -> str:
        """Return it in one line, with what to do."""
        return f"{self.why}; {self.remedy}"


class Setting(NamedTuple):
    """One setting of one target.

    `layer` and `target` name who holds it; `verdict` is ok, drift_running, drift_persisted,
    pending or unknown; `phase` is raise, tighten, loosen or None (no change, or none that
    this collection can make); `klass` is safety or performance; `profile` is the one that it is held to, '' for any.
    """

    layer: str
    target: str
    setting: str
    klass: str
    wanted_running: str
    wanted_persisted: str
    running: str
    persisted: str
    verdict: str
    phase: str | None
    evidence: dict[str, Any]
    why: str
    remedy: str
    profile: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row as the report's JSON has it."""
        row = self._asdict()
        row["class"] = row.pop("klass")
        return row
