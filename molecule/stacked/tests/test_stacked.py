# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases on LVM, md and dm-crypt: no layer is passed over, and each disk below is brought to strict.

The tests stand in an order, and each leaves strict behind: that costs less than a machine taken back to its start.
"""

from __future__ import annotations

from typing import Any

import pytest
from support import truth
from support.devices import after_reset, flushes_of_20_syncs, names, sh, switch_scsi_cache
from support.runs import Executions, Playbooks

from lab.machine import Machine

#: Mount point -> the disks below it, as lab/layouts/stacked.sh laid them out.
LEAVES = {
    "/srv/pgdata": {"SCSI0003", "SCSI0001"},
    "/srv/mssql": {"SCSI0004", "VIRT0001"},
    "/srv/maria": {"SCSI0002", "SCSI0005"},
    "/srv/ppl": {"SCSI0004", "SCSI0002", "SCSI0005"},
    "/srv/nohole": {"SCSI0003", "SCSI0001", "SCSI0002", "SCSI0005"},
    "/srv/thin": {"SCSI0003", "SCSI0001"},
    "/srv/hole": {"SCSI0003", "SCSI0001", "VIRT0001"},
}
#: A reset may turn the cache of a SCSI disk on again, so the kernel goes on flushing; a virtio disk keeps its setting.
BELIEFS = {
    **dict.fromkeys(("SCSI0001", "SCSI0002", "SCSI0003", "SCSI0004", "SCSI0005"), "write back"),
    "VIRT0001": "write through",
}
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


def facts(playbooks: Playbooks, *options: str, **variables: Any) -> dict[str, Any]:
    """Return the report of a check run."""
    run = playbooks.run("harden-db", "--check", *options, variables=variables or None)
    return run.reports["stacked"]


def test_every_disk_says_that_its_cache_is_off_and_a_scsi_disk_is_believed_to_cache(machine: Machine) -> None:
    disks = truth.read(machine)["disks"]
    assert {serial: disk["cache"] for serial, disk in disks.items()} == dict.fromkeys(BELIEFS, "off")
    assert {serial: disk["belief"] for serial, disk in disks.items()} == BELIEFS
    assert all(disk["rule"] for disk in disks.values())


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["run", "check"])
def test_a_second_run_changes_nothing_in_one_execution(
    machine: Machine, playbooks: Playbooks, options: tuple[str, ...]
) -> None:
    executions = Executions(machine)
    run = playbooks.run("harden-db", *options)
    assert run.code == 0
    assert run.recap["stacked"]["changed"] == 0
    assert run.reports["stacked"]["verdict"] == "attested"
    assert executions.count() == 1


@pytest.mark.fact(16)
@pytest.mark.parametrize("target", sorted(set(LEAVES) - {"/srv/thin", "/srv/hole"}))
def test_a_synchronous_write_is_flushed_on_each_disk_below(machine: Machine, target: str) -> None:
    counted = flushes_of_20_syncs(machine, target, LEAVES[target])
    flushed = {serial for serial, count in counted.items() if count >= 20}
    if target == "/srv/ppl":
        assert len(flushed) >= 2, counted  # RAID 5 writes data and parity, not to its third disk
    elif target == "/srv/nohole":
        assert "SCSI0005" in flushed, counted  # the journal; its members follow when it is emptied
    else:
        # A disk that keeps nothing back has nothing to flush; the others below the same array have.
        assert flushed == {serial for serial in LEAVES[target] if BELIEFS[serial] == "write back"}, counted


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
    target = "/srv/pgdata" if serial == "SCSI0001" else "/srv/maria"
    seen = after_reset(machine, serial, target)
    assert (seen["before"]["cache"], seen["before"]["belief"]) == ("on", "write back")
    assert int(seen["before"]["flushes"]) >= 20
    # And the rule has turned it off again, without a run.
    assert seen["after"] == {"cache": "off", "belief": "write back"}


def test_a_layer_made_when_nothing_cached_passes_no_flush_on_and_is_found(
    machine: Machine, playbooks: Playbooks
) -> None:
    name = names(machine)["SCSI0004"]
    # A device-mapper device keeps what the kernel took its disk for when its table was loaded.
    sh(
        machine,
        f"pin=$(echo /sys/block/{name}/device/scsi_disk/*/cache_type);"
        "echo write through > $pin;"
        f"dmsetup create deaf --table '0 8192 linear /dev/{name}3 0';"
        "echo temporary write back > $pin;"
        "mkfs.ext4 -q -F /dev/mapper/deaf; mkdir -p /srv/deaf; mount /dev/mapper/deaf /srv/deaf",
    )
    try:
        # What else lies on this disk would be flushed meanwhile.
        sh(machine, "for each in mssql ppl; do fsfreeze --freeze /srv/$each; done")
        try:
            counted = flushes_of_20_syncs(machine, "/srv/deaf", ["SCSI0004"])
        finally:
            sh(machine, "for each in mssql ppl; do fsfreeze --unfreeze /srv/$each; done")
        assert counted == {"SCSI0004": 0}
        report = facts(playbooks, durable_mounts=["/srv/deaf"])
        rows = [row for row in report["settings"] if row["setting"] == "layer_belief"]
        assert [row["verdict"] for row in rows] == ["pending"]
        switch_scsi_cache(machine, "SCSI0004", on=True)
        report = facts(playbooks, durable_mounts=["/srv/deaf"])
        assert report["verdict"] == "at_risk"
        assert any("passes no flush on" in why for why in report["why"])
    finally:
        sh(machine, "umount /srv/deaf; dmsetup remove deaf")
        switch_scsi_cache(machine, "SCSI0004", on=False)


def test_the_stack_and_the_profile_outlive_a_power_cycle(machine: Machine, playbooks: Playbooks) -> None:
    before = truth.read(machine)["boot_id"]
    machine.reset()
    assert truth.read(machine)["boot_id"] != before
    disks = truth.read(machine)["disks"]
    assert {disk["cache"] for disk in disks.values()} == {"off"}
    assert {serial: disk["belief"] for serial, disk in disks.items()} == BELIEFS
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["stacked"]["verdict"]) == (0, "attested")


@pytest.fixture(scope="class")
def scheduler(machine: Machine) -> str:
    """A scheduler that the kernel has, and did not choose for its disks."""
    chosen = sh(machine, f"cat /sys/block/{names(machine)['SCSI0001']}/queue/scheduler")
    return "none" if "[mq-deadline]" in chosen else "mq-deadline"


@pytest.fixture(scope="class")
def queues(scheduler: str) -> dict[str, Any]:
    """A profile of its own, because the shipped ones leave a virtual machine's queues alone."""
    profile = {
        "summary": "strict, with queues in order",
        "write_cache": "disabled",
        "barrier": "on",
        "data_mode": "ordered",
        "atime": "noatime",
        "rests_on": "device",
        "scheduler_virtual": scheduler,
        # More than a kernel of today chooses itself for disks that rotate (8192): it would raise less again (7.2).
        "readahead": 16384,
    }
    return {"durable_profile": "queues", "durable_profiles": {"queues": profile}}


