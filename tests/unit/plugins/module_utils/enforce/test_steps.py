# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A target that is gone when its step begins does not keep the others of that step from becoming safer."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible", reason="the arguments of a step are validated by ansible-core")

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import steps
from ansible_collections.durable.dbhost.plugins.modules.apply import CODE

from ..fakes.runs import LAYERS
from ..fakes.small_host import SmallHost

SDA, SDB = "serial:QEMU_HARDDISK_SATA0001", "serial:QEMU_HARDDISK_SATA0002"
PG = "/srv/pgdata"
#: layer: (targets, the one that is gone, what is said of it, what is done with the other)
CASES: dict[str, tuple[list[dict[str, Any]], str, str, str]] = {
    "write_cache": (
        [{"disk": disk, "state": "disabled"} for disk in (SDA, SDB)],
        SDA,
        "no disk of that id is there",
        SDB,
    ),
    "io_scheduler": (
        [{"device": disk, "scheduler": "mq-deadline"} for disk in (SDA, SDB)],
        SDA,
        "no block device of that id is there",
        SDB,
    ),
    "mount_options": (
        [{"target": target, "barrier": "on"} for target in ("/srv/gone", PG)],
        "/srv/gone",
        "nothing is mounted there",
        PG,
    ),
}


def host_of(layer: str) -> SmallHost:
    """Return a host with a disk that was pulled, or a mount that is gone, and something to do elsewhere."""
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    if layer != "mount_options":
        host.unplug("sda")
    return host


def taken(host: SmallHost, layer: str, phase: str, foretell: bool = False) -> Any:
    """Return what became of the layer's step."""
    arguments = {"targets": CASES[layer][0], "state": "present"}
    plan = [{"phase": phase, "layer": layer, "class": "safety", "arguments": arguments}]
    (found,) = steps.take(host, LAYERS, plan, {}, foretell)
    return found.outcome


@pytest.mark.parametrize("layer", CASES)
def test_what_is_gone_is_a_failure_and_the_rest_is_made_safer(layer: str) -> None:
    _targets, gone, why, other = CASES[layer]
    outcome = taken(host_of(layer), layer, "tighten")
    (failure,) = outcome.failures
    assert failure.startswith(f"{gone}: ")
    assert why in failure
    assert f"; done: {other} " in failure
    assert {change.target for change in outcome.changes} == {other}
    assert outcome.changed


@pytest.mark.parametrize("layer", CASES)
def test_a_check_foretells_the_failure(layer: str) -> None:
    host = host_of(layer)
    outcome = taken(host, layer, "tighten", foretell=True)
    assert [CASES[layer][2] in failure for failure in outcome.failures] == [True]
    assert (outcome.changed, host.mutations) == (False, [])


@pytest.mark.parametrize("layer", CASES)
def test_what_makes_less_safe_waits_for_all_of_its_targets(layer: str) -> None:
    host = host_of(layer)
    outcome = taken(host, layer, "loosen")
    (failure,) = outcome.failures
    assert failure.endswith("nothing of this step was done")
    assert (outcome.changed, host.mutations) == (False, [])


def test_targets_that_are_all_gone_are_all_named() -> None:
    host = host_of("write_cache")
    host.unplug("sdb")
    outcome = taken(host, "write_cache", "tighten")
    (failure,) = outcome.failures
    assert failure.startswith(f"{SDA}: no disk of that id is there")
    assert f"; {SDB}: no disk of that id is there" in failure
    assert failure.endswith("nothing of this step was done")


def test_if_the_others_are_as_wanted_nothing_is_said_of_them() -> None:
    host = host_of("write_cache")
    taken(host, "write_cache", "tighten")
    outcome = taken(host, "write_cache", "tighten")
    (failure,) = outcome.failures
    assert failure.endswith("run again to collect the facts again")
    assert (outcome.changes, outcome.changed) == ((), False)


@pytest.mark.parametrize("layer", ["power", "power_guard"])
def test_parts_of_one_configuration_are_changed_together(layer: str) -> None:
    assert not CODE[layer].ARGUMENTS.apart
    assert all(CODE[other].ARGUMENTS.apart for other in CASES)
