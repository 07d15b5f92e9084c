# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes by other components to the options of a mount after it is mounted. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..facts.classes import DiskFacts, MountFacts
from ..host.observation import UNKNOWN
from . import acts, zfs_commands
from .acts import ATIME, BARRIER, DATA_MODE, SYNC, WRITE_BACK, Act, Device

#: File systems whose options are compared, and the values that are a statement about the next boot.
REMOUNTED = ("ext", "btrfs", "xfs", "zfs")
CERTAIN = ("on", "off", "noatime", "relatime", "strictatime", "sync")
#: Options of mount(8) that name what is mounted: by a tag, and by a path.
_TAGS = {"-L": "LABEL", "--label": "LABEL", "-U": "UUID", "--uuid": "UUID"}
_NAMES = ("--source", "--target")


def persisted(facts: MountFacts, setting: str) -> str | None:
    """Return what the mount sets at the next boot, None if that is unknown or nothing mounts it."""
    if setting != SYNC:
        return facts["persisted"].get(setting)  # type: ignore[return-value]
    options = facts["options_boot"]
    return None if options is None else _said(options, facts["fstype"]).get(SYNC, "async")


def changes(
    groups: Iterable[list[Act]],
    facts: MountFacts,
    device: Device | None,
    disks: Mapping[str, DiskFacts],
) -> dict[str, tuple[str, Act]]:
    """Return {setting: value at the next boot, and the act that sets it} of those that differ from `persisted`.

    `unknown` if an act may set it, or if components whose order is unknown set different values.
    """
    found: dict[str, list[tuple[str, Act]]] = {}
    for act in (act for group in groups for act in group):
        for setting, value in _effects(act, facts, device, disks).items():
            found.setdefault(setting, []).append((value, act))
    result = {}
    for setting, values in found.items():
        now = persisted(facts, setting)
        other = next((pair for pair in values if pair[0] != now), None)
        if other is None or now in (None, UNKNOWN, "refused"):
            continue
        agrees = len({value for value, _act in values}) == 1 and other[1].is_certain
        result[setting] = (other[0] if agrees else UNKNOWN, other[1])
    return result


def _effects(
    act: Act, facts: MountFacts, device: Device | None, disks: Mapping[str, DiskFacts]
) -> dict[str, str]:
    targets, fstype = facts["targets"], facts["fstype"]
    if not targets or not fstype.startswith(REMOUNTED):
        return {}
    if fstype == "zfs":
        return zfs_commands.effects(act, facts["source"], facts["persisted"]["barrier"])
    if act.kind == "barriers":
        return _of_tuned(act, facts, disks) if fstype.startswith("ext") else {}
    if act.kind == "options":
        flags = [_data(act.words[1:]), *_said(act.words[1:], fstype)]
        return dict.fromkeys(filter(None, flags), UNKNOWN) if act.words[0] in targets else {}
    if act.kind == "command" and act.words[0] in ("mount", "umount"):
        return _of_mount(act, targets, fstype, device)
    if act.kind == "script" and acts.is_about_mount(act.words[0], targets, [device] if device else []):
        known = {ATIME, SYNC} if fstype == "xfs" else {BARRIER, ATIME, SYNC}
        return {setting: UNKNOWN for setting in acts.mentioned(act.words[-1]) if setting in known}
    return {}


def _of_mount(act: Act, targets: list[str], fstype: str, device: Device | None) -> dict[str, str]:
    options, places = remounted(act.words[1:])
    is_named = any(acts.plain(place) in targets for place in places)
    is_named = is_named or (device is not None and any(map(device.is_named, map(_as_link, places))))
    is_remount = "remount" in ",".join(options).split(",")
    if is_remount and not is_named and _may_name(act.words[1:], places, targets, device):
        return dict.fromkeys(_said(options, fstype), UNKNOWN)
    if not is_named:
        return {}
    if is_remount:
        # With device and mount point mount(8) leaves out the options of fstab.
        return {**({SYNC: "async"} if len(places) > 1 else {}), **_said(options, fstype)}
    # With one name mount(8) takes all else of fstab. With two it can mount another file system, or with other options.
    is_of_fstab = act.words[0] == "mount" and len(places) == 1 and not options
    return {} if is_of_fstab else dict.fromkeys((BARRIER, ATIME, SYNC), UNKNOWN)


