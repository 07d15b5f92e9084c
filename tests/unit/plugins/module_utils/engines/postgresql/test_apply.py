# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The postgresql layer: written last, taken by the server, flushed after fsync was off, put back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import drop_in
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.apply import Target
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.cluster import (
    pending_flush_path,
)
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.drop_in import HEADER, NAME
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_host import Killed
from ...fakes.fake_postgresql import AUTO, BIN, CONF, DATA, ETC, MAIN, OURS, REFUSED, UNIT, FakePostgresql
from ...fakes.fake_proc import FakeProcess

SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
RED_HAT = f"{DATA}/postgresql.conf"
BESIDE = f"{DATA}/{NAME}"
LINE = "# durable.dbhost: read last, so that it has the last word; release takes this line away\n"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting takes no time."""
    now = [0.0]
    monkeypatch.setattr(layer.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(layer.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def run(host: FakePostgresql, wanted: dict[str, str], name: str = "15/main", restart: bool = False) -> Any:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    targets = [Target(name, wanted)]
    work = layer.plan(host, targets, restart)
    if work.changes:
        layer.apply(host, work, targets)
    assert layer.plan(host, targets, restart).changes == ()
    return [change[1:] for change in work.changes]


def unsafe(**options: Any) -> FakePostgresql:
    """Return a host whose cluster runs with all of it off."""
    host = FakePostgresql(**options)
    text = str(host.files[host.config])
    host.write(host.config, "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\n" + text)
    host.done.clear()
    return host


def written(host: FakePostgresql) -> list[str]:
    """Return the paths that were written, notes left out."""
    return [change[1] for change in host.mutations if change[0] == "file" and "/run/" not in change[1]]


@pytest.mark.fact(35)
def test_written_taken_and_flushed() -> None:
    host = unsafe()
    assert run(host, SAFE) == [
        ("fsync", "running", "off", "on"),
        ("full_page_writes", "running", "off", "on"),
        ("synchronous_commit", "running", "off", "on"),
        ("fsync", "persisted", "off", "on"),
        ("full_page_writes", "persisted", "off", "on"),
        ("synchronous_commit", "persisted", "off", "on"),
    ]
    assert host.files[OURS] == f"{HEADER}fsync = on\nfull_page_writes = on\nsynchronous_commit = on\n"
    assert written(host) == [OURS]
    assert host.done == ["reload", "checkpoint", "sync"]
    assert (host.dirty, host.state["fsync"]) == (set(), "on")
    assert not [path for path in host.files if "unflushed" in path]


def test_a_second_run_does_nothing_and_planning_changes_nothing() -> None:
    host = unsafe()
    assert layer.plan(host, [Target("15/main", SAFE)]).changes
    assert host.mutations == []
    run(host, SAFE)
    host.mutations.clear()
    assert run(host, SAFE) == []
    assert host.mutations == []


def test_no_target_asks_nobody() -> None:
    host = unsafe()
    assert layer.plan(host, []).changes == ()
    assert host.asked == []


def test_only_what_differs_is_written_and_what_was_written_before_stays() -> None:
    host = unsafe()
    run(host, {"fsync": "on"})
    run(host, {"synchronous_commit": "off"})
    run(host, {"synchronous_commit": "local", "wal_sync_method": "open_sync"})
    assert (
        host.files[OURS] == f"{HEADER}fsync = on\nsynchronous_commit = local\nwal_sync_method = open_sync\n"
    )
    assert host.state["synchronous_commit"] == "local"


def test_where_nothing_was_off_nothing_is_flushed() -> None:
    host = FakePostgresql()
    run(host, {"synchronous_commit": "off"})
    assert host.done == ["reload"]
    host.files[CONF] = f"fsync = off\n{MAIN}"
    assert run(host, {"fsync": "on"}) == [("fsync", "persisted", "off", "on")]
    assert host.done == ["reload"]


def test_without_an_include_directory_a_line_at_the_end_includes_it() -> None:
    host = unsafe(config=RED_HAT)
    before = host.files[RED_HAT]
    run(host, SAFE, DATA)
    assert written(host) == [BESIDE, RED_HAT]
    assert host.files[RED_HAT] == f"{before}{LINE}include_if_exists '{NAME}'\n"
    # Somebody writes behind it: the line moves to the end, once.
    host.write(RED_HAT, host.files[RED_HAT] + "fsync = off")
    run(host, SAFE, DATA)
    assert host.files[RED_HAT] == f"{before}fsync = off\n{LINE}include_if_exists '{NAME}'\n"


@pytest.mark.parametrize(
    ("arrange", "last"),
    [
        (lambda host: host.write(CONF, f"{MAIN}fsync = off\n"), CONF),
        (lambda host: host.write(f"{ETC}/conf.d/zzz.conf", "fsync = off\n"), CONF),
        (lambda host: host.write(f"{ETC}/conf.d/a.conf", "fsync = off\n"), OURS),
    ],
)
def test_it_has_the_last_word(arrange: Any, last: str) -> None:
    host = FakePostgresql()
    arrange(host)
    run(host, {"fsync": "on"})
    assert written(host)[-1] == last
    if last == CONF:
        assert host.files[CONF].endswith(f"{LINE}include_if_exists 'conf.d/{NAME}'\n")


def test_of_two_include_directories_the_last_one_is_taken() -> None:
    host = unsafe()
    host.directories.add("/etc/postgresql/15/main/it's")
    host.write(CONF, f"fsync = off\n{MAIN}include_dir '/etc/postgresql/15/main/it''s'\nfsync = off\n")
    run(host, {"fsync": "on"})
    assert written(host) == [f"/etc/postgresql/15/main/it's/{NAME}", CONF]
    assert host.files[CONF].endswith(f"include_if_exists 'it''s/{NAME}'\n")


def linked(host: FakePostgresql) -> None:
    """Lead our place to somewhere that looks like it."""
    host.links[OURS] = "/etc/other.conf"
    host.files["/etc/other.conf"] = HEADER


@pytest.mark.parametrize(
    ("arrange", "message"),
    [
        (
            lambda host: host.write(AUTO, "fsync = 'off'\n"),
            rf"15/main: fsync: observed off in {AUTO}:1, which beats .* expected on; .* ALTER SYSTEM RESET fsync",
        ),
        (
            lambda host: host.files.update({f"{ETC}/pg_ctl.conf": "pg_ctl_options = '-o -F'"}),
            f"15/main: fsync: observed off in {ETC}/pg_ctl.conf, which beats",
        ),
        (lambda host: setattr(host, "refused", REFUSED), "fsync cannot be read, .* Peer authentication"),
        (lambda host: host.write(CONF, "fsync\n"), "fsync cannot be read"),
        (lambda host: host.files.update({CONF: "fsync = maybe\n"}), "fsync cannot be read, .*maybe"),
        (
            lambda host: host.files.update({OURS: "fsync = off\n"}),
            f"{OURS}: observed a file that is not ours",
        ),
        (linked, f"{OURS}: observed a link"),
        (lambda host: host.files.pop(f"{BIN}/initdb"), f"initdb is not in {BIN}; expected it"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(arrange: Any, message: str) -> None:
    host = unsafe()
    try:
        arrange(host)
    except ValueError:
        pass  # The server does not start with that either.
    with pytest.raises(ChangeFailed, match=message):
        run(host, {"fsync": "on"})
    assert host.mutations == []


def test_an_unknown_cluster_is_refused() -> None:
    with pytest.raises(
        ChangeFailed, match="15/other: no cluster of that name is there; expected one of 15/main"
    ):
        layer.plan(FakePostgresql(), [Target("15/other", SAFE)])


@pytest.mark.fact(28)
@pytest.mark.parametrize(
    ("cgroup", "beside", "message"),
    [
        (
            "0::/system.slice/patroni.service\n",
            None,
            "15/main: Patroni writes its files. Fix: set fsync with patronictl",
        ),
        (
            "",
            FakeProcess(9, "/usr/sbin/pacemakerd", uid=0),
            "15/main: its manager is unknown .*Pacemaker runs.*run crm_mon -1r",
        ),
        (
            "0::/user.slice/user@5.service/x.service\n",
            None,
            "15/main: its manager is unknown .*user's own.*set fsync in the component that starts process 50",
        ),
    ],
)
def test_whom_it_belongs_to_is_asked_first(cgroup: str, beside: FakeProcess | None, message: str) -> None:
    host = unsafe(cgroup=cgroup)
    if beside:
        host.start(beside)
    with pytest.raises(ChangeFailed, match=message):
        run(host, {"fsync": "on"})
    assert host.mutations == []


def test_a_command_line_that_beats_the_files_is_named() -> None:
    host = FakePostgresql("-F", config=RED_HAT)
    with pytest.raises(ChangeFailed, match=f"{DATA}: fsync: observed off in its command line, which beats"):
        run(host, {"fsync": "on"}, DATA)
    assert host.mutations == []


def test_a_setting_that_is_beaten_keeps_no_other_from_being_set() -> None:
    host = unsafe()
    host.write(AUTO, "fsync = off\n")
    targets = [Target("15/main", SAFE)]
    work = layer.plan(host, targets)
    assert list(work.failures) == ["15/main"]
    assert re.match("15/main: fsync: observed off in .* ALTER SYSTEM RESET fsync", work.failures["15/main"])
    layer.apply(host, work, targets)
    assert host.files[OURS] == f"{HEADER}full_page_writes = on\nsynchronous_commit = on\n"
    assert (host.state["full_page_writes"], host.state["fsync"]) == ("on", "off")
    assert host.done == ["reload", "checkpoint"]
    with pytest.raises(ChangeFailed, match="ALTER SYSTEM RESET fsync"):
        layer.plan(host, targets)


def test_a_setting_that_cannot_be_read_keeps_no_other_from_being_set() -> None:
    host = unsafe()
    host.says = role_of_the_login(host)
    work = layer.plan(host, [Target("15/main", SAFE)])
    assert re.match("15/main: fsync cannot be read, .*role", work.failures["15/main"])
    assert {change.setting for change in work.changes} == {"full_page_writes", "synchronous_commit"}


def test_what_is_on_by_the_command_line_and_unflushed_is_flushed() -> None:
    host = FakePostgresql("-c", "fsync=on")
    host.files[pending_flush_path(DATA, "fsync")] = ""
    assert run(host, {"fsync": "on"}) == [("fsync", "running", "unflushed", "on")]
    assert host.done == ["checkpoint", "sync"]


def role_of_the_login(host: FakePostgresql) -> dict[str, Any]:
    """Return the answer of a server whose own fsync is hidden."""
    rows = {
        name: {"value": word, "source": "configuration file", "file": CONF, "line": 1}
        for name, word in host.state.items()
    }
    return {"settings": {**rows, "fsync": {**rows["fsync"], "source": "user"}}}


def test_what_the_others_become_is_verified_beside_one_that_is_beaten() -> None:
    host = unsafe()
    host.write(AUTO, "fsync = off\n")
    work = layer.plan(host, [Target("15/main", SAFE)])
    host.deaf = True
    with pytest.raises(ChangeFailed, match=r"full_page_writes .*did not follow"):
        layer.apply(host, work, [])


def test_an_f_that_waits_for_a_restart_is_no_failure_and_stops_no_other() -> None:
    host = FakePostgresql("-F")
    host.write(CONF, f"synchronous_commit = off\n{MAIN}")
    assert run(host, SAFE) == [
        ("synchronous_commit", "running", "off", "on"),
        ("synchronous_commit", "persisted", "off", "on"),
    ]
    assert (host.state["synchronous_commit"], host.state["fsync"]) == ("on", "off")
    host.options = host.options[:-1]
    assert run(host, SAFE, restart=True) == [("fsync", "running", "off", "on")]
    assert host.done == ["reload", "restart", "checkpoint", "sync"]


def test_data_sync_retry_waits_for_a_restart_that_was_allowed() -> None:
    host = FakePostgresql()
    host.files[CONF] = f"data_sync_retry = on\n{MAIN}"
    host.start_server()
    assert run(host, {"data_sync_retry": "off"}) == [("data_sync_retry", "persisted", "on", "off")]
    # So that the server names it as waiting.
    assert (host.done, host.pending) == (["reload"], ["data_sync_retry"])
    assert run(host, {"data_sync_retry": "off"}, restart=True) == [
        ("data_sync_retry", "running", "on", "off")
    ]
    assert (host.done, host.state["data_sync_retry"]) == (["reload", "restart"], "off")


@pytest.mark.fact(28)
@pytest.mark.parametrize("cgroup", ["0::/\n", "pacemaker"])
def test_only_systemds_own_are_restarted(cgroup: str) -> None:
    host = FakePostgresql(cgroup="" if cgroup == "pacemaker" else cgroup)
    if cgroup == "pacemaker":
        host.files["/run/systemd/system/postgresql@15-main.service.d/50-pacemaker.conf"] = ""
    host.files[CONF] = f"data_sync_retry = on\n{MAIN}"
    host.start_server()
    run(host, {"data_sync_retry": "off"}, restart=True)
    assert "restart" not in host.done


@pytest.mark.fact(35)
def test_a_stopped_cluster_is_flushed_too() -> None:
    host = unsafe()
    host.files[CONF] = f"data_directory = '{DATA}'\n{host.files[CONF]}"
    host.stop_server()
    assert host.dirty == {"fsync", "full_page_writes"}
    assert run(host, SAFE) == [
        ("fsync", "persisted", "off", "on"),
        ("full_page_writes", "persisted", "off", "on"),
        ("synchronous_commit", "persisted", "off", "on"),
    ]
    assert (host.done, "fsync" in host.dirty) == (["sync"], False)


@pytest.mark.fact(35)
def test_statements_from_before_are_waited_for(clock: list[float]) -> None:
    host = unsafe()
    host.busy = [0, 0, 2, 1, 0]
    run(host, SAFE)
    assert clock[0] == 1.0
    host = unsafe()
    host.busy = [1]
    with pytest.raises(ChangeFailed, match="15/main: statements go on that began before fsync and full_page"):
        run(host, SAFE)
    assert host.done == ["reload"]
    assert told(host) == ("unflushed", "on")
    # The next run does not reload: all statements of then would have begun before it.
    host.busy = [0]
    assert run(host, SAFE) == [
        ("fsync", "running", "unflushed", "on"),
        ("full_page_writes", "running", "unflushed", "on"),
    ]
    assert host.done == ["reload", "checkpoint", "sync"]


def test_a_server_that_does_not_follow_is_a_failure() -> None:
    host = unsafe()
    host.deaf = True
    with pytest.raises(
        ChangeFailed, match=r"15/main: fsync \(running\): observed off, expected on: the server did"
    ):
        run(host, SAFE)
    assert told(host)[0] == "off"


def told(host: FakePostgresql) -> tuple[str, str]:
    """Return what the facts say of fsync, running and persisted."""
    (facts,) = Engines(host, ("postgresql",)).instances()
    seen = facts["settings"]["fsync"]
    return seen["running"], seen["persisted"]


@pytest.mark.fact(35)
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("stop", [Killed, ChangeFailed])
@pytest.mark.parametrize("stop_at", range(1, 10))
def test_stopped_anywhere_it_is_never_told_as_on_before_it_is_flushed(
    stop_at: int, stop: type[BaseException], stopped: bool
) -> None:
    host = unsafe()
    host.files[CONF] = f"data_directory = '{DATA}'\n{host.files[CONF]}"
    if stopped:
        host.stop_server()
    host.stop_at, host.stop = stop_at, stop
    try:
        run(host, SAFE)
    except (Killed, ChangeFailed):
        pass
    host.stop_at = 0
    assert "fsync" not in host.dirty or "on" not in told(host)[stopped : 1 + stopped]
    host.done.clear()
    run(host, SAFE)
    assert "fsync" not in host.dirty
    assert told(host)[1] == "on"


def test_a_file_that_somebody_changes_meanwhile_is_not_written_over() -> None:
    host = unsafe(config=RED_HAT)
    targets = [Target(DATA, SAFE)]
    work = layer.plan(host, targets)
    host.files[RED_HAT] += "work_mem = 1MB\n"
    with pytest.raises(ChangeFailed, match=f"{RED_HAT}: another process changed it meanwhile; run again"):
        layer.apply(host, work, targets)
    assert written(host) == [BESIDE]


@pytest.mark.parametrize("config", [CONF, RED_HAT])
def test_release_takes_back_what_was_written(config: str) -> None:
    host = unsafe(config=config)
    if config == CONF:
        host.write(CONF, host.files[CONF] + "fsync = off\n# end without a newline")
    before = host.files[config]
    run(host, SAFE, "15/main" if config == CONF else DATA)
    host.mutations.clear()
    work = layer.plan_release(host)
    assert host.mutations == []
    assert [change[1:] for change in work.changes if change.setting in ("drop_in", "fsync", "include")] == [
        ("drop_in", "persisted", "present", "absent"),
        ("fsync", "persisted", "on", "unset"),
        ("include", "persisted", "present", "absent"),
    ]
    layer.apply_release(host, work)
    assert host.files[config].rstrip("\n") == before.rstrip("\n")
    assert not [path for path in host.files if NAME in path]
    assert host.state["fsync"] == "on"
    assert layer.plan_release(host).changes == ()


def test_release_leaves_what_others_wrote() -> None:
    host = FakePostgresql()
    host.files[OURS] = "fsync = off\n"
    host.files[CONF] += f"include_if_exists 'conf.d/{NAME}'\n"
    assert layer.plan_release(host).changes == ()


def two() -> FakePostgresql:
    """Return a host with a second cluster, that is stopped."""
    host = unsafe()
    other = "/data/other"
    host.files.update(
        {
            "/etc/postgresql/15/other/postgresql.conf": f"data_directory = '{other}'\nfsync = off\n",
            f"{other}/PG_VERSION": "15\n",
        }
    )
    host.commands[("stat", "-c", "%u", "--", other)] = "26\n"
    host.units["postgresql@15-other.service"] = {}
    return host


def test_two_clusters_and_one_that_refuses() -> None:
    host = two()
    targets = [
        Target("15/main", {"synchronous_commit": "on"}),
        Target("15/other", {"full_page_writes": "off"}),
    ]
    work = layer.plan(host, targets)
    host.deaf = True
    with pytest.raises(ChangeFailed, match="15/main: synchronous_commit"):
        layer.apply(host, work, targets)
    assert host.files[f"/etc/postgresql/15/other/{NAME}"] == f"{HEADER}full_page_writes = off\n"


OTHER = Target("15/other", {"full_page_writes": "off"})


def test_one_that_cannot_be_asked_does_not_stop_the_others() -> None:
    host = two()
    host.refused = REFUSED
    targets = [Target("15/main", SAFE), OTHER]
    work = layer.plan(host, targets)
    assert {change.target for change in work.changes} == {"15/other"}
    layer.apply(host, work, targets)
    assert host.files[f"/etc/postgresql/15/other/{NAME}"] == f"{HEADER}full_page_writes = off\n"
    assert list(work.failures) == ["15/main"]
    assert work.failures["15/main"].startswith("15/main: fsync cannot be read, ")
    with pytest.raises(ChangeFailed, match="Peer authentication"):
        layer.plan(host, targets)
    with pytest.raises(ChangeFailed, match="15/none: no cluster"):
        layer.plan(host, [OTHER, Target("15/none", SAFE)])


def test_release_of_one_that_is_malformed_does_not_stop_the_others() -> None:
    host = two()
    layer.apply(host, layer.plan(host, [OTHER]), [OTHER])
    host.files[CONF] = "'\n"
    work = layer.plan_release(host)
    layer.apply_release(host, work)
    assert f"/etc/postgresql/15/other/{NAME}" not in host.files
    assert list(work.failures) == ["15/main"]
    assert CONF in work.failures["15/main"]
    with pytest.raises(ChangeFailed, match=CONF):
        layer.plan_release(host)


@pytest.mark.parametrize(("said", "seconds"), [("1h", 4500.0), ("infinity", 87300.0)])
def test_a_restart_has_the_time_that_its_unit_gives(
    said: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, limits = unsafe(), []
    host.units[UNIT] = {"TimeoutStopUSec": said}
    change = host.change

    def note(argv: list[str], timeout: float = 300.0) -> None:
        limits.append((argv[0], timeout))
        change(argv, timeout)

    monkeypatch.setattr(host, "change", note)
    host.files[CONF] = f"data_sync_retry = on\n{MAIN}"
    host.start_server()
    run(host, {"data_sync_retry": "off"}, restart=True)
    assert ("systemctl", seconds) in limits


def test_targets_name_settings() -> None:
    row = {"instance": "15/main", "settings": {"fsync": "on", "data_sync_retry": None}}
    assert layer.target_of(row) == Target("15/main", {"fsync": "on"})


def test_notes_lie_where_the_facts_look() -> None:
    host = unsafe()
    work = layer.plan(host, [Target("15/main", {"fsync": "on"})])
    host.stop_at = 2
    with pytest.raises(Killed):
        layer.apply(host, work, [])
    assert pending_flush_path(DATA, "fsync") in host.files


def test_a_cluster_with_a_root_directory_of_its_own_is_not_written() -> None:
    host = unsafe()
    slash = "22 1 8:1 /jail / rw,relatime - ext4 /dev/sda1 rw\n"
    host.end(50)
    host.start(
        FakeProcess(
            50, f"/jail{BIN}/postgres", host.options, root="/jail", cwd="/jail/data/pg", mountinfo=slash
        )
    )
    for path in (CONF, AUTO):
        host.files[f"/proc/50/root{path}"] = host.files[path]
    with pytest.raises(
        ChangeFailed,
        match=r"it runs in a container.* Fix: set fsync in its configuration file below /proc/50/root",
    ):
        run(host, {"fsync": "on"}, "chroot:/jail 15/main")
    assert host.mutations == []


def test_what_somebody_undoes_meanwhile_is_a_failure() -> None:
    host = FakePostgresql()
    targets = [Target("15/main", {"synchronous_commit": "off"})]
    work = layer.plan(host, targets)
    loads = host.load

    def load() -> None:
        loads()
        host.files[OURS] = f"{HEADER}synchronous_commit = on\n"

    host.load = load  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=r"synchronous_commit \(persisted\): observed on, expected off"):
        layer.apply(host, work, targets)


def test_an_include_directory_that_is_not_the_server_s_own_gets_nothing() -> None:
    """Any user can run a cluster, and name any directory there."""
    host = unsafe()
    host.files["/etc/profile.d/x"] = ""
    host.links[f"{ETC}/mine"] = "/etc/profile.d"
    host.directories |= {f"{ETC}/mine", "/etc/profile.d"}
    host.write(CONF, f"fsync = off\n{MAIN}include_dir '/etc/profile.d'\ninclude_dir 'mine'\n")
    run(host, {"fsync": "on"})
    assert set(written(host)) == {f"{ETC}/conf.d/{NAME}"} | ({CONF} & set(written(host)))


def test_files_are_written_as_who_may_write_there() -> None:
    host = unsafe()
    host.uids.update(dict.fromkeys([ETC, f"{ETC}/conf.d", CONF], 26))
    host.write(CONF, str(host.files[CONF]) + "fsync = off\n")
    run(host, {"fsync": "on"})
    assert {path: host.written_as[path] for path in written(host)} == {f"{ETC}/conf.d/{NAME}": 26, CONF: 26}
    host.written_as.clear()
    layer.apply_release(host, layer.plan_release(host))
    assert host.written_as == {f"{ETC}/conf.d/{NAME}": 26, CONF: 26}


@pytest.mark.parametrize("place", [ETC, f"{ETC}/conf.d"])
def test_release_removes_nothing_where_somebody_else_may_change_it(place: str) -> None:
    host = unsafe()
    run(host, {"fsync": "on"})
    host.uids[place] = 1000
    host.mutations.clear()
    with pytest.raises(ChangeFailed, match="user 1000"):
        layer.plan_release(host)
    assert host.mutations == []


@pytest.mark.parametrize("path", [ETC, CONF, f"{ETC}/conf.d"])
def test_files_that_somebody_else_may_change_are_left(path: str) -> None:
    host = unsafe()
    host.write(CONF, str(host.files[CONF]) + "fsync = off\n")
    host.uids[path] = 1000
    with pytest.raises(ChangeFailed, match="user 1000"):
        run(host, {"fsync": "on"})
    assert host.mutations == []


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        (f"{DATA}/PG_VERSION", "../../../tmp/x\n", "PG_VERSION: it names no version"),
        ("owner", "0\n", f"{DATA}: observed root as its owner"),
    ],
)
def test_a_stopped_cluster_does_not_say_which_program_is_run(path: str, text: str, why: str) -> None:
    host = unsafe()
    host.files[CONF] = f"data_directory = '{DATA}'\n{host.files[CONF]}"
    host.stop_server()
    host.files["/usr/lib/postgresql/../../../tmp/x/bin/initdb"] = ""
    if path == "owner":
        host.owner = 0
        host.commands[("getent", "passwd", "0")] = "root:x:0:0:root:/root:/bin/bash\n"
    else:
        host.files[path] = text
    with pytest.raises(ChangeFailed, match=why):
        run(host, SAFE)
    assert host.mutations == []


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("owner", [0, 26, 1000])
def test_an_initdb_that_others_may_change_is_not_run(owner: int, runs: bool) -> None:
    host = unsafe()
    host.files[CONF] = f"data_directory = '{DATA}'\n{host.files[CONF]}"
    if not runs:
        host.stop_server()
    host.uids[f"{BIN}/initdb"] = owner
    if owner == 0:
        run(host, SAFE)
        return
    with pytest.raises(ChangeFailed, match=f"{BIN}/initdb may be changed by others than root "):
        run(host, SAFE)
    assert host.mutations == []


def test_release_that_fails_for_one_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    host = two()
    targets = [Target("15/main", SAFE), OTHER]
    layer.apply(host, layer.plan(host, targets), targets)
    remove = host.remove_file

    def refuse(path: str, owner: int = 0) -> None:
        if path == OURS:
            raise ChangeFailed(f"{path}: Read-only file system")
        remove(path, owner)

    monkeypatch.setattr(host, "remove_file", refuse)
    with pytest.raises(ChangeFailed, match="Read-only"):
        layer.apply_release(host, layer.plan_release(host))
    assert [path for path in host.files if NAME in path] == [OURS]


def test_what_others_wrote_to_our_file_is_not_written_again() -> None:
    """The user of the server owns the directory, and quotes hide a new line from a reader of lines."""
    host = unsafe()
    run(host, {"fsync": "on"})
    host.files[OURS] += "archive_command = 'x\\narchive_library = evil'\nsynchronous_commit = 'off\\nx = 1'\n"
    run(host, {"full_page_writes": "on"})
    assert host.files[OURS] == f"{HEADER}fsync = on\nfull_page_writes = on\n"


@pytest.mark.parametrize("settings", [{"archive_command": "x"}, {"fsync": "on\nx = 1"}])
def test_what_is_not_from_our_own_lists_is_never_rendered(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not from our own lists"):
        drop_in._render(settings)
