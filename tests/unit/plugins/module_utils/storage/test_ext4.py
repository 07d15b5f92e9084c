# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ext4 says of itself, as captured, and what the next mount makes of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.ext4 import (
    SHOW,
    Superblock,
    as_bytes,
    parse_running,
    parse_superblock,
    persisted,
    refused_at_boot,
    refused_with,
    shown,
)

from ..fakes.captured import captured

SBIN = "/usr/sbin:/sbin:/usr/bin:/bin"
UUID_OF_IMAGE = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"


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
        ("plain", Superblock((), "internal")),
        ("default_options", Superblock(("data=writeback", "nobarrier", "barrier=1"), "internal")),
        ("no_journal", Superblock((), "none")),
        ("external_journal", Superblock((), "external")),
        # dumpe2fs prints its last mount point, which says "Mount options: barrier=1" on a line of its own.
        ("forged", Superblock(("nobarrier",), "internal")),
    ],
)
@pytest.mark.fact(65)
def test_captured_superblocks(name: str, expected: Superblock) -> None:
    found = parse_superblock(captured(f"superblock_{name}.txt"))
    assert found._replace(uuid="") == expected
    assert found.dir_index
    assert str(UUID(found.uuid)) == found.uuid


@pytest.mark.parametrize("number", range(1, 4))
def test_each_data_mode_of_the_superblock(number: int) -> None:
    raw = bytearray(as_bytes(captured("superblock_plain.txt")))
    raw[0x100] = number << 5
    modes = ("data=journal", "data=ordered", "data=writeback")
    assert parse_superblock(shown(bytes(raw))).options == (modes[number - 1],)


def test_mount_options_of_the_superblock_end_at_a_nul() -> None:
    raw = bytearray(as_bytes(captured("superblock_plain.txt")))
    raw[0x200:0x240] = b"nobarrier,,noatime\0barrier=1".ljust(64, b"\0")
    assert parse_superblock(shown(bytes(raw))).options == ("nobarrier", "noatime")


def test_a_file_system_without_a_uuid_has_none() -> None:
    raw = bytearray(as_bytes(captured("superblock_plain.txt")))
    raw[0x68:0x78] = bytes(16)
    assert parse_superblock(shown(bytes(raw))).uuid == ""


@pytest.mark.parametrize("name", ["plain", "forged"])
def test_bytes_are_shown_as_od_shows_them(name: str) -> None:
    text = captured(f"superblock_{name}.txt")
    assert shown(as_bytes(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        shown(bytes(1024)),
        captured("superblock_plain.txt")[:-48],
        captured("superblock_plain.txt") * 2,
    ],
)
def test_what_is_no_superblock_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_superblock(text)


@pytest.mark.fact(65)
@pytest.mark.skipif(not shutil.which("mkfs.ext4", path=SBIN), reason="no e2fsprogs here")
def test_what_mkfs_and_tune2fs_write_is_read_and_no_text_in_it(tmp_path: Path) -> None:
    """Whoever names a file system, or the directory that it is mounted on, says nothing of its options."""
    image = tmp_path / "image"
    image.write_bytes(bytes(16 << 20))
    options = ["-o", "nobarrier,journal_data_ordered", "-E", "mount_opts=noatime"]
    forged = "/srv\nMount options: barrier=1\nDefault mount options: acl"
    for argv in (
        ["mkfs.ext4", "-q", "-F", "-U", UUID_OF_IMAGE, "-L", "a\nMount options", image],
        ["tune2fs", *options, "-M", forged, image],
    ):
        subprocess.run(argv, env={"PATH": SBIN}, check=True, capture_output=True)
    said = subprocess.run(
        [*SHOW, image], env={"PATH": SBIN}, check=True, capture_output=True, text=True
    ).stdout
    wanted = ("data=ordered", "nobarrier", "noatime")
    assert parse_superblock(said) == Superblock(wanted, "internal", UUID_OF_IMAGE)


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
        ("journal", ["dax", "dax=always", "delalloc", "dioread_nolock"]),
        ("writeback", []),
    ],
)
def test_what_the_kernel_refuses_together_with_a_data_mode(mode: str, refused: list[str]) -> None:
    options = ["rw", "delalloc", "journal_async_commit", "dioread_nolock", "nodelalloc"]
    options += ["dax", "dax=always", "dax=inode", "dax=never"]
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


@pytest.mark.parametrize("mode", ["orderd", "none", "unset"])
def test_a_value_of_data_in_the_superblock_that_no_kernel_takes_is_unknown(mode: str) -> None:
    assert persisted(Superblock((f"data={mode}",), "internal"), ())["data_mode"] == "unknown"
    assert persisted(Superblock((f"data={mode}",), "internal"), ("data=journal",))["data_mode"] == "journal"


@pytest.mark.fact(65)
def test_a_superblock_without_dir_index() -> None:
    raw = bytearray(as_bytes(captured("superblock_plain.txt")))
    # tune2fs -O ^dir_index clears this bit of s_feature_compat.
    raw[0x5C] &= ~0x20
    assert not parse_superblock(shown(bytes(raw))).dir_index
