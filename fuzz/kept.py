# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The smallest set of inputs that covers every branch of a parser."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from fuzz.parsers import SOURCES
from fuzz.target import Target

#: Bytes of one input, and how many a target keeps, at most; and how many are looked at for that.
LONGEST = 2048
MOST, LOOKED_AT = 24, 300

#: A step from one line of a file to another.
Step = tuple[str, int, int]


def choose(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Return the inputs to keep beside the seeds: each takes a step that no seed and none before it takes."""
    known: set[Step] = set()
    for seed in target.seeds:
        known |= steps(target, seed)
    chosen: list[bytes] = []
    for data in _short(inputs):
        new = steps(target, data) - known
        if new and len(chosen) < MOST:
            chosen.append(data)
            known |= new
    return chosen


def steps(target: Target, data: bytes) -> set[Step]:
    """Return the steps that a target takes with an input."""
    found: set[Step] = set()
    last: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if f"/{SOURCES.name}/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            key = id(frame)
            found.add((frame.f_code.co_filename, last.get(key, 0), frame.f_lineno))
            last[key] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        target.parse(data)
    except target.allowed:
        pass
    finally:
        sys.settrace(None)
    return found


def _short(inputs: Iterable[bytes]) -> Sequence[bytes]:
    short = {data for data in inputs if len(data) <= LONGEST}
    return sorted(short, key=lambda data: (len(data), data))[:LOOKED_AT]
