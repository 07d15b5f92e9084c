# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several things at a time."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.parallel import together


def test_what_hangs_holds_up_nobody() -> None:
    let_go, done = threading.Event(), []

    def act(name: str) -> None:
        if name == "hangs":
            let_go.wait(10)
        if name == "fails":
            raise ValueError("refused")
        done.append(name)

    assert together(["hangs", "fails", "works"], act, 0.2) == {
        "hangs": "hangs: not done within 0.2 s",
        "fails": "refused",
    }
    assert done == ["works"]
    let_go.set()


def test_without_threads_it_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[str] = []
    assert together(["a", "b"], done.append, 1.0) == {}
    assert done == ["a", "b"]


def test_nothing_is_lost_with_a_thread() -> None:
    def act(_name: str) -> None:
        raise SystemExit

    assert together(["a"], act, 1.0) == {"a": "SystemExit"}
