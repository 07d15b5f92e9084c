# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a restart a server counts as up if the same process runs at several looks in succession."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import Change
from ansible_collections.durable.dbhost.plugins.module_utils.engines import restart
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable

ENGINE = SimpleNamespace(NAME="mariadb")
NAMES = ["/var/lib/mysql"]
WRONG = [Change(NAMES[0], "sync_binlog", "running", "0", "1")]


class Server:
    """A stand-in of a server and its host: `pids` has the main process at each look, 0 for none; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pids: Callable[[int], int]) -> None:
        self.looks, self.pids = 0, pids
        monkeypatch.setattr(restart, "instances", lambda _host, _engine: self.found())

    def found(self) -> dict[str, Any]:
        """Return the instances at a look."""
        self.looks += 1
        pid = self.pids(self.looks)
        if pid < 0:
            raise Unobservable("/proc: gone")
        return {NAMES[0]: {"pids": [pid] if pid else []}}

    def run(self, argv: list[str]) -> None:
        """Wait."""
        assert argv == ["sleep", "1"]


def settle(server: Server, left: Callable[[], list[Change]] = list) -> None:
    """Wait for a server."""
    restart.settle(server, ENGINE, NAMES, left)  # type: ignore[arg-type]


def test_the_same_process_at_six_looks_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, lambda _look: 7)
    settle(server)
    assert server.looks == 6


@pytest.mark.parametrize("gone", [0, -1, 8])
def test_another_process_or_none_begins_the_count_again(monkeypatch: pytest.MonkeyPatch, gone: int) -> None:
    server = Server(monkeypatch, lambda look: gone if look == 5 else 7)
    settle(server)
    assert server.looks == 11


def test_a_server_that_starts_and_ends_repeatedly_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, lambda look: look)
    with pytest.raises(ChangeFailed, match="observed to start and end again and again after a restart"):
        settle(server)


def test_a_server_that_does_not_run_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, lambda _look: 0)
    with pytest.raises(ChangeFailed, match="/var/lib/mysql: not running after a restart"):
        settle(server)


def test_a_server_that_runs_with_another_value_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, lambda _look: 7)
    with pytest.raises(ChangeFailed, match=r"sync_binlog \(running\): observed 0, expected 1"):
        settle(server, lambda: WRONG)
