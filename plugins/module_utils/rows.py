# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the report: each setting of a host beside what its profile wants."""

from __future__ import annotations

from typing import Any, NamedTuple

from .host.printable import line, message, name

#: What to do where a value could not be read, and no more is known.
FIX_READ_ERROR = "correct the error that the reason names, then run again"
#: How the reason begins for which a host that hangs is unreachable.
NO_ANSWER = "no answer within"
#: What to do about it.
HANGS = "find the processes there that wait for a disk or a network file system (ps, dmesg), or raise durable_time_limit"
#: What to do about a file system of which nothing here can be known: one in memory, or of another machine.
MOVE = "move the data to ext4 or XFS on a block device of its own: no rule covers this"


#: Values that are names of something on the host, whoever chose them.
_NAMES = (
    "mount",
    "target",
    "path",
    "disk",
    "layer",
    "engine",
    "process",
    "processes",
    "library",
    "example",
    "place",
)


#: Verdicts of a host, the worst first; the last three are outside the order.
VERDICTS = (
    "at_risk",
    "blocked",
    "unreachable",
    "unknown",
    "drifted",
    "pending",
    "unverified",
    "attested",
    "durable",
    "accepted_loss",
    "not_managed",
    "not_applicable",
)
#: Those that fail a run unless `durable_fail_on` names others.
FAIL_ON = VERDICTS[:6]


class Reason(NamedTuple):
    """One thing that is not right with a host, as each output takes it: none of them reads it back out of a text.

    `id`: the stable name of its kind, as `risk.barrier_off`; `verdict`: what it makes of the host, `note` for nothing; `reason`:
    what is wrong, with the observed values; `fix`: what to do, '' where `reason` states it; `targets`: what it concerns;
    `observed`: (name, value) pairs that `reason` and `fix` contain.
    """

    id: str
    verdict: str
    reason: str
    fix: str = ""
    targets: tuple[str, ...] = ()
    observed: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return it in one line."""
        return f"{self.reason}; {self.fix}" if self.fix else self.reason

    def as_dict(self) -> dict[str, Any]:
        """Return it as the report's JSON has it."""
        observed = {key: line(value) for key, value in self.observed}
        texts = {"reason": message(self.reason), "fix": message(self.fix)}
        return {**self._asdict(), **texts, "targets": list(map(line, self.targets)), "observed": observed}


class Kind(NamedTuple):
    """One entry of the catalogue of findings: all that the product says of one kind. docs/findings.md has a section for each.

    `id`, `verdict`: as in Reason; `says`, `fix`: what is wrong and what to do, with the names of values in braces.
    """

    id: str
    verdict: str
    says: str
    fix: str = ""

    def found(self, *targets: str, fix: str | None = None, **values: str | None) -> Reason:
        """Return it as it was found; `values`: those that `says` and `fix` name; `fix`: instead of the kind's own."""
        # A fact without a reason has None, whoever is root there wrote it.
        texts = {key: name(str(value)) if key in _NAMES else str(value) for key, value in values.items()}
        do = self.fix.format(**texts) if fix is None else fix
        observed = tuple(sorted((key, str(value)) for key, value in values.items()))
        # What comes last may be empty.
        return Reason(self.id, self.verdict, self.says.format(**texts).rstrip(), do, targets, observed)


class Setting(NamedTuple):
    """One setting of one target.

    `layer` and `target` name who holds it; `verdict` is ok, drift_running, drift_persisted,
    pending or unknown; `phase` is raise, tighten, loosen or None (no change, or none that
    this collection can make); `klass` is safety or performance; `profile` is the one that it is held to, '' for any;
    `finding` is the id of its finding, '' for setting.LAYER.SETTING.
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
    finding: str = ""

    @property
    def id(self) -> str:
        """Return the id of its finding."""
        return self.finding or f"setting.{self.layer}.{self.setting}"

    def as_dict(self) -> dict[str, Any]:
        """Return the row as the report's JSON has it."""
        row = self._asdict()
        row["class"] = row.pop("klass")
        row["finding"] = self.id
        return row
