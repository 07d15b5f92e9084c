# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text of a process becomes text in root's option files, and no server's file changes another server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import Change
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import drop_in, my_cnf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.rules import JUDGE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_mariadb import DROP_IN, MAIN, MYSQL, PID, SERVER_CNF, MariaHost

LOG, BINLOG = "innodb_flush_log_at_trx_commit", "sync_binlog"
HEADER = drop_in.HEADER
#: What was done to the last release: root's client loaded that library, or root's backups failed.
NEW_LINES = "x]\n[client]\nplugin-dir=/tmp/evil\n[mariadb"
SUFFIXES = [NEW_LINES, "-dump", "ump", "-client", ".two", "1", "\r[client]", "]\n!include /tmp/evil.cnf\n["]
OTHER = "/srv/two"


def exposed(version: str = "10.11.19-MariaDB-0+deb12u1", **given: Any) -> MariaHost:
    """Return a host whose server flushes too little, now and at each start."""
    host = MariaHost(version, **given)
    host.files[SERVER_CNF] += f"{LOG} = 2\n"
    host.variables[LOG] = "2"
    return host


def start_other(host: MariaHost, *argv: str, unit: str = "mariadb@two.service", **given: Any) -> None:
    """Start a second server with arguments of its own."""
    cgroup = f"0::/system.slice/{unit}\n"
    process = replace(host.process, pid=81, cwd=OTHER, argv=(host.program, *argv), cgroup=cgroup)
    host.start(replace(process, **given))
    host.units[unit] = {"TimeoutStopUSec": "15min", "MainPID": "81"}
    host.files["/proc/81/status"] = host.files[f"/proc/{PID}/status"]


def targets(name: str = "mariadb", **settings: object) -> list[layer.Target]:
    return [layer.target_of({"instance": name, "settings": settings or {LOG: "1"}})]


def settled(host: MariaHost, wanted: list[layer.Target]) -> layer.Work:
    """Plan, apply what can be done, and return the plan."""
    work = layer.plan(host, wanted)
    layer.apply(host, work, wanted)
    return work


def sections(text: str) -> set[str]:
    """Return the groups of a file, as servers and clients read it."""
    return {line.section for line in my_cnf.parse(text) if line.kind == "group"}


def fact(host: MariaHost, name: str = "mariadb") -> dict[str, Any]:
    return layer._servers(host)[1][name]


