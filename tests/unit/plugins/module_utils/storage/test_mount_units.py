# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's mount units: which file has the last word, and what it says."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_units import (
    DROP_IN,
    MountUnit,
    drop_in,
    find,
    mount_point,
    ours,
    parse,
    render,
    split_options,
    started,
    unit_name,
)

from ..fakes.small_host import UNITS, SmallHost

PG = "/srv/pgdata"
UNIT = "srv-pgdata.mount"
USR = "/usr/lib/systemd/system"
STARTED = f"{UNITS}/local-fs.target.wants/{UNIT}"


def host_with(*names: str, options: str = "nobarrier", started: bool = True) -> SmallHost:
    """Return a host with unit files; each one but the last says that it is not the last."""
    host = SmallHost()
    for name in names:
        said = options if name == names[-1] else "noatime"
        device = "" if ".d/" in name else "What=/dev/sda1\n"
        host.files[name] = f"[Mount]\n{device}Options={said}\n"
    if started:
        host.links[STARTED] = f"{UNITS}/{UNIT}"
    return host


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        # As systemd-escape --path --suffix=mount says.
        ("/", "-.mount"),
        ("/srv/pgdata", "srv-pgdata.mount"),
        ("/srv//pgdata/", "srv-pgdata.mount"),
        ("/srv/pg-data", "srv-pg\\x2ddata.mount"),
        ("/srv/pg data", "srv-pg\\x20data.mount"),
        ("/.hidden", "\\x2ehidden.mount"),
        ("/srv/.x", "srv-.x.mount"),
        ("/srv/ä", "srv-\\xc3\\xa4.mount"),
        ("/a:b_c.d", "a:b_c.d.mount"),
        ("/srv/caf\udce9", "srv-caf\\xe9.mount"),
        ("/srv/a\\b", "srv-a\\x5cb.mount"),
    ],
)
def test_unit_names(target: str, expected: str) -> None:
    assert unit_name(target) == expected
    assert mount_point(expected) == (target.replace("//", "/").rstrip("/") or "/")


def test_a_unit_that_the_command_line_of_the_next_boot_asks_for_is_started() -> None:
    host = host_with(f"{UNITS}/{UNIT}", started=False)
    host.files["/proc/cmdline"] = f"root=UUID=root ro systemd.wants={UNIT}\n"
    assert PG in started(host)
    found = find(host, PG, False)
    assert found is not None and found.starts
    # Of two configurations, only one has it.
    for path, word in {
        "/boot/grub/grub.cfg": "quiet",
        "/boot/grub2/grub.cfg": f"systemd.wants={UNIT}",
    }.items():
        host.files[path] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {word}\n}}\n"
    with pytest.raises(Unobservable, match="some of the entries"):
        find(host, PG, False)


def test_a_unit_whose_automount_is_asked_for_is_started() -> None:
    host = host_with(f"{UNITS}/{UNIT}", started=False)
    assert not find(host, "/srv/pgdata", False).starts  # type: ignore[union-attr]
    host.links[f"{UNITS}/local-fs.target.wants/srv-pgdata.automount"] = f"{UNITS}/srv-pgdata.automount"
    assert find(host, "/srv/pgdata", False).starts  # type: ignore[union-attr]


@pytest.mark.skipif(not shutil.which("systemd-escape"), reason="no systemd here")
@pytest.mark.parametrize("target", ["/", "/srv/pg-data", "/.h", "/a b/é~!", "/x@y%z", "/srv/a\\b"])
def test_systemd_escapes_a_path_the_same_way(target: str) -> None:
    argv = ["systemd-escape", "--path", "--suffix=mount", target]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said.strip() == unit_name(target)


