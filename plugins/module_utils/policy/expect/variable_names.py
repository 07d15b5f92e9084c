# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables: those that begin with durable_, and those of the layers' roles, misspelt. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from ...catalog import LAYERS, Engine
from ...profiles import Refusal

_PREFIX = "durable_"
#: Options of a layer's role that its module does not have.
_MORE: Mapping[str, tuple[str, ...]] = {
    "power_guard": ("expires", "quiet", "needed", "test_ups", "units"),
}
#: Layer -> the options of its role. Without targets, a role uses all of the profile for its layer.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    name: (
        *("targets", "state", *layer.options, *layer.secrets, *_MORE.get(name, ())),
        *(("restart",) if isinstance(layer, Engine) and layer.restarts else ()),
        *(("alter_system",) if layer.alters else ()),
    )
    for name, layer in LAYERS.items()
}
#: Words near an option that are names of their own in other roles: postgresql_stats, firebird_users.
_OTHER = frozenset(("servers", "stage", "start", "stats", "users"))
#: Similarity of a misspelt option: above "status" and "state" (0.73), below "staet" and "state" (0.8).
_SIMILAR = 0.75
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
        *("attested_by", "benchmark", "confirm", "filesystems", "plug", "plug_limits", "prove_fua"),
        *("shutdown_by", "wait"),
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
        "compared",
        "compared_result",
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
        own = "or give a variable of your own another name"
        meant = _near(name) if name.startswith(_PREFIX) else _BY_LETTERS.get(_letters(name)) or _option(name)
        if meant:
            yield Refusal(f"{name}: no such variable", f"correct it, {own}", f". Did you mean {meant}?")
        elif name.startswith(_PREFIX):
            yield Refusal(
                f"{name}: no such variable; expected a name of docs/variables.md", f"correct it, {own}"
            )


def _near(name: str) -> str:
    # Without the common prefix, which makes all names similar.
    known = [each[len(_PREFIX) :] for each in sorted(INPUTS)]
    near = difflib.get_close_matches(name[len(_PREFIX) :], known, n=1)
    return f"{_PREFIX}{near[0]}" if near else ""


def _option(name: str) -> str:
    """Return the variable of a layer's role that a name with the role's prefix misspells, '' for none."""
    layer = max((each for each in LAYERS if name.startswith(f"{each}_")), key=len, default="")
    rest = name[len(layer) + 1 :]
    if not layer or rest in _OTHER:
        return ""
    near = difflib.get_close_matches(rest, OPTIONS[layer], n=1, cutoff=_SIMILAR)
    return f"{layer}_{near[0]}" if near else ""


def _letters(name: str) -> str:
    """Return a name without the most frequent misspellings: underscores, capitals, and the plural s."""
    return "".join(part.rstrip("s") for part in name.lower().split("_"))


_OF_ROLES = tuple(f"{layer}_{name}" for layer in LAYERS for name in ("targets", "state"))
_KNOWN = INPUTS | OWN | {f"{layer}_{name}" for layer, options in OPTIONS.items() for name in options}
_BY_LETTERS = {_letters(name): name for name in _OF_ROLES}