@pytest.mark.parametrize("version", ["10.11.19-MariaDB-0+deb12u1", MYSQL])
@pytest.mark.parametrize("how", ["command line", "environment"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_group_suffix_never_becomes_text_in_root_s_option_file(suffix: str, how: str, version: str) -> None:
    host = exposed(version)
    if how == "environment":
        start_other(host, environment={"MYSQL_GROUP_SUFFIX": suffix})
    else:
        start_other(host, f"--defaults-group-suffix={suffix}")
    before = dict(host.files)
    with pytest.raises(
        ChangeFailed, match="Root's option files are left unchanged for this server: its group suffix"
    ):
        layer.plan(host, targets(OTHER))
    assert (host.mutations, dict(host.files)) == ([], before)
    # Together with a server of the system: that one's own group, and nothing else.
    work = layer.plan(host, [*targets(OTHER, **{LOG: "0"}), *targets()])
    assert list(work.failures) == [OTHER]
    assert sections(work.files[DROP_IN]) == {"mysqld" if version == MYSQL else "mariadb"}
    assert drop_in.foreign(work.files[DROP_IN]) == []
    assert {line.kind for line in my_cnf.parse(work.files[DROP_IN])} == {"other", "group", "setting"}


@pytest.mark.parametrize("suffix", [NEW_LINES, "-dump", "ump", "-client", "]\n!include /tmp/evil.cnf\n["])
def test_a_group_suffix_of_a_process_becomes_no_line_for_its_owner_to_add(suffix: str) -> None:
    """An administrator who adds such a group breaks their own programs."""
    host = exposed(argv=(f"--defaults-group-suffix={suffix}",))
    with pytest.raises(ChangeFailed) as failed:
        layer.plan(host, targets())
    assert "start it with a group suffix that begins with a dot" in str(failed.value)
    assert f"[mariadb{suffix}]" not in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("suffix", [".two", "1"])
def test_the_owner_of_a_server_with_a_harmless_suffix_gets_the_exact_lines(suffix: str) -> None:
    host = exposed(argv=(f"--defaults-group-suffix={suffix}",))
    with pytest.raises(ChangeFailed) as failed:
        layer.plan(host, targets())
    assert str(failed.value) == (
        f"mariadb: {LOG} is 2 (from {SERVER_CNF} line 4), must be 1. Root's option files are left unchanged for this"
        f" server: its group suffix `{suffix}` gives it separate groups. Fix: add `[mariadb{suffix}]`, `{LOG}=1`, one line"
        " each, at the end of /etc/mysql/my.cnf, then run again"
    )
    host.files[MAIN] += f"[mariadb{suffix}]\n{LOG}=1\n"
    assert fact(host)["settings"][LOG]["persisted"] == "1"
    host.variables[LOG] = "1"
    assert layer.plan(host, targets()).changes == ()


def test_facts_report_that_and_name_no_file_of_root_s_to_write() -> None:
    host = exposed(argv=("--defaults-group-suffix=-dump",))
    found = fact(host)
    assert found["writes"] == []
    assert (
        "Root's option files are left unchanged" in found["settings"][LOG]["refused"]["parameters"]["error"]
    )
    assert 'The host reports: "start it with a group suffix that begins with a dot' in str(
        JUDGE.fix(found["settings"][LOG]["held"])
    )
    assert fact(exposed())["writes"] == [DROP_IN]


@pytest.mark.parametrize(
    ("given", "uid", "why"),
    [
        ({}, "1000", "it runs as user 1000, and users from 1000 on are persons"),
        (
            {"cgroup": "0::/user.slice/user-26.slice/session-3.scope\n"},
            "26",
            "no service of the system runs it",
        ),
        ({"cgroup": "0::/system.slice/cron.service\n"}, "26", "cron.service starts another program"),
        ({"cgroup": "0::/system.slice/gone.service\n"}, "26", "gone.service starts another program"),
    ],
)
def test_a_server_that_is_no_service_of_the_system_gets_nothing_in_root_s_files(
    given: dict[str, str], uid: str, why: str
) -> None:
    host = exposed()
    host.units["cron.service"] = {"MainPID": "7"}
    start_other(host, **given)
    host.files["/proc/81/status"] = f"Uid:\t0\t{uid}\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t27 \n"
    with pytest.raises(ChangeFailed, match=f"{why}. Fix: start it with `--{LOG}=1`, then run again"):
        layer.plan(host, targets(OTHER))
    work = layer.plan(host, [*targets(OTHER), *targets(**{BINLOG: "1"})])
    assert why in work.failures[OTHER]
    assert work.files == {DROP_IN: f"{HEADER}[mariadb]\n{BINLOG}=1\n"}
    assert host.mutations == []


def test_of_a_person_s_server_their_own_file_is_named() -> None:
    host = exposed(argv=("--defaults-file=/home/joe/my.cnf",))
    host.files["/home/joe/my.cnf"] = f"[mysqld]\n{LOG}=0\n!includedir /etc/mysql/mariadb.conf.d\n"
    host.files[f"/proc/{PID}/status"] = "Uid:\t1000\t1000\t0\t0\nGid:\t0\t27\t0\t0\nGroups:\t27 \n"
    why = r"is a person|are persons.*add `\[mariadb\]`, `.*=1`, one line each, at the end of /home/joe/my.cnf"
    with pytest.raises(ChangeFailed, match=why):
        layer.plan(host, targets())
    assert host.mutations == []


@pytest.mark.parametrize("included", ["", "!includedir /srv/conf.d\n"])
def test_a_server_with_its_own_option_files_is_reported_with_the_file_to_change(included: str) -> None:
    host = exposed(argv=("--defaults-file=/srv/my.cnf",))
    host.files["/srv/my.cnf"] = f"[mysqld]\n{LOG}=0\n{included}"
    host.files["/srv/conf.d/a.cnf"] = ""
    with pytest.raises(
        ChangeFailed, match=r"own option files include none.*`\[mariadb\]`.*end of /srv/my.cnf"
    ):
        layer.plan(host, targets())
    assert fact(host)["writes"] == []
    # One that includes a directory of the packages is root's business.
    host.files["/srv/my.cnf"] = f"[mysqld]\n{LOG}=0\n!includedir /etc/mysql/mariadb.conf.d\n"
    assert list(settled(host, targets()).files) == [DROP_IN]


def test_a_server_without_option_files_is_reported_with_the_words_of_its_command_line() -> None:
    host = exposed(argv=("--no-defaults", f"--{LOG}=2"))
    with pytest.raises(ChangeFailed, match=f"remove --{LOG} from the unit.*start it with `--{LOG}=1`"):
        layer.plan(host, targets())


def test_what_is_not_from_our_own_lists_is_never_rendered() -> None:
    for groups in (
        {"mariadb.two": {LOG: "1"}},
        {"client": {LOG: "1"}},
        {"mariadb": {"plugin_dir": "1"}},
        {"mariadb": {LOG: "1\n[client]"}},
        {"mariadb": {BINLOG: "1 # x"}},
        {"mariadb": {BINLOG: "\u0661"}},
    ):
        with pytest.raises(ValueError, match="not from our own lists"):
            drop_in.render(groups)


@pytest.mark.parametrize("is_stale", [True, False])
def test_foreign_lines_in_our_file_are_removed_and_reported(is_stale: bool) -> None:
    """An earlier release wrote them."""
    host = MariaHost()
    value = "2" if is_stale else "1"
    host.files[DROP_IN] = (
        f"{HEADER}[client]\nplugin-dir=/tmp/evil\n!include /tmp/evil.cnf\n[mariadb]\nloose_{LOG}={value}\n"
        f"max_connections=9\n[mariadb-dump]\nloose_{LOG}=1\n"
    )
    host.files["/tmp/evil.cnf"] = ""
    work = settled(host, targets())
    named = {
        change.setting for change in work.changes if (change.before, change.after) == ("present", "absent")
    }
    foreign = {
        "plugin_dir of [client]",
        "!include",
        "max_connections of [mariadb]",
        f"{LOG} of [mariadb-dump]",
    }
    assert named == foreign
    assert host.files[DROP_IN] == f"{HEADER}[mariadb]\nloose_{LOG}=1\n"
    assert layer.plan(host, targets()).changes == ()


def test_release_removes_a_file_with_foreign_groups() -> None:
    host = MariaHost()
    host.files[DROP_IN] = f"{HEADER}[mariadb.two]\nloose_{LOG}=1\n"
    work = layer.plan_release(host)
    assert Change(DROP_IN, f"{LOG} of [mariadb.two]", "persisted", "1", "unset") in work.changes
    layer.apply_release(host, work)
    assert DROP_IN not in host.files


def test_a_suffix_server_that_rests_on_our_old_group_is_named_before_it_goes() -> None:
    host = exposed()
    host.files[DROP_IN] = f"{HEADER}[mariadb.two]\nloose_{LOG}=1\n"
    start_other(host, "--defaults-group-suffix=.two")
    before = dict(host.files)
    for wanted in ([*targets(**{BINLOG: "1"})], [*targets(**{BINLOG: "1"}), *targets(OTHER)]):
        with pytest.raises(
            ChangeFailed, match=rf"{OTHER}: {LOG} would be 2.*add `\[mariadb.two\]`, `{LOG}=1`"
        ):
            layer.plan(host, wanted)
    assert dict(host.files) == before
    host.files[MAIN] += f"[mariadb.two]\n{LOG}=1\n"
    settled(host, targets())
    assert sections(host.files[DROP_IN]) == {"mariadb"}


@pytest.mark.parametrize("is_target", [True, False])
def test_a_server_that_reads_the_group_of_another_is_never_made_less_safe(is_target: bool) -> None:
    """Files are read in order, so the group of all MariaDB servers in our file beats a separate group in an earlier one."""
    host = MariaHost()
    host.files[SERVER_CNF] += f"[mariadb.two]\n{LOG} = 1\n"
    start_other(host, "--defaults-group-suffix=.two")
    assert fact(host, OTHER)["settings"][LOG]["persisted"] == "1"
    wanted = [*targets(**{LOG: "2"}), *(targets(OTHER) if is_target else [])]
    with pytest.raises(ChangeFailed, match=f"{OTHER}: {LOG} would be 2 at the next start"):
        layer.plan(host, wanted)
    assert host.mutations == []
    host.files[MAIN] += f"[mariadb.two]\n{LOG} = 1\n"
    assert settled(host, wanted).failures == {}
    assert fact(host, OTHER)["settings"][LOG]["persisted"] == "1"


def test_a_server_that_reads_the_group_of_another_gets_its_setting_from_there() -> None:
    host = exposed()
    start_other(host, "--defaults-group-suffix=.two")
    both = [*targets(OTHER), *targets()]
    work = settled(host, both)
    assert (work.failures, list(work.files)) == ({}, [DROP_IN])
    assert host.files[DROP_IN] == f"{HEADER}[mariadb]\nloose_{LOG}=1\n"
    assert fact(host, OTHER)["settings"][LOG]["persisted"] == "1"
    assert layer.plan(host, both).changes == ()


def test_a_server_of_unknown_next_start_stops_what_loosens_and_nothing_else() -> None:
    host = MariaHost()
    start_other(host, "--defaults-file=relative.cnf")
    with pytest.raises(ChangeFailed, match=f"{OTHER}: its next start cannot be read"):
        layer.plan(host, targets(**{LOG: "2"}))
    host.files[SERVER_CNF] += f"{LOG} = 2\n"
    assert settled(host, targets()).failures == {}


def test_a_person_s_server_stops_nothing() -> None:
    host = MariaHost()
    start_other(
        host, "--defaults-file=relative.cnf", cgroup="0::/user.slice/user-1000.slice/session-3.scope\n"
    )
    assert list(settled(host, targets(**{LOG: "2"})).files) == [DROP_IN]
