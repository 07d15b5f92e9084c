# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PostgreSQL cluster says of itself and of its next start."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.overrides import fix
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    server as postgresql_server,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.cluster import (
    pending_flush_path,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.rules import JUDGE
from ansible_collections.durable.dbhost.plugins.module_utils.facts import engine_fixes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable

from ...fakes.fake_postgresql import AUTO, BIN, CONF, DATA, ETC, PID_FILE, REFUSED, UNIT, FakePostgresql
from ...fakes.fake_proc import OTHER, RDWR, FakeProcess

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures"
SHOW = ("systemctl", "show", "--property=Environment,EnvironmentFiles,ExecStart", "--")

AWAY = "run "


def told(host: FakePostgresql) -> dict[str, Any]:
    """Return the facts of the only cluster."""
    engines = Engines(host, ("postgresql",))
    (facts,) = map(causes.of_instance, engines.instances())
    assert host.mutations == []
    assert engines.failed == {}
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


def words(host: FakePostgresql, name: str = "fsync") -> tuple[str, str]:
    """Return what a setting is, and what it will be."""
    seen = told(host)["settings"][name]
    return seen["running"], seen["persisted"]


def asked(host: FakePostgresql) -> int:
    """Return how often the server was asked."""
    return len([argv for argv in host.asked if argv[0] == "setpriv"])


@pytest.mark.fact(35)
def test_a_cluster_that_runs() -> None:
    host = FakePostgresql()
    host.write(f"{ETC}/conf.d/a.conf", "synchronous_commit = remote_apply\n")
    facts = told(host)
    assert facts["version"] == "15.18 (Debian 15.18-0+deb12u1)"
    assert (facts["name"], facts["managed_by"], facts["pending_restart"]) == ("15/main", "systemd", [])
    assert {name: (seen["running"], seen["persisted"]) for name, seen in facts["settings"].items()} == {
        "fsync": ("on", "on"),
        "full_page_writes": ("on", "on"),
        "synchronous_commit": ("remote_apply", "remote_apply"),
        "wal_sync_method": ("fdatasync", "fdatasync"),
        "data_sync_retry": ("off", "off"),
    }
    seen = facts["settings"]["synchronous_commit"]
    assert (seen["from"], seen["reason"]) == (f"{ETC}/conf.d/a.conf:1", None)
    assert seen["source"] == f"pg_settings: configuration file {CONF}:7"
    assert asked(host) == 1


@pytest.mark.parametrize(
    ("arrange", "held"),
    [
        (lambda host: host.files.update({AUTO: "fsync = off\n"}), "ALTER SYSTEM RESET fsync"),
        (
            lambda host: host.files.update({f"{ETC}/pg_ctl.conf": "pg_ctl_options = '-o -F'\n"}),
            f"{ETC}/pg_ctl.conf",
        ),
        (lambda host: host.files.update({CONF: "fsync = off\n"}), None),
    ],
)
def test_what_no_file_of_ours_beats_is_told_with_its_remedy(arrange: Any, held: str | None) -> None:
    host = FakePostgresql()
    arrange(host)
    seen = told(host)["settings"]["fsync"]
    assert seen["persisted"] == "off"
    assert (held or "") in (JUDGE.fix(seen["held"]) or "")
    assert bool(seen["held"]) == bool(held)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "unknown"),
        ("# Comment\nauto\n", "unknown"),
        ("# Comment\n\nmanual # ours\n", "no"),
        ("disabled\n", "no"),
        ("?\n", "unknown"),
    ],
)
def test_whether_debian_starts_a_stopped_cluster_at_boot(text: str | None, word: str) -> None:
    host = FakePostgresql()
    host.stop_server()
    host.units[UNIT].update(UnitFileState="disabled", ActiveState="inactive")
    if text is not None:
        host.files[f"{ETC}/start.conf"] = text
    assert told(host)["starts_at_boot"] == word
    host.units[UNIT]["UnitFileState"] = "enabled"
    assert told(host)["starts_at_boot"] == "yes"


