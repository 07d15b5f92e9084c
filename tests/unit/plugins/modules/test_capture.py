# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture module: a shell that returns a recording as text."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import replay
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import loads
from ansible_collections.durable.dbhost.plugins.modules import capture
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

from .run_module import run_module


@pytest.mark.parametrize("check", [False, True])
def test_the_recording_is_returned_and_nothing_changes(
    check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = SmallHost()
    databases = [{"engine": "postgresql", "paths": ["/srv/pgdata//base"]}]
    result = run_module(capture, host, monkeypatch, capsys, check, databases=databases)
    assert (result["changed"], result["failed_at"], result["differs"]) == (False, None, [])
    recording = loads(result["recording"])
    assert recording["command"] == ["storage_facts", "/srv/pgdata/base"]
    assert replay(recording, "now")["resolved"] == {"/srv/pgdata/base": None}
    assert host.mutations == []


def test_bytes_that_are_no_text_reach_the_controller(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = SmallHost()
    odd = "99 30 8:99 / /srv/caf\udce9 rw - ext4 /dev/sdz rw\n"
    host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + odd
    text = run_module(capture, host, monkeypatch, capsys)["recording"]
    assert text.isascii()
    assert "/srv/caf\udce9" in loads(text)["calls"]["read"]["/proc/self/mountinfo"]


def test_where_the_facts_end_early_is_said(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = SmallHost()
    del host.files["/proc/self/mountinfo"]
    assert run_module(capture, host, monkeypatch, capsys)["failed_at"] == "Unobservable"


def test_another_user_than_root_captures_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = SmallHost()
    monkeypatch.setattr(host, "user", lambda: 1000)
    result = run_module(capture, host, monkeypatch, capsys)
    assert result["msg"].startswith("This host cannot be captured: observed user 1000, expected root")
    assert "recording" not in result


def test_what_cannot_be_redacted_is_not_returned(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fail(*_arguments: Any) -> None:
        raise ValueError("no stand-ins")

    monkeypatch.setattr(capture, "capture", fail)
    result = run_module(capture, SmallHost(), monkeypatch, capsys)
    assert result["msg"] == "This host cannot be captured: no stand-ins"
    assert "recording" not in result
