# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every database of Firebird: found, its header read, and whether somebody has it open, and how."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.files import MOST_FILES
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable

from ...fakes.fake_firebird import BACKUP, FORCED, OWNER, READ_ONLY, SHADOW, SHUT, FakeDatabase, FirebirdHost
from ...fakes.fake_proc import DSYNC, OTHER, PRIVATE, RDWR, SYNC, FakeProcess, as_user

SERVER = "/opt/firebird/bin/firebird"
CONF = "/opt/firebird/firebird.conf"
SERVER_FILES = (("/var/log/firebird.log", RDWR, 22),)


def machine(
    *processes: FakeProcess, conf: str = "", aliases: str = "", **databases: FakeDatabase
) -> FirebirdHost:
    """Return a host with the vendor's Firebird and these databases in /data."""
    host = FirebirdHost(*processes, **databases)
    host.files.update({SERVER: "", CONF: conf, "/opt/firebird/databases.conf": aliases})
    host.commands[(*as_user(OWNER, OWNER), SERVER, "-z")] = (
        "Firebird TCP/IP server version LI-V3.0.11.33637 Firebird 3.0\n"
    )
    return host


def told(host: FirebirdHost, *paths: str) -> dict[str, Any]:
    """Return the facts of the instance that runs, or could."""
    facts, *_stopped = collect(host, "now", [{"engine": "firebird", "paths": list(paths)}])["engines"]
    assert host.mutations == []
    assert facts["evidence"].get("observation") is None
    return causes.of_instance(facts)


