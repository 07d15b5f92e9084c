# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A write cache that is switched off for a measurement: what may be tried, and that it comes back as it was."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    benchmark,
    grouped,
    planned,
    variants,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.scratch import Ended
from ansible_collections.durable.dbhost.plugins.module_utils.measure.targets import find
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import CACHE_OFF, Variant
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules, write_cache

from ..fakes.fake_host import Killed
from ..fakes.small_host import BigHost, FakeMount, SmallHost
from .test_benchmark import ROW, FioHost
from .test_scratch import mount_of

OFF = Variant(CACHE_OFF, "write_cache", "disabled")
MOUNTS = {"sata": "/srv/pgdata", "virtio": "/srv/maria", "scsi": "/srv/sas"}
DISKS = {"sata": "sda", "virtio": "vdb", "scsi": "sdc"}


def host_of(kind: str) -> SmallHost:
    """Return a host with a mount on a disk of that kind."""
    if kind != "scsi":
        return SmallHost()
    host = BigHost()
    host.add_mount(FakeMount("/srv/sas", "ext4", "8:33", "/dev/sdc1", "sdc"), "")
    return host


def test_a_cache_that_is_on_is_measured_off_on_request_alone() -> None:
    host = FioHost()
    assert [one.name for one in planned.plan(host, ROW).variants] == ["as it is"]
    made = planned.plan(host, {**ROW, "write_caches": ["enabled", "disabled"]})
    assert made.variants[1:] == [OFF]
    host.disks["sda"].cache = "disabled"
    assert planned.plan(host, {**ROW, "write_caches": ["disabled"]}).variants[1:] == []
    assert host.mutations == []


def refuses_to_come_on(host: SmallHost) -> None:
    host.disks["sda"].cache = "disabled"


def has_no_name(host: SmallHost) -> None:
    host.disks["sda"].serial = ""


@pytest.mark.parametrize(
    ("change", "asked", "why"),
    [
        (refuses_to_come_on, "enabled", "makes no disk less safe than it was"),
        (has_no_name, "disabled", "no name that stays"),
    ],
)
def test_what_would_be_less_safe_or_could_not_be_put_back_is_refused(
    change: Callable[[SmallHost], None], asked: str, why: str
) -> None:
    host = FioHost()
    change(host)
    with pytest.raises(Refused, match=why):
        planned.plan(host, {**ROW, "write_caches": [asked]})
    assert host.mutations == []


def test_a_cache_that_a_reset_would_not_bring_back_on_is_refused() -> None:
    host = host_of("scsi")
    host.disks["sdc"].power_on = "disabled"
    with pytest.raises(Refused, match="after a reset it is disabled"):
        variants.plan(host, find(host, ["/srv/sas"]), caches=["disabled"])


def test_a_cache_below_a_layer_that_passes_no_flush_on_is_refused() -> None:
    host = SmallHost()
    places = find(host, ["/srv/pgdata"])
    places[0]["leaves"][0]["flush_blocked_by"] = ["dm-3"]
    with pytest.raises(Refused, match="dm-3 above it drops flushes"):
        variants.plan(host, places, caches=["disabled"])


def test_a_rule_that_is_safer_than_what_runs_is_not_taken_away() -> None:
    host = FioHost()
    target = write_cache.Target(host.disks["sda"].id, "disabled")
    write_cache.apply(host, write_cache.plan(host, [target]), [target])
    host.disks["sda"].cache = "enabled"
    with pytest.raises(Refused, match="its rule switches it off at the next boot: run harden_db first"):
        planned.plan(host, {**ROW, "write_caches": ["disabled"]})


