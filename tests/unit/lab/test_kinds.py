# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kind of machine a layout gets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import kinds, watch
from lab.errors import LabError
from lab.layout import NEEDS, RELEASE_KERNEL, Disk, Layout
from lab.paths import Lab
from lab.qemu.kind import Qemu
from lab.uml.kind import Uml
from lab.uml.program import Program

QUICK = Layout((Disk("scsi", "A", fua=True), Disk("virtio", "B")))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return a lab on a host that can run both kinds."""
    monkeypatch.delenv("DBHOST_LAB_KIND", raising=False)
    monkeypatch.setattr(Uml, "refusal", lambda *_: "")
    return Lab(tmp_path)


def test_virtio_and_scsi_disks_get_the_quick_kind(lab: Lab) -> None:
    assert kinds.pick(lab, QUICK, "bookworm").name == "uml"
    assert kinds.pick(lab, Layout(), "bookworm").name == "uml"


@pytest.mark.parametrize("bus", ["sata", "nvme"])
def test_other_buses_are_emulated(lab: Lab, bus: str) -> None:
    """One disk of them is enough."""
    assert kinds.pick(lab, Layout((*QUICK.disks, Disk(bus, "C"))), "bookworm").name == "qemu"


@pytest.mark.parametrize("need", sorted({*NEEDS} - {RELEASE_KERNEL}))
def test_what_a_layout_needs_beside_disks_is_emulated(lab: Lab, need: str) -> None:
    """Tracing, suspend and the like."""
    assert kinds.pick(lab, Layout(QUICK.disks, needs=(need,)), "bookworm").name == "qemu"


def test_the_kernel_of_a_release_is_emulated_where_its_quick_one_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each distribution has its own, and each is asked."""
    monkeypatch.delenv("DBHOST_LAB_KIND", raising=False)
    monkeypatch.setattr("lab.uml.kind.TOOLS", ())
    monkeypatch.setattr("lab.uml.kind._obstacle", lambda *_: "")
    monkeypatch.setattr("lab.uml.kind._probe", lambda _, name: "it is old" if name == "bullseye" else "")
    monkeypatch.setattr("lab.uml.kind.program.ensure", lambda *_: Program(Path("linux_1")))
    layout = Layout(needs=(RELEASE_KERNEL,))
    picked = [kinds.pick(Lab(tmp_path), layout, release).name for release in ("bullseye", "trixie")]
    assert picked == ["qemu", "uml"]
    assert kinds.pick(Lab(tmp_path), Layout(), "bullseye").name == "uml"


def test_a_host_that_cannot_run_the_quick_kind_emulates_everything(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Uml, "refusal", lambda *_: "no /dev/net/tun")
    assert kinds.pick(lab, QUICK, "bookworm").name == "qemu"


def test_a_kind_can_be_asked_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has not what is needed, or does not run here, is refused with the reason."""
    monkeypatch.setenv("DBHOST_LAB_KIND", "qemu")
    assert kinds.pick(lab, QUICK, "bookworm").name == "qemu"
    monkeypatch.setenv("DBHOST_LAB_KIND", "uml")
    with pytest.raises(LabError, match="uml has not all that the layout needs"):
        kinds.pick(lab, Layout((Disk("sata", "A"),)), "bookworm")
    monkeypatch.setattr(Uml, "refusal", lambda *_: "no /dev/net/tun")
    with pytest.raises(LabError, match="uml: no /dev/net/tun"):
        kinds.pick(lab, QUICK, "bookworm")
    monkeypatch.setenv("DBHOST_LAB_KIND", "vmware")
    with pytest.raises(LabError, match=r"'vmware'; known are \['uml', 'qemu'\]"):
        kinds.pick(lab, QUICK, "bookworm")


def test_only_memory_without_nvme_can_be_kept() -> None:
    """QEMU's NVMe device has no migration state, User Mode Linux no snapshots, and a layout may want a boot."""
    assert Qemu().freezes(QUICK)
    assert not Qemu().freezes(Layout((Disk("nvme", "A"),)))
    assert not Qemu().freezes(Layout(frozen=False))
    assert not Qemu().freezes(Layout(needs=("boot_loader",)))
    assert not Uml().freezes(QUICK)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Return what asks whether User Mode Linux runs, on a host where nothing is missing, and not in a run."""
    monkeypatch.setattr("lab.uml.kind.TOOLS", ())
    monkeypatch.setattr("lab.uml.kind._obstacle", lambda *_: "")
    monkeypatch.setattr("lab.uml.kind.program.ensure", lambda *_: Program(Path("linux_1")))
    monkeypatch.delenv(watch.OWNER, raising=False)
    return lambda: Uml().refusal(Lab(tmp_path), QUICK, "bookworm")


SAID = "so QEMU runs what would, slower: "


def test_why_the_quick_kind_does_not_run_is_found_out_once_and_said_once_in_each_run(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The probe boots a kernel: its answer is kept for this boot of the host."""
    probes = iter(["its kernel does not come up: panic"])
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: next(probes))
    for run in ("", "", "17", "17", "18"):
        monkeypatch.setenv(watch.OWNER, run)
        assert asked() == "its kernel does not come up: panic"
    assert capsys.readouterr().err.count(f"{SAID}its kernel") == 3


