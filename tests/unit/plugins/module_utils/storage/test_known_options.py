# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that no file system of a line's type knows are named, and no others."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.known_options import KNOWN, unknown_to
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_settings import spell

from ..fakes.captured import captured

OLD = "5.10.0-30-amd64"


@pytest.mark.parametrize(
    ("fstype", "options"),
    [
        ("ext4", "defaults"),
        ("ext4", "noatime,barrier=1,data=ordered,errors=remount-ro,commit=5,nofail"),
        ("ext4", "barrier=0x0,commit=017,nobarrier,barrier"),
        ("ext4", "usrjquota=aquota.user,grpjquota=aquota.group,jqfmt=vfsv1,usrquota,usrjquota="),
        ("ext4", "x-systemd.requires=/srv,x-systemd.automount,X-mount.mkdir=0755,comment=mine,_netdev"),
        ("ext4", 'context="system_u:object_r:mysqld_db_t:s0:c0,c1",noatime'),
        ("ext4", "defaults,,noatime,"),
        ("ext4", "journal_async_commit,journal_checksum,delalloc,dioread_nolock,stripe=16,discard"),
        ("ext3", "data=journal,commit=5"),
        ("ext2", "barrier=1,acl"),
        ("xfs", "inode64,logbufs=8,logbsize=256k,noquota,allocsize=64m,nouuid,dax=inode,attr2"),
        ("btrfs", "subvol=@/srv,compress=zstd:3,space_cache=v2,ssd,nobarrier,device=/dev/sdb,discard=async"),
        ("vfat", "umask=0077,shortname=winnt,iocharset=utf8,errors=remount-ro"),
        ("tmpfs", "size=50%,mode=1777,nosuid,huge=advise"),
        ("auto", "noatime,data=journal,logbufs=8"),
        ("ext4,xfs", "data=journal,inode64"),
        # No table: nothing is said.
        ("nfs4", "whatever,hard"),
        ("swap", "sw,pri=5"),
        ("none", "bind,whatever"),
        ("ext4,nfs", "whatever"),
    ],
)
def test_what_a_file_system_knows_is_not_named(fstype: str, options: str) -> None:
    assert unknown_to(fstype, options.split(","), OLD) == []


@pytest.mark.parametrize(
    ("fstype", "option"),
    [
        *(("ext4", option) for option in ("barier=1", "defaultz", "noatmie", "inode64", "ordered", "ext4")),
        *(
            ("ext4", option)
            for option in ("data=journaled", "data", "data=", "errors=remount_ro", "commit=five")
        ),
        *(
            ("ext4", option)
            for option in ("barrier=08", "barrier=yes", "barrier=", "nobarrier=1", "noatime=1")
        ),
        *(
            ("ext4", option)
            for option in ("barrier=+0", "barrier=-1", " noatime", "NOATIME", "x_systemd.after=a")
        ),
        ("ext3", "delalloc"),
        ("ext2", "data=ordered"),
        ("xfs", "nobarrier"),
        ("xfs", "barrier"),
        ("xfs", "data=ordered"),
        ("xfs", "errors=remount-ro"),
        ("btrfs", "barrier=1"),
        ("btrfs", "data=ordered"),
        ("vfat", "barrier=1"),
        ("tmpfs", "sizes=1g"),
        ("auto", "barier=1"),
        ("ext4,xfs", "noatmie"),
    ],
)
def test_what_it_does_not_know_is_named(fstype: str, option: str) -> None:
    assert unknown_to(fstype, ("rw", option, "relatime"), OLD) == [option]


@pytest.mark.parametrize("fstype", ["ext2", "ext3", "ext4", "btrfs"])
def test_what_this_collection_writes_is_known(fstype: str) -> None:
    values = [("barrier", "on"), ("barrier", "off"), ("atime", "noatime"), ("atime", "strictatime")]
    if fstype in ("ext3", "ext4"):
        values += [("data_mode", mode) for mode in ("journal", "ordered", "writeback")]
    assert unknown_to(fstype, [spell(*value, fstype) for value in values], OLD) == []


@pytest.mark.parametrize("name", ["mountinfo_bookworm.txt"])
def test_what_a_kernel_prints_is_known(name: str) -> None:
    """The options of a running host, as fstab could have them."""
    lines = [line.split(" - ") for line in captured(name).split("\n") if line]
    seen = [(right.split()[0], left.split()[5].split(",")) for left, right in lines]
    seen += [(right.split()[0], right.split()[2].split(",")) for _left, right in lines]
    assert [unknown_to(fstype, options, OLD) for fstype, options in seen if fstype in KNOWN] == [
        [] for fstype, _options in seen if fstype in KNOWN
    ]


@pytest.mark.fact(55)
@pytest.mark.parametrize(
    ("release", "known"),
    [("5.10.0-30-amd64", False), ("5.16.20", False), ("5.17.0", True), ("6.18.4-arch1-1", True)],
)
@pytest.mark.parametrize("option", ["barrier=+0", "barrier=+1", "commit=+5", "barrier=+0x0"])
def test_a_plus_sign_is_taken_since_5_17(option: str, release: str, known: bool) -> None:
    assert unknown_to("ext4", (option,), release) == ([] if known else [option])


@pytest.mark.parametrize(
    "option", ["barrier=-1", "barrier=+", "barrier=++1", "barrier=+08", "errors=+continue"]
)
def test_other_signs_never_are(option: str) -> None:
    assert unknown_to("ext4", (option,), "6.18.4") == [option]
    assert unknown_to("xfs", ("logbufs=+8",), "6.18.4") == ["logbufs=+8"]
