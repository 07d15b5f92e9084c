# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for browsers in a real one: its filters, keyboards, telephones, paper, and who cannot see it."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import captured

from .conftest import Opened

DESK = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
#: All hosts of the fleet are of so many kinds.
KINDS = 6
#: What axe calls grave.
GRAVE = ("serious", "critical")


def grave(page: Any) -> list[str]:
    """Return what axe finds, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


def test_three_hundred_hosts_are_on_one_page(opened: Opened) -> None:
    assert opened(300, **DESK).locator("details.host").count() == 300


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(opened: Opened, window: dict[str, Any], scheme: str) -> None:
    """In the page as it opens, and with each kind of host open."""
    page = opened(KINDS, **window, color_scheme=scheme)
    assert grave(page) == []
    page.locator("#all").click()
    assert page.locator("details.host[open]").count() == KINDS
    assert grave(page) == []


def test_axe_finds_what_is_grave(opened: Opened) -> None:
    """The control: text that is hardly seen, and a field without a name."""
    page = opened(KINDS, **DESK)
    page.evaluate(
        "document.querySelector('h1').style.color = '#eee'; document.getElementById('search').ariaLabel = '';"
        "document.getElementById('search').placeholder = ''"
    )
    assert {found.split(":")[0] for found in grave(page)} == {"color-contrast", "label"}


def test_filters_by_verdict_and_by_words(opened: Opened) -> None:
    page = opened(60, **DESK)
    shown = page.locator("details.host:visible")
    page.locator("button[data-verdict=at_risk]").click()
    assert shown.count() == 10
    assert page.locator("#count").inner_text() == "10 of 60 hosts"
    name = shown.last.locator("summary b").inner_text()
    page.locator("#search").fill(name)
    assert shown.locator("summary b").all_inner_texts() == [name]
    page.locator("#search").fill("")
    page.locator("button[data-verdict=at_risk]").click()
    assert shown.count() == 60


def test_a_keyboard_is_enough(opened: Opened) -> None:
    """To the hosts, to a filter, into the search, and to open a host; and it is seen where one is."""
    page = opened(KINDS, **DESK)
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.dataset.verdict")
    assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate(f"{focused}.ariaPressed") == "true"
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    assert page.evaluate(f"{focused}.id") == "search"
    assert page.locator("#search").input_value() == ""
    while page.evaluate(f"{focused}.tagName") != "SUMMARY":
        page.keyboard.press("Tab")
        assert page.evaluate(f"{focused} !== document.body"), "no host is reached"
    page.keyboard.press("Space")
    assert page.locator("details.host[open]").count() == 1


def test_a_telephone_scrolls_one_way(opened: Opened) -> None:
    hosts = captured()
    hosts[0] = {**hosts[0], "error": f"cannot read /{'x' * 80}"}
    page = opened(hosts, **PHONE)
    page.locator("#all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    page = opened(KINDS, **PHONE)
    page.locator("#all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    # what a finger has to hit
    for button in page.locator("button").all():
        box = button.bounding_box()
        assert box and box["height"] >= 36, button.inner_text()


def test_paper_has_what_is_closed_on_the_screen_and_no_buttons(opened: Opened) -> None:
    page = opened(KINDS, **DESK)
    assert not page.locator("details.host h3").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator("details.host h3").first.is_visible()
    assert page.locator(".tools button:visible").count() == 0
    assert page.pdf().startswith(b"%PDF")


@functools.cache
def machines() -> list[dict[str, Any]]:
    """Return a host for each: a disk that is not verified, a write hole, a partial parity log, and no other finding."""
    hosts, found = [], captured()
    for finding in ("requirement.device_obeys", "requirement.no_write_hole.md", "risk.partial_parity_log"):
        report, each = next(
            (report, each) for report in found for each in report["reasons"] if each["id"] == finding
        )
        rows = [{**row, "verdict": "ok"} for row in report["settings"]]
        hosts.append({**report, "host": finding, "settings": rows, "reasons": [each]})
    return hosts


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_part_that_a_finding_names_is_green(opened: Opened, window: dict[str, Any], scheme: str) -> None:
    hosts = machines()
    page = opened(hosts, **window, color_scheme=scheme)
    page.locator("#all").click()
    green = page.locator(".box.good").first.evaluate("box => getComputedStyle(box).borderTopColor")
    for host in hosts:
        (each,) = host["reasons"]
        for target in each["targets"]:
            drawn = page.locator("details.host", has_text=each["id"]).locator(
                ".box", has=page.get_by_text(target, exact=True)
            )
            colors = drawn.evaluate_all("boxes => boxes.map((box) => getComputedStyle(box).borderTopColor)")
            assert colors, target
            assert green not in colors
