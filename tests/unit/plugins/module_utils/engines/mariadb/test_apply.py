# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mariadb layer, against a fake server that restarts, forgets and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import Change
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import drop_in
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.observe import pending_flush_path
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_host import Killed
from ...fakes.fake_mariadb import DROP_IN, MAIN, MYSQL, PID, SERVER_CNF, MariaHost
from ...fakes.fake_proc import FakeProcess

LOG, BINLOG = "innodb_flush_log_at_trx_commit", "sync_binlog"
DOUBLEWRITE, METHOD, REDO = "innodb_doublewrite", "innodb_flush_method", "innodb_redo_log_enabled"
LAST = "/etc/mysql/mariadb.conf.d/zzz.cnf"
HEADER = drop_in.HEADER
FULL = {LOG: "1", BINLOG: "1", DOUBLEWRITE: "ON", METHOD: "O_DIRECT"}


def exposed(version: str = "10.11.19-MariaDB-0+deb12u1", **given: Any) -> MariaHost:
    """Return a host whose server flushes too little, now and at each start."""
    host = MariaHost(version, **given)
    host.files[SERVER_CNF] += (
        f"{LOG} = 2\n{BINLOG} = 0\nskip_innodb_doublewrite\ninnodb_flush_method = O_DIRECT_NO_FSYNC\n"
    )
    host.variables.update(
        {LOG: "2", BINLOG: "0", DOUBLEWRITE: "OFF", METHOD: "O_DIRECT_NO_FSYNC", "log_bin": "ON"}
    )
    host.variables["log_bin_basename"] = "/srv/log/bin"
    host.unflushed = {"log", "binlog"}
    return host


def targets(name: str = "mariadb", **settings: object) -> list[layer.Target]:
    return [layer.target_of({"instance": name, "settings": settings or FULL})]


def changed(work: layer.Work) -> set[tuple[str, str, str, str]]:
    assert {change.target for change in work.changes} <= {"mariadb"}
    return {change[1:] for change in work.changes}


def commands(host: MariaHost) -> list[tuple[str, ...]]:
    return [mutation[1:] for mutation in host.mutations if mutation[0] == "change"]


def bring(host: MariaHost, wanted: list[layer.Target], restart: bool = False) -> layer.Work:
    """Plan, apply, and see that nothing is left."""
    work = layer.plan(host, wanted, restart)
    assert host.mutations == []
    layer.apply(host, work, wanted)
    assert layer.plan(host, wanted, restart).changes == ()
    return work


@pytest.mark.fact(36)
def test_what_a_server_takes_is_set_and_the_rest_waits_for_its_next_start() -> None:
    host = exposed()
    work = bring(host, targets())
    assert changed(work) == {
        (LOG, "running", "2", "1"),
        (BINLOG, "running", "0", "1"),
        (LOG, "persisted", "2", "1"),
        (BINLOG, "persisted", "0", "1"),
        (DOUBLEWRITE, "persisted", "OFF", "ON"),
        (METHOD, "persisted", "O_DIRECT_NO_FSYNC", "O_DIRECT"),
    }
    assert host.files[DROP_IN] == (
        f"{HEADER}[mariadb]\nloose_{DOUBLEWRITE}=ON\nloose_{LOG}=1\nloose_{METHOD}=O_DIRECT\n{BINLOG}=1\n"
    )
    assert (host.variables[LOG], host.variables[BINLOG], host.variables[DOUBLEWRITE]) == ("1", "1", "OFF")
    assert (host.unflushed, host.restarts) == (set(), 0)
    told, *flushed = commands(host)
    assert told[-1] == (
        f"--execute=SET GLOBAL {BINLOG} = 1; SET GLOBAL {LOG} = 1; FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS"
    )
    assert flushed == [("sync", "--file-system", path) for path in ("/var/lib/mysql", "/srv/log")]