def test_a_log_for_people_is_no_data() -> None:
    host = FakePostgresql()
    paths = ("/var/log/pg/a.log", f"{DATA}/log/b.csv", f"{DATA}/base/1")
    host.start(replace(host.main, files=tuple((path, RDWR, 31) for path in paths)))
    assert sum(row["count"] for row in told(host)["files"]) == 3
    host.files[f"{DATA}/current_logfiles"] = "stderr /var/log/pg/a.log\ncsvlog log/b.csv\n"
    assert [row["example"] for row in told(host)["files"]] == [f"{DATA}/base/1"]


def test_running_and_persisted_are_two_things() -> None:
    host = FakePostgresql()
    host.files[CONF] += "fsync = off\n"
    assert words(host) == ("on", "off")
    host.load()
    host.files[CONF] = host.files[CONF].replace("off", "on")
    assert words(host) == ("off", "on")
    host.files[AUTO] = "fsync = 'off'\n"
    assert told(host)["settings"]["fsync"]["from"] == f"{AUTO}:1"


@pytest.mark.fact(35)
def test_what_waits_for_a_restart_is_named() -> None:
    host = FakePostgresql()
    host.write(CONF, "data_sync_retry = on\n")
    assert told(host)["pending_restart"] == ["data_sync_retry"]
    assert words(host, "data_sync_retry") == ("off", "on")


def test_what_this_starts_command_line_has_fixed_waits_for_a_restart() -> None:
    host = FakePostgresql("-F")
    host.source = "command line"
    assert words(host) == ("off", "on")
    assert told(host)["pending_restart"] == ["fsync"]
    # There the command line is what starts it again.
    other = FakePostgresql("-F", config=f"{DATA}/postgresql.conf")
    other.source = "command line"
    assert told(other)["pending_restart"] == []


@pytest.mark.fact(50)
def test_the_answer_of_a_real_server() -> None:
    host = FakePostgresql()
    answer = json.loads((FIXTURES / "postgresql_15_answer.json").read_text())
    host.files[f"{DATA}/postmaster.pid"] = (
        (FIXTURES / "postmaster_pid_15.txt").read_text().replace("13515", "50")
    )
    host.files[f"{DATA}/postmaster.pid"] = (
        host.files[f"{DATA}/postmaster.pid"].replace("6543", "5432").replace("/run/pg\n", "/run/postgresql\n")
    )
    host.says = {**answer, "config": CONF}
    facts = told(host)
    assert facts["pending_restart"] == ["data_sync_retry"]
    assert {name: seen["running"] for name, seen in facts["settings"].items()} == {
        "fsync": "on",
        "full_page_writes": "off",
        "synchronous_commit": "off",
        "wal_sync_method": "fdatasync",
        "data_sync_retry": "off",
    }
    # Others set work_mem alone, which is nobody's business here.
    assert [(row["scope"], row["value"], fix(row)) for row in facts["overrides"]] == [
        ("role a b", "off", f'{AWAY}ALTER ROLE "a b" RESET synchronous_commit'),
        ("database template1", "off", f'{AWAY}ALTER DATABASE "template1" RESET synchronous_commit'),
        (
            "role a b in database postgres",
            "off",
            f'{AWAY}ALTER ROLE "a b" IN DATABASE "postgres" RESET synchronous_commit',
        ),
    ]


@pytest.mark.fact(62)
@pytest.mark.parametrize(("release", "version"), [("17", "17.11"), ("18", "18.6")])
def test_the_answers_of_servers_of_today(release: str, version: str) -> None:
    """They know allow_alter_system, which was off when they were asked."""
    host = FakePostgresql()
    host.write(AUTO, "fsync = off\n")
    host.says = {**json.loads((FIXTURES / f"postgresql_{release}_answer.json").read_text()), "config": CONF}
    facts = told(host)
    assert facts["version"].startswith(f"{version} (Debian")
    assert facts["pending_restart"] == ["data_sync_retry"]
    fsync = facts["settings"]["fsync"]
    assert (fsync["running"], fsync["persisted"], fsync["permission"]) == ("off", "off", None)
    assert JUDGE.fix(fsync["held"]) == f"remove fsync from {AUTO}:1, then run again"
    assert fsync["refused"] == {"cause": "alter_system_off", "parameters": {}}
    assert [(row["value"], row["permission"]) for row in facts["overrides"]] == [
        ("off", "alter_system"),
        ("local", "alter_system"),
        ("off", "alter_system"),
    ]


