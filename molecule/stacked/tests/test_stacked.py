# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases on LVM, md and dm-crypt: no layer is passed over, and each disk below is brought to strict.

The machine cannot be snapshotted, so the tests stand in an order, each leaves strict behind.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import truth
from support.runs import Executions, Playbooks

from lab.machine import Machine

#: Mount point -> the disks below it, as lab/layouts/stacked.sh laid them out.
LEAVES = {
    "/srv/pgdata": {"SATA0001", "SCSI0001"},
    "/srv/mssql": {"SATA0002", "NVME0001"},
    "/srv/maria": {"SCSI0002", "NVME0002"},
    "/srv/ppl": {"SATA0002", "SCSI0002", "NVME0002"},
    "/srv/nohole": {"SATA0001", "SCSI0001", "SCSI0002", "NVME0002"},
    "/srv/thin": {"SATA0001", "SCSI0001"},
    "/srv/hole": {"SATA0001", "SCSI0001", "NVME0001"},
}
SERIALS = ["SATA0001", "SATA0002", "SCSI0001", "SCSI0002", "NVME0001", "NVME0002"]
#: Writes and syncs 20 times on a file, and tells how often each disk was flushed meanwhile.
WRITER = r"""
import json, os, sys, time
path, disks = sys.argv[1], sys.argv[2:]
def flushes(disk):
    return int(open("/sys/block/%s/stat" % disk).read().split()[15])
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"0" * 81920)
os.fsync(fd)
def settled():
    # A partial parity log flushes its disks after it has acknowledged.
    seen = None
    while seen != (seen := {disk: flushes(disk) for disk in disks}):
        time.sleep(1)
    return seen
before = settled()
for number in range(20):
    os.pwrite(fd, b"x" * 4096, number * 4096)
    os.fdatasync(fd)
after = settled()
print(json.dumps({disk: after[disk] - before[disk] for disk in disks}))
"""
#: An array of three members whose flushes take 0.5 s; how long three fdatasyncs take, each after a write.
SLOW_FLUSHES = r"""
exec 3>&1 >/dev/null
mkdir -p /run/slow
for number in 0 1 2; do
    truncate -s 96M /run/slow/$number
    loop=$(losetup -f --show /run/slow/$number)
    echo "0 196608 delay $loop 0 0 $loop 0 0 $loop 0 500" | dmsetup create slow$number
done
mdadm --quiet --create /dev/md/slow --run --assume-clean --homehost=any --level=5 --raid-devices=3 \
    --consistency-policy=POLICY /dev/mapper/slow0 /dev/mapper/slow1 /dev/mapper/slow2
udevadm settle
# Else its superblock is written, and flushed, before the first write after each pause.
echo 100 > /sys/block/$(basename "$(readlink -f /dev/md/slow)")/md/safe_mode_delay
python3 - <<END >&3
import os, time
fd = os.open("/dev/md/slow", os.O_RDWR)
for number in range(4):
    os.pwrite(fd, b"x" * 4096, number * 4096)
    begun = time.monotonic()
    os.fdatasync(fd)
    if number:
        print(time.monotonic() - begun)
    time.sleep(2)
END
mdadm --quiet --stop /dev/md/slow
for number in 0 1 2; do dmsetup remove slow$number; done
losetup -D
rm -r /run/slow
"""


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout


def names(machine: Machine) -> dict[str, str]:
    """Return {serial: kernel name} as they are now."""
    return {serial: disk["name"] for serial, disk in truth.read(machine)["disks"].items()}


def flushes_of_20_syncs(machine: Machine, target: str) -> dict[str, int]:
    """Return {serial: flushes} for 20 synchronous writes on a mount."""
    found = {serial: name for serial, name in names(machine).items() if serial in LEAVES[target]}
    argv = ["python3", "-", f"{target}/counted", *found.values()]
    counted = json.loads(machine.run(argv, input=WRITER).stdout)
    return {serial: counted[name] for serial, name in found.items()}


def facts(playbooks: Playbooks, *options: str, **variables: Any) -> dict[str, Any]:
    """Return the report of a check run."""
    run = playbooks.run("harden-db", "--check", *options, variables=variables or None)
    return run.reports["stacked"]


