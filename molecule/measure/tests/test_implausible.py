# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk hides: a cache that answers in the medium's place, and one that is on again after a snapshot."""

from __future__ import annotations

from support import truth
from support.runs import Playbooks

from lab.hardware import BootDisk
from lab.machine import Machine

MACHINE = "measure"
#: A disk of a maker that answers each flush without doing anything.
LIAR = BootDisk("sata", "SATA0001", model="ST1000NM0033-9ZM173", ignores_flush=True)
#: Stands in for a machine that is not one of a hypervisor: on those alone a disk means it when it says that it rotates.
#: And the disk says that its cache is off.
BARE_METAL = """
printf '#!/bin/sh\necho none; exit 1\n' > /root/none
chmod +x /root/none
mount --bind /root/none /usr/bin/systemd-detect-virt
hdparm -q -W0 /dev/disk/by-id/ata-ST1000NM0033-9ZM173_SATA0001
"""


def test_qemu_forgets_in_a_snapshot_that_the_cache_of_a_virtio_disk_was_off(machine: Machine) -> None:
    switch = "echo write through > /sys/block/$(basename $(readlink -f /dev/disk/by-id/virtio-VIRT0001))/cache_type"
    machine.run(["sh", "-c", switch])
    machine.turn_cache_on("VIRT0001")
    disk = truth.read(machine)["disks"]["VIRT0001"]
    assert (disk["cache"], disk["cache_mode"]) == ("on", "write through")


def test_a_disk_that_is_faster_than_it_can_turn_is_not_plausible(
    machine: Machine, playbooks: Playbooks
) -> None:
    machine.stop()
    machine.boot(LIAR)
    machine.run(["sh", "-ec", BARE_METAL])
    asked = {"mounts": ["/srv/small"], "patterns": ["direct_dsync"], "clients": [1], "seconds": 2, "size": 1}
    for _try in range(3):
        run = playbooks.run(
            "benchmark",
            variables={
                "durable_hosts": "measure",
                "durable_confirm": "benchmark",
                "durable_benchmark": asked,
            },
        )
        assert run.code == 0
        report = run.reports["benchmark-measure"]
        # Where the lab's own machine is busy, an emulated disk can be as slow as one that turns.
        if report["rows"][0]["rate"] > 375:
            break
    assert report["rows"][0]["rate"] > 375
    (doubt,) = report["doubts"]
    assert "its cache answers instead of the medium" in doubt
    assert report["advice"][0].startswith("do not choose by these figures")
    assert "[WARNING]" in run.output
