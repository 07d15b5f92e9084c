# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with a password: they run as a user without an account or process.

Another process of the same user could read the password in their environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import confined
from .processes import Processes
from .seam import Host, Unobservable

#: Users that nothing is given to: https://systemd.io/UIDS-GIDS, "unused".
_NUMBERS = range(60706, 61184)
#: getent(1): no such key.
_NOT_FOUND = 2


def command(host: Host, argv: Sequence[str], name: str) -> list[str]:
    """Return the command that runs a program as such a user; `name` is the program's, for messages. Raises Unobservable."""
    try:
        used = set(_users(Processes(host)))
        for uid in map(str, _NUMBERS):
            if uid not in used and host.run(["getent", "passwd", uid]).rc == _NOT_FOUND:
                return confined.command(host, confined.Account(int(uid), int(uid), ()), argv)
    except Unobservable as error:
        raise Unobservable(f"an unused user number, as which {name} gets the password: {error}") from error
    raise Unobservable(
        f"observed accounts for all users from {_NUMBERS[0]} to {_NUMBERS[-1]}; expected an unused one, as which {name}"
        " gets the password"
    )


def _users(processes: Processes) -> Iterator[str]:
    """Yield the users of all processes but those that end meanwhile. Raises Unobservable."""
    for process in processes.all.values():
        try:
            yield processes.user(process)
        except Unobservable:
            if not processes.is_gone(process):
                raise
