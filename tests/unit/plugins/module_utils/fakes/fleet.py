# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of many hosts of six kinds, each with disks of its own, as a run has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    assess_answer,
    conclude,
)

from .captured import COLLECTION
from .runs import NOW, attested, enforce, inputs, look
from .small_host import SmallHost

ENGINE = {
    "engine": "postgresql",
    "name": "15/main",
    "state": "running",
    "version": "15.8",
    "unit": "postgresql@15-main.service",
    "managed_by": "systemd",
    "namespace": "host",
    "config": "/etc/postgresql/15/main/postgresql.conf",
    "files": [
        {
            "directory": "/srv/pgdata/15/main",
            "opened": "buffered",
            "count": 4,
            "mount": "/srv/pgdata",
            "disks": ["sda"],
        }
    ],
}


def host(number: int) -> SmallHost:
    """Return a host whose disks nobody else has."""
    found = SmallHost()
    for disk in found.disks.values():
        disk.serial = f"{disk.serial}_{number:04}"
    return found


def _at_risk(number: int) -> dict[str, Any]:
    found = host(number)
    found.mounts["/srv/pgdata"].barrier = "off"
    return look(found)


def _drifted(number: int) -> dict[str, Any]:
    return look(host(number))


def _durable(number: int) -> dict[str, Any]:
    found = host(number)
    words = [attested("host_honours_flush")]
    enforce(found, look(found, attestations=words))
    found.reboot()
    return look(found, attestations=words)


def _unreachable(number: int) -> dict[str, Any]:
    said = f"Failed to connect to the host via ssh: connect to host 10.0.0.{number} port 22: timed out"
    return assess_answer(inputs(), NOW, {"unreachable": True, "msg": said})


def _blocked(_number: int) -> dict[str, Any]:
    return look(SmallHost(), "stritc")


def _unmanaged(number: int) -> dict[str, Any]:
    return look(host(number), None)


def exposed(number: int) -> dict[str, Any]:
    """Return the assessment of a host that nobody has pinned, and that is at risk."""
    found = host(number)
    found.mounts["/srv/pgdata"].barrier = "off"
    return look(found, None)


KINDS: tuple[Callable[[int], dict[str, Any]], ...] = (
    _at_risk,
    _blocked,
    _unreachable,
    _drifted,
    _durable,
    _unmanaged,
)


#: Machines of the lab, by the names of their captures, as hosts of one fleet.
LAB = ("loose", "default", "hardened", "stacked")


def captured(looked_only: bool = True, profile: str | None = "strict") -> list[dict[str, Any]]:
    """Return the reports of machines of the lab, of their captured facts: databases lie below /srv."""
    found = []
    for number, name in enumerate(LAB, 1):
        path = COLLECTION / f"tests/fixtures/captures/{name}.facts.json"
        storage = json.loads(path.read_text(encoding="utf-8"))
        mounts = [mount["target"] for mount in storage["mounts"] if mount["target"].startswith("/srv/")]
        assessment = assess(inputs(profile, mounts=mounts), storage, storage["time"])
        found.append(report(f"db{number}", assessment, looked_only, engines=[]))
    return found


def reports(number: int, looked_only: bool = True) -> list[dict[str, Any]]:
    """Return the reports of so many hosts, db1 first, the kinds in turn."""
    return [report(f"db{each}", KINDS[each % len(KINDS)](each), looked_only) for each in range(1, number + 1)]


def report(name: str, assessment: dict[str, Any], looked_only: bool = True, **given: Any) -> dict[str, Any]:
    """Return the report of a host, of its assessment."""
    found = conclude([{"assessment": assessment, "error": None}], {}, {}, looked_only)
    engines = [ENGINE] if assessment["settings"] else []
    of_run = {"time": NOW, "collection": "1.0.0", "since": None}
    return {**with_outcomes({"host": name, **found}), "engines": engines, **of_run, **given}