def test_a_kernel_that_did_not_run_is_tried_again_when_the_host_has_booted(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    probes = iter(["no", ""])
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: next(probes))
    for boot, answer in (("a", "no"), ("a", "no"), ("b", "")):
        (tmp_path / "boot_id").write_text(boot)
        monkeypatch.setattr("lab.uml.kind._BOOT_ID", tmp_path / "boot_id")
        assert asked() == answer


def test_a_kernel_that_took_too_long_is_tried_again_by_the_next_run(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host may have been busy."""

    def late(*_: object) -> str:
        raise subprocess.TimeoutExpired("linux.uml", 20)

    monkeypatch.setenv(watch.OWNER, "17")
    monkeypatch.setattr("lab.uml.kind._probe", late)
    assert asked() == "its kernel does not come up within 20 s"
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: "")
    assert asked() == "its kernel does not come up within 20 s"
    monkeypatch.setenv(watch.OWNER, "18")
    assert asked() == ""


def test_a_kernel_that_ran_says_nothing_of_one_that_is_gone_or_of_another(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = iter(["", "no"])
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: next(probes))
    assert [asked(), asked()] == ["", ""]
    monkeypatch.setattr("lab.uml.kind._obstacle", lambda *_: "no archive")
    assert asked() == "no archive"
    monkeypatch.setattr("lab.uml.kind._obstacle", lambda *_: "")
    monkeypatch.setattr("lab.uml.kind.program.ensure", lambda *_: Program(Path("linux_2")))
    assert asked() == "no"


def test_an_archive_that_did_not_answer_is_asked_again_by_the_next_run_and_not_by_the_next_machine(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    obstacles = iter(["no archive", "no archive", "", ""])
    monkeypatch.setattr("lab.uml.kind._obstacle", lambda *_: next(obstacles))
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: "")
    for run, answer in (
        ("17", "no archive"),
        ("17", "no archive"),
        ("18", "no archive"),
        ("19", ""),
        ("20", ""),
    ):
        monkeypatch.setenv(watch.OWNER, run)
        assert asked() == answer
    assert capsys.readouterr().err.count(f"{SAID}no archive") == 2


def test_a_tool_that_is_missing_is_said_and_may_be_there_the_next_moment(
    asked: Callable[[], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a clean machine the packages are installed while other stages run already."""
    monkeypatch.setattr("lab.uml.kind._probe", lambda *_: "")
    monkeypatch.setattr("lab.uml.kind.TOOLS", ("sh", "no-such-tool"))
    monkeypatch.setenv(watch.OWNER, "17")
    assert [asked(), asked()] == ["no-such-tool not found"] * 2
    assert capsys.readouterr().err.count(f"{SAID}no-such-tool not found") == 1
    monkeypatch.setattr("lab.uml.kind.TOOLS", ("sh",))
    assert asked() == ""