def _as_link(place: str) -> str:
    """Return the link in /dev for a place by its UUID, LABEL, PARTUUID or PARTLABEL."""
    tag, equals, value = place.partition("=")
    return f"/dev/disk/by-{tag.lower()}/{value}" if equals and tag.isupper() else place


def _may_name(words: Sequence[str], places: list[str], targets: list[str], device: Device | None) -> bool:
    """Return whether a command is about all mounts of fstab, about one by the path from a directory, or about a UUID or
    label that no link in /dev shows."""
    is_all = any(word == "--all" or re.fullmatch(r"-[a-zA-Z]*a[a-zA-Z]*", word) for word in words)
    parts = [
        place.strip("/").lstrip("./") for place in places if not place.startswith("/") and "=" not in place
    ]
    is_below = any(f"{target}/".endswith(f"/{part}/") for part in parts for target in targets)
    links = {posixpath.dirname(link) for link in device.links} if device else set()
    tags = [posixpath.dirname(_as_link(place)) for place in places if "=" in place]
    return is_all or is_below or any(tag not in links for tag in tags)


def _of_tuned(act: Act, facts: MountFacts, disks: Mapping[str, DiskFacts]) -> dict[str, str]:
    """Return what `disable_barriers` of TuneD does with a mount: without `force` it leaves those over SCSI disks whose
    kernel cache mode is write back."""
    if act.words[0] == "force" or not act.is_certain:
        return {BARRIER: "off"}
    modes = set()
    for name in facts["disks_seen"]:
        disk = disks.get(name)
        is_scsi = disk is not None and disk["control"] in ("sata", "scsi")
        modes.add(disk["write_cache"]["kernel"] if disk is not None and is_scsi else "other")
    if WRITE_BACK in modes:
        return {}
    return {BARRIER: "off" if modes == {"other"} else UNKNOWN}


def remounted(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the options and the places of a mount command."""
    options: list[str] = []
    places: list[str] = []
    waiting = list(words)
    while waiting:
        name, equals, value = waiting.pop(0).partition("=")
        if name in ("-o", "--options") and waiting and not equals:
            options.append(waiting.pop(0))
        elif name.startswith("-o") or name == "--options":
            options.append(f"{name[2:]}{equals}{value}" if name.startswith("-o") else value)
        elif name in _TAGS or name in _NAMES or name in ("-t", "--types"):
            text = value if equals else waiting.pop(0) if waiting else ""
            places += [f"{_TAGS[name]}={text}"] if name in _TAGS else [text] if name in _NAMES else []
        elif not name.startswith("-"):
            places.append(f"{name}{equals}{value}")
    return options, places


def _data(options: Iterable[str]) -> str:
    """Return the setting that `data=` sets at a mount, '' if no option is that: a remount refuses it."""
    return DATA_MODE if any(re.search(r"(?:^|,)data=", text) for text in options) else ""


def _said(options: Any, fstype: str) -> dict[str, str]:
    """Return what options set, of those that a running file system of this type takes."""
    found: dict[str, str] = {}
    for word in (word.strip() for text in options for word in text.split(",")):
        if fstype != "xfs" and word in ("nobarrier", "barrier=0"):
            found[BARRIER] = "off"
        elif fstype != "xfs" and word in ("barrier", "barrier=1"):
            found[BARRIER] = "on"
        elif fstype != "xfs" and word.startswith("barrier="):
            found[BARRIER] = UNKNOWN  # The kernel takes 00 and 0x0 for off.
        elif word in ("noatime", "relatime", "strictatime"):
            found[ATIME] = word
        elif word in ("sync", "async"):
            found[SYNC] = word
    return found
