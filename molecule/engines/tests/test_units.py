# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on a mount with nofail: without their disk they start on an empty directory, or wait for it once a run was."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.mysqls import Mysql
from support.runs import Playbooks, Run

from lab.machine import Machine

HOST = "engines"
DATA, MOUNT = "/srv/pgdata", "srv-pgdata.mount"
NOFAIL = f"sed -i 's#^\\([^ ]* {DATA} ext4 [^ ]*\\)#\\1,nofail#' /etc/fstab; systemctl daemon-reload"


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout.strip()


def requires(machine: Machine, unit: str) -> set[str]:
    """Return what systemd says that a unit requires."""
    return set(sh(machine, f"systemctl show --property=Requires --value '{unit}'").split())


def units(run: Run) -> dict[str, dict[str, Any]]:
    """Return the rows of layer unit_mounts, by unit."""
    rows = run.reports[HOST]["settings"]
    return {row["target"]: row for row in rows if row["layer"] == "unit_mounts"}


def await_server(machine: Machine) -> None:
    """Wait until PostgreSQL answers again."""
    deadline = time.monotonic() + 90
    while machine.run(["pg_isready", "-q"], check=False).returncode != 0:
        assert time.monotonic() < deadline, "PostgreSQL does not come back"
        time.sleep(1)


@pytest.mark.fact(64)
def test_a_server_on_a_mount_with_nofail_waits_for_it_after_a_run_and_no_more_after_release(
    machine: Machine, playbooks: Playbooks, postgresql: str, mysql: Mysql
) -> None:
    other = f"{mysql.product}.service"
    main, second = (f"postgresql@{postgresql}-{cluster}.service" for cluster in ("main", "second"))
    drop_in = f"/etc/systemd/system/{main}.d/durable-dbhost-mounts.conf"
    assert units(playbooks.run("harden-db", "--check")) == {}
    sh(machine, NOFAIL)
    pid = sh(machine, f"systemctl show --property=MainPID --value '{main}'")

    drifting = playbooks.run("harden-db", "--check")
    assert drifting.code == 2
    assert {main, second, other} == set(units(drifting))
    assert {row["verdict"] for row in units(drifting).values()} == {"drift_persisted"}
    assert MOUNT not in requires(machine, main)
    assert drop_in in drifting.reports[HOST]["files"]

    mended = playbooks.run("harden-db")
    assert mended.code == 0
    assert {row["verdict"] for row in units(mended).values()} == {"ok"}
    assert MOUNT in requires(machine, main) & requires(machine, second) & requires(machine, other)
    assert sh(machine, f"systemctl show --property=MainPID --value '{main}'") == pid

    machine.reboot()
    await_server(machine)
    again = playbooks.run("harden-db")
    assert (again.code, again.recap[HOST]["changed"]) == (0, 0)
    # Its disk is away: it does not start on the empty directory below.
    sh(machine, f"systemctl stop 'postgresql@*' {other}; umount {DATA}; systemctl mask --runtime {MOUNT}")
    assert machine.run(["systemctl", "start", main], check=False).returncode != 0
    sh(
        machine,
        f"systemctl unmask --runtime {MOUNT}; systemctl start {main} {second} {other}; mountpoint {DATA}",
    )

    released = playbooks.run("release_db")
    assert released.code == 0
    assert machine.run(["test", "-e", drop_in], check=False).returncode != 0
    assert MOUNT not in requires(machine, main)


@pytest.mark.parametrize("name", ["two words", "100%n", '"quoted"', "it's", "back\\slash", "ä"])
def test_systemd_takes_odd_paths_as_they_are_written(machine: Machine, name: str) -> None:
    """As in tests/unit/plugins/module_utils/engines/test_unit_mounts.py."""
    path = f"/srv/{name}"
    letters = {"\\": "\\\\", '"': '\\"', "%": "%%"}
    written = "".join(letters.get(letter, letter) for letter in path)
    script = """
        install -d "$1"
        escaped=$(printf '%s' "$1" | sed 's/\\\\/\\\\134/g; s/ /\\\\040/g')
        printf '%s %s none bind,nofail 0 0\\n' /srv/fbdata "$escaped" >> /etc/fstab
        printf '[Unit]\\nRequiresMountsFor="%s"\\n[Service]\\nExecStart=/bin/true\\n' "$2" > /etc/systemd/system/odd.service
        systemctl daemon-reload
        systemctl show --property=Requires --value odd.service
        systemd-escape --path --suffix=mount "$1"
        sed -i '$d' /etc/fstab
        rm /etc/systemd/system/odd.service
        systemctl daemon-reload
    """
    required, unit = machine.run(["sh", "-euc", script, "sh", path, written]).stdout.splitlines()
    # systemctl prints names with a backslash in quotes.
    assert unit in required.replace('"', "").replace("\\\\", "\\").split()
