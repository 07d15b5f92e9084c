# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for SQL Server and FairCom DB (tests/stand_ins): their settings follow the disks below.

With the real servers beside them this is a host with all five engines.
"""

from __future__ import annotations

from typing import Any

import pytest
from support import mysqls, stand_ins
from support.attested import attested
from support.runs import Executions, Playbooks, Run

from lab.machine import Machine

HOST = "engines"
ENGINES = {"mssql", "faircom", "firebird", "postgresql", "mariadb"}
#: Their units but MariaDB's, one of each but two of PostgreSQL; the versions are the release's.
UNITS = (
    "mssql-server",
    "faircom",
    "firebird?.0.service",
    "postgresql@*-main.service",
    "postgresql@*-second.service",
)
#: Where tempdb is, by a file of SQL Server's unit.
TEMPDB, DROP_IN = "/srv/tempdb", "/etc/systemd/system/mssql-server.service.d/tempdb.conf"
#: A database of Firebird's.
DATABASE = "/srv/fbdata/data/alias.fdb"
#: A profile with caches, so that FUA matters; who may restart what; whose word a guest needs.
FLUSH: dict[str, Any] = {
    "durable_profile": "flush",
    "durable_allow": ["restart_engines"],
    "durable_attestations": [attested(claim) for claim in ("host_honours_flush", "host_honours_fua")],
}


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout.strip()


@pytest.fixture(scope="module")
def installed(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The machine with both stand-ins, SQL Server's files on a disk with FUA, but tempdb's in memory."""
    sh(
        machine,
        "install -d /srv/mssql/home /srv/faircom/data /var/opt; ln -s /srv/mssql/home /var/opt/mssql",
    )
    stand_ins.install(machine, tmp_path_factory.mktemp("stand_ins"))
    sh(
        machine,
        "chown -R mssql:mssql /srv/mssql/home; chown root:root /var/opt/mssql/mssql.conf;"
        "chown faircom:faircom /srv/faircom/data;"
        "sed -i 's|^LOCAL_DIRECTORY.*|LOCAL_DIRECTORY /srv/faircom/data|' /opt/faircom/config/ctsrvr.cfg;"
        "cp /opt/faircom/config/ctsrvr.cfg /root/ctsrvr.cfg;"
        # A disk that is lost at each boot, without a cache to flush and without FUA; no file system survives on it.
        f"modprobe brd rd_nr=1 rd_size=32768; mkfs.ext4 -q -O ^has_journal /dev/ram0; install -d {TEMPDB};"
        f"mount -o nobarrier /dev/ram0 {TEMPDB}; chown mssql:mssql {TEMPDB};"
        f"install -d {DROP_IN.rpartition('/')[0]};"
        f"printf '[Service]\nEnvironment=MSSQL_STAND_IN_TEMPDB={TEMPDB}\n' > {DROP_IN}; systemctl daemon-reload;"
        "systemctl enable --quiet --now mssql-server faircom",
    )
    return machine


@pytest.fixture(scope="module")
def hardened(installed: Machine, playbooks: Playbooks) -> Run:
    """The run that brings all five engines to the profile."""
    return playbooks.run("harden-db", variables=FLUSH)


@pytest.fixture(scope="module")
def again(installed: Machine, playbooks: Playbooks, hardened: Run) -> tuple[Run, int]:
    """The check that follows, which restarts nothing, and how many modules it took."""
    pids = main_pids(installed)
    executions = Executions(installed)
    check = playbooks.run("harden-db", "--check", variables=FLUSH)
    count = executions.count()
    assert main_pids(installed) == pids
    return check, count


def row(run: Run, setting: str) -> dict[str, Any]:
    """Return the only row of a setting."""
    (found,) = [row for row in run.reports[HOST]["settings"] if row["setting"] == setting]
    assert isinstance(found, dict)
    return found


def mount(run: Run, target: str) -> dict[str, Any]:
    """Return what the report says of a mount."""
    (found,) = [row for row in run.reports[HOST]["mounts"] if row["target"] == target]
    assert isinstance(found, dict)
    return found


def lasting(run: Run) -> dict[str, str]:
    """Return {disk: state} of those that do not last."""
    found = run.reports[HOST]["requirements"]
    return {need["target"]: need["state"] for need in found if need["name"] == "disk_lasts"}


