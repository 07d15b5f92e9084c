# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether facts have the shape that the policy reads, and agree with themselves. Pure.

A fact that is missing, that is none of its words, or that another fact contradicts, is no observation:
the policy has no rule for it, and would take it for the first thing that it is not compared with.
What is not read by the policy, and facts that are new, are left alone.
"""

from __future__ import annotations

import itertools
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union

from .. import catalog
from ..host import bounds
from ..host.observation import UNKNOWN
from ..storage import mount_settings, nfs, platforms
from ..storage.boot_faults import EFFECTS, FAULTS
from ..storage.caches import CONTROLS
from ..storage.disk_kinds import KINDS, PLACES, RAID_VOLUME
from ..storage.raid_controllers import volume
from . import budgets

#: A shape knows what fits it, and says what is wrong with what does not.
Shape = Union["Leaf", "Rows", "Fields"]


class Leaf:
    """A test of one value; `wanted` says in words what passes."""

    def __init__(self, fits: Callable[[Any], bool], wanted: str) -> None:
        self.fits = fits
        self.wanted = wanted

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with a value that lies there, in one line."""
        if not self.fits(value):
            yield f"{where}: seen {_shown(value)}; wanted {self.wanted}"


class Rows:
    """A list whose items have one shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def fits(self, value: Any) -> bool:
        """Tell whether it is one. Nearly all do, and then nobody needs to know where they lie."""
        return isinstance(value, list) and all(map(self._shape.fits, value))

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with it, each fault in one line."""
        if not isinstance(value, list):
            yield f"{where}: seen {_shown(value)}; wanted a list"
            return
        for number, item in enumerate(value):
            if not self._shape.fits(item):
                yield from self._shape.misfits(f"{where}[{number}]", item)


class Fields:
    """A mapping with these fields, each of its own shape, and perhaps others."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self._shapes = shapes
        self._tests = [(name, shape.fits) for name, shape in shapes.items()]

    def fits(self, value: Any) -> bool:
        """Tell whether it is one."""
        if not isinstance(value, dict):
            return False
        for name, fits in self._tests:  # noqa: SIM110 - a generator would be one more frame for each mapping
            if name not in value or not fits(value[name]):
                return False
        return True

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with it, each fault in one line."""
        if not isinstance(value, dict):
            yield f"{where}: seen {_shown(value)}; wanted a mapping"
            return
        for name, shape in self._shapes.items():
            if name not in value:
                yield f"{where}.{name}: seen nothing; wanted it"
            elif not shape.fits(value[name]):
                yield from shape.misfits(f"{where}.{name}", value[name])


def _of(drawn: Any) -> Shape:
    """Return the shape of a drawing: mappings of fields, lists with one item, and leaves."""
    if isinstance(drawn, dict):
        return Fields({name: _of(inner) for name, inner in drawn.items()})
    return Rows(_of(drawn[0])) if isinstance(drawn, list) else drawn


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
#: True is 1 to Python. Beyond 64 bits, and for what is not finite, arithmetic fails.
_NUMBER = Leaf(
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**64,
    "a number of 64 bits",
)
_SECONDS = Leaf(
    lambda value: _NUMBER.fits(value) or value in ("infinity", UNKNOWN), f"seconds, infinity or {UNKNOWN}"
)
#: Of one observation, as `evidence` has it.
_EVIDENCE = Leaf(
    lambda value: (
        isinstance(value, dict)
        and "value" in value
        and "reason" in value
        and isinstance(value.get("source"), str)
        and all(value.get(key) is None or isinstance(value[key], str) for key in ("reason", "by", "fix"))
    ),
    "value, source and reason",
)
_OBSERVATIONS = Leaf(
    lambda value: isinstance(value, dict) and all(map(_EVIDENCE.fits, value.values())),
    f"a mapping to {_EVIDENCE.wanted}",
)


def _evidence(*fields: str) -> dict[str, Any]:
    return dict.fromkeys(fields, _EVIDENCE)


