# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real servers: what they have open is found, and their own word says that commits are on disk."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from support.mysqls import Mysql
from support.runs import Playbooks, Run

from lab.machine import Machine
from plugins.module_utils.watch import metrics

HOST = "engines"
#: PostgreSQL's clusters.
MAIN, SECOND = "main", "second"
#: Firebird's databases: on ext4 one with an alias and one without, and one on XFS.
ALIAS, BARE, XFS = "/srv/fbdata/data/alias.fdb", "/srv/fbdata/data/bare.fdb", "/srv/pgxfs/firebird/xfs.fdb"
#: A password, and what Firebird's Legacy_Auth makes of it.
SECRET, LEGACY_HASH = "secret-word", "vHTCBYsMisE"
#: Listens in the place of a server, answers each client with the same bytes, and stores what they send.
THIEF = """\
import ast, socket, sys
address, answer = ast.literal_eval(sys.argv[1]), bytes.fromhex(sys.argv[2])
server = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
server.bind(address)
server.listen(9)
print("listens", flush=True)
while True:
    client, _address = server.accept()
    client.settimeout(2)
    print("a client", flush=True)
    try:
        print(client.recv(65536), flush=True)
        client.sendall(answer)
        print(client.recv(65536), flush=True)
    except OSError as error:
        print(error, flush=True)
    client.close()
"""
#: Firebird's op_accept of protocol 10, which knows Legacy_Auth alone.
OLD_PROTOCOL = "000000030000000a0000000100000003"
#: How many commits are made where flushes are counted.
COMMITS = 50


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout.strip()


def psql(machine: Machine, statement: str, cluster: str = MAIN) -> str:
    """Ask PostgreSQL itself."""
    argv = ["runuser", "-u", "postgres", "--", "psql", "-p", port(machine, cluster), "-XAtqc", statement]
    return machine.run(argv).stdout.strip()


def port(machine: Machine, cluster: str) -> str:
    """Return the port of a cluster."""
    return sh(machine, f"pg_lsclusters --no-header | awk '$2 == \"{cluster}\" {{ print $3 }}'")


def await_setting(machine: Machine, name: str, word: str, cluster: str) -> None:
    """Wait until a cluster has followed a reload, which it does in its own time."""
    deadline = time.monotonic() + 60
    while psql(machine, f"show {name}", cluster) != word:
        assert time.monotonic() < deadline, f"{cluster} does not follow: {name} is not {word}"
        time.sleep(1)


def flushes_of_commits(machine: Machine, cluster: str) -> int:
    """Return the flushes that the disk below /srv/pgdata gets while a cluster commits COMMITS times."""
    client = f"runuser -u postgres -- psql -p {port(machine, cluster)} -XAtq -v ON_ERROR_STOP=1"
    script = f"""
        disk=$(basename "$(findmnt -no SOURCE /srv/pgdata)")
        flushes() {{ set -- $(cat "/sys/block/$disk/stat"); echo "${{16}}"; }}
        before=$(flushes)
        for number in $(seq {COMMITS}); do echo "insert into flushed values ($number);"; done | {client}
        echo $(($(flushes) - before))
    """
    return int(sh(machine, script))


def forced(machine: Machine, path: str) -> bool:
    """Ask Firebird's own tool whether a database's writes are forced."""
    return "force write" in sh(machine, f"fbstat -h {path}")


def as_firebird(machine: Machine, script: str) -> str:
    """Run a script as the server's own user."""
    argv = ["setpriv", "--reuid=firebird", "--regid=firebird", "--clear-groups", "env", "HOME=/tmp"]
    return machine.run([*argv, "sh", "-euc", script]).stdout


def listen(machine: Machine, user: str, address: str, answer: str = "") -> None:
    """Start a process of a user, outside of all servers' services, that listens at an address."""
    sh(
        machine,
        f"cat > /tmp/thief.py <<'END'\n{THIEF}END\n"
        f"systemd-run --quiet --unit=thief --uid={user} python3 /tmp/thief.py \"{address}\" '{answer}'\n"
        "until journalctl --quiet --unit=thief --output=cat | grep -q listens; do sleep 1; done",
    )


