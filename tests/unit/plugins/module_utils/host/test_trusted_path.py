# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may change a path."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import trusted_path
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result, Unobservable

from ..fakes.fake_host import FakeHost

PROGRAM = "/opt/db/bin/server"


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.files[PROGRAM] = ""
    return host


def test_what_only_root_changes_may_run(host: FakeHost) -> None:
    trusted_path.expect_program(host, PROGRAM)


@pytest.mark.parametrize("path", ["/", "/opt", "/opt/db", "/opt/db/bin", PROGRAM])
def test_every_part_of_the_way_is_roots(host: FakeHost, path: str) -> None:
    host.uids[path] = 1000
    with pytest.raises(Unobservable, match=f"{PROGRAM} may be changed by others than root .{path} belongs"):
        trusted_path.expect_program(host, PROGRAM)


@pytest.mark.parametrize("path", ["/", "/opt", "/opt/db", "/opt/db/bin", PROGRAM])
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_nobody_else_writes_on_the_way(host: FakeHost, path: str, mode: int) -> None:
    host.modes[path] = mode
    with pytest.raises(Unobservable, match="may be changed by others than root"):
        trusted_path.expect_program(host, PROGRAM)


@pytest.mark.parametrize("path", ["/opt/db/lib", "/opt/db/lib/libdb.so.1", "/opt/db/lib/private/libssl.so"])
def test_a_library_beside_a_program_is_part_of_it(host: FakeHost, path: str) -> None:
    host.files.update(dict.fromkeys(["/opt/db/lib/libdb.so.1", "/opt/db/lib/private/libssl.so"], ""))
    host.links["/opt/db/lib/libdb.so"] = "/opt/db/lib/libdb.so.1"
    # What is not in a directory of programs has no libraries beside it.
    host.files["/opt/data/lib/x"], host.uids["/opt/data/lib"], host.files["/opt/data/db/x"] = "", 26, ""
    trusted_path.expect_program(host, "/opt/data/db/x")
    trusted_path.expect_program(host, PROGRAM)
    host.uids[path] = 26
    with pytest.raises(Unobservable, match=rf"{PROGRAM} may be changed by others than root .{path} belongs"):
        trusted_path.expect_program(host, PROGRAM)


def test_the_libraries_are_those_beside_what_a_link_leads_to(host: FakeHost) -> None:
    host.links["/usr/bin/db"] = PROGRAM
    host.files["/opt/db/lib/libdb.so"] = ""
    host.modes["/opt/db/lib/libdb.so"] = 0o666
    with pytest.raises(Unobservable, match=r"libdb\.so has mode 0666"):
        trusted_path.expect_program(host, "/usr/bin/db")


def test_what_is_not_there_yet_is_whose_directory_it_would_be_in(host: FakeHost) -> None:
    assert trusted_path.weak_future(host, "/opt/db/etc/more/x.cnf") == ""
    host.uids["/opt/db"] = 26
    assert trusted_path.weak_future(host, "/opt/db/etc/more/x.cnf") == "/opt/db belongs to user 26"
    assert trusted_path.weak_entry(host, "/opt/db/plugins") == "/opt/db belongs to user 26"
    with pytest.raises(Unobservable, match="expected an absolute path"):
        trusted_path.weak_future(host, "etc/x.cnf")


def test_the_first_that_is_there_is_chosen_and_never_another_in_its_stead(host: FakeHost) -> None:
    host.files["/usr/bin/db"] = ""
    assert trusted_path.choose(host, ["/none", PROGRAM, "/usr/bin/db"]) == PROGRAM
    with pytest.raises(Unobservable, match="none of /none, /not exists"):
        trusted_path.choose(host, ["/none", "/not"])
    host.uids[PROGRAM] = 1000
    with pytest.raises(Unobservable, match=PROGRAM):
        trusted_path.choose(host, ["/none", PROGRAM, "/usr/bin/db"])


@pytest.mark.parametrize("path", ["/usr/bin/db", "/home/me", "/home/me/hop", PROGRAM])
def test_links_are_followed_one_by_one(host: FakeHost, path: str) -> None:
    host.links["/usr/bin/db"] = "/home/me/hop"
    host.links["/home/me/hop"] = PROGRAM
    trusted_path.expect_program(host, "/usr/bin/db")
    host.uids[path] = 1000
    with pytest.raises(Unobservable, match=f"{path} belongs to user 1000"):
        trusted_path.expect_program(host, "/usr/bin/db")


@pytest.mark.parametrize("path", ["", "server", "/opt/none"])
def test_what_is_not_there_does_not_run(host: FakeHost, path: str) -> None:
    with pytest.raises(Unobservable):
        trusted_path.expect_program(host, path)


@pytest.mark.parametrize("said", ["", "0\n", "0 x\n", "0 81a4\n0 81a4\n"])
def test_half_an_answer_is_none(host: FakeHost, said: str) -> None:
    host.commands[("stat", "--format=%u %f", "--", "/a")] = Result(0, said, "")
    with pytest.raises(Unobservable, match="cannot be read"):
        trusted_path.statuses(host, ["/a"])


def test_as_stat_says_it(tmp_path: Path) -> None:
    path = tmp_path / "x y"
    path.write_text("", encoding="ascii")
    path.chmod(0o640)
    found = trusted_path.statuses(Host(), [str(path), str(tmp_path)])
    assert found[str(path)] == (os.getuid(), stat.S_IFREG | 0o640)
    assert stat.S_ISDIR(found[str(tmp_path)].mode)
