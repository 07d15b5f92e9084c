# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attestations: facts that only people can check. Each one expires."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .host.printable import is_plain, line, yaml
from .profiles import BadInput, Refusal, gathered, near

#: Claim -> the longest that one attestation of it may last, in days.
CLAIMS = {
    "power_loss_protection": 1096,
    "host_honours_flush": 366,
    "host_honours_fua": 366,
    "layer_passes_flushes": 366,
    "virtual_host_power": 366,
    "ups_rehearsed": 184,
    "plug_pulled": 366,
    "test_ups": 31,
}
#: Claims that can hold for one disk or layer and not for another -> their required target.
_OF_ONE = {
    "power_loss_protection": "a disk's id: each disk has its own id; durable.dbhost.audit lists them",
    "layer_passes_flushes": "a layer's id (dm:...): each layer has its own id; the report lists them",
}
_FIELDS = ("claim", "target", "by", "reason", "expires")
#: The target of a claim about the whole machine, rather than one disk or layer.
HOST = "host"
#: The line above attestations that are written for a host's variables.
HEAD = "durable_attestations_host:"


class Attestation(NamedTuple):
    """A statement of one person: `claim` about `target` (`host`, or the id of a disk or layer), until `expires`."""

    claim: str
    target: str
    by: str
    reason: str
    expires: str

    @property
    def sentence(self) -> str:
        """Return it as one sentence of the report."""
        return f"{self.claim}, attested by {self.by} until {self.expires}: {self.reason}"


class Read(NamedTuple):
    """The attestations of a host: those in force, and {its place in the inventory: an expired one that is not renewed}."""

    in_force: list[Attestation]
    expired: dict[str, Attestation]


def read(variables: dict[str, Any], today: str) -> Read:
    """Return the attestations of a host, of {name of the variable: its list}. `today` is an ISO 8601 date.

    Raises BadInput for a malformed one. An expired one has no effect: it withholds loosening until an administrator checks the
    claim, and the host is still made safer.
    """
    if not isinstance(variables, dict):
        raise BadInput(f"attestations: observed {variables!r}; expected {{variable: its list}}")
    lists = gathered(functools.partial(_entries, *each) for each in variables.items())
    written = {where: entry for each in lists for where, entry in each.items()}
    read_in = gathered(functools.partial(_read, where, entry, today) for where, entry in written.items())
    found: dict[str, Attestation] = dict(zip(written, read_in))
    in_force = [each for each in found.values() if each.expires >= today]
    about = {(each.claim, each.target) for each in in_force}
    over = {where: each for where, each in found.items() if each.expires < today}
    return Read(
        in_force, {where: each for where, each in over.items() if (each.claim, each.target) not in about}
    )


def find(attestations: list[Attestation], claims: tuple[str, ...], about: str | None) -> Attestation | None:
    """Return the attestation of any of the claims, for a disk or layer (by id) or its whole host, that lasts longest."""
    targets = (HOST, about)
    found = [each for each in attestations if each.claim in claims and each.target in targets]
    return max(found, key=lambda each: each.expires, default=None)


def written(
    claim: str, by: str, reason: str, begin: datetime.date, target: str = HOST, grounds: str = ""
) -> Iterator[str]:
    """Yield the YAML of an attestation to copy. Raises BadInput for text that is not plain, for example a template.

    `grounds`: documented facts, for a comment. The administrator fills in empty texts: `read` refuses them.
    """
    expect_plain((by, reason, target, grounds))
    if grounds:
        yield f"  # Check this first: {grounds}"
    yield f"  - claim: {claim}"
    yield f"    target: {yaml(target)}"
    yield f"    by: {yaml(by)}"
    yield f"    reason: {yaml(reason)}"
    yield f'    expires: "{begin + datetime.timedelta(days=CLAIMS[claim])}"'


def expect_plain(names: Iterable[str]) -> None:
    """Raise BadInput for a text that Ansible would evaluate in a file of variables."""
    for name in names:
        if not is_plain(name):
            raise BadInput(
                Refusal(
                    f"{line(name)}: observed control characters, or what Ansible evaluates, in a name; expected a plain one:"
                    " an attestation of it is written for people to copy",
                    "rename it, then run again",
                )
            )


