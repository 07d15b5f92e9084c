# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile wants of database engines, what of it is missing, and what a run may do about it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import JUDGES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.placement import place
from ansible_collections.durable.dbhost.plugins.module_utils.engines.rules import titled
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import change_line
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FIX_READ_ERROR
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    NOW,
    expect_cures,
    inputs,
    settled,
)
from ...fakes.small_host import BOOT_ID, FakeMount, SmallHost
from ...fakes.told_power import guard, power

FULL = {kind: rules for judge in JUDGES.values() for kind, rules in judge.full.items()}
GOOD = {
    "postgresql": {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "wal_sync_method": "fdatasync",
        "data_sync_retry": "off",
    },
    "mariadb": {
        "innodb_flush_log_at_trx_commit": "1",
        "sync_binlog": "1",
        "innodb_doublewrite": "ON",
        "innodb_flush_method": "O_DIRECT",
        "debug_no_sync": "OFF",
        "log_bin": "ON",
    },
    "faircom": {
        "LOG_WRITETHRU": "on",
        "TDATA_WRITETHRU": "on",
        "TINDEX_WRITETHRU": "on",
        "SYNC_LOG": "off",
        "NO_SYS_FLUSH_ON_CLOSE": "off",
        "NO_FLUSH_DIR": "off",
        "DELAYED_DURABILITY": "0",
        "SUPPRESS_LOG_FLUSH": "NO",
        "SUPPRESS_LOG_SYNC": "NO",
        "COMMIT_DELAY": "1",
    },
}


#: What engine_facts says of files that are open with O_DSYNC or O_SYNC, as FairCom's and SQL Server's must be.
WRITTEN_THROUGH = {"value": "yes", "source": "/proc/PID/fd, /proc/PID/fdinfo", "reason": None}
ALL_FILES = {"value": "complete", "source": "/proc/PID/fd, /proc/PID/fdinfo", "reason": None}
NO_PRELOADS = {"value": "none", "source": "/proc/1/maps", "reason": None}
RESET_FSYNC = {"fix": "reset_altered", "parameters": {"setting": "fsync"}}


def instance(engine: str = "postgresql", **given: Any) -> dict[str, Any]:
    """Return an instance as engine_facts tells of it; `running` and `persisted` change settings."""
    running, persisted = given.pop("running", {}), given.pop("persisted", {})
    good = GOOD.get(engine, {})
    settings = {
        name: {
            "running": running.get(name, word),
            "persisted": persisted.get(name, word),
            "source": "the server",
            "reason": "not allowed to ask" if "unknown" in (running.get(name), persisted.get(name)) else None,
            "from": "a.conf:1",
        }
        for name, word in good.items()
    }
    preloads = {**NO_PRELOADS, "value": " ".join(given.get("preloads", ())) or "none"}
    evidence = {"files": ALL_FILES, "preloads": preloads}
    if engine == "mariadb":
        given.setdefault("flavour", "mariadb")
    if engine in ("faircom", "mssql"):
        evidence["write_through"] = WRITTEN_THROUGH
    # One that is {} is not reported at all.
    given["evidence"] = {
        name: each for name, each in {**evidence, **given.get("evidence", {})}.items() if each
    }
    return {
        "engine": engine,
        "name": "main",
        "state": "running",
        "pids": [1],
        "version": "12.0.1.214" if engine == "faircom" else "15",
        "managed_by": "systemd",
        "directories": ["/srv/pgdata"],
        "temporary": [],
        "writes": [f"/etc/{engine}.d/ours.conf"],
        "requires_mounts": [],
        "files": [],
        "preloads": [],
        "settings": settings,
        "overrides": [],
        "pending_restart": [],
        "unit": "postgresql@15-main.service",
        "starts_at_boot": "yes",
        "namespace": "host",
        "config": "/etc/a.conf",
        **given,
    }


FDB = "/srv/pgdata/a.fdb"


def database(**given: str) -> dict[str, Any]:
    """Return a database as engine_facts tells of it: closed, with forced writes."""
    good = {
        "path": FDB,
        "forced_writes": "on",
        "running": "closed",
        "in_use": "no",
        "mode": "read_write",
        "owner": "150",
        "reason": None,
    }
    return {**good, **given}


def judged(*instances: dict[str, Any], profile: str | None = "strict", **given: Any) -> dict[str, Any]:
    """Return the assessment of a host with these engines on /srv/pgdata."""
    unattributed = given.pop("unattributed", [])
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": list(instances),
        "unattributed": unattributed,
        "writers": [],
    }
    given.setdefault("mounts", ["/srv/pgdata"])
    storage = collect(given.pop("host", None) or SmallHost(), NOW)
    return expect_cures(assess(inputs(profile, **given), storage, NOW, engines))


def row(found: dict[str, Any], setting: str) -> dict[str, Any]:
    """Return the only row of a setting."""
    (chosen,) = [row for row in found["settings"] if row["setting"] == setting]
    return chosen


@pytest.mark.parametrize(
    ("layers", "fix"),
    [
        (None, "run harden_db"),
        (["postgresql"], "run harden_db"),
        (["storage"], "add postgresql to durable_layers, then run harden_db"),
    ],
)
@pytest.mark.parametrize(("profile", "first"), [("strict", ""), (None, "pin a profile, then ")])
def test_the_fix_of_a_risk_is_one_that_a_run_of_these_layers_makes(
    layers: list[str] | None, fix: str, profile: str | None, first: str
) -> None:
    found = judged(instance(running={"fsync": "off"}), profile=profile, layers=layers)
    (risk,) = [each for each in found["reasons"] if each["id"] == "risk.engine_setting"]
    assert risk["fix"] == f"{first}{fix}"


@pytest.mark.parametrize(
    ("name", "flavour", "shown"),
    [("firebird", None, "firebird"), ("main", None, "firebird main"), ("mariadb", "mysql", "mysql")],
)
def test_a_name_that_repeats_the_product_is_left_out(name: str, flavour: str | None, shown: str) -> None:
    found = instance("mariadb" if flavour else "firebird", name=name)
    assert titled({**found, "flavour": flavour}) == shown
    if not flavour:
        assert plan.named("firebird", name) == shown


def test_the_report_names_the_subvolume_that_holds_a_directory() -> None:
    """Mounts of one file system share a device; a process in a container sees a directory at another path."""
    storage = collect(SmallHost(), NOW)
    mount = next(each for each in storage["mounts"] if each["target"] == "/srv/pgdata")
    mount["targets"].append("/var/lib")
    held = {"/srv/pgdata/base": "/srv/pgdata", "/var/lib/pgsql": "/var/lib", "/elsewhere": "/srv/pgdata"}
    row = {"device": mount["device"], "opened": "buffered", "count": 1}
    files = [{**row, "directory": path, "example": f"{path}/1"} for path in held]
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [instance(files=files)],
        "unattributed": [],
        "writers": [],
    }
    found = assess(inputs(mounts=["/srv/pgdata"]), storage, NOW, engines)
    assert {each["directory"]: each["mount"] for each in found["engines"][0]["files"]} == held


@pytest.mark.parametrize("engine", sorted(GOOD))
def test_an_engine_that_is_as_wanted_adds_no_change(engine: str) -> None:
    found = judged(instance(engine))
    rows = [row for row in found["settings"] if row["layer"] == engine]
    assert {row["setting"] for row in rows} == set(FULL[engine])
    assert {row["verdict"] for row in rows} == {"ok"}
    assert engine not in found["plan"]["tighten"]


@pytest.mark.parametrize(
    ("engine", "setting", "word", "risky"),
    [
        ("postgresql", "fsync", "off", True),
        ("postgresql", "full_page_writes", "off", True),
        ("postgresql", "synchronous_commit", "off", True),
        ("postgresql", "wal_sync_method", "fsync_writethrough", False),
        ("mariadb", "innodb_flush_log_at_trx_commit", "2", True),
        ("mariadb", "innodb_flush_log_at_trx_commit", "0", True),
        ("mariadb", "sync_binlog", "0", True),
    ],
)
def test_what_runs_wrongly_is_drift_and_mended(engine: str, setting: str, word: str, risky: bool) -> None:
    found = judged(instance(engine, running={setting: word}))
    assert row(found, setting)["verdict"] == "drift_running"
    (target,) = found["plan"]["tighten"][engine]
    assert target == {"instance": "main", "settings": {setting: GOOD[engine][setting]}}
    assert (found["verdict"] == "at_risk") == risky
    assert any("main can be lost" in why and setting in why for why in found["why"]) == risky


@pytest.mark.parametrize(
    ("engine", "setting", "wrong", "verdicts"),
    [
        ("postgresql", "fsync", "off", ("drift_running", "drift_persisted", "drift_running")),
        ("postgresql", "data_sync_retry", "on", ("pending", "drift_persisted", "drift_persisted")),
        ("mariadb", "sync_binlog", "0", ("drift_running", "drift_persisted", "drift_running")),
        ("mariadb", "innodb_doublewrite", "OFF", ("pending", "drift_persisted", "drift_persisted")),
        ("faircom", "LOG_WRITETHRU", "off", ("pending", "drift_persisted", "drift_persisted")),
        ("faircom", "DELAYED_DURABILITY", "5", ("pending", "drift_persisted", "drift_persisted")),
    ],
)
def test_running_persisted_and_pending_are_told_apart(
    engine: str, setting: str, wrong: str, verdicts: tuple[str, str, str]
) -> None:
    """Wrong now alone, at the next start alone, and both."""
    word = {setting: wrong}
    found = [
        row(judged(instance(engine, **given)), setting)["verdict"]
        for given in ({"running": word}, {"persisted": word}, {"running": word, "persisted": word})
    ]
    assert tuple(found) == verdicts


