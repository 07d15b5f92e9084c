# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollback timer: the journal is there before each change, and a host goes back to where it was, or to safer."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.bring import bring
from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import conclude
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules
from ansible_collections.durable.dbhost.plugins.module_utils.undo import arm, installed, journal, put_back
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import state as guard_state

from ..fakes import runs, told_power
from ..fakes.fake_host import Killed
from ..fakes.small_host import SmallHost
from ..fakes.undo_host import UndoHost

NOW = "2026-01-31T12:00:00Z"
SERVICE = our_paths.UNDO_SERVICE
LINKS = tuple(
    f"/etc/systemd/system/{target}.wants/{SERVICE}" for target in ("sysinit.target", "emergency.target")
)


def steps_of(host: SmallHost, profile: str) -> list[dict[str, Any]]:
    """Return the storage steps of a plan, as the module apply gets them."""
    found = runs.look(host, profile, **GIVEN[profile])
    return [
        {
            "phase": phase,
            "layer": layer,
            "class": "safety",
            "arguments": {"targets": found["plan"][phase][layer]},
        }
        for phase, layer in plan.STEPS
        if layer in found["plan"][phase] and layer in runs.LAYERS
    ]


def change(host: SmallHost, steps: list[dict[str, Any]], taken: Any = None) -> None:
    """Carry steps out as the module apply does, with the switch armed first."""
    given = taken or arm.arm(host, runs.LAYERS, steps, 600)
    for step in steps:
        arguments = {
            "targets": [
                {"persist": True, **row} if "target" in row else row for row in step["arguments"]["targets"]
            ]
        }
        bring(given, runs.LAYERS[step["layer"]], {**arguments, "state": "present"}, False)


@functools.cache
def rows(profile: str) -> dict[str, Any]:
    """Return the plan that brings a new host to a profile."""
    found = runs.look(UndoHost(), profile, **GIVEN[profile])
    return {"plan": found["plan"]}


def settled(profile: str) -> UndoHost:
    """Return a host that was brought to a profile."""
    host = UndoHost()
    runs.enforce(host, rows(profile))
    host.reboot()
    host.mutations.clear()
    return host


def state(host: SmallHost) -> tuple[Any, ...]:
    """Return what runs and what a boot reads."""
    return (
        {name: (mount.barrier, mount.atime) for name, mount in host.mounts.items()},
        {name: disk.cache for name, disk in host.disks.items()},
        boot(host),
    )


def boot(host: SmallHost) -> dict[str, Any]:
    """Return what a boot reads, and all else of ours that lasts; the links of units too."""
    files = {
        path: host.text(path)
        for path in host.files
        if path.startswith(("/etc/", "/var/")) and path != our_paths.UNDO_FIRED
    }
    return {**files, **dict(host.links), "/": host.mounts["/"].sb_options}


DISPOSABLE: dict[str, Any] = {"accept_data_loss": True}
ATTESTED: dict[str, Any] = {"attestations": [runs.attested("host_honours_flush"), runs.attested()]}
GIVEN: dict[str, dict[str, Any]] = {"strict": {}, "flush": ATTESTED, "disposable": DISPOSABLE}
WAYS = [(a, b) for a in GIVEN for b in GIVEN if a != b]
#: Those on which all that a run can change changes, there and back.
WIDE = [("strict", "disposable"), ("disposable", "strict")]


@pytest.mark.parametrize(("start", "goal"), WAYS)
def test_a_host_goes_back_in_all_that_a_boot_reads_and_is_no_less_safe_meanwhile(
    start: str, goal: str
) -> None:
    host = settled(start)
    before, weak = boot(host), host.ways_to_lose()
    live = state(host)[:2]
    change(host, steps_of(host, goal))
    assert boot(host) != before
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before
    assert host.ways_to_lose() <= weak
    # What runs is never made less safe on the way back.
    if start == "disposable":
        assert {mount.barrier for name, mount in host.mounts.items() if name != "/"} == {"on"}
    if goal == "strict":
        assert {disk.cache for name, disk in host.disks.items() if name != "vda"} == {"disabled"}
    if goal == "disposable" and start == "strict":
        assert state(host)[:2] == live
    told = installed.switch_of(host)
    assert told.state == installed.FIRED and NOW in told.said and "could not" not in told.said