def _entries(name: str, entries: Any) -> dict[str, Any]:
    if entries is not None and not isinstance(entries, (list, tuple)):
        raise BadInput(f"{name}: observed {entries!r}; expected a list")
    return {f"{name}[{index}]": entry for index, entry in enumerate(entries or ())}


def _read(where: str, entry: Any, today: str) -> Attestation:
    expect_fields(where, entry, _FIELDS)
    found = Attestation(**{field: str(entry[field]) for field in _FIELDS})
    longest = CLAIMS.get(found.claim, max(CLAIMS.values()))
    gathered(
        (
            functools.partial(expect_filled, where, entry),
            functools.partial(_expect_claim, where, found),
            functools.partial(expect_soon, where, found.claim, found.expires, longest, today),
        )
    )
    return found


def _expect_claim(where: str, found: Attestation) -> None:
    if found.claim not in CLAIMS:
        raise BadInput(
            Refusal(
                f"{where}: claim: observed {found.claim!r}; expected one of {', '.join(CLAIMS)}",
                "",
                near(found.claim, CLAIMS),
            )
        )
    if found.claim in _OF_ONE and found.target == HOST:
        raise BadInput(f"{where}: {found.claim}: observed target {HOST!r}; expected {_OF_ONE[found.claim]}")


#: The contents of fields that an administrator fills in after the check.
_CONTENTS = {
    "by": "the name of the person or team that checked it",
    "reason": "what was checked, and how: check first, then fill it in",
}


def expect_fields(where: str, entry: Any, fields: Collection[str], optional: Collection[str] = ()) -> None:
    """Raise BadInput unless a signed entry has these fields and no others."""
    more = f", optional: {', '.join(optional)}" if optional else ""
    expected = f"expected exactly {', '.join(fields)}{more}"
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: observed {entry!r}; {expected}")
    allowed = (*fields, *optional)
    wrong = [
        Refusal(f"{where}: observed the unknown key {key!r}; {expected}", "", near(key, allowed))
        for key in entry
        if key not in allowed
    ]
    missing = [field for field in fields if field not in entry]
    if missing:
        wrong.append(
            Refusal(f"{where}: missing {', '.join(missing)}; {expected}", f"add {', '.join(missing)}")
        )
    if wrong:
        raise BadInput(*wrong)
    if isinstance(entry["expires"], datetime.date):
        raise BadInput(
            Refusal(
                f"{where}: expires: observed an unquoted date ({entry['expires']}); expected text",
                f'write expires: "{entry["expires"]}", in quotes',
            )
        )


# pylint: disable-next=dangerous-default-value
def expect_filled(where: str, entry: dict[str, Any], expected: Mapping[str, str] = _CONTENTS) -> None:
    """Raise BadInput unless each field of an entry is text. `expected`: the contents of some fields."""
    wrong = [field for field in entry if not isinstance(entry[field], str) or not entry[field].strip()]
    if wrong:
        raise BadInput(
            *(
                Refusal(
                    f"{where}: {field}: observed {entry[field]!r}; expected {expected.get(field, 'text')}",
                    f"check the claim, then complete {field}" if field in expected else "",
                )
                for field in wrong
            )
        )


def expect_soon(where: str, what: str, expires: str, days: int, today: str) -> None:
    """Raise BadInput unless an entry ends on a day, and no later than so many days from today (ISO 8601)."""
    try:
        end = datetime.date.fromisoformat(expires)
    except ValueError:
        end = None
    # In that one spelling dates compare as their texts do.
    if end is None or end.isoformat() != expires:
        example = end or datetime.date.fromisoformat(today) + datetime.timedelta(days=min(days, 365))
        raise BadInput(
            Refusal(
                f'{where}: expires: observed {expires!r}; expected "YYYY-MM-DD"',
                f'write the last day in that form, for example expires: "{example}"',
            )
        )
    latest = datetime.date.fromisoformat(today) + datetime.timedelta(days=days)
    if end > latest:
        raise BadInput(
            Refusal(
                f"{where}: {what} may last {days} days at most: observed {expires}; expected {latest} or sooner",
                f'set expires: "{latest}" or an earlier day',
            )
        )