@pytest.mark.fact(50)
@pytest.mark.parametrize("source", ["user", "database", "database user", "global"])
def test_a_value_of_the_login_that_asks_is_not_the_servers(source: str) -> None:
    host = FakePostgresql()
    host.source = source
    assert words(host, "synchronous_commit") == ("unknown", "on")
    assert "hides the server's own" in told(host)["settings"]["synchronous_commit"]["reason"]


def pid_file(text: str) -> Any:
    return lambda host: host.files.update({f"{DATA}/postmaster.pid": text})


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (lambda host: setattr(host, "refused", REFUSED), "Peer authentication failed"),
        (pid_file(PID_FILE.replace("50", "51", 1)), "names no port and socket of this server"),
        (pid_file("50\n"), "names no port and socket"),
        (pid_file(""), "names no port and socket"),
        (pid_file(PID_FILE.replace("/run/postgresql", "")), "unix_socket_directories is empty"),
        (pid_file(PID_FILE.replace("5432", "5432 -o")), "names no unix socket"),
        (lambda host: host.files.pop(f"{DATA}/postmaster.pid"), "is not there"),
        (lambda host: host.commands.update({("getent", "passwd", "26"): Result(2, "", "")}), "has no name"),
        (lambda host: host.says.update(settings=None), "not of the requested form"),
        (lambda host: host.says.update(settings={}), "this version has no fsync"),
    ],
)
def test_a_server_that_does_not_answer_is_unknown_with_the_reason(arrange: Any, reason: str) -> None:
    host = FakePostgresql()
    arrange(host)
    assert words(host) == ("unknown", "on")
    assert reason in told(host)["settings"]["fsync"]["reason"]
    if "this version" not in reason:
        facts = told(host)
        assert (facts["version"], facts["evidence"]["settings"]["source"]) == ("15", "psql")


def test_files_that_cannot_be_read_are_unknown_with_the_reason() -> None:
    host = FakePostgresql()
    host.files[CONF] = "fsync\n"
    assert words(host) == ("on", "unknown")
    assert f"{CONF} line 1" in told(host)["settings"]["fsync"]["reason"]
    host.files[CONF] = "fsync = maybe\n"
    assert words(host) == ("on", "unknown")
    assert words(host, "full_page_writes") == ("on", "on")
    host.files[CONF] = ""
    host.says["config"] = "/elsewhere/postgresql.conf"
    assert words(host) == ("on", "unknown")
    assert "the server reads /elsewhere" in told(host)["settings"]["fsync"]["reason"]


def test_in_a_container_it_is_not_asked_and_its_files_are_read() -> None:
    host = FakePostgresql()
    host.end(50)
    slash = "50 40 0:99 / / rw - overlay overlay rw\n"
    host.start(
        FakeProcess(
            50, host.main.exe, host.options, cwd=DATA, namespace=OTHER, pid_namespace="9", mountinfo=slash
        )
    )
    for path in (CONF, AUTO, f"{DATA}/PG_VERSION"):
        host.files[f"/proc/50/root{path}"] = host.files.pop(path)
    host.files[f"/proc/50/root{CONF}"] = "fsync = off\n"
    facts = told(host)
    assert facts["settings"]["fsync"]["running"] == "unknown"
    assert "container" in facts["settings"]["fsync"]["reason"]
    assert (facts["settings"]["fsync"]["persisted"], facts["version"]) == ("off", "15")
    assert asked(host) == 0


