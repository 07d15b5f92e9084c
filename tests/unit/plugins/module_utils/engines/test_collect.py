# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All engines of a host, told together: `durable_engines`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import (
    _name_apart,
    collect,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.contract import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.facts import Facts
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import observe as firebird
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import observe as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds, process_context
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Processes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable

from ..fakes.fake_proc import BOOT_ID, DIRECT, MOUNTINFO, OTHER, PRIVATE, RDWR, FakeProcess, ProcHost

PG = "/usr/lib/postgresql/15/bin/postgres"
CONF = "/etc/postgresql/15/main/postgresql.conf"
UNIT = "postgresql@15-main.service"
ID = "0123456789ab" + "c" * 52
VOLUME = """\
50 40 0:99 / / rw - overlay overlay rw
51 50 8:17 /volumes/pg /var/lib/postgresql/data rw - ext4 /dev/sdb1 rw
"""
CLUSTER = FakeProcess(
    50,
    PG,
    (PG, "-D", "/data/pg", "-c", f"config_file={CONF}"),
    cwd="/data/pg",
    cgroup=f"0::/system.slice/system-postgresql.slice/{UNIT}\n",
    files=(("/data/pg/base/1", RDWR, 31),),
)
MARIA = FakeProcess(
    80,
    "/usr/sbin/mariadbd",
    cwd="/var/lib/mysql",
    namespace=PRIVATE,
    cgroup="0::/system.slice/mariadb.service\n",
    files=(("/log/ib_logfile0", RDWR | DIRECT, 32),),
)


def told(host: ProcHost) -> dict[str, Any]:
    """Return the facts, which JSON can carry."""
    facts = collect(host, "2026-01-31T12:00:00Z")
    assert json.loads(json.dumps(facts)) == facts
    assert host.mutations == []
    return dict(causes.explained(facts))


def engines(host: ProcHost) -> list[dict[str, Any]]:
    """Return the instances; nothing is unattributed."""
    facts = told(host)
    assert facts["unattributed"] == []
    instances: list[dict[str, Any]] = facts["engines"]
    return instances


def debian(*processes: FakeProcess) -> ProcHost:
    """Return a host with PostgreSQL of Debian and MariaDB installed."""
    host = ProcHost(*processes)
    paths = [PG, CONF, "/usr/bin/pg_ctlcluster", "/etc/mysql/my.cnf"]
    paths += ["/lib/systemd/system/mariadb.service", "/lib/systemd/system/postgresql.service"]
    host.files.update(dict.fromkeys(paths, ""))
    host.links["/etc/systemd/system/mysql.service"] = "/lib/systemd/system/mariadb.service"
    host.units = {
        UNIT: {"TimeoutStopUSec": "1h", "UnitFileState": "enabled-runtime"},
        "mariadb.service": {"TimeoutStopUSec": "15min", "Names": "mariadb.service mysql.service"},
    }
    return host


def test_a_host_without_engines() -> None:
    host = ProcHost()
    assert told(host) == {
        "boot_id": BOOT_ID,
        "time": "2026-01-31T12:00:00Z",
        "engines": [],
        "paths": [],
        "stop_timeouts": [],
        "unattributed": [],
        "writers": [],
    }
    # Nothing is run but what tells the architecture.
    assert host.asked == [("uname", "-m")]


@pytest.mark.fact(46)
def test_what_runs() -> None:
    host = debian(CLUSTER, MARIA)
    pg, maria = engines(host)
    # The server is asked; nobody answers here.
    assert {seen["running"] for seen in pg["settings"].values()} == {"unknown"}
    assert {key: value for key, value in pg.items() if key not in ("evidence", "settings")} == {
        "engine": "postgresql",
        "name": "15/main",
        "state": "running",
        "pids": [50],
        "version": "unknown",
        "config": CONF,
        "unit": UNIT,
        "managed_by": "systemd",
        "namespace": "host",
        "root": "",
        "starts_at_boot": "unknown",
        "stop_timeout": "3600",
        "preloads": [],
        "requires_mounts": [],
        "writes": [
            "/etc/postgresql/15/main/zz-durable-dbhost.conf",
            "/etc/postgresql/15/main/postgresql.conf",
        ],
        "directories": ["/data/pg"],
        "temporary": [],
        "files": [
            {
                "directory": "/data/pg/base",
                "device": "8:17",
                "opened": "buffered",
                "count": 1,
                "example": "/data/pg/base/1",
            }
        ],
        "pending_restart": [],
        "overrides": [],
    }
    assert (maria["name"], maria["namespace"], maria["root"], maria["stop_timeout"], maria["flavour"]) == (
        "mariadb",
        "private",
        "",
        "900",
        "mariadb",
    )
    assert maria["files"][0]["opened"] == "direct"
    # Once of all units, and once of what systemd itself hands on to them.
    assert [len(argv) for argv in host.asked if argv[0] == "systemctl"] == [6, 3]


