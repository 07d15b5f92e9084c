# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How files are found and read without waiting for a disk, and who has them open."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird_files import (
    MOST_FILES,
    Files,
    Lock,
    Status,
    parse_locks,
    take_apart,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird_header import LENGTH
from ansible_collections.durable.dbhost.plugins.module_utils.host import Host, Result, Unobservable

from ..fake_firebird import DEVICE, FakeDatabase, FirebirdHost

ODD = "/data/a\n==> /data/b.fdb <==\n"


def test_the_beginnings_of_files_in_one_command_for_each_directory() -> None:
    host = FirebirdHost(a=FakeDatabase(), b=FakeDatabase(flags=0))
    host.add(**{"/log/c": FakeDatabase(), ODD: FakeDatabase(), "/data/caf\udce9": FakeDatabase()})
    found = Files(host).beginnings([*host.databases, "/data/gone"])
    assert {path: database.page() for path, database in host.databases.items()} == {
        path: page for path, page in found.items() if isinstance(page, bytes)
    }
    assert found["/data/gone"] == "head: cannot open '/data/gone' for reading: No such file or directory"
    host.asked.clear()
    Files(host).beginnings(["/data/a.fdb", "/data/b.fdb", "/log/c"])
    assert [argv[0] for argv in host.asked] == ["head", "head"]


def test_a_disk_that_hangs_keeps_no_other_back() -> None:
    host = FirebirdHost(a=FakeDatabase())
    host.add(**{"/log/b": FakeDatabase()})
    host.hung = ("/log",)
    files = Files(host)
    assert "no answer within 10 s" in str(files.beginnings(host.databases)["/log/b"])
    assert "no answer within 10 s" in str(files.statuses(host.databases)["/log/b"])
    assert isinstance(files.beginnings(host.databases)["/data/a.fdb"], bytes)
    assert files.statuses(host.databases)["/data/a.fdb"] == Status(DEVICE, 4711, 150, 150, 0o100660)


def test_short_files_mislead_nobody() -> None:
    """A file can hold what looks like the name of the next one."""
    host = FirebirdHost(a=FakeDatabase(content=b"x\n==> /data/b.fdb <==\n"), b=FakeDatabase())
    found = Files(host).beginnings(host.databases)
    assert found == {path: database.page() for path, database in host.databases.items()}


def test_a_file_cannot_pretend_to_be_the_next_one() -> None:
    """An empty file, and one whose content ends with what head prints before it."""
    mark = b"\n==> /data/b <==\n"
    content = b"x" * (LENGTH - len(mark)) + mark
    assert take_apart(b"==> /data/a <==\n" + mark + content, [b"/data/a", b"/data/b"]) is None


