# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is made to watch itself: files, a timer, a first look; and released without a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.program import interpreter
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Result
from ansible_collections.durable.dbhost.plugins.module_utils.watch import apply as layer
from ansible_collections.durable.dbhost.plugins.module_utils.watch import orders, units

from ..fakes.fake_host import Killed
from ..fakes.small_host import SmallHost

INPUTS: dict[str, Any] = {"profile": "strict", "mounts": ["/srv/pgdata"]}
NUMBERS = "/var/lib/prometheus/node-exporter"


class WatchHost(SmallHost):
    """A small host whose service manager knows the timer, and little else."""

    def __init__(self) -> None:
        super().__init__()
        self.files[interpreter()] = ""
        self.files[f"{NUMBERS}/other.prom"] = ""
        self.uids[NUMBERS] = 117
        self.said = Result(0, "", "")
        self.active, self.stale = "inactive", "no"

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[:2] == ["systemctl", "show"] and argv[-1] == our_paths.WATCH_TIMER:
            return Result(0, f"ActiveState={self.active}\nNeedDaemonReload={self.stale}\n", "")
        return self.said if argv[:2] == ["systemd-analyze", "calendar"] else super().run(argv, timeout)

    def _systemctl(self, argv: list[str]) -> None:
        words = [word for word in argv[1:] if word != "--quiet"]
        if words[0] == "enable":
            self.files[layer._WANTED_BY] = ""
        if words[0] == "disable":
            self.files.pop(layer._WANTED_BY, None)
        if words[0] == "daemon-reload":
            self.stale = "no"
        if words == ["restart", our_paths.WATCH_TIMER]:
            self.active = "active"

    def on_change(self, argv: list[str]) -> None:
        if argv[0] == "chmod":
            self.modes[argv[-1]] = int(argv[1], 8)
        elif argv[0] != "install":
            super().on_change(argv)

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        if not self.exists(path):
            self.modes[path] = mode
        super().write_file(path, content, mode, owner)


def watch(
    host: WatchHost, inputs: Any = None, calendar: str = "hourly", metrics: str = ""
) -> list[tuple[str, str]]:
    """Plan and carry out; return (setting, before) of each change."""
    work = layer.plan(host, [], inputs or INPUTS, calendar, metrics, "1.2.3")
    if work.changes:
        layer.apply(host, work, [])
    return [(change.setting, change.before) for change in work.changes]


def commands(host: WatchHost) -> list[str]:
    """Return what systemctl was told."""
    return [" ".join(act[2:]) for act in host.mutations if act[:2] == ("change", "systemctl")]


def test_from_nothing_to_a_timer_and_a_first_look() -> None:
    host = WatchHost()
    assert watch(host) == [
        ("watch.pyz", "absent"),
        ("watch.json", "absent"),
        (our_paths.WATCH_SERVICE, "absent"),
        (our_paths.WATCH_TIMER, "absent"),
        ("enabled", "no"),
        ("state", "inactive"),
    ]
    assert commands(host) == [
        f"--quiet enable --no-reload {our_paths.WATCH_TIMER}",
        "daemon-reload",
        f"restart {our_paths.WATCH_TIMER}",
        f"start --no-block {our_paths.WATCH_SERVICE}",
    ]
    assert host.modes[our_paths.WATCH_INPUTS] == 0o600
    assert json.loads(host.files[our_paths.WATCH_INPUTS])["inputs"] == INPUTS
    assert "OnCalendar=hourly\n" in host.files[our_paths.WATCH_TIMER_UNIT]
    host.mutations.clear()
    assert watch(host) == [] == host.mutations


@pytest.mark.parametrize("number", range(1, 11))
def test_killed_at_any_change_the_next_run_has_the_timer_run(number: int) -> None:
    """Killed after the last file, it left a timer that did not run until the next boot, and the next run found nothing to do."""
    host = WatchHost()
    host.stop_at = number
    with pytest.raises(Killed):
        watch(host)
    host.stop_at = 0
    watch(host)
    assert host.active == "active"
    assert watch(host) == []


@pytest.mark.parametrize(
    ("active", "stale", "seen"), [("failed", "no", "failed"), ("active", "yes", "not reloaded")]
)
def test_a_timer_that_does_not_run_by_its_files_is_started(active: str, stale: str, seen: str) -> None:
    host = WatchHost()
    watch(host)
    host.active, host.stale = active, stale
    assert watch(host) == [("state", seen)]
    assert (host.active, host.stale) == ("active", "no")


def test_another_inventory_is_another_file() -> None:
    host = WatchHost()
    watch(host)
    assert watch(host, {**INPUTS, "profile": "flush"}, "*:0/15") == [
        ("watch.json", "differs"),
        (our_paths.WATCH_TIMER, "differs"),
    ]
    assert orders.read(host).inputs.profile == "flush"


def test_a_mode_that_lets_others_read_is_closed() -> None:
    host = WatchHost()
    watch(host)
    host.modes[our_paths.WATCH_INPUTS] = 0o644
    assert watch(host) == [("watch.json", "differs")]
    assert host.modes[our_paths.WATCH_INPUTS] == 0o600


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("metrics", ["", NUMBERS])
def test_release_leaves_no_trace(metrics: str, is_old: bool) -> None:
    host = WatchHost()
    before = dict(host.files)
    watch(host, metrics=metrics)
    host.files[our_paths.WATCH_REPORT] = "{}"
    if is_old:  # Of a version that did not write its number.
        written = json.loads(host.files[our_paths.WATCH_INPUTS])
        assert written.pop("version") == "1.2.3"
        host.files[our_paths.WATCH_INPUTS] = json.dumps(written)
    if metrics:
        orders.write_metrics(host, metrics, "x 1\n")
        assert host.written_as[f"{NUMBERS}/{orders.METRICS}"] == 117
    layer.apply_release(host, layer.plan_release(host))
    assert dict(host.files) == before
    assert layer.plan_release(host).changes == ()


