# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alerts that are shipped go by the numbers that a host tells; tests/tools/test_monitoring.py lets them fire."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.watch import metrics

ROOT = Path(__file__).resolve().parents[3]
PLACE = ROOT / "examples/prometheus"
RULES = PLACE / "durable_dbhost.rules.yml"


def test_each_alert_goes_by_numbers_that_there_are_and_is_tested() -> None:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    tests = (PLACE / "durable_dbhost.test.yml").read_text(encoding="utf-8")
    for rule in group["rules"]:
        named = re.findall(r"durable_dbhost_(\w+)", rule["expr"])
        assert named and set(named) <= set(metrics.HELP)
        assert f"alertname: {rule['alert']}\n" in tests
        # One missing scrape, or one failed check, is no alert.
        assert re.fullmatch(r"[1-9]\d*[mhd]", rule["for"]), rule["alert"]
    assert "absent(durable_dbhost_info)" in [rule["expr"] for rule in group["rules"]]


def test_the_page_has_each_number() -> None:
    text = (ROOT / "docs/watch.md").read_text(encoding="utf-8")
    part = text[text.index("## Metrics") :].partition("\n## ")[2]
    rows = text[text.index("## Metrics") : len(text) - len(part)]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.M) == list(metrics.HELP)
