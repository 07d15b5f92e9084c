# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real servers: what they have open is found, and their own word says that commits are on disk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.runs import Executions, Playbooks, Run

from lab.machine import Machine

HOST = "engines"
MAIN, SECOND = "15/main", "15/second"


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout.strip()


def psql(machine: Machine, statement: str, cluster: str = MAIN) -> str:
    """Ask PostgreSQL itself."""
    port = sh(machine, f"pg_lsclusters -h {cluster.replace('/', ' ')} | cut -d' ' -f3")
    argv = ["runuser", "-u", "postgres", "--", "psql", "-p", port, "-XAtqc", statement]
    return machine.run(argv).stdout.strip()


def mariadb(machine: Machine, statement: str) -> str:
    """Ask MariaDB itself."""
    return machine.run(["mariadb", "--batch", "--skip-column-names", "-e", statement]).stdout.strip()


def forced(machine: Machine, name: str) -> bool:
    """Ask Firebird's own tool whether a database's writes are forced."""
    return "force write" in sh(machine, f"fbstat -h /srv/fbdata/data/{name}.fdb")


def as_firebird(machine: Machine, script: str) -> str:
    """Run a script as the server's own user."""
    argv = ["setpriv", "--reuid=firebird", "--regid=firebird", "--clear-groups", "env", "HOME=/tmp"]
    return machine.run([*argv, "sh", "-euc", script]).stdout