def words(facts: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return {database: (header, running, in use, mode)}."""
    names = ("forced_writes", "running", "in_use", "mode")
    return {row["path"]: tuple(row[name] for name in names) for row in facts["databases"]}


@pytest.mark.fact(34)
def test_databases_of_a_stopped_server_are_found() -> None:
    host = machine(
        conf="DatabaseAccess = Restrict /data/restricted\n",
        aliases="shop = /data/shop.fdb\ngone = /data/gone.fdb\n",
        shop=FakeDatabase(flags=0),
    )
    host.add(
        **{
            "/data/restricted/odd name": FakeDatabase(major=13),
            "/data/restricted/note.fdb": FakeDatabase(content=b"a picture".ljust(1024)),
            "/var/lib/firebird/3.0/data/new.fdb": FakeDatabase(flags=FORCED | READ_ONLY),
            "/opt/firebird/security3.fdb": FakeDatabase(flags=FORCED | SHUT),
            "/srv/listed/a.fdb": FakeDatabase(),
            "/elsewhere/unknown.fdb": FakeDatabase(),
        }
    )
    facts = told(host, "/srv/listed", "/srv/nothing")
    assert (facts["state"], facts["version"]) == ("stopped", "3.0.11.33637")
    assert words(facts) == {
        "/data/restricted/odd name": ("on", "closed", "no", "read_write"),
        "/data/shop.fdb": ("off", "closed", "no", "read_write"),
        "/opt/firebird/security3.fdb": ("on", "closed", "no", "shutdown"),
        "/srv/listed/a.fdb": ("on", "closed", "no", "read_write"),
        "/var/lib/firebird/3.0/data/new.fdb": ("on", "closed", "no", "read_only"),
    }
    assert [row["reason"] for row in facts["databases"]] == [None] * 5
    assert {row["owner"] for row in facts["databases"]} == {"150"}
    assert {"/data", "/data/restricted", "/srv/listed"} <= set(facts["directories"])


@pytest.mark.fact(46)
@pytest.mark.parametrize(("flags", "running"), [(RDWR | DSYNC, "on"), (RDWR | SYNC, "on"), (RDWR, "off")])
def test_how_a_database_is_open_tells_what_happens_to_writes(flags: int, running: str) -> None:
    """With Classic, gfix changes the header, and who has it open goes on as before."""
    files = (*SERVER_FILES, ("/data/a.fdb", flags, 31))
    host = machine(FakeProcess(50, SERVER, files=files), a=FakeDatabase())
    host.locks.append((50, "/data/a.fdb"))
    facts = told(host)
    assert words(facts) == {"/data/a.fdb": ("on", running, "yes", "read_write")}
    # Opened by nobody's configuration: only the open file told of it.
    assert facts["directories"] == ["/data"]


@pytest.mark.fact(34)
@pytest.mark.parametrize(("flags", "running"), [(RDWR | DSYNC, "on"), (RDWR, "off"), (None, "unknown")])
def test_a_program_that_has_a_database_open_beside_the_server_counts(flags: int | None, running: str) -> None:
    """With Classic, one that opened it before gfix goes on as before, whatever the server does since."""
    host = machine(
        FakeProcess(50, SERVER, files=(*SERVER_FILES, ("/data/a.fdb", RDWR | DSYNC, 31))), a=FakeDatabase()
    )
    host.locks.append((50, "/data/a.fdb"))
    host.open(99, "/data/a.fdb", flags or 0, program="/usr/bin/isql-fb")
    if flags is None:
        host.deny(99, "fd")
    facts = told(host)
    assert words(facts) == {"/data/a.fdb": ("on", running, "yes", "read_write")}


def test_a_program_that_has_ended_since_it_locked_a_database_does_not_count() -> None:
    host = machine(
        FakeProcess(50, SERVER, files=(*SERVER_FILES, ("/data/a.fdb", RDWR | DSYNC, 31))), a=FakeDatabase()
    )
    host.locks += [(50, "/data/a.fdb"), (99, "/data/a.fdb")]
    assert words(told(host)) == {"/data/a.fdb": ("on", "on", "yes", "read_write")}


def test_databases_next_to_known_ones_are_found_though_no_process_and_no_alias_names_them() -> None:
    host = machine(
        FakeProcess(50, SERVER, files=(("/srv/opened/a.fdb", RDWR | DSYNC, 31),)),
        aliases="b = /srv/named/b.fdb\n",
    )
    host.add(
        **{
            "/srv/opened/a.fdb": FakeDatabase(),
            "/srv/opened/archive": FakeDatabase(flags=0),
            "/srv/named/b.fdb": FakeDatabase(),
            "/srv/named/old.fdb": FakeDatabase(flags=0),
            "/srv/named/picture.fdb": FakeDatabase(content=b"a picture".ljust(1024)),
            # Directories below are none of the known ones.
            "/srv/named/sub/c.fdb": FakeDatabase(flags=0),
            "/srv/d.fdb": FakeDatabase(flags=0),
        }
    )
    host.locks.append((50, "/srv/opened/a.fdb"))
    assert words(told(host)) == {
        "/srv/named/b.fdb": ("on", "closed", "no", "read_write"),
        "/srv/named/old.fdb": ("off", "closed", "no", "read_write"),
        "/srv/opened/a.fdb": ("on", "on", "yes", "read_write"),
        "/srv/opened/archive": ("off", "closed", "no", "read_write"),
    }


def test_of_very_many_files_next_to_a_database_those_called_as_databases_are_read() -> None:
    host = machine(aliases="a = /srv/a.fdb\n")
    host.add(
        **{
            f"/srv/{number}.jpg": FakeDatabase(content=b"\xff\xd8".ljust(1024))
            for number in range(MOST_FILES)
        }
    )
    host.add(**{"/srv/a.fdb": FakeDatabase(), "/srv/b.gdb": FakeDatabase(flags=0)})
    assert set(words(told(host))) == {"/srv/a.fdb", "/srv/b.gdb"}
    host.add(**{f"/srv/{number}.fdb": FakeDatabase() for number in range(MOST_FILES)})
    rows = {row["path"]: row["reason"] for row in told(host)["databases"]}
    assert "files are next to a database" in (rows["/srv"] or "")


def test_a_directory_of_a_known_database_that_cannot_be_listed_is_unknown() -> None:
    host = machine(aliases="a = /srv/a.fdb\n")
    host.add(**{"/srv/a.fdb": FakeDatabase()})
    find = host.find_files

    def denied(path: str, *given: Any, **more: Any) -> list[str]:
        if path == "/srv":
            raise Unobservable("/srv: Input/output error")
        return find(path, *given, **more)

    host.find_files = denied  # type: ignore[method-assign]
    rows = {row["path"]: row["reason"] for row in told(host)["databases"]}
    assert rows == {"/srv": '"/srv: Input/output error"', "/srv/a.fdb": None}


def test_one_writer_of_many_without_forced_writes_is_enough() -> None:
    host = machine(
        FakeProcess(50, SERVER, (SERVER, "-i"), files=(("/data/a.fdb", RDWR | DSYNC, 31),)),
        FakeProcess(51, SERVER, (SERVER, "-i"), files=(("/data/a.fdb", RDWR, 31),)),
        a=FakeDatabase(),
    )
    assert words(told(host))["/data/a.fdb"] == ("on", "off", "yes", "read_write")


@pytest.mark.parametrize(("flags", "running"), [(RDWR | DSYNC, "on"), (RDWR, "off")])
def test_a_program_with_the_engine_inside_has_it_open(flags: int, running: str) -> None:
    host = machine(FakeProcess(50, SERVER), a=FakeDatabase())
    host.open(99, "/data/a.fdb", flags, "/usr/bin/isql-fb")
    facts = told(host, "/data")
    assert words(facts)["/data/a.fdb"] == ("on", running, "yes", "read_write")


@pytest.mark.parametrize("denied", [True, False])
def test_who_has_it_open_and_cannot_be_looked_at_is_unknown(denied: bool) -> None:
    host = machine(FakeProcess(50, SERVER), a=FakeDatabase())
    if denied:
        host.open(99, "/data/a.fdb", program="/usr/bin/isql-fb")
        host.deny(99, "fd")
    else:
        host.locks.append((-1, "/data/a.fdb"))
    facts = told(host, "/data")
    header, running, in_use, _mode = words(facts)["/data/a.fdb"]
    assert (header, running) == ("on", "unknown")
    assert in_use in ("yes", "unknown")
    assert facts["databases"][0]["reason"]


def test_without_locks_nothing_is_free() -> None:
    host = machine(a=FakeDatabase(flags=0))
    answer = host.read

    def read(path: str) -> str:
        if path == "/proc/locks":
            raise Unobservable("/proc/locks: Permission denied")
        return answer(path)

    host.read = read  # type: ignore[method-assign]
    facts = told(host, "/data")
    assert words(facts)["/data/a.fdb"] == ("off", "unknown", "unknown", "read_write")
    assert "Permission denied" in facts["databases"][0]["reason"]


def test_while_a_backup_runs_the_header_is_not_what_counts() -> None:
    host = machine(a=FakeDatabase(flags=FORCED | BACKUP))
    facts = told(host, "/data")
    assert words(facts)["/data/a.fdb"] == ("unknown", "closed", "no", "backup")
    assert "nbackup" in facts["databases"][0]["reason"]


def test_second_files_and_shadows_are_part_of_their_database() -> None:
    host = machine(
        FakeProcess(50, SERVER, files=(("/data/second.fdb", RDWR, 31), ("/data/shadow.fdb", RDWR, 31))),
        aliases="s = /data/shadow.fdb\n",
        second=FakeDatabase(flags=0, sequence=1),
        shadow=FakeDatabase(flags=SHADOW),
    )
    assert told(host, "/data")["databases"] == []


def test_what_an_alias_names_and_is_none_is_told() -> None:
    host = machine(
        aliases="n = /data/none.fdb\np = /data/pipe.fdb\n",
        none=FakeDatabase(content=b"x" * 1024),
        pipe=FakeDatabase(kind=0o010660),
    )
    facts = told(host)
    assert {row[0] for row in words(facts).values()} == {"unknown"}
    assert [row["reason"] for row in facts["databases"]] == [
        '"it does not begin as a Firebird database does"',
        '"it is not a regular file"',
    ]
    # Opening a pipe would wait for somebody to write into it.
    assert ("read", "/data/pipe.fdb") not in host.questions


GSTAT = (*as_user(150, 150), "/usr/bin/gstat", "-h", "/data/a.fdb")


@pytest.mark.parametrize(
    ("said", "word", "reason"),
    [
        ("\tAttributes\t\tforce write\n", "on", None),
        ("\tAttributes\t\tno reserve, force write, read only\n", "on", None),
        ("\tAttributes\t\t\n", "off", None),
        ("\tAttributes\t\tno reserve\n", "off", None),
        ("\tAttributes\t\tno force write here\n", "off", None),
        (Result(1, "", "Wrong ODS version, expected 13, encountered 14\n"), "unknown", "encountered 14"),
        ("\tODS version\t14.0\n", "unknown", "tells no attributes"),
        (Unobservable("gstat: No such file or directory"), "unknown", "No such file"),
    ],
)
def test_a_structure_that_is_not_known_here_is_asked_of_gstat(
    said: Any, word: str, reason: str | None
) -> None:
    host = machine(a=FakeDatabase(major=14))
    host.commands[GSTAT] = said
    facts = told(host, "/data")
    assert words(facts)["/data/a.fdb"] == (word, "closed", "no", "unknown")
    seen = facts["databases"][0]["reason"]
    assert (seen is None) if reason is None else (reason in seen and "ODS 14" in seen)


@pytest.mark.parametrize("tool", ["/opt/firebird/bin/gstat", "/usr/bin/fbstat", "/usr/bin/gstat-fb"])
def test_each_distribution_s_name_of_gstat_precedes_another_program_of_that_name(tool: str) -> None:
    host = machine(a=FakeDatabase(major=14))
    host.files[tool] = ""
    host.commands[(*GSTAT[:6], tool, *GSTAT[7:])] = "\tAttributes\t\tforce write\n"
    assert words(told(host, "/data"))["/data/a.fdb"][0] == "on"


def test_gstat_is_never_run_as_root() -> None:
    """A user who runs Firebird can put another program into its place, and a link to a file of root's."""
    host = machine(a=FakeDatabase(major=14, owner=0))
    facts = told(host, "/data")
    assert "gstat is not run" in facts["databases"][0]["reason"]
    assert not any("/usr/bin/gstat" in argv for argv in host.asked)


@pytest.mark.parametrize(("owner", "runs"), [(0, True), (150, False), (1000, False)])
def test_a_gstat_that_others_may_change_is_not_run(owner: int, runs: bool) -> None:
    tool = "/opt/firebird/bin/gstat"
    host = machine(a=FakeDatabase(major=14))
    host.files[tool] = ""
    host.uids["/opt/firebird/bin"] = owner
    host.commands[(*GSTAT[:6], tool, *GSTAT[7:])] = "\tAttributes\t\tforce write\n"
    facts = told(host, "/data")
    assert words(facts)["/data/a.fdb"][0] == ("on" if runs else "unknown")
    assert ("may be changed by others" in str(facts["databases"][0]["reason"])) != runs
    assert any(tool in argv for argv in host.asked if argv[0] == "setpriv") == runs


def test_what_the_server_has_open_and_cannot_be_read_is_told() -> None:
    files = (("/log/a.fdb", RDWR | DSYNC, 32), ("/data/b.fdb", RDWR | DSYNC, 31), ("/data/gone", RDWR, 31))
    host = machine(FakeProcess(50, SERVER, files=files), b=FakeDatabase())
    host.hung = ("/log",)
    facts = told(host)
    assert words(facts) == {
        "/data/b.fdb": ("on", "on", "yes", "read_write"),
        "/log/a.fdb": ("unknown", "on", "yes", "unknown"),
    }
    assert "no answer" in facts["databases"][1]["reason"]


def test_what_hides_databases_is_told_as_one() -> None:
    host = machine(aliases="a = $(dir_nowhere)/a.fdb\n", b=FakeDatabase())
    host.add(**{"/log/c.fdb": FakeDatabase()})
    host.hung = ("/log",)
    facts = told(host, "/log", "/data")
    assert words(facts) == {
        "/data/b.fdb": ("on", "closed", "no", "read_write"),
        "alias a": ("unknown",) * 4,
        "/log": ("unknown",) * 4,
    }
    reasons = {row["path"]: row["reason"] for row in facts["databases"]}
    assert "no answer within 10 s" in reasons["/log"]
    # One look is all that a disk costs that does not answer.
    assert [question for question in host.questions if question[1] == "/log"] == [("locate", "/log")] * 2


@pytest.mark.fact(46)
def test_in_a_container_files_are_read_through_its_root_and_nothing_is_run() -> None:
    mounts = "50 40 0:99 / / rw - overlay overlay rw\n51 50 8:17 /fb /db rw - ext4 /dev/sdb1 rw\n"
    inside = FakeProcess(
        70,
        SERVER,
        namespace=OTHER,
        pid_namespace="4026530000",
        mountinfo=mounts,
        files=(("/db/a.fdb", RDWR, 51),),
        cgroup=f"0::/system.slice/docker-{'ab' * 32}.scope\n",
    )
    host = FirebirdHost(inside)
    root = "/proc/70/root"
    host.files[f"{root}{CONF}"] = "ServerMode = Classic\n"
    host.add(**{f"{root}/db/a.fdb": FakeDatabase(flags=0, major=14)})
    host.add(**{f"{root}/opt/firebird/security3.fdb": FakeDatabase()})
    # The inventory names directories of the host.
    host.add(**{f"{root}/data/other.fdb": FakeDatabase()})
    host.files[SERVER] = ""
    host.commands[(*as_user(OWNER, OWNER), SERVER, "-z")] = (
        "Firebird TCP/IP server version LI-V3.0.11.33637 Firebird 3.0\n"
    )
    facts = told(host, "/data")
    assert facts["version"] == "unknown"
    assert facts["settings"]["ServerMode"]["persisted"] == "Classic"
    rows = {row["path"]: row for row in facts["databases"]}
    # A volume is told where the host has it.
    assert set(rows) == {"/data/fb/a.fdb", f"{root}/opt/firebird/security3.fdb"}
    assert (rows["/data/fb/a.fdb"]["running"], rows["/data/fb/a.fdb"]["in_use"]) == ("off", "yes")
    # The stopped server of the host itself reports its version.
    own = (*as_user(OWNER, OWNER), SERVER, "-z")
    assert {argv for argv in host.asked if argv[0] == "setpriv" or SERVER in argv} == {own}


def test_a_mount_namespace_of_its_own_is_no_other_machine() -> None:
    host = machine(FakeProcess(50, SERVER, namespace=PRIVATE), a=FakeDatabase())
    facts = told(host, "/data")
    assert facts["namespace"] == "private"
    assert list(words(facts)) == ["/data/a.fdb"]


@pytest.mark.parametrize(
    "exe", ["/tmp/firebird", "/home/eve/usr/lib/firebird", "/srv/opt/firebird/bin/firebird"]
)
def test_a_program_from_anywhere_is_not_run(exe: str) -> None:
    """Anybody can call a program so; root must not run it."""
    host = machine(FakeProcess(50, exe, environment={"FIREBIRD": "/opt/firebird"}))
    facts = told(host)
    assert (facts["state"], facts["version"]) == ("running", "unknown")
    assert not any(argv[0] == exe for argv in host.asked)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("Firebird TCP/IP server version LI-V4.0.5.3140 Firebird 4.0\n", "4.0.5.3140"),
        (Result(1, "", "Firebird server version LI-V5.0.1.1469 Firebird 5.0\n"), "5.0.1.1469"),
        ("nonsense", "unknown"),
        (Unobservable("no answer within 10 s"), "unknown"),
    ],
)
def test_its_version(said: Any, version: str) -> None:
    host = machine(FakeProcess(50, "/usr/lib/firebird/4.0/bin/firebird"))
    host.files["/usr/lib/firebird/4.0/firebird.conf"] = ""
    host.files["/usr/lib/firebird/4.0/bin/firebird"] = ""
    host.commands[(*as_user(26, 26), "/usr/lib/firebird/4.0/bin/firebird", "-z")] = said
    assert told(host)["version"] == version
    assert [argv[:3] for argv in host.asked if argv[-1] == "-z"] == [("setpriv", "--reuid=26", "--regid=26")]
    host.uids["/usr/lib/firebird/4.0"] = 150
    before = len(host.asked)
    assert told(host)["version"] == "unknown"
    assert not [argv for argv in host.asked[before:] if argv[-1] == "-z"]