@pytest.mark.fact(46)
def test_links_out_of_the_data_directory_are_followed() -> None:
    host = FakePostgresql()
    host.directories -= {f"{DATA}/pg_wal"}
    host.links[f"{DATA}/pg_wal"] = "/log/wal"
    host.links[f"{DATA}/pg_tblspc/16384"] = "/log/space"
    host.links["/log/space"] = "/log/other"
    host.directories |= {"/log/wal", "/log/other"}
    host.files[f"{DATA}/pg_tblspc/16385/in_place"] = ""
    assert told(host)["directories"] == [DATA, "/log/wal", "/log/other"]
    host.hung = (f"{DATA}/pg_tblspc",)
    facts = told(host)
    assert facts["directories"] == [DATA]
    assert facts["evidence"]["directories"]["reason"] == f'"{DATA}/pg_tblspc: no answer within 10 s"'


SPACE = "/fast/space/PG_15_202209061"
SCRATCH = (f"{SPACE}/16384/t3_16402", f"{SPACE}/16384/t3_16402_fsm", f"{SPACE}/pgsql_tmp/pgsql_tmp88.0")


def with_space(*paths: str) -> FakePostgresql:
    """Return a server with a tablespace in which these files are."""
    host = FakePostgresql()
    host.links[f"{DATA}/pg_tblspc/16384"] = "/fast/space"
    host.directories |= {"/fast/space"}
    host.files.update(dict.fromkeys(paths, ""))
    return host


@pytest.mark.parametrize("paths", [SCRATCH, SCRATCH[:2], SCRATCH[2:]])
def test_a_tablespace_of_temporary_files_need_not_last(paths: tuple[str, ...]) -> None:
    found = told(with_space(*paths))
    assert (found["directories"], found["temporary"]) == ([DATA], ["/fast/space"])


@pytest.mark.parametrize(
    "other",
    [
        f"{SPACE}/16384/16403",
        f"{SPACE}/16384/16403_init",
        f"{SPACE}/16384/PG_VERSION",
        "/fast/space/dump.sql",
    ],
)
def test_a_tablespace_with_one_other_file_counts(other: str) -> None:
    found = told(with_space(*SCRATCH, other))
    assert (found["directories"], found["temporary"]) == ([DATA, "/fast/space"], [])


def test_a_tablespace_that_was_never_used_counts() -> None:
    host = with_space()
    host.directories |= {SPACE}
    assert told(host)["directories"] == [DATA, "/fast/space"]
    host.hung = (SPACE,)
    assert told(host)["directories"] == [DATA, "/fast/space"]


def test_its_open_temporary_files_are_no_data_and_another_is() -> None:
    host = with_space(*SCRATCH)
    later = f"{SPACE}/16384/16500"
    host.start(replace(host.main, files=tuple((path, RDWR, 31) for path in (*SCRATCH, later))))
    assert [row["example"] for row in told(host)["files"]] == [later]


def test_statistics_of_old_releases_need_not_last() -> None:
    host = FakePostgresql()
    host.files[CONF] += "stats_temp_directory = '/ram/stat'\n"
    host.files.update(dict.fromkeys(("/ram/stat/global.stat", "/ram/stat/db_0.stat"), ""))
    host.start(replace(host.main, files=(("/ram/stat/db_16384.tmp", RDWR, 31),)))
    found = told(host)
    assert (found["temporary"], found["files"]) == (["/ram/stat"], [])
    host.files["/ram/stat/mine"] = ""
    assert told(host)["temporary"] == []