def test_what_the_next_start_would_do_is_drift_as_well() -> None:
    found = judged(instance(persisted={"fsync": "off"}))
    assert row(found, "fsync")["verdict"] == "drift_persisted"
    assert "a.conf:1" in row(found, "fsync")["why"]
    assert found["verdict"] == "drifted"
    assert found["plan"]["tighten"]["postgresql"]


@pytest.mark.fact(50)
@pytest.mark.parametrize("word", ["local", "remote_write", "remote_apply"])
def test_a_commit_that_waits_for_more_is_left_alone(word: str) -> None:
    both = {"synchronous_commit": word}
    found = judged(instance(running=both, persisted=both))
    assert row(found, "synchronous_commit")["verdict"] == "ok"


def test_what_cannot_be_read_is_not_safe() -> None:
    found = judged(instance(running={"fsync": "unknown"}))
    assert (row(found, "fsync")["verdict"], found["verdict"]) == ("unknown", "unknown")
    assert any("not allowed to ask" in why for why in found["why"])


def test_what_is_known_to_be_wrong_is_mended_though_the_other_half_is_unknown() -> None:
    found = judged(instance(running={"fsync": "unknown"}, persisted={"fsync": "off"}))
    assert row(found, "fsync")["verdict"] == "drift_persisted"
    assert found["plan"]["tighten"]["postgresql"]


def test_what_is_half_known_is_not_milder_than_what_is_not_known() -> None:
    found = judged(instance(running={"fsync": "unknown"}, persisted={"fsync": "off"}))
    assert found["verdict"] == "unknown"
    known = judged(instance(persisted={"fsync": "off"}))
    assert known["verdict"] == "drifted"


def test_of_a_stopped_server_only_the_next_start_counts() -> None:
    words = dict.fromkeys(GOOD["postgresql"], "stopped")
    found = judged(instance(state="stopped", pids=[], running=words))
    assert {row["verdict"] for row in found["settings"] if row["layer"] == "postgresql"} == {"ok"}
    found = judged(instance(state="stopped", pids=[], running=words, persisted={"fsync": "off"}))
    assert row(found, "fsync")["verdict"] == "drift_persisted"
    assert found["verdict"] == "drifted"


@pytest.mark.parametrize(
    ("manager", "word"),
    [
        ("patroni", "set fsync with patronictl edit-config, below postgresql.parameters"),
        ("container", "its data on the same volumes"),
        ("unknown", "set fsync in the component that starts process 1"),
    ],
)
def test_settings_that_another_keeps_are_not_changed(manager: str, word: str) -> None:
    found = judged(instance(managed_by=manager, running={"fsync": "off"}))
    assert "postgresql" not in found["plan"]["tighten"]
    assert word in row(found, "fsync")["remedy"]
    assert found["verdict"] == "at_risk"


@pytest.mark.parametrize(
    ("cause", "state", "fix"),
    [
        (
            "maybe_pacemaker",
            "running",
            "run crm_mon -1r to see whether it is a resource of Pacemaker's",
        ),
        ("manager_not_queried", "stopped", "make systemctl show postgresql@15-main.service work as root"),
        ("systemd_of_user", "running", "set fsync in the component that starts process 1"),
    ],
)
def test_each_cause_of_an_unknown_manager_has_its_own_fix(cause: str, state: str, fix: str) -> None:
    unknown = {"value": "unknown", "source": "none", "reason": None, "cause": cause, "parameters": {}}
    evidence = {"managed_by": unknown}
    pids = [1] if state == "running" else []
    off = {"fsync": "off"}
    given = instance(managed_by="unknown", state=state, pids=pids, persisted=off, evidence=evidence)
    assert row(judged(given), "fsync")["remedy"].startswith(fix)


@pytest.mark.parametrize("manager", ["patroni", "unknown"])
def test_what_is_unknown_is_read_before_anybody_sets_it(manager: str) -> None:
    given = instance(managed_by=manager, running={"fsync": "unknown"}, persisted={"fsync": "unknown"})
    given["settings"]["fsync"]["held"] = {"fix": "allow_login", "parameters": {}}
    assert row(judged(given), "fsync")["remedy"].startswith("let its operating system user log in")
    del given["settings"]["fsync"]["held"]
    assert row(judged(given), "fsync")["remedy"] == FIX_READ_ERROR


SILENT = {"settings": {"value": "unknown", "source": "psql", "reason": "it runs in a container"}}


def test_all_that_cannot_be_read_in_a_container_is_one_finding_with_one_fix() -> None:
    names = GOOD["postgresql"]
    found = judged(instance(managed_by="container", running=dict.fromkeys(names, "unknown"), evidence=SILENT))
    (reason,) = [each for each in found["reasons"] if each["verdict"] == "unknown"]
    assert reason["id"] == "unknown.container_values"
    assert all(name in reason["reason"] for name in names)
    assert "durable_accept" in reason["fix"]
    assert found["verdict"] == "unknown"


def test_what_runs_in_a_container_is_at_risk_though_the_rest_is_unknown() -> None:
    running = {**dict.fromkeys(GOOD["postgresql"], "unknown"), "fsync": "off"}
    given = instance(managed_by="container", running=running, persisted={"fsync": "off"}, evidence=SILENT)
    given["settings"]["fsync"]["from"] = "its command line"
    found = judged(given)
    assert found["verdict"] == "at_risk"
    assert row(found, "fsync")["remedy"] == (
        "remove the option fsync where the container is defined, and create the container again with its data on the same volumes"
    )
    ids = [each["id"] for each in found["reasons"]]
    assert ids.count("unknown.container_values") == 1


def test_a_container_s_command_line_hides_no_setting_of_a_role() -> None:
    """All settings of the server are known, and nobody can read those of its roles."""
    found = judged(instance(managed_by="container", evidence=SILENT))
    (reason,) = [each for each in found["reasons"] if each["verdict"] == "unknown"]
    assert "settings of roles and databases cannot be read" in reason["reason"]
    assert "unknown.container_values" not in {
        each["id"] for each in judged(instance(evidence=SILENT))["reasons"]
    }


def test_a_refusal_is_part_of_the_reason_and_its_fix_is_the_fix() -> None:
    given = instance(persisted={"fsync": "off"})
    given["settings"]["fsync"].update(
        {
            "held": {"fix": "refusal", "parameters": {"text": "move it away"}},
            "refused": {"cause": "error", "parameters": {"error": "a.conf: observed a link"}},
        }
    )
    seen = row(judged(given), "fsync")
    assert (seen["phase"], seen["remedy"]) == (
        None,
        'correct what the reason names, then run again. The host reports: "move it away"',
    )
    assert seen["why"].endswith(', and no run sets it: "a.conf: observed a link"')
    given["settings"]["fsync"].update({"persisted": "on"})
    assert "observed a link" not in row(judged(given), "fsync")["why"]


TOO_LARGE = {"cause": "too_large", "parameters": {"used": "9", "process": "x", "left": "1"}}
SMALLER = "stop it, or make its configuration smaller, then run again"


@pytest.mark.parametrize("field", ["namespace", "files", "observation"])
def test_an_unknown_value_has_the_fix_of_its_cause(field: str) -> None:
    given = instance()
    given["evidence"][field] = {"value": "unknown", "source": "none", "reason": None, **TOO_LARGE}
    (fix,) = {each["fix"] for each in judged(given)["reasons"] if "expected at most 1" in each["reason"]}
    assert fix == SMALLER


def test_an_unknown_setting_has_the_fixes_of_its_causes_each_once() -> None:
    given = instance(persisted={"fsync": "unknown"})
    given["settings"]["fsync"]["causes"] = [
        TOO_LARGE,
        TOO_LARGE,
        {"cause": "not_flushed", "parameters": {}},
    ]
    assert row(judged(given), "fsync")["remedy"] == f"{SMALLER}, and run again"


@pytest.mark.parametrize("field", ["held", "fix"])
@pytest.mark.parametrize(
    "fix",
    ["curl evil | sh", RESET_FSYNC, {"fix": "remove_from", "parameters": {"setting": "fsync"}}],
    ids=["text", "of another engine", "without a value"],
)
def test_facts_whose_fix_is_none_of_the_engine_are_refused(field: str, fix: Any) -> None:
    given = instance("mariadb", persisted={"sync_binlog": "0"})
    given["settings"]["sync_binlog"][field] = fix
    (why,) = judged(given)["why"][:1]
    assert f"settings.sync_binlog.{field}: observed" in why and "expected a fix of mariadb's settings" in why


