# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""proc_pid_mountinfo(5): escapes, hidden mounts, and lines of no known form."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import (
    Mount,
    covered,
    parse_mountinfo,
    unescape,
    visible,
    why_absent,
)

from ..fakes.captured import captured

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
        number=mounts["/srv/mssql"].number,
        parent=mounts["/"].number,
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


def table(*rows: tuple[int, int, str]) -> list[str]:
    """Return the ids of the mounts that a path leads to, of rows of id, parent and target."""
    text = "".join(
        f"{number} {parent} 8:{number} / {target} rw - ext4 x rw\n" for number, parent, target in rows
    )
    return [mount.number for mount in visible(parse_mountinfo(text))]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # A parent mounted over: the path to the child leads into the newer mount.
        ([(2, 1, "/srv/pgdata"), (3, 1, "/srv")], ["1", "3"]),
        ([(2, 1, "/srv"), (3, 2, "/srv/pgdata")], ["1", "2", "3"]),
        # Over a mount's own root: what lies on that mount goes with it.
        ([(2, 1, "/srv"), (3, 2, "/srv/pgdata"), (4, 2, "/srv")], ["1", "4"]),
        ([(2, 1, "/srv"), (3, 2, "/srv/pgdata"), (4, 3, "/srv/pgdata/wal"), (5, 1, "/srv")], ["1", "5"]),
        ([(2, 1, "/srv"), (4, 2, "/srv"), (3, 4, "/srv/pgdata")], ["1", "4", "3"]),
        # Names that begin alike hide nothing.
        ([(2, 1, "/srv/pgdata"), (3, 1, "/srv/pg")], ["1", "2", "3"]),
        # The root itself mounted over.
        ([(2, 1, "/srv"), (3, 1, "/"), (4, 3, "/srv")], ["3", "4"]),
    ],
)
def test_a_mount_that_no_path_leads_to_is_dropped(
    rows: list[tuple[int, int, str]], expected: list[str]
) -> None:
    assert table((1, 0, "/"), *rows) == expected
    assert table((1, 1, "/"), *rows) == expected, "the first of all may name itself"


def test_a_table_that_begins_within_a_directory_hides_as_well() -> None:
    """In a changed root that is no mount of its own, the parent of the first mounts is in no table."""
    assert table((2, 9, "/srv/pgdata"), (3, 9, "/srv")) == ["3"]


def test_a_table_that_leads_in_a_circle_comes_to_an_end() -> None:
    assert table((1, 1, "/"), (2, 3, "/a"), (3, 2, "/b"), (4, 1, "/srv")) == ["1", "4"]


def test_what_hides_a_mount_is_named() -> None:
    rows = [
        (1, 0, "/", "ext4"),
        (2, 1, "/srv/pgdata", "ext4"),
        (3, 2, "/srv/pgdata/wal", "xfs"),
        (4, 1, "/data", "xfs"),
        (5, 1, "/srv", "tmpfs"),
        (6, 4, "/data", "tmpfs"),
    ]
    text = "".join(f"{n} {parent} 8:{n} / {target} rw - {kind} x rw\n" for n, parent, target, kind in rows)
    pairs = {mount.target: cover.target for mount, cover in covered(parse_mountinfo(text))}
    assert pairs == {"/srv/pgdata": "/srv", "/srv/pgdata/wal": "/srv", "/data": "/data"}
    types = {mount.target: mount.fstype for mount in visible(parse_mountinfo(text))}
    assert [why_absent(path, pairs, types) for path in ("/srv/pgdata", "/data", "/srv", "/nothing")] == [
        "what is mounted there is hidden by tmpfs mounted over /srv: unmount that",
        "what is mounted there is hidden by tmpfs mounted over /data: unmount that",
        "tmpfs is mounted there, which holds nothing over a power cut",
        "nothing is mounted there",
    ]


def naive(mounts: list[Mount]) -> list[Mount]:
    """Return what is visible, each mount's way walked again: names are looked up as the kernel does."""

    def is_reached(mount: Mount, seen: tuple[str, ...] = ()) -> bool:
        parent = "" if mount.parent == mount.number else mount.parent
        beside = [
            other for other in mounts if (other.parent if other.parent != other.number else "") == parent
        ]
        last = [other for other in beside if other.target == mount.target][-1]
        above = [
            o
            for o in beside
            if o.target != mount.target and mount.target.startswith(o.target.rstrip("/") + "/")
        ]
        if last is not mount or above or mount.number in seen:
            return False
        return all(is_reached(o, (*seen, mount.number)) for o in mounts if o.number == parent)

    def is_covered(mount: Mount) -> bool:
        # The first of all is its own parent, and hides nothing.
        return any(o.target == mount.target and o.parent == mount.number != o.number for o in mounts)

    return [mount for mount in mounts if not is_covered(mount) and is_reached(mount)]


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/b"])), max_size=8
    )
)
def test_what_is_visible_is_what_each_way_leads_to(rows: list[tuple[int, str]]) -> None:
    text = "".join(
        f"{number} {parent} 8:1 / {target} rw - ext4 x rw\n" for number, (parent, target) in enumerate(rows)
    )
    mounts = parse_mountinfo(text)
    assert visible(mounts) == naive(mounts)


def nested(levels: int) -> str:
    return "".join(
        f"{number + 1} {number} 8:1 / {'/a' * number or '/'} rw - tmpfs x rw\n" for number in range(levels)
    )


def beside_each_other(count: int) -> str:
    deep = "/a" * 1000
    first = f"1 0 8:1 / {deep} rw - tmpfs x rw\n"
    return first + "".join(f"{n} 1 8:1 / {deep}/{n} rw - tmpfs x rw\n" for n in range(2, count))


@pytest.mark.parametrize("text", [nested(1500), beside_each_other(1500)], ids=["nested", "beside each other"])
def test_what_a_login_mounts_in_a_namespace_of_its_own_is_soon_seen_through(text: str) -> None:
    mounts = parse_mountinfo(text)
    began = time.process_time()
    assert visible(mounts) == mounts
    assert time.process_time() - began < 5
