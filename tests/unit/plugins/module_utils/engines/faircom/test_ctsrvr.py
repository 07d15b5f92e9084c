# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ctsrvr.cfg: only our bytes change, blocks stay, and what FairCom leaves open is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import ctsrvr
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, line_ends, render

from ...fakes.texts import HOSTILE, ODD, changed, texts

EXAMPLE = """\
; FairCom DB server configuration
SERVER_NAME  FAIRCOMS
Commit_Delay 2
;COMMIT_DELAY 100
PLUGIN  cthttpd;./web/cthttpd.so
LOCAL_DIRECTORY ../data/
COMPATIBILITY LOG_WRITETHRU
compatibility tdata_writethru

SUBSYSTEM EVENT DISK_FULL_ACTION {
  volume /data
  COMMIT_DELAY 77
  COMPATIBILITY NO_SYS_FLUSH_ON_CLOSE
  ; a comment with a }
}
LOG_EVEN /log/even/L
LOG_ODD /log/odd/L
"""
BLOCK = "SUBSYSTEM A B {\n COMMIT_DELAY 9\n COMPATIBILITY SYNC_LOG\n nested {\n }\n}"
LINE = st.sampled_from(
    [
        "",
        " \t",
        "; comment",
        ODD.replace("#", ";"),
        "COMMIT_DELAY 1",
        " commit_delay\t-1  ",
        "Commit_Delay 100",
        "COMPATIBILITY LOG_WRITETHRU",
        "\tcompatibility  log_writethru",
        "COMPATIBILITY SYNC_LOG",
        "SERVER_NAME a b c",
        "PLUGIN a;b",
        ";SUBSYSTEM ONE { }",
        "; durable.dbhost: a note",
        BLOCK,
        BLOCK.replace("\n", "\r\n"),
        ";" + BLOCK,
        BLOCK.replace("\n", "\n;").replace("SUBSYSTEM", ";SUBSYSTEM"),
        "SUBSYSTEM X\n; between\n{\n}",
    ]
)


@given(texts(LINE))
def test_every_byte_stays(text: str) -> None:
    assert render(ctsrvr.parse(text)) == text


@given(st.text(st.sampled_from("SUBSYSTEM {};\n\r\tKEY value\udcff\x0b")))
def test_any_text_stays_or_is_refused(text: str) -> None:
    try:
        lines = ctsrvr.parse(text)
    except Malformed:
        return
    assert render(lines) == text


@given(texts(LINE), st.sampled_from(["0", "2", "-1", "a b"]))
def test_setting_a_keyword_changes_its_lines_alone(text: str, wanted: str) -> None:
    after = ctsrvr.set_keyword(text, "commit_delay", wanted, "note")
    found = ctsrvr.value(ctsrvr.parse(after), "COMMIT_DELAY")
    assert found is not None
    assert found.value == wanted
    assert ctsrvr.set_keyword(after, "COMMIT_DELAY", wanted, "other note") == after
    before = ctsrvr.find(ctsrvr.parse(text), "COMMIT_DELAY")
    differing = changed(text, after, ";")
    assert len(differing) == sum(setting.value != wanted for setting in before) or (
        not before and len(differing) == 1
    )
    assert all(line.upper().lstrip().startswith("COMMIT_DELAY") for _old, line in differing)
    gone = ctsrvr.unset_keyword(after, "Commit_Delay")
    assert ctsrvr.find(ctsrvr.parse(gone), "COMMIT_DELAY") == []


@given(texts(LINE), st.sampled_from(["log_writethru", "TINDEX_WRITETHRU"]))
def test_a_compatibility_flag_comes_and_goes(text: str, flag: str) -> None:
    before = set(ctsrvr.compatibility(ctsrvr.parse(text)))
    with_it = ctsrvr.add_compatibility(text, flag, "note")
    assert set(ctsrvr.compatibility(ctsrvr.parse(with_it))) == before | {flag.upper()}
    assert ctsrvr.add_compatibility(with_it, flag, "note") == with_it
    assert len(changed(text, with_it, ";")) == (flag.upper() not in before)
    without = ctsrvr.remove_compatibility(with_it, flag)
    assert set(ctsrvr.compatibility(ctsrvr.parse(without))) == before - {flag.upper()}
    assert ctsrvr.remove_compatibility(without, flag) == without
    if flag.upper() not in before and (not text or text.endswith("\n")):
        assert without == text


@pytest.mark.fact(31)
def test_example() -> None:
    lines = ctsrvr.parse(EXAMPLE, "/opt/faircom/config/ctsrvr.cfg")
    assert set(ctsrvr.compatibility(lines)) == {"LOG_WRITETHRU", "TDATA_WRITETHRU"}
    assert ctsrvr.value(lines, "commit_delay", "f") == ("2", "f", 3)
    assert ctsrvr.value(lines, "PLUGIN", "f") == ("cthttpd;./web/cthttpd.so", "f", 5)
    assert ctsrvr.value(lines, "DELAYED_DURABILITY") is None
    changed_text = ctsrvr.set_keyword(EXAMPLE, "COMMIT_DELAY", "1", "flush")
    assert changed_text == EXAMPLE.replace("Commit_Delay 2", "; durable.dbhost: flush\nCommit_Delay 1")
    added = ctsrvr.add_compatibility(EXAMPLE, "TINDEX_WRITETHRU", "flush")
    assert added == EXAMPLE.replace(
        "tdata_writethru\n", "tdata_writethru\n; durable.dbhost: flush\nCOMPATIBILITY TINDEX_WRITETHRU\n"
    )


