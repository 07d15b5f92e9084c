# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on which the rollback timer can be armed."""

from __future__ import annotations

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import UNDO_SERVICE as SERVICE
from ansible_collections.durable.dbhost.plugins.module_utils.host.program import interpreter
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result

from .small_host import SmallHost


class UndoHost(SmallHost):
    """A small host whose service manager has the switch wait, and may have ended its boot in emergency mode."""

    def __init__(self) -> None:
        super().__init__()
        self.files[interpreter()] = ""
        self.emergency = "inactive"
        self.waits = False

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv == ["systemctl", "is-active", "emergency.target"]:
            return Result(0, f"{self.emergency}\n", "")
        return super().run(argv, timeout)

    def _systemctl(self, argv: list[str]) -> None:
        if argv[1] in ("restart", "stop") and argv[2] == SERVICE:
            self.waits = argv[1] == "restart"
        elif argv[1:] == ["--no-block", "default"]:
            self.emergency = "inactive"
        else:
            super()._systemctl(argv)

    def on_change(self, argv: list[str]) -> None:
        if argv[0] != "install":
            super().on_change(argv)

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        if not self.exists(path):
            self.modes[path] = mode
        super().write_file(path, content, mode, owner)