@given(st.lists(st.binary(max_size=LENGTH + 10), max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_what_head_prints_is_taken_apart_or_not_at_all(contents: list[bytes], there: list[bool]) -> None:
    names = [b"/data/%d" % number for number in range(len(contents))]
    said = b""
    for name, content, is_there in zip(names, contents, there):
        if is_there:
            said += (b"\n" if said else b"") + b"==> " + name + b" <==\n" + content[:LENGTH]
    whole = all(len(content) >= LENGTH for content, is_there in zip(contents, there) if is_there)
    expected = [content[:LENGTH] if is_there else None for content, is_there in zip(contents, there)]
    found = take_apart(said, names)
    assert found == expected or not whole
    # Whoever gets all of them gets the right ones.
    assert found is None or None in found or found == expected


def test_of_a_container_paths_are_those_that_it_sees() -> None:
    root = "/proc/50/root"
    host = FirebirdHost()
    host.add(**{f"{root}/db/a.fdb": FakeDatabase()})
    files = Files(host, root)
    assert files.search("/db") == ["/db/a.fdb"]
    assert list(files.beginnings(["/db/a.fdb"])) == ["/db/a.fdb"]
    assert isinstance(files.statuses(["/db/a.fdb"])["/db/a.fdb"], Status)


def test_the_search_is_bounded() -> None:
    host = FirebirdHost()
    argv = ("find", "-H", "/data", "-maxdepth", "8", "-type", "f", "-size", "+255k", "-print0")
    host.commands[argv] = "".join(f"/data/{number}\0" for number in range(MOST_FILES + 1))
    with pytest.raises(Unobservable, match="name a directory closer"):
        Files(host).search("/data")
    host.commands[argv] = Result(1, "/data/1\0", "find: '/data/x': Permission denied\n")
    with pytest.raises(Unobservable, match="Permission denied"):
        Files(host).search("/data")


def test_a_real_directory(tmp_path: Path) -> None:
    """With the real tools: find, head and stat."""
    big, small, odd = tmp_path / "below" / "a.fdb", tmp_path / "small.fdb", tmp_path / "b\n==> x <==\n"
    big.parent.mkdir()
    for path in (big, odd):
        path.write_bytes(FakeDatabase().page().ljust(300 * 1024, b"\0"))
    small.write_bytes(FakeDatabase().page())
    (tmp_path / "link").symlink_to(big)
    files = Files(Host())
    assert files.search(str(tmp_path)) == sorted([str(big), str(odd)])
    pages = files.beginnings([str(big), str(odd), str(tmp_path / "gone")])
    assert pages[str(big)] == pages[str(odd)] == FakeDatabase().page()
    assert "No such file" in str(pages[str(tmp_path / "gone")])
    status = files.statuses([str(tmp_path / "link"), str(tmp_path / "gone"), "/dev/null"])
    info = os.stat(big)
    assert status[str(tmp_path / "link")] == Status(
        info.st_dev, info.st_ino, info.st_uid, info.st_gid, info.st_mode
    )
    assert "No such file" in str(status[str(tmp_path / "gone")])
    null = status["/dev/null"]
    assert isinstance(null, Status)
    assert not null.is_readable


def test_a_real_lock(tmp_path: Path) -> None:
    """flock(2), as Firebird locks its databases."""
    path = tmp_path / "a.fdb"
    path.write_bytes(b"")
    files = Files(Host())
    status = files.statuses([str(path)])[str(path)]
    assert isinstance(status, Status)
    assert files.holders(str(path), status) == []
    with subprocess.Popen(["flock", str(path), "sleep", "60"]) as child:
        try:
            for _try in range(1000):
                pids = Files(Host()).holders(str(path), status)
                if pids:
                    break
            assert pids == [child.pid]
            # It has it open to read it.
            assert files.flags(child.pid, str(path)) == []
        finally:
            child.kill()


LOCKS = """\
1: FLOCK  ADVISORY  WRITE 51 08:11:10249695 0 EOF
1: -> FLOCK  ADVISORY  WRITE 52 08:11:10249695 0 EOF
2: OFDLCK ADVISORY  READ -1 fe:00:10379294 203 203
3: POSIX  ADVISORY  READ 7 00:2b:10249695 0 EOF
nonsense
"""


def test_locks() -> None:
    assert list(parse_locks(LOCKS)) == [
        Lock(51, DEVICE, 10249695),
        Lock(52, DEVICE, 10249695),
        Lock(-1, os.makedev(0xFE, 0), 10379294),
        Lock(7, os.makedev(0, 0x2B), 10249695),
    ]


@given(st.text())
def test_any_text_of_locks(text: str) -> None:
    list(parse_locks(text))


def test_a_subvolume_has_another_device_than_its_locks() -> None:
    host = FirebirdHost(a=FakeDatabase())
    host.open(77, "/data/a.fdb")
    status = Status(os.makedev(0, 99), host.databases["/data/a.fdb"].inode, 150, 150, 0o100660)
    assert Files(host).holders("/data/a.fdb", status) == [77]
    assert Files(host).holders("/data/other.fdb", status) == []