def test_the_log_is_flushed_also_on_the_way_to_the_third_safe_word() -> None:
    """At 3 the statement flushes nothing, so 1 comes first."""
    host = exposed()
    bring(host, targets(**{LOG: "3"}))
    assert (host.variables[LOG], host.unflushed) == ("3", set())


@pytest.mark.parametrize("restart", [False, True])
def test_a_restart_only_where_it_is_allowed_and_waited_for(restart: bool) -> None:
    host = exposed()
    work = bring(host, targets(), restart)
    assert host.restarts == int(restart)
    assert ((DOUBLEWRITE, "running", "OFF", "ON") in changed(work)) is restart
    assert host.variables[DOUBLEWRITE] == ("ON" if restart else "OFF")
    host.mutations.clear()
    bring(host, targets(), True)
    assert host.restarts == 1
    host.mutations.clear()
    bring(host, targets(), True)
    assert host.mutations == []


def test_no_restart_for_what_a_running_server_takes() -> None:
    host = exposed()
    bring(host, targets(**{LOG: "1", BINLOG: "1"}), True)
    assert host.restarts == 0


def test_a_restart_comes_last_and_is_followed_by_a_flush() -> None:
    host = exposed()
    bring(host, targets(**{METHOD: "O_DIRECT"}), True)
    told = [mutation[0] for mutation in host.mutations]
    assert told == ["file", "change", "change", "file", "change", "change", "change", "remove"]
    assert commands(host)[-3:] == [
        ("systemctl", "restart", "--", "mariadb.service"),
        ("sync", "--file-system", "/var/lib/mysql"),
        ("sync", "--file-system", "/srv/log"),
    ]


@pytest.mark.fact(28)
def test_a_server_that_systemd_does_not_manage_is_never_restarted() -> None:
    host = exposed()
    host.files["/run/systemd/system/mariadb.service.d/50-pacemaker.conf"] = ""
    work = bring(host, targets(), True)
    assert (host.restarts, (DOUBLEWRITE, "persisted", "OFF", "ON") in changed(work)) == (0, True)


def test_a_word_that_will_do_as_well_is_left_running() -> None:
    host = MariaHost()
    host.variables[LOG] = "3"
    assert changed(layer.plan(host, targets(**{LOG: "1"}))) == set()
    mysql = MariaHost(MYSQL)
    mysql.variables[LOG] = "3"
    assert layer.plan(mysql, targets(**{LOG: "1"})).changes


def test_loosening_flushes_nothing() -> None:
    host = MariaHost()
    work = bring(host, targets(**{LOG: 2, BINLOG: 0}))
    assert changed(work) == {(LOG, "running", "1", "2"), (LOG, "persisted", "1", "2")}
    (told,) = commands(host)
    assert told[-1] == f"--execute=SET GLOBAL {LOG} = 2"


@pytest.mark.fact(50)
def test_mysql_s_redo_log_is_switched_on_and_never_off() -> None:
    host = MariaHost(MYSQL)
    host.redo = "OFF"
    work = bring(host, targets(**{REDO: "ON"}))
    assert changed(work) == {(REDO, "running", "OFF", "ON")}
    assert host.redo == "ON"
    assert DROP_IN not in host.files
    with pytest.raises(ChangeFailed, match="never switched off"):
        layer.plan(host, targets(**{REDO: "OFF"}))
    with pytest.raises(ChangeFailed, match="no such setting"):
        layer.plan(MariaHost(), targets(**{REDO: "ON"}))


def test_a_stopped_server_gets_its_file_alone() -> None:
    host = exposed(running=False)
    bring(host, targets(), True)
    assert DROP_IN in host.files
    assert commands(host) == []


def test_without_a_login_what_it_will_be_is_set() -> None:
    host = exposed()
    host.login = "--user=nobody"
    work = bring(host, targets())
    assert {change.when for change in work.changes} == {"persisted"}