def test_the_report_of_the_run_calls_undone_what_its_switch_has_put_back() -> None:
    host = settled("disposable")
    found = [{"assessment": runs.look(host, "strict"), "switch": installed.switch_of(host)._asdict()}]
    steps = steps_of(host, "strict")
    change(host, steps)
    begun = [[step["phase"], step["layer"]] for step in steps]
    applied = {"begun": begun, "switch": installed.switch_of(host).state, "undo_after": 600}
    kept = [{"assessment": runs.look(host, "strict"), "switch": {"state": "none"}}]
    put_back.put_back(host, NOW)
    back = [{"assessment": runs.look(host, "strict"), "switch": installed.switch_of(host)._asdict()}]
    states = {
        looked: {
            row["state"] for row in with_outcomes(conclude([*found, *last], applied, {}, False))["changes"]
        }
        for looked, last in (("kept", kept), ("back", back))
    }
    # What runs stays safer than it was; all of it is otherwise at the next boot.
    assert states == {"kept": {"done"}, "back": {"undone"}}


@pytest.mark.parametrize(("start", "goal"), WIDE)
def test_killed_at_any_change_and_killed_again_while_it_goes_back_it_is_at_its_start_in_the_end(
    start: str, goal: str
) -> None:
    """Each boot on the way is as safe as the less safe end, and the next try ends it."""
    reference = settled(start)
    weak, number = reference.ways_to_lose(), 0
    steps = steps_of(reference, goal)
    before = boot(reference)
    whole = settled(start)
    change(whole, steps)
    allowed = weak | whole.ways_to_lose()
    count = len(whole.mutations)
    put_back.put_back(whole, NOW)
    back = len(whole.mutations) - count
    assert count > 10 < back
    for number in range(1, count + 1, 3):
        host = settled(start)
        host.stop_at = number
        with pytest.raises(Killed):
            change(host, steps)
        host.stop_at = len(host.mutations) + 1 + number % back
        try:
            put_back.put_back(host, NOW)
        except Killed:
            assert host.ways_to_lose() <= allowed, number
        host.stop_at = 0
        assert put_back.put_back(host, NOW) == 0
        installed.disarm(host, NOW)
        # A flush that is pending, and what systemd was told, go with the boot.
        assert boot(host) == before, number
        assert host.ways_to_lose() <= allowed, number


def test_each_file_is_in_the_journal_before_it_is_changed() -> None:
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    changed = {path for path, text in boot(host).items() if text != before.get(path) and path in host.files}
    changed = {path for path in changed if "undo" not in path}
    assert changed >= {"/etc/fstab", cache_rules.RULES_PATH}
    written = [act for act in host.mutations if act[0] == "file"]
    for path in changed:
        at = next(
            at for at, act in enumerate(written) if act[1] == path and act[2].decode() == host.text(path)
        )
        kind, where, content = written[at - 1]
        assert (kind, where) == ("file", our_paths.UNDO_JOURNAL)
        name, was, becomes, _mode = json.loads(content)["entries"][-1]
        assert (name, was, becomes) == (path, before.get(path), host.text(path))


def test_nothing_is_changed_before_the_switch_waits() -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    began = host.mutations.index(("change", "systemctl", "restart", SERVICE))
    ours = (our_paths.UNDO_JOURNAL, our_paths.UNDO_PROGRAM, our_paths.UNDO_UNIT)
    for act in host.mutations[:began]:
        assert act[1] in ("install", "systemctl", "sync") or act[1] in ours, act
    assert ("change", "sync", "--file-system", our_paths.UNDO) in host.mutations[:began]
    assert host.modes[our_paths.UNDO_JOURNAL] == 0o600
    assert all(link in host.links for link in LINKS)


