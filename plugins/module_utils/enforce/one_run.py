# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock that lets one run at a time change a host, and a text about the run that holds it.

flock(2) alone decides. The kernel releases the lock when its process ends, and its file is gone after a boot. A text that
cannot be read blocks no run: the number of runs that have changed the host is then unknown.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..host import bounds, json_text
from ..host.our_paths import LOCK
from ..host.printable import line
from ..host.seam import ChangeFailed, Held, Host, Refused, Unobservable

#: Reported for a host that is changed while it is read, and for one whose lock cannot be read: no run has such a number.
CHANGING, UNREADABLE = -1, -2
#: Characters of an author, and layers: the text has one page of memory, so that replacing it needs no free space.
_AUTHOR, _LAYERS = 200, 20


class Run(NamedTuple):
    """A run that changes, or was the last to start to change, a host.

    `number`: of those that have started since the host booted, 0 for none. After a text that could not be read it goes on
    from a random number. `by`: the author; `since`: in the host's UTC and ISO 8601; `reach`: the layers.
    """

    number: int = 0
    by: str = "an administrator"
    since: str = "a time that is unknown"
    reach: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """Return it as a text for people."""
        return line(f"{self.by}, since {self.since} ({', '.join(self.reach) or 'unknown layers'})")


def last_run(host: Host) -> int:
    """Return the number of the last run that has started to change a host, for changes that rest on what is read from now.

    CHANGING while a run holds the lock; UNREADABLE if the number cannot be read.
    """
    try:
        text = host.lock_text(LOCK)
    except Unobservable:
        return UNREADABLE
    if text is None:
        return CHANGING
    run = _read(text)
    return run.number if run else UNREADABLE


@contextmanager
def hold(
    host: Host,
    by: str,
    since: str,
    reach: Iterable[str],
    looked_at: int | None = None,
    is_text_needed: bool = True,
) -> Iterator[None]:
    """Be the only run that changes a host while a block runs.

    `by`, `since`, `reach`: as a Run has them. `looked_at`: the result of `last_run` before the host was read, on which the
    changes rest; None if they rest on nothing that was read before. `is_text_needed`: as Host.hold takes it. Raises
    ChangeFailed if another run holds the lock, or may have changed the host since that `last_run`.
    """
    is_known = True

    def tell(text: str) -> str:
        nonlocal is_known
        before = _read(text)
        is_known = before is not None
        if before is None:
            # No earlier `last_run` has returned it, so changes that rest on one are refused.
            number = 2**47 + secrets.randbits(46)
        elif looked_at is not None and before.number != looked_at:
            raise ChangeFailed(
                f"this host was changed while or after it was collected: by {before.named}; nothing was changed by"
                " this run; run again"
            )
        else:
            number = before.number + 1
        layers = [bounds.short(line(layer), 40) for layer in reach][:_LAYERS]
        return _text(Run(number, bounds.short(line(by), _AUTHOR), since, tuple(layers)))

    try:
        with host.hold(LOCK, tell, is_text_needed):
            if not is_known and looked_at is not None:
                # The text is a readable one from now on.
                raise ChangeFailed(
                    f"{LOCK}: its text cannot be read, because a run was killed while it wrote it, or the file was changed."
                    " So another run may have changed this host since it was read. Nothing was changed by this run."
                    " Fix: run again; the text is repaired"
                )
            yield
    except Held as error:
        raise Refused(
            f"another run changes this host: {_holder(error.holder)}; nothing was changed by this one",
            "run again when that has ended",
        ) from error


def _holder(text: str) -> str:
    run = _read(text) if text else None
    return run.named if run else "it has not recorded who it is"


def _text(run: Run) -> str:
    """Return the text of a run, with a checksum: a kill can leave the beginning of one text before the end of another."""
    record = json.dumps(run._asdict(), ensure_ascii=False)
    return f"{record}\n{_checksum(record)}\n"


def _read(text: str) -> Run | None:
    """Return the run in a text, one of number 0 for an empty text, None for a text that no run wrote in full."""
    if not text:
        return Run()
    record, _newline, rest = text.partition("\n")
    if rest.rstrip("\n") != _checksum(record):
        return None
    try:
        fields = json_text.loads(record)
        number, by, since, reach = (fields[name] for name in Run._fields)
        return Run(int(number), str(by), str(since), tuple(map(str, reach)))
    except (ValueError, TypeError, KeyError):
        return None


def _checksum(record: str) -> str:
    return hashlib.sha256(record.encode("utf-8", "surrogateescape")).hexdigest()[:16]
