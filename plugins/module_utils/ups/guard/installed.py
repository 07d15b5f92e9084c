# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the guard, as this version writes them, and whether they exist."""

from __future__ import annotations

from ...enforce.our_files import ABSENT, CURRENT, DIFFERS, state_of
from ...host.observation import UNKNOWN
from ...host.our_paths import HOOK, LEASE, PROGRAM, UNIT
from ...host.program import interpreter
from ...host.seam import Host, Unobservable
from .. import hook
from . import lease, program, unit
from .lease import Lease

#: Modes of files, where they are not 0644.
MODES = {LEASE: 0o600, HOOK: hook.MODE}


def files(allowed: Lease) -> dict[str, bytes]:
    """Return {path: content} of all that the guard of a lease needs, in the order in which it is written."""
    return {
        PROGRAM: program.build(),
        HOOK: hook.TEXT.encode("ascii"),
        UNIT: unit.render(allowed, interpreter()).encode("utf-8", "surrogateescape"),
        LEASE: allowed.render().encode("ascii"),
    }


def read(host: Host) -> str:
    """Return whether program, hook and unit of the lease's guard are there, and the unit enabled.

    `current`, `differs` (an older version's too), `absent`, also without a lease, or `unknown`.
    """
    try:
        allowed = lease.read(host)
        if allowed is None:
            return ABSENT
        states = {state_of(host, path, text, MODES) for path, text in files(allowed).items() if path != LEASE}
    except Unobservable:
        return UNKNOWN
    if states == {ABSENT}:
        return ABSENT
    return CURRENT if states == {CURRENT} and host.exists(unit.WANTED_BY) else DIFFERS