@pytest.mark.parametrize(
    ("names", "in_fstab", "source"),
    [
        ([], True, None),
        ([f"{UNITS}/{UNIT}"], True, 0),
        ([f"{UNITS}.control/{UNIT}"], True, 0),
        # systemd makes a unit of fstab's line; that hides one of a package.
        ([f"{USR}/{UNIT}"], True, None),
        ([f"{USR}/{UNIT}"], False, 0),
        ([f"{UNITS}/{UNIT}.d/x.conf"], True, 0),
        # A drop-in of a package counts over fstab too.
        ([f"{USR}/{UNIT}.d/x.conf"], True, 0),
        ([f"{UNITS}/{UNIT}", f"{UNITS}/{UNIT}.d/10.conf"], True, 1),
        # By file name, whatever the directory.
        ([f"{UNITS}/{UNIT}.d/10.conf", f"{USR}/{UNIT}.d/20.conf"], True, 1),
        ([f"{USR}/{UNIT}.d/10.conf", f"{UNITS}/{UNIT}.d/20.conf"], True, 1),
        # One name in two places: /etc has it.
        ([f"{USR}/{UNIT}.d/10.conf", f"{UNITS}/{UNIT}.d/10.conf"], True, 1),
        # Drop-ins for all units that begin so, and for all mounts.
        ([f"{UNITS}/srv-.mount.d/x.conf"], True, 0),
        ([f"{UNITS}/mount.d/x.conf"], True, 0),
        ([f"{UNITS}/mount.d/10.conf", f"{UNITS}/{UNIT}.d/10.conf"], True, 1),
        ([f"{UNITS}/{UNIT}.d/not-a-drop-in"], True, None),
        ([f"{UNITS}/srv-mssql.mount"], True, None),
        # As `systemctl edit` names it, and ours behind it.
        ([f"{UNITS}/{UNIT}.d/override.conf", f"{UNITS}/{UNIT}.d/{DROP_IN}"], True, 1),
    ],
)
def test_which_file_has_the_last_word(names: list[str], in_fstab: bool, source: int | None) -> None:
    found = find(host_with(*names), PG, in_fstab)
    if source is None:
        assert found is None
    else:
        assert found is not None
        assert (found.source, found.options) == (names[source], ("nobarrier",))


def test_a_unit_without_options_has_the_defaults() -> None:
    host = SmallHost()
    host.files[f"{UNITS}/{UNIT}"] = "[Mount]\nWhat=/dev/sda1\n"
    assert find(host, PG, True) == MountUnit(f"{UNITS}/{UNIT}", ("defaults",), True, True, "/dev/sda1")


def test_a_drop_in_about_something_else_leaves_fstab_alone() -> None:
    host = SmallHost()
    host.files[f"{UNITS}/{UNIT}.d/x.conf"] = "[Unit]\nAfter=network.target\nOptions=nobarrier\n"
    assert find(host, PG, True) is None


@pytest.mark.parametrize("how", ["link", "empty"])
def test_a_masked_unit_mounts_nothing(how: str) -> None:
    host = host_with(f"{UNITS}/{UNIT}")
    if how == "link":
        del host.files[f"{UNITS}/{UNIT}"]
        host.links[f"{UNITS}/{UNIT}"] = "/dev/null"
    else:
        host.files[f"{UNITS}/{UNIT}"] = ""
    assert find(host, PG, True) == MountUnit(f"{UNITS}/{UNIT}", (), False, True)


@pytest.mark.parametrize(
    ("link", "starts"),
    [
        (STARTED, True),
        (f"{UNITS}/postgresql.service.requires/{UNIT}", True),
        (f"{USR}/local-fs.target.wants/{UNIT}", True),
        (f"{UNITS}/local-fs.target.wants/other.mount", False),
        (f"{UNITS}/{UNIT}.d/x", False),
        (None, False),
    ],
)
def test_a_unit_counts_at_boot_only_where_something_starts_it(link: str | None, starts: bool) -> None:
    host = host_with(f"{UNITS}/{UNIT}", started=False)
    if link:
        host.links[link] = f"{UNITS}/{UNIT}"
    found = find(host, PG, False)
    assert found is not None
    assert found.starts is starts


