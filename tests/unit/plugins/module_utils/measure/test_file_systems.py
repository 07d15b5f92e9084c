# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems compared: the plan, the figures, the advice, the plot; and on a loop device that nothing remains."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.host import trusted_path
from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api import calls
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    compared,
    file_systems,
    planned,
    scratch,
    spare,
    variants,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import MIB, Refused

from .test_benchmark import said

DEVICE = f"{spare.BY_ID}/scsi-SPARE"
DISK = spare.Spare(DEVICE, "sdc", "8:32", 640 * MIB, "none", ("none", "kyber"))
ROW: dict[str, Any] = {
    "device": DEVICE,
    "overwrite": DEVICE,
    "file_systems": [],
    "mount_options": ["defaults", "noatime"],
    "ext3_options": ["data=journal"],
    "schedulers": [],
    "patterns": ["dsync"],
    "clients": [1],
    "seconds": 2,
    "runs": 3,
    "minutes": 30,
    "size": 8,
}


class TestPlan:
    @pytest.fixture(autouse=True)
    def _available(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spare, "find", lambda _host, device, _overwrite: DISK._replace(device=device))
        monkeypatch.setattr(one_run, "last_run", lambda _host: 7)
        monkeypatch.setattr(file_systems, "Disks", lambda *_: self)
        monkeypatch.setattr(file_systems, "Blocks", lambda *_: None)
        monkeypatch.setattr(planned, "expect_fio", lambda *_: None)
        monkeypatch.setattr(calls, "fsopen", self.fsopen)
        self.programs = ["mke2fs", "mkfs.xfs", "mkfs.jfs"]
        self.error = 0

    def collect_all(self, names: list[str]) -> list[Any]:
        assert names == ["sdc"]
        return [{"kind": "virtual", "rotational": "yes"}]

    def fsopen(self, kind: str) -> int:
        if self.error or kind == "jfs":
            raise OSError(self.error or errno.ENODEV, "no")
        return os.open(os.devnull, os.O_RDONLY)

    def plan(self, **row: Any) -> file_systems.Plan:
        host = Host()
        host.exists = lambda path: os.path.basename(path) in self.programs  # type: ignore[method-assign]
        return file_systems.plan(host, {**ROW, **row})

    def test_all_that_kernel_and_programs_have_is_compared_and_the_rest_has_its_reason(self) -> None:
        made = self.plan()
        assert made.kinds == ["ext2", "ext3", "ext4", "xfs"]
        assert made.left_out == {
            "btrfs": "mkfs.btrfs is missing. Fix: install btrfs-progs",
            "jfs": "this kernel does not have it",
        }
        assert (made.schedulers, made.setting, made.looked_at) == (["none", "kyber"], "scheduler_virtual", 7)
        assert made.options_of("ext3") == ["defaults", "noatime", "data=journal"]
        # The raw disk, four kinds with two options each, one of ext3 alone; two schedulers, three runs.
        # And the raw disk again.
        assert made.total == ((1 + 4 * 2 + 1) * 2 + 1) * 3

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ({"file_systems": ["btrfs"]}, "btrfs: mkfs.btrfs is missing. Fix: install btrfs-progs"),
            ({"file_systems": ["jfs"]}, "jfs: this kernel does not have it"),
            ({"file_systems": ["vfat"]}, "file_systems: observed"),
            ({"schedulers": ["bfq"]}, "schedulers: observed bfq; expected some of none, kyber"),
            ({"mount_options": ["nobarrier"]}, "mount_options: observed"),
            ({"ext3_options": ["errors=panic"]}, "ext3_options: observed"),
            ({"patterns": ["append_fsync"]}, "patterns: observed"),
            ({"clients": []}, "clients: observed none"),
            ({"clients": [81]}, "clients: observed 81"),
            ({"clients": [80]}, "size: observed 8 MiB for each of 80 clients"),
            ({"minutes": 1}, "observed 126 s, expected at most 60. Fix: measure less"),
        ],
    )
    def test_what_cannot_be_compared_is_refused(self, row: dict[str, Any], why: str) -> None:
        with pytest.raises(Refused) as error:
            self.plan(**row)
        assert why in str(error.value)

    def test_an_old_kernel_and_a_host_without_programs_are_refused(self) -> None:
        self.error = errno.ENOSYS
        with pytest.raises(Refused, match=r"no fsopen\(2\) .* expected Linux 5.2 or later"):
            self.plan()
        self.error, self.programs = 0, []
        with pytest.raises(Refused, match="file_systems: none is available: ext2: mke2fs is missing"):
            self.plan()