@pytest.mark.parametrize("metrics", ["", "/srv/metrics"])
def test_numbers_in_the_directory_before_are_removed(metrics: str) -> None:
    """node_exporter would report their verdict indefinitely, next to that of the new directory."""
    host = WatchHost()
    host.files["/srv/metrics/other.prom"] = ""
    watch(host, metrics=NUMBERS)
    orders.write_metrics(host, NUMBERS, "x 1\n")
    assert watch(host, metrics=NUMBERS) == []
    assert watch(host, metrics=metrics) == [("watch.json", "differs"), (orders.METRICS, "present")]
    assert not host.exists(f"{NUMBERS}/{orders.METRICS}")
    assert watch(host, metrics=metrics) == []


def test_release_removes_the_numbers_of_a_version_with_other_inputs() -> None:
    host = WatchHost()
    before = dict(host.files)
    watch(host, metrics=NUMBERS)
    orders.write_metrics(host, NUMBERS, "x 1\n")
    written = json.loads(host.files[our_paths.WATCH_INPUTS])
    written["inputs"]["of_another_version"] = True
    host.files[our_paths.WATCH_INPUTS] = json.dumps(written)
    layer.apply_release(host, layer.plan_release(host))
    assert dict(host.files) == before


@pytest.mark.parametrize("number", range(1, 13))
def test_killed_at_any_change_of_a_release_the_next_one_leaves_no_trace(number: int) -> None:
    host = WatchHost()
    before = dict(host.files)
    watch(host, metrics=NUMBERS)
    orders.write_metrics(host, NUMBERS, "x 1\n")
    host.stop_at = len(host.mutations) + number
    try:
        layer.apply_release(host, layer.plan_release(host))
    except Killed:
        host.stop_at = 0
        layer.apply_release(host, layer.plan_release(host))
    assert dict(host.files) == before


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"metrics": "/nowhere"}, "observed no /nowhere; expected the directory of node_exporter's"),
        ({"metrics": "here"}, "metrics: observed"),
        ({"inputs": {"profil": "strict"}}, "inputs: observed profil; expected profile,"),
        ({"calendar": "hourly\nExecStart=/bin/sh"}, "calendar: observed 'hourly"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_changes(given: dict[str, Any], why: str) -> None:
    host = WatchHost()
    with pytest.raises(ChangeFailed, match=why):
        watch(host, **given)
    assert host.mutations == []


@pytest.mark.parametrize(
    ("path", "mode", "uid"),
    [(interpreter(), 0o100755, 1000), ("/usr/local/lib", 0o42775, 0), ("/etc", 0o40755, 1000)],
)
@pytest.mark.parametrize("is_installed", [False, True])
def test_a_path_that_other_users_can_change_is_refused(
    path: str, mode: int, uid: int, is_installed: bool
) -> None:
    host = WatchHost()
    host.files["/usr/local/lib/python3/x"] = ""
    if is_installed:
        watch(host)
    host.modes[path], host.uids[path] = mode, uid
    before = list(host.mutations)
    with pytest.raises(ChangeFailed, match="others than root"):
        watch(host)
    assert host.mutations == before


def test_changes_are_verified() -> None:
    host = WatchHost()
    host._systemctl = lambda _argv: None  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match="enabled"):
        watch(host)


def test_a_release_that_leaves_a_file_fails() -> None:
    host = WatchHost()
    watch(host)
    work = layer.plan_release(host)
    host.files[our_paths.WATCH_REPORT] = "{}"  # Written by a check that ended during the release.
    with pytest.raises(ChangeFailed, match=r"watch\.json"):
        layer.apply_release(host, work)


def test_release_stops_a_running_check_before_it_removes_files() -> None:
    host = WatchHost()
    watch(host)
    host.mutations.clear()
    layer.apply_release(host, layer.plan_release(host))
    assert commands(host) == [
        f"--quiet disable --now --no-reload {our_paths.WATCH_TIMER}",
        f"stop {our_paths.WATCH_SERVICE}",
        "reset-failed durable-dbhost-watch.*",
        "daemon-reload",
    ]
    assert [act[1] for act in host.mutations[:2]] == ["systemctl", "systemctl"]


def test_systemd_itself_says_what_a_calendar_is() -> None:
    host = WatchHost()
    host.said = Result(1, "", "Failed to parse calendar specification 'soon'")
    with pytest.raises(ChangeFailed, match="of which systemd says: Failed to parse"):
        watch(host, calendar="soon")
    assert host.mutations == []


def test_without_systemd_it_is_refused() -> None:
    host = WatchHost()
    for path in [path for path in host.files if path.startswith("/run/systemd/system")]:
        del host.files[path]
    with pytest.raises(ChangeFailed, match="use a controller's cron"):
        watch(host)


def test_numbers_are_not_written_where_anybody_may_change_them() -> None:
    host = WatchHost()
    host.modes[NUMBERS] = 0o40777
    with pytest.raises(ChangeFailed, match="others than root and its owner may change it"):
        orders.write_metrics(host, NUMBERS, "x 1\n")
    assert host.mutations == []


def test_a_missed_check_runs_after_the_boot() -> None:
    assert "Persistent=true" in units.timer("daily").split("\n")


def test_the_units_say_nothing_that_an_inventory_chose() -> None:
    assert units.timer("Mon..Fri 08:00").count("\n") == units.timer("hourly").count("\n")
