# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that people accept: the verdict comes from those that are left, and a run does what it would do without."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy import catalogue
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import waivers
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from ...fakes.runs import (
    NOW,
    attested,
    look,
    settled,
)
from ...fakes.small_host import FakeMount, SmallHost, md
from ..assess.test_engines import instance, judged

HOLE, X = "requirement.no_write_hole.md", "/srv/x"
PG = ("/srv/pgdata",)


def entry(finding: str = HOLE, target: str = X, **given: str) -> dict[str, str]:
    """Return a good entry of durable_accept."""
    good = {"by": "Ana", "reason": "a replica has it", "expires": "2026-12-31"}
    return {"finding": finding, "target": target, **good, **given}


def of(found: dict[str, Any], kind: str) -> list[str]:
    """Return the notes of a kind."""
    return [each["reason"] for each in found["notes"] if each["id"] == f"note.{kind}"]


def with_hole(**given: Any) -> dict[str, Any]:
    """Return the assessment of a host with a write hole, and with nothing else that is wrong once it is settled."""
    host = SmallHost()
    host.add_layer(md("md9", "raid5", ("sda1",), "9:9"))
    host.add_mount(FakeMount(X, "ext4", "9:9", "/dev/md9", "md9"))
    return look(host, "strict", mounts=[X], **given)


def bare(**given: Any) -> dict[str, Any]:
    """Return the assessment of a host whose barriers are off now."""
    host = settled("flush", mounts=PG)
    host.mounts["/srv/pgdata"].barrier = "off"
    return look(host, "flush", mounts=PG, **given)


def test_what_is_accepted_decides_no_verdict_and_all_else_does() -> None:
    before, after = with_hole(), with_hole(accept=[entry()])
    assert before["verdict"] == "blocked"
    assert before["reasons"][0]["id"] == HOLE
    assert HOLE not in [each["id"] for each in after["reasons"]]
    assert after["reasons"] == [each for each in before["reasons"] if each["id"] != HOLE]
    assert after["verdict"] == after["reasons"][0]["verdict"] != "blocked"


def test_a_run_does_the_same_with_it() -> None:
    before, after = with_hole(), with_hole(accept=[entry()])
    for part in ("plan", "steps", "changes", "settings", "pending"):
        assert after[part] == before[part]


def test_what_waits_for_a_requirement_that_is_accepted_waits_still() -> None:
    accepted = entry("requirement.cache_non_volatile", "sda")
    (need,) = [
        each
        for each in look(settled("strict", mounts=PG), "protected", mounts=PG)["requirements"]
        if each["name"] == "cache_non_volatile"
    ]
    accepted["finding"] = need["id"]
    host = settled("strict", mounts=PG)
    found = look(host, "protected", mounts=PG, accept=[accepted])
    assert found["reasons"][0]["id"] == "withheld.requirement"
    assert found["verdict"] == "blocked"
    assert found["plan"]["loosen"] == {}


@pytest.mark.parametrize(("claims", "alone"), [((), "attested"), (("plug_pulled",), "attested")])
def test_with_all_accepted_a_host_rests_on_a_person_s_word(claims: tuple[str, ...], alone: str) -> None:
    given = {"mounts": ["/srv/maria"], "attestations": [attested(claim) for claim in claims]}
    found = look(settled("strict", **given), "strict", **given)
    (reason,) = found["reasons"]
    assert found["verdict"] == "unverified"
    (target,) = reason["targets"]
    found = look(settled("strict", **given), "strict", accept=[entry(reason["id"], target)], **given)
    assert (found["verdict"], found["reasons"], found["fails"]) == (alone, [], False)


def test_of_targets_that_are_one_reason_each_is_accepted_by_itself() -> None:
    mounts = ("/", "/srv/maria")
    host = settled("strict", mounts=mounts)
    (reason,) = look(host, "strict", mounts=mounts)["reasons"]
    first, *others = reason["targets"]
    assert others
    (left,) = look(host, "strict", mounts=mounts, accept=[entry(reason["id"], first)])["reasons"]
    assert left["targets"] == others
    every = [entry(reason["id"], target) for target in reason["targets"]]
    assert look(host, "strict", mounts=mounts, accept=every)["reasons"] == []


def test_the_page_and_the_report_name_who_accepted_what_until_when() -> None:
    found = with_hole(accept=[entry()])
    (reported,) = found["accepted"]
    assert {name: reported[name] for name in entry()} == entry()
    assert reported["verdict"] == "blocked"
    assert reported["why"].startswith("no_write_hole (/srv/x): a crash between")
    said = f"{HOLE} of {X} is accepted by Ana until 2026-12-31: a replica has it (durable_accept[0])"
    assert of(found, "accepted") == [said]
    made = {"time": NOW, "collection": "", "since": None}
    report = with_outcomes(
        {"host": "a", "was": "unknown", "error": None, "looked_only": True, **found, **made, "switch": "none"}
    )
    assert said in str(details([report]))
    assert f"{HOLE} of {X} is accepted by Ana until 2026-12-31" in " ".join(str(render([report])).split())


def test_what_loses_commits_now_needs_data_loss_to_be_accepted_too() -> None:
    risk = entry("risk.barrier_off", PG[0])
    drift = entry("setting.mount_options.barrier", PG[0])
    found = bare(accept=[risk, drift])
    assert found["verdict"] == "at_risk"
    assert "risk.barrier_off" in [each["id"] for each in found["reasons"]]
    (note,) = of(found, "waiver_refused")
    assert note.startswith("durable_accept[0]: risk.barrier_off of /srv/pgdata is at_risk: ")
    found = bare(accept=[risk, drift], accept_data_loss=True)
    assert (found["verdict"], found["reasons"]) == ("accepted_loss", [])
    assert found["changes"] != []


