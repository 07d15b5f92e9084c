# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins: one for each word, of its shape, and nothing of it left."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.capture.pseudonyms import Collision, Pseudonyms
from ansible_collections.durable.dbhost.plugins.module_utils.host import udev

WORDS = "/sys/block/sda disk ordered"
UUID = "f0f6079e-faa6-54a8-a78c-1592123fa797"
LVM = "Rxi8dS-Rn2l-zqoW-hFps-8RmE-iMhe-q1Ytwo"
MD = "a1b2c3d4:e5f60718:293a4b5c:6d7e8f90"
WWN = "5000c500a1b2c3d4"


def knowing(*secrets: str, hosts: tuple[str, ...] = ()) -> Pseudonyms:
    names = Pseudonyms(WORDS)
    for secret in secrets:
        names.learn(secret)
    for host in hosts:
        names.learn_host(host)
    return names


def shape(text: str) -> str:
    return re.sub("[0-9]", "9", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", text)))


@pytest.mark.parametrize(
    "word", ["1", "SATA0001", UUID, LVM, MD, f"0x{WWN}", "WD-WCC4E1234567", "a.b:c+d@e=f#g_h"]
)
def test_a_stand_in_has_the_shape_of_its_word(word: str) -> None:
    names = knowing()
    stand_in = names.of(word)
    assert stand_in != word
    assert shape(stand_in) == shape(word)
    assert names.of(word) == stand_in
    assert bool(udev._SAFE.fullmatch(stand_in)) == bool(udev._SAFE.fullmatch(word))


def test_hexadecimal_stays_hexadecimal() -> None:
    assert re.fullmatch("[0-9a-f-]{36}", knowing().of(UUID))


@pytest.mark.parametrize("word", ["", "-", "----", " "])
def test_what_has_no_letter_and_no_digit_names_nothing(word: str) -> None:
    assert knowing().of(word) == word


@pytest.mark.parametrize("word", ["SN\udce9\udcff", "ñandú-12", "serial *?"])
def test_what_a_rule_cannot_hold_stays_so(word: str) -> None:
    stand_in = knowing().of(word)
    assert stand_in != word
    assert not udev._SAFE.fullmatch(stand_in)
    stand_in.encode("utf-8", "surrogateescape")


def test_one_uuid_in_all_its_forms() -> None:
    names = knowing()
    bare = names.of(UUID.replace("-", ""))
    assert names.of(UUID).replace("-", "") == bare
    assert names.of(UUID.upper()) == names.of(UUID).upper()
    assert names.scrub(f"luks-{UUID}") == f"luks-{names.of(UUID)}"
    # As systemd and device-mapper write it.
    assert names.scrub(UUID.replace("-", r"\x2d")) == names.of(UUID).replace("-", r"\x2d")
    assert names.scrub(UUID.replace("-", "--")) == names.of(UUID).replace("-", "--")


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (f"luks-{UUID}", UUID),
        (rf"srv-{UUID}.mount".replace("-", r"\x2d"), "1592123fa797"),
        (f"/dev/mapper/3{WWN}p1", WWN),
        (f"wwn-0x{WWN}-part1", WWN),
        (f"naa.{WWN}", WWN),
        (f"md {MD}", "e5f60718"),
        (f"pv {LVM}", "zqoW"),
        ("docker/" + "0123456789abcdef" * 4, "0123456789abcdef"),
    ],
)
def test_numbers_of_a_known_form_go_without_being_learned(text: str, gone: str) -> None:
    found = knowing().scrub(text)
    assert gone not in found
    assert shape(found) == shape(text)


@pytest.mark.parametrize(
    "text",
    [
        "6.1.0-26-amd64",
        "4.14.35-2047.511.5.5.3.el7uek",
        "errors=remount-ro",
        "/dev/disk/by-path/pci-0000:00:1f.2-ata-1.0",
        "QEMU_HARDDISK",
        "254:16",
        "no answer within 10 s",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert knowing("SATA0001").scrub(text) == text


def test_a_serial_that_is_part_of_another() -> None:
    names = knowing("SN12", "SN123", "XSN1234")
    found = names.scrub("a-SN12 b-SN123 c-XSN1234 d-SN12-part1")
    assert "SN1" not in found
    one, two, three = names.of("SN12"), names.of("SN123"), names.of("XSN1234")
    assert found == f"a-{one} b-{two} c-{three} d-{one}-part1"
    assert len({one, two, three}) == 3


def test_blanks_and_underscores_are_one() -> None:
    names = knowing("WD  WCC 12")
    assert names.scrub("ata-WD_WCC_12-part1") == f"ata-{names.of('WD_WCC_12')}-part1"


@pytest.mark.parametrize("word", ["1", "sda", "disk", "DISK", "ordered", "sys"])
def test_short_and_common_words_are_replaced_only_where_they_name_something(word: str) -> None:
    names = knowing(word)
    assert names.scrub(f"/sys/block/sda {word} data=ordered 1") == f"/sys/block/sda {word} data=ordered 1"
    assert names.of(word) != word


def test_a_host_is_replaced_as_a_word_of_its_own() -> None:
    names = knowing(hosts=("db-host1.example.com",))
    short, full = names.of("db-host1"), names.of("db-host1.example.com")
    assert names.scrub("/srv/db-host1/x") == f"/srv/{short}/x"
    assert names.scrub(r"srv-db\x2dhost1.mount") == "srv-" + short.replace("-", r"\x2d") + ".mount"
    assert names.scrub("db--host1-root") == short.replace("-", "--") + "-root"
    assert names.scrub("db-host1.example.com:/export") == f"{full}:/export"
    assert names.scrub("/srv/db-host10 /srv/adb-host1") == "/srv/db-host10 /srv/adb-host1"


def test_an_address_is_a_host_and_its_first_number_is_none() -> None:
    names = knowing(hosts=("192.168.10.5",))
    assert names.scrub("/srv/192/x") == "/srv/192/x"
    assert names.scrub("nas 192.168.10.5:/x") == f"nas {names.of('192.168.10.5')}:/x"


def test_many_names_that_begin_alike() -> None:
    serials = [f"S3Z{number:05d}" for number in range(2000)]
    names = knowing(*serials)
    found = names.scrub(" ".join(serials)).split(" ")
    assert len(set(found)) == len(serials)
    assert not set(found) & set(serials)


def test_short_words_are_told_apart_until_there_are_no_more() -> None:
    names = knowing()
    assert len({names.of(word) for word in "0123456789"}) == 10


def test_a_new_word_leaves_those_of_another_shape_alone() -> None:
    one, other = knowing(), knowing()
    other.of("NEW-9")
    assert one.of(UUID) == other.of(UUID)


def test_neighbours_that_spell_a_secret_are_noticed() -> None:
    names = knowing("ABCD")
    names._stand_ins["abcd"] = "abab"
    with pytest.raises(Collision):
        names.scrub("ABCDCD")


words = st.text("abcXYZ0123456789-_.", min_size=1, max_size=24)


@given(secrets=st.lists(words, max_size=6), text=st.lists(words, max_size=6))
def test_no_secret_is_left_in_a_text(secrets: list[str], text: list[str]) -> None:
    names = knowing(*secrets)
    strong = [s for s in secrets if sum(map(str.isalnum, s)) >= 4]
    try:
        found = names.scrub("/".join([*text, *secrets]))
    except Collision:
        assume(False)
    assert [secret for secret in strong if secret in found] == []


@given(st.lists(words, unique_by=str.lower))
def test_different_words_stay_different(some: list[str]) -> None:
    names = knowing(*some)
    assert len({names.of(word) for word in some}) == len(some)
