# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""People's words: complete, about something, and not for ever."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.attestations import (
    CLAIMS,
    Attestation,
    find,
    read,
)
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from .fakes.runs import attested

TODAY = "2026-01-31"


def read_all(entries: Any, today: str) -> list[Attestation]:
    """Read the attestations of one variable."""
    words, expired = read({"durable_attestations": entries}, today)
    assert expired == {}
    return words


def later(days: int) -> str:
    return str(datetime.date(2026, 1, 31) + datetime.timedelta(days=days))


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(("days", "good"), [(0, True), (1, True), ("longest", True), ("longer", False)])
def test_the_first_and_the_last_day(claim: str, days: Any, good: bool) -> None:
    days = {"longest": CLAIMS[claim], "longer": CLAIMS[claim] + 1}.get(days, days)
    entry = {**attested(claim), "expires": later(days)}
    if good:
        assert read_all([entry], TODAY) == [Attestation(**entry)]
    else:
        with pytest.raises(BadInput, match=rf"durable_attestations\[0\]: {claim}"):
            read_all([entry], TODAY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"expires": datetime.date(2026, 6, 30)},
            'an unquoted date .2026-06-30.; expected text; write expires: "2026-06-30"',
        ),
        ({"expires": "30.6.2026"}, 'expires: observed .30.6.2026.; expected "YYYY-MM-DD"'),
        ({"expires": "2026-02-30"}, "expires: observed '2026-02-30'"),
        # Other spellings of ISO 8601, which Python 3.11 reads, do not compare as text.
        ({"expires": "20260130"}, "expires: observed '20260130'"),
        ({"expires": "2026-W20-1"}, "expires: observed '2026-W20-1'"),
        (
            {"expires": "2036-01-01"},
            "may last 1096 days at most: observed 2036-01-01; expected 2029-01-31 or sooner",
        ),
        ({"claim": "trust_me"}, "claim: observed 'trust_me'; expected one of power_loss_protection"),
        ({"by": ""}, "by: observed ''; expected the name of the person or team that checked it"),
        ({"by": "  "}, "by: observed '  '; expected the name of"),
        ({"reason": None}, "reason: observed None; expected what was checked, and how: check first"),
        ({"target": 7}, "target: observed 7; expected text"),
        (
            {"until": "2026-06-30"},
            "the unknown key 'until'; expected exactly claim, target, by, reason, expires$",
        ),
    ],
)
def test_a_malformed_word_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_all([attested(), {**attested(), **change}], TODAY)
    assert re.search(rf"durable_attestations\[1\]: .*{message}", str(caught.value))


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("days", [-1, -2, -5000])
def test_one_that_has_expired_is_not_in_force(claim: str, days: int) -> None:
    over = {**attested(claim), "expires": later(days)}
    other = attested(target="serial:OTHER")
    words, expired = read({"durable_attestations_host": [other, over]}, TODAY)
    assert words == [Attestation(**other)]
    assert expired == {"durable_attestations_host[1]": Attestation(**over)}


@pytest.mark.parametrize("entries", [{}, "x", attested(), [None], ["x"], [[]]])
def test_only_a_list_of_mappings_is_read(entries: Any) -> None:
    with pytest.raises(BadInput, match=r"durable_attestations.*: observed .*; expected"):
        read_all(entries, TODAY)


@pytest.mark.parametrize("field", ["claim", "target", "by", "reason", "expires"])
def test_every_field_is_needed(field: str) -> None:
    entry = attested()
    del entry[field]
    with pytest.raises(BadInput) as caught:
        read_all([entry], TODAY)
    (error,) = caught.value.errors
    assert error.problem.endswith(f": missing {field}; expected exactly claim, target, by, reason, expires")
    assert error.fix == f"add {field}"


def test_a_misspelt_key_gets_the_nearest_one_and_no_error_prints_the_entry() -> None:
    entry = attested()
    entry["expirez"] = entry.pop("expires")
    with pytest.raises(BadInput) as caught:
        read_all([entry], TODAY)
    unknown, missing = caught.value.errors
    assert unknown.endswith(
        "[0]: observed the unknown key 'expirez'; expected exactly claim, target, by, reason, expires. Did you mean expires?"
    )
    assert missing.endswith(
        "[0]: missing expires; expected exactly claim, target, by, reason, expires; add expires"
    )


@pytest.mark.parametrize(
    ("target", "disk", "found"),
    [
        ("host", "serial:a", True),
        ("serial:a", "serial:a", True),
        ("serial:b", "serial:a", False),
        ("serial:a", None, False),
        ("host", None, True),
    ],
)
def test_a_word_counts_for_its_target(target: str, disk: str | None, found: bool) -> None:
    words = read_all([attested("host_honours_flush", target)], TODAY)
    assert bool(find(words, ("host_honours_flush",), disk)) == found
    assert find(words, ("power_loss_protection",), disk) is None


def test_a_claim_about_a_disk_is_not_taken_for_the_whole_host() -> None:
    with pytest.raises(BadInput, match="observed target 'host'; expected a disk's id"):
        read_all([attested("power_loss_protection", "host")], TODAY)
