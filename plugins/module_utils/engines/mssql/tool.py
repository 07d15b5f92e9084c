# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mssql-conf, by which alone mssql.conf is changed: as whom it runs, and where it does not."""

from __future__ import annotations

from ...host import confined, trusted_path
from ...host.seam import ChangeFailed, Host, Refused, Unobservable
from ..instance import Refusal

PATH = "/opt/mssql/bin/mssql-conf"
#: Configuration, system databases and logs of every instance; databases may lie elsewhere.
HOME = "/var/opt/mssql"
CONFIG = f"{HOME}/mssql.conf"
#: It is a Python program with its modules there.
_MODULES = "/opt/mssql/lib/mssql-conf"
#: Without it, Python loads what the user has in ~/.local/lib.
_VARIABLES = {"PYTHONNOUSERSITE": "1"}


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
    raise Refused(
        f"{CONFIG}: seen a link to {target}, wanted the file itself",
        f"put the file at {CONFIG}, then run again",
    )


def runner(host: Host) -> list[str]:
    """Return the command to which mssql-conf's arguments are added: it runs as the owner of its file's directory.

    He may put a link there at any moment, so it writes with no more rights than his. Raises ChangeFailed where it is not
    to be run: others than root may change it, or its file is a link or somebody else's.
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
            _expect_owner(host, home.status.user)
            return confined.command(host, confined.account(host, home.status.user), [PATH], _VARIABLES)
        why = trusted_path.weakness(host, HOME)
    except Unobservable as error:
        raise ChangeFailed(f"as whom {PATH} is to run cannot be told: {error}") from error
    if why:
        raise Refused(
            f"{HOME}: seen root's directory that others may change ({why}), in which {PATH} would write as root;"
            " wanted one of the server's user",
            f"run chown mssql {HOME}, then run again",
        )
    return [PATH]


def _expect_owner(host: Host, user: int) -> None:
    status = host.locate(CONFIG).status
    if status and status.user != user:
        raise Refused(
            f"{CONFIG}: seen a file of user {status.user} in a directory of user {user}, as whom {PATH} runs;"
            " wanted that user as its owner",
            f"run chown {user} {CONFIG}, then run again",
        )
