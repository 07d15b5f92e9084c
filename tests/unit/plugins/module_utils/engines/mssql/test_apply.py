# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mssql layer: by mssql-conf alone, read back, restarted only when allowed."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import restart as servers
from ansible_collections.durable.dbhost.plugins.module_utils.engines import start_files
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as engine
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import tool as mssql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql.apply import (
    ORIGINALS,
    Target,
    apply,
    apply_release,
    plan,
    plan_release,
    target_of,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host import foreign, reader, seam
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host, Unobservable

from ...fakes.fake_host import Killed
from ...fakes.fake_proc import FakeProcess
from ...fakes.vendor_host import AS_MSSQL, CONF, HOME, MSSQL_CONF, MSSQL_UNIT, TOOL, VendorHost, with_mssql

FLUSH = {"traceflag3979": "off", "writethrough": "1", "alternatewritethrough": "1"}
FUA = {"traceflag3979": "on", "traceflag3982": "off", "writethrough": "1", "alternatewritethrough": "0"}
WRONG = "[traceflag]\ntraceflag0 = 3979\n[control]\nwritethrough = 0\nalternatewritethrough = 0\n"
RESTART = ("change", "systemctl", "restart", "--", MSSQL_UNIT)


def run(host: VendorHost, wanted: dict[str, str], restart: bool = False) -> list[tuple[str, ...]]:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    targets = [Target("mssql", wanted)]
    work = plan(host, targets, restart)
    if work.changes:
        apply(host, work, targets)
    return [change[1:] for change in work.changes]


def commands(host: VendorHost) -> list[tuple[str, ...]]:
    """Return what was run; of mssql-conf, as the owner of its file, only the arguments."""
    run = [mutation[1:] for mutation in host.mutations if mutation[0] == "change"]
    own = (*AS_MSSQL, TOOL)
    return [argv[len(own) :] if argv[: len(own)] == own else argv for argv in run]


def facts(host: VendorHost) -> dict[str, Any]:
    (found,) = Engines(host, (engine.NAME,)).instances()
    return found


def settings(host: VendorHost, which: str) -> dict[str, str]:
    return {name: row[which] for name, row in facts(host)["settings"].items()}


@pytest.mark.fact(27)
def test_everything_goes_through_mssql_conf_write_through_first() -> None:
    host = with_mssql(WRONG, "3979")
    assert run(host, FLUSH) == [
        ("traceflag3979", "persisted", "on", "off"),
        ("writethrough", "persisted", "0", "1"),
        ("alternatewritethrough", "persisted", "0", "1"),
    ]
    assert commands(host) == [
        ("set", "control.writethrough", "1"),
        ("set", "control.alternatewritethrough", "1"),
        ("traceflag", "3979", "off"),
        ("sync", CONF),
    ]
    assert {m[1] for m in host.mutations if m[0] == "file"} == {
        ORIGINALS,
        f"{start_files.NOTES}/mssql-50.json",
    }
    assert run(host, FLUSH) == []


@pytest.mark.fact(29)
def test_a_trace_flag_waits_for_a_restart_like_all_others() -> None:
    """What runs is still known: it was noted before the file changed."""
    host = with_mssql(WRONG, "3979")
    run(host, FLUSH)
    assert settings(host, "persisted") == {**FLUSH, "traceflag3982": "off"}
    assert settings(host, "running") == {
        "traceflag3979": "on",
        "traceflag3982": "off",
        "writethrough": "0",
        "alternatewritethrough": "0",
    }
    assert facts(host)["pending_restart"] == ["traceflag3979", "writethrough", "alternatewritethrough"]
    # A second change keeps what ran.
    run(host, {"alternatewritethrough": "0"})
    assert settings(host, "running")["traceflag3979"] == "on"


@pytest.mark.fact(29)
def test_planning_sees_drift_and_changes_nothing() -> None:
    host = with_mssql("".join(["[traceflag]\n", *(f"traceflag{i} = {4000 - i}\n" for i in range(30))]))
    assert [change[1:] for change in plan(host, [Target("mssql", FLUSH)]).changes] == [
        ("traceflag3979", "persisted", "on", "off")
    ]
    assert host.mutations == []
    run(host, {"traceflag3979": "off"})
    assert "3979" not in host.read(CONF)
    assert len(host.conf().items("traceflag")) == 29


@pytest.mark.fact(29)
def test_a_default_host_is_left_as_it_is() -> None:
    host = with_mssql()
    assert run(host, FLUSH, restart=True) == []
    assert host.mutations == []
    assert host.read(CONF) == MSSQL_CONF


@pytest.mark.fact(29)
@pytest.mark.parametrize("word", ["false", "true", "yes", "(1)", ""])
def test_a_word_that_is_no_number_is_replaced(word: str) -> None:
    host = with_mssql(f"[control]\nwritethrough = {word}\n")
    assert run(host, FLUSH) == [("writethrough", "persisted", word or "(empty)", "1")]
    assert host.conf().get("control", "writethrough") == "1"


def test_fua_is_set_and_runs_after_a_restart() -> None:
    host = with_mssql("[traceflag]\ntraceflag = 3982\n", "3982")
    changes = run(host, FUA, restart=True)
    assert ("traceflag3979", "running", "off", "on") in changes
    assert commands(host) == [
        ("set", "control.alternatewritethrough", "0"),
        ("traceflag", "3982", "off"),
        ("traceflag", "3979", "on"),
        ("sync", CONF),
        RESTART[1:],
    ]
    assert settings(host, "running") == settings(host, "persisted") == FUA
    assert facts(host)["pending_restart"] == []
    host.mutations.clear()
    assert run(host, FUA, restart=True) == []
    assert host.mutations == []


def test_what_waits_already_is_only_restarted() -> None:
    host = with_mssql(WRONG, "3979")
    run(host, FLUSH)
    host.mutations.clear()
    assert {change[1] for change in run(host, FLUSH, restart=True)} == {"running"}
    assert host.mutations == [RESTART]


def test_a_restart_has_the_time_that_its_unit_gives() -> None:
    host, limits = with_mssql(WRONG, "3979"), []
    change = host.change
    host.change = lambda argv, timeout=300.0: (limits.append((argv[0], timeout)), change(argv, timeout))[1]  # type: ignore[method-assign,assignment]
    run(host, FLUSH, restart=True)
    assert ("systemctl", 1800 + 900) in limits


def test_a_restart_that_does_not_help_is_said() -> None:
    host = with_mssql(WRONG, "3979")
    host.deaf = True
    with pytest.raises(ChangeFailed, match=r"writethrough \(running\): observed 0, expected 1"):
        run(host, FLUSH, restart=True)
    assert host.slept == 120


@pytest.mark.fact(28)
@pytest.mark.parametrize("way", ["cluster", "no unit"])
def test_what_systemd_does_not_manage_is_never_restarted(way: str) -> None:
    host = with_mssql(WRONG, "3979", **({"name": "x"} if way == "cluster" else {}))
    if way == "cluster":
        host.files[f"/run/systemd/system/{MSSQL_UNIT}.d/50-pacemaker.conf"] = ""
        assert facts(host)["managed_by"] == "pacemaker"
    else:
        host.files["/proc/50/cgroup"] = "0::/\n"
        assert facts(host)["managed_by"] == "none"
    run(host, FLUSH, restart=True)
    assert RESTART not in host.mutations
    assert facts(host)["pending_restart"]


@pytest.mark.fact(28)
def test_where_a_cluster_may_manage_it_nothing_is_changed() -> None:
    host = with_mssql(WRONG)
    host.start(FakeProcess(7, "/usr/sbin/pacemakerd", uid=0))
    with pytest.raises(ChangeFailed, match="managed by unknown"):
        run(host, FLUSH)
    assert host.mutations == []


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        ("", {"traceflag3979": "on", "traceflag3982": "on"}, "contradict each other"),
        ("[traceflag]\ntraceflag = 3982\n", {"traceflag3979": "on"}, "contradict each other"),
        (WRONG, {"traceflag3979": "on"}, "observed writethrough 0 at the next start, expected 1"),
        ("[control]\nwritethrough = false\n", {"alternatewritethrough": "1"}, "observed writethrough false"),
        (
            "[control]\nwritethrough = 1\nwritethrough = 0\n",
            {"traceflag3979": "off"},
            "observed writethrough unknown",
        ),
        ("x = 1\n", {"writethrough": "1"}, "observed nothing that counts .*section"),
    ],
)
def test_what_would_lose_commits_or_cannot_be_read_is_refused(
    text: str, wanted: dict[str, str], message: str
) -> None:
    host = with_mssql(text)
    with pytest.raises(ChangeFailed, match=message):
        plan(host, [Target("mssql", wanted)])
    assert host.mutations == []