def test_the_group_is_that_of_the_server() -> None:
    mysql = MariaHost(MYSQL)
    mysql.variables[LOG] = "2"
    bring(mysql, targets(**{LOG: "1", METHOD: "O_DIRECT"}))
    assert mysql.files[DROP_IN] == f"{HEADER}[mysqld]\nloose_{METHOD}=O_DIRECT\n"


def test_what_our_file_says_already_stays() -> None:
    host = exposed()
    bring(host, targets(**{LOG: "1"}))
    host.mutations.clear()
    bring(host, targets(**{BINLOG: "1"}))
    assert host.files[DROP_IN] == f"{HEADER}[mariadb]\nloose_{LOG}=1\n{BINLOG}=1\n"


@pytest.mark.parametrize(
    ("path", "text", "argv", "why"),
    [
        (LAST, f"[mariadbd]\n{LOG}=0\n", (), f"observed 0 from {LAST} line 2"),
        (
            MAIN,
            f"!includedir /etc/mysql/mariadb.conf.d\n[server]\n{LOG}=0\n",
            (),
            "observed 0 from /etc/mysql/my.cnf line 3",
        ),
        (
            LAST,
            "",
            (f"--{LOG}=0",),
            "observed 0 from its command line.*remove --innodb_flush_log_at_trx_commit from the unit",
        ),
        (LAST, f"[mysqld]\n{LOG}=x\n", (), "observed nothing that counts.*expected a number"),
    ],
)
def test_what_would_go_on_beating_our_file_is_named_before_anything_changes(
    path: str, text: str, argv: tuple[str, ...], why: str
) -> None:
    host = exposed(argv=argv)
    host.files[path] = text
    with pytest.raises(ChangeFailed, match=why):
        layer.plan(host, targets(**{LOG: "1"}))
    assert host.mutations == []


@pytest.mark.fact(62)
def test_an_option_by_another_name_is_beaten_or_refused() -> None:
    host = MariaHost()
    host.stated = {LOG: "0"}
    host.files[SERVER_CNF] = "[mysqld]\nInnoDB_Flush_Log_At_Trx_Commit=0\n"
    work = layer.plan(host, targets(**{LOG: "1"}))
    assert [(change.when, change.before, change.after) for change in work.changes] == [
        ("persisted", "0", "1")
    ]
    assert list(work.files) == [DROP_IN]
    host.files[LAST] = "[mysqld]\ninnodb_flush_log_at_trx=0\n"
    why = f"{LAST} line 2: an option there may mean {LOG}.*correct what the reason names, then run again"
    with pytest.raises(ChangeFailed, match=why):
        layer.plan(host, targets(**{LOG: "1"}))
    assert host.mutations == []


@pytest.mark.fact(50)
def test_what_set_persist_left_is_named() -> None:
    host = MariaHost(MYSQL)
    host.files["/var/lib/mysql/mysqld-auto.cnf"] = json.dumps({"mysql_server": {LOG: {"Value": "2"}}})
    with pytest.raises(ChangeFailed, match=r"mysqld-auto.cnf: SET PERSIST.*run RESET PERSIST \w+$"):
        layer.plan(host, targets(**{LOG: "1"}))


def test_without_a_directory_of_option_files_what_to_do_is_said() -> None:
    host = exposed()
    host.files[MAIN] = f"[mysqld]\n{LOG}=2\n"
    with pytest.raises(ChangeFailed) as error:
        layer.plan(host, targets(**{LOG: "1"}))
    # The files of a whole directory would change more of the server: its data directory, for example.
    assert "includedir" not in str(error.value)
    assert (
        f"Fix: add `[mariadb]`, `{LOG}=1`, one line each, at the end of /etc/mysql/my.cnf, then run again"
        in str(error.value)
    )


