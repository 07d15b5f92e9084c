# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor of a scratch server: real processes and directories, which are gone after each kind of end."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.confined import Account
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import scratch, supervisor

#: Of another user, if this one is root.
OWNER = Account(65534, 65534) if os.geteuid() == 0 else Account(os.geteuid(), os.getegid())
#: Starts a process that leaves its session and its parent, and writes its number.
STRAY = [
    *("sh", "-c"),
    "setsid sh -c 'echo $$ > pid; exec sleep 100' & until [ -s pid ]; do sleep 0.05; done; cat pid",
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    """The directory of a mount."""
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def supervised(place: int, seconds: float = 60.0) -> AbstractContextManager[supervisor.Supervisor]:
    return supervisor.supervised("/srv", place, OWNER, "SELECT 1;\n", seconds)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_removal(directory: Path) -> None:
    deadline = time.monotonic() + 20
    while os.listdir(directory) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert os.listdir(directory) == []


def test_commands_run_in_a_directory_of_the_server_s_user_that_only_root_can_replace(
    tmp_path: Path, place: int
) -> None:
    with supervised(place) as found:
        assert found.run(["cat", "../durable-init.sql"], 10).stdout == "SELECT 1;\n"
        assert found.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10)[:2] == (3, "out\nerr\n")
        with pytest.raises(Unobservable, match="no-such-program: No such file"):
            found.run(["no-such-program"], 10)
        (outer,) = tmp_path.iterdir()
        inner = (outer / scratch.INNER).stat()
        assert (stat.S_IMODE(outer.stat().st_mode), outer.stat().st_uid) == (0o711, os.geteuid())
        assert (stat.S_IMODE(inner.st_mode), inner.st_uid) == (0o700, OWNER.uid)
        assert stat.S_IMODE((outer / scratch.INIT).stat().st_mode) == 0o644
        assert found.run(["stat", "--format=%i", "."], 10).stdout == f"{inner.st_ino}\n"
    assert os.listdir(tmp_path) == []


def test_the_server_s_output_explains_its_failure(place: int) -> None:
    with supervised(place) as found:
        assert found.server_output() == ""
        found.start(["sh", "-c", "echo it broke"])
        deadline = time.monotonic() + 10
        while not found.server_output() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found.server_output() == "it broke\n"


@pytest.mark.parametrize("end", ["normal", "exception", "signal"])
def test_after_each_end_no_process_and_no_file_remains(tmp_path: Path, place: int, end: str) -> None:
    stray = 0
    try:
        with scratch.signals_end(), supervised(place) as found:
            found.start(["sh", "-c", "trap '' QUIT; touch file; sleep 1000 & wait"])
            stray = int(found.run(STRAY, 10).stdout)
            assert is_alive(stray)
            if end == "exception":
                raise KeyError
            if end == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
    except (KeyError, scratch.Ended):
        assert end != "normal"
    assert not is_alive(stray)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("is_busy", [False, True])
def test_nothing_remains_after_the_measuring_process_is_killed(
    tmp_path: Path, place: int, is_busy: bool
) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with supervised(place) as found:
            found.start(["sleep", "1000"])
            os.write(writer, found.run(STRAY, 10).stdout.encode("ascii"))
            if is_busy:
                found.run(["sh", "-c", "touch started; exec sleep 1000"], 1000)
            signal.pause()
        os._exit(1)
    os.close(writer)
    stray = int(os.read(reader, 100))
    os.close(reader)
    assert is_alive(stray)
    (outer,) = tmp_path.iterdir()
    deadline = time.monotonic() + 20
    while is_busy and not (outer / scratch.INNER / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_for_removal(tmp_path)
    assert not is_alive(stray)


def test_a_command_and_the_whole_run_have_a_time_limit(tmp_path: Path, place: int) -> None:
    with (
        pytest.raises(Unobservable, match=r"/srv: sleep 1000: no result within 0.2 s"),
        supervised(place) as found,
    ):
        found.run(["sleep", "1000"], 0.2)
    assert os.listdir(tmp_path) == []
    with supervised(place, 0.3) as found:
        found.start(["sleep", "1000"])
        wait_for_removal(tmp_path)
        with pytest.raises(Unobservable, match="time limit is over"):
            found.run(["true"], 1)


def test_a_file_system_that_becomes_full_ends_it(
    tmp_path: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "is_enough_left", lambda _status: False)
    with pytest.raises(Unobservable, match=r"less than 5 % .* is free"), supervised(place) as found:
        found.run(["sleep", "1000"], 30)
    assert os.listdir(tmp_path) == []


class TestSweep:
    """Of a supervisor that was killed too."""

    def left_behind(self, place: int) -> supervisor.Directory:
        made = supervisor.Directory.create(place, OWNER, "x")
        file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=made.inner)
        os.close(file)
        return made

    def test_a_directory_that_no_supervisor_holds_is_removed(self, tmp_path: Path, place: int) -> None:
        made = self.left_behind(place)
        assert scratch.sweep(place) == []
        os.close(made.outer)
        assert scratch.sweep(place) == [made.name]
        assert os.listdir(tmp_path) == []
        os.close(made.inner)

    @pytest.mark.parametrize("foreign", ["a file", "no file of ours", "mode"])
    def test_another_directory_with_such_a_name_is_left(
        self, tmp_path: Path, place: int, foreign: Any
    ) -> None:
        made = self.left_behind(place)
        outer = tmp_path / made.name
        if foreign == "a file":
            (outer / "data").touch()
        elif foreign == "mode":
            outer.chmod(0o755)
        else:
            (outer / scratch.INIT).unlink()
        os.close(made.outer)
        os.close(made.inner)
        assert scratch.sweep(place) == []
        assert (outer / scratch.INNER / "file").exists()

    def test_a_link_in_it_is_not_followed(self, tmp_path: Path, place: int) -> None:
        made = self.left_behind(place)
        other = tmp_path / "other"
        other.mkdir()
        (other / "file").touch()
        os.symlink(other, tmp_path / made.name / scratch.INNER / "link")
        made.remove(place)
        assert (other / "file").exists()
        assert os.listdir(tmp_path) == ["other"]


def test_a_directory_that_another_user_puts_at_the_name_is_refused(
    tmp_path: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def replaced(name: str, mode: int, dir_fd: int) -> None:
        real(name, mode, dir_fd=dir_fd)
        (tmp_path / name / "file").touch()

    monkeypatch.setattr(scratch.os, "mkdir", replaced)
    with pytest.raises(scratch.Refused, match="has been replaced"):
        scratch.create_directory(place)
