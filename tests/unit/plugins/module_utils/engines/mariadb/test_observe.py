# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What MariaDB and MySQL say of themselves, against a fake server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.rules import JUDGE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable

from ...fakes.fake_mariadb import (
    CLIENT,
    DENIED,
    DROP_IN,
    LISTENS,
    MAIN,
    MARIADB,
    MYSQL,
    PID,
    SERVER_CNF,
    SOCKET,
    MariaHost,
)
from ...fakes.fake_proc import OTHER, PRIVATE, RDWR, ProcHost, as_user

LOG, BINLOG = "innodb_flush_log_at_trx_commit", "sync_binlog"
DOUBLEWRITE, METHOD, REDO = "innodb_doublewrite", "innodb_flush_method", "innodb_redo_log_enabled"
AUTO = "/var/lib/mysql/mysqld-auto.cnf"
LATER = "/etc/mysql/mariadb.conf.d/60-galera.cnf"
VOLUME = """\
50 40 0:99 / / rw - overlay overlay rw
51 50 8:17 /volumes/my /var/lib/mysql rw - ext4 /dev/sdb1 rw
"""


def seen(host: ProcHost) -> dict[str, Any]:
    """Return the facts of the only server. Nothing is changed, and no password shown."""
    facts = collect(host, "2026-01-31T12:00:00Z")
    (found,) = facts["engines"]
    assert host.mutations == []
    assert "secret-word" not in json.dumps(facts)
    assert not found["evidence"].get("observation")
    return causes.of_instance(found)


def setting(host: ProcHost, name: str) -> tuple[str, str, str | None]:
    """Return what runs, what will, and where that stands."""
    found = seen(host)["settings"][name]
    return found["running"], found["persisted"], found["from"]


def clients(host: ProcHost) -> list[tuple[str, ...]]:
    """Return the commands of clients that were run."""
    return [argv for argv in host.asked if argv[0].startswith("/usr/bin/m")]


def auto(**values: str) -> str:
    """Return the file that SET PERSIST of MySQL 8.0.29 and later writes."""
    rows = {name: {"Value": value, "Metadata": {"Host": "localhost"}} for name, value in values.items()}
    return json.dumps(
        {"Version": 2, "mysql_dynamic_parse_early_variables": {}, "mysql_static_variables": rows}
    )


@pytest.mark.fact(36)
def test_debian_s_server_as_it_comes() -> None:
    host = MariaHost()
    found = seen(host)
    assert (found["flavour"], found["version"], found["pending_restart"], found["overrides"]) == (
        "mariadb",
        MARIADB,
        [],
        [],
    )
    words = {name: (kind["running"], kind["persisted"]) for name, kind in found["settings"].items()}
    assert words == {
        LOG: ("1", "1"),
        BINLOG: ("0", "0"),
        DOUBLEWRITE: ("ON", "ON"),
        METHOD: ("O_DIRECT", "O_DIRECT"),
        "log_bin": ("OFF", "OFF"),
    }
    assert {kind["from"] for kind in found["settings"].values()} == {f"default of {MARIADB}"}
    assert found["settings"][LOG]["source"] == f"SHOW GLOBAL VARIABLES at {SOCKET}"
    assert found["directories"] == ["/var/lib/mysql"]
    # One call of the client, which hands over no files and reads no option file.
    (argv,) = clients(host)
    assert argv[:3] == ("/usr/bin/mariadb", "--no-defaults", "--user=root")
    held = host.hold_socket(SOCKET).path
    assert {"--local-infile=0", "--protocol=socket", f"--socket={held}"} <= set(argv)


@pytest.mark.fact(36)
def test_mysql_as_it_comes() -> None:
    found = seen(MariaHost(MYSQL))
    assert found["flavour"] == "mysql"
    words = {name: (kind["running"], kind["persisted"]) for name, kind in found["settings"].items()}
    assert words == {
        LOG: ("1", "1"),
        BINLOG: ("1", "1"),
        DOUBLEWRITE: ("ON", "ON"),
        METHOD: ("fsync", "fsync"),
        "log_bin": ("ON", "ON"),
        REDO: ("ON", "ON"),
    }


@pytest.mark.parametrize(
    ("version", "name", "wanted"),
    [
        ("10.5.23-MariaDB", METHOD, "fsync"),
        ("10.6.0-MariaDB", METHOD, "O_DIRECT"),
        ("8.0.36", METHOD, "fsync"),
        ("8.4.0", METHOD, "O_DIRECT"),
        ("10.11.6-MariaDB", BINLOG, "0"),
        ("5.7.6", BINLOG, "0"),
        ("5.7.44-log", BINLOG, "1"),
        ("5.7.44-log", "log_bin", "OFF"),
        ("8.0.3", "log_bin", "ON"),
    ],
)
@pytest.mark.fact(36)
def test_where_nothing_is_set_the_version_s_default_holds(version: str, name: str, wanted: str) -> None:
    assert setting(MariaHost(version), name)[1:] == (wanted, f"default of {version}")


@pytest.mark.fact(36)
def test_a_setting_that_a_version_has_not_is_left_out_and_said() -> None:
    host = MariaHost("11.4.2-MariaDB")
    host.files[SERVER_CNF] = "[mysqld]\ninnodb_flush_method = nosync\n"
    found = seen(host)
    assert METHOD not in found["settings"]
    assert found["evidence"][METHOD]["value"] == "absent"
    assert "11.0" in found["evidence"][METHOD]["reason"]
    assert REDO not in seen(MariaHost("8.0.20"))["settings"]


