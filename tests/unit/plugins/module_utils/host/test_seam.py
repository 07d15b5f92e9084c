# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seam to a real machine: durable writes, and commands that do not answer."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import stat
import struct
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds, seam
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host, Unobservable

from ..fakes.fake_host import FakeHost

HOST = Host()


def test_a_module_on_the_controller_has_the_memory_of_one_on_another_host() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (2**40, before[1]))
        Host()
        assert resource.getrlimit(resource.RLIMIT_AS) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the system calls that make a write durable, by the name of what they act on."""
    seen: list[str] = []
    names = {}
    real = {name: getattr(os, name) for name in ("fsync", "rename", "fchown", "fchmod", "unlink")}

    def name_of(descriptor: int) -> str:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return "directory"
        return names.setdefault((status.st_dev, status.st_ino), "temporary")

    def fsync(descriptor: int) -> None:
        # What a caller still holds in a buffer would not be on the medium.
        size = "" if name_of(descriptor) == "directory" else f" of {os.fstat(descriptor).st_size} bytes"
        seen.append(f"fsync {name_of(descriptor)}{size}")
        real["fsync"](descriptor)

    def record(name: str) -> None:
        def call(*arguments: object) -> None:
            seen.append(name)
            real[name](*arguments)

        monkeypatch.setattr(os, name, call)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("rename", "fchown", "fchmod", "unlink"):
        record(name)
    return seen


class TestWriteFile:
    def test_is_on_the_medium_before_and_after_it_gets_its_name(
        self, tmp_path: Path, calls: list[str]
    ) -> None:
        HOST.write_file(str(tmp_path / "x"), b"new")
        assert calls == ["fchmod", "fsync temporary of 3 bytes", "rename", "fsync directory"]

    def test_an_old_file_gives_its_owner_and_mode_before_the_sync(
        self, tmp_path: Path, calls: list[str]
    ) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"old")
        path.chmod(0o4640)
        before = path.stat()
        HOST.write_file(str(path), b"new")
        after = path.stat()
        assert calls == ["fchown", "fchmod", "fsync temporary of 3 bytes", "rename", "fsync directory"]
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
        assert path.read_bytes() == b"new"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_a_foreign_owner_stays(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.touch()
        os.chown(path, 1234, 5678)
        HOST.write_file(str(path), b"new")
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)

    def test_access_list_and_attributes_stay(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"old")
        # acl(5) as the kernel keeps it: the owner rw, user 1 r, the group r, mask r, others nothing.
        entries = ((1, 6, 2**32 - 1), (2, 4, 1), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 0, 2**32 - 1))
        access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        kept = {"system.posix_acl_access": access, "user.note": b"\0ours"}
        try:
            for name, value in kept.items():
                os.setxattr(path, name, value)
        except OSError as error:
            pytest.skip(f"this file system has none: {error}")
        HOST.write_file(str(path), b"new")
        assert path.read_bytes() == b"new"
        assert {name: os.getxattr(path, name) for name in kept} == kept

    def test_the_list_that_a_directory_gives_to_new_files_is_not_taken(self, tmp_path: Path) -> None:
        """Whoever may read new files here may not read this one, which was made otherwise."""
        path = tmp_path / "x"
        path.write_bytes(b"old")
        path.chmod(0o640)
        nobody = 2**32 - 1
        entries = ((1, 6, nobody), (2, 7, 1), (4, 5, nobody), (16, 7, nobody), (32, 5, nobody))
        default = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(tmp_path, "system.posix_acl_default", default)
        except OSError as error:
            pytest.skip(f"this file system has none: {error}")
        HOST.write_file(str(path), b"new")
        assert path.read_bytes() == b"new"
        assert "system.posix_acl_access" not in os.listxattr(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        HOST.write_file(str(tmp_path / "y"), b"new")
        assert "system.posix_acl_access" in os.listxattr(tmp_path / "y")

    def test_a_file_system_without_attributes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(_path: str) -> list[str]:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

        monkeypatch.setattr(os, "listxattr", none)
        path = tmp_path / "x"
        path.write_bytes(b"old")
        HOST.write_file(str(path), b"new")
        assert path.read_bytes() == b"new"

    @pytest.mark.parametrize("umask", [0o000, 0o077])
    def test_a_new_file_has_the_mode_asked_for_whatever_the_umask(self, tmp_path: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            HOST.write_file(str(tmp_path / "a/b/x"), b"new", mode=0o640)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a/b/x").stat().st_mode) == 0o640

    @pytest.mark.parametrize("umask", [0o000, 0o077])
    def test_what_a_command_makes_is_for_root_alone_to_write_whatever_the_umask(
        self, tmp_path: Path, umask: int
    ) -> None:
        """A trial of mount options made the directory of the originals."""
        before = os.umask(umask)
        try:
            HOST.change(["mkdir", "-p", str(tmp_path / "a/b")])
        finally:
            os.umask(before)
        assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")} == {0o755}

    @pytest.mark.parametrize("linked", [True, False])
    def test_what_is_no_regular_file_is_not_replaced(self, tmp_path: Path, linked: bool) -> None:
        """A link to /dev/null masks a unit: a run made a regular file of /dev/null."""
        stand_in, path = tmp_path / "null", tmp_path / "unit.service"
        os.mkfifo(stand_in)
        if linked:
            path.symlink_to(stand_in)
        with pytest.raises(ChangeFailed, match="not a regular file"):
            HOST.write_file(str(path if linked else stand_in), b"new")
        assert stand_in.is_fifo()
        assert sorted(tmp_path.iterdir()) == sorted([stand_in, *([path] if linked else [])])

    def test_a_link_stays_a_link_and_its_target_is_replaced(self, tmp_path: Path) -> None:
        target, link = tmp_path / "real/x", tmp_path / "x"
        target.parent.mkdir()
        target.write_bytes(b"old")
        link.symlink_to("real/x")
        HOST.write_file(str(link), b"new")
        assert os.readlink(link) == "real/x"
        assert target.read_bytes() == b"new"
        assert os.listdir(target.parent) == ["x"]

    @pytest.mark.parametrize("call", ["fchown", "fchmod", "fsync", "rename"])
    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_a_failure_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
    ) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"old")

        def fail(*_arguments: object) -> None:
            raise error

        monkeypatch.setattr(os, call, fail)
        expected = ChangeFailed if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected):
            HOST.write_file(str(path), b"new")
        assert os.listdir(tmp_path) == ["x"]
        assert path.read_bytes() == b"old"

    def test_what_could_not_be_read_back_is_not_written(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        Host().write_file(str(path), b"x" * bounds.OUTPUT)
        assert len(Host().read(str(path))) == bounds.OUTPUT
        with pytest.raises(ChangeFailed, match=rf"x: not changed: .* {bounds.OUTPUT + 1} bytes.*Fix: "):
            Host().write_file(str(path), b"y" * (bounds.OUTPUT + 1))
        assert Host().read(str(path)) == "x" * bounds.OUTPUT

    def test_a_failure_names_file_and_cause(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(ChangeFailed, match=r"/file/x: (Not a directory|File exists)"):
            HOST.write_file(str(tmp_path / "file/x"), b"new")


class TestRemoveFile:
    def test_the_directory_is_synced(self, tmp_path: Path, calls: list[str]) -> None:
        (tmp_path / "x").touch()
        HOST.remove_file(str(tmp_path / "x"))
        assert calls == ["unlink", "fsync directory"]
        assert os.listdir(tmp_path) == []

    def test_what_is_not_there_is_a_failure(self, tmp_path: Path) -> None:
        with pytest.raises(ChangeFailed, match="No such file"):
            HOST.remove_file(str(tmp_path / "x"))


class TestRead:
    @pytest.mark.parametrize(
        "content", [b"a\r\nb\rc\n", b"\xef\xbb\xbfa", b"\xff\xfe\x00", b"", b"x" * 2**20]
    )
    def test_every_byte_comes_back(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "x"
        path.write_bytes(content)
        text = HOST.read(str(path))
        HOST.write_file(str(path), text.encode("utf-8", "surrogateescape"))
        assert path.read_bytes() == content

    def test_what_cannot_be_read_says_why(self, tmp_path: Path) -> None:
        for read in (HOST.read, HOST.names):
            with pytest.raises(Unobservable, match="x: No such file or directory"):
                read(str(tmp_path / "x"))
        with pytest.raises(Unobservable, match="Is a directory"):
            HOST.read(str(tmp_path))


class TestWriteAttribute:
    def test_is_one_write_of_exactly_these_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written = []
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: written.append(data) or real(fd, data))
        (tmp_path / "x").touch()
        HOST.write_attribute(str(tmp_path / "x"), "write back")
        assert written == [b"write back"]

    def test_does_not_make_an_attribute_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ChangeFailed, match="x: writing 'a': No such file"):
            HOST.write_attribute(str(tmp_path / "x"), "a")
        assert os.listdir(tmp_path) == []


def test_a_file_that_is_too_long_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "OUTPUT", 100000)
    (tmp_path / "x").write_bytes(bytes(100001))
    with pytest.raises(Unobservable, match="x: longer than 100000 bytes"):
        HOST.read(str(tmp_path / "x"))


def test_what_is_no_file_is_not_read_and_nobody_waits_for_it(tmp_path: Path) -> None:
    """A pipe that another user has put in the place of a file holds nobody up."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(Unobservable, match="not a regular file"):
            HOST.read(path)