@pytest.mark.fact(31)
def test_line_ends_of_another_system_are_read_kept_and_reported() -> None:
    text = EXAMPLE.replace("\n", "\r\n")
    assert line_ends(text) == "dos"
    lines = ctsrvr.parse(text)
    assert set(ctsrvr.compatibility(lines)) == {"LOG_WRITETHRU", "TDATA_WRITETHRU"}
    added = ctsrvr.add_compatibility(text, "TINDEX_WRITETHRU", "flush")
    assert line_ends(added) == "dos"


def test_a_file_without_a_last_line_end() -> None:
    assert ctsrvr.set_keyword("FILES 1", "COMMIT_DELAY", "1", "n") == (
        "FILES 1\n; durable.dbhost: n\nCOMMIT_DELAY 1\n"
    )
    assert (
        ctsrvr.set_keyword("COMMIT_DELAY 2", "COMMIT_DELAY", "1", "n")
        == "; durable.dbhost: n\nCOMMIT_DELAY 1"
    )


def test_a_keyword_set_twice_is_ambiguous_until_it_is_set_alike() -> None:
    text = "COMMIT_DELAY 1\nFILES 2\nCOMMIT_DELAY 5\n"
    with pytest.raises(Malformed, match=r"COMMIT_DELAY set to different values \(line 1: '1', line 3: '5'\)"):
        ctsrvr.value(ctsrvr.parse(text), "COMMIT_DELAY")
    after = ctsrvr.set_keyword(text, "COMMIT_DELAY", "1", "n")
    assert after == "COMMIT_DELAY 1\nFILES 2\n; durable.dbhost: n\nCOMMIT_DELAY 1\n"


def test_a_subsystem_commented_out_is_no_setting() -> None:
    text = ";SUBSYSTEM A {\nCOMPATIBILITY SYNC_LOG\n}\nCOMPATIBILITY LOG_WRITETHRU\n"
    assert set(ctsrvr.compatibility(ctsrvr.parse(text))) == {"LOG_WRITETHRU"}


def test_a_comment_about_subsystems_is_a_comment() -> None:
    text = "; SUBSYSTEM blocks { like this } come last\n;SUBSYSTEMS {\nCOMPATIBILITY LOG_WRITETHRU\n"
    assert set(ctsrvr.compatibility(ctsrvr.parse(text))) == {"LOG_WRITETHRU"}


@pytest.mark.parametrize(
    "text, line, wanted",
    [
        ("FILES 1\nSUBSYSTEM A {\nvolume x\n", 2, "SUBSYSTEM that is closed"),
        ("FILES 1\n;SUBSYSTEM A {\nvolume x\n", 2, "SUBSYSTEM that is closed"),
        ("FILES 1\nSUBSYSTEM A {\nb {\n}\n", 2, "SUBSYSTEM that is closed"),
        ("FILES 1\nSUBSYSTEM A\nFILES 2\n", 3, "opening brace of the SUBSYSTEM of line 2"),
        ("FILES 1\nSUBSYSTEM A {\n} COMPATIBILITY SYNC_LOG\n", 3, "nothing behind it"),
        ("FILES 1\nSUBSYSTEM A {\n}}\n", 3, "nothing behind it"),
        ("FILES 1\n}\n", 2, "a keyword and its value"),
        ("FILES 1\nCOMMIT_DELAY\n1\n", 2, "a keyword and its value"),
        ("FILES 1\nCOMPATIBILITY SYNC_LOG ; gone\n", 2, "comments on lines of their own"),
        ("FILES 1\nCOMPATIBILITY LOG_WRITETHRU SYNC_LOG\n", 2, "one flag behind COMPATIBILITY"),
        ("FILES 1\nCOMMIT_DELAY 1\x0b\n", 2, "control characters"),
        ("FILES 1\nCOMMIT_DELAY 1\rFILES 2\n", 2, "a keyword and its value"),
        ("FILES 1\n\udcff\udcfe 1\n", 2, "a keyword and its value"),
    ],
)
def test_what_cannot_be_told_is_refused_and_never_changed(text: str, line: int, wanted: str) -> None:
    with pytest.raises(
        Malformed, match=rf"^ctsrvr\.cfg line {line}: observed .*; expected .*{wanted}.*; .*then run again$"
    ):
        ctsrvr.parse(text)
    with pytest.raises(Malformed):
        ctsrvr.add_compatibility(text, "LOG_WRITETHRU", "n")


