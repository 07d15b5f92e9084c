# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that does not answer is unreachable after a time limit, and nothing waits for it any more."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.action import engine_facts
from ansible_collections.durable.dbhost.plugins.action.engine_facts import Bounded
from ansible_collections.durable.dbhost.plugins.plugin_utils.deadline import Expired, deadline
from ansible_collections.durable.dbhost.plugins.plugin_utils.on_host import execute


class Hanging(Bounded):
    """An action whose host hangs in each execution."""

    TRANSFERS_FILES = False

    def __init__(self) -> None:
        connection = MagicMock(_shell=MagicMock(tmpdir="/root/.ansible/tmp/x"))
        super().__init__(MagicMock(async_val=0), connection, MagicMock(), MagicMock(), MagicMock(), None)
        self.started: list[subprocess.Popen[bytes]] = []

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        raise NotImplementedError

    def _execute_module(self, *_args: Any, **_named: Any) -> dict[str, Any]:
        self.started.append(subprocess.Popen(["sleep", "300"]))
        self.started[-1].wait()
        return {}


def test_a_host_that_hangs_is_unreachable_and_what_waits_for_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Hanging()
    found = execute(action, "durable.dbhost.host_facts", {}, {}, 1)
    assert found["unreachable"] is True
    assert found["msg"].startswith("no answer within 1 seconds; find the processes there that wait")
    assert action.started[0].wait(timeout=5) == -signal.SIGTERM
    action._connection.reset.assert_called_once_with()
    removed = MagicMock()
    monkeypatch.setattr(ActionBase, "cleanup", removed)
    action.cleanup()
    removed.assert_not_called()
    action.is_given_up = False
    action.cleanup()
    removed.assert_called_once()


def test_a_timer_that_runs_already_goes_on_and_ends_this_limit_before_it() -> None:
    """As Ansible has one for ANSIBLE_TASK_TIMEOUT."""
    fired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: fired.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 1)
        with pytest.raises(Expired), deadline(300):
            time.sleep(5)
        assert not fired
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 0.6
        time.sleep(1)
        assert fired == [signal.SIGALRM]
        with deadline(0):
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_ends_in_time_leaves_no_timer() -> None:
    handler = signal.getsignal(signal.SIGALRM)
    with deadline(300):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 200
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is handler


def test_a_handler_that_hangs_on_the_way_out_is_ended_too() -> None:
    """As subprocess.run waits for a process that it cannot end."""
    begun = time.monotonic()
    with pytest.raises(Expired), deadline(0.1):
        try:
            time.sleep(30)
        finally:
            time.sleep(30)
    assert time.monotonic() - begun < 15
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_host_that_hangs_when_its_temporary_files_are_removed_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ansible has no time limit for it, and the result is there already."""
    monkeypatch.setattr(ActionBase, "cleanup", lambda *_args: time.sleep(30))
    monkeypatch.setattr(engine_facts, "_CLEANUP", 0.1)
    begun = time.monotonic()
    Hanging().cleanup()
    assert time.monotonic() - begun < 15
