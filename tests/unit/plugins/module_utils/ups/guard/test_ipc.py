# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the guard hears and speaks: a real fifo, real processes, a real socket, and the hook as sh runs it."""

from __future__ import annotations

import os
import select
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import CHAINED, FIFO
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host
from ansible_collections.durable.dbhost.plugins.module_utils.ups import hook
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import state
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.ipc import Fifo, say, tell_manager
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.monitors import Watch, group

from ...fakes.small_host import SmallHost


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    found = Fifo(str(tmp_path / "notify"))
    found.make(0)
    yield found
    found.close()


def hook_at(directory: Path) -> Path:
    """Return the hook as a file, with its places below a directory."""
    text = hook.TEXT.replace(FIFO, str(directory / "notify")).replace(CHAINED, str(directory / "chained"))
    path = directory / "hook"
    path.write_text(text)
    path.chmod(0o755)
    return path


def call(path: Path, word: str = "ONBATT") -> subprocess.CompletedProcess[str]:
    """Call the hook as upsmon does."""
    environment = {"NOTIFYTYPE": word, "PATH": os.environ["PATH"]}
    argv = ["sh", "-c", f'{path} "UPS ups@localhost on battery"']
    return subprocess.run(argv, env=environment, timeout=10, check=False, capture_output=True, text=True)


def test_the_hook_reaches_the_guard(tmp_path: Path, fifo: Fifo) -> None:
    assert fifo.words() == []
    assert call(hook_at(tmp_path)).returncode == 0
    assert select.select([fifo.descriptor], [], [], 5)[0]
    assert fifo.words() == ["ONBATT"]
    # Nobody writes any more: it has not come to its end, and does not wake anybody.
    assert select.select([fifo.descriptor], [], [], 0)[0] == []


def test_the_hook_waits_for_no_guard(tmp_path: Path, fifo: Fifo) -> None:
    fifo.close()
    began = time.monotonic()
    assert call(hook_at(tmp_path)).returncode == 0
    (tmp_path / "notify").unlink()
    assert call(hook_at(tmp_path)).returncode == 0
    assert time.monotonic() - began < 5
    # And it leaves no file where the fifo was.
    assert not (tmp_path / "notify").exists()


def test_the_command_that_was_there_before_runs_too(tmp_path: Path, fifo: Fifo) -> None:
    (tmp_path / "chained").write_text(f"echo >{tmp_path}/ran before\n")
    assert call(hook_at(tmp_path)).returncode == 0
    assert (tmp_path / "ran").read_text() == "before UPS ups@localhost on battery\n"
    assert fifo.words() == ["ONBATT"]


def test_what_is_no_word_is_not_repeated(fifo: Fifo) -> None:
    os.write(fifo.descriptor, b"ONLINE\n\xff\xfe\n<0>rm -rf\nA" + b"A" * 100 + b"\n\n")
    assert fifo.words() == ["ONLINE", *["an unreadable word"] * 3]


@pytest.mark.parametrize(("given", "mode"), [(0, 0o600), (os.getgid() or 12345, 0o660)])
def test_only_the_monitors_group_may_write(fifo: Fifo, given: int, mode: int) -> None:
    try:
        fifo.give(given)
    except PermissionError:
        pytest.skip("needs to be root")
    seen = os.stat(fifo.path)
    assert (stat.S_IMODE(seen.st_mode), seen.st_gid if given else 0) == (mode, given)


def test_what_lies_in_its_place_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    (tmp_path / "notify").symlink_to(tmp_path / "other")
    found = Fifo(str(tmp_path / "notify"))
    assert not found.is_there()
    found.make(0)
    assert found.is_there()
    assert (tmp_path / "other").read_text() == ""
    os.unlink(found.path)
    assert not found.is_there()
    os.mkfifo(found.path)
    assert not found.is_there()
    found.close()


def test_the_manager_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "s"))
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "s"))
        tell_manager("READY=1")
        assert manager.recv(100) == b"READY=1"
    # A manager that does not hear, or none, is nobody's trouble.
    tell_manager("WATCHDOG=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "vsock:1:2")
    tell_manager("WATCHDOG=1")


def test_no_name_makes_another_line_of_the_journal_or_another_word_to_the_manager(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "/srv/x\n<0>kernel: panic\x1b[2J\u202e\udcff\nMAINPID=1"
    say(f"{name}: barriers are on")
    written = "/srv/x\\n<0>kernel: panic\\x1b[2J\\u202e\\xff\\nMAINPID=1"
    assert capfd.readouterr().err == f"<6>{written}: barriers are on\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "s"))
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "s"))
        tell_manager("STOPPING=1", f"STATUS={name}")
        assert manager.recv(200).decode().split("\n") == ["STOPPING=1", f"STATUS={written}"]


def test_the_end_of_a_process_is_heard_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    watch = Watch(Host(), {process.pid: state.identity(Host(), process.pid)[1]})
    assert watch.ended() == []
    assert select.select(watch.descriptors, [], [], 0)[0] == []
    process.kill()
    if watch.descriptors:
        assert select.select(watch.descriptors, [], [], 5)[0]
    deadline = time.monotonic() + 5
    while not watch.ended():
        assert time.monotonic() < deadline
    assert watch.ended() == [process.pid]
    process.wait()
    watch.close()
    assert watch.descriptors == []


def test_a_number_that_is_somebody_elses_by_now_is_an_end() -> None:
    watch = Watch(Host(), {os.getpid(): 1})
    assert watch.ended() == [os.getpid()]
    watch.close()


def test_the_group_is_that_of_the_process_without_rights() -> None:
    host = SmallHost()
    for pid, gid in ((10, 0), (11, 125)):
        host.files[f"/proc/{pid}/status"] = (
            f"Name:\tupsmon\nUid:\t0\t0\t0\t0\nGid:\t{gid}\t{gid}\t{gid}\t{gid}\n"
        )
        host.files[f"/proc/{pid}/stat"] = f"{pid} (upsmon) S 1 {'0 ' * 17}1 0\n"
    assert group(host, {10: 1, 11: 1}) == 125
    assert group(host, {10: 1}) == 0
    assert group(host, {12: 1}) == 0


def test_a_link_to_the_fifo_is_not_the_fifo(tmp_path: Path, fifo: Fifo) -> None:
    assert fifo.is_there()
    moved = tmp_path / "moved"
    Path(fifo.path).rename(moved)
    Path(fifo.path).symlink_to(moved)
    assert not fifo.is_there()
