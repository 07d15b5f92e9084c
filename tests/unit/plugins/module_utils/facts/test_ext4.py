# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ext4 says of itself, as captured, and what the next mount makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts.ext4 import (
    Superblock,
    parse_running,
    parse_superblock,
    persisted,
    refused_at_boot,
    refused_with,
)

from ..captured import captured


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ext4_options_ordered.txt", {"barrier": "on", "data_mode": "ordered"}),
        ("ext4_options_no_journal_nobarrier.txt", {"barrier": "off"}),
    ],
)
def test_captured_options(name: str, expected: dict[str, str]) -> None:
    assert parse_running(captured(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dumpe2fs_plain.txt", Superblock((), "internal")),
        (
            "dumpe2fs_default_options.txt",
            Superblock(("data=writeback", "nobarrier", "barrier=1"), "internal"),
        ),
        ("dumpe2fs_no_journal.txt", Superblock((), "none")),
        ("dumpe2fs_external_journal.txt", Superblock((), "external")),
    ],
)
def test_captured_superblocks(name: str, expected: Superblock) -> None:
    found = parse_superblock(captured(name))
    assert found._replace(uuid="") == expected
    assert f"Filesystem UUID:          {found.uuid}\n" in captured(name)


@pytest.mark.parametrize(
    "text",
    [
        captured("dumpe2fs_no_file_system.txt"),
        "",
        "garbage",
        "Filesystem features: has_journal\nJournal device: x",
    ],
)
def test_what_names_no_features_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_superblock(text)


@pytest.mark.parametrize(
    ("superblock", "options", "expected"),
    [
        (Superblock((), "internal"), ("defaults",), {"barrier": "on", "data_mode": "ordered"}),
        (Superblock((), "none"), ("defaults",), {"barrier": "on"}),
        (Superblock(("nobarrier",), "internal"), ("defaults",), {"barrier": "off", "data_mode": "ordered"}),
        (
            Superblock(("nobarrier", "data=journal"), "internal"),
            ("barrier=1", "data=writeback"),
            {"barrier": "on", "data_mode": "writeback"},
        ),
    ],
)
def test_mount_options_win_over_superblock_and_kernel(
    superblock: Superblock, options: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert persisted(superblock, options) == expected


@pytest.mark.parametrize(
    ("mode", "refused"),
    [
        ("ordered", ["journal_async_commit"]),
        ("journal", ["delalloc", "dioread_nolock"]),
        ("writeback", []),
    ],
)
def test_what_the_kernel_refuses_together_with_a_data_mode(mode: str, refused: list[str]) -> None:
    options = ["rw", "delalloc", "journal_async_commit", "dioread_nolock", "nodelalloc"]
    assert sorted(refused_with(mode, options)) == refused


@pytest.mark.fact(7)
@pytest.mark.parametrize(
    ("mode", "first", "line", "release", "refused"),
    [
        ("ordered", "", "noatime,nodelalloc", "6.18.4", True),
        ("writeback", "", "nodelalloc", "6.13.0", True),
        ("none", "", "nodelalloc", "6.13.0", True),
        # With data=journal nothing is delayed.
        ("journal", "", "nodelalloc", "6.18.4", False),
        # It is off from the beginning.
        ("ordered", "nodelalloc", "nodelalloc", "6.18.4", False),
        ("ordered", "nodelalloc,delalloc", "nodelalloc", "6.18.4", True),
        ("ordered", "", "nodelalloc,delalloc", "6.18.4", False),
        ("ordered", "nodelalloc", "", "6.18.4", False),
        ("ordered", "", "nodelalloc", "6.12.9", False),
    ],
)
def test_what_the_remount_of_the_root_is_refused_for(
    mode: str, first: str, line: str, release: str, refused: bool
) -> None:
    """As measured on 6.18; since 6.13: "ext4: prevent delalloc to nodelalloc on remount"."""
    found = refused_at_boot(mode, first.split(","), line.split(","), release)
    assert found == (["nodelalloc"] if refused else [])