_RAID = _of(
    {
        "volume": _or_none(_NAME),
        "write_policy": _words(*volume.WRITE_POLICIES),
        "backup": _words(*volume.BACKUPS),
        "drive_caches": _words(*volume.DRIVE_CACHES),
    }
)
_DISK = {
    "name": _NAME,
    "id": _pattern(
        r"(wwn|nvme|serial|ptuuid|member|fsuuid|path|nfs):.+",
        "wwn:, nvme:, serial:, ptuuid:, member:, fsuuid:, path: or nfs: and a name, or null",
        None,
    ),
    "kind": _words(*KINDS),
    "transport": _TEXT,
    "control": _words(*CONTROLS, "none"),
    "switchable": _YES_NO,
    "multipath": _YES_NO,
    "rotational": _YES_NO_UNKNOWN,
    "flush": _words("done", "owed"),
    "fua": _words("supported", "unsupported", UNKNOWN),
    "flush_blocked_by": _NAMES,
    "place": _words(*PLACES),
    "write_cache": {
        "device": _words("enabled", "disabled", "none", UNKNOWN),
        "kernel": _words("write back", "write through", UNKNOWN),
        "persisted": _words("enabled", "disabled", "none", "unset", UNKNOWN),
        "volatile": _words("volatile", "non_volatile", UNKNOWN),
    },
    "raid": _or_none(_MAPPING),
    "scheduler": {"running": _TEXT, "available": _each(_TEXT, "a list of text"), "persisted": _TEXT},
    "evidence": _evidence(
        "id",
        "kind",
        "write_cache.device",
        "write_cache.kernel",
        "write_cache.persisted",
        "write_cache.volatile",
        "scheduler.running",
        "scheduler.persisted",
    ),
}
_LAYER = {
    "name": _NAME,
    "type": _words(
        "disk", "partition", "md", "lvm", "crypt", "multipath", "dm", "drbd", "bcache", "loop", UNKNOWN
    ),
    "detail": _TEXT,
    "state": _TEXT,
    "label": _TEXT,
    "cache_mode": _words("", "write back", "write through", UNKNOWN),
    "below": _NAMES,
    "reason": _TEXT,
    "id": _TEXT,
    "held_on": _pattern(r"\d+:\d+", "a device number, or nothing", ""),
}
_MODES = ("ordered", "journal", "writeback", "none", UNKNOWN)
_BOOTS = _words("required", "automount", "optional", UNKNOWN)
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
    "options_fstab": _OPTIONS,
    "boots": Leaf(
        lambda value: isinstance(value, dict) and all(map(_BOOTS.fits, value.values())),
        "a mapping to required, automount, optional or unknown",
    ),
    "hidden_in": _or_none(_NAME),
    "disks": Leaf(lambda value: value == UNKNOWN or _NAMES.fits(value), f"a list of names, or {UNKNOWN}"),
    "disks_seen": _NAMES,
    "devices_missing": _NAMES,
    "stack": [_LAYER],
    "write_hole": [{"maker": _words("md", "dm", "file_system"), "name": _NAME, "level": _NAME}],
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
#: What every NFS mount has besides.
_NFS = _of(
    {
        "recovery": _words(*nfs.RECOVERIES, UNKNOWN),
        "persisted": {"recovery": _words(*nfs.RECOVERIES, "unset", UNKNOWN)},
        "evidence": _evidence("recovery", "persisted.recovery"),
    }
)
_STORAGE = _of(
    {
        "time": _TEXT,
        "kernel": _pattern(r"\d+\.\d+.*", "a release of the kernel"),
        "disks": [_DISK],
        "mounts": [_MOUNT],
        "virtualization": _WORD,
        "platform": _words(*platforms.WORDS),
        "other_mounts": _MAPPING,
        "covered": _MAPPING,
        "resolved": _MAPPING,
        "unresolved": _MAPPING,
        "links": Leaf(
            lambda value: isinstance(value, dict) and all(map(_NAMES.fits, value.values())),
            "a mapping to lists of paths",
        ),
        "fstab_error": _or_none(_NAME),
        "boot_faults": [
            {
                **dict.fromkeys(("source", "target", "fstype", "why", "remedy"), _NAME),
                "boot": _words(*EFFECTS),
                "fault": _words(*FAULTS),
                "state": _words("refused", UNKNOWN),
                "options": _NAMES,
            }
        ],
        "leased": _YES_NO,
        "tuned": {"profile": _or_none(_TEXT), "sets": _MAPPING, "error": _or_none(_TEXT)},
    }
)
#: Of an engine's facts every value is text.
_OBSERVED = Leaf(
    lambda value: _EVIDENCE.fits(value) and isinstance(value["value"], str),
    f"{_EVIDENCE.wanted}, the value text",
)
_INSTANCE = {
    "engine": _words(*(engine.name for engine in catalog.ENGINES)),
    "name": _NAME,
    "state": _words("running", "stopped", UNKNOWN),
    "version": _TEXT,
    "config": _or_none(_TEXT),
    "unit": _or_none(_TEXT),
    "managed_by": _words(
        "systemd", "pacemaker", "patroni", "container", "galera", "group_replication", "none", UNKNOWN
    ),
    "starts_at_boot": _YES_NO_UNKNOWN,
    "namespace": _words("host", "private", "container", UNKNOWN),
    "directories": _each(_PATH, "a list of absolute paths"),
    "temporary": _each(_PATH, "a list of absolute paths"),
    "writes": _each(_PATH, "a list of absolute paths"),
    "requires_mounts": Leaf(
        lambda value: value == UNKNOWN or _NAMES.fits(value), f"a list of mount units, or {UNKNOWN}"
    ),
    "preloads": _each(_TEXT, "a list of paths"),
    "pending_restart": _each(_TEXT, "a list of settings"),
    "overrides": [
        {
            **dict.fromkeys(("scope", "setting", "value", "source", "remedy"), _TEXT),
            **dict.fromkeys(("role", "database", "permission"), _or_none(_TEXT)),
        }
    ],
    "files": [
        {
            "directory": _PATH,
            "device": _DEVICE,
            "opened": _pattern(r"(buffered|direct)( d?sync)?", f"how it is open, or {UNKNOWN}", UNKNOWN),
            "count": _NUMBER,
        }
    ],
    "settings": _MAPPING,
    "evidence": _MAPPING,
}
_DATABASE = {
    "path": _NAME,
    "forced_writes": _words("on", "off", UNKNOWN),
    "running": _words("on", "off", "closed", UNKNOWN),
    "in_use": _YES_NO_UNKNOWN,
    "mode": _words("read_write", "read_only", "shutdown", "backup", UNKNOWN),
    "owner": _or_none(_TEXT),
    "reason": _or_none(_TEXT),
}
#: What every instance of one engine has besides.
_INSTANCE_OF = {
    engine.name: _of(
        {
            **({"flavour": _words(*engine.checks, UNKNOWN)} if len(engine.checks) > 1 else {}),
            **({"databases": [_DATABASE]} if engine.has_databases else {}),
        }
    )
    for engine in catalog.ENGINES
}
#: Of observations that the policy reads, what they may be.
_WORDS = {"files": _words("complete", "partial", UNKNOWN), "write_through": _YES_NO_UNKNOWN}
#: Facts that are told twice: as a field, and as the observation that it is from.
_TWICE = ("version", "managed_by")
_SETTING = _of({"running": _TEXT, "persisted": _TEXT, "source": _or_none(_TEXT), "reason": _or_none(_TEXT)})
_ENGINES = _of(
    {
        "time": _TEXT,
        "engines": [_INSTANCE],
        "unattributed": [{"pid": _ANY, "name": _TEXT, "why": _or_none(_TEXT)}],
        "writers": [{"pid": _ANY, "name": _TEXT, "device": _DEVICE, "example": _TEXT}],
    }
)
_STATE = _words("met", "unmet", UNKNOWN)
_BUDGET = {
    "needed": _SECONDS,
    "available": _SECONDS,
    "state": _STATE,
    "terms": [{"name": _TEXT, "seconds": _SECONDS, "source": _TEXT}],
}
_POWER = _of(
    {
        "time": _TEXT,
        "monitor": _words("nut", "apcupsd", "none", UNKNOWN),
        "mode": _TEXT,
        "upses": [
            {
                "system": _TEXT,
                "driver": _TEXT,
                "power_value": _ANY,
                "user": _ANY,
                "type": _ANY,
                "status": _each(_TEXT, "a list of text"),
                "charge": _ANY,
                "runtime": _ANY,
                "runtime_low": _ANY,
            }
        ],
        "timing": _MAPPING,
        "budget": dict.fromkeys(budgets.NAMES, _BUDGET),
        "conditions": [
            {
                "name": _NAME,
                "state": _STATE,
                **dict.fromkeys(("target", "evidence", "why", "remedy"), _TEXT),
            }
        ],
        "guard": {
            "state": _words("absent", "waiting", "loose", "tight", "failed", "stopped", UNKNOWN),
            "reason": _or_none(_TEXT),
            "since": _or_none(_TEXT),
            "quiet": _or_none(_NUMBER),
            "mounts": [{"target": _PATH, "barrier": _words("on", "off", UNKNOWN)}],
            "lease": _ANY,
        },
        "settings": _OBSERVATIONS,
        "evidence": _OBSERVATIONS,
    }
)
_LEASE = _of({"mounts": _each(_PATH, "a list of absolute paths"), "units": _NAMES})


