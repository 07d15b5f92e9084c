# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power_guard layer: what it writes, in which order, and what it takes away."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import program
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import (
    HOOK,
    LEASE,
    LIBRARY,
    PROGRAM,
    RUNTIME,
    SERVICE,
    STATE,
    UNIT,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.program import interpreter
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import (
    installed,
    lease,
    state,
    unit,
)
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.apply import (
    apply,
    apply_release,
    plan,
    plan_release,
)

from ...fakes.small_host import BOOT_ID, SmallHost

PG, MS, MA = "/srv/pgdata", "/srv/mssql", "/srv/maria"
TERMS: dict[str, Any] = {
    "expires": "9999-12-31",
    "quiet": 300,
    "needed": {"durability": 90.0, "clean_stop": 240.0},
    "test_ups": False,
    "units": ["postgresql@15-main.service"],
}
LEASED = lease.Lease((lease.Leased(PG, ""),), "2026-01-01", "9999-12-31", 300, {}, False, ())
PID, START = 4711, 5


class GuardHost(SmallHost):
    """A small host whose service manager knows the guard, and little else.

    `comes_up` is the state in which a guard comes up; `leaves` what it leaves barriers at when it is
    stopped.
    """

    comes_up = state.TIGHT
    leaves = "on"

    def __init__(self) -> None:
        super().__init__()
        self.files["/proc/uptime"] = "1000.00 1.00\n"
        self.files[interpreter()] = ""

    def runs(self) -> bool:
        return f"/proc/{PID}/stat" in self.files

    def _systemctl(self, argv: list[str]) -> None:
        words = [word for word in argv[1:] if word != "--quiet"]
        if words == ["daemon-reload"] or words == ["reset-failed", "durable-dbhost-guard.*"]:
            return
        assert words[-1] == SERVICE, argv
        if words[0] == "stop":
            self.end()
        if words[0] == "enable":
            self.files[unit.WANTED_BY] = ""
        if words[0] == "disable":
            self.files.pop(unit.WANTED_BY, None)
        if words[0] == "start":
            assert not self.runs()
            assert {LEASE, PROGRAM, UNIT} <= set(self.files)
            self.files[f"/proc/{PID}/stat"] = f"{PID} (x) S 1 {'0 ' * 17}{START} 0\n"
            self.say(self.comes_up)

    def say(self, word: str) -> None:
        below = {PG: state.Below("8:1", ("sda",))}
        self.files[STATE] = state.Record(
            BOOT_ID, PID, START, 999.0, word, "because", "", None, below
        ).render()

    def end(self) -> None:
        if self.files.pop(f"/proc/{PID}/stat", None):
            self.mounts[PG].barrier = self.leaves
            self.say(state.STOPPED if self.leaves == "on" else state.LOOSE)

    def on_change(self, argv: list[str]) -> None:
        if argv[0] == "chmod":
            self.modes[argv[-1]] = int(argv[1], 8)
        elif argv[:2] == ["rm", "-rf"]:
            for path in [path for path in self.files if path.startswith(argv[2])]:
                del self.files[path]
        else:
            super().on_change(argv)

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        if not self.exists(path):
            self.modes[path] = mode
        self.modes.setdefault(posixpath.dirname(path), 0o755)
        super().write_file(path, content, mode, owner)


def run(host: GuardHost, *targets: str, **terms: Any) -> list[tuple[str, str]]:
    """Plan and carry out; return (setting, before) of each change."""
    named = list(targets or (PG,))
    work = plan(host, named, **{**TERMS, **terms})
    if work.changes:
        apply(host, work, named)
    return [(change.setting, change.before) for change in work.changes]


def kinds(host: GuardHost) -> list[str]:
    """Return what each mutation was, in a word or two."""
    found = []
    for act in host.mutations:
        words = [word for word in act[1:] if word != "--quiet"] if act[0] == "change" else [act[0], act[1]]
        found.append(" ".join(words[:2]))
    return found


def test_from_nothing_to_a_guard_that_runs() -> None:
    host = GuardHost()
    assert run(host) == [
        ("guard.pyz", "absent"),
        ("ups-notify", "absent"),
        (SERVICE, "absent"),
        ("lease", "absent"),
        ("enabled", "no"),
        ("state", "absent"),
    ]
    assert kinds(host) == [
        f"file {PROGRAM}",
        f"file {HOOK}",
        f"file {UNIT}",
        f"file {LEASE}",
        "systemctl enable",
        "systemctl daemon-reload",
        "systemctl start",
    ]
    assert {path: host.modes[path] for path in (PROGRAM, HOOK, UNIT, LEASE)} == {
        PROGRAM: 0o644,
        HOOK: 0o755,
        UNIT: 0o644,
        LEASE: 0o600,
    }
    found = lease.read(host)
    assert found is not None
    assert found.mounts == (lease.Leased(PG, host.mounts[PG].uuid),)
    assert installed.read(host) == "current"
    # Barriers are not the layer's to touch.
    assert host.mounts[PG].barrier == "on"


def test_what_is_not_there_and_what_cannot_be_read() -> None:
    host = GuardHost()
    assert installed.read(host) == "absent"
    run(host)
    del host.files[unit.WANTED_BY]
    assert installed.read(host) == "differs"
    for path in (PROGRAM, HOOK, UNIT):
        del host.files[path]
    assert installed.read(host) == "absent"
    host.files[LEASE] = "{"
    assert installed.read(host) == "unknown"


def test_a_second_run_changes_nothing() -> None:
    host = GuardHost()
    run(host)
    host.mutations.clear()
    for word in (state.WAITING, state.LOOSE, state.TIGHT):
        host.say(word)
        assert run(host) == []
    assert host.mutations == []


@pytest.mark.parametrize("path", [PROGRAM, HOOK, UNIT])
def test_what_somebody_changed_is_written_again_while_the_guard_is_stopped(path: str) -> None:
    host = GuardHost()
    run(host)
    host.say(state.LOOSE)
    host.mounts[PG].barrier = "off"
    host.files[path] = host.read(path) + " "
    host.mutations.clear()
    assert installed.read(host) == "differs"
    assert [before for _setting, before in run(host)] == ["differs"]
    acts = kinds(host)
    assert acts.index("systemctl stop") < acts.index(f"file {path}") < acts.index("systemctl start")
    assert (host.mounts[PG].barrier, installed.read(host)) == ("on", "current")


@pytest.mark.parametrize(
    ("terms", "targets"),
    [
        ({"expires": "9999-12-30"}, (PG,)),
        ({"quiet": 301}, (PG,)),
        ({"needed": {"durability": 91.0, "clean_stop": 240.0}}, (PG,)),
        ({"test_ups": True}, (PG,)),
        ({"units": []}, (PG,)),
        ({}, (PG, MA)),
        ({}, (MA,)),
    ],
)
def test_another_lease_is_shown_and_written(terms: dict[str, Any], targets: tuple[str, ...]) -> None:
    host = GuardHost()
    run(host)
    changes = run(host, *targets, **terms)
    assert "lease" in [setting for setting, _before in changes]
    before = dict(changes)["lease"]
    assert before.startswith(f"{PG} ({host.mounts[PG].uuid}) from 2")
    assert run(host, *targets, **terms) == []


def test_the_same_lease_keeps_its_first_day(monkeypatch: pytest.MonkeyPatch) -> None:
    host = GuardHost()
    monkeypatch.setattr(layer.Clock, "today", lambda _clock: "2026-05-01")
    run(host)
    monkeypatch.setattr(layer.Clock, "today", lambda _clock: "2026-05-02")
    assert run(host) == []
    # One from the future would keep barriers on: the clock was wrong when it was written.
    monkeypatch.setattr(layer.Clock, "today", lambda _clock: "2026-04-30")
    assert [setting for setting, _before in run(host)] == ["lease"]


def test_a_file_system_that_was_made_anew_needs_a_lease_of_its_own() -> None:
    host = GuardHost()
    run(host)
    host.mounts[PG].uuid = "ffffffff-55f3-4c1e-9a52-3f4c0a8e7d10"
    assert [setting for setting, _before in run(host)] == ["lease"]


@pytest.mark.parametrize("word", [state.FAILED, state.STOPPED])
def test_a_guard_that_does_not_run_is_started(word: str) -> None:
    host = GuardHost()
    run(host)
    host.say(word)
    if word == state.STOPPED:
        host.end()
    assert run(host) == [("state", word)]
    assert state.read(host)["state"] == state.TIGHT


def test_one_that_comes_up_failed_fails_the_run() -> None:
    host = GuardHost()
    host.comes_up = state.FAILED
    with pytest.raises(ChangeFailed, match=r"observed failed \(because\), expected running"):
        run(host)


@pytest.mark.parametrize(
    ("targets", "terms", "message"),
    [
        ([], {}, "no mount point"),
        ([MS], {}, "/srv/mssql: observed xfs, expected ext4 or ext3"),
        (["/srv/nothing"], {}, "nothing is mounted there"),
        ([PG], {"expires": ""}, "expires: observed ''"),
        ([PG], {"expires": "2020-01-01"}, "expires: the lease ended with 2020-01-01"),
        ([PG], {"needed": None}, "needed: expected seconds"),
        ([PG], {"quiet": -1}, "quiet: observed -1"),
        ([PG], {"units": ["x; reboot"]}, "units: observed"),
    ],
)
def test_what_is_refused_changes_nothing(targets: list[str], terms: dict[str, Any], message: str) -> None:
    host = GuardHost()
    with pytest.raises(ChangeFailed, match=message):
        plan(host, targets, **{**TERMS, **terms})
    assert host.mutations == []


def test_without_systemd_there_is_no_guard() -> None:
    host = GuardHost()
    del host.files["/run/systemd/system/marker"]
    with pytest.raises(ChangeFailed, match="a service of systemd"):
        plan(host, [PG], **TERMS)


def test_a_closed_directory_is_opened_for_the_monitors_user() -> None:
    host = GuardHost()
    run(host)
    host.modes[LIBRARY] = 0o700
    assert run(host) == [("mode", "closed")]
    assert host.modes[LIBRARY] == 0o755


def test_a_lease_that_all_may_read_is_closed() -> None:
    host = GuardHost()
    run(host)
    host.modes[LEASE] = 0o644
    run(host)
    assert host.modes[LEASE] == 0o600


def test_release_takes_all_of_it_away_once_barriers_are_on() -> None:
    host = GuardHost()
    run(host)
    host.say(state.LOOSE)
    host.mounts[PG].barrier = "off"
    host.mutations.clear()
    work = plan_release(host, **TERMS)
    assert (PG, "barrier", "running", "off", "on") in work.changes
    assert host.mutations == []
    apply_release(host, work)
    assert kinds(host)[:3] == ["systemctl stop", "systemctl disable", "systemctl reset-failed"]
    assert host.mounts[PG].barrier == "on"
    assert not [path for path in host.files if "guard" in path or path == HOOK]
    assert plan_release(host).changes == ()
    assert state.read(host)["state"] == "absent"


def test_a_guard_ends_also_if_its_links_cannot_be_removed() -> None:
    class ReadOnlyEtc(GuardHost):
        def _systemctl(self, argv: list[str]) -> None:
            if "disable" in argv:
                raise ChangeFailed("Failed to disable unit: Read-only file system")
            super()._systemctl(argv)

    host = ReadOnlyEtc()
    run(host)
    host.say(state.LOOSE)
    host.mounts[PG].barrier = "off"
    with pytest.raises(ChangeFailed, match="Read-only file system"):
        apply_release(host, plan_release(host))
    assert (host.mounts[PG].barrier, host.runs()) == ("on", False)


def test_release_tightens_itself_what_the_guard_left_and_takes_nothing_away_before() -> None:
    host = GuardHost()
    run(host)
    host.leaves = "off"
    host.mounts[PG].barrier = "off"
    host.disk("sda").dirty = True
    host.say(state.LOOSE)
    host.mutations.clear()
    apply_release(host, plan_release(host))
    acts = kinds(host)
    assert acts.index(f"options {PG}") < acts.index("sync --file-system") < acts.index(f"remove {LEASE}")
    assert (host.mounts[PG].barrier, host.disk("sda").dirty) == ("on", False)


@pytest.mark.parametrize("is_readable", [True, False])
def test_release_flushes_the_disks_if_the_guard_has_failed_or_its_state_cannot_be_read(
    is_readable: bool,
) -> None:
    host = GuardHost()
    run(host)
    del host.files[f"/proc/{PID}/stat"]
    host.say(state.FAILED)
    if not is_readable:
        host.files[STATE] = "{"
    host.disk("sda").dirty = True
    host.mutations.clear()
    apply_release(host, plan_release(host))
    acts = kinds(host)
    assert acts.index("sync --file-system") < acts.index(f"remove {LEASE}")
    assert (host.mounts[PG].barrier, host.disk("sda").dirty) == ("on", False)


def test_release_keeps_everything_when_a_disk_does_not_flush() -> None:
    host = GuardHost()
    run(host)
    host.leaves = "off"
    host.mounts[PG].barrier = "off"
    host.say(state.LOOSE)
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match="expected one"):
        apply_release(host, plan_release(host))
    assert {LEASE, UNIT, PROGRAM} <= set(host.files)


