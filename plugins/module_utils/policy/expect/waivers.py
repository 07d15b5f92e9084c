# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waivers, findings that `durable_accept` accepts for a time: they change a host's verdict, and no action of a run. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...attestations import (
    HOST,
    expect_fields,
    expect_filled,
    expect_soon,
)
from ...host.printable import message
from ...profiles import BadInput, Refusal, gathered, near
from ...rows import Kind, Reason
from .. import catalogue, kinds

VARIABLE = "durable_accept"
#: Days for which a finding may be accepted.
LONGEST = 366
_FIELDS = ("finding", "target", "by", "reason", "expires")
_CONTENTS = {
    "by": "the name of the person or team that decided it",
    "reason": "why the finding is acceptable, and what is done about it",
}
#: Findings of these can never be accepted: the host is unknown, they fail nothing, or another variable decides on them.
_NEVER = ("host.", "note.", "requirement.attestation_in_force", "requirement.data_loss_accepted")


class Waiver(NamedTuple):
    """One entry of `durable_accept`: a finding (its id), one target of it or `host`, until `expires`; `where`: its place."""

    finding: str
    target: str
    by: str
    reason: str
    expires: str
    where: str


class Accepted(NamedTuple):
    """A finding of a host that an entry accepts."""

    waiver: Waiver
    found: Reason

    def as_dict(self) -> dict[str, str]:
        """Return it for the report."""
        fields = self.waiver._asdict()
        del fields["where"]
        return {**fields, "verdict": self.found.verdict, "why": message(self.found.text())}


class Waivers(NamedTuple):
    """The entries of `durable_accept`: those in force, and expired ones, which have no effect.

    `may_lose`: whether `durable_accept_data_loss` is true.
    """

    entries: tuple[Waiver, ...] = ()
    expired: tuple[Waiver, ...] = ()
    may_lose: bool = False

    def of(self, found: Reason) -> Waiver | None:
        """Return the entry that accepts a finding, None without one."""
        if found.verdict == "at_risk" and not self.may_lose:
            return None
        fitting = (each for each in self.entries if matches(each, found))
        return max(fitting, key=lambda each: each.expires, default=None)


def matches(waiver: Waiver, found: Reason) -> bool:
    """Return whether an entry matches a finding, which has one target or none."""
    return waiver.finding == found.id and (waiver.target,) == (found.targets or (HOST,))


def read(value: Any, may_lose: bool, today: str) -> Waivers:
    """Return the entries of `durable_accept`; `today` is an ISO 8601 date. Raises BadInput."""
    if value is None:
        return Waivers()
    if not isinstance(value, (list, tuple)):
        raise BadInput(f"{VARIABLE}: observed {value!r}; expected a list")
    found = gathered(
        functools.partial(_read, f"{VARIABLE}[{index}]", entry, today) for index, entry in enumerate(value)
    )
    return Waivers(
        tuple(each for each in found if each.expires >= today),
        tuple(each for each in found if each.expires < today),
        may_lose,
    )


def _read(where: str, entry: Any, today: str) -> Waiver:
    expect_fields(where, entry, _FIELDS)
    found = Waiver(where=where, **{name: str(value) for name, value in entry.items()})
    gathered(
        (
            functools.partial(expect_filled, where, entry, _CONTENTS),
            functools.partial(_expect_finding, where, found),
            functools.partial(
                expect_soon, where, f"accepting {found.finding}", found.expires, LONGEST, today
            ),
        )
    )
    return found


def _expect_finding(where: str, found: Waiver) -> None:
    if found.finding not in catalogue.IDS:
        raise BadInput(
            Refusal(
                f"{where}: finding: observed {found.finding!r}; expected an id of the report's reasons, for example"
                " risk.barrier_off",
                "",
                near(found.finding, catalogue.IDS),
            )
        )
    if found.finding.startswith(_NEVER) or found.finding in catalogue.NO_VERDICT:
        raise BadInput(
            Refusal(
                f"{where}: finding: observed {found.finding}; expected one of a setting, requirement, risk or unknown value:"
                " this one cannot be accepted",
                "delete the entry, and correct the finding",
            )
        )


def notes(
    waivers: Waivers, accepted: Iterable[Accepted], every: Iterable[Reason], is_whole: bool
) -> Iterator[Reason]:
    """Yield the accepted findings with author and expiry, and the entries without effect.

    `every`: the other findings, each with one target; `is_whole`: whether all findings of the host are known.
    """
    used = list(accepted)
    for each in used:
        yield _note(kinds.ACCEPTED, each.waiver, reason=each.waiver.reason, author=each.waiver.by)
    for waiver in waivers.expired:
        yield _note(kinds.WAIVER_EXPIRED, waiver)
    left = list(every)
    for waiver in waivers.entries:
        if any(each.waiver is waiver for each in used):
            continue
        if any(matches(waiver, each.found) for each in used):
            continue  # Another entry for this finding expires later.
        if any(matches(waiver, each) for each in left):
            yield _note(kinds.WAIVER_REFUSED, waiver)
        elif is_whole:
            yield _note(kinds.WAIVER_UNMATCHED, waiver)


def _note(kind: Kind, waiver: Waiver, **values: str) -> Reason:
    fields = {
        "where": waiver.where,
        "finding": waiver.finding,
        "target": waiver.target,
        "date": waiver.expires,
    }
    return kind.found(waiver.target, **fields, **values)
