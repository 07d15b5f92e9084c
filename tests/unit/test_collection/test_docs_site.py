# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site has each page once, and no link of it leads nowhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

FORGE = "https://github.com/durable-db/dbhost/blob/main"


@pytest.fixture
def docs_site(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "tools"))
    import docs_site

    yield docs_site
    for name in ("docs_site", "venvs"):
        sys.modules.pop(name, None)


def test_each_page_stands_in_one_section(docs_site: Any) -> None:
    listed = [page for names in docs_site.SECTIONS.values() for page in names]
    assert sorted(listed) == [page for page in docs_site.pages() if page.startswith("docs/")]


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("recover.md#release", "recover.md#release"),
        ("../roles/watch/README.md", "../roles/watch/README.md"),
        ("images/report.png", "images/report.png"),
        ("../lab/README.md#traps", f"{FORGE}/lab/README.md#traps"),
        ("../examples", f"{FORGE}/examples"),
        ("https://example.com/a.md", "https://example.com/a.md"),
        ("#here", "#here"),
    ],
)
def test_links_to_what_is_no_page_lead_to_the_forge(docs_site: Any, link: str, leads: str) -> None:
    known = set(docs_site.pages())
    assert docs_site.linked(f"see [it]({link}).", "docs/start", known) == f"see [it]({leads})."


def test_pages_for_users_of_the_tarball_need_no_checkout(docs_site: Any) -> None:
    """`make` and its targets are in the checkout; so are the files of playbooks with a dash in their names."""
    root = Path(__file__).resolve().parents[3]
    for section in ("Start", "How to", "Look up"):
        for page in docs_site.SECTIONS[section]:
            text = (root / f"{page}.md").read_text(encoding="utf-8")
            code = "\n".join(re.findall(r"^```.*?^```", text, re.M | re.S))
            found = re.findall(r"^make \w+", code, re.M) + re.findall(
                r"`make \w+|playbooks/\w+-[\w-]+\.yml", text
            )
            assert found == [], page


def test_a_bracket_in_code_is_no_link(docs_site: Any) -> None:
    text = "`](` is written as `] (`.\n\nSee [the order](order.md)."
    assert docs_site.linked(text, "docs/start", set(docs_site.pages())) == text


def test_the_sources_have_all_pages_and_the_way_to_them(docs_site: Any, tmp_path: Path) -> None:
    docs_site.assemble(tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    for page in docs_site.pages():
        assert (tmp_path / f"{page}.md").exists()
        assert re.search(rf"^{page}$", index, re.M)