def test_a_release_that_leaves_a_file_fails() -> None:
    host = GuardHost()
    run(host)
    work = plan_release(host)
    host.files[HOOK] = "#!/bin/sh\n"
    work = work._replace(files=tuple(path for path in work.files if path != HOOK))
    with pytest.raises(ChangeFailed, match=posixpath.basename(HOOK)):
        apply_release(host, work)


def test_release_of_nothing_is_nothing() -> None:
    host = GuardHost()
    assert plan_release(host).changes == ()


def test_the_hook_stays_as_long_as_a_monitor_runs_it() -> None:
    host = GuardHost()
    run(host)
    host.files["/etc/nut/upsmon.conf"] = f"NOTIFYCMD {HOOK}\n"
    work = plan_release(host)
    assert work.warnings == (f"{HOOK} stays until role power has removed it from /etc/nut/upsmon.conf",)
    apply_release(host, work)
    assert HOOK in host.files
    assert RUNTIME not in host.files


@pytest.mark.parametrize(
    ("path", "mode", "uid"),
    [
        (interpreter(), 0o100755, 1000),
        (posixpath.dirname(interpreter()), 0o40777, 0),
        ("/usr/local/lib", 0o42775, 0),
        ("/etc", 0o40755, 1000),
    ],
)
@pytest.mark.parametrize("is_installed", [False, True])
def test_what_others_than_root_may_change_is_not_run_as_root(
    path: str, mode: int, uid: int, is_installed: bool
) -> None:
    host = GuardHost()
    host.files["/usr/local/lib/python3/x"] = ""
    if is_installed:
        run(host)
    host.uids[path], host.modes[path] = uid, mode
    before = list(host.mutations)
    with pytest.raises(ChangeFailed, match="others than root") as error:
        run(host)
    assert path in str(error.value)
    assert host.mutations == before


