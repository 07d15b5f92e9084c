# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings about speed stay as they are if this host's own benchmark measured the wanted value as slower."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    advice,
    grouped,
    planned,
    variants,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import AS_IT_IS
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import measured

from ...fakes.runs import NOW, look
from ...fakes.small_host import SmallHost
from .test_costs import STORAGE, TODAY, kept
from .test_engines import instance, judged, row
from .test_settings import row as setting_row

PG = "/srv/pgdata"


def figure(
    rate: float, delay: int | None = None, clients: int = 1, variant: str = AS_IT_IS
) -> dict[str, Any]:
    """Return a row of a benchmark."""
    pattern = "dsync" if delay is None else "group_osync"
    return {
        "mount": PG,
        "pattern": pattern,
        "commit_delay": delay,
        "clients": clients,
        "variant": variant,
        "rate": rate,
    }


def delayed(
    rows: list[dict[str, Any]], word: str = "500", **changes: Any
) -> tuple[dict[str, Any], list[str]]:
    """Return the row of a server with this delay on a host with a benchmark of these rows, and the notes about it."""
    delay = {"COMMIT_DELAY": word}
    server = instance("faircom", running=delay, persisted=delay, directories=[PG])
    found = judged(server, benchmark=kept(rows=rows, **changes))
    notes = [note for note in found["warnings"] if "COMMIT_DELAY is left" in note]
    planned = found["plan"]["tighten"].get("faircom", [{"settings": {}}])[0]["settings"]
    seen = row(found, "COMMIT_DELAY")
    assert ("COMMIT_DELAY" in planned) is (seen["phase"] is not None) is not bool(notes)
    return seen, notes


def test_names_are_those_of_the_benchmark() -> None:
    assert measured.AS_IT_IS == AS_IT_IS
    assert planned.Way(measured.GROUPED, 1).pattern == "group_osync"


def test_a_value_that_the_benchmark_has_measured_as_slower_is_not_set() -> None:
    seen, notes = delayed([figure(1000, 500), figure(500, 1)])
    assert (seen["verdict"], seen["phase"]) == ("ok", None)
    assert notes == [
        f"main COMMIT_DELAY is left at 500: by this host's benchmark of {NOW[:10]}, 1 has 0.50 times its commits with 1 client"
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [figure(500, 500), figure(1000, 1)],
        # Less than a tenth is noise.
        [figure(1000, 500), figure(950, 1)],
        # So is what differs by no more than runs of the same value.
        [{**figure(1000, 500), "spread": 0.7}, {**figure(500, 1), "spread": 0.5}],
        # Of other numbers of clients, ways to commit and settings they say nothing.
        [figure(1000, 500, 1), figure(500, 1, 40)],
        [figure(1000, 5), figure(500, 1)],
        [figure(1000, 500, variant="scheduler bfq"), figure(500, 1)],
        [{**figure(1000, 500), "pattern": "dsync"}, figure(500, 1)],
    ],
)
def test_without_such_a_measurement_it_is_set(rows: list[dict[str, Any]]) -> None:
    assert delayed(rows)[0]["phase"] == "tighten"


def test_one_number_of_clients_is_enough() -> None:
    rows = [figure(1000, 500), figure(5000, 1), figure(1000, 500, 40), figure(300, 1, 40)]
    assert "1 has 0.30 times its commits with 40 clients" in delayed(rows)[1][0]


@pytest.mark.parametrize(
    "changes",
    [
        {"time": "2025-01-31T12:00:00Z"},
        {"doubts": ["not plausible"]},
        {"disks": {PG: ["wwn:another"]}},
        {"rows": "none"},
        {"rows": [{}]},
        {"time": None},
    ],
)
def test_a_benchmark_that_does_not_fit_counts_for_nothing(changes: dict[str, Any]) -> None:
    rows = {"rows": [figure(1000, 500), figure(500, 1)]}
    assert delayed(**{**rows, **changes})[0]["phase"] == "tighten"


@pytest.mark.parametrize(("rate", "phase"), [(500, None), (950, "tighten"), (2000, "tighten")])
@pytest.mark.parametrize(
    ("variant", "setting"), [("mount option noatime", "atime"), ("scheduler mq-deadline", "scheduler")]
)
def test_so_are_atime_and_scheduler(variant: str, setting: str, rate: float, phase: str | None) -> None:
    rows = [figure(1000), figure(rate, variant=variant)]
    overrides = {"scheduler_solid_state": "mq-deadline"}
    found = look(SmallHost(), mounts=[PG], overrides=overrides, benchmark=kept(rows=rows))
    seen = row(found, setting)
    assert (seen["verdict"] == "ok", seen["phase"]) == (phase is None, phase)


def test_safety_is_not_a_matter_of_speed() -> None:
    rows = [figure(1000), figure(10, variant="mount option noatime")]
    slow = setting_row("mounts", PG, "atime")
    found, notes = measured.left([slow, slow._replace(klass="safety")], kept(rows=rows), STORAGE, TODAY)
    assert [each.phase for each in found] == [None, "tighten"]
    assert len(notes) == 1


def test_the_policy_and_the_benchmark_agree_on_names_and_noise() -> None:
    """The policy imports nothing of what measures."""
    assert (measured.AS_IT_IS, measured.GROUPED) == (variants.AS_IT_IS, grouped.PATTERN)
    assert measured.WORTH == advice.WORTH