def test_every_disk_says_that_its_cache_is_off_and_is_believed_to_cache(machine: Machine) -> None:
    disks = truth.read(machine)["disks"]
    assert {serial: disks[serial]["cache"] for serial in SERIALS} == dict.fromkeys(SERIALS, "off")
    # A reset may turn any of them on again, so the kernel goes on flushing.
    assert {serial: disks[serial]["belief"] for serial in SERIALS} == dict.fromkeys(SERIALS, "write back")
    assert all(disks[serial]["rule"] for serial in SERIALS)


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["run", "check"])
def test_a_second_run_changes_nothing_in_at_most_four_executions(
    machine: Machine, playbooks: Playbooks, options: tuple[str, ...]
) -> None:
    executions = Executions(machine)
    run = playbooks.run("harden-db", *options)
    assert run.code == 0
    assert run.recap["stacked"]["changed"] == 0
    assert run.reports["stacked"]["verdict"] == "attested"
    assert 1 <= executions.count() <= 4


@pytest.mark.fact(16)
@pytest.mark.parametrize("target", sorted(set(LEAVES) - {"/srv/thin", "/srv/hole"}))
def test_a_synchronous_write_is_flushed_on_each_disk_below(machine: Machine, target: str) -> None:
    counted = flushes_of_20_syncs(machine, target)
    flushed = {serial for serial, count in counted.items() if count >= 20}
    if target == "/srv/ppl":
        assert len(flushed) >= 2, counted  # RAID 5 writes data and parity, not to its third disk
    elif target == "/srv/nohole":
        assert "NVME0002" in flushed, counted  # the journal; its members follow when it is emptied
    else:
        assert flushed == LEAVES[target], counted


@pytest.mark.fact(47)
@pytest.mark.parametrize(("policy", "waits"), [("ppl", False), ("resync", True)])
def test_a_partial_parity_log_does_not_wait_for_its_disks(machine: Machine, policy: str, waits: bool) -> None:
    """The kernel, not our code: each member takes 0.5 s for a flush, and that is not waited for."""
    took = [float(line) for line in sh(machine, SLOW_FLUSHES.replace("POLICY", policy)).split()]
    assert len(took) == 3
    assert all((seconds >= 0.5) == waits for seconds in took), took


@pytest.mark.fact(47)
def test_a_layer_that_is_not_understood_is_named(playbooks: Playbooks) -> None:
    report = facts(playbooks, durable_mounts=["/srv/thin"])
    assert report["verdict"] == "unknown"
    assert any("thin" in why and "/srv/thin" in why for why in report["why"])


@pytest.mark.fact(47)
def test_the_write_hole_is_a_requirement(playbooks: Playbooks) -> None:
    report = facts(playbooks, durable_mounts=["/srv/hole", "/srv/ppl", "/srv/nohole"])
    assert report["verdict"] == "blocked"
    unmet = {need["target"] for need in report["requirements"] if need["state"] == "unmet"}
    assert unmet == {"/srv/hole"}


@pytest.mark.fact(21)
@pytest.mark.parametrize("serial", ["SCSI0001", "SCSI0002"])
def test_after_a_bus_reset_no_commit_depends_on_the_cache_that_came_back_on(
    machine: Machine, serial: str
) -> None:
    name = names(machine)[serial]
    target = "/srv/pgdata" if serial == "SCSI0001" else "/srv/maria"
    generic = sh(machine, f"ls /sys/block/{name}/device/scsi_generic").strip()
    # QEMU's disk keeps its setting over a reset, so what a real one does is done by hand, and udev
    # waits, so that the moment in between can be looked at.
    sh(machine, f"udevadm control --stop-exec-queue; sdparm -q --set WCE=1 /dev/{generic}")
    try:
        sh(
            machine,
            f"sg_reset -d /dev/{generic}; dd if=/dev/{name} of=/dev/null bs=4k count=1 iflag=direct 2>&1",
        )
        disk = truth.read(machine)["disks"][serial]
        assert (disk["cache"], disk["belief"]) == ("on", "write back")
        assert flushes_of_20_syncs(machine, target)[serial] >= 20
    finally:
        sh(machine, "udevadm control --start-exec-queue; udevadm settle")
    # And the rule has turned it off again, without a run.
    disk = truth.read(machine)["disks"][serial]
    assert (disk["cache"], disk["belief"]) == ("off", "write back")