#: Of systemd.exec(5): each gives the service a mount namespace of its own.
NAMESPACED = re.compile(
    r"(Protect(System|Home|Proc|Kernel|ControlGroups|Hostname)|ProcSubset|Private|Root(Directory|Image)|ReadOnlyPaths|ReadWritePaths"
    r"|InaccessiblePaths|NoExecPaths|ExecPaths|Bind|TemporaryFileSystem|MountFlags|MountImages|Extension|DynamicUser|LoadCredential)"
)


def test_the_unit_takes_from_the_guard_what_it_does_not_need_but_not_the_hosts_mounts() -> None:
    lines = unit.render(LEASED, "/usr/bin/python3").split("\n")
    for line in (
        "NoNewPrivileges=yes",
        "MemoryMax=512M",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictNamespaces=yes",
        "SystemCallArchitectures=native",
        "ExecStart=/usr/bin/python3 -I -S /usr/local/lib/durable-dbhost/guard.pyz run",
        "ExecStopPost=/usr/bin/python3 -I -S /usr/local/lib/durable-dbhost/guard.pyz tighten",
    ):
        assert line in lines
    # To remount; to read disks' caches (SG_IO, hdparm) and what is others'; to give the fifo to the monitor's
    # group; to see processes where /proc is mounted with hidepid and gid.
    kept = {"CAP_SYS_ADMIN", "CAP_SYS_RAWIO", "CAP_DAC_READ_SEARCH", "CAP_CHOWN", "CAP_SYS_PTRACE"}
    (bounding,) = (line for line in lines if line.startswith("CapabilityBoundingSet="))
    assert set(bounding.partition("=")[2].split()) == kept
    assert not [line for line in lines if NAMESPACED.match(line)]
    # It would allow no device but the clock's.
    assert not [line for line in lines if line.startswith(("ProtectClock", "Device"))]


