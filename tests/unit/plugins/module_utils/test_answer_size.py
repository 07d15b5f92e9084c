# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What facts take as JSON is never more than it is reckoned as, whatever names are in them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.bounds import size
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable


@pytest.mark.parametrize(
    "letter",
    ['"', "\\", "x", "\x1b", "\n", "\u202e", "\U000e0100", "\U0001f600", "\udc80", "\u00e9"],
    ids=ascii,
)
def test_no_letter_takes_more_than_its_share(letter: str) -> None:
    """A directory of a million quotes would else answer twice what is let through."""
    facts = {"names": [letter * 1000], letter * 100: None}
    for answer in (facts, printable(facts)):
        assert len(json.dumps(answer)) <= size(facts)


def test_plain_facts_are_not_overrated() -> None:
    facts = {"mounts": [{"target": "/var/lib/mysql", "options": ["rw", "relatime"]} for _row in range(1000)]}
    assert size(facts) < 1.2 * len(json.dumps(facts))
