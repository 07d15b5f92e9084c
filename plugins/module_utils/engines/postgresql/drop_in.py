# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our file in a PostgreSQL cluster's configuration: its path, its content, and what overrides it."""

from __future__ import annotations

import posixpath

from ...enforce import ownership
from ...host.process_context import link_target
from ...host.seam import ChangeFailed, Host
from ...host.textfile import MARK, Line, insert, is_marked, remove
from .. import fixes
from ..instance import Refusal
from . import cluster as postgresql_cluster
from . import conf
from .cluster import VALUES, Cluster, Files, Won
from .fixes import FIXES

#: It sorts behind what packages and people put there.
NAME = "zz-durable-dbhost.conf"
HEADER = (
    f"# {MARK}: settings that keep acknowledged commits. Do not edit: it is written again; release takes"
    " it away.\n"
)
_NOTE = "read last, so that it has the last word; release takes this line away"
_SIGN = "#"
#: The server must start also where our file is gone.
_INCLUDE = "include_if_exists"


def ours(files: Files, config: str) -> dict[str, dict[str, str]]:
    """Return {path: settings} of the files that we have put next to a configuration, or into one of its
    include directories. Raises Malformed, Unobservable."""
    found = {}
    for path in _places(files, config):
        text = files.read(path)
        if text is not None and text.startswith(f"{_SIGN} {MARK}"):
            lines = conf.parse(text, path)
            found[path] = {line.name: line.value or "" for line in lines if line.kind == "setting"}
    return found


def place(files: Files, config: str) -> tuple[str, ...]:
    """Return where our file lies, or will; and the configuration, if no include directory of it has that.
    Raises Malformed, Unobservable."""
    path = next(iter(ours(files, config)), _places(files, config)[0])
    return (path,) if posixpath.dirname(path) != posixpath.dirname(config) else (path, config)


def without_line(files: Files, config: str) -> str:
    """Return a configuration's text without our include lines. Raises Malformed, Unobservable."""
    lines = conf.parse(files.read(config) or "", config)
    return remove(lines, _include_lines(lines), _SIGN)


def writes(
    files: Files, cluster: Cluster, wanted: dict[str, str]
) -> tuple[dict[str, tuple[str | None, str]], dict[str, str]]:
    """Return {path: (text before, text after)} of the files that make the settings those of the next
    start, in the order in which they are written; and {setting: what still overrides it}, which are
    left out.

    Our file goes into the last include directory, else next to postgresql.conf; if that is not read
    last, a line at the end of postgresql.conf includes it. Raises Refused when another program's file is
    in its place; ValueError, Malformed, Unobservable.
    """
    existing = ours(files, cluster.config)
    path = place(files, cluster.config)[0]
    _expect_free(files, path, existing)
    # The owner of the server can write to our file as well: only what is from our own lists is written again.
    ours_now = {name: word for name, word in existing.get(path, {}).items() if word in VALUES.get(name, ())}
    won = _beaten(files, cluster, wanted, _texts(files, cluster, path, {**ours_now, **wanted}, wanted))
    possible = {name: word for name, word in wanted.items() if name not in won}
    changed = _texts(files, cluster, path, {**ours_now, **possible}, possible) if possible else {}
    before = {changed_path: files.read(changed_path) for changed_path in changed}
    writes = {name: (before[name], after) for name, after in changed.items() if before[name] != after}
    return writes, {name: _overridden(name, wanted[name], won[name]) for name in won}


def writer(host: Host, path: str, config: str, uid: int, restores: bool = False) -> int:
    """Return the user as whom one of these files is written; `restores`: by release. Raises ChangeFailed."""
    names = ("postgresql.conf", NAME)
    return ownership.writer(host, path, uid, [posixpath.dirname(config)], names, restores)


def refusal(files: Files, config: str, uid: int) -> Refusal | None:
    """Return why our file, or the line that includes it, would not be written for a server of this user; None where it would.

    Raises Malformed, Unobservable.
    """
    try:
        for path in place(files, config):
            if path != config:
                _expect_free(files, path, ours(files, config))
            writer(files.host, path, config, uid)
    except (ChangeFailed, ValueError) as error:
        return Refusal.of(error)
    return None


def _texts(
    files: Files, cluster: Cluster, path: str, settings: dict[str, str], wanted: dict[str, str]
) -> dict[str, str]:
    """Return {path: text} of our file with its settings, and of what has to include it for the wanted."""
    changed = {path: _render(settings)}
    if _beaten(files, cluster, wanted, changed):
        changed[cluster.config] = _with_line(files, cluster.config, path)
    return changed


def _places(files: Files, config: str) -> list[str]:
    """Return where our file can lie, best first."""
    base = posixpath.dirname(config)
    lines = conf.parse(files.read(config) or "", config)
    included = [line.value or "" for line in lines if line.name == "include_dir"]
    paths = [posixpath.normpath(posixpath.join(base, path)) for path in reversed(included)]
    # Any user's cluster can name any directory.
    own = [path for path in paths if ownership.is_inside(files.host, path, [base])]
    return [posixpath.join(path, NAME) for path in dict.fromkeys([*own, base])]


def _expect_free(files: Files, path: str, existing: dict[str, dict[str, str]]) -> None:
    """Raise RefusedWith where something of another program's is at our place."""
    is_link = link_target(files.host, path) is not None
    if is_link or (path not in existing and files.read(path) is not None):
        what = "a link" if is_link else "a file that is not ours"
        raise fixes.RefusedWith(
            f"{path}: observed {what}; expected nothing, or the file that was written here",
            fixes.fix("move_away", path=path),
            FIXES,
        )


def _render(settings: dict[str, str]) -> str:
    """Return the text of our file. Raises ValueError for what is not from our own lists."""
    for name, word in settings.items():
        if word not in VALUES.get(name, ()):
            raise ValueError(f"not from our own lists: {name!r} {word!r}")
    return HEADER + "".join(f"{name} = {settings[name]}\n" for name in sorted(settings))


def _with_line(files: Files, config: str, path: str) -> str:
    """Return a configuration's text with our include line at its end, and nowhere else."""
    base = posixpath.dirname(config) + "/"
    relative = path[len(base) :] if path.startswith(base) else path
    quoted = relative.replace("\\", "\\\\").replace("'", "''")
    lines = conf.parse(without_line(files, config), config)
    return insert(lines, len(lines), f"{_INCLUDE} '{quoted}'", _SIGN, _NOTE)


def _include_lines(lines: list[Line]) -> list[Line]:
    return [
        line
        for line in lines
        if line.name == _INCLUDE
        and posixpath.basename(line.value or "") == NAME
        and is_marked(lines, line, _SIGN)
    ]


def _beaten(
    files: Files, cluster: Cluster, wanted: dict[str, str], changed: dict[str, str]
) -> dict[str, Won]:
    """Return {setting: what overrides our file} if the files had these texts."""
    then = Files(files.host, files.root, {**files.written, **changed})
    after = cluster._replace(files=then.effective(cluster.config, cluster.data))
    found = {name: postgresql_cluster.won(after, name) for name in VALUES if name in wanted}
    return {name: won for name, won in found.items() if won.word != wanted[name]}


def _overridden(name: str, word: str, won: Won) -> str:
    place = won.place or "default"
    first = fixes.text(won.held, FIXES) if won.held else f"remove {name} from {place}"
    return (
        f"{name}: observed {won.word} in {place}, which beats every file that is written here; expected {word};"
        f" {first}, then run again"
    )
