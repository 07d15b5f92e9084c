# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FairCom's six questions with the answers of a host: configured, observed and tested values differ."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import checklist
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import HEIGHT, WIDTH, render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.fleet import report
from ...fakes.runs import NOW, attested, inputs, look
from ...fakes.small_host import BigHost, SmallHost
from ...fakes.told_power import condition, power
from ..assess.test_engines import instance, judged

PG = ("/srv/pgdata",)


def answers(host: SmallHost | None = None, **given: Any) -> dict[str, str]:
    """Return the answers of a rated host of which /srv/pgdata is managed."""
    reported = given.pop("power", None)
    given = {"mounts": PG, "rate": True, **given}
    found = assess(inputs(None, **given), collect(host or SmallHost(), NOW), NOW, None, reported)
    answered: dict[str, str] = found["checklist"]
    return answered


def test_each_question_is_answered_by_what_was_observed() -> None:
    assert answers(mounts=["/srv/pgdata", "/srv/mssql", "/srv/maria"], power=power()) == {
        "file_systems": "ext4, data=ordered (/srv/pgdata, /srv/maria); xfs (/srv/mssql)",
        "cache_layers": "none; disks: physical (sda, sdb); virtual, hypervisor's cache unknown (vdb)",
        "ups": "configured: rack@localhost OL CHRG; shutdown not tested; power cut not tested",
        "write_cache": "enabled, kernel: write back (sda, sdb, vdb)",
        "barriers": "on (/srv/pgdata, /srv/mssql, /srv/maria)",
        "commit_delay": "no server was found",
    }


def test_layers_are_named_in_their_order() -> None:
    found = answers(BigHost(), mounts=["/srv/faircom"])["cache_layers"]
    assert found.startswith("lvm, md; disks: physical (")


def test_a_barrier_that_is_off_and_a_cache_that_is_off_are_answers() -> None:
    host = SmallHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    host.disk("sda").cache, host.disk("sda").cache_mode = "disabled", "write through"
    found = answers(host)
    assert (found["barriers"], found["write_cache"]) == (
        "off (/srv/pgdata)",
        "disabled, kernel: write through (sda)",
    )


def test_many_names_do_not_hide_another_value() -> None:
    host = BigHost()
    host.mounts["/srv/btrfs"].barrier = "off"
    targets = ["/srv/pgdata", "/srv/mssql", "/srv/maria", "/srv/firebird", "/srv/faircom", "/srv/btrfs"]
    found = answers(host, mounts=targets)["barriers"]
    assert "+2 more); off (/srv/btrfs)" in found


@pytest.mark.parametrize(
    ("reported", "claims", "expected"),
    [
        (None, (), "unknown: its facts were not collected"),
        ({"monitor": "none", "upses": []}, (), "none configured; shutdown not tested; power cut not tested"),
        ({"monitor": "unknown", "upses": []}, (), "unknown; shutdown not tested; power cut not tested"),
        ({"monitor": "nut", "upses": []}, (), "nut without a UPS; shutdown not tested; power cut not tested"),
        (
            {},
            ("ups_rehearsed",),
            "configured: rack@localhost OL CHRG; shutdown tested, by A. Person until 2026-06-30; power cut not tested",
        ),
        (
            {},
            ("plug_pulled", "host_honours_flush"),
            "configured: rack@localhost OL CHRG; shutdown not tested; power cut tested, by A. Person until 2026-06-30",
        ),
    ],
)
def test_a_ups_is_configured_or_tested(
    reported: dict[str, Any] | None, claims: tuple[str, ...], expected: str
) -> None:
    idle = [condition("monitor_active", "unmet")] if reported else []
    facts = None if reported is None else {**power(*idle), **reported}
    assert answers(power=facts, attestations=list(map(attested, claims)))["ups"] == expected


def test_the_commit_delay_is_that_of_faircom_db_and_not_read_of_others() -> None:
    delay = {"running": {"COMMIT_DELAY": "2"}, "persisted": {"COMMIT_DELAY": "1"}}
    server = instance("faircom", **delay, directories=list(PG))
    other = instance("postgresql", directories=list(PG))
    found = judged(server, other, profile=None, rate=True)["checklist"]["commit_delay"]
    assert found == "main 2 ms now, 1 ms at the next start; not read from postgresql"
    silent = {**server, "settings": {}}
    found = judged(silent, profile=None, rate=True)["checklist"]["commit_delay"]
    assert found == "not read from faircom"


@pytest.mark.parametrize("profile", [None, "strict"])
def test_only_a_rating_of_a_host_with_mounts_answers(profile: str | None) -> None:
    assert look(SmallHost(), profile, mounts=PG, rate=True)["checklist"]
    assert look(SmallHost(), profile, mounts=PG).get("checklist") is None
    assert look(SmallHost(), profile, mounts=[], rate=True)["checklist"] is None


@pytest.mark.every_python_alike
def test_the_page_of_one_host_and_the_files_have_the_answers() -> None:
    one, two = (report(name, look(SmallHost(), None, mounts=PG, rate=True)) for name in ("db1", "db2"))
    expected = checklist.lines_of(one["checklist"])
    assert len(expected) == 6
    page = render([one]).splitlines()
    assert [row for row in page if row in expected] == expected
    assert len(page) <= HEIGHT
    assert max(map(len, page)) <= WIDTH
    assert not any(row in expected for row in render([one, two]).splitlines())
    assert all(details([one, two]).count(f"  - {row}\n") == 2 for row in expected)
