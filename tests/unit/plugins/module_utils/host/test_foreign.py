# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others own is read with their rights, inside their root, and never waited for: real files, users, attacks."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import foreign, reader, seam
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Host,
    NoAnswer,
    Unobservable,
)

#: Users that are nobody here.
EVE, BOB, DAEMON = 54321, 54322, 54323
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A seam whose process is made in the test: what the test replaces is replaced there too."""
    fresh = reader.Reader()
    monkeypatch.setattr(seam, "_READER", fresh)
    yield Host()
    fresh._abandon()


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory to which everybody can go, as they cannot to pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


def put(path: Path, text: str = "mine", user: int = 0, mode: int = 0o600) -> Path:
    path.write_text(text)
    if os.geteuid() == 0:
        os.chown(path, user, user)
    path.chmod(mode)
    return path


def home(top: Path, user: int = EVE, mode: int = 0o755, name: str = "home") -> Path:
    path = top / name
    path.mkdir()
    os.chown(path, user, user)
    path.chmod(mode)
    return path


def link(path: Path, target: object, user: int = EVE) -> Path:
    path.symlink_to(str(target))
    if os.geteuid() == 0:
        os.lchown(path, user, user)
    return path


def text(host: Host, path: object, root: str = "", limit: int = 100) -> str | None:
    part = host.read_part(str(path), root, limit)
    return part.text if part else None


def swapped(
    monkeypatch: pytest.MonkeyPatch, at: Callable[[str, int], bool], swap: Callable[[], None]
) -> None:
    """Have somebody act just before the process opens something for the first time."""
    real, done = os.open, []

    def opening(path: str, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        if not done and at(str(path), flags):
            done.append(path)
            swap()
        return real(path, flags, *mode, dir_fd=dir_fd)

    monkeypatch.setattr(foreign.os, "open", opening)


class TestReading:
    def test_a_part_from_either_end(self, host: Host, top: Path) -> None:
        path = put(top / "x", "abcdef")
        part = host.read_part(str(path), limit=2)
        assert part and (part.text, part.path, part.status.size) == ("ab", str(path), 6)
        ended = host.read_part(str(path), limit=2, at_end=True)
        assert ended and ended.text == "ef"
        assert text(host, path, limit=99) == "abcdef"
        whole = host.read_part(str(path), limit=99, at_end=True, flush=True)
        assert whole and whole.text == "abcdef"

    def test_what_is_not_there_is_none_and_a_file_is_no_directory(self, host: Host, top: Path) -> None:
        put(top / "x")
        for path in (top / "none", top / "none" / "below", top / "x" / "below"):
            assert text(host, path) is None
            assert host.locate(str(path)).status is None
        assert host.list_names(f"{top}/none") is None
        with pytest.raises(Unobservable, match="x: not a directory"):
            host.list_names(f"{top}/x")

    def test_names_in_a_directory(self, host: Host, top: Path) -> None:
        for name in ("b", ".a", "c\n\udcff"):
            put(top / name)
        assert host.list_names(str(top)) == sorted([".a", "b", "c\n\udcff"])

    def test_what_is_no_path(self, host: Host) -> None:
        with pytest.raises(Unobservable, match="it is no path"):
            host.locate("/etc/\0")

    def test_files_below_a_directory(self, host: Host, top: Path) -> None:
        (top / "a" / "b" / "c").mkdir(parents=True)
        for name in ("one.isl", "a/two.isl", "a/b/three.isl", "a/b/c/four.isl", "a/other"):
            put(top / name, "x" * len(name))
        link(top / "linked", top / "a")
        link(top / "linked.isl", "one.isl")
        assert host.find_files(str(top)) == ["one.isl"]
        assert host.find_files(str(top), depth=2, ending=".isl") == ["a/two.isl", "one.isl"]
        assert host.find_files(f"{top}/linked", depth=9, smallest=8) == [
            "b/c/four.isl",
            "b/three.isl",
            "two.isl",
        ]
        assert len(host.find_files(str(top), most=2, depth=9)) == 2
        assert host.find_files(f"{top}/none") == []
        with pytest.raises(Unobservable, match="not a directory"):
            host.find_files(f"{top}/a/other")

    def test_a_path_with_dots(self, host: Host, top: Path) -> None:
        put(top / "x")
        assert host.locate(f"/..{top}/./../{top.name}//x/").path == f"{top}/x"

    def test_bytes_and_names_come_back_as_they_are(self, host: Host, top: Path) -> None:
        path = top / "-n\n\udcff"
        path.write_bytes(b"a\xff\0\r\n")
        part = host.read_part(str(path))
        assert part and (part.path, part.content, part.text) == (str(path), b"a\xff\0\r\n", "a\udcff\0\r\n")

    @pytest.mark.parametrize("kind", ["pipe", "socket", "device", "directory"])
    def test_only_regular_files_are_opened(
        self, kind: str, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = top / "x"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(os.path.relpath(path))
        elif kind == "device":
            if os.geteuid() != 0:
                pytest.skip("only root can make one")
            # Whoever opens /dev/watchdog arms it. 10,130 is that one.
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(10, 130))
        else:
            path.mkdir()
        link(top / "errorlog", path)
        swapped(monkeypatch, lambda path, _flags: path.startswith("/proc/self/fd"), lambda: os._exit(9))
        for name in ("x", "errorlog"):
            with pytest.raises(Unobservable, match="not a regular file"):
                text(host, top / name)

    def test_a_file_that_is_swapped_for_a_device_at_the_last_step_is_read_all_the_same(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = put(top / "errorlog", "the log")
        os.mkfifo(top / "pipe")

        def swap() -> None:
            os.rename(top / "pipe", path)

        swapped(monkeypatch, lambda path, _flags: path.startswith("/proc/self/fd"), swap)
        assert text(host, path) == "the log"
        with pytest.raises(Unobservable, match="not a regular file"):
            text(host, path)

    def test_somebody_who_flips_between_link_and_file_never_makes_a_read_fail(
        self, host: Host, top: Path
    ) -> None:
        put(top / "one", "one", mode=0o644)
        script = (
            "import os,sys\nos.chdir(sys.argv[1])\n"
            "while True:\n os.symlink('one','t'); os.rename('t','x')\n"
            " open('t','w').write('two'); os.rename('t','x')\n"
        )
        link(top / "x", "one")
        with subprocess.Popen([sys.executable, "-c", script, str(top)]) as flipper:
            try:
                found = {text(host, top / "x") for _read in range(500)}
            finally:
                flipper.kill()
        assert found <= {"one", "two"}

    def test_a_link_that_was_changed_counts_as_a_change(self, host: Host, top: Path) -> None:
        old = put(top / "old")
        before = host.locate(str(old)).status
        time.sleep(0.02)
        link(top / "conf", old)
        after = host.locate(f"{top}/conf").status
        assert before and after and before.changed < after.changed == (top / "conf").lstat().st_ctime
        assert before.modified == after.modified


class TestLinks:
    @pytest.mark.parametrize("target", ["none", "/none", "../none/x", "x/below"])
    def test_one_that_leads_to_nothing_is_unknown(self, target: str, host: Host, top: Path) -> None:
        put(top / "x")
        link(top / "conf", target)
        for ask in (host.read_part, host.locate, host.list_names):
            with pytest.raises(Unobservable, match="conf: a link on the way leads to what is not there"):
                ask(f"{top}/conf")

    def test_what_is_not_there_behind_one_is_not_there(self, host: Host, top: Path) -> None:
        (top / "lib").mkdir()
        link(top / "usr", "lib")
        assert host.locate(f"{top}/usr/none/x") == (f"{top}/lib/none/x", None)

    def test_all_that_is_passed_on_the_way(self, host: Host, top: Path) -> None:
        (top / "lib").mkdir()
        put(top / "lib" / "x", user=BOB if os.geteuid() == 0 else os.geteuid(), mode=0o640)
        link(top / "usr", "lib", user=os.geteuid())
        passed = host.way(f"{top}/usr/x")
        above = [str(path) for path in reversed(top.parents)]
        assert list(passed) == [*above, f"{top}", f"{top}/usr", f"{top}/lib", f"{top}/lib/x"]
        for path, status in passed.items():
            info = os.lstat(path)
            assert status[:5] == (info.st_dev, info.st_ino, info.st_uid, info.st_gid, info.st_mode)
        with pytest.raises(Unobservable, match="none: No such file or directory"):
            host.way(f"{top}/usr/none")

    def test_directories_to_which_links_in_a_directory_lead(self, host: Host, top: Path) -> None:
        for name in ("data", "wal", "space"):
            (top / name).mkdir()
        put(top / "file")
        for name, target in (
            ("a", "../wal"),
            ("b", "a"),
            ("c", top / "space"),
            ("d", "../file"),
            ("e", "none"),
        ):
            link(top / "data" / name, target)
        (top / "data" / "own").mkdir()
        assert host.linked_directories(f"{top}/data") == [f"{top}/wal", f"{top}/space"]
        assert host.linked_directories(f"{top}/data", most=1) == [f"{top}/wal"]
        link(top / "data" / "round", "round")
        assert host.linked_directories(f"{top}/data", most=1) == [f"{top}/wal"]

    def test_round_and_round(self, host: Host, top: Path) -> None:
        link(top / "a", "b")
        link(top / "b", "a")
        for number in range(foreign.MOST_LINKS + 1):
            link(top / f"l{number}", f"l{number + 1}" if number < foreign.MOST_LINKS else "x")
        put(top / "x", "far", mode=0o644)
        for name in ("a", "a/x", "l0"):
            with pytest.raises(Unobservable, match="too many levels of symbolic links"):
                text(host, top / name)
        assert text(host, top / "l1") == "far"

    @pytest.mark.parametrize("target", ["/etc/secret", "../../../../../etc/secret", "up/../../etc/secret"])
    def test_a_container_s_lead_into_it(self, target: str, host: Host, top: Path) -> None:
        root = top / "root"
        (root / "etc").mkdir(parents=True)
        (root / "up").mkdir()
        put(root / "etc" / "secret", "the container's")
        link(root / "conf", target, user=0)
        found = host.read_part("/conf", str(root), 100)
        assert found and (found.text, found.path) == ("the container's", "/etc/secret")

    def test_one_that_dangles_in_its_container_is_not_looked_for_here(self, host: Host, top: Path) -> None:
        put(top / "secret", "the host's", mode=0o644)
        root = top / "root"
        root.mkdir()
        link(root / "conf", top / "secret")
        with pytest.raises(Unobservable, match="a link on the way leads to what is not there"):
            text(host, "/conf", str(root))

    def test_a_directory_that_is_moved_out_of_a_container_meanwhile(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`..` of what was moved would be outside."""
        root = top / "root"
        (root / "a" / "b").mkdir(parents=True)
        put(root / "x", "the container's")
        put(top / "x", "the host's")
        link(root / "conf", "a/b/../../x", user=0)
        swapped(
            monkeypatch,
            lambda path, _flags: path == "x",
            lambda: os.rename(root / "a" / "b", top / "b"),
        )
        assert text(host, "/conf", str(root)) == "the container's"


