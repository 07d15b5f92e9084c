# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers that pass no flush on: found, named, and never relied on."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts.deaf import Deaf, hasty, layers
from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import collect
from ansible_collections.durable.dbhost.plugins.module_utils.layers.write_cache import Target, apply, plan

from ..runs import NOW, attested, enforce, look, settled
from ..small_host import BigHost

FAIRCOM = "/srv/faircom"


def mount(host: BigHost, target: str = FAIRCOM) -> dict[str, Any]:
    return next(mount for mount in collect(host, NOW)["mounts"] if mount["target"] == target)


def deaf() -> BigHost:
    """Return a host whose volume was made when nothing below it cached."""
    host = BigHost()
    host.layers["dm-0"].belief = "write through"
    return host


def test_a_layer_that_believes_in_no_cache_is_found_with_the_disks_below() -> None:
    assert layers(mount(BigHost())) == []
    assert layers(mount(deaf())) == [Deaf("dm-0", "lvm-dm-0", "write through", ("sdc", "sdd"))]


def test_one_of_which_it_is_not_known_counts() -> None:
    host = BigHost()
    del host.files["/sys/devices/virtual/block/md0/queue/write_cache"]
    assert layers(mount(host)) == [Deaf("md0", "md0", "unknown", ("sdc", "sdd"))]


def test_disks_and_partitions_are_no_layers() -> None:
    host = BigHost()
    host.disk("sda").belief = "write through"
    assert layers(mount(host, "/srv/pgdata")) == []


def test_a_caching_disk_below_is_at_risk_and_a_reboot_ends_it() -> None:
    """Commits since then were acknowledged and never flushed: settings above and below look right."""
    host = deaf()
    found = look(host, "flush", mounts=[FAIRCOM])
    assert found["verdict"] == "at_risk"
    assert "commits since the last flush on sdc can vanish: lvm-dm-0 passes no flush on" in found["why"]
    (row,) = [row for row in found["settings"] if row["setting"] == "layer_belief"]
    assert (row["verdict"], row["phase"]) == ("pending", None)
    enforce(host, found)
    host.reboot()
    assert look(host, "flush", mounts=[FAIRCOM])["verdict"] not in ("at_risk", "pending")


def test_a_cache_is_not_turned_on_below_one() -> None:
    host = settled_strict()
    host.layers["dm-0"].belief = "write through"
    target = Target(host.disk("sdc").id, "enabled")
    work = plan(host, [target])
    assert {(change.setting, change.when) for change in work.changes} == {("write_cache", "persisted")}
    apply(host, work, [target])
    assert host.disk("sdc").cache == "disabled"
    # At the next boot the rule turns it on before the layer is made.
    host.reboot()
    assert (host.disk("sdc").cache, host.layers["dm-0"].belief) == ("enabled", "write back")


def settled_strict() -> BigHost:
    host = BigHost()
    enforce(host, look(host, "strict", mounts=[FAIRCOM]))
    host.reboot()
    host.mutations.clear()
    return host


def test_from_strict_to_flush_it_is_pending_until_the_boot_and_then_done() -> None:
    host = settled_strict()
    host.layers["dm-0"].belief = "write through"
    given = {"mounts": [FAIRCOM], "attestations": [attested("host_honours_flush")]}
    enforce(host, look(host, "flush", **given))
    found = look(host, "flush", **given)
    assert (found["verdict"], found["changes"]) == ("pending", [])
    assert {row["needs"] for row in found["pending"]} == {"reboot"}
    host.reboot()
    assert look(host, "flush", **given)["verdict"] not in ("at_risk", "drifted", "pending")


def test_a_host_that_was_settled_and_rebooted_has_none() -> None:
    assert settled("strict").layers == {}
    assert layers(mount(settled_strict())) == []


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_without_a_cache_below_it_is_of_no_concern(profile: str) -> None:
    host = BigHost()
    host.disk("nvme0n1").cache = "none"
    host.layers["dm-1"].belief = "write through"
    found = look(host, profile, mounts=["/srv/firebird"])
    assert [row for row in found["settings"] if row["setting"] == "layer_belief"] == []
    assert found["verdict"] != "at_risk"


@pytest.mark.parametrize(
    ("state", "early"),
    [
        ("ppl", True),
        ("ppl, degraded by 1", True),
        ("resync, ppl", True),
        ("applied", False),
        ("bitmap", False),
    ],
)
def test_a_partial_parity_log_counts_whatever_else_the_array_is_doing(state: str, early: bool) -> None:
    found = mount(BigHost())
    for layer in found["stack"]:
        layer["state"] = state if layer["type"] == "md" else ""
    assert [layer.name for layer in hasty(found)] == (["md0"] if early else [])
