# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's program as one file."""

from __future__ import annotations

from ...host import program
from . import main as _main

_END = "sys.stdout.flush()\n# A thread that waits for a disk must not keep it.\nos._exit(code)\n"


def build() -> bytes:
    """Return the program. Raises ImportError where the source of a module cannot be had."""
    return program.build(_main.__name__, _END)
