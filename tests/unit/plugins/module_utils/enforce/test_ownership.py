# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As whom a server's file is written, and where none is."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import ownership
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ..fakes.fake_host import FakeHost

BASE = "/data/db/conf"
PATH = f"{BASE}/db.conf"


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.files[PATH] = ""
    return host


def writer(host: FakeHost, path: str = PATH, uid: int = 26) -> int:
    return ownership.writer(host, path, uid, [BASE], ("db.conf", "ours.conf"))


def test_root_writes_where_only_root_may(host: FakeHost) -> None:
    assert writer(host) == 0
    assert writer(host, f"{BASE}/ours.conf") == 0
    host.uids[PATH] = 26
    assert writer(host) == 0


def test_the_server_s_user_writes_where_he_may(host: FakeHost) -> None:
    host.uids.update({"/data/db": 26, BASE: 26, PATH: 26})
    assert writer(host) == 26
    assert writer(host, f"{BASE}/any") == 26


@pytest.mark.parametrize(
    ("uids", "modes"),
    [
        ({BASE: 1000}, {}),
        ({"/data": 1000}, {}),
        ({PATH: 1000}, {}),
        ({BASE: 26}, {}),
        ({"/data/db": 26}, {}),
        ({}, {BASE: 0o775}),
        ({}, {"/data": 0o777}),
        ({}, {PATH: 0o646}),
        ({BASE: 26, PATH: 26}, {BASE: 0o770}),
    ],
)
def test_what_others_may_change_is_refused(
    host: FakeHost, uids: dict[str, int], modes: dict[str, int]
) -> None:
    host.uids.update(uids)
    host.modes.update(modes)
    with pytest.raises(ChangeFailed, match="expected a file that only root, or the user of the server"):
        writer(host)


@pytest.mark.parametrize("path", ["/etc/cron.d/ours.conf", "/data/db/ours.conf", f"{BASE}/../ours.conf"])
def test_elsewhere_nothing_is_written(host: FakeHost, path: str) -> None:
    host.files["/etc/cron.d/x"] = ""
    with pytest.raises(ChangeFailed, match="neither of its configuration nor of its data"):
        writer(host, path)


def test_links_are_refused(host: FakeHost) -> None:
    host.files["/etc/cron.d/x"] = ""
    host.links[f"{BASE}/ours.conf"] = "/etc/cron.d/x"
    host.links[f"{BASE}/sub"] = "/etc/cron.d"
    with pytest.raises(ChangeFailed, match="observed a link"):
        writer(host, f"{BASE}/ours.conf")
    with pytest.raises(ChangeFailed, match="neither of its configuration"):
        writer(host, f"{BASE}/sub/ours.conf")


def test_a_file_of_root_s_with_another_name_is_written_for_root_s_server_only(host: FakeHost) -> None:
    host.files[f"{BASE}/sysctl.conf"] = ""
    with pytest.raises(ChangeFailed, match=r"not called db\.conf or ours\.conf"):
        writer(host, f"{BASE}/sysctl.conf")
    assert writer(host, f"{BASE}/sysctl.conf", uid=0) == 0


@pytest.mark.parametrize("shared", ["/", "/etc", "/usr"])
def test_a_server_with_its_file_beside_everybody_s_has_no_place_of_its_own(
    host: FakeHost, shared: str
) -> None:
    host.files["/etc/cron.d/x"] = ""
    assert not ownership.is_inside(host, "/etc/cron.d", [shared])


def test_a_directory_of_root_s_below_one_of_the_server_s_gets_no_new_file(host: FakeHost) -> None:
    host.uids["/data/db"] = 26
    with pytest.raises(ChangeFailed, match="belongs to user 0"):
        writer(host, f"{BASE}/ours.conf")


@pytest.mark.parametrize("path", [PATH, f"{BASE}/ours.conf"])
def test_for_a_person_s_server_nothing_is_written_into_root_s_files(host: FakeHost, path: str) -> None:
    """Any login can start a server that names the configuration of another one."""
    with pytest.raises(
        ChangeFailed, match=f"{path}: .*for a server of user 1000, and users from 1000 on are persons"
    ):
        writer(host, path, 1000)
    # A file of the person's is theirs, and release restores what was there.
    assert ownership.writer(host, path, 1000, [BASE], ("db.conf", "ours.conf"), restores=True) == 0
    host.uids.update({"/data/db": 1000, BASE: 1000, PATH: 1000})
    assert writer(host, path, 1000) == 1000