def faults(storage: Any, engines: Any, power: Any = None) -> list[str]:
    """Return what is wrong with the facts, each in one line; nothing where the policy can read them.

    `storage` is `durable_storage`, `engines` is `durable_engines`, `power` is `durable_power`, None where nobody
    asked for it.
    """
    told = _STORAGE.misfits("durable_storage", storage), _ENGINES.misfits("durable_engines", engines)
    found = _first(*told, _POWER.misfits("durable_power", power) if power is not None else ())
    return found or _first(_too_many(storage, engines)) or _first(_of_what_fits(storage, engines, power))


def _first(*faults: Iterable[str]) -> list[str]:
    """Return as many faults as anybody reads: a host may tell millions of things that are wrong."""
    return list(itertools.islice(itertools.chain(*faults), bounds.FAULTS))


def _too_many(storage: dict[str, Any], engines: dict[str, Any]) -> Iterator[str]:
    """Yield what there is more of than a host can have: each is held against the others."""
    for where, rows, most in (
        ("durable_storage.disks", storage["disks"], bounds.DEVICES),
        ("durable_storage.mounts", storage["mounts"], bounds.DEVICES),
        # Stopped ones come on top.
        ("durable_engines.engines", engines["engines"], 2 * bounds.INSTANCES),
    ):
        if len(rows) > most:
            yield f"{where}: seen {len(rows)}; wanted at most {most}"


