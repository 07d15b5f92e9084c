# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer modules: a check run touches nothing, and predicts exactly what a run then does."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import originals, runner
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.arguments import Arguments
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import Change
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules, scheduler_rules
from ansible_collections.durable.dbhost.plugins.modules import io_scheduler, mount_options, write_cache
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import (
    BigHost,
    SmallHost,
)

from .run_module import run_module

SDA = "serial:QEMU_HARDDISK_SATA0001"
CASES = {
    "io_scheduler": (
        io_scheduler,
        {"targets": [{"device": SDA, "scheduler": "mq-deadline", "readahead": 4096}]},
    ),
    "write_cache": (write_cache, {"targets": [{"disk": SDA, "state": "disabled"}]}),
    "write_cache of all sorts of disks": (
        write_cache,
        {"targets": [{"disk": disk.id, "state": "disabled"} for disk in BigHost().disks.values()]},
    ),
    "io_scheduler of disks and layers": (
        io_scheduler,
        {
            "targets": [
                *({"device": disk.id, "scheduler": "mq-deadline"} for disk in BigHost().disks.values()),
                *({"device": layer.id, "readahead": 1024} for layer in BigHost().layers.values()),
            ]
        },
    ),
    "mount_options of all sorts of file systems": (
        mount_options,
        {"targets": [{"target": target, "barrier": "on", "atime": "noatime"} for target in BigHost().mounts]},
    ),
    "mount_options": (
        mount_options,
        {"targets": [{"target": "/srv/pgdata", "barrier": "on", "data_mode": "ordered", "atime": "noatime"}]},
    ),
}
case = pytest.mark.parametrize(("module", "arguments"), CASES.values(), ids=CASES)


def drifting() -> SmallHost:
    host = BigHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    return host


@case
def test_check_predicts_what_a_run_does_and_a_second_run_does_nothing(
    module: ModuleType, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    predicted = run_module(module, host, monkeypatch, capsys, True, **arguments)
    assert host.mutations == []
    done = run_module(module, host, monkeypatch, capsys, **arguments)
    assert host.mutations
    assert done == predicted
    assert done["changed"] is True
    assert done["diff"][0]["before"] != done["diff"][0]["after"]
    # Behind the settings, the lines of each file.
    assert all(each["after_header"].startswith("/etc/") for each in done["diff"][1:]) and done["diff"][1:]
    assert {tuple(change) for change in done["changes"]} == {("target", "setting", "when", "before", "after")}
    for check in (True, False):
        host.mutations.clear()
        again = run_module(module, host, monkeypatch, capsys, check, **arguments)
        assert (again["changed"], again["changes"], host.mutations) == (False, [], [])


@case
def test_release_takes_back_what_was_written(
    module: ModuleType, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    before = host.read("/etc/fstab")
    run_module(module, host, monkeypatch, capsys, **arguments)
    host.mutations.clear()
    predicted = run_module(module, host, monkeypatch, capsys, True, state="released")
    assert host.mutations == []
    done = run_module(module, host, monkeypatch, capsys, state="released")
    assert done == predicted
    assert done["changed"] is True
    assert host.read("/etc/fstab") == before
    ours = {originals.PATH, cache_rules.RULES_PATH, cache_rules.UNIT_PATH, scheduler_rules.RULES_PATH}
    assert not ours & set(host.files)
    assert not [link for link in host.links if "durable" in link]
    again = run_module(module, host, monkeypatch, capsys, state="released")
    assert again["changed"] is False


@pytest.mark.parametrize("check", [False, True])
@case
def test_what_cannot_be_done_fails_in_check_mode_too(
    module: ModuleType, arguments: dict[str, Any], check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    host.unplug("sda")
    del host.mounts["/srv/pgdata"]
    result = run_module(module, host, monkeypatch, capsys, check, **arguments)
    assert result["failed"] is True
    assert "expected" in result["msg"]
    assert host.mutations == []


@case
def test_no_targets_is_nothing_to_do(
    module: ModuleType, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    assert arguments
    result = run_module(module, host, monkeypatch, capsys)
    assert (result["changed"], host.mutations) == (False, [])


@pytest.mark.parametrize(
    ("module", "target"),
    [
        (write_cache, {"disk": SDA, "state": "off"}),
        (write_cache, {"disk": SDA}),
        (write_cache, {"state": "disabled"}),
        (io_scheduler, {"device": SDA, "scheduler": "noop"}),
        (io_scheduler, {"device": SDA, "scheduler": "cfq"}),
        (io_scheduler, {"device": SDA, "readahead": "much"}),
        (io_scheduler, {"scheduler": "none"}),
        (mount_options, {"target": "/srv/pgdata", "barrier": False}),
        (mount_options, {"target": "/srv/pgdata", "barrier": "yes"}),
        (mount_options, {"target": "/srv/pgdata", "data_mode": "none"}),
        (mount_options, {"target": "/srv/pgdata", "barriers": "on"}),
        (mount_options, {"barrier": "on"}),
    ],
)
def test_a_wrong_argument_is_refused(
    module: ModuleType, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = drifting()
    result = run_module(module, host, monkeypatch, capsys, targets=[target])
    if target.get("barrier") is False:
        # Ansible itself turns an unquoted off into the choice of that name.
        assert "failed" not in result
        return
    assert result["failed"] is True
    assert host.mutations == []


@pytest.mark.parametrize(("done", "changed"), [(0, False), (1, True), (None, True)])
@pytest.mark.parametrize("check", [False, True])
def test_what_was_changed_before_a_failure_counts(
    done: int | None, changed: bool, check: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Barriers that came back on are a change of the run, whatever failed after them; so is what cannot be seen."""
    wanted = [
        Change("/a", "barrier", "running", "off", "on"),
        Change("/b", "barrier", "running", "off", "on"),
    ]
    plans = iter([wanted, wanted[done:] if done is not None else None])

    def plan(_host: Any, _targets: Any) -> Any:
        left = next(plans)
        if left is None:
            raise Unobservable("gone")
        return SimpleNamespace(changes=left)

    def apply(_host: Any, _work: Any, _targets: Any) -> None:
        raise ChangeFailed("/b: did not follow")

    arguments = Arguments({"target": {"type": "str"}})
    layer = SimpleNamespace(ARGUMENTS=arguments, target_of=dict, plan=plan, plan_release=None, apply=apply)
    module = ModuleType("module")
    vars(module)["main"] = lambda: runner.run(layer)
    found = run_module(module, FakeHost(), monkeypatch, capsys, check, targets=[{"target": "/a"}])
    assert (found.get("failed", False), found["changed"]) == (not check, changed or check)
