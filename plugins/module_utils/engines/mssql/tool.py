# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mssql-conf, the only program that changes mssql.conf: the user it runs as, and when it is not run."""

from __future__ import annotations

import stat
from typing import NamedTuple

from ...host import confined, trusted_path
from ...host.seam import ChangeFailed, Host, Status, Unobservable
from .. import fixes
from ..instance import Refusal
from .fixes import FIXES

PATH = "/opt/mssql/bin/mssql-conf"
#: Configuration, system databases and logs of every instance; databases may lie elsewhere.
HOME = "/var/opt/mssql"
CONFIG = f"{HOME}/mssql.conf"
#: It is a Python program with its modules there.
_MODULES = "/opt/mssql/lib/mssql-conf"
#: Without it, Python loads what the user has in ~/.local/lib.
_VARIABLES = {"PYTHONNOUSERSITE": "1"}
#: How a plan names the owner of the file.
OWNER = f"owner of {CONFIG}"
#: Whether a user can give a second name to other users' files: sysctl fs of Linux.
_LINKS = "/proc/sys/fs/protected_hardlinks"


def refusal(host: Host) -> Refusal | None:
    """Return why it would not be run, None where it would."""
    try:
        runner(host)
    except ChangeFailed as error:
        return Refusal.of(error)
    return None


def _expect_file(host: Host) -> None:
    """Refuse a link: mssql-conf would write where it leads."""
    try:
        target = host.link(CONFIG)
    except Unobservable:
        return
    raise fixes.RefusedWith(
        f"{CONFIG}: observed a link to {target}, expected the file itself",
        fixes.fix("put_file", path=CONFIG),
        FIXES,
    )


def runner(host: Host) -> list[str]:
    """Return the command to which mssql-conf's arguments are added: it runs as the owner of its file's directory.

    That user can put a link there at any moment, so mssql-conf gets no more rights. Raises ChangeFailed if it must not
    run: others than root can change it, its file is a link, or the owner of its file cannot be set.
    """
    try:
        trusted_path.expect_program(host, PATH)
        why = trusted_path.weak_entry(host, _MODULES)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if why:
        raise ChangeFailed(
            f"{PATH}: its modules may be changed by others than root ({why}), so it is not run. Fix: chown that to root"
        )
    _expect_file(host)
    try:
        home = host.locate(HOME)
        if home.status is None:
            raise Unobservable(f"{HOME}: it is not there")
        if home.status.user:
            ownership(host)
            return confined.command(host, confined.account(host, home.status.user), [PATH], _VARIABLES)
        why = trusted_path.weakness(host, HOME)
    except Unobservable as error:
        raise ChangeFailed(f"the user of {PATH} is unknown: {error}") from error
    if why:
        raise fixes.RefusedWith(
            f"{HOME}: observed root's directory that others may change ({why}), in which {PATH} would write as root;"
            " expected one of the server's user",
            fixes.fix("give_directory", path=HOME),
            FIXES,
        )
    return [PATH]


class Ownership(NamedTuple):
    """The status of mssql.conf, and the owner that it must have before mssql-conf can write it, as user and group."""

    status: Status
    user: int
    group: int

    @property
    def before(self) -> str:
        """The present owner and group."""
        return f"{self.status.user}:{self.status.group}"

    @property
    def after(self) -> str:
        """The owner and group that a run sets."""
        return f"{self.user}:{self.group}"


def ownership(host: Host) -> Ownership | None:
    """Return the owner that a run sets first, None if mssql-conf can write its file, or makes it.

    Microsoft's permissions guide requires the server's user for all files below its directory. A file that mssql-conf made
    under sudo is root's. Raises Refused and Unobservable.
    """
    status, home = host.locate(CONFIG).status, host.locate(HOME).status
    if status is None or home is None or home.user in (0, status.user):
        return None
    runs_as = confined.account(host, home.user)
    allowed = status.mode >> (3 if status.group == runs_as.gid else 0) & 0o7
    if allowed & 0o2:
        return None
    found = Ownership(status, runs_as.uid, runs_as.gid)
    observed = (
        f"{CONFIG}: observed owner {found.before} in a directory of user {home.user}, expected {found.after}"
    )
    fix = fixes.fix("give_file", owner=found.after, path=CONFIG)
    if not allowed & 0o4:
        raise fixes.RefusedWith(
            f"{observed}; the server cannot read it (mode {status.mode & 0o7777:04o})", fix, FIXES
        )
    if not stat.S_ISREG(status.mode) or status.links != 1:
        raise fixes.RefusedWith(
            f"{observed}; it is no regular file with one name, and a run sets no other owner", fix, FIXES
        )
    if host.read(_LINKS).strip() != "1":
        raise fixes.RefusedWith(f"{observed}; a run sets it only with fs.protected_hardlinks 1", fix, FIXES)
    return found
