# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines end with their owner; processes stand in for both."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import watch
from lab.paths import MachineFiles


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that does nothing for a minute."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def watcher(owner: int, machine: int) -> subprocess.Popen[bytes]:
    """Start the program."""
    argv = [sys.executable, "-m", "lab.watch", str(owner), str(machine)]
    return subprocess.Popen(argv, cwd=watch.ROOT)


def test_a_machine_is_killed_when_its_owner_ends() -> None:
    with sleeper() as owner, sleeper() as machine, watcher(owner.pid, machine.pid) as watching:
        time.sleep(0.5)
        assert machine.poll() is None
        owner.kill()
        owner.wait()
        assert machine.wait(10.0) == -9
        assert watching.wait(10.0) == 0


def test_a_watcher_ends_with_the_machine() -> None:
    """And leaves its owner alone."""
    with sleeper() as owner, sleeper() as machine, watcher(owner.pid, machine.pid) as watching:
        machine.kill()
        machine.wait()
        assert watching.wait(10.0) == 0
        assert owner.poll() is None


def test_an_owner_that_is_gone_already_has_ended() -> None:
    with sleeper() as owner:
        gone = owner.pid
    with sleeper() as machine, watcher(gone, machine.pid):
        assert machine.wait(10.0) == -9


def test_only_what_has_an_owner_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that a person brings up stays."""
    files = MachineFiles(tmp_path)
    monkeypatch.delenv(watch.OWNER, raising=False)
    watch.end_with_owner(files)  # would miss the pid file
    with sleeper() as machine:
        files.pid.write_text(f"{machine.pid}\n")
        with sleeper() as owner:
            monkeypatch.setenv(watch.OWNER, str(owner.pid))
            watch.end_with_owner(files)
        assert machine.wait(10.0) == -9


def test_the_first_owner_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test run owns what the programs that it starts would own."""
    monkeypatch.setenv(watch.OWNER, "1")
    watch.own()
    assert os.environ[watch.OWNER] == "1"
    monkeypatch.delenv(watch.OWNER)
    watch.own()
    assert os.environ[watch.OWNER] == str(os.getpid())