def test_a_flag_on_the_command_line_is_not_ours_to_take_away() -> None:
    host = with_mssql(argv=("-T3979",))
    with pytest.raises(ChangeFailed, match="command line"):
        run(host, FLUSH)
    assert host.mutations == []


@pytest.mark.fact(28)
def test_a_contradiction_that_was_there_keeps_nothing_else_from_being_mended() -> None:
    host = with_mssql(WRONG, argv=("-T3982",))
    assert run(host, {"writethrough": "1"}) == [("writethrough", "persisted", "0", "1")]


def test_an_instance_that_is_not_there() -> None:
    with pytest.raises(ChangeFailed, match="no such instance; expected one of those that are here: none"):
        plan(VendorHost(), [Target("mssql", FLUSH)])
    assert plan(VendorHost(), []).changes == ()


def test_a_tool_that_changes_nothing_is_found_out() -> None:
    host = with_mssql(WRONG)
    host.broken = True
    with pytest.raises(ChangeFailed, match=r"writethrough \(persisted\): observed 0, expected 1"):
        run(host, FLUSH, restart=True)
    assert RESTART not in host.mutations


@pytest.mark.fact(28)
def test_owner_and_mode_have_to_stay() -> None:
    host = with_mssql(WRONG)
    host.chowns = True
    with pytest.raises(ChangeFailed, match="observed owner and mode 0:0 660, expected 998:998 660 as before"):
        run(host, FLUSH)
    # It is on the disk all the same.
    assert commands(host)[-1] == ("sync", CONF)