def test_a_directory_that_is_included_last_is_taken() -> None:
    host = exposed()
    host.files[MAIN] += "!includedir /etc/mysql/late.d\n"
    host.files["/etc/mysql/late.d/a.cnf"] = "[mysqld]\n"
    bring(host, targets(**{LOG: "1"}))
    assert "/etc/mysql/late.d/zz-durable-dbhost.cnf" in host.files


def test_a_directory_that_another_one_includes_is_passed_over_where_it_is_beaten() -> None:
    host = exposed()
    host.files["/etc/mysql/mariadb.conf.d/10-first.cnf"] = "!includedir /etc/mysql/inner.d\n"
    host.files["/etc/mysql/inner.d/a.cnf"] = "[mysqld]\n"
    bring(host, targets(**{LOG: "1"}))
    assert DROP_IN in host.files
    assert "/etc/mysql/inner.d/zz-durable-dbhost.cnf" not in host.files


def test_servers_that_share_their_files_cannot_be_set_apart() -> None:
    host = exposed()
    host.start(replace(host.process, pid=81, cwd="/srv/two", cgroup="0::/system.slice/two.service\n"))
    host.units["two.service"] = {"TimeoutStopUSec": "infinity", "MainPID": "81"}
    host.files["/proc/81/status"] = host.files[f"/proc/{PID}/status"]
    one, two = targets(**{LOG: "1"})[0], targets("/srv/two", **{LOG: "3"})[0]
    with pytest.raises(ChangeFailed, match=f"mariadb: {LOG}: observed 3 from {DROP_IN} line 3; expected 1"):
        layer.plan(host, [one, two])
    with pytest.raises(ChangeFailed, match="observed twice among the targets"):
        layer.plan(host, [one, one])
    same = [one, two._replace(wanted={LOG: "1", BINLOG: "1"})]
    layer.apply(host, layer.plan(host, same), same)
    assert host.files[DROP_IN] == f"{HEADER}[mariadb]\nloose_{LOG}=1\n{BINLOG}=1\n"


def test_a_server_that_is_not_understood_does_not_stop_the_others() -> None:
    host = exposed()
    host.start(
        replace(
            host.process,
            pid=81,
            cwd="/srv/two",
            argv=(host.program, f"--{LOG}=0"),
            cgroup="0::/system.slice/two.service\n",
        )
    )
    host.units["two.service"] = {"TimeoutStopUSec": "infinity"}
    both = [*targets("/srv/two", **{LOG: "1"}), *targets(**{LOG: "1"})]
    work = layer.plan(host, both)
    layer.apply(host, work, both)
    assert host.files[DROP_IN] == f"{HEADER}[mariadb]\nloose_{LOG}=1\n"
    assert list(work.failures) == ["/srv/two"]
    assert work.failures["/srv/two"].startswith("/srv/two: ")
    with pytest.raises(ChangeFailed, match=r"^mariadb other: no such instance"):
        layer.plan(host, [*both, *targets("other")])


def test_somebody_else_s_file_of_our_name_is_left_alone() -> None:
    host = exposed()
    host.files[DROP_IN] = "[mariadb]\n# mine\n"
    with pytest.raises(ChangeFailed, match=f"move {DROP_IN} away"):
        layer.plan(host, targets(**{LOG: "1"}))
    assert layer.plan_release(host).changes == ()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"max_connections": "1"}, "max_connections"),
        ({"log_bin": "ON"}, "log_bin"),
        ({LOG: "1; DROP TABLE x"}, "expected a number"),
        ({LOG: True}, "expected a number"),
        ({METHOD: "O_DIRECT\n[mysqld]"}, "expected one of"),
        ({DOUBLEWRITE: "fast"}, "expected ON or OFF"),
    ],
)
def test_settings_and_words_that_are_none_are_refused(settings: dict[str, Any], why: str) -> None:
    host = exposed()
    with pytest.raises(ChangeFailed, match=why):
        layer.plan(host, targets(**settings))


