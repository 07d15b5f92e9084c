# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only a bus can answer: caches of real device models that are switched, come back, and are gone and plugged in.

The machine cannot be frozen, so the tests stand in an order, and each leaves strict behind.
"""

from __future__ import annotations

import sys

import pytest
from support import truth
from support.devices import after_reset, flushes_by_name, flushes_of_20_syncs, id_of, names, sh
from support.runs import ROOT, Executions, Playbooks, before_call
from support.whole import whole_only

from lab.machine import Machine

#: Mount point -> the disk below it.
TARGETS = {
    "/srv/pgdata": "SATA0001",
    "/srv/fbdata": "SATA0002",
    "/srv/scsi": "SCSI0001",
    "/srv/mssql": "NVME0001",
    "/srv/nvme": "NVME0002",
    "/srv/maria": "VIRT0001",
}
#: What the kernel takes each cache for while it is off. A reset may turn all but the virtio disk's on again.
CACHE_MODES = {
    serial: "write through" if serial.startswith("VIRT") else "write back" for serial in TARGETS.values()
}
#: Barriers off by a default in the superblock, which /proc/mounts does not show, over a cache that is on; and an NVMe
#: disk's cache on. Once udev has nothing more to say of these disks: its rules would mend them.
PLANT = """
sata=$(readlink -f /dev/disk/by-id/ata-QEMU_HARDDISK_SATA0002)
umount /srv/fbdata
tune2fs -o nobarrier "$sata" > /dev/null
mount /srv/fbdata
udevadm settle
hdparm -q -W1 "$sata"
nvme set-feature /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_NVME0002 --namespace-id=0xffffffff --feature-id=6 --value=1
"""
#: A cache that is on, and a kernel that was told not to flush it. It looks at the disk again when hdparm has switched it,
#: and takes its own view then: that must be over.
NOT_FLUSHED = """
disk=$(basename "$(readlink -f /dev/disk/by-id/ata-QEMU_HARDDISK_SATA0001)")
hdparm -q -W1 /dev/$disk
sleep 3
echo write through > /sys/block/$disk/queue/write_cache
"""
#: What a look must leave as it is: the caches in the devices' own words, and what the kernel takes them for.
MANIFEST = """
for disk in /dev/sd?; do hdparm -W $disk; sdparm -q -r --get WCE $disk || true; done
for disk in /dev/nvme?n1; do nvme get-feature $disk -f 6; done
grep -r . /sys/block/*/queue/write_cache /sys/class/scsi_disk/*/cache_type /sys/block/vd*/cache_type
cat /proc/mounts /etc/fstab /etc/udev/rules.d/*
"""
#: An NVMe namespace over TCP with two paths, both ends here, mounted: the names of its head and of its hidden paths.
FABRIC = """
exec 3>&1 >/dev/null
modprobe -a nvmet nvmet-tcp nvme-tcp
truncate -s 64M /var/tmp/namespace.img
cd /sys/kernel/config/nvmet
mkdir -p subsystems/lab/namespaces/1 ports/1 ports/2
echo 1 > subsystems/lab/attr_allow_any_host
echo -n /var/tmp/namespace.img > subsystems/lab/namespaces/1/device_path
echo 1 > subsystems/lab/namespaces/1/enable
for port in 1 2; do
    echo tcp > ports/$port/addr_trtype
    echo ipv4 > ports/$port/addr_adrfam
    echo 127.0.0.$port > ports/$port/addr_traddr
    echo 4420 > ports/$port/addr_trsvcid
    ln -s /sys/kernel/config/nvmet/subsystems/lab ports/$port/subsystems/lab
    nvme connect -t tcp -a 127.0.0.$port -s 4420 -n lab
done
udevadm settle
for path in /sys/block/nvme*c*n1; do paths="${paths:-} ${path##*/}"; done
head=$(echo "$paths" | sed -E 's/^ (nvme[0-9]+)c.*/\\1n1/')
mkfs.ext4 -q /dev/$head
mkdir -p /srv/fabric
mount /dev/$head /srv/fabric
echo $head $paths >&3
"""


def states(machine: Machine) -> dict[str, tuple[str, str]]:
    """Return {serial: (cache by the device, cache by the kernel)}."""
    disks = truth.read(machine)["disks"]
    return {serial: (disk["cache"], disk["cache_mode"]) for serial, disk in disks.items()}


STRICT = {serial: ("off", cache_mode) for serial, cache_mode in CACHE_MODES.items()}


def test_each_disk_says_that_its_cache_is_off_and_all_but_virtio_are_flushed_all_the_same(
    machine: Machine,
) -> None:
    assert states(machine) == STRICT
    assert all(disk["rule"] for disk in truth.read(machine)["disks"].values())


@pytest.mark.fact(16)
@pytest.mark.parametrize("target", TARGETS)
def test_a_synchronous_write_is_flushed_on_its_disk(machine: Machine, target: str) -> None:
    serial = TARGETS[target]
    counted = flushes_of_20_syncs(machine, target, [serial])
    if CACHE_MODES[serial] == "write back":
        assert counted[serial] >= 20
    else:
        assert counted == {serial: 0}


@pytest.mark.fact(21)
def test_after_a_bus_reset_no_commit_depends_on_the_cache_that_came_back_on(machine: Machine) -> None:
    seen = after_reset(machine, "SCSI0001", "/srv/scsi")
    assert (seen["before"]["cache"], seen["before"]["cache_mode"]) == ("on", "write back")
    assert int(seen["before"]["flushes"]) >= 20
    # And the rule has turned it off again, without a run.
    assert seen["after"] == {"cache": "off", "cache_mode": "write back"}


@pytest.mark.fact(20)
@pytest.mark.fact(22)
def test_after_sleep_the_caches_are_off_again(machine: Machine) -> None:
    known = names(machine)
    # QEMU's disks keep their settings over sleep, so what a real one does is done by hand.
    sh(
        machine,
        f"hdparm -q -W1 /dev/{known['SATA0001']}; nvme set-feature /dev/{known['NVME0001']}"
        " --namespace-id=0xffffffff --feature-id=6 --value=1",
    )
    seen = states(machine)
    # The kernel's view of an NVMe cache does not follow the feature, on or off.
    assert (seen["SATA0001"][0], seen["NVME0001"]) == ("on", ("on", "write back"))
    # The unit that each sleep target starts when the machine wakes.
    wanted = sh(machine, "systemctl show -P Wants suspend.target hibernate.target")
    assert wanted.count("durable-dbhost-resume.service") == 2
    machine.sleep_and_wake()
    said = "journalctl --quiet --boot --unit durable-dbhost-resume.service"
    sh(machine, f"until {said} | grep -q Finished; do sleep 1; done; udevadm settle")
    assert states(machine) == STRICT


@pytest.mark.fact(18)
def test_drift_is_named_and_mended_and_a_look_leaves_the_caches_alone(
    machine: Machine, playbooks: Playbooks
) -> None:
    sh(machine, PLANT)
    before = sh(machine, MANIFEST)
    check = playbooks.run("harden-db", "--check")
    assert sh(machine, MANIFEST) == before
    # /srv/fbdata lies bare over a cache that is on.
    assert (check.code, check.reports["buses"]["verdict"]) == (2, "at_risk")
    wrong = {key: verdict for key, verdict in check.settings("buses").items() if verdict != "ok"}
    assert wrong == {
        ("/srv/fbdata", "barrier"): "drift_running",
        (id_of(machine, "SATA0002"), "write_cache"): "drift_running",
        (id_of(machine, "NVME0002"), "write_cache"): "drift_running",
    }
    run = playbooks.run("harden-db")
    assert (run.code, run.reports["buses"]["verdict"]) == (0, "attested")
    assert run.recap["buses"]["changed"] == check.recap["buses"]["changed"] > 0
    assert states(machine) == STRICT
    assert truth.weaknesses(truth.read(machine), {"/srv/fbdata": "SATA0002"}) == set()


@whole_only("scenario default has a disk of that sort too; of all sorts: make scenario NAME=buses")
def test_a_kernel_that_was_told_not_to_flush_is_at_risk_and_its_cache_goes_off(
    machine: Machine, playbooks: Playbooks
) -> None:
    sh(machine, NOT_FLUSHED)
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["buses"]["verdict"]) == (2, "at_risk")
    run = playbooks.run("harden-db")
    # Also where the driver does not raise what was forced (from 6.11): the file that was misused does.
    assert run.code == 0
    assert states(machine)["SATA0001"] == ("off", "write back")


def test_the_profile_outlives_a_power_cycle_and_the_next_run_changes_nothing(
    machine: Machine, playbooks: Playbooks
) -> None:
    before = truth.read(machine)["boot_id"]
    machine.reset()
    # Each of these disks comes up with its cache on, and its rule turns it off.
    assert truth.read(machine)["boot_id"] != before
    assert states(machine) == STRICT
    executions = Executions(machine)
    run = playbooks.run("harden-db")
    assert (run.code, run.recap["buses"]["changed"]) == (0, 0)
    assert run.reports["buses"]["verdict"] == "attested"
    assert set(run.settings("buses").values()) == {"ok"}
    assert executions.count() == 1


@pytest.mark.fact(48)
@pytest.mark.parametrize("target", ["/srv/scsi", "/srv/nvme", "/srv/maria"])
def test_a_disk_that_is_plugged_in_again_comes_to_the_profile_without_a_run(
    machine: Machine, target: str
) -> None:
    serial = TARGETS[target]
    sh(machine, f"umount {target}")
    machine.unplug(serial)
    machine.plug(serial)
    sh(machine, f"udevadm settle; mountpoint -q {target} || mount {target}")
    assert states(machine) == STRICT


@pytest.mark.fact(48)
@whole_only("scenario faults has disks that vanish too; one of SATA: make scenario NAME=buses")
def test_a_sata_disk_that_vanishes_mid_run_is_named_and_comes_back_to_the_profile(
    machine: Machine, playbooks: Playbooks
) -> None:
    # Two caches to switch off; the first disk leaves once the facts have been taken.
    switch_on = (
        "for name in SATA0001 SATA0002; do hdparm -q -W1 $(readlink -f /dev/disk/by-id/ata-*_$name); done"
    )
    sh(machine, switch_on)
    gone = id_of(machine, "SATA0001")
    lab = f"cd {ROOT} && {sys.executable} -m lab unplug {machine.name} SATA0001"
    before_call(playbooks, "buses", 2, f"({lab}) >&2")
    run = playbooks.run("harden-db")
    assert run.code == 2
    assert f"{gone}: no disk of that id is there" in run.details
    assert run.reports["buses"]["verdict"] not in ("durable", "attested", "unverified")
    # The others of its step are made safer.
    assert states(machine)["SATA0002"][0] == "off"
    # Its mount has lost its device; systemd may have taken it away by itself.
    sh(machine, "umount --lazy /srv/pgdata || ! mountpoint -q /srv/pgdata")
    machine.plug("SATA0001")
    sh(machine, "udevadm settle; mountpoint -q /srv/pgdata || mount /srv/pgdata")
    assert states(machine)["SATA0001"] == STRICT["SATA0001"]


@pytest.mark.fact(56)
def test_a_volume_on_two_nvme_paths_is_flushed_on_a_path_and_its_cache_is_left_to_its_array(
    machine: Machine, playbooks: Playbooks
) -> None:
    head, *paths = sh(machine, FABRIC).split()
    try:
        counted = flushes_by_name(machine, "/srv/fabric", [head, *paths])
        assert counted[head] == 0 and sum(counted[path] for path in paths) >= 20, counted
        named = f"nvme:{sh(machine, f'cat /sys/block/{head}/wwid').strip()}"
        variables = {"durable_mounts": ["/srv/fabric"], "durable_profile": "strict"}
        report = playbooks.run("harden-db", "--check", variables=variables).reports["buses"]
        (row,) = [
            row for row in report["settings"] if (row["target"], row["setting"]) == (named, "write_cache")
        ]
        assert (row["running"], row["verdict"]) == ("enabled", "drift_running")
        assert "on the array" in row["remedy"]
        assert not [change for change in report["changes"] if change["target"] == named]
    finally:
        sh(machine, "umount /srv/fabric; nvme disconnect -n lab")


def test_release_takes_everything_away(machine: Machine, playbooks: Playbooks) -> None:
    assert playbooks.run("release_db").code == 0
    assert "durable" not in sh(machine, "ls /etc/udev/rules.d")
    assert machine.run(["systemctl", "cat", "durable-dbhost-resume.service"], check=False).returncode != 0
    assert "durable.dbhost" not in sh(machine, "cat /etc/fstab")
