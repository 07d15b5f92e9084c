# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power layer: single directives, the hook before its caller, no password told, and release to the byte.

The texts are written after upsmon.conf(5), nut.conf(5) and apccontrol(8).
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import CHAINED, HOOK, UNIT
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.ups import (
    apcupsd,
    apcupsd_scripts,
    hook,
    nut,
    upsmon_conf,
)
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as power

from ..fakes.fake_host import Killed
from ..fakes.nut_host import NUT_CONF, SECRET, TEXT, UPSMON, ApcHost, MonitorHost, NutHost

GUARD = {"notify_command": HOOK, "notify_flags": "EXEC"}
MONITOR = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}


def targets(*rows: dict[str, Any]) -> list[power.Target]:
    return [power.target_of(row) for row in rows]


def run(host: MonitorHost, *rows: dict[str, Any], password: str = "") -> power.Work:
    work = power.plan(host, targets(*rows), password)
    assert host.mutations == []
    power.apply(host, work, targets(*rows))
    return work


def release(host: MonitorHost) -> power.Work:
    host.mutations.clear()
    work = power.plan_release(host)
    assert host.mutations == []
    power.apply_release(host, work)
    return work


def settings(work: power.Work) -> list[str]:
    return [change.setting for change in work.changes]


def test_every_event_wakes_the_guard_and_the_rest_stays() -> None:
    host = NutHost()
    run(host, GUARD)
    lines = upsmon_conf.parse(host.files[UPSMON])
    assert {event: "+".join(upsmon_conf.flags(lines, event)) for event in (*upsmon_conf.EVENTS, "OVER")} == {
        **dict.fromkeys(upsmon_conf.EVENTS, "SYSLOG+WALL+EXEC"),
        "ONLINE": "EXEC",
        "OVER": "SYSLOG+EXEC",
    }
    value = upsmon_conf.value(lines, "NOTIFYCMD")
    assert value and value.value == HOOK
    kept = [
        line for line in TEXT.split("\n") if not line.startswith(("NOTIFYFLAG ONLINE", "NOTIFYFLAG OVER"))
    ]
    assert [line for line in host.files[UPSMON].split("\n") if line in kept] == kept
    assert host.files[HOOK] == hook.TEXT
    assert host.modes[HOOK] == 0o755


@pytest.mark.parametrize("kind", [NutHost, ApcHost])
def test_the_facts_find_that_every_event_reaches_the_guard(kind: type[MonitorHost]) -> None:
    host = kind()
    see = nut.see if kind is NutHost else apcupsd.see
    before: list[str] = []
    after: list[str] = []
    for found in (before, after):
        found += [each.state for each in see(host).conditions if each.name == "notify_reaches_guard"]
        if found is before:
            host.mutations.clear()
            run(host, GUARD)
    assert (before, after) == (["unmet"], ["met"])


def test_a_second_run_finds_nothing_to_do() -> None:
    host = NutHost()
    run(host, GUARD)
    assert power.plan(host, targets(GUARD)) == power.Work()._replace(warnings=())


@pytest.mark.parametrize("made", [NutHost, ApcHost])
@pytest.mark.parametrize(
    ("path", "mode", "uid"), [("/usr/local/lib", 0o42775, 0), ("/etc", 0o40755, 1000), (HOOK, 0o100755, 1000)]
)
def test_a_hook_that_others_than_root_may_change_is_not_given_to_the_monitor(
    made: type[MonitorHost], path: str, mode: int, uid: int
) -> None:
    host = made()
    host.files["/usr/local/lib/python3/x"] = ""
    if path == HOOK:
        host.files[HOOK] = hook.TEXT
    host.modes[path], host.uids[path] = mode, uid
    with pytest.raises(ChangeFailed, match="others than root"):
        power.plan(host, targets({"notify_command": HOOK}))
    assert host.mutations == []


def test_the_hook_is_there_before_its_caller_and_the_original_before_all() -> None:
    host = NutHost(TEXT + "NOTIFYCMD /usr/sbin/upssched\n")
    run(host, GUARD)
    places = [mutation[1] for mutation in host.mutations if mutation[0] == "file"]
    assert places == [power.ORIGINALS, HOOK, CHAINED, UPSMON]
    assert host.mutations[-1] == ("change", "systemctl", "restart", "--", "nut-monitor.service")


def test_the_command_that_was_there_is_run_on() -> None:
    host = NutHost(TEXT + 'NOTIFYCMD "/usr/local/bin/tell them"\n')
    run(host, GUARD)
    assert host.files[CHAINED] == "/usr/local/bin/tell them\n"
    release(host)
    assert host.files[UPSMON] == TEXT + 'NOTIFYCMD "/usr/local/bin/tell them"\n'
    assert CHAINED not in host.files