def test_what_could_run() -> None:
    host = debian()
    pg, maria = engines(host)
    assert (pg["name"], pg["state"], pg["pids"], pg["unit"], pg["stop_timeout"]) == (
        "15/main",
        "stopped",
        [],
        UNIT,
        "3600",
    )
    assert (maria["name"], maria["state"], maria["config"]) == ("mariadb", "stopped", "/etc/mysql/my.cnf")
    assert {pg["namespace"], maria["namespace"]} == {"host"}


@pytest.mark.fact(46)
def test_a_container_s_instance() -> None:
    """It is told beside the host's own, which is stopped, and its files lie on the host's disks."""
    process = FakeProcess(
        50,
        "/usr/lib/postgresql/16/bin/postgres",
        ("postgres",),
        cwd="/var/lib/postgresql/data",
        namespace=OTHER,
        mountinfo=VOLUME,
        cgroup=f"0::/system.slice/docker-{ID}.scope\n",
        files=(("/var/lib/postgresql/data/base/1", RDWR, 51),),
    )
    found, *others = engines(debian(process))
    assert (found["name"], found["namespace"], found["managed_by"], found["unit"], found["stop_timeout"]) == (
        "docker:/data/volumes/pg /var/lib/postgresql/data",
        "container",
        "container",
        None,
        "unknown",
    )
    assert (found["root"], found["config"], found["directories"], found["files"][0]["device"]) == (
        "/proc/50/root",
        "/data/volumes/pg/postgresql.conf",
        ["/data/volumes/pg"],
        "8:17",
    )
    assert [other["state"] for other in others] == ["stopped", "stopped"]


def test_a_directory_that_does_not_answer_is_unknown_also_where_its_engine_looks_at_none() -> None:
    host = ProcHost(FakeProcess(90, "/opt/mssql/bin/sqlservr"))
    host.hung = ("/var/opt/mssql",)
    (found,) = engines(host)
    seen = found["evidence"]["directories"]
    assert (seen["value"], seen["reason"]) == ("unknown", '"/var/opt/mssql: no answer within 10 s"')


def test_directories_are_told_with_their_links_followed() -> None:
    host = debian(MARIA)
    host.links["/var/lib/mysql"] = "/data/maria"
    host.files["/data/maria/ibdata1"] = ""
    assert engines(host)[0]["directories"] == ["/data/maria"]
    host.hung = ("/var/lib/mysql",)
    found = engines(host)[0]
    assert found["directories"] == ["/var/lib/mysql"]
    assert "no answer" in found["evidence"]["directories"]["reason"]


@pytest.mark.fact(50)
def test_a_library_that_breaks_fsync_is_told() -> None:
    host = debian(CLUSTER)
    host.files["/proc/50/maps"] = "7f00-7f01 r-xp 0 08:01 7   /usr/lib/libeatmydata.so\n"
    assert engines(host)[0]["preloads"] == ["/usr/lib/libeatmydata.so"]
    host.deny(50, "maps")
    found = engines(host)[0]
    assert (found["preloads"], found["evidence"]["preloads"]["value"]) == ([], "unknown")


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (
            FakeProcess(77, "/usr/bin/python3", name="postgres"),
            "it calls itself postgres, and runs /usr/bin/python3",
        ),
        (
            FakeProcess(77, "/usr/bin/qemu-arm", name="mysqld"),
            "it calls itself mysqld, and runs /usr/bin/qemu-arm",
        ),
        (
            FakeProcess(77, PG, ("postgres: walwriter",)),
            f"it runs {PG}, and belongs to no instance of postgresql that was found",
        ),
    ],
)
def test_what_looks_like_an_engine_and_is_not_attributed(process: FakeProcess, why: str) -> None:
    facts = told(ProcHost(process))
    assert facts["engines"] == []
    name = process.name or "postgres"
    (stray,) = facts["unattributed"]
    assert (stray["pid"], stray["name"], stray["why"]) == (77, name, why)