@pytest.mark.parametrize("name", [UNIT, f"{UNIT}.d/x.conf"])
@pytest.mark.parametrize(
    "content",
    [
        Unobservable("I/O error"),
        "[Mount]\nOptions=noatime,%i\n",
        "[Mount]\nOptions=%\n",
        "[Mount]\nOptions=a%%b,%i\n",
    ],
)
def test_what_is_not_understood_is_said(name: str, content: Any) -> None:
    host = SmallHost()
    host.files[f"{UNITS}/{name}"] = content
    with pytest.raises(Unobservable, match=r"I/O error|only systemd can expand"):
        find(host, PG, True)


def parse_options(text: str) -> tuple[str, ...] | None:
    """Return the options of a unit, None where it says nothing of them."""
    said = parse(text).get("Options")
    return None if said is None else split_options(said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("[Mount]\n", None),
        ("Options=a\n", None),
        ("[Unit]\nOptions=a\n", None),
        ("[Mount]\nOptions=a,b\n", ("a", "b")),
        ("[Mount]\n  Options = a , b  \n", ("a", "b")),
        ("[Mount]\nOptions=a\nOptions=b\n", ("b",)),
        ("[Mount]\nOptions=a\nOptions=\n", ()),
        ("[Mount]\nOptions=a\n[Unit]\nOptions=b\n[Mount]\nWhat=x\n", ("a",)),
        ("[Mount]\nOptions=a,\\\n  b\n", ("a", "b")),
        ("[Mount]\nOptions=\\\na\\\n,b\n", ("a", "b")),
        ("[Mount]\n#Options=a\n;Options=b\n # Options=c\n", None),
        # A comment's backslash continues nothing; one between the parts of a line is dropped.
        ("[Mount]\n# a comment \\\nOptions=nobarrier\n", ("nobarrier",)),
        ("[Mount]\nOptions=a,\\\n# a comment\nb\n", ("a", "b")),
        ("[Mount]\nOptions=a%%b\n", ("a%b",)),
        ("[Mount]\nOptions=x=a=b\n", ("x=a=b",)),
        ("[Mount]\nOptionsX=a\n", None),
        ("[ Mount ]\nOptions=a\n", None),
        (" [Mount]\nOptions=a\n", ("a",)),
        # Two backslashes are no end that goes on, three are.
        ("[Mount]\nOptions=a\\\\\nOptions=nobarrier\n", ("nobarrier",)),
        ("[Mount]\nOptions=a\\\\\\\nOptions=nobarrier\n", ("a\\\\ Options=nobarrier",)),
        ("[Mount]\nOptions=a,\\\n\n  \nb\n", ("a", "b")),
        ("[Mount]\nOptions=a\\", ("a",)),
        ("[Mou\\\nnt]\nOptions=a\n", None),
        # White space for systemd: no form feed.
        ("[Mount]\n\fOptions=a\n", None),
    ],
)
def test_options_of_a_unit(text: str, expected: tuple[str, ...] | None) -> None:
    assert parse_options(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[Mount\nOptions=a\n",
        "[Mount]x\nOptions=a\n",
        "[Mount]\nOptions=a\rOptions=b\n",
        "[Mount]\nOptions=a\0b\n",
        "\ufeff[Mount]\nOptions=a\n",
        "[Mount]\nOptions=\udcff\n",
        "[Mount]\nWhat=/dev/%i\n",
    ],
)
def test_a_unit_that_systemd_refuses_or_reads_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"observed|only systemd"):
        parse(text)


