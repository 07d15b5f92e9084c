# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A LUN on two paths, an NFS mount and a DRBD device: what is read of them, and that none is green made unsafe.

Target, initiator, multipathd, NFS server and DRBD are the kernel's and Debian's own. The other end of each line is the same
machine, so a cut takes both ends: what becomes of a write when one end alone goes is not shown.
The tests stand in an order, and each leaves `flush` behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support import truth
from support.devices import flushes_of_20_syncs, sh
from support.runs import Executions, Playbooks

from lab.machine import Machine

#: The disks at the other end of each line.
FAR = {"/srv/lun": ["SCSI0001"], "/srv/nfs": ["VIRT0001"], "/srv/drbd": ["SCSI0002", "SCSI0003"]}
LUN = "0x6001405aa00010000000000000000000"
CONFIGURATION = "/etc/multipath.conf"
ENDS = "ipv4:127.0.0.1:7789 ipv4:127.0.0.1:7790"


def check(playbooks: Playbooks, **variables: Any) -> dict[str, Any]:
    """Return the report of a check run."""
    return playbooks.run("harden-db", "--check", variables=variables or None).reports["network"]


def row(report: dict[str, Any], setting: str) -> tuple[str, str]:
    """Return what a setting is now and at the next boot."""
    (found,) = [row for row in report["settings"] if row["setting"] == setting]
    return found["running"], found["persisted"]


def unmet(report: dict[str, Any]) -> set[str]:
    """Return the requirements that are not met."""
    return {need["name"] for need in report["requirements"] if need["state"] == "unmet"}


@contextmanager
def undone(machine: Machine, do: str, undo: str) -> Iterator[None]:
    """Run a script, and another at the end."""
    sh(machine, do)
    try:
        yield
    finally:
        sh(machine, undo)


def test_a_second_run_changes_nothing_in_one_execution(machine: Machine, playbooks: Playbooks) -> None:
    executions = Executions(machine)
    run = playbooks.run("harden-db")
    assert run.code == 0
    assert run.recap["network"]["changed"] == 0
    assert run.reports["network"]["verdict"] == "attested"
    assert executions.count() == 1


@pytest.mark.fact(4)
@pytest.mark.fact(90)
@pytest.mark.parametrize("target", FAR)
def test_a_synchronous_write_is_flushed_at_the_other_end(machine: Machine, target: str) -> None:
    counted = flushes_of_20_syncs(machine, target, FAR[target])
    assert all(count >= 20 for count in counted.values()), counted


@pytest.mark.fact(90)
def test_a_server_that_exports_async_flushes_nothing_and_no_client_sees_it(machine: Machine) -> None:
    """Why an export is attested by whoever has looked at the server."""
    shown = sh(machine, "grep ' /srv/nfs ' /proc/mounts")
    as_async = "sed -i 's/(rw,sync,/(rw,async,/' /etc/exports; exportfs -ra"
    with undone(machine, as_async, "sed -i 's/(rw,async,/(rw,sync,/' /etc/exports; exportfs -ra"):
        counted = flushes_of_20_syncs(machine, "/srv/nfs", FAR["/srv/nfs"])
        assert counted["VIRT0001"] < 20, counted
        assert sh(machine, "grep ' /srv/nfs ' /proc/mounts") == shown


def test_the_cache_of_an_array_is_switched_through_no_path(machine: Machine, playbooks: Playbooks) -> None:
    try:
        report = playbooks.run("harden-db", variables={"durable_profile": "strict"}).reports["network"]
        disks = truth.read(machine)["disks"]
        rules = sh(machine, "cat /etc/udev/rules.d/*durable-dbhost*")
    finally:
        assert playbooks.run("harden-db").code == 0
    # The disk of DRBD is this host's own.
    assert {serial: disks[serial]["cache"] for serial in ("SCSI0001", "SCSI0002")} == {
        "SCSI0001": "on",
        "SCSI0002": "off",
    }
    assert LUN not in rules
    assert any(LUN in why and "which all paths share" in why for why in report["why"])


@pytest.mark.fact(94)
def test_without_queueing_it_is_drift_that_names_the_setting(machine: Machine, playbooks: Playbooks) -> None:
    fail = f"sed -i 's/no_path_retry queue/no_path_retry fail/' {CONFIGURATION}; multipathd reconfigure"
    queue = f"sed -i 's/no_path_retry fail/no_path_retry queue/' {CONFIGURATION}; multipathd reconfigure"
    with undone(machine, fail, queue):
        report = check(playbooks)
        assert report["verdict"] == "drifted"
        assert row(report, "no_path_retry") == ("fail", "fail")
    assert check(playbooks)["verdict"] == "attested"


