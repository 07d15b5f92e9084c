# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`durable_layers`: which layers a run may touch. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import catalog
from ...profiles import BadInput, Refusal, near
from ...rows import Setting

_ALL = tuple(dict.fromkeys(layer for _phase, layer in catalog.STEPS))
#: Names for several layers.
GROUPS = {
    "storage": ("write_cache", "mount_options", "io_scheduler"),
    "engines": (*(engine.name for engine in catalog.ENGINES), "unit_mounts"),
    "power": ("power", "power_guard"),
}


def read(value: Any) -> frozenset[str]:
    """Return the chosen layers, by default all. Raises BadInput."""
    if value is None:
        return frozenset(_ALL)
    known = sorted({*_ALL, *GROUPS})
    if not isinstance(value, (list, tuple)) or not value or any(name not in known for name in value):
        wrong = (
            next((name for name in value if name not in known), "")
            if isinstance(value, (list, tuple))
            else value
        )
        raise BadInput(
            Refusal(
                f"durable_layers: observed {value!r}; expected a list of {', '.join(known)}",
                "",
                near(wrong, known),
            )
        )
    return frozenset(layer for name in value for layer in GROUPS.get(name, (name,)))


def leave_out(rows: Iterable[Setting], chosen: frozenset[str]) -> tuple[list[Setting], tuple[str, ...]]:
    """Return the rows, those of other layers without a change, and the other layers that would make something safer.

    While there is one of these, no setting may become less strict, because its basis is missing.
    """
    found = []
    safer: dict[str, None] = {}
    for row in rows:
        if row.phase is None or row.layer in chosen:
            found.append(row)
            continue
        if row.phase != "loosen" and row.klass == "safety":
            safer[row.layer] = None
        remedy = f"add {row.layer} to durable_layers, then run harden_db"
        found.append(row._replace(phase=None, remedy=remedy))
    return found, tuple(safer)
