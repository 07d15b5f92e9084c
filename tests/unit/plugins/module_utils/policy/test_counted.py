# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left over: engines that are stopped for good, and those that the inventory ignores for a while."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy import counted
from ansible_collections.durable.dbhost.plugins.module_utils.policy.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from ..fakes.runs import NOW
from .test_engines import instance, judged

TODAY = NOW[:10]
UNSAFE = {"running": {"fsync": "off"}, "persisted": {"fsync": "off"}}
MARIA = {"engine": "mariadb", "name": "mariadb", "directories": ["/srv/maria"]}


def entry(**given: Any) -> dict[str, Any]:
    """Return a good entry of durable_ignore."""
    good = {
        "engine": "postgresql",
        "by": "A. Person",
        "reason": "a test's, gone in June",
        "expires": "2026-06-30",
    }
    return {**good, **given}


def of(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return {engine: whether it is judged, and why not} of a report."""
    return {each["engine"]: (each["judged"], each["reason"]) for each in found["engines"]}


def test_one_that_is_ignored_is_listed_with_who_and_why_and_not_judged() -> None:
    assert judged(instance(**UNSAFE))["verdict"] == "at_risk"
    found = judged(instance(**UNSAFE), ignore=[entry(instance="main")])
    assert found["verdict"] == "drifted"
    assert [row for row in found["settings"] if row["layer"] == "postgresql"] == []
    why = "ignored by A. Person until 2026-06-30: a test's, gone in June: listed, not judged"
    assert of(found) == {"postgresql": ("ignored", why)}
    assert f"postgresql main: {why}" in found["warnings"]
    assert found["ignored"] == [entry(instance="main")]


@pytest.mark.parametrize("profile", ["strict", None])
def test_it_stands_in_every_report(profile: str | None) -> None:
    found = judged(instance(), profile=profile, ignore=[entry()], mounts=None)
    assert of(found)["postgresql"][0] == "ignored"
    assert found["ignored"] == [entry(instance="")]
    report = {"host": "a", "was": "unknown", "error": None, "looked_only": True, "changes": [], **found}
    assert "ignored by A. Person until 2026-06-30" in str(details([with_outcomes(report)]))


def test_one_that_has_expired_counts_again_and_is_named() -> None:
    found = judged(instance(**UNSAFE), ignore=[entry(expires="2026-01-30")])
    assert found["verdict"] == "at_risk"
    assert of(found) == {"postgresql": ("yes", "")}
    assert found["ignored"] == []
    assert any("durable_ignore[0]: postgresql expired on 2026-01-30" in note for note in found["warnings"])
    assert judged(instance(**UNSAFE), ignore=[entry(expires=TODAY)])["verdict"] == "drifted"


def test_only_the_instance_that_is_named_is_ignored() -> None:
    found = judged(instance(**UNSAFE), ignore=[entry(instance="other")])
    assert found["verdict"] == "at_risk"
    (note,) = [note for note in found["warnings"] if "durable_ignore" in note]
    assert note == (
        "durable_ignore[0]: postgresql other is not here: seen postgresql main; correct it, or take it out"
    )


def test_a_flavour_is_told_apart() -> None:
    maria, mysql = instance("mariadb"), instance("mariadb", flavour="mysql")
    both = [counted.Ignored(name, "", "a", "b", "2026-06-30", "") for name in ("mariadb", "mysql")]
    assert [each.fits(maria) for each in both] == [True, False]
    assert [each.fits(mysql) for each in both] == [True, True]


def test_its_mounts_are_managed_only_for_another_reason() -> None:
    pg, maria = instance(**UNSAFE), instance(**MARIA)
    alone = judged(pg, maria, mounts=None, ignore=[entry()])
    targets = {row["target"] for row in alone["settings"] if row["layer"] == "mount_options"}
    assert targets == {"/srv/maria"}
    beside = judged(pg, instance(**{**MARIA, "directories": ["/srv/pgdata"]}), mounts=None, ignore=[entry()])
    targets = {row["target"] for row in beside["settings"] if row["layer"] == "mount_options"}
    assert targets == {"/srv/pgdata"}


def test_without_any_other_engine_or_mount_nothing_is_managed() -> None:
    found = judged(instance(**UNSAFE), mounts=None, ignore=[entry()])
    assert found["verdict"] == "not_applicable"
    assert any("ignored by A. Person" in why for why in found["why"])
    assert of(found)["postgresql"][0] == "ignored"


def test_one_that_is_stopped_is_listed_with_its_state_and_reason() -> None:
    idle = instance(state="stopped", starts_at_boot="no", files=[])
    found = judged(idle)
    (told,) = found["engines"]
    assert (told["state"], told["judged"]) == ("stopped", "stopped")
    assert "nothing starts it (postgresql@15-main.service)" in told["reason"]
    assert of(judged(instance()))["postgresql"] == ("yes", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, r"durable_ignore: seen \{\}; wanted a list"),
        (
            ["postgresql"],
            r"durable_ignore\[0\]: seen 'postgresql'; wanted exactly engine, by, reason, expires",
        ),
        ([entry(engine="oracle")], r"engine: seen 'oracle'; wanted one of mssql, faircom"),
        ([entry(by=" ")], r"by: seen ' '; wanted text"),
        ([entry(until="x")], r"wanted exactly engine, by, reason, expires, and if you like instance"),
        (
            [entry(expires="2027-02-02")],
            r"ignoring postgresql may last 366 days at the most: seen 2027-02-02",
        ),
        ([entry(expires="soon")], r'expires: seen \'soon\'; wanted "YYYY-MM-DD"'),
    ],
)
def test_what_is_malformed_blocks_its_host(value: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        counted.read(value, None, TODAY)
    assert judged(instance(), ignore=value)["verdict"] == "blocked"


def test_the_longest_life_is_a_year() -> None:
    assert counted.read([entry(expires="2027-02-01")], None, TODAY).entries


def test_an_engine_is_not_named_and_ignored_at_once() -> None:
    named = [{"engine": "postgresql", "paths": ["/srv/pgdata"]}]
    with pytest.raises(BadInput, match="which durable_databases names"):
        counted.read([entry()], named, TODAY)
    assert counted.read([entry(instance="old")], named, TODAY).entries