def test_a_server_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ChangeFailed, match=r"other: no such instance.*are here: mariadb;"):
        layer.plan(exposed(), targets("other"))
    assert layer.plan(MariaHost(), []).changes == ()


def test_a_container_s_server_is_not_ours() -> None:
    host = exposed()
    host.files[f"/proc/{PID}/cgroup"] = f"0::/system.slice/docker-{'a' * 64}.scope\n"
    host.magic[f"/proc/{PID}/ns/mnt"] = "mnt:[4026539999]"
    with pytest.raises(ChangeFailed, match="managed by container"):
        layer.plan(host, targets("docker:/var/lib/mysql mariadb"))


def test_a_server_that_forgets_is_found_out() -> None:
    host = exposed()
    host.deaf = (LOG,)
    with pytest.raises(
        ChangeFailed, match=f"{LOG} .running.: observed 2, expected 1: the machine did not follow"
    ):
        layer.apply(host, layer.plan(host, targets()), targets())


def test_a_server_that_refuses_is_safe_at_its_next_start() -> None:
    host = exposed()
    work = layer.plan(host, targets())
    host.login = "nobody"
    with pytest.raises(ChangeFailed, match="Access denied"):
        layer.apply(host, work, targets())
    assert DROP_IN in host.files


@pytest.mark.parametrize("stop_at", range(1, 7))
def test_killed_at_any_step_nothing_is_less_safe_and_the_next_run_ends_it(stop_at: int) -> None:
    host = exposed()
    host.stop_at, host.stop = stop_at, Killed
    try:
        layer.apply(host, layer.plan(host, targets(), True), targets())
    except Killed:
        pass
    assert host.variables[LOG] in ("1", "2")
    assert host.files.get(DROP_IN, HEADER).startswith(HEADER)
    host.stop_at = 0
    layer.apply(host, layer.plan(host, targets(), True), targets())
    assert (host.variables[LOG], host.variables[DOUBLEWRITE]) == ("1", "ON")


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("stop_at", range(1, 9))
def test_killed_before_the_flush_it_is_never_told_as_safe(stop_at: int, restart: bool) -> None:
    """What was written to binary logs before SET GLOBAL is in the kernel's memory until then."""
    host = exposed()
    work = layer.plan(host, targets(), restart)
    host.stop_at, host.stop = stop_at, Killed
    with pytest.raises(Killed):
        layer.apply(host, work, targets())
        raise Killed
    word = layer._servers(host)[1]["mariadb"]["settings"][LOG]["running"]
    assert word in ("2", "unflushed") or not host.unflushed
    host.stop_at = 0
    host.mutations.clear()
    bring(host, targets(), restart)
    assert host.unflushed == set()
    assert layer._servers(host)[1]["mariadb"]["settings"][LOG]["running"] == "1"


def test_what_is_owed_is_flushed_by_the_next_run_and_told_until_then() -> None:
    host = exposed()
    bring(host, targets())
    host.mutations.clear()
    host.files[pending_flush_path("/var/lib/mysql")] = ""
    host.unflushed = {"log", "binlog"}
    row = layer._servers(host)[1]["mariadb"]["settings"][LOG]
    assert (row["running"], [each["cause"] for each in row["causes"]]) == ("unflushed", ["not_flushed"])
    assert changed(bring(host, targets())) == {(LOG, "running", "unflushed", "1")}
    assert host.unflushed == set()
    # Where loss is accepted nobody waits for it.
    host.files[pending_flush_path("/var/lib/mysql")] = ""
    host.mutations.clear()
    bring(host, targets(**{LOG: "2"}))
    assert host.variables[LOG] == "2"


def test_release_takes_our_file_away_and_nothing_else() -> None:
    host = exposed()
    before = dict(host.files)
    bring(host, targets())
    host.files[LAST] = "[mysqld]\n"
    work = layer.plan_release(host)
    assert Change(DROP_IN, "drop_in", "persisted", "present", "absent") in work.changes
    assert Change(DROP_IN, f"{LOG} of [mariadb]", "persisted", "1", "unset") in work.changes
    layer.apply_release(host, work)
    del host.files[LAST]
    assert dict(host.files) == before
    assert layer.plan_release(host).changes == ()


