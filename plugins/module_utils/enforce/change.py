# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change as a value, how a plan of changes is carried out, and how each is verified. Shared by all layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..host.printable import Lines, lines
from ..host.seam import ChangeFailed, Unobservable

#: Changes that an account names, of each kind.
_MOST = 6


class Change(NamedTuple):
    """One setting of one target: what it is and what it shall be, now or at the next boot.

    `when` is running or persisted.
    """

    target: str
    setting: str
    when: str
    before: str
    after: str


def each(targets: Iterable[str], act: Callable[[str], None]) -> None:
    """Act on every target, also when one fails; then raise ChangeFailed with all that failed.

    A disk that refuses must not leave the other disks of the host less safe than they could be.
    """
    failures = attempt(targets, act)
    if failures:
        raise ChangeFailed("; ".join(failures.values()))


def attempt(targets: Iterable[str], act: Callable[[str], None]) -> dict[str, str]:
    """Act on every target, also when one fails; return {target: why} of those that failed."""
    failures = {}
    for target in targets:
        try:
            act(target)
        except (ChangeFailed, Unobservable) as error:
            failures[target] = str(error)
    return failures


def expect_some(changes: Sequence[Change], failures: Mapping[str, str]) -> None:
    """Raise ChangeFailed with all that failed in a plan, unless there is something to do for other targets.

    Those are not to stay less safe for it: the runner fails once they are done.
    """
    if failures and not changes:
        raise ChangeFailed("; ".join(failures.values()))


def verify(left: Iterable[Change]) -> None:
    """Raise ChangeFailed when a plan made after the change still finds something to do."""
    missed = [
        f"{change.target}: {change.setting} ({change.when}): observed {change.before}, expected"
        f" {change.after}: the machine did not follow"
        for change in left
    ]
    if missed:
        raise ChangeFailed(
            f"{'; '.join(missed)}; look in the log of the kernel or the server for what keeps or resets it, then run again"
        )


def account(changes: Iterable[Change], left: Iterable[Change] | None) -> str:
    """State for each change of a plan whether it was made; `left`: the changes of a later plan, None if none can be made."""
    if left is None:
        return f"done or not, it cannot be read: {_some(map(_named, changes))}"
    undone = {change[:3]: change for change in left}
    parts = {
        "done": [_named(change) for change in changes if change[:3] not in undone],
        "not done": [_as_text(undone[change[:3]]) for change in changes if change[:3] in undone],
    }
    return "; ".join(f"{word}: {_some(rows)}" for word, rows in parts.items() if rows)


def _named(change: Change) -> str:
    return f"{change.target} {change.setting} ({change.when})"


def _as_text(change: Change) -> str:
    return f"{_named(change)}: observed {change.before}, expected {change.after}"


def _some(texts: Iterable[str]) -> str:
    named = list(texts)
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return f"{', '.join(named[:_MOST])}{more}"


def as_diff(changes: Iterable[Change]) -> dict[str, Lines]:
    """Return the before and after texts that `--diff` shows, one line a setting."""
    rows = list(changes)
    return {
        side: lines(f"{row.target} {row.setting} ({row.when}): {getattr(row, side)}" for row in rows)
        for side in ("before", "after")
    }


def as_changes(rows: Iterable[Mapping[str, object]]) -> list[dict[str, str]]:
    """Return the changes that a host reports, each with the fields of a Change alone. Raises TypeError and KeyError."""
    return [{name: str(row[name]) for name in Change._fields} for row in rows]
