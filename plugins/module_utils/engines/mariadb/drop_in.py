# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our option file for MariaDB and MySQL: its path, its content, and whether it is read last."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from ...enforce import ownership
from ...host import bounded_read
from ...host.paths import normal
from ...host.process_context import link_target
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import Malformed
from .. import fixes
from . import my_cnf, options, owners, versions
from .fixes import FIXES
from .snapshot import Snapshot

#: Sorts after others' files: the last word on an option wins.
NAME = "zz-durable-dbhost.cnf"
HEADER = "# Managed by durable.dbhost. playbooks/release_db.yml takes it away.\n"
#: Directories that packages include.
PLACES = ("/etc/mysql/mariadb.conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/conf.d", "/etc/my.cnf.d")

#: The groups that our file may have: those of the servers of each flavour, and of no other program.
GROUPS = ("mariadb", "mysqld")
#: {group: {option: value}}
Groups = dict[str, dict[str, str]]


def group(snapshot: Snapshot) -> str:
    """Return the group that a server of this flavour reads, and no other kind of server: one of GROUPS."""
    if snapshot.version is None or snapshot.started is None:
        raise ChangeFailed("nothing is known about the server's version or of how it is started; run again")
    return "mariadb" if snapshot.version.is_mariadb else "mysqld"


def is_own(section: str, name: str, value: str) -> bool:
    """Return whether our file may say this: its group, its name and its value are from our own lists."""
    return section in GROUPS and versions.is_written(name, value)


def own(groups: Groups) -> Groups:
    """Return what our file may say of what it says."""
    ours_alone = {
        section: {name: value for name, value in settings.items() if is_own(section, name, value)}
        for section, settings in groups.items()
    }
    return {section: settings for section, settings in ours_alone.items() if settings}


def foreign(text: str) -> list[str]:
    """Return the lines of our file that are not from our own lists, without their values. Raises ValueError."""
    found = []
    for line in my_cnf.parse(text):
        name, value = my_cnf.option(line.name, line.value)
        if line.kind in ("include", "includedir"):
            found.append(f"!{line.kind}")
        elif line.kind == "setting" and not is_own(line.section, name, value or ""):
            found.append(f"{name} of [{line.section}]")
    return list(dict.fromkeys(found))


def parse(text: str) -> Groups:
    """Return what one of our files says. Raises ValueError for one that we did not write."""
    if not text.startswith(HEADER):
        raise ValueError("it does not start with the header of this collection's file")
    found: Groups = {}
    try:
        for line in my_cnf.parse(text):
            if line.kind == "setting":
                name, value = my_cnf.option(line.name, line.value)
                found.setdefault(line.section, {})[name] = value or ""
    except Malformed:
        raise ValueError("edited so that no server can read it") from None
    return found


