# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CTSTATUS.FCS of FairCom DB: which build started, what it had to recover, and what it could not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import status as log

from ...fakes.vendor_host import STATUS, status

CLEAN = "Server shutdown completed"
START = ("Process ID: 60", "FairCom DB V12.0.1.214 Server Is Operational")


def said(*words: str, at: str = "Sat Jan 31 12:00:00 2026") -> str:
    """Return a log that says this, each below its time, as FairCom's documentation shows it."""
    return "".join(f"\n{at}\n - User# 00001\t{line}\n" for line in words)


@pytest.mark.fact(33)
@pytest.mark.parametrize(
    ("text", "word"),
    [
        (said(*START, CLEAN, *START), "no"),
        (said(*START, *START), "yes"),
        # The documentation's own lines on a recovery: "Additional Recovery Logging", V10 and later.
        (said(*START, CLEAN, START[0], "Index repair time: 0 seconds.", START[1]), "yes"),
        (said(CLEAN, START[0], "tranrcv: Reconstructing index mark.idx M#01", START[1]), "yes"),
        (said(START[0], "tranund: reverse scanning log 7, undos=313", START[1]), "yes"),
        # What an earlier start had to recover is past.
        (said("tranred: scanning log 2, redos=33096", START[1], CLEAN, *START), "no"),
        (said(*START), "unknown"),
        (said(CLEAN), "unknown"),
    ],
)
def test_whether_the_last_start_had_to_recover(text: str, word: str) -> None:
    assert log.parse(text, STATUS, running=True).recovered.value == word


def test_a_server_that_is_not_up_yet_says_nothing_of_its_recovery() -> None:
    text = said(*START, CLEAN, *START, "Process ID: 61")
    assert log.parse(text, STATUS, running=True).recovered.value == "unknown"


@pytest.mark.fact(32)
@pytest.mark.parametrize("number", ["64", "66", "96", "571"])
@pytest.mark.parametrize(
    "form", ["Automatic recovery terminated with error: {}", "Could not initialize server. Error: {}"]
)
def test_a_recovery_that_failed_is_damage(form: str, number: str) -> None:
    text = said(form.format(number), at="Mon Jan  5 03:00:00 2026") + said(*START, CLEAN, *START)
    found = log.parse(text, STATUS, running=True).damage
    assert found
    assert (found.value, found.source) == ("seen", STATUS)
    assert f"error {number}" in str(found.reason)
    assert str(found.reason).endswith("last on Mon Jan  5 03:00:00 2026")


def test_a_recovery_that_kept_the_server_from_starting_is_damage_too() -> None:
    found = log.parse(said("WARNING: tranidx could not open previous log file: 96"), STATUS, running=False)
    assert found.version.value == "unknown"
    assert found.damage
    assert "a transaction log that it needs is not there" in str(found.damage.reason)


@pytest.mark.parametrize(
    "line",
    [
        "Automatic recovery terminated with error: 1120",
        "Automatic recovery terminated with error: 640",
        "Could not send. Error: 96",
        "tranred: scanning log 66, redos=64",
        "error: 96",
    ],
)
def test_other_errors_are_none_of_these(line: str) -> None:
    assert log.parse(said(line, *START), STATUS, running=True).damage is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("c-tree(R) V9.3.27711 Server Is Operational       -SN 50475612", "9.3.27711"),
        ("c-treeACE V10.3.1.21834(Build-140307) SQL Server Is Operational", "10.3.1.21834 build 140307"),
        ("FairCom Server V12.0.1.214 (Build-230103) Server Is Operational", "12.0.1.214 build 230103"),
    ],
)
def test_the_version_is_that_of_the_start(line: str, version: str) -> None:
    text = f"Fri Aug 13 10:30:36 2010\n - User# 00001\t{line}\n"
    assert log.parse(text, STATUS, running=True).version.value == version


@given(st.text(st.characters(codec="utf-8")), st.booleans())
def test_any_text_is_read(text: str, running: bool) -> None:
    log.parse(text, STATUS, running)
    found = log.parse(text + status("V12.0.1.214", True), STATUS, running)
    assert (found.version.value, found.synchronous) == ("12.0.1.214", "on")


@pytest.mark.parametrize(
    "text",
    [
        "V1.1" * 300_000,
        f"V{'1.1' * 300_000}",
        "Server Is Operational" * 50_000,
        "V1.1 Server Is Operational" * 40_000,
        "recover error 96" * 60_000,
    ],
    ids=["versions", "one version", "starts", "both", "errors"],
)
def test_a_log_that_is_made_to_be_searched_for_ever_is_not(text: str) -> None:
    begun = time.monotonic()
    log.parse(text, STATUS, running=True)
    assert time.monotonic() - begun < 5
