# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount options and what they add up to: only the wanted words change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_settings import (
    drop,
    fold,
    meaning,
    replace,
    restore,
    spell,
)

ours = st.sampled_from(
    "barrier nobarrier barrier=0 barrier=1 barrier=2 data=ordered data=journal data=writeback"
    " noatime relatime strictatime atime sync async".split()
)
others = st.sampled_from(
    "defaults nofail ro errors=remount-ro commit=5 nodiratime x-systemd.requires=a data_err=abort"
    ' barriers context="a:b" nobarriers'.split()
)
fstypes = st.sampled_from(["ext4", "btrfs"])
options = st.lists(ours | others, min_size=1, max_size=8).map(tuple)
wanted = st.fixed_dictionaries(
    {},
    optional={
        "barrier": st.sampled_from(["on", "off"]),
        "data_mode": st.sampled_from(["ordered", "journal", "writeback"]),
        "atime": st.sampled_from(["noatime", "relatime", "strictatime"]),
    },
)


def strangers(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if not meaning(word) and word != "defaults"]


@pytest.mark.fact(55)
@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("barrier", ("barrier", "on")),
        ("nobarrier", ("barrier", "off")),
        ("barrier=0", ("barrier", "off")),
        ("barrier=1", ("barrier", "on")),
        ("barrier=10", ("barrier", "on")),
        # The kernel reads other bases, and a sign.
        *((f"barrier={zero}", ("barrier", "off")) for zero in ("0x0", "+0", "00", "0X00", "+0x0")),
        *((f"barrier={number}", ("barrier", "on")) for number in ("0x1", "010", "2", "+1", "2147483647")),
        # Kernels before 5.17 read a signed number.
        *((f"barrier={number}", ("barrier", "unknown")) for number in ("2147483648", "4294967296")),
        *((f"barrier={odd}", ("barrier", "unknown")) for odd in ("", "-0", "08", "0x", "1 ", "1x", "-1")),
        ("data=journal", ("data_mode", "journal")),
        ("noatime", ("atime", "noatime")),
        ("nodiratime", None),
        ("data_err=abort", None),
        ("barrier=x", ("barrier", "unknown")),
        ("xbarrier=1", None),
        ("rw", None),
        ("", None),
    ],
)
def test_meaning_is_of_whole_words(word: str, expected: tuple[str, str] | None) -> None:
    assert meaning(word) == expected


def test_the_last_word_wins() -> None:
    assert fold(["nobarrier", "data=journal", "barrier=1"]) == {"barrier": "on", "data_mode": "journal"}


@given(options, wanted, fstypes)
def test_replace_gives_what_is_wanted_and_leaves_the_rest(
    words: tuple[str, ...], want: dict[str, str], fstype: str
) -> None:
    changed = replace(words, want, fstype)
    assert fold(changed) == {**fold(words), **want}
    assert strangers(changed) == strangers(words)
    assert replace(changed, want, fstype) == changed
    for setting in want:
        assert len([word for word in changed if (meaning(word) or ("",))[0] == setting]) == 1


@pytest.mark.parametrize(
    ("fstype", "value", "word"),
    [
        ("ext4", "on", "barrier=1"),
        ("ext4", "off", "barrier=0"),
        ("ext3", "on", "barrier=1"),
        # It refuses the number.
        ("btrfs", "on", "barrier"),
        ("btrfs", "off", "nobarrier"),
    ],
)
def test_each_file_system_is_told_in_words_that_it_knows(fstype: str, value: str, word: str) -> None:
    assert spell("barrier", value, fstype) == word
    assert meaning(word) == ("barrier", value)


@given(options, st.sets(st.sampled_from(["barrier", "data_mode", "atime"])))
def test_drop_takes_only_the_words_on_its_settings(words: tuple[str, ...], settings: set[str]) -> None:
    left = drop(words, settings)
    assert left
    assert fold(left) == {name: value for name, value in fold(words).items() if name not in settings}
    assert strangers(left) == strangers(words)


@given(options, wanted)
def test_restore_gives_the_original_back_when_nobody_else_changed_it(
    words: tuple[str, ...], want: dict[str, str]
) -> None:
    assert restore(replace(words, want, "ext4"), words) == words


@given(options, wanted, st.sampled_from(["nodev", "x-mine"]))
def test_restore_keeps_what_others_added(words: tuple[str, ...], want: dict[str, str], added: str) -> None:
    restored = restore((*replace(words, want, "ext4"), added), words)
    assert added in restored
    assert fold(restored) == fold(words)
    assert strangers(restored) == [*strangers(words), added]


@given(options, wanted, st.sampled_from(["ext4", "ext3", "xfs", "btrfs"]))
@pytest.mark.fact(2)
def test_no_word_is_written_that_was_not_asked_for(
    words: tuple[str, ...], want: dict[str, str], fstype: str
) -> None:
    """XFS's attr2, say, is deprecated: never emitted."""
    spelled = {spell(setting, value, fstype) for setting, value in want.items()}
    assert set(replace(words, want, fstype)) <= set(words) | spelled
    assert "attr2" not in spelled