def test_a_stopped_server_is_set_for_its_next_start() -> None:
    host = with_mssql(WRONG)
    host.end(50)
    host.files[f"/lib/systemd/system/{MSSQL_UNIT}"] = ""
    run(host, FLUSH, restart=True)
    assert settings(host, "persisted") == {**FLUSH, "traceflag3982": "off"}
    assert RESTART not in host.mutations


@pytest.mark.parametrize("step", range(1, 8))
def test_killed_anywhere_it_is_as_safe_as_before_and_a_second_run_ends_it(step: int) -> None:
    host = with_mssql(WRONG, "3979")
    host.stop_at = step
    with pytest.raises(Killed):
        run(host, FLUSH, restart=True)
    host.stop_at = 0
    seen = settings(host, "persisted")
    assert seen["writethrough"] == "1" or seen == {**FUA, "writethrough": "0"}
    run(host, FLUSH, restart=True)
    assert settings(host, "running") == settings(host, "persisted") == {**FLUSH, "traceflag3982": "off"}


def test_release_puts_back_what_was_there() -> None:
    host = with_mssql("[control]\nalternatewritethrough = 0\n")
    before = settings(host, "persisted")
    run(host, {**FLUSH, "traceflag3979": "on"})
    run(host, {"traceflag3979": "off"})
    host.mutations.clear()
    work = plan_release(host)
    assert [change[1:] for change in work.changes] == [
        ("alternatewritethrough", "persisted", "1", "0"),
        ("traceflag3979", "persisted", "off", "off"),
    ]
    assert host.mutations == []
    apply_release(host, work)
    assert settings(host, "persisted") == before
    assert not host.exists(ORIGINALS)
    assert plan_release(host).changes == ()


def test_release_of_what_cannot_be_observed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    host = with_mssql(WRONG)
    run(host, FLUSH)
    host.mutations.clear()

    def fail(*_given: object) -> None:
        raise Unobservable("its place cannot be read")

    monkeypatch.setattr(engine, "observe", fail)
    with pytest.raises(
        ChangeFailed, match=r"mssql: observed no settings .*its place cannot be read.*, expected"
    ):
        plan_release(host)
    assert host.mutations == []


def test_release_unsets_what_was_not_set() -> None:
    host = with_mssql("")
    run(host, {"alternatewritethrough": "0"})
    apply_release(host, plan_release(host))
    assert ("unset", "control.alternatewritethrough") in commands(host)
    assert settings(host, "persisted")["alternatewritethrough"] == "1"


def test_release_of_a_server_that_is_gone_forgets() -> None:
    host = with_mssql(WRONG)
    run(host, FLUSH)
    host.end(50)
    del host.files[TOOL]
    work = plan_release(host)
    assert {change.after for change in work.changes} == {"forgotten"}
    apply_release(host, work)
    assert not host.exists(ORIGINALS)


