# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a lab machine: bring it to a profile, and die before the n-th change to it.

    python3 -m durable.kill_harness INPUTS.json NOW KILL_BEFORE

The same policy and layers that the playbook runs, in the plan's order, without Ansible. The n-th
call that would change the machine never happens: the process kills itself, as an operator, the
OOM killer or a lost connection would. Prints the number of changes made when it reaches its end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from .facts import storage
from .host import Host
from .layers import io_scheduler, mount_options, write_cache
from .policy.assessment import Inputs, assess
from .policy.plan import STEPS

LAYERS: dict[str, Any] = {
    "mount_options": mount_options,
    "write_cache": write_cache,
    "io_scheduler": io_scheduler,
}


class MortalHost(Host):
    """The machine, until the change before which this process dies."""

    def __init__(self, kill_before: int) -> None:
        self.kill_before = kill_before
        self.made: list[str] = []

    def _mortal(self, name: str, act: Callable[[], None]) -> None:
        if len(self.made) + 1 == self.kill_before:
            print(f"killed before {name}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        act()
        self.made.append(name)

    def change(self, argv: list[str], *more: Any, **options: Any) -> None:
        self._mortal(" ".join(argv), lambda: super(MortalHost, self).change(argv, *more, **options))

    def write_attribute(self, path: str, value: str) -> None:
        self._mortal(f"{value} > {path}", lambda: super(MortalHost, self).write_attribute(path, value))

    def write_file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._mortal(f"write {path}", lambda: super(MortalHost, self).write_file(path, content, mode))

    def remove_file(self, path: str) -> None:
        self._mortal(f"remove {path}", lambda: super(MortalHost, self).remove_file(path))


def main(inputs_path: str, now: str, kill_before: str) -> None:
    """Assess, enforce, assess again."""
    with open(inputs_path, encoding="utf-8") as handle:
        inputs = Inputs(**json.load(handle))
    host = MortalHost(int(kill_before))
    plan = assess(inputs, storage.collect(host, now), now)["plan"]
    for phase, layer in STEPS:
        if layer in plan[phase]:
            targets = [LAYERS[layer].target_of(row) for row in plan[phase][layer]]
            LAYERS[layer].apply(host, LAYERS[layer].plan(host, targets), targets)
    after = assess(inputs, storage.collect(host, now), now)
    print(json.dumps({"made": host.made, "verdict": after["verdict"], "changes": after["changes"]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