@as_root
class TestRights:
    def test_root_reads_no_secret_through_another_s_link(self, host: Host, top: Path) -> None:
        secret = put(top / "shadow", "root:$6$word")
        eve = home(top)
        for name, target in (("my.cnf", secret), ("up.cnf", "../shadow"), ("round.cnf", "../home/../shadow")):
            link(eve / name, target)
            with pytest.raises(Unobservable, match=rf"chosen by user {EVE}, who may not read it") as refused:
                text(host, eve / name)
            assert "$6$" not in str(refused.value)
        secret.chmod(0o644)
        assert text(host, eve / "my.cnf") == "root:$6$word"

    def test_nor_what_lies_in_a_directory_that_is_closed_to_that_user(self, host: Host, top: Path) -> None:
        closed = top / "root"
        closed.mkdir(mode=0o700)
        put(closed / "x.cnf", mode=0o644)
        eve = home(top)
        link(eve / "my.cnf", closed / "x.cnf")
        link(eve / "conf.d", closed)
        link(eve / "up", "../root/..")
        for ask in (text, lambda host, path: host.locate(str(path))):
            with pytest.raises(Unobservable, match="may not read it"):
                ask(host, eve / "my.cnf")
        with pytest.raises(Unobservable, match="may not read it"):
            host.list_names(f"{eve}/conf.d")
        top.chmod(0o700)
        with pytest.raises(Unobservable, match="may not read it"):
            host.list_names(f"{eve}/up")

    def test_nor_through_a_second_name_of_it(self, host: Host, top: Path) -> None:
        """Where fs.protected_hardlinks is 0, anybody can give any file a name of his own."""
        eve = home(top)
        os.link(put(top / "shadow"), eve / "my.cnf")
        with pytest.raises(Unobservable, match="may not read it"):
            text(host, eve / "my.cnf")

    def test_below_a_directory_each_is_read_as_its_owner(self, host: Host, top: Path) -> None:
        eve = home(top)
        put(home(eve, DAEMON, 0o700, "db") / "x", user=DAEMON)
        put(home(eve, 0, 0o700, "of root") / "x")
        assert host.find_files(str(eve), depth=2) == ["db/x", "of root/x"]
        link(top / "to eve", "home")
        closed = home(top, 0, 0o700, "closed")
        link(eve / "away", closed)
        with pytest.raises(Unobservable, match=f"chosen by user {EVE}"):
            host.find_files(f"{top}/to eve/away")

    def test_what_a_user_may_read_is_read(self, host: Host, top: Path) -> None:
        eve = home(top, mode=0o700)
        put(eve / "own", user=EVE)
        link(eve / "my.cnf", "own")
        assert text(host, eve / "own") == text(host, eve / "my.cnf") == "mine"

    def test_a_link_of_root_s_is_followed_with_root_s_rights(self, host: Host, top: Path) -> None:
        put(top / "alternative")
        link(top / "my.cnf", "alternative", user=0)
        assert text(host, top / "my.cnf") == "mine"

    def test_a_user_s_rights_stay_behind_a_link(self, host: Host, top: Path) -> None:
        """Eve leads into Bob's directory, in which Bob keeps what she may not read."""
        eve, bob = home(top), home(top, BOB, name="bob")
        put(bob / "x", user=BOB)
        link(eve / "my.cnf", bob / "x")
        with pytest.raises(Unobservable, match=f"chosen by user {EVE}"):
            text(host, eve / "my.cnf")

    def test_a_directory_is_its_owner_s_wherever_it_lies(self, host: Host, top: Path) -> None:
        """A database's files in a person's home."""
        eve = home(top)
        data = home(eve, DAEMON, 0o700, "db")
        put(data / "x.fdb", user=DAEMON)
        assert text(host, data / "x.fdb") == "mine"

    @pytest.mark.parametrize(("mode", "readable"), [(0o1777, True), (0o777, False), (0o755, True)])
    def test_where_everybody_may_write_anybody_may_have_put_it(
        self, mode: int, readable: bool, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(foreign, "are_links_protected", lambda: True)
        shared = home(top, 0, mode, "shared")
        put(shared / "x")
        link(shared / "of eve", top / "secret")
        put(top / "secret")
        if readable:
            assert text(host, shared / "x") == "mine"
        else:
            with pytest.raises(Unobservable, match="may not read it"):
                text(host, shared / "x")
        if mode != 0o755:
            with pytest.raises(Unobservable, match="may not read it"):
                text(host, shared / "of eve")

    def test_where_links_are_not_protected_a_sticky_directory_is_like_any_other(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shared = home(top, 0, 0o1777, "shared")
        put(shared / "x")
        monkeypatch.setattr(foreign, "are_links_protected", lambda: False)
        with pytest.raises(Unobservable, match="may not read it"):
            text(host, shared / "x")

    def test_where_a_group_may_write_what_it_may_read_is_read(self, host: Host, top: Path) -> None:
        shared = home(top, 0, 0o775, "shared")
        os.chown(shared, 0, DAEMON)
        path = put(shared / "x", mode=0o640)
        with pytest.raises(Unobservable, match="may not read it"):
            text(host, path)
        os.chown(path, 0, DAEMON)
        path.chmod(0o640)
        assert text(host, path) == "mine"

    def test_in_a_container_with_users_of_its_own_its_root_reads_what_is_its_users(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And nothing of this host's that its root may have mounted there."""
        users = [(0, 100000, 65536)]
        monkeypatch.setattr(foreign, "_PROC", str(top))
        monkeypatch.setattr(foreign, "_users_of", lambda _process: users)
        monkeypatch.setattr(
            foreign, "_inside", lambda _process, user: foreign.Identity(user, foreign._NOBODY, ())
        )
        root = home(top, 100000, 0o755, "root")
        inner = home(root, 100999, 0o700, "data")
        put(inner / "postgresql.conf", user=100999)
        put(root / "of its root", user=100000)
        put(root / "etc-shadow", user=0)
        put(root / "of a person", user=BOB)
        put(root / "for all", user=0, mode=0o644)
        where = str(root)
        assert text(host, "/data/postgresql.conf", where) == text(host, "/of its root", where) == "mine"
        assert text(host, "/for all", where) == "mine"
        for path in ("/etc-shadow", "/of a person"):
            with pytest.raises(Unobservable, match="chosen by user 100000, who may not read it"):
                text(host, path, where)

    def test_users_and_directory_are_of_one_process_and_the_directory_is_opened_first(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its number may be another's by then, and a process can take users of its own at any moment."""
        monkeypatch.setattr(foreign, "_PROC", str(top))
        for name, users in (("7", f"0 {EVE} 1\n"), ("of another", "0 0 4294967295\n")):
            process = home(top, EVE, name=name)
            root = home(process, EVE, name="root")
            put(root / "my.cnf", "root's own")
            (process / "uid_map").write_text(users)
            (process / "status").write_text(f"Uid:\t0\t{EVE}\t0\t0\nGid:\t0\t7\t0\t0\nGroups:\t \n")

        def swap() -> None:
            os.rename(top / "7", top / "gone")
            os.rename(top / "of another", top / "7")

        swapped(monkeypatch, lambda path, _flags: path == "uid_map", swap)
        with pytest.raises(Unobservable, match=f"chosen by user {EVE}, who may not read it"):
            text(host, "/my.cnf", f"{top}/7/root")

    @pytest.mark.parametrize("users", ["0 1000 1", "1000 1000 1", "0 1000 1\n1 100000 65536"])
    def test_whoever_makes_a_namespace_is_its_root(self, users: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Any user can make one, and mount there what he may not read."""
        monkeypatch.setattr(foreign, "_lines_of", lambda _process, _name: users.split("\n"))
        tree = foreign._Tree(7)
        assert (tree._chief, tree._has(1000), tree._has(0)) == (1000, True, False)

    def test_what_is_in_a_namespace_that_a_user_made(self, host: Host, top: Path) -> None:
        """A real one: Eve has put a file of root's at the place of her configuration."""
        eve = home(top)
        put(top / "shadow", "root:$6$word")
        put(eve / "my.cnf", user=EVE)
        put(eve / "own.cnf", user=EVE)
        script = f"mount --bind {top}/shadow {eve}/my.cnf && echo ready && exec sleep 60"
        argv = ["setpriv", f"--reuid={EVE}", f"--regid={EVE}", "--clear-groups", "--"]
        with subprocess.Popen(
            [*argv, "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            try:
                assert child.stdout
                if child.stdout.readline() != b"ready\n":
                    pytest.skip("no user namespaces here")
                root = f"/proc/{child.pid}/root"
                assert Path(f"{root}{eve}/my.cnf").read_text() == "root:$6$word"
                assert text(host, eve / "own.cnf", root) == "mine"
                with pytest.raises(Unobservable, match=f"chosen by user {EVE}, who may not read it"):
                    text(host, eve / "my.cnf", root)
            finally:
                child.kill()

    def test_a_container_that_ends_meanwhile_is_unknown(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(foreign, "_PROC", str(top))
        with pytest.raises(Unobservable, match="No such file"):
            text(host, "/etc/passwd", f"{top}/4711/root")
        root = home(top, EVE, name="root")
        put(root / "x", user=EVE)
        (top / "uid_map").write_text("0 0 4294967295\n")
        with pytest.raises(Unobservable, match="its process cannot be read: No such file"):
            text(host, "/x", str(root))
        (top / "status").write_text(f"Uid:\t0\t{EVE}\t0\t0\nGid:\t0\t7\t0\t0\nGroups:\t8 9 \n")
        assert text(host, "/x", str(root)) == "mine"
        os.chown(root / "x", 0, 9)
        (root / "x").chmod(0o640)
        assert text(host, "/x", str(root)) == "mine"

    def test_a_process_that_reads_as_a_user_is_root_again_for_the_next(self, host: Host, top: Path) -> None:
        eve = home(top)
        put(eve / "x", user=EVE)
        put(top / "own")
        link(eve / "bad", top / "own")
        assert text(host, eve / "x") == text(host, top / "own") == "mine"
        with pytest.raises(Unobservable):
            text(host, eve / "bad")
        assert text(host, top / "own") == "mine"


class TestTime:
    def test_a_disk_that_hangs_is_given_up_and_the_next_question_is_answered(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(top / "hung")
        put(top / "well")
        swapped(monkeypatch, lambda path, _flags: path == "hung", lambda: time.sleep(60))
        with pytest.raises(NoAnswer, match=r"hung: no answer within 0\.2 s"):
            host.read_part(f"{top}/hung", timeout=0.2)
        assert text(host, top / "well") == "mine"

    def test_when_the_time_for_all_is_over_nothing_is_asked(self, host: Host) -> None:
        host.until = time.monotonic() - 1
        with pytest.raises(Unobservable, match="the time for all queries of this host was over"):
            host.locate("/etc")

    def test_a_process_that_was_ended_is_made_anew(self, host: Host, top: Path) -> None:
        put(top / "x")
        assert text(host, top / "x") == "mine"
        os.kill(seam._READER._pid, signal.SIGKILL)
        os.waitpid(seam._READER._pid, 0)
        with pytest.raises(NoAnswer):
            text(host, top / "x")
        assert text(host, top / "x") == "mine"

    def test_the_child_of_one_that_asks_has_a_process_of_its_own(self, host: Host, top: Path) -> None:
        put(top / "x")
        assert text(host, top / "x") == "mine"
        before = seam._READER._pid
        child = os.fork()
        if child == 0:
            fine = text(host, top / "x") == "mine" and seam._READER._pid != before
            seam._READER._abandon()
            os._exit(0 if fine else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert text(host, top / "x") == "mine"
        assert seam._READER._pid == before

    def test_many_threads_get_their_own_answers(self, host: Host, top: Path) -> None:
        for number in range(4):
            put(top / str(number), str(number))
        wrong: list[object] = []

        def ask(number: int) -> None:
            wrong.extend(
                found for _time in range(50) if (found := text(host, top / str(number))) != str(number)
            )

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_nobody_waits_longer_for_another_s_question(self, host: Host, top: Path) -> None:
        with seam._READER._lock, pytest.raises(NoAnswer, match=r"no answer within 0\.1 s"):
            host.locate(str(top), timeout=0.1)

    def test_it_ends_with_its_parent_and_keeps_no_output_open(self, top: Path) -> None:
        """Whoever runs a module waits for the end of its output, also where a disk hangs."""
        put(top / "x")
        script = (
            "import os,sys\n"
            f"sys.path.insert(0, {str(Path(__file__).resolve().parents[4] / 'unit')!r})\n"
            "import conftest\n"
            "from ansible_collections.durable.dbhost.plugins.module_utils.host import foreign, seam\n"
            "import time\n"
            "real = os.open\n"
            "def hang(path, *rest, **more):\n"
            "    time.sleep(60) if path == 'x' else None\n"
            "    return real(path, *rest, **more)\n"
            "foreign.os.open = hang\n"
            "seam._READER._abandon = lambda: None\n"
            "try:\n"
            f"    seam.Host().locate({str(top / 'x')!r}, timeout=0.2)\n"
            "except seam.NoAnswer:\n"
            "    print('given up', seam._READER._pid)\n"
        )
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
        )
        assert done.stdout.startswith("given up")
        assert time.monotonic() - started < 20
        os.kill(int(done.stdout.split()[-1]), signal.SIGKILL)


class TestSync:
    def test_a_file_and_its_file_system(self, host: Host, top: Path) -> None:
        put(top / "x")
        link(top / "conf", "x")
        host.sync(f"{top}/conf")
        host.sync(f"{top}/conf", whole=True)
        host.sync(str(top), whole=True)

    @pytest.mark.parametrize("whole", [False, True])
    def test_a_pipe_or_nothing_is_not_opened(self, whole: bool, host: Host, top: Path) -> None:
        os.mkfifo(top / "pipe")
        for name, why in (("pipe", "not a regular file"), ("none", "it is not there")):
            with pytest.raises(ChangeFailed, match=why):
                host.sync(f"{top}/{name}", whole=whole, timeout=5)

    def test_it_has_a_time_limit(self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        put(top / "x")
        monkeypatch.setattr(reader.os, "fsync", lambda _descriptor: time.sleep(60))
        with pytest.raises(ChangeFailed, match=r"it was not synced within 0\.2 s"):
            host.sync(f"{top}/x", timeout=0.2)

    def test_where_nobody_can_be_asked_the_system_s_own_word_is_told(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_process() -> int:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        put(top / "x")
        monkeypatch.setattr(seam, "_READER", reader.Reader())
        monkeypatch.setattr(reader.os, "fork", no_process)
        with pytest.raises(
            ChangeFailed, match=r"x: it could not be synced: Resource temporarily unavailable"
        ):
            host.sync(f"{top}/x")

    def test_why_a_whole_file_system_could_not_be_synced_is_told(
        self, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(reader, "syncfs", full)
        found = reader.answer_to(reader.Question("sync", str(top), flush=True))
        assert found.error == "No space left on device"


@as_root
class TestGiving:
    """The owner of a file in another user's directory is set by the descriptor of the file that was assessed."""

    @staticmethod
    def give(host: Host, path: Path) -> None:
        status = host.locate(str(path)).status
        assert status
        host.give_file(str(path), status, EVE, EVE)

    @pytest.fixture(autouse=True)
    def _protected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign, "are_links_protected", lambda: True)

    def test_a_file_that_its_user_can_read_is_given_and_its_text_and_mode_stay(
        self, host: Host, top: Path
    ) -> None:
        path = put(home(top) / "x", mode=0o644)
        self.give(host, path)
        found = path.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (EVE, EVE, 0o644)
        assert path.read_text() == "mine"

    @pytest.mark.parametrize("mode", [0o600, 0o640])
    def test_a_file_that_its_user_cannot_read_is_not_given(self, host: Host, top: Path, mode: int) -> None:
        path = put(home(top) / "x", mode=mode)
        with pytest.raises(ChangeFailed, match=r"x: its owner could not be set: .*may not read it"):
            self.give(host, path)
        assert path.stat().st_uid == 0

    def test_a_file_with_a_second_name_is_not_given(self, host: Host, top: Path) -> None:
        secret = put(top / "passwd", mode=0o644)
        path = home(top) / "x"
        os.link(secret, path)
        with pytest.raises(ChangeFailed, match="it may have another name"):
            self.give(host, path)
        assert secret.stat().st_uid == 0

    def test_without_protected_hard_links_nothing_is_given(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(foreign, "are_links_protected", lambda: False)
        path = put(home(top) / "x", mode=0o644)
        with pytest.raises(ChangeFailed, match=r"fs\.protected_hardlinks"):
            self.give(host, path)
        assert path.stat().st_uid == 0

    def test_a_file_or_link_that_took_its_place_is_not_given(self, host: Host, top: Path) -> None:
        of_eve, passwd = home(top), put(top / "passwd", mode=0o644)
        path = put(of_eve / "x", mode=0o644)
        status = host.locate(str(path)).status
        assert status
        path.unlink()
        link(path, passwd)
        with pytest.raises(ChangeFailed, match="another file is there since it was assessed"):
            host.give_file(str(path), status, EVE, EVE)
        assert passwd.stat().st_uid == 0

    def test_a_link_that_comes_while_it_is_opened_leads_to_nothing_that_is_given(
        self, host: Host, top: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        of_eve, passwd = home(top), put(top / "passwd", mode=0o644)
        path = put(of_eve / "x", mode=0o644)
        status = host.locate(str(path)).status
        assert status
        host_of_attack = Host()
        fresh = reader.Reader()
        monkeypatch.setattr(seam, "_READER", fresh)

        def exchange() -> None:
            path.unlink()
            link(path, passwd)

        # After the path was walked, before the file itself is opened for reading.
        swapped(monkeypatch, lambda name, _flags: name.startswith("/proc/self/fd/"), exchange)
        with pytest.raises(ChangeFailed, match="it may have another name"):
            host_of_attack.give_file(str(path), status, EVE, EVE)
        fresh._abandon()
        assert passwd.stat().st_uid == 0

    def test_a_directory_is_not_given(self, host: Host, top: Path) -> None:
        path = home(top)
        with pytest.raises(ChangeFailed, match="not a regular file"):
            self.give(host, path)