def test_a_target_of_a_plan() -> None:
    row = {"instance": "mssql", "settings": {"writethrough": "1", "traceflag3979": None}}
    assert target_of(row) == Target("mssql", {"writethrough": "1"})


@pytest.mark.parametrize("owner", ["998:998", "0:0"])
def test_a_tool_that_others_may_change_is_not_run(owner: str) -> None:
    host = with_mssql(WRONG, "3979")
    host.owners.update({HOME: owner, CONF: owner})
    host.uids["/opt/mssql/bin"] = 998
    with pytest.raises(ChangeFailed, match="mssql-conf may be changed by others than root"):
        run(host, FLUSH)
    assert commands(host) == []


@pytest.mark.parametrize(
    "path", ["/opt/mssql/lib/mssql-conf", "/opt/mssql/lib/mssql-conf/mssqlconfhelper.py"]
)
def test_a_tool_whose_modules_others_may_change_is_not_run(path: str) -> None:
    host = with_mssql(WRONG, "3979")
    host.files["/opt/mssql/lib/mssql-conf/mssqlconfhelper.py"] = ""
    host.owners[path] = "998:998"
    host.uids[path] = 998
    with pytest.raises(ChangeFailed, match="may be changed by others than root"):
        run(host, FLUSH)
    assert commands(host) == []


def test_in_root_s_own_directory_mssql_conf_runs_as_root() -> None:
    host = with_mssql(WRONG, "3979")
    host.owners.update({HOME: "0:0", CONF: "0:0"})
    host.on_change = lambda argv: host._mssql_conf(argv[1:]) if argv[0] == TOOL else None  # type: ignore[method-assign]
    run(host, FLUSH)
    assert ("change", TOOL, "set", "control.writethrough", "1") in host.mutations


@pytest.mark.parametrize(
    ("owners", "modes", "message"),
    [
        ({HOME: "0:998"}, {HOME: 0o770}, "observed root's directory that others may change .*mode 0770"),
        ({HOME: "4711:0", CONF: "4711:0"}, {}, "user 4711 has no account"),
    ],
)
def test_mssql_conf_runs_as_the_owner_of_its_file_or_not_at_all(
    owners: dict[str, str], modes: dict[str, int], message: str
) -> None:
    host = with_mssql(WRONG, "3979")
    host.owners.update(owners)
    host.modes.update(modes)
    with pytest.raises(ChangeFailed, match=message):
        run(host, FLUSH)
    assert commands(host) == []


@pytest.mark.parametrize("seconds", [1, 3])
def test_a_server_that_ends_after_its_restart_is_a_failure(seconds: int) -> None:
    host = with_mssql(WRONG, "3979")
    host.files[f"/lib/systemd/system/{MSSQL_UNIT}"] = ""
    host.ends = seconds
    with pytest.raises(ChangeFailed, match="mssql mssql: not running after a restart"):
        run(host, FLUSH, restart=True)


def test_a_restart_is_waited_for_also_where_nothing_can_be_seen_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, seen = with_mssql(WRONG, "3979"), iter([False] * 3)

    def instances(given: VendorHost, module: Any) -> Any:
        if RESTART in host.mutations and not next(seen, True):
            raise Unobservable("gone")
        return found(given, module)

    found = servers.instances
    monkeypatch.setattr(servers, "instances", instances)
    run(host, FLUSH, restart=True)
    assert settings(host, "running") == settings(host, "persisted")


def test_a_flag_goes_before_the_one_that_it_contradicts_comes() -> None:
    host = with_mssql("[traceflag]\ntraceflag = 3979\n", "3979")
    run(host, {"traceflag3979": "off", "traceflag3982": "on"})
    assert commands(host)[:2] == [("traceflag", "3979", "off"), ("traceflag", "3982", "on")]


def test_originals_are_kept_where_nobody_can_tell_whether_the_server_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = with_mssql(WRONG)
    run(host, FLUSH)

    def fail(*_given: object) -> None:
        raise Unobservable("no answer within 10 s")

    monkeypatch.setattr(engine, "find", fail)
    host.end(50)
    with pytest.raises(Unobservable, match='mssql: the search for its instances failed: "no answer'):
        plan_release(host)


