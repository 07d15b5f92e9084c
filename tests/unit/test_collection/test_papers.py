# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/evidence/papers.md: each item of the papers has a test, command, page or substitute that exists, and its numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import costs

from .test_docs import anchors

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/evidence/papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
TESTS = ROOT / "tests/unit/plugins/module_utils"
#: Number, item, kind, reference.
ITEMS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in TEXT.splitlines()
    if re.match(r"\| [FSBN]\d+ \|", line)
]
#: Settings of the proof -> how the page names them; the numbers of clients there.
SETTINGS = {
    "strict/virtio/ext4": "cache off, `barrier=1`",
    "strict/virtio/ext4/barrier0": "cache off, `barrier=0`",
    "flush/virtio/ext4": "cache on, `barrier=1`",
    "flush/virtio/ext4/barrier0": "cache on, `barrier=0`",
}
CLIENTS = (1, 10, 20, 40, 80)


def options_of(playbook: str) -> list[str]:
    """Return the keys that a playbook takes in its variable."""
    (play,) = yaml.safe_load((ROOT / f"playbooks/{playbook}.yml").read_text(encoding="utf-8"))
    known: list[str] = play["vars"]["durable_known"]
    return known


def test_no_item_is_missing_and_each_has_its_number() -> None:
    assert {letter: sum(row[0][0] == letter for row in ITEMS) for letter in "FSBN"} == {
        "F": 48,
        "S": 60,
        "B": 26,
        "N": 21,
    }
    assert f"have {len(ITEMS)} items" in TEXT
    assert len({row[0] for row in ITEMS}) == len(ITEMS)
    assert f"the {len(ITEMS)} items" in (ROOT / "docs/papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ITEMS, ids=lambda row: row[0])
def test_the_reference_of_an_item_exists(row: tuple[str, ...]) -> None:
    _number, _item, kind, reference = row
    link = re.match(r"\[[^\]]+\]\(([^)#]*)(?:#([^)]+))?\)", reference)
    named = re.match(r"`([^`]+)`", reference)
    if kind == "test":
        assert named
        file, _colons, name = named[1].partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")
    elif link:
        path = (PAGE.parent / link[1]).resolve() if link[1] else PAGE
        assert path.exists()
        assert not link[2] or link[2] in anchors(path)
        if kind == "page":
            assert path.suffix == ".md"
    else:
        assert named
        playbook, *options = named[1].split()
        assert set(options) <= set(options_of(playbook))
    assert kind in ("test", "command", "page", "substitute")
    if kind == "substitute":
        assert ": " in reference, "a substitute states why"


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_published_and_the_reproduced_rates_are_those_of_the_proof(setting: str) -> None:
    found = json.loads((ROOT / "docs/evidence/price.json").read_text(encoding="utf-8"))[setting]["rows"]
    here = {
        row["clients"]: row["derived"] for row in found if (row["pattern"], row["delay"]) == ("osync", 0.001)
    }
    (line,) = (line for line in TEXT.splitlines() if line.startswith(f"| FairCom, {SETTINGS[setting]}"))
    _name, published, shown, _command, share, _reason = line.strip("| ").split(" | ")
    rates = list(map(int, published.split(", ")))
    assert [int(rate) for rate in shown.split(", ")] == [round(here[clients]) for clients in CLIENTS]
    shares = [here[clients] / rate for clients, rate in zip(CLIENTS, rates)]
    assert share == f"{min(shares):.2f} to {max(shares):.2f}"


@pytest.mark.parametrize(("cache", "barrier"), list(costs.PUBLISHED))
def test_the_published_rates_are_those_of_an_audit(cache: str, barrier: str) -> None:
    first, last = costs.PUBLISHED[cache, barrier]
    name = f"cache {'off' if cache == 'disabled' else 'on'}, `barrier={'1' if barrier == 'on' else '0'}`"
    (line,) = (line for line in TEXT.splitlines() if line.startswith(f"| FairCom, {name}"))
    rates = line.split(" | ")[1].split(", ")
    assert (int(rates[0]), int(rates[-1])) == (first, last)