@pytest.mark.fact(25)
class TestScheduling:
    def test_schedulers_go_to_the_disks_and_readahead_to_what_carries_the_file_system(
        self, machine: Machine, playbooks: Playbooks, scheduler: str, queues: dict[str, Any]
    ) -> None:
        assert playbooks.run("harden-db", variables=queues).code == 0
        for serial in BELIEFS:
            name = names(machine)[serial]
            assert f"[{scheduler}]" in sh(machine, f"cat /sys/block/{name}/queue/scheduler")
        for target in ("/srv/pgdata", "/srv/mssql", "/srv/nohole"):
            number = sh(machine, f"mountpoint -d {target}").strip()
            assert sh(machine, f"cat /sys/dev/block/{number}/queue/read_ahead_kb").strip() == "16384"
        again = playbooks.run("harden-db", variables=queues)
        assert (again.code, again.recap["stacked"]["changed"]) == (0, 0)

    def test_they_outlive_a_power_cycle(
        self, machine: Machine, playbooks: Playbooks, queues: dict[str, Any]
    ) -> None:
        machine.reset()
        check = playbooks.run("harden-db", "--check", variables=queues)
        assert (check.code, check.recap["stacked"]["changed"]) == (0, 0)

    def test_tuned_is_named_and_not_fought(
        self, machine: Machine, playbooks: Playbooks, queues: dict[str, Any]
    ) -> None:
        # Files as TuneD keeps them; the daemon itself is not on the machine.
        sh(
            machine,
            "mkdir -p /etc/tuned/mssql-ish /run/tuned; echo mssql-ish > /etc/tuned/active_profile;"
            "printf '[main]\\n[disk]\\nelevator=kyber\\n' > /etc/tuned/mssql-ish/tuned.conf;"
            "echo 1 > /run/tuned/tuned.pid",
        )
        check = playbooks.run("harden-db", "--check", variables=queues)
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
        f"sfdisk -d /dev/{names(machine)['SCSI0003']} | grep -v -e label-id -e last-lba"
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