def row(kind: str, options: str, scheduler: str, of_raw: float, **changes: Any) -> file_systems.Row:
    """Return one measured row."""
    return file_systems.Row(
        **{
            "file_system": kind,
            "options": options,
            "scheduler": scheduler,
            "pattern": "dsync",
            "clients": 1,
            "rate": of_raw * 10,
            "mean": 1.0,
            "p99": 2.0,
            "flushes_per_commit": 1.0,
            "runs": 3,
            "spread": 0.02,
            "of_raw": of_raw,
            **changes,
        }
    )


ROWS = [
    row(file_systems.RAW, "defaults", "none", 100.0),
    row(file_systems.RAW, "defaults", "kyber", 130.0),
    row("ext2", "defaults", "none", 99.0),
    row("ext2", "defaults", "kyber", 129.0),
    row("ext4", "defaults", "none", 40.0),
    row("ext4", "defaults", "kyber", 60.0),
    row("ext4", "noatime", "none", 50.0),
    row("ext4", "noatime", "kyber", 75.0),
    row("ext3", "barrier=0", "none", 300.0),
    row("ext3", "barrier=0", "kyber", 450.0),
    row("ext3", "data=writeback", "none", 200.0),
    row("ext3", "data=writeback", "kyber", 300.0),
    row("jfs", "defaults", "none", 180.0, flushes_per_commit=0.0),
    row("jfs", "defaults", "kyber", 270.0, flushes_per_commit=0.0),
]


class TestCompared:
    def test_the_raw_disk_with_its_present_scheduler_is_100(self) -> None:
        rows = [
            row("x", "defaults", name, 0.0, rate=rate) for name, rate in (("none", 50.0), ("kyber", 60.0))
        ]
        raw = [{**each, "file_system": file_systems.RAW} for each in rows]
        rows = [*raw, *({**each, "rate": each["rate"] / 4} for each in rows)]
        assert [each["of_raw"] for each in file_systems._of_raw(rows)] == [100.0, 120.0, 25.0, 30.0]

    def test_what_is_not_safe_is_never_recommended(self) -> None:
        lines = compared.advice(ROWS, 0.02, {"btrfs": "this kernel does not have it"}, "scheduler_virtual")
        assert (
            lines[0]
            == "dsync, 1 client(s): ext4, noatime, kyber is the fastest that is safe in a power cut, 75"
        )
        assert "scheduler kyber: 50% faster than none" in lines
        assert "noatime: 25% faster than defaults" in lines
        for start in (
            "data=writeback can leave old data",
            "barrier=0 sends no flushes",
            "jfs sends no flushes",
            "ext2 has no journal",
        ):
            assert any(line.startswith(start) for line in lines)
        assert not any("at the end than at the start" in line for line in lines)
        assert lines[-1] == "btrfs was not measured: this kernel does not have it"

    def test_clear_differences_are_lines_of_group_vars(self) -> None:
        assert compared.group_vars(ROWS, "scheduler_virtual") == [
            "durable_overrides:",
            "  scheduler_virtual: kyber",
            "  atime: noatime",
        ]
        assert compared.group_vars(ROWS, None) == ["durable_overrides:", "  atime: noatime"]

    def test_a_difference_within_the_spread_of_the_runs_is_none(self) -> None:
        noisy = [file_systems.Row({**each, "spread": 0.6}) for each in ROWS]
        assert compared.group_vars(noisy, "scheduler_virtual") == []
        lines = compared.advice(noisy, -0.3, {}, "scheduler_virtual")
        assert (
            "scheduler kyber: no difference from none: observed +50%, but runs of the same setting differ by 60%"
            in lines
        )
        assert lines[0].startswith(
            "raw device: 30% slower at the end than at the start, so file systems that differ by less"
        )
        assert not any("is the fastest" in line for line in lines)
        once = compared.advice([file_systems.Row({**each, "runs": 1}) for each in ROWS], 0.0, {}, None)
        assert "one run of each has no spread: differences can be noise. Fix: choose with runs: 3" in once

    def test_the_table_has_a_line_for_each_mount_and_a_column_for_each_scheduler(self) -> None:
        table = str(compared.table(ROWS, ["a note"], ["durable_overrides:"])).splitlines()
        assert table[0] == "dsync, 1 client(s): commits/s, with raw device, none = 100"
        assert table[1].split() == ["file", "system", "options", "none", "kyber", "spread", "flushes"]
        assert table[4].split() == ["ext4", "defaults", "40.0", "60.0", "2%", "1.0"]
        assert table[-3:] == [
            "- a note",
            "for group_vars, if disks of databases are like this one:",
            "durable_overrides:",
        ]

    def test_the_plot_has_a_bar_for_each_row_as_long_as_its_rate(self) -> None:
        tree = ElementTree.fromstring(str(compared.svg(ROWS, "made & drawn")))
        space = "{http://www.w3.org/2000/svg}"
        bars = [each for each in tree.iter(f"{space}rect") if each.find(f"{space}title") is not None]
        assert len(bars) == len(ROWS)
        assert float(bars[1].get("width", 0)) == pytest.approx(float(bars[0].get("width", 0)) * 1.3, abs=0.2)
        assert [each.findtext(f"{space}title") for each in bars][4] == "ext4, none: 40, spread 2%"