@pytest.mark.fact(20)
def test_after_sleep_the_caches_are_off_again(machine: Machine) -> None:
    known = names(machine)
    # QEMU's disks keep their settings over sleep, so what a real one does is done by hand.
    sh(
        machine,
        f"hdparm -q -W1 /dev/{known['SATA0001']}; nvme set-feature /dev/{known['NVME0001']}"
        " --namespace-id=0xffffffff --feature-id=6 --value=1",
    )
    disks = truth.read(machine)["disks"]
    assert (disks["SATA0001"]["cache"], disks["NVME0001"]["cache"]) == ("on", "on")
    # The unit that each sleep target starts when the machine wakes.
    wanted = sh(machine, "systemctl show -P Wants suspend.target hibernate.target")
    assert wanted.count("durable-dbhost-resume.service") == 2
    machine.sleep_and_wake()
    said = "journalctl --quiet --boot --unit durable-dbhost-resume.service"
    sh(machine, f"until {said} | grep -q Finished; do sleep 1; done; udevadm settle")
    disks = truth.read(machine)["disks"]
    assert (disks["SATA0001"]["cache"], disks["NVME0001"]["cache"]) == ("off", "off")


@pytest.mark.fact(22)
def test_nvme_belief_does_not_follow_the_feature(machine: Machine) -> None:
    disk = truth.read(machine)["disks"]["NVME0001"]
    assert (disk["cache"], disk["belief"]) == ("off", "write back")


def test_a_layer_made_when_nothing_cached_passes_no_flush_on_and_is_found(
    machine: Machine, playbooks: Playbooks
) -> None:
    name = names(machine)["NVME0001"]
    # A device-mapper device keeps what it believed when its table was loaded.
    sh(
        machine,
        f"echo write through > /sys/block/{name}/queue/write_cache;"
        f"dmsetup create deaf --table '0 8192 linear /dev/{name}p3 0';"
        f"echo write back > /sys/block/{name}/queue/write_cache;"
        "mkfs.ext4 -q -F /dev/mapper/deaf; mkdir -p /srv/deaf; mount /dev/mapper/deaf /srv/deaf",
    )
    try:
        LEAVES["/srv/deaf"] = {"NVME0001"}
        assert flushes_of_20_syncs(machine, "/srv/deaf") == {"NVME0001": 0}
        report = facts(playbooks, durable_mounts=["/srv/deaf"])
        rows = [row for row in report["settings"] if row["setting"] == "layer_belief"]
        assert [row["verdict"] for row in rows] == ["pending"]
        sh(machine, f"nvme set-feature /dev/{name} --namespace-id=0xffffffff --feature-id=6 --value=1")
        report = facts(playbooks, durable_mounts=["/srv/deaf"])
        assert report["verdict"] == "at_risk"
        assert any("passes no flush on" in why for why in report["why"])
    finally:
        del LEAVES["/srv/deaf"]
        sh(
            machine,
            "umount /srv/deaf; dmsetup remove deaf;"
            f"nvme set-feature /dev/{name} --namespace-id=0xffffffff --feature-id=6 --value=0",
        )


def test_the_stack_and_the_profile_outlive_a_power_cycle(machine: Machine, playbooks: Playbooks) -> None:
    before = truth.read(machine)["boot_id"]
    machine.reset()
    assert truth.read(machine)["boot_id"] != before
    disks = truth.read(machine)["disks"]
    assert {disk["cache"] for disk in disks.values()} == {"off"}
    assert {disk["belief"] for disk in disks.values()} == {"write back"}
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["stacked"]["verdict"]) == (0, "attested")


#: A profile of its own, because the shipped ones leave a virtual machine's queues alone.
QUEUES = {
    "durable_profile": "queues",
    "durable_profiles": {
        "queues": {
            "summary": "strict, with queues in order",
            "write_cache": "disabled",
            "barrier": "on",
            "data_mode": "ordered",
            "atime": "noatime",
            "rests_on": "device",
            "scheduler_virtual": "mq-deadline",
            "readahead": 2048,
        }
    },
}


