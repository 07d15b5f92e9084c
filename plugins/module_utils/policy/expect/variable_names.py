# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables: those that begin with durable_, and those of the layers' roles, misspelt. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from ...catalog import LAYERS

_PREFIX = "durable_"
#: The variables of each layer's role. Without targets, a role uses all of the profile for its layer.
_OF_ROLES = tuple(f"{layer}_{name}" for layer in LAYERS for name in ("targets", "state"))
#: Variables of the inventory: docs/variables.md and the pages that it names explain them.
INPUTS = frozenset(
    f"durable_{name}"
    for name in (
        *(
            "profile",
            "profiles",
            "overrides",
            "mounts",
            "mount_profiles",
            "databases",
            "ignore",
            "accept",
            "ups",
            "allow",
            "layers",
            "accept_data_loss",
            "undo_after",
            "time_limit",
        ),
        *(
            "attestations",
            "attestations_group",
            "attestations_host",
            "fail_on",
            "report_dir",
            "report_formats",
            "reports",
            "reports_max_hours",
            "hosts",
            "serial",
        ),
        *("attested_by", "benchmark", "confirm", "plug", "plug_limits", "prove_fua", "shutdown_by", "wait"),
        *("witness", "witness_address", "witness_directory", "witness_listen", "witness_port"),
    )
)
#: Variables that the playbooks set, and the facts.
OWN = frozenset(
    f"durable_{name}"
    for name in (
        "requested",
        "started_by",
        "benchmark_inputs",
        "benchmark_mounts",
        "benchmark_result",
        "engines",
        "engines_result",
        "hint",
        "input",
        "known",
        "limits",
        "managed",
        "measure",
        "merged",
        "planned",
        "plug_address",
        "plug_key",
        "power",
        "prove",
        "proved",
        "rebooted",
        "risks",
        "seconds",
        "observed",
        "shipped_profiles",
        "storage",
        "verified",
        "witnessed",
        "witnessing",
    )
)


def unknown(names: Iterable[str]) -> Iterator[str]:
    """Yield an error for each name that begins with durable_ and is no variable, or that is one of a role's, misspelt."""
    for name in sorted(set(names) - _KNOWN):
        expected = _near(name) if name.startswith(_PREFIX) else _BY_LETTERS.get(_letters(name))
        if expected:
            yield f"{name}: no such variable; expected {expected}: correct it, or give a variable of your own another name"


def _near(name: str) -> str:
    # Without the common prefix, which makes all names similar.
    known = [each[len(_PREFIX) :] for each in sorted(INPUTS)]
    near = difflib.get_close_matches(name[len(_PREFIX) :], known, n=1)
    return f"{_PREFIX}{near[0]}" if near else "a name of docs/variables.md"


def _letters(name: str) -> str:
    """Return a name without the most frequent misspellings: underscores, capitals, and the plural s."""
    return "".join(part.rstrip("s") for part in name.lower().split("_"))


_KNOWN = INPUTS | OWN | set(_OF_ROLES)
_BY_LETTERS = {_letters(name): name for name in _OF_ROLES}
