# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read at the end of a run: the worst host first, each with its reasons."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import ups
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import (
    change_line,
    details,
    natural,
    takes_place,
    with_outcomes,
    worst_first,
)
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS

from ...fakes.told_power import guard, leased, power

CHANGE = {
    "layer": "mount_options",
    "target": "/srv",
    "setting": "barrier",
    "running": "off",
    "persisted": "on",
    "wanted": "on",
}


def report(host: str, verdict: str, **changes: Any) -> dict[str, Any]:
    found = {"host": host, "profile": "strict", "verdict": verdict, "was": verdict, "looked_only": False}
    return {
        **found,
        "error": "",
        "changes": [],
        "reasons": [],
        "accepted": [],
        "ratings": {},
        "recommendation": None,
        "warnings": [],
        "exposed": [],
        "settings": [],
        "engines": [],
        "requirements": [],
        "power": None,
        **changes,
    }


@given(st.lists(st.tuples(st.text(max_size=3), st.sampled_from(VERDICTS))))
def test_the_worst_comes_first_and_none_is_lost(hosts: list[tuple[str, str]]) -> None:
    found = worst_first([report(*host) for host in hosts])
    ranks = [(VERDICTS.index(row["verdict"]), natural(row["host"]), row["host"]) for row in found]
    assert ranks == sorted(ranks)
    assert sorted((row["host"], row["verdict"]) for row in found) == sorted(hosts)


def test_people_count_db2_before_db10() -> None:
    names = ["db10", "db2", "a", "db", "10", "db2b", "db02"]
    assert sorted(names, key=natural) == ["10", "a", "db", "db2", "db02", "db2b", "db10"]


def test_each_host_has_its_reasons_and_changes() -> None:
    text = details(
        [
            report("db1", "durable", was="drifted", changes=[{**CHANGE, "state": "done"}]),
            report(
                "db2",
                "at_risk",
                reasons=[
                    {
                        "id": "risk.drbd",
                        "reason": "commits can be lost",
                        "fix": "run it",
                        "targets": ["a", "b"],
                    },
                    {"id": "unknown.path", "reason": "second", "fix": "", "targets": []},
                ],
                profile=None,
                looked_only=True,
                changes=[{**CHANGE, "state": "foreseen"}],
            ),
        ]
    )
    line = "  - /srv barrier: now off -> on"
    assert text.splitlines() == [
        "db2: at_risk",
        "  would change:",
        line,
        "  why:",
        "  - commits can be lost",
        "    fix: run it",
        "    id: risk.drbd, of a, b",
        "  - second",
        "    id: unknown.path, of host",
        "",
        "db1: durable (was drifted), profile strict",
        "  changed:",
        line,
        "",
    ]


def test_ratings_say_what_it_would_take() -> None:
    other = {**CHANGE, "setting": "atime", "wanted": "noatime"}
    rating = {"verdict": "blocked", "changes": [CHANGE, other], "why": ["no UPS"], "unmet": []}
    text = details([report("db1", "not_managed", ratings={"ups": rating})])
    assert text.endswith(
        "db1: not_managed, profile strict\n  ups: blocked\n    - no UPS\n    - set /srv: barrier on, atime noatime\n\n"
    )


def test_a_rating_marks_a_value_that_changes_only_at_boot() -> None:
    changes = [{**CHANGE, "running": "on", "persisted": "off"}, {**CHANGE, "setting": "atime"}]
    rating = {"verdict": "drifted", "changes": changes, "why": [], "unmet": []}
    text = details([report("db1", "not_managed", ratings={"strict": rating})])
    assert "    - set /srv: barrier on (at boot), atime on\n" in text


def need(claim: str) -> dict[str, Any]:
    return {"id": "requirement.flush", "target": "sda", "attest": (f"  - claim: {claim}",)}


def to_attest(**given: Any) -> list[str]:
    """Return the lines about attestations, and the notes after them."""
    rows = details([report("db/1", "unverified", **given)]).splitlines()
    return rows[1 : next(number for number, row in enumerate(rows) if row.startswith("  strict:"))]


RATINGS = {
    name: {"verdict": "unverified", "changes": [], "why": [], "unmet": list(map(need, claims))}
    for name, claims in {"strict": "a", "flush": "ab", "protected": "cdefg"}.items()
}


def test_attestations_of_the_pinned_profile_come_first_and_others_under_their_profile() -> None:
    assert to_attest(profile="flush", requirements=[need("a"), need("b")], ratings=RATINGS) == [
        "  to attest after checking (by, reason):",
        "    durable_attestations_host:",
        "      - claim: a",
        "      - claim: b",
        "  to attest for protected also, after checking (by, reason):",
        "      - claim: c",
        "      - claim: d",
        "      - claim: e",
        "    # and 2 more, in db%2F1.json",
    ]


def test_attestations_of_the_recommended_profile_come_first_without_a_pinned_one() -> None:
    best = {"profile": "flush", "why": [], "also": [], "group_vars": []}
    ratings = {name: RATINGS[name] for name in ("strict", "flush")}
    rows = to_attest(profile=None, recommendation=best, ratings=ratings)
    assert rows[:4] == [
        "  to attest for flush, after checking (by, reason):",
        "    durable_attestations_host:",
        "      - claim: a",
        "      - claim: b",
    ]
    assert not [row for row in rows[4:] if "attest" in row]


def test_what_failed_is_not_called_changed() -> None:
    text = details([report("db1", "at_risk", error="sda: no", changes=[{**CHANGE, "state": "failed"}])])
    assert "db1: at_risk, profile strict\n  failed:\n  - sda: no\n  could not change:\n" in text


