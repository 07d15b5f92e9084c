# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a server reads once: is what they say what runs?"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import since_start, start_files
from ansible_collections.durable.dbhost.plugins.module_utils.engines.start_files import Word
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounded_read
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Process, Processes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import LIMIT

from ..fakes.vendor_host import BOOT, CONF, VendorHost, with_mssql

FILE = {"x": Word("new", f"{CONF}:3"), "y": Word("same")}


def main_of(host: VendorHost) -> Process:
    return Processes(host).all[50]


def running(host: VendorHost) -> start_files.Running:
    return start_files.running(host, "mssql", CONF, main_of(host), FILE)


def test_when_it_began() -> None:
    host = with_mssql()
    start = since_start.start_of(host, main_of(host))
    assert (start.pid, start.ticks) == (50, "100000")
    assert abs(start.at - (BOOT + 1000)) < 0.05


@pytest.mark.parametrize("text", ["", "50 (x) S 1", "gibberish", "50 (x) S 1 " + "x " * 30])
def test_when_it_began_may_not_be_known(text: str) -> None:
    host = with_mssql()
    main = main_of(host)
    host.files["/proc/50/stat"] = text
    with pytest.raises(Unobservable, match="when it began is unknown"):
        since_start.start_of(host, main)
    assert start_files.running(host, "mssql", CONF, main, FILE).words == {}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (BOOT + 10, {"x": "new", "y": "same"}),
        (BOOT + 999.9, {"x": "new", "y": "same"}),
        (BOOT + 1000.1, {}),
        (BOOT + 4000, {}),
    ],
)
def test_what_was_changed_after_the_start_does_not_run(changed: float, words: dict[str, str]) -> None:
    host = with_mssql()
    host.times[CONF] = changed
    seen = running(host)
    assert seen.words == words
    assert (seen.reason is None) == bool(words)
    settings = start_files.settings(FILE, seen)
    assert settings["x"]["persisted"] == "new"
    assert settings["x"]["running"] == words.get("x", "unknown")
    assert [each["cause"] for each in settings["x"].get("causes", ())] == ["changed_since"] * (not words)


def test_of_a_file_that_is_not_there_the_directory_tells() -> None:
    host = with_mssql()
    del host.files[CONF]
    assert running(host).words == {"x": "new", "y": "same"}
    host.times["/var/opt/mssql"] = BOOT + 2000
    assert running(host).words == {}


def test_a_note_tells_what_ran_before_the_change() -> None:
    host = with_mssql()
    start = since_start.start_of(host, main_of(host))
    start_files.note(host, "mssql", start, {"x": "old", "y": "unknown"})
    host.write(CONF, "other")
    assert running(host).words == {"x": "old"}
    settings = start_files.settings(FILE, running(host))
    assert (settings["x"]["running"], settings["y"]["running"]) == ("old", "unknown")
    assert start_files.waiting(settings) == ("x",)


def test_a_note_of_another_process_of_that_number_is_nothing() -> None:
    host = with_mssql()
    start = since_start.start_of(host, main_of(host))
    start_files.note(host, "mssql", start._replace(ticks="7"), {"x": "old"})
    host.write(CONF, "other")
    assert running(host).words == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"start": "100000"}', '{"start": "100000", "settings": 1}', "\udcff"]
)
def test_a_damaged_note_is_nothing(text: str) -> None:
    host = with_mssql()
    host.files[f"{start_files.NOTES}/mssql-50.json"] = text
    host.write(CONF, "other")
    assert running(host).words == {}


def test_a_disk_that_hangs_is_a_reason() -> None:
    host = with_mssql()
    host.hung = (CONF,)
    seen = running(host)
    assert (seen.words, seen.reason) == ({}, f"{CONF}: no answer within 10 s")
    with pytest.raises(Unobservable, match="no answer"):
        bounded_read.read(host, CONF)


def test_reading_is_bounded() -> None:
    host = with_mssql("x" * (LIMIT + 100))
    assert len(bounded_read.read(host, CONF) or "") == LIMIT + 1
    assert bounded_read.read(host, CONF, limit=3) == "xxx"
    assert bounded_read.read(host, "/not/there") is None


def test_of_a_stopped_server_nothing_runs_and_nothing_waits() -> None:
    found: dict[str, dict[str, Any]] = start_files.settings({"x": Word("unknown", None, "torn")}, None)
    assert found["x"] == {
        "running": "stopped",
        "persisted": "unknown",
        "source": "configuration",
        "reason": "torn",
        "from": None,
        "held": None,
        "permission": None,
    }
    assert start_files.waiting(found) == ()