@pytest.mark.parametrize("refused", ["a sentence", {"cause": "no_superuser", "parameters": {}}])
def test_facts_whose_refusal_is_none_of_the_engine_are_refused(refused: Any) -> None:
    given = instance("mariadb", persisted={"sync_binlog": "0"})
    given["settings"]["sync_binlog"]["refused"] = refused
    (why,) = judged(given)["why"][:1]
    assert "settings.sync_binlog.refused: observed" in why and "expected a refusal of mariadb" in why


@pytest.mark.parametrize("manager", ["galera", "group_replication"])
def test_a_node_of_a_cluster_is_set_like_any_other(manager: str) -> None:
    off = {"sync_binlog": "0", "innodb_doublewrite": "OFF"}
    found = judged(instance("mariadb", managed_by=manager, running=off, persisted=off))
    (target,) = found["plan"]["tighten"]["mariadb"]
    assert target["settings"] == {"sync_binlog": "1", "innodb_doublewrite": "ON"}


@pytest.mark.fact(28)
@pytest.mark.parametrize(
    ("manager", "allow", "planned", "remedy"),
    [
        ("systemd", [], False, "restart_engines"),
        ("systemd", ["restart_engines"], True, "run harden_db"),
        ("pacemaker", ["restart_engines"], False, "pcs resource restart"),
        ("none", ["restart_engines"], False, "stop and start the server as it was started"),
        ("container", ["restart_engines"], False, "restart its container"),
        ("patroni", ["restart_engines"], False, "run patronictl restart CLUSTER MEMBER"),
        ("unknown", ["restart_engines"], False, "through Pacemaker if crm_mon -1r lists it"),
        ("galera", ["restart_engines"], False, "restart the nodes one at a time"),
        ("group_replication", ["restart_engines"], False, "restart the nodes one at a time"),
    ],
)
def test_a_setting_that_waits_for_a_restart_waits_for_permission(
    manager: str, allow: list[str], planned: bool, remedy: str
) -> None:
    waiting = instance("mariadb", managed_by=manager, running={"innodb_doublewrite": "OFF"})
    found = judged(waiting, allow=allow)
    assert row(found, "innodb_doublewrite")["verdict"] == "pending"
    assert remedy in row(found, "innodb_doublewrite")["remedy"]
    assert ("mariadb" in found["plan"]["tighten"]) == planned


def test_without_a_binary_log_its_flushes_mean_nothing() -> None:
    off = {"log_bin": "OFF", "sync_binlog": "0"}
    found = judged(instance("mariadb", running=off, persisted=off))
    assert "sync_binlog" not in {row["setting"] for row in found["settings"]}


@pytest.mark.fact(36)
def test_mariadb_has_a_third_safe_way_and_mysql_has_not() -> None:
    third = {"innodb_flush_log_at_trx_commit": "3"}
    of_mariadb = judged(instance("mariadb", flavour="mariadb", running=third, persisted=third))
    of_mysql = judged(instance("mariadb", flavour="mysql", running=third, persisted=third))
    name = "innodb_flush_log_at_trx_commit"
    assert (row(of_mariadb, name)["verdict"], row(of_mysql, name)["verdict"]) == ("ok", "drift_running")


@pytest.mark.fact(36)
@pytest.mark.parametrize("word", ["O_DIRECT_NO_FSYNC", "nosync", "littlesync"])
def test_a_flush_method_that_does_not_flush_is_refused(word: str) -> None:
    method = {"innodb_flush_method": word}
    found = judged(instance("mariadb", running=method, persisted=method))
    assert row(found, "innodb_flush_method")["verdict"] == "drift_persisted"
    assert [(wait["setting"], wait["needs"]) for wait in found["pending"]] == [
        ("innodb_flush_method", "restart")
    ]
    assert found["verdict"] == "at_risk"


RESET_BOB = 'run ALTER ROLE "bob" RESET synchronous_commit'
OF_BOB = {
    "scope": "role bob",
    "setting": "synchronous_commit",
    "value": "off",
    "source": "pg_db_role_setting",
    "cause": "role",
    "role": "bob",
    "database": None,
    "permission": "alter_system",
}


def test_a_role_that_goes_its_own_way_is_named_and_not_touched() -> None:
    found = judged(instance(overrides=[OF_BOB]))
    (named,) = [row for row in found["settings"] if row["target"] == "main role bob"]
    assert (named["verdict"], found["verdict"]) == ("drift_running", "at_risk")
    assert named["remedy"] == f"{RESET_BOB}, or give durable_allow: [alter_system]"
    assert "postgresql" not in found["plan"]["tighten"]


@pytest.mark.fact(62)
def test_with_the_permission_a_role_s_own_setting_is_taken_away() -> None:
    found = judged(instance(overrides=[OF_BOB]), allow=["alter_system"])
    assert found["plan"]["tighten"]["postgresql"] == [
        {
            "instance": "main",
            "settings": {},
            "overrides": [{"setting": "synchronous_commit", "role": "bob", "database": None}],
        }
    ]
    (change,) = [change for change in found["changes"] if change["layer"] == "postgresql"]
    assert (change["target"], change["running"], change["wanted"]) == ("main role bob", "off", "on")
    assert "main role bob" not in found["files"]


@pytest.mark.parametrize("allow", [[], ["restart_engines"], ["alter_system"]])
def test_a_step_uses_alter_system_only_with_the_permission(allow: list[str]) -> None:
    given = instance(running={"fsync": "off"}, persisted={"fsync": "off"})
    (step,) = (step for step in judged(given, allow=allow)["steps"] if step["layer"] == "postgresql")
    assert step["arguments"]["alter_system"] is ("alter_system" in allow)
    assert step["arguments"]["restart"] is ("restart_engines" in allow)


@pytest.mark.parametrize(
    "given",
    [{"managed_by": "patroni"}, {"managed_by": "unknown"}, {"overrides": [{**OF_BOB, "permission": None}]}],
)
def test_what_a_run_may_not_take_away_names_no_permission(given: dict[str, Any]) -> None:
    found = judged(instance(**{"overrides": [OF_BOB], **given}), allow=["alter_system"])
    (named,) = [row for row in found["settings"] if row["target"] == "main role bob"]
    assert (named["remedy"], named["phase"]) == (RESET_BOB, None)


@pytest.mark.fact(62)
@pytest.mark.parametrize("allow", [[], ["alter_system"]])
def test_what_alter_system_holds_is_promised_with_the_permission_alone(allow: list[str]) -> None:
    given = instance(running={"fsync": "off"}, persisted={"fsync": "off"})
    given["settings"]["fsync"].update(held=RESET_FSYNC, permission="alter_system")
    found = judged(given, allow=allow)
    assert ("postgresql" in found["plan"]["tighten"]) == bool(allow)
    without = "as a superuser run ALTER SYSTEM RESET fsync, or give durable_allow: [alter_system]"
    assert row(found, "fsync")["remedy"] == ("run harden_db" if allow else without)


@pytest.mark.parametrize("value", ["on", "remote_apply", "off"])
def test_where_loss_is_accepted_a_role_may_keep_its_commits(value: str) -> None:
    found = judged(
        instance(overrides=[{**OF_BOB, "value": value}]), profile="disposable", accept_data_loss=True
    )
    assert all(row["target"] != "main role bob" for row in found["settings"])


def test_a_host_without_a_profile_shows_its_engines() -> None:
    found = judged(instance(), profile=None)
    assert (found["verdict"], [one["name"] for one in found["engines"]]) == ("not_managed", ["main"])


@pytest.mark.fact(50)
def test_a_library_that_takes_fsync_away_puts_the_host_at_risk() -> None:
    found = judged(instance(preloads=["libeatmydata.so"]))
    assert found["verdict"] == "at_risk"
    (why,) = [why for why in found["why"] if "libeatmydata.so" in why]
    assert why.startswith("commits of postgresql main can be lost")


COMING = {"value": "/usr/lib/libeatmydata.so", "source": "/etc/ld.so.preload line 1", "reason": None}


@pytest.mark.fact(81)
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_library_that_the_next_start_loads_is_a_red_row_with_its_file_and_line(state: str) -> None:
    found = judged(instance(state=state, evidence={"next_preloads": COMING}))
    (row,) = [row for row in found["settings"] if row["setting"] == "preloads"]
    assert (row["persisted"], row["verdict"], row["class"]) == (COMING["value"], "drift_persisted", "safety")
    assert row["running"] == ("none" if state == "running" else "stopped")
    assert "/etc/ld.so.preload line 1" in row["why"]
    assert row["remedy"] == "remove /usr/lib/libeatmydata.so from /etc/ld.so.preload line 1"
    assert found["verdict"] not in ("durable", "attested")
    assert not [row for row in judged(instance())["settings"] if row["setting"] == "preloads"]


def test_a_list_of_preloads_that_cannot_be_read_is_unknown() -> None:
    lost = {"value": "unknown", "source": "/etc/ld.so.preload", "reason": "Input/output error"}
    found = judged(instance(evidence={"next_preloads": lost}))
    (row,) = [row for row in found["settings"] if row["setting"] == "preloads"]
    assert (row["verdict"], found["verdict"]) == ("unknown", "unknown")
    assert "Input/output error" in row["why"]


