# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases on LVM, md and dm-crypt: no layer is passed over, and each disk below is brought to strict.

The tests stand in an order, and each leaves strict behind: that costs less than a machine taken back to its start.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest
from support import truth
from support.devices import after_reset, flushes_of_20_syncs, names, sh, switch_scsi_cache
from support.runs import Executions, Playbooks

from lab.machine import Machine

#: Mount point -> the disks below it, as lab/layouts/playbooks/stacked.yml laid them out.
LEAVES = {
    "/srv/pgdata": {"SCSI0003", "SCSI0001"},
    "/srv/mssql": {"SCSI0004", "VIRT0001"},
    "/srv/maria": {"SCSI0002", "SCSI0005"},
    "/srv/ppl": {"SCSI0004", "SCSI0002", "SCSI0005"},
    "/srv/nohole": {"SCSI0003", "SCSI0001", "SCSI0002", "SCSI0005"},
    "/srv/thin": {"SCSI0003", "SCSI0001"},
    "/srv/looped": {"SCSI0003", "SCSI0001"},
    "/srv/cached": {"SCSI0005", "SCSI0002"},
    "/srv/bcache": {"VIRT0001", "SCSI0002"},
    "/srv/hole": {"SCSI0003", "SCSI0001", "VIRT0001"},
}
#: A reset may turn the cache of a SCSI disk on again, so the kernel goes on flushing; a virtio disk keeps its setting.
CACHE_MODES = {
    **dict.fromkeys(("SCSI0001", "SCSI0002", "SCSI0003", "SCSI0004", "SCSI0005"), "write back"),
    "VIRT0001": "write through",
}
#: On the partition $1, two volumes by hand: one delays by nothing, which no rule knows; one is a snapshot in memory.
BY_HAND = r"""
dmsetup create strange --table "0 40960 delay $1 0 0"
dmsetup create base --table "0 16384 linear $1 40960"
dmsetup create store --table "0 16384 linear $1 61440"
dmsetup create forgets --table "0 16384 snapshot /dev/mapper/base /dev/mapper/store N 8"
for name in strange forgets; do
    mkfs.ext4 -q -F /dev/mapper/$name
    mkdir -p /srv/$name
    mount /dev/mapper/$name /srv/$name
done
"""
UNMAKE = "umount /srv/strange /srv/forgets; dmsetup remove strange forgets store base"
#: A volume of a table over loop devices a, b and c: how many flushes each was sent for 20 synchronous writes on it.
#: dm-integrity formats its device at first, and then says how large the volume may be.
OVER_LOOPS = r"""
exec 3>&1 >/dev/null
mkdir -p /run/loops
for name in a b c; do
    truncate -s 24M /run/loops/$name
    eval "$name=$(losetup -f --show /run/loops/$name)"
done
length=32768
table="TABLE"
case "$table" in integrity*)
    dmsetup create counted --table "0 8 $table"
    dmsetup remove --retry counted
    length=$(od -An -tu8 -j16 -N8 /run/loops/a | tr -d ' ')
esac
dmsetup create counted --table "0 $length $table"
python3 - "$a" "$b" "$c" <<END >&3
import json, os, sys
def flushes():
    stats = (open("/sys/block/%s/stat" % path.rpartition("/")[2]).read() for path in sys.argv[1:])
    return [int(stat.split()[15]) for stat in stats]
fd = os.open("/dev/mapper/counted", os.O_RDWR)
os.pwrite(fd, b"0" * 81920, 0)
os.fsync(fd)
before = flushes()
for number in range(20):
    os.pwrite(fd, b"x" * 4096, number * 4096)
    os.fdatasync(fd)
print(json.dumps([after - seen for after, seen in zip(flushes(), before)]))
END
dmsetup remove --retry counted
losetup -d "$a" "$b" "$c"
rm -r /run/loops
"""
#: Table -> the devices that each flush has to reach.
FLUSHED = {
    "snapshot-origin $a": "a",
    "snapshot $a $b P 8": "b",
    "cache $c $b $a 128 1 writeback smq 0": "ab",
    "cache $c $b $a 128 1 writethrough smq 0": "ab",
    "cache $c $b $a 128 1 passthrough smq 0": "ab",
    "writecache s $a $b 4096 0": "ab",
    "integrity $a 0 - J 1 internal_hash:crc32c": "a",
    "integrity $a 0 - B 1 internal_hash:crc32c": "a",
    "integrity $a 0 - D 1 internal_hash:crc32c": "a",
}
#: A bcache device over two loop devices, mounted on /srv/fast; prints the flushes that each was sent for 20 synchronous
#: writes, in each mode.
BCACHE = r"""
exec 3>&1 >/dev/null
mkdir -p /srv/pgdata/loops /srv/fast
for name in a b; do
    truncate -s 48M /srv/pgdata/loops/$name
    eval "$name=$(losetup -f --show /srv/pgdata/loops/$name)"
done
make-bcache --bucket 64k --bdev "$a" --cache "$b"
own=/sys/block/${a##*/}/bcache
# udev may have taken them already, and may not.
until [ "$(cat $own/state 2> /dev/null)" = clean ]; do
    for each in "$a" "$b"; do echo "$each" > /sys/fs/bcache/register || true; done 2> /dev/null
    sleep 0.2
done
device=$(basename "$(readlink -f $own/dev)")
python3 - "/dev/$device" "$own/cache_mode" "$a" "$b" <<END >&3
import json, os, sys
device, mode, *below = sys.argv[1:]
def flushes():
    stats = (open("/sys/block/%s/stat" % path.rpartition("/")[2]).read() for path in below)
    return [int(stat.split()[15]) for stat in stats]
fd = os.open(device, os.O_RDWR)
counted = {}
for name in ("writethrough", "writearound", "none", "writeback"):
    with open(mode, "w") as file:
        file.write(name)
    before = flushes()
    for number in range(20):
        os.pwrite(fd, b"x" * 4096, number * 4096)
        os.fdatasync(fd)
    counted[name] = [after - seen for after, seen in zip(flushes(), before)]
print(json.dumps(counted))
END
mkfs.ext4 -q "/dev/$device"
mount "/dev/$device" /srv/fast
"""
#: It stops with data that is in the cache alone, and is started without that cache.
CACHE_LOST = r"""
a=$(losetup -j /srv/pgdata/loops/a -nO NAME) b=$(losetup -j /srv/pgdata/loops/b -nO NAME)
set=$(readlink -f "/sys/block/${b##*/}/bcache/set")
head -c 4M /dev/urandom > /srv/fast/data
umount /srv/fast
echo 1 > "$set/stop"
until ! [ -e "$set" ]; do sleep 0.2; done
dd if=/dev/zero of="$b" bs=64k count=16 conv=fsync 2> /dev/null
# The kernel lets go of it a moment after its set is gone.
until echo "$a" > /sys/fs/bcache/register; do sleep 0.2; done 2> /dev/null
until [ -e "/sys/block/${a##*/}/bcache/running" ]; do sleep 0.2; done
echo 1 > "/sys/block/${a##*/}/bcache/running"
device=/dev/$(basename "$(readlink -f "/sys/block/${a##*/}/bcache/dev")")
udevadm settle
mkfs.ext4 -q -F "$device"
mount "$device" /srv/fast
"""
NO_BCACHE = r"""
if mountpoint -q /srv/fast; then umount /srv/fast; fi
for file in b a; do
    loop=$(losetup -j /srv/pgdata/loops/$file -nO NAME)
    for stop in "/sys/block/${loop##*/}/bcache/set/stop" "/sys/block/${loop##*/}/bcache/stop"; do
        if [ -e "$stop" ]; then echo 1 > "$stop"; fi
    done
    while [ -e "/sys/block/${loop##*/}/bcache" ]; do sleep 0.2; done
    losetup -d "$loop"
done
rm -r /srv/pgdata/loops /srv/fast
"""
#: On ext2: how many flushes its device was sent for 20 synchronous writes.
EXT2 = r"""
exec 3>&1 >/dev/null
truncate -s 16M /run/ext2.img
mkfs.ext2 -q /run/ext2.img
device=$(losetup -f --show /run/ext2.img)
mkdir -p /run/ext2
mount -t ext2 "$device" /run/ext2
python3 - <<END >&3
import os
def flushes():
    return int(open("/sys/block/%s/stat" % "$device".rpartition("/")[2]).read().split()[15])
fd = os.open("/run/ext2/file", os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"0" * 81920, 0)
os.fsync(fd)
before = flushes()
for number in range(20):
    os.pwrite(fd, b"x" * 4096, number * 4096)
    os.fsync(fd)
print(flushes() - before)
END
umount /run/ext2
losetup -d "$device"
rm /run/ext2.img
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


def facts(playbooks: Playbooks, *options: str, **variables: Any) -> dict[str, Any]:
    """Return the report of a check run."""
    run = playbooks.run("harden-db", "--check", *options, variables=variables or None)
    return run.reports["stacked"]


def test_every_disk_says_that_its_cache_is_off_and_a_scsi_disk_is_flushed_all_the_same(
    machine: Machine,
) -> None:
    disks = truth.read(machine)["disks"]
    assert {serial: disk["cache"] for serial, disk in disks.items()} == dict.fromkeys(CACHE_MODES, "off")
    assert {serial: disk["cache_mode"] for serial, disk in disks.items()} == CACHE_MODES
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
@pytest.mark.fact(81)
@pytest.mark.fact(82)
@pytest.mark.fact(84)
@pytest.mark.parametrize("target", sorted(set(LEAVES) - {"/srv/hole"}))
def test_a_synchronous_write_is_flushed_on_each_disk_below(machine: Machine, target: str) -> None:
    counted = flushes_of_20_syncs(machine, target, LEAVES[target])
    flushed = {serial for serial, count in counted.items() if count >= 20}
    if target == "/srv/ppl":
        assert len(flushed) >= 2, counted  # RAID 5 writes data and parity, not to its third disk
    elif target == "/srv/nohole":
        assert "SCSI0005" in flushed, counted  # the journal; its members follow when it is emptied
    else:
        # A disk that keeps nothing back has nothing to flush; the others below the same array have.
        assert flushed == {serial for serial in LEAVES[target] if CACHE_MODES[serial] == "write back"}, (
            counted
        )


@pytest.mark.fact(47)
@pytest.mark.parametrize(("policy", "waits"), [("ppl", False), ("resync", True)])
def test_a_partial_parity_log_does_not_wait_for_its_disks(machine: Machine, policy: str, waits: bool) -> None:
    """The kernel, not our code: each member takes 0.5 s for a flush, and that is not waited for."""
    took = [float(line) for line in sh(machine, SLOW_FLUSHES.replace("POLICY", policy)).split()]
    assert len(took) == 3
    assert all((seconds >= 0.5) == waits for seconds in took), took


@pytest.mark.fact(47)
@pytest.mark.fact(82)
def test_a_layer_that_is_not_understood_is_named_and_can_be_vouched_for(
    machine: Machine, playbooks: Playbooks
) -> None:
    part = f"/dev/{names(machine)['SCSI0004']}3"
    sh(machine, f"set -- {part}; {BY_HAND}")
    try:
        report = facts(playbooks, durable_mounts=["/srv/strange", "/srv/forgets"])
        assert report["verdict"] == "blocked"
        assert any("device-mapper delay" in why and "dm-name:strange" in why for why in report["why"])
        assert [
            (need["name"], need["target"]) for need in report["requirements"] if need["state"] == "unmet"
        ] == [("layer_lasts", "/srv/forgets")]
        word = {"claim": "layer_passes_flushes", "target": "dm-name:strange", "by": "the lab"}
        word.update(reason="it delays by nothing", expires=f"{date.today() + timedelta(days=30)}")
        report = facts(playbooks, durable_mounts=["/srv/strange"], durable_attestations_host=[word])
        vouched = [need for need in report["requirements"] if need["name"] == "layer_passes_flushes"]
        assert [(need["state"], need["target"]) for need in vouched] == [("attested", "/srv/strange")]
        # Nothing in fstab mounts it; all else is known.
        assert report["verdict"] == "drifted"
    finally:
        sh(machine, UNMAKE)


@pytest.mark.fact(84)
def test_a_flush_of_a_loop_device_goes_as_far_as_its_file_s_file_system(
    machine: Machine, playbooks: Playbooks
) -> None:
    sh(machine, "mount -o remount,barrier=0 /srv/pgdata")
    try:
        # What else lies on these disks would be flushed meanwhile.
        sh(machine, "for each in thin nohole hole; do fsfreeze --freeze /srv/$each; done")
        try:
            counted = flushes_of_20_syncs(machine, "/srv/looped", LEAVES["/srv/looped"])
        finally:
            sh(machine, "for each in thin nohole hole; do fsfreeze --unfreeze /srv/$each; done")
        assert max(counted.values()) < 20, counted
        report = facts(playbooks, durable_mounts=["/srv/looped"])
        assert report["verdict"] == "drifted"
        assert any(why.startswith("/srv/pgdata: barrier is ") for why in report["why"])
    finally:
        sh(machine, "mount -o remount,barrier=1 /srv/pgdata; sync -f /srv/pgdata")


@pytest.mark.fact(82)
@pytest.mark.fact(83)
@pytest.mark.parametrize("table", FLUSHED)
def test_a_flush_of_a_layer_with_blocks_of_its_own_reaches_each_device_that_has_some(
    machine: Machine, table: str
) -> None:
    """The kernel, not our code."""
    counted = dict(zip("abc", json.loads(sh(machine, OVER_LOOPS.replace("TABLE", table)))))
    assert all(counted[name] >= 20 for name in FLUSHED[table]), counted


@pytest.mark.fact(85)
def test_a_flush_of_bcache_reaches_its_cache_and_its_disk_and_without_its_cache_it_is_unknown(
    machine: Machine, playbooks: Playbooks
) -> None:
    def seen() -> tuple[str, list[str]]:
        report = facts(playbooks, durable_mounts=["/srv/fast"])
        return report["verdict"], [each["reason"] for each in report["reasons"] if "bcache" in each["reason"]]

    try:
        counted = json.loads(sh(machine, BCACHE))
        assert set(counted) == {"writethrough", "writearound", "none", "writeback"}
        assert all(min(pair) >= 20 for pair in counted.values()), counted
        # Nothing in fstab mounts it; all else is known.
        assert seen() == ("drifted", [])
        sh(machine, CACHE_LOST)
        verdict, why = seen()
        assert verdict == "unknown"
        assert any("inconsistent" in each for each in why), why
    finally:
        sh(machine, NO_BCACHE)


@pytest.mark.fact(86)
def test_ext2_flushes_at_each_fsync(machine: Machine) -> None:
    """Here by its own driver, which has no option for it; Debian's kernels mount it by ext4's."""
    assert int(sh(machine, EXT2)) == 20


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
    assert (seen["before"]["cache"], seen["before"]["cache_mode"]) == ("on", "write back")
    assert int(seen["before"]["flushes"]) >= 20
    # And the rule has turned it off again, without a run.
    assert seen["after"] == {"cache": "off", "cache_mode": "write back"}


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
        rows = [row for row in report["settings"] if row["setting"] == "layer_cache_mode"]
        assert [row["verdict"] for row in rows] == ["pending"]
        switch_scsi_cache(machine, "SCSI0004", on=True)
        report = facts(playbooks, durable_mounts=["/srv/deaf"])
        assert report["verdict"] == "at_risk"
        assert any("drops flushes" in why for why in report["why"])
    finally:
        sh(machine, "umount /srv/deaf; dmsetup remove deaf")
        switch_scsi_cache(machine, "SCSI0004", on=False)


def test_the_stack_and_the_profile_outlive_a_power_cycle(machine: Machine, playbooks: Playbooks) -> None:
    before = truth.read(machine)["boot_id"]
    machine.reset()
    assert truth.read(machine)["boot_id"] != before
    disks = truth.read(machine)["disks"]
    assert {disk["cache"] for disk in disks.values()} == {"off"}
    assert {serial: disk["cache_mode"] for serial, disk in disks.items()} == CACHE_MODES
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["stacked"]["verdict"]) == (0, "attested")


def unnamed(machine: Machine) -> tuple[str, str]:
    """Return the kernel names of the disks that tell no serial: that below /srv/unnamed, and the spare one."""
    used = sh(machine, "basename $(findmnt -no SOURCE /srv/unnamed)").strip()
    empty = 'for d in /sys/block/vd*; do [ -n "$(cat $d/serial)" ] || basename $d; done'
    (spare,) = set(sh(machine, empty).split()) - {used}
    return used, spare


@pytest.mark.fact(48)
class TestUnnamed:
    def test_a_disk_without_a_serial_is_kept_by_the_file_system_on_it(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        """It has been through the power cycle before."""
        name, _spare = unnamed(machine)
        known = f"fsuuid:{sh(machine, f'blkid -p -s UUID -o value /dev/{name}').strip()}"
        assert sh(machine, f"cat /sys/block/{name}/cache_type").strip() == "write through"
        report = facts(playbooks)
        (row,) = (
            row for row in report["settings"] if (row["target"], row["setting"]) == (known, "write_cache")
        )
        assert (row["running"], row["persisted"], row["verdict"]) == ("disabled", "disabled", "ok")
        assert [text for text in report["warnings"] if known in text and "a copy of the disk" in text]

    def test_beside_a_copy_it_has_no_name_and_its_host_is_not_green(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        name, spare = unnamed(machine)
        fresh = f"udevadm trigger --settle --action=change /dev/{spare}"
        sh(machine, f"dd if=/dev/{name} of=/dev/{spare} bs=1M conv=fsync 2>&1; {fresh}")
        try:
            report = facts(playbooks)
            # The next boot may mount the copy.
            assert report["verdict"] == "unknown"
            pair = " and ".join(sorted((name, spare)))
            assert any(f"{pair} have UUID=" in why for why in report["why"])
            assert f"{spare} also has the name fsuuid:" in str(report)
        finally:
            sh(machine, f"wipefs --quiet --all /dev/{spare}; {fresh}")
        assert facts(playbooks)["verdict"] == "attested"


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
        for serial in CACHE_MODES:
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
        self, machine: Machine, playbooks: Playbooks, scheduler: str, queues: dict[str, Any]
    ) -> None:
        """Debian's own daemon, with profiles that set another scheduler than ours, and the same."""
        (other,) = {"none", "mq-deadline"} - {scheduler}
        disk = f"cat /sys/block/{names(machine)['SCSI0001']}/queue/scheduler"
        for name, elevator in (("theirs", other), ("alike", scheduler)):
            # Of all devices it takes what has no scheduler too (dm, from kernel 7.2 on), and breaks off with an error.
            text = f"[main]\\n[disk]\\ndevices=sd*,vd*\\nelevator={elevator}\\n"
            sh(machine, f"mkdir -p /etc/tuned/{name}; printf '{text}' > /etc/tuned/{name}/tuned.conf")
        try:
            sh(machine, "systemctl --quiet enable --now tuned; tuned-adm profile theirs")
            assert f"[{other}]" in sh(machine, disk)
            check = playbooks.run("harden-db", "--check", variables=queues)
            rows = [row for row in check.reports["stacked"]["settings"] if row["setting"] == "scheduler"]
            assert {row["verdict"] for row in rows} == {"drift_running"}
            line = "/etc/tuned/theirs/tuned.conf line 4"
            assert all(line in row["remedy"] and "TuneD sets it" in row["why"] for row in rows)
            assert check.recap["stacked"]["changed"] == 0
            sh(machine, "tuned-adm profile alike")
            assert f"[{scheduler}]" in sh(machine, disk)
            check = playbooks.run("harden-db", "--check", variables=queues)
            assert (check.code, check.recap["stacked"]["changed"]) == (0, 0)
        finally:
            sh(
                machine,
                "tuned-adm off; systemctl --quiet disable --now tuned; rm -r /etc/tuned/theirs /etc/tuned/alike",
            )