@pytest.mark.parametrize("value", ["O_DIRECT_NO_FSYNC", "5"])
def test_from_11_a_flush_method_makes_the_doublewrite_buffer_fast(value: str) -> None:
    host = MariaHost("11.4.2-MariaDB")
    host.files[SERVER_CNF] = f"[mysqld]\ninnodb_flush_method = {value}\n"
    assert setting(host, DOUBLEWRITE)[1:] == ("fast", f"{SERVER_CNF} line 2: {METHOD}=O_DIRECT_NO_FSYNC")
    host.files[SERVER_CNF] += "innodb_doublewrite = OFF\n"
    assert setting(host, DOUBLEWRITE)[1] == "OFF"
    before = MariaHost()
    before.files[SERVER_CNF] = f"[mysqld]\ninnodb_flush_method = {value}\n"
    assert setting(before, DOUBLEWRITE)[1] == "ON"


def test_files_win_in_the_server_s_order_and_the_command_line_over_all() -> None:
    host = MariaHost()
    host.files[MAIN] += f"[mysqld]\n{BINLOG} = 1\n"
    host.files[SERVER_CNF] = f"[mariadb]\n{BINLOG} = 2\n[client]\n{BINLOG} = 8\n"
    host.files[LATER] = f"[mysqld]\n{LOG} = 2\nskip-innodb-doublewrite\n"
    assert setting(host, BINLOG)[1:] == ("1", "/etc/mysql/my.cnf line 6")
    assert setting(host, LOG)[1:] == ("2", f"{LATER} line 2")
    assert setting(host, DOUBLEWRITE) == ("ON", "OFF", f"{LATER} line 3")
    started = MariaHost(argv=("--user=mysql", "--sync-binlog", "7", "--skip-innodb_doublewrite=0"))
    started.files.update({path: host.files[path] for path in (MAIN, SERVER_CNF, LATER)})
    assert setting(started, BINLOG)[1:] == ("7", "its command line")
    assert setting(started, DOUBLEWRITE)[1:] == ("ON", "its command line")
    assert setting(started, LOG)[1:] == ("2", f"{LATER} line 2")


def test_what_waits_for_a_restart_is_named() -> None:
    host = MariaHost()
    host.variables[DOUBLEWRITE] = "OFF"
    host.variables[LOG] = "2"
    assert seen(host)["pending_restart"] == [DOUBLEWRITE]


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (("--no-defaults",), "default of"),
        (("--defaults-file=/srv/x.cnf",), "/srv/x.cnf line 2"),
        (("--defaults-extra-file=/srv/x.cnf",), "/srv/x.cnf line 2"),
        (("--defaults-group-suffix=.two",), f"{SERVER_CNF} line 4"),
    ],
)
def test_the_command_line_says_which_files(argv: tuple[str, ...], wanted: str) -> None:
    host = MariaHost(argv=argv)
    host.files["/srv/x.cnf"] = f"[mysqld]\n{BINLOG} = 3\n"
    host.files[SERVER_CNF] = f"[mysqld]\n{BINLOG} = 4\n[mysqld.two]\n{BINLOG} = 5\n"
    assert str(setting(host, BINLOG)[2]).startswith(wanted)


def test_an_option_file_named_from_where_it_was_started_is_unknown() -> None:
    host = MariaHost(argv=("--defaults-file=x.cnf",))
    found = seen(host)["settings"][LOG]
    assert (found["running"], found["persisted"]) == ("1", "unknown")
    assert "from where it was started is unknown" in found["reason"]


@pytest.mark.fact(50)
@pytest.mark.parametrize(
    "text",
    [
        auto(sync_binlog="0", innodb_doublewrite="OFF"),
        json.dumps({"Version": 1, "mysql_server": {"sync_binlog": {"Value": "0", "Metadata": {}}}}),
    ],
)
def test_what_set_persist_left_beats_files_and_command_line(text: str) -> None:
    host = MariaHost(MYSQL, argv=("--sync-binlog=1",))
    host.files[AUTO] = text
    assert setting(host, BINLOG)[1:] == ("0", f"{AUTO}: SET PERSIST")
    # MariaDB has no such thing.
    maria = MariaHost(argv=("--sync-binlog=1",))
    maria.files[AUTO] = text
    assert setting(maria, BINLOG)[1] == "1"
    off = MariaHost(MYSQL, argv=("--sync-binlog=1", "--persisted-globals-load=OFF"))
    off.files[AUTO] = text
    assert setting(off, BINLOG)[1] == "1"


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100000, '{"sync_binlog": 1'])
def test_persisted_variables_that_cannot_be_read_make_all_unknown(text: str) -> None:
    host = MariaHost(MYSQL)
    host.files[AUTO] = text
    found = seen(host)["settings"][LOG]
    assert (found["persisted"], found["reason"]) == (
        "unknown",
        f'"{AUTO}: not the JSON that SET PERSIST writes"',
    )


@pytest.mark.fact(50)
def test_a_redo_log_that_is_switched_off_is_told() -> None:
    host = MariaHost(MYSQL)
    host.redo = "OFF"
    assert setting(host, REDO) == ("OFF", "OFF", "the redo log itself")


def test_a_dedicated_server_of_mysql_8_0_does_not_flush() -> None:
    host = MariaHost(MYSQL)
    host.files[SERVER_CNF] = "[mysqld]\ninnodb_dedicated_server\n"
    assert setting(host, METHOD)[1] == "O_DIRECT_NO_FSYNC"
    host.files[SERVER_CNF] += "innodb_flush_method = fsync\n"
    assert setting(host, METHOD)[1] == "fsync"
    later = MariaHost("8.4.3")
    later.files[SERVER_CNF] = "[mysqld]\ninnodb_dedicated_server\n"
    assert setting(later, METHOD)[1] == "O_DIRECT"


