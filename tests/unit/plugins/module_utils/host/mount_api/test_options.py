# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which words of a list of mount options the file system gets."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api.options import for_file_system


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("defaults", []),
        ("nofail,x-systemd.requires=/a,X-mount.mkdir,_netdev,noauto,user=ann,comment=a", []),
        ("nosuid,nodev,noexec,noatime,relatime,strictatime,nodiratime,nosymfollow,private", []),
        ("rw,sync,dirsync,lazytime,async,ro", ["rw", "sync", "dirsync", "lazytime", "async", "ro"]),
        ("barrier=1,commit=9,data=ordered", ["barrier=1", "commit=9", "data=ordered"]),
        ('context="system_u:object_r:x_t:s0:c1,c2",acl', ["context=system_u:object_r:x_t:s0:c1,c2", "acl"]),
        ('a="",c', ["a=", "c"]),
    ],
)
def test_the_file_system_gets_its_own_options(written: str, expected: list[str]) -> None:
    assert for_file_system(written.split(",")) == expected