def test_a_stopped_cluster_of_debian() -> None:
    host = FakePostgresql()
    host.files[CONF] = f"data_directory = '{DATA}'\nfsync = off\n"
    host.stop_server()
    facts = told(host)
    assert (facts["state"], facts["version"], facts["directories"]) == ("stopped", "15", [DATA])
    assert words(host) == ("stopped", "off")
    assert facts["settings"]["fsync"]["from"] == f"{CONF}:2"
    assert asked(host) == 0


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("Environment=PGDATA=/data/pg/ X=1\nExecStart={{ {argv} -D ${{PGDATA}} ;{end}", DATA),
        ("Environment=A=b PGDATA=/data/pg\nExecStart={{ {argv} ;{end}", DATA),
        ("Environment=PGDATA=/no\nExecStart={{ {argv} -D /data/pg ;{end}", DATA),
        ("Environment=\nExecStart={{ {argv} ;{end}", ""),
        (
            "Environment=PGDATA=/no\nEnvironmentFiles=/etc/x (ignore_errors=yes)\nExecStart={{ {argv} ;{end}",
            "",
        ),
        ("Environment=PGDATA=/no\nExecStart={{ {argv} -c config_file=/x ;{end}", ""),
        ("Environment=PGDATA=/no\n", ""),
    ],
)
def test_a_stopped_cluster_of_red_hat(shown: str, name: str) -> None:
    host = FakePostgresql()
    host.stop_server()
    del host.files[CONF]
    unit = "postgresql-15.service"
    host.files[f"/usr/lib/systemd/system/{unit}"] = ""
    host.files[f"{DATA}/postgresql.conf"] = "fsync = off\n"
    said = shown.format(argv="path=/p ; argv[]=/usr/pgsql-15/bin/postmaster", end=" ignore_errors=no ; }")
    host.commands[(*SHOW, unit)] = said
    facts = told(host)
    assert facts["name"] == (name or unit)
    assert facts["settings"]["fsync"]["persisted"] == ("off" if name else "unknown")
    if not name:
        assert "the location of its data is unknown" in facts["settings"]["fsync"]["reason"]


@pytest.mark.fact(35)
def test_what_is_owed_a_flush_is_never_told_as_on() -> None:
    host = FakePostgresql()
    host.files[pending_flush_path(DATA, "fsync")] = ""
    assert words(host) == ("unflushed", "on")
    assert words(host, "full_page_writes") == ("on", "on")
    assert "not been flushed to the disk" in told(host)["settings"]["fsync"]["reason"]
    host.write(CONF, "fsync = off\n")
    assert words(host) == ("off", "off")
    host.files[CONF] = f"data_directory = '{DATA}'\n"
    host.stop_server()
    assert words(host) == ("stopped", "unflushed")


def test_a_relative_data_directory_is_where_it_works() -> None:
    host = FakePostgresql(config=f"{DATA}/postgresql.conf")
    host.end(50)
    host.start(FakeProcess(50, host.main.exe, ("postgres", "-D", "pg"), cwd=DATA))
    assert words(host) == ("on", "on")
    assert told(host)["name"] == DATA


def test_the_unit_is_known() -> None:
    assert told(FakePostgresql())["unit"] == UNIT


@pytest.mark.parametrize("ending", ["", " (deleted)"])
@pytest.mark.parametrize(("owner", "is_asked"), [(0, True), (26, False), (1000, False)])
def test_a_client_beside_it_that_others_may_change_is_not_run(
    ending: str, owner: int, is_asked: bool
) -> None:
    """The server's user may have put it there, and another user if the server was deleted."""
    host = FakePostgresql()
    host.magic["/proc/50/exe"] = f"{BIN}/postgres{ending}"
    host.uids[BIN] = owner
    seen = told(host)["settings"]["fsync"]
    assert bool(asked(host)) == is_asked
    assert seen["running"] == ("on" if is_asked else "unknown")
    assert is_asked or re.search(
        rf"{BIN}/psql may be changed by others than root .* Fix: chown .*, or install the system's psql",
        seen["reason"],
    )


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        (
            ["/usr/lib/postgresql/9/bin/psql", "/usr/lib/postgresql/17/bin/psql"],
            "/usr/lib/postgresql/17/bin/psql",
        ),
        (["/usr/pgsql-16/bin/psql", "/usr/bin/psql"], "/usr/pgsql-16/bin/psql"),
        (["/usr/lib/postgresql15/bin/psql"], "/usr/lib/postgresql15/bin/psql"),
        (["/usr/bin/psql"], "/usr/bin/psql"),
        ([], None),
    ],
)
def test_the_system_s_newest_psql_stands_in_for_one_of_the_server_s_user(
    others: list[str], chosen: str | None
) -> None:
    host = FakePostgresql()
    own = "/opt/pg/bin"
    host.magic["/proc/50/exe"] = f"{own}/postgres"
    host.files.update(dict.fromkeys([f"{own}/psql", *others], ""))
    host.uids["/opt/pg"] = 26
    del host.files[f"{BIN}/psql"]
    # Debian's script reads the user's files.
    if "/usr/bin/psql" not in others:
        host.links["/usr/bin/psql"] = "/usr/share/postgresql-common/pg_wrapper"
        host.files["/usr/share/postgresql-common/pg_wrapper"] = ""
    if chosen:
        assert postgresql_server.login(host, 50, DATA).psql == chosen
        return
    with pytest.raises(
        Unobservable, match=r"/opt/pg/bin/psql may be changed .*\(/opt/pg belongs to user 26\)"
    ):
        postgresql_server.login(host, 50, DATA)


