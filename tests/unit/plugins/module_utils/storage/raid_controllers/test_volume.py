# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a controller's words mean at a power cut: one combination is fine with a cache, one without."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import (
    BACKUPS,
    DRIVE_CACHES,
    WRITE_POLICIES,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers.volume import (
    fault,
    is_exposed,
    normal_id,
)

EVERY = list(itertools.product(WRITE_POLICIES, BACKUPS, DRIVE_CACHES))


def raid(policy: str, backup: str, drives: str) -> dict[str, str]:
    return {"volume": "/c0/v0", "write_policy": policy, "backup": backup, "drive_caches": drives}


def test_only_a_protected_cache_or_none_over_disks_without_caches_survives() -> None:
    fine = {words for words in EVERY if fault(raid(*words)) is None}
    through = {("write_through", backup, "disabled") for backup in BACKUPS}
    assert fine == {("write_back", "good", "disabled"), *through}


def test_a_cache_that_is_forced_without_what_keeps_it_loses_commits_now() -> None:
    exposed = {words for words in EVERY if is_exposed(raid(*words))}
    bad = ("charging", "failed", "missing")
    assert exposed == {("always_write_back", backup, drives) for backup in bad for drives in DRIVE_CACHES}
    assert not is_exposed(None)


@pytest.mark.parametrize("words", EVERY, ids="-".join)
def test_what_is_not_told_is_unknown_and_has_a_reason_and_a_way_out(words: tuple[str, str, str]) -> None:
    found = fault(raid(*words))
    if found is None:
        return
    assert found.why
    assert found.remedy
    policy, backup, drives = words
    known_bad = (
        is_exposed(raid(*words))
        or drives == "enabled"
        or (policy == "write_back" and backup in ("charging", "failed", "missing"))
        or (policy == "always_write_back" and backup == "good")
    )
    assert found.volatile == ("volatile" if known_bad else "unknown")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x600605B0000000AA", "600605b0000000aa"),
        ("0x0x600605b0000000aa", "600605b0000000aa"),
        (" 600508B1 ", "600508b1"),
        ("0000000000000000", ""),
        ("1234567", ""),
        ("", ""),
        ("a b c d e f g h", ""),
        ("naa.600605b0", ""),
    ],
)
def test_what_names_a_volume(text: str, expected: str) -> None:
    assert normal_id(text) == expected
