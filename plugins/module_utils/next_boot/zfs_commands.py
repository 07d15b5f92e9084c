# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes by other components to a ZFS dataset: zfs-set(8), zfs-inherit(8), and parameters of the module. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..host.observation import UNKNOWN
from . import acts
from .acts import BARRIER, Act

_PARAMETERS = tuple(f"/sys/module/zfs/parameters/{name}" for name in ("zfs_nocacheflush", "zil_nocacheflush"))
_SYNC = {"standard": "on", "always": "on", "disabled": "off"}
#: With these a boot may mount the dataset elsewhere, or not at all.
_PLACES = ("canmount", "mountpoint")


def effects(act: Act, dataset: str, persisted: str | None) -> dict[str, str]:
    """Return {barrier: value} of what an act sets for a dataset, {} for nothing; `persisted`: the value before."""
    value = _value(act, dataset)
    # With barriers off, or without a mount, another cause may be left.
    return {BARRIER: value} if value and persisted in ("on", value) else {}


def _value(act: Act, dataset: str) -> str | None:
    if act.kind == "write" and any(fnmatchcase(path, act.words[0]) for path in _PARAMETERS):
        return None if act.words[1].strip() == "0" else "off"
    if act.kind == "command" and act.words[0] == "zfs":
        return _of_command(act.words[1:], dataset)
    if act.kind == "script" and acts.ZFS in acts.mentioned(act.words[-1]):
        line = act.words[-1]
        is_about = "nocacheflush" in line or "$" in line or "`" in line
        return (
            UNKNOWN if is_about or any(_is_in(dataset, word.strip("'\"")) for word in line.split()) else None
        )
    return None


def _of_command(words: tuple[str, ...], dataset: str) -> str | None:
    """Return what `zfs set` or `zfs inherit` makes of a dataset's barrier. Below a dataset it may be inherited."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words[:1] == ("set",):
        reported = dict(word.partition("=")[::2] for word in plain if "=" in word)
        names = [word for word in plain if "=" not in word]
    elif words[:1] == ("inherit",) and plain:
        reported, names = {plain[0]: ""}, plain[1:]
    else:
        return None
    if not any(_is_in(dataset, name) for name in names) or not reported.keys() & {"sync", *_PLACES}:
        return None
    is_certain = dataset in names and not reported.keys() & set(_PLACES)
    return _SYNC.get(reported["sync"], UNKNOWN) if is_certain else UNKNOWN


def _is_in(dataset: str, name: str) -> bool:
    return bool(name) and f"{dataset}/".startswith(f"{name}/")
