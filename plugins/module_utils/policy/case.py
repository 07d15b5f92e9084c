# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host as it is judged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..attestations import Attestation
from ..engines.placement import Placement
from ..rows import Reason
from . import counted, promises, ups_inputs
from .inputs import Inputs
from .waivers import Waivers

NO_ENGINES: dict[str, Any] = {"time": "", "engines": [], "unattributed": [], "writers": []}


class Case(NamedTuple):
    """One host as it is judged: what its owner says, what was observed, and the mounts that count.

    `power` is `durable_power`, None where nobody asked for it; `asked` is what `durable_ups` says; `words`
    are the attestations in force, `expired` the others by where they are written; `today` an ISO 8601 date.
    `engines` is `durable_engines` but for those that are only listed: `standings` has them all, with
    `durable_ignore` in `ignoring`. `temporary`: (mount point, why it is not judged) of those that hold only temporary
    files. `entries`: `durable_mount_profiles` by path; `placed`: where each of `engines` keeps its files. `layers`: those that a
    run may touch. `lost`: paths of the inventory that are on no mount. `waivers`: `durable_accept`.
    """

    inputs: Inputs
    storage: dict[str, Any]
    engines: dict[str, Any]
    power: dict[str, Any] | None
    asked: ups_inputs.Asked
    words: list[Attestation]
    expired: dict[str, Attestation]
    mounts: list[dict[str, Any]]
    today: str
    entries: Mapping[str, promises.Entry] = MappingProxyType({})
    placed: tuple[tuple[dict[str, Any], Placement], ...] = ()
    temporary: tuple[tuple[str, str], ...] = ()
    standings: tuple[counted.Standing, ...] = ()
    ignoring: counted.Ignoring = counted.Ignoring()
    layers: frozenset[str] = frozenset()
    lost: tuple[Reason, ...] = ()
    waivers: Waivers = Waivers()
