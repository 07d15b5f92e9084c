# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory and settings of one machine."""

from __future__ import annotations

import subprocess
from typing import Protocol

from lab.paths import Lab, MachineFiles
from lab.record import Record


class Guest(Protocol):
    """A machine, as far as those who start, stop and change it have to know it."""

    name: str
    lab: Lab
    files: MachineFiles

    def record(self) -> Record:
        """Return what the machine was made from."""

    def run(
        self, argv: list[str], *, check: bool = True, input: str | None = None, timeout: float | None = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root."""