def test_the_program_reports_its_version_to_no_command_of_root() -> None:
    """It would run with root's rights, and with none of the confinement of its service."""
    roots = machine(FakeProcess(50, SERVER, uid=0))
    nobodys = machine()
    nobodys.commands["getent", "passwd", "firebird"] = Result(2, "", "")
    for host, why in ((roots, "does not run as root"), (nobodys, "user firebird has no account")):
        facts = told(host)
        assert facts["version"] == "unknown"
        assert why in facts["evidence"]["version"]["reason"]
        assert not [argv for argv in host.asked if argv[-1] == "-z"]


def test_debian_has_one_name_and_configuration_for_a_version_running_or_stopped() -> None:
    home = "/usr/lib/x86_64-linux-gnu/firebird/4.0"
    unit = "firebird4.0.service"
    server = FakeProcess(
        50,
        "/usr/lib/firebird/4.0/bin/firebird",
        environment={"FIREBIRD": home},
        cgroup=f"0::/system.slice/{unit}\n",
    )
    for processes in ((), (server,)):
        host = FirebirdHost(*processes)
        for version in ("3.0", "4.0"):
            host.files[f"/etc/firebird/{version}/firebird.conf"] = ""
        host.links[f"{home}/firebird.conf"] = "/etc/firebird/4.0/firebird.conf"
        host.files[f"/lib/systemd/system/{unit}"] = ""
        host.units = {unit: {"TimeoutStopUSec": "1min 30s"}}
        facts = told(host)
        assert (facts["name"], facts["config"]) == ("firebird", "/etc/firebird/4.0/firebird.conf")
