# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was brought to strict: by the word of its devices and its kernel."""

from __future__ import annotations

import pytest
from support import truth
from support.layout import TARGETS, link_of
from support.runs import Executions, Playbooks
from testinfra.host import Host

from lab.machine import Machine

SCSI = [serial for serial in TARGETS.values() if serial.startswith("SCSI")]
VIRTIO = [serial for serial in TARGETS.values() if serial.startswith("VIRT")]


def name_of(host: Host, serial: str) -> str:
    """Return the kernel name of a disk."""
    return str(host.file(f"/dev/disk/by-id/{link_of(serial)}").linked_to).rpartition("/")[2]


@pytest.mark.parametrize("serial", SCSI)
def test_scsi_disk_says_that_its_cache_is_off_and_is_flushed_all_the_same(host: Host, serial: str) -> None:
    name = name_of(host, serial)
    assert host.check_output(f"sdparm --quiet --readonly --get WCE=1 -H /dev/{name}").strip() == "0x00"
    assert host.file(f"/sys/block/{name}/queue/write_cache").content_string == "write back\n"


@pytest.mark.parametrize("serial", SCSI)
def test_a_tool_that_turns_a_scsi_cache_on_is_undone_by_udev_at_once(host: Host, serial: str) -> None:
    # The kernel learns nothing of what sdparm does; udev does, when sdparm closes the disk.
    name = name_of(host, serial)
    host.check_output(f"sdparm --quiet --set WCE=1 /dev/{name}")
    host.check_output("udevadm settle")
    assert host.check_output(f"sdparm --quiet --readonly --get WCE=1 -H /dev/{name}").strip() == "0x00"
    assert host.file(f"/sys/block/{name}/queue/write_cache").content_string == "write back\n"


@pytest.mark.parametrize("serial", VIRTIO)
def test_virtio_disk_says_that_its_cache_is_off(host: Host, serial: str) -> None:
    name = name_of(host, serial)
    assert host.file(f"/sys/block/{name}/cache_type").content_string == "write through\n"
    assert host.file(f"/sys/block/{name}/queue/write_cache").content_string == "write through\n"


@pytest.mark.parametrize("target", TARGETS)
def test_mounts_are_noatime_and_ext4_has_barriers_in_the_kernels_own_word(host: Host, target: str) -> None:
    mount = host.mount_point(target)
    assert "noatime" in mount.options
    if mount.filesystem == "ext4":
        name = mount.device.rpartition("/")[2]
        words = host.file(f"/proc/fs/ext4/{name}/options").content_string.split()
        assert "barrier" in words
        assert "data=ordered" in words


def test_fstab_is_whole_and_each_managed_line_is_marked(host: Host) -> None:
    assert host.run("findmnt --verify").rc == 0
    text = host.file("/etc/fstab").content_string
    assert text.count("# durable.dbhost") == len(TARGETS)
    assert "errors=remount-ro" in text


def test_nothing_of_the_trial_is_left(host: Host) -> None:
    assert not host.file("/var/lib/durable-dbhost/trial").exists
    assert host.file("/var/lib/durable-dbhost/originals.json").exists
    assert host.run("losetup --list --noheadings").stdout == ""


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["run", "check"])
def test_a_second_run_changes_nothing_in_one_execution(
    machine: Machine, playbooks: Playbooks, options: tuple[str, ...]
) -> None:
    executions = Executions(machine)
    run = playbooks.run("harden-db", *options)
    assert run.code == 0
    assert run.recap["dbhost"]["changed"] == 0
    assert run.reports["dbhost"]["verdict"] == "attested"
    assert set(run.settings("dbhost").values()) == {"ok"}
    assert executions.count() == 1


def test_without_an_engine_and_a_managed_mount_nothing_is_applicable(
    machine: Machine, playbooks: Playbooks
) -> None:
    check = playbooks.run("harden-db", "--check", variables={"durable_mounts": []})
    assert (check.code, check.recap["dbhost"]["changed"]) == (0, 0)
    report = check.reports["dbhost"]
    assert (report["verdict"], report["engines"], report["settings"]) == ("not_applicable", [], [])
    (why,) = report["why"]
    assert why.startswith("no database engine was found")


def test_the_profile_outlives_a_power_cycle(machine: Machine, playbooks: Playbooks) -> None:
    before = truth.weaknesses(truth.read(machine), TARGETS)
    assert before == set()
    old_boot = truth.read(machine)["boot_id"]
    machine.reset()
    after = truth.read(machine)
    assert after["boot_id"] != old_boot
    assert truth.weaknesses(after, TARGETS) == set()
    run = playbooks.run("harden-db", "--check")
    assert (run.code, run.reports["dbhost"]["verdict"]) == (0, "attested")
