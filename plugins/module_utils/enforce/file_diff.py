# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of files that a plan changes, for `--diff`. Lines with secrets are left out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..host import bounded_read, trusted_path
from ..host.printable import line, lines
from ..host.seam import ChangeFailed, Host, Unobservable
from ..host.secret_words import NOT_SHOWN, can_hold_secret

#: Bytes and lines of a text that is shown; files of one step.
_BYTES, _LINES, _FILES = 64 * 1024, 2000, 50
#: Lines around a change in a file that not every user may read, as `diff -u` has them.
_CONTEXT = 3
_READ_BY_ALL = 0o004
_HIDDEN = f"[line {NOT_SHOWN}]"
_GAP = "[lines not shown: not every user may read this file]"
#: Lines that systemd skips within a line that goes on.
_SKIPPED = re.compile(r"\s*([#;]|$)")


class Edit(NamedTuple):
    """A file that a plan changes: its text before and after, None if it is not there then.

    `is_private` says of a line of this kind of file whether it can contain a secret.
    """

    path: str
    before: str | None
    after: str | None
    is_private: Callable[[str], bool] = lambda _row: False


def of_root(host: Host, files: Mapping[str, str | bytes | None]) -> Iterator[Edit]:
    """Yield the edits of {path: content afterwards} of files that root alone may change; reads what they contain now.

    Raises Unobservable, also for one that others may change: its content is not for root to show.
    """
    for path, content in files.items():
        why = trusted_path.weak_future(host, path)
        if why:
            raise Unobservable(f"{path} is not shown: {why}")
        after = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else content
        yield Edit(path, bounded_read.read(host, path), after)


def of_plan(host: Host, layer: Any, work: Any) -> list[dict[str, str]]:
    """Return what `--diff` shows of the files of a plan, each with headers, before and after. Nothing fails because of it.

    A layer that writes files has `edits`, which takes a host and a plan and returns an Edit of each.
    """
    shown: list[dict[str, str]] = []
    try:
        for edit in layer.edits(host, work) if hasattr(layer, "edits") else ():
            if edit.before == edit.after:
                continue
            if len(shown) == _FILES:
                shown.append(_without_text(f"more than {_FILES} files: the others are not shown"))
                break
            shown.append(_shown(host, edit))
    except (ChangeFailed, Unobservable) as error:
        shown.append(_without_text(str(error)))
    return shown


def _shown(host: Host, edit: Edit) -> dict[str, str]:
    texts = [edit.before or "", edit.after or ""]
    if any("\0" in text for text in texts):
        return _without_text(f"{edit.path}: not shown: not a text")
    if any(
        len(text.encode("utf-8", "surrogateescape")) > _BYTES or text.count("\n") > _LINES for text in texts
    ):
        return _without_text(f"{edit.path}: not shown: more than {_BYTES // 1024} KiB or {_LINES} lines")
    # A form feed or a carriage return ends no line.
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in texts)
    hidden = [_hidden(side, edit.is_private) for side in (before, after)]
    if edit.before is not None and not _is_public(host, edit.path):
        hidden = [list(side) for side in _changed(before, after, hidden)]
    headers = [
        edit.path if text is not None else f"{edit.path} (absent)" for text in (edit.before, edit.after)
    ]
    return {
        "before_header": line(headers[0]),
        "after_header": line(headers[1]),
        "before": lines(hidden[0]),
        "after": lines(hidden[1]),
    }


def _without_text(why: str) -> dict[str, str]:
    # Ansible shows the headers only of texts that differ.
    return {
        "before_header": line(why),
        "after_header": line(why),
        "before": "",
        "after": lines(["[not shown]"]),
    }


def _hidden(rows: Sequence[str], is_private: Callable[[str], bool]) -> list[str]:
    """Return lines, each one with a secret, or that goes on after such a one, replaced."""
    found: list[str] = []
    goes_on = False
    for row in rows:
        is_secret = goes_on or can_hold_secret(row) or is_private(row)
        goes_on = is_secret and (row.rstrip().endswith("\\") or (goes_on and bool(_SKIPPED.match(row))))
        found.append(_HIDDEN if is_secret else row.expandtabs())
    return found


def _changed(
    before: Sequence[str], after: Sequence[str], shown: Sequence[Sequence[str]]
) -> Iterator[Iterable[str]]:
    """Yield, of both sides, the changed lines with some around them."""
    groups = list(difflib.SequenceMatcher(None, before, after, False).get_grouped_opcodes(_CONTEXT))
    for side, rows in enumerate(shown):
        kept: list[str] = []
        for group in groups:
            first, last = group[0], group[-1]
            start, end = (first[1], last[2]) if side == 0 else (first[3], last[4])
            kept += [_GAP, *rows[start:end]] if start or kept else rows[start:end]
        yield kept


def _is_public(host: Host, path: str) -> bool:
    """Return whether root alone changes a file, and every user may read it."""
    return not trusted_path.weakness(host, path) and bool(host.mode(path) & _READ_BY_ALL)
