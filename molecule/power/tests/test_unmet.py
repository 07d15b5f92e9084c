# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing is missing at a time: blocked, in its own words, and the lease is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from support.attested import UPS_CLAIMS, attested
from support.runs import Playbooks, Run, connection, inventory
from support.site import FLUSHED, GUARD, LEASE, Site

HOST = "power"
#: A name of the machine -> the claim that it lacks, or that is over, and what is then said.
MISSING = {
    "untested": ("test_ups", "driver_real"),
    "unrehearsed": ("ups_rehearsed", "ups_rehearsed"),
    "unpulled": ("plug_pulled", "plug_pulled"),
    "expired": ("ups_rehearsed", "expired"),
}


def words(lacking: str, is_over: bool) -> list[dict[str, str]]:
    """Return all attestations but one, or with that one over since yesterday."""
    ends = {claim: date.today() + timedelta(20) for claim in UPS_CLAIMS}
    if is_over:
        ends[lacking] = date.today() - timedelta(1)
    else:
        del ends[lacking]
    return [attested(claim, expires=end) for claim, end in ends.items()]


def unmet(run: Run, host: str) -> dict[str, dict[str, Any]]:
    """Return {name: requirement} of those that do not hold."""
    return {need["name"]: need for need in run.reports[host]["requirements"] if need["state"] == "unmet"}


@pytest.fixture
def names(loose: Site, playbooks: Playbooks) -> Iterator[None]:
    """More names of the machine, each of which lacks a word."""
    hosts = {
        name: {**connection(loose.machine), "durable_attestations": words(claim, name == "expired")}
        for name, (claim, _said) in MISSING.items()
    }
    path = inventory(playbooks.directory / "names.yml", {"databases": {"hosts": hosts}})
    playbooks.inventories.append(path)
    yield
    playbooks.inventories.remove(path)


@pytest.mark.usefixtures("names")
def test_each_word_that_is_missing_or_over_blocks_and_the_lease_would_be_taken_back(
    loose: Site, playbooks: Playbooks
) -> None:
    run = playbooks.run("harden-db", "--check", "-e", f"durable_hosts={','.join(MISSING)}")
    assert run.code == 2
    for name, (_claim, said) in MISSING.items():
        report = run.reports[name]
        assert report["verdict"] == "blocked", (name, report["why"])
        assert "power_guard" in report["plan"]["tighten"], name
        assert run.recap[name]["changed"] > 0, name
        if said == "expired":
            assert any("expire" in why for why in report["why"]), report["why"]
        else:
            assert set(unmet(run, name)) == {said}
            assert unmet(run, name)[said]["remedy"]
    # Nothing was changed.
    assert loose.barrier() == "off"


def test_a_nut_that_is_told_to_start_nothing_blocks_and_the_lease_is_taken_back(
    loose: Site, playbooks: Playbooks
) -> None:
    cursor = loose.cursor()
    loose.sh("cp -a /etc/nut/nut.conf /root/nut.conf; sed -i 's/^MODE=.*/MODE=none/' /etc/nut/nut.conf")
    try:
        # The guard sees it for itself, before any run.
        loose.await_guard(cursor, FLUSHED)
        run = playbooks.run("harden-db")
    finally:
        loose.sh("cp -a /root/nut.conf /etc/nut/nut.conf")
    report = run.reports[HOST]
    assert (run.code, report["verdict"]) == (2, "blocked")
    need = unmet(run, HOST)["mode_set"]
    assert "MODE is none" in need["evidence"]
    assert need["remedy"]
    assert run.recap[HOST]["changed"] > 0
    assert loose.sh(f"[ ! -e {LEASE} ] && echo gone") == "gone"
    assert loose.sh(f"systemctl is-active {GUARD} || true") == "inactive"
    assert loose.barrier() == "on"
