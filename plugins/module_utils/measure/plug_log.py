# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a witness. Pure.

The first line is the job. Then `a CLIENT COMMIT` for each acknowledged commit, in the order in which they
came, and `e CLIENT WHY` when a client has ended: an end that a power cut does not have.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TextIO

from ..host import bounds
from .limits import Refused
from .plug_job import Job, loads


class Log(NamedTuple):
    """A witness's log: the job, how many commits of each client were acknowledged, and who ended, and why."""

    job: Job
    acknowledged: dict[int, int]
    ended: dict[int, str]


def parse(text: TextIO) -> Log:
    """Return what a log says, read line by line: it may have millions. A last line that is cut off does not count.

    Raises Refused.
    """
    lines = iter(partial(text.readline, bounds.FILE), "")
    job = loads(next(lines, "").rstrip("\n"))
    acknowledged: dict[int, int] = dict.fromkeys(range(job.clients), 0)
    clients = {str(client): client for client in acknowledged}
    ended: dict[int, str] = {}
    for number, line in enumerate(lines, 2):
        if not line.endswith("\n"):
            if len(line) == bounds.FILE:
                raise Refused(
                    f"the witness's log, line {number}: {line[:80]!r} goes on for more than {bounds.FILE} letters"
                )
            break
        kind, _space, rest = line[:-1].partition(" ")
        word, _space, what = rest.partition(" ")
        client = clients.get(word)
        if client is None:
            raise Refused(f"the witness's log, line {number}: {line[:80]!r} names no client of the job")
        if kind == "a" and what == str(acknowledged[client]):
            acknowledged[client] += 1
        elif kind == "e":
            ended[client] = what
        else:
            raise Refused(f"the witness's log, line {number}: {line[:80]!r} does not follow what was before")
    return Log(job, acknowledged, ended)
