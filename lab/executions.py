# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many modules Ansible starts on a machine."""

from __future__ import annotations

from lab.machine import Machine


class Executions:
    """Counts module executions on a machine, from its own journal, from now on."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cursor = self._journal("--lines=0", "--show-cursor")[-1].partition(": ")[2]

    def count(self) -> int:
        """Return how many modules Ansible has started there since."""
        lines = self._journal(f"--after-cursor={self.cursor}", "--output=cat")
        return sum(line.startswith("Invoked") for line in lines)

    def _journal(self, *options: str) -> list[str]:
        self.machine.run(["journalctl", "--sync"])
        return self.machine.run(["journalctl", "--no-pager", *options]).stdout.splitlines()
