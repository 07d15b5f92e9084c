# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fstab(5): only our bytes change, and a line that mount(8) could not use is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.storage import fstab

from ..fakes.captured import captured

LINE = "UUID=pg /srv/pgdata ext4 defaults 0 2"
word = st.text(st.characters(blacklist_characters=" \t\n\r\0#\\,", blacklist_categories=["Cs"]), min_size=1)
gap = st.text(" \t", min_size=1, max_size=4)
options = st.lists(word, min_size=1, max_size=4).map(tuple)
comments = st.text(st.characters(blacklist_characters="\n\r\0", blacklist_categories=["Cs"]))


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Draw a comment, an empty line, or an entry with three to six fields and odd white space."""
    if draw(st.booleans()):
        return draw(st.sampled_from(["", " ", "\t", "# ", "#\t# durable"])) + (
            "#" + draw(comments) if draw(st.booleans()) else ""
        )
    fields = [draw(word), f"/{draw(word)}", draw(word), ",".join(draw(options)), "0", "2"]
    gaps = [draw(gap) for _field in fields]
    count = draw(st.integers(3, 6))
    text = draw(st.sampled_from(["", " ", "\t"]))
    text += "".join(field + space for field, space in zip(fields[:count], gaps))
    return text if draw(st.booleans()) else text.rstrip(" \t")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a whole fstab with at least one entry, with or without a last newline."""
    found = [*draw(st.lists(lines(), max_size=6)), f"/dev/x /{draw(word)} ext4 {','.join(draw(options))}"]
    return "\n".join(draw(st.permutations(found))) + draw(st.sampled_from(["", "\n", "\n\n"]))


@given(texts(), options, st.data())
def test_every_other_byte_stays(text: str, wanted: tuple[str, ...], data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(fstab.parse(text)))
    changed = fstab.set_options(text, entry, wanted, "note")
    before, after = text.split("\n"), changed.split("\n")
    assert after[: entry.row] == before[: entry.row]
    assert after[entry.row] == f"{fstab.MARK}: note"
    assert after[entry.row + 2 :] == before[entry.row + 1 :]
    (found,) = [e for e in fstab.parse(changed) if e.row == entry.row + 1]
    assert found == entry._replace(row=entry.row + 1, options=wanted)
    if len(re.findall(r"[^ \t]+", before[entry.row])) > 3:
        back = fstab.set_options(changed, found, entry.options, None)
        assert back == text


@pytest.mark.parametrize("name", ["fstab_lab.txt", "fstab_installer.txt"])
def test_setting_the_same_options_without_a_note_changes_nothing(name: str) -> None:
    text = captured(name)
    for entry in fstab.parse(text):
        assert fstab.set_options(text, entry, entry.options, None) == text


def test_captured_installer_file() -> None:
    entries = fstab.parse(captured("fstab_installer.txt"))
    assert [entry.target for entry in entries] == ["/", "/boot/efi", "/srv/pg data", "none", "/media/cdrom0"]
    assert fstab.find(entries, "/srv/pg data/")[0] == fstab.Entry(
        row=15,
        spec="UUID=b411dc99-f0a0-4c87-9e05-184977be8539",
        target="/srv/pg data",
        fstype="ext4",
        options=("noatime", "nobarrier"),
    )


def test_the_note_is_written_once() -> None:
    text = LINE
    for note in ("first", "second"):
        entry = fstab.find(fstab.parse(text), "/srv/pgdata")[0]
        assert entry
        text = fstab.set_options(text, entry, ("ro",), note)
    assert text == "# durable.dbhost: second\nUUID=pg /srv/pgdata ext4 ro 0 2"


def test_a_line_of_three_fields_gets_a_fourth() -> None:
    text = "tmp /srv ext4 \n"
    assert fstab.set_options(text, fstab.parse(text)[0], ("ro",), None) == "tmp /srv ext4 ro \n"


def test_every_line_of_a_target_is_found() -> None:
    text = "/dev/a /srv ext4 ro\n/dev/b /srv/ ext4 rw\n"
    found = fstab.find(fstab.parse(text), "/srv")
    assert [entry.spec for entry in found] == ["/dev/a", "/dev/b"]
    assert fstab.set_options(text, found[1], ("sync",), None) == text.replace("rw", "sync")


@pytest.mark.parametrize(
    "line",
    [
        "/dev/sda1 /srv",
        "/dev/sda1",
        "/dev/sda1 /srv ext4 rw 0 2 oops",
        # systemd takes these comments for comments, libmount drops the line.
        "/dev/sda1 /srv ext4 rw 0 # comment",
        "/dev/sda1 /srv ext4 rw # comment",
        "/dev/sda1 /srv ext4 rw 0 2# comment",
        "/dev/sda1 /srv ext4 rw, noatime 0 2",
        "/dev/sda1 /srv ext4 rw zero 2",
        "/dev/sda1 /srv ext4 rw 0 ²",
        f"{LINE}\r",
        "/dev/sda1 /srv ext4 rw\r",
        "/dev/sda1 /srv ext4 rw\0",
        "\0" * 40,
        "\ufeff# a file that an editor of another system saved",
    ],
)
def test_a_line_that_mount_could_not_use_is_refused_by_number(line: str) -> None:
    with pytest.raises(fstab.MalformedFstab, match=r"/etc/fstab line 2: observed .* expected .*"):
        fstab.parse(f"# first\n{line}\n{LINE}\n")