def test_disarmed_nothing_is_left() -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    assert installed.switch_of(host).state == installed.ARMED
    assert installed.disarm(host, NOW) == (installed.NONE, "")
    assert not [path for path in (*host.files, *host.links) if "undo" in path]
    assert not host.waits
    assert ("change", "systemctl", "reset-failed", "durable-dbhost-undo.*") in host.mutations
    assert put_back.put_back(host, NOW) == 0
    assert host.mounts["/srv/pgdata"].barrier == "off"


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_look_that_comes_after_it_has_fired_is_told_so_each_time(is_whole: bool) -> None:
    """The look at the end of a run took the file away, and reported that there was no switch: the run was a success."""
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    put_back.put_back(host, NOW)
    if not is_whole:
        # Killed while it took its files away.
        host.files[our_paths.UNDO_PROGRAM] = ""
    for _look in range(2):
        told = installed.disarm(host, NOW)
        assert told.state == installed.FIRED and "/etc/fstab" in told.said
        assert not installed._there(host)
    assert installed.clear(host)
    assert installed.switch_of(host).state == installed.NONE


def test_a_journal_that_cannot_be_read_is_left_for_people() -> None:
    """The run that could not arm took it away, and with it how the files were."""
    host = UndoHost()
    host.files[our_paths.UNDO_JOURNAL] = "{"
    assert installed.disarm(host, NOW).state == installed.BROKEN
    assert host.mutations == []


@pytest.mark.parametrize(("guard", "barrier"), [("absent", "on"), ("stopped", "on"), ("loose", "off")])
def test_barriers_that_a_guard_had_off_come_back_on_where_the_run_has_taken_it_away(
    guard: str, barrier: str, monkeypatch: Any
) -> None:
    host = settled("strict")
    host.mounts["/srv/pgdata"].barrier = "off"
    steps = steps_of(host, "disposable")
    host.files[our_paths.LEASE] = told_power.lease_of("/srv/pgdata")
    given = arm.arm(host, runs.LAYERS, steps, 600)
    del host.files[our_paths.LEASE]
    change(host, steps, given)
    monkeypatch.setattr(guard_state, "read", lambda _host: {"state": guard})
    assert put_back.put_back(host, NOW) == 0
    assert host.mounts["/srv/pgdata"].barrier == barrier


def test_killed_while_it_is_disarmed_the_host_stays_where_it_is_and_the_next_one_ends_it() -> None:
    for number in range(1, 7):
        host = settled("strict")
        change(host, steps_of(host, "disposable"))
        kept = boot(host)
        host.stop_at = len(host.mutations) + number
        with pytest.raises(Killed):
            installed.disarm(host, NOW)
        host.stop_at = 0
        if number > 1:
            put_back.put_back(host, NOW)
        assert installed.disarm(host, NOW).state == installed.NONE
        left = boot(host)
        assert {path for path in kept if kept[path] != left.get(path)} <= {*installed._FILES, *LINKS}
        assert not [path for path in (*host.files, *host.links) if "undo" in path], number


def test_a_second_run_takes_the_switch_over_and_the_host_goes_back_to_before_the_first() -> None:
    host = settled("strict")
    before = state(host)
    change(host, steps_of(host, "flush"))
    change(host, steps_of(host, "disposable"))
    assert put_back.put_back(host, NOW) == 0
    assert state(host) == before


def test_a_second_run_preserves_what_the_first_recorded() -> None:
    host = settled("strict")
    steps = steps_of(host, "disposable")
    recorded = []
    for _run in range(2):
        given = arm.arm(host, runs.LAYERS, steps, 600)
        found = journal.read(host)
        assert found is not None
        recorded.append(found.rows)
        change(host, steps, given)
    assert recorded[0] == recorded[1] != {}


def test_a_second_run_still_withdraws_the_guard_of_the_first() -> None:
    host = settled("strict")
    given = {"phase": "loosen", "layer": "power_guard", "class": "safety", "arguments": {"targets": []}}
    for step in (given, steps_of(host, "flush")[0]):
        arm.arm(host, {**runs.LAYERS, "power_guard": None}, [step], 600)
        found = journal.read(host)
        assert found is not None and found.guard


