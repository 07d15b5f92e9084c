# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift of every kind at once: found, named, predicted, mended; and looking touches nothing."""

from __future__ import annotations

import pytest
from support import truth
from support.layout import TARGETS
from support.runs import Executions, Playbooks

from lab.machine import Machine

RULES = "/etc/udev/rules.d/99-durable-dbhost-write-cache.rules"
#: What each line of the plant below is called in the report.
EXPECTED = {
    ("/srv/pgdata", "barrier"): "drift_running",
    ("serial:QEMU_HARDDISK_SATA0002", "write_cache"): "drift_running",
    ("/srv/fbdata", "barrier"): "drift_running",
    ("/srv/maria", "barrier"): "drift_persisted",
    ("serial:VIRT0002", "write_cache"): "drift_persisted",
}
PLANT = rf"""
set -eu
disk() {{ readlink -f /dev/disk/by-id/$1; }}
# barriers remounted off
mount -o remount,barrier=0 /srv/pgdata
# barriers off by a default in the superblock, which /proc/mounts does not show
umount /srv/fbdata
tune2fs -o nobarrier "$(disk ata-QEMU_HARDDISK_SATA0002)"
mount /srv/fbdata
# fstab edited
sed -i 's|\(/srv/maria ext4 [^ ]*\)|\1,nobarrier|' /etc/fstab
# a udev rule removed
sed -i '/"VIRT0002"/d' {RULES}
# a cache turned on, once udev has nothing more to say of that disk: its rule would mend it
udevadm settle
hdparm -q -W1 "$(disk ata-QEMU_HARDDISK_SATA0002)"
"""
#: Everything that a look could change: files, kernel knobs, devices, mounts, modules.
MANIFEST = r"""
find / -xdev \( -path /run -o -path /var/log -o -path /root/.ansible -o -path /tmp -o -path /var/lib/systemd \) -prune \
    -o -printf '%p %C@ %s\n' | sort
grep -r . /sys/block/*/queue /sys/class/scsi_disk 2>/dev/null | sort
cat /sys/block/vd*/cache_type
for disk in /dev/sd?; do hdparm -W $disk; dumpe2fs -h $disk 2>/dev/null | grep -i options; done
cat /proc/mounts
cut -d' ' -f1 /proc/modules | sort
"""


@pytest.fixture(scope="module")
def drifted(machine: Machine) -> Machine:
    """The machine with each sort of drift planted."""
    machine.run(["sh", "-c", PLANT])
    machine.save("drifted")
    return machine


def test_the_planted_superblock_default_is_invisible_in_proc_mounts(drifted: Machine) -> None:
    mount = truth.read(drifted)["mounts"]["/srv/fbdata"]
    assert mount["barrier"] == "off"
    assert "nobarrier" not in mount["options"]


def test_check_names_each_drift_touches_nothing_and_predicts_what_the_run_changes(
    drifted: Machine, playbooks: Playbooks
) -> None:
    manifest = ["sh", "-c", MANIFEST]
    before = drifted.run(manifest).stdout
    check = playbooks.run("harden-db", "--check", "--diff")
    after = drifted.run(manifest).stdout
    assert after == before

    assert check.code == 2
    assert check.recap["dbhost"]["changed"] > 0
    report = check.reports["dbhost"]
    # /srv/fbdata lies bare over a cache that is on.
    assert report["verdict"] == "at_risk"
    wrong = {key: verdict for key, verdict in check.settings("dbhost").items() if verdict != "ok"}
    assert wrong == EXPECTED
    assert "commits since the last flush on" in check.output

    executions = Executions(drifted)
    run = playbooks.run("harden-db", "--diff")
    assert run.code == 0
    # Two fact passes, and one for each layer and phase.
    steps = sum(len(layers) for layers in report["plan"].values())
    assert executions.count() == 4 + steps
    assert run.recap["dbhost"]["changed"] == check.recap["dbhost"]["changed"]
    assert run.reports["dbhost"]["changes"] == report["changes"]
    assert run.reports["dbhost"]["verdict"] == "attested"
    assert diff_of(run.output) == diff_of(check.output)
    assert truth.weaknesses(truth.read(drifted), TARGETS) == set()

    again = playbooks.run("harden-db", "--check")
    assert (again.code, again.recap["dbhost"]["changed"]) == (0, 0)


def test_tightening_a_bare_mount_counts_a_flush_on_its_disk(drifted: Machine, playbooks: Playbooks) -> None:
    drifted.load("drifted")
    before = truth.read(drifted)["disks"]["SATA0002"]["flushes"]
    playbooks.run("harden-db")
    assert truth.read(drifted)["disks"]["SATA0002"]["flushes"] > before


def test_a_migrated_virtio_disk_caches_unnoticed_until_the_check_says_so(
    drifted: Machine, playbooks: Playbooks
) -> None:
    # What a live migration does: QEMU starts anew as it was configured, with the cache on, and
    # does not carry over that the guest had turned it off. The lab remembers; here it must not.
    remembered = drifted.files.caches_off("strict")
    kept = remembered.read_text()
    remembered.unlink()
    drifted.load("strict")
    remembered.write_text(kept)
    lie = {"VIRT0001 caches", "VIRT0001 caches and takes no flush"}
    assert lie <= truth.weaknesses(truth.read(drifted), TARGETS)
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["dbhost"]["verdict"]) == (2, "at_risk")
    assert "believes that it caches nothing and never flushes it" in check.output
    flushes = truth.read(drifted)["disks"]["VIRT0001"]["flushes"]
    assert playbooks.run("harden-db").code == 0
    after = truth.read(drifted)
    assert truth.weaknesses(after, TARGETS) == set()
    assert after["disks"]["VIRT0001"]["flushes"] > flushes


def test_a_kernel_that_was_told_not_to_flush_is_at_risk_and_its_cache_goes_off(
    drifted: Machine, playbooks: Playbooks
) -> None:
    drifted.load("strict")
    plant = """
    disk=$(basename $(readlink -f /dev/disk/by-id/ata-QEMU_HARDDISK_SATA0002))
    hdparm -q -W1 /dev/$disk
    sleep 3  # the kernel looks at the disk anew, and that sets its belief
    echo write through > /sys/block/$disk/queue/write_cache
    uname -r
    """
    release = drifted.run(["sh", "-c", plant]).stdout.split(".")
    check = playbooks.run("harden-db", "--check")
    assert (check.code, check.reports["dbhost"]["verdict"]) == (2, "at_risk")
    run = playbooks.run("harden-db")
    disk = truth.read(drifted)["disks"]["SATA0002"]
    assert disk["cache"] == "off"
    if (int(release[0]), int(release[1])) >= (6, 11):
        # There the file that was misused overrules the driver: only it, or a reboot, undoes that.
        assert run.code == 2
        assert "reboot" in run.reports["dbhost"]["error"]
    else:
        assert run.code == 0
        assert disk["belief"] == "write back"


def diff_of(output: str) -> list[str]:
    """Return the lines that --diff showed."""
    return [line for line in output.splitlines() if line[:2] in ("-/", "+/", "-s", "+s")]
