# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run as another user, with real programs and attacks by that user."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import server_help, versions
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    server as postgresql_server,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import confined, keyring
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result, Unobservable

from ..fakes.fake_proc import ProcHost

HOST = Host()
#: The server's user: nobody, who has a name.
EVE = 65534
GROUP = 4711
_JOIN, _GET_ID, _SESSION = 1, 0, -3

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory that root alone can change."""
    with tempfile.TemporaryDirectory(dir="/srv") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def eves(top: Path) -> Path:
    """A directory of Eve's in it."""
    path = top / "eve"
    path.mkdir()
    os.chown(path, EVE, EVE)
    return path


def program(path: Path, script: str, owner: int = 0) -> str:
    """Write a program."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    path.chmod(0o755)
    os.chown(path, owner, owner)
    return str(path)


def run(argv: list[str], groups: tuple[int, ...] = (), **variables: str) -> Result:
    """Run a command as Eve."""
    return HOST.run(confined.command(HOST, confined.Account(EVE, EVE, groups), argv, variables))


def keyctl(*arguments: int) -> int:
    """Call keyctl(2)."""
    number = ctypes.c_long(keyring._number() or -1)
    return int(keyring._library().syscall(number, *(ctypes.c_long(word) for word in arguments)))


@as_root
class TestConfined:
    def test_it_has_the_user_s_ids_and_nothing_of_this_process(
        self, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "of-root")
        monkeypatch.setenv("HOME", "/root")
        show = program(top / "show", "cat /proc/self/status; pwd; env")
        lines = run([show], (GROUP,), OURS="x").stdout.splitlines()
        words = {line.partition(":")[0]: line.partition(":")[2].split() for line in lines}
        assert words["Uid"] == words["Gid"] == [str(EVE)] * 4
        assert words["Groups"] == [str(GROUP)]
        assert words["NoNewPrivs"] == ["1"]
        assert int(words["CapEff"][0], 16) & ~confined._GUARD_BIT == 0
        environment = dict(line.split("=", 1) for line in lines if "=" in line)
        assert {*environment} - {"PWD", "_", "SHLVL"} == {"LC_ALL", "PATH", "OURS"}
        assert "/" in lines

    def test_it_has_no_groups_of_this_process(self, top: Path) -> None:
        show = program(top / "show", "id -G")
        assert run([show]).stdout == f"{EVE}\n"
        by_name = confined.command(HOST, confined.account(HOST, EVE), [show])
        assert HOST.run(by_name).stdout == f"{EVE}\n"

    def test_it_does_not_possess_the_keys_of_root_s_session(self, top: Path) -> None:
        show = program(top / "show", "cat /proc/keys")

        def attack() -> tuple[str, str]:
            assert keyctl(_JOIN, 0) > 0
            library, name = keyring._library(), b"durable-secret"
            add_key = ctypes.c_long({219: 217, 250: 248, 271: 269, 280: 278}[keyring._number() or 0])
            assert (
                library.syscall(add_key, b"user", name, b"x", ctypes.c_size_t(1), ctypes.c_long(_SESSION)) > 0
            )
            own = subprocess.run(["cat", "/proc/keys"], check=True, capture_output=True, text=True)
            return own.stdout, run([show]).stdout

        own, theirs = in_thread(attack)
        # A child of this process possesses it.
        assert "durable-secret" in own
        assert "durable-secret" not in theirs
        assert "_ses" in theirs

    def test_this_process_keeps_its_own_session_keyring(self) -> None:
        before = keyctl(_GET_ID, _SESSION, 0)
        assert before > 0
        HOST.run(["true"])
        assert keyctl(_GET_ID, _SESSION, 0) == before

    def test_no_other_process_of_the_user_writes_to_its_memory(self, top: Path, eves: Path) -> None:
        """A confined server could have its code run there."""
        if not confined._against_tracing(HOST):
            pytest.skip("NOT RUN: this container has no CAP_WAKE_ALARM")
        wait = (
            f"echo $$ > {eves}/new; mv {eves}/new {eves}/pid; while [ ! -e {eves}/go ]; do sleep 0.02; done"
        )
        answers: list[Result] = []
        child = threading.Thread(target=lambda: answers.append(run([program(top / "wait", wait)])))
        child.start()
        try:
            deadline = time.monotonic() + 5
            while not (eves / "pid").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            pid = (eves / "pid").read_text().strip()
            attack = ["sh", "-c", f"exec 3<>/proc/{pid}/mem"]
            argv = ["setpriv", f"--reuid={EVE}", f"--regid={EVE}", "--clear-groups", "--", *attack]
            result = subprocess.run(argv, check=False, capture_output=True, text=True)
        finally:
            (eves / "go").touch()
            child.join()
        assert result.returncode != 0 and "denied" in result.stderr.lower()
        assert answers[0].rc == 0

    @pytest.mark.parametrize("owner", [EVE, 1000])
    def test_a_program_of_the_user_s_is_not_run(self, top: Path, eves: Path, owner: int) -> None:
        mark = eves / "mark"
        tool = program(top / "tool", f"touch {mark}", owner)
        with pytest.raises(Unobservable, match=f"{tool} may be changed by others than root"):
            run([tool])
        assert not mark.exists()
        os.chown(tool, 0, 0)
        run([tool])
        assert mark.exists()

    def test_a_psql_of_the_server_s_user_is_not_run(self, top: Path, eves: Path) -> None:
        """A real server's process, as far as the modules check it."""
        binaries, mark = eves / "bin", eves / "mark"
        program(binaries / "psql", f"touch {mark}; echo '{{}}'", EVE)
        shutil.copy("/bin/sleep", binaries / "postgres")
        os.chown(binaries, EVE, EVE)
        argv = ["setpriv", f"--reuid={EVE}", f"--regid={EVE}", "--clear-groups", "--", f"{binaries}/postgres"]
        with subprocess.Popen([*argv, "60"]) as child:
            try:
                while os.readlink(f"/proc/{child.pid}/exe") != f"{binaries}/postgres":
                    time.sleep(0.01)
                pid_file = f"{child.pid}\n{eves}\n1\n5432\n{eves}\n\n\nready\n"
                (eves / "postmaster.pid").write_text(pid_file, encoding="ascii")
                os.chown(eves / "postmaster.pid", EVE, EVE)
                with pytest.raises(Unobservable):
                    login = postgresql_server.login(HOST, child.pid, str(eves))
                    postgresql_server.ask(HOST, login, child.pid)
            finally:
                child.kill()
        assert not mark.exists()

    def test_arguments_and_variables_of_a_server_s_process_reach_no_program(
        self, top: Path, eves: Path
    ) -> None:
        """mariadbd --help loads the library that --plugin-load-add names."""
        said = eves / "said"
        server = program(top / "mariadbd", f'echo "$@" > {said}; env >> {said}')
        version = versions.release("10.11.6-MariaDB")
        assert version
        stolen = ["--plugin-load-add=evil.so", f"--plugin-dir={eves}", "--innodb-flush-log-at-trx-commit=1"]
        variables = {"LD_PRELOAD": f"{eves}/evil.so", "HOME": str(eves)}
        server_help.ask(HOST, server, stolen, {"HOME": str(eves)}, [str(EVE), str(EVE)], version)
        text = said.read_text()
        assert text.startswith("--datadir=/ --help --verbose\n")
        assert "evil" not in text and "HOME" not in text
        # An option file of that user's would name the library.
        said.unlink()
        (eves / ".my.cnf").write_text("[mysqld]\nplugin_load_add = evil\n")
        (eves / "my.cnf").write_text("[mysqld]\nplugin_load_add = evil\n")
        for arguments, given in (([], variables), ([f"--defaults-file={eves}/my.cnf"], {})):
            server_help.ask(HOST, server, arguments, given, [str(EVE), str(EVE)], version)
            assert not said.exists()


