# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount options that concern durability, and their result.

A setting (`barrier`, `data_mode`, `atime`, `sync`) is spelled by several options, and the last one wins:
ext4(5), xfs(5), mount(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..facts.classes import MountFacts
from ..host.observation import UNKNOWN, Observation, caused

_OF_THE_SYSTEM = ("/", "/boot", "/usr", "/var", "/etc", "/home")

#: The kernel reads the number in base 8, 10 or 16, and takes any but 0 for on (FACTS 74; Linux 5.10 to 7.2). Releases
#: differ over a plus sign, which some refuse, and over numbers above the largest signed one.
_NUMBER = re.compile(r"\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_LARGEST = 2**31 - 1
#: The values of data=. In facts other names have a meaning of their own: none, unset, refused.
DATA_MODES = ("ordered", "journal", "writeback")
_ATIMES = ("noatime", "relatime", "strictatime", "atime")
#: The values of `sync`: whether each write waits for the disk.
SYNCS = ("async", "sync")

#: The settings that a file system's mount options can express. Others have no rule here.
SETTINGS_OF = {
    "ext4": ("barrier", "data_mode", "atime", "sync"),
    "ext3": ("barrier", "data_mode", "atime", "sync"),
    "ext2": ("barrier", "atime", "sync"),
    "xfs": ("atime", "sync"),
    "btrfs": ("barrier", "atime", "sync"),
}

#: Those that have no data=, and those whose barriers a remount really takes away and brings back.
NO_DATA_MODE = ("xfs", "btrfs", "jfs", "zfs")
SWITCHED = ("ext4", "ext3")
#: Those whose barriers can be on by a rule here.
HAVE_BARRIERS = (*SETTINGS_OF, "zfs")

#: For messages: how a setting is spelled with a value, and the values that it accepts.
SPELLED = {"barrier": "barrier=", "data_mode": "data="}
ACCEPTED = {"barrier": "0 or 1", "data_mode": ", ".join(DATA_MODES)}

#: Options that a current kernel refuses for a file system: in fstab they stop the boot.
#: XFS lost its barrier options in 4.19.
REFUSED_BY = {"xfs": ("barrier", "data_mode")}


def meaning(option: str) -> tuple[str, str] | None:
    """Return (setting, value) of one mount option, or None when it says nothing of ours.

    The value is unknown for one that no kernel takes, or not all kernels in the same way.
    """
    if option in ("barrier", "nobarrier"):
        return "barrier", "on" if option == "barrier" else "off"
    if option.startswith("barrier="):
        return "barrier", _switch(option[len("barrier=") :])
    if option.startswith("data="):
        mode = option[len("data=") :]
        return "data_mode", mode if mode in DATA_MODES else UNKNOWN
    if option in _ATIMES:
        return "atime", option
    if option in SYNCS:
        return "sync", option
    return None


def _switch(number: str) -> str:
    """Return what the kernel makes of the number of barrier=: on, off or unknown."""
    found = _NUMBER.fullmatch(number)
    if found is None:
        return UNKNOWN
    digits = found[1]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    value = int(digits, base)
    return "off" if value == 0 else "on" if value <= _LARGEST else UNKNOWN


def fold(options: Iterable[str]) -> dict[str, str]:
    """Return {setting: value} of an option list, the last word on each winning."""
    return dict(found for found in map(meaning, options) if found)


def observed(said: dict[str, str], setting: str, otherwise: str, source: str) -> Observation:
    """Return what folded options say of a setting; `otherwise` where they do not."""
    value = said.get(setting, otherwise)
    if value == UNKNOWN:
        return caused(UNKNOWN, source, "option_value", setting=setting)
    return Observation(value, source)


def read_with(mount: Mapping[str, Any], setting: str) -> str:
    """Return the setting whose evidence names the place of a setting: that of `sync` is in the line of `atime`, unless
    another component sets it."""
    return "atime" if setting == "sync" and setting not in mount["persisted"] else setting


def running(mount: Mapping[str, Any], setting: str) -> str:
    """Return the value in force of a setting of a mount's facts."""
    if setting == "sync":
        return {"yes": "sync", "no": "async"}.get(str(mount["sync"]), UNKNOWN)
    return str(mount[setting])


def persisted(mount: Mapping[str, Any], setting: str) -> str:
    """Return the value at the next boot of a setting of a mount's facts."""
    if setting == "sync" and setting not in mount["persisted"] and mount["options_boot"] is not None:
        return fold(mount["options_boot"]).get("sync", "async")
    # Without a line or unit all settings are unset or unknown.
    return str(mount["persisted"][read_with(mount, setting)])


def waits(mount: Mapping[str, Any]) -> bool:
    """Return whether the facts of a mount are of one that systemd mounts at the first access, and that is not mounted now."""
    return not mount["options_running"]


def satisfies(setting: str, seen: str, wanted: str) -> bool:
    """Return whether a value will do: it is the wanted one, or journal where ordered is wanted."""
    return seen == wanted or (setting == "data_mode" and (seen, wanted) == ("journal", "ordered"))


def spell(setting: str, value: str, fstype: str) -> str:
    """Return the one option that this collection writes for a setting's value."""
    if setting == "barrier" and fstype == "btrfs":
        return {"on": "barrier", "off": "nobarrier"}[value]  # it refuses the number
    if setting == "barrier":
        return {"on": "barrier=1", "off": "barrier=0"}[value]
    if setting == "data_mode":
        return f"data={value}"
    return value


def replace(options: tuple[str, ...], wanted: dict[str, str], fstype: str) -> tuple[str, ...]:
    """Return the options with each wanted setting spelled once and all other options as they were.

    A setting that was spelled before keeps its place; a new one goes to the end.
    """
    merged: list[str] = []
    left = dict(wanted)
    for option in options:
        found = meaning(option)
        if not found or found[0] not in wanted:
            merged.append(option)
        elif found[0] in left:
            merged.append(spell(found[0], left.pop(found[0]), fstype))
    return (*merged, *(spell(setting, value, fstype) for setting, value in left.items()))


def others(options: Iterable[str], settings: Iterable[str]) -> list[str]:
    """Return the options that say nothing of these settings."""
    unwanted = tuple(settings)
    return [option for option in options if (meaning(option) or ("",))[0] not in unwanted]


def drop(options: tuple[str, ...], settings: Iterable[str]) -> tuple[str, ...]:
    """Return the options without any word on these settings; `defaults` when nothing is left."""
    return tuple(others(options, settings)) or ("defaults",)


def restore(options: tuple[str, ...], original: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options with ours as they originally were, and those of others unchanged.

    If no other option changed since, that is the original, in its order.
    """
    others = tuple(option for option in options if not meaning(option))
    if set(others) - {"defaults"} == {o for o in original if not meaning(o)} - {"defaults"}:
        return original
    return (*others, *(option for option in original if meaning(option)))


def holds_system(mount: MountFacts) -> bool:
    """Return whether a mount holds more than databases by its name alone: others always write there."""
    return any(map(is_system, mount["targets"]))


def is_system(target: str) -> bool:
    """Return whether a mount point is one of the system's. Its barriers stay on: a host that cannot boot cannot be repaired."""
    return target in _OF_THE_SYSTEM or target.startswith(("/boot/", "/usr/", "/etc/"))