def test_a_command_with_a_password_is_readable_by_upsmon_alone() -> None:
    host = NutHost(TEXT + 'NOTIFYCMD "/usr/bin/mail --password t0p"\n')
    run(host, GUARD)
    acts = [mutation for mutation in host.mutations if CHAINED in mutation]
    group, mode = ("change", "chgrp", "--", "nut", CHAINED), ("change", "chmod", "0640", "--", CHAINED)
    # Empty and closed, then open to the group, then with its content.
    written = b"/usr/bin/mail --password t0p\n"
    assert acts == [("file", CHAINED, b""), group, mode, ("file", CHAINED, written)]
    assert host.modes[CHAINED] == 0o640
    host.modes[CHAINED] = 0o644
    host.mutations.clear()
    run(host, GUARD)
    assert [mutation for mutation in host.mutations if CHAINED in mutation] == [group, mode]
    assert host.modes[CHAINED] == 0o640


def test_release_takes_the_directories_away_in_which_nothing_is_left() -> None:
    host = NutHost(TEXT + "NOTIFYCMD /first\n")
    # The fake knows a directory by what lies in it.
    host.files["/usr/local/lib/durable-dbhost/bin/other"] = host.files["/etc/durable-dbhost/other"] = ""
    run(host, GUARD)
    release(host)
    gone = [change[2:] for change in host.mutations if change[:2] == ("change", "rmdir")]
    assert gone == [
        ("--ignore-fail-on-non-empty", path)
        for path in (
            "/usr/local/lib/durable-dbhost/bin",
            "/usr/local/lib/durable-dbhost",
            "/etc/durable-dbhost",
        )
    ]


def test_a_command_that_somebody_set_since_is_the_one_to_run_on() -> None:
    host = NutHost(TEXT + "NOTIFYCMD /first\n")
    run(host, GUARD)
    host.files[UPSMON] = upsmon_conf.set_value(host.files[UPSMON], "NOTIFYCMD", "/second", "x")
    host.mutations.clear()
    run(host, GUARD)
    assert host.files[CHAINED] == "/second\n"
    release(host)
    assert "NOTIFYCMD /second\n" in host.files[UPSMON]


def test_a_command_that_cannot_be_run_on_is_refused() -> None:
    with pytest.raises(ChangeFailed, match="observed 'mail root', expected an absolute path"):
        power.plan(NutHost(TEXT + 'NOTIFYCMD "mail root"\n'), targets(GUARD))


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("shutdown_command", "/sbin/shutdown -P now", 'SHUTDOWNCMD "/sbin/shutdown -P now"'),
        ("powerdown_flag", "/run/killpower", "POWERDOWNFLAG /run/killpower"),
        ("final_delay", 30, "FINALDELAY 30"),
        ("host_sync", 60, "HOSTSYNC 60"),
    ],
)
def test_a_setting_is_one_directive_and_comes_back(name: str, value: Any, line: str) -> None:
    host = NutHost()
    work = run(host, {name: value})
    assert settings(work) == [line.split()[0], "nut-monitor.service"]
    assert line in host.files[UPSMON].split("\n")
    release(host)
    assert host.files[UPSMON] == TEXT
    assert power.ORIGINALS not in host.files


def test_a_monitor_is_added_with_its_mode_and_no_word_tells_the_password() -> None:
    host = NutHost(TEXT, "none")
    row = {**MONITOR, "system": "other@up.example.com", "type": "secondary"}
    work = run(host, {"monitor": row}, password='t0p "secret')
    assert 'MONITOR other@up.example.com 1 upsmon "t0p \\"secret" slave' in host.files[UPSMON]
    assert "MODE=netclient" in host.files[NUT_CONF]
    assert "secret" not in str([work.changes, work.warnings])
    assert host.modes[power.ORIGINALS] == 0o600
    release(host)
    assert (host.files[UPSMON], host.files[NUT_CONF]) == (TEXT, "# nut.conf\nMODE=none\n")


def test_a_password_that_is_there_is_kept_and_so_is_the_word_for_primary() -> None:
    host = NutHost()
    run(host, {"monitor": {**MONITOR, "power_value": 2}})
    assert f'MONITOR rack@localhost 2 upsmon "{SECRET}" primary' in host.files[UPSMON]
    release(host)
    assert host.files[UPSMON] == TEXT


def test_a_new_monitor_without_a_password_is_refused() -> None:
    with pytest.raises(ChangeFailed, match="observed no password"):
        power.plan(NutHost(), targets({"monitor": {**MONITOR, "system": "a@b"}}))


