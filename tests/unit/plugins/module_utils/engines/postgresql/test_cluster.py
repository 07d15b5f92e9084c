# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files and command lines of PostgreSQL clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    cluster as postgresql_cluster,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.cluster import (
    Files,
    options,
    pending_flush_path,
    read,
    settings_of,
    won,
    word,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import LIMIT, Malformed

from ...fakes.fake_postgresql import AUTO, CONF, DATA, ETC, FakePostgresql

RED_HAT = f"{DATA}/postgresql.conf"


# postgres 15.18 shows these words after it was started so.
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-c", "fsync=off"], {"fsync": "off"}),
        (["-cfsync=off"], {"fsync": "off"}),
        (["--fsync=off"], {"fsync": "off"}),
        (["--full-page-writes=off"], {"full_page_writes": "off"}),
        (["-c", "FSYNC=off"], {"fsync": "off"}),
        (["-F"], {"fsync": "off"}),
        (["-iF"], {"fsync": "off"}),
        (["-c", "fsync=on", "-F"], {"fsync": "off"}),
        (["-F", "-c", "fsync=on"], {"fsync": "on"}),
        # The F is another option's value.
        (["-D", "-F"], {}),
        (["-hF"], {}),
        (["-c", "a=b=c"], {"a": "b=c"}),
        (["-c"], {}),
        (["--version"], {}),
        (["-"], {}),
        (["--"], {}),
        ([], {}),
    ],
)
def test_settings_of_a_command_line(words: list[str], expected: dict[str, str]) -> None:
    assert settings_of(words) == expected


@given(st.lists(st.text(st.sampled_from("-cDF=fsync ofn\udcff"), max_size=8)))
def test_any_command_line_is_read(words: list[str]) -> None:
    assert all(len(pair) == 2 for pair in options(words))


def cluster(host: FakePostgresql, config: str = CONF, data: str | None = DATA, *argv: str) -> str:
    """Return what fsync will be at the next start, and where that stands."""
    found = read(host, Files(host, ""), config, data, ["postgres", *argv], None)
    assert found.data == DATA
    return " ".join(str(part) for part in won(found, "fsync")[:2])


@pytest.mark.fact(35)
def test_the_last_word_wins() -> None:
    host = FakePostgresql()
    assert cluster(host) == "on None"
    host.files[CONF] = "fsync = off\ninclude_dir 'conf.d'\n"
    assert cluster(host) == f"off {CONF}:1"
    host.files[f"{ETC}/conf.d/a.conf"] = "fsync = yes\n"
    host.files[f"{ETC}/conf.d/b.conf.bak"] = "fsync = off\n"
    host.directories.add(f"{ETC}/conf.d/c.conf")
    host.files[f"{ETC}/conf.d/c.conf/x"] = ""
    assert cluster(host) == f"on {ETC}/conf.d/a.conf:1"
    host.files[AUTO] = "# By ALTER SYSTEM\nfsync = 'off'\n"
    assert cluster(host) == f"off {AUTO}:2"
    # Debian's tools start it again with what they say, not with the words of today.
    assert cluster(host, CONF, DATA, "-c", "fsync=on") == f"off {AUTO}:2"
    host.files[f"{ETC}/pg_ctl.conf"] = "pg_ctl_options = '-t 90 -o --fsync=on'\n"
    assert cluster(host) == f"on {ETC}/pg_ctl.conf"
    host.files[f"{ETC}/pg_ctl.conf"] = "pg_ctl_options = '-o-F'\n"
    assert cluster(host) == f"off {ETC}/pg_ctl.conf"
    host.files[RED_HAT] = ""
    assert cluster(host, RED_HAT, DATA, "-c", "fsync=on") == "on its command line"


def test_the_data_directory_of_a_stopped_cluster() -> None:
    host = FakePostgresql()
    host.files[CONF] = "data_directory = '/data/link'\n"
    host.links["/data/link"] = DATA
    assert cluster(host, CONF, None) == "on None"
    host.files[CONF] = "data_directory = 'pg'\n"
    with pytest.raises(Unobservable, match=f"{CONF}:1: data_directory is 'pg'"):
        cluster(host, CONF, None)
    host.files[RED_HAT] = "fsync = 0\n"
    assert cluster(host, RED_HAT, None) == f"off {RED_HAT}:1"