def test_a_timer_that_fires_during_disarming_is_reported_as_fired(
    monkeypatch: Any,
) -> None:
    """Otherwise the report calls the changes persisted, although the host was rolled back."""
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))

    @contextlib.contextmanager
    def hold(*_given: Any, **_more: Any) -> Iterator[None]:
        assert put_back.put_back(host, NOW) == 0
        yield

    monkeypatch.setattr(one_run, "hold", hold)
    told = installed.disarm(host, NOW)
    assert (told.state, NOW in told.said) == (installed.FIRED, True)
    assert boot(host) == before
    assert host.exists(our_paths.UNDO_FIRED)


def test_a_file_that_a_killed_rollback_restored_is_not_reported_as_changed_by_another_program() -> None:
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    found = journal.read(host)
    assert found is not None
    last = found.entries[-1]
    assert last.before is not None
    host.files[last.path] = last.before
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before
    assert "could not" not in installed.switch_of(host).said


def test_a_removed_file_is_restored_with_its_mode() -> None:
    host = settled("strict")
    host.files["/etc/example.conf"], host.modes["/etc/example.conf"] = "secret\n", 0o600
    arm.arm(host, runs.LAYERS, [], 600).remove_file("/etc/example.conf")
    del host.modes["/etc/example.conf"]
    assert put_back.put_back(host, NOW) == 0
    assert (host.text("/etc/example.conf"), host.modes["/etc/example.conf"]) == ("secret\n", 0o600)


def test_a_new_unit_is_disabled_and_an_empty_drop_in_directory_removed() -> None:
    host = settled("strict")
    given = arm.arm(host, runs.LAYERS, [], 600)
    given.write_file("/etc/systemd/system/example.timer", b"[Install]\nWantedBy=timers.target\n")
    given.change(["systemctl", "--quiet", "enable", "--no-reload", "example.timer"])
    drop_in = "/etc/systemd/system/example.service.d/50-durable.conf"
    given.write_file(drop_in, b"[Unit]\n")
    link = "/etc/systemd/system/timers.target.wants/example.timer"
    assert link in host.links
    assert put_back.put_back(host, NOW) == 0
    assert link not in host.links
    assert not host.exists("/etc/systemd/system/example.timer")
    removed = host.mutations.index(("remove", drop_in))
    assert host.mutations[removed + 1] == (
        "change",
        "rmdir",
        "--ignore-fail-on-non-empty",
        "/etc/systemd/system/example.service.d",
    )
    assert "could not" not in installed.switch_of(host).said


@pytest.mark.parametrize(("path", "mode", "uid"), [("/etc", 0o40755, 1000), (our_paths.UNDO, 0o42775, 0)])
def test_a_path_that_other_users_can_change_is_refused(path: str, mode: int, uid: int) -> None:
    host = UndoHost()
    host.files[f"{our_paths.UNDO}/other"] = ""
    host.modes[path], host.uids[path] = mode, uid
    with pytest.raises(ChangeFailed, match=r"cannot be armed: .*others than root"):
        arm.expect_possible(host)
    assert host.mutations == []


def test_the_unit_survives_emergency_mode() -> None:
    lines = installed.unit("/usr/bin/python3").split("\n")
    for line in (
        "DefaultDependencies=no",
        "IgnoreOnIsolate=yes",
        "Restart=on-failure",
        "RestartPreventExitStatus=2",
        f"ConditionPathExists={our_paths.UNDO_JOURNAL}",
        "WantedBy=sysinit.target emergency.target",
    ):
        assert line in lines


