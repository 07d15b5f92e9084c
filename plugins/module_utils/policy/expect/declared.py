# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declarations of the inventory about one host, read from its variables. Pure."""

from __future__ import annotations

import functools
from typing import NamedTuple

from ... import attestations
from ...attestations import Attestation
from ...profiles import BadInput, gathered
from . import (
    chosen_layers,
    engine_scope,
    guarantees,
    managed,
    ups_inputs,
    waivers,
)
from .inputs import Inputs


class Declared(NamedTuple):
    """The declarations of the inventory about one host.

    `attestations`: those in force; `expired`: the others by their place. `ups_requested`: `durable_ups`; `ignoring`:
    `durable_ignore`; `entries`: `durable_mount_profiles` by path; `layers`: those that a run may touch; `waivers`:
    `durable_accept`.
    """

    inputs: Inputs
    attestations: list[Attestation]
    expired: dict[str, Attestation]
    ups_requested: ups_inputs.Requested
    ignoring: engine_scope.Ignoring
    entries: dict[str, guarantees.Entry]
    layers: frozenset[str]
    waivers: waivers.Waivers


def read(inputs: Inputs, today: str) -> Declared:
    """Return what variables declare; `today` is an ISO 8601 date. Raises BadInput with all errors."""
    mounts = [] if inputs.mounts is None else inputs.mounts
    (in_force, expired), ups_requested, ignoring, entries, layers, accepted, *_paths = gathered(
        (
            functools.partial(attestations.read, inputs.attestations or {}, today),
            functools.partial(ups_inputs.read, inputs.ups),
            functools.partial(engine_scope.read, inputs.ignore, inputs.databases, today),
            functools.partial(guarantees.read, inputs.mount_profiles, inputs.shipped, inputs.own),
            functools.partial(chosen_layers.read, inputs.layers),
            functools.partial(waivers.read, inputs.accept, inputs.accept_data_loss is True, today),
            functools.partial(managed.database_paths, inputs.databases),
            functools.partial(managed.paths_in, "durable_mounts", mounts),
        )
    )
    return Declared(inputs, in_force, expired, ups_requested, ignoring, entries, layers, accepted)


def errors(inputs: Inputs, today: str) -> tuple[str, ...]:
    """Return what is wrong with variables before any fact is known; `today` is an ISO 8601 date."""
    try:
        gathered((inputs.check, functools.partial(read, inputs, today), inputs.chosen))
    except BadInput as error:
        return error.errors
    return ()
