# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""my.cnf: groups, prefixes, quotes and includes as the servers take them; only our bytes change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import my_cnf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Effective, Malformed, render

from ...fakes.texts import HOSTILE, ODD, Files, texts

EXAMPLE = """\
[client-server]
socket = /run/mysqld/mysqld.sock
!includedir /etc/mysql/conf.d/

[mysqld]
user                    = mysql
innodb-flush-log-at-trx-commit = 1  # every commit
skip-name-resolve
datadir = "/srv/my # data"
[mysqldump]
sync_binlog = 9
"""
LINE = st.sampled_from(
    [
        "",
        " \t",
        "# comment",
        "; comment",
        ODD,
        "[mysqld]",
        " [MySQLd ] rest",
        "[mariadb]",
        "sync_binlog = 1",
        " sync-binlog=0 # comment",
        "sync_binlog",
        "loose_sync_binlog = '5'",
        "skip-sync-binlog",
        "other = 'a # b'",
        "!includedir /etc/x",
        "!unknown",
        "# durable.dbhost: a note",
    ]
)


def one(text: str, group: str, name: str) -> str | None:
    """Return the value of the last option of a name in one group, or 'absent'."""
    found = [
        my_cnf.option(line.name, line.value)
        for line in my_cnf.parse(text)
        if line.kind == "setting" and line.section == group
    ]
    return dict(found).get(name, "absent")


@given(texts(LINE).map("[first]\n".__add__))
def test_every_byte_stays(text: str) -> None:
    assert render(my_cnf.parse(text)) == text


@given(st.text(st.sampled_from("[mysqld]name-_ = 'value\"\\#;!include\n\r\t\udcff\xa0")))
def test_any_text_stays_or_is_refused(text: str) -> None:
    try:
        lines = my_cnf.parse(text)
    except Malformed:
        return
    assert render(lines) == text


def test_example() -> None:
    lines = my_cnf.parse(EXAMPLE)
    assert one(EXAMPLE, "mysqld", "innodb_flush_log_at_trx_commit") == "1"
    assert one(EXAMPLE, "mysqld", "datadir") == "/srv/my # data"
    assert one(EXAMPLE, "mysqld", "skip_name_resolve") is None
    assert [(line.kind, line.value) for line in lines if line.kind.startswith("include")] == [
        ("includedir", "/etc/mysql/conf.d/")
    ]


def test_line_ends_of_another_system_stay() -> None:
    text = EXAMPLE.replace("\n", "\r\n")
    assert one(text, "mysqld", "user") == "mysql"
    assert render(my_cnf.parse(text)) == text


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("a = x#y", "x"),
        ("a = 'x#y'", "x#y"),
        ('a = "x" # y', "x"),
        ("a = x 'y # z' # c", "x 'y # z'"),
        ("a = 'x", "'x"),
        ("a = '", "'"),
        ("a = ''", ""),
        ("a =", ""),
        ("a", None),
        ("a # b = c", None),
        ("a = b = c", "b = c"),
        ("a = x\\ty\\\\z\\q\\", "x\ty\\z\\q\\"),
        ("a = 'x\\'y'", "x'y"),
        ("a = 'x\\'#y'", "x'#y"),
        ("a = 'x\\\\'#y'", "x\\"),
        ("a = \\s", " "),
        ("\v a\t=\fx\r", "x"),
        ("a = é\udcff", "é\udcff"),
    ],
)
def test_values(line: str, wanted: str | None) -> None:
    assert one(f"[x]\n{line}\n", "x", "a") == wanted
    assert one(f"[x]\n{line}", "x", "a") == wanted


@pytest.mark.parametrize(
    "name, value, wanted",
    [
        ("innodb-doublewrite", "ON", ("innodb_doublewrite", "ON")),
        ("skip-innodb-doublewrite", None, ("innodb_doublewrite", "0")),
        ("skip_innodb_doublewrite", "0", ("innodb_doublewrite", "1")),
        ("skip_innodb_doublewrite", "1", ("innodb_doublewrite", "0")),
        ("disable-log-bin", None, ("log_bin", "0")),
        ("enable-log-bin", None, ("log_bin", "1")),
        ("enable-log-bin", "0", ("log_bin", "0")),
        ("loose-innodb_x", "5", ("innodb_x", "5")),
        ("loose_skip_innodb_doublewrite", None, ("innodb_doublewrite", "0")),
        ("skip_loose_innodb_doublewrite", "ON", ("innodb_doublewrite", "ON")),
        ("skip-name-resolve", None, ("skip_name_resolve", None)),
        ("loose_skip_networking", "1", ("skip_networking", "1")),
        ("maximum-sync_binlog", "1", ("maximum_sync_binlog", "1")),
        ("loose-maximum-sync_binlog", "1", ("maximum_sync_binlog", "1")),
        ("maximum-loose-sync_binlog", "1", ("sync_binlog", "1")),
        ("autoset_sync_binlog", None, ("autoset_sync_binlog", None)),
        ("SKIP_sync_binlog", None, ("SKIP_sync_binlog", None)),
        ("skip_Sync_Binlog", None, ("Sync_Binlog", "0")),
        ("log-bin", "0", ("log_bin", "./0")),
        ("loose_log-bin", "1", ("log_bin", "./1")),
        ("log_bin", "/srv/log", ("log_bin", "/srv/log")),
        ("skip", None, ("skip", None)),
        ("skip_", None, ("skip_", None)),
    ],
)
def test_prefixes(name: str, value: str | None, wanted: tuple[str, str | None]) -> None:
    assert my_cnf.option(name, value) == wanted


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("[mysqld", "a group's name and ]"),
        ("= 1", "an option's name"),
        ("# x\n!include ", "!include and a path"),
        ("!includedir\t\n", "!includedir and a path"),
        ("a = " + "x" * 4090, "lines of at most 4094 bytes"),
        ("#" + "é" * 2047, "lines of at most 4094 bytes"),
    ],
)
def test_what_the_server_refuses_or_reads_otherwise_is_refused(line: str, wanted: str) -> None:
    text = f"[mysqld]\n{line}\n"
    with pytest.raises(Malformed, match=rf"^/my\.cnf line [23]: observed .*; expected .*{wanted}"):
        my_cnf.parse(text, "/my.cnf")