def test_what_somebody_else_changed_meanwhile_stays_and_is_named() -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    host.files["/etc/fstab"] = f"{host.text('/etc/fstab')}# mine\n"
    assert put_back.put_back(host, NOW) == 0
    assert host.text("/etc/fstab").endswith("# mine\n")
    assert "/etc/fstab: another program changed it since" in installed.switch_of(host).said


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[]",
            "{}",
            '{"schema": 2}',
            '{"schema": 1, "seconds": 5, "guard": false, "rows": [], "entries": []}',
        ),
        '{"schema": 1, "seconds": -1, "guard": false, "rows": {}, "entries": []}',
        '{"schema": 1, "seconds": 60, "guard": false, "rows": {}, "entries": [["fstab", null, "x", 420]]}',
        '{"schema": 1, "seconds": 60, "guard": false, "rows": {}, "entries": [["/etc/fstab", null, 1, 420]]}',
        '{"schema": 1, "seconds": 60, "guard": false, "rows": {}, "entries": [["/etc/fstab", null, "x", true]]}',
        '{"schema": 1, "seconds": 60, "guard": false, "rows": {"write_cache": [1]}, "entries": []}',
    ],
)
def test_what_is_no_journal_is_refused_and_nothing_is_put_back(
    text: str, monkeypatch: Any, capsys: Any
) -> None:
    host = UndoHost()
    host.files[our_paths.UNDO_JOURNAL] = text
    with pytest.raises(Unobservable, match="observed no journal of the rollback timer"):
        journal.read(host)
    assert installed.switch_of(host).state == installed.BROKEN
    monkeypatch.setattr(put_back, "Host", lambda: host)
    assert put_back.main() == 2
    assert "expected one: nothing was restored" in capsys.readouterr().out
    with pytest.raises(ChangeFailed, match="cannot be armed"):
        arm.expect_possible(host)
    assert host.mutations == []


def test_without_systemd_no_switch_is_armed() -> None:
    host = UndoHost()
    del host.files["/run/systemd/system/marker"]
    with pytest.raises(ChangeFailed, match="systemd, which does not run here; to go without one"):
        arm.expect_possible(host)


def test_the_seconds_count_from_the_last_change_of_a_run() -> None:
    host = UndoHost()
    clock = [0.0]
    host.held.add(our_paths.LOCK)

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] >= 1000:
            host.held.discard(our_paths.LOCK)

    assert one_run.last_run(host) == one_run.CHANGING
    put_back.wait(host, 60, lambda: clock[0], sleep)
    assert 1055 <= clock[0] <= 1065


def test_while_a_run_holds_the_host_it_is_neither_put_back_nor_disarmed(monkeypatch: Any) -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    waited: list[int] = []

    class Enough(Exception):
        """The second wait."""

    def wait(*_given: Any) -> None:
        waited.append(1)
        if len(waited) == 2:
            raise Enough

    monkeypatch.setattr(put_back, "Host", lambda: host)
    monkeypatch.setattr(put_back, "wait", wait)
    with one_run.hold(host, "ann on desk", NOW, ["mount_options"]):
        told = installed.disarm(host, NOW)
        with pytest.raises(Enough):
            put_back.main()
    assert told.state == installed.ARMED
    assert "ann on desk" in told.said
    assert installed.switch_of(host).state == installed.ARMED
    waited.clear()
    assert put_back.main() == 0
    assert installed.switch_of(host).state == installed.FIRED


def test_a_full_run_directory_does_not_prevent_the_rollback(monkeypatch: Any) -> None:
    """A database's user can fill /run, and then the text of the lock cannot be written."""
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    hold = host.hold

    def full(path: str, tell: Any, is_text_needed: bool = True) -> Any:
        if is_text_needed:
            raise ChangeFailed(f"{path}: No space left on device")
        return hold(path, tell, is_text_needed)

    monkeypatch.setattr(host, "hold", full)
    monkeypatch.setattr(put_back, "Host", lambda: host)
    waits = iter([None])
    monkeypatch.setattr(put_back, "wait", lambda *_given: next(waits))
    assert put_back.main() == 0
    assert boot(host) == before


def test_in_emergency_mode_the_root_is_made_writable_first_and_the_boot_goes_on_last() -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    host.emergency = "active"
    host.mounts["/"].sb_flag = "ro"
    host.mutations.clear()
    assert put_back.put_back(host, NOW) == 0
    assert host.mutations[0] == ("options", "/", "rw")
    assert host.mutations[-1] == ("change", "systemctl", "--no-block", "default")
    assert host.mounts["/"].sb_flag == "rw"


