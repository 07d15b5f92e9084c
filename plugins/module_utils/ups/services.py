# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that monitors the UPS of this host, as systemd reports it."""

from __future__ import annotations

from typing import NamedTuple

from ..host import units
from ..host.observation import UNKNOWN
from ..host.seam import Host
from ..host.units import Unit
from .conditions import Condition, met, unknown, unmet
from .fixes import Fixes, fix

NUT, APCUPSD, NONE = "nut", "apcupsd", "none"
#: By monitor: the names that its service has, the usual one first.
_UNITS = {NUT: ("nut-monitor.service", "nut-client.service", "upsmon.service"), APCUPSD: ("apcupsd.service",)}
#: NUT 2.8 may have its services started by this one.
_TARGET = "nut.target"

#: systemctl(1): `enable` fails for a masked unit.
_UNMASK = {"masked": "unmask_unit", "masked-runtime": "unmask_unit.runtime"}


class Service(NamedTuple):
    """The service. `monitor` is nut, apcupsd, none or unknown, `reason` says why. `pid` is that of its
    main process, or 0; `active` and `enabled` are its conditions. `fixes`: those of a monitor that is
    none or unknown."""

    monitor: str
    reason: str
    unit: str
    pid: int
    active: Condition
    enabled: Condition
    fixes: Fixes = ()


def find(host: Host) -> Service:
    """Return the service that watches the UPS: what runs, else what would be started. One command."""
    names = [name for of_one in _UNITS.values() for name in of_one]
    shown, why = units.show(host, [*names, _TARGET])
    if why:
        return _undecided(UNKNOWN, why, fix("allow_systemctl"))
    found = {monitor: _first(shown, of_one) for monitor, of_one in _UNITS.items()}
    there = {monitor: unit for monitor, unit in found.items() if unit}
    for has in (_runs, _starts, bool):
        chosen = [monitor for monitor, unit in there.items() if has(unit)]
        if len(chosen) > 1:
            both = [there[one].name for one in chosen]
            fixes = fix("disable_one", first=both[0], second=both[1])
            return _undecided(UNKNOWN, f"{' and '.join(both)} are both there", fixes)
        if chosen:
            return _service(chosen[0], there[chosen[0]], shown.get(_TARGET))
    return _undecided(NONE, "no service of NUT's upsmon or of apcupsd is installed", fix("install_monitor"))


def _first(shown: dict[str, Unit], names: tuple[str, ...]) -> Unit | None:
    loaded = [shown[name] for name in names if name in shown and shown[name].load not in ("", "not-found")]
    # One that was masked, or of which only the name is left, stands behind one that runs.
    return next((unit for unit in loaded if _runs(unit)), loaded[0] if loaded else None)


def _runs(unit: Unit) -> bool:
    return unit.active not in ("inactive", "failed", "")


def _starts(unit: Unit) -> bool:
    return unit.enabled.startswith("enabled")


def _service(monitor: str, unit: Unit, target: Unit | None) -> Service:
    return Service(monitor, "", unit.name, unit.main, _active(unit), _enabled(unit, target))


def _active(unit: Unit) -> Condition:
    name, observed = "monitor_active", f"{unit.name} is {unit.active or UNKNOWN}"
    if unit.active == "active":
        return met(name, unit.name, observed)
    fixes = fix("start_unit", unit=unit.name)
    if unit.active in ("inactive", "failed"):
        return unmet(name, unit.name, observed, fixes)
    return unknown(name, unit.name, observed, fixes)


def _enabled(unit: Unit, target: Unit | None) -> Condition:
    name, observed = "monitor_enabled", f"{unit.name} is {unit.enabled or UNKNOWN}"
    if unit.enabled != "enabled":
        fixes = fix(_UNMASK.get(unit.enabled, "enable_unit"), unit=unit.name)
        if unit.enabled in ("disabled", "masked", "masked-runtime", "enabled-runtime"):
            return unmet(name, unit.name, observed, fixes)
        return unknown(name, unit.name, observed, fixes)
    if target is not None and target.load == "loaded" and target.enabled != "enabled":
        observed += f", and {target.name}, which may start it, is {target.enabled or UNKNOWN}"
        return unmet(name, unit.name, observed, fix("enable_unit", unit=target.name))
    return met(name, unit.name, observed)


def _undecided(monitor: str, reason: str, fixes: Fixes) -> Service:
    names = ("monitor_active", "monitor_enabled")
    active, enabled = (of_nobody(name, monitor, reason, fixes) for name in names)
    return Service(monitor, reason, "", 0, active, enabled, fixes)


def of_nobody(name: str, monitor: str, reason: str, fixes: Fixes) -> Condition:
    """Return a condition if no monitor can be queried."""
    if monitor == NONE:
        return unmet(name, "host", reason, fixes)
    return unknown(name, "host", reason, fixes)