@pytest.mark.fact(48)
def test_a_disk_that_is_plugged_in_again_comes_to_the_profile_without_a_run(machine: Machine) -> None:
    name = names(machine)["SCSI0001"]
    # While udev looks at what changed, an array may have no link for a moment.
    sh(
        machine,
        f"udevadm settle; mdadm /dev/md/pg --fail /dev/{name}1 --remove /dev/{name}1;"
        f"udevadm settle; mdadm /dev/md/hole --fail /dev/{name}2 --remove /dev/{name}2;"
        f"udevadm settle; mdadm /dev/md/nohole --fail /dev/{name}3 --remove /dev/{name}3",
    )
    machine.unplug("SCSI0001")
    machine.plug("SCSI0001")
    sh(machine, "udevadm settle")
    disk = truth.read(machine)["disks"]["SCSI0001"]
    assert (disk["cache"], disk["cache_mode"]) == ("off", "write back")


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
    assert (disk["cache"], disk["cache_mode"]) == ("off", "write back")


def test_release_takes_everything_away(machine: Machine, playbooks: Playbooks) -> None:
    assert playbooks.run("release_db").code == 0
    assert "durable" not in sh(machine, "ls /etc/udev/rules.d")
    assert machine.run(["systemctl", "cat", "durable-dbhost-resume.service"], check=False).returncode != 0
    assert "durable.dbhost" not in sh(machine, "cat /etc/fstab")