def test_a_socket_that_leads_psql_to_another_host_is_refused() -> None:
    """The file is the server's user's, whose server may have no network."""
    host = FakePostgresql()
    login = postgresql_server.login(host, 50, DATA)
    host.files[f"{DATA}/postmaster.pid"] = PID_FILE.replace("/run/postgresql", "/run/postgresql,192.0.2.1")
    with pytest.raises(Unobservable, match="has a comma"):
        postgresql_server.command(host, login)


def test_a_process_of_root_is_no_server_to_ask() -> None:
    """PostgreSQL refuses to run as root; its client would be run as root then."""
    host = FakePostgresql()
    host.files["/proc/50/status"] = "Name:\tx\nUid:\t1000\t0\t0\t0\n"
    host.commands[("getent", "passwd", "0")] = "root:x:0:0::/root:/bin/sh\n"
    with pytest.raises(Unobservable, match="runs as root"):
        postgresql_server.login(host, 50, DATA)
    assert asked(host) == 0


@pytest.mark.parametrize(
    "harm",
    [
        {"pending": [["fsync"]]},
        {"pending": {"fsync": 1}},
        {"overrides": [{"role": {}, "database": None, "config": []}]},
        {"overrides": [{"role": "", "database": "", "config": [1]}]},
        {"overrides": [{"role": "", "config": []}]},
        {"overrides": ["x"]},
        {"settings": {"fsync": []}},
        {"settings": {"fsync": {"value": "on"}}},
        {"version": []},
        {"config": {}},
        {"busy": "0"},
        "[" * 100_000,
    ],
)
def test_a_client_may_answer_anything(harm: dict[str, Any] | str) -> None:
    """It lies beside the server, and is its user's."""
    host = FakePostgresql()
    login = postgresql_server.login(host, 50, DATA)
    assert postgresql_server.ask(host, login, 50)["busy"] == 0
    run = host.run

    def answer(argv: list[str], timeout: float = 10) -> Result:
        result = run(argv, timeout)
        if argv[0] != "setpriv":
            return result
        said = harm if isinstance(harm, str) else json.dumps({**json.loads(result.stdout), **harm})
        return Result(0, said, "")

    host.run = answer  # type: ignore[method-assign]
    with pytest.raises(Unobservable, match="its answer is not of the requested form"):
        postgresql_server.ask(host, login, 50)


@pytest.mark.parametrize(
    "name", ['a"; DROP TABLE x; --', "$(touch /tmp/x)", "`id`", "a\n\\! id", "é", "", "a" * 64, "x\x1b", "'"]
)
def test_no_remedy_repeats_what_a_server_names_but_a_plain_word(name: str) -> None:
    host = FakePostgresql()
    answer = json.loads((FIXTURES / "postgresql_15_answer.json").read_text())
    set_for = [
        {"role": name, "database": None},
        {"role": None, "database": name},
        {"role": name, "database": "a"},
    ]
    overrides = [
        {**who, "config": ["fsync=off"], "alter": "ALTER SYSTEM SET fsync = off; --"} for who in set_for
    ]
    host.says = {**answer, "config": CONF, "overrides": overrides}
    remedies = {fix(row) for row in told(host)["overrides"]}
    assert remedies == {f"{AWAY}ALTER ROLE or ALTER DATABASE ... RESET fsync, with the name quoted"}


def of_bob(host: FakePostgresql, value: str = "off") -> dict[str, Any]:
    """Return the override of a role."""
    host.overrides = [{"role": "bob", "database": None, "config": [f"synchronous_commit={value}"]}]
    (row,) = told(host)["overrides"]
    return row


