# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each device-mapper target handles a flush, by its line of `dmsetup table`. Pure.

From the kernel's source (drivers/md/dm-*.c), Linux 5.5 and later; the stacked scenario counts the flushes of thin volumes
and of a cache.

- thin, thin-pool: a flush commits the pool's metadata, after its data was flushed.
- cache: a flush commits the metadata, and goes to the origin and to the cache, in each mode.
- writecache: a flush commits the cache, and goes to the origin too since 5.14.
- snapshot: a write waits until its exception is stored, and a flush goes to the store.
- integrity: a flush commits the journal, or writes the tags and flushes data and tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..host.observation import Because

#: A snapshot's exceptions are in memory: what was written to it goes with the power.
TRANSIENT = "transient"
#: Data and their integrity tags are written apart: a crash between the two makes a block unreadable.
TAGS_APART = "no journal"
#: Before it dm-writecache forwarded no flush to its origin, to which it writes when the cache is full.
WRITECACHE_SINCE = (5, 14)

NO_RULE = Because("no_rule_for_layer")
_TABLE = re.compile(r"^(?P<name>.*): \d+ \d+ (?P<target>\S+)(?: (?P<arguments>.*))?$")
#: Levels that write data and parity apart: a crash between the two can cost older data.
PARITY = re.compile(r"raid[456]")
#: Levels of md and of dm's raid target that pass a flush on to each member: md(4), dm-raid.rst. Not multipath, faulty and
#: container of md.
_LEVEL = re.compile(r"linear|raid(?:10|[01456])(?:_\w+)?", re.ASCII)
_CACHE_MODES = ("writeback", "writethrough", "passthrough")
#: Features of dm-cache that say nothing of flushes.
_CACHE_FEATURES = ("metadata2", "no_discard_passdown")


class Segment(NamedTuple):
    """What one segment of a table is: its sort, and what it does, in a word.

    `cause`: why it is not understood, None if it is; `write_hole`: a crash can cost older data of its RAID.
    """

    detail: str
    state: str = ""
    cause: Because | None = None
    write_hole: bool = False


def parse_tables(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return {device: [(target, arguments), ...]} of `dmsetup table`."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for line in text.split("\n"):
        found = _TABLE.match(line)
        if found:
            tables.setdefault(found["name"], []).append((found["target"], found["arguments"] or ""))
    return tables


def understand(target: str, arguments: str, kernel: tuple[int, ...]) -> Segment:
    """Return what a segment is, of a host whose kernel has this version."""
    if target in _PLAIN:
        return Segment(target)
    if target == "writecache" and kernel < WRITECACHE_SINCE:
        since = ".".join(map(str, WRITECACHE_SINCE))
        return Segment(target, cause=Because("writecache", {"since": since}))
    read = _READ.get(target)
    return read(target, arguments.split(" ")) if read else Segment(target, cause=NO_RULE)


def why_not_level(level: str) -> Because | None:
    """Return why what an array of a level does with a flush is unknown, None if it is known."""
    return None if _LEVEL.fullmatch(level) else Because("raid_level", {"level": level})


def _raid(_target: str, words: list[str]) -> Segment:
    level = words[0]
    if why_not_level(level):
        return Segment(level, cause=why_not_level(level))
    return Segment(level, write_hole=bool(PARITY.match(level)) and "journal_dev" not in words)


def _cache(target: str, words: list[str]) -> Segment:
    """METADATA CACHE ORIGIN BLOCK-SIZE COUNT FEATURE... POLICY ..."""
    count = int(words[4]) if len(words) > 4 and re.fullmatch(r"\d{1,2}", words[4]) else None
    if count is None or len(words) < 5 + count:
        return _garbled(target)
    features = words[5 : 5 + count]
    strange = [word for word in features if word not in (*_CACHE_MODES, *_CACHE_FEATURES)]
    if strange:
        return Segment(target, cause=Because("cache_feature", {"feature": strange[0]}))
    modes = [word for word in features if word in _CACHE_MODES] or ["writeback"]
    return Segment(target, modes[-1]) if len(modes) == 1 else _garbled(target)


def _worded(place: int, words_of: dict[str, str]) -> Callable[[str, list[str]], Segment]:
    """Return what reads a target by one of its arguments: {argument: what it says, in a word}."""

    def read(target: str, words: list[str]) -> Segment:
        reported = words[place] if len(words) > place else ""
        return Segment(target, words_of[reported]) if reported in words_of else _garbled(target)

    return read


def _garbled(target: str) -> Segment:
    return Segment(target, cause=Because("table_form"))


#: Pass flush and FUA down as they are, and hold nothing back; or, thin volumes and a snapshot's origin, whatever
#: their arguments say.
_PLAIN = ("linear", "striped", "crypt", "multipath", "thin", "thin-pool", "snapshot-origin")
_EXCEPTIONS = {"P": "persistent", "PO": "persistent", "N": TRANSIENT}
_READ = {
    "raid": _raid,
    "cache": _cache,
    "writecache": _worded(0, {"s": "ssd", "p": "pmem"}),
    "snapshot": _worded(2, _EXCEPTIONS),
    "snapshot-merge": _worded(2, _EXCEPTIONS),
    # Not R (no writes), nor I (the device keeps the tags; nobody has tried it).
    "integrity": _worded(3, {"J": "journal", "B": "bitmap", "D": TAGS_APART}),
}