@pytest.mark.parametrize(
    ("value", "word"),
    [("9", "3"), ("-1", None), ("'2'", "2"), ("1k", "3"), ("two", None), ("", None), ("1 1", None)],
)
def test_numbers_as_the_server_takes_them(value: str, word: str | None) -> None:
    host = MariaHost()
    host.files[SERVER_CNF] = f"[mysqld]\n{LOG} = {value}\n"
    found = seen(host)["settings"][LOG]
    assert found["persisted"] == (word or "unknown")
    if word is None:
        assert f"{SERVER_CNF} line 2" in found["reason"]


@pytest.mark.parametrize(("version", "word"), [(MARIADB, "3"), (MYSQL, "2")])
def test_a_number_that_is_too_large_becomes_the_largest(version: str, word: str) -> None:
    host = MariaHost(version)
    host.files[SERVER_CNF] = f"[mysqld]\n{LOG} = 9\n"
    assert setting(host, LOG)[1] == word


@pytest.mark.parametrize(("line", "word"), [("log_bin", "ON"), ("log-bin=0", "ON"), ("skip-log-bin", "OFF")])
def test_the_binary_log_is_off_only_where_it_is_skipped(line: str, word: str) -> None:
    host = MariaHost(MYSQL)
    host.files[SERVER_CNF] = f"[mysqld]\n{line}\n"
    assert setting(host, "log_bin")[1] == word
    assert setting(MariaHost(MYSQL, argv=(f"--{line}",)), "log_bin")[1] in (word, "OFF")


def stating(version: str = MARIADB, argv: tuple[str, ...] = (), **stated: str) -> MariaHost:
    """Return a server whose program says that it would start with these values."""
    host = MariaHost(version, argv=argv)
    host.stated = stated
    return host


def helped(host: ProcHost) -> list[tuple[str, ...]]:
    """Return the commands that asked a server's program."""
    return [argv for argv in host.asked if argv[0] == "setpriv"]


@pytest.mark.fact(62)
@pytest.mark.parametrize(
    "line",
    ["InnoDB_Flush_Log_At_Trx_Commit=0", f"maximum-{LOG}=0", "innodb_flush_log_at_trx=0", f"LOOSE-{LOG}=0"],
)
def test_an_option_by_another_name_is_what_the_program_says(line: str) -> None:
    host = stating(**{LOG: "0"})
    host.files[SERVER_CNF] = f"[mysqld]\n{LOG} = 1\n{line}\n"
    assert setting(host, LOG)[1:] == ("0", f"{SERVER_CNF} line 3")
    # Nobody else knows what it means.
    host.uids["/usr/sbin"] = 1000
    found = seen(host)["settings"][LOG]
    assert (found["persisted"], found["reason"]) == (
        "unknown",
        f'"{SERVER_CNF} line 3: an option there may mean {LOG}: write it out, in small letters"',
    )
    # The last word is plain.
    host.files[LATER] = f"[mysqld]\n{LOG} = 2\n"
    assert setting(host, LOG)[1:] == ("2", f"{LATER} line 2")


@pytest.mark.fact(62)
@pytest.mark.parametrize("line", ["DEBUG_NO_SYNC", "debug-no=1", "skip-DEBUG-no-sync=0"])
def test_an_option_that_no_variable_shows_is_found_by_another_name(line: str) -> None:
    host = stating(debug_no_sync="TRUE")
    host.files[SERVER_CNF] = f"[mysqld]\n{line}\n"
    (override,) = seen(host)["overrides"]
    assert (override["setting"], override["source"]) == ("debug_no_sync", f"{SERVER_CNF} line 2")
    host.uids["/usr/sbin"] = 1000
    found = seen(host)
    assert (found["overrides"], found["evidence"]["debug_no_sync"]["value"]) == ([], "unknown")


def test_a_command_line_s_other_names_are_unknown_for_the_program_is_not_given_them() -> None:
    host = stating(argv=("--Sync-Bin=5",), sync_binlog="5")
    assert setting(host, BINLOG)[1] == "unknown"
    assert setting(host, LOG)[1] == "1"


def test_of_what_the_command_line_names_the_program_has_no_opinion() -> None:
    host = stating(argv=(f"--{LOG}=2", "--log-bin"), **{LOG: "1", "log_bin": "(No default value)"})
    assert setting(host, LOG)[1:] == ("2", "its command line")
    assert setting(host, "log_bin")[1] == "ON"


def test_mysql_takes_names_in_full_only() -> None:
    mysql = MariaHost(MYSQL)
    mysql.files[SERVER_CNF] = "[mysqld]\nsync_bin = 0\n"
    assert setting(mysql, BINLOG)[1] == "1"


@pytest.mark.parametrize(
    ("name", "theirs"),
    [(LOG, "0"), (BINLOG, "1"), (DOUBLEWRITE, "FALSE"), (METHOD, "nosync"), ("log_bin", "x")],
)
def test_where_the_program_says_otherwise_nothing_is_known(name: str, theirs: str) -> None:
    host = stating(**{name: theirs})
    found = seen(host)["settings"][name]
    assert found["persisted"] == "unknown"
    assert "/usr/sbin/mariadbd --help --verbose tells" in found["reason"]
    other = LOG if name != LOG else BINLOG
    assert seen(host)["settings"][other]["persisted"] != "unknown"


def test_where_the_program_alone_knows_of_an_option_that_no_variable_shows_nothing_is_known() -> None:
    assert seen(stating(debug_no_sync="TRUE"))["evidence"]["debug_no_sync"]["value"] == "unknown"


def test_a_log_that_is_called_0_is_not_told_from_none() -> None:
    # Seen with MariaDB 10.5, 10.11 and 11.8: both are shown as 0.
    for line, word in (("skip-log-bin", "OFF"), ("log-bin = 0", "ON")):
        host = stating(log_bin="0")
        host.files[SERVER_CNF] = f"[mysqld]\n{line}\n"
        assert setting(host, "log_bin")[1] == word