def test_an_option_before_any_group_is_refused() -> None:
    with pytest.raises(Malformed, match=r"line 2: observed 'a = 1'; expected a \[group\]"):
        my_cnf.parse("# x\na = 1\n[mysqld]\n")


def test_a_line_that_fits_the_buffer_is_read() -> None:
    assert one("[x]\na = " + "x" * 4089 + "\n", "x", "a") == "x" * 4089


@pytest.mark.parametrize("text, wanted", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        my_cnf.parse(text)


def test_groups() -> None:
    mariadb = my_cnf.groups("mariadb", "10.11.6-MariaDB-0+deb12u1")
    assert set(mariadb) == set(
        "mysqld server mysqld-10.11 mariadb mariadb-10.11 mariadbd mariadbd-10.11 client-server galera".split()
    )
    assert "mariadbd" not in my_cnf.groups("mariadb", "10.4.5")
    assert "mariadbd-10.4" in my_cnf.groups("mariadb", "10.4.6")
    assert {"mariadb-11", "mariadbd-11"} <= set(my_cnf.groups("mariadb", "11.4.2"))
    assert my_cnf.groups("mysql", "8.0.36-0ubuntu0.22.04.1") == ["mysqld", "server", "mysqld-8.0"]
    assert my_cnf.groups("mysql", "8.0.36", "2")[3:] == ["mysqld2", "server2", "mysqld-8.02"]


@pytest.mark.parametrize("flavour, version", [("mariadb", "unknown"), ("percona", "8.0.1"), ("mysql", "8")])
def test_groups_of_an_unknown_server_are_not_guessed(flavour: str, version: str) -> None:
    with pytest.raises(ValueError, match="expected mariadb or mysql"):
        my_cnf.groups(flavour, version)


def effective(
    files: dict[str, str], flavour: str = "mariadb", version: str = "10.11.6", suffix: str = ""
) -> Effective:
    """Return what counts in files under /etc/mysql."""
    tree = Files({f"/etc/mysql/{name}": text for name, text in files.items()})
    return my_cnf.effective(tree.read_file, tree.names, my_cnf.MAINS, flavour, version, suffix)


def test_the_last_word_counts_whatever_its_group_and_file() -> None:
    found = effective(
        {
            "my.cnf": "[mariadb]\nsync-binlog = 1\n!includedir /etc/mysql/mariadb.conf.d\n[server]\nuser = a\n",
            "mariadb.conf.d/99-x.cnf": "[mysqld]\nSYNC_binlog = 3\nloose-sync_binlog = 0\n",
            "mariadb.conf.d/50-server.cnf": "[MariaDBd]\nsync_binlog = 5\n!include /etc/mysql/gone.cnf\n",
            "mariadb.conf.d/60-other.cnf": "[mysqld-8.0]\nsync_binlog = 6\n[mysqld_safe]\nsync_binlog = 7\n",
            "mariadb.conf.d/70-old.cnf.bak": "[mysqld]\nsync_binlog = 8\n",
            "mariadb.conf.d/README": "hello\n",
        }
    )
    base = "/etc/mysql/mariadb.conf.d"
    assert found.files == [
        "/etc/mysql/my.cnf",
        f"{base}/50-server.cnf",
        f"{base}/60-other.cnf",
        f"{base}/99-x.cnf",
    ]
    assert found.settings["sync_binlog"] == ("0", f"{base}/99-x.cnf", 3)
    assert found.overridden["sync_binlog"] == (
        ("1", "/etc/mysql/my.cnf", 2),
        ("5", f"{base}/50-server.cnf", 2),
    )
    assert found.settings["user"] == ("a", "/etc/mysql/my.cnf", 5)


def test_what_counts_stands_in_the_order_in_which_it_is_read() -> None:
    found = effective({"my.cnf": "[mysqld]\na = 1\nb = 2\na = 3\n"})
    assert [(name, setting.value) for name, setting in found.settings.items()] == [("b", "2"), ("a", "3")]


def test_mysql_reads_other_groups_and_an_instance_its_own() -> None:
    files = {"my.cnf": "[mysqld]\na = 1\n[mysqld-8.0]\nb = 2\n[mariadb]\nc = 3\n[mysqld2]\na = 4\n"}
    assert {
        name: setting.value for name, setting in effective(files, "mysql", "8.0.36").settings.items()
    } == {
        "a": "1",
        "b": "2",
    }
    assert effective(files, "mysql", "8.0.36", "2").settings["a"].value == "4"


def test_nothing_is_there() -> None:
    assert effective({}).files == []


def test_the_last_character_of_an_include_without_a_line_end_is_lost() -> None:
    found = effective({"my.cnf": "[mysqld]\n!include /etc/mysql/x.cnf", "x.cnf": "[mysqld]\na = 1\n"})
    assert found.settings == {}
    slash = effective({"my.cnf": "[mysqld]\n! includedir  /etc/mysql/d/", "d/x.cnf": "[mysqld]\na = 1\n"})
    assert slash.settings["a"].value == "1"


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("!includedir /gone", r"my\.cnf line 2: observed .*/gone is not"),
        ("!includedir conf.d", "an absolute path"),
        ("!include ~/my.cnf", "an absolute path"),
    ],
)
def test_includes_that_cannot_be_followed_are_refused(line: str, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        effective({"my.cnf": f"[mysqld]\n{line}\n"})


def test_deep_includes_are_passed_over_and_floods_refused() -> None:
    found = effective({"my.cnf": "!include /etc/mysql/my.cnf\n[mysqld]\na = 1\n"})
    assert found.files == ["/etc/mysql/my.cnf"] * 11
    with pytest.raises(Malformed, match="more than 1000"):
        effective({"my.cnf": "!include /etc/mysql/my.cnf\n" * 3})


@pytest.mark.fact(62)
@pytest.mark.parametrize(
    "written, name, may",
    [
        ("innodb_flush_log_at", "innodb_flush_log_at_trx_commit", True),
        ("InnoDB_Flush_Log_At_Trx_Commit", "innodb_flush_log_at_trx_commit", True),
        ("Skip_Innodb_Doublewrite", "innodb_doublewrite", True),
        ("LOOSE_MAXIMUM_SYNC_BIN", "sync_binlog", True),
        ("maximum_sync_binlog", "sync_binlog", True),
        ("autoset_sync_binlog", "sync_binlog", True),
        ("debug_no", "debug_no_sync", True),
        ("DEBUG_NO_SYNC", "debug_no_sync", True),
        ("debug", "debug_no_sync", False),
        ("innodb", "innodb_doublewrite", False),
        ("log", "log_bin", False),
        ("sync_binlog", "sync_binlog", False),
        ("sync_binlog_x", "sync_binlog", False),
        ("maximum_", "sync_binlog", False),
        ("", "sync_binlog", False),
    ],
)
def test_what_may_mean_an_option_by_another_name(written: str, name: str, may: bool) -> None:
    assert my_cnf.may_mean(written, name) is may


def test_where_names_are_taken_in_full_only_their_letters_and_prefixes_may_differ() -> None:
    assert not my_cnf.may_mean("sync_bin", "sync_binlog", in_full=True)
    assert my_cnf.may_mean("SYNC_binlog", "sync_binlog", in_full=True)
    assert my_cnf.may_mean("maximum_sync_binlog", "sync_binlog", in_full=True)


@pytest.mark.parametrize(
    "name, is_read",
    [
        ("99-durable-dbhost.cnf", True),
        # Seen with MariaDB 10.5, 10.11 and 11.8, and MySQL 9.7.
        ("99-durable.dbhost.cnf", True),
        (".x.cnf", True),
        ("x.cnf.bak", False),
        (".cnf", True),
        ("x.CNF", False),
        ("cnf", False),
    ],
)
def test_names_that_includedir_reads(name: str, is_read: bool) -> None:
    assert my_cnf.is_option_file(name) is is_read


def test_a_name_over_which_versions_differ_is_refused() -> None:
    files = {"my.cnf": "[mysqld]\n!includedir /etc/mysql/d\n", "d/a.b.cnf": "[mysqld]\na = 1\n"}
    assert effective(files).settings["a"].value == "1"
    with pytest.raises(Malformed, match=r"my.cnf line 2: .*versions of MySQL differ.*rename them"):
        effective(files, "mysql", "8.0.36")
    del files["d/a.b.cnf"]
    assert effective({**files, "d/a.b": "[x"}, "mysql", "8.0.36").settings == {}


def test_booleans() -> None:
    assert [my_cnf.boolean(word) for word in (None, "1", "On", "TRUE")] == ["on"] * 4
    assert [my_cnf.boolean(word) for word in ("0", "OFF", "false")] == ["off"] * 3
    for word in ("", "2", "yes", "detect_only"):
        with pytest.raises(ValueError, match="expected ON or OFF"):
            my_cnf.boolean(word)
