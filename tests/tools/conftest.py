# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless browser, and pages of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from ansible_collections.durable.dbhost.plugins.plugin_utils.html import render
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import reports
from lab import doctor

#: Opens the page of so many hosts, or of these reports, in a window as playwright describes one.
Opened = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Debian's chromium, or the one that $DURABLE_BROWSER names."""
    absent = {"chromium": "chromium"}
    found = os.environ.get("DURABLE_BROWSER") or shutil.which("chromium")
    if not found and doctor.install(absent):
        found = shutil.which("chromium")
    if not found:
        pytest.fail(doctor.advice(absent))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open pages. No page may ask a network for anything, and each ends without a complaint of its own script."""
    said: list[str] = []
    contexts = []

    def open_page(hosts: int | list[dict[str, Any]], **window: object) -> Page:
        found = reports(hosts) if isinstance(hosts, int) else hosts
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(render(found))
        # what the tests themselves put into a page is not bound by its policy
        context = browser.new_context(bypass_csp=True, **window)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda request: request.url.startswith("file:") or said.append(f"asks {request.url}")
        )
        page.goto(f"file://{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not said