@pytest.mark.fact(32)
def test_faircom_may_not_trade_durability_for_delay() -> None:
    delayed = {"DELAYED_DURABILITY": "5"}
    found = judged(instance("faircom", running=delayed, persisted=delayed))
    assert found["verdict"] == "at_risk"
    assert found["plan"]["tighten"]["faircom"] == [
        {"instance": "main", "settings": {"DELAYED_DURABILITY": "0"}}
    ]


@pytest.mark.fact(35)
def test_where_loss_is_accepted_commits_are_early_and_nothing_corrupts() -> None:
    found = judged(instance(), profile="disposable", accept_data_loss=True)
    assert found["plan"]["loosen"]["postgresql"] == [
        {"instance": "main", "settings": {"synchronous_commit": "off"}}
    ]
    assert row(found, "fsync")["wanted_running"] == "on"
    assert "a commit waits for the disk" in row(found, "synchronous_commit")["why"]


def test_a_profile_that_promises_durability_cannot_relax_its_engines() -> None:
    found = judged(instance(), overrides={"engines": "relaxed"})
    assert found["verdict"] == "blocked"
    assert "engines 'relaxed'" in found["why"][0]


def test_a_process_that_belongs_to_nothing_makes_the_host_unknown() -> None:
    found = judged(unattributed=[{"pid": 7, "name": "postgres", "why": "it calls itself postgres"}])
    assert found["verdict"] == "unknown"
    (why,) = [why for why in found["why"] if "process 7 (postgres)" in why]
    assert why.endswith("; stop process 7 (postgres), or start the server by its own unit, then run again")


@pytest.mark.parametrize("name", ["any database server", "firebird"])
def test_an_engine_that_could_not_be_looked_for_is_no_process_to_stop(name: str) -> None:
    found = judged(unattributed=[{"pid": None, "name": name, "why": "Permission denied"}])
    (reason,) = [each for each in found["reasons"] if each["id"] == "unknown.engines"]
    assert reason["reason"] == f'whether {name} runs here is unknown: "Permission denied"'
    assert reason["fix"] == "correct what the reason names, then run again"


def test_an_engine_that_could_not_be_looked_at_makes_the_host_unknown() -> None:
    lost = {"observation": {"value": "unknown", "source": "none", "reason": "KeyError at x.py:1"}}
    found = judged(instance(evidence=lost))
    assert found["verdict"] == "unknown"


def test_an_engine_that_says_nothing_makes_the_host_unknown() -> None:
    found = judged(instance(settings={}))
    assert found["verdict"] == "unknown"
    assert any("its settings are unknown" in why for why in found["why"])


FIELDS = ("directories", "files", "namespace", "preloads")


def unread(field: str, value: str = "unknown") -> dict[str, Any]:
    """Return evidence of a field that could not be read."""
    return {field: {"value": value, "source": "/proc/1", "reason": "Permission denied"}}


@pytest.mark.parametrize("field", FIELDS)
def test_what_could_not_be_looked_at_makes_the_host_unknown(field: str) -> None:
    found = judged(instance(evidence=unread(field)))
    assert found["verdict"] == "unknown"
    assert any('is unknown: "Permission denied"' in why for why in found["why"])


def silent(field: str) -> dict[str, Any]:
    """Return evidence of a field of which the observer's reason says, in its own words, what to do."""
    return {field: {"value": "unknown", "source": "none", "reason": "no answer; look at its log"}}


#: What is broken on a host, how its reason begins, and the one thing to do.
UNKNOWNS: dict[str, tuple[dict[str, Any], str, str]] = {
    **{
        f"its {field}": (
            {"evidence": unread(field)},
            f'postgresql main: {what} is unknown: "Permission denied"',
            FIX_READ_ERROR,
        )
        for field, what in (
            ("files", "the list of its open files"),
            ("directories", "the location of its files"),
        )
    },
    "nothing": (
        {"settings": {}},
        "postgresql main: its settings are unknown",
        "make its configuration readable for root, or add postgresql main to durable_ignore",
    ),
    "an observer's words": (
        {"evidence": silent("observation")},
        'postgresql main: "no answer; look at its log"',
        FIX_READ_ERROR,
    ),
    "whether it runs": (
        {"state": "unknown"},
        "postgresql main: whether it runs is unknown",
        "see systemctl status postgresql@15-main.service",
    ),
    "a place": (
        {"directories": []},
        "postgresql main: the location of its files is unknown",
        "start it, or name its data directory in its configuration, then run again",
    ),
    "firebird's places": (
        {"engine": "firebird", "databases": [], "settings": {}},
        "firebird main: none of its databases was found",
        "name its databases' paths in durable_databases",
    ),
    "its flavour": (
        {"engine": "mariadb", "flavour": "unknown"},
        "mariadb main: whether it is MariaDB or MySQL is unknown, and their settings differ",
        "let root log in without a password (unix_socket, in MySQL auth_socket), then run again",
    ),
    "its flavour, stopped": (
        {"engine": "mariadb", "flavour": "unknown", "state": "stopped", "pids": []},
        "mariadb main: whether it is MariaDB or MySQL is unknown, and their settings differ",
        "start it once, then run again",
    ),
    "an unmanaged mount": (
        {"directories": ["/srv/pglog"]},
        "postgresql main has files on ",
        "list it in durable_mounts",
    ),
    "an old version": (
        {"engine": "mssql", "version": "14.0.1000.1"},
        "mssql main: observed version 14.0.1000.1, expected ",
        "update it to 2017 CU6 (14.0.3025.34) or later",
    ),
    "an old version of FairCom's": (
        {
            "engine": "faircom",
            "version": "10.3.0.1",
            "config": "/opt/x/ctsrvr.cfg",
            "running": {"SYNC_LOG": "on"},
        },
        "faircom main: observed version 10.3.0.1, expected ",
        "update it to V10.3.1.21834 (build 140307) or later, and until then remove COMPATIBILITY LOG_WRITETHRU, "
        "TDATA_WRITETHRU, TINDEX_WRITETHRU, SYNC_LOG from /opt/x/ctsrvr.cfg and restart it",
    ),
    "open flags": (
        {
            "engine": "mssql",
            "version": "16.0.4185.3",
            "settings": {
                name: {"running": word, "persisted": word, "source": "x", "reason": None, "from": None}
                for name, word in (("writethrough", "1"), ("alternatewritethrough", "0"))
            },
            "evidence": silent("write_through"),
        },
        "mssql main: with alternatewritethrough 0 its files must be open with O_DSYNC",
        "run mssql-conf set control.alternatewritethrough 1 and mssql-conf traceflag 3979 off, then restart it (through its"
        " cluster, if any)",
    ),
    "open logs": (
        {"engine": "faircom", "running": {"LOG_WRITETHRU": "on"}, "evidence": silent("write_through")},
        "faircom main: with LOG_WRITETHRU its logs must be open with O_SYNC",
        "run again while the server has a transaction log open",
    ),
}


@pytest.mark.parametrize("case", UNKNOWNS)
def test_each_unknown_has_one_remedy(case: str) -> None:
    given, begins, remedy = UNKNOWNS[case]
    said = [why for why in judged(instance(**given))["why"] if why.startswith(begins)]
    assert said and all(why.endswith(f"; {remedy}") for why in said), said
    assert all(why.count(FIX_READ_ERROR) == (remedy == FIX_READ_ERROR) for why in said), said


@pytest.mark.parametrize("field", FIELDS)
def test_a_stopped_server_has_no_process_to_look_at(field: str) -> None:
    words = dict.fromkeys(GOOD["postgresql"], "stopped")
    found = judged(instance(state="stopped", pids=[], running=words, evidence=unread(field)))
    assert any("Permission denied" in why for why in found["why"]) == (field == "directories")


def test_open_files_are_all_needed_where_nothing_else_tells_the_places() -> None:
    some = unread("files", "partial")
    device = next(m["device"] for m in collect(SmallHost(), NOW)["mounts"] if m["target"] == "/srv/pgdata")
    opened = {"directory": "/srv/pgdata", "device": device, "opened": "direct", "count": 1}
    assert not any("open" in why for why in judged(instance(evidence=some))["why"])
    for given in (
        {"directories": [], "files": [opened], "evidence": some},
        {"evidence": {**some, **unread("directories")}},
    ):
        found = judged(instance(**given))
        assert any("the list of its open files is unknown" in why for why in found["why"])


@pytest.mark.fact(46)
@pytest.mark.parametrize(
    ("engine", "needed"), [("postgresql", False), ("mariadb", False), ("firebird", True), ("faircom", True)]
)
def test_open_files_are_all_needed_where_databases_may_lie_anywhere(engine: str, needed: bool) -> None:
    found = judged(instance(engine, evidence=unread("files", "partial"), databases=[]))
    assert any("the list of its open files is unknown" in why for why in found["why"]) == needed


@pytest.mark.parametrize(
    ("engine", "name"), [(engine, name) for engine, words in GOOD.items() for name in FULL[engine]]
)
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_setting_that_is_not_told_is_not_fine(engine: str, name: str, state: str) -> None:
    silent = instance(engine, state=state)
    del silent["settings"][name]
    found = judged(silent)
    seen = row(found, name)
    assert (seen["verdict"], seen["phase"], seen["why"]) == ("unknown", None, "it was not reported")
    assert found["verdict"] == ("unknown" if seen["class"] == "safety" else "drifted")