def test_without_permission_an_engine_is_unattributed_never_absent() -> None:
    host = debian(CLUSTER)
    host.deny(50, "exe")
    facts = told(host)
    (found,) = facts["unattributed"]
    assert found["pid"] == 50
    assert found["why"] == (
        'it calls itself postgres, and what it runs cannot be read: "/proc/50/exe: Permission denied"'
    )


@pytest.mark.parametrize(
    "name", ["cgroup", "mountinfo", "cwd", "cmdline", "environ", "fd", "maps", "ns/mnt", "root"]
)
def test_what_cannot_be_read_of_an_instance_is_unknown_with_a_reason(name: str) -> None:
    host = debian(FakeProcess(50, PG, ("postgres",), cwd="/data/pg", files=CLUSTER.files), MARIA)
    host.deny(50, name)
    host.deny(1, "ns/mnt")
    facts = told(host)
    pg = next(found for found in facts["engines"] if found["pids"] == [50])
    reasons = [str(seen["reason"]) for seen in pg["evidence"].values() if seen["value"] == "unknown"]
    assert any("Permission denied" in why or "cannot be compared" in why for why in reasons)
    maria = next(found for found in facts["engines"] if found["engine"] == "mariadb")
    assert (maria["state"], maria["evidence"]["files"]["value"]) == ("running", "complete")


def test_a_process_may_end_at_any_moment() -> None:
    """Whichever look at /proc it does not survive, the other instance is told in full."""
    whole = debian(CLUSTER, MARIA)
    told(whole)
    last = whole.looked.index("/proc/50/maps") + 1
    assert last > 40
    for moment in range(1, len(whole.looked) + 1):
        host = debian(CLUSTER, MARIA)
        host.end_at, host.ending = moment, 50
        facts = told(host)
        assert facts["unattributed"] == [], moment
        maria = next(found for found in facts["engines"] if found["engine"] == "mariadb")
        assert (maria["state"], len(maria["files"])) == ("running", 1), moment
        (pg,) = [found for found in facts["engines"] if found["engine"] == "postgresql"]
        expected = ("stopped", []) if moment <= last else ("running", [50])
        assert (pg["state"], pg["pids"]) == expected, moment


