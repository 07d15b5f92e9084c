# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a small host as the playbook does, and carries a plan out as it does."""

from __future__ import annotations

import copy
import functools
from typing import Any

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host.paths import of_databases
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    io_scheduler,
    mount_options,
    write_cache,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from .captured import COLLECTION
from .small_host import SmallHost

NOW = "2026-01-31T12:00:00Z"
MOUNTS = ("/srv/pgdata", "/srv/mssql", "/srv/maria")
#: A profile as a user writes one.
OWN = {
    "summary": "Ours.",
    "write_cache": "enabled",
    "barrier": "on",
    "data_mode": "ordered",
    "atime": "keep",
    "rests_on": "flush",
}
PROFILES = ("strict", "flush", "protected", "ups", "disposable")


LAYERS: dict[str, Any] = {
    "io_scheduler": io_scheduler,
    "mount_options": mount_options,
    "write_cache": write_cache,
}


@functools.cache
def _shipped() -> Any:
    text = (COLLECTION / "playbooks/vars/profiles.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["durable_shipped_profiles"]


def shipped() -> dict[str, Any]:
    """Return the shipped profiles, each time as objects of their own."""
    found = copy.deepcopy(_shipped())
    assert isinstance(found, dict)
    return found


def inputs(profile: Any = "strict", **given: Any) -> Inputs:
    """Return what an inventory says of the small host."""
    if "attestations" in given:
        given = {**given, "attestations": {"durable_attestations": given["attestations"]}}
    return Inputs(
        **{"profile": profile, "shipped": shipped(), "own": {}, "overrides": {}, "mounts": MOUNTS, **given}
    )


def expect_cures(found: dict[str, Any]) -> dict[str, Any]:
    """Return an assessment, each reason of which says what to do where its host is at risk, and what waits, why."""
    bare = [why for why in found["why"] if found["verdict"] == "at_risk" and "; " not in why]
    assert not bare, bare
    assert "None" not in [row["why"] for row in found["pending"]], found["pending"]
    return found


def look(host: SmallHost, profile: Any = "strict", **given: Any) -> dict[str, Any]:
    """Return the assessment of a host as it is now, on which every database that is named lies."""
    paths = of_databases(given.get("databases"))
    for path in paths:
        if path not in host.links:
            host.files.setdefault(f"{path}/some file", "")
    return expect_cures(assess(inputs(profile, **given), collect(host, NOW, paths), NOW))


def attested(claim: str = "power_loss_protection", target: str | None = None) -> dict[str, str]:
    """Return one valid attestation: about the first SATA disk where it must be about a disk, else a layer's id."""
    one = {
        "power_loss_protection": "serial:QEMU_HARDDISK_SATA0001",
        "layer_passes_flushes": "dm:LVM-dm-0-uuid",
    }
    about = one.get(claim, "host")
    return {
        "claim": claim,
        "target": target or about,
        "by": "A. Person",
        "reason": "read the label",
        "expires": "2026-06-30",
    }


def enforce(host: SmallHost, found: dict[str, Any]) -> None:
    """Carry out a plan, as harden_db.yml does: step by step, each planned again on the host."""
    for phase, name in plan.STEPS:
        if name in found["plan"][phase]:
            layer = LAYERS[name]
            targets = [layer.target_of(row) for row in found["plan"][phase][name]]
            layer.apply(host, layer.plan(host, targets), targets)


def settled(profile: str, **given: Any) -> SmallHost:
    """Return a host that was brought to a profile and has been rebooted since."""
    host = SmallHost()
    enforce(host, look(host, profile, **given))
    host.reboot()
    host.mutations.clear()
    return host
