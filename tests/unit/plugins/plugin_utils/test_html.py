# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for browsers: one file that needs nothing beside it, and in which every host's words are words."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS
from ansible_collections.durable.dbhost.plugins.plugin_utils.html import _FINDINGS as FINDINGS
from ansible_collections.durable.dbhost.plugins.plugin_utils.html import TONES, _host, render
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import captured, reports

ROOT = Path(__file__).resolve().parents[4]

pytestmark = pytest.mark.every_core_alike

#: Elements that HTML does not close.
VOID = ("meta", "input", "br")


class Page(HTMLParser):
    """The elements of a page, each closed in its turn, and the text of each host."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Expect it to be the last one that was opened."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


@pytest.fixture(name="fleet", scope="module")
def a_fleet() -> list[dict[str, Any]]:
    """Return the reports of three hundred hosts."""
    return reports(300)


def test_three_hundred_hosts_are_one_file_of_a_bearable_size(fleet: list[dict[str, Any]]) -> None:
    text = render(fleet)
    assert len(text.encode()) < 5_000_000
    page = Page(text)
    hosts = [about for tag, about in page.elements if tag == "details"]
    assert len(hosts) == 300
    ranks = [VERDICTS.index(str(about["data-verdict"])) for about in hosts]
    assert ranks == sorted(ranks)


def test_it_asks_nobody_for_anything(fleet: list[dict[str, Any]]) -> None:
    text = render(fleet[:6])
    page = Page(text)
    assert not [
        tag for tag, _about in page.elements if tag in ("link", "img", "iframe", "object", "base", "form")
    ]
    assert not [about for _tag, about in page.elements if {"src", "srcset", "action", "onclick"} & set(about)]
    links = {str(about["href"]) for _tag, about in page.elements if "href" in about}
    # A link asks for nothing until somebody follows it.
    explained = {link for link in links if link.startswith(f"{FINDINGS}#")}
    assert explained
    assert links - explained == {"#hosts"}
    assert not re.search(r"https?:|@import|url\(", text.replace(f'href="{FINDINGS}#', ""))
    (policy,) = (about["content"] for _tag, about in page.elements if "http-equiv" in about)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def test_each_reason_leads_to_the_section_of_its_finding(fleet: list[dict[str, Any]]) -> None:
    """As the forge makes anchors of headings: small letters, digits, - and _ alone."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    anchors = {re.sub(r"[^\w -]", "", head.lower()) for head in re.findall(r"^#+ (.+)$", page, re.M)}
    found = Page(render(fleet[:6])).elements
    links = {str(about["href"]).rpartition("#") for _tag, about in found if "href" in about}
    assert {anchor for place, _hash, anchor in links if place == FINDINGS} <= anchors


@pytest.mark.parametrize(
    ("target", "verdict", "tone"),
    [
        ("/srv/pgdata", "blocked", "poor"),
        ("sda1", "at_risk", "bad"),
        ("sda", "unverified", "fair"),
        ("postgresql 15/main", "unknown", "poor"),
        ("/srv/other", "at_risk", "good"),
    ],
)
def test_what_is_drawn_has_the_tone_of_the_worst_that_was_found_of_it(
    fleet: list[dict[str, Any]], target: str, verdict: str, tone: str
) -> None:
    (found,) = (each for each in fleet[:6] if each["verdict"] == "attested")
    rows = [{**row, "verdict": "ok"} for row in found["settings"]]
    said = {
        "id": "unknown.stack",
        "verdict": verdict,
        "reason": "x",
        "fix": "",
        "targets": [target],
        "observed": {},
    }
    (lane, *_others) = _host({**found, "settings": rows, "reasons": [said]})["lanes"]
    assert max((box["tone"] for box in lane), key=("", "good", "fair", "warn", "poor", "bad").index) == tone
    (lane, *_others) = _host({**found, "settings": [], "reasons": [said]})["lanes"]
    assert (tone in {box["tone"] for box in lane}) == (target != "/srv/other")