@pytest.mark.parametrize("twice", [True, False])
def test_an_answer_without_a_value_or_with_two_is_none(twice: bool) -> None:
    host = stating(init_connect=f"a\n{LOG.replace('_', '-')}   1") if twice else MariaHost()
    host.stated = host.stated if twice else None
    found = seen(host)
    assert {kind["persisted"] for kind in found["settings"].values()} == {"unknown"}
    assert f"{2 if twice else 0} values of {LOG}" in found["settings"][LOG]["reason"]
    assert found["evidence"]["debug_no_sync"]["value"] == "unknown"


def test_a_server_without_innodb_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    host = MariaHost()
    whole = host._help
    why = "[ERROR] Parsing options for plugin 'InnoDB' failed. Disabling plugin"
    monkeypatch.setattr(host, "_help", lambda argv: whole(argv)._replace(stderr=why))
    assert "InnoDB cannot start" in seen(host)["settings"][LOG]["reason"]


def test_a_program_that_does_not_answer_in_time_leaves_all_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(argv: list[str]) -> Result:
        raise Unobservable(" ".join(argv))

    host = MariaHost(argv=("--wsrep-sst-auth=secret-word",))
    monkeypatch.setattr(host, "_help", hang)
    assert "no answer in time" in seen(host)["settings"][LOG]["reason"]


def test_what_mysql_chooses_by_itself_need_not_be_what_it_says() -> None:
    host = stating("8.4.3", **{METHOD: "fsync", "log_bin": "(No default value)"})
    assert (setting(host, METHOD)[1], setting(host, "log_bin")[1]) == ("O_DIRECT", "ON")
    assert setting(stating("8.4.3", **{METHOD: "nosync"}), METHOD)[1] == "unknown"
    host.files[SERVER_CNF] = f"[mysqld]\n{METHOD} = O_DIRECT\n"
    assert setting(host, METHOD)[1] == "unknown"


def test_the_program_is_asked_as_the_server_s_user_with_arguments_of_ours() -> None:
    """--help loads a library that a process's own arguments name, and env what its LD_PRELOAD does."""
    argv = (
        "--defaults-file=/srv/x.cnf",
        "--defaults-group-suffix=-a",
        "--plugin-load-add=evil",
        "--user=mysql",
    )
    host = MariaHost(argv=(*argv, "--plugin-dir=/tmp", "--defaults-extra-file=/tmp/x", "--", "--no-help"))
    seen(host)
    assert helped(host) == [
        (
            *as_user(26, 27, "--groups=30"),
            *("/usr/sbin/mariadbd", "--defaults-file=/srv/x.cnf", "--defaults-group-suffix=-a"),
            *("--datadir=/", "--help", "--verbose"),
        )
    ]


@pytest.mark.parametrize(
    ("argv", "environment", "given"),
    [
        ((), {"HOME": "/srv/own", "LD_PRELOAD": "/tmp/evil.so"}, ["env", "HOME=/srv/own"]),
        ((), {"HOME": "/srv", "MYSQL_HOME": "/none"}, []),
        ((), {"MYSQL_GROUP_SUFFIX": "-b"}, ["env", "MYSQL_GROUP_SUFFIX=-b"]),
        ((), {"MYSQL_GROUP_SUFFIX": "a b"}, None),
        ((), {"MYSQL_GROUP_SUFFIX": "/srv"}, None),
        ((), {"HOME": "/srv/o n"}, None),
        (("--defaults-extra-file=/srv/a b",), {}, None),
        (("--defaults-group-suffix=-a\n[client]",), {}, None),
        (("--defaults-other=1",), {}, None),
        (("--no-defaults",), {}, []),
    ],
)
def test_only_plain_values_choose_the_option_files_that_the_program_reads(
    argv: tuple[str, ...], environment: dict[str, str], given: list[str] | None
) -> None:
    host = MariaHost(argv=argv)
    host.start(replace(host.process, environment=environment))
    host.files[f"/proc/{PID}/status"] = "Uid:\t0\t26\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t30 \n"
    host.files.update({"/srv/own/.my.cnf": "", "/srv/o n/.my.cnf": ""})
    seen(host)
    end = len(as_user(26, 27))
    variables = [list(command[end : command.index(host.program)]) for command in helped(host)]
    assert variables == ([given] if given is not None else [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (SERVER_CNF, ""),
        ("/etc/mysql/mariadb.conf.d", ""),
        (LATER, "[mysqld]\n!include /etc/mysql/more/none.cnf\n"),
        (LATER, "[mysqld]\nplugin_dir = /etc/mysql/more\nplugin_load_add = evil\n"),
        (LATER, "[mysqld]\nplugin-di = /etc/mysql/more\n"),
        (LATER, "[mysqld]\nbasedir = /etc/mysql/more\n"),
        (LATER, "[mysqld]\nplugin_dir = more\n"),
    ],
)
def test_the_program_is_not_asked_if_others_can_change_what_it_loads(path: str, text: str) -> None:
    """The server may be confined, and this command would not be."""
    host = MariaHost()
    host.files.update({LATER: text, "/etc/mysql/more/evil.so": ""})
    if "plugin_dir = more" not in text:
        seen(host)
        assert len(helped(host)) == 1
    host.asked.clear()
    host.uids[path if not text else "/etc/mysql/more"] = 26
    assert setting(host, LOG)[1] == "1"
    assert helped(host) == []


