# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrix: nothing is left out, and each safe cell has a control that writes in the same way."""

from __future__ import annotations

import subprocess

import pytest

from proof.cells import (
    COMMITS,
    DEVICES,
    FILE_SYSTEMS,
    LOSES,
    NBD,
    NVME,
    PLANTS,
    SAFE,
    SAFE_PROFILES,
    SAFE_WORKLOADS,
    UNTRUSTED,
    WITH_FUA,
    WORKLOADS,
    by_setting,
    chosen,
    matrix,
    to_boot,
)
from proof.engines import ENGINES
from proof.errors import ProofError
from proof.writer import PATTERNS

CELLS = {cell.name: cell for cell in matrix()}


def test_each_profile_device_file_system_and_workload_has_a_safe_cell() -> None:
    """And each name stands once."""
    assert len(CELLS) == len(matrix())
    settings = [("flush", device) for device in DEVICES]
    settings += [("strict", device) for device in DEVICES if device != "scsi-fua"]
    for profile, device in settings:
        for file_system in FILE_SYSTEMS:
            for workload in SAFE_WORKLOADS:
                assert CELLS[f"{profile}/{device}/{file_system}/{workload}"].expects == SAFE
    for where in ("virtio/ext4", "sata/xfs"):
        assert all(CELLS[f"protected/{where}/{workload}"].expects == SAFE for workload in SAFE_WORKLOADS)
    assert all(
        CELLS[f"defaults/{NBD}/{fs}/{w}"].expects == SAFE for fs in FILE_SYSTEMS for w in SAFE_WORKLOADS
    )


def test_each_safe_cell_has_a_control_on_its_device_that_must_lose() -> None:
    """Of the same workload, but for 0/0 over a cache that is off."""
    for cell in CELLS.values():
        assert bool(cell.control) == (cell.expects == SAFE)
        assert (cell.expects == UNTRUSTED) == (cell.setting.device == NVME)
        if cell.control:
            control = CELLS[cell.control]
            assert control.expects == LOSES
            assert control.workload == cell.workload
            assert (control.setting.device, control.setting.file_system) == (
                cell.setting.device,
                cell.setting.file_system,
            )
            assert control.setting.plant or cell.setting.cache_is_off


def test_every_control_that_was_asked_for_is_there() -> None:
    """Each device has those that are about devices; XFS has no barriers to turn off."""
    planted = {(cell.setting.device, cell.setting.plant) for cell in CELLS.values() if cell.expects == LOSES}
    for device in (*DEVICES, NBD):
        wanted = {"", "write-through"} if device in WITH_FUA else {"", "barrier0", "write-through"}
        assert {plant for where, plant in planted if where == device} - {
            "cache-back",
            "tightened",
            "sync-off",
        } == wanted
    assert {plant for _, plant in planted} == set(PLANTS) - {"mended"}
    assert {where for where, plant in planted if plant == "cache-back"} == set(DEVICES) - {"scsi-fua"}
    assert not any(
        cell.setting.plant == "barrier0" for cell in CELLS.values() if cell.setting.file_system == "xfs"
    )
    assert {"direct", "no_sync"} <= {cell.workload for cell in CELLS.values() if cell.expects == LOSES}
    assert all(WORKLOADS[cell.workload] for cell in CELLS.values())
    assert set(PATTERNS) == set(WORKLOADS) - {COMMITS}


def test_real_engines_have_cells_of_each_safe_profile() -> None:
    """Each of them with its sync off, on both file systems."""
    for name in ENGINES:
        own = [cell for cell in CELLS.values() if cell.setting.engine == name]
        assert {cell.setting.profile for cell in own if cell.expects == SAFE} == set(SAFE_PROFILES)
        for file_system in FILE_SYSTEMS:
            assert any(
                cell.setting.plant == "sync-off" for cell in own if cell.setting.file_system == file_system
            )
    assert all((cell.workload == COMMITS) == bool(cell.setting.engine) for cell in CELLS.values())


def test_one_safe_cell_of_each_profile_file_system_and_engine_is_booted() -> None:
    """None that is planted to lose."""
    found = [CELLS[name] for name in to_boot(CELLS.values())]
    assert all(cell.expects == SAFE for cell in found)
    wanted = {
        (c.setting.profile, c.setting.file_system, c.setting.engine)
        for c in CELLS.values()
        if c.expects == SAFE
    }
    assert len(found) == len(wanted)
    assert {(c.setting.profile, c.setting.file_system, c.setting.engine) for c in found} == wanted


def test_nothing_volatile_is_expected_of_a_cache_that_is_off_and_of_nothing_else() -> None:
    """Once it comes back that is over."""
    off = {cell.setting.name for cell in CELLS.values() if cell.setting.cache_is_off}
    assert "strict/sata/xfs" in off
    assert all(name.startswith("strict/") and not name.endswith("cache-back") for name in off)


def test_a_chosen_cell_brings_its_control() -> None:
    """And one boot each."""
    found = chosen(CELLS.values(), ["protected/virtio/ext4/dsync"])
    assert [cell.name for cell in found] == [
        "flush/virtio/ext4/barrier0/dsync",
        "protected/virtio/ext4/dsync",
    ]
    assert [setting.directory for setting in by_setting(found)] == [
        "flush-virtio-ext4-barrier0",
        "protected-virtio-ext4",
    ]
    assert len(chosen(CELLS.values(), ["*"])) == len(CELLS)
    assert {cell.setting.engine for cell in chosen(CELLS.values(), ["!*/commits"])} == {""}
    fewer = chosen(CELLS.values(), ["!*/commits", "protected/virtio/ext4/*", "!*/*_*"])
    assert {cell.workload for cell in fewer} == {"dsync", "osync"}
    with pytest.raises(ProofError, match="no cell is called 'strictly'"):
        chosen(CELLS.values(), ["*", "strictly"])


@pytest.mark.parametrize("name", PLANTS)
def test_scripts_of_plants_are_shell(name: str) -> None:
    """As far as sh can tell without running them."""
    plant = PLANTS[name]
    for script in (plant.before, plant.after):
        assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert plant.has_second_part == (name in ("tightened", "mended"))