def correct(report: dict[str, Any], *more: str) -> list[dict[str, Any]]:
    """Return the settings of a report as if all were correct, with one of each of `more`."""
    rows = [{**row, "verdict": "ok"} for row in report["settings"]]
    return [*rows, *({**rows[0], "target": target, "class": "safety"} for target in more)]


def boxes(report: dict[str, Any]) -> dict[str, str]:
    """Return {name of a box: its tone}, of a box in several lanes the last one."""
    return {box["name"]: box["tone"] for lane in _host(report)["lanes"] for box in lane}


@pytest.fixture(name="machines", scope="module")
def machines_of_the_lab() -> list[dict[str, Any]]:
    """Return the reports of machines of the lab."""
    return captured()


@pytest.mark.parametrize(
    ("finding", "tone"),
    [
        ("requirement.device_obeys", "fair"),
        ("requirement.no_write_hole.md", "poor"),
        ("risk.partial_parity_log", "bad"),
        ("risk.barrier_off", "bad"),
    ],
)
def test_no_part_that_a_finding_names_is_drawn_as_verified(
    machines: list[dict[str, Any]], finding: str, tone: str
) -> None:
    found = [(report, each) for report in machines for each in report["reasons"] if each["id"] == finding]
    assert found
    for report, each in found:
        names = {disk["id"]: disk["name"] for disk in report["stack"]["disks"]}
        drawn = boxes({**report, "settings": correct(report), "reasons": [each]})
        assert {drawn[names.get(target, target)] for target in each["targets"]} == {tone}
        assert "good" in boxes({**report, "settings": correct(report), "reasons": []}).values()


def test_the_layers_below_a_mount_with_a_write_hole_are_not_drawn_as_verified(
    machines: list[dict[str, Any]],
) -> None:
    (report,) = [
        report
        for report in machines
        if any(each["id"] == "requirement.no_write_hole.md" for each in report["reasons"])
    ]
    (hole,) = [each for each in report["reasons"] if each["id"] == "requirement.no_write_hole.md"]
    (mount,) = [each for each in report["stack"]["mounts"] if each["target"] in hole["targets"]]
    labels = [layer["label"] or layer["name"] for layer in mount["layers"]]
    given = {**report, "settings": correct(report, *labels)}
    for reasons, tone in (([], "good"), ([hole], "")):
        drawn = boxes({**given, "reasons": reasons})
        assert {drawn[label] for label in labels} == {tone}


def test_an_accepted_finding_is_not_drawn_as_verified(machines: list[dict[str, Any]]) -> None:
    report = {**machines[0], "settings": correct(machines[0]), "reasons": []}
    disk = next(each["name"] for each in report["stack"]["disks"])
    assert boxes(report)[disk] == "good"
    accepted = [{"finding": "requirement.device_obeys", "target": disk}]
    assert boxes({**report, "accepted": accepted})[disk] == "fair"


def test_a_mount_that_may_lose_commits_is_not_drawn_as_verified(machines: list[dict[str, Any]]) -> None:
    report = {**machines[0], "settings": correct(machines[0]), "reasons": []}
    target = report["stack"]["mounts"][0]["target"]
    for judged, tone in (("yes", "good"), ("accepted_loss", "")):
        mounts = [{"target": target, "profile": "disposable", "judged": judged, "reason": ""}]
        (lane, *_others) = _host({**report, "mounts": mounts})["lanes"]
        assert {box["tone"] for box in lane if box["kind"] != "power"} >= {tone}
        assert ("good" in {box["tone"] for box in lane}) == bool(tone)