@pytest.mark.parametrize(
    "other",
    ["# caf\udce9 in Latin-1", "# \u2028 \x85 \f", "LABEL=\udcff /x\udcfe ext4 rw", "#" + "x" * 2**20],
    ids=["Latin-1", "odd white space", "no text in fields", "huge"],
)
def test_bytes_that_are_no_text_and_huge_lines_stay(other: str) -> None:
    text = f"{other}\n{LINE}\n"
    entry = fstab.find(fstab.parse(text), "/srv/pgdata")[0]
    assert entry
    assert fstab.set_options(text, entry, ("ro",), None) == text.replace("defaults", "ro")


@pytest.mark.parametrize("name", ["pg data", "pg\tdata", "pg\\data"])
def test_octal_escapes_name_the_same_target_as_the_kernel_does(name: str) -> None:
    escaped = "".join(
        char if char.isalnum() else "".join(f"\\{b:03o}" for b in char.encode()) for char in name
    )
    text = f"/dev/a /srv/{escaped} ext4 rw\n"
    entry = fstab.find(fstab.parse(text), f"/srv/{name}")[0]
    assert entry
    assert fstab.set_options(text, entry, ("ro",), None) == text.replace(" rw", " ro")


@pytest.mark.parametrize(
    "fields",
    [
        "/dev/a /srv/pgd\\303\\244t ext4",  # mount(8) expands it, systemd mounts at a directory of that very name
        "/dev/a /srv/a\\\\b ext4",  # and this the other way round
        "/dev/sd\\141 /srv/a ext4",
        "/dev/a /srv/a ext\\064",
        "/dev/a /srv/a\\400b ext4",  # for mount(8) a NUL
        "/dev/a /srv/a\\ ext4",  # the unit's line goes on
        "/dev/a /srv/a\\134 ext4",
        "/dev/a\\012Where=/b /srv/a ext4",
    ],
)
def test_a_field_that_mount_and_systemd_read_differently_is_refused(fields: str) -> None:
    with pytest.raises(fstab.MalformedFstab, match=r"/etc/fstab line 2: observed .* expected .*"):
        fstab.parse(f"# comment\n{fields} rw 0 2\n")


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ("rw,x-systemd.requires=a\\x2db.mount", True),
        ('context="a,b",rw', True),
        ("comment=a\\040b,rw", True),
        ("rw,barrier\\075\\060", False),
        ("rw\\054barrier=0", False),
        ("barrier=1,rw\\012Options=rw", False),
        ("barrier=0,rw\\400,barrier=1", False),
        ('barrier=0,context="a,barrier=1,b"', False),
        ("barrier=1,rw\\", False),
        ("barrier=1,rw\\134", False),
        ("barrier=1,rw\\\\", False),
    ],
)
def test_options_of_which_readers_disagree_tell_nothing(options: str, is_told: bool) -> None:
    (entry,) = fstab.parse(f"/dev/a /srv/a ext4 {options}\n")
    assert (fstab.ambiguity(entry) is None) is is_told


@pytest.mark.parametrize("written", ["/srv//a/", "/srv/./a", "srv/a", "/srv/a/."])
def test_a_mount_point_is_found_as_systemd_has_it(written: str) -> None:
    entries = fstab.parse(f"/dev/a {written} ext4 rw\n")
    assert fstab.find(entries, "/srv/a") == entries


@pytest.mark.fact(66)
@pytest.mark.parametrize("comment", ["# comment", "#comment of 3 words"])
def test_a_comment_behind_all_six_fields_is_none_of_them(comment: str) -> None:
    """libmount and systemd accept it, and it stays where it is."""
    text = f"{LINE} {comment}\n"
    (entry,) = fstab.parse(text)
    assert entry == fstab.parse(LINE)[0]
    assert fstab.set_options(text, entry, ("ro",), None) == text.replace("defaults", "ro")


@pytest.mark.fact(66)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ('UUID="pg"', "UUID=pg"),
        ("UUID='pg'", "UUID=pg"),
        ('LABEL="pg\\040data"', "LABEL=pg data"),
        ('UUID="pg', 'UUID="pg'),
        ('UUID="', 'UUID="'),
        ("UUID=\"pg'", "UUID=\"pg'"),
        ('"/dev/sda1"', '"/dev/sda1"'),
        ('host="x":/y', 'host="x":/y'),
    ],
)
def test_the_value_of_a_tag_may_stand_in_quotes(spec: str, expected: str) -> None:
    """libmount and systemd accept both kinds, and the line keeps them."""
    text = LINE.replace("UUID=pg", spec)
    (entry,) = fstab.parse(text)
    assert entry.spec == expected
    assert fstab.set_options(text, entry, ("ro",), None) == text.replace("defaults", "ro")