def test_mssql_conf_is_not_run_where_its_file_is_a_link() -> None:
    """The program writes where a link leads."""
    host = with_mssql()
    host.files["/etc/x.conf"] = host.files.pop(CONF)
    host.links[CONF] = "/etc/x.conf"
    with pytest.raises(ChangeFailed, match="observed a link to /etc/x"):
        run(
            host,
            {
                "writethrough": "1",
                "alternatewritethrough": "0",
                "traceflag3979": "off",
                "traceflag3982": "on",
            },
        )
    assert commands(host) == []


#: Reads its file, waits until somebody has put a link there, and writes.
_SLOW = """#!/bin/sh
text=$(cat {conf})
rm {conf} && ln -s {secret} {conf}
printf '%s\\n%s\\n' "$text" "$*" > {conf}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")
def test_a_link_that_comes_while_mssql_conf_writes_leads_nowhere_its_owner_may_not_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = pwd.getpwnam("daemon")
    with tempfile.TemporaryDirectory(dir="/var") as name:
        top, home = Path(name), Path(name) / "mssql"
        top.chmod(0o755)
        home.mkdir(mode=0o770)
        conf, secret, tool = home / "mssql.conf", top / "secret", top / "mssql-conf"
        conf.write_text("[control]\n")
        secret.write_text("root's own\n")
        secret.chmod(0o600)
        tool.write_text(_SLOW.format(conf=conf, secret=secret))
        tool.chmod(0o755)
        for path in (home, conf):
            os.chown(path, user.pw_uid, user.pw_gid)
        monkeypatch.setattr(mssql_conf, "HOME", str(home))
        monkeypatch.setattr(mssql_conf, "CONFIG", str(conf))
        monkeypatch.setattr(mssql_conf, "PATH", str(tool))
        with pytest.raises(ChangeFailed, match="ermission denied"):
            layer._write(Host(), {"writethrough": "1"})
        assert secret.read_text() == "root's own\n"
        conf.unlink()
        tool.write_text(f"#!/bin/sh\nid -un > {conf}\n")
        layer._write(Host(), {"writethrough": "1"})
        assert conf.read_text() == "daemon\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as others")
def test_a_real_file_of_root_is_given_to_the_server_s_user_and_written_by_that_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = pwd.getpwnam("daemon")
    fresh = reader.Reader()
    monkeypatch.setattr(seam, "_READER", fresh)
    monkeypatch.setattr(foreign, "are_links_protected", lambda: True)
    with tempfile.TemporaryDirectory(dir="/var") as name:
        top, home = Path(name), Path(name) / "mssql"
        top.chmod(0o755)
        home.mkdir(mode=0o770)
        os.chown(home, user.pw_uid, user.pw_gid)
        conf, tool, links = home / "mssql.conf", top / "mssql-conf", top / "links"
        conf.write_text("[EULA]\naccepteula = Y\n")
        conf.chmod(0o644)
        links.write_text("1\n")
        tool.write_text(f"#!/bin/sh\nid -un >> {conf}\n")
        tool.chmod(0o755)
        for attribute, path in (("HOME", home), ("CONFIG", conf), ("PATH", tool), ("_LINKS", links)):
            monkeypatch.setattr(mssql_conf, attribute, str(path))
        (given,) = layer._given(Host())
        assert given[2:] == ("persisted", "0:0", f"{user.pw_uid}:{user.pw_gid}")
        layer._write(Host(), {"writethrough": "1", mssql_conf.OWNER: "x"})
        assert conf.read_text() == "[EULA]\naccepteula = Y\ndaemon\n"
        status = conf.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (user.pw_uid, user.pw_gid, 0o644)
        assert layer._given(Host()) == []
    fresh._abandon()


@pytest.mark.parametrize("value", ["", "--help", "1; x", "x" * 500])
def test_a_value_that_is_not_ours_is_never_handed_to_mssql_conf_by_release(value: str) -> None:
    """The owner of mssql.conf can write any text there."""
    host = with_mssql(f"[control]\nwritethrough = {value}\n")
    run(host, FLUSH)
    host.mutations.clear()
    apply_release(host, plan_release(host))
    assert ("unset", "control.writethrough") in commands(host)
    assert not [argv for argv in commands(host) if argv[:2] == ("set", "control.writethrough")]


#: As Microsoft's permissions guide lists them: the directory mssql:mssql 0770, mssql.conf root:root 0644.
DOCUMENTED: dict[str, Any] = {"owners": {HOME: "998:998", CONF: "0:0"}, "modes": {HOME: 0o770, CONF: 0o644}}
GIVEN = (mssql_conf.OWNER, "persisted", "0:0", "998:998")


def documented(text: str = WRONG, **changed: Any) -> VendorHost:
    """Return a host with the owners and modes of the vendor's guide."""
    host = with_mssql(text, "3979")
    host.owners.update(DOCUMENTED["owners"])
    host.modes.update({**DOCUMENTED["modes"], **changed.get("modes", {})})
    return host