@pytest.mark.parametrize("text", [text.replace("#", ";") for text, _wanted in HOSTILE.values()], ids=HOSTILE)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(Malformed):
        ctsrvr.set_keyword(text, "COMMIT_DELAY", "1", "n")


@pytest.mark.parametrize("wanted", ["", " 1", "1\nSYNC_LOG 1", "1\r", "1 ; x", ";", "a {", "\0"])
def test_no_value_can_become_more_than_a_value(wanted: str) -> None:
    with pytest.raises(ValueError, match="observed"):
        ctsrvr.set_keyword("", "COMMIT_DELAY", wanted, "n")


@pytest.mark.parametrize("keyword", ["COMPATIBILITY", "subsystem", "A B", "", "A\n", "é"])
def test_no_other_keyword_is_set(keyword: str) -> None:
    with pytest.raises(ValueError):
        ctsrvr.set_keyword("", keyword, "1", "n")


def test_compatibility_is_not_unset_as_a_whole() -> None:
    with pytest.raises(ValueError, match="remove_compatibility"):
        ctsrvr.unset_keyword("", "compatibility")


def places(text: str, directory: str = "/srv/faircom/server") -> dict[str, str]:
    """Return {keyword: directory, or the reason} of a text."""
    return {
        place.keyword: place.directory or (place.reason or "")
        for place in ctsrvr.log_places(ctsrvr.parse(text), directory)
    }


@pytest.mark.fact(51)
def test_logs_lie_where_their_keywords_say() -> None:
    assert places(EXAMPLE) == {
        "LOCAL_DIRECTORY": "/srv/faircom/data",
        "LOG_EVEN": "/log/even",
        "LOG_ODD": "/log/odd",
        "START_EVEN": "/srv/faircom/data",
        "START_ODD": "/srv/faircom/data",
    }


@pytest.mark.fact(51)
def test_logs_lie_in_the_working_directory_unless_told() -> None:
    assert set(places("").values()) == {"/srv/faircom/server"}
    assert places("LOG_EVEN logs/L\nlog_even_mirror /mirror/L\n")["LOG_EVEN"] == "/srv/faircom/server/logs"
    assert places("LOG_EVEN logs/L\nlog_even_mirror /mirror/L\n")["LOG_EVEN_MIRROR"] == "/mirror"


@pytest.mark.parametrize(
    "text, keyword, reason",
    [
        ("LOG_EVEN %LOGS%/L\n", "LOG_EVEN", "environment variable"),
        ("LOG_EVEN $LOGS/L\n", "LOG_EVEN", "environment variable"),
        ("LOG_ODD D:\\logs\\L\n", "LOG_ODD", "no path of this system"),
        ("LOG_ODD /a/L\nLOG_ODD /b/L\n", "LOG_ODD", "different values"),
        ("LOCAL_DIRECTORY %DATA%/\n", "LOG_ODD", "environment variable"),
    ],
)
def test_a_place_that_is_not_known_has_a_reason(text: str, keyword: str, reason: str) -> None:
    found = {place.keyword: place for place in ctsrvr.log_places(ctsrvr.parse(text), "/srv")}
    assert found[keyword].directory == ""
    assert reason in (found[keyword].reason or "")


@pytest.mark.fact(32)
@pytest.mark.parametrize(
    ("text", "slip"),
    [
        (
            "COMPATIBILITY log_writethrough\n",
            "line 1: unknown flag COMPATIBILITY LOG_WRITETHROUGH (did you mean LOG_WRITETHRU?)",
        ),
        (
            "COMPATIBILITY INDEX_WRITETHRU\n",
            "line 1: unknown flag COMPATIBILITY INDEX_WRITETHRU (did you mean TINDEX_WRITETHRU?)",
        ),
        ("; x\ncomit_delay 1\n", "line 2: unknown keyword COMIT_DELAY (did you mean COMMIT_DELAY?)"),
        ("COMPATIBILTY SYNC_LOG\n", "line 1: unknown keyword COMPATIBILTY (did you mean COMPATIBILITY?)"),
        ("LOG_EVN /a/L\n", "line 1: unknown keyword LOG_EVN (did you mean LOG_EVEN?)"),
        # Each is a correct name, or another keyword of FairCom's.
        (EXAMPLE, None),
        ("COMMIT_DELAY_USEC 5\nCOMMIT_DELAY_BASE 1\nCOMPATIBILITY TCPIP_CHECK_DEAD_CLIENTS\n", None),
        ("SUBSYSTEM A B {\n COMIT_DELAY 1\n}\n", None),
        ("COMMIT_DELA" * 5000 + " 1\n", None),
    ],
)
def test_slips_have_the_name_that_is_nearest(text: str, slip: str | None) -> None:
    found = ctsrvr.slips(ctsrvr.parse(text), ("COMMIT_DELAY",), ("LOG_WRITETHRU", "TINDEX_WRITETHRU"))
    assert list(found) == ([slip] if slip else [])
