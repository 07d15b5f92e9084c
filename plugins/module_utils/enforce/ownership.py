# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user with whose rights a server's file is written: paths come from servers, and any user can run one.

Root writes only where root alone may change the way there. Where the user of the server may, the
file is written as that user, so that a link put there meanwhile leads nowhere that user may not write.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Collection, Iterable

from ..host import processes, trusted_path
from ..host.paths import normal
from ..host.printable import command
from ..host.process_context import is_there, resolve
from ..host.seam import ChangeFailed, Host, Refused, Unobservable

#: Much more than a server's files lies below these.
_SHARED = ("/", "/etc", "/usr", "/opt", "/var", "/var/lib", "/home", "/srv", "/tmp")


def user_of(host: Host, pids: Collection[int], path: str) -> int:
    """Return the user as whom a server runs; of a stopped one, who owns its data or its file at `path`.

    Raises Unobservable.
    """
    for pid in list(pids)[:1]:
        return int(processes.user_of(host, pid))
    return trusted_path.statuses(host, [path])[path].owner


def writer(
    host: Host, path: str, uid: int, inside: Iterable[str], names: Collection[str], restores: bool = False
) -> int:
    """Return the user as whom a file is written: 0, or `uid`, as whom its server runs.

    `inside`: the directories of the server's configuration and data, and those that packages include;
    `names`: what may be written as root for a server that is not root's; `restores`: whether this is release, which also
    writes as root for a person's server. Raises ChangeFailed for a link, and where others may change the file or the way
    to it.
    """
    try:
        return _writer(host, path, uid, inside, names, restores)
    except Unobservable as error:
        raise Refused(f"{path}: {error}", "run again when that can be read") from error


def expect_roots(host: Host, path: str) -> None:
    """Raise ChangeFailed where others than root may change what runs as root: a path, or as much of the way to it
    as is there."""
    there = normal(path)
    while not host.exists(there):
        there = posixpath.dirname(there)
    try:
        why = trusted_path.weakness(host, there)
    except Unobservable as error:
        raise ChangeFailed(f"{path}: {error}; run again when that can be read") from error
    if why:
        raise ChangeFailed(
            f"{path}: observed that others than root may change it ({why}), expected root alone: files in it run as"
            " root; chown and chmod it, then run again"
        )


def is_inside(host: Host, directory: str, inside: Iterable[str]) -> bool:
    """Return whether a directory is one of others, or below one, links followed. Raises Unobservable."""
    real = resolve(host, "", directory)
    around = [resolve(host, "", other) for other in inside if other]
    return any(
        other not in _SHARED and (real == other or real.startswith(f"{other.rstrip('/')}/"))
        for other in around
    )


def _writer(
    host: Host, path: str, uid: int, inside: Iterable[str], names: Collection[str], restores: bool
) -> int:
    path = normal(path)
    directory = posixpath.dirname(path)
    if not is_inside(host, directory, inside):
        raise _refused(
            path,
            "a directory that is neither of its configuration nor of its data",
            f"name {directory} in its configuration",
        )
    try:
        host.link(path)
    except Unobservable:
        pass
    else:
        raise _refused(path, "a link", f"put the file itself at {path}, or make the change by hand")
    owner = 0
    why = trusted_path.weakness(host, directory)
    if why:
        owner = uid
        why = trusted_path.weakness(host, directory, {0, uid})
    status = trusted_path.statuses(host, [directory])[directory]
    if why or status.owner != owner:
        observed = why or f"{directory} belongs to user {status.owner}"
        raise _refused(
            path,
            f"that others than root or its server may change it ({observed})",
            f"let only root or user {owner} change {directory} and what is above it (chown, chmod go-w)",
        )
    if is_there(host, path):
        _expect_file(path, trusted_path.statuses(host, [path])[path], owner, uid)
    if owner == 0 and uid >= processes.FIRST_PERSON and not restores:
        # Any login can start a server that names root's file, and have it changed for the servers of the system.
        raise _refused(
            path,
            f"a file of root's, for a server of user {uid}, and users from {processes.FIRST_PERSON} on are persons",
            "have the person give the server a separate file, or make the change by hand",
        )
    if owner == 0 != uid and posixpath.basename(path) not in names:
        raise _refused(
            path, f"a file of root's that is not called {' or '.join(names)}", "make the change by hand"
        )
    return owner


def _expect_file(path: str, status: trusted_path.Status, owner: int, uid: int) -> None:
    if not stat.S_ISREG(status.mode):
        raise _refused(path, "no regular file", f"move {path} away")
    if status.owner != owner and (owner or status.owner != uid):
        raise _refused(path, f"a file of user {status.owner}", f"run {command('chown', str(owner), path)}")
    if status.mode & stat.S_IWOTH:
        raise _refused(path, "a file that everyone may write to", f"run {command('chmod', 'o-w', path)}")


def _refused(path: str, observed: str, remedy: str) -> Refused:
    return Refused(
        f"{path}: observed {observed}; expected a file that only root, or the user of the server, may change, where the"
        " server keeps its own",
        f"{remedy}, then run again",
    )
