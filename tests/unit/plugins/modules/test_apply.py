# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a plan in one process: the safest first, each as its layer's module would do it, one run at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import is_engine, release
from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, CommandFailed
from ansible_collections.durable.dbhost.plugins.module_utils.storage import mount_options
from ansible_collections.durable.dbhost.plugins.module_utils.undo import installed
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import apply as power_guard
from ansible_collections.durable.dbhost.plugins.modules import apply
from ansible_collections.durable.dbhost.plugins.modules import mount_options as mount_module
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.undo_host import UndoHost

from .run_module import run_module

SDA = "serial:QEMU_HARDDISK_SATA0001"


def step(phase: str, layer: str, **arguments: Any) -> dict[str, Any]:
    """Return a step of a plan."""
    return {"phase": phase, "layer": layer, "class": "safety", "arguments": arguments}


def barriers(word: str, phase: str = "tighten") -> dict[str, Any]:
    """Return a step that switches barriers."""
    return step(phase, "mount_options", targets=[{"target": "/srv/pgdata", "barrier": word}])


CACHE_OFF = step("tighten", "write_cache", targets=[{"disk": SDA, "state": "disabled"}])


@pytest.fixture
def host() -> SmallHost:
    """A host whose barriers are off, and whose caches are on."""
    found = SmallHost()
    found.mounts["/srv/pgdata"].barrier = "off"
    return found