def test_a_file_system_that_is_not_there_keeps_nothing_else_from_going_back() -> None:
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    del host.mounts["/srv/maria"]
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before
    assert host.mounts["/srv/pgdata"].barrier == "on"
    assert "/srv/maria" in installed.switch_of(host).said


def test_the_image_of_a_trial_in_which_the_run_was_killed_goes() -> None:
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    host.files[f"{our_paths.TRIAL}/image"] = ""
    assert put_back.put_back(host, NOW) == 0
    assert ("change", "rm", "-rf", our_paths.TRIAL) in host.mutations


def test_the_default_data_mode_of_the_root_goes_back_after_fstab() -> None:
    host = UndoHost()
    before = boot(host)
    given = arm.arm(host, runs.LAYERS, [root_step()], 600)
    change(host, [root_step()], given)
    assert host.mounts["/"].sb_options == ("data=journal",)
    host.mutations.clear()
    assert put_back.put_back(host, NOW) == 0
    # That is what a superblock without a word means.
    assert boot(host) == {**before, "/": ("data=ordered",)}


@pytest.mark.parametrize("gone", ["first", "last"])
def test_a_target_that_is_gone_does_not_remove_the_others_from_the_journal(gone: str) -> None:
    """The step changes the others all the same."""
    host, step = UndoHost(), root_step()
    away, there = [{"target": "/srv/gone", "barrier": "on"}], step["arguments"]["targets"]
    step["arguments"]["targets"] = [*away, *there] if gone == "first" else [*there, *away]
    arm.arm(host, runs.LAYERS, [step], 600)
    kept = journal.read(host)
    assert kept is not None
    assert [(row["target"], row["root_mode"]) for row in kept.rows["mount_options"]] == [("/", "ordered")]


def root_step() -> dict[str, Any]:
    """Return a step that sets data= of the root."""
    row = {"target": "/", "data_mode": "journal"}
    return {"phase": "tighten", "layer": "mount_options", "class": "safety", "arguments": {"targets": [row]}}


def test_a_write_that_fails_is_tried_again_from_there(capsys: Any) -> None:
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    wrote = host._write

    def full(path: str, text: str) -> None:
        if path == "/etc/fstab":
            raise ChangeFailed("/etc/fstab: No space left on device")
        wrote(path, text)

    host._write = full  # type: ignore[method-assign]
    assert put_back.put_back(host, NOW) == 1
    assert "No space left" in capsys.readouterr().out
    assert installed.switch_of(host).state == installed.ARMED
    host._write = wrote  # type: ignore[method-assign]
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before


@pytest.mark.parametrize("ends", ["put_back", "disarm"])
def test_what_an_attempt_that_failed_has_left_and_put_back_is_told_in_the_end(ends: str) -> None:
    """The second attempt found nothing of it in the journal, and reported that all went back."""
    host = settled("strict")
    change(host, steps_of(host, "disposable"))
    host.files["/etc/fstab"] = f"{host.text('/etc/fstab')}# mine\n"
    on_change = host.on_change

    def failing(argv: list[str]) -> None:
        if argv == ["systemctl", "daemon-reload"]:
            raise ChangeFailed("systemctl daemon-reload: Connection timed out")
        on_change(argv)

    host.on_change = failing  # type: ignore[method-assign]
    assert put_back.put_back(host, NOW) == 1
    assert installed.switch_of(host).state == installed.ARMED
    host.on_change = on_change  # type: ignore[method-assign]
    told = installed.disarm(host, NOW) if ends == "disarm" else None
    if told is None:
        assert put_back.put_back(host, NOW) == 0
        told = installed.switch_of(host)
    assert told.state == installed.FIRED
    assert cache_rules.RULES_PATH in told.said
    assert told.said.count("/etc/fstab: another program changed it since") == 1


