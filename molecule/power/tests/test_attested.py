# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a pinned `ups` to barriers that are off while all is well: in one run, and the guard's own time after it."""

from __future__ import annotations

from typing import Any

import pytest
from support import truth
from support.runs import Executions, Playbooks, Run
from support.site import FLUSHED, GUARD, LEASE, MOUNT, Site

HOST = "power"


def row(run: Run, layer: str, target: str, setting: str) -> dict[str, Any]:
    """Return one row of the report."""
    wanted = (layer, target, setting)
    found = run.reports[HOST]["settings"]
    (one,) = [row for row in found if (row["layer"], row["target"], row["setting"]) == wanted]
    assert isinstance(one, dict)
    return one


def test_one_run_brings_it_to_attested(site: Site, hardened: Run) -> None:
    report = hardened.reports[HOST]
    assert (hardened.code, report["verdict"]) == (0, "attested"), report["why"]
    assert row(hardened, "power_guard", "host", "lease")["verdict"] == "ok"
    barrier = row(hardened, "power_guard", MOUNT, "barrier")
    assert (barrier["wanted_running"], barrier["wanted_persisted"]) == ("off", "on")
    # The guard takes its time after the run.
    assert barrier["verdict"] in ("tightened", "ok")
    states = {need["name"]: need["state"] for need in report["requirements"]}
    claims = ("driver_real", "ups_rehearsed", "plug_pulled", "virtual_host_power")
    assert {states[name] for name in claims} == {"attested"}
    assert states["runtime_clean_stop"] == states["runtime_durability"] == "met"
    assert site.sh(f"systemctl is-active {GUARD}; systemctl is-enabled {GUARD}") == "active\nenabled"
    assert site.sh(f"stat -c '%a %U' {LEASE}") == "600 root"


def test_then_barriers_are_off_now_and_on_at_boot(loose: Site) -> None:
    mount = truth.read(loose.machine)["mounts"][MOUNT]
    assert mount["barrier"] == "off"
    assert not {"nobarrier", "barrier=0"} & set(mount["fstab"].split(","))


@pytest.mark.parametrize("options", [("--check",), ()], ids=["check", "run"])
def test_another_run_changes_nothing_in_one_execution(
    loose: Site, playbooks: Playbooks, options: tuple[str, ...]
) -> None:
    executions = Executions(loose.machine)
    run = playbooks.run("harden-db", *options)
    assert (run.code, run.recap[HOST]["changed"]) == (0, 0)
    assert executions.count() == 1
    assert run.reports[HOST]["verdict"] == "attested"
    barrier = row(run, "power_guard", MOUNT, "barrier")
    assert (barrier["running"], barrier["persisted"], barrier["verdict"]) == ("off", "on", "ok")
    assert (barrier["wanted_running"], barrier["wanted_persisted"]) == ("off", "on")
    assert loose.barrier() == "off"


def test_the_monitor_wakes_the_guard_and_then_whom_it_told_before(loose: Site) -> None:
    text = loose.sh("cat /etc/nut/upsmon.conf")
    assert "NOTIFYCMD /usr/local/lib/durable-dbhost/bin/ups-notify" in text.replace('"', "")
    assert "# The lab's. A comment, to be found again." in text
    assert "HOSTSYNC 10" in text
    assert loose.sh("stat -c '%a %U %G' /etc/nut/upsmon.conf") == "640 root nut"
    # As upsmon runs it, while the power itself is well: a word alone tightens.
    cursor = loose.cursor()
    loose.sh(
        "NOTIFYTYPE=ONBATT runuser -u nut -- /usr/local/lib/durable-dbhost/bin/ups-notify 'said by hand'"
    )
    loose.await_guard(cursor, "monitor says ONBATT")
    loose.await_guard(cursor, FLUSHED)
    chained = [str(line["MESSAGE"]) for line in loose.journal(cursor, "-t", "lab-notify")]
    assert "ONBATT: said by hand" in chained


@pytest.mark.parametrize("what", ["waiting", "on battery"])
def test_as_long_as_it_is_tight_the_host_has_not_drifted(
    loose: Site, playbooks: Playbooks, what: str
) -> None:
    if what == "on battery":
        loose.ups("OB DISCHRG")
    else:
        # Any word from the monitor tightens, and the quiet time begins again.
        words = "while :; do echo ONLINE 1<>/run/durable-dbhost/guard/notify; sleep 2; done"
        loose.machine.run(["systemd-run", "--quiet", "--collect", "--unit=lab-words", "sh", "-c", words])
    try:
        loose.await_barrier("on")
        run = playbooks.run("harden-db", "--check")
        assert loose.barrier() == "on"
    finally:
        loose.machine.run(["systemctl", "stop", "lab-words"], check=False)
    barrier = row(run, "power_guard", MOUNT, "barrier")
    assert (barrier["verdict"], barrier["running"]) == ("tightened", "on")
    assert barrier["why"]
    assert (run.code, run.recap[HOST]["changed"]) == (0, 0)
    assert run.reports[HOST]["verdict"] == "attested"