def test_a_setting_that_this_version_does_not_have_is_left_out() -> None:
    absent = {"value": "absent", "source": "the server", "reason": "from 11.0 on there is none"}
    old = instance("mariadb", evidence={"innodb_flush_method": absent})
    del old["settings"]["innodb_flush_method"]
    found = judged(old)
    assert "innodb_flush_method" not in {row["setting"] for row in found["settings"]}
    assert found["verdict"] == judged(instance("mariadb"))["verdict"]


@pytest.mark.fact(53)
def test_after_an_exposed_time_the_engines_own_check_is_named() -> None:
    found = judged(instance(running={"fsync": "off"}))
    assert any("pg_amcheck" in check for check in found["exposed"])
    assert not judged(instance())["exposed"]


#: How people write each engine's check.
@pytest.mark.parametrize("engine", ["postgresql", "mariadb", "faircom"])
def test_the_report_has_the_files_that_a_step_of_an_engine_may_write(engine: str) -> None:
    setting = {"postgresql": "fsync", "faircom": "SYNC_LOG"}.get(engine, "sync_binlog")
    wrong = "off" if engine == "postgresql" else "on" if engine == "faircom" else "0"
    found = judged(instance(engine, persisted={setting: wrong}))
    keeps = engine in ("faircom", "postgresql")
    originals = {f"/var/lib/durable-dbhost/originals-{engine}.json"} if keeps else set()
    of_engine = {path for path in found["files"] if engine in path}
    assert of_engine == {f"/etc/{engine}.d/ours.conf", *originals}
    assert not any(engine in path for path in judged(instance(engine))["files"])


def test_the_report_has_the_databases_whose_headers_change() -> None:
    found = judged(
        instance("firebird", databases=[database(forced_writes="off"), database(path="/srv/b.fdb")])
    )
    assert {FDB, "/var/lib/durable-dbhost/firebird.json"} <= set(found["files"])
    assert "/srv/b.fdb" not in found["files"]


CHECKS = {
    "mssql": "DBCC CHECKDB",
    "faircom": "ctvfyfil",
    "firebird": "gfix -v",
    "postgresql": "pg_amcheck",
    "mariadb": "mariadb-check",
}


@pytest.mark.fact(53)
@pytest.mark.parametrize("engine", sorted(CHECKS))
def test_an_engine_over_a_disk_that_was_not_flushed_was_exposed_too(engine: str) -> None:
    """Its own settings are as they should be."""
    host = SmallHost()
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [instance(engine, databases=[])],
        "unattributed": [],
        "writers": [],
    }
    given = inputs("strict", mounts=["/srv/pgdata"])
    assert assess(given, collect(host, NOW), NOW, engines)["exposed"] == []
    host.mounts["/srv/pgdata"].barrier = "off"
    (reported,) = assess(given, collect(host, NOW), NOW, engines)["exposed"]
    assert reported.startswith(f"{engine} main was exposed: ")
    assert CHECKS[engine] in reported


@pytest.mark.parametrize(
    ("running", "persisted", "planned"),
    [("off", "off", False), ("on", "off", False), ("off", "on", True), ("on", "on", False)],
)
def test_what_beats_every_file_of_ours_is_not_promised(running: str, persisted: str, planned: bool) -> None:
    """A check would say that a run sets it, and the run would refuse."""
    given = instance(running={"fsync": running}, persisted={"fsync": persisted})
    given["settings"]["fsync"]["held"] = RESET_FSYNC
    found = judged(given)
    assert ("postgresql" in found["plan"]["tighten"]) == planned
    assert any(change["setting"] == "fsync" for change in found["changes"]) == planned
    remedies = {("off", "on"): "run harden_db", ("on", "on"): ""}
    reset = "as a superuser run ALTER SYSTEM RESET fsync"
    assert row(found, "fsync")["remedy"] == remedies.get((running, persisted), reset)
    if running == "off" != persisted or persisted == "off":
        assert row(found, "fsync")["verdict"].startswith("drift")


@pytest.mark.parametrize(
    ("running", "persisted", "verdict"),
    [
        # Only a log that is off now and stays off makes sync_binlog mean nothing.
        ("OFF", "OFF", None),
        ("ON", "OFF", "drift_running"),
        ("OFF", "ON", "drift_running"),
        # The server's own help reached its time limit, say.
        ("OFF", "unknown", "drift_running"),
        ("stopped", "OFF", None),
    ],
)
def test_a_binary_log_that_is_off_for_good(running: str, persisted: str, verdict: str | None) -> None:
    wrong = {"sync_binlog": "0"}
    state = "stopped" if running == "stopped" else "running"
    given = instance(
        "mariadb",
        state=state,
        running={**wrong, "log_bin": running},
        persisted={**wrong, "log_bin": persisted},
    )
    found = judged(given)
    rows = [row["verdict"] for row in found["settings"] if row["setting"] == "sync_binlog"]
    assert rows == ([verdict] if verdict else [])
    # Nothing that is acknowledged now can be lost from a log that is not written.
    assert (found["verdict"] == "at_risk") == (running == "ON")


def test_what_is_told_counts_though_the_evidence_calls_it_absent() -> None:
    absent = {"value": "absent", "source": "x", "reason": "there is none"}
    found = judged(instance(running={"fsync": "off"}, evidence={"fsync": absent}))
    assert row(found, "fsync")["verdict"] == "drift_running"


@pytest.mark.parametrize(
    ("setting", "running", "persisted", "waits", "verdict", "planned"),
    [
        # What the layer would refuse, for it cannot be read, is not promised.
        ("fsync", "off", "unknown", False, "drift_running", False),
        # Not live: what the next start brings is unknown.
        ("data_sync_retry", "on", "unknown", False, "unknown", False),
        # This start's command line has fixed it.
        ("fsync", "off", "on", True, "pending", False),
        ("fsync", "off", "off", True, "drift_persisted", True),
    ],
)
def test_what_a_run_can_do_about_a_word(
    setting: str, running: str, persisted: str, waits: bool, verdict: str, planned: bool
) -> None:
    found = judged(
        instance(
            running={setting: running},
            persisted={setting: persisted},
            pending_restart=[setting] if waits else [],
        )
    )
    assert row(found, setting)["verdict"] == verdict
    assert ("postgresql" in found["plan"]["tighten"]) == planned


@pytest.mark.fact(35)
@pytest.mark.fact(36)
@pytest.mark.parametrize(
    ("engine", "setting", "word"),
    [
        ("postgresql", "fsync", "off"),
        ("postgresql", "full_page_writes", "off"),
        ("postgresql", "synchronous_commit", "off"),
        ("mariadb", "innodb_flush_log_at_trx_commit", "2"),
        ("mariadb", "sync_binlog", "100"),
        ("mariadb", "innodb_doublewrite", "OFF"),
        ("mariadb", "innodb_doublewrite", "DETECT_ONLY"),
        ("mariadb", "innodb_flush_method", "O_DIRECT_NO_FSYNC"),
        ("mariadb", "innodb_flush_method", "nosync"),
        ("mariadb", "debug_no_sync", "ON"),
        ("mysql", "innodb_flush_log_at_trx_commit", "3"),
        ("mysql", "innodb_redo_log_enabled", "OFF"),
    ],
)
def test_each_word_that_loses_commits_is_a_risk(engine: str, setting: str, word: str) -> None:
    given = instance("mariadb" if engine == "mysql" else engine, flavour=engine)
    right = {"source": "x", "reason": None, "from": None, "held": None}
    given["settings"].setdefault("innodb_redo_log_enabled", {"running": "ON", "persisted": "ON", **right})
    given["settings"][setting] = {"running": word, "persisted": word, **right}
    found = judged(given)
    assert found["verdict"] == "at_risk"
    assert any(f"main can be lost: {setting} is {word}" in why for why in found["why"])


def test_what_a_relaxed_profile_does_not_ask_for_is_a_matter_of_speed() -> None:
    found = judged(instance(), profile="disposable", accept_data_loss=True)
    seen = row(found, "synchronous_commit")
    assert (seen["class"], seen["verdict"]) == ("performance", "drift_running")
    assert row(found, "fsync")["class"] == "safety"


@pytest.mark.parametrize("field", ["files", "preloads"])
def test_what_is_not_told_at_all_is_not_known(field: str) -> None:
    lost = instance()
    del lost["evidence"][field]
    found = judged(lost)
    assert found["verdict"] == "unknown"
    assert any("it was not reported" in why for why in found["why"])


@pytest.mark.parametrize("state", ["unknown", "running"])
def test_it_is_unknown_whether_it_runs(state: str) -> None:
    reported = "whether it runs is unknown" in "\n".join(judged(instance(state=state))["why"])
    assert reported == (state == "unknown")


@pytest.mark.parametrize("state", ["unknown", "running"])
def test_what_is_not_known_to_be_stopped_loses_commits_as_what_runs(state: str) -> None:
    assert judged(instance(state=state, running={"fsync": "off"}))["verdict"] == "at_risk"
    assert judged(instance(state=state, preloads=["libeatmydata.so"]))["verdict"] == "at_risk"