def _of_what_fits(
    storage: dict[str, Any], engines: dict[str, Any], power: dict[str, Any] | None
) -> Iterator[str]:
    """Yield what is wrong with facts whose fields have their shape."""
    yield from _contradictions(storage)
    for number, instance in enumerate(engines["engines"]):
        yield from _of_instance(f"durable_engines.engines[{number}]", instance)
    if power is not None:
        yield from _of_power(power)


def _of_instance(where: str, instance: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with an instance whose fields have their shape: what they hold, and hold together."""
    yield from _INSTANCE_OF[instance["engine"]].misfits(where, instance)
    for name, seen in instance["settings"].items():
        yield from _SETTING.misfits(f"{where}.settings.{name}", seen)
    evidence = instance["evidence"]
    wrong = [
        fault
        for name, seen in evidence.items()
        for fault in _OBSERVED.misfits(f"{where}.evidence.{name}", seen)
    ]
    for name, words in _WORDS.items():
        if not wrong and name in evidence:
            wrong += words.misfits(f"{where}.evidence.{name}.value", evidence[name]["value"])
    yield from wrong
    if not wrong:
        said = {
            **{name: instance[name] for name in _TWICE},
            "preloads": " ".join(instance["preloads"]) or "none",
        }
        for name, value in said.items():
            seen = evidence.get(name, {}).get("value", value)
            if seen != value and (name, seen) != ("preloads", UNKNOWN):
                yield f"{where}.{name}: seen {value}, and its evidence is {seen}"


def _of_power(power: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with power facts whose fields have their shape."""
    if power["guard"]["lease"] is not None:
        yield from _LEASE.misfits("durable_power.guard.lease", power["guard"]["lease"])
    states = {condition["name"]: condition["state"] for condition in power["conditions"]}
    for name in budgets.NAMES:
        of_condition = states.get(f"runtime_{name}")
        if of_condition == "met" and not _is_met(power["budget"][name]):
            yield f"durable_power.budget.{name}: its condition is met, and its sum is not"
    if power["monitor"] in ("none", UNKNOWN) and states.get("monitor_active") == "met":
        yield f"durable_power.monitor: it is {power['monitor']}, and active"


def _is_met(budget: dict[str, Any]) -> bool:
    """Tell whether a budget's own numbers say what its condition says."""
    parts = [term["seconds"] for term in budget["terms"]]
    if not parts or not all(
        isinstance(part, (int, float)) for part in (*parts, budget["needed"], budget["available"])
    ):
        return False
    # Fractions are written with fewer digits than they are added with.
    is_sum = abs(sum(parts) - budget["needed"]) < 1
    return bool(budget["state"] == "met" and is_sum and budget["needed"] <= budget["available"])


def _shown(value: Any) -> str:
    """Return a value as Python writes it, the middle left out of what is very long."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = 300
    shown.maxlist = shown.maxdict = 20
    return shown.repr(value)


def _contradictions(storage: dict[str, Any]) -> Iterator[str]:
    names = Counter(disk["name"] for disk in storage["disks"])
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"disk {name}: seen twice"
    for disk in storage["disks"]:
        yield from (f"disk {disk['name']}: {fault}" for fault in (*_of_volume(disk), *_of_lowered(disk)))
    devices = {mount["device"] for mount in storage["mounts"]}
    for mount in storage["mounts"]:
        lost = set(mount["disks"]) - set(names) if mount["disks"] != UNKNOWN else set()
        yield from (f"{mount['target']}: its disk {name} is not among the disks" for name in sorted(lost))
        yield from (f"{mount['target']}: {fault}" for fault in _contradicted(mount))
        if nfs.is_nfs(mount["fstype"]):
            yield from _NFS.misfits(mount["target"], mount)
        for layer in mount["stack"]:
            if layer["held_on"] not in devices and (layer["held_on"] or layer["type"] == "loop"):
                yield f"{mount['target']}: the file system that holds the file of {layer['name']} is not there"


def _of_volume(disk: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with what a disk's RAID controller says, and where the facts make more of it."""
    raid = disk["raid"]
    if (raid is not None) != (disk["kind"] == RAID_VOLUME):
        yield f"its kind is {disk['kind']}, and its facts {'lack' if raid is None else 'have'} those of a RAID volume"
    if raid is not None:
        wrong = list(_RAID.misfits("raid", raid))
        yield from wrong
        if not wrong and disk["write_cache"]["volatile"] == volume.NON_VOLATILE and volume.fault(raid):
            yield "its cache is non_volatile, and its RAID controller does not say so"


def _of_lowered(disk: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a kernel cache mode that another component is reported to lower."""
    mode = disk["write_cache"].get("kernel_persisted")
    if mode is None:
        return
    if mode not in ("write through", UNKNOWN):
        yield f"write_cache.kernel_persisted: {_shown(mode)} is not write through or {UNKNOWN}"
    if not _EVIDENCE.fits(disk["evidence"].get("write_cache.kernel_persisted")):
        yield f"evidence of write_cache.kernel_persisted: wanted {_EVIDENCE.wanted}"


def _contradicted(mount: dict[str, Any]) -> Iterator[str]:
    """Yield where the facts of a mount do not fit together: each of them is about the others."""
    hidden = mount["hidden_in"] is not None
    if mount["target"] not in mount["targets"] and not hidden:
        yield "it is none of its own targets"
    if hidden and mount["persisted"]["barrier"] != UNKNOWN:
        yield f"it is seen by {mount['hidden_in']} alone, and its next boot is known"
    if mount["fstype"] not in (*mount_settings.HAVE_BARRIERS, *nfs.TYPES) and mount["barrier"] == "on":
        yield f"barriers are on, and no rule here says so of {mount['fstype']}"
    if mount_settings.waits(mount) and mount["barrier"] == "off":
        yield "it is not mounted, and its barriers are off"
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
    yield from (f"its disks are known, and {why}" for why in mount["devices_missing"])
    for layer in mount["stack"]:
        if layer["type"] != "disk" and (not layer["below"] or set(layer["below"]) - known):
            yield f"what lies below {layer['name']} is not in its stack"
        if layer["type"] == UNKNOWN or layer["reason"]:
            yield f"{layer['name']} is not understood, and its disks are known"
        if (layer["type"] in ("disk", "partition")) != (layer["cache_mode"] == ""):
            yield f"the kernel cache mode of {layer['name']} is {layer['cache_mode'] or 'not read'}"