def test_a_stopped_server_s_program_is_asked_as_its_account() -> None:
    host = MariaHost(running=False)
    host.stated = {LOG: "0"}
    assert seen(host)["settings"][LOG]["persisted"] == "unknown"
    assert helped(host)[0][:4] == ("setpriv", "--reuid=104", "--regid=110", "--clear-groups")
    ran = [argv for argv in host.asked if argv[0] == "setpriv"]
    assert ran[0][:3] == ("setpriv", "--reuid=104", "--regid=110")
    assert ran[0][-2:] == ("--no-defaults", "--version")
    del host.files["/etc/passwd"]
    found = seen(host)
    assert (found["version"], found["settings"][LOG]["persisted"]) == ("unknown", "unknown")
    assert "user and group of the server are unknown" in found["evidence"]["version"]["reason"]
    assert [argv for argv in host.asked if "--version" in argv or "--help" in argv] == ran


def test_the_program_of_a_silent_server_reports_its_version_to_the_server_s_user_alone() -> None:
    """Started by root, it would have root's rights, and none of the confinement of its service."""
    host = MariaHost()
    host.login = "denied"
    assert seen(host)["version"] == MARIADB
    ran = [argv for argv in host.asked if "--version" in argv]
    assert [argv[:4] for argv in ran] == [("setpriv", "--reuid=26", "--regid=27", "--groups=30")]
    host.files[f"/proc/{PID}/status"] = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \n"
    found = seen(host)
    assert found["version"] == "unknown"
    assert "does not run as root" in found["evidence"]["version"]["reason"]
    assert [argv for argv in host.asked if "--version" in argv] == ran


def test_no_program_is_asked_as_root_nor_one_that_others_may_change() -> None:
    host = MariaHost()
    host.files[f"/proc/{PID}/status"] = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \n"
    assert setting(host, LOG)[1] == "1"
    other = MariaHost()
    other.modes["/usr/sbin/mariadbd"] = 0o775
    assert setting(other, LOG)[1] == "1"
    assert helped(host) == helped(other) == []


def test_no_line_of_an_option_file_is_shown() -> None:
    host = MariaHost()
    host.files[SERVER_CNF] = "password = secret-word\n[mysqld]\n"
    found = seen(host)["settings"][LOG]
    assert (found["running"], found["persisted"]) == ("1", "unknown")
    assert found["reason"] == (
        f'"{SERVER_CNF} line 1: expected a [group] before the first option; fix that line, then run again"'
    )


def test_files_that_the_server_passes_over() -> None:
    host = MariaHost()
    host.files[LATER] = f"[mysqld]\n{LOG} = 2\n"
    host.modes[LATER] = 0o666
    assert setting(host, LOG)[1] == "1"
    host.modes[LATER] = 0o600
    # The server's user is 26, its groups are 27 and 30.
    for owner, wanted in (
        (("600", "0", "0"), "1"),
        (("600", "26", "0"), "2"),
        (("640", "0", "30"), "2"),
        (("640", "0", "31"), "1"),
        (("040", "26", "27"), "1"),
    ):
        host.owners[LATER] = owner
        assert setting(host, LOG)[1] == wanted
    host.deny(PID, "status")
    assert "not for everyone to read" in seen(host)["settings"][LOG]["reason"]


def test_a_login_that_is_refused_leaves_running_unknown() -> None:
    host = MariaHost()
    host.login = "--user=nobody"
    found = seen(host)
    kind = found["settings"][LOG]
    assert (kind["running"], kind["persisted"]) == ("unknown", "1")
    assert kind["reason"].startswith(
        f'"{SOCKET}: {DENIED.strip()}. Fix: write user and password of root to /root/.my.cnf ([client], mode 0600), or let root'
        " log in without a password: ALTER USER root@localhost IDENTIFIED VIA unix_socket"
    )
    # The program tells its version instead.
    assert found["version"] == MARIADB
    assert found["evidence"]["settings"]["value"] == "unknown"


def with_password(**process: Any) -> MariaHost:
    """Return a host with root's option file, whose server lets in nobody else."""
    host = MariaHost()
    host.files["/root/.my.cnf"] = "[client]\npassword = secret-word\n"
    host.uids[SOCKET] = 26
    host.login = "--defaults-file=/root/.my.cnf"
    if process:
        host.start(replace(host.process, **process))
        host.files[f"/proc/{PID}/status"] = "Uid:\t0\t26\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t30 \n"
    return host


def test_the_socket_alone_is_tried_first_and_then_root_s_option_file() -> None:
    host = with_password()
    assert setting(host, LOG)[0] == "1"
    assert len(clients(host)) == 2
    host.login = "--user=root"
    assert setting(host, LOG)[0] == "1"
    assert len(clients(host)) == 3


@pytest.mark.parametrize(
    "process",
    [
        {"cgroup": "0::/system.slice/cron.service\n"},
        {"cgroup": "0::/user.slice/user-26.slice/session-1.scope\n"},
        {"cgroup": "0::/mariadb.service\n"},
        {"exe": "/home/eve/mariadbd"},
    ],
)
def test_no_password_is_handed_to_what_is_no_service_of_the_system(process: dict[str, str]) -> None:
    host = with_password(**process)
    host.files["/home/eve/mariadbd"] = ""
    host.uids["/home/eve"] = 1000
    assert setting(host, LOG)[0] == "unknown"
    assert clients(host)
    assert not any("/root" in word for argv in clients(host) for word in argv)


def offers(host: MariaHost) -> list[tuple[str, ...]]:
    """Return the commands that had root's password."""
    return [argv for argv in clients(host) if any("/root" in word for word in argv)]


def test_no_password_is_handed_to_a_socket_of_others() -> None:
    host = with_password()
    # Another process put its own socket in the place of the server's.
    host.listening = {SOCKET: LISTENS + 1}
    kind = seen(host)["settings"][LOG]
    assert kind["running"] == "unknown"
    assert f"process {PID} does not listen at {SOCKET}" in str(kind["reason"])
    assert clients(host) == []


def test_a_file_of_the_same_number_on_another_disk_is_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    host = with_password()
    (listener,) = host.listeners()
    monkeypatch.setattr(host, "listeners", lambda: [listener._replace(device="8:17")])
    assert f"process {PID} does not listen at {SOCKET}" in str(seen(host)["settings"][LOG]["reason"])
    assert clients(host) == []


