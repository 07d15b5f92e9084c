# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords of network mounts are in no fact, message or report, however their line is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect as storage
from ansible_collections.durable.dbhost.plugins.module_utils.storage import fstab, known_options
from ansible_collections.durable.dbhost.plugins.module_utils.storage.shown_options import (
    HIDDEN,
    shown,
    without_login,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

#: Lines of cifs, sshfs, davfs, ceph, s3fs: each holds hunter2, and most keep mount(8) from using them.
LINES = [
    "//nas/share /mnt cifs user=joe,password=hunter2 0 0",
    "//nas/share /mnt auto user=joe,password=hunter2 0 0",
    "//nas/share /mnt ext4,cifs user=joe%hunter2 0 0",
    "//nas/share /mnt auto username=WORK/joe%hunter2,rw 0 0",
    "//nas/share /mnt auto credentials=/root/hunter2 0 0",
    "//nas/share /mnt auto cred=/root/hunter2,pass=hunter2,password2=hunter2 0 0",
    "//nas/share /mnt auto password=a,hunter2,,b,rw 0 0",
    "//nas/share /mnt cifs password=my hunter2 0 0",
    "//nas/share /mnt cifs password=my hunter2",
    "//nas/share /mnt cifs password=my hunter2 is long 0 0",
    "//joe:hunter2@nas/share /mnt cifs rw oops",
    "https://joe:hunter2@dav/ /mnt davfs rw hunter2",
    "joe:hunter2@nas:/ /mnt fuse.sshfs passwd=hunter2 zero 0",
    "sshfs#joe@nas:/ /mnt auto ssh_command=sshpass\\040-phunter2 0 0",
    "mon:6789:/ /mnt auto name=admin,secret=hunter2,secretfile=/etc/hunter2 0 0",
    "bucket /mnt auto passwd_file=/hunter2,access_key=hunter2,x-token=hunter2 0 0",
    "//nas/share password=hunter2",
    "password=hunter2\r /mnt cifs rw 0 0",
]


@pytest.mark.parametrize("line", LINES)
def test_no_fact_shows_a_password(line: str) -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = f"{host.files['/etc/fstab']}{line}\n"
    facts = storage.collect(host, "now", ())
    assert "hunter2" not in json.dumps(facts)


@pytest.mark.parametrize("line", LINES)
def test_no_error_shows_a_password(line: str) -> None:
    try:
        entries = fstab.parse(line)
    except fstab.MalformedFstab as error:
        assert "hunter2" not in str(error)
        return
    (entry,) = entries
    assert "hunter2" not in "".join(shown(entry.options)) + without_login(entry.spec)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("rw,noatime,barrier=0,data=writeback,commit=30", None),
        ("rw,logdev=/dev/sdd1,x-systemd.device-timeout=10s,subvol=/@data", None),
        ("rw,barier=1,defaultz", None),
        ("rw,foo=bar,defaultz", "rw,foo=hidden,defaultz"),
        ("password=a,b,rw,c", "password=hidden,hidden,rw,c"),
        ("PASSWORD=x,y=z,noatime", "PASSWORD=hidden,hidden,noatime"),
        ("password=123", "password=hidden"),
        ("=x", "=hidden"),
    ],
)
def test_what_is_known_is_shown(options: str, wanted: str | None) -> None:
    assert ",".join(shown(options.split(","))) == (options if wanted is None else wanted)


@pytest.mark.parametrize("name", sorted(known_options.KNOWN))
@given(st.data())
def test_options_that_file_systems_know_stay(name: str, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(known_options.KNOWN[name])))
    word = data.draw(st.sampled_from([key, f"{key}=1"]))
    kept = shown([word])[0]
    assert kept in (word, f"{key}=hidden")
    # What the policy says of it is the same.
    before, after = (known_options.unknown_to(name, [said], "6.1.0") for said in (word, kept))
    assert bool(after) == bool(before)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("//joe:pw@nas/share", "//hidden@nas/share"),
        ("https://joe:pw@dav/x", "https://hidden@dav/x"),
        ("joe:pw@nas:/x", "hidden@nas:/x"),
        ("//joe:p@ss@nas/share", "//hidden@nas/share"),
        ("//joe:p/w@nas/share", "//hidden@nas/share"),
        ("//joe@nas/share", "//hidden@nas/share"),
        ("joe:p/w@nas:/x", "hidden@nas:/x"),
        ("joe:p//w@nas:/x", "hidden@nas:/x"),
        ("joe%pw@nas:/x", "hidden@nas:/x"),
        ("sshfs#joe:p@w@nas:/x", "hidden@nas:/x"),
        # More than the login, never less.
        ("nas:/a@b", "hidden@b"),
        ("//nas/a@b", "//hidden@b"),
        ("joe@nas:/x", "joe@nas:/x"),
        ("nas:/x", "nas:/x"),
        ("//nas/share", "//nas/share"),
        ("https://dav/x", "https://dav/x"),
        ("tank/data@monday", "tank/data@monday"),
        ("/srv/a:b@c", "/srv/a:b@c"),
        ("//@nas/share", "//@nas/share"),
        ("@", "@"),
        ("", ""),
        ("/dev/disk/by-id/a@b", "/dev/disk/by-id/a@b"),
        ("UUID=a-b", "UUID=a-b"),
    ],
)
def test_a_login_in_a_source_is_hidden(source: str, wanted: str) -> None:
    assert without_login(source) == wanted


USERS = st.text(st.characters(blacklist_characters="/:@%#"), min_size=1, max_size=8)
PASSWORDS = st.text(max_size=12) | st.text("aZ9/:@%#\\ ,=.\"'$[]", min_size=1, max_size=12)


@given(user=USERS, sign=st.sampled_from(":%"), password=PASSWORDS)
@pytest.mark.parametrize(
    ("before", "place"),
    [
        ("//", "nas/share"),
        ("https://", "dav.example.com/x"),
        ("SMB://", "nas/share"),
        ("", "nas:/x"),
        ("", "[fe80::1]:/x"),
        ("", "nas:"),
    ],
)
def test_no_character_of_a_password_is_shown(
    before: str, place: str, user: str, sign: str, password: str
) -> None:
    assert without_login(f"{before}{user}{sign}{password}@{place}") == f"{before}{HIDDEN}@{place}"
