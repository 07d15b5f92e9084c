# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether servers wait for their file systems: the rows of layer unit_mounts. Pure.

A mount that the boot needs is mounted before any service (local-fs.target), and the first access waits for an automount.
For an optional mount, the unit of the server must declare that it requires it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...engines import findings
from ...engines.placement import holder, place
from ...engines.rules import titled
from ...engines.unit_mounts import SETTING
from ...facts.engines import InstanceFacts
from ...facts.storage import StorageFacts
from ...host.observation import UNKNOWN
from ...rows import RUN, Reason, Setting
from ...storage.mount_units import unit_name

LAYER = "unit_mounts"
#: Managers that start a server by its unit.
_BY_UNIT = ("systemd", "patroni", "galera", "group_replication")


def rows(instances: list[InstanceFacts], storage: StorageFacts) -> list[Setting]:
    """Return a row for each service whose server has files on optional mounts."""
    needed: dict[str, dict[str, str]] = {}
    held: dict[str, str | list[str]] = {}
    for instance in instances:
        optional = _optional(instance, storage)
        unit = instance["unit"]
        if optional and unit and _is_by_unit(instance):
            needed.setdefault(unit, {}).update(optional)
            held[unit] = instance["requires_mounts"]
    return [_row(unit, optional, held[unit]) for unit, optional in needed.items()]


def not_checked(instances: list[InstanceFacts], storage: StorageFacts) -> Iterator[Reason]:
    """Yield the servers on optional mounts that are not started by their unit."""
    for instance in instances:
        optional = _optional(instance, storage)
        if optional and not _is_by_unit(instance):
            label = f"{instance['engine']} {instance['name']}"
            mounts, manager = ", ".join(optional), str(instance["managed_by"])
            yield findings.NO_UNIT.found(label, engine=titled(instance), mounts=mounts, manager=manager)


def _is_by_unit(instance: InstanceFacts) -> bool:
    unit = instance["unit"] or ""
    return unit.endswith(".service") and instance["managed_by"] in _BY_UNIT


def _optional(instance: InstanceFacts, storage: StorageFacts) -> dict[str, str]:
    """Return {mount point: an example of its files there} of an instance's optional mounts."""
    where = place(instance, storage)
    found = {}
    for mount in where.mounts:
        example = where.examples[mount["device"]]
        target = holder(example, tuple(mount["targets"])) or mount["target"]
        if mount["boots"].get(target) == "optional":
            found[target] = example
    return found


def _row(unit: str, optional: dict[str, str], held: Any) -> Setting:
    mounts = sorted(optional)
    wanted = ", ".join(mounts)
    source = f"systemctl show {unit}"
    if held == UNKNOWN:
        observed, missing = UNKNOWN, mounts
    else:
        missing = [path for path in mounts if unit_name(path) not in held]
        observed = ", ".join(path for path in mounts if path not in missing) or "none"
    verdict = UNKNOWN if held == UNKNOWN else "drift_persisted" if missing else "ok"
    stale = f"the files of {unit} have changed since systemd read them"
    why = {
        "ok": "as wanted",
        UNKNOWN: stale,
        "drift_persisted": f"at the next boot {unit} does not wait for {', '.join(missing)}, which the boot goes on without:"
        f" its server fails, or starts without its files ({optional[missing[0]] if missing else ''})",
    }[verdict]
    remedy = {"ok": "", UNKNOWN: "systemctl daemon-reload, then run again"}.get(verdict, RUN)
    evidence = {"value": observed, "source": source, "reason": stale if held == UNKNOWN else None}
    return Setting.of(
        layer=LAYER,
        target=unit,
        setting=SETTING,
        wanted=wanted,
        observed=(observed, observed),
        verdict=verdict,
        phase="tighten" if verdict == "drift_persisted" else None,
        evidence={"running": evidence, "persisted": evidence, "mounts": mounts},
        why=why,
        remedy=remedy,
    )
