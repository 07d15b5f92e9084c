# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is well is not called so any more when any one of its facts is lost or makes no sense.

Over all captured hosts, settled as a run would leave them. Facts that do not bear on safety are listed, each
with its reason.
"""

from __future__ import annotations

import copy
import fnmatch
import functools
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assessment import FAIL_ON, Inputs, assess

from ..runs import inputs
from ..test_captures import CAPTURES, facts_of

GREEN = ("durable", "attested")
PROMISES = ("strict", "flush", "protected")
ABSENT = object()
#: What stands in for a fact. None is how JSON says that there is no value.
INSTEAD: tuple[Any, ...] = ("unknown", ABSENT, None, [], "garbage", 17, {})
#: Facts that may be any of the words of their shape and leave a host as safe as it is. Patterns of paths, and why.
NO_BEARING = {
    "*.evidence.*": "for people; where a change goes, never whether a value is safe",
    "boot_id": "not compared by the policy yet",
    "kernel": "not read by the policy: what follows from it is in fua_path and barrier",
    "virtualization": "only a UPS rests on it; what it says of disks is in their kind",
    "tuned.*": "scheduler and readahead, performance",
    "elsewhere.*": "names the kind of a file system that holds no managed mount, for a message",
    "disks.*.id": "null: no name that stays; what was persisted by it is judged as write_cache.persisted",
    "disks.*.model": "for people",
    "disks.*.serial": "for people",
    "disks.*.place": "for people",
    "disks.*.transport": "for people; what follows from it is in kind and control",
    "disks.*.rotational": "chooses the scheduler, performance",
    "disks.*.scheduler.*": "performance",
    "disks.*.readahead.*": "performance",
    "disks.*.fua": "only what an engine writes by FUA rests on it, and no engine is here",
    "disks.*.fua_efficient": "not read by the policy",
    "disks.*.unheard.*": "whether a cache may be turned on now; the layers themselves are judged in stack",
    "disks.*.write_cache.volatile": "only protected rests on it, and these are attested",
    "mounts.*.source": "for people",
    "mounts.*.options_*": "what they mean is judged as barrier, data_mode and persisted",
    "mounts.*.external_log": "for people; its disk is in disks and stack",
    "mounts.*.fua_path": "only what an engine writes by FUA rests on it, and no engine is here",
    "mounts.*.sync": "not read by the policy",
    "mounts.*.atime": "performance",
    "mounts.*.persisted.atime": "performance",
    "mounts.*.readahead*": "performance",
    "mounts.*.carrier*": "where readahead is set, performance",
    "mounts.*.views*": "what other processes see of it: atime, performance",
    "mounts.*.device": "what engines' files are placed by, and no engine is here",
    "mounts.*.stack.*.detail": "for people; the levels with a write hole are in write_hole",
    "mounts.*.stack.*.label": "for people",
    "mounts.*.stack.*.state": "only ppl counts, and only over a cache: then the host was not well",
}
#: Facts that one stand-in alone leaves well: (pattern of the path, stand-in) -> why.
HARMLESS = {
    ("disks.*.kind", "unknown"): "a word about its whole host does not do any more; one about itself does",
    ("disks.*.write_cache.device", "unknown"): "attested: what somebody vouches for need not be seen",
    ("mounts.*.data_mode", "unknown"): "XFS and btrfs have none; of ext4 it counts",
    ("mounts.*.persisted.data_mode", "unknown"): "XFS and btrfs have none; of ext4 it counts",
    ("mounts.*.stack.*.name", "garbage"): "the topmost layer's, for people; all others are tied by below",
    ("mounts.*.targets.*", ABSENT): "one of several places of a file system whose settings are the same",
    (
        "mounts.*.stack.*.below.*",
        ABSENT,
    ): "counts below a layer that passes no flush on: then it was not well",
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every leaf, and of every list."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        yield path
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def settle(storage: dict[str, Any], given: Inputs) -> None:
    """Set the facts to what a run and a reboot would leave."""
    by_target: dict[str, dict[str, Any]] = {}
    for disk in storage["disks"]:
        by_target[disk["id"] or disk["name"]] = disk
    by_target.update({mount["target"]: mount for mount in storage["mounts"]})
    for row in assess(given, storage, storage["time"])["settings"]:
        found, setting, wanted = by_target.get(row["target"]), row["setting"], row["wanted_running"]
        if row["verdict"] == "ok" or found is None or row["layer"] == "io_scheduler":
            continue
        if setting == "write_cache":
            found["write_cache"].update(device=wanted, persisted=wanted)
        elif setting == "kernel_belief":
            found["write_cache"]["kernel"] = wanted
        elif "unset" not in found["persisted"].values():
            found[setting] = found["persisted"][setting] = wanted


@functools.cache
def green_host(capture: Any, profile: str) -> tuple[Inputs, dict[str, Any]] | None:
    """Return a settled host and what its inventory says, with each mount that can be brought to a profile."""
    storage = facts_of(capture)
    words = [("host_honours_flush", "host")]
    words += [("power_loss_protection", disk["id"]) for disk in storage["disks"] if profile == "protected"]
    expires = "2026-12-31"
    entries = [
        {"claim": claim, "target": target, "by": "A. Person", "reason": "asked", "expires": expires}
        for claim, target in words
    ]
    given = inputs(profile, mounts=[], attestations=entries)
    chosen = []
    for mount in storage["mounts"]:
        alone = given._replace(mounts=[mount["target"]])
        trial = copy.deepcopy(storage)
        settle(trial, alone)
        if assess(alone, trial, trial["time"])["verdict"] in GREEN:
            chosen.append(mount["target"])
    given = given._replace(mounts=chosen)
    settle(storage, given)
    # What lies beside them is judged nowhere.
    storage["mounts"] = [mount for mount in storage["mounts"] if mount["target"] in chosen]
    below = {name for mount in storage["mounts"] for name in mount["disks"]}
    storage["disks"] = [disk for disk in storage["disks"] if disk["name"] in below]
    return (given, storage) if chosen else None


def is_harmless(
    path: tuple[Any, ...], instead: Any, verdict: str, storage: dict[str, Any], own: bool
) -> bool:
    """Tell whether a stand-in is listed; `own`: each disk is attested itself."""
    if path[-1] == "kind" and not own:
        return verdict == "unverified"
    if (path[-1], instead) == ("belief", "unknown"):
        return own  # What somebody says outlives a power cut needs no flush.
    if path[-1] == "data_mode" and storage["mounts"][path[1]]["fstype"].startswith("ext"):
        return False
    text = ".".join(map(str, path))
    return any(instead == value and fnmatch.fnmatchcase(text, pattern) for pattern, value in HARMLESS)


def has_no_bearing(path: tuple[Any, ...]) -> bool:
    """Tell whether a fact is listed."""
    text = ".".join(map(str, path))
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in NO_BEARING)


@pytest.mark.parametrize("profile", PROMISES)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_a_lost_fact_is_never_green(capture: Any, profile: str) -> None:
    found = green_host(capture, profile)
    assert found, "no mount of this host can be brought to this profile"
    given, storage = found
    assert assess(given, storage, storage["time"])["verdict"] in GREEN
    wrong = []
    for path in list(leaves(storage)):
        part: Any = storage
        for key in path[:-1]:
            part = part[key]
        before, now = part[path[-1]], storage["time"]
        listed = has_no_bearing(path)
        for instead in INSTEAD if not listed else (ABSENT, 17):
            if instead == before:
                continue
            put(part, path[-1], instead)
            try:
                verdict = assess(given, storage, now)["verdict"]
            finally:
                restore(part, path[-1], instead, before)
            harmless = listed or is_harmless(path, instead, verdict, storage, profile == "protected")
            if verdict not in FAIL_ON and not harmless:
                wrong.append((".".join(map(str, path)), "absent" if instead is ABSENT else instead, verdict))
    assert not wrong, "\n".join(map(str, wrong))


def put(part: Any, key: Any, instead: Any) -> None:
    if instead is ABSENT:
        del part[key]
    else:
        part[key] = instead


def restore(part: Any, key: Any, instead: Any, before: Any) -> None:
    if instead is ABSENT and isinstance(part, list):
        part.insert(key, before)
    else:
        part[key] = before