@pytest.mark.fact(94)
def test_a_number_of_checks_waits_and_then_fails_and_defaults_do_not_count_for_an_array_of_the_table(
    machine: Machine, playbooks: Playbooks
) -> None:
    as_default = f"sed -i 's/^overrides/defaults/' {CONFIGURATION}; multipathd reconfigure"
    back = f"printf 'defaults {{\\n find_multipaths yes\\n}}\\noverrides {{\\n no_path_retry queue\\n}}\\n' > {CONFIGURATION}"
    with undone(machine, as_default, f"{back}; multipathd reconfigure"):
        report = check(playbooks)
        assert row(report, "no_path_retry") == ("queue", "limited")
        assert any("no path has come back within its no_path_retry" in note for note in report["warnings"])


def test_one_path_that_fails_changes_no_verdict(machine: Machine, playbooks: Playbooks) -> None:
    paths = sh(machine, "multipathd show paths raw format '%d %m'").splitlines()
    path = next(line.split()[0] for line in paths if "orphan" not in line)
    state = f"/sys/block/{path}/device/state"
    with undone(machine, f"echo offline > {state}", f"echo running > {state}"):
        assert flushes_of_20_syncs(machine, "/srv/lun", ["SCSI0001"])["SCSI0001"] >= 20
        assert check(playbooks)["verdict"] == "attested"


@pytest.mark.fact(92)
def test_a_replica_that_is_not_waited_for_is_not_green(machine: Machine, playbooks: Playbooks) -> None:
    protocol = f"drbdsetup net-options {ENDS} --protocol="
    with undone(machine, f"{protocol}A", f"{protocol}C"):
        report = check(playbooks)
        assert (report["verdict"], unmet(report)) == ("blocked", {"replica_awaited"})
    assert check(playbooks)["verdict"] == "attested"


@pytest.mark.fact(92)
@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [("protocol C", "protocol A", "blocked"), ("disk {", "disk { md-flushes no;", "at_risk")],
)
def test_what_the_configuration_makes_of_a_replica_counts(
    machine: Machine, playbooks: Playbooks, old: str, new: str, verdict: str
) -> None:
    file = "/etc/drbd.d/global_common.conf"
    with undone(machine, f"sed -i 's/{old}/{new}/' {file}", f"sed -i 's/{new}/{old}/' {file}"):
        report = check(playbooks)
        assert report["verdict"] == verdict
        assert any("once adjusted" in why for why in (*report["why"], *map(str, report["requirements"])))


def test_a_replica_that_stands_in_no_file_is_unknown(machine: Machine, playbooks: Playbooks) -> None:
    with undone(machine, "mv /etc/drbd.d/r0.res /root", "mv /root/r0.res /etc/drbd.d"):
        report = check(playbooks)
        assert report["verdict"] == "unknown"
        assert any("at the next boot (drbdadm adjust) cannot be read" in why for why in report["why"])
    assert check(playbooks)["verdict"] == "attested"


@pytest.mark.fact(93)
def test_a_node_that_is_told_not_to_flush_is_at_risk(machine: Machine, playbooks: Playbooks) -> None:
    """What the file system flushes is flushed all the same, by this version; its documentation does not promise that."""
    option = "drbdsetup disk-options 0 --disk-flushes="
    with undone(machine, f"{option}no", f"{option}yes"):
        assert flushes_of_20_syncs(machine, "/srv/drbd", ["SCSI0002"])["SCSI0002"] >= 20
        report = check(playbooks)
        assert report["verdict"] == "at_risk"
        assert any("disk-flushes no" in why for why in report["why"])


def test_a_node_that_stands_alone_is_unknown(machine: Machine, playbooks: Playbooks) -> None:
    again = f"drbdsetup connect r0 {ENDS}; drbdsetup wait-connect 0 --wfc-timeout=60; drbdsetup wait-sync 0"
    with undone(machine, f"drbdsetup disconnect {ENDS}", again):
        report = check(playbooks)
        assert report["verdict"] == "unknown"
        assert any("disconnected (StandAlone)" in why for why in report["why"])
    assert check(playbooks)["verdict"] == "attested"


@pytest.mark.fact(91)
def test_a_soft_mount_is_drift_now_and_at_the_next_boot(machine: Machine, playbooks: Playbooks) -> None:
    def mounted(old: str, new: str) -> str:
        return f"umount /srv/nfs; sed -i '/nfs4/s/{old}/{new}/' /etc/fstab; systemctl daemon-reload; mount /srv/nfs"

    with undone(machine, mounted("hard", "soft"), mounted("soft", "hard")):
        report = check(playbooks)
        assert report["verdict"] == "drifted"
        assert row(report, "recovery") == ("soft", "soft")
    assert check(playbooks)["verdict"] == "attested"


def test_it_is_the_same_after_a_power_cut(machine: Machine, playbooks: Playbooks) -> None:
    machine.cut()
    machine.boot()
    assert check(playbooks)["verdict"] == "attested"


def test_release_leaves_nothing(machine: Machine, playbooks: Playbooks) -> None:
    assert playbooks.run("release_db").code == 0
    assert sh(machine, "ls /etc/udev/rules.d /etc/systemd/system | grep durable || true") == ""