def in_thread(act: Callable[[], Any]) -> Any:
    """Return what a function returns in a thread: its keyrings end with that."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    assert found
    return found[0]


def test_nothing_runs_as_root_here() -> None:
    with pytest.raises(Unobservable, match="does not run as root"):
        confined.command(ProcHost(), confined.Account(0, 0), ["/bin/true"])


def test_a_user_who_is_in_no_database_has_no_account() -> None:
    host = ProcHost()
    for said in ("", "x:x:7\n", "x:x:7:²::/:\n"):
        host.commands["getent", "passwd", "7"] = said
        with pytest.raises(Unobservable, match="user 7 has no account"):
            confined.account(host, 7)
    host.commands["getent", "passwd", "7"] = "x:x:7:8::/:/bin/sh\n"
    assert confined.account(host, 7) == confined.Account(7, 8)
    host.commands["getent", "passwd", "eve"] = "eve:x:9:8::/:/bin/sh\n"
    assert confined.account(host, "eve") == confined.Account(9, 8)


def test_on_a_machine_whose_keyctl_is_unknown_nothing_runs_as_another_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyring, "_NUMBERS", {})
    host = ProcHost()
    host.files["/bin/true"] = ""
    with pytest.raises(Unobservable, match=r"/bin/true: not run as user 7, .* keyctl\(2\) on .* is unknown"):
        confined.command(host, confined.Account(7, 8), ["/bin/true"])
    assert HOST.run(["true"]).rc == 0


def test_without_ctypes_nothing_runs_as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "_library", lambda: None)
    assert keyring.missing() == "this Python has no ctypes"
    assert HOST.run(["true"]).rc == 0


class Library:
    """A C library whose system calls end with an error."""

    def __init__(self, error: int) -> None:
        self.error = error

    def syscall(self, *_arguments: Any) -> int:
        ctypes.set_errno(self.error)
        return -1


@pytest.mark.parametrize(
    ("error", "runs"),
    [(errno.ENOSYS, True), (errno.EPERM, True), (errno.EDQUOT, False), (errno.ENOMEM, False)],
)
def test_without_a_new_session_keyring_nothing_runs_unless_there_are_no_keys(
    error: int, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "_library", lambda: Library(error))
    if runs:
        assert HOST.run(["true"]).rc == 0
        return
    with pytest.raises(Unobservable, match=f"true: no new session keyring: {os.strerror(error)}"):
        HOST.run(["true"])


def test_a_command_whose_start_is_interrupted_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    start = keyring.start

    def interrupted(act: Callable[[], None]) -> None:
        start(act)
        raise KeyboardInterrupt

    monkeypatch.setattr(keyring, "start", interrupted)
    marker = f"60.{os.getpid()}"
    with pytest.raises(KeyboardInterrupt):
        HOST.run(["sleep", marker])
    deadline = time.monotonic() + 5
    search = ["pgrep", "-f", f"sleep {marker}"]
    while subprocess.run(search, check=False, capture_output=True).returncode == 0:
        assert time.monotonic() < deadline


def test_what_cannot_be_started_says_so_from_its_thread() -> None:
    with pytest.raises(Unobservable, match="no-such-program: No such file or directory"):
        HOST.run(["no-such-program"])


def test_without_another_thread_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(Unobservable, match="can't start new thread"):
        HOST.run(["true"])