def test_release_finds_our_file_without_any_server_and_where_it_was_edited() -> None:
    host = MariaHost(running=False)
    host.files[DROP_IN] = f"{HEADER}no group\n"
    del host.files[f"/lib/systemd/system/{host.unit}"]
    work = layer.plan_release(host)
    assert work.files == (DROP_IN,)


WORDS = {
    LOG: st.sampled_from("0123"),
    BINLOG: st.integers(0, 2**32 - 1).map(str),
    DOUBLEWRITE: st.sampled_from(["ON", "OFF", "fast", "DETECT_AND_RECOVER"]),
    METHOD: st.sampled_from(["O_DIRECT", "fsync", "O_DIRECT_NO_FSYNC"]),
}


@given(
    st.dictionaries(
        st.sampled_from(drop_in.GROUPS),
        st.fixed_dictionaries({}, optional=WORDS).filter(bool),
    )
)
def test_our_file_says_what_was_written(groups: drop_in.Groups) -> None:
    assert drop_in.parse(drop_in.render(groups)) == groups


@pytest.mark.parametrize(
    "cluster",
    [
        {"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"},
        {"group_replication_group_name": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"},
    ],
)
def test_a_node_of_a_cluster_is_set_and_never_restarted(cluster: dict[str, str]) -> None:
    host = exposed()
    host.variables.update(cluster)
    work = layer.plan(host, targets(), restart=True)
    layer.apply(host, work, targets())
    assert host.restarts == 0
    assert (host.variables[LOG], host.variables[DOUBLEWRITE]) == ("1", "OFF")
    assert "innodb_doublewrite" in host.files[DROP_IN]


def test_a_link_in_our_place_is_refused() -> None:
    """The server passes over what it may not read: it is there all the same."""
    host = exposed()
    host.files["/etc/shadow"], host.modes["/etc/shadow"] = "root:secret\n", 0o640
    host.owners[DROP_IN] = ("640", "0", "42")
    host.links[DROP_IN] = "/etc/shadow"
    with pytest.raises(ChangeFailed, match="observed a link to"):
        layer.plan(host, targets(**{LOG: "1"}))
    assert host.mutations == []


@pytest.mark.parametrize("mode", [0o600, 0o666])
@pytest.mark.parametrize("text", ["[mysqld]\nsync_binlog = 7\n", f"{HEADER}[mariadb]\nsync_binlog=7\n"])
def test_a_file_that_the_server_passes_over_is_not_taken_for_none(mode: int, text: str) -> None:
    host = exposed()
    host.files[DROP_IN], host.modes[DROP_IN] = text, mode
    host.owners[DROP_IN] = (f"{mode:o}", "0", "0")
    with pytest.raises(ChangeFailed, match=f"move {DROP_IN} away"):
        layer.plan(host, targets(**{LOG: "1"}))
    assert host.mutations == []


@pytest.mark.parametrize("path", ["/etc/mysql/mariadb.conf.d", "/etc/mysql", DROP_IN])
def test_nothing_is_written_where_somebody_else_may_change_it(path: str) -> None:
    host = exposed()
    host.files[DROP_IN] = f"{HEADER}[mariadb]\nsync_binlog=7\n"
    host.uids[path] = 104
    with pytest.raises(ChangeFailed, match="user 104"):
        layer.plan(host, targets(**{LOG: "1"}))


def test_a_directory_of_others_that_a_server_includes_gets_no_file() -> None:
    """Any user can run a server, and include any directory there."""
    host = exposed()
    host.files["/etc/profile.d/x.cnf"] = ""
    host.files[MAIN] = "!includedir /etc/mysql/mariadb.conf.d\n!includedir /etc/profile.d\n"
    with pytest.raises(ChangeFailed, match="neither of its configuration nor of its data"):
        layer.plan(host, targets(**{LOG: "1"}))


def test_a_restart_is_over_when_the_server_says_what_it_runs_with() -> None:
    host = exposed()
    host.silent = 7
    bring(host, targets(), True)
    assert (host.silent, host.variables[DOUBLEWRITE]) == (0, "ON")
    host = exposed()
    host.silent = 1000
    with pytest.raises(ChangeFailed, match=f"{DOUBLEWRITE} .running.: observed unknown, expected ON"):
        bring(host, targets(), True)


def test_a_server_that_ends_after_its_restart_is_a_failure() -> None:
    host = exposed()
    host.ends = True
    with pytest.raises(ChangeFailed, match="mariadb: not running after a restart"):
        bring(host, targets(), True)


def test_a_server_that_refuses_keeps_no_other_from_its_restart() -> None:
    host = exposed()
    work = layer.plan(host, targets(), True)
    work = work._replace(
        steps={"refuses": work.steps["mariadb"]._replace(client=("nobody",), unit=None), **work.steps}
    )
    on_change = host.on_change

    def refuse(argv: list[str]) -> None:
        if argv[0] == "nobody":
            raise ChangeFailed("refused")
        on_change(argv)

    host.on_change = refuse  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=r"^refused$"):
        layer.apply(host, work, targets())
    assert (host.restarts, host.variables[DOUBLEWRITE]) == (1, "ON")


