# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people vouch for, because no machine can see it; each word expires."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from .profiles import BadInput


class Expired(BadInput):
    """Somebody's word has expired: what it allowed is taken back, and nothing else is changed."""


#: Claim -> the longest that one attestation of it may last, in days.
CLAIMS = {
    "power_loss_protection": 1096,
    "host_honours_flush": 366,
    "host_honours_fua": 366,
    "virtual_host_power": 366,
    "ups_rehearsed": 184,
    "plug_pulled": 366,
    "test_ups": 31,
}
#: Claims that one disk can keep and its neighbour break.
_OF_A_DISK = ("power_loss_protection",)
_FIELDS = ("claim", "target", "by", "reason", "expires")
#: The target of a claim about the whole machine, rather than one disk's id.
HOST = "host"


class Attestation(NamedTuple):
    """One person's word: `claim` about `target` (`host`, or a disk's id), until `expires`."""

    claim: str
    target: str
    by: str
    reason: str
    expires: str

    @property
    def sentence(self) -> str:
        """Return it in words, for the report."""
        return f"{self.claim}, attested by {self.by} until {self.expires}: {self.reason}"


def read(variables: dict[str, Any], today: str) -> list[Attestation]:
    """Return the attestations of a host, of {name of the variable: its list}.

    Raises BadInput for one that is malformed, Expired for one that is over. `today` is an ISO 8601 date. An expired
    one is an error rather than ignored: its profile no longer stands on anything, and someone has
    to look.
    """
    if not isinstance(variables, dict):
        raise BadInput(f"attestations: seen {variables!r}; wanted {{variable: its list}}")
    found = []
    for name, entries in variables.items():
        if entries is not None and not isinstance(entries, (list, tuple)):
            raise BadInput(f"{name}: seen {entries!r}; wanted a list")
        found += [_read(f"{name}[{index}]", entry, today) for index, entry in enumerate(entries or ())]
    return found


def find(attestations: list[Attestation], claims: tuple[str, ...], disk: str | None) -> Attestation | None:
    """Return the attestation of any of the claims, for a disk (by id) or its whole host, that lasts longest."""
    targets = (HOST, disk)
    found = [word for word in attestations if word.claim in claims and word.target in targets]
    return max(found, key=lambda word: word.expires, default=None)


def _read(where: str, entry: Any, today: str) -> Attestation:
    if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
        raise BadInput(f"{where}: seen {entry!r}; wanted exactly {', '.join(_FIELDS)}")
    if isinstance(entry["expires"], datetime.date):
        raise BadInput(
            f"{where}: expires: seen an unquoted date ({entry['expires']});"
            f' wanted text; write expires: "{entry["expires"]}", in quotes'
        )
    for field in _FIELDS:
        if not isinstance(entry[field], str) or not entry[field].strip():
            raise BadInput(f"{where}: {field}: seen {entry[field]!r}; wanted text")
    found = Attestation(**{field: str(entry[field]) for field in _FIELDS})
    if found.claim not in CLAIMS:
        raise BadInput(f"{where}: claim: seen {found.claim!r}; wanted one of {', '.join(CLAIMS)}")
    if found.claim in _OF_A_DISK and found.target == HOST:
        raise BadInput(
            f"{where}: {found.claim}: seen target {HOST!r}; wanted a disk's id: each disk has its own;"
            " make audit, or the facts, name the ids"
        )
    _check_expiry(where, found, today)
    return found


def _check_expiry(where: str, found: Attestation, today: str) -> None:
    try:
        end = datetime.date.fromisoformat(found.expires)
    except ValueError:
        raise BadInput(f'{where}: expires: seen {found.expires!r}; wanted "YYYY-MM-DD"') from None
    now = datetime.date.fromisoformat(today)
    latest = now + datetime.timedelta(days=CLAIMS[found.claim])
    if end < now:
        raise Expired(
            f"{where}: {found.claim} by {found.by} expired on {found.expires} (today is {today});"
            " look whether it still holds, then renew it, or take it out"
        )
    if end > latest:
        raise BadInput(
            f"{where}: {found.claim} may last {CLAIMS[found.claim]} days at the most: seen"
            f" {found.expires}, wanted {latest} or sooner"
        )