@pytest.mark.fact(62)
@pytest.mark.parametrize(
    ("says", "of_file", "of_role"),
    [
        ({}, "alter_system", "alter_system"),
        ({"superuser": False}, None, None),
        ({"alter_system": "off"}, None, "alter_system"),
        ({"replica": True}, "alter_system", None),
    ],
)
def test_what_a_server_would_take_back_is_told_with_its_permission(
    says: dict[str, Any], of_file: str | None, of_role: str | None
) -> None:
    host = FakePostgresql()
    host.write(AUTO, "fsync = off\n")
    host.says = says
    row = told(host)["settings"]["fsync"]
    assert (row["permission"], of_bob(host)["permission"]) == (of_file, of_role)
    is_off = says.get("alter_system") == "off"
    assert (
        row.get("refused") == {"cause": "alter_system_off", "parameters": {}},
        f"remove fsync from {AUTO}" in str(JUDGE.fix(row["held"])),
    ) == (is_off, is_off)
    assert ("ALTER SYSTEM RESET fsync" in str(JUDGE.fix(row["held"]))) != is_off
    assert ("on its primary" in fix(of_bob(host))) == ("replica" in says)


def test_of_a_stopped_server_nothing_can_be_taken_back() -> None:
    host = FakePostgresql()
    host.files[CONF] = f"data_directory = '{DATA}'\n{host.files[CONF]}"
    host.files[AUTO] = "fsync = off\n"
    host.stop_server()
    row = told(host)["settings"]["fsync"]
    assert "ALTER SYSTEM RESET" in str(JUDGE.fix(row["held"]))
    assert row["permission"] is None


@pytest.mark.fact(50)
@pytest.mark.parametrize(("value", "permission"), [("off", "alter_system"), ("local", None)])
def test_a_value_that_nobody_would_see_change_is_not_promised(value: str, permission: str | None) -> None:
    """A role's setting hides it; only one that the same run takes away hides it no more."""
    host = FakePostgresql()
    host.source, host.state["synchronous_commit"] = "user", value
    row = told(host)["settings"]["synchronous_commit"]
    assert str(JUDGE.fix(row["held"])).startswith(
        "run ALTER ROLE or ALTER DATABASE ... RESET synchronous_commit"
    )
    assert row["permission"] == permission


@pytest.mark.parametrize(
    ("arrange", "fix"),
    [
        (of_bob, 'run ALTER ROLE "bob" RESET synchronous_commit'),
        (
            lambda host: vars(host).update(source="configuration file", refused=REFUSED),
            "make 'local postgres postgres peer' the first line of pg_hba.conf, reload the server",
        ),
        (
            lambda host: host.says.update(settings={}),
            "update PostgreSQL to a version that has synchronous_commit",
        ),
    ],
)
def test_each_cause_of_an_unread_value_has_its_own_fix(arrange: Any, fix: str) -> None:
    host = FakePostgresql()
    host.source = "user"
    arrange(host)
    held = told(host)["settings"]["synchronous_commit"]["held"]
    assert str(JUDGE.fix(held)).startswith(fix) and engine_fixes.fits(held, JUDGE.fix_texts)


def test_a_value_that_is_none_is_for_its_reader() -> None:
    assert of_bob(FakePostgresql(), "maybe")["permission"] is None


def test_sessions_whose_statements_the_server_does_not_report_count_as_busy() -> None:
    """PostgreSQL 15 with track_activities off: state `disabled`, no query_start, and a statement of before went on unseen."""
    busy = " ".join(postgresql_server._SQL.partition("'busy'")[2].split())
    assert "OR state = 'disabled' AND backend_start < pg_conf_load_time() + interval '1 second'))" in busy
    assert "state IN ('active', 'fastpath function call') AND query_start < pg_conf_load_time()" in busy


def test_a_server_whose_user_cannot_be_read_has_no_configuration_opened() -> None:
    host = FakePostgresql()
    host.deny(50, "status")
    facts = told(host)
    assert facts["name"] == "process 50"
    assert "Permission denied" in facts["evidence"]["config"]["reason"]
    assert not [question for question in host.questions if question[:2] == ("read", CONF)]