@pytest.mark.parametrize("function", ["find", "installed"])
def test_what_nobody_foresaw_in_one_engine_does_not_lose_the_others(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise KeyError("SECRET")

    monkeypatch.setattr(postgresql, function, fail)
    facts = told(debian(CLUSTER, MARIA))
    assert "mariadb" in [found["engine"] for found in facts["engines"]]
    unattributed = facts["unattributed"]
    assert [found["pid"] for found in unattributed] == ([50, None] if function == "find" else [None])
    assert all("KeyError at test_collect.py:" in found["why"] for found in unattributed)
    assert "SECRET" not in repr(facts)


def test_what_nobody_foresaw_in_one_instance_does_not_lose_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = debian(CLUSTER, MARIA)

    def fail() -> str:
        raise ZeroDivisionError("SECRET")

    host.files["/proc/50/fdinfo/3"] = fail
    pg, maria = engines(host)
    assert (pg["name"], pg["evidence"]["observation"]["value"], maria["state"]) == (
        "15/main",
        "unknown",
        "running",
    )
    assert "ZeroDivisionError at test_collect.py:" in pg["evidence"]["observation"]["reason"]
    assert "SECRET" not in repr(pg)


def test_several_of_one_name_are_told_apart() -> None:
    found = engines(ProcHost(*(FakeProcess(pid, "/opt/firebird/bin/firebird") for pid in (50, 60, 70))))
    assert len({instance["name"] for instance in found}) == 3
    assert all("databases" in instance for instance in found)


def test_the_plain_name_is_the_services_and_not_a_persons() -> None:
    session = "0::/user.slice/user-1000.slice/session-1.scope\n"
    person = FakeProcess(50, "/home/u/sqlservr", uid=1000, cgroup=session)
    service = FakeProcess(70, "/opt/mssql/bin/sqlservr", uid=998)
    names = {found["pids"][0]: found["name"] for found in engines(ProcHost(person, service))}
    assert names == {70: "mssql", 50: "mssql (user 1000)"}
    # Nor does a person's have it once the service is gone.
    assert [found["name"] for found in engines(ProcHost(person))] == ["mssql (user 1000)"]


def test_of_two_services_with_one_name_none_has_it_alone() -> None:
    found = [
        FakeProcess(pid, "/opt/mssql/bin/sqlservr", cgroup=f"0::/x.slice/{pid}.service\n") for pid in (50, 60)
    ]
    names = [each["name"] for each in engines(ProcHost(*found))]
    assert names == ["mssql (/var/opt/mssql/mssql.conf)", "mssql (60.service)"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"root": "/jail", "cgroup": "0::/x.slice/x.service\n"}, "chroot:/jail mariadb"),
        ({"namespace": OTHER, "cgroup": "0::/x.slice/x.service\n"}, "x.service mariadb"),
        ({"namespace": OTHER, "cgroup": "0::/user.slice\n"}, "chroot mariadb"),
        (
            {"namespace": OTHER, "pid_namespace": "4026539999", "cgroup": "0::/x.slice/x.service\n"},
            "container mariadb",
        ),
        ({"namespace": OTHER, "cgroup": f"0::/x.slice/docker-{ID}.scope\n"}, "docker:0123456789ab mariadb"),
    ],
)
def test_the_name_of_a_server_with_its_own_root_has_what_tells_it_from_others(
    given: dict[str, Any], name: str
) -> None:
    """Also where it is the only one: another would inherit the name."""
    process = FakeProcess(50, "/usr/sbin/mariadbd", cwd="/var/lib/mysql", mountinfo=VOLUME, **given)
    assert [found["name"] for found in engines(ProcHost(process))] == [name]


@pytest.mark.parametrize("engine", [engine.observer for engine in ENGINES.values()])
def test_a_process_of_each_engine_is_found(engine: Any) -> None:
    for program in engine.PROGRAMS:
        (found,) = engines(ProcHost(FakeProcess(77, f"/opt/{program}")))
        assert (found["engine"], found["pids"]) == (engine.NAME, [77])


def test_where_systemd_does_not_answer_the_stop_timeout_is_unknown() -> None:
    host = debian(CLUSTER)
    host.units = {}
    pg, maria = engines(host)
    assert (pg["managed_by"], pg["stop_timeout"]) == ("systemd", "unknown")
    assert "not been booted with systemd" in pg["evidence"]["stop_timeout"]["reason"]
    assert (maria["state"], maria["managed_by"]) == ("stopped", "unknown")


def test_an_instance_that_another_manager_runs_is_not_told_twice() -> None:
    by_hand = FakeProcess(
        80, "/usr/sbin/mariadbd", cwd="/srv/maria", cgroup="0::/user.slice/session-3.scope\n"
    )
    found = [instance for instance in engines(debian(by_hand)) if instance["engine"] == "mariadb"]
    assert [(instance["name"], instance["managed_by"]) for instance in found] == [("/srv/maria", "none")]


def test_two_instances_may_share_a_configuration() -> None:
    second = FakeProcess(80, "/usr/sbin/mysqld", cwd="/srv/2", cgroup="0::/system.slice/mysqld@2.service\n")
    found = [instance for instance in engines(debian(second)) if instance["engine"] == "mariadb"]
    assert [(instance["name"], instance["state"]) for instance in found] == [
        ("/srv/2", "running"),
        ("mariadb", "stopped"),
    ]
    assert found[0]["config"] == found[1]["config"]


def test_what_systemd_does_not_stop_has_no_timeout_of_systemd() -> None:
    """Podman's units stop a container, and that its engine."""
    cgroup = f"0::/system.slice/db.service/libpod-payload-{ID}\n"
    host = ProcHost(FakeProcess(50, PG, ("postgres",), namespace=OTHER, mountinfo=VOLUME, cgroup=cgroup))
    host.units = {"db.service": {"TimeoutStopUSec": "70s"}}
    (found,) = engines(host)
    assert (found["unit"], found["stop_timeout"]) == ("db.service", "unknown")
    assert "managed by container" in found["evidence"]["stop_timeout"]["reason"]


