# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mssql.conf: flags by value, absent keys at their default, and odd values never taken for numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import conf as mssql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql.observe import words
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, render

from ...fakes.texts import HOSTILE, ODD, texts

EXAMPLE = """\
# written by mssql-conf
[EULA]
accepteula = Y

[control]
writethrough = 1
alternatewritethrough=0

[traceflag]
traceflag0 = 3604
traceflag1 = 1204
traceflag = 3456
traceflag12 = 3979
"""
LINE = st.sampled_from(
    [
        "",
        " ",
        "# a",
        "; b",
        ODD,
        "[control]",
        "[Control] ",
        "[traceflag]",
        "writethrough = 1",
        "Writethrough=true",
        "a =",
        "traceflag3 = 3979",
    ]
)


@given(texts(LINE).map("[first]\n".__add__))
def test_every_byte_stays(text: str) -> None:
    assert render(mssql_conf.parse(text)) == text


@given(st.text(st.sampled_from("[section]key = :value#;\n\r\t\udcff")))
def test_any_text_stays_or_is_refused(text: str) -> None:
    try:
        lines = mssql_conf.parse(text)
    except Malformed:
        return
    assert render(lines) == text


@pytest.mark.fact(27)
def test_trace_flags_are_found_by_value_under_any_number() -> None:
    lines = mssql_conf.parse(EXAMPLE)
    flags = mssql_conf.trace_flags(lines)
    assert list(flags) == [3604, 1204, 3456, 3979]
    assert flags[3979] == ("3979", "/var/opt/mssql/mssql.conf", 13)
    assert 397 not in flags


@pytest.mark.fact(28)
@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("[traceflag]\ntraceflag0 = T8932\n", "line 2: unknown trace flag T8932 (did you mean 3982?)"),
        ("[traceflag]\ntraceflag7 = 8932\n", "line 2: unknown trace flag 8932 (did you mean 3982?)"),
        ("[traceflag]\ntraceflag0 = -T3979\n", "line 2: unknown trace flag -T3979 (did you mean 3979?)"),
        (
            "[control]\nalternatewritethough = 0\n",
            "line 2: unknown key alternatewritethough (did you mean alternatewritethrough?)",
        ),
        ("[control]\nWriteTrough = 0\n", "line 2: unknown key writetrough (did you mean writethrough?)"),
        ("[traceflag]\ntracefag12 = 3979\n", "line 2: unknown key tracefag12 (did you mean traceflag?)"),
        ("[controls]\nwritethrough = 0\n", "line 1: unknown section [controls] (did you mean [control]?)"),
        # All of these are right, or are somebody else's.
        (EXAMPLE, None),
        (
            "[control]\nhestacksize = 512\n[network]\nwritethough = 1\n[coredump]\ncaptureminiandfull = true\n",
            None,
        ),
        ("[control]\n" + "writethroug" * 5000 + " = 1\n", None),
    ],
)
def test_slips_are_named_with_what_is_meant(text: str, slip: str | None) -> None:
    found = list(mssql_conf.slips(mssql_conf.parse(text)))
    assert found == ([f"/var/opt/mssql/mssql.conf {slip}"] if slip else [])


@pytest.mark.fact(28)
def test_a_flag_that_is_no_number_says_what_is_meant() -> None:
    with pytest.raises(
        Malformed, match=r"observed 'T8932' for traceflag0; expected .* \(did you mean 3982\?\)"
    ):
        mssql_conf.trace_flags(mssql_conf.parse("[traceflag]\ntraceflag0 = T8932\n"))


def switches(text: str) -> dict[str, str]:
    """Return what a file says of the two switches, as the layer reports it."""
    said = words(mssql_conf.parse(text), None)
    return {name: said[name].value for name in ("writethrough", "alternatewritethrough")}


@pytest.mark.fact(27)
def test_an_absent_key_has_its_default() -> None:
    text = "[control]\nwritethrough = 0\n"
    assert switches(text) == {"writethrough": "0", "alternatewritethrough": "1"}
    assert mssql_conf.get(mssql_conf.parse(text), "traceflag", "traceflag0") is None
    assert mssql_conf.trace_flags(mssql_conf.parse(text)) == {}


def test_values_sections_and_line_ends() -> None:
    text = EXAMPLE.replace("\n", "\r\n").replace("[control]", "[Control]").upper()
    assert switches(text) == {"writethrough": "1", "alternatewritethrough": "0"}
    assert mssql_conf.get(mssql_conf.parse(text), "eula", "AcceptEula", "f") == ("Y", "f", 3)


@pytest.mark.fact(29)
@pytest.mark.parametrize(
    "word", ["true", "false", "True", "yes", "on", "2", "01", "1.0", "", "1 # on", "¹", "-1"]
)
def test_a_word_is_never_taken_for_a_number(word: str) -> None:
    said = switches(f"[control]\nwritethrough = {word}\n")["writethrough"]
    assert said == (word or "(empty)")


@pytest.mark.parametrize("word", ["", "3979,834", "true", "-3979", "3979 834", "¹", "39 79"])
def test_a_trace_flag_that_is_no_number_is_refused(word: str) -> None:
    lines = mssql_conf.parse(f"[traceflag]\ntraceflag0 = 834\ntraceflag10 = {word}\n")
    with pytest.raises(
        Malformed, match=r"line 3: observed .* for traceflag10; expected the number of one trace flag"
    ):
        mssql_conf.trace_flags(lines)


def test_other_keys_of_the_section_are_no_flags() -> None:
    lines = mssql_conf.parse("[traceflag]\nmytraceflag0 = x\ntraceflags = 1\n[other]\ntraceflag0 = 3979\n")
    assert mssql_conf.trace_flags(lines) == {}


def test_a_key_set_twice_counts_only_when_both_agree() -> None:
    assert switches("[control]\nwritethrough = 1\n[Control]\nWriteThrough = 1\n")["writethrough"] == "1"
    other = mssql_conf.parse(
        "[control]\nwritethrough = 1\nwritethrough = 0\n[traceflag]\ntraceflag0 = 1\ntraceflag0=2"
    )
    with pytest.raises(
        Malformed, match=r"control\.writethrough set to different values \(line 2: '1', line 3: '0'\)"
    ):
        mssql_conf.get(other, "control", "writethrough")
    with pytest.raises(Malformed, match=r"traceflag\.traceflag0 set to different values"):
        mssql_conf.trace_flags(other)


@pytest.mark.parametrize(
    "line",
    [
        " writethrough = 0",
        "\twritethrough = 0",
        "writethrough",
        "writethrough: 0",
        "a:b = 0",
        "= 0",
        "[control",
        "[]",
    ],
)
def test_what_two_readers_would_take_differently_is_refused(line: str) -> None:
    with pytest.raises(
        Malformed, match=r"^/var/opt/mssql/mssql\.conf line 3: observed .*; expected 'key = value'"
    ):
        mssql_conf.parse(f"[control]\nwritethrough = 1\n{line}\n")


@pytest.mark.parametrize("text", ["a = 1\n", "\n# x\na = 1\n[control]\n"])
def test_a_key_before_any_section_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match=r"below a \[section\]"):
        mssql_conf.parse(text)


@pytest.mark.parametrize("line", ["a = \x1b", "a = 1\r2", "a\x0b = 1"])
def test_control_characters_are_refused(line: str) -> None:
    with pytest.raises(Malformed, match=r"line 2: .*control characters"):
        mssql_conf.parse(f"[a]\n{line}\n")


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        mssql_conf.parse(text)
