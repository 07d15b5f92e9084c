# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A path is opened with the rights of the user who named it, and leads to no file of the kernel: real files, processes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Instance
from ansible_collections.durable.dbhost.plugins.module_utils.engines.managers import Managers
from ansible_collections.durable.dbhost.plugins.module_utils.host import (
    bounded_read,
    kernel_files,
    named_by,
    reader,
    seam,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.foreign import ACCOUNT, Identity
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Processes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable, Withheld

from ..fakes.fake_host import FakeHost

#: Users that are nobody here, and a group of EVE's.
EVE, BOB, TEAM = 54321, 54322, 54399
AS_EVE = Identity(EVE, EVE, (TEAM,))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A seam whose process is made in the test."""
    fresh = reader.Reader()
    monkeypatch.setattr(seam, "_READER", fresh)
    yield Host()
    fresh._abandon()


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory to which everybody can go."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


def put(path: Path, text: str = "secret", user: int = 0, group: int = 0, mode: int = 0o600) -> Path:
    path.write_text(text)
    os.chown(path, user, group)
    path.chmod(mode)
    return path


def text(host: Host, path: object, root: str = "") -> str | None:
    part = host.read_part(str(path), root, 100)
    return part.text if part else None


@as_root
class TestRights:
    def test_root_reads_no_file_that_the_user_who_named_it_may_not(self, host: Host, top: Path) -> None:
        path = put(top / "x")
        assert text(host, path) == "secret"
        with (
            named_by.one(host, AS_EVE),
            pytest.raises(Withheld, match=f"named by user {EVE}, who may not read"),
        ):
            text(host, path)
        assert text(host, path) == "secret"

    def test_nor_finds_out_what_is_in_a_directory_of_root(self, host: Host, top: Path) -> None:
        inner = top / "inner"
        inner.mkdir(mode=0o700)
        put(inner / "x", mode=0o644)
        with named_by.one(host, AS_EVE):
            for path in (inner / "x", inner / "none"):
                with pytest.raises(Withheld):
                    host.locate(str(path))
            with pytest.raises(Withheld):
                host.list_names(str(inner))
            with pytest.raises(Withheld):
                host.find_files(str(inner))
            with pytest.raises(seam.ChangeFailed, match="named by user"):
                host.sync(str(put(top / "y")))
            inner.chmod(0o711)
            assert text(host, inner / "x") == "secret"

    def test_groups_of_the_process_count(self, host: Host, top: Path) -> None:
        path = put(top / "x", group=TEAM, mode=0o640)
        with named_by.one(host, AS_EVE):
            assert text(host, path) == "secret"
        with named_by.one(host, Identity(EVE, EVE, ())), pytest.raises(Withheld):
            text(host, path)

    def test_both_who_named_and_who_chose_must_be_able_to(self, host: Host, top: Path) -> None:
        home = top / "home"
        home.mkdir()
        os.chown(home, BOB, BOB)
        put(home / "for_eve", user=EVE, mode=0o600)
        put(home / "for_bob", user=BOB, mode=0o600)
        put(home / "for_both", user=BOB, group=TEAM, mode=0o640)
        with named_by.one(host, AS_EVE):
            with pytest.raises(Unobservable, match=f"chosen by user {BOB}"):
                text(host, home / "for_eve")
            with pytest.raises(Withheld):
                text(host, home / "for_bob")
            assert text(host, home / "for_both") == "secret"

    def test_paths_in_a_file_that_root_named_are_named_by_its_owner(self, host: Host, top: Path) -> None:
        secret, config = put(top / "secret"), put(top / "conf", "include secret", EVE, EVE, 0o644)
        with named_by.one(host, None):
            assert bounded_read.read(host, str(secret)) == "secret"
            assert bounded_read.read(host, str(config)) == "include secret"
            with pytest.raises(Withheld):
                bounded_read.read(host, str(secret))
        assert bounded_read.read(host, str(secret)) == "secret"
        bounded_read.read(host, str(config))
        assert host.named_by is None


class TestTheKernel:
    @pytest.mark.parametrize(
        "path",
        ["/proc/kmsg", "/proc/self/environ", "/sys/kernel/uevent_seqnum", "/proc", "/sys", "/dev/fd/0"],
    )
    @pytest.mark.parametrize("who", [AS_EVE, named_by.UNKNOWN_USER])
    def test_only_root_names_its_files(self, host: Host, path: str, who: Identity) -> None:
        assert host.locate(path).status
        with named_by.one(host, who), pytest.raises(Unobservable, match="file system of the kernel"):
            host.locate(path)

    def test_no_link_leads_there(self, host: Host, top: Path) -> None:
        (top / "x").symlink_to("/proc/version")
        (top / "y").symlink_to("/proc/self")
        assert "Linux" in str(text(host, top / "x"))
        with named_by.one(host, named_by.UNKNOWN_USER):
            with pytest.raises(Unobservable, match="it leads to a proc file system of the kernel"):
                text(host, top / "x")
            assert host.linked_directories(str(top)) == []

    def test_root_of_a_container_is_not_root_here(self, host: Host) -> None:
        root = f"/proc/{os.getpid()}/root"
        assert text(host, "/etc/hostname", root) is not None
        with pytest.raises(Unobservable, match="file system of the kernel"):
            text(host, "/proc/version", root)

    def test_a_device_is_found_and_never_opened(self, host: Host) -> None:
        with named_by.one(host, named_by.UNKNOWN_USER):
            found = host.locate("/dev/null").status
            assert found and stat.S_ISCHR(found.mode)
            with pytest.raises(Unobservable, match="not a regular file"):
                text(host, "/dev/null")

    @pytest.mark.parametrize(
        ("path", "kind"), [("/proc", "proc"), ("/sys", "sysfs"), ("/", ""), ("/dev", "")]
    )
    def test_its_file_systems_are_known(self, path: str, kind: str) -> None:
        descriptor = os.open(path, os.O_PATH)
        try:
            assert kernel_files.kind(descriptor) == kind
        finally:
            os.close(descriptor)


class TestProcesses:
    def status(self, users: str, groups: str = "5 6 7 8", more: str = "9 10 ") -> Host:
        host = FakeHost()
        lines = f"Uid:\t{users}\nGid:\t{groups}\nFDSize:\t64\nGroups:\t{more}\n".replace(" ", "\t", 3)
        host.files["/proc/7/status"] = f"Name:\tx\n{lines}"
        return host

    def test_who_it_is(self) -> None:
        assert named_by.of_process(self.status("26 26 26 26"), 7) == Identity(26, 5, (9, 10))
        assert named_by.of_process(self.status("26 26 26 26", more=""), 7) == Identity(26, 5, ())
        assert named_by.of_process(self.status("0 0 0 0"), 7) is None

    @pytest.mark.parametrize(
        ("groups", "group"), [("7 42 42 42", 7), ("7 7 7 42", 7), ("0 7 7 7", 7), ("0 0 0 0", 0)]
    )
    def test_a_set_group_id_program_adds_no_rights_of_its_group(self, groups: str, group: int) -> None:
        assert named_by.of_process(self.status("26 26 26 26", groups), 7) == Identity(26, group, (9, 10))

    @pytest.mark.parametrize("users", ["26 0 0 0", "0 26 0 0", "0 0 26 0", "0 0 0 26"])
    def test_a_process_that_became_root_is_still_the_user_who_started_it(self, users: str) -> None:
        who = named_by.of_process(self.status(users), 7)
        assert who and who.user == 26

    @pytest.mark.parametrize("text", ["", "Uid:\t0\n", "Uid:\t0\t0\t0\t0\n", "Name:\tUid: 0 0 0 0\n"])
    def test_one_that_does_not_tell_is_not_root(self, text: str) -> None:
        host = FakeHost()
        host.files["/proc/7/status"] = text
        with pytest.raises(Unobservable, match="does not show its user"):
            named_by.of_process(host, 7)

    def test_rights_of_a_file_s_owner_are_those_of_the_account(self) -> None:
        host = FakeHost()
        with named_by.one(host, named_by.UNKNOWN_USER):
            named_by.owned(host, seam.Status(1, 1, EVE, 7, 0))
            assert host.named_by == Identity(EVE, ACCOUNT, ())
            named_by.owned(host, seam.Status(1, 1, 0, 0, 0))
            assert host.named_by == Identity(EVE, ACCOUNT, ())
        assert host.named_by is None


@as_root
@pytest.mark.parametrize("named", ["/proc/kmsg", "secret", "link"])
def test_a_process_that_is_called_as_a_server_has_root_read_nothing(
    host: Host, top: Path, named: str
) -> None:
    put(top / "secret", "SERVER_NAME secret\n")
    (top / "link").symlink_to("/proc/1/environ")
    path = named if named.startswith("/") else f"{top}/{named}"
    program = shutil.copy(os.path.realpath("/bin/sh"), top / "faircom")
    # It waits for its input; what follows is for FairCom DB, whose name it has.
    argv = ["setpriv", f"--reuid={EVE}", f"--regid={EVE}", "--clear-groups", str(program), "-c", "read x"]
    with subprocess.Popen([*argv, "CTSRVR_CFG", path], stdin=subprocess.PIPE, cwd="/") as child:
        time.sleep(0.5)
        assert child.poll() is None
        found = [one for one in Engines(host, ("faircom",)).instances() if one["pids"] == [child.pid]]
    (facts,) = found
    why = str(facts["settings"]["LOG_WRITETHRU"])
    assert "named by user" in why if named == "secret" else "proc file system of the kernel" in why
    assert facts["settings"]["LOG_WRITETHRU"]["persisted"] == "unknown"


@as_root
class TestAnotherProgram:
    """A process that is called as a server, and then runs a set-user-ID program of root's: one that becomes root wholly."""

    @pytest.fixture
    def child(self, top: Path) -> Iterator[subprocess.Popen[bytes]]:
        """It runs `faircom` until a line arrives, and then sudo's stand-in with arguments that name a secret."""
        put(top / "secret", "COMPATIBILITY LOG_WRITETHRU\n")
        source = "#include <unistd.h>\nint main(){setresgid(0,0,0);setresuid(0,0,0);for(;;)pause();}"
        compiler = shutil.which("gcc") or shutil.which("cc")
        assert compiler, "a C compiler is required to make a set-user-ID program"
        argv = [compiler, "-x", "c", "-o", str(top / "sudo"), "-"]
        subprocess.run(argv, input=source.encode(), check=True)
        (top / "sudo").chmod(0o4755)
        shutil.copy(os.path.realpath("/bin/sh"), top / "faircom")
        script = f"read x; exec {top}/sudo CTSRVR_CFG {top}/secret"
        argv = [
            "setpriv",
            f"--reuid={EVE}",
            f"--regid={EVE}",
            "--clear-groups",
            f"{top}/faircom",
            "-c",
            script,
        ]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, cwd="/") as child:
            wait_for(child, "faircom")
            yield child
            child.kill()

    def become_root(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin
        child.stdin.write(b"\n")
        child.stdin.flush()
        wait_for(child, "sudo")

    def test_before_its_arguments_are_read(self, host: Host, child: subprocess.Popen[bytes]) -> None:
        engines = Engines(host, ("faircom",))
        self.become_root(child)
        (facts,) = (one for one in engines.instances() if one["pids"] == [child.pid])
        assert facts["settings"]["LOG_WRITETHRU"]["persisted"] == "unknown"
        assert "LOG_WRITETHRU\n" not in str(facts)
        assert "/sudo, expected " in facts["evidence"]["config"]["reason"]

    def test_while_a_block_reads_it(self, host: Host, child: subprocess.Popen[bytes], top: Path) -> None:
        process = Processes(host).all[child.pid]
        with pytest.raises(Unobservable, match=r"expected .*/faircom"), named_by.by_process(host, process):
            self.become_root(child)
            with pytest.raises(Withheld):
                text(host, top / "secret")

    def test_after_the_facts_when_a_run_reads_it_by_its_id(
        self, host: Host, child: subprocess.Popen[bytes]
    ) -> None:
        assert [one["pids"] for one in Engines(host, ("faircom",)).instances()]
        self.become_root(child)
        with (
            pytest.raises(Unobservable, match=r"expected .*/faircom"),
            named_by.of_instance(host, [child.pid]),
        ):
            raise AssertionError("its paths would be opened")

    def test_a_process_that_was_never_listed_is_not_root(
        self, host: Host, child: subprocess.Popen[bytes]
    ) -> None:
        self.become_root(child)
        with named_by.of_instance(host, [child.pid]):
            assert host.named_by == named_by.UNKNOWN_USER

    def test_a_patroni_that_is_none(self, host: Host, child: subprocess.Popen[bytes]) -> None:
        processes = Processes(host)
        patroni = processes.all[child.pid]
        self.become_root(child)
        instance = Instance("postgresql", "x", directories=("/x",))
        found = Managers(host, processes)._names(patroni, instance)
        assert found and found.value == "unknown" and "/faircom; run again" in str(found.because)

    def test_another_process_of_the_same_id(self, host: Host, child: subprocess.Popen[bytes]) -> None:
        process = Processes(host).all[child.pid]
        with (
            pytest.raises(Unobservable, match="another process's"),
            named_by.by_process(host, process._replace(ticks=f"{process.ticks}1")),
        ):
            raise AssertionError("its paths would be opened")


def wait_for(child: subprocess.Popen[bytes], program: str) -> None:
    """Wait until a child runs a program, and for a moment in which that becomes who it is."""
    end = time.monotonic() + 10
    while not os.readlink(f"/proc/{child.pid}/exe").endswith(f"/{program}"):
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.2)
