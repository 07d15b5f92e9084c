# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which verdicts each kind of host can reach: the page has what the code says, and no kind is red without a cure."""

from __future__ import annotations

import functools

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.host_kinds import (
    KINDS,
    PROFILES,
    Kind,
    Reached,
    reach,
    settled,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import NOW, attested

from .test_docs import ROOT

pytestmark = pytest.mark.every_core_alike

GREEN = ("durable", "attested")
by_name = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@functools.cache
def reached(number: int) -> dict[str, Reached]:
    """Return what a kind comes to, by profile."""
    return {profile: reach(KINDS[number], profile) for profile in PROFILES}


def of(kind: Kind) -> dict[str, Reached]:
    return reached(KINDS.index(kind))


def rows() -> list[tuple[str, ...]]:
    """Return the rows of both tables of the page: kinds with one behaviour, their verdicts, what their owner does."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for kind in KINDS:
        found = of(kind)
        key = (f"`{found['flush'].found}`", *map(cell, found.values()), kind.owner.removeprefix("never: "))
        was_run = kind.source.startswith("lab: ")
        groups.setdefault((str(kind.is_unsafe), *key), []).append(kind.name + ("" if was_run else "\\*"))
    return [(unsafe, "; ".join(names), *cells) for (unsafe, *cells), names in groups.items()]


def cell(seen: Reached) -> str:
    return f"`{seen.alone}`" if seen.alone == seen.attested else f"`{seen.alone}`, `{seen.attested}`"


@pytest.mark.parametrize(
    ("head", "unsafe"), [("host | as found | `flush`", "False"), ("unsafe host | as found | `flush`", "True")]
)
def test_the_page_has_the_verdicts_that_each_kind_reaches(head: str, unsafe: str) -> None:
    page = (ROOT / "docs/attest.md").read_text(encoding="utf-8")
    _title, _rule, *found = page[page.index(f"\n| {head}") :].lstrip().partition("\n\n")[0].split("\n")
    assert len(KINDS) >= 37
    assert found == [f"| {' | '.join(cells)} |" for is_unsafe, *cells in rows() if is_unsafe == unsafe]


@by_name
def test_each_kind_can_be_green_but_for_those_that_are_made_unsafe(kind: Kind) -> None:
    best = {seen.attested for seen in of(kind).values()}
    assert bool(best & set(GREEN)) != kind.owner.startswith("never: ")
    assert kind.owner.startswith("never: ") == kind.is_unsafe


@by_name
def test_its_owner_is_told_what_the_report_asks_for(kind: Kind) -> None:
    if not kind.is_unsafe:
        asked = {claim for seen in of(kind).values() for claim in seen.claims}
        assert all(f"`{claim}`" in kind.owner for claim in asked), asked


@by_name
def test_a_promise_of_people_is_never_called_durable(kind: Kind) -> None:
    for seen in of(kind).values():
        assert seen.attested == seen.alone if not seen.claims else seen.attested != "durable"


@pytest.mark.parametrize(
    ("name", "target", "verdict"),
    [
        ("RAID volume, no tool", "host", "attested"),
        ("RAID volume, battery failed", "host", "drifted"),
        ("RAID volume, battery failed", "disk", "attested"),
        ("RAID volume, battery failed, write back forced", "disk", "at_risk"),
    ],
)
def test_which_attestation_counts_for_a_raid_volume(name: str, target: str, verdict: str) -> None:
    """As docs/attest.md states."""
    (kind,) = [kind for kind in KINDS if kind.name == name]
    facts = collect(kind.make(), NOW)
    (disk,) = [disk["id"] for disk in facts["disks"] if disk["kind"] == "raid_volume"]
    word = (
        attested("host_honours_flush") if target == "host" else attested("power_loss_protection", target=disk)
    )
    assert settled(kind.make(), "flush", [word])["verdict"] == verdict


def test_the_page_states_which_attestation_counts_for_a_raid_volume() -> None:
    page = " ".join((ROOT / "docs/attest.md").read_text(encoding="utf-8").split())
    assert "an attestation for `host` does not cover that volume. Only `power_loss_protection` of the" in page
    assert "If the controller writes back without a good battery, no attestation is accepted" in page
