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


@by_name
def test_the_page_has_the_verdicts_that_a_kind_reaches(kind: Kind) -> None:
    page = (ROOT / "docs/hosts.md").read_text(encoding="utf-8")
    assert row(kind) in page.split("\n")


def row(kind: Kind) -> str:
    """Return a kind's row of the page."""
    found = of(kind)
    cells = [
        ("but: " if kind.is_unsafe else "") + kind.name,
        f"`{found['flush'].found}`",
        *map(cell, found.values()),
        kind.owner,
        kind.source,
    ]
    return f"| {' | '.join(cells)} |"


def cell(seen: Reached) -> str:
    return f"`{seen.alone}`" if seen.alone == seen.attested else f"`{seen.alone}`, then `{seen.attested}`"


def test_the_page_has_no_other_kinds() -> None:
    page = (ROOT / "docs/hosts.md").read_text(encoding="utf-8")
    rows = [line for line in page.split("\n") if line.startswith("| ")][1:]
    assert len(rows) == len(KINDS) >= 20


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
        ("its tool says the battery has failed", "host", "drifted"),
        ("its tool says the battery has failed", "disk", "attested"),
        ("and the controller is told to write back all the same", "disk", "at_risk"),
    ],
)
def test_which_attestation_counts_for_a_raid_volume(name: str, target: str, verdict: str) -> None:
    """As docs/platforms.md and docs/hosts.md say it."""
    (kind,) = [kind for kind in KINDS if kind.name == name]
    facts = collect(kind.make(), NOW)
    (disk,) = [disk["id"] for disk in facts["disks"] if disk["kind"] == "raid_volume"]
    word = (
        attested("host_honours_flush") if target == "host" else attested("power_loss_protection", target=disk)
    )
    assert settled(kind.make(), "flush", [word])["verdict"] == verdict


def test_the_pages_say_which_attestation_counts_for_a_raid_volume() -> None:
    platforms = " ".join((ROOT / "docs/platforms.md").read_text(encoding="utf-8").split())
    assert (
        "It counts for a RAID volume, unless the tool of its controller reports that a power cut" in platforms
    )
    hosts = " ".join((ROOT / "docs/hosts.md").read_text(encoding="utf-8").split())
    assert "`power_loss_protection` of the volume itself still counts" in hosts
