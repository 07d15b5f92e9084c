# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a witness writes down, and what it means. Pure.

The first line is the job. Then `a CLIENT COMMIT` for each acknowledged commit, in the order in which they
came, and `e CLIENT WHY` when a client has ended: an end that a power cut does not have.
"""

from __future__ import annotations

from typing import NamedTuple

from .limits import Refused
from .plug_job import Job, loads


class Log(NamedTuple):
    """A witness's log: the job, how many commits of each client were acknowledged, and who ended, and why."""

    job: Job
    acknowledged: dict[int, int]
    ended: dict[int, str]


def parse(text: str) -> Log:
    """Return what a log says. A last line that is cut off does not count. Raises Refused."""
    first, _newline, rest = text.partition("\n")
    job = loads(first)
    acknowledged: dict[int, int] = dict.fromkeys(range(job.clients), 0)
    clients = {str(client): client for client in acknowledged}
    ended: dict[int, str] = {}
    lines = rest.split("\n")[:-1]
    for number, line in enumerate(lines, 2):
        kind, _space, said = line.partition(" ")
        word, _space, what = said.partition(" ")
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