def test_the_unit_stops_before_databases_mounts_and_monitor_and_cannot_be_ended_without_tightening() -> None:
    host = GuardHost()
    run(host, PG, MA, units=["postgresql@15-main.service"])
    text = host.read(UNIT)
    after = next(line for line in text.split("\n") if line.startswith("After="))
    assert set(after[6:].split()) >= {
        "postgresql@15-main.service",
        "srv-pgdata.mount",
        "srv-maria.mount",
        "nut-monitor.service",
        "apcupsd.service",
    }
    lines = text.split("\n")
    for line in ("Type=notify", "KillMode=mixed", "WatchdogSignal=SIGKILL", "Restart=always"):
        assert line in lines
    assert any(line.startswith("ExecStopPost=/") and line.endswith("guard.pyz tighten") for line in lines)


@pytest.mark.parametrize(
    "path", ["/opt/my python/bin/python3", "/opt/%h/python3", "/opt/x\nUser=x/python3", "python3"]
)
def test_an_interpreter_that_is_no_plain_word_becomes_no_line_of_a_unit(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    host = GuardHost()
    monkeypatch.setattr(program, "interpreter", lambda: path)
    with pytest.raises(ChangeFailed, match="which a systemd unit cannot name without quotes"):
        run(host)
    assert host.mutations == []