def test_what_nobody_can_read_of_an_earlier_attempt_keeps_no_host_from_going_back() -> None:
    host = settled("strict")
    before = boot(host)
    change(host, steps_of(host, "disposable"))
    host.files[our_paths.UNDO_FIRED] = "{"
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before
    assert f"it could not: {our_paths.UNDO_FIRED} cannot be read" in installed.switch_of(host).said


def test_a_lease_that_the_run_gave_is_withdrawn_before_anything_else(monkeypatch: Any) -> None:
    host = settled("strict")
    given = {"phase": "loosen", "layer": "power_guard", "class": "safety", "arguments": {"targets": []}}
    steps = [*steps_of(host, "disposable"), given]
    arm.arm(host, {**runs.LAYERS, "power_guard": None}, steps, 600)
    change(host, steps[:-1], journal.KeepingHost(host))
    released: list[str] = []

    class Guard:
        """Stands in for the layer."""

        @staticmethod
        def plan_release(_host: Any) -> None:
            released.append(host.mounts["/srv/pgdata"].barrier)

        @staticmethod
        def apply_release(_host: Any, _work: Any) -> None:
            raise ChangeFailed("the guard does not end")

    monkeypatch.setattr(put_back, "power_guard", Guard)
    assert put_back.put_back(host, NOW) == 0
    assert released == ["off"]
    assert host.mounts["/srv/pgdata"].barrier == "on"
    assert "the guard does not end" in installed.switch_of(host).said


@pytest.mark.parametrize("layer", ["mount_options", "write_cache", "power_guard"])
def test_an_unexpected_error_of_a_layer_keeps_no_file_from_going_back(layer: str, monkeypatch: Any) -> None:
    """A boot that failed can leave a host in any state."""
    host = settled("strict")
    before = boot(host)
    given = {"phase": "loosen", "layer": "power_guard", "class": "safety", "arguments": {"targets": []}}
    steps = [*steps_of(host, "disposable"), given]
    arm.arm(host, {**runs.LAYERS, "power_guard": None}, steps, 600)
    change(host, steps[:-1], journal.KeepingHost(host))

    def fail(*_given: Any, **_more: Any) -> None:
        raise KeyError("DEVNAME")

    module = put_back.power_guard if layer == "power_guard" else put_back._LAYERS[layer]
    monkeypatch.setattr(module, "plan_release" if layer == "power_guard" else "plan", fail)
    assert put_back.put_back(host, NOW) == 0
    assert boot(host) == before
    assert f"it could not: {layer}: KeyError: 'DEVNAME'" in installed.switch_of(host).said


def test_files_of_a_guard_that_is_withdrawn_do_not_come_back(monkeypatch: Any) -> None:
    host = settled("strict")
    given = {"phase": "loosen", "layer": "power_guard", "class": "safety", "arguments": {"targets": []}}
    arm.arm(host, {**runs.LAYERS, "power_guard": None}, [given], 600)
    host.files[our_paths.LEASE] = told_power.lease_of("/srv/pgdata")

    class Guard:
        """Stands in for the layer."""

        @staticmethod
        def plan_release(_host: Any) -> None:
            """Nothing that the other one needs."""

        @staticmethod
        def apply_release(taken: Any, _work: Any) -> None:
            taken.remove_file(our_paths.LEASE)

    monkeypatch.setattr(put_back, "power_guard", Guard)
    assert put_back.put_back(host, NOW) == 0
    assert not host.exists(our_paths.LEASE)


def test_what_goes_with_the_boot_and_what_is_a_server_s_is_no_part_of_it() -> None:
    host = settled("strict")
    given = arm.arm(host, runs.LAYERS, [], 600)
    given.write_file(f"{our_paths.PENDING_FLUSHES}/sda", b"")
    given.write_file("/srv/pgdata/own.conf", b"x", owner=26)
    assert journal.read(host) == journal.Journal({}, 600)
    installed.disarm(host, NOW)
    with pytest.raises(ChangeFailed, match="not changed: the rollback timer was removed"):
        given.write_file("/etc/fstab", b"")
