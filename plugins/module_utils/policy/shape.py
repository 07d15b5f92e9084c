# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether facts have the shape that the policy reads, and agree with themselves. Pure.

A fact that is missing, that is none of its words, or that another fact contradicts, is no observation:
the policy has no rule for it, and would take it for the first thing that it is not compared with.
What is not read by the policy, and facts that are new, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Union

from ..facts import mountwords
from ..facts.caches import CONTROLS
from ..facts.kinds import KINDS
from ..observation import UNKNOWN

#: A shape: a test of one value and what it wants in words, a mapping of fields, or a list's one shape.
Shape = Union["Leaf", dict[str, Any], list[Any]]


class Leaf:
    """A test of one value; `wanted` says in words what passes."""

    def __init__(self, fits: Callable[[Any], bool], wanted: str) -> None:
        self.fits = fits
        self.wanted = wanted


def _words(*allowed: str) -> Leaf:
    return Leaf(lambda value: isinstance(value, str) and value in allowed, f"one of {', '.join(allowed)}")


def _pattern(pattern: str, wanted: str, *others: Any) -> Leaf:
    found = re.compile(pattern)
    return Leaf(
        lambda value: (isinstance(value, str) and bool(found.fullmatch(value))) or value in others, wanted
    )


def _each(shape: Leaf, wanted: str) -> Leaf:
    return Leaf(lambda value: isinstance(value, list) and all(map(shape.fits, value)), wanted)


def _or_none(shape: Leaf) -> Leaf:
    return Leaf(lambda value: value is None or shape.fits(value), f"{shape.wanted}, or null")


_TEXT = Leaf(lambda value: isinstance(value, str), "text")
_NAME = Leaf(lambda value: isinstance(value, str) and value not in ("", UNKNOWN), "a name")
_ANY = Leaf(lambda _value: True, "a value")
#: As a name, and `unknown` is one of its words.
_WORD = Leaf(lambda value: isinstance(value, str) and value != "", "a word")
_NAMES = _each(_NAME, "a list of names")
_MAPPING = Leaf(lambda value: isinstance(value, dict), "a mapping")
_YES_NO = _words("yes", "no")
_YES_NO_UNKNOWN = _words("yes", "no", UNKNOWN)
_DEVICE = _pattern(r"\d+:\d+", "a device number", UNKNOWN)
_PATH = _pattern(r"/.*", "an absolute path")
#: Of one observation, as `evidence` has it.
_EVIDENCE = Leaf(
    lambda value: (
        isinstance(value, dict)
        and {"value", "reason"} <= set(value)
        and isinstance(value.get("source"), str)
        and (value["reason"] is None or isinstance(value["reason"], str))
    ),
    "value, source and reason",
)


def _evidence(*fields: str) -> dict[str, Any]:
    return dict.fromkeys(fields, _EVIDENCE)


_DISK = {
    "name": _NAME,
    "id": _pattern(r"(wwn|nvme|serial):.+", "wwn:, nvme: or serial: and a name, or null", None),
    "kind": _words(*KINDS),
    "control": _words(*CONTROLS, "none"),
    "switchable": _YES_NO,
    "multipath": _YES_NO,
    "rotational": _YES_NO_UNKNOWN,
    "flush": _words("done", "owed"),
    "fua": _words("supported", "unsupported", UNKNOWN),
    "unheard": _NAMES,
    "place": _TEXT,
    "write_cache": {
        "device": _words("enabled", "disabled", "none", UNKNOWN),
        "kernel": _words("write back", "write through", UNKNOWN),
        "persisted": _words("enabled", "disabled", "none", "unset", UNKNOWN),
        "volatile": _words("volatile", "non_volatile", UNKNOWN),
    },
    "scheduler": {"running": _TEXT, "available": _each(_TEXT, "a list of text"), "persisted": _TEXT},
    "evidence": _evidence(
        "id",
        "kind",
        "write_cache.device",
        "write_cache.kernel",
        "write_cache.persisted",
        "scheduler.running",
        "scheduler.persisted",
    ),
}
_LAYER = {
    "name": _NAME,
    "type": _words("disk", "partition", "md", "lvm", "crypt", "multipath", "dm", UNKNOWN),
    "state": _TEXT,
    "label": _TEXT,
    "belief": _words("", "write back", "write through", UNKNOWN),
    "below": _NAMES,
}
_MODES = ("ordered", "journal", "writeback", "none", UNKNOWN)
_OPTIONS = _or_none(_each(_TEXT, "a list of text"))
_MOUNT = {
    "target": _PATH,
    "targets": _each(_PATH, "a list of absolute paths"),
    "device": _DEVICE,
    "fstype": _NAME,
    "barrier": _words("on", "off", UNKNOWN),
    "data_mode": _words(*_MODES),
    "atime": _TEXT,
    "persisted": {
        "barrier": _words("on", "off", "refused", "unset", UNKNOWN),
        "data_mode": _words(*_MODES, "refused", "unset"),
        "atime": _TEXT,
    },
    "options_running": _each(_TEXT, "a list of text"),
    "options_boot": _OPTIONS,
    "hidden_in": _or_none(_NAME),
    "disks": Leaf(lambda value: value == UNKNOWN or _NAMES.fits(value), f"a list of names, or {UNKNOWN}"),
    "disks_seen": _NAMES,
    "stack": [_LAYER],
    "write_hole": _NAMES,
    "fua_path": _YES_NO_UNKNOWN,
    "carrier": _or_none(_NAME),
    "carrier_id": _or_none(_TEXT),
    "readahead": _MAPPING,
    "evidence": _evidence(
        "barrier",
        "data_mode",
        "atime",
        "persisted.barrier",
        "persisted.data_mode",
        "persisted.atime",
        "disks",
        "fua_path",
    ),
}
_STORAGE = {
    "time": _TEXT,
    "disks": [_DISK],
    "mounts": [_MOUNT],
    "virtualization": _WORD,
    "elsewhere": _MAPPING,
    "resolved": _MAPPING,
    "unresolved": _MAPPING,
    "links": Leaf(
        lambda value: isinstance(value, dict) and all(map(_NAMES.fits, value.values())),
        "a mapping to lists of paths",
    ),
    "fstab_error": _or_none(_NAME),
    "fstab_refused": [
        {
            "source": _NAME,
            "target": _NAME,
            "fstype": _NAME,
            "options": _NAMES,
            "boot": _words("required", "optional"),
        }
    ],
    "licensed": _YES_NO,
    "tuned": {"profile": _or_none(_TEXT), "sets": _MAPPING},
}
_INSTANCE = {
    "engine": _NAME,
    "name": _NAME,
    "state": _words("running", "stopped", UNKNOWN),
    "version": _TEXT,
    "unit": _or_none(_TEXT),
    "managed_by": _WORD,
    "namespace": _TEXT,
    "directories": _each(_TEXT, "a list of paths"),
    "preloads": _each(_TEXT, "a list of paths"),
    "pending_restart": _each(_TEXT, "a list of settings"),
    "files": [{"directory": _TEXT, "device": _TEXT, "opened": _ANY, "count": _ANY}],
    "settings": _MAPPING,
    "evidence": _MAPPING,
}
_SETTING = {"running": _TEXT, "persisted": _TEXT, "source": _or_none(_TEXT), "reason": _or_none(_TEXT)}
_DATABASE = {
    **dict.fromkeys(("path", "forced_writes", "running", "in_use", "mode"), _TEXT),
    "owner": _or_none(_TEXT),
    "reason": _or_none(_TEXT),
}
_ENGINES = {
    "time": _TEXT,
    "engines": [_INSTANCE],
    "unattributed": [{"pid": _ANY, "name": _TEXT, "why": _or_none(_TEXT)}],
}


