# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who manages an instance."""

from __future__ import annotations

import time

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines, collect

from ..fakes.fake_proc import FakeProcess, ProcHost

PG = "/usr/lib/postgresql/15/bin/postgres"
UNIT = "postgresql.service"
PACEMAKER = FakeProcess(9, "/usr/sbin/pacemakerd", uid=0, cgroup="0::/system.slice/pacemaker.service\n")
PATRONI = FakeProcess(
    8,
    "/usr/bin/python3.11",
    ("/usr/bin/python3", "/usr/bin/patroni", "/etc/patroni.yml"),
    name="patroni",
    cgroup="0::/system.slice/patroni.service\n",
)


def postgres(unit: str = UNIT, ppid: int = 1, exe: str = PG) -> FakeProcess:
    """Return a server in the control group of a unit."""
    return FakeProcess(50, exe, ("x",), ppid=ppid, cwd="/data/pg", cgroup=f"0::/system.slice/{unit}\n")


def manager(host: ProcHost) -> tuple[str, str]:
    """Return who manages the only instance, and why or how that is known."""
    (found,) = map(causes.of_instance, collect(host, "now")["engines"])
    seen = found["evidence"]["managed_by"]
    assert seen["value"] == found["managed_by"]
    return found["managed_by"], str(seen["reason"] or seen["source"])


def with_file(host: ProcHost, path: str, text: str = "") -> ProcHost:
    """Return the host with one more file."""
    host.files[path] = text
    return host


@pytest.mark.parametrize(
    ("cgroup", "word", "said"),
    [
        ("/system.slice/postgresql.service", "systemd", "postgresql.service: active"),
        ("/user.slice/user-0.slice/session-3.scope", "none", "session-3.scope"),
        ("/user.slice/user-5.slice/user@5.service/app.slice/pg.service", "unknown", "a user's own systemd"),
        ("/", "none", "/"),
    ],
)
def test_systemd_or_nobody(cgroup: str, word: str, said: str) -> None:
    host = ProcHost(FakeProcess(50, PG, cwd="/data/pg", cgroup=f"0::{cgroup}\n"))
    host.units = {UNIT: {"UnitFileState": "enabled"}}
    found, how = manager(host)
    assert (found, said in how) == (word, True)


START = "{{ path={} ; argv[]={} ; ignore_errors=no ; start_time=[n/a] }}"
SAFE = FakeProcess(40, "/bin/dash", name="mysqld_safe", cgroup="0::/system.slice/own.service\n")


@pytest.mark.parametrize(
    ("unit", "said", "ppid", "word"),
    [
        ("own.service", {"MainPID": "50"}, 1, "systemd"),
        ("own.service", {"MainPID": "40"}, 40, "systemd"),
        ("own.service", {"MainPID": "0", "ExecStart": START.format(PG, PG)}, 1, "systemd"),
        ("own.service", {"MainPID": "40"}, 1, "none"),
        # A wrapper, which another one has started; and what is no wrapper.
        ("own.service", {"MainPID": "7"}, 40, "none"),
        ("cron.service", {"MainPID": "41"}, 41, "none"),
        ("own.service", {"MainPID": "1"}, 1, "none"),
        ("own.service", {"ExecStart": START.format("/usr/bin/agent", f"/usr/bin/agent {PG}")}, 1, "none"),
        ("own.service", {"MainPID": "\u0665\u0660"}, 1, "none"),
        ("cron.service", {"MainPID": "7"}, 1, "none"),
        ("postgresql@15-main.service", {"MainPID": "7"}, 1, "systemd"),
        ("mariadb.service", {"MainPID": "7"}, 1, "none"),
    ],
)
def test_a_unit_is_restarted_only_where_it_is_the_servers_own(
    unit: str, said: dict[str, str], ppid: int, word: str
) -> None:
    cron = FakeProcess(41, "/usr/sbin/cron", cgroup="0::/system.slice/cron.service\n")
    host = ProcHost(SAFE, cron, postgres(unit, ppid=ppid))
    host.units = {unit: {"TimeoutStopUSec": "1h", **said}}
    found, how = manager(host)
    assert (found, unit in how) == (word, True)
    (facts,) = collect(host, "now")["engines"]
    assert (facts["unit"], facts["stop_timeout"]) == (unit, "3600" if word == "systemd" else "unknown")


@pytest.mark.parametrize("names", [("postgresql",), ("postgresql", "mariadb")])
@pytest.mark.parametrize("other", [PG, "/usr/sbin/mariadbd"])
def test_a_unit_with_two_servers_is_never_restarted(names: tuple[str, ...], other: str) -> None:
    """Also where only one of the engines is looked at, as a layer does."""
    second = FakeProcess(60, other, ("y",), cwd="/data/two", cgroup=f"0::/system.slice/{UNIT}\n")
    host = ProcHost(postgres(), second)
    host.units = {UNIT: {"MainPID": "50"}}
    found = [facts for facts in Engines(host, names).instances() if facts["pids"] == [50]]
    assert [facts["managed_by"] for facts in found] == ["none"]
    assert "process 60" in found[0]["evidence"]["managed_by"]["source"]