def test_an_engine_has_the_tone_of_its_own_settings_roles_and_databases(
    fleet: list[dict[str, Any]],
) -> None:
    (report,) = (each for each in fleet[:6] if each["verdict"] == "attested")
    engine = {**report["engines"][0], "name": "main"}
    engines = [engine, {**engine, "engine": "mariadb"}, {**engine, "engine": "firebird"}]
    row = {**report["settings"][0], "class": "safety", "verdict": "ok", "finding": "", "target": "main"}
    rows = [{**row, "layer": each["engine"]} for each in engines]

    def drawn(*more: dict[str, Any], reasons: tuple[dict[str, Any], ...] = ()) -> list[str]:
        given = {**report, "engines": engines, "settings": [*rows, *more], "reasons": list(reasons)}
        (lane, *_others) = _host(given)["lanes"]
        return [box["tone"] for box in lane[:3]]

    assert drawn() == ["good", "good", "good"]
    wrong = {**row, "verdict": "drift_running"}
    assert drawn({**wrong, "layer": "mariadb"}) == ["good", "bad", "good"]
    assert drawn({**wrong, "layer": "postgresql", "target": "main role app"}) == ["bad", "good", "good"]
    assert drawn({**wrong, "layer": "firebird", "target": "/srv/a.fdb"}) == ["good", "good", "bad"]
    risk = {
        "id": "risk.engine_setting",
        "verdict": "at_risk",
        "reason": "x",
        "fix": "y",
        "targets": ["mariadb main sync_binlog"],
        "observed": {},
    }
    assert drawn(reasons=(risk,)) == ["good", "bad", "good"]


@pytest.mark.parametrize(
    ("finding", "tone"), [("requirement.ups_rehearsed", "poor"), ("requirement.device_obeys", "")]
)
def test_a_finding_of_the_power_supply_is_drawn_there(
    fleet: list[dict[str, Any]], finding: str, tone: str
) -> None:
    (report,) = (each for each in fleet[:6] if each["verdict"] == "attested")
    each = {
        "id": finding,
        "verdict": "blocked",
        "reason": "x",
        "fix": "y",
        "targets": ["host"],
        "observed": {},
    }
    (lane, *_others) = _host({**report, "reasons": [each]})["lanes"]
    assert [box["tone"] for box in lane if box["kind"] == "power"] == [tone]


def test_a_host_is_drawn_as_the_way_of_its_commits(fleet: list[dict[str, Any]]) -> None:
    (found,) = (each for each in fleet[:6] if each["verdict"] == "at_risk")
    page = Page(render([found]))
    said = " ".join(" ".join(page.text).split())
    lane = said[said.index("postgresql 15/main") :]
    wanted = (
        "15/main 15.8",
        "/srv/pgdata/15/main",
        "ext4",
        "barriers off",
        "sda1",
        "sata disk",
        "cache enabled",
        "power",
    )
    places = [lane.index(each) for each in wanted]
    assert places == sorted(places)
    for each in (
        "barrier on off on",
        "/proc/fs/ext4/sda1/options",
        "mounted without barriers",
        "run harden_db",
    ):
        assert each in said, each
    boxes = [
        about["class"] for tag, about in page.elements if tag == "div" and "box" in str(about.get("class"))
    ]
    assert "box bad" in boxes
    assert "box calm" in boxes


def test_what_changed_since_the_last_report_is_a_table(fleet: list[dict[str, Any]]) -> None:
    row = {
        "layer": "mount_options",
        "target": "/srv",
        "setting": "barrier",
        "was": {"running": "on"},
        "now": None,
    }
    since = {"time": "2026-01-30T12:00:00Z", "verdict": "durable", "settings": [row]}
    said = " ".join(" ".join(Page(render([{**fleet[0], "since": since}])).text).split())
    assert "2026-01-30T12:00:00Z durable blocked /srv barrier: on → -" in said
    assert "Changes since the last report" not in render([fleet[0]])


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "{{ 7 * 7 }}", "\u202ex\x1b[2J"]
)
def test_words_of_a_host_are_never_more_than_words(hostile: str, fleet: list[dict[str, Any]]) -> None:
    (found,) = (each for each in fleet[:6] if each["verdict"] == "at_risk")
    engine = {**found["engines"][0], "name": hostile, "version": hostile}
    changed = {
        **found,
        "host": hostile,
        "why": [f"{hostile}; {hostile}"],
        "profile": hostile,
        "engines": [engine],
    }
    text = render([changed, *fleet[:2]], missing=[hostile], notes=[hostile])
    page = Page(text)
    assert [tag for tag, _about in page.elements].count("script") == 1
    assert not [about for _tag, about in page.elements if "onerror" in about]
    assert not set(text) & {"\u202e", "\x1b"}
    assert "49" not in " ".join(page.text[:60])


