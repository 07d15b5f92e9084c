# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""proc_pid_mountinfo(5): escapes, hidden mounts, and lines of no known form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.facts.mountinfo import (
    Mount,
    parse_mountinfo,
    unescape,
    visible,
)

from ..captured import captured

#: What the kernel writes as an octal escape (fs/proc_namespace.c, mangle).
MANGLED = " \t\n\\"


def escape(text: str) -> str:
    """Escape a name as the kernel does."""
    return "".join(f"\\{ord(char):03o}" if char in MANGLED else char for char in text)


def line(target: str) -> str:
    return f"30 1 8:1 / {escape(target)} rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


def test_captured_host() -> None:
    mounts = {mount.target: mount for mount in parse_mountinfo(captured("mountinfo_bookworm.txt"))}
    assert mounts["/srv/mssql"] == Mount(
        device="8:17",
        root="/",
        target="/srv/mssql",
        options=("rw", "relatime"),
        fstype="xfs",
        source="/dev/sdb1",
        super_options=("rw", "attr2", "inode64", "logbufs=8", "logbsize=32k", "noquota"),
    )
    assert mounts["/"].super_options == ("rw", "errors=remount-ro")
    assert {"/tmp/a b", "/tmp/tab\tx", "/tmp/back\\slash", "/tmp/hash#x", "/tmp/umläut"} < set(mounts)
    # Two on one target: the later one hides the automount.
    assert mounts["/proc/sys/fs/binfmt_misc"].fstype == "binfmt_misc"
    assert len(mounts) == 32


@pytest.mark.parametrize("odd", ["\f", "\v", "\x1c", "\x85", "\u2028", "\r"])
def test_a_name_with_an_odd_character_stays_one_line(odd: str) -> None:
    """Seen on kernel 6.1: these stand unescaped, and Python calls them ends of lines."""
    target = f"/tmp/x{odd}y"
    assert [mount.target for mount in parse_mountinfo(line(target))] == [target]


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])))
def test_every_name_comes_back(name: str) -> None:
    assert [mount.target for mount in parse_mountinfo(line(f"/{name}"))] == [f"/{name}"]


@pytest.mark.parametrize(
    "text",
    ["30 1 8:1 / /srv rw shared:1 ext4 /dev/sda1 rw", "30 1 - ext4 /dev/sda1 rw", "nonsense", "a - b"],
)
def test_another_form_is_an_error_that_shows_the_line(text: str) -> None:
    with pytest.raises(ValueError, match="not a mountinfo line"):
        parse_mountinfo(line("/srv") + text)


def test_optional_fields_may_be_absent_or_many() -> None:
    absent = "30 1 8:1 / /a rw - ext4 /dev/sda1 rw\n"
    many = "31 1 8:1 / /b rw shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 rw\n"
    assert [mount.fstype for mount in parse_mountinfo(absent + many)] == ["ext4", "ext4"]


def test_a_later_mount_hides_an_earlier_one_on_the_same_target() -> None:
    below, above = line("/srv"), line("/srv").replace("8:1", "8:2")
    assert [mount.device for mount in visible(parse_mountinfo(below + line("/x") + above))] == ["8:1", "8:2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\\040b", "a b"), ("\\134040", "\\040"), ("\\9", "\\9"), ("\\303\\244", "ä")],
)
def test_octal_escapes_are_bytes(text: str, expected: str) -> None:
    assert unescape(text) == expected
