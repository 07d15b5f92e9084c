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

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.files import (
    GONE,
    MOST_FILES,
    NO_FILE,
    Beginning,
    Files,
    Lock,
    parse_locks,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Status, Unobservable

from ...fakes.fake_firebird import DEVICE, FakeDatabase, FirebirdHost

ODD = "/data/a\n==> /data/b.fdb <==\n"


def test_the_beginnings_of_files() -> None:
    host = FirebirdHost(a=FakeDatabase(), b=FakeDatabase(flags=0))
    host.add(**{"/log/c": FakeDatabase(), ODD: FakeDatabase(), "/data/caf\udce9": FakeDatabase()})
    files = Files(host)
    for path, database in host.databases.items():
        assert files.beginning(path).page == database.page()
    assert files.beginning("/data/gone") == Beginning(None, b"", GONE)


def test_a_disk_that_hangs_keeps_no_other_back() -> None:
    host = FirebirdHost(a=FakeDatabase())
    host.add(**{"/log/b": FakeDatabase(), "/log/c": FakeDatabase()})
    host.hung = ("/log",)
    files = Files(host)
    for path in ("/log/b", "/log/c"):
        assert "no answer within 10 s" in str(files.beginning(path).reason)
    # It was waited for once.
    assert [question for question in host.questions if question[1].startswith("/log")] == [
        ("locate", "/log/b")
    ]
    assert files.beginning("/data/a.fdb").page == host.databases["/data/a.fdb"].page()
    status = files.beginning("/data/a.fdb").status
    assert status and status[:5] == (DEVICE, 4711, 150, 150, 0o100660)


def test_of_a_container_paths_are_those_that_it_sees() -> None:
    root = "/proc/50/root"
    host = FirebirdHost()
    host.add(**{f"{root}/db/a.fdb": FakeDatabase()})
    files = Files(host, root)
    assert files.search("/db") == ["/db/a.fdb"]
    assert files.beginning("/db/a.fdb").status


def test_the_search_is_bounded() -> None:
    host = FirebirdHost()
    host.add(**{f"/data/{number}": FakeDatabase() for number in range(MOST_FILES + 1)})
    with pytest.raises(Unobservable, match="name a directory closer"):
        Files(host).search("/data")
    del host.files["/data/1"]
    assert len(Files(host).search("/data")) == MOST_FILES
    host.hung = ("/data",)
    with pytest.raises(Unobservable, match="no answer within 10 s"):
        Files(host).search("/data")


def test_a_real_directory(tmp_path: Path) -> None:
    """With what really opens files."""
    big, small, odd = tmp_path / "below" / "a.fdb", tmp_path / "small.fdb", tmp_path / "b\n==> x <==\n"
    big.parent.mkdir()
    for path in (big, odd):
        path.write_bytes(FakeDatabase().page().ljust(300 * 1024, b"\0"))
    small.write_bytes(FakeDatabase().page())
    (tmp_path / "link").symlink_to(big)
    files = Files(Host())
    assert files.search(str(tmp_path)) == sorted([str(big), str(odd)])
    page = FakeDatabase().page()
    assert files.beginning(str(big)).page == files.beginning(str(odd)).page == page
    assert files.beginning(str(tmp_path / "gone")).reason == GONE
    status = files.beginning(str(tmp_path / "link")).status
    info = os.stat(big)
    assert status and status[:5] == (info.st_dev, info.st_ino, info.st_uid, info.st_gid, info.st_mode)
    assert files.beginning("/dev/null").reason == NO_FILE


def test_a_real_lock(tmp_path: Path) -> None:
    """flock(2), as Firebird locks its databases."""
    path = tmp_path / "a.fdb"
    path.write_bytes(b"")
    files = Files(Host())
    status = files.beginning(str(path)).status
    assert status
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
