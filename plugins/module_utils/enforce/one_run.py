# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time changes a host: a lock there, with who holds it and what for.

The kernel gives it back when its process ends, and its file goes with the boot: none is ever stale.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..host import json_text
from ..host.our_paths import LOCK
from ..host.printable import line
from ..host.seam import ChangeFailed, Held, Host, Unobservable

#: Said of a host that is changed while it is looked at.
CHANGING = -1


class Run(NamedTuple):
    """A run that changes, or was the last to begin to change, a host.

    `number`: of those that have begun since the host booted, 0 where none has. `by`: who; `since`: in the host's UTC and
    ISO 8601; `reach`: the layers; `process`: its id and when it began, in ticks since the boot.
    """

    number: int = 0
    by: str = "somebody"
    since: str = "a time that is not known"
    reach: tuple[str, ...] = ()
    process: str = ""

    @property
    def named(self) -> str:
        """Return it in words."""
        return line(f"{self.by}, since {self.since} ({', '.join(self.reach) or 'nothing said of what'})")


def look(host: Host) -> int | None:
    """Return the number of the last run that has begun to change a host, for what is to rest on a look that begins now.

    CHANGING where that run has not ended; None where it cannot be read.
    """
    try:
        run = _read(host.read(LOCK) if host.exists(LOCK) else "")
    except Unobservable:
        return None
    runs = run.process and _process(host, run.process.split()[0]) == run.process
    return CHANGING if runs else run.number


@contextmanager
def hold(
    host: Host, by: str, since: str, reach: Iterable[str], looked_at: int | None = None
) -> Iterator[None]:
    """Be the only run that changes a host while a block runs.

    `by`, `since`, `reach`: as a Run has them. `looked_at`: what `look` said when the host was looked at, on which the
    changes rest; None where they rest on no look. Raises ChangeFailed where another run holds the lock, or has changed
    the host since that look began.
    """

    def tell(text: str) -> str:
        before = _read(text)
        if looked_at is not None and before.number != looked_at:
            raise ChangeFailed(
                f"this host was changed while or after it was looked at: by {before.named}; nothing was changed by"
                " this run; run again"
            )
        own = Run(before.number + 1, by, since, tuple(reach), _process(host, "self"))
        return json.dumps(own._asdict())

    try:
        with host.hold(LOCK, tell):
            yield
    except Held as error:
        raise ChangeFailed(
            f"another run changes this host: {_holder(error.told)}; nothing was changed by this one; run again when"
            " that has ended"
        ) from error
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _process(host: Host, process: str) -> str:
    """Return a process's id and when it began, '' where it is not there."""
    try:
        words = host.read(f"/proc/{process}/stat").rpartition(")")
        return f"{words[0].split()[0]} {words[2].split()[19]}"
    except (Unobservable, IndexError):
        return ""


def _holder(text: str) -> str:
    try:
        return _read(text).named
    except Unobservable:
        return "it has not said who it is"


def _read(text: str) -> Run:
    if not text:
        return Run()
    try:
        told = json_text.loads(text)
        number, by, since, reach, process = (told[name] for name in Run._fields)
        return Run(int(number), str(by), str(since), tuple(map(str, reach)), str(process))
    except (ValueError, TypeError, KeyError) as error:
        raise Unobservable(f"{LOCK}: seen no run's words; remove it when no run changes this host") from error
