# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line is tried by the running kernel before a boot depends on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    CommandFailed,
    Host,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import mount_trial
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_trial import (
    DIRECTORY,
    Image,
    try_options,
)

from ..fakes.real_mounts import needs_mounts
from ..fakes.small_host import SmallHost

IMAGE = f"{DIRECTORY}/image"
MKDIR, RM = ("change", "mkdir", "-p", DIRECTORY), ("change", "rm", "-rf", DIRECTORY)


@pytest.mark.parametrize(
    ("fstype", "journal", "mkfs"),
    [
        ("ext4", True, ("mkfs.ext4", "-q", "-F", IMAGE, "16M")),
        ("ext4", False, ("mkfs.ext4", "-q", "-F", "-O", "^has_journal", IMAGE, "16M")),
        ("xfs", True, ("mkfs.xfs", "-q", "-f", "-d", f"file,name={IMAGE},size=320m")),
        # There is no journal to leave out.
        ("ext2", False, ("mkfs.ext2", "-q", "-F", IMAGE, "16M")),
        # The kernel mounts no image with ext4's own features as ext3.
        ("ext3", True, ("mkfs.ext3", "-q", "-F", IMAGE, "16M")),
    ],
)
def test_exact_commands(fstype: str, journal: bool, mkfs: tuple[str, ...]) -> None:
    host = SmallHost()
    try_options(host, Image(fstype, journal), ("noatime", "errors=remount-ro"))
    trial = ("trial", IMAGE, fstype, (("noatime", "errors=remount-ro"),))
    assert host.mutations == [MKDIR, ("change", *mkfs), trial, RM]


@pytest.mark.parametrize(
    "option",
    [
        "logdev=/dev/x",
        "rtdev=/dev/x",
        "journal_dev=0x801",
        "journal_path=/dev/x",
        "device=/dev/x",
        "subvol=@",
    ],
)
def test_devices_that_the_image_lacks_are_left_out(option: str) -> None:
    host = SmallHost()
    try_options(host, Image("ext4"), ("noatime", option))
    assert host.mutations[2][-1] == (("noatime",),)


def test_an_image_that_cannot_be_made_is_no_refusal_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    host = SmallHost()

    def full(argv: list[str]) -> None:
        if argv[0] == "mkfs.ext4":
            raise CommandFailed(argv, 1, "mkfs.ext4: No space left on device")

    monkeypatch.setattr(host, "on_change", full)
    with pytest.raises(
        ChangeFailed, match=r"^no test image could be made, so fstab.* stay as they are: .*free space on"
    ) as error:
        try_options(host, Image("ext4"), ("noatime",))
    assert "take out" not in str(error.value)
    assert host.mutations[-1] == RM


def test_what_the_kernel_refuses_is_refused_and_tidied_up() -> None:
    host = SmallHost()
    with pytest.raises(
        ChangeFailed,
        match=r"^options noatime,bogus for ext4: .* stay as they are; .*: ext4: Unknown parameter 'bogus'",
    ):
        try_options(host, Image("ext4"), ("noatime", "bogus"))
    assert host.mutations[-1] == RM


@pytest.mark.fact(54)
@needs_mounts
@pytest.mark.parametrize(
    ("defaults", "options", "why"),
    [
        ((), ("journal_async_commit",), "can't mount with journal_async_commit in data=ordered mode"),
        (("data=journal",), ("delalloc",), "can't mount with both data=journal and delalloc"),
    ],
)
def test_a_refused_boot_of_the_root_is_told_in_one_line_by_the_kernels_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    defaults: tuple[str, ...],
    options: tuple[str, ...],
    why: str,
) -> None:
    for name, value in (("DIRECTORY", ""), ("_IMAGE", "/image")):
        monkeypatch.setattr(mount_trial, name, f"{tmp_path}/trial{value}")
    with pytest.raises(ChangeFailed) as error:
        try_options(Host(), Image("ext4", defaults=defaults, rootflags=()), options)
    said = str(error.value)
    assert said.endswith(f"remove the option that it refuses: {why}")
    assert "\n" not in said
    # And one that it takes is not refused.
    try_options(Host(), Image("ext4", defaults=defaults, rootflags=()), ("noatime",))


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4])
def test_no_trial_is_no_permission(stop_at: int) -> None:
    host = SmallHost()
    host.stop_at, host.stop = stop_at, ChangeFailed
    with pytest.raises(ChangeFailed):
        try_options(host, Image("ext4"), ("noatime",))


def test_an_image_of_btrfs_is_a_file_with_a_hole() -> None:
    host = SmallHost()
    try_options(host, Image("btrfs"), ("noatime", "barrier"))
    assert host.mutations[1:3] == [
        ("change", "truncate", "--size=256M", IMAGE),
        ("change", "mkfs.btrfs", "-q", "-f", IMAGE),
    ]


def test_an_image_has_the_defaults_of_the_superblock_that_it_stands_for() -> None:
    """A line that is right for a new file system may be refused by one with other defaults."""
    host = SmallHost()
    image = Image("ext4", True, ("data=journal", "nobarrier", "stripe=8"))
    with pytest.raises(ChangeFailed, match="with data=journal,nobarrier,stripe=8 in its superblock"):
        try_options(host, image, ("noatime", "delalloc"))
    assert host.mutations[2:5] == [
        ("change", "tune2fs", "-o", "journal_data", IMAGE),
        ("change", "tune2fs", "-o", "nobarrier", IMAGE),
        ("trial", IMAGE, "ext4", (("stripe=8", "noatime", "delalloc"),)),
    ]


class TestRoot:
    """Its boot is replayed: read-only with the options of the initramfs, then writable with fstab's."""

    ROOT = Image("ext4", True, ("data=ordered",), ("commit=9", "journal_path=/dev/x"))

    def test_exact_commands(self) -> None:
        host = SmallHost()
        try_options(host, self.ROOT, ("noatime", "errors=remount-ro"))
        boot = (("ro", "commit=9"), ("rw", "noatime", "errors=remount-ro"))
        assert host.mutations[3] == ("trial", IMAGE, "ext4", boot)
        assert host.mutations[-1] == RM

    @pytest.mark.fact(54)
    @pytest.mark.parametrize(
        ("mode", "option"),
        [("ordered", "journal_async_commit"), ("journal", "delalloc"), ("journal", "dioread_nolock")],
    )
    def test_a_remount_that_the_kernel_refuses_is_a_boot_that_fails(self, mode: str, option: str) -> None:
        """Else the root stays read-only."""
        image = self.ROOT._replace(defaults=(f"data={mode}",))
        with pytest.raises(ChangeFailed, match=f"options {option} for ext4 with data={mode}"):
            try_options(SmallHost(), image, (option,))