def opened(run: Run, engine: str) -> set[tuple[str, str]]:
    """Return how an engine's files are opened, on which mounts."""
    (one,) = [one for one in run.reports[HOST]["engines"] if one["engine"] == engine]
    return {(row["opened"], row["mount"]) for row in one["files"]}


def main_pids(machine: Machine) -> list[str]:
    """Return the main processes of all servers."""
    units = (*UNITS, mysqls.of(machine).product)
    pids = sorted(machine.run(["systemctl", "show", "-P", "MainPID", *units]).stdout.split())
    assert len(pids) == len(units)
    assert "0" not in pids
    return pids


@pytest.mark.fact(26)
def test_on_disks_with_fua_sql_server_gets_the_fua_way(
    installed: Machine, hardened: Run, again: tuple[Run, int]
) -> None:
    assert hardened.code == 0
    text = sh(installed, "cat /var/opt/mssql/mssql.conf")
    assert "3979" in text
    # The vendor's guide lists root as its owner: the plan names the change, and the run makes it.
    (owner,) = [each for each in hardened.reports[HOST]["changes"] if each["setting"].startswith("owner of ")]
    assert (owner["layer"], owner["persisted"], owner["state"]) == ("mssql", "0:0", "done")
    assert sh(installed, "stat -c %U /var/opt/mssql/mssql.conf") == "mssql"
    check, _count = again
    assert row(check, "alternatewritethrough")["running"] == "0"
    assert ("direct dsync", "/srv/mssql") in opened(check, "mssql")


@pytest.mark.fact(31)
def test_faircom_is_told_in_its_own_file_and_all_else_stays(
    installed: Machine, again: tuple[Run, int]
) -> None:
    text = sh(installed, "cat /opt/faircom/config/ctsrvr.cfg")
    assert "; Configuration of a stand-in for FairCom DB" in text
    assert "COMPATIBILITY LOG_WRITETHRU" in text
    check, _count = again
    assert row(check, "LOG_WRITETHRU")["running"] == "on"
    assert "synchronous I/O" in sh(installed, "cat /srv/faircom/data/CTSTATUS.FCS")


def test_with_all_five_engines_a_second_run_changes_nothing_in_one_execution(
    installed: Machine, playbooks: Playbooks, hardened: Run
) -> None:
    pids = main_pids(installed)
    executions = Executions(installed)
    run = playbooks.run("harden-db", variables=FLUSH)
    _is_a_second_run(run, executions.count())
    assert main_pids(installed) == pids


def test_with_all_five_engines_a_check_changes_nothing_in_one_execution(
    again: tuple[Run, int],
) -> None:
    _is_a_second_run(*again)


def _is_a_second_run(run: Run, executions: int) -> None:
    assert (run.code, run.recap[HOST]["changed"]) == (0, 0)
    assert executions == 1
    assert {one["engine"] for one in run.reports[HOST]["engines"]} == ENGINES


def test_the_disk_of_tempdb_need_not_last_until_another_database_joins_it(
    installed: Machine, playbooks: Playbooks, again: tuple[Run, int]
) -> None:
    check, _count = again
    assert TEMPDB not in {where for _how, where in opened(check, "mssql")}
    assert (check.code, mount(check, TEMPDB)["judged"]) == (0, "temporary")
    assert lasting(check) == {}

    restart = "systemctl daemon-reload; systemctl restart mssql-server"
    sh(installed, f"echo Environment=MSSQL_DATA_DIR={TEMPDB} >> {DROP_IN}; {restart}")
    joined = playbooks.run("harden-db", "--check", variables=FLUSH)
    assert ("direct dsync", TEMPDB) in opened(joined, "mssql")
    assert (joined.code, mount(joined, TEMPDB)["judged"]) == (2, "yes")
    assert lasting(joined) == {"ram0": "unmet"}
    sh(installed, f"sed -i '$d' {DROP_IN}; {restart}; rm {TEMPDB}/user.mdf")


