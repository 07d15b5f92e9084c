# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time changes a host, and none goes by a look that another run has overtaken."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LOCK
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost

NOW = "2026-01-31T12:00:00Z"
#: Holds the lock until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from {package}.enforce import one_run
from {package}.host.seam import Host
one_run.LOCK = {lock!r}
with one_run.hold(Host(), "eve on db9", {now!r}, ["write_cache", "mssql"]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def host() -> FakeHost:
    """A host that no run has changed since it booted."""
    return FakeHost()


def hold(host: Host, looked_at: int | None = None) -> None:
    """Hold the lock and give it back."""
    with one_run.hold(host, "ann on desk", NOW, ["mount_options"], looked_at):
        pass


def test_a_look_before_any_run_is_good_for_the_first(host: FakeHost) -> None:
    assert one_run.last_run(host) == 0
    hold(host, 0)
    assert one_run.last_run(host) == 1
    hold(host, 1)


def test_what_another_run_has_changed_since_is_not_gone_by(host: FakeHost) -> None:
    looked_at = one_run.last_run(host)
    hold(host)
    with pytest.raises(
        ChangeFailed, match=r"by ann on desk, since 2026-\S+ \(mount_options\); nothing was changed"
    ):
        hold(host, looked_at)
    hold(host, one_run.last_run(host))


def test_a_look_while_a_run_changes_the_host_is_good_for_nothing(host: FakeHost) -> None:
    with one_run.hold(host, "ann on desk", NOW, []):
        looked_at = one_run.last_run(host)
    assert looked_at == one_run.CHANGING
    with pytest.raises(ChangeFailed, match="changed while or after it was collected"):
        hold(host, looked_at)


def test_a_second_run_is_told_who_holds_it(host: FakeHost) -> None:
    with (
        one_run.hold(host, "eve\x1b on db9", NOW, ["write_cache", "mssql"]),
        pytest.raises(ChangeFailed) as error,
    ):
        hold(host)
    assert "another run changes this host: eve\\x1b on db9, since 2026" in str(error.value)
    assert "(write_cache, mssql)" in str(error.value)
    hold(host)


#: Texts that no run has written: of another program, of an earlier release, spoilt, and longer than is read.
UNREADABLE = [
    "{",
    "null",
    "\n",
    "\0",
    '{"number": 3, "by": "x", "since": "", "reach": [], "process": ""}',
    "x" * 10**5,
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_that_no_run_wrote_blocks_no_run(host: FakeHost, text: str) -> None:
    host.files[LOCK] = text
    assert one_run.last_run(host) == one_run.UNREADABLE
    hold(host)
    hold(host, one_run.last_run(host))


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize("looked_at", [0, 1, 3, one_run.UNREADABLE, one_run.CHANGING])
def test_after_a_text_that_no_run_wrote_the_host_counts_as_changed_once(
    host: FakeHost, text: str, looked_at: int
) -> None:
    """Nobody knows how many runs have changed the host since it was read."""
    host.files[LOCK] = text
    with pytest.raises(ChangeFailed, match=r"its text cannot be read.*Nothing was changed.*Fix: run again"):
        hold(host, looked_at)
    with pytest.raises(ChangeFailed, match="changed while or after it was collected"):
        hold(host, looked_at)
    hold(host, one_run.last_run(host))


def test_a_holder_whose_text_cannot_be_read_still_excludes_others(host: FakeHost) -> None:
    host.files[LOCK] = "{"
    host.held.add(LOCK)
    with pytest.raises(ChangeFailed, match="another run changes this host: it has not recorded who it is"):
        hold(host)


def test_an_author_s_name_is_never_longer_than_is_read_back(host: FakeHost) -> None:
    with one_run.hold(host, "\u20ac" * 10**6, NOW, ["\u20ac" * 10**6] * 1000):
        pass
    assert one_run.last_run(host) == 1
    assert len(str(host.files[LOCK]).encode()) < 4096


class TestKernel:
    """With the kernel's own locks."""

    @pytest.fixture
    def lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A lock's path in a directory that is not there yet."""
        path = tmp_path / "run" / "lock"
        monkeypatch.setattr(one_run, "LOCK", str(path))
        return path

    @pytest.fixture
    def holder(self, lock: Path) -> Iterator[subprocess.Popen[str]]:
        """Another process, which holds the lock."""
        package = one_run.__name__.rpartition(".enforce")[0]
        root = str(Path(one_run.__file__).parents[3])
        bare = "plugins.module_utils"
        text = HOLDER.format(path=[root], package=bare, lock=str(lock), now=NOW)
        assert package.endswith(bare)
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout and process.stdout.readline() == "held\n"
            yield process
            process.kill()

    def test_the_lock_ends_with_its_process_however_that_ends(
        self, lock: Path, holder: subprocess.Popen[str]
    ) -> None:
        assert one_run.last_run(Host()) == one_run.CHANGING
        with pytest.raises(ChangeFailed, match="another run changes this host: eve on db9"):
            hold(Host())
        holder.kill()
        holder.wait()
        assert one_run.last_run(Host()) == 1
        hold(Host(), 1)

    def test_its_file_is_root_s_alone_and_no_link_is_followed(self, lock: Path, tmp_path: Path) -> None:
        hold(Host())
        assert lock.stat().st_mode & 0o777 == 0o600
        lock.unlink()
        lock.symlink_to(tmp_path / "other")
        with pytest.raises(ChangeFailed, match="Too many levels of symbolic links"):
            hold(Host())
        assert not (tmp_path / "other").exists()

    def test_no_child_keeps_it(self, lock: Path) -> None:
        """A server that a step starts lives on."""
        with one_run.hold(Host(), "ann", NOW, []):
            child = subprocess.Popen(["sleep", "60"], close_fds=False)
        try:
            hold(Host())
        finally:
            child.kill()
            child.wait()
        assert os.path.exists(lock)

    def test_a_process_that_only_tests_the_lock_is_waited_for(self, lock: Path) -> None:
        """An audit reads the number while a run starts."""
        hold(Host())
        reader = os.open(lock, os.O_RDONLY)
        fcntl.flock(reader, fcntl.LOCK_SH)
        ended = threading.Timer(0.2, os.close, [reader])
        ended.start()
        hold(Host(), 1)
        ended.join()

    def test_several_processes_read_the_number_at_once(self, lock: Path) -> None:
        hold(Host())
        reader = os.open(lock, os.O_RDONLY)
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert one_run.last_run(Host()) == 1
        os.close(reader)

    @pytest.mark.parametrize(
        "authors", [("ann", "eve on a host with a long name"), ("eve on a long name", "ann")]
    )
    def test_a_run_that_is_killed_at_any_byte_of_its_text_blocks_nobody(
        self, lock: Path, authors: tuple[str, str]
    ) -> None:
        """The first byte that is not written yet is the point of the kill. Numbers get a digit more."""
        for _run in range(9):
            with one_run.hold(Host(), authors[0], NOW, ["mount_options"]):
                pass
        old = lock.read_bytes()
        with one_run.hold(Host(), authors[1], NOW, ["write_cache"]):
            pass
        new = lock.read_bytes()
        assert len(new) >= len(old)
        assert new != old
        unreadable = 0
        for point in range(len(new) + 1):
            torn = new[:point] + old[point:]
            lock.write_bytes(torn)
            number = one_run.last_run(Host())
            told = {old.rstrip(): 9, new.rstrip(): 10}.get(torn.rstrip(), one_run.UNREADABLE)
            assert number == told, torn
            unreadable += told == one_run.UNREADABLE
            if number != 9:
                with pytest.raises(ChangeFailed, match="run again"):
                    hold(Host(), 9)
            hold(Host())
            hold(Host(), one_run.last_run(Host()))
        assert unreadable > 50

    def test_a_file_without_a_text_is_that_of_a_run_which_changed_nothing(self, lock: Path) -> None:
        """It was killed before its first write. Later texts replace each other, and the file is never empty again."""
        lock.parent.mkdir()
        lock.touch()
        hold(Host(), one_run.last_run(Host()))

    @pytest.mark.parametrize("path", ["/proc/durable/lock", "/dev/null/lock", "/sys/lock"])
    def test_a_lock_that_cannot_be_made_is_a_message(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(one_run, "LOCK", path)
        with pytest.raises(ChangeFailed, match=rf"{path}: the lock of this host cannot be taken: .*Fix: "):
            hold(Host())

    @pytest.mark.parametrize("call", ["flock", "pwrite", "pread"])
    def test_an_error_of_the_kernel_s_is_a_message(
        self, lock: Path, call: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_given: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(fcntl if call == "flock" else os, call, fail)
        with pytest.raises(ChangeFailed, match=r"lock: .*Input/output error. Nothing was changed. Fix: "):
            hold(Host())

    def test_a_full_file_system_is_a_message_and_the_rollback_timer_goes_on(self, tmp_path: Path) -> None:
        """A server's user fills /run with files of that server. In a mount namespace, with a tmpfs as /run."""
        answer = alone_with_a_tmpfs(FULL, tmp_path, "size=4k")
        assert answer["refused"] == (
            f"{tmp_path}/durable-dbhost/lock: the lock of this host cannot be taken: No space left on device."
            f" Nothing was changed. Fix: free space on {tmp_path} (df -h, df -i), then run again"
        )
        assert answer["ran"] == ["rollback timer"]
        # The run before read the host before the timer changed it.
        assert "its text cannot be read" in answer["stale"]
        assert answer["next"] == "ran"

    def test_a_file_system_without_inodes_or_for_reading_only_is_a_message(self, tmp_path: Path) -> None:
        why = alone_with_a_tmpfs(REFUSED, tmp_path, "nr_inodes=1")["refused"]
        assert "No space left on device. Nothing was changed. Fix: free space on" in why
        why = alone_with_a_tmpfs(REFUSED, tmp_path, "ro")["refused"]
        assert "Read-only file system. Nothing was changed. Fix: " in why


#: Both leave an answer in JSON on standard output.
START = """
import json, sys
from pathlib import Path
sys.path[:0] = {path!r}
from plugins.module_utils.enforce import one_run
from plugins.module_utils.host.seam import ChangeFailed, Host
one_run.LOCK = {run!r} + "/durable-dbhost/lock"
def attempt(*given, **more):
    try:
        with one_run.hold(Host(), "ann", "now", [], *given, **more):
            return "ran"
    except ChangeFailed as error:
        return str(error)
"""
REFUSED = """
print(json.dumps({"refused": attempt()}))
"""
FULL = """
looked_at, fill, ran = one_run.last_run(Host()), Path(one_run.LOCK).parents[1] / "file of a server", []
with open(fill, "wb", buffering=0) as handle:
    handle.write(b"x" * 4096)
refused = attempt(looked_at)
with one_run.hold(Host(), "rollback timer", "now", [], is_text_needed=False):
    ran.append("rollback timer")
fill.unlink()
stale = attempt(looked_at)
print(json.dumps({"refused": refused, "ran": ran, "stale": stale, "next": attempt(one_run.last_run(Host()))}))
"""


def alone_with_a_tmpfs(program: str, place: Path, options: str) -> dict[str, Any]:
    """Return the answer of a program that sees a tmpfs at a place, in a mount namespace that ends with it."""
    root = str(Path(one_run.__file__).parents[3])
    text = START.format(path=[root], run=str(place)) + program
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && exec "$3" -c "$4"'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", options, str(place), sys.executable, text]
    found: dict[str, Any] = json.loads(
        subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    )
    return found