def test_firebird_alone_has_databases() -> None:
    assert ["databases" in found for found in engines(debian(CLUSTER))] == [False, False]
    assert firebird.NAME == "firebird"


def test_who_has_us_wait_is_left_after_a_while_and_others_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command has a limit of its own, and there is no end of what a server can have us ask for."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    host = debian(MARIA, *(FakeProcess(pid, "/home/u/mysqld", uid=1000) for pid in range(81, 140)))
    run = host.run

    def slow(argv: list[str], timeout: float = 10) -> Result:
        if now[0] >= host.until:
            raise Unobservable("not run")
        pid = next((pid for pid in range(81, 140) if any(f"/proc/{pid}/" in word for word in argv)), None)
        if pid:
            now[0] += 10
            raise Unobservable("no answer within 10 s")
        return run(argv, timeout)

    monkeypatch.setattr(host, "run", slow)
    found = {facts["pids"][0]: facts for facts in told(host)["engines"] if facts["pids"]}
    assert now[0] <= 900 + 10
    assert set(found) == {80, *range(81, 140)}
    assert found[80]["managed_by"] == "systemd"
    assert {found[pid]["evidence"]["config"]["value"] for pid in range(81, 140)} == {"unknown"}
    assert host.until == float("inf")


def test_servers_of_the_system_s_users_come_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "INSTANCES_OF_ONE", 2)
    host = debian(*(FakeProcess(pid, "/home/u/mysqld", uid=1000) for pid in range(60, 70)), MARIA)
    facts = told(host)
    assert [found["pids"] for found in facts["engines"] if found["pids"]] == [[60], [61], [80]]
    assert [row["pid"] for row in facts["unattributed"]] == list(range(62, 67))
    assert "belongs to no instance" in facts["unattributed"][0]["why"]
    assert facts["unattributed"][-1]["why"].endswith("; 3 more of user 1000 are as this one")


def test_of_very_many_servers_each_user_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "INSTANCES", 4)
    crowd = [FakeProcess(pid, "/home/u/mysqld", uid=1000) for pid in range(60, 70)]
    other = FakeProcess(71, "/home/v/mysqld", uid=1001)
    facts = told(debian(*crowd, other, MARIA))
    assert [found["pids"] for found in facts["engines"] if found["pids"]] == [[60], [61], [71], [80]]
    assert "more than 4 servers run here" in facts["unattributed"][0]["why"]


def test_strays_of_very_many_users_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "STRAYS", 2)
    rows = told(ProcHost(*(FakeProcess(60 + n, "/x/y", name="mysqld", uid=2000 + n) for n in range(5))))
    assert [row["pid"] for row in rows["unattributed"]] == [60, 61, 62]
    assert "processes of 3 users more" in rows["unattributed"][-1]["why"]


def test_who_fills_the_answer_is_refused_by_name_and_others_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that one of the people runs, as much as of one server of the system's."""
    monkeypatch.setattr(bounds, "INSTANCE", 6000)
    files = tuple((f"/data/{number:050}/f", RDWR, 31) for number in range(40))
    crowd = [FakeProcess(60 + n, "/home/u/mysqld", uid=1000, files=files if n < 2 else ()) for n in range(4)]
    facts = told(debian(*crowd, MARIA))
    found = {each["pids"][0]: each for each in facts["engines"] if each["pids"]}
    reasons = {pid: each["evidence"].get("observation", {}).get("reason") for pid, each in found.items()}
    assert reasons[80] is None
    assert "process 60 (mysqld) of user 1000" in reasons[60]
    assert (found[60]["files"], found[60]["settings"], found[60]["namespace"]) == ([], {}, "unknown")
    assert len(json.dumps(facts)) < 30000


def test_the_same_mounts_are_kept_once_and_too_many_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ProcHost(*(FakeProcess(pid, "/x/mysqld", mountinfo=MOUNTINFO) for pid in (50, 51)))
    host.start(FakeProcess(52, "/x/mysqld", mountinfo=MOUNTINFO * 9))
    monkeypatch.setattr(bounds, "MOUNTS", MOUNTINFO.count("\n") * 2)
    found, processes = process_context.Places(host), Processes(host).all
    assert found.of(processes[50]).mounts is found.of(processes[51]).mounts is found.mounts
    with pytest.raises(Unobservable, match=r"/proc/52/mountinfo: .* only .* more are read: unmount"):
        found.of(processes[52])


