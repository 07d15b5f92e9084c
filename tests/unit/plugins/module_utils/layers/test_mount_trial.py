# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line is tried by the running kernel before a boot depends on it."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.layers.mount_trial import DIRECTORY, try_options

from ..small_host import SmallHost

IMAGE, POINT = f"{DIRECTORY}/image", f"{DIRECTORY}/mnt"
UNSHARE = ("change", "unshare", "--mount", "--propagation", "private", "mount", "-t")
MKDIR, RM = ("change", "mkdir", "-p", POINT), ("change", "rm", "-rf", DIRECTORY)


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
    try_options(host, fstype, ("noatime", "errors=remount-ro"), journal)
    mount = (*UNSHARE, fstype, "-o", "loop,noatime,errors=remount-ro", IMAGE, POINT)
    assert host.mutations == [MKDIR, ("change", *mkfs), mount, RM]


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
    try_options(host, "ext4", ("noatime", option), True)
    assert host.mutations[2][-3] == "loop,noatime"


def test_what_the_kernel_refuses_is_refused_and_tidied_up() -> None:
    host = SmallHost()
    with pytest.raises(
        ChangeFailed,
        match=r"^options noatime,bogus for ext4: .*fstab and mount units stay as they are: mount",
    ):
        try_options(host, "ext4", ("noatime", "bogus"), True)
    assert host.mutations[-1] == RM


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4])
def test_no_trial_is_no_permission(stop_at: int) -> None:
    host = SmallHost()
    host.stop_at, host.stop = stop_at, ChangeFailed
    with pytest.raises(ChangeFailed):
        try_options(host, "ext4", ("noatime",), True)


def test_an_image_of_btrfs_is_a_file_with_a_hole() -> None:
    host = SmallHost()
    try_options(host, "btrfs", ("noatime", "barrier"), True)
    assert host.mutations[1:3] == [
        ("change", "truncate", "--size=256M", IMAGE),
        ("change", "mkfs.btrfs", "-q", "-f", IMAGE),
    ]