def test_two_changes_of_a_password_show_neither() -> None:
    host = NutHost()
    work = run(host, {"monitor": MONITOR}, password="another")
    (change, _restart) = work.changes
    assert change.before == change.after == "rack@localhost 1 upsmon ******** primary"
    assert "another" in host.files[UPSMON]


def test_a_mode_that_was_chosen_is_not_changed() -> None:
    host = NutHost(mode="netserver")
    run(host, {"monitor": {**MONITOR, "power_value": 2}})
    assert "MODE=netserver" in host.files[NUT_CONF]
    with pytest.raises(ChangeFailed, match="observed MODE=netserver, expected standalone"):
        power.plan(host, targets({"mode": "standalone"}))


def test_a_file_of_passwords_is_closed_before_it_is_written() -> None:
    host = NutHost()
    host.modes[UPSMON] = 0o644
    run(host, {"final_delay": 9}, {"monitor": MONITOR}, password="another")
    acts = [mutation[:2] if mutation[0] == "file" else mutation for mutation in host.mutations]
    closed = acts.index(("change", "chmod", "0640", "--", UPSMON))
    assert acts.index(("change", "chgrp", "--", "nut", UPSMON)) < closed < acts.index(("file", UPSMON))
    assert host.modes[UPSMON] == 0o640


def test_a_monitor_that_restarts_repeatedly_fails_the_run() -> None:
    """It is active at each check, each time as another process."""

    class Restarting(NutHost):
        """A host whose monitor has another process at each check after its restart."""

        def _shown(self, name: str) -> str:
            if self.began.get(name, 0) > 100:
                self.pids[name] += 1
            return super()._shown(name)

    with pytest.raises(ChangeFailed, match="starting again and again"):
        run(Restarting(), GUARD)


def test_a_monitor_that_does_not_become_active_fails_the_run() -> None:
    class Starting(NutHost):
        """A host whose monitor has a process, and stays in the state activating."""

        def _shown(self, name: str) -> str:
            said = super()._shown(name)
            return said if self.began.get(name, 0) == 100 else said.replace("=active\n", "=activating\n")

    with pytest.raises(ChangeFailed, match="expected it up"):
        run(Starting(), GUARD)


def test_changes_are_verified() -> None:
    host = NutHost()
    write = host._write
    host._write = lambda path, text: None if path == UPSMON else write(path, text)  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=f"NOTIFYCMD .*expected {HOOK}"):
        run(host, GUARD)


def test_a_command_that_other_users_can_change_is_not_given_to_apcupsd() -> None:
    """apcupsd runs its event scripts, and so this command, as root."""
    host = ApcHost()
    host.files["/opt/site/notify"] = "#!/bin/sh\n"
    run(host, {"notify_command": "/opt/site/notify"})
    host = ApcHost()
    host.files["/opt/site/notify"], host.uids["/opt/site/notify"] = "#!/bin/sh\n", 1000
    with pytest.raises(ChangeFailed, match="others than root"):
        power.plan(host, targets({"notify_command": "/opt/site/notify"}))
    assert host.mutations == []


def test_a_monitor_that_has_not_read_its_file_is_restarted() -> None:
    host = NutHost()
    run(host, GUARD)
    host.began["nut-monitor.service"] = 1
    host.mutations.clear()
    work = run(host, GUARD)
    assert [(change.setting, change.when) for change in work.changes] == [("nut-monitor.service", "running")]
    assert [mutation[0] for mutation in host.mutations] == ["change"]


@pytest.mark.parametrize("step", range(1, 6))
def test_a_run_that_is_killed_is_made_good_by_the_next(step: int) -> None:
    text = TEXT + "NOTIFYCMD /first\n"
    host = NutHost(text)
    host.stop_at = step
    with pytest.raises(Killed):
        run(host, GUARD)
    host.stop_at = 0
    host.mutations.clear()
    # The hook that is called is there, and so is the command that it has to run on.
    if HOOK in host.files[UPSMON]:
        assert (host.files[HOOK], host.files[CHAINED]) == (hook.TEXT, "/first\n")
    run(host, GUARD)
    assert not power.plan(host, targets(GUARD)).changes
    release(host)
    assert host.files[UPSMON] == text