class TestIdle:
    """A server that is stopped, and that nothing starts, loses nothing: it is listed, and decides no verdict."""

    IDLE: ClassVar[dict[str, Any]] = {
        "state": "stopped",
        "starts_at_boot": "no",
        "settings": {},
        "directories": ["/srv/gone"],
        "evidence": {"config": {"value": "unknown", "source": "x", "reason": "it does not run"}},
    }

    def test_it_is_listed_and_not_judged(self) -> None:
        plain = judged(instance())
        found = judged(instance(), instance("mariadb", **self.IDLE))
        assert found["verdict"] == plain["verdict"]
        assert found["verdict"] not in ("unknown", "at_risk")
        assert [engine["engine"] for engine in found["engines"]] == ["postgresql", "mariadb"]
        assert any("mariadb main: it is stopped, and nothing starts it" in text for text in found["warnings"])
        assert not any("mariadb" in why for why in found["why"])

    @pytest.mark.parametrize(
        "given",
        [{"state": "running"}, {"starts_at_boot": "yes"}, {"starts_at_boot": "unknown"}]
        + [{"managed_by": word} for word in ("pacemaker", "patroni", "none", "container", "unknown")],
    )
    def test_whatever_may_start_is_judged(self, given: dict[str, str]) -> None:
        found = judged(instance("mariadb", **{**self.IDLE, **given}))
        assert found["verdict"] == "unknown"
        assert any("mariadb main" in why for why in found["why"])

    @pytest.mark.parametrize("name", ["mysql", "mariadb"])
    def test_one_that_the_inventory_names_is_judged(self, name: str) -> None:
        named = [{"engine": name, "paths": ["/srv/pgdata"]}]
        found = judged(instance("mariadb", **self.IDLE), mounts=None, databases=named)
        assert found["verdict"] == "unknown"
        assert any("mariadb main" in why for why in found["why"])

    def test_where_there_is_no_other_nothing_is_durable(self) -> None:
        found = judged(instance("mariadb", **{**self.IDLE, "directories": ["/srv/maria"]}), mounts=None)
        assert found["verdict"] == "not_applicable"
        assert any("mariadb main: it is stopped" in why for why in found["why"])
        assert [engine["engine"] for engine in found["engines"]] == ["mariadb"]


@pytest.mark.fact(53)
def test_an_engine_on_another_sound_mount_is_not_said_to_have_been_exposed() -> None:
    """Barriers are off below one of two; an engine of which nobody knows where it lies may be on either."""
    host = SmallHost()
    host.mounts["/srv/maria"].barrier = "off"
    here, there = instance(), instance("mariadb", directories=["/srv/maria"])
    lost, split = instance("faircom", directories=[]), instance("firebird", databases=[], name="split")
    split["directories"] = ["/srv/pgdata", "/srv/nowhere"]
    engines = {
        "time": NOW,
        "boot_id": BOOT_ID,
        "engines": [here, there, lost, split],
        "unattributed": [],
        "writers": [],
    }
    given = inputs("strict", mounts=["/srv/pgdata", "/srv/maria"])
    storage = collect(host, NOW)
    storage["unresolved"]["/srv/nowhere"] = "a disk hangs"
    reported = assess(given, storage, NOW, engines)["exposed"]
    assert [line.split()[0] for line in reported] == ["mariadb", "faircom", "firebird"]
    host.mounts["/srv/maria"].barrier = "on"
    assert assess(given, collect(host, NOW), NOW, engines)["exposed"] == []


@pytest.mark.fact(53)
def test_a_guard_that_failed_exposed_every_engine() -> None:
    facts = power(guard=guard("failed", "a disk hangs"))
    engines = {"time": NOW, "boot_id": BOOT_ID, "engines": [instance()], "unattributed": [], "writers": []}
    given = inputs("strict", mounts=["/srv/pgdata"])
    assert assess(given, collect(SmallHost(), NOW), NOW, engines, facts)["exposed"]


class TestLoosening:
    """A cache that is off may be all that keeps the commits of a server that does not flush."""

    @staticmethod
    def found(given: dict[str, Any], **more: Any) -> dict[str, Any]:
        host = SmallHost()
        host.disk("sda").cache = "disabled"
        storage = collect(host, NOW)
        engines = {"boot_id": BOOT_ID, "time": NOW, "engines": [given], "unattributed": [], "writers": []}
        given = {"profile": "flush", "mounts": ["/srv/pgdata"], **more}
        return assess(inputs(**given), storage, NOW, engines)

    @pytest.mark.parametrize(
        ("engine", "given", "restart", "loosened"),
        [
            ("postgresql", {}, False, True),
            # A running server takes it, before any cache is turned on.
            ("postgresql", {"running": {"fsync": "off"}}, False, True),
            ("postgresql", {"running": {"fsync": "off"}, "managed_by": "patroni"}, False, False),
            ("postgresql", {"running": {"fsync": "unknown"}}, False, False),
            ("postgresql", {"running": {"fsync": "unknown"}, "persisted": {"fsync": "off"}}, False, False),
            ("postgresql", {"persisted": {"fsync": "off"}, "managed_by": "container"}, False, False),
            # It loses nothing, and waits for a restart.
            ("postgresql", {"running": {"data_sync_retry": "on"}}, False, True),
            ("postgresql", {"running": {"wal_sync_method": "unknown"}}, False, True),
            ("postgresql", {"preloads": ["libeatmydata.so"]}, True, False),
            ("postgresql", {"evidence": {"next_preloads": COMING}}, True, False),
            # What this run mends is not all that loses commits.
            ("postgresql", {"preloads": ["libeatmydata.so"], "running": {"fsync": "off"}}, True, False),
            # Only a restart brings it.
            ("mariadb", {"running": {"innodb_flush_method": "O_DIRECT_NO_FSYNC"}}, False, False),
            ("mariadb", {"running": {"innodb_flush_method": "O_DIRECT_NO_FSYNC"}}, True, True),
            (
                "mariadb",
                {
                    "running": {"innodb_flush_method": "nosync"},
                    "persisted": {"innodb_flush_method": "nosync"},
                },
                False,
                False,
            ),
            (
                "mariadb",
                {"running": {"innodb_flush_method": "nosync"}, "managed_by": "pacemaker"},
                True,
                False,
            ),
            # Its file can be set, and nobody here restarts it.
            (
                "mariadb",
                {
                    "running": {"innodb_doublewrite": "OFF"},
                    "persisted": {"innodb_doublewrite": "OFF"},
                    "managed_by": "galera",
                },
                True,
                False,
            ),
            ("faircom", {"running": {"DELAYED_DURABILITY": "3"}}, False, False),
            ("faircom", {"running": {"LOG_WRITETHRU": "off"}}, False, True),
        ],
    )
    def test_no_cache_is_turned_on_under_a_server_that_loses_commits(
        self, engine: str, given: dict[str, Any], restart: bool, loosened: bool
    ) -> None:
        allow = ["restart_engines"] if restart else []
        found = self.found(instance(engine, **given), allow=allow)
        assert ("write_cache" in found["plan"]["loosen"]) == loosened
        said = f"is withheld until {engine} main verifiably preserves commits"
        assert any(said in why for why in found["why"]) != loosened

    def test_a_stopped_server_that_another_will_start_wrongly_writes_nothing_either(self) -> None:
        stopped = instance(state="stopped", persisted={"fsync": "off"}, managed_by="patroni")
        assert "write_cache" in self.found(stopped)["plan"]["loosen"]

    def test_a_stopped_server_writes_nothing(self) -> None:
        stopped = instance(state="stopped", persisted={"fsync": "off"})
        assert "write_cache" in self.found(stopped)["plan"]["loosen"]

    def test_where_loss_is_accepted_nothing_waits_for_it(self) -> None:
        off = instance(running={"fsync": "off"}, managed_by="patroni")
        found = self.found(off, profile="disposable", accept_data_loss=True)
        assert "write_cache" in found["plan"]["loosen"]


def test_reasons_and_changes_name_the_engine() -> None:
    found = judged(instance(running={"fsync": "off"}))
    assert any(why.startswith("commits of postgresql main can be lost: fsync is off") for why in found["why"])
    (change,) = [change for change in found["changes"] if change["setting"] == "fsync"]
    assert change_line(change) == "postgresql main fsync: now off -> on"
    stopped = judged(instance(state="stopped", persisted={"fsync": "off"}))
    (change,) = [change for change in stopped["changes"] if change["setting"] == "fsync"]
    assert "stopped" not in change_line({**change, "running": "stopped"})


def test_a_row_states_its_value_and_its_reason_states_it_once() -> None:
    found = judged(instance(running={"full_page_writes": "off"}), profile="disposable", accept_data_loss=True)
    (one,) = [each for each in found["settings"] if each["setting"] == "full_page_writes"]
    (reason,) = [each for each in found["reasons"] if each["id"] == "setting.postgresql.full_page_writes"]
    assert one["why"].startswith("full_page_writes is off: ")
    assert reason["reason"].startswith("postgresql main: full_page_writes is off, expected on: a ")
    assert "means" not in one


