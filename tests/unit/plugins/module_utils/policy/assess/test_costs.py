# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a profile's price: by the host's own benchmark where it holds, else by what was published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.measure import benchmark, planned
from ansible_collections.durable.dbhost.plugins.module_utils.measure.targets import find
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import (
    AS_IT_IS,
    CACHE_OFF,
    Variant,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import costs
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    NOW,
    inputs,
    look,
    shipped,
)
from ...fakes.small_host import SmallHost
from ...measure.test_benchmark import row

TODAY = NOW[:10]
PROFILES = [choose(name, shipped(), {}, None)[0] for name in ("strict", "flush", "ups")]
STORAGE = collect(SmallHost(), NOW)
#: The same host with disks of the published table.
ROTATING = {
    **STORAGE,
    "disks": [{**disk, "kind": "physical", "rotational": "yes"} for disk in STORAGE["disks"]],
}


def kept(rate: float = 50.0, **changes: Any) -> str:
    """Return a benchmark of the small host as its playbook keeps it: with caches off, half of what it is now and less."""
    places = find(SmallHost(), ["/srv/pgdata"])
    tried = [Variant(AS_IT_IS), Variant(CACHE_OFF, "write_cache", "disabled")]
    made = planned.Plan(places, [planned.Way("dsync")], [1, 10], tried, 5, 1, 50000)
    rows = [
        {**row(variant.name, of_now * rate, clients), "mount": "/srv/pgdata"}
        for variant, share in zip(tried, (2, 1))
        for clients, of_now in ((1, share), (10, share * share))
    ]
    result = benchmark.result_of(made, rows, {}, shipped())
    return json.dumps({"host": "db1", "time": NOW, **result, **changes})


def reported(
    text: str | None, today: str = TODAY, storage: Mapping[str, Any] = ROTATING
) -> tuple[dict[str, str], str]:
    """Return the costs on the small host."""
    return costs.of(PROFILES, text, storage, today)


def test_transactions_have_a_range_next_to_that_of_commits() -> None:
    """A benchmark of an earlier version names no server."""
    point = {"pattern": "pgbench_tpcb", "commit_delay": None, "clients": 1, "of_now": 0.5}
    commits = {**point, "pattern": "dsync", "rate": 76}
    transactions = [{**point, "rate": rate, "server": "postgres (PostgreSQL) 15.18"} for rate in (20, 90)]
    price = {"mount": "/srv/pgdata", "profile": "strict", "rates": [commits, *transactions]}
    priced, _note = reported(kept(prices=[price]))
    assert priced["strict"].partition(f"{TODAY}: ")[2] == (
        "76 to 76 commits/s on /srv/pgdata, 0.50 to 0.50 times those of then;"
        " 20 to 90 transactions/s of postgres (PostgreSQL) 15.18 on /srv/pgdata, 0.50 to 0.50 times those of then"
    )


def test_a_host_s_own_benchmark_is_its_price() -> None:
    priced, beside = reported(kept())
    assert priced["strict"] == (
        f"strict costs, by this host's own benchmark of {TODAY}: 50 to 50 commits/s on /srv/pgdata,"
        " 0.25 to 0.50 times those of then"
    )
    assert "100 to 200 commits/s on /srv/pgdata, 1.00 to 1.00 times" in priced["flush"]
    assert "published by FairCom" in priced["ups"], (
        "a benchmark prices no profile whose guard takes barriers away"
    )
    assert beside == ""


def test_without_one_the_published_table_is() -> None:
    priced, beside = reported("")
    source = "(published by FairCom for one rotating disk; not measured here)"
    assert [priced[name].partition(": ")[2] for name in priced] == [
        f"about 76 commits/s with 1 client, 600 with 80 {source}",
        f"about 79 commits/s with 1 client, 586 with 80 {source}",
        f"about 1,358 commits/s with 1 client, 3,980 with 80 {source}",
    ]
    assert beside.startswith("no benchmark of this host is stored")


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", "virtual"), ("kind", "unknown"), ("rotational", "no"), ("rotational", "unknown")],
)
def test_published_rates_are_for_physical_disks_that_rotate(name: str, value: str) -> None:
    """A virtual disk or an SSD has other rates: one such disk is enough."""
    first, *others = ROTATING["disks"]
    storage = {**ROTATING, "disks": [*others, {**first, name: value}]}
    priced, remark = reported("", storage=storage)
    assert priced == {}
    assert remark == "no benchmark of this host is stored; durable.dbhost.benchmark measures its own disks"
    assert reported("", storage={**ROTATING, "disks": []})[0] == {}
    assert set(reported(kept(), storage=storage)[0]) == {"strict", "flush"}


def later(days: int) -> str:
    """Return the day so many days after the benchmark."""
    return str(date.fromisoformat(TODAY) + timedelta(days))


@pytest.mark.parametrize(
    ("text", "today", "why"),
    [
        (kept(), later(90), ""),
        (kept(), later(91), "91 days ago, and 90 are the most"),
        (kept(), later(-1), ""),
        (kept(), later(-2), "which is to come"),
        (kept(disks={"/srv/pgdata": ["serial:ANOTHER"]}), TODAY, "other disks were below /srv/pgdata then"),
        (kept(disks={"/srv/pgdata": [None]}), TODAY, "other disks were below /srv/pgdata then"),
        (kept(disks={"/srv/gone": []}), TODAY, "other disks were below /srv/gone then"),
        (kept(doubts=["sda: too fast"]), TODAY, "its rates are not plausible"),
        (kept(prices=[]), TODAY, "it has priced no profile"),
        (None, TODAY, "it cannot be read"),
        ("{", TODAY, "it cannot be read"),
        ("[]", TODAY, "it cannot be read"),
        (kept(prices=[{"rates": [{"rate": "x"}]}]), TODAY, "it cannot be read"),
        (kept(prices=[{"rates": [{"rate": 10**400}]}]), TODAY, "it cannot be read"),
        (kept(time=5), TODAY, "it cannot be read"),
    ],
)
def test_one_that_is_old_or_of_other_disks_is_not_used_and_why_is_said(
    text: str | None, today: str, why: str
) -> None:
    priced, beside = reported(text, today)
    assert ("own benchmark" in priced["strict"]) == (why == "")
    assert why in beside
    assert bool(beside) == bool(why)


def test_an_audit_says_what_its_recommendation_costs() -> None:
    found = look(SmallHost(), None, benchmark=kept())["recommendation"]
    assert found["profile"] == "strict"
    assert [why for why in found["why"] if why.startswith("strict costs, by this host's own benchmark")]
    assert [why for why in found["why"] if why.startswith("flush costs")] == [
        why for why in found["why"] if "flush" in found["also"] and why.startswith("flush costs")
    ]
    assert inputs().benchmark == ""
