# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all tests, in one boot as far as nothing takes its power away; `loose` is where most of them begin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support.runs import Playbooks, Run  # noqa: E402
from support.site import LEASE, Site  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]
NAME = "power"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The machine as its layout prepared it, over a volatile disk."""
    made = Site(Machine(NAME), tmp_path_factory.mktemp("site"))
    made.begin()
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="session")
def playbooks(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    inventories = [site.machine.inventory, SCENARIO / "inventory/hosts.yml"]
    return Playbooks(inventories, tmp_path_factory.mktemp("run"), {})


@pytest.fixture(scope="session")
def hardened(site: Site, playbooks: Playbooks) -> Run:
    """The first run of harden_db. What was there before it is kept in /root/before."""
    site.sh("mkdir -p /root/before; cp -a /etc/nut/upsmon.conf /etc/nut/nut.conf /etc/fstab /root/before/")
    return playbooks.run("harden-db")


@pytest.fixture
def loose(site: Site, playbooks: Playbooks, hardened: Run) -> Site:
    """The machine with all well and its barriers taken away, whatever the test before has done to it."""
    site.mend()
    if site.sh(f"[ -e {LEASE} ] && echo leased || true") != "leased":
        assert playbooks.run("harden-db").code == 0
    site.await_loosened()
    return site
