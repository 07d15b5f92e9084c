# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A login of gfix at a server by Srp only, so that a process that listens in its place learns no password.

Any user can listen at port 3050 while the server does not, so no check of the listener is enough. With Srp, the server
proves that it has the verifier of the password. With Legacy_Auth, which gfix uses if a server requests it or speaks an
old protocol, gfix sends a hash of the password that is the same for all users and hosts. Only the client's firebird.conf
turns that off, in the directory that the variable FIREBIRD names. Tried with gfix 3.0.11 and 4.0.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...host import our_paths, trusted_path
from ...host.seam import ChangeFailed, Host, Unobservable

_CONF = f"{our_paths.FIREBIRD_CLIENT}/firebird.conf"
_SRP_ALONE = b"AuthClient = Srp256, Srp\n"
_PROGRAM = b"\x7fELF"
_VERSION = re.compile(r"\b[A-Z]{2}-[A-Z](\d{1,3})\.\d")
#: The first version that reads AuthClient. Those before know Legacy_Auth alone.
_FIRST = 3


def program(host: Host, paths: Sequence[str], as_stranger: Callable[[list[str]], list[str]]) -> str:
    """Return the first gfix that exists. `as_stranger` makes the command that runs it. Raises ChangeFailed unless it obeys
    `srp_alone`: root alone may change it, it is a program and no script, and of Firebird 3 or later.

    Debian's /usr/bin/gfix can be a script that sets FIREBIRD to another directory.
    """
    try:
        path = trusted_path.choose(host, paths)
        start = host.read_part(path, limit=len(_PROGRAM))
        if start is None or start.content != _PROGRAM:
            raise Unobservable(f"{path} is a script, which can choose another firebird.conf")
        result = host.run(as_stranger([path, "-z"]))
    except Unobservable as error:
        raise ChangeFailed(
            f"gfix for a login by Srp: {error}. Fix: install Firebird's gfix at {paths[-1]}, changeable by root alone"
        ) from error
    version = _VERSION.search(result.stdout + result.stderr)
    if version is None or int(version[1]) < _FIRST:
        found = version[0] if version else "unknown"
        raise ChangeFailed(
            f"{path} -z: the version is {found}, which cannot be limited to Srp. Fix: use gfix of Firebird 3 or later"
        )
    return path


@contextmanager
def srp_alone(host: Host) -> Iterator[dict[str, str]]:
    """Yield the variables with which gfix logs in by Srp alone. Raises ChangeFailed."""
    host.write_file(_CONF, _SRP_ALONE)
    try:
        yield {"FIREBIRD": our_paths.FIREBIRD_CLIENT}
    finally:
        host.remove_file(_CONF)
