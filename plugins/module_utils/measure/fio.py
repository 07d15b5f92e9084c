# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of fio(1) for one measurement, and the parser of its JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..host import json_text
from ..host.seam import Unobservable
from .limits import MIB
from .patterns import BLOCK

#: Not known to each fio 3.
DSYNC = "--sync=dsync"
#: Pattern -> fio's options for it. fio has none for RWF_DSYNC.
WORDS = {
    "direct_dsync": ("--direct=1", DSYNC),
    "direct_fdatasync": ("--direct=1", "--fdatasync=1"),
    "osync": ("--direct=0", "--sync=sync"),
    "dsync": ("--direct=0", DSYNC),
    "append_fsync": ("--direct=0", "--fsync=1", "--file_append=1"),
}
_APPENDS = ("append_fsync",)
#: Nanoseconds of a fortnight: more than any figure of a measurement.
_MOST = 1e15


class Figures(NamedTuple):
    """What was measured: commits, commits in a second, and the milliseconds that one took.

    `p99` is of the call that waits for the disk: the sync if there is one, else the write; None if it was not measured.
    """

    commits: int
    rate: float
    mean: float
    p99: float | None


def argv(
    pattern: str,
    groups: Sequence[Sequence[str]],
    size: int,
    seconds: int,
    most: int,
    is_device: bool = False,
) -> list[str]:
    """Return the command: a client for each path, `size` MiB each; `most` commits in a second by all of a group.

    All groups, of as many paths each, write at the same time, and are reported separately. `is_device`: the paths are one
    device, of which each client has its own part.
    """
    again = () if pattern in _APPENDS else ("--time_based",)
    clients = [
        word
        for group, paths in enumerate(groups)
        for number, path in enumerate(paths)
        for word in (
            f"--name=g{group}c{number}",
            *(() if number else ("--new_group",)),
            f"--filename={path}",
            *((f"--offset={number * size * MIB}",) if is_device else ()),
        )
    ]
    return [
        "fio",
        "--output-format=json",
        "--group_reporting",
        "--ioengine=psync",
        "--rw=write",
        f"--bs={BLOCK}",
        f"--size={size * MIB}",
        f"--runtime={seconds}",
        f"--rate_iops={max(1, most // len(groups[0]))}",
        # The files are there and written in full; fio is to make, lay out and remove none.
        "--fallocate=none",
        "--allow_file_create=0",
        *again,
        *WORDS[pattern],
        *clients,
    ]


def parse(text: str, groups: int, clients: int) -> list[Figures]:
    """Return the figures of each group of fio's JSON output, `clients` each. Raises Unobservable."""
    try:
        # Warnings may stand before it.
        jobs = json_text.loads(text[text.index("{") :])["jobs"]
        if len(jobs) != groups:
            raise ValueError(f"observed {len(jobs)} groups, expected {groups}")
        return [_group(job, clients) for job in jobs]
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise Unobservable(f"fio: not its JSON: {wrong}: {text[:200]!r}") from wrong


def figures(commits: int, seconds: float, clients: int, p99: float | None) -> Figures:
    """Return the figures of so many commits in so many seconds."""
    rate = commits / seconds
    # A closed loop: each client has one commit under way at any time.
    return Figures(
        commits, round(rate, 1), round(clients * 1000 / rate, 3), None if p99 is None else round(p99, 3)
    )


def _group(job: Any, clients: int) -> Figures:
    written, synced = job["write"], job["sync"]
    commits, milliseconds = int(_number(written["total_ios"])), _number(written["runtime"])
    waited = synced["lat_ns"] if _number(synced.get("total_ios", 0)) else written["clat_ns"]
    p99 = _number(waited.get("percentile", {}).get("99.000000", 0.0)) / 1e6
    error = int(_number(job.get("error", 0)))
    if error or commits <= 0 or milliseconds <= 0:
        raise Unobservable(f"fio: error {error}, {commits} commits in {milliseconds:g} ms")
    return figures(commits, milliseconds / 1000, clients, p99)


def _number(value: Any) -> float:
    """Return a figure of fio's. Raises ValueError for what no disk can have done."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _MOST:
        raise ValueError(f"observed {str(value)[:40]}; expected a number")
    return float(value)