def faults(storage: Any, engines: Any) -> list[str]:
    """Return what is wrong with the facts, each in one line; nothing where the policy can read them.

    `storage` is `durable_storage`, `engines` is `durable_engines`.
    """
    found = [*_misfits("durable_storage", storage, _STORAGE), *_misfits("durable_engines", engines, _ENGINES)]
    if not found:
        found += _contradictions(storage)
        for number, instance in enumerate(engines["engines"]):
            where = f"durable_engines.engines[{number}]"
            for name, seen in instance["settings"].items():
                found += _misfits(f"{where}.settings.{name}", seen, _SETTING)
            for place, seen in enumerate(instance.get("databases") or ()):
                found += _misfits(f"{where}.databases[{place}]", seen, _DATABASE)
    return found


def _misfits(where: str, value: Any, shape: Shape) -> Iterator[str]:
    if isinstance(shape, Leaf):
        if not shape.fits(value):
            yield f"{where}: seen {value!r}; wanted {shape.wanted}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where}: seen {value!r}; wanted a list"
            return
        for number, item in enumerate(value):
            yield from _misfits(f"{where}[{number}]", item, shape[0])
    elif not isinstance(value, dict):
        yield f"{where}: seen {value!r}; wanted a mapping"
    else:
        for name, inner in shape.items():
            if name in value:
                yield from _misfits(f"{where}.{name}", value[name], inner)
            else:
                yield f"{where}.{name}: seen nothing; wanted it"


def _contradictions(storage: dict[str, Any]) -> Iterator[str]:
    names = [disk["name"] for disk in storage["disks"]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"disk {name}: seen twice"
    for mount in storage["mounts"]:
        yield from (f"{mount['target']}: {fault}" for fault in _contradicted(mount))


def _contradicted(mount: dict[str, Any]) -> Iterator[str]:
    """Yield where the facts of a mount do not fit together: each of them is about the others."""
    hidden = mount["hidden_in"] is not None
    if mount["target"] not in mount["targets"] and not hidden:
        yield "it is none of its own targets"
    if hidden and mount["persisted"]["barrier"] != UNKNOWN:
        yield f"it is seen by {mount['hidden_in']} alone, and its next boot is known"
    if mount["fstype"] not in mountwords.SETTINGS_OF and mount["barrier"] == "on":
        yield f"barriers are on, and no rule here says so of {mount['fstype']}"
    if mount["disks"] != UNKNOWN:
        yield from _torn(mount)


def _torn(mount: dict[str, Any]) -> Iterator[str]:
    """Yield where the stack below a mount does not lead to its disks."""
    leaves = {layer["name"] for layer in mount["stack"] if layer["type"] == "disk"}
    known = {layer["name"] for layer in mount["stack"]}
    if not (mount["disks"] and mount["disks_seen"]):
        return  # No leaf at all: that mount is unknown, and the others are made safer all the same.
    if leaves != set(mount["disks"]) or leaves != set(mount["disks_seen"]):
        yield (
            f"its stack ends at {', '.join(sorted(leaves)) or 'nothing'}, its disks are"
            f" {', '.join(mount['disks']) or 'none'}, seen {', '.join(mount['disks_seen']) or 'none'}"
        )
    for layer in mount["stack"]:
        if layer["type"] != "disk" and (not layer["below"] or set(layer["below"]) - known):
            yield f"what lies below {layer['name']} is not in its stack"
        if layer["type"] == UNKNOWN:
            yield f"{layer['name']} is not understood, and its disks are known"
        if (layer["type"] in ("disk", "partition")) != (layer["belief"] == ""):
            yield f"the kernel cache mode of {layer['name']} is {layer['belief'] or 'not read'}"