def render(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of our file.

    A server to which an option of InnoDB is no longer known must still start: `loose_`. Raises ValueError for
    what is not from our own lists: text of a process, of its environment or of a file never gets here.
    """
    blocks = []
    for section, settings in groups.items():
        for name, value in settings.items():
            if not is_own(section, name, value):
                raise ValueError(f"not from our own lists: {section!r} {name!r} {value!r}")
    for name, settings in sorted(groups.items()):
        lines = [
            f"{'loose_' if key.startswith('innodb_') else ''}{key}={value}\n"
            for key, value in sorted(settings.items())
        ]
        blocks.append(f"[{name}]\n{''.join(lines)}")
    return HEADER + "".join(blocks)


def write(snapshot: Snapshot, wanted: Mapping[str, str], planned: Mapping[str, str]) -> dict[str, str]:
    """Return {path: text} of the file that sets settings to the requested values at the next start.

    `planned`: those that this run writes for other servers. Raises ChangeFailed if nothing that
    is written into a directory of option files would have the last word, and says what has it.
    """
    apart = owners.apart(snapshot, places(snapshot))
    if apart:
        if planned and not beaten(snapshot, wanted, planned):
            return {}  # It reads the group that is written for other servers.
        snapshot.files.overlay = {}
        raise ChangeFailed(owners.advice(snapshot, wanted, apart, group(snapshot)))
    why = (
        "its option files include no directory in which a file of this collection could be. Fix:"
        f" {owners.fix_without_directory(snapshot, wanted, group(snapshot))}"
    )
    for place in reversed(places(snapshot)):
        path = f"{place.rstrip('/')}/{NAME}"
        groups = _existing(snapshot, path, planned)
        # Only root may change the way there: it is written as root.
        ownership.writer(snapshot.files.host, path, 0, _own(snapshot), (NAME,))
        groups.setdefault(group(snapshot), {}).update(wanted)
        text = {path: render(groups)}
        left = beaten(snapshot, wanted, {**planned, **text})
        if not left:
            return text
        why = left
    raise ChangeFailed(why)


def changed(
    snapshot: Snapshot, names: Iterable[str], planned: Mapping[str, str]
) -> dict[str, options.NextValue]:
    """Return the settings of a server that the planned files change at its next start, as they will be.

    Raises ChangeFailed if its next start cannot be read.
    """
    if snapshot.version is None or snapshot.started is None:
        raise ChangeFailed(snapshot.reason or "its version cannot be read")
    before_and_after = []
    for overlay in ({}, planned):
        snapshot.files.overlay = dict(overlay)
        before_and_after.append(
            options.persisted(list(names), snapshot.version, snapshot.started, snapshot.files, snapshot.data)
        )
    snapshot.files.overlay = {}
    return {
        name: after
        for name, after in before_and_after[1].items()
        if after.word != before_and_after[0][name].word
    }


def beaten(snapshot: Snapshot, wanted: Mapping[str, str], planned: Mapping[str, str]) -> str:
    """Return what has the last word over the planned files, '' when they have it."""
    if snapshot.version is None or snapshot.started is None:
        return "nothing is known about the server's version or of how it is started"
    snapshot.files.overlay = dict(planned)
    coming = options.persisted(
        list(wanted), snapshot.version, snapshot.started, snapshot.files, snapshot.data
    )
    left = [
        f"{name}: {coming[name].reason or f'observed {coming[name].word} from {coming[name].origin}'}; expected {word}"
        for name, word in wanted.items()
        if coming[name].word != word
    ]
    remedies = dict.fromkeys(
        _remedy(name, coming[name].origin) for name, word in wanted.items() if coming[name].word != word
    )
    if not left:
        return ""
    return f"{'; '.join(left)}; that beats what is written to {NAME}. Fix: {', and '.join(remedies)}"


def directories(snapshot: Snapshot) -> list[str]:
    """Return the directories that a server's option files include. Raises ChangeFailed."""
    if snapshot.started is None or snapshot.version is None:
        raise ChangeFailed(snapshot.reason or "its version is unknown")
    try:
        found = options.effective(snapshot.files, snapshot.started, snapshot.version)
        return snapshot.files.directories(found.files)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def places(snapshot: Snapshot) -> list[str]:
    """Return those of the directories that a server's option files include that are root's: the main files of the system
    include them, or packages do. Raises ChangeFailed."""
    found = directories(snapshot)
    if snapshot.started is None or snapshot.version is None:
        return []
    of_system = tuple(path for path in snapshot.started.mains if path in my_cnf.MAINS)
    try:
        files = options.effective(
            snapshot.files, snapshot.started._replace(mains=of_system), snapshot.version
        ).files
        included = [*PLACES, *snapshot.files.directories(files)]
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    return [place for place in found if normal(place) in map(normal, included)]


def strange(host: Host, found: Iterable[str]) -> Iterator[tuple[str, list[str], str]]:
    """Yield path, foreign lines and text without them, of our files in some directories that have any.

    Files that cannot be read, or lie where others than root may change them, are passed over: release reports them.
    """
    for place in found:
        path = f"{place.rstrip('/')}/{NAME}"
        try:
            text = bounded_read.read(host, path)
            if text is None or not text.startswith(HEADER):
                continue
            ownership.writer(host, path, 0, [place], (NAME,))
            lines = foreign(text)
            if lines:
                yield path, lines, render(own(parse(text)))
        except (ChangeFailed, Unobservable, ValueError):
            continue


def ours(host: Host, places: Iterable[str]) -> tuple[dict[str, Groups], dict[str, str]]:
    """Return {path: what it says} of our files in some directories, {} for one that was edited beyond reading.

    And {path: why not} of those that cannot be read, or lie where others than root may change them: any
    user's server names directories.
    """
    found: dict[str, Groups] = {}
    failures: dict[str, str] = {}
    for place in places:
        path = f"{place.rstrip('/')}/{NAME}"
        try:
            text = bounded_read.read(host, path)
            if text is None or not text.startswith(HEADER):
                continue
            ownership.writer(host, path, 0, [place], (NAME,))
            found[path] = parse(text)
        except (ChangeFailed, Unobservable) as error:
            failures[path] = str(error)
        except ValueError:
            found[path] = {}
    return found, failures


def _existing(snapshot: Snapshot, path: str, planned: Mapping[str, str]) -> Groups:
    """Return what our file says that it may say, {} for no file. Raises ChangeFailed for any other file."""
    host = snapshot.files.host
    snapshot.files.overlay = dict(planned)
    try:
        if path in planned:
            return parse(planned[path])
        _expect_no_link(host, path)
        text = bounded_read.read(host, path)
        if text is None:
            return {}
        found = own(parse(text))
        if snapshot.files.read(path) is None:
            raise ValueError("the server passes over it: it may not read it, or everyone may write to it")
        return found
    except (Unobservable, ValueError) as error:
        raise fixes.RefusedWith(f"{path}: {error}", fixes.fix("move_away", path=path), FIXES) from error


def _expect_no_link(host: Host, path: str) -> None:
    target = link_target(host, path)
    if target is not None:
        raise ValueError(f"observed a link to {target}; expected nothing, or the file that was written here")


def _own(snapshot: Snapshot) -> list[str]:
    """Return the directories below which its option files, or those of packages, lie."""
    mains = snapshot.started.mains if snapshot.started else ()
    return [*PLACES, *(posixpath.dirname(path) for path in mains)]


def _remedy(name: str, origin: str | None) -> str:
    held = options.held(name, origin)
    if held:
        return fixes.text(held, FIXES)
    if origin is None:
        return "correct what the reason names, then run again"
    if origin.startswith("default of"):
        return "the file is not read"
    return f"remove {name} from {origin}"
