# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that only this collection calls are documented as private, and no page or example calls them."""

from __future__ import annotations

import re
from pathlib import Path

from .test_action_groups import MODULES

ROOT = Path(__file__).resolve().parents[3]
PRIVATE = {
    "apply",
    "assess",
    "conclude",
    "confirm",
    "keep_report",
    "managed_mounts",
    "play_inputs",
    "plug_witness",
    "plug_writer",
    "report",
    "shutdown_rehearsal",
}


def test_private_modules_state_it_first() -> None:
    stated = {name for name, found in MODULES.items() if found["description"][0].startswith("Private. ")}
    assert stated == PRIVATE
    for name in PRIVATE:
        assert "can change in each release" in MODULES[name]["description"][0], name


def test_this_collection_calls_each() -> None:
    sources = [*(ROOT / "roles").rglob("*.yml"), *(ROOT / "playbooks").glob("*.yml")]
    sources += [*(ROOT / "playbooks/tasks").glob("*.yml"), *(ROOT / "plugins/action").glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert {name for name in PRIVATE if not re.search(rf"durable\.dbhost\.{name}\b", text)} == set()


def test_no_page_or_example_calls_one() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "roles").rglob("README.md")]
    examples = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    for path in (*pages, *examples):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in PRIVATE if f"durable.dbhost.{name}:" in text], path
