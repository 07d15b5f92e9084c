# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Firebird's configuration says that databases are, and what it says of writes."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.setup import Setup, read

from ...fakes.fake_firebird import FirebirdHost
from ...fakes.texts import HOSTILE

CONF = "/opt/firebird/firebird.conf"


def setup(main: str, aliases: str = "", config: str = CONF, *paths: str) -> Setup:
    """Return the setup of an instance with these configuration files, and other paths there."""
    host = FirebirdHost()
    host.files[config] = main
    host.files[config.replace("firebird.conf", "databases.conf")] = aliases
    host.files.update(dict.fromkeys(paths, ""))
    return read(host, "", config)


@pytest.mark.fact(34)
def test_settings_have_their_defaults_on_linux() -> None:
    found = setup("").settings
    assert {name: row["persisted"] for name, row in found.items()} == {
        "MaxUnflushedWrites": "-1",
        "MaxUnflushedWriteTime": "-1",
        "UseFileSystemCache": "on",
        "FileSystemCacheThreshold": "65536",
        "ServerMode": "Super",
    }
    assert {row["running"] for row in found.values()} == {"unknown"}
    assert found["ServerMode"]["from"] is None
    assert all(row["reason"] for row in found.values())


def test_settings_are_read_as_firebird_reads_them() -> None:
    found = setup(
        "# x\nmaxunflushedwrites = 1k\nUseFileSystemCache = 0\nMaxUnflushedWriteTime = many\n"
    ).settings
    assert found["MaxUnflushedWrites"]["persisted"] == "1024"
    assert found["MaxUnflushedWrites"]["from"] == f"{CONF}:2"
    assert found["UseFileSystemCache"]["persisted"] == "off"
    assert found["MaxUnflushedWriteTime"]["persisted"] == "unknown"
    assert "many" in str(found["MaxUnflushedWriteTime"]["reason"])


def test_directories_and_aliases() -> None:
    found = setup(
        "DatabaseAccess = Restrict /srv/fb; data;$(dir_sampleDb)\nSecurityDatabase = $(dir_secDb)/own.fdb\n",
        "a = /srv/a.fdb\nb = $(dir_sampleDb)/b.fdb\nc = other:/x.fdb\nd = x.fdb\ne = $(dir_nowhere)/x.fdb\n"
        "f = /srv//fb/../a.fdb\n",
    )
    assert found.aliases == ("/srv/a.fdb", "/opt/firebird/examples/empbuild/b.fdb")
    assert found.directories == (
        "/opt/firebird",
        "/srv/fb",
        "/opt/firebird/data",
        "/opt/firebird/examples/empbuild",
        "/opt/firebird/own.fdb",
    )
    # Those on other servers, and those that Firebird passes over, hide nothing here.
    assert list(found.unread) == ["alias e"]
    assert "databases.conf line 5" in found.unread["alias e"]


@pytest.mark.parametrize("access", ["Full", "None", "full", "", "None /srv/fb"])
def test_without_restrict_no_directory_is_named(access: str) -> None:
    assert setup(f"DatabaseAccess = {access}\n" if access else "").directories == ("/opt/firebird",)


@pytest.mark.parametrize(
    ("config", "paths", "expected"),
    [
        # Debian's Firebird 3 has its security database elsewhere, Firebird 4 beside its configuration.
        (
            "/etc/firebird/3.0/firebird.conf",
            ("/usr/lib/x86_64-linux-gnu/firebird/3.0/firebird.conf",),
            [
                "/var/lib/firebird/3.0/system/s.fdb",
                "/usr/share/doc/firebird3.0-common-doc/examples/empbuild/e.fdb",
            ],
        ),
        (
            "/etc/firebird/4.0/firebird.conf",
            ("/usr/lib/x86_64-linux-gnu/firebird/4.0/firebird.conf", "/usr/lib/other/firebird/4.0/x"),
            [
                "/usr/lib/x86_64-linux-gnu/firebird/4.0/s.fdb",
                "/usr/lib/x86_64-linux-gnu/firebird/4.0/examples/empbuild/e.fdb",
            ],
        ),
        (
            "/etc/firebird/5.0/firebird.conf",
            (),
            ["/etc/firebird/5.0/s.fdb", "/etc/firebird/5.0/examples/empbuild/e.fdb"],
        ),
        (
            "/etc/firebird/firebird.conf",
            (),
            ["/var/lib/firebird/secdb/s.fdb", "/var/lib/firebird/data/e.fdb"],
        ),
    ],
)
def test_macros_stand_for_what_the_packages_chose(
    config: str, paths: tuple[str, ...], expected: list[str]
) -> None:
    aliases = "s = $(dir_secDb)/s.fdb\ne = $(dir_sampleDb)/e.fdb\n"
    assert list(setup("", aliases, config, *paths).aliases) == expected


def test_includes_and_links_are_followed() -> None:
    host = FirebirdHost()
    host.links[CONF] = "/etc/fb/main.conf"
    host.files["/etc/fb/main.conf"] = "include more.conf\n"
    host.files["/opt/firebird/more.conf"] = "ServerMode = Classic\n"
    found = read(host, "", CONF)
    assert found.settings["ServerMode"]["persisted"] == "Classic"
    assert found.settings["ServerMode"]["from"] == "/opt/firebird/more.conf:1"


@pytest.mark.parametrize(
    ("main", "aliases", "unread"),
    [("broken", "", CONF), ("", "a = {", "/opt/firebird/databases.conf"), ("include gone\n", "", CONF)],
)
def test_what_cannot_be_read_is_told(main: str, aliases: str, unread: str) -> None:
    found = setup(main, aliases)
    assert list(found.unread) == [unread]
    if unread == CONF:
        assert {row["persisted"] for row in found.settings.values()} == {"unknown"}


@pytest.mark.parametrize("name", ["firebird.conf", "databases.conf"])
@pytest.mark.parametrize(
    ("text", "wanted"), [*HOSTILE.values(), ("#" * 10 * 2**20, "at most 1048576")], ids=[*HOSTILE, "10 MB"]
)
def test_hostile_files_are_told_by_name_and_stay(name: str, text: str, wanted: str) -> None:
    path = f"/opt/firebird/{name}"
    host = FirebirdHost()
    host.files.update({CONF: "", "/opt/firebird/databases.conf": "", path: text})
    found = read(host, "", CONF)
    assert list(found.unread) == [path]
    assert wanted in found.unread[path]
    assert "expected" in found.unread[path]
    assert len(found.unread[path]) < 1000
    assert (host.mutations, host.files[path]) == ([], text)


def test_a_configuration_that_hangs_or_is_no_file() -> None:
    host = FirebirdHost()
    host.hung = ("/opt/firebird",)
    assert "no answer" in read(host, "", CONF).unread[CONF]
    host.hung = ("/var/lib/firebird",)
    assert "no answer" in read(host, "", CONF).unread["/var/lib/firebird"]
    host = FirebirdHost()
    # Anybody can start a server of his own whose configuration is a pipe: nobody may wait for it.
    host.pipes.add(CONF)
    host.files[CONF] = ""
    assert read(host, "", CONF).unread == {CONF: f"{CONF}: not a regular file"}


def test_without_a_configuration_the_usual_place_is_left() -> None:
    host = FirebirdHost()
    host.files["/var/lib/firebird/3.0/data/x"] = ""
    found = read(host, "", None)
    assert found.directories == ("/var/lib/firebird",)
    assert list(found.unread) == ["firebird.conf"]