@pytest.mark.fact(26)
def test_on_a_disk_without_fua_they_flip_to_forced_flush_and_the_disk_is_named(
    installed: Machine, playbooks: Playbooks
) -> None:
    sh(
        installed,
        "systemctl stop mssql-server; cp -a /srv/mssql/home /srv/faircom/mssql;"
        "rm /var/opt/mssql; ln -s /srv/faircom/mssql /var/opt/mssql; systemctl start mssql-server",
    )
    disk = sh(installed, "basename $(findmnt -no SOURCE /srv/faircom)")
    check = playbooks.run("harden-db", "--check", variables=FLUSH)
    assert check.code == 2
    assert row(check, "alternatewritethrough")["wanted_running"] == "1"
    assert disk in row(check, "alternatewritethrough")["why"]
    assert playbooks.run("harden-db", variables=FLUSH).code == 0
    check = playbooks.run("harden-db", "--check", variables=FLUSH)
    assert (check.code, check.recap[HOST]["changed"]) == (0, 0)
    assert row(check, "traceflag3979")["running"] == "off"
    files = opened(check, "mssql")
    assert ("direct", "/srv/faircom") in files
    assert not any("dsync" in how for how, _mount in files)


@pytest.mark.fact(29)
def test_drift_of_files_is_persisted_drift_and_then_waits_for_a_restart_that_is_allowed(
    installed: Machine, playbooks: Playbooks, postgresql: str
) -> None:
    careful = {**FLUSH, "durable_allow": []}
    names = ("alternatewritethrough", "traceflag3979", "LOG_WRITETHRU")
    # By hand, while they run.
    sh(
        installed,
        "sed -i 's/^alternatewritethrough.*/alternatewritethrough = 0/' /var/opt/mssql/mssql.conf;"
        "printf '[traceflag]\\ntraceflag7 = 3979\\n' >> /var/opt/mssql/mssql.conf;"
        "sed -i /LOG_WRITETHRU/d /opt/faircom/config/ctsrvr.cfg",
    )
    check = playbooks.run("harden-db", "--check", variables=careful)
    assert check.code == 2
    assert {row(check, name)["verdict"] for name in names} == {"drift_persisted"}
    # The logs tell what the servers have begun with.
    assert row(check, "traceflag3979")["running"] == "off"
    assert row(check, "LOG_WRITETHRU")["running"] == "on"

    # From here on they run so; and the real ones drift as well.
    sh(installed, "systemctl restart mssql-server faircom")
    sh(
        installed,
        f"echo 'synchronous_commit = off' > /etc/postgresql/{postgresql}/main/conf.d/fast.conf;"
        f"pg_ctlcluster {postgresql} main reload;"
        f"setpriv --reuid=firebird --regid=firebird --clear-groups env HOME=/tmp gfix -write async {DATABASE}",
    )
    pids = main_pids(installed)
    run = playbooks.run("harden-db", variables=careful)
    assert (run.code, run.reports[HOST]["verdict"]) == (2, "pending")
    assert {row(run, name)["verdict"] for name in names} == {"pending"}
    assert {(wait["setting"], wait["needs"]) for wait in run.reports[HOST]["pending"]} == {
        (name, "restart") for name in names
    }
    assert main_pids(installed) == pids
    assert "LOG_WRITETHRU" in sh(installed, "cat /opt/faircom/config/ctsrvr.cfg")
    assert "3979" not in sh(installed, "cat /var/opt/mssql/mssql.conf")
    assert sh(installed, "stat -c %U /var/opt/mssql/mssql.conf") == "mssql"


def test_release_puts_back_what_was_there_and_the_servers_run_on(
    installed: Machine, playbooks: Playbooks, postgresql: str, mysql: mysqls.Mysql
) -> None:
    ours = "find /etc/postgresql /etc/mysql -name 'zz-durable-dbhost.*'"
    assert sh(installed, ours).splitlines() == [
        f"/etc/postgresql/{postgresql}/main/conf.d/zz-durable-dbhost.conf",
        *([f"{mysql.directory}/zz-durable-dbhost.cnf"] if mysql.has_our_file else []),
    ]
    forced = f"fbstat -h {DATABASE}"
    assert "force write" in sh(installed, forced)
    pids = main_pids(installed)
    run = playbooks.run("release_db")
    assert run.code == 0
    assert sh(installed, ours) == ""
    assert "force write" not in sh(installed, forced)
    sh(installed, "cmp /root/ctsrvr.cfg /opt/faircom/config/ctsrvr.cfg")
    text = sh(installed, "cat /var/opt/mssql/mssql.conf")
    assert "3979" not in text
    assert "alternatewritethrough" not in text
    assert sh(installed, "ls /var/lib/durable-dbhost/originals* 2>/dev/null || true") == ""
    assert main_pids(installed) == pids