SHORT = "srv-.mount"


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        # /etc before /usr within one name, and the unit's own before those of shorter names.
        ([f"{USR}/{UNIT}.d/10.conf", f"{UNITS}/{UNIT}.d/10.conf"], 1),
        ([f"{UNITS}/{UNIT}.d/10.conf", f"{UNITS}.control/{UNIT}.d/10.conf"], 1),
        ([f"{UNITS}/{SHORT}.d/10.conf", f"{UNITS}/{UNIT}.d/10.conf"], 1),
        # Those for all mounts are last, wherever they lie.
        ([f"{UNITS}.control/mount.d/10.conf", f"{USR}/{UNIT}.d/10.conf"], 1),
        ([f"{UNITS}.control/mount.d/10.conf", f"{USR}/{SHORT}.d/10.conf"], 1),
        # Here releases differ.
        ([f"{UNITS}/{SHORT}.d/10.conf", f"{USR}/{UNIT}.d/10.conf"], None),
        # systemd passes over hidden files.
        ([f"{UNITS}/{UNIT}.d/.10.conf", f"{USR}/{UNIT}.d/10.conf"], 1),
        # A hyphen sorts before a dot, so a hidden file that is read would be the last.
        ([f"{UNITS}/{UNIT}.d/.10.conf", f"{USR}/{UNIT}.d/-10.conf"], 1),
    ],
)
def test_which_of_two_drop_ins_of_one_name_counts(names: list[str], counts: int | None) -> None:
    host = SmallHost()
    for number, name in enumerate(names):
        host.files[name] = f"[Mount]\nOptions=x{number}\n"
    if counts is None:
        with pytest.raises(Unobservable, match="depends on the release"):
            find(host, PG, True)
        return
    found = find(host, PG, True)
    assert found is not None
    assert (found.source, found.options) == (names[counts], (f"x{counts}",))


def test_two_drop_ins_of_one_name_that_say_the_same_are_one() -> None:
    host = SmallHost()
    for name in (f"{UNITS}/{SHORT}.d/10.conf", f"{USR}/{UNIT}.d/10.conf"):
        host.files[name] = "[Mount]\nOptions=nobarrier\n"
    found = find(host, PG, True)
    assert found is not None
    assert found.options == ("nobarrier",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[Mount]\nOptions=barrier=1\n", "no What="),
        ("[Mount]\nWhat=/dev/sda1\nWhat=\n", "no What="),
        ("[Mount]\nWhat=/dev/sda1\nWhere=/srv/other\n", "Where=/srv/other"),
    ],
)
def test_a_unit_that_mounts_nothing_tells_nothing(text: str, why: str) -> None:
    host = SmallHost()
    host.files[f"{UNITS}/{UNIT}"] = text
    with pytest.raises(Unobservable, match=why):
        find(host, PG, True)


def test_a_drop_in_may_name_another_device() -> None:
    host = host_with(f"{UNITS}/{UNIT}")
    host.files[f"{UNITS}/{UNIT}.d/x.conf"] = "[Mount]\nWhat=/dev/sdz1\nType=xfs\n"
    assert find(host, PG, False) == MountUnit(
        f"{UNITS}/{UNIT}", ("nobarrier",), True, True, "/dev/sdz1", "xfs"
    )


@pytest.mark.parametrize("said", ["What=/dev/sdz1", "Type=xfs", "Where=/srv/x"])
def test_a_drop_in_that_makes_another_mount_of_fstabs_line_tells_nothing(said: str) -> None:
    host = SmallHost()
    host.files[f"{UNITS}/{UNIT}.d/x.conf"] = f"[Mount]\n{said}\nOptions=barrier=1\n"
    with pytest.raises(Unobservable, match="expected Options= alone"):
        find(host, PG, True)


@pytest.mark.parametrize("options", [("rw", "a\\"), ("a\nb",)])
def test_options_that_are_no_line_of_a_unit_are_not_rendered(options: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="expected one line"):
        render(options)


@given(st.lists(st.text("abz=%-_/:0", min_size=1), min_size=1).map(tuple))
def test_what_is_rendered_is_what_is_parsed(options: tuple[str, ...]) -> None:
    assert parse_options(render(options)) == options


def test_our_drop_in_is_marked_and_found_again() -> None:
    host = host_with(f"{UNITS}/{UNIT}", f"{UNITS}/{UNIT}.d/override.conf")
    assert ours(host) == []
    host.files[drop_in(PG)] = render(("noatime", "barrier=1"))
    assert ours(host) == [f"{UNITS}/{UNIT}.d/{DROP_IN}"]
    assert render(("a",)).startswith("# Managed by durable.dbhost")
    found = find(host, PG, False)
    assert found is not None
    assert (found.source, found.options) == (drop_in(PG), ("noatime", "barrier=1"))
