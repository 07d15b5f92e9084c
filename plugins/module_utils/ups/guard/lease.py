# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease: the file systems whose barriers the guard may disable, until when, and on which conditions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...host import json_text
from ...host.our_paths import LEASE
from ...host.seam import Host, Unobservable

SCHEMA = 1
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
#: What systemd takes as a service's name, and nothing that could be another line of a unit.
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.service", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
#: A lease says no more than this; a longer text is none.
_MOST = 1024 * 1024
BUDGETS = ("durability", "clean_stop")


class Leased(NamedTuple):
    """A mount point, and the UUID of the file system that must be the one mounted there."""

    target: str
    uuid: str


class Lease(NamedTuple):
    """What a run of the playbook allows the guard.

    `issued`, `expires`: the first and the last day on which it holds, ISO, UTC: a clock that was set back
    does not make it longer. `quiet`: seconds for which all must have been well. `needed`: {budget: seconds
    of runtime that the battery must have}. `test_ups`: whether a test driver's word counts. `units`: the
    services of the engines, which stop after the guard has tightened.
    """

    mounts: tuple[Leased, ...]
    issued: str
    expires: str
    quiet: int
    needed: dict[str, float]
    test_ups: bool
    units: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "schema": SCHEMA,
            "mounts": [mount._asdict() for mount in self.mounts],
            "issued": self.issued,
            "expires": self.expires,
            "quiet": self.quiet,
            "needed": dict(self.needed),
            "test_ups": self.test_ups,
            "units": list(self.units),
        }

    def over(self, today: str) -> str | None:
        """Return why it does not hold on a day (ISO, UTC), None when it does."""
        if today > self.expires:
            return f"the lease ended with {self.expires}"
        if today < self.issued:
            return f"the clock says {today}, before the lease's first day {self.issued}: it was set back"
        return None

    def render(self) -> str:
        """Return the file's text: the same for the same lease."""
        return json.dumps(self.as_dict(), indent=2, sort_keys=True) + "\n"


def read(host: Host) -> Lease | None:
    """Return the lease, or None. Raises Unobservable for one that is no lease."""
    if not host.exists(LEASE):
        return None
    text = host.read(LEASE)
    try:
        return parse(text)
    except ValueError as error:
        raise Unobservable(f"{LEASE}: {error}") from None


def parse(text: str) -> Lease:
    """Return the lease that a text is. Raises ValueError with the observed and the expected value."""
    if len(text) > _MOST:
        raise ValueError(f"longer than {_MOST} characters")
    try:
        found = json_text.loads(text)
    except ValueError:
        raise ValueError("not JSON") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"not a lease of schema {SCHEMA}")
    unknown = sorted(set(found) - {"schema", *Lease._fields})
    if unknown:
        raise ValueError(f"says {', '.join(map(str, unknown))}, which this guard does not know")
    return Lease(
        mounts=_mounts(found.get("mounts")),
        issued=_text(found, "issued", _DATE, "a date as 2026-12-31"),
        expires=_text(found, "expires", _DATE, "a date as 2026-12-31"),
        quiet=int(_seconds(found.get("quiet"), "quiet")),
        needed=_needed(found.get("needed")),
        test_ups=_flag(found, "test_ups"),
        units=_units(found.get("units")),
    )


def _units(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(
        isinstance(name, str) and _UNIT.fullmatch(name) for name in names
    ):
        raise ValueError(f"units: observed {names!r}, expected a list of systemd services")
    return tuple(names)


def _mounts(rows: Any) -> tuple[Leased, ...]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError("mounts: expected a list of mount points with their UUIDs")
    mounts = []
    for row in rows:
        target = row.get("target")
        if not isinstance(target, str) or not target.startswith("/") or "\0" in target:
            raise ValueError(f"mounts: observed target {target!r}, expected an absolute path")
        mounts.append(Leased(target, _text(row, "uuid", _UUID, "a file system's UUID")))
    if len({mount.target for mount in mounts}) != len(mounts):
        raise ValueError("mounts: a mount point is named twice")
    return tuple(mounts)


def _needed(found: Any) -> dict[str, float]:
    if not isinstance(found, dict) or set(found) != set(BUDGETS):
        raise ValueError(f"needed: expected seconds for {' and '.join(BUDGETS)}")
    return {name: _seconds(found[name], f"needed.{name}") for name in BUDGETS}


def _seconds(value: Any, name: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: observed {value!r}, expected seconds")
    return float(value)


def _text(found: Mapping[str, object], name: str, form: re.Pattern[str], wanted: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name}: observed {value!r}, expected {wanted}")
    return value


def _flag(found: Mapping[str, object], name: str) -> bool:
    value = found.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: observed {value!r}, expected true or false")
    return value