def test_the_documented_owner_of_mssql_conf_is_changed_before_mssql_conf_writes_and_the_plan_lists_it() -> (
    None
):
    host = documented()
    planned = plan(host, [Target("mssql", FLUSH)]).changes
    assert planned[0][1:] == GIVEN
    assert host.mutations == []
    assert run(host, FLUSH) == [change[1:] for change in planned]
    assert [each for each in host.mutations if each[0] in ("give", "change")][:2] == [
        ("give", CONF, "998:998"),
        ("change", *AS_MSSQL, TOOL, "set", "control.writethrough", "1"),
    ]
    assert settings(host, "persisted") == {**FLUSH, "traceflag3982": "off"}
    # What runs stays known: it was noted before the owner changed.
    assert settings(host, "running")["writethrough"] == "0"
    host.mutations.clear()
    assert run(host, FLUSH) == []
    assert host.mutations == []


def test_facts_name_the_change_of_the_owner_only_while_it_is_necessary() -> None:
    host = documented()
    row = facts(host)["settings"]["writethrough"]
    assert (row["owner_of"], row["owner"], row["owner_wanted"], row["held"]) == (*GIVEN[:1], *GIVEN[2:], None)
    run(host, FLUSH)
    assert "owner_of" not in facts(host)["settings"]["writethrough"]


def test_a_file_of_another_user_that_the_server_can_write_keeps_its_owner() -> None:
    host = documented(modes={CONF: 0o664})
    host.owners[CONF] = "0:998"
    assert GIVEN[0] not in [change[0] for change in run(host, FLUSH)]
    assert not [each for each in host.mutations if each[0] == "give"]
    assert settings(host, "persisted")["writethrough"] == "1"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda host: host.modes.update({CONF: 0o600}),
            r"expected 998:998; the server cannot read it \(mode 0600\); check its content, run chown -h 998:998",
        ),
        (
            lambda host: host.files.update({"/proc/sys/fs/protected_hardlinks": "0\n"}),
            "only with fs.protected_hardlinks 1",
        ),
        (lambda host: host.files.pop("/proc/sys/fs/protected_hardlinks"), "protected_hardlinks"),
        (lambda host: setattr(host, "hard_links", 2), "no regular file with one name"),
    ],
)
def test_an_owner_that_cannot_be_set_safely_is_refused_with_the_command(spoil: Any, message: str) -> None:
    host = documented()
    spoil(host)
    with pytest.raises(ChangeFailed, match=message):
        run(host, FLUSH)
    assert host.mutations == []
    assert facts(host)["settings"]["writethrough"]["held"]


def test_a_file_that_comes_after_the_assessment_is_not_given_to_the_server() -> None:
    host = documented()
    found = mssql_conf.ownership(host)
    assert found
    host.owners[CONF] = "7:7"
    with pytest.raises(ChangeFailed, match="another file is there"):
        host.give_file(CONF, found.status, found.user, found.group)


def test_release_leaves_the_owner_and_says_so() -> None:
    host = documented()
    run(host, FLUSH)
    host.mutations.clear()
    work = plan_release(host)
    assert work.warnings == (
        f"{CONF} stays with the server's user. It belonged to 0:0 before the first run.",
    )
    apply_release(host, work)
    assert host.owners[CONF] == "998:998"
    assert not [each for each in host.mutations if each[0] == "give"]
    assert not host.exists(ORIGINALS)


def test_release_sets_the_owner_again_if_it_is_wrong_again() -> None:
    host = documented()
    run(host, FLUSH)
    host.owners[CONF] = "0:0"
    work = plan_release(host)
    assert work.changes[0][1:] == GIVEN
    apply_release(host, work)
    assert settings(host, "persisted")["writethrough"] == "0"
