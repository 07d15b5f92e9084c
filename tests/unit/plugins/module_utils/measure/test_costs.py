# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile costs on the disks that were measured: which setting stands for it, the table, and the plot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    benchmark,
    costs,
    planned,
    plot,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import (
    AS_IT_IS,
    CACHE_OFF,
    Variant,
)

from ..fakes.runs import shipped
from .test_benchmark import disk, place, row

SHIPPED = shipped()
#: FairCom's published rates: the write cache on, and off; with barriers.
CLIENTS = (1, 10, 20, 40, 80)
PUBLISHED = {AS_IT_IS: (79, 220, 332, 434, 586), CACHE_OFF: (76, 236, 358, 483, 600)}
OFF = Variant(CACHE_OFF, "write_cache", "disabled")


def made(*variants: Variant, **changes: Any) -> planned.Plan:
    """Return a plan of one mount."""
    tried = [Variant(AS_IT_IS), *variants]
    return planned.Plan([place(**changes)], [planned.Way("dsync")], list(CLIENTS), tried, 5, 1, 50000)


def rows(*names: str) -> list[dict[str, Any]]:
    """Return what was measured in these settings."""
    return [row(name, rate, clients) for name in names for clients, rate in zip(CLIENTS, PUBLISHED[name])]


def priced(plan: planned.Plan, *names: str, **known: Any) -> dict[str, dict[str, Any]]:
    """Return the price of each shipped profile, or of others."""
    found = costs.of(plan, rows(*names), known or SHIPPED)
    return {price["profile"]: price for price in found}


def test_each_shipped_profile_has_its_price_or_a_reason() -> None:
    found = priced(made(OFF), AS_IT_IS, CACHE_OFF)
    assert {name: price["variant"] for name, price in found.items()} == {
        "strict": CACHE_OFF,
        "flush": AS_IT_IS,
        "protected": AS_IT_IS,
        "ups": None,
        "disposable": None,
    }
    assert [rate["rate"] for rate in found["strict"]["rates"]] == list(PUBLISHED[CACHE_OFF])
    assert [rate["of_now"] for rate in found["strict"]["rates"]] == [0.962, 1.073, 1.078, 1.113, 1.024]
    assert {rate["of_now"] for rate in found["flush"]["rates"]} == {1.0}
    assert "removes barriers" in found["ups"]["why"] and found["ups"]["rates"] == []
    assert "do not wait for the disk" in found["disposable"]["why"]


@pytest.mark.parametrize(
    ("cache", "barrier", "strict", "flush"),
    [
        ("enabled", "on", "measure with write_caches: [disabled]", None),
        ("disabled", "on", None, "a benchmark switches none on"),
        ("none", "on", None, None),
        ("unknown", "on", "the write cache is unknown here", "the write cache is unknown here"),
        ("enabled", "off", "barriers are off here", "barriers are off here"),
        ("disabled", "off", "barriers are off here", "barriers are off here"),
        ("enabled", "unknown", "barriers are unknown here", "barriers are unknown here"),
    ],
)
def test_what_was_not_measured_has_no_price(
    cache: str, barrier: str, strict: str | None, flush: str | None
) -> None:
    leaves = [disk(cache={"device": cache}), disk(name="sdb", cache={"device": "none"})]
    found = priced(made(leaves=leaves, barrier=barrier), AS_IT_IS)
    for name, why in (("strict", strict), ("flush", flush)):
        assert (found[name]["variant"] is None) == (why is not None), name
        assert (why or "") in (found[name]["why"] or ""), name
        assert bool(found[name]["rates"]) == (why is None), name


def test_a_profile_that_keeps_the_cache_is_what_is_there() -> None:
    own = {**SHIPPED["strict"], "write_cache": "keep"}
    assert priced(made(OFF), AS_IT_IS, CACHE_OFF, own=own)["own"]["variant"] == AS_IT_IS


def test_the_table_has_a_column_for_each_number_of_clients() -> None:
    text = costs.as_lines(costs.of(made(OFF), rows(AS_IT_IS, CACHE_OFF), SHIPPED))
    assert text[0].startswith("/srv: commits/s of each profile")
    assert [line.split() for line in text[2:4]] == [
        "dsync 76 (0.96) 236 (1.07) 358 (1.08) 483 (1.11) 600 (1.02) strict".split(),
        "dsync 79 (1.00) 220 (1.00) 332 (1.00) 434 (1.00) 586 (1.00) flush, protected".split(),
    ]
    assert [line.partition(":")[0] for line in text[4:]] == ["ups", "disposable"]


def test_the_plot_says_what_was_found() -> None:
    result = benchmark.result_of(made(OFF), rows(AS_IT_IS, CACHE_OFF), {}, SHIPPED)
    picture = ET.fromstring(result["svg"])
    said = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert said[0] == "strict: 0.96 to 1.11 times the commits of now (flush, protected)"
    assert {f"{CACHE_OFF}: strict", f"{AS_IT_IS}: flush, protected", "commits/s", "clients"} <= set(said)
    assert said[-1] == "ansible-playbook durable.dbhost.benchmark"
    assert len([one for one in picture.iter() if one.tag.endswith("circle")]) == 10
    alone = costs.headline(costs.of(made(), rows(AS_IT_IS), SHIPPED))
    assert alone == "flush, protected: 79 to 586 commits/s"


def test_a_rate_ten_times_as_high_is_a_decade_up_and_ten_times_the_clients_as_far_each_time() -> None:
    frame = plot.Frame([row("a", 10, 1), row("a", 1000, 100)])
    assert frame.decades == [10, 100, 1000]
    assert frame.y(10) - frame.y(100) == frame.y(100) - frame.y(1000) > 0
    assert frame.x(10) - frame.x(1) == frame.x(100) - frame.x(10) > 0


@pytest.mark.parametrize("rate", [0.0, 100.0, 1e9])
def test_one_rate_of_one_number_of_clients_can_be_drawn(rate: float) -> None:
    frame = plot.Frame([{**row("a", 1), "rate": rate}])
    assert 0 <= frame.y(rate) <= 260 and 0 <= frame.x(1) <= 460


def test_the_plot_is_svg_whatever_the_mount_is_called() -> None:
    name = "/srv/<a>&\x01\udce9"
    picture = plot.svg("on " + name, [{**row(AS_IT_IS, 100), "mount": name}], {}, "<&")
    assert "/srv/<a>&" in "".join(ET.fromstring(picture).itertext())