def test_one_change_in_one_line() -> None:
    assert change_line(CHANGE) == "/srv barrier: now off -> on"
    both = {**CHANGE, "persisted": "off"}
    assert change_line(both) == "/srv barrier: now off -> on, at boot off -> on"


def test_what_should_be_known_stands_below_the_reasons() -> None:
    found = report("db1", "attested", warnings=["an old version"], exposed=["look for damage"])
    assert "  note:\n  - an old version\n  - look for damage" in details([found])


def test_a_ups_is_shown_with_its_sums_and_its_guard() -> None:
    reported = power(guard=leased("tight", "ONBATT"))
    text = details([report("db1", "attested", power=ups.section(reported))])
    assert text.endswith(
        "db1: attested, profile strict\n  power:\n"
        "  - rack@localhost (usbhid-ups): OL CHRG, charge 100 %, 3600 s left, 300 s when low\n"
        "  - durability: met: 5 (poll) + 1 (notify) + 60 (margin) = 66 s needed, of 3600 s\n"
        "  - clean_stop: met: 90 (stop of postgresql.service) + 60 (margin) = 150 s needed, of 300 s\n"
        "  - guard: tight since 2026-01-31T11:00:00Z: ONBATT\n"
        "  - /srv/pgdata: barrier on\n\n"
    )


def test_what_a_ups_does_not_tell_is_left_out() -> None:
    reported = power(
        upses=[{**power()["upses"][0], "status": [], "charge": None, "runtime": None, "driver": ""}]
    )
    rows = [{"layer": "power"}]
    text = details([report("db1", "blocked", power=ups.section(reported), settings=rows)])
    assert "  - rack@localhost (driver unknown): no status, 300 s when low\n" in text


def test_a_ups_of_a_host_that_does_not_rest_on_it_is_not_shown() -> None:
    reported = ups.section(power(guard=guard()))
    assert "rack@localhost" not in details([report("db1", "durable", power=reported)])


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"looked_only": True}, "foreseen"),
        ({"begun": [["tighten", "mount_options"]], "after": "ok"}, "done"),
        ({"begun": [["tighten", "mount_options"]], "after": "pending"}, "done"),
        ({"begun": [["tighten", "mount_options"]], "after": "drift_running"}, "failed"),
        ({"begun": [["tighten", "mount_options"]], "after": "unknown"}, "failed"),
        # Without a row: what asked for it is gone, or its target is.
        ({"begun": [["tighten", "mount_options"]], "after": None, "beside": "/srv"}, "done"),
        ({"begun": [["tighten", "mount_options"]], "after": None, "beside": "sda"}, "unknown"),
        ({"begun": [["tighten", "mount_options"]], "settings": [], "error": None}, "unknown"),
        (
            {
                "begun": [["tighten", "mariadb"]],
                "layer": "mariadb",
                "after": None,
                "engines": [{"engine": "mariadb"}],
            },
            "done",
        ),
        (
            {
                "begun": [["tighten", "mariadb"]],
                "layer": "mariadb",
                "after": None,
                "engines": [{"engine": "mssql"}],
            },
            "unknown",
        ),
        ({"begun": [["tighten", "power"]], "layer": "power", "after": None}, "done"),
        ({"begun": [["tighten", "mount_options"]], "after": "drift_running", "undone": True}, "undone"),
        ({"begun": [["tighten", "mount_options"]], "after": "ok", "undone": True}, "done"),
        ({"begun": [["tighten", "mariadb"]], "layer": "mariadb", "after": "ok", "undone": True}, "done"),
        (
            {"begun": [["tighten", "mariadb"]], "layer": "mariadb", "after": "unknown", "undone": True},
            "failed",
        ),
        ({"begun": [["tighten", "write_cache"]], "after": "drift_running"}, "not_begun"),
        ({"begun": [["tighten", "mount_options"]], "settings": [], "error": "lost"}, "unknown"),
    ],
)
def test_each_change_says_what_came_of_it(given: dict[str, Any], state: str) -> None:
    given = {"error": "sda: no", **given}
    beside = given.pop("beside", "sda")
    other = {"layer": "write_cache", "target": beside, "setting": "write_cache", "verdict": "ok"}
    layer = given.pop("layer", "mount_options")
    row = {
        "layer": layer,
        "target": "/srv",
        "setting": "barrier",
        "verdict": given.pop("after", "ok"),
    }
    settings = given.pop("settings", [other, *([row] if row["verdict"] else [])])
    change = {**CHANGE, "phase": "tighten", "layer": layer}
    found = with_outcomes(report("db1", "at_risk", **given, changes=[change], settings=settings))
    assert [change["state"] for change in found["changes"]] == [state]
    assert not {"begun", "undone"} & set(found)
    assert [takes_place(change) for change in found["changes"]] == [state in ("foreseen", "done")]


@pytest.mark.parametrize(("running", "state"), [("on", "done"), ("off", "failed")])
def test_a_change_of_what_is_in_force_alone_is_judged_and_told_by_that(running: str, state: str) -> None:
    row = {"layer": "mount_options", "target": "/srv", "setting": "barrier", "verdict": "unknown"}
    change = {**CHANGE, "phase": "tighten", "persisted": None}
    given = {"begun": [["tighten", "mount_options"]], "changes": [change]}
    found = with_outcomes(report("db1", "unknown", error="", settings=[{**row, "running": running}], **given))
    assert [change["state"] for change in found["changes"]] == [state]
    assert "  - /srv barrier: now off -> on\n" in details([found])