class TestMounts:
    def test_what_engines_use_is_managed_where_nothing_is_named(self) -> None:
        found = judged(instance(), mounts=None)
        targets = {row["target"] for row in found["settings"] if row["layer"] == "mount_options"}
        assert targets == {"/srv/pgdata"}

    def test_open_files_count_by_their_device(self) -> None:
        storage = collect(SmallHost(), NOW)
        device = next(m["device"] for m in storage["mounts"] if m["target"] == "/srv/mssql")
        row_of_files = {"directory": "/elsewhere", "device": device, "opened": "direct", "count": 1}
        found = judged(instance(directories=[], files=[row_of_files]), mounts=None)
        targets = {row["target"] for row in found["settings"] if row["layer"] == "mount_options"}
        assert targets == {"/srv/mssql"}
        (reported,) = found["engines"]
        assert reported["files"] == [
            {
                "directory": "/elsewhere",
                "opened": "direct",
                "count": 1,
                "mount": "/srv/mssql",
                "disks": ["sdb"],
            }
        ]

    def test_files_on_a_mount_that_is_not_managed_are_not_forgotten(self) -> None:
        found = judged(instance(directories=["/srv/pgdata", "/srv/mssql/wal"]))
        assert found["verdict"] == "unknown"
        assert any(
            "files on /srv/mssql (/srv/mssql/wal), which is not managed" in why for why in found["why"]
        )

    def test_an_open_file_on_a_mount_that_is_not_managed_is_named_by_its_directory(self) -> None:
        log = {"directory": "/var/log/pg", "device": "254:1", "opened": "buffered", "count": 1}
        found = judged(instance(files=[log]))
        assert found["verdict"] == "unknown"
        assert any("files on / (/var/log/pg), which is not managed" in why for why in found["why"])

    @pytest.mark.fact(46)
    @pytest.mark.parametrize(
        ("engine", "directory", "path", "known"),
        [
            ("firebird", "/tmp/firebird", "/srv/pgdata/a.fdb", True),
            ("firebird", "/tmp/firebird", "/tmp/firebird/a.fdb", False),
            ("firebird", "/tmp", "/srv/pgdata/a.fdb", False),
            ("firebird", "/tmp/firebird/x", "/srv/pgdata/a.fdb", False),
            ("postgresql", "/tmp/firebird", "", False),
        ],
    )
    def test_locks_of_firebird_are_no_data(self, engine: str, directory: str, path: str, known: bool) -> None:
        """They lie on a tmpfs on many hosts, which keeps nothing."""
        row_of_files = {"directory": directory, "device": "0:35", "opened": "buffered", "count": 3}
        found = judged(instance(engine, files=[row_of_files], databases=[database(path=path)]))
        assert any("0:35" in why for why in found["why"]) != known
        assert (found["verdict"] == "unknown") != known

    def test_files_on_a_device_that_nothing_is_known_of(self) -> None:
        lost = {"directory": "/x", "device": "99:1", "opened": "direct", "count": 1}
        found = judged(instance(files=[lost]))
        assert found["verdict"] == "unknown"
        assert any("99:1" in why for why in found["why"])

    @pytest.mark.parametrize(
        ("engine", "state", "missed"),
        [
            ("postgresql", "stopped", True),
            ("mssql", "stopped", True),
            ("postgresql", "running", False),
            ("firebird", "stopped", False),
        ],
    )
    def test_of_a_stopped_server_a_directory_that_is_not_there_is_missed(
        self, engine: str, state: str, missed: bool
    ) -> None:
        storage = collect(SmallHost(), NOW)
        storage["resolved"] = {"/srv/pgdata": "/srv/pgdata", "/srv/pgdata/wal": None}
        given = instance(engine, state=state, directories=list(storage["resolved"]), databases=[])
        where = place(given, storage)
        assert [mount["target"] for mount in where.mounts] == ["/srv/pgdata"]
        assert any("/srv/pgdata/wal is not there" in why for why in where.unknown) == missed

    @pytest.mark.fact(46)
    @pytest.mark.parametrize(
        ("device", "word", "why"),
        [
            ("8:17", "complete", None),
            ("8:17", "partial", "separate root directory"),
            (None, "complete", "separate root directory"),
            ("0:50", "complete", "0:50"),
        ],
    )
    def test_a_directory_of_a_container_is_not_the_hosts_of_the_same_name(
        self, device: str | None, word: str, why: str | None
    ) -> None:
        storage = collect(SmallHost(), NOW)
        inside = "/proc/77/root/srv/pgdata"
        storage["resolved"] = {inside: "/srv/pgdata"}
        opened = [{"directory": "/srv/pgdata", "device": device, "opened": "direct", "count": 1}]
        given = instance(
            namespace="container",
            directories=[inside],
            files=opened if device else [],
            evidence={"files": {"value": word, "source": "/proc", "reason": None}},
        )
        where = place(given, storage)
        assert "/srv/pgdata" not in [mount["target"] for mount in where.mounts]
        assert [mount["target"] for mount in where.mounts] == (["/srv/mssql"] if device == "8:17" else [])
        assert len(where.unknown) == (why is not None)
        assert why is None or why in where.unknown[0]

    @pytest.mark.parametrize("engine", ["postgresql", "firebird"])
    @pytest.mark.parametrize("state", ["running", "stopped"])
    @pytest.mark.parametrize("mounts", [None, ["/srv/pgdata"]])
    def test_files_that_lie_nobody_knows_where_are_not_safe(
        self, engine: str, state: str, mounts: list[str] | None
    ) -> None:
        lost = instance(engine, state=state, directories=[], databases=[])
        found = judged(lost, mounts=mounts)
        assert found["verdict"] == "unknown"
        assert any("main: the location of its files is unknown" in why for why in found["why"])

    @pytest.mark.fact(46)
    @pytest.mark.parametrize("state", ["running", "stopped"])
    @pytest.mark.parametrize("way", ["mount", "link"])
    @pytest.mark.parametrize("named", [False, True])
    def test_what_is_mounted_in_its_directory_counts_with_no_file_open_there(
        self, state: str, way: str, named: bool
    ) -> None:
        """Without barriers: the log of commits is lost, however well the parent is kept."""
        host = SmallHost()
        host.files["/srv/pgdata/15/PG_VERSION"] = ""
        if way == "mount":
            log = FakeMount("/srv/pgdata/15/pg_wal", "ext4", "254:16", "/dev/vdb", "vdb")
            del host.mounts["/srv/maria"]
            host.add_mount(log, "UUID=ma /srv/pgdata/15/pg_wal ext4 defaults\n")
        else:
            log = host.mounts["/srv/maria"]
            host.files["/srv/maria/wal/1"] = ""
            host.links["/srv/pgdata/15/pg_wal"] = "/srv/maria/wal"
        log.barrier = "off"
        server = instance(directories=["/srv/pgdata/15"], state=state)
        engines = {
            "time": NOW,
            "boot_id": BOOT_ID,
            "engines": [] if named else [server],
            "unattributed": [],
            "writers": [],
        }
        storage = collect(host, NOW, ["/srv/pgdata/15"])
        databases = [{"engine": "postgresql", "paths": ["/srv/pgdata/15"]}] if named else None
        found = assess(inputs("strict", mounts=None, databases=databases), storage, NOW, engines)
        rows = {row["target"]: row["running"] for row in found["settings"] if row["setting"] == "barrier"}
        assert rows == {"/srv/pgdata": "on", log.target: "off"}
        assert found["verdict"] == "at_risk"
        # Where the parent alone is named, what is mounted in it counts, and of another mount it is said.
        for here in ([server], [], [{**server, "state": "stopped", "starts_at_boot": "no"}]):
            alone = inputs("strict", mounts=["/srv/pgdata"])
            only = assess(alone, storage, NOW, {**engines, "engines": here})
            if way == "mount":
                assert only["verdict"] == "at_risk"
            elif here == [server]:
                assert any(f"files on {log.target}" in why and "not managed" in why for why in only["why"])

    @pytest.mark.parametrize(
        ("path", "held"),
        [("/srv/pgdata/15", "tmpfs"), ("/srv/pgdata", "tmpfs"), ("/srv/pgdat", None), ("/", None)],
    )
    def test_memory_in_a_databases_directory_is_told(self, path: str, held: str | None) -> None:
        storage = collect(SmallHost(), NOW)
        storage["other_mounts"]["/srv/pgdata/15/ram"] = "tmpfs"
        where = place(instance(directories=[path]), storage)
        assert where.unknown == (("/srv/pgdata/15/ram is on tmpfs",) if held else ())
        assert [mount["target"] for mount in where.mounts] == [
            {"/srv/pgdat": "/", "/": "/"}.get(path, "/srv/pgdata")
        ]

    @pytest.mark.parametrize(
        ("path", "kind", "state", "verdict"),
        [
            ("/srv/pgdata/15/ram", "tmpfs", "running", "at_risk"),
            ("/srv/pgdata/15/ram/data", "ramfs", "running", "at_risk"),
            ("/srv/pgdata/15/ram", "tmpfs", "stopped", "unknown"),
            # What is mounted in its directory need not hold its data.
            ("/srv/pgdata/15", "tmpfs", "running", "unknown"),
            ("/srv/pgdata/15/ram", "9p", "running", "unknown"),
        ],
    )
    def test_data_in_memory_is_at_risk(self, path: str, kind: str, state: str, verdict: str) -> None:
        storage = collect(settled("strict", mounts=["/srv/pgdata"]), NOW)
        storage["other_mounts"]["/srv/pgdata/15/ram"] = kind
        engines = {
            "boot_id": BOOT_ID,
            "time": NOW,
            "engines": [instance(directories=[path], state=state)],
            "unattributed": [],
            "writers": [],
        }
        found = assess(inputs("strict", mounts=["/srv/pgdata"]), storage, NOW, engines)
        assert found["verdict"] == verdict
        said = f"all commits of postgresql main are lost at a power cut or a reboot: {path} is on {kind}, which is in memory"
        assert any(said in why for why in found["why"]) == (verdict == "at_risk")
        lost = assess(inputs("disposable", mounts=["/srv/pgdata"]), storage, NOW, engines)
        assert lost["verdict"] != "at_risk"

    def test_who_else_writes_to_a_managed_mount_is_told(self) -> None:
        def row(pid: int, device: str) -> dict[str, Any]:
            return {"pid": pid, "name": f"app{pid}", "device": device, "example": "/srv/pgdata/x"}

        writers = [row(1, "254:1"), row(2, "254:16"), *(row(pid, "8:1") for pid in range(10, 17))]
        engines = {
            "time": NOW,
            "boot_id": BOOT_ID,
            "engines": [instance()],
            "unattributed": [],
            "writers": writers,
        }
        given = inputs("strict", mounts=["/", "/srv/pgdata"])
        found = assess(given, collect(SmallHost(), NOW), NOW, engines)
        (reported,) = [text for text in found["warnings"] if "writes there" in text]
        assert reported.startswith(
            "/srv/pgdata: app10 (10), app11 (11), app12 (12), app13 (13), app14 (14) and 2 more "
        )
        assert "(/srv/pgdata/x)" in reported

    def test_a_host_without_engine_has_its_mounts_judged(self) -> None:
        found = judged()
        assert found["verdict"] == "drifted"
        assert not any("engine" in warning for warning in found["warnings"])

    def test_an_engine_that_is_named_and_not_found_is_not_safe(self) -> None:
        named = [
            {"engine": "mysql", "paths": ["/srv/pgdata"]},
            {"engine": "faircom", "paths": ["/srv/pgdata"]},
        ]
        found = judged(instance("mariadb"), databases=named)
        (reported,) = [why for why in found["why"] if "durable_databases" in why]
        assert "faircom, and none was found" in reported
        assert found["verdict"] == "unknown"
        assert "unknown" not in judged(instance("mariadb"), databases=named[:1])["verdict"]

    def test_a_server_that_is_named_by_its_paths_and_not_found_is_not_safe(self) -> None:
        """Another one of its engine was found, elsewhere."""
        named = [
            {"engine": "mariadb", "paths": ["/srv/pgdata"]},
            {"engine": "mariadb", "paths": ["/srv/maria"]},
        ]
        found = judged(instance("mariadb"), databases=named)
        (reported,) = [why for why in found["why"] if "durable_databases" in why]
        assert "names mariadb on /srv/maria, and no mariadb that was found has anything there" in reported
        assert found["verdict"] == "unknown"
        together = [{"engine": "mariadb", "paths": ["/srv/maria", "/srv/pgdata"]}]
        assert not [
            why for why in judged(instance("mariadb"), databases=together)["why"] if "durable_d" in why
        ]

    def test_where_nobody_looked_for_engines_the_verdict_is_not_about_them(self) -> None:
        found = assess(inputs(mounts=["/srv/pgdata"]), collect(SmallHost(), NOW), NOW)
        assert any("no database engines were searched for" in warning for warning in found["warnings"])

    def test_a_host_without_engine_and_mount_is_not_applicable(self) -> None:
        found = judged(mounts=None)
        assert found["verdict"] == "not_applicable"
        assert "no database engine was found" in found["why"][0]


