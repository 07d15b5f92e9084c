# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release of settings that the server removed: ALTER SYSTEM's, and those of roles and databases.

What an administrator has set again since stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...enforce import originals
from ...enforce.change import Change, attempt
from ...facts.classes import InstanceFacts
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import without_content
from . import alter, server
from .alter import ORIGINALS, Original
from .cluster import Files
from .server import Login


class Cluster(NamedTuple):
    """What is restored of one cluster: how its server is queried, and {what: its value}."""

    name: str
    login: Login
    words: dict[Original, str]


def plan(
    host: Host, clusters: dict[str, InstanceFacts]
) -> tuple[tuple[Cluster, ...], list[Change], dict[str, str], dict[str, str]]:
    """Return what is restored, its changes, {key: value} of the originals that stay for a later release, and {cluster: why}.

    `clusters`: their facts by name. Reads only. Raises ChangeFailed.
    """
    by_cluster: dict[str, dict[Original, str]] = {}
    stored = originals.load(host, ORIGINALS)
    for key, word in stored.items():
        original = alter.of_key(key)
        by_cluster.setdefault(original.instance, {})[original] = word
    back: list[Cluster] = []
    changes: list[Change] = []
    staying: dict[str, str] = {}
    failures: dict[str, str] = {}
    for name, words in by_cluster.items():
        try:
            login, in_use = _now(host, name, clusters.get(name), words)
        except (ChangeFailed, Unobservable, ValueError) as error:
            failures[name] = f"{name}: {without_content(error)}"
            staying.update({original.key: word for original, word in words.items()})
            continue
        free = {original: word for original, word in words.items() if login and original not in in_use}
        changes += [_change(original, word, original in free) for original, word in words.items()]
        if login:
            back.append(Cluster(name, login, free))
    return tuple(back), changes, staying, failures


def apply(host: Host, back: tuple[Cluster, ...], stored: dict[str, str]) -> None:
    """Restore it, and delete all originals except those that stay. Raises ChangeFailed."""
    todo = {
        original.key: (cluster.login, original, word)
        for cluster in back
        for original, word in cluster.words.items()
    }

    def put(key: str) -> None:
        login, original, word = todo[key]
        server.tell(host, login, original.statement(word))

    failures = attempt(todo, put)
    originals.save(host, {**stored, **{key: todo[key][2] for key in failures}}, ORIGINALS)
    if failures:
        raise ChangeFailed("; ".join(failures.values()))


def _gone(host: Host, login: Login, words: Iterable[Original]) -> set[Original]:
    """Return those whose role or database is there no more. Raises Unobservable."""
    own = [original for original in words if original.of == "override"]
    if not own:
        return set()
    roles, databases = server.names(host, login)
    return {
        original
        for original in own
        if original.role not in {None, *roles} or original.database not in {None, *databases}
    }


def _now(
    host: Host, name: str, facts: InstanceFacts | None, words: Iterable[Original]
) -> tuple[Login | None, set[Original]]:
    """Return how a cluster is queried, None if it is gone, and what is set there by now, or cannot be set any more.

    Raises ChangeFailed, Unobservable, Malformed.
    """
    if facts is None:
        return None, set()
    if not facts["pids"] or facts["root"]:
        raise ChangeFailed(
            "it does not run; expected it to, because only the server restores what ALTER has set; start it, then run again"
        )
    data, pid = facts["directories"][0], facts["pids"][0]
    login = server.login(host, pid, data)
    answer = server.ask(host, login, pid)
    in_use = {Original(name, "system", setting) for setting in alter.altered(Files(host, ""), data)}
    for row in answer["overrides"]:
        names = (entry.partition("=")[0] for entry in row["config"])
        in_use |= {Original(name, "override", setting, row["role"], row["database"]) for setting in names}
    return login, in_use | _gone(host, login, words)


def _change(original: Original, word: str, is_put_back: bool) -> Change:
    target = original.instance if original.of == "system" else f"{original.instance} {original.who}"
    return Change(
        target, original.setting, "persisted", *(("unset", word) if is_put_back else (word, "forgotten"))
    )
