# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of ALTER SYSTEM, ALTER ROLE and ALTER DATABASE: removed by the server, stored as originals, restored.

It beats every file that a run writes. Nothing here is done without the permission.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypedDict
from urllib.parse import quote

from ...enforce import originals
from ...facts.classes import InstanceFacts, OverrideFacts, SettingFacts
from ...host import bounded_read, json_text, named_by, our_paths
from ...host.seam import ChangeFailed, Host, Unobservable
from ..instance import Override
from ..overrides import fix
from . import conf
from .cluster import AUTO, VALUES, Cluster, Files
from .server import Session

#: The word of durable_allow.
PERMISSION = "alter_system"
#: What was there before: a key of :class:`Original`, and the word.
ORIGINALS = our_paths.ORIGINALS_POSTGRESQL
#: Seconds from the note until the statements that it is about: a session that begins meanwhile counts as one from before.
_MARGIN = 2.0


class Removed(TypedDict):
    """A removed setting of a role or database; sessions that began before `until` still have it."""

    setting: str
    role: str | None
    database: str | None
    value: str
    until: float


class Original(NamedTuple):
    """Something that was removed: of a cluster, ALTER SYSTEM's (`of` is system), or a role's or database's (override)."""

    instance: str
    of: str
    setting: str
    role: str | None = None
    database: str | None = None

    @property
    def key(self) -> str:
        """Return it as one text, which :func:`of_key` takes."""
        return json.dumps(self)

    @property
    def who(self) -> str:
        """Return whose it is, for people."""
        return scope(self.role, self.database) if self.of == "override" else AUTO

    def statement(self, word: str | None) -> str:
        """Return what sets it to a word, or removes it."""
        if self.setting not in VALUES or (word is not None and word not in VALUES[self.setting]):
            raise ChangeFailed(
                f"{self.setting} {word}: observed no setting that is known, expected one; run again"
            )
        what = f"RESET {self.setting}" if word is None else f"SET {self.setting} = '{word}'"
        if self.of == "system":
            return f"ALTER SYSTEM {what}"
        who = "ALL" if self.role is None else _identifier(self.role)
        where = "" if self.database is None else f" IN DATABASE {_identifier(self.database)}"
        return f"ALTER ROLE {who}{where} {what}"


def of_key(key: str) -> Original:
    """Return what a key is of. Raises ChangeFailed."""
    try:
        return Original(*json_text.loads(key))
    except (ValueError, TypeError) as error:
        raise ChangeFailed(
            f"{ORIGINALS}: observed {key[:80]!r}, expected a name that was written here; remove it"
        ) from error


def scope(role: str | None, database: str | None) -> str:
    """Return whose a setting of `pg_db_role_setting` is, for people."""
    who = [f"role {role}"] if role is not None else [] if database is not None else ["all roles"]
    return " in ".join([*who, *([f"database {database}"] if database is not None else [])])


def without(files: Files, cluster: Cluster, names: Iterable[str]) -> tuple[Files, Cluster]:
    """Return the files, and the cluster, as they are once ALTER SYSTEM has been taken back for some settings.

    Raises Malformed, Unobservable.
    """
    then = Files(files.host, files.root, {**files.written, **_auto(files, cluster.data, set(names))})
    return then, cluster._replace(files=then.effective(cluster.config, cluster.data))


def removed(
    instance: str, settings: dict[str, SettingFacts], resets: Iterable[str], rows: Iterable[OverrideFacts]
) -> dict[Original, str]:
    """Return {what is removed: its value}; `settings` and `rows`, overrides, as the facts have them."""
    found = {Original(instance, "system", name): str(settings[name]["persisted"]) for name in resets}
    for row in rows:
        found[Original(instance, "override", row["setting"], row["role"], row["database"])] = row["value"]
    return found


def wanted_of(
    facts: InstanceFacts, overrides: Iterable[Override]
) -> tuple[list[OverrideFacts], dict[str, str]]:
    """Return the rows of overrides that are to go and are there, and {whose: why it stays}."""
    there = {
        Override(row["setting"], row["role"], row["database"]): row
        for row in facts["overrides"]
        if row["source"] == SOURCE
    }
    rows, left = [], {}
    for each in overrides:
        row = there.get(each)
        if row and row["permission"]:
            rows.append(row)
        elif row:
            left[f"{row['setting']} of {row['scope']}"] = (
                f"{row['setting']} of {row['scope']} stays: {fix(row)}"
            )
    return rows, left


#: Where a role's or database's setting stands.
SOURCE = "pg_db_role_setting"


def keep(host: Host, found: dict[Original, str]) -> None:
    """Store what is removed. An original that is stored already stays. Raises ChangeFailed."""
    if found:
        stored = originals.load(host, ORIGINALS)
        originals.save(host, {**{each.key: word for each, word in found.items()}, **stored}, ORIGINALS)


def note_sessions(host: Host, data: str, now: float, found: dict[Original, str]) -> None:
    """Note that sessions which began until now go on with what is removed from their role or database.

    `now`: the server's time, seconds since 1970. Raises ChangeFailed.
    """
    rows: list[Removed] = [
        {
            "setting": each.setting,
            "role": each.role,
            "database": each.database,
            "value": word,
            "until": now + _MARGIN,
        }
        for each, word in found.items()
        if each.of == "override"
    ]
    if rows:
        try:
            text = json.dumps([*_noted(host, data), *rows])
        except Unobservable as error:
            raise ChangeFailed(str(error)) from error
        host.write_file(_sessions_path(data), text.encode("utf-8", "surrogateescape"))


def old_sessions(host: Host, data: str, sessions: Iterable[Session]) -> Iterator[Removed]:
    """Yield what was removed, as it was noted, and sessions that are there yet go on with.

    `sessions`: [{role, database, began}], of each the oldest. Raises Unobservable.
    """
    present = list(sessions)
    for row in _noted(host, data):
        if any(
            row["role"] in (None, each["role"])
            and row["database"] in (None, each["database"])
            and each["began"] < row["until"]
            for each in present
        ):
            yield row


def _noted(host: Host, data: str) -> list[Removed]:
    with named_by.one(host, None):  # Our own file.
        text = bounded_read.read(host, _sessions_path(data))
    try:
        found = json_text.loads(text) if text else []
    except ValueError as error:
        raise Unobservable(f"{_sessions_path(data)}: {error}") from None
    return list(found)


def _sessions_path(data: str) -> str:
    return f"{our_paths.SESSIONS_POSTGRESQL}/{quote(data, safe='', errors='surrogateescape')}"


def _auto(files: Files, data: str, names: set[str]) -> dict[str, str]:
    """Return {path: text} of ALTER SYSTEM's file without some settings. Raises Malformed, Unobservable."""
    path = posixpath.join(data, AUTO)
    lines = conf.parse(files.read(path) or "", path)
    return {path: "".join(line.raw for line in lines if line.kind != "setting" or line.name not in names)}


def altered(files: Files, data: str) -> set[str]:
    """Return the settings that ALTER SYSTEM's file has. Raises Malformed, Unobservable."""
    path = posixpath.join(data, AUTO)
    return {line.name for line in conf.parse(files.read(path) or "", path) if line.kind == "setting"}


def _identifier(name: str) -> str:
    """Return a name as SQL quotes it: in no encoding of a server's is a quote part of another letter."""
    if not name or "\0" in name:
        raise ChangeFailed(f"{name!r}: observed no name of a role or database, expected one")
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