def test_a_file_that_a_link_to_dev_null_masks_has_an_empty_text(tmp_path: Path) -> None:
    """So systemd and udev read it: a masked drop-in made all options of its mount unknown."""
    (tmp_path / "site.conf").symlink_to("/dev/null")
    assert HOST.read(str(tmp_path / "site.conf")) == ""


class TestRun:
    def test_returns_all_that_was_said(self) -> None:
        result = HOST.run(["sh", "-c", "printf 'a\\377\\r\\n'; echo b >&2; exit 3"])
        assert result == (3, "a\udcff\r\n", "b\n")

    def test_speaks_one_language_and_finds_sbin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
        monkeypatch.setenv("PATH", "/nowhere")
        assert HOST.run(["sh", "-c", 'echo "$LC_ALL $PATH"']).stdout == "C /usr/sbin:/usr/bin:/sbin:/bin\n"

    def test_reads_nothing_from_the_terminal(self) -> None:
        assert HOST.run(["cat"]).stdout == ""

    def test_a_missing_command_is_named(self) -> None:
        with pytest.raises(Unobservable, match="no-such-command: No such file or directory"):
            HOST.run(["no-such-command", "-x"])

    @pytest.mark.parametrize(
        "script",
        [
            "exec sleep 60",
            "trap '' TERM INT HUP; sleep 60 & wait; sleep 60",
            # The child ends, but what it started holds on to the output.
            "sleep 60 & echo started",
            "exec >&- 2>&-; exec sleep 60",
            "while :; do echo flood; done",
        ],
        ids=["sleeps", "ignores SIGTERM", "leaves a child behind", "closes its output", "never stops"],
    )
    def test_a_command_that_hangs_costs_its_time_limit_and_is_ended(self, script: str) -> None:
        marker = f"HOST_TEST={uuid.uuid4()}"
        started = time.monotonic()
        with pytest.raises(Unobservable, match=r"no answer within 0.3 s"):
            HOST.run(["env", marker, "sh", "-c", script], timeout=0.3)
        assert time.monotonic() - started < 3
        deadline = time.monotonic() + 5
        while _running(marker) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _running(marker) == []

    def test_much_output_on_both_sides_does_not_block(self) -> None:
        script = "import sys; sys.stderr.write('e' * 300000); sys.stdout.write('o' * 300000)"
        result = HOST.run([sys.executable, "-c", script])
        assert (len(result.stdout), len(result.stderr)) == (300000, 300000)

    @pytest.mark.parametrize("script", ["yes", "yes >&2"])
    def test_a_command_that_says_too_much_is_ended(
        self, monkeypatch: pytest.MonkeyPatch, script: str
    ) -> None:
        monkeypatch.setattr(bounds, "OUTPUT", 100000)
        with pytest.raises(Unobservable, match=r"^sh -c .*: says more than 100000 bytes$"):
            HOST.run(["sh", "-c", f"exec {script}"])

    def test_a_command_gets_only_so_much_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # One line without an end is kept whole by whoever searches in lines.
        monkeypatch.setattr(bounds, "MEMORY", 64 * 2**20)
        result = HOST.run(["grep", "-a", "x", "/dev/zero"])
        assert (result.rc, "memory exhausted" in result.stderr) == (2, True)

    def test_nothing_is_run_when_the_time_for_all_is_over(self) -> None:
        host = Host()
        host.until = time.monotonic() + 0.3
        with pytest.raises(Unobservable, match="no answer within 0"):
            host.run(["sleep", "60"])
        with pytest.raises(Unobservable, match="true: not run: the time"):
            host.run(["true"])