@pytest.fixture
def run(host: SmallHost, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Run the module with steps."""

    def call(
        *steps: dict[str, Any], check: bool = False, looked_at: int | None = 0, **more: Any
    ) -> dict[str, Any]:
        return run_module(
            apply, host, monkeypatch, capsys, check, steps=list(steps), looked_at=looked_at, **more
        )

    return call


def test_each_step_does_what_its_layer_s_module_does(
    host: SmallHost, run: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    alone = SmallHost()
    alone.mounts["/srv/pgdata"].barrier = "off"
    run_module(mount_module, alone, monkeypatch, capsys, **barriers("on")["arguments"])
    foretold = run(barriers("on"), check=True)
    assert host.mutations == []
    done = run(barriers("on"))
    assert host.mutations == alone.mutations
    assert done["taken"] == foretold["taken"]
    assert done["changed"] is foretold["changed"] is True
    (taken,) = done["taken"]
    assert (taken["step"], taken["failures"]) == (["tighten", "mount_options"], [])
    assert taken["diff"][0]["before"] != taken["diff"][0]["after"]
    assert run(barriers("on"), looked_at=1)["changed"] is False


def test_steps_are_taken_in_the_order_that_they_are_given(host: SmallHost, run: Any) -> None:
    found = run(barriers("on"), CACHE_OFF)
    assert [taken["step"][1] for taken in found["taken"]] == ["mount_options", "write_cache"]
    assert (host.mounts["/srv/pgdata"].barrier, host.disks["sda"].cache) == ("on", "disabled")
    # The lines of files that a step writes, behind its settings.
    shown = [[each["after_header"] for each in taken["diff"][1:]] for taken in found["taken"]]
    assert shown == [[], [our_paths.CACHE_RULES, our_paths.RESUME_UNIT]]


@pytest.mark.parametrize("error", [ChangeFailed("it refused"), KeyError("nobody foresaw it")])
def test_after_a_failure_what_makes_safer_is_done_and_nothing_is_made_less_strict(
    error: Exception, host: SmallHost, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise error

    monkeypatch.setattr(mount_options, "apply", refuse)
    found = run(barriers("on"), CACHE_OFF, barriers("off", "loosen"))
    assert [taken["step"] for taken in found["taken"]] == [
        ["tighten", "mount_options"],
        ["tighten", "write_cache"],
    ]
    (why,) = found["taken"][0]["failures"]
    assert str(error) in why
    assert (found["taken"][1]["failures"], host.disks["sda"].cache) == ([], "disabled")


def test_after_a_layer_that_could_not_be_released_no_other_is(
    host: SmallHost, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(barriers("on"), CACHE_OFF)
    rules = host.files[our_paths.CACHE_RULES]

    def refuse(*_arguments: Any, **_terms: Any) -> None:
        raise ChangeFailed("it refused")

    monkeypatch.setattr(power_guard, "plan_release", refuse)
    found = run(*release(), looked_at=None)
    assert [taken["step"] for taken in found["taken"]] == [["release", "power_guard"]]
    assert found["taken"][0]["failures"][0].startswith("it refused")
    assert host.files[our_paths.CACHE_RULES] == rules


def test_what_is_about_speed_keeps_nothing_back(host: SmallHost, run: Any) -> None:
    slow = {
        **step("tighten", "io_scheduler", targets=[{"device": "wwn:none", "scheduler": "none"}]),
        "class": "performance",
    }
    found = run(slow, barriers("on"), barriers("off", "loosen"))
    assert [bool(taken["failures"]) for taken in found["taken"]] == [True, False, False]
    assert [taken["class"] for taken in found["taken"]] == ["performance", "safety", "safety"]
    assert host.mounts["/srv/pgdata"].barrier == "off"


def test_an_argument_that_its_layer_does_not_take_fails_its_step_alone(host: SmallHost, run: Any) -> None:
    wrong = step("tighten", "mount_options", targets=[{"target": "/srv/pgdata", "barrier": "perhaps"}])
    found = run(wrong, CACHE_OFF)
    assert "value of barrier must be one of: on, off" in found["taken"][0]["failures"][0]
    assert host.disks["sda"].cache == "disabled"


def test_a_secret_reaches_its_step_and_is_not_shown(
    host: SmallHost, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(apply.CODE["firebird"], "plan", lambda *_given, **options: seen.append(options) or 1)
    found = run(step("tighten", "firebird", targets=[]), secrets={"firebird": {"password": "hunter2"}})
    assert seen == [{"user": "SYSDBA", "password": "hunter2", "server": "localhost"}]
    assert "hunter2" not in json.dumps(found)


def test_a_secret_of_a_target_reaches_it_and_no_other_step(
    host: SmallHost, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        apply.CODE["power"], "plan", lambda _host, targets, **options: seen.append((targets, options)) or 1
    )
    targets = [{"shutdown_command": "[not shown]"}, {"final_delay": 5}]
    command = "/bin/x --password=hunter2"
    found = run(
        step("tighten", "power", targets=targets),
        secrets={"power": {"password": "p", "shutdown_command": command}},
    )
    assert seen == [([{"shutdown_command": command}, {"final_delay": 5}], {"password": "p"})]
    assert "hunter2" not in json.dumps(found)


def test_another_run_is_not_interrupted(host: SmallHost, run: Any) -> None:
    with one_run.hold(host, "eve on db9", "2026-01-31T12:00:00Z", ["write_cache"]):
        found = run(barriers("on"))
    assert found["failed"]
    assert found["msg"].startswith("another run changes this host: eve on db9")
    assert host.mutations == []


def test_a_plan_of_before_another_run_is_not_carried_out(host: SmallHost, run: Any) -> None:
    with one_run.hold(host, "eve on db9", "2026-01-31T12:00:00Z", ["write_cache"]):
        pass
    assert "changed while or after it was collected: by eve on db9" in run(barriers("on"))["msg"]
    assert host.mutations == []
    assert run(barriers("on"), looked_at=1)["changed"] is True


@pytest.fixture
def undo_host(monkeypatch: pytest.MonkeyPatch) -> UndoHost:
    """A host that can arm the rollback timer, with barriers off."""
    found = UndoHost()
    found.mounts["/srv/pgdata"].barrier = "off"
    return found


def test_the_switch_is_armed_for_layers_that_it_takes_back(
    undo_host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def call(*steps: dict[str, Any], check: bool = False, looked_at: int = 0, undo_after: int = 600) -> Any:
        return run_module(
            apply,
            undo_host,
            monkeypatch,
            capsys,
            check,
            steps=list(steps),
            looked_at=looked_at,
            undo_after=undo_after,
        )

    assert call(barriers("on"), check=True)["switch"] == "none"
    assert undo_host.mutations == []
    assert call(step("tighten", "firebird", targets=[]))["switch"] == "none"
    assert call(barriers("off", "loosen"), looked_at=1, undo_after=0)["switch"] == "none"
    assert not [act for act in undo_host.mutations if "undo" in str(act)]
    done = call(CACHE_OFF, looked_at=2)
    assert (done["switch"], undo_host.waits, undo_host.disks["sda"].cache) == ("armed", True, "disabled")
    kept = json.loads(undo_host.text(our_paths.UNDO_JOURNAL))
    assert [entry[0] for entry in kept["entries"]] == [our_paths.CACHE_RULES, our_paths.RESUME_UNIT]


class ReadOnlyEtc(UndoHost):
    """A host with barriers off, caches on and /etc read-only."""

    def __init__(self) -> None:
        super().__init__()
        self.mounts["/srv/pgdata"].barrier = "off"

    def on_change(self, argv: list[str]) -> None:
        if argv[0] == "install":
            raise CommandFailed(
                argv, 1, f"install: cannot change permissions of '{argv[-1]}': Read-only file system"
            )
        super().on_change(argv)

    def _write(self, path: str, text: str) -> None:
        assert not path.startswith("/etc"), path
        super()._write(path, text)


def test_what_runs_is_tightened_if_no_file_of_the_boot_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = ReadOnlyEtc()
    both = [{"target": "/srv/pgdata", "barrier": "on", "atime": "noatime"}]
    steps = [step("tighten", "mount_options", targets=both), CACHE_OFF, barriers("off", "loosen")]
    found = run_module(apply, host, monkeypatch, capsys, steps=steps, looked_at=0, undo_after=600)
    assert (host.mounts["/srv/pgdata"].barrier, host.disks["sda"].cache) == ("on", "disabled")
    assert found["failed"] and found["changed"]
    assert found["msg"].startswith(
        "the rollback timer could not be armed, so nothing was changed that the next boot reads:"
        " /etc/durable-dbhost: install: cannot change permissions"
    )
    assert "Read-only file system; the kernel log (dmesg) says why / is read-only" in found["msg"]
    assert [taken["step"] for taken in found["taken"]] == [
        ["tighten", "mount_options"],
        ["tighten", "write_cache"],
    ]
    assert [taken["failures"] for taken in found["taken"]] == [
        [f"{path}: not changed, because no rollback timer is armed; done: {done}; not done: {left}"]
        for path, done, left in (
            (
                our_paths.ORIGINALS,
                "/srv/pgdata barrier (running), /srv/pgdata atime (running)",
                "/srv/pgdata atime (persisted): observed relatime, expected noatime",
            ),
            (
                our_paths.CACHE_RULES,
                f"{SDA} write_cache (running)",
                f"{SDA} write_cache (persisted): observed unset, expected disabled",
            ),
        )
    ]


def test_without_a_switch_nothing_is_made_less_strict(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = ReadOnlyEtc()
    host.mounts["/srv/pgdata"].barrier = "on"
    steps = [barriers("off", "loosen")]
    found = run_module(apply, host, monkeypatch, capsys, steps=steps, looked_at=0, undo_after=600)
    assert (host.mounts["/srv/pgdata"].barrier, found["taken"], found["changed"]) == ("on", [], False)


def test_without_a_switch_the_superblock_of_the_root_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Also if an earlier run has saved the original already, so that no file is written first."""
    host = ReadOnlyEtc()
    host.files[our_paths.ORIGINALS] = json.dumps({"superblock of /: data=": "none"})
    before = host.mounts["/"].sb_options
    root = step("tighten", "mount_options", targets=[{"target": "/", "data_mode": "journal"}])
    found = run_module(apply, host, monkeypatch, capsys, steps=[root], looked_at=0, undo_after=600)
    assert host.mounts["/"].sb_options == before
    assert "not changed, because no rollback timer is armed" in found["taken"][0]["failures"][0]


@pytest.mark.parametrize("check", [False, True])
def test_a_release_disarms_the_switch_and_a_check_of_it_does_not(
    check: bool, undo_host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    armed = {"steps": [CACHE_OFF], "looked_at": 0, "undo_after": 600}
    assert run_module(apply, undo_host, monkeypatch, capsys, **armed)["switch"] == "armed"
    # This host has no processes, in which engines would be looked for.
    steps = [step for step in release() if not is_engine(step["layer"])]
    found = run_module(apply, undo_host, monkeypatch, capsys, check, steps=steps, release=True)
    assert [(taken["step"][1], taken["failures"]) for taken in found["taken"]] == [
        (step["layer"], []) for step in steps
    ]
    assert found["changed"]
    assert (found["switch"], undo_host.waits) == (("armed", True) if check else ("none", False))
    assert (our_paths.CACHE_RULES in undo_host.files) is check


@pytest.mark.parametrize("armed", [False, True])
def test_a_check_of_a_release_predicts_that_the_switch_is_disarmed(
    armed: bool, undo_host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Also if nothing else is left to release."""
    if armed:
        undo_host.files[our_paths.UNDO_PROGRAM] = "x"
    results = [
        run_module(apply, undo_host, monkeypatch, capsys, check, steps=[], release=True)
        for check in (True, False, True)
    ]
    assert [each["changed"] for each in results] == [armed, armed, False], results


def test_a_release_whose_switch_cannot_be_disarmed_releases_nothing(
    undo_host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    armed = {"steps": [CACHE_OFF], "looked_at": 0, "undo_after": 600}
    assert run_module(apply, undo_host, monkeypatch, capsys, **armed)["switch"] == "armed"

    def refuse(*_: object, **__: object) -> None:
        raise ChangeFailed("systemctl stop: observed a unit that goes on")

    monkeypatch.setattr(installed, "remove", refuse)
    steps = [step for step in release() if not is_engine(step["layer"])]
    found = run_module(apply, undo_host, monkeypatch, capsys, steps=steps, release=True)
    assert found["failed"] and "a unit that goes on" in found["msg"]
    assert our_paths.CACHE_RULES in undo_host.files


@pytest.mark.parametrize("check", [False, True])
def test_without_systemd_nothing_is_changed_and_a_check_says_so(
    check: bool, undo_host: UndoHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    del undo_host.files["/run/systemd/system/marker"]
    given = {"steps": [barriers("on")], "looked_at": 0, "undo_after": 600}
    found = run_module(apply, undo_host, monkeypatch, capsys, check, **given)
    assert found["failed"]
    assert "set durable_undo_after to 0" in found["msg"]
    assert undo_host.mutations == []


def test_a_check_holds_nothing_and_waits_for_nobody(host: SmallHost, run: Any) -> None:
    with one_run.hold(host, "eve on db9", "2026-01-31T12:00:00Z", ["write_cache"]):
        assert run(barriers("on"), check=True)["changed"] is True
    assert one_run.last_run(host) == 1


def test_a_module_of_a_layer_holds_the_lock_too(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    with one_run.hold(host, "eve on db9", "2026-01-31T12:00:00Z", ["write_cache"]):
        found = run_module(mount_module, host, monkeypatch, capsys, **barriers("on")["arguments"])
    assert "another run changes this host" in found["msg"]
    run_module(mount_module, host, monkeypatch, capsys, **barriers("on")["arguments"])
    assert one_run.last_run(host) == 2


def test_who_is_not_root_is_told_so(host: SmallHost, run: Any) -> None:
    host.acts_as = 1000
    assert run(barriers("on"))["msg"].endswith(
        "observed user 1000, expected root (become); log in as root, or add -b"
    )
    assert host.mutations == []
