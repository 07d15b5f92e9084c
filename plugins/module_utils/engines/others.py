# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that another component sets after a server has read its own files, and what persists. Pure.

A component is a command of the server's unit, a file of statements, a script at boot, another unit. Its value persists if
it is certain. If it is not, the setting is `unknown`. One that sets the same value changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from ..facts.classes import SettingFacts, SettingFixFacts
from ..host.observation import UNKNOWN, Because
from . import fixes
from .instance import Observed, reasons_and

#: What sets a setting if no other component does: a file of ours, or one of the server's own and its defaults.
US, SERVER = "durable.dbhost", "server"
#: What the names of our files have in them.
_OURS = "durable-dbhost"

Settings = dict[str, SettingFacts]


class Text(NamedTuple):
    """A command, or a line of a script, that another component runs.

    `source`: its file and line; `by`: the component. `is_direct`: it runs at each start after the server has read its
    files, as its unit says and by no script. `is_own`: it is a command of the server's own unit, and no script.
    """

    text: str
    source: str
    by: str
    is_direct: bool = False
    is_own: bool = False


class Change(NamedTuple):
    """What a component sets a setting to: None if that cannot be read. `is_certain`: it does so at each start.

    `do`: what an administrator changes, if that is not to remove the name from `source`, which belongs to the component.
    """

    name: str
    value: str | None
    source: str
    by: str
    is_certain: bool = False
    why: Because | str | None = None
    do: SettingFixFacts | None = None

    @property
    def fix(self) -> SettingFixFacts:
        """What an administrator changes."""
        return self.do or fixes.fix("remove_from", setting=self.name, source=self.source)


#: What a text sets of an engine's settings.
Reads = Callable[[Text], "Iterable[Change]"]


def is_elsewhere(command: str, host: re.Pattern[str]) -> bool:
    """Return whether a single command is sent to a server of another host; of several one may be about this one."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    is_shell = re.match(r"[@:+!|-]*(?:\S*/)?(?:ba|da|k|z)?sh\s", command)
    return bool(host.search(command)) and not is_shell and not re.search(r"[;|&`]|\$\(", bare)


def apply(settings: Settings, changes: Sequence[Change]) -> Settings:
    """Return settings as they persist after the changes of other components, in their order."""
    found = dict(settings)
    for change in changes:
        row = found.get(change.name)
        if row is None or change.value == row["persisted"]:
            continue
        certain = change.value if change.is_certain else None
        if certain is None and row["persisted"] == UNKNOWN:
            continue
        origin = f"{change.source} ({change.by})"
        after: SettingFacts = {
            **row,
            "from": origin,
            "held": change.fix,
            "by": change.by,
            "fix": change.fix,
            "permission": None,
            "refused": None,
        }
        if certain is not None:
            found[change.name] = {**after, "persisted": certain}
        else:
            why = change.why or Because("may_set", {"place": origin, "setting": change.name})
            found[change.name] = {**reasons_and(after, why), "persisted": UNKNOWN}
    return found


def by(row: SettingFacts) -> str | None:
    """Return what sets a setting last at the next start, None if that is unknown."""
    if row.get("by"):
        return row["by"]
    if row["persisted"] == UNKNOWN:
        return None
    return US if _OURS in (row["from"] or "") else SERVER


def changed(observed: Observed, changes: Sequence[Change]) -> Observed:
    """Return an instance after the changes of other components; what waits for a restart is compared again."""
    settings = apply(observed.settings, changes)
    before = observed.settings
    pending = tuple(
        name
        for name in observed.pending_restart
        if name not in settings or settings[name]["persisted"] == before[name]["persisted"]
    )
    return observed._replace(settings=settings, pending_restart=pending)


def named(names: Collection[str]) -> Reads:
    """Return a reader of texts that knows no more than the names of settings, in any case, with a value behind them."""
    patterns = {
        name: re.compile(
            rf"(?i)(?<![\w$.-])(?:\w+\.)?{_spelled(name)}['\"`]?\s*(?:=|:=|\s)\s*['\"]?[\w$%{{-]"
        )
        for name in names
    }

    def read(text: Text) -> Iterable[Change]:
        for name, pattern in patterns.items():
            if pattern.search(text.text):
                yield Change(name, None, text.source, text.by)

    return read


def _spelled(name: str) -> str:
    """Return a pattern for a name: servers take `-` for `_`."""
    return "[-_]".join(re.escape(part) for part in name.split("_"))
