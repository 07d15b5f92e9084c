# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From drifting settings to the steps that fix them, in the safe order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ... import catalog
from ...attestations import HOST
from ...engines import unit_mounts as unit_drop_ins
from ...facts.engines import InstanceFacts
from ...facts.ups import PowerFacts
from ...host import printable
from ...rows import Setting
from ...storage import fstab, mount_units
from ..report_types import Change, LeaseTerms, Plan, Step, Target
from . import power_settings, unit_mounts
from .settings import can_persist, is_by_kernel

#: Safe order, as (phase, layer).
STEPS = catalog.STEPS


def build(rows: Iterable[Setting], may_loosen: bool) -> Plan:
    """Return `{phase: {layer: targets}}`, in the order of STEPS, that fixes the rows.

    Each target has the form of the layer's module. Every phase is present, maybe empty; loosening is left out unless allowed.
    """
    steps: Plan = {phase: {} for phase, _layer in STEPS}
    for phase, layer in STEPS:
        chosen = [row for row in rows if (row.phase, row.layer) == (phase, layer)]
        if chosen and (may_loosen or phase != "loosen"):
            steps[phase][layer] = _TARGETS[layer](chosen)
    return steps


def steps(
    plan: Plan,
    rows: Collection[Setting],
    allow: Collection[str],
    lease: LeaseTerms | None,
) -> list[Step]:
    """Return the steps of a plan in the safe order: of each its phase, layer and arguments.

    `rows`: those that it fixes. Settings about speed are a separate step, of class performance, so that it can fail
    alone. `allow`: the permissions; `lease`: what the guard will be allowed, from the assessment.
    """
    chosen = [
        (
            phase,
            layer,
            klass,
            [row for row in rows if (row.phase, row.layer, row.klass) == (phase, layer, klass)],
        )
        for phase, layer in STEPS
        if layer in plan[phase]
        for klass in ("safety", "performance")
    ]
    return [
        {
            "phase": phase,
            "layer": layer,
            "class": klass,
            "arguments": _arguments(layer, _TARGETS[layer](own), allow, lease),
        }
        for phase, layer, klass, own in chosen
        if own
    ]


def _arguments(
    layer: str, targets: list[Target], allow: Collection[str], lease: LeaseTerms | None
) -> dict[str, Any]:
    found: dict[str, Any] = {"targets": targets}
    if catalog.LAYERS[layer].restarts:
        found["restart"] = "restart_engines" in allow
    if catalog.LAYERS[layer].alters:
        found["alter_system"] = "alter_system" in allow
    if layer in ("power", "power_guard"):
        # Without a target the layer is released.
        found["state"] = "present" if targets else "released"
    if layer == "power_guard" and targets and lease:
        found.update({name: value for name, value in lease.items() if name != "mounts"})
    return found


def changes(steps: Plan, rows: Iterable[Setting]) -> list[Change]:
    """Return what the steps change, one entry a setting, for people.

    `persisted` is None if they change only the running value.
    """
    found: dict[tuple[str, str, str], Change] = {}
    for row in rows:
        if not row.phase or row.layer not in steps[row.phase]:
            continue
        owner = row.evidence.get("persisted") if row.persisted != row.wanted_persisted else None
        if owner and owner.get("owner_of"):
            # Its file gets another owner first, once.
            name, before = owner["owner_of"], owner["owner"]
            change = _change(row, name, before, before, owner["owner_wanted"])
            found.setdefault((row.layer, row.target, name), change)
        persisted = row.persisted if _is_written(row) else None
        change = _change(row, row.setting, row.running, persisted, row.wanted_running)
        found[row.layer, row.target, row.setting] = change
    return list(found.values())


def _change(row: Setting, setting: str, running: str, persisted: str | None, wanted: str) -> Change:
    return {
        "phase": str(row.phase),
        "layer": row.layer,
        "target": row.target,
        "setting": setting,
        "running": running,
        "persisted": persisted,
        "wanted": wanted,
    }