def test_mounts_of_a_login_cost_that_login_alone_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls itself a server, comes first, and has as many mounts as are read at all. A container has none of its own."""
    monkeypatch.setattr(bounds, "MOUNTS", 8 * MOUNTINFO.count("\n"))
    other = MOUNTINFO.replace("/data", "/data2")
    crowd = [
        FakeProcess(50 + n, "/home/u/mysqld", uid=1000, namespace=f"mnt:[{n}]", mountinfo=MOUNTINFO * (2 + n))
        for n in range(12)
    ]
    cgroup = f"0::/system.slice/docker-{ID}.scope\n"
    boxed = FakeProcess(71, "/opt/mssql/bin/sqlservr", namespace=OTHER, cgroup=cgroup, mountinfo=other)
    facts = told(debian(*crowd, boxed, replace(MARIA, namespace="mnt:[99]", mountinfo=other + MOUNTINFO)))
    found = {each["pids"][0]: each for each in facts["engines"] if each["pids"]}
    assert found[80]["namespace"] == "private"
    assert found[71]["namespace"] == "container"
    assert [found[pid]["namespace"] for pid in range(50, 62)] == ["private"] + ["unknown"] * 11
    said = json.dumps(found[55])
    assert "of user 1000 only" in said


def test_a_table_that_is_too_long_makes_its_own_server_unknown_and_names_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "OUTPUT", 10 * len(MOUNTINFO))
    crowd = FakeProcess(50, "/home/u/mysqld", uid=1000, namespace="mnt:[5]", mountinfo=MOUNTINFO * 20)
    found = {each["pids"][0]: each for each in told(debian(crowd, MARIA))["engines"] if each["pids"]}
    assert found[80]["namespace"] == "private"
    assert found[50]["namespace"] == "unknown"
    assert "in the mount namespace of user 1000" in json.dumps(found[50])


def test_servers_of_persons_and_containers_take_nobody_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []
    tell = Facts.of_instance
    monkeypatch.setattr(
        Facts,
        "of_instance",
        lambda self, found, *more: (
            order.extend(one.pid for one in found.processes) or tell(self, found, *more)
        ),
    )
    cgroup = f"0::/system.slice/docker-{ID}.scope\n"
    boxed = FakeProcess(71, "/opt/mssql/bin/sqlservr", namespace=OTHER, cgroup=cgroup)
    host = debian(FakeProcess(70, "/opt/mssql/bin/sqlservr", uid=1000), boxed, MARIA)
    found = [facts["pids"] for facts in told(host)["engines"] if facts["pids"]]
    assert (order[0], found) == (80, [[70], [71], [80]])


def test_who_else_writes_is_told() -> None:
    host = ProcHost(
        FakeProcess(
            90,
            "/usr/bin/app",
            files=(
                ("/data/a", RDWR, 31),
                ("/data/b", RDWR, 31),
                ("/data/read", 0, 31),
                ("/data/gone (deleted)", RDWR, 31),
                ("/dev/shm/x", RDWR, 31),
            ),
        ),
        FakeProcess(91, "/usr/bin/denied", files=(("/data/c", RDWR, 31),)),
        FakeProcess(92, "/usr/sbin/mariadbd", cwd="/data/my", files=(("/data/my/d", RDWR, 31),)),
    )
    host.deny(91, "fd/3")
    (row,) = collect(host, "2026-01-31T12:00:00Z")["writers"]
    assert (row["pid"], row["name"], row["example"]) == (90, "app", "/data/a")
    assert row["device"] == "8:17"


def test_names_are_lines_and_apart() -> None:
    """Two that look alike once they are shown are not taken for one."""
    odd = "/srv/x\ndb1: durable"
    told = [
        {"engine": "postgresql", "name": name, "config": None, "unit": None, "pids": [pid]}
        for pid, name in enumerate((odd, odd.replace("\n", "\\n"), odd))
    ]
    _name_apart(told)
    assert [facts["name"] for facts in told] == [
        "/srv/x\\ndb1: durable",
        "/srv/x\\ndb1: durable (1)",
        "/srv/x\\ndb1: durable (2)",
    ]
