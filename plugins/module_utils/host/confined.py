# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run as another user: the only place that builds them.

The program, its libraries, its option files and the directories above them can be changed by root alone,
and its arguments are ours. So no code of that user runs, however confined the user's server is. The
confinement of a server (seccomp, Landlock, filters of its control group, a security module) cannot be
read as a whole. So it is not compared: a command with any input that others can change does not run, and
what it would tell is unknown.

The command has the user's ids, no_new_privs, the directory / and the environment of `seam` with our own
variables; `seam` starts each command in a new session keyring. A change of user clears all capabilities,
and no_new_privs keeps a program's own from coming back. So the bounding set stays as it is: `setpriv`
refuses to clear it under a kernel that knows more capabilities than it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import keyring, trusted_path
from .seam import Host, Unobservable

#: A capability that gives nothing worth having: to set an alarm that wakes a suspended machine.
_GUARD = "wake_alarm"
_GUARD_BIT = 1 << 35
_PERMITTED = re.compile(r"^CapPrm:\s*([0-9a-f]+)$", re.M)


class Account(NamedTuple):
    """The user as whom a command runs, by number. `groups`: the further ones, None for those of the user's name."""

    uid: int
    gid: int
    groups: tuple[int, ...] | None = None


def account(host: Host, user: int | str) -> Account:
    """Return the account of a user by number or name, with its groups. Raises Unobservable for one without an account."""
    result = host.run(["getent", "passwd", str(user)])
    numbers = result.stdout.rstrip("\n").split(":")[2:4]
    if result.rc != 0 or len(numbers) < 2 or not all(text.isascii() and text.isdigit() for text in numbers):
        raise Unobservable(f"user {user} has no account: getent passwd finds none")
    return Account(int(numbers[0]), int(numbers[1]))


def of_numbers(numbers: Sequence[str]) -> Account:
    """Return the account of a user, its group and its further groups, as proc_pid_status(5) has their numbers.

    Raises Unobservable.
    """
    try:
        uid, gid, *groups = map(int, numbers)
    except ValueError as error:
        raise Unobservable(
            f"user and group of the server are unknown: {', '.join(numbers) or 'none is found'}"
        ) from error
    return Account(uid, gid, tuple(groups))


def command(
    host: Host, user: Account, argv: Sequence[str], variables: Mapping[str, str] | None = None
) -> list[str]:
    """Return the command that runs a program as a user. `variables` are added to its environment.

    Raises Unobservable if others than root can change the program, if the user is root, and if no new
    session keyring can be made.
    """
    if user.uid == 0:
        raise Unobservable(f"{argv[0]}: it does not run as root. Fix: name another user")
    trusted_path.expect_program(host, argv[0])
    why = keyring.missing()
    if why:
        raise Unobservable(f"{argv[0]}: not run as user {user.uid}, with the keys of root's session: {why}")
    return [
        "setpriv",
        f"--reuid={user.uid}",
        f"--regid={user.gid}",
        _groups(user),
        "--no-new-privs",
        *_against_tracing(host),
        "--",
        *(["env", *(f"{name}={value}" for name, value in sorted(variables.items()))] if variables else []),
        *argv,
    ]


def _groups(user: Account) -> str:
    if user.groups is None:
        return "--init-groups"
    return f"--groups={','.join(map(str, user.groups))}" if user.groups else "--clear-groups"


def _against_tracing(host: Host) -> list[str]:
    """Return what keeps other processes of the user from the command's memory: ptrace(2).

    The kernel lets a process trace another of its user only if it has all of that one's capabilities. Else
    a confined server could put its code into our command. Without this capability (in a container)
    nothing is added: the server has the container's own confinement there.
    """
    found = _PERMITTED.search(host.read("/proc/self/status"))
    if not found or not int(found[1], 16) & _GUARD_BIT:
        return []
    return [f"--inh-caps=+{_GUARD}", f"--ambient-caps=+{_GUARD}"]