def test_the_answer_of_another_process_is_not_taken_for_the_server_s() -> None:
    """Any user can listen at /tmp/mysql.sock, and answer that every commit is flushed."""
    host = MariaHost()
    host.files["/tmp/mysql.sock"], host.listening = "", {"/tmp/mysql.sock": LISTENS + 1}
    del host.files[SOCKET]
    host.files[MAIN] = host.files[MAIN].replace("socket = ", "# ")
    assert setting(host, LOG)[0] == "unknown"
    assert clients(host) == []


def test_a_socket_that_is_exchanged_after_the_proof_gets_no_password() -> None:
    """The client gets the file that was held, and not a name."""
    host = with_password()
    held = host.hold_socket(SOCKET).path
    assert setting(host, LOG)[0] == "1"
    assert [word for argv in clients(host) for word in argv if "socket=" in word] == [f"--socket={held}"] * 2


def test_a_process_that_has_the_server_s_number_by_now_gets_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = with_password()
    listeners = host.listeners

    def recycle() -> list[Any]:
        host.files[f"/proc/{PID}/cgroup"] = "0::/user.slice/user-26.slice/session-1.scope\n"
        return listeners()

    monkeypatch.setattr(host, "listeners", recycle)
    assert "process 80 is in control group /user.slice" in str(seen(host)["settings"][LOG]["reason"])
    assert offers(host) == []


@pytest.mark.parametrize("client", [(), CLIENT[:1], CLIENT[1:]])
def test_a_client_that_would_reveal_the_password_does_not_get_it(client: tuple[str, ...]) -> None:
    """MariaDB 10.5's and MySQL's; and one that knows connection strings, and ignores what it does not know in them."""
    host = with_password()
    host.client = client
    reason = str(seen(host)["settings"][LOG]["reason"])
    assert "the password in /root/.my.cnf is not offered: /usr/bin/mariadb cannot refuse" in reason
    assert "an authentication that reveals it. Fix: let root log in without a password" in reason
    assert offers(host) == []


def test_a_client_with_a_password_refuses_what_reveals_it() -> None:
    host = with_password()
    assert setting(host, LOG)[0] == "1"
    (argv,) = offers(host)
    assert "--host=localhost;restricted_auth=mysql_native_password,client_ed25519" in argv


def test_the_first_login_has_no_password_at_all() -> None:
    """A client finds one in its environment and in .mylogin.cnf too."""
    host = with_password()
    seen(host)
    first, _second = clients(host)
    assert "--skip-password" in first


def test_no_password_is_handed_to_a_server_that_a_person_started() -> None:
    host = MariaHost()
    host.files["/root/.my.cnf"] = "[client]\npassword = secret-word\n"
    host.files[f"/proc/{PID}/status"] = "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n"
    assert setting(host, LOG)[0] == "1"
    assert not any("/root" in word for argv in clients(host) for word in argv)


def test_programs_from_elsewhere_are_not_run() -> None:
    """Who may start a process chooses its path, and root must not run what lies there."""
    host = MariaHost()
    host.start(replace(host.process, exe="/home/eve/bin/mariadbd"))
    host.files.update(dict.fromkeys(["/home/eve/bin/mariadbd", "/home/eve/bin/mariadb"], ""))
    host.uids["/home/eve"] = 1000
    host.login = "nobody"
    found = seen(host)
    assert not [argv for argv in host.asked if argv[0].startswith("/home")]
    assert (found["version"], found["settings"][LOG]["persisted"]) == ("unknown", "unknown")
    reason = found["evidence"]["version"]["reason"]
    assert "program /home/eve/bin/mariadbd may be changed by others than root" in reason


def test_a_client_that_others_may_change_is_not_run() -> None:
    host = MariaHost()
    host.start(replace(host.process, exe="/opt/db/bin/mariadbd"))
    host.files.update(dict.fromkeys(["/opt/db/bin/mariadbd", "/opt/db/bin/mariadb"], ""))
    host.modes["/opt/db/bin"] = 0o775
    assert setting(host, LOG)[0] == "1"
    assert {argv[0] for argv in clients(host)} == {"/usr/bin/mariadb"}
    host.uids["/usr/bin"] = 1000
    host.files["/opt/db/bin/mariadb"] = ""
    before = len(clients(host))
    assert setting(host, LOG)[0] == "unknown"
    assert len(clients(host)) == before
    assert not [argv for argv in host.asked if argv[0].startswith("/opt")]


def test_the_answer_of_another_server_is_not_taken_for_this_one_s() -> None:
    host = MariaHost()
    host.variables["datadir"] = "/srv/other/"
    found = seen(host)["settings"][LOG]
    assert found["running"] == "unknown"
    assert "it is another one" in found["reason"]
    host.links["/srv/other"] = "/var/lib/mysql"
    assert setting(host, LOG)[0] == "1"