def test_a_unit_that_does_not_run_tells_its_command_line() -> None:
    host = FakePostgresql()
    host.files[RED_HAT] = ""
    unit = "postgresql-15.service"
    properties = "--property=Environment,EnvironmentFiles,ExecStart"
    shown = "ExecStart={ path=/usr/pgsql-15/bin/postgres ; argv[]=/usr/pgsql-15/bin/postgres -D ${PGDATA} -F ; ignore_errors=no ;"
    host.commands[("systemctl", "show", properties, "--", unit)] = shown
    found = read(host, Files(host, ""), RED_HAT, DATA, None, unit)
    assert won(found, "fsync")[:2] == ("off", f"ExecStart of {unit}")
    host.commands[("systemctl", "show", properties, "--", unit)] = Result(1, "", "no")
    with pytest.raises(Unobservable, match=f"{unit}: systemctl does not show what it starts"):
        read(host, Files(host, ""), RED_HAT, DATA, None, unit)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("fsync = maybe\n", ValueError, f"{CONF}:1: fsync: observed 'maybe'; expected on or off"),
        ("fsync =\n", Malformed, f"{CONF} line 1: observed 'fsync ='"),
        ("include 'gone'\n", Malformed, f"{ETC}/gone: observed no such file"),
        ("include_dir 'gone'\n", Malformed, "a directory that is there"),
        ("#" * (LIMIT + 1), Malformed, "observed 1048577 bytes"),
        ("\0", Malformed, "NUL"),
    ],
)
def test_what_the_server_would_refuse_is_refused(text: str, error: type[Exception], message: str) -> None:
    host = FakePostgresql()
    host.files[CONF] = text
    with pytest.raises(error, match=message):
        cluster(host)


def test_a_password_is_never_shown() -> None:
    host = FakePostgresql()
    for line in ("primary_conninfo = 'host=a password=geheim", "primary_conninfo = x password=geheim"):
        host.files[CONF] = line
        with pytest.raises(Malformed, match=r"observed 'primary_conninfo \.\.\.'") as caught:
            cluster(host)
        assert "geheim" not in str(caught.value)


def test_links_of_a_container_lead_into_it_and_each_file_is_read_once() -> None:
    host = FakePostgresql()
    root = "/proc/50/root"
    host.links[f"{root}/etc/pg.conf"] = "/etc/other.conf"
    host.files["/etc/other.conf"] = "the host's own"
    host.files[f"{root}/etc/other.conf"] = "fsync = off\n"
    files = Files(host, root)
    assert files.read("/etc/pg.conf") == "fsync = off\n"
    count = len(host.questions)
    files.read("/etc/pg.conf")
    assert len(host.questions) == count


def test_a_disk_that_hangs_is_not_read() -> None:
    host = FakePostgresql()
    host.hung = (CONF,)
    with pytest.raises(Unobservable, match="no answer within 10 s"):
        cluster(host)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("fsync", "TRUE", "on"),
        ("fsync", "of", "off"),
        ("synchronous_commit", "false", "off"),
        ("synchronous_commit", "Remote_Apply", "remote_apply"),
        ("wal_sync_method", "OPEN_DATASYNC", "open_datasync"),
        ("data_sync_retry", "1", "on"),
    ],
)
def test_words_are_those_of_pg_settings(name: str, value: str, expected: str) -> None:
    assert word(name, value) == expected


@given(st.text(), st.text())
def test_no_two_data_directories_share_a_note(one: str, other: str) -> None:
    assert (pending_flush_path(one, "fsync") == pending_flush_path(other, "fsync")) == (one == other)
    assert pending_flush_path(one, "fsync").count("/") == postgresql_cluster.PENDING_FLUSH.count("/") + 1


def test_a_word_of_very_many_options_is_read() -> None:
    """Anybody may call a process of his postgres, and give it any words."""
    assert options(["-" + "F" * 100_000]) == [("fsync", "off")] * 100_000