@pytest.mark.parametrize("kind", sorted(MOUNTS))
def test_it_is_off_for_a_while_and_comes_back_and_no_rule_is_left(kind: str) -> None:
    host = host_of(kind)
    disk, places = host.disks[DISKS[kind]], find(host, [MOUNTS[kind]])
    before = (disk.cache, disk.cache_mode)
    with variants.in_force(host, places, OFF):
        assert disk.cache == "disabled"
    assert (disk.cache, disk.cache_mode) == before == ("enabled", "write back")
    assert not host.exists(cache_rules.RULES_PATH)
    with pytest.raises(KeyError), variants.in_force(host, places, OFF):
        raise KeyError
    assert (disk.cache, disk.cache_mode) == before


def test_a_rule_that_udev_applies_at_any_time_follows() -> None:
    host = SmallHost()
    target = write_cache.Target(host.disks["sda"].id, "enabled")
    write_cache.apply(host, write_cache.plan(host, [target]), [target])
    before = host.text(cache_rules.RULES_PATH)
    with variants.in_force(host, find(host, ["/srv/pgdata"]), OFF):
        assert cache_rules.read_rules(host)[target.disk] == ("sata", "disabled")
    assert host.text(cache_rules.RULES_PATH) == before


def test_a_cache_that_something_switches_on_meanwhile_fails_the_measurement() -> None:
    host = SmallHost()
    with (
        pytest.raises(ChangeFailed, match="observed enabled, expected disabled"),
        variants.in_force(host, find(host, ["/srv/pgdata"]), OFF),
    ):
        host.disks["sda"].cache = "enabled"
    assert host.disks["sda"].cache == "enabled"


def test_one_that_does_not_come_back_is_said() -> None:
    host = SmallHost()
    with (
        pytest.raises(ChangeFailed, match=r"could not be restored to enabled: .*run harden_db"),
        variants.in_force(host, find(host, ["/srv/pgdata"]), OFF),
    ):
        host.disks["sda"].refuses = True
    assert host.disks["sda"].cache == "disabled"


@pytest.mark.parametrize("kind", sorted(MOUNTS))
@pytest.mark.parametrize("stop", [Killed, ChangeFailed])
def test_at_no_moment_is_a_cache_on_that_the_kernel_does_not_flush(kind: str, stop: Any) -> None:
    def go(host: SmallHost) -> None:
        with variants.in_force(host, find(host, [MOUNTS[kind]]), OFF):
            pass

    whole = host_of(kind)
    go(whole)
    for step in range(1, len(whole.mutations) + 1):
        host = host_of(kind)
        host.stop, host.stop_at = stop, step
        disk = host.disks[DISKS[kind]]
        # One step may be refused without harm, which the layer knows; then all is done.
        with contextlib.suppress(stop):
            go(host)
        assert disk.cache == "disabled" or disk.cache_mode == "write back", host.mutations


def test_no_run_goes_beside_a_harden_db_and_none_on_a_host_that_was_changed_since() -> None:
    host = FioHost()
    made = planned.plan(host, {**ROW, "write_caches": ["disabled"]})
    with one_run.hold(host, "harden-db", "now", []), pytest.raises(ChangeFailed, match="harden-db"):
        benchmark.run(host, made, busy_allowed=True)
    with pytest.raises(ChangeFailed, match="was changed while or after it was collected"):
        benchmark.run(host, made, busy_allowed=True)
    assert host.mutations == []


def test_a_run_that_a_signal_ends_puts_the_cache_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, seen = SmallHost(), []
    disk = host.disks["sda"]

    def measure(*_arguments: Any) -> Any:
        seen.append(disk.cache)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(grouped, "measure", measure)
    place = {**find(host, ["/srv/pgdata"])[0], "target": str(tmp_path), "mount": mount_of(tmp_path)}
    made = planned.Plan([place], [planned.Way(grouped.PATTERN, 1)], [1], [OFF], 30, 1, 50000)
    with pytest.raises(Ended):
        benchmark.run(host, made, busy_allowed=True)
    assert (seen, disk.cache, disk.cache_mode) == (["disabled"], "enabled", "write back")
    assert os.listdir(tmp_path) == []