def test_the_same_servers_other_processes_are_no_second_one() -> None:
    worker = FakeProcess(60, PG, ("y",), ppid=50, cwd="/data/pg", cgroup=f"0::/system.slice/{UNIT}\n")
    assert manager(ProcHost(postgres(), worker))[0] == "systemd"


@pytest.mark.fact(28)
@pytest.mark.parametrize("exe", [PG, "/opt/mssql/bin/sqlservr"])
@pytest.mark.parametrize(
    ("host", "word", "said"),
    [
        # Its agent has started it.
        (ProcHost(PACEMAKER), "pacemaker.service", "its unit is pacemaker.service"),
        # It let systemd start the unit, and says so in a drop-in.
        (
            with_file(ProcHost(PACEMAKER), f"/run/systemd/system/{UNIT}.d/50-pacemaker.conf"),
            UNIT,
            "50-pacemaker.conf",
        ),
    ],
)
def test_pacemaker(host: ProcHost, word: str, said: str, exe: str) -> None:
    host.start(postgres(word, exe=exe))
    found, how = manager(host)
    assert (found, said in how) == ("pacemaker", True)


@pytest.mark.fact(28)
def test_where_pacemaker_runs_and_nothing_tells_it_is_unknown() -> None:
    """Of an availability group it manages the roles, while systemd starts the server."""
    found, how = manager(ProcHost(PACEMAKER, postgres("mssql-server.service", exe="/opt/mssql/bin/sqlservr")))
    assert (found, "one of its resources" in how) == ("unknown", True)


def test_a_process_that_only_calls_itself_pacemaker_manages_nothing() -> None:
    assert (
        manager(ProcHost(FakeProcess(9, "/usr/bin/python3", name="pacemakerd"), postgres()))[0] == "systemd"
    )


def test_a_user_s_program_of_that_name_manages_nothing() -> None:
    for name in ("pacemakerd", "patroni"):
        theirs = FakeProcess(9, f"/home/u/{name}", (name,), name=name, uid=1000)
        assert manager(ProcHost(theirs, postgres()))[0] == "systemd"
        theirs.uid = 26 if name == "patroni" else 0
        assert manager(ProcHost(theirs, postgres()))[0] == "unknown"


@pytest.mark.parametrize(("uid", "word"), [(0, "unknown"), (26, "unknown"), (1000, "systemd")])
def test_of_a_stopped_cluster_a_patroni_of_the_system_s_users_is_asked(uid: int, word: str) -> None:
    host = ProcHost(FakeProcess(9, "/usr/bin/python3", ("patroni",), name="patroni", uid=uid))
    host.files[f"/lib/systemd/system/{UNIT}"] = ""
    host.units = {UNIT: {"UnitFileState": "enabled"}}
    assert manager(host)[0] == word


@pytest.mark.parametrize(
    ("host", "word", "said"),
    [
        (ProcHost(postgres("patroni.service")), "patroni", "its unit"),
        (ProcHost(postgres("patroni@main.service")), "patroni", "its unit"),
        (ProcHost(postgres("patroniser.service")), "none", "patroniser"),
        (ProcHost(PATRONI, postgres(ppid=8)), "patroni", "process 8 started it"),
        (
            with_file(
                ProcHost(PATRONI, postgres()), "/etc/patroni.yml", "postgresql:\n  data_dir: /data/pg\n"
            ),
            "patroni",
            "/etc/patroni.yml names /data/pg",
        ),
        (
            with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml", "  data_dir: '/data/pg/'  # here\n"),
            "patroni",
            "names",
        ),
        (
            with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml", "  data_dir: /data/pg2\n"),
            "systemd",
            UNIT,
        ),
        (ProcHost(PATRONI, postgres()), "unknown", 'its configuration cannot be read: "/etc/patroni.yml'),
        (
            ProcHost(
                FakeProcess(8, "/usr/bin/python3", ("python3", "/usr/bin/patroni"), name="patroni"),
                postgres(),
            ),
            "unknown",
            "names no configuration file",
        ),
    ],
)
def test_patroni(host: ProcHost, word: str, said: str) -> None:
    found, how = manager(host)
    assert (found, said in how) == (word, True)


def test_patroni_manages_nothing_but_postgresql() -> None:
    assert manager(ProcHost(PATRONI, postgres("mariadb.service", exe="/usr/sbin/mariadbd")))[0] == "systemd"


def test_on_the_other_node_of_a_cluster_nothing_is_known_of_a_stopped_one() -> None:
    host = ProcHost(PACEMAKER)
    host.files["/lib/systemd/system/mariadb.service"] = ""
    host.units = {"mariadb.service": {"UnitFileState": "disabled"}}
    assert manager(host)[0] == "unknown"


def test_a_configuration_that_is_made_to_be_searched_for_ever_is_not() -> None:
    host = with_file(ProcHost(PATRONI, postgres()), "/etc/patroni.yml", "\n" * 200_000)
    begun = time.monotonic()
    assert manager(host)[0] == "systemd"
    assert time.monotonic() - begun < 5
