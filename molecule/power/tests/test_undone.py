# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release: the guard tightens and goes, and the monitor's files are what they were, byte by byte."""

from __future__ import annotations

from support.runs import Playbooks
from support.site import FLUSHED, GUARD, LEASE, Site

OURS = f"""
/usr/local/lib/durable-dbhost/guard.pyz /usr/local/lib/durable-dbhost/bin/ups-notify /etc/systemd/system/{GUARD}
{LEASE} /etc/durable-dbhost/notify-command /run/durable-dbhost/guard
""".split()


def test_release_takes_all_of_it_away(loose: Site, playbooks: Playbooks) -> None:
    assert len(loose.sh(f"ls -d {' '.join(OURS)}").splitlines()) == len(OURS)
    cursor = loose.cursor()
    run = playbooks.run("release_db")
    assert run.code == 0
    assert loose.barrier() == "on"
    assert any(FLUSHED in line for line in loose.guard(cursor))
    assert loose.sh(f"ls -d {' '.join(OURS)} 2> /dev/null || true") == ""
    assert loose.sh("ls /var/lib/durable-dbhost/originals-power* 2> /dev/null || true") == ""
    directories = "/usr/local/lib/durable-dbhost /etc/durable-dbhost"
    assert loose.sh(f"ls -d {directories} 2> /dev/null || true") == ""
    loose.sh(
        "cd /root/before; cmp upsmon.conf /etc/nut/upsmon.conf; cmp nut.conf /etc/nut/nut.conf; cmp fstab /etc/fstab"
    )
    assert loose.sh("stat -c '%a %U %G' /etc/nut/upsmon.conf") == "640 root nut"
    assert loose.sh("systemctl is-active nut-monitor") == "active"
    # Nobody takes barriers away any more, however well all is. That upsmon runs nothing at an event any more is how it was.
    loose.ups("OB DISCHRG")
    loose.await_ups("OB")
    loose.ups("OL")
    loose.sh("sleep 15")
    assert loose.barrier() == "on"