def heard(machine: Machine) -> str:
    """Return what the clients of that process sent, '' if none came."""
    said = sh(machine, "journalctl --quiet --unit=thief --output=cat --all --boot")
    return said.rpartition("listens")[2]


def rows(run: Run, layer: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return {(target, setting): row} of one layer."""
    found = run.reports[HOST]["settings"]
    return {(row["target"], row["setting"]): row for row in found if row["layer"] == layer}


@pytest.fixture(scope="class")
def check(playbooks: Playbooks) -> Run:
    """A check of the machine as converge left it."""
    return playbooks.run("harden-db", "--check")


class TestConverged:
    def test_the_mounts_of_the_engines_are_managed_though_nobody_names_them(self, check: Run) -> None:
        assert (check.code, check.reports[HOST]["verdict"]) == (0, "attested")
        targets = {row["target"] for row in check.reports[HOST]["settings"] if row["setting"] == "barrier"}
        # Firebird's security database lies in /var/lib.
        assert targets == {"/", "/srv/pgdata", "/srv/pgxfs", "/srv/maria", "/srv/fbdata"}

    @pytest.mark.fact(46)
    def test_the_report_says_which_files_lie_on_which_disks(
        self, check: Run, postgresql: str, mysql: Mysql
    ) -> None:
        engines = {(one["engine"], one["name"]): one for one in check.reports[HOST]["engines"]}
        main, second = f"{postgresql}/{MAIN}", f"{postgresql}/{SECOND}"
        assert {name for engine, name in engines if engine == "postgresql"} == {main, second}
        wal = [row for row in engines["postgresql", second]["files"] if "wal" in row["directory"]]
        assert {row["mount"] for row in wal} == {"/srv/pgdata"}  # the log lies on the other volume
        (maria,) = [one for (engine, _name), one in engines.items() if engine == "mariadb"]
        assert maria["product"] == mysql.product
        redo = [row for row in maria["files"] if row["opened"].startswith("direct")]
        assert {row["mount"] for row in redo} == {"/srv/maria"}
        binlog = [row for row in maria["files"] if "binlog" in row["directory"]]
        assert {row["mount"] for row in binlog} == {"/srv/pgdata"}
        databases = {target for target, _setting in rows(check, "firebird")}
        assert {ALIAS, XFS} <= databases
        assert all(one["version"] not in ("", "unknown") for one in engines.values())

    def test_the_servers_themselves_say_so(self, machine: Machine, mysql: Mysql) -> None:
        for cluster in (MAIN, SECOND):
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                assert psql(machine, f"show {name}", cluster) == "on"
        assert mysql.ask(machine, "select @@innodb_flush_log_at_trx_commit, @@sync_binlog") == "1\t1"
        assert all(forced(machine, path) for path in (ALIAS, BARE, XFS))


class TestPostgresql:
    @pytest.mark.fact(17)
    @pytest.mark.fact(35)
    @pytest.mark.fact(53)
    def test_drift_in_one_cluster_is_found_named_and_mended_live(
        self, machine: Machine, playbooks: Playbooks, postgresql: str
    ) -> None:
        name = f"{postgresql}/{SECOND}"
        conf = f"/etc/postgresql/{postgresql}/second/conf.d/fast.conf"
        psql(machine, "create table flushed (number integer)", SECOND)
        # Of a setting that only a start takes, the former word is what runs.
        sh(machine, f"echo 'data_sync_retry = on' > {conf}; systemctl restart postgresql@{postgresql}-second")
        sh(
            machine,
            f"printf 'fsync = off\\nsynchronous_commit = off\\n' > {conf}; pg_ctlcluster {postgresql} second reload",
        )
        await_setting(machine, "fsync", "off", SECOND)
        # And what no reload has followed comes with the next one.
        sh(machine, f"echo 'full_page_writes = off' >> {conf}")
        # Some come from the journals of the file systems there.
        assert flushes_of_commits(machine, SECOND) < COMMITS / 2
        started = psql(machine, "select pg_postmaster_start_time()", SECOND)
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        seen = rows(check, "postgresql")
        wrong = {key: row["verdict"] for key, row in seen.items() if row["verdict"] != "ok"}
        assert wrong == {
            (name, "fsync"): "drift_running",
            (name, "synchronous_commit"): "drift_running",
            (name, "full_page_writes"): "drift_persisted",
            (name, "data_sync_retry"): "pending",
        }
        assert psql(machine, "show fsync", SECOND) == "off"  # a check changes nothing

        run = playbooks.run("harden-db")
        assert (run.code, run.reports[HOST]["verdict"]) == (2, "pending")
        waiting = [(wait["setting"], wait["needs"]) for wait in run.reports[HOST]["pending"]]
        assert waiting == [("data_sync_retry", "restart")]
        # Mending brings nothing back: what looks for the damage is named by the run that mends.
        (exposed,) = run.reports[HOST]["exposed"]
        assert exposed.startswith(f"postgresql {name} was exposed")
        assert "pg_amcheck" in exposed
        assert exposed in run.details
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert psql(machine, f"show {setting}", SECOND) == "on"
        assert psql(machine, "select pg_postmaster_start_time()", SECOND) == started
        assert "fsync = off" in sh(machine, f"cat {conf}")
        # Each commit has waited for the disk itself.
        assert flushes_of_commits(machine, SECOND) >= COMMITS

        sh(machine, f"systemctl restart postgresql@{postgresql}-second")
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (0, "attested")
        assert check.reports[HOST]["exposed"] == []

    def test_a_stopped_cluster_is_listed_with_what_its_next_start_brings(
        self, machine: Machine, playbooks: Playbooks, postgresql: str
    ) -> None:
        name = f"{postgresql}/{SECOND}"
        # It is read after ours.
        conf = f"/etc/postgresql/{postgresql}/second/conf.d/zzz-fast.conf"
        sh(machine, f"echo 'fsync = off' > {conf}; systemctl stop postgresql@{postgresql}-second")
        check = playbooks.run("harden-db", "--check")
        (second,) = [one for one in check.reports[HOST]["engines"] if one["name"] == name]
        assert (second["state"], second["files"]) == ("stopped", [])
        row = rows(check, "postgresql")[name, "fsync"]
        assert (row["running"], row["persisted"], row["verdict"]) == ("stopped", "off", "drift_persisted")
        assert conf in row["why"]
        # What does not run loses no commits.
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "drifted")
        assert check.reports[HOST]["exposed"] == []
        sh(machine, f"rm {conf}; systemctl start postgresql@{postgresql}-second")

    @pytest.mark.fact(50)
    def test_a_role_that_commits_early_is_named_and_left_alone(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        psql(machine, "create role early_ack login; alter role early_ack set synchronous_commit = off")
        check = playbooks.run("harden-db", "--check")
        assert check.code == 2
        assert any("early_ack" in why for why in check.reports[HOST]["why"])
        psql(machine, "drop role early_ack")

    @pytest.mark.fact(62)
    def test_what_people_altered_is_taken_back_with_the_permission_and_released(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        own = "select setconfig from pg_db_role_setting"
        of_system = f"cat {psql(machine, 'show data_directory')}/postgresql.auto.conf"
        psql(machine, 'create role "early ack"; alter role "early ack" set synchronous_commit = off')
        psql(machine, "alter system set synchronous_commit = off")
        run = playbooks.run("harden-db", variables={"durable_allow": ["alter_system"]})
        assert (run.code, run.reports[HOST]["verdict"]) == (0, "attested")
        assert (psql(machine, "show synchronous_commit"), psql(machine, own)) == ("on", "")
        assert "synchronous_commit" not in sh(machine, of_system)

        assert playbooks.run("release_db").code == 0
        assert psql(machine, own) == "{synchronous_commit=off}"
        assert "synchronous_commit = 'off'" in sh(machine, of_system)
        psql(machine, 'drop role "early ack"')
        psql(machine, "alter system reset synchronous_commit")
        assert playbooks.run("harden-db").code == 0

    @pytest.mark.fact(50)
    def test_a_commit_that_waits_for_a_standby_is_left_alone(
        self, machine: Machine, playbooks: Playbooks, postgresql: str
    ) -> None:
        conf = f"/etc/postgresql/{postgresql}/main/conf.d/lab.conf"
        sh(
            machine,
            f"echo 'synchronous_commit = remote_apply' >> {conf}; pg_ctlcluster {postgresql} main reload",
        )
        assert playbooks.run("harden-db").code == 0
        assert psql(machine, "show synchronous_commit") == "remote_apply"


class TestMysql:
    @pytest.mark.fact(36)
    def test_what_runs_and_what_comes_next_are_told_apart(
        self, machine: Machine, playbooks: Playbooks, mysql: Mysql
    ) -> None:
        mysql.ask(machine, "set global innodb_flush_log_at_trx_commit = 2")
        sh(machine, f"printf '[{mysql.group}]\\nsync_binlog = 0\\n' > {mysql.directory}/zzz-fast.cnf")
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        found = {key[1]: row["verdict"] for key, row in rows(check, "mariadb").items()}
        assert found["innodb_flush_log_at_trx_commit"] == "drift_running"
        assert found["sync_binlog"] == "drift_persisted"

    def test_a_file_that_is_read_after_ours_is_named_not_fought(
        self, machine: Machine, playbooks: Playbooks, mysql: Mysql
    ) -> None:
        run = playbooks.run("harden-db")
        assert run.code == 2
        assert "zzz-fast.cnf" in run.details
        sh(machine, f"rm {mysql.directory}/zzz-fast.cnf")
        assert playbooks.run("harden-db").code == 0
        assert mysql.ask(machine, "select @@innodb_flush_log_at_trx_commit, @@sync_binlog") == "1\t1"

    def test_a_setting_for_the_start_waits_for_permission_and_then_a_clean_restart(
        self, machine: Machine, playbooks: Playbooks, mysql: Mysql
    ) -> None:
        conf = f"{mysql.directory}/x-lab.cnf"
        sh(machine, f"echo 'skip-innodb-doublewrite' >> {conf}; systemctl restart {mysql.product}")
        # In all versions the same value.
        doublewrite = "show global variables like 'innodb_doublewrite'"
        assert mysql.ask(machine, doublewrite).endswith("\tOFF")
        pid = sh(machine, f"systemctl show -P MainPID {mysql.product}")
        run = playbooks.run("harden-db")
        assert run.code == 2
        waiting = [(wait["setting"], wait["needs"]) for wait in run.reports[HOST]["pending"]]
        assert waiting == [("innodb_doublewrite", "restart")]
        (row,) = [row for key, row in rows(run, "mariadb").items() if key[1] == "innodb_doublewrite"]
        assert (row["running"], row["persisted"], row["verdict"]) == ("OFF", "ON", "pending")
        assert sh(machine, f"systemctl show -P MainPID {mysql.product}") == pid
        run = playbooks.run("harden-db", variables={"durable_allow": ["restart_engines"]})
        assert (run.code, run.reports[HOST]["verdict"]) == (0, "attested")
        assert mysql.ask(machine, doublewrite).endswith("\tON")
        assert sh(machine, f"systemctl show -P MainPID {mysql.product}") != pid

    def test_root_s_password_reaches_the_server_and_no_process_at_its_socket(
        self, machine: Machine, playbooks: Playbooks, mysql: Mysql
    ) -> None:
        sh(machine, f"printf '[client]\\nuser = root\\npassword = {SECRET}\\n' > /root/.my.cnf")
        mysql.ask(machine, f"alter user root@localhost identified {mysql.password.format(SECRET)}")
        try:
            # Its client reveals no password, or gets none.
            check = playbooks.run("harden-db", "--check")
            expected = (0, "attested") if mysql.sends_passwords else (2, "unknown")
            assert (check.code, check.reports[HOST]["verdict"]) == expected
            # The server's user may change the directory of the socket.
            sh(machine, "mv /run/mysqld/mysqld.sock /run/mysqld/real.sock")
            listen(machine, "mysql", "'/run/mysqld/mysqld.sock'")
            check = playbooks.run("harden-db", "--check")
            assert (check.code, check.reports[HOST]["verdict"]) == (2, "unknown")
            assert heard(machine) == ""
        finally:
            sh(
                machine,
                "systemctl stop thief || true;"
                "[ ! -e /run/mysqld/real.sock ] || mv -f /run/mysqld/real.sock /run/mysqld/mysqld.sock",
            )
            mysql.ask(machine, f"alter user root@localhost identified {mysql.socket}")
            sh(machine, "rm /root/.my.cnf")
        assert playbooks.run("harden-db", "--check").code == 0


class TestFirebird:
    def test_what_listens_at_the_port_gets_no_hash_of_the_password(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        unit = sh(machine, "systemctl list-units --plain --no-legend 'firebird*.service' | cut -d ' ' -f 1")
        as_firebird(machine, f"gfix -write async {BARE}")
        sh(machine, f"systemctl stop {unit}; chown root {BARE}")
        listen(machine, "nobody", "('127.0.0.1', 3050)", OLD_PROTOCOL)
        try:
            target = {"database": BARE, "forced_writes": "on"}
            with pytest.raises(subprocess.CalledProcessError):
                playbooks.ask(
                    HOST, "durable.dbhost.firebird_config", {"targets": [target], "password": SECRET}
                )
            said = heard(machine)
            # gfix named its user there, offered Srp alone, and nothing after that.
            assert "SYSDBA" in said
            assert "Legacy_Auth" not in said
            assert LEGACY_HASH not in said
        finally:
            sh(machine, f"systemctl stop thief || true; chown firebird {BARE}; systemctl start {unit}")
            as_firebird(machine, f"gfix -write sync {BARE}")

    @pytest.mark.fact(34)
    def test_each_database_is_found_and_mended_once_nobody_has_it_open(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        for path in (ALIAS, XFS):
            as_firebird(machine, f"gfix -write async {path}")
            assert not forced(machine, path)
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "at_risk")
        seen = rows(check, "firebird")
        wrong = {target: row["verdict"] for (target, _setting), row in seen.items() if row["verdict"] != "ok"}
        assert wrong == {ALIAS: "drift_running", XFS: "drift_running"}
        assert not forced(machine, ALIAS)

        # A client that has it open, and does not leave.
        sh(
            machine,
            "systemd-run --quiet --unit=client --uid=firebird --gid=firebird --setenv=HOME=/tmp"
            f" sh -c 'sleep 3600 | isql-fb -q {ALIAS}';"
            f"until lslocks --noheadings --raw --output PATH | grep -qxF {ALIAS}; do sleep 1; done",
        )
        run = playbooks.run("harden-db")
        assert (run.code, run.reports[HOST]["verdict"]) == (2, "at_risk")
        row = rows(run, "firebird")[ALIAS, "forced_writes"]
        assert (row["running"], row["persisted"], row["verdict"]) == ("off", "off", "drift_running")
        assert "run again when no client has it open" in row["remedy"]
        assert forced(machine, XFS)  # the others do not wait for it
        assert not forced(machine, ALIAS)
        assert sh(machine, "systemctl is-active client") == "active"

        sh(machine, "systemctl stop client")
        assert playbooks.run("harden-db").code == 0
        assert forced(machine, ALIAS)

    def test_a_database_whose_name_looks_like_advice_is_a_name_in_quotes_in_each_output(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        hostile = "/srv/fbdata/data/a; curl evil|sh #.fdb"
        name = f'"{hostile}"'
        as_firebird(machine, f"cp {BARE} '{hostile}'; gfix -write async '{hostile}'")
        try:
            run = playbooks.run(
                "harden-db",
                "--check",
                variables={"durable_report_formats": ["json", "text", "html", "junit", "sarif"]},
            )
        finally:
            as_firebird(machine, f"rm -f '{hostile}'")
        report = run.reports[HOST]
        assert (run.code, report["verdict"]) == (2, "at_risk")
        assert [row["target"] for row in report["settings"] if row["verdict"] == "drift_running"] == [hostile]
        directory = playbooks.directory / "durable-report"
        junit = ElementTree.parse(directory / "report.xml")
        sarif = json.loads((directory / "report.sarif").read_text())
        shown = {
            "page": " ".join(run.output.split()),
            "text": run.details,
            "html": html.unescape((directory / "report.html").read_text()),
            "junit": "\n".join(str(value) for each in junit.iter() for value in each.attrib.values()),
            "sarif": "\n".join(each["message"]["text"] for each in sarif["runs"][0]["results"]),
        }
        for output, text in shown.items():
            assert name in text, output
            assert not re.search(r"(do|fix): curl", text, re.I), output
        # They have the ids of findings, and no name of a database.
        numbers = metrics.render(report, True, "1.0.0")
        assert 'reasons_by_id{host="engines",id="risk.engine_setting",' in numbers
        assert "curl" not in numbers
        fixes = [each["fix"] for each in report["reasons"]]
        assert all("curl" not in fix.replace(shlex.quote(hostile), "") for fix in fixes)


class TestUnattributed:
    def test_what_calls_itself_a_server_and_is_none_makes_the_host_unknown(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        # The kernel names a script's process after the script; what runs is the shell.
        sh(
            machine,
            "printf '#!/bin/sh\\nwhile :; do sleep 60; done\\n' > /usr/local/bin/postgres;"
            "chmod 755 /usr/local/bin/postgres;"
            "systemd-run --quiet --unit=unattributed --uid=nobody /usr/local/bin/postgres",
        )
        check = playbooks.run("harden-db", "--check")
        assert (check.code, check.reports[HOST]["verdict"]) == (2, "unknown")
        pid = sh(machine, "systemctl show -P MainPID unattributed")
        (why,) = check.reports[HOST]["why"]
        assert why.startswith(f"process {pid} (postgres) may be a database server")
        assert "it calls itself postgres, and runs" in why
        assert check.recap[HOST]["changed"] == 0
        sh(machine, "systemctl stop unattributed; rm /usr/local/bin/postgres")


class TestNamespaces:
    @pytest.mark.fact(46)
    def test_an_engine_in_a_container_is_found_attributed_and_not_touched(
        self, machine: Machine, playbooks: Playbooks, postgresql: str
    ) -> None:
        container, programs = "c" * 64, f"/usr/lib/postgresql/{postgresql}/bin"
        # What a container's runtime makes of it: a scope, namespaces, and a root of its own.
        sh(
            machine,
            "install -d -o postgres -m 700 /srv/fbdata/inside;"
            f"runuser -u postgres -- {programs}/initdb -D /srv/fbdata/inside > /dev/null;"
            "echo 'fsync = off' >> /srv/fbdata/inside/postgresql.conf;"
            f"systemd-run --quiet --scope --unit=docker-{container} sh -c '"
            "unshare --mount --pid --fork --mount-proc runuser -u postgres --"
            f" {programs}/postgres -D /srv/fbdata/inside -c port=6000 -k /tmp > /dev/null 2>&1 &';"
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
