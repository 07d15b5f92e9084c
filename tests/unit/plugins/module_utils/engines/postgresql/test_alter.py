# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ALTER SYSTEM, ROLE and DATABASE have set: taken away by the server, kept, and put back by release."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Override
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import alter
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.alter import Original
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.apply import Target
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql.drop_in import HEADER
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_host import Killed
from ...fakes.fake_postgresql import AUTO, CONF, DATA, MAIN, OURS, FakePostgresql

WANTED = {"fsync": "on", "synchronous_commit": "on"}
BOB = "b\"o'b\\\\"
BOBS = Override("synchronous_commit", BOB, None)
EVERYBODYS = Override("synchronous_commit", None, None)
#: Before the note of the sessions, and after it, by the server's clock.
OLD, NEW = 1795201000.0, 1795201200.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting takes no time."""
    now = [0.0]
    monkeypatch.setattr(layer.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(layer.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))


def usual() -> FakePostgresql:
    """Return a host on which people set things the usual way."""
    host = FakePostgresql()
    host.write(AUTO, "fsync = off\nwork_mem = '8MB'\nsynchronous_commit = 'off'\n")
    host.roles.append(BOB)
    host.overrides = [
        {"role": BOB, "database": None, "config": ["work_mem=4MB", "synchronous_commit=off"]},
        {"role": None, "database": "d", "config": ["synchronous_commit=local"]},
    ]
    host.done.clear()
    return host


def run(host: FakePostgresql, *overrides: Override, wanted: dict[str, str] | None = None) -> Any:
    targets = [Target("15/main", WANTED if wanted is None else wanted, overrides)]
    work = layer.plan(host, targets, alter_system=True)
    assert not work.failures
    layer.apply(host, work, targets)
    assert layer.plan(host, targets, alter_system=True).changes == ()
    return [change for change in work.changes if "role" in change.target or change.when == "persisted"]


def overrides(host: FakePostgresql) -> list[dict[str, Any]]:
    (facts,) = Engines(host, ("postgresql",)).instances()
    return list(facts["overrides"])


def release(host: FakePostgresql) -> Any:
    work = layer.plan_release(host)
    layer.apply_release(host, work)
    return work


@pytest.mark.fact(62)
def test_the_server_takes_it_back_once_our_file_counts() -> None:
    host = usual()
    host.write(CONF, f"fsync = off\n{MAIN}")
    host.done.clear()
    changes = run(host, BOBS)
    assert [(each.target, each.setting, each.before, each.after) for each in changes] == [
        ("15/main", "fsync", "off", "on"),
        ("15/main", "synchronous_commit", "off", "on"),
        (f"15/main role {BOB}", "synchronous_commit", "off", "unset"),
    ]
    assert host.files[OURS] == f"{HEADER}fsync = on\n"
    assert host.files[AUTO] == "work_mem = '8MB'\n"
    assert host.overrides[0]["config"] == ["work_mem=4MB"]
    assert host.done == [
        "ALTER SYSTEM RESET fsync",
        "ALTER SYSTEM RESET synchronous_commit",
        f'ALTER ROLE "{BOB.replace(chr(34), chr(34) * 2)}" RESET synchronous_commit',
        *("reload", "checkpoint", "sync"),
    ]
    assert (host.state["fsync"], host.dirty) == ("on", set())


@pytest.mark.fact(62)
def test_without_the_permission_nothing_of_it_is_touched() -> None:
    host = usual()
    with pytest.raises(ChangeFailed, match="ALTER SYSTEM RESET fsync"):
        layer.plan(host, [Target("15/main", WANTED, (BOBS,))])
    assert host.mutations == []


def test_where_the_files_say_it_already_none_is_written() -> None:
    host = usual()
    run(host, BOBS)
    assert OURS not in host.files
    assert host.state["fsync"] == "on"


def test_an_override_alone_is_enough() -> None:
    host = usual()
    run(host, Override("synchronous_commit", None, "d"), wanted={})
    assert host.done == ['ALTER ROLE ALL IN DATABASE "d" RESET synchronous_commit']
    assert OURS not in host.files


def test_what_a_replica_or_a_server_without_rights_keeps_is_a_failure_of_its_own() -> None:
    host = usual()
    host.says = {"replica": True}
    work = layer.plan(host, [Target("15/main", WANTED, (BOBS,))], alter_system=True)
    assert "on its primary" in work.failures["15/main"]
    assert {change.setting for change in work.changes} == set(WANTED)
    layer.apply(host, work, [])
    assert host.state["fsync"] == "on"


@pytest.mark.fact(50)
def test_what_hides_the_server_s_own_value_is_taken_away_with_it() -> None:
    host = usual()
    host.source, host.overrides = (
        "global",
        [{"role": None, "database": None, "config": ["synchronous_commit=off"]}],
    )
    after = FakePostgresql._alter

    def alter_it(statement: str) -> None:
        after(host, statement)
        if "ROLE" in statement:
            host.source = "configuration file"

    host._alter = alter_it  # type: ignore[method-assign]
    changes = run(host, EVERYBODYS, wanted={"synchronous_commit": "on"})
    assert [change.before for change in changes] == ["off", "off"]
    assert host.state["synchronous_commit"] == "on"


@pytest.mark.fact(62)
def test_release_sets_it_again() -> None:
    host = usual()
    before = [dict(row, config=sorted(row["config"])) for row in host.overrides]
    run(host, BOBS)
    work = release(host)
    assert work.failures == {}
    assert sorted(str(host.files[AUTO]).splitlines()) == [
        "fsync = 'off'",
        "synchronous_commit = 'off'",
        "work_mem = '8MB'",
    ]
    merged: dict[Any, list[str]] = {}
    for row in host.overrides:
        merged.setdefault((row["role"], row["database"]), []).extend(row["config"])
    assert {key: sorted(own) for key, own in merged.items()} == {
        (row["role"], row["database"]): row["config"] for row in before
    }
    assert OURS not in host.files
    assert alter.ORIGINALS not in host.files
    assert layer.plan_release(host).changes == ()


def test_what_somebody_has_set_since_is_his() -> None:
    host = usual()
    run(host, BOBS)
    host.write(AUTO, "fsync = on\n")
    host.overrides.append({"role": BOB, "database": None, "config": ["synchronous_commit=remote_write"]})
    work = release(host)
    assert {(change.setting, change.after) for change in work.changes if change.after == "forgotten"} == {
        ("fsync", "forgotten"),
        ("synchronous_commit", "forgotten"),
    }
    assert "fsync = on" in str(host.files[AUTO])
    assert host.overrides[-1]["config"] == ["synchronous_commit=remote_write"]
    assert alter.ORIGINALS not in host.files


@pytest.mark.parametrize("gone", ["role", "database"])
def test_a_role_or_database_that_is_gone_is_forgotten(gone: str) -> None:
    host = usual()
    host.overrides[1]["config"] = ["synchronous_commit=off"]
    if gone == "database":
        host.overrides[1]["database"] = "old"
    whose = {"role": BOBS, "database": Override("synchronous_commit", None, "old")}[gone]
    run(host, whose, wanted={})
    host.roles = ["postgres"]
    (change,) = release(host).changes
    assert (change.setting, change.after) == ("synchronous_commit", "forgotten")
    assert not any(statement.endswith("SET synchronous_commit = 'off'") for statement in host.done)
    assert alter.ORIGINALS not in host.files


def test_a_server_that_does_not_run_keeps_its_originals_for_a_later_release() -> None:
    host = usual()
    host.write(CONF, f"data_directory = '{DATA}'\nfsync = off\n{MAIN}")
    run(host, BOBS)
    kept = host.files[alter.ORIGINALS]
    host.stop_server()
    work = release(host)
    assert "it does not run" in work.failures["15/main"]
    assert host.files[alter.ORIGINALS] == kept
    assert OURS not in host.files


def test_originals_of_a_cluster_that_is_gone_are_forgotten() -> None:
    host = FakePostgresql()
    gone = Original("15/gone", "system", "fsync")
    host.files[alter.ORIGINALS] = json.dumps({gone.key: "off"})
    (change,) = release(host).changes
    assert (change.target, change.after) == ("15/gone", "forgotten")
    assert alter.ORIGINALS not in host.files


def test_what_was_there_first_is_kept() -> None:
    host = usual()
    run(host, BOBS)
    host.write(AUTO, "synchronous_commit = 'local'\nfsync = 'off'\n")
    run(host)
    assert (
        json.loads(str(host.files[alter.ORIGINALS]))[Original("15/main", "system", "synchronous_commit").key]
        == "off"
    )


@pytest.mark.parametrize("moment", range(1, 9))
def test_killed_at_any_step_the_next_run_goes_on_and_nothing_is_lost(moment: int) -> None:
    host = usual()
    targets = [Target("15/main", WANTED, (BOBS,))]
    work = layer.plan(host, targets, alter_system=True)
    host.stop_at = moment
    with pytest.raises(Killed):
        layer.apply(host, work, targets)
    host.stop_at = 0
    run(host, BOBS)
    release(host)
    assert "fsync = 'off'" in str(host.files[AUTO])
    assert any("synchronous_commit=off" in row["config"] for row in host.overrides)


@pytest.mark.fact(50)
@pytest.mark.parametrize(
    ("session", "there"),
    [
        ({"role": BOB, "database": "x", "began": OLD}, True),
        ({"role": BOB, "database": "x", "began": NEW}, False),
        ({"role": "other", "database": "x", "began": OLD}, False),
    ],
)
def test_sessions_that_go_on_with_it_are_told(session: dict[str, Any], there: bool) -> None:
    host = usual()
    run(host, BOBS)
    host.sessions = [session]
    told = [row for row in overrides(host) if row["source"] == "pg_stat_activity"]
    assert [(row["scope"], row["value"], row["permission"]) for row in told] == (
        [(f"sessions of role {BOB} that were there before", "off", None)] if there else []
    )


@given(st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_a_name_is_one_word_of_sql(name: str) -> None:
    statement = Original("x", "override", "fsync", name, name).statement(None)
    quoted = name.replace('"', '""')
    assert statement == f'ALTER ROLE "{quoted}" IN DATABASE "{quoted}" RESET fsync'
    assert alter.of_key(Original("x", "override", "fsync", name).key).role == name


@pytest.mark.parametrize(
    ("original", "word"),
    [
        (Original("x", "system", "fsync"), "off'; DROP TABLE x; --"),
        (Original("x", "system", "fsync; --"), None),
        (Original("x", "override", "fsync", ""), None),
        (Original("x", "override", "fsync", "a\0b"), None),
    ],
)
def test_nothing_else_becomes_sql(original: Original, word: str | None) -> None:
    with pytest.raises(ChangeFailed, match="observed"):
        original.statement(word)


@pytest.mark.parametrize("key", ["", "[]", "{", "7", '["a"]'])
def test_a_damaged_original_is_named(key: str) -> None:
    with pytest.raises(ChangeFailed, match="originals-postgresql"):
        alter.of_key(key)
