# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release takes away what is ours, and puts the originals back."""

from __future__ import annotations

from support.runs import Playbooks

from lab.machine import Machine

RULES = "/etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules"
ORIGINALS = "/var/lib/durable-dbhost/originals.json"


def test_release_restores_fstab_but_for_what_others_wrote_since(
    machine: Machine, playbooks: Playbooks
) -> None:
    machine.run(["sed", "-i", "s|/srv/maria ext4 defaults|&,nosuid|", "/etc/fstab"])
    assert "# durable.dbhost" in machine.run(["cat", "/etc/fstab"]).stdout

    check = playbooks.run("release_db", "--check")
    assert check.recap["dbhost"]["changed"] == 1
    assert "# durable.dbhost" in machine.run(["cat", "/etc/fstab"]).stdout

    run = playbooks.run("release_db")
    assert (run.code, run.recap["dbhost"]["changed"]) == (0, 1)
    lines = machine.run(["cat", "/etc/fstab"]).stdout.splitlines()
    options = {line.split()[1]: line.split()[3] for line in lines if line.startswith("UUID=")}
    assert options == {
        "/": "errors=remount-ro",
        "/srv/pgdata": "defaults",
        "/srv/fbdata": "defaults",
        "/srv/mssql": "defaults",
        "/srv/maria": "defaults,nosuid",
        "/srv/faircom": "defaults",
    }
    assert not any("durable" in line for line in lines)
    assert machine.run(["test", "-e", RULES], check=False).returncode == 1
    assert machine.run(["test", "-e", ORIGINALS], check=False).returncode == 1

    again = playbooks.run("release_db")
    assert (again.code, again.recap["dbhost"]["changed"]) == (0, 0)