def test_what_another_component_sets_is_red_with_its_file_and_line_and_not_ours_to_set() -> None:
    place, fix = (
        "/etc/mysql/init.sql line 3 (init_file)",
        "remove sync_binlog from /etc/mysql/init.sql line 3, then run again",
    )
    values = {"setting": "sync_binlog", "source": "/etc/mysql/init.sql line 3"}
    remove = {"fix": "remove_from", "parameters": values}
    found = instance("mariadb", persisted={"sync_binlog": "0"})
    found["settings"]["sync_binlog"].update(
        {"from": place, "held": remove, "permission": None, "by": "init_file", "fix": remove}
    )
    (row,) = [row for row in judged(found)["settings"] if row["setting"] == "sync_binlog"]
    assert (row["verdict"], row["phase"], row["remedy"]) == ("drift_persisted", None, fix)
    assert place in row["why"]
    last = {"value": "0", "source": place, "reason": None, "by": "init_file", "fix": fix}
    assert row["evidence"]["persisted"] == last
    assert {"by", "fix"}.isdisjoint(row["evidence"]["running"])
    found["settings"]["sync_binlog"].update({"by": None})
    del found["settings"]["sync_binlog"]["fix"]
    (row,) = [row for row in judged(found)["settings"] if row["setting"] == "sync_binlog"]
    assert {"by", "fix"}.isdisjoint(row["evidence"]["persisted"])
    unclear = instance("mariadb", persisted={"sync_binlog": "unknown"})
    unclear["settings"]["sync_binlog"].update({"from": place, "held": remove, "permission": None})
    assessed = judged(unclear)
    (row,) = [row for row in assessed["settings"] if row["setting"] == "sync_binlog"]
    assert (row["verdict"], row["phase"], row["remedy"]) == ("unknown", None, fix)
    assert assessed["verdict"] == "unknown"


def test_a_library_that_takes_fsync_away_is_told_once_with_its_remedy() -> None:
    why = [line for line in judged(instance(preloads=["/usr/lib/libeatmydata.so"]))["why"] if "fsync" in line]
    assert len(why) == 1
    assert why[0].endswith(
        "; remove /usr/lib/libeatmydata.so from LD_PRELOAD of its unit and from /etc/ld.so.preload, then restart it"
    )


@pytest.mark.parametrize(
    ("flavour", "shown"), [("mysql", "mysql"), ("mariadb", "mariadb"), ("unknown", "mariadb")]
)
def test_mysql_has_its_own_name_in_the_report_and_the_engine_s_in_variables(flavour: str, shown: str) -> None:
    given = instance(
        "mariadb",
        name="mariadb",
        flavour=flavour,
        running={"innodb_doublewrite": "OFF"},
        evidence={"files": {}},
    )
    found = judged(given)
    assert [(each["engine"], each["product"]) for each in found["engines"]] == [("mariadb", shown)]
    risks = [each for each in found["reasons"] if each["id"] == "risk.engine_setting"]
    assert all(each["reason"].startswith(f"commits of {shown} can be lost") for each in risks)
    assert len(risks) == 1
    (files,) = [each for each in found["reasons"] if each["id"] == "unknown.files"]
    assert files["reason"].startswith(f"{shown}: ")
    # Variables, as durable_accept and durable_ignore, match the engine's name.
    assert files["targets"] == ["mariadb mariadb"]
    assert files["observed"]["engine"] == shown


@pytest.mark.parametrize(
    ("engine", "physical", "size"),
    [
        ("mssql", "512", "512"),
        ("mssql", "4096", "4096"),
        ("mssql", "8192", None),
        # Unreadable: nothing is claimed.
        ("mssql", "", None),
        # These write a second copy of a page; without it the host is at risk.
        ("postgresql", "512", None),
        ("mariadb", "512", None),
    ],
)
def test_a_page_larger_than_a_sector_can_tear(engine: str, physical: str, size: str | None) -> None:
    host = SmallHost()
    host.disk("sda").physical = physical
    found = judged(instance(engine), host=host)
    torn = [each for each in found["warnings"] if "can tear a page" in each]
    assert len(torn) == (1 if size else 0)
    if size:
        assert f"a page of more than {size} bytes, the physical sector of sda" in torn[0]
        assert "from a backup" in torn[0]


def test_a_page_on_zfs_does_not_tear() -> None:
    host = SmallHost()
    storage = collect(host, NOW)
    for mount in storage["mounts"]:
        mount["fstype"] = "zfs"
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [instance("mssql")],
        "unattributed": [],
        "writers": [],
    }
    found = assess(inputs("strict", mounts=["/srv/pgdata"]), storage, NOW, engines)
    assert not [each for each in found["warnings"] if "can tear a page" in each]


def test_a_file_system_without_dir_index_is_a_note() -> None:
    host = SmallHost()
    mount = next(each for each in collect(host, NOW)["mounts"] if each["target"] == "/srv/pgdata")
    assert mount["dir_index"] == "yes"
    storage = collect(host, NOW)
    (mount,) = (each for each in storage["mounts"] if each["target"] == "/srv/pgdata")
    mount["dir_index"] = "no"
    found = assess(inputs("strict", mounts=["/srv/pgdata"]), storage, NOW, None)
    (note,) = (each for each in found["warnings"] if "dir_index" in each)
    assert f"tune2fs -O dir_index {mount['source']}, then unmount it" in note