class TestChange:
    def test_a_failure_shows_command_exit_code_and_words(self) -> None:
        with pytest.raises(ChangeFailed, match=r"^sh -c echo no >&2; exit 32: exit 32: no; fix"):
            HOST.change(["sh", "-c", "echo no >&2; exit 32"])

    def test_words_on_standard_output_count_when_there_are_no_others(self) -> None:
        with pytest.raises(ChangeFailed, match=r": exit 1: a b; fix"):
            HOST.change(["sh", "-c", "echo a; echo b; exit 1"])

    def test_a_change_can_be_given_variables_and_does_not_tell_them(self) -> None:
        script = 'test "$ISC_PASSWORD" = secret -a "$LC_ALL" = C'
        Host().change(["sh", "-c", script], environment={"ISC_PASSWORD": "secret"})
        with pytest.raises(ChangeFailed) as failed:
            Host().change(["sh", "-c", script], environment={"ISC_PASSWORD": "hidden"})
        assert "hidden" not in str(failed.value)

    def test_a_missing_command_is_a_failed_change(self) -> None:
        with pytest.raises(ChangeFailed, match="no-such-command"):
            HOST.change(["no-such-command"])


def test_the_fake_host_hides_the_real_one_wholly() -> None:
    public = [name for name in vars(Host) if not name.startswith("_")]
    assert [name for name in public if name not in vars(FakeHost)] == []


