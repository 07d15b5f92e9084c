# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that the controller loses, and the rollback timer that puts the machine back."""

from __future__ import annotations

import time
from typing import Any

from lab.machine import Machine
from support.devices import sh
from support.runs import Playbooks, before_call

LIMIT = 60
#: All that a run can change: caches on, barriers off, here and at the next boot.
LOOSE: dict[str, Any] = {
    "durable_profile": "disposable",
    "durable_accept_data_loss": True,
    "durable_undo_after": LIMIT,
}
#: Seconds until the host has gone back, the slowness of a busy lab and a boot included.
PATIENCE = LIMIT + 120
_UNIT = "/etc/systemd/system/durable-dbhost-undo.service"
#: It has said so before it is gone itself, and after that a boot that it lets go on still settles.
_IS_DONE = (
    f"test -e /etc/durable-dbhost/undo/fired.json -a ! -e {_UNIT}"
    " && systemctl --quiet is-active local-fs.target multi-user.target"
    " && test -z \"$(systemctl list-units --all --no-legend '*dbhost-undo*')\" && echo yes"
)


def await_fired(machine: Machine) -> None:
    """Return when the machine answers again and has gone back."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if sh(machine, f"{_IS_DONE} || true").strip() == "yes":
                return
        except Exception:  # It does not answer yet.
            pass
        time.sleep(3)
    raise AssertionError(f"it has not gone back within {PATIENCE} s")


def lose(machine: Machine, playbooks: Playbooks, command: str) -> None:
    """Run to a looser profile, and run a command in place of the look after the changes; the controller sees nothing more."""
    before_call(playbooks, machine.name, 3, f"({command}) >&2; kill -KILL $PPID; exit 255")
    run = playbooks.run("harden-db", variables=LOOSE)
    assert run.code != 0