def files(
    steps: Plan,
    rows: Iterable[Setting],
    engines: Iterable[InstanceFacts],
    power: PowerFacts | None,
) -> list[str]:
    """Return the files that the steps may write; `engines` and `power`: the facts."""
    found = {path for layers in steps.values() for layer in layers for path in catalog.LAYERS[layer].files}
    writes = {(each["engine"], each["name"]): each["writes"] for each in engines}
    for row in rows:
        if not row.phase or row.layer not in steps[row.phase]:
            continue
        if row.layer == "mount_options":
            by_unit = "/systemd/" in row.evidence["persisted"]["source"]
            found.add(mount_units.drop_in(row.target) if by_unit else fstab.PATH)
        elif row.layer == unit_mounts.LAYER:
            found.add(unit_drop_ins.drop_in(row.target))
        elif catalog.is_engine(row.layer) and "override" not in row.evidence:
            # A target that is no instance is a database: its header is written.
            found.update(writes.get((row.layer, row.target), [row.target]))
        elif row.layer == power_settings.LAYER and power is not None:
            found.update(power_settings.files(power, row.setting))
    return sorted(found)


def named(layer: str, target: str) -> str:
    """Return the name of a target: an instance or database with its engine; the whole host by the layer."""
    if target in (HOST, layer):
        return layer
    shown = printable.name(target)
    return f"{layer} {shown}" if catalog.is_engine(layer) else shown


def _is_written(row: Setting) -> bool:
    """Return whether a step also writes the file that the next boot reads."""
    if row.layer != "mount_options":
        return True
    return can_persist(row.setting, row.persisted, row.evidence["persisted"]["source"])


def _mounts(rows: list[Setting]) -> list[Target]:
    targets: dict[tuple[str, bool], Target] = {}
    for row in rows:
        source = row.evidence["persisted"]["source"]
        key = (row.target, is_by_kernel(row.setting, source))
        target = targets.setdefault(key, {"target": row.target, "persist": False})
        target[row.setting] = row.wanted_running
        # Without a line of fstab, or with another component's, only the running mount is changed.
        target["persist"] |= _is_written(row)
    return list(targets.values())


def _disks(rows: list[Setting]) -> list[Target]:
    targets: dict[str, Target] = {}
    for row in rows:
        # The kernel cache mode alone needs no state: the cache stays unchanged.
        target = targets.setdefault(row.target, {"disk": row.target, "state": "keep"})
        if row.setting == "write_cache":
            target["state"] = row.wanted_running
    return list(targets.values())


def _devices(rows: list[Setting]) -> list[Target]:
    return _merged("device", ((row, row.wanted_running) for row in rows))


def _databases(rows: list[Setting]) -> list[Target]:
    # Two servers can know one database.
    return _merged("database", ((row, row.wanted_persisted) for row in rows))


def _services(rows: list[Setting]) -> list[Target]:
    return [{"unit": row.target, "mounts": row.evidence["mounts"]} for row in rows]


def _lease(rows: list[Setting]) -> list[Target]:
    """Return the mounts of the guard's lease; none if it is revoked."""
    return [{"mount": target} for row in rows for target in row.evidence["mounts"]]


def _monitor(rows: list[Setting]) -> list[Target]:
    """Return the settings of the UPS's monitor; none if it is released."""
    requested = [(row.setting, row.evidence["requested"]) for row in rows]
    return [{setting: value} for setting, value in requested if value is not None]


def _merged(key: str, values: Iterable[tuple[Setting, str]]) -> list[Target]:
    """Return a target for each name, with all its wanted settings."""
    targets: dict[str, Target] = {}
    for row, value in values:
        targets.setdefault(row.target, {key: row.target})[row.setting] = value
    return list(targets.values())


def _instances(rows: list[Setting]) -> list[Target]:
    targets: dict[str, Target] = {}
    for row in rows:
        override = row.evidence.get("override")
        name = override["instance"] if override else row.target
        target = targets.setdefault(name, {"instance": name, "settings": {}})
        if override:
            own = {field: override[field] for field in ("role", "database")}
            target.setdefault("overrides", []).append({"setting": row.setting, **own})
        else:
            target["settings"][row.setting] = row.wanted_persisted
    return list(targets.values())


_TARGETS = {
    **{each.name: _databases if each.has_databases else _instances for each in catalog.ENGINES},
    "mount_options": _mounts,
    "write_cache": _disks,
    "io_scheduler": _devices,
    unit_mounts.LAYER: _services,
    "power": _monitor,
    "power_guard": _lease,
}