def test_exists_is_true_for_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    assert HOST.exists(str(tmp_path / "x"))
    assert not HOST.exists(str(tmp_path / "y"))


def _running(marker: str) -> list[str]:
    """Return the processes that have the marker in their environment and are not dead."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes()
            state = (directory / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in environment and state != "Z":
            found.append(directory.name)
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="only root can write as others")
class TestWriteFileAs:
    NOBODY = 65534

    @pytest.fixture
    def theirs(self) -> Iterator[Path]:
        """A directory of nobody's, which others reach."""
        path = Path(tempfile.mkdtemp(dir="/tmp"))
        path.chmod(0o755)
        (path / "theirs").mkdir()
        os.chown(path / "theirs", self.NOBODY, -1)
        yield path / "theirs"
        shutil.rmtree(path)

    def test_the_file_is_that_user_s(self, theirs: Path) -> None:
        path = theirs / "x"
        HOST.write_file(str(path), b"new", owner=self.NOBODY)
        HOST.write_file(str(path), b"newer", owner=self.NOBODY)
        assert path.read_bytes() == b"newer"
        assert path.stat().st_uid == self.NOBODY
        assert os.getuid() == 0

    @pytest.mark.parametrize("linked", ["file", "directory"])
    def test_a_link_leads_nowhere_that_user_may_not_write(self, theirs: Path, linked: str) -> None:
        outside = theirs.parent / "x"
        outside.write_bytes(b"root's")
        (theirs / "x").symlink_to(outside)
        (theirs / "up").symlink_to(theirs.parent)
        path = theirs / "x" if linked == "file" else theirs / "up/x"
        with pytest.raises(ChangeFailed, match="Permission denied, as user 65534"):
            HOST.write_file(str(path), b"new", owner=self.NOBODY)
        assert outside.read_bytes() == b"root's"

    def test_a_user_without_a_name_writes_nothing(self, theirs: Path) -> None:
        with pytest.raises(ChangeFailed, match="user 60999 has no name"):
            HOST.write_file(str(theirs / "x"), b"new", owner=60999)
        assert os.listdir(theirs) == []

    def test_a_file_is_removed_only_where_that_user_may(self, theirs: Path) -> None:
        for directory in (theirs, theirs.parent):
            (directory / "x").touch()
        HOST.remove_file(str(theirs / "x"), owner=self.NOBODY)
        assert os.listdir(theirs) == []
        (theirs / "up").symlink_to(theirs.parent)
        with pytest.raises(ChangeFailed, match="Permission denied, as user 65534"):
            HOST.remove_file(str(theirs / "up/x"), owner=self.NOBODY)
        assert (theirs.parent / "x").exists()

    def test_that_user_cannot_have_it_wait_for_ever(
        self, theirs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(seam, "CHANGE_TIMEOUT", 0.3)
        monkeypatch.setattr(seam, "_become", lambda owner: os.kill(os.getpid(), signal.SIGSTOP))
        with pytest.raises(ChangeFailed, match=r"no result within 0\.3 s, as user 65534"):
            HOST.write_file(str(theirs / "x"), b"new", owner=self.NOBODY)