@pytest.mark.fact(25)
class TestScheduling:
    def test_schedulers_go_to_the_disks_and_readahead_to_what_carries_the_file_system(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        assert playbooks.run("harden-db", variables=QUEUES).code == 0
        for serial in SERIALS:
            name = names(machine)[serial]
            assert "[mq-deadline]" in sh(machine, f"cat /sys/block/{name}/queue/scheduler")
        for target in ("/srv/pgdata", "/srv/mssql", "/srv/nohole"):
            number = sh(machine, f"mountpoint -d {target}").strip()
            assert sh(machine, f"cat /sys/dev/block/{number}/queue/read_ahead_kb").strip() == "2048"
        again = playbooks.run("harden-db", variables=QUEUES)
        assert (again.code, again.recap["stacked"]["changed"]) == (0, 0)

    def test_they_outlive_a_power_cycle(self, machine: Machine, playbooks: Playbooks) -> None:
        machine.reset()
        check = playbooks.run("harden-db", "--check", variables=QUEUES)
        assert (check.code, check.recap["stacked"]["changed"]) == (0, 0)

    def test_tuned_is_named_and_not_fought(self, machine: Machine, playbooks: Playbooks) -> None:
        # Files as TuneD keeps them; the daemon itself is not on the machine.
        sh(
            machine,
            "mkdir -p /etc/tuned/mssql-ish /run/tuned; echo mssql-ish > /etc/tuned/active_profile;"
            "printf '[main]\\n[disk]\\nelevator=kyber\\n' > /etc/tuned/mssql-ish/tuned.conf;"
            "echo 1 > /run/tuned/tuned.pid",
        )
        check = playbooks.run("harden-db", "--check", variables=QUEUES)
        rows = [r for r in check.reports["stacked"]["settings"] if r["setting"] == "scheduler"]
        assert rows
        assert {row["verdict"] for row in rows} == {"drift_persisted"}
        assert all("mssql-ish" in row["remedy"] for row in rows)
        assert check.recap["stacked"]["changed"] == 0
        sh(machine, "rm -r /etc/tuned /run/tuned")


@pytest.mark.fact(48)
def test_a_disk_that_is_plugged_in_again_comes_to_the_profile_without_a_run(machine: Machine) -> None:
    name = names(machine)["SCSI0001"]
    sh(
        machine,
        f"mdadm /dev/md/pg --fail /dev/{name}1 --remove /dev/{name}1;"
        f"mdadm /dev/md/hole --fail /dev/{name}2 --remove /dev/{name}2;"
        f"mdadm /dev/md/nohole --fail /dev/{name}3 --remove /dev/{name}3",
    )
    machine.unplug("SCSI0001")
    machine.plug("SCSI0001")
    sh(machine, "udevadm settle")
    disk = truth.read(machine)["disks"]["SCSI0001"]
    assert (disk["cache"], disk["belief"]) == ("off", "write back")


@pytest.mark.fact(48)
def test_while_md_has_lost_a_disk_and_gets_another_the_check_says_so(
    machine: Machine, playbooks: Playbooks
) -> None:
    machine.unplug("SCSI0001")
    machine.plug("SCSI0001", "SCSI0009")
    sh(machine, "udevadm settle")
    name = names(machine)["SCSI0009"]
    sh(
        machine,
        f"sfdisk -d /dev/{names(machine)['SATA0001']} | grep -v -e label-id -e last-lba"
        f" | sed 's/, uuid=[^,]*//' | sfdisk --quiet --wipe always /dev/{name};"
        f"udevadm settle; mdadm /dev/md/pg --add /dev/{name}1",
    )
    check = playbooks.run("harden-db", "--check")
    assert check.code == 2
    wrong = {key for key, verdict in check.settings("stacked").items() if verdict != "ok"}
    assert {setting for target, setting in wrong if "SCSI0009" in target} >= {"write_cache"}
    assert playbooks.run("harden-db").code == 0
    disk = truth.read(machine)["disks"]["SCSI0009"]
    assert (disk["cache"], disk["belief"]) == ("off", "write back")


def test_release_takes_everything_away(machine: Machine, playbooks: Playbooks) -> None:
    assert playbooks.run("release_db").code == 0
    assert "durable" not in sh(machine, "ls /etc/udev/rules.d")
    assert machine.run(["systemctl", "cat", "durable-dbhost-resume.service"], check=False).returncode != 0
    assert "durable.dbhost" not in sh(machine, "cat /etc/fstab")
