# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the report: each setting of a host, with the value that its profile expects."""

from __future__ import annotations

from typing import Any, NamedTuple

from .host.printable import line, message, name

#: The fix of a finding that a run fixes.
RUN = "run harden_db"
#: The fix for a value that could not be read, without a known cause.
FIX_READ_ERROR = "correct the error that the reason names, then run again"
#: The beginning of the reason why a host that hangs is unreachable.
NO_ANSWER = "no answer within"
#: The fix for a host that hangs.
HANGS = "find the processes there that wait for a disk or a network file system (ps, dmesg), or raise durable_time_limit"
#: The fix for a file system without a rule: one in memory, or of another host.
MOVE = "move the data to ext4 or XFS on a separate block device: no rule covers this"


#: Values that are names on the host, which any of its users may have chosen.
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


def by_rank(*ends: tuple[str, str]) -> dict[str, str]:
    """Return {verdict: its value}; `ends`: (value, the last verdict with it), in the order of VERDICTS."""
    found: dict[str, str] = {}
    for value, last in ends:
        found = {**dict.fromkeys(VERDICTS[: VERDICTS.index(last) + 1], value), **found}
    return found


class Reason(NamedTuple):
    """One finding of a host. Every output uses these fields, and none parses a text.

    `id`: the stable name of its kind, as `risk.barrier_off`; `verdict`: the verdict that it gives the host, or `note`; `reason`:
    the problem with the observed values; `fix`: the remedy, '' if `reason` states it; `targets`: the objects that it is about;
    `observed`: the (name, value) pairs in `reason` and `fix`.
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
    """One entry of the catalogue of findings. docs/findings.md has a section for each.

    `id`, `verdict`: as in Reason; `says`, `fix`: the problem and the remedy, with the names of values in braces.
    """

    id: str
    verdict: str
    says: str
    fix: str = ""

    def found(self, *targets: str, fix: str | None = None, **values: str | None) -> Reason:
        """Return the finding with `values` in `says` and `fix`; `fix`: replaces that of the kind."""
        # A fact without a reason has None, and the host's root can send any type.
        texts = {key: name(str(value)) if key in _NAMES else str(value) for key, value in values.items()}
        do = self.fix.format(**texts) if fix is None else fix
        observed = tuple(sorted((key, str(value)) for key, value in values.items()))
        # The last value may be empty.
        return Reason(self.id, self.verdict, self.says.format(**texts).rstrip(), do, targets, observed)


def value_of(setting: str, value: str) -> str:
    """Return the sentence of a value without a meaning."""
    return f"{setting} is {value}"


class Setting(NamedTuple):
    """One setting of one target.

    `layer` and `target` name the object that has it; `verdict` is ok, drift_running, drift_persisted,
    pending or unknown; `phase` is raise, tighten, loosen or None (no change, or none that
    this collection can make); `klass` is safety or performance; `profile` is the profile that it is compared with, '' for any;
    `finding` is the id of its finding, '' for setting.LAYER.SETTING. `means`: whether `why` is the meaning of the running value
    alone; the report's JSON has it after that value.
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
    means: bool = False

    @classmethod
    def of(
        cls,
        layer: str,
        target: str,
        setting: str,
        wanted: str,
        observed: tuple[str, str],
        verdict: str,
        phase: str | None,
        evidence: dict[str, Any],
        why: str,
        remedy: str,
        klass: str = "safety",
    ) -> Setting:
        """Return the row of a setting with one wanted value; `observed`: the running value and the persisted one."""
        values = (wanted, wanted, *observed)
        return cls(layer, target, setting, klass, *values, verdict, phase, evidence, why, remedy)

    @property
    def id(self) -> str:
        """Return the id of its finding."""
        return self.finding or f"setting.{self.layer}.{self.setting}"

    def as_dict(self) -> dict[str, Any]:
        """Return the row as the report's JSON has it."""
        row = self._asdict()
        row["class"] = row.pop("klass")
        if row.pop("means"):
            row["why"] = f"{value_of(self.setting, self.running)}: {self.why}"
        row["finding"] = self.id
        # Only the step that sets it needs it.
        row["evidence"] = {name: value for name, value in self.evidence.items() if name != "requested"}
        return row
