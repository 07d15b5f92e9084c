# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured hosts give the facts that they gave when they were captured.

`python3 tools/capture_lab.py MACHINE NAME` makes a capture of a machine of the lab, or makes it again
after the facts have learned to ask more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import replay
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import dumps, loads
from ansible_collections.durable.dbhost.plugins.module_utils.capture.redaction import WITHHELD

from .fakes.captured import COLLECTION

DIRECTORY = COLLECTION / "tests/fixtures/captures"
CAPTURES = sorted(path for path in DIRECTORY.glob("*.json") if not path.name.endswith(".facts.json"))
#: What each reading has again.
MOMENT = ("time", "boot_id")


def facts_of(capture: Path) -> dict[str, Any]:
    """Return the facts as they were read, from the file beside a capture."""
    found = json.loads(capture.with_name(f"{capture.stem}.facts.json").read_text(encoding="ascii"))
    assert isinstance(found, dict)
    return found


def test_each_layout_of_the_lab_is_captured() -> None:
    layouts = {path.stem for path in (COLLECTION / "lab/layouts").glob("*.yml")}
    assert layouts <= {path.stem for path in CAPTURES}, "make them with tools/capture_lab.py"
    assert {path.name for path in DIRECTORY.glob("*.facts.json")} == {
        f"{path.stem}.facts.json" for path in CAPTURES
    }


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
class TestCapture:
    def test_its_replay_gives_the_facts_that_were_read(self, capture: Path) -> None:
        found = replay(loads(capture.read_text(encoding="ascii")), "2026-01-31T12:00:00Z")
        wanted = facts_of(capture)
        assert {**found, **dict.fromkeys(MOMENT)} == {**wanted, **dict.fromkeys(MOMENT)}

    def test_it_is_whole(self, capture: Path) -> None:
        text = capture.read_text(encoding="ascii")
        recording = loads(text)
        assert (recording["failed"], recording["differs"]) == (None, [])
        assert WITHHELD not in text
        assert dumps(recording) == text
        assert facts_of(capture)["disks"]