def test_a_monitor_that_does_not_come_up_fails_the_run() -> None:
    host = NutHost()
    host.dies = True
    with pytest.raises(ChangeFailed, match="observed it down, or starting again and again"):
        run(host, GUARD)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('MONITOR a@b 1 u "open\n', "a quote that cannot be read"),
        ("MONITOR a@b 1 topsecret\n", "MONITOR with 3 values"),
        ("MONITOR a@b 0 u topsecret slave\n", "power values of 0 in all and MINSUPPLIES 1"),
        ("MONITOR a@b 1 u topsecret slave\nMINSUPPLIES 2\n", "power values of 1 in all and MINSUPPLIES 2"),
        ("MONITOR a@b 1 u topsecret slave\nMINSUPPLIES x\n", "MINSUPPLIES x"),
    ],
)
def test_a_configuration_with_which_upsmon_would_end_is_refused(text: str, seen: str) -> None:
    host = NutHost(text)
    with pytest.raises(ChangeFailed) as refused:
        power.plan(host, targets(GUARD))
    assert seen in str(refused.value)
    assert "expected" in str(refused.value)
    assert "topsecret" not in str(refused.value)


def test_what_upsmon_passes_over_is_a_warning() -> None:
    work = power.plan(NutHost(TEXT + "FINALDELY 5\n"), targets(GUARD))
    assert work.warnings == (
        f"{UPSMON} line 10: observed a directive that upsmon does not know; expected one of upsmon.conf(5), in capitals;"
        " upsmon passes it over",
    )


def test_a_powerdown_flag_that_nothing_reads_is_a_warning() -> None:
    host = NutHost()
    del host.files["/lib/systemd/system-shutdown/nutshutdown"]
    (warning,) = power.plan(host, targets({"powerdown_flag": "/run/killpower"})).warnings
    assert "observed no program of NUT's in systemd's system-shutdown" in warning


@pytest.mark.parametrize(("path", "mode"), [("/etc/nut", 0o777), (UPSMON, 0o666)])
def test_a_file_that_others_may_change_is_not_written(path: str, mode: int) -> None:
    host = NutHost()
    host.modes[path] = mode
    with pytest.raises(ChangeFailed, match="expected a file that only root"):
        power.plan(host, targets(GUARD))


@pytest.mark.parametrize("services", [(), ("nut-monitor.service", "apcupsd.service")])
def test_none_or_two_monitors_are_refused(services: tuple[str, ...]) -> None:
    host = MonitorHost(services)
    host.files[UPSMON] = TEXT
    host.files["/etc/apcupsd/apcupsd.conf"] = ""
    with pytest.raises(ChangeFailed, match="monitor of the UPS: observed"):
        power.plan(host, targets(GUARD))


def test_the_one_that_runs_is_meant() -> None:
    host = NutHost()
    host.services["apcupsd.service"] = "inactive"
    host.files["/etc/apcupsd/apcupsd.conf"] = ""
    assert (power.find(host).name, power.find(host).unit) == ("nut", "nut-monitor.service")


def test_a_host_that_cannot_be_asked_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    host = NutHost()
    monkeypatch.setattr(power.units, "show", lambda *_: ({}, "systemctl: no answer within 10 s"))
    with pytest.raises(ChangeFailed, match="no answer"):
        power.plan(host, targets(GUARD))


@pytest.mark.parametrize(
    "row",
    [
        {"shutdown_command": "true"},
        {"shutdown_command": "upsdrvctl --password=hunter2"},
        {"notify_command": "tell"},
        {"final_delay": -1},
        {"monitor": {**MONITOR, "system": "a b"}},
        {"monitor": {**MONITOR, "system": "a@b c"}},
        {"monitor": {**MONITOR, "power_value": -1}},
    ],
)
def test_values_that_no_monitor_takes_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ChangeFailed, match="expected") as error:
        power.target_of(row)
    assert "hunter2" not in str(error.value)


def test_two_words_for_one_setting_are_refused() -> None:
    with pytest.raises(ChangeFailed, match="two different values"):
        power.plan(NutHost(), targets({"final_delay": 5}, {"final_delay": 6}))


def test_nothing_wanted_asks_nothing() -> None:
    host = MonitorHost(())
    assert power.plan(host, []) == power.Work()
    assert power.plan_release(host) == power.Work()
    assert host.asked == []


def test_the_hook_stays_for_a_guard_that_is_there() -> None:
    host = NutHost()
    run(host, GUARD)
    host.files[UNIT] = "[Unit]\n"
    release(host)
    assert HOOK in host.files
    assert host.files[UPSMON] == TEXT


def test_the_monitor_has_forgotten_the_hook_before_it_goes() -> None:
    host = NutHost()
    run(host, GUARD)
    release(host)
    kinds = [mutation[:2] if mutation[0] != "change" else mutation[:3] for mutation in host.mutations]
    assert kinds.index(("file", UPSMON)) < kinds.index(("change", "systemctl", "restart"))
    assert kinds.index(("change", "systemctl", "restart")) < kinds.index(("remove", HOOK))
    assert kinds[-1] == ("remove", power.ORIGINALS)


