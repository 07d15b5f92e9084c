# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real apcupsd with its driver for UPSes that speak through the wires of a serial port alone.

With a UPS that tells neither charge nor runtime nothing is licensed: facts and gate are all that it can show.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.runs import Playbooks
from support.site import Site

HOST = "power"
#: On this cable the mains have failed when the wire RI rises, which QEMU's port without a line never does.
CONFIGURATION = """\
## apcupsd.conf v1.1 ##
UPSNAME lab
UPSCABLE 940-0095B
UPSTYPE dumb
DEVICE /dev/ttyS1
LOCKFILE /var/lock
ONBATTERYDELAY 6
BATTERYLEVEL -1
MINUTES -1
TIMEOUT 0
NETSERVER on
NISIP 127.0.0.1
NISPORT 3551
UPSCLASS standalone
UPSMODE disable
"""
NUT = "nut-monitor nut-server nut-driver@lab"


@pytest.fixture
def apcupsd(site: Site) -> Iterator[Site]:
    """The machine, watched by apcupsd in place of NUT."""
    site.sh(f"systemctl disable --quiet --now {NUT}")
    site.sh(
        "cp -a /etc/apcupsd/apcupsd.conf /root/apcupsd.conf;"
        f"cat > /etc/apcupsd/apcupsd.conf <<'END'\n{CONFIGURATION}END\n"
        "echo ISCONFIGURED=yes > /etc/default/apcupsd; systemctl enable --quiet --now apcupsd"
    )
    try:
        site.until("apcaccess 2> /dev/null | grep -q '^STATUS *: ONLINE'", "apcupsd says ONLINE")
        yield site
    finally:
        site.sh(f"systemctl disable --quiet --now apcupsd; systemctl enable --quiet --now {NUT}")


def test_its_facts_are_read_and_what_it_cannot_tell_blocks(apcupsd: Site, playbooks: Playbooks) -> None:
    run = playbooks.run("harden-db", "--check")
    report = run.reports[HOST]
    power = report["power"]
    assert power["monitor"] == "apcupsd"
    (ups,) = power["upses"]
    assert (ups["status"], ups["stale"], ups["test"]) == (["OL"], "no", "no")
    assert "dumb" in ups["driver"].lower()
    assert (ups["charge"], ups["runtime"]) == (None, None)
    assert (run.code, report["verdict"]) == (2, "blocked")
    states = {condition["name"]: condition["state"] for condition in power["conditions"]}
    assert states["monitor_active"] == states["status_online"] == states["driver_real"] == "met"
    assert states["runtime_durability"] == states["runtime_clean_stop"] == "unknown"
    assert apcupsd.barrier() == "on"
