# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firebird layer: gfix as the right user, older commits on disk first, nobody's database broken."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import originals
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.apply import (
    ORIGINALS,
    apply,
    apply_release,
    plan,
    plan_release,
    target_of,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_firebird import (
    BACKUP,
    ELF,
    FORCED,
    PASSWORD,
    READ_ONLY,
    SHADOW,
    SHUT,
    FakeDatabase,
    FirebirdHost,
)
from ...fakes.fake_host import Killed
from ...fakes.fake_proc import DSYNC, PRIVATE, RDWR, FakeProcess, as_user

GFIX = "/opt/firebird/bin/gfix"
CLIENT = "/run/durable-dbhost/firebird-client"
A, B = "/data/a.fdb", "/data/b.fdb"
OWNER = as_user(150, 150)
#: What gfix loads code from, or the names of code.
LOADED = (
    "/opt/firebird/lib/libfbclient.so.2",
    "/opt/firebird/plugins/libEngine13.so",
    "/opt/firebird/intl/libfbintl.so",
    "/opt/firebird/firebird.conf",
    "/opt/firebird/plugins.conf",
    "/opt/firebird/databases.conf",
)
STRANGER = as_user(60706, 60706, "--clear-groups")


def off(**given: Any) -> FakeDatabase:
    return FakeDatabase(flags=0, **given)


def run(host: FirebirdHost, *paths: str, word: str = "on", **access: Any) -> list[tuple[str, ...]]:
    """Plan and carry out; return the changes without their common words."""
    targets = [target_of({"database": path, "forced_writes": word}) for path in paths]
    work = plan(host, targets, **access)
    apply(host, work, targets)
    return [(change.target, change.before, change.after) for change in work.changes]


def commands(host: FirebirdHost) -> list[list[str]]:
    return [list(mutation[1:]) for mutation in host.mutations if mutation[0] == "change"]


@pytest.mark.fact(34)
def test_older_commits_are_on_disk_before_the_header_says_so() -> None:
    host = FirebirdHost(a=off(following="/log/second"))
    host.add(**{"/log/second": FakeDatabase(flags=0, sequence=1)})
    assert run(host, A) == [(A, "off", "on")]
    flush = [
        ["sync", A],
        ["sync", "--file-system", A],
        ["sync", "/log/second"],
        ["sync", "--file-system", "/log/second"],
    ]
    assert commands(host) == [*flush, [*OWNER, "/usr/bin/gfix", "-write", "sync", A], *flush]
    assert host.databases[A].flags == FORCED
    assert host.server.said[0][2] == {"ISC_USER": "SYSDBA"}
    host.mutations.clear()
    assert run(host, A) == []
    assert commands(host) == []


def test_off_flushes_nothing() -> None:
    host = FirebirdHost(a=FakeDatabase())
    assert run(host, A, word="off") == [(A, "on", "off")]
    assert commands(host) == [[*OWNER, "/usr/bin/gfix", "-write", "async", A]]


@pytest.mark.parametrize("opened", [True, False])
def test_a_database_in_use_is_left_as_it_is(opened: bool) -> None:
    """gfix would change its header, and not what those do who have it open."""
    host = FirebirdHost(a=off(), b=off())
    host.open(99, A, RDWR, "/usr/sbin/firebird" if opened else "/usr/bin/app")
    targets = [target_of({"database": path, "forced_writes": "on"}) for path in (A, B)]
    work = plan(host, targets)
    assert [change.target for change in work.changes] == [B]
    assert work.warnings == (
        f"{A}: forced writes are off, expected on: a process has it open; run again when none has",
    )
    apply(host, work, targets)
    assert not any(A in argv for argv in commands(host))
    assert (host.databases[A].flags, host.databases[B].flags) == (0, FORCED)


def test_what_the_header_says_and_its_users_do_not_is_told() -> None:
    host = FirebirdHost(a=FakeDatabase(), b=FakeDatabase())
    host.open(99, A, RDWR)
    host.open(98, B, RDWR | DSYNC)
    work = plan(host, [target_of({"database": path, "forced_writes": "on"}) for path in (A, B)])
    assert work.changes == ()
    (warning,) = work.warnings
    assert "on in its header, and off for those who have it open" in warning


def test_who_opens_it_meanwhile_is_told_of() -> None:
    host = FirebirdHost(a=off(), b=off())
    host.opened_by = FakeProcess(99, "/usr/bin/app", files=((A, RDWR, 31),))
    with pytest.raises(ChangeFailed, match="opened it meanwhile") as failed:
        run(host, A, B)
    assert B not in str(failed.value)
    # The other one is safe all the same.
    assert host.databases[B].flags == FORCED


def test_a_read_only_database_needs_nothing() -> None:
    host = FirebirdHost(a=FakeDatabase(flags=READ_ONLY))
    work = plan(host, [target_of({"database": A, "forced_writes": "on"})])
    assert (work.changes, len(work.warnings)) == ((), 1)
    assert "read-only" in work.warnings[0]


@pytest.mark.parametrize(
    ("database", "why"),
    [
        (FakeDatabase(flags=SHUT), "shut down; bring it online"),
        (FakeDatabase(flags=BACKUP), "nbackup"),
        (off(owner=0), "observed root as its owner"),
        (FakeDatabase(flags=SHADOW), "a part or a shadow"),
        (FakeDatabase(sequence=1), "a part or a shadow"),
        (FakeDatabase(content=b"x" * 1024), "does not begin as a Firebird database"),
        (off(major=14), "ODS 14"),
        (FakeDatabase(kind=0o010660), "not a regular file"),
    ],
)
def test_what_cannot_be_done_is_refused_and_the_others_are_done(database: FakeDatabase, why: str) -> None:
    host = FirebirdHost(a=off(), b=database)
    with pytest.raises(ChangeFailed, match=why):
        run(host, B)
    assert host.mutations == []
    targets = [target_of({"database": path, "forced_writes": "on"}) for path in (B, A)]
    work = plan(host, targets)
    apply(host, work, targets)
    assert [change.target for change in work.changes] == [A]
    assert list(work.failures) == [B]
    assert re.search(why, work.failures[B])


@pytest.mark.parametrize("lost", ["/srv/gone.fdb", "/hung/x.fdb"])
def test_a_target_that_is_gone_or_hangs_does_not_stop_the_others(lost: str) -> None:
    host = FirebirdHost(a=off())
    host.hung = ("/hung",)
    targets = [target_of({"database": path, "forced_writes": "on"}) for path in (lost, A)]
    work = plan(host, targets)
    apply(host, work, targets)
    assert (list(work.failures), [change.target for change in work.changes]) == ([lost], [A])


@pytest.mark.parametrize(
    "row",
    [
        {"forced_writes": "on"},
        {"database": A, "directory": "/data", "forced_writes": "on"},
        {"database": "a.fdb", "forced_writes": "on"},
        {"database": "localhost:/data/a.fdb", "forced_writes": "on"},
    ],
)
def test_a_target_is_one_absolute_path(row: dict[str, str]) -> None:
    with pytest.raises(ChangeFailed, match="expected one of them"):
        target_of(row)


def test_a_target_that_is_not_there_and_one_wanted_both_ways() -> None:
    host = FirebirdHost(a=off())
    with pytest.raises(ChangeFailed, match="nothing is there"):
        run(host, "/data/gone.fdb")
    targets = [target_of({"database": A, "forced_writes": word}) for word in ("on", "off")]
    with pytest.raises(ChangeFailed, match="forced writes on and off"):
        plan(host, targets)
    host.hung = ("/data",)
    with pytest.raises(ChangeFailed, match="no answer"):
        run(host, A)


def test_all_databases_of_a_directory_links_followed() -> None:
    host = FirebirdHost(a=off(), b=FakeDatabase(), c=FakeDatabase(content=b"x" * 1024))
    host.add(**{"/log/d": off()})
    host.links["/srv/fb"] = "/data"
    target = target_of({"directory": "/srv/fb", "forced_writes": "on"})
    work = plan(host, [target])
    assert [change.target for change in work.changes] == [A]


def test_a_password_is_for_databases_that_their_owner_cannot_change() -> None:
    host = FirebirdHost(a=off(owner=1000))
    host.install()
    with pytest.raises(ChangeFailed, match="give the password of SYSDBA"):
        run(host, A)
    with pytest.raises(ChangeFailed, match=r"and by the server: .*not defined.*USING PLUGIN Srp"):
        run(host, A, password="wrong")
    with pytest.raises(ChangeFailed, match=r"and by the server: .*Failed to establish"):
        run(host, A, password=PASSWORD)
    host.server.answers = True
    host.mutations.clear()
    host.server.said.clear()
    assert run(host, A, password=PASSWORD, server="localhost/3051", user="ADMIN") == [(A, "off", "on")]
    gfix = ["/usr/bin/gfix", "-write", "sync"]
    assert [argv for argv in commands(host) if gfix[0] in argv] == [
        [*as_user(1000, 1000), *gfix, A],
        [*STRANGER, *gfix, f"localhost/3051:{A}"],
    ]
    # It is nowhere but in the environment, and there only when it is needed.
    environments = [said[2] for said in host.server.said]
    assert environments == [
        {"ISC_USER": "ADMIN"},
        {"ISC_USER": "ADMIN", "ISC_PASSWORD": PASSWORD, "FIREBIRD": CLIENT},
    ]
    assert PASSWORD not in str(host.mutations)


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_gfix_has_a_password_only_while_it_is_limited_to_srp(password: str) -> None:
    """Any process at port 3050 gets a hash of the password otherwise, the same on each host."""
    host = FirebirdHost(a=off(owner=0))
    host.install()
    host.server.answers = True
    if password == PASSWORD:
        run(host, A, password=password)
    else:
        with pytest.raises(ChangeFailed):
            run(host, A, password=password)
    assert [said[3] for said in host.server.said if "ISC_PASSWORD" in said[2]] == [
        "AuthClient = Srp256, Srp\n"
    ]
    assert not [path for path in host.files if path.startswith(CLIENT)]


@pytest.mark.parametrize(
    ("content", "version", "why"),
    [
        (
            "#!/bin/sh\nFIREBIRD=/usr/lib/firebird/4.0 exec gfix\n",
            None,
            "is a script, which can choose another",
        ),
        ("", None, "is a script"),
        (
            ELF,
            "gfix version LI-V2.5.9.27139 Firebird 2.5",
            "the version is LI-V2.5, which cannot be limited to Srp",
        ),
        (ELF, "can't format message 3:3", "the version is unknown"),
    ],
)
def test_a_gfix_that_cannot_be_limited_to_srp_gets_no_password(
    content: str, version: str | None, why: str
) -> None:
    host = FirebirdHost(a=off(owner=0))
    host.install(content=content)
    host.version = version or host.version
    host.server.answers = True
    with pytest.raises(ChangeFailed, match=why):
        run(host, A, password=PASSWORD)
    assert host.server.said == []


def test_without_a_gfix_nothing_gets_the_password() -> None:
    host = FirebirdHost(a=off(owner=0))
    del host.files["/usr/bin/gfix"]
    with pytest.raises(ChangeFailed, match=r"none of /opt/firebird/bin/gfix, /usr/bin/gfix exists"):
        run(host, A, password=PASSWORD)
    assert host.server.said == []


def test_the_program_behind_debian_s_wrapper_gets_the_password() -> None:
    """/usr/bin/gfix of Debian 13 is a script that sets FIREBIRD, and with it the configuration of the client."""
    host = FirebirdHost(a=off(owner=0, major=13))
    host.install(content="#!/bin/sh\n")
    host.install("/usr/lib/firebird/4.0/bin/gfix")
    host.server.answers = True
    run(host, A, password=PASSWORD)
    assert [said[1][0] for said in host.server.said] == ["/usr/lib/firebird/4.0/bin/gfix"]


def test_gfix_does_not_run_as_a_user_without_a_name() -> None:
    host = FirebirdHost(a=off(owner=4711))
    with pytest.raises(ChangeFailed, match=r"user 4711 has no account.*give the password of SYSDBA"):
        run(host, A)
    assert host.server.said == []


def test_gfix_never_runs_as_root() -> None:
    """As root it leaves lock files that the server cannot open."""
    host = FirebirdHost(a=off(owner=0))
    host.install()
    host.server.answers = True
    assert run(host, A, password=PASSWORD) == [(A, "off", "on")]
    assert [argv[:6] for argv in commands(host) if "/usr/bin/gfix" in argv] == [STRANGER]


def test_a_gfix_that_root_alone_can_change_runs() -> None:
    host = FirebirdHost(a=off())
    host.files.update(dict.fromkeys((GFIX, *LOADED), ""))
    run(host, A)
    assert [*OWNER, GFIX, "-write", "sync", A] in commands(host)


@pytest.mark.parametrize("path", ["/opt/firebird/bin", *LOADED])
@pytest.mark.parametrize("owner", [150, 1000])
def test_a_gfix_that_others_may_change_or_what_it_loads_is_not_run(owner: int, path: str) -> None:
    """Not as its own user either: that user's server may be confined."""
    host = FirebirdHost(a=off())
    host.files.update(dict.fromkeys((GFIX, *LOADED), ""))
    host.uids[path] = owner
    host.server.answers = True
    with pytest.raises(ChangeFailed, match=f"{GFIX} (loads .*|may be changed by )others.* Fix: chown"):
        run(host, A, password=PASSWORD)
    assert not [argv for argv in commands(host) if GFIX in argv]


def test_a_gfix_whose_configuration_of_debian_s_others_may_change_is_not_run() -> None:
    host = FirebirdHost(a=off())
    for path in ("/etc/firebird/4.0/firebird.conf", "/etc/firebird/4.0/SYSDBA.password"):
        host.files[path], host.uids[path] = "", 150
    host.uids["/etc/firebird/4.0/firebird.conf"] = 0
    run(host, A)
    host = FirebirdHost(a=off())
    host.files["/etc/firebird/4.0/plugins.conf"], host.uids["/etc/firebird/4.0"] = "", 150
    with pytest.raises(
        ChangeFailed, match=r"/usr/bin/gfix loads /etc/firebird/4\.0/firebird\.conf, which others"
    ):
        run(host, A)
    assert host.server.said == []


def test_a_gfix_that_is_not_roots_alone_gets_no_password() -> None:
    host = FirebirdHost(a=off(owner=1000))
    host.files[GFIX], host.uids[GFIX] = "", 1000
    host.server.answers = True
    with pytest.raises(ChangeFailed, match=f"{GFIX} may be changed by others"):
        run(host, A, password=PASSWORD)
    assert all("ISC_PASSWORD" not in said[2] for said in host.server.said)


def test_the_password_is_given_to_a_user_that_nobody_is() -> None:
    """Whoever runs as the same user could read it in the environment of gfix."""
    host = FirebirdHost(FakeProcess(90, "/usr/bin/daemon"), a=off(owner=0))
    host.files["/proc/90/status"] = "Name:\tx\nUid:\t0\t60707\t0\t0\n"
    host.accounts = {"60706"}
    host.install()
    host.server.answers = True
    assert run(host, A, password=PASSWORD) == [(A, "off", "on")]
    assert [argv[1:3] for argv in commands(host) if "/usr/bin/gfix" in argv] == [
        ["--reuid=60708", "--regid=60708"]
    ]


def test_without_such_a_user_the_password_is_given_to_none() -> None:
    host = FirebirdHost(a=off(owner=0))
    host.install()
    host.accounts = {str(uid) for uid in range(60706, 61184)}
    host.server.answers = True
    with pytest.raises(ChangeFailed, match="expected an unused one"):
        run(host, A, password=PASSWORD)
    assert host.server.said == []


@pytest.mark.parametrize(
    ("paths", "major", "tool", "version"),
    [
        ((), 12, "/usr/bin/gfix", None),
        (("/usr/bin/gfix", "/opt/firebird/bin/gfix"), 12, "/opt/firebird/bin/gfix", None),
        (("/usr/bin/gfix", "/usr/lib/firebird/3.0/bin/gfix"), 12, "/usr/bin/gfix", "3.0"),
        (("/usr/bin/gfix", "/usr/lib/firebird/3.0/bin/gfix"), 13, "/usr/bin/gfix", None),
        (("/usr/bin/gfix", "/usr/lib/firebird/4.0/bin/gfix"), 13, "/usr/bin/gfix", "4.0"),
    ],
)
def test_the_tool_that_fits(paths: tuple[str, ...], major: int, tool: str, version: str | None) -> None:
    host = FirebirdHost(a=off(major=major))
    host.files.update(dict.fromkeys(paths, ""))
    run(host, A)
    ((_ids, command, environment, _conf),) = host.server.said
    assert (command[0], environment.get("FIREBIRD_VERSION")) == (tool, version)


def server(pid: int, **given: Any) -> FakeProcess:
    """A server; the user of every process is 26."""
    return FakeProcess(pid, "/usr/sbin/firebird", **given)


@pytest.mark.parametrize(
    ("owner", "servers", "lock"),
    [
        (26, [{"FIREBIRD_LOCK": "/run/fb"}], "/run/fb"),
        (26, [{}], None),
        # Another user's server does not lead gfix anywhere.
        (150, [{"FIREBIRD_LOCK": "/tmp/trap"}], None),
    ],
)
def test_gfix_looks_for_locks_where_the_server_has_them(
    owner: int, servers: list[dict[str, str]], lock: str | None
) -> None:
    processes = [server(pid, environment=environment) for pid, environment in enumerate(servers, 50)]
    host = FirebirdHost(*processes, a=off(owner=owner))
    host.install()
    host.server.answers = True
    run(host, A, password=PASSWORD)
    assert host.server.said[0][2].get("FIREBIRD_LOCK") == lock


def test_servers_with_different_locks_are_not_mixed_up() -> None:
    environments: list[dict[str, str]] = [{"FIREBIRD_LOCK": "/run/one"}, {}]
    processes = [server(pid, environment=environment) for pid, environment in enumerate(environments, 50)]
    hidden = server(60, environment={"FIREBIRD_LOCK": "/run/three"}, namespace=PRIVATE)
    host = FirebirdHost(*processes, hidden, a=off(owner=26))
    with pytest.raises(ChangeFailed, match=r"different FIREBIRD_LOCK \(/run/one, None\)"):
        run(host, A)


def test_what_gfix_says_it_did_is_read_back() -> None:
    host = FirebirdHost(a=off())
    host.lie = True
    with pytest.raises(ChangeFailed, match="gfix did not change it"):
        run(host, A)


@pytest.mark.parametrize("stop_at", range(1, 7))
def test_killed_at_any_step_older_commits_are_safe_where_the_header_says_so(stop_at: int) -> None:
    host = FirebirdHost(a=off())
    host.stop_at = stop_at
    with pytest.raises(Killed):
        run(host, A)
    done = [mutation for mutation in host.mutations[: stop_at - 1] if mutation[0] == "change"]
    if host.databases[A].flags:
        assert [list(mutation[1:]) for mutation in done[:2]] == [["sync", A], ["sync", "--file-system", A]]
        # And what it was can still be put back.
        assert originals.load(host, ORIGINALS) == {A: f"off {b'created!'.hex()}"}


def test_release_puts_back_what_was() -> None:
    host = FirebirdHost(a=off(), b=FakeDatabase())
    run(host, A)
    run(host, B, word="off")
    run(host, A, word="off")
    run(host, A)
    work = plan_release(host)
    assert [(change.target, change.before, change.after) for change in work.changes] == [
        (A, "on", "off"),
        (B, "off", "on"),
    ]
    apply_release(host, work)
    assert (host.databases[A].flags, host.databases[B].flags) == (0, FORCED)
    assert ORIGINALS not in host.files
    assert plan_release(host).changes == ()


def test_release_forgets_nothing_that_did_not_come_back() -> None:
    """gfix ended well without a change: the original was forgotten, and the database stayed without forced writes."""
    host = FirebirdHost(a=FakeDatabase())
    run(host, A, word="off")
    kept = originals.load(host, ORIGINALS)
    host.lie = True
    with pytest.raises(
        ChangeFailed, match=f"{A}: observed forced writes off in its header after gfix, expected on"
    ):
        apply_release(host, plan_release(host))
    assert originals.load(host, ORIGINALS) == kept
    host.lie = False
    apply_release(host, plan_release(host))
    assert (host.databases[A].flags, ORIGINALS in host.files) == (FORCED, False)


def test_the_first_word_is_the_original_one() -> None:
    host = FirebirdHost(a=off())
    run(host, A)
    run(host, A, word="off")
    (change,) = plan_release(host).changes
    assert (change.setting, change.before, change.after) == ("originals", "off", "forgotten")


def test_release_leaves_what_is_in_use_for_later() -> None:
    host = FirebirdHost(a=off(), b=off())
    run(host, A, B)
    host.open(99, A)
    work = plan_release(host)
    assert [change.target for change in work.changes] == [B]
    assert "a process has it open" in work.warnings[0]
    apply_release(host, work)
    assert (host.databases[A].flags, host.databases[B].flags) == (FORCED, 0)
    host.locks.clear()
    host.end(99)
    apply_release(host, plan_release(host))
    assert host.databases[A].flags == 0
    assert ORIGINALS not in host.files


def test_release_forgets_a_database_that_is_another_one_now() -> None:
    """One that was made again or restored has what its maker gave it."""
    host = FirebirdHost(a=off(), b=off())
    run(host, A, B)
    host.databases[A].created = b"restored"
    del host.databases[B], host.files[B]
    work = plan_release(host)
    assert {(change.target, change.setting, change.after) for change in work.changes} == {
        (A, "originals", "forgotten"),
        (B, "originals", "forgotten"),
    }
    apply_release(host, work)
    assert host.databases[A].flags == FORCED
    assert ORIGINALS not in host.files


def test_what_is_kept_of_a_database_that_is_another_one_now_is_kept_anew() -> None:
    host = FirebirdHost(a=off())
    run(host, A)
    host.databases[A].created = b"restored"
    run(host, A, word="off")
    (change,) = plan_release(host).changes
    assert (change.setting, change.before, change.after) == ("forced_writes", "off", "on")


def test_a_database_that_somebody_replaces_meanwhile_is_told_of() -> None:
    host = FirebirdHost(a=off(), b=off())
    change = host.on_change

    def replaced(argv: list[str]) -> None:
        change(argv)
        if argv[-1] == A and argv[0] == "setpriv":
            host.databases[A].flags |= SHADOW

    host.on_change = replaced  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=f"{A}: not the first file of a database any more"):
        run(host, A, B)
    assert host.databases[B].flags == FORCED
