# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commits that a host writes until its power is cut, and those that must exist afterwards. Pure, except the reading."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..host import json_text
from .limits import MIB, Refused, chosen, number
from .patterns import BLOCK, PATTERNS

#: Who the run is, by 16 hexadecimal digits.
_RUN = re.compile(r"[0-9a-f]{16}")
_HEAD = struct.Struct("<8s16sIQ")
_MAGIC = b"DURAPLUG"
#: Lost commits that a report names; more are counted.
_NAMED = 20


class Job(NamedTuple):
    """A run: `clients` of it take turns over (mount, pattern), each with a separate file of `size` MiB.

    `devices`: the superblock of each mount. `boot_id`: the boot in which it was started. `rate`: commits in a
    second by all. `seconds`: after which it ends automatically.
    """

    run: str
    boot_id: str
    mounts: tuple[str, ...]
    devices: tuple[str, ...]
    patterns: tuple[str, ...]
    clients: int
    size: int
    rate: int
    seconds: int

    def pattern_of(self, client: int) -> str:
        """Return how a client commits."""
        return self.patterns[client // len(self.mounts) % len(self.patterns)]

    def mount_of(self, client: int) -> int:
        """Return to which of the mounts a client commits."""
        return client % len(self.mounts)

    def name_of(self, client: int) -> str:
        """Return the name of a client's file."""
        return f".durable-plug-{self.run}-{client}"

    @property
    def slots(self) -> int:
        """Return how many commits a file holds."""
        return self.size * MIB // BLOCK

    def slot_of(self, client: int, commit: int) -> int:
        """Return where a commit lies: a file is written around and around; one that grows begins again."""
        return commit % self.slots

    def oldest(self, client: int, count: int) -> int:
        """Return the oldest of `count` commits that must still be there, whatever the next one has started."""
        if PATTERNS[self.pattern_of(client)].appends:
            return count - count % self.slots
        return max(0, count - self.slots + 1)


class Losses(NamedTuple):
    """The acknowledged commits: how many, how many could be checked, how many are lost.

    Commits that were written over since, as they would be in a log, cannot be checked. `unchecked`: each pattern and
    mount of which no commit could be checked.
    """

    acknowledged: int
    checked: int
    lost: int
    named: tuple[str, ...]
    unchecked: tuple[str, ...] = ()


#: Of a run that was not cut.
NOT_CHECKED = Losses(0, 0, 0, ())


def make(run: str, boot_id: str, places: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> Job:
    """Return the job that the module's options ask for. Raises Refused."""
    if not places:
        raise Refused("mounts: observed none; expected at least one mount point")
    patterns = chosen("patterns", row["patterns"], PATTERNS)
    clients = number("clients", row["clients"], 1, 64)
    if clients < len(places) * len(patterns):
        raise Refused(
            f"clients: observed {clients}, expected at least {len(places) * len(patterns)}: one for each of"
            f" {len(places)} mount(s) and {len(patterns)} pattern(s)"
        )
    return Job(
        run=run_of(run),
        boot_id=boot_id,
        mounts=tuple(str(place["target"]) for place in places),
        devices=tuple(str(place["device"]) for place in places),
        patterns=tuple(patterns),
        clients=clients,
        size=number("size", row["size"], 1, 64),
        rate=number("rate", row["rate"], 10, 5000),
        seconds=number("seconds", row["seconds"], 30, 3600),
    )


def run_of(text: Any) -> str:
    """Return a run's name: it becomes part of file names. Raises Refused."""
    if not isinstance(text, str) or not _RUN.fullmatch(text):
        raise Refused(f"run: observed {text!r}; expected 16 hexadecimal digits")
    return text


def dumps(job: Job) -> str:
    """Return a job as one line of ASCII."""
    return json.dumps(job._asdict(), sort_keys=True)


def loads(text: str) -> Job:
    """Return the job that a line holds. Raises Refused."""
    try:
        fields = json_text.loads(text)
        job = Job(**{**fields, **{name: tuple(fields[name]) for name in ("mounts", "devices", "patterns")}})
        # As strictly as when it was made: it names files that are read and removed.
        made = make(
            job.run,
            job.boot_id,
            [{"target": target, "device": device} for target, device in zip(job.mounts, job.devices)],
            job._asdict(),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"not a job: {error}: {text[:200]!r}") from error
    if made != job:
        raise Refused(f"not a job as it was made: {text[:200]!r}")
    return job


def record(job: Job, client: int, commit: int) -> bytes:
    """Return the block of one commit; every byte of it depends on whose it is."""
    head = _HEAD.pack(_MAGIC, job.run.encode("ascii"), client, commit)
    return head + hashlib.shake_256(head).digest(BLOCK - len(head))


def number_in(job: Job, client: int, block: bytes) -> int | None:
    """Return which commit of a client a block holds whole, None when none."""
    if len(block) != BLOCK:
        return None
    commit = int(_HEAD.unpack_from(block)[3])
    return commit if block == record(job, client, commit) else None


def check(job: Job, acknowledged: Mapping[int, int], files: Mapping[int, int]) -> Losses:
    """Hold the files (client -> descriptor) against the commits acknowledged (client -> how many).

    Raises OSError: what cannot be read is not lost and not there, it is unknown.
    """
    checked, lost = 0, 0
    named: list[str] = []
    by_place: dict[str, int] = {}
    for client, count in sorted(acknowledged.items()):
        place = f"{job.pattern_of(client)} on {job.mounts[job.mount_of(client)]}"
        by_place[place] = by_place.get(place, 0) + count - job.oldest(client, count)
        for commit in range(job.oldest(client, count), count):
            checked += 1
            observed = None
            if client in files:
                block = os.pread(files[client], BLOCK, job.slot_of(client, commit) * BLOCK)
                observed = number_in(job, client, block)
            if observed == commit:
                continue
            lost += 1
            if len(named) < _NAMED:
                held = "nothing whole" if observed is None else f"commit {observed}"
                named.append(f"client {client} ({job.pattern_of(client)}): commit {commit}, observed {held}")
    unchecked = tuple(place for place, commits in by_place.items() if not commits)
    return Losses(sum(acknowledged.values()), checked, lost, tuple(named), unchecked)