class LoopHost(Host):
    """This machine, with a fio that is as fast each time, or that hangs."""

    hangs = False

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[0] != "fio":
            return super().run(argv, timeout)
        if self.hangs:
            return super().run(["sleep", "1000"], 1000)
        return Result(0, said(), "")


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[file_systems.Plan]:
    """Return a plan for a loop device with a permanent name, and the record in another directory."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    with open(tmp_path / "image", "wb") as file:
        file.truncate(600 * MIB)
    made = subprocess.run(
        ["losetup", "--find", "--show", tmp_path / "image"], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(made.stderr)
    path = made.stdout.strip()
    try:
        directory = tmp_path / "by-id"
        directory.mkdir()
        (directory / "spare").symlink_to(path)
        monkeypatch.setattr(spare, "BY_ID", str(directory))
        # A loop device has no name of its own, and a machine without udev cannot say so.
        monkeypatch.setattr(spare, "_shared", lambda *_: "")
        monkeypatch.setattr(spare, "COMPARISON", str(tmp_path / "comparison.json"))
        monkeypatch.setattr(one_run, "LOCK", str(tmp_path / "lock"))
        monkeypatch.setattr(trusted_path, "weakness", lambda _host, _path: "")
        monkeypatch.setattr(file_systems, "expect_quiet", lambda *_: None)
        monkeypatch.setattr(planned, "expect_fio", lambda *_: None)
        device = str(directory / "spare")
        wanted = {"device": device, "overwrite": device, "file_systems": ["ext4"], "ext3_options": []}
        try:
            yield file_systems.plan(
                LoopHost(), {**ROW, **wanted, "mount_options": ["sync,noatime"], "runs": 1}
            )
        except Refused as error:
            pytest.skip(str(error))
    finally:
        subprocess.run(["losetup", "--detach", path], check=True)


def remains(plan: file_systems.Plan) -> list[str]:
    """Return what remains of a run: a signature, a scheduler, a record, a process or a mount."""
    path = f"/dev/{plan.spare.name}"
    found = subprocess.run(
        ["wipefs", "--no-act", path], capture_output=True, text=True, check=True
    ).stdout.split()
    found += spare._processes(plan.spare.number)
    with open(plan.spare.queue, encoding="ascii") as file:
        found += [] if f"[{plan.spare.scheduler}]" in file.read() else ["scheduler"]
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        found += [line for line in file if f" {path} " in line]
    return [*found, *([spare.COMPARISON] if os.path.exists(spare.COMPARISON) else [])]


def test_a_real_disk_is_measured_and_is_as_before(loop: file_systems.Plan) -> None:
    rows, drift, _warning = file_systems.run(LoopHost(), loop)
    assert drift == 0.0
    # Each commit of this fio has the same rate.
    assert {(each["file_system"], each["options"], each["of_raw"]) for each in rows} == {
        (file_systems.RAW, "defaults", 100.0),
        ("ext4", "sync,noatime", 100.0),
    }
    assert len(rows) == 2 * len(loop.schedulers)
    assert remains(loop) == []


def test_no_other_program_can_claim_the_disk_while_it_is_measured(loop: file_systems.Plan) -> None:
    """As pvcreate(8) and mount(8) do, before they write."""
    claims = []

    class Claiming(LoopHost):
        """A host on which each fio is joined by another program."""

        def run(self, argv: list[str], timeout: float = 10.0) -> Result:
            if argv[0] == "fio":
                try:
                    os.close(os.open(f"/dev/{loop.spare.name}", os.O_RDONLY | os.O_EXCL))
                    claims.append(argv)
                except OSError as error:
                    assert error.errno == errno.EBUSY
            return super().run(argv, timeout)

    file_systems.compare(Claiming(), loop)
    assert claims == []
    assert remains(loop) == []


def test_a_disk_that_becomes_slower_meanwhile_has_a_drift(
    loop: file_systems.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slower(LoopHost):
        """Each of its runs has fewer commits than the one before."""

        commits = 1000

        def run(self, argv: list[str], timeout: float = 10.0) -> Result:
            if argv[0] != "fio":
                return super().run(argv, timeout)
            self.commits -= 100
            return Result(0, said(commits=self.commits), "")

    one = loop._replace(schedulers=loop.schedulers[:1])
    rows, drift, _warning = file_systems.run(Slower(), one)
    assert [each["rate"] for each in rows] == [450.0, 400.0]
    assert drift == round(350 / 450 - 1, 3)
    assert remains(loop) == []


def start(plan: file_systems.Plan) -> tuple[int, int]:
    """Start a run whose fio hangs. Return its process, and the one that works for it, once that writes."""
    host = LoopHost()
    host.hangs = True
    child = os.fork()
    if child == 0:
        try:
            file_systems.run(host, plan)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        worker = subprocess.run(
            ["pgrep", "-P", str(child)], capture_output=True, text=True, check=False
        ).stdout.split()
        sleeping = worker and subprocess.run(
            ["pgrep", "-P", worker[0], "-x", "sleep"], capture_output=True, check=False
        )
        if sleeping and sleeping.returncode == 0:
            return child, int(worker[0])
        time.sleep(0.05)
    raise AssertionError("it did not start")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_after_the_measuring_process_is_killed_nothing_remains(
    loop: file_systems.Plan, how: signal.Signals
) -> None:
    child, _worker = start(loop)
    assert remains(loop) != []
    os.kill(child, how)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 20
    while remains(loop) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert remains(loop) == []


def test_after_both_processes_are_killed_the_next_run_cleans_up(
    loop: file_systems.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, worker = start(loop)
    sleeping = subprocess.run(
        ["pgrep", "-P", str(worker)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(worker, signal.SIGKILL)
    for each in sleeping:
        os.kill(int(each), signal.SIGKILL)
    os.waitpid(child, 0)
    # As if it had been killed after mkfs, with another scheduler.
    label = spare.remains(Host()).label  # type: ignore[union-attr]
    path = f"/dev/{loop.spare.name}"
    subprocess.run(["mke2fs", "-q", "-F", "-L", label, path], check=True)
    with open(loop.spare.queue, "w", encoding="ascii") as file:
        file.write(loop.schedulers[-1])
    assert remains(loop) != []
    found = spare.find(Host(), loop.spare.device, loop.spare.device)
    assert spare.clean(Host()) == ""
    assert found.scheduler == loop.schedulers[-1]
    assert remains(loop) == []


def test_a_signal_does_not_interrupt_the_restore_of_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    restored = []

    def schedule(_host: Host, _path: str, value: str) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(os.getpid(), number)
        restored.append(value)

    monkeypatch.setattr(variants, "schedule", schedule)
    before = signal.getsignal(signal.SIGTERM)
    with scratch.signals_end(), file_systems._restored(Host(), DISK):
        pass
    assert restored == ["none"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_could_not_be_removed_from_another_disk_is_in_the_result(
    loop: file_systems.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spare, "clean", lambda _host: "sdx is in use")
    assert file_systems.run(LoopHost(), loop).warning == "sdx is in use"


def test_a_loop_device_over_the_disk_is_a_use_of_it(loop: file_systems.Plan) -> None:
    path = f"/dev/{loop.spare.name}"
    made = subprocess.run(
        ["losetup", "--find", "--show", path], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        with pytest.raises(
            Refused, match=f"the file of a loop device: /sys/block/{made[5:]}/loop/backing_file"
        ):
            spare.find(Host(), loop.spare.device, loop.spare.device)
    finally:
        subprocess.run(["losetup", "--detach", made], check=True)


def test_a_worker_without_a_result_is_an_error(
    loop: file_systems.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_systems, "compare", lambda *_: os._exit(3))
    with pytest.raises(Unobservable, match="ended without a result"):
        file_systems.run(LoopHost(), loop)
    monkeypatch.setattr(file_systems, "compare", lambda *_: (_ for _ in ()).throw(Refused("no disk")))
    with pytest.raises(Refused, match="no disk"):
        file_systems.run(LoopHost(), loop)


def test_a_mounted_loop_device_is_in_use(loop: file_systems.Plan) -> None:
    path = f"/dev/{loop.spare.name}"
    claim = os.open(path, os.O_RDONLY | os.O_EXCL)
    try:
        with pytest.raises(Refused, match=r"opened by process \d+"):
            spare.find(Host(), loop.spare.device, loop.spare.device)
        with pytest.raises(Refused, match="in use by the kernel"), spare.opened(Host(), loop.spare):
            pass
    finally:
        os.close(claim)
    with (
        pytest.raises(Refused, match="another disk has its name now"),
        spare.opened(Host(), loop.spare._replace(number="7:99")),
    ):
        pass