def test_nothing_is_restarted_where_its_file_could_not_be_written() -> None:
    host = exposed()
    host.links[DROP_IN] = "/dev/null"
    work = layer.plan(exposed(), targets(), True)
    with pytest.raises(ChangeFailed, match="masked"):
        layer.apply(host, work, targets())
    assert host.restarts == 0


def test_a_line_that_no_server_can_read_is_named() -> None:
    host = exposed()
    host.files[SERVER_CNF] = "[mysqld\n"
    host.login = "nobody"
    with pytest.raises(ChangeFailed, match=f"{SERVER_CNF} line 1"):
        layer.plan(host, targets(**{LOG: "1"}))


@pytest.mark.parametrize("harm", ["theirs", "link"])
def test_release_is_not_led_astray_by_who_runs_a_server(harm: str) -> None:
    """It names directories, and root reads and removes what lies there."""
    host = exposed()
    bring(host, targets())
    place = "/home/u/conf.d"
    path = f"{place}/{drop_in.NAME}"
    host.files[MAIN] += f"!includedir {place}\n"
    host.files[f"{place}/a.cnf"] = ""
    if harm == "link":
        host.links[path] = DROP_IN
    else:
        host.files[path] = HEADER
        host.uids[place] = 1000
    work = layer.plan_release(host)
    assert (work.files, list(work.failures)) == ((DROP_IN,), [path])
    assert {"theirs": "user 1000", "link": "a link"}[harm] in work.failures[path]
    host.mutations.clear()
    layer.apply_release(host, work)
    assert host.mutations == [("remove", DROP_IN)]


def test_our_file_is_not_waited_for_where_it_is_a_pipe() -> None:
    host = exposed()
    host.files[DROP_IN] = ""
    host.pipes.add(DROP_IN)
    with pytest.raises(ChangeFailed, match="not a regular file"):
        layer.plan(host, targets())
    found, failures = drop_in.ours(host, drop_in.PLACES)
    assert (found, list(failures)) == ({}, [DROP_IN])


def test_a_server_of_which_nobody_can_tell_whose_it_is_is_left_alone() -> None:
    host = exposed()
    host.start(FakeProcess(7, "/usr/sbin/pacemakerd", uid=0))
    with pytest.raises(ChangeFailed, match="managed by unknown"):
        layer.plan(host, targets())
