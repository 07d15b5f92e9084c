# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All findings of the product by id, from all packages. docs/findings.md has a section for each."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog import LAYERS
from ..engines import findings as of_engines
from ..engines.judges import JUDGES
from ..engines.unit_mounts import SETTING as REQUIRES_MOUNTS
from ..rows import Kind
from ..storage import boot_findings as of_boot
from ..storage import findings as of_storage
from ..ups import findings as of_ups
from . import kinds


def _settings() -> Iterator[tuple[str, str]]:
    """Yield (layer, setting) of all rows of the report."""
    named = {**of_storage.SETTINGS, **of_ups.SETTINGS, "unit_mounts": (REQUIRES_MOUNTS,)}
    for name, judge in JUDGES.items():
        full = dict.fromkeys(setting for rules in judge.full.values() for setting in rules)
        named[name] = (*full, *judge.settings, of_engines.PRELOADS)
    yield from ((layer, setting) for layer in LAYERS for setting in named[layer])


#: Findings with a sentence in the catalogue.
KINDS: dict[str, Kind] = {
    kind.id: kind
    for kind in (
        *(*kinds.KINDS, *of_storage.KINDS, *of_boot.KINDS.values(), *of_ups.KINDS, *of_engines.KINDS),
        *(kind for judge in JUDGES.values() for kind in judge.kinds),
    )
}
#: Findings of settings: their sentence is that of the row.
SETTINGS: tuple[str, ...] = tuple(f"setting.{layer}.{setting}" for layer, setting in _settings())
#: Findings that change no verdict, with notes: settings about speed, and barriers that a guard has enabled.
NO_VERDICT: frozenset[str] = frozenset(
    f"setting.{name}"
    for name in (
        *("io_scheduler.scheduler", "io_scheduler.readahead", "mount_options.atime", "faircom.COMMIT_DELAY"),
        "power_guard.barrier",
    )
)
IDS: frozenset[str] = frozenset((*KINDS, *SETTINGS))