def rows(run: Run, layer: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return {(target, setting): row} of one layer."""
    found = run.reports[HOST]["settings"]
    return {(row["target"], row["setting"]): row for row in found if row["layer"] == layer}


class TestConverged:
    def test_the_mounts_of_the_engines_are_managed_though_nobody_names_them(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (0, "attested")
        targets = {row["target"] for row in check.reports[HOST]["settings"] if row["setting"] == "barrier"}
        # Firebird's security database lies in /var/lib.
        assert targets == {"/", "/srv/pgdata", "/srv/pgxfs", "/srv/maria", "/srv/fbdata"}

    @pytest.mark.fact(46)
    def test_the_report_says_which_files_lie_on_which_disks(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        check = playbooks.run("harden-db", "--check")
        engines = {(one["engine"], one["name"]): one for one in check.reports[HOST]["engines"]}
        assert {name for engine, name in engines if engine == "postgresql"} == {MAIN, SECOND}
        wal = [row for row in engines["postgresql", SECOND]["files"] if "wal" in row["directory"]]
        assert {row["mount"] for row in wal} == {"/srv/pgdata"}  # the log lies on the other volume
        (maria,) = [one for (engine, _name), one in engines.items() if engine == "mariadb"]
        redo = [row for row in maria["files"] if row["opened"].startswith("direct")]
        assert {row["mount"] for row in redo} == {"/srv/maria"}
        assert all(one["version"] not in ("", "unknown") for one in engines.values())

    @pytest.mark.parametrize("options", [(), ("--check",)], ids=["run", "check"])
    def test_a_second_run_changes_nothing_in_at_most_four_executions(
        self, machine: Machine, playbooks: Playbooks, options: tuple[str, ...]
    ) -> None:
        executions = Executions(machine)
        run = playbooks.run("harden-db", *options)
        assert (run.code, run.recap[HOST]["changed"]) == (0, 0)
        assert 1 <= executions.count() <= 4

    def test_the_servers_themselves_say_so(self, machine: Machine) -> None:
        for cluster in (MAIN, SECOND):
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                assert psql(machine, f"show {name}", cluster) == "on"
        assert mariadb(machine, "select @@innodb_flush_log_at_trx_commit, @@sync_binlog") == "1\t1"
        assert forced(machine, "alias")
        assert forced(machine, "bare")


class TestPostgresql:
    @pytest.mark.fact(35)
    def test_drift_in_one_cluster_is_found_named_and_mended_live(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        sh(
            machine,
            "printf 'fsync = off\\nsynchronous_commit = off\\n' > /etc/postgresql/15/second/conf.d/fast.conf;"
            "pg_ctlcluster 15 second reload",
        )
        started = psql(machine, "select pg_postmaster_start_time()", SECOND)
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        seen = rows(check, "postgresql")
        wrong = {key for key, row in seen.items() if row["verdict"] != "ok"}
        assert wrong == {(SECOND, "fsync"), (SECOND, "synchronous_commit")}
        assert psql(machine, "show fsync", SECOND) == "off"  # a check changes nothing

        run = playbooks.run("harden-db")
        assert (run.code, run.reports[HOST]["verdict"]) == (0, "attested")
        assert psql(machine, "show fsync", SECOND) == "on"
        assert psql(machine, "show synchronous_commit", SECOND) == "on"
        assert psql(machine, "select pg_postmaster_start_time()", SECOND) == started
        assert "fsync = off" in sh(machine, "cat /etc/postgresql/15/second/conf.d/fast.conf")

    @pytest.mark.fact(50)
    def test_a_role_that_commits_early_is_named_and_left_alone(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        psql(machine, "create role hasty login; alter role hasty set synchronous_commit = off")
        check = playbooks.run("harden-db", "--check")
        assert check.code == 2
        assert any("hasty" in why for why in check.reports[HOST]["why"])
        psql(machine, "drop role hasty")

    @pytest.mark.fact(50)
    def test_a_commit_that_waits_for_a_standby_is_left_alone(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        conf = "/etc/postgresql/15/main/conf.d/lab.conf"
        sh(machine, f"echo 'synchronous_commit = remote_apply' >> {conf}; pg_ctlcluster 15 main reload")
        assert playbooks.run("harden-db").code == 0
        assert psql(machine, "show synchronous_commit") == "remote_apply"


class TestMariadb:
    @pytest.mark.fact(36)
    def test_what_runs_and_what_comes_next_are_told_apart(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        mariadb(machine, "set global innodb_flush_log_at_trx_commit = 2")
        sh(machine, "printf '[mariadbd]\\nsync_binlog = 0\\n' > /etc/mysql/mariadb.conf.d/zzz-fast.cnf")
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        found = {key[1]: row["verdict"] for key, row in rows(check, "mariadb").items()}
        assert found["innodb_flush_log_at_trx_commit"] == "drift_running"
        assert found["sync_binlog"] == "drift_persisted"

    def test_a_file_that_is_read_after_ours_is_named_not_fought(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        run = playbooks.run("harden-db")
        assert run.code == 2
        assert "zzz-fast.cnf" in run.output
        sh(machine, "rm /etc/mysql/mariadb.conf.d/zzz-fast.cnf")
        assert playbooks.run("harden-db").code == 0
        assert mariadb(machine, "select @@innodb_flush_log_at_trx_commit, @@sync_binlog") == "1\t1"

    def test_a_setting_for_the_start_waits_for_permission_and_then_a_clean_restart(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        conf = "/etc/mysql/mariadb.conf.d/60-lab.cnf"
        sh(machine, f"echo 'skip-innodb-doublewrite' >> {conf}; systemctl restart mariadb")
        assert mariadb(machine, "select @@innodb_doublewrite") == "0"
        pid = sh(machine, "systemctl show -P MainPID mariadb")
        run = playbooks.run("harden-db")
        assert run.code == 2
        waiting = [(wait["setting"], wait["needs"]) for wait in run.reports[HOST]["pending"]]
        assert waiting == [("innodb_doublewrite", "restart")]
        assert sh(machine, "systemctl show -P MainPID mariadb") == pid
        run = playbooks.run("harden-db", variables={"durable_allow": ["restart_engines"]})
        assert (run.code, run.reports[HOST]["verdict"]) == (0, "attested")
        assert mariadb(machine, "select @@innodb_doublewrite") == "1"
        assert sh(machine, "systemctl show -P MainPID mariadb") != pid


class TestFirebird:
    @pytest.mark.fact(34)
    def test_each_database_is_found_and_mended(self, machine: Machine, playbooks: Playbooks) -> None:
        as_firebird(machine, "gfix -write async /srv/fbdata/data/alias.fdb")
        assert not forced(machine, "alias")
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        assert not forced(machine, "alias")
        assert playbooks.run("harden-db").code == 0
        assert forced(machine, "alias")


class TestNamespaces:
    @pytest.mark.fact(46)
    def test_an_engine_in_a_container_is_found_attributed_and_not_touched(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        container = "c" * 64
        # What a container's runtime makes of it: a scope, namespaces, and a root of its own.
        sh(
            machine,
            "install -d -o postgres -m 700 /srv/fbdata/inside;"
            "runuser -u postgres -- /usr/lib/postgresql/15/bin/initdb -D /srv/fbdata/inside > /dev/null;"
            "echo 'fsync = off' >> /srv/fbdata/inside/postgresql.conf;"
            f"systemd-run --quiet --scope --unit=docker-{container} sh -c '"
            "unshare --mount --pid --fork --mount-proc runuser -u postgres --"
            " /usr/lib/postgresql/15/bin/postgres -D /srv/fbdata/inside -c port=6000 -k /tmp > /dev/null 2>&1 &';"
            "until [ -e /tmp/.s.PGSQL.6000 ]; do sleep 1; done",
        )
        check = playbooks.run("harden-db", "--check")
        inside = [one for one in check.reports[HOST]["engines"] if one["namespace"] == "container"]
        assert [(one["engine"], one["managed_by"]) for one in inside] == [("postgresql", "container")]
        assert "postgresql" not in check.reports[HOST]["plan"]["tighten"]
        own = [row for row in check.reports[HOST]["settings"] if row["target"] == inside[0]["name"]]
        assert "fsync" in json.dumps(own)
        assert check.code == 2
        sh(machine, f"systemctl stop docker-{container}.scope")
