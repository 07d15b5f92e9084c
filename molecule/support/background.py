# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run in a machine while a playbook does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.machine import Machine


@contextmanager
def in_background(machine: Machine, name: str, *argv: str) -> Iterator[None]:
    """Run something in the machine meanwhile."""
    machine.run(["systemd-run", "--quiet", "--collect", f"--unit={name}", *argv])
    try:
        yield
    finally:
        machine.run(["systemctl", "stop", name], check=False)
