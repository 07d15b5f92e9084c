# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files are open, on which devices, and how."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import open_files
from ansible_collections.durable.dbhost.plugins.module_utils.engines.open_files import (
    OpenFiles,
    choose,
    opened,
    parse_fdinfo,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import Observation
from ansible_collections.durable.dbhost.plugins.module_utils.host.process_context import Places
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Processes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable

from ..fakes.fake_proc import DIRECT, DSYNC, MOUNTINFO, OTHER, RDWR, SYNC, WRONLY, FakeProcess, ProcHost

CONTAINER = "50 40 0:99 / / rw - overlay overlay rw\n51 50 0:88 /vol /var/lib rw - btrfs /dev/sdd rw\n"
EXE = "/usr/sbin/mysqld"


def look(host: ProcHost) -> tuple[list[dict[str, Any]], Observation]:
    """Return the rows of all processes of one program, and how complete they are."""
    processes, places = Processes(host), Places(host)
    family = processes.running(["mysqld"])
    return OpenFiles(host, places.mounts).rows(family, places.of(family[0]))


def rows(*files: tuple[str, int, int], **more: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one process with these files."""
    found, seen = look(ProcHost(FakeProcess(77, EXE, files=files, **more)))
    assert (seen.value, seen.reason) == ("complete", None)
    return [tuple(row.values()) for row in found]


@pytest.mark.fact(46)
def test_one_row_for_each_directory_device_and_way_of_opening() -> None:
    """/proc shows, without any login, which files an engine has open and how."""
    assert rows(
        ("/data/a.ibd", RDWR | DIRECT, 31),
        ("/data/b.ibd", RDWR | DIRECT, 31),
        ("/data/b.ibd", RDWR | DIRECT, 31),
        ("/data/c.ibd", RDWR, 31),
        ("/log/redo", RDWR | DIRECT | DSYNC, 32),
        ("/log/old", WRONLY | SYNC, 32),
        ("/log/bin", WRONLY | DSYNC, 32),
        # Its name looks like a directory of /data; the mount is another.
        ("/data/sub/x", RDWR, 32),
    ) == [
        ("/data", "8:17", "buffered", 1, "/data/c.ibd"),
        ("/data", "8:17", "direct", 2, "/data/a.ibd"),
        ("/data/sub", "8:33", "buffered", 1, "/data/sub/x"),
        ("/log", "8:33", "buffered dsync", 1, "/log/bin"),
        ("/log", "8:33", "buffered sync", 1, "/log/old"),
        ("/log", "8:33", "direct dsync", 1, "/log/redo"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "socket:[4711]",
        "pipe:[4712]",
        "anon_inode:[eventpoll]",
        "/memfd:x (deleted)",
        "/dev/shm/PostgreSQL.1",
        "/dev/null",
        "/dev/pts/0",
        "/proc/meminfo",
        "/sys/block/sda/stat",
    ],
)
def test_what_is_on_no_disk_is_left_out(path: str) -> None:
    assert rows((path, RDWR, 31), ("/data/x", RDWR, 31)) == [("/data", "8:17", "buffered", 1, "/data/x")]


def test_files_that_are_only_read_and_a_server_s_words_are_left_out() -> None:
    """They would make the mount of /usr or /var/log one that holds a database."""
    host = ProcHost(FakeProcess(77, EXE, files=(("/data/ro", 0, 31), ("/data", 0o200000, 31))))
    host.files["/proc/77/fdinfo/2"] = "pos:\t0\nflags:\t0102001\nmnt_id:\t22\n"
    assert host.link("/proc/77/fd/2") == "/var/log/words.log"
    assert look(host)[0] == []


@pytest.mark.fact(52)
def test_a_raw_device_is_told_by_its_own_number() -> None:
    host = ProcHost(FakeProcess(77, EXE, files=(("/dev/sdd1", RDWR | DIRECT, 24),)))
    host.files["/sys/class/block/sdd1/dev"] = "8:49\n"
    (row,), _seen = look(host)
    assert (row["device"], row["example"], row["opened"]) == ("8:49", "/dev/sdd1", "direct")


def test_files_without_a_name_are_left_out_and_names_that_say_so_are_not() -> None:
    host = ProcHost(
        FakeProcess(77, EXE, files=(("/tmp/ibX (deleted)", RDWR, 25), ("/data/a (deleted)", RDWR, 31)))
    )
    host.files["/data/a (deleted)"] = "a file of this name"
    found, seen = look(host)
    assert ([row["example"] for row in found], seen.value) == (["/data/a (deleted)"], "complete")


@pytest.mark.parametrize(
    ("more", "path", "real"),
    [
        (
            {"namespace": OTHER, "mountinfo": CONTAINER},
            "/var/lib/a (deleted)",
            "/proc/77/root/var/lib/a (deleted)",
        ),
        ({"root": "/jail"}, "/jail/a (deleted)", "/jail/a (deleted)"),
    ],
)
def test_names_are_looked_for_where_the_process_has_them(more: Any, path: str, real: str) -> None:
    host = ProcHost(FakeProcess(77, EXE, files=((path, RDWR, 51),), **more))
    assert look(host)[0] == []
    host.files[real] = ""
    assert [row["example"] for row in look(host)[0]] == [path]


def test_a_disk_that_does_not_answer_makes_a_name_uncertain_not_absent() -> None:
    host = ProcHost(FakeProcess(77, EXE, files=(("/data/a (deleted)", RDWR, 31),)))
    host.commands[("stat", "--printf=%n\\0", "--", "/data/a (deleted)")] = Unobservable(
        "no answer within 10 s"
    )
    found, seen = look(host)
    assert ([row["example"] for row in found], seen.value) == (["/data/a (deleted)"], "partial")
    assert "no answer" in str(seen.reason)


@pytest.mark.parametrize("name", ["a\nb", "caf\udce9", "a b", "-rf", "x\u2028y", "\\040"])
def test_names_may_be_anything(name: str) -> None:
    assert rows((f"/data/{name}/f", RDWR, 31)) == [
        (f"/data/{name}", "8:17", "buffered", 1, f"/data/{name}/f")
    ]


def test_a_container_s_files_are_on_the_devices_that_it_sees() -> None:
    found = rows(
        ("/var/lib/a", RDWR, 51),
        ("/x", RDWR, 50),
        # Opened in our namespace and handed over; and a mount that nobody has any more.
        ("/data/x", RDWR, 31),
        ("/gone/x", RDWR, 999),
        namespace=OTHER,
        mountinfo=CONTAINER,
    )
    # btrfs has numbers of its own: what mountinfo says is kept.
    assert [(row[0], row[1]) for row in found] == [
        ("/", "0:99"),
        ("/data", "8:17"),
        ("/gone", "unknown"),
        ("/var/lib", "0:88"),
    ]


def test_processes_of_one_instance_share_rows() -> None:
    shared = ("/data/a", RDWR, 31)
    host = ProcHost(
        FakeProcess(77, EXE, files=(shared,)),
        FakeProcess(78, EXE, ppid=77, files=(shared, ("/data/b", RDWR, 31))),
    )
    assert [(row["count"], row["example"]) for row in look(host)[0]] == [(2, "/data/a")]


def test_of_very_many_processes_some_are_looked_at_and_that_is_said() -> None:
    backends = [
        FakeProcess(pid, EXE, ppid=77, ticks=pid, files=((f"/data/{pid}", RDWR, 31),))
        for pid in range(100, 300)
    ]
    busy = FakeProcess(999, EXE, ppid=77, ticks=999, state="D", files=(("/log/busy", RDWR, 32),))
    (data, log), seen = look(ProcHost(FakeProcess(77, EXE), *backends, busy))
    assert (data["count"], data["example"], log["count"]) == (bounds.PROCESSES - 2, "/data/100", 1)
    assert (seen.value, seen.reason) == ("partial", "64 of 202 processes were examined")


def test_the_main_process_comes_first_then_those_at_work_then_the_oldest() -> None:
    states = {1: "S", 5: "S", 4: "S", 9: "R", 8: "D"}
    processes = Processes(
        ProcHost(*(FakeProcess(pid + 70, EXE, state=state, ticks=pid) for pid, state in states.items()))
    ).running(["mysqld"])
    assert [process.pid - 70 for process in choose(sorted(processes, key=lambda p: p.pid != 75))] == [
        5,
        8,
        9,
        1,
        4,
    ]


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [("fd", "unknown", "/proc/77/fd"), ("fd/3", "partial", "fd/3"), ("fdinfo/3", "partial", "fdinfo/3")],
)
def test_without_permission_files_are_unknown_never_none(name: str, word: str, said: str) -> None:
    host = ProcHost(FakeProcess(77, EXE, files=(("/data/a", RDWR, 31), ("/data/b", RDWR, 31))))
    host.deny(77, name)
    # The order of descriptors is that of text: what came before is kept.
    if word == "partial":
        host.magic["/proc/77/fd/10"] = "/log/x"
        host.files["/proc/77/fdinfo/10"] = "pos:\t0\nflags:\t02\nmnt_id:\t32\n"
    found, seen = look(host)
    assert (len(found), seen.value) == (1 if word == "partial" else 0, word)
    assert said in str(seen.reason)
    assert "Permission denied" in str(seen.reason)


def test_an_unreadable_child_process_makes_the_result_partial() -> None:
    """A writer process can have files open that the main process has not."""
    files = (("/data/a", RDWR, 31),)
    host = ProcHost(FakeProcess(77, EXE, files=files), FakeProcess(78, EXE, ppid=77, files=files))
    assert look(host)[1].value == "complete"
    host.deny(78, "fd")
    found, seen = look(host)
    assert (len(found), seen.value) == (1, "partial")
    assert "/proc/78/fd: Permission denied" in str(seen.reason)


@pytest.mark.parametrize("text", ["", "pos:\t0\n", "pos:\t0\nflags:\t09\nmnt_id:\t1\n", "flags:\t02\n"])
def test_fdinfo_of_another_shape_is_told(text: str) -> None:
    host = ProcHost(FakeProcess(77, EXE, files=(("/data/a", RDWR, 31),)))
    host.files["/proc/77/fdinfo/3"] = text
    found, seen = look(host)
    assert (found, seen.value) == ([], "unknown")
    with pytest.raises(ValueError, match=r"fdinfo|invalid"):
        parse_fdinfo(text)


def test_fdinfo_of_later_kernels_says_more() -> None:
    text = (
        "pos:\t0\nflags:\t0100002\nmnt_id:\t31\nino:\t77\nlock:\t1: POSIX  ADVISORY  WRITE 1 08:11:77 0 EOF\n"
    )
    assert parse_fdinfo(text) == (0o100002, "31")


@pytest.mark.parametrize("name", ["fd/3", "fdinfo/3"])
def test_a_file_that_is_closed_meanwhile_is_no_error(name: str) -> None:
    host = ProcHost(FakeProcess(77, EXE, files=(("/data/a", RDWR, 31), ("/log/b", RDWR, 32))))

    def close() -> str:
        host.magic.pop("/proc/77/fd/3", None)
        raise Unobservable("/proc/77/fdinfo/3: No such file or directory")

    host.files["/proc/77/fdinfo/3"] = close
    if name == "fd/3":
        names = host.names("/proc/77/fd")
        del host.magic["/proc/77/fd/3"]
        host.names = lambda path: names  # type: ignore[method-assign]
        host.files["/proc/self/mountinfo"] = MOUNTINFO
        found, seen = OpenFiles(host, Places(host).mounts).rows(*_one(host))
    else:
        found, seen = look(host)
    assert ([row["example"] for row in found], seen.value) == (["/log/b"], "complete")


def _one(host: ProcHost) -> Any:
    process = Processes(ProcHost(FakeProcess(77, EXE))).all[77]
    return [process], Places(host).of(process)


def test_without_the_main_process_nothing_is_known_of_its_files() -> None:
    """Another that ends meanwhile takes its files with it."""
    family, place = _one(ProcHost(FakeProcess(77, EXE)))
    host = ProcHost(FakeProcess(78, EXE))
    reader = OpenFiles(host, Places(host).mounts)
    assert reader.rows(family, place)[1].value == "unknown"
    here = Processes(host).all[78]
    assert reader.rows([here, *family], place)[1].value == "complete"


@pytest.mark.parametrize(
    ("machine", "direct"),
    [
        ("x86_64", 0o40000),
        ("i686", 0o40000),
        ("s390x", 0o40000),
        ("riscv64", 0o40000),
        ("aarch64", 0o200000),
        ("armv7l", 0o200000),
        ("ppc64le", 0o400000),
        ("mips", None),
        ("", None),
    ],
)
def test_flags_by_architecture(machine: str, direct: int | None) -> None:
    if direct is None:
        assert opened(0o2, machine) == "unknown"
        return
    assert opened(direct | RDWR, machine) == "direct"
    assert opened(direct | DSYNC, machine) == "direct dsync"
    assert opened(SYNC, machine) == "buffered sync"
    # O_LARGEFILE, O_DIRECTORY and O_NOFOLLOW are what O_DIRECT is elsewhere.
    assert opened(0o740000 & ~direct, machine) == "buffered"


@pytest.mark.parametrize(
    ("ways", "expected", "cause"),
    [
        (["direct dsync"], "yes", None),
        (["direct sync", "buffered dsync"], "yes", None),
        (["direct dsync", "direct"], "no", ("opened_as", {"path": "/data/1", "opened": "direct"})),
        (["unknown", "buffered"], "no", ("opened_as", {"path": "/data/1", "opened": "buffered"})),
        (["unknown"], "unknown", ("open_flags", {"path": "/data/0"})),
        (["direct dsync", "unknown"], "unknown", ("open_flags", {"path": "/data/0"})),
        ([], "unknown", ("no_log_open", {})),
    ],
)
def test_whether_all_of_its_files_are_open_for_synchronous_writes(
    ways: list[str], expected: str, cause: tuple[str, dict[str, str]] | None
) -> None:
    files = [open_files.Opened(f"/data/{number}", "8:1", way) for number, way in enumerate(ways)]
    found = open_files.write_through(files, "no_log_open")
    assert (found.value, found.because) == (expected, cause)


def test_this_machine_s_flags_are_those_of_the_table() -> None:
    """Measured: what open(2) is given is what the kernel shows."""
    host = Host()
    process = Processes(host).all[os.getpid()]
    places = Places(host)
    with tempfile.TemporaryDirectory() as directory:
        for word, flag in (("sync", os.O_SYNC), ("dsync", os.O_DSYNC), ("", 0)):
            descriptor = os.open(f"{directory}/f{word}", os.O_RDWR | os.O_CREAT | flag)
            try:
                found, _seen = OpenFiles(host, places.mounts).rows([process], places.of(process))
            finally:
                os.close(descriptor)
            mine = [row for row in found if row["directory"] == os.path.realpath(directory)]
            assert [row["opened"] for row in mine] == [f"buffered {word}".strip()]
            number = os.stat(directory).st_dev
            assert mine[0]["device"] == f"{os.major(number)}:{os.minor(number)}"


def test_only_so_many_open_files_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "OPEN_FILES", 20)
    files = tuple((f"/data/{number}", RDWR, 31) for number in range(15))
    host = ProcHost(*(FakeProcess(pid, EXE, files=files) for pid in (50, 51, 52)))
    found, seen = look(host)
    assert (found[0]["count"], seen.value) == (15, "partial")
    assert seen.reason == "process 51: 20 open files were examined, and there are more"
    assert not any(path.startswith("/proc/52/fd") for path in host.looked)


@pytest.mark.parametrize(("bound", "most"), [("ROWS", 4), ("OPEN_PATHS", 200)])
def test_only_so_many_rows_and_letters_are_kept(
    monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(bounds, bound, most)
    files = tuple((f"/data/{number:030}/file", RDWR, 31) for number in range(15))
    found, seen = look(ProcHost(FakeProcess(50, EXE, files=files)))
    assert (len(found), seen.value) == (4, "partial")
    assert "process 50: files in" in str(seen.reason)


def test_open_files_are_looked_at_as_long_as_there_is_time() -> None:
    files = tuple((f"/data/{number}", RDWR, 31) for number in range(15))
    host = ProcHost(FakeProcess(50, EXE, files=files))
    host.until = time.monotonic() - 1
    found, seen = look(host)
    assert (found, seen.value) == ([], "unknown")
    assert seen.reason == "process 50: the time for this examination was over"