def test_one_that_has_expired_accepts_nothing_and_is_named() -> None:
    found = with_hole(accept=[entry(expires="2026-01-30")])
    assert (found["verdict"], found["accepted"]) == ("blocked", [])
    (note,) = of(found, "waiver_expired")
    assert note == (
        f"durable_accept[0]: the acceptance of {HOLE} of {X} expired on 2026-01-30, so it accepts nothing"
    )
    assert with_hole(accept=[entry(expires="2026-01-31")])["accepted"]


@pytest.mark.parametrize(
    "wrong",
    [entry(target="/srv/other"), entry("requirement.no_write_hole.btrfs"), entry("risk.drbd", "host")],
)
def test_one_that_matches_nothing_is_named(wrong: dict[str, str]) -> None:
    found = with_hole(accept=[wrong])
    assert found["verdict"] == "blocked"
    (note,) = of(found, "waiver_unmatched")
    assert f"no finding {wrong['finding']} of {wrong['target']}" in note


@pytest.mark.parametrize(("expires", "kind"), [("2026-06-01", "unmatched"), ("2026-01-30", "expired")])
def test_on_a_host_without_a_database_an_entry_that_accepts_nothing_is_named(expires: str, kind: str) -> None:
    found = look(settled("strict"), mounts=None, accept=[entry("risk.drbd", "host", expires=expires)])
    assert found["verdict"] == "not_applicable"
    assert len(of(found, f"waiver_{kind}")) == 1


def test_one_entry_accepts_one_setting_of_one_server() -> None:
    off = {"running": {"fsync": "off", "synchronous_commit": "off"}, "persisted": {}}
    given = {"accept_data_loss": True, "mounts": ["/srv/pgdata"]}
    target = "postgresql main synchronous_commit"
    found = judged(instance(**off), accept=[entry("risk.engine_setting", target)], **given)
    assert [each["target"] for each in found["accepted"]] == [target]
    assert found["verdict"] == "at_risk"
    left = [each["targets"] for each in found["reasons"] if each["id"] == "risk.engine_setting"]
    assert left == [["postgresql main fsync"]]


def test_of_two_entries_the_one_that_lasts_longer_counts_and_neither_is_called_wrong() -> None:
    found = with_hole(accept=[entry(expires="2026-03-01"), entry(expires="2026-06-01")])
    (reported,) = found["accepted"]
    assert reported["expires"] == "2026-06-01"
    assert not of(found, "waiver_refused") and not of(found, "waiver_unmatched")


def test_ratings_and_bad_input_have_what_is_accepted_too() -> None:
    found = with_hole(accept=[entry()], rate=True)
    assert found["ratings"]["strict"]["verdict"] == "blocked"
    accept = [entry("risk.barrier_off", PG[0])]
    found = bare(accept=accept, accept_data_loss=True, layers=["disks"])
    assert (found["verdict"], found["reasons"][0]["id"]) == ("at_risk", "risk.barrier_off")


def test_a_host_without_a_profile_has_its_unknowns_accepted_too() -> None:
    given: dict[str, Any] = {"databases": [{"engine": "postgresql", "paths": ["/srv/pgdta"]}], "mounts": None}
    host = SmallHost()
    found = look(host, None, **given)
    unknown = [each for each in found["reasons"] if each["id"] == "unknown.path"]
    if unknown:
        accept = [entry("unknown.path", unknown[0]["targets"][0])]
        after = look(host, None, accept=accept, **given)
        assert "unknown.path" not in [each["id"] for each in after["reasons"]]
        assert of(after, "accepted") and not of(after, "waiver_unmatched")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"durable_accept: observed \{\}; expected a list"),
        (
            ["risk.drbd"],
            r"durable_accept\[0\]: observed 'risk.drbd'; expected exactly finding, target, by, reason, expires",
        ),
        (
            [entry(by="")],
            r"durable_accept\[0\]: by: observed ''; expected the name of the person or team that decided it",
        ),
        (
            [entry(reason=" ")],
            r"durable_accept\[0\]: reason: observed ' '; expected why the finding is acceptable",
        ),
        ([entry("requirement.no_write_hole")], r"Did you mean requirement.no_write_hole.\w+\?"),
        ([entry("x")], r"observed 'x'; expected an id of the report's reasons, for example risk.barrier_off"),
        ([entry("host.input", "host")], r"observed host.input; .*cannot be accepted"),
        ([entry("setting.mount_options.atime", X)], r"cannot be accepted"),
        ([entry("note.read_only", X)], r"observed note.read_only; .*cannot be accepted"),
        ([entry(expires="2027-02-02")], r"accepting requirement.no_write_hole.md may last 366 days"),
        ([entry(expires="tomorrow")], r"durable_accept\[0\]: expires: observed 'tomorrow'"),
    ],
)
def test_what_is_malformed_is_refused_and_hides_no_risk(value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        waivers.read(value, False, NOW[:10])
    found = bare(accept=value)
    assert found["verdict"] == "at_risk"
    assert {each["id"] for each in found["reasons"]} == {"risk.barrier_off", "host.input"}


def test_none_of_the_catalogue_that_can_be_accepted_is_about_the_host_as_a_whole() -> None:
    for kind in catalogue.IDS:
        given = [entry(kind, "host")]
        elsewhere = ("requirement.attestation_in_force", "requirement.data_loss_accepted")
        if kind.startswith(("host.", "note.")) or kind in (*catalogue.NO_VERDICT, *elsewhere):
            with pytest.raises(BadInput):
                waivers.read(given, True, NOW[:10])
        else:
            assert waivers.read(given, True, NOW[:10]).entries[0].finding == kind