@pytest.mark.parametrize("answer", [Result(0, "", ""), Result(0, "datadir\n", ""), Result(1, "", "")])
def test_an_answer_that_is_not_understood_is_unknown(answer: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    host = MariaHost()
    monkeypatch.setattr(host, "_answer", lambda _argv: answer)
    assert setting(host, LOG)[:2] == ("unknown", "1")


def test_a_server_that_does_not_answer_in_time_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(_argv: list[str]) -> Result:
        raise Unobservable("no answer within 10 s")

    host = MariaHost()
    monkeypatch.setattr(host, "_answer", hang)
    assert "gets no answer in time" in seen(host)["settings"][LOG]["reason"]
    host = MariaHost()
    del host.files[SOCKET]
    assert "no socket of it" in seen(host)["settings"][LOG]["reason"]
    host = MariaHost()
    del host.files["/usr/bin/mariadb"], host.files["/usr/bin/mysql"]
    assert "no client is installed" in seen(host)["settings"][LOG]["reason"]


def test_a_service_with_its_own_mounts_is_asked_where_its_socket_is() -> None:
    host = MariaHost()
    host.start(replace(host.process, namespace=PRIVATE))
    host.listen(f"/proc/{PID}/root{SOCKET}")
    assert setting(host, LOG)[0] == "1"
    held = host.hold_socket(f"/proc/{PID}/root{SOCKET}").path
    assert f"--socket={held}" in clients(host)[0]


@pytest.mark.fact(46)
@pytest.mark.parametrize("version", ["1:10.11.19+maria~ubu2204", None])
def test_in_a_container_nothing_is_run_and_files_are_read_where_they_are(version: str | None) -> None:
    host = MariaHost(running=False)
    root = f"/proc/{PID}/root"
    environment = {"MARIADB_VERSION": version, "MARIADB_ROOT_PASSWORD": "secret-word"} if version else {}
    host.start(
        replace(
            host.process,
            namespace=OTHER,
            mountinfo=VOLUME,
            pid_namespace="1",
            environment=environment,
            cgroup=f"0::/system.slice/docker-{'a' * 64}.scope\n",
        )
    )
    # An absolute link inside leads to a file inside.
    host.files[f"{root}{MAIN}"] = f"[mariadb]\n{LOG} = 2\n"
    host.links[f"{root}/etc/mysql/my.cnf"] = MAIN
    host.files[MAIN] = f"[mariadb]\n{LOG} = 0\n"
    facts = collect(host, "2026-01-31T12:00:00Z")
    found = next(found for found in facts["engines"] if found["pids"])
    kind = found["settings"][LOG]
    assert (found["namespace"], kind["running"]) == ("container", "unknown")
    assert clients(host) == []
    assert "secret-word" not in json.dumps(facts)
    if version:
        assert (kind["persisted"], kind["from"]) == ("2", "/etc/mysql/my.cnf line 2")
        assert kind["causes"] == [{"cause": "in_container", "parameters": {}}]
    else:
        assert kind["persisted"] == "unknown"


def test_a_stopped_server_has_what_its_files_say() -> None:
    host = MariaHost(running=False)
    host.files[SERVER_CNF] = f"[mysqld]\n{LOG} = 2\ndatadir = /srv/my\nlog_bin = /srv/log/bin\n"
    found = seen(host)
    kind = found["settings"][LOG]
    assert (found["state"], kind["running"], kind["persisted"], kind["from"]) == (
        "stopped",
        "stopped",
        "2",
        f"{SERVER_CNF} line 2",
    )
    assert found["directories"] == ["/srv/my", "/srv/log"]
    assert clients(host) == []


@pytest.mark.parametrize(
    "given", ["--sync-binlog=0", "--SYNC-BINLOG=0", "--sync-b 0", "--debug-no", "--loose-Inno=0"]
)
def test_a_stopped_server_whose_unit_gives_options_is_unknown(given: str) -> None:
    host = MariaHost(running=False)
    host.units[host.unit]["ExecStart"] = (
        "{ path=/usr/sbin/mariadbd ; argv[]=mariadbd --user=mysql ; ignore_errors=no ; }"
    )
    assert seen(host)["settings"][LOG]["persisted"] == "1"
    host.units[host.unit]["ExecStart"] = (
        f"{{ path=/usr/sbin/mariadbd ; argv[]=mariadbd {given} ; ignore_errors=no ; }}"
    )
    assert "has options in its unit" in seen(host)["settings"][LOG]["reason"]


def test_what_a_stopped_mysql_keeps_in_its_redo_log_is_unknown() -> None:
    found = seen(MariaHost(MYSQL, running=False))["settings"][REDO]
    assert (found["running"], found["persisted"]) == ("stopped", "unknown")
    assert "only the running server reports it" in found["reason"]


@pytest.mark.fact(46)
@pytest.mark.parametrize("running", [True, False])
def test_tables_with_a_directory_of_their_own(running: bool) -> None:
    host = MariaHost(running=running)
    host.files["/var/lib/mysql/shop/orders.isl"] = "/srv/big/shop/orders.ibd"
    host.files["/var/lib/mysql/shop/deep/no.isl"] = "/srv/no/no.ibd"
    assert seen(host)["directories"][-1] == "/srv/big/shop"
    assert "/srv/no" not in seen(host)["directories"]


def test_what_no_option_file_beats_is_told_with_its_remedy() -> None:
    host = MariaHost(argv=("--sync-binlog=0",))
    assert "remove --sync_binlog from the unit or script" in str(
        JUDGE.fix(seen(host)["settings"][BINLOG]["held"])
    )
    assert seen(host)["settings"][LOG]["held"] is None
    mysql = MariaHost(MYSQL)
    mysql.files[AUTO] = auto(sync_binlog="0")
    assert JUDGE.fix(seen(mysql)["settings"][BINLOG]["held"]) == "run RESET PERSIST sync_binlog"


def test_logs_for_people_and_temporary_tables_are_no_data() -> None:
    host = MariaHost()
    host.variables.update(
        slow_query_log_file="/var/log/mysql/slow.log",
        log_error="",
        tmpdir="/ram:/ram2",
        general_log_file="words.log",
    )
    paths = (
        "/var/log/mysql/slow.log",
        "/ram2/#sql_1_0.MAI",
        "/data/#sql-ib1.ibd",
        "/ram/orders.ibd",
        "/data/a.ibd",
    )
    host.start(
        replace(host.process, files=tuple((path, RDWR, 31) for path in (*paths, "/var/lib/mysql/words.log")))
    )
    found = seen(host)
    kept = {row["example"] for row in found["files"]}
    assert kept == {"/data/#sql-ib1.ibd", "/ram/orders.ibd"}
    assert sum(row["count"] for row in found["files"]) == 3
    # Whoever is not asked tells nothing of that.
    host.login = "--user=nobody"
    assert sum(row["count"] for row in seen(host)["files"]) == len(paths) + 1


def with_scratch(*paths: str) -> MariaHost:
    """Return a server with two directories for temporary files, and these files there and open."""
    host = MariaHost(argv=("--innodb-temp-data-file-path=../../../fast/ibtmp1:12M:autoextend",))
    host.variables.update(tmpdir="/scratch", innodb_tmpdir="/scratch")
    host.files.update(dict.fromkeys(paths, ""))
    host.start(replace(host.process, files=tuple((path, RDWR, 31) for path in paths)))
    return host


def test_temporary_tables_need_not_last() -> None:
    found = seen(with_scratch("/fast/ibtmp1", "/scratch/#sql_1_0.MAI"))
    assert found["temporary"] == ["/scratch", "/fast"]
    assert found["files"] == []


@pytest.mark.parametrize("other", ["/fast/undo001", "/fast/ibdata2", "/scratch/orders.ibd"])
def test_where_one_other_file_lies_they_count(other: str) -> None:
    found = seen(with_scratch("/fast/ibtmp1", "/scratch/#sql_1_0.MAI", other))
    place, _slash, _name = other.rpartition("/")
    assert place not in found["temporary"]
    assert [row["example"] for row in found["files"]] == [other]


def test_tables_whose_place_cannot_be_read_are_not_known() -> None:
    host = MariaHost()
    host.files["/var/lib/mysql/shop/orders.isl"] = "/srv/big/shop/orders.ibd"
    host.unreadable["/var/lib/mysql/shop/orders.isl"] = "Input/output error"
    found = seen(host)
    assert found["evidence"]["directories"] == {
        "value": "unknown",
        "source": "/var/lib/mysql/",
        "reason": '"/var/lib/mysql/shop/orders.isl: Input/output error"',
    }


def test_directories_that_mysql_knows_of() -> None:
    host = MariaHost(MYSQL)
    host.variables["innodb_directories"] = "/srv/big;/srv/more"
    assert {"/srv/big", "/srv/more"} < set(seen(host)["directories"])


def test_directories_of_data_and_logs() -> None:
    host = MariaHost(MYSQL)
    host.variables.update(
        innodb_data_file_path="ibdata1:12M;/srv/ib/ibdata2:50M:autoextend",
        innodb_log_group_home_dir="../redo",
        innodb_undo_directory="/srv/undo\tx",
        innodb_doublewrite_dir="dw",
        log_bin_basename="/srv/log/binlog",
    )
    assert seen(host)["directories"] == [
        "/var/lib/mysql",
        "/var/lib/redo",
        "/srv/undo\tx",
        "/var/lib/mysql/dw",
        "/srv/ib",
        "/srv/log",
    ]


@pytest.mark.parametrize(
    ("text", "argv", "where"),
    [
        ("[mariadb]\ndebug-no-sync\n", (), f"{SERVER_CNF} line 2"),
        ("", ("--debug-no-sync",), "its command line"),
        ("[mariadb]\ndebug-no-sync=0\n", (), None),
    ],
)
def test_a_server_that_never_syncs_is_told(text: str, argv: tuple[str, ...], where: str | None) -> None:
    host = MariaHost(argv=argv)
    host.files[SERVER_CNF] = text
    found = seen(host)["overrides"]
    assert [(row["setting"], row["value"], row["source"]) for row in found] == (
        [("debug_no_sync", "ON", where)] if where else []
    )


def test_our_own_file_is_read_as_any_other() -> None:
    host = MariaHost()
    host.files[DROP_IN] = "[mariadb]\nloose_innodb_flush_log_at_trx_commit=1\nsync_binlog=1\n"
    assert setting(host, LOG)[1:] == ("1", f"{DROP_IN} line 2")
    assert setting(host, BINLOG)[1:] == ("1", f"{DROP_IN} line 3")


GALERA = {"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}
GROUP = {"group_replication_group_name": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}


@pytest.mark.parametrize(
    ("variables", "line", "word"),
    [
        (GALERA, "", "galera"),
        ({"wsrep_on": "ON"}, "", "galera"),
        # Switched off for a while, it is a node all the same.
        ({**GALERA, "wsrep_on": "OFF"}, "wsrep-on = 1\n", "galera"),
        ({"wsrep_on": "ON", "wsrep_provider": "none"}, "", "systemd"),
        ({"wsrep_on": "OFF", "wsrep_provider": "none"}, "wsrep_on = OFF\n", "systemd"),
        (GROUP, "", "group_replication"),
        ({"group_replication_group_name": ""}, "", "systemd"),
    ],
)
def test_a_node_of_a_cluster_is_not_systemds_alone(variables: dict[str, str], line: str, word: str) -> None:
    host = MariaHost()
    host.variables.update(variables)
    host.files[LATER] = f"[mysqld]\n{line}"
    found = seen(host)
    assert (found["managed_by"], found["unit"]) == (word, "mariadb.service")
    assert found["evidence"]["managed_by"]["value"] == word


def test_a_stopped_node_is_known_by_its_options() -> None:
    host = MariaHost(running=False)
    host.files[LATER] = "[galera]\nwsrep_on = ON\n"
    assert seen(host)["managed_by"] == "galera"


def test_a_node_that_pacemaker_manages_stays_its_own() -> None:
    host = MariaHost()
    host.variables.update(GALERA)
    host.files["/run/systemd/system/mariadb.service.d/50-pacemaker.conf"] = ""
    assert seen(host)["managed_by"] == "pacemaker"