def test_no_host_is_a_page_too() -> None:
    shown = " ".join(Page(render([], missing=["db1"])).text)
    assert "Hosts" in shown
    assert "Not checked: db1" in shown


@pytest.mark.parametrize(("only", "did"), [(True, "checked"), (False, "applied")])
def test_the_page_names_what_the_run_did(fleet: list[dict[str, Any]], only: bool, did: str) -> None:
    found = {**fleet[0], "looked_only": only}
    assert f"1 host, {did} {found['time']}, durable.dbhost" in " ".join(Page(render([found])).text)


def test_two_items_with_one_name_have_a_heading_each(fleet: list[dict[str, Any]]) -> None:
    (found,) = (each for each in fleet[:6] if each["verdict"] == "attested")
    row = found["settings"][0]
    layers = ("postgresql", "mariadb", "write_cache", "io_scheduler")
    settings = [{**row, "layer": layer, "target": "main", "setting": f"of_{layer}"} for layer in layers]
    shown = re.sub(r"\s+", " ", " ".join(Page(render([{**found, "settings": settings}])).text))
    places = [
        shown.index(each)
        for each in (
            *("Evidence postgresql main of_postgresql", " mariadb main of_mariadb"),
            *(" main of_write_cache", " of_io_scheduler"),
        )
    ]
    assert places == sorted(places)
    assert "main of_io_scheduler" not in shown


def test_a_note_leads_to_the_section_of_its_finding(fleet: list[dict[str, Any]]) -> None:
    note = {"id": "note.mssql.race", "reason": "a race", "fix": "update 2022", "targets": ["mssql main"]}
    text = render([{**fleet[0], "notes": [note]}])
    assert (
        f'<li>a race; <b>update 2022</b> <a href="{FINDINGS}#notemssqlrace"><code>note.mssql.race</code></a>'
        in text
    )


def test_a_narrow_page_hides_the_columns_that_matter_least(fleet: list[dict[str, Any]]) -> None:
    since = {"time": "2026-01-30T12:00:00Z", "verdict": "durable", "settings": []}
    text = render([{**report, "since": since} for report in fleet[:6]])
    (narrow,) = re.findall(r"@media \(max-width:640px\)\{(.*?)\}\}", text, re.S)
    assert ".less{display:none}" in narrow
    assert text.count(".less{") == 1
    hidden = set(re.findall(r'<th class="less">(.*?)</th>', text))
    assert {"Then", "Evidence"} <= hidden <= {"Then", "Evidence", "A run sets"}
    for table in re.findall(r"<thead>.*?</table>", text, re.S):
        head, *rows = (
            re.findall(r"<t[hd]([ >][^>]*)", row) for row in re.findall(r"<tr.*?</tr>", table, re.S)
        )
        # A row of one cell, a heading or a reason, spans all columns.
        assert rows
        for row in rows:
            assert len(row) == 1 or ["less" in cell for cell in row] == ["less" in cell for cell in head]


def test_each_verdict_that_fails_by_default_is_loud() -> None:
    assert {verdict for verdict in VERDICTS if TONES.get(verdict) in ("bad", "poor", "warn")} == set(
        VERDICTS[:6]
    )


def test_the_basis_of_a_green_verdict_is_shown_with_its_author_and_expiry(
    fleet: list[dict[str, Any]],
) -> None:
    (found,) = (each for each in fleet[:6] if each["verdict"] == "attested")
    need = {
        **dict.fromkeys(("evidence", "target"), "vdb"),
        "name": "device_obeys",
        "state": "attested",
        "evidence": "host_honours_flush, attested by A. Person until 2026-06-30: read the label",
        "expires": "2026-06-30",
    }
    shown = render([{**found, "requirements": [need]}])
    assert (
        "<li>rests on vdb: host_honours_flush, attested by A. Person until 2026-06-30: read the label</li>"
        in shown
    )
    assert "rests on" not in render([{**found, "requirements": [{**need, "state": "met"}]}])