def test_apcupsd_s_scripts_are_kept_and_run_on() -> None:
    host = ApcHost()
    before = dict(host.files)
    work = run(host, GUARD)
    assert settings(work) == [HOOK, *apcupsd_scripts.EVENTS]
    assert not [mutation for mutation in host.mutations if mutation[0] == "change"]
    for event in apcupsd_scripts.EVENTS:
        assert host.files[f"/etc/apcupsd/{event}"] == apcupsd_scripts.script(event)
        assert host.modes[f"/etc/apcupsd/{event}"] == 0o755
    assert host.files[f"{apcupsd_scripts.CHAINED_SCRIPTS}/onbattery"] == before["/etc/apcupsd/onbattery"]
    assert not power.plan(host, targets(GUARD)).changes
    release(host)
    assert dict(host.files) == before


def test_a_script_that_was_not_run_is_not_run_by_ours_and_comes_back_so() -> None:
    host = ApcHost()
    host.modes["/etc/apcupsd/onbattery"] = 0o644
    run(host, GUARD)
    assert host.modes[f"{apcupsd_scripts.CHAINED_SCRIPTS}/onbattery"] == 0o644
    release(host)
    assert host.modes["/etc/apcupsd/onbattery"] == 0o644


def test_an_upgrade_that_put_its_script_back_is_taken_over_again() -> None:
    host = ApcHost()
    run(host, GUARD)
    host.files["/etc/apcupsd/onbattery"] = "#!/bin/sh\nnew\n"
    host.mutations.clear()
    work = run(host, GUARD)
    assert settings(work) == ["onbattery"]
    assert host.files[f"{apcupsd_scripts.CHAINED_SCRIPTS}/onbattery"] == "#!/bin/sh\nnew\n"


@pytest.mark.parametrize("event", ["onbattery", "failing"])
def test_release_preserves_a_script_that_was_changed_since(event: str) -> None:
    host = ApcHost()
    run(host, GUARD)
    path = f"/etc/apcupsd/{event}"
    host.files[path] = "#!/bin/sh\nnew\n"
    release(host)
    assert host.files[path] == "#!/bin/sh\nnew\n"
    assert f"{apcupsd_scripts.CHAINED_SCRIPTS}/{event}" not in host.files


@pytest.mark.parametrize("step", range(1, 8))
def test_a_killed_run_never_loses_a_script_of_apcupsd_s(step: int) -> None:
    host = ApcHost()
    before = dict(host.files)
    host.stop_at = step
    with pytest.raises(Killed):
        run(host, GUARD)
    host.stop_at = 0
    host.mutations.clear()
    run(host, GUARD)
    release(host)
    assert dict(host.files) == before


def test_settings_that_apcupsd_does_not_have_are_refused() -> None:
    with pytest.raises(ChangeFailed, match="observed final_delay, expected settings that apcupsd has"):
        power.plan(ApcHost(), targets(GUARD, {"final_delay": 5}))


def test_scripts_lie_where_apcupsd_looks_for_them() -> None:
    host = ApcHost()
    host.files["/etc/apcupsd/apcupsd.conf"] = "SCRIPTDIR /etc/apcupsd/scripts\n"
    host.files["/etc/apcupsd/scripts/apccontrol"] = "#!/bin/sh\n"
    run(host, GUARD)
    assert host.files["/etc/apcupsd/scripts/onbattery"] == apcupsd_scripts.script("onbattery")


def test_the_first_original_is_the_one_that_comes_back() -> None:
    host = NutHost()
    for seconds in (30, 60):
        host.mutations.clear()
        run(host, {"final_delay": seconds}, {"powerdown_flag": f"/run/{seconds}"})
    release(host)
    assert host.files[UPSMON] == TEXT


def test_our_script_that_may_not_be_run_any_more_is_mended() -> None:
    host = ApcHost()
    run(host, GUARD)
    host.modes["/etc/apcupsd/failing"] = 0o644
    host.mutations.clear()
    assert settings(run(host, GUARD)) == ["failing"]
    assert host.modes["/etc/apcupsd/failing"] == 0o755


def test_the_command_in_a_script_of_apcupsd_s_is_one_word_to_the_shell() -> None:
    text = apcupsd_scripts.script("onbattery", "/usr/bin/x; touch /tmp/evil\nid")
    assert "'/usr/bin/x; touch /tmp/evil\nid' \"$@\"" in text
    assert f" {HOOK} " in apcupsd_scripts.script("onbattery")
